// js/handler/native_route.js — POST /completion and /infill in the format of llama.cpp's server:
// continues each prompt once; the response has its tokens, timings and settings.

import { fieldWords, samplerLetters } from '../base/option_table.js';
import { flagFields, optionNumbers } from '../base/sampler_fields.js';
import { adaptersOf, lora } from './adapter_fields.js';
import { choiceOf, chunksFrom, collect, merged } from './choice.js';
import { optionsOf } from './completion_route.js';
import {
  checkTogether,
  commonFields,
  fieldsOf,
  isObject,
  isText,
  must,
  withAliases,
} from './fields.js';
import { bias, biasesOf, infillPrompt, promptsOf, tokensOf } from './native_input.js';
import { nativeTimings } from './native_timings.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('../index.js').TokenDetail} TokenDetail */
/** @typedef {import('./choice.js').Choice} Choice */
/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

const ofBoth = { ...commonFields, ...fieldsOf('every', 'native'), lora, logit_bias: bias };

/** @param {any} one */
const isExtra = (one) => isObject(one) && isText(one.text) && isText(one.filename ?? '');

const extra = must((value) => Array.isArray(value) && value.every(isExtra), fieldWords.input_extra);

// ---- answers ----

/**
 * @param {Record<string, any>} body that was checked
 * @param {[token: number, bias: number][]} biases of this request
 * @returns {object} the effective settings
 */
function settingsOf(body, biases) {
  const numbers = Object.values(optionNumbers).map(({ field, byDefault }) => [
    ...[field, body[field] ?? byDefault],
  ]);
  const most = body.max_tokens ?? -1;
  return {
    ...Object.fromEntries(numbers),
    samplers: body.samplers ?? Object.keys(samplerLetters),
    ...{ seed: body.seed ?? -1, n_predict: most, max_tokens: most, n_probs: body.n_probs ?? 0 },
    ...Object.fromEntries(flagFields.map(([field]) => [field, body[field] ?? false])),
    ...{ stop: [body.stop ?? []].flat(), stream: body.stream ?? false },
    logit_bias: biases.map(([token, number]) => ({ token, bias: number })), // -Infinity becomes null in JSON
  };
}

/**
 * @param {Record<string, any>} body
 * @returns {(token: TokenDetail) => object} returns a token with its probabilities
 */
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

/**
 * @param {import('../index.js').GenerationResult} result
 * @param {Record<string, any>} body
 * @returns {boolean} whether the context was full
 */
const isTruncated = ({ finishReason, usage }, { max_tokens: most = -1 }) =>
  finishReason === 'length' && (most < 0 || usage.completionTokens < most);

/** @param {any} value @param {string} name @returns {any} a member of an object */
const memberOf = (value, name) =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/**
 * @param {Record<string, any>} shape
 * @param {string[] | null | undefined} names of members; / separates the levels of nested ones
 */
function picked(shape, names) {
  if (!names?.length) return shape;
  const found = names.map((name) => [
    name,
    name.split('/').reduce(memberOf, /** @type {any} */ (shape)),
  ]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

class NativeCompletion {
  #body;
  #model;
  #settings;
  #probabilities;
  /** The choices whose streams contained a line break. @type {Set<number>} */
  #linesBroken = new Set();

  /**
   * @param {Choice[]} choices
   * @param {string[]} prompts the text of each prompt
   * @param {Record<string, any>} body
   * @param {{model: string, biases: [token: number, bias: number][]}} facts about all choices
   */
  constructor(choices, prompts, body, { model, biases }) {
    this.choices = choices;
    this.prompts = prompts;
    this.#body = body;
    this.#model = model;
    this.#settings = settingsOf(body, biases);
    this.#probabilities = probabilitiesOf(body);
  }

  /** @param {TokenDetail[]} tokens */
  #detailsOf(tokens) {
    return this.#body.n_probs ? { completion_probabilities: tokens.map(this.#probabilities) } : {};
  }

  /** @param {number} index @param {string} content @param {boolean} isLast @returns {TokenDetail[]} */
  #take(index, content, isLast) {
    return this.choices[index].takeTokens(content, isLast).filter(({ token }) => token >= 0);
  }

  /** @param {number} index @param {string} content @returns {object} a chunk of a stream */
  pieceOf(index, content) {
    if (content.includes('\n')) this.#linesBroken.add(index);
    const tokens = this.#take(index, content, false);
    const ids = tokens.map(({ token }) => token);
    return { index, content, tokens: ids, stop: false, id_slot: -1, ...this.#detailsOf(tokens) };
  }

  /**
   * @param {number} index
   * @param {string} content the complete text, or nothing at the end of a stream
   * @returns {object}
   */
  endOf(index, content) {
    const { result } = this.choices[index].generation;
    const found = /** @type {import('../index.js').GenerationResult} */ (result);
    const { stream: isStreamed, return_tokens: wantsTokens, response_fields: names } = this.#body;
    const tokens = this.#take(index, content, true);
    const ids = tokens.map(({ token }) => token); // in a stream: only the tokens without text
    const shape = {
      ...{ index, content, tokens: isStreamed || wantsTokens ? ids : [] },
      ...{ id_slot: -1, stop: true, model: this.#model },
      tokens_predicted: found.usage.completionTokens,
      tokens_evaluated: found.usage.promptTokens,
      generation_settings: this.#settings,
      prompt: this.prompts[index],
      has_new_line: content.includes('\n') || this.#linesBroken.has(index),
      ...{ truncated: isTruncated(found, this.#body), ...stopOf(found) },
      ...{
        tokens_cached: found.usage.cachedTokens,
        timings: nativeTimings(found.usage, found.timings),
      },
      ...(isStreamed && tokens.length === 0 ? {} : this.#detailsOf(tokens)),
    };
    return picked(shape, names);
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
 * @returns {Promise<[token: number, bias: number][]>} the form in which llama.cpp's server shows
 * ignore_eos
 */
async function bannedEnds(engine) {
  const { tokenizer } = await engine.info();
  return (tokenizer?.ends ?? []).map((token) => [token, Number.NEGATIVE_INFINITY]);
}

/**
 * @param {Engine} engine
 * @param {any[]} prompts
 * @param {Record<string, any>} body that was checked
 * @param {import('./create_handler.js').Asked} asked
 */
async function complete(engine, prompts, body, asked) {
  const { signal, adapters, model } = asked;
  const options = optionsOf(body, asked);
  options.adapters = await adaptersOf(engine, body.lora, adapters);
  options.seed = body.seed ?? undefined;
  if (body.n_probs) options.logprobs = body.n_probs;
  options.logitBias = await biasesOf(engine, body.logit_bias, signal);
  const given = await Promise.all(prompts.map((one) => tokensOf(engine, one, signal)));
  const shown = await Promise.all(
    given.map((tokens) => engine.detokenize(tokens, { special: true, signal })),
  );
  const biases = [...(options.logitBias ?? [])];
  if (body.ignore_eos) biases.push(...(await bannedEnds(engine)));
  const choices = given.map((tokens, index) => {
    const prompt = tokens.length > 0 ? tokens : prompts[index]; // the engine rejects an empty prompt
    return choiceOf(engine, prompt, options);
  });
  const completion = new NativeCompletion(choices, shown, body, { model, biases });
  if (body.stream) return { ...chunksFrom(choices, chunksOf(completion)), isBare: true };
  const answers = await collect(choices, (text, index) => completion.endOf(index, text));
  return answers.length === 1 ? answers[0] : answers;
}

/** @type {TextRoute} */
export const nativeCompletion = {
  fields: withAliases({ ...ofBoth, ...fieldsOf('native_completion') }),
  async answer(engine, body, asked) {
    checkTogether(body, 'prompt');
    return complete(engine, promptsOf(body.prompt), body, asked);
  },
};

/** @type {TextRoute} */
export const infill = {
  fields: withAliases({ ...ofBoth, ...fieldsOf('infill'), input_extra: extra }),
  answer: async (engine, body, asked) =>
    complete(engine, [await infillPrompt(engine, body, asked.signal)], body, asked),
};
