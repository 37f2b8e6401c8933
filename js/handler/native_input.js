// js/handler/native_input.js — converts the prompts and logit biases of POST /completion and
// /infill, whose formats in llama.cpp differ from those of OpenAI's routes.

import { areTokens } from './completion_route.js';
import { isObject, isText, missing, must } from './fields.js';
import { HttpError, invalidField } from './http_errors.js';

/** @typedef {import('../index.js').Engine} Engine */

const PROMPTS_MAX = 16;
/** The engine's limit on logit biases. */
const BIASES_MAX = 1024;

// ---- prompts ----

/**
 * @param {any} one
 * @returns {boolean} whether it is a mix of strings and token ids that form one prompt
 */
const isMixed = (one) =>
  Array.isArray(one) &&
  one.some((part) => typeof part === 'number') &&
  one.every((part) => isText(part) || Number.isSafeInteger(part));

/** @param {any} one a prompt, or the object of llama.cpp's server that contains its text @returns {any} the prompt */
function unwrapped(one) {
  if (!isObject(one) || !isText(one.prompt_string)) return one;
  missing((media) => Array.isArray(media) && media.length === 0)(
    one.multimodal_data ?? [],
    'prompt.multimodal_data',
  );
  return one.prompt_string;
}

/**
 * @param {any} given the value in the body
 * @returns {any[]} the prompts: strings, token ids, or both
 */
export function promptsOf(given) {
  const isOne = (/** @type {any} */ one) => isText(one) || areTokens(one) || isMixed(one);
  const prompt = Array.isArray(given) ? given.map(unwrapped) : unwrapped(given);
  if (isOne(prompt)) return [prompt];
  if (!Array.isArray(prompt) || prompt.length === 0 || !prompt.every(isOne)) {
    const message =
      'prompt must be a string, an array of token ids and strings, or an array of these';
    throw invalidField('prompt', message);
  }
  if (prompt.length <= PROMPTS_MAX) return prompt;
  throw invalidField('prompt', `A request may have at most ${PROMPTS_MAX} prompts`);
}

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
    const message = 'infill: the model has no fill-in-the-middle tokens';
    throw new HttpError(501, 'nodata', message);
  }
  const plain = async (/** @type {string} */ content) =>
    engine.tokenize(content, { addSpecial: false, parseSpecial: false, signal });
  const bos = tokenizer?.addsBos && tokenizer.bos ? [tokenizer.bos.id] : [];
  const before = `${body.input_prefix ?? ''}${body.prompt ?? ''}`;
  const extra = [];
  for (const { filename = 'file', text: content } of body.input_extra ?? []) {
    if (separator) extra.push(separator.id, ...(await plain(`${filename}\n${content}\n`)));
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
    biasPairs(value).length <= BIASES_MAX &&
    biasPairs(value).every(isBias),
  `an object that maps at most ${BIASES_MAX} token ids or strings to numbers, or an array of such pairs`,
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
