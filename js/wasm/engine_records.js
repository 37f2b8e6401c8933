// js/wasm/engine_records.js — writes an engine's configuration and requests into the records that
// web/exports.c reads.

import { engineFlags, engineNumbers, requestFlags, samplingNumbers } from '../base/option_table.js';
import * as layout from './layout.js';

/** @typedef {import('./heap.js').Passed} Passed */

const flags = /** @type {(keyof typeof requestFlags)[]} */ (Object.keys(requestFlags));

const numbers =
  /** @type {[keyof typeof samplingNumbers, import('../base/option_table.js').NumberOption][]} */ (
    Object.entries(samplingNumbers)
  );

/** Where tables that are only used for row lookups are stored. */
export const tablePlaces = { auto: 0, inside: 1, outside: 2 };

export const kvTypes = {
  f32: layout.KV_F32,
  f16: layout.KV_F16,
  q8: layout.KV_Q8,
  q4: layout.KV_Q4,
};
/** @typedef {keyof typeof kvTypes} KvType */

/**
 * The options from the option table. Missing ones have their defaults.
 * @typedef {Partial<Record<keyof typeof engineNumbers, number>> &
 *   Partial<Record<'directoryOnly' | 'metrics' | 'noPrefixCache' | 'noPredictor', boolean>>} TableConfig
 */

/**
 * @typedef {object} OwnConfig
 * @property {number} threads including the engine's own
 * @property {KvType} kType
 * @property {KvType} vType
 * @property {number} [queueLimit] limit on running and waiting requests; the worker checks it
 * @property {boolean} [mediaLikeLlamaCpp]
 * @property {number} [swap] pages of preempted requests are written to a file: 0 never, 1 if that
 *   is faster, 2 always
 * @property {string} [swapFolder] the folder of that file
 * @property {number} memoryLimit bytes, 0: none
 * @property {string} [preTokenizer] replaces the file's pre-tokenizer
 * @property {keyof typeof tablePlaces} [tables] where tables that are only used for row lookups are stored; missing:
 * inside
 * @property {number} [timerGrainUs] resolution of the clock
 * @property {boolean} [chooseThreads] measure which number of threads is fastest, and use it
 * @typedef {OwnConfig & TableConfig} NativeConfig
 */

/**
 * A part of a reply as OpenAI streams it. `callsWhole`: a call was malformed, so only this many
 * calls before it count, and its text becomes content.
 * @typedef {{content?: string, reasoning_content?: string, tool_calls?: {index: number, id?: string,
 *   type?: 'function', function: {name?: string, arguments: string}}[], callsWhole?: number}} Delta
 */

/**
 * A request to the engine, with every setting.
 * @typedef {Partial<import('../base/sampler_fields.js').SamplingNumbers> &
 *   Partial<Record<keyof typeof requestFlags, boolean>> & FurtherSettings} NativeRequest
 */

/**
 * The settings that are not in SamplingNumbers.
 * @typedef {object} FurtherSettings
 * @property {string | ArrayLike<number>} prompt
 * @property {number} tokenizeFlags
 * @property {number} maxTokens 0: until the context is full
 * @property {bigint} seed
 * @property {[token: number, bias: number][]} logitBias
 * @property {boolean} logprob whether the logprob of each token is returned
 * @property {number} logprobs number of alternatives for each token
 * @property {string} [samplers] their letters in order; missing: the default samplers
 * @property {string[]} [drySequenceBreakers] missing: the default ones
 * @property {string[]} stop
 * @property {boolean} [asksHost] whether the engine passes the logits to the host before each token
 * @property {number} [thinkingBudgetTokens] limit on the tokens of reasoning; -1 or missing: no
 * limit
 * @property {string} [reasoningEnding] the prompt's text, which may have opened the reasoning
 * @property {NativeConversation} [conversation] in place of a prompt; the prompt may contain its
 * tokens
 * @property {number} [session] the session that the request continues
 * @property {boolean} [prefillOnly] nothing is sampled
 * @property {[first: number, last: number] | undefined} [drop] tokens to drop from the session once
 * the whole prompt is processed
 * @property {number} priority higher priorities run first
 * @property {number} [passesWaited] passes that began after it arrived and before it was submitted
 * @property {boolean | 'always'} speculation whether to use speculative decoding
 * @property {string} [salt] prefixes are shared only between requests with the same salt; '' or missing: none
 * @property {number[]} [forced] these tokens are returned in place of sampled ones
 * @property {{kind: number, text: string, begun?: string | Uint8Array, isWhole?: boolean} | undefined} [grammar]
 *   wick_grammar; `begun`: the start of the constrained text, which the prompt already contains; `isWhole`: the
 *   grammar covers the whole reply to a conversation, including reasoning and calls
 * @property {number} [completions] number of completions; the prompt is processed once for all
 * @property {import('./adapter_table.js').AdapterUse[]} [adapters]
 */

/**
 * A conversation: the JSON that its template reads, the local time, the beginning of the reply, and OpenAI's tool_choice as
 * JSON if there are tools that may be called.
 * @typedef {{json: string, nowS: number, parseSpecial?: boolean, prefix?: string | undefined}} NativeChat
 * @typedef {NativeChat & {toolChoice?: string | undefined, oneCall?: boolean}} NativeConversation
 */

/** @typedef {import('./adapter_table.js').AdapterTable} AdapterTable */

/**
 * @param {Float64Array} words of a record
 * @param {number} field receives the text's address; the next field receives its size in bytes
 * @param {string | Uint8Array | undefined} text
 * @param {Passed} passed
 */
export function putText(words, field, text, passed) {
  const { address, sizeBytes } = passed.text(text ?? '');
  words[field] = address;
  words[field + 1] = sizeBytes;
}

/** @param {NativeConfig} config @param {Passed} passed @returns {Float64Array} a web_config */
export function configWords(config, passed) {
  const words = new Float64Array(layout.CONFIG_FIELDS);
  words[layout.CONFIG_MEMORY_BYTES_MAX_LOW] = config.memoryLimit % 2 ** 32;
  words[layout.CONFIG_MEMORY_BYTES_MAX_HIGH] = Math.floor(config.memoryLimit / 2 ** 32);
  const numbers = Object.entries(engineNumbers).map(([name, { byDefault }]) =>
    Number(config[/** @type {keyof TableConfig} */ (name)] ?? byDefault),
  );
  const flags = Object.entries(engineFlags).map(([name, opposite]) =>
    Number(config[/** @type {keyof TableConfig} */ (opposite || name)] ?? false),
  );
  words.set([...numbers, ...flags], layout.CONFIG_CONTEXT_TOKENS);
  words[layout.CONFIG_THREADS] = config.threads;
  words[layout.CONFIG_K_TYPE] = kvTypes[config.kType];
  words[layout.CONFIG_V_TYPE] = kvTypes[config.vType];
  words[layout.CONFIG_TIMER_GRAIN_US] = config.timerGrainUs ?? 0;
  words[layout.CONFIG_CHOOSE_THREADS] = Number(config.chooseThreads ?? false);
  words[layout.CONFIG_SWAP] = config.swap ?? 0;
  words[layout.CONFIG_MEDIA_LIKE_LLAMA_CPP] = Number(config.mediaLikeLlamaCpp ?? false);
  words[layout.CONFIG_TABLES] = tablePlaces[config.tables ?? 'inside'];
  if (config.preTokenizer) {
    putText(words, layout.CONFIG_PRE_TOKENIZER, config.preTokenizer, passed);
  }
  return words;
}

/**
 * @param {NativeRequest} request
 * @param {Passed} passed allocates the arrays and strings that the record points to
 * @param {AdapterTable} adapters
 * @returns {Float64Array} a web_request
 */
export function requestWords(request, passed, adapters) {
  const words = new Float64Array(layout.REQUEST_FIELDS);
  passPrompt(words, request, passed);
  words[layout.REQUEST_SAMPLING] = passSampling(request, passed);
  passStops(words, request, passed);
  const { forced, drop, grammar, thinkingBudgetTokens = -1 } = request;
  words[layout.REQUEST_MAX_TOKENS] = request.maxTokens;
  words[layout.REQUEST_FLAGS] = flags.reduce(
    (bits, name, bit) => bits | (Number(request[name] ?? false) << bit),
    0,
  );
  words[layout.REQUEST_ASKS_HOST] = Number(request.asksHost ?? false);
  words[layout.REQUEST_SESSION] = request.session ?? 0;
  words[layout.REQUEST_PREFILL_ONLY] = Number(request.prefillOnly ?? false);
  words[layout.REQUEST_DROP_FIRST] = drop?.[0] ?? 0;
  words[layout.REQUEST_DROP_LAST] = drop?.[1] ?? 0;
  words[layout.REQUEST_PRIORITY] = request.priority;
  words[layout.REQUEST_PASSES_WAITED] = request.passesWaited ?? 0;
  words[layout.REQUEST_COMPLETIONS] = request.completions ?? 1;
  words[layout.REQUEST_SPECULATION] =
    request.speculation === 'always' ? 2 : Number(!request.speculation);
  if (forced?.length) {
    words[layout.REQUEST_FORCED] = passed.ints(forced);
    words[layout.REQUEST_FORCED_COUNT] = forced.length;
  }
  if (thinkingBudgetTokens >= 0) {
    words[layout.REQUEST_LIMITS_REASONING] = 1;
    words[layout.REQUEST_REASONING_TOKENS] = thinkingBudgetTokens;
    putText(words, layout.REQUEST_REASONING_ENDING, request.reasoningEnding, passed);
  }
  if (request.conversation) passConversation(words, request, passed);
  if (request.adapters?.length) {
    words[layout.REQUEST_ADAPTERS] = adapters.pass(request.adapters, passed);
    words[layout.REQUEST_ADAPTER_COUNT] = request.adapters.length;
  }
  if (grammar) {
    words[layout.REQUEST_GRAMMAR_KIND] = grammar.kind;
    putText(words, layout.REQUEST_GRAMMAR, grammar.text, passed);
    putText(words, layout.REQUEST_GRAMMAR_BEGUN, grammar.begun, passed);
  }
  return words;
}

/** @param {NativeChat} chat @param {Passed} passed @returns {number} the address of a web_chat */
export function passChat({ json, nowS, parseSpecial, prefix }, passed) {
  const words = new Float64Array(layout.CHAT_FIELDS);
  putText(words, layout.CHAT_JSON, json, passed);
  putText(words, layout.CHAT_PREFIX, prefix, passed);
  words[layout.CHAT_NOW_S] = nowS;
  words[layout.CHAT_PARSE_SPECIAL] = Number(parseSpecial ?? false);
  return passed.record(words, layout.CHAT_KINDS);
}

/** @param {Float64Array} words @param {NativeRequest} request @param {Passed} passed */
function passConversation(words, { conversation, grammar }, passed) {
  const { toolChoice, oneCall, ...chat } = /** @type {NativeConversation} */ (conversation);
  words[layout.REQUEST_CHAT] = passChat(chat, passed);
  // the template may have variables named tools and tool_choice
  putText(words, layout.REQUEST_TOOL_CHOICE, toolChoice ?? '"none"', passed);
  words[layout.REQUEST_ONE_CALL] = Number(oneCall ?? false);
  words[layout.REQUEST_IS_GRAMMAR_WHOLE] = Number(grammar?.isWhole ?? false);
}

/** The names of the pooling types, in the order of wick_pooling. */
export const poolings = /** @type {const} */ (['model', 'none', 'mean', 'cls', 'last', 'rank']);

/**
 * Texts to convert to vectors or scores. A pair is a query and a document.
 * @typedef {object} NativeEmbed
 * @property {(string | number[] | [query: string, document: string])[]} texts
 * @property {(typeof poolings)[number]} pooling
 * @property {number} dimensions 0: all
 * @property {boolean} normalize
 * @property {boolean} truncate
 * @property {import('./adapter_table.js').AdapterUse[]} [adapters]
 */

/**
 * @param {NativeEmbed} request
 * @param {Passed} passed
 * @param {AdapterTable} adapters
 * @returns {Float64Array} a web_embed
 */
export function embedWords(request, passed, adapters) {
  const { texts, pooling, dimensions, normalize, truncate } = request;
  const items = new Float64Array(texts.length * layout.EMBED_TEXT_FIELDS);
  for (const [index, text] of texts.entries()) {
    passEmbedded(items.subarray(index * layout.EMBED_TEXT_FIELDS), text, passed);
  }
  const words = new Float64Array(layout.EMBED_FIELDS);
  words[layout.EMBED_TEXTS] = passed.record(items, layout.EMBED_TEXT_KINDS);
  words[layout.EMBED_TEXT_COUNT] = texts.length;
  words[layout.EMBED_POOLING] = poolings.indexOf(pooling);
  words[layout.EMBED_DIMENSIONS] = dimensions;
  words[layout.EMBED_NORMALIZES] = Number(normalize);
  words[layout.EMBED_TRUNCATES] = Number(truncate);
  if (request.adapters?.length) {
    words[layout.EMBED_ADAPTERS] = adapters.pass(request.adapters, passed);
    words[layout.EMBED_ADAPTER_COUNT] = request.adapters.length;
  }
  return words;
}

/** @param {Float64Array} item @param {NativeEmbed['texts'][number]} text @param {Passed} passed */
function passEmbedded(item, text, passed) {
  if (typeof text !== 'string' && typeof text[0] === 'number') {
    item[layout.EMBED_TEXT_TOKENS] = passed.ints(/** @type {number[]} */ (text));
    item[layout.EMBED_TEXT_TOKEN_COUNT] = text.length;
    return;
  }
  const [first, second] = /** @type {string[]} */ (typeof text === 'string' ? [text] : text);
  putText(item, layout.EMBED_TEXT_TEXT, first, passed);
  if (second !== undefined) putText(item, layout.EMBED_TEXT_DOCUMENT, second, passed);
}

/** @param {Float64Array} words @param {NativeRequest} request @param {Passed} passed */
function passPrompt(words, { prompt, tokenizeFlags, salt }, passed) {
  if (typeof prompt === 'string') {
    putText(words, layout.REQUEST_TEXT, prompt, passed);
  } else if (prompt.length > 0) {
    words[layout.REQUEST_TOKENS] = passed.ints(prompt);
    words[layout.REQUEST_TOKEN_COUNT] = prompt.length;
  }
  words[layout.REQUEST_TOKENIZE_FLAGS] = tokenizeFlags;
  if (salt) putText(words, layout.REQUEST_SALT, salt, passed);
}

/** @param {NativeRequest} request @param {Passed} passed @returns {number} the address of a wick_sampling */
function passSampling(request, passed) {
  const words = new Float64Array(layout.SAMPLING_FIELDS);
  for (const [index, [name, { byDefault }]] of numbers.entries()) {
    words[layout.SAMPLING_TEMPERATURE_FLOAT + index] = request[name] ?? byDefault; // -1 becomes WICK_LAST_CONTEXT
  }
  words[layout.SAMPLING_SEED] = Number(request.seed & 0xffffffffn);
  words[layout.SAMPLING_SEED + 1] = Number((request.seed >> 32n) & 0xffffffffn);
  words[layout.SAMPLING_LOGPROB] = Number(request.logprob);
  words[layout.SAMPLING_LOGPROBS] = request.logprobs;
  const { samplers, drySequenceBreakers: breakers, logitBias } = request;
  if (samplers !== undefined) words[layout.SAMPLING_SAMPLERS] = passed.text(samplers).address;
  if (breakers) {
    const { texts, sizes } = passTexts(breakers, passed);
    words[layout.SAMPLING_DRY_SEQUENCE_BREAKERS] = texts;
    words[layout.SAMPLING_DRY_BREAKER_BYTES] = sizes;
    words[layout.SAMPLING_DRY_BREAKER_COUNT] = breakers.length;
  }
  if (logitBias.length > 0) {
    words[layout.SAMPLING_BIAS] = passBias(logitBias, passed);
    words[layout.SAMPLING_BIAS_COUNT] = logitBias.length;
  }
  return passed.record(words, layout.SAMPLING_KINDS);
}

/** @param {NativeRequest['logitBias']} logitBias @param {Passed} passed @returns {number} the address of an array */
function passBias(logitBias, passed) {
  const pairs = new Float64Array(logitBias.length * layout.BIAS_FIELDS);
  for (const [index, [token, bias]] of logitBias.entries()) {
    pairs[index * layout.BIAS_FIELDS + layout.BIAS_TOKEN] = token;
    pairs[index * layout.BIAS_FIELDS + layout.BIAS_BIAS_FLOAT] = bias;
  }
  return passed.record(pairs, layout.BIAS_KINDS);
}

/** @param {string[]} list @param {Passed} passed @returns {{texts: number, sizes: number}} addresses of arrays */
function passTexts(list, passed) {
  const texts = list.map((one) => passed.text(one));
  return {
    texts: passed.record(
      texts.map(({ address }) => address),
      'a',
    ),
    sizes: passed.record(
      texts.map(({ sizeBytes }) => sizeBytes),
      'a',
    ),
  };
}

/** @param {Float64Array} words @param {NativeRequest} request @param {Passed} passed */
function passStops(words, { stop }, passed) {
  if (stop.length === 0) return;
  const { texts, sizes } = passTexts(stop, passed);
  words[layout.REQUEST_STOPS] = texts;
  words[layout.REQUEST_STOP_BYTES] = sizes;
  words[layout.REQUEST_STOP_COUNT] = stop.length;
}
