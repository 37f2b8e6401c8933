// js/handler/native_input.js — converts the prompts, inputs and logit biases of llama.cpp's server,
// whose formats differ from OpenAI's.

import { BIAS_MAX, fieldWords } from '../base/option_table.js';
import { isObject, isText, missing, must } from './fields.js';
import { invalidField, refusal } from './http_errors.js';

/** @typedef {import('../index.js').Engine} Engine */

const PROMPTS_MAX = 16;

// ---- prompts ----

/** @param {unknown} list @returns {boolean} */
const areTokens = (list) =>
  Array.isArray(list) && list.length > 0 && list.every((id) => Number.isSafeInteger(id));

/**
 * @param {any} one
 * @returns {boolean} whether it is a mix of strings and token ids that form one prompt
 */
const isMixed = (one) =>
  Array.isArray(one) &&
  one.some((part) => typeof part === 'number') &&
  one.every((part) => isText(part) || Number.isSafeInteger(part));

/** @param {any} part */
const isTextPart = (part) => part?.type === 'text' && isText(part.text);

/**
 * @param {any} one a prompt, or an object of llama.cpp's server that contains its text
 * @param {string} name of the field
 * @returns {any} the prompt
 */
function unwrapped(one, name) {
  if (!isObject(one)) return one;
  const { prompt_string: text, multimodal_data: media, content } = one;
  if (name === 'input' && Array.isArray(content) && content.every(isTextPart)) {
    return content.map((part) => part.text).join('');
  }
  if (!isText(text)) return one;
  const isEmpty = (/** @type {any} */ list) => Array.isArray(list) && list.length === 0;
  missing(isEmpty)(media ?? [], `${name}.multimodal_data`);
  return text;
}

/**
 * @param {any} given the value in the body
 * @param {'prompt' | 'input'} name of the field
 * @returns {any[]} the texts: strings, token ids, or both
 */
function textsOf(given, name) {
  const isOne = (/** @type {any} */ one) => isText(one) || areTokens(one) || isMixed(one);
  const only = unwrapped(given, name);
  if (isOne(only)) return [only];
  const texts = Array.isArray(given) ? given.map((one) => unwrapped(one, name)) : [];
  if (texts.length > 0 && texts.every(isOne)) return texts;
  const message = `${name} must be ${fieldWords.prompt}`;
  throw invalidField(name, message);
}

/** @param {any} given @returns {any[]} the prompts */
export function promptsOf(given) {
  const prompts = textsOf(given, 'prompt');
  if (prompts.length <= PROMPTS_MAX) return prompts;
  throw refusal('prompts', [PROMPTS_MAX], { param: 'prompt' });
}

/**
 * @param {Engine} engine
 * @param {any} given the value in the body
 * @param {'prompt' | 'input'} name of the field
 * @param {AbortSignal} signal
 * @returns {Promise<(string | number[])[]>} the prompts, or the inputs of embeddings
 */
export const inputsOf = (engine, given, name, signal) =>
  Promise.all(
    textsOf(given, name).map((one) => (isMixed(one) ? tokensOf(engine, one, signal) : one)),
  );

/**
 * @param {Engine} engine
 * @param {string | (string | number)[]} prompt a prompt returned by promptsOf
 * @param {AbortSignal} signal
 * @returns {Promise<number[]>} its tokens, with a beginning-of-sequence token if it begins with
 * text
 */
export async function tokensOf(engine, prompt, signal) {
  if (areTokens(prompt)) return /** @type {number[]} */ (prompt);
  const parts = [prompt].flat();
  const lists = parts.map(async (part, index) =>
    isText(part)
      ? await engine.tokenize(/** @type {string} */ (part), { addSpecial: index === 0, signal })
      : [Number(part)],
  );
  return (await Promise.all(lists)).flat();
}

/**
 * Returns the fill-in-the-middle prompt: the prefix and the suffix, marked by the model's tokens for them.
 * @param {Engine} engine @param {Record<string, any>} body @param {AbortSignal} signal
 * @returns {Promise<number[]>}
 */
export async function infillPrompt(engine, body, signal) {
  const { tokenizer } = await engine.info();
  const { prefix, suffix, middle, repository, separator } = tokenizer?.infill ?? {};
  if (!prefix || !suffix || !middle) {
    throw refusal('no_infill');
  }
  const plain = async (/** @type {string} */ content) =>
    engine.tokenize(content, { addSpecial: false, parseSpecial: false, signal });
  const bos = tokenizer?.addsBos && tokenizer.bos ? [tokenizer.bos.id] : [];
  const before = `${body.input_prefix ?? ''}${body.prompt ?? ''}`;
  const extra = [];
  for (const { filename, text: content } of body.input_extra ?? []) {
    const named = `${filename ?? 'file'}\n${content}\n`;
    if (separator) extra.push(separator.id, ...(await plain(named)));
    else extra.push(...(await plain(`${content}\n\n`)));
  }
  const files = separator && extra.length > 0 ? [separator.id, ...(await plain('file\n'))] : [];
  const head = repository && files.length > 0 ? [repository.id, ...(await plain('project\n'))] : [];
  const ends = [prefix.id, ...(await plain(before)), suffix.id];
  return [
    ...[...bos, ...head, ...extra, ...files, ...ends],
    ...[...(await plain(body.input_suffix ?? '')), middle.id],
  ];
}

// ---- logit biases ----

/** @param {any} value @returns {[token: any, bias: any][]} */
const biasPairs = (value) => (Array.isArray(value) ? value : Object.entries(value));

/** @param {any} pair */
const isBias = (pair) =>
  Array.isArray(pair) &&
  pair.length === 2 &&
  (isText(pair[0]) || (Number.isSafeInteger(pair[0]) && pair[0] >= 0)) &&
  (typeof pair[1] === 'number' || pair[1] === false);

/** @type {import('./fields.js').Check} */
export const bias = must(
  (value) =>
    (isObject(value) || Array.isArray(value)) &&
    biasPairs(value).length <= BIAS_MAX &&
    biasPairs(value).every(isBias),
  fieldWords.native_bias,
);

/**
 * Converts logit biases. The bias of a string applies to each of its tokens. The value false forbids a token.
 * @param {Engine} engine
 * @param {any} value the checked value of the field; null or undefined: no biases
 * @param {AbortSignal} signal
 * @returns {Promise<Map<number, number> | undefined>} the biases of token ids
 */
export async function biasesOf(engine, value, signal) {
  if ((value ?? undefined) === undefined) return undefined;
  const asked = biasPairs(value).map(async ([key, given]) => {
    const isId = !isText(key) || /^\d+$/.test(key);
    const ids = isId
      ? [Number(key)]
      : await engine.tokenize(key, { addSpecial: false, parseSpecial: true, signal });
    return { ids, number: given === false ? Number.NEGATIVE_INFINITY : given };
  });
  /** @type {Map<number, number>} */
  const biases = new Map();
  for (const { ids, number } of await Promise.all(asked)) {
    for (const id of ids) biases.set(id, (biases.get(id) ?? 0) + number);
  }
  return biases;
}
