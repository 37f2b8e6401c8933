// js/handler/native_route.js — POST /completion and /infill in the shape of llama.cpp's server: prompts, each continued
// once, with its tokens, timings and settings.

import { samplerLetters } from '../base/option_table.js';
import { optionNumbers } from '../base/sampler_fields.js';
import { adaptersOf, lora } from './adapter_fields.js';
import { LOGPROBS_MAX } from './chat_route.js';
import { Choice, merged } from './choice.js';
import { areTokens, optionsOf } from './completion_route.js';
import {
  boolean,
  checkBody,
  checkTogether,
  commonFields,
  idleFields,
  ignored,
  isObject,
  isOneOf,
  isText,
  missing,
  must,
  text,
  whole,
  withAliases,
} from './fields.js';
import { HttpError, invalidField } from './http_errors.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('../index.js').TokenDetail} TokenDetail */
/** @typedef {import('./event_stream.js').Chunks} Chunks */

const PROMPTS_MAX = 16;

const { stream_options, n, ...shared } = commonFields;

/** @type {Record<string, import('./fields.js').Check>} */
const ofBoth = {
  ...shared,
  ...idleFields,
  ...{ lora, n_probs: whole(0, LOGPROBS_MAX), return_tokens: boolean },
  response_fields: must(
    (value) => Array.isArray(value) && value.every(isText),
    'an array of strings',
  ),
  ...{ n: missing(isOneOf(1)), n_discard: ignored, n_indent: missing(isOneOf(0)) },
};

const completionFields = withAliases({ ...ofBoth, prompt: ignored }); // promptsOf looks at it
export const nativeNames = new Set(Object.keys(completionFields));

/** @param {any} one */
const isExtra = (one) => isObject(one) && isText(one.text) && isText(one.filename ?? '');

const infillFields = withAliases({
  ...ofBoth,
  ...{ prompt: text, input_prefix: text, input_suffix: text },
  input_extra: must(
    (value) => Array.isArray(value) && value.every(isExtra),
    'an array of {"filename", "text"}',
  ),
});
export const infillNames = new Set(Object.keys(infillFields));

// ---- prompts ----

/** @param {any} one @returns {boolean} whether it is texts and token ids of one prompt */
const isMixed = (one) =>
  Array.isArray(one) &&
  one.some((part) => typeof part === 'number') &&
  one.every((part) => isText(part) || Number.isSafeInteger(part));

/** @param {any} prompt @returns {any[]} the prompts: texts, token ids, or both */
function promptsOf(prompt) {
  const isOne = (/** @type {any} */ one) => isText(one) || areTokens(one) || isMixed(one);
  if (isOne(prompt)) return [prompt];
  if (!Array.isArray(prompt) || prompt.length === 0 || !prompt.every(isOne)) {
    const message =
      'prompt must be a string, an array of token ids and strings, or an array of these';
    throw invalidField('prompt', message);
  }
  if (prompt.length <= PROMPTS_MAX) return prompt;
  throw invalidField('prompt', `A request has at most ${PROMPTS_MAX} prompts`);
}

/** @param {Engine} engine @param {(string | number)[]} parts @param {AbortSignal} signal @returns {Promise<number[]>} */
async function tokensOf(engine, parts, signal) {
  const lists = parts.map(async (part, index) =>
    isText(part)
      ? await engine.tokenize(/** @type {string} */ (part), { addSpecial: index === 0, signal })
      : [Number(part)],
  );
  return (await Promise.all(lists)).flat();
}

/**
 * The prompt for the middle of a text: the beginning and the end between the model's tokens for them.
 * @param {Engine} engine @param {Record<string, any>} body @param {AbortSignal} signal
 * @returns {Promise<number[]>}
 */
async function infillPrompt(engine, body, signal) {
  const { tokenizer } = await engine.info();
  const { prefix, suffix, middle, repository, separator } = tokenizer?.infill ?? {};
  if (!prefix || !suffix || !middle) {
    const message = 'infill: the model has no tokens for a prefix, a suffix and a middle';
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

// ---- answers ----

/** @param {number} count @param {number} ms */
const perSecond = (count, ms) => (count > 0 && ms > 0 ? (count * 1000) / ms : 0);

/** @param {import('../index.js').GenerationResult} result */
function timingsOf({ usage, timings }) {
  const [read, written] = [usage.promptTokens - usage.cachedTokens, usage.completionTokens];
  const { prefillMs, decodeMs } = timings;
  return {
    ...{ cache_n: usage.cachedTokens, prompt_n: read, prompt_ms: prefillMs },
    prompt_per_token_ms: read > 0 ? prefillMs / read : 0,
    prompt_per_second: perSecond(read, prefillMs),
    ...{ predicted_n: written, predicted_ms: decodeMs },
    predicted_per_token_ms: written > 0 ? decodeMs / written : 0,
    predicted_per_second: perSecond(written, decodeMs),
  };
}

/** @param {Record<string, any>} body that was checked @returns {object} the settings in force */
function settingsOf(body) {
  const numbers = Object.values(optionNumbers).map(({ field, byDefault }) => [
    ...[field, body[field] ?? byDefault],
  ]);
  const most = body.max_tokens ?? -1;
  return {
    ...Object.fromEntries(numbers),
    samplers: body.samplers ?? Object.keys(samplerLetters),
    ...{ seed: body.seed ?? -1, n_predict: most, max_tokens: most, n_probs: body.n_probs ?? 0 },
    ...{ stop: [body.stop ?? []].flat(), ignore_eos: body.ignore_eos ?? false },
    ...{ stream: body.stream ?? false, post_sampling_probs: body.post_sampling_probs ?? false },
  };
}

/** @param {Record<string, any>} body @returns {(token: TokenDetail) => object} a token with its probabilities */
function probabilitiesOf({ n_probs: count, post_sampling_probs: isAfter }) {
  const [name, list] = isAfter ? ['prob', 'top_probs'] : ['logprob', 'top_logprobs'];
  const shaped = (
    /** @type {Omit<TokenDetail, 'top'>} */ { token, text: piece, bytes, logprob = 0 },
  ) => ({
    ...{ id: token, token: piece, bytes, [name]: isAfter ? Math.exp(logprob) : logprob },
  });
  return (token) => ({ ...shaped(token), [list]: token.top.slice(0, count).map(shaped) });
}

/** @param {import('../index.js').GenerationResult} result */
function stopOf({ finishReason, stop }) {
  const kind = finishReason === 'length' ? 'limit' : stop === undefined ? 'eos' : 'word';
  return { stop_type: kind, stopping_word: stop ?? '' };
}

/** @param {Record<string, any>} shape @param {string[] | null | undefined} names of members, with / for those within */
function picked(shape, names) {
  if (!names?.length) return shape;
  const found = names.map((name) => [
    name,
    name.split('/').reduce((/** @type {any} */ value, part) => value?.[part], shape),
  ]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

class NativeCompletion {
  #body;
  #model;
  #probabilities;

  /** @param {Choice[]} choices @param {string[]} prompts their texts @param {Record<string, any>} body @param {string} model */
  constructor(choices, prompts, body, model) {
    this.choices = choices;
    this.prompts = prompts;
    this.#body = body;
    this.#model = model;
    this.#probabilities = probabilitiesOf(body);
  }

  leave() {
    for (const choice of this.choices) choice.leave();
  }

  /** @param {TokenDetail[]} tokens */
  #detailsOf(tokens) {
    return this.#body.n_probs ? { completion_probabilities: tokens.map(this.#probabilities) } : {};
  }

  /** @param {number} index @param {string} content @param {boolean} isLast @returns {TokenDetail[]} */
  #take(index, content, isLast) {
    return this.choices[index].takeTokens(content, isLast).filter(({ token }) => token >= 0);
  }

  /** @param {number} index @param {string} content @returns {object} of a stream */
  pieceOf(index, content) {
    const tokens = this.#take(index, content, false);
    const ids = tokens.map(({ token }) => token);
    return { index, content, tokens: ids, stop: false, id_slot: -1, ...this.#detailsOf(tokens) };
  }

  /** @param {number} index @param {string} content all of it, or nothing at the end of a stream @returns {object} */
  endOf(index, content) {
    const { result } = this.choices[index].generation;
    const found = /** @type {import('../index.js').GenerationResult} */ (result);
    const { stream: isStreamed, return_tokens: wantsTokens, response_fields: names } = this.#body;
    const tokens = this.#take(index, content, true);
    const ids = tokens.map(({ token }) => token); // of a stream: those without a text
    const shape = {
      ...{ index, content, tokens: isStreamed || wantsTokens ? ids : [] },
      ...{ id_slot: -1, stop: true, model: this.#model },
      tokens_predicted: found.usage.completionTokens,
      tokens_evaluated: found.usage.promptTokens,
      generation_settings: settingsOf(this.#body),
      prompt: this.prompts[index],
      ...{ has_new_line: content.includes('\n'), truncated: false, ...stopOf(found) },
      ...{ tokens_cached: found.usage.cachedTokens, timings: timingsOf(found) },
      ...(isStreamed && tokens.length === 0 ? {} : this.#detailsOf(tokens)),
    };
    return picked(shape, names);
  }
}

/** @param {NativeCompletion} completion @returns {Promise<any>} one answer, or a list of those of several prompts */
async function collect(completion) {
  const read = completion.choices.map(async (choice, index) => {
    let content = '';
    for (let next = await choice.next(); !next.done; next = await choice.next()) {
      content += next.value;
    }
    return completion.endOf(index, content);
  });
  try {
    const answers = await Promise.all(read);
    return answers.length === 1 ? answers[0] : answers;
  } catch (error) {
    completion.leave();
    throw error;
  }
}

/** @param {NativeCompletion} completion @returns {AsyncGenerator<object, void, void>} */
async function* chunksOf(completion) {
  for await (const { index, text: piece } of merged(completion.choices)) {
    yield isText(piece)
      ? completion.pieceOf(index, /** @type {string} */ (piece))
      : completion.endOf(index, '');
  }
}

/**
 * @param {Engine} engine
 * @param {any[]} prompts
 * @param {Record<string, any>} body that was checked
 * @param {import('./create_handler.js').Asked} asked
 */
async function complete(engine, prompts, body, asked) {
  const { signal, adapters, model } = asked;
  const options = optionsOf(body, ofBoth, asked);
  options.adapters = await adaptersOf(engine, body.lora, adapters);
  options.seed = body.seed ?? undefined;
  if (body.n_probs) options.logprobs = body.n_probs;
  const whole = prompts.map((one) => (isMixed(one) ? tokensOf(engine, one, signal) : one));
  const given = await Promise.all(whole);
  const texts = given.map((one) =>
    isText(one) ? one : engine.detokenize(one, { special: true, signal }),
  );
  const shown = await Promise.all(texts);
  const choices = given.map((prompt) => {
    const onToken = (/** @type {TokenDetail} */ token) => void choice.tokens.push(token);
    const choice = new Choice(engine.generate(prompt, { ...options, onToken }));
    return choice;
  });
  const completion = new NativeCompletion(choices, shown, body, model);
  if (!body.stream) return collect(completion);
  const chunks = chunksOf(completion);
  const next = () => chunks.next();
  return { leading: 0, isBare: true, next, leave: () => completion.leave() };
}

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<object | Chunks>}
 */
export async function answerNative(engine, body, asked) {
  checkBody(body, completionFields);
  checkTogether(body, 'prompt');
  return complete(engine, promptsOf(body.prompt), body, asked);
}

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<object | Chunks>}
 */
export async function answerInfill(engine, body, asked) {
  checkBody(body, infillFields);
  return complete(engine, [await infillPrompt(engine, body, asked.signal)], body, asked);
}
