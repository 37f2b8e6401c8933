// js/wasm/engine_records.js — writes an engine's configuration and requests into the records that
// web/exports.c reads.

import { engineFlags, engineNumbers, requestFlags, samplingNumbers } from '../base/option_table.js';
import * as layout from './layout.js';

/** @import { AdapterTable } from './adapter_table.js' */
/** @import { Passed } from './heap.js' */

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

/**
 * @template {string} List
 * @param {List} list the names of the record's fields (layout.js)
 * @param {{[Name in import('./heap.js').NamesOf<List>]?: unknown}} values numbers and booleans, or lists of numbers; fields
 *   with other values are 0
 * @returns {number[]} the words of the record
 */
export function wordsOf(list, values) {
  return list.split(' ').flatMap((field) => {
    const [name, count = 1] = field.split(':');
    const value = /** @type {any} */ (values)[name];
    const isSingle = typeof value === 'number' || typeof value === 'boolean';
    const words = Array.isArray(value) ? value : [isSingle ? Number(value) : 0];
    return Array.from({ length: Number(count) }, (_, index) => words[index] ?? 0);
  });
}

/** @param {NativeConfig} config @param {Passed} passed @returns {number[]} a web_config */
export function configWords(config, passed) {
  const { memoryLimit, preTokenizer } = config;
  const numbers = Object.entries(engineNumbers).map(([name, { byDefault }]) =>
    Number(config[/** @type {keyof TableConfig} */ (name)] ?? byDefault),
  );
  const flags = Object.entries(engineFlags).map(([name, opposite]) =>
    Number(config[/** @type {keyof TableConfig} */ (opposite || name)] ?? false),
  );
  return wordsOf(layout.CONFIG, {
    ...config,
    memoryBytesMaxLow: [memoryLimit % 2 ** 32, Math.floor(memoryLimit / 2 ** 32)],
    contextTokens: [...numbers, ...flags],
    kType: kvTypes[config.kType],
    vType: kvTypes[config.vType],
    tables: tablePlaces[config.tables ?? 'inside'],
    preTokenizer: preTokenizer && passed.text(preTokenizer),
  });
}

/**
 * @param {NativeRequest} request
 * @param {Passed} passed allocates the arrays and strings that the record points to
 * @param {AdapterTable} adapters
 * @returns {number[]} a web_request
 */
export function requestWords(request, passed, adapters) {
  const { stop, forced, grammar, thinkingBudgetTokens = -1, adapters: uses } = request;
  return wordsOf(layout.REQUEST, {
    ...request,
    ...passPrompt(request, passed),
    sampling: passSampling(request, passed),
    stops: stop.length > 0 && passTexts(stop, passed),
    flags: flags.reduce((bits, name, bit) => bits | (Number(request[name] ?? false) << bit), 0),
    dropFirst: request.drop,
    completions: request.completions ?? 1,
    speculation: request.speculation === 'always' ? 2 : !request.speculation,
    forced: forced?.length && [passed.ints(forced), forced.length],
    ...(thinkingBudgetTokens >= 0 && {
      limitsReasoning: true,
      reasoningTokens: thinkingBudgetTokens,
      reasoningEnding: passed.text(request.reasoningEnding),
    }),
    ...(request.conversation && passConversation(request.conversation, grammar, passed)),
    adapters: uses?.length && [adapters.pass(uses, passed), uses.length],
    grammarKind: grammar?.kind,
    grammar: grammar && passed.text(grammar.text),
    grammarBegun: grammar && passed.text(grammar.begun),
  });
}

/** @param {NativeChat} chat @param {Passed} passed @returns {number} the address of a web_chat */
export function passChat(chat, passed) {
  const [json, prefix] = [chat.json, chat.prefix].map((text) => passed.text(text));
  return passed.record(wordsOf(layout.CHAT, { ...chat, json, prefix }), layout.CHAT_KINDS);
}

/** @param {NativeConversation} conversation @param {NativeRequest['grammar']} grammar @param {Passed} passed @returns {object} fields of a web_request */
const passConversation = ({ toolChoice, oneCall, ...chat }, grammar, passed) => ({
  chat: passChat(chat, passed),
  // the template may have variables named tools and tool_choice
  toolChoice: passed.text(toolChoice ?? '"none"'),
  oneCall,
  isGrammarWhole: grammar?.isWhole,
});

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
 * @returns {number[]} a web_embed
 */
export function embedWords(request, passed, adapters) {
  const { texts, pooling, dimensions, normalize, truncate, adapters: uses } = request;
  const items = texts.flatMap((text) => passEmbedded(text, passed));
  return wordsOf(layout.EMBED, {
    texts: [passed.record(items, layout.EMBED_TEXT_KINDS), texts.length],
    pooling: poolings.indexOf(pooling),
    dimensions,
    normalizes: normalize,
    truncates: truncate,
    adapters: uses?.length && [adapters.pass(uses, passed), uses.length],
  });
}

/** @param {NativeEmbed['texts'][number]} text @param {Passed} passed @returns {number[]} a wick_embed_text */
function passEmbedded(text, passed) {
  if (typeof text !== 'string' && typeof text[0] === 'number') {
    const ids = passed.ints(/** @type {number[]} */ (text));
    return wordsOf(layout.EMBED_TEXT, { tokens: [ids, text.length] });
  }
  const [first, second] = /** @type {string[]} */ (typeof text === 'string' ? [text] : text);
  return wordsOf(layout.EMBED_TEXT, {
    text: passed.text(first),
    document: second !== undefined && passed.text(second),
  });
}

/** @param {NativeRequest} request @param {Passed} passed @returns {object} fields of a web_request */
const passPrompt = ({ prompt, salt }, passed) => ({
  ...(typeof prompt === 'string' && { text: passed.text(prompt) }),
  ...(typeof prompt !== 'string' &&
    prompt.length > 0 && { tokens: [passed.ints(prompt), prompt.length] }),
  salt: salt && passed.text(salt),
});

/** @param {NativeRequest} request @param {Passed} passed @returns {number} the address of a wick_sampling */
function passSampling(request, passed) {
  const { seed, samplers, drySequenceBreakers: breakers, logitBias } = request;
  const words = wordsOf(layout.SAMPLING, {
    seed: [seed & 0xffffffffn, (seed >> 32n) & 0xffffffffn].map(Number),
    temperature: numbers.map(([name, { byDefault }]) => request[name] ?? byDefault), // -1 becomes WICK_LAST_CONTEXT
    logprob: request.logprob,
    logprobs: request.logprobs,
    samplers: samplers !== undefined && passed.text(samplers)[0],
    drySequenceBreakers: breakers && passTexts(breakers, passed),
    bias: logitBias.length > 0 && [
      passed.record(logitBias.flat(), layout.BIAS_KINDS),
      logitBias.length,
    ],
  });
  return passed.record(words, layout.SAMPLING_KINDS);
}

/** @param {string[]} list @param {Passed} passed @returns {number[]} the addresses of two arrays, of texts and of their sizes, and their length */
function passTexts(list, passed) {
  const texts = list.map((one) => passed.text(one));
  const [addresses, sizes] = [0, 1].map((at) =>
    passed.record(
      texts.map((text) => text[at]),
      'a',
    ),
  );
  return [addresses, sizes, list.length];
}
