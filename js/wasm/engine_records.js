// js/wasm/engine_records.js — an engine's configuration and a request, written into the records that
// web/exports.c takes.

import { biasFields, configFields, KV_F16, KV_F32, KV_Q4, KV_Q8, requestFields } from './layout.js';

/** @typedef {import('./heap.js').Passed} Passed */

const kvTypes = { f32: KV_F32, f16: KV_F16, q8: KV_Q8, q4: KV_Q4 };
/** @typedef {keyof typeof kvTypes} KvType */

/**
 * @typedef {object} NativeConfig
 * @property {number} threads with the engine's own
 * @property {number} contextSize tokens, 0: the default
 * @property {number} batchSize tokens of a prefill step, 0: the default
 * @property {KvType} kType
 * @property {KvType} vType
 * @property {number} [kvTokens] that all requests, sessions and the prefix cache may hold, 0: the
 *   default
 * @property {number} [queueLimit] of requests that run and wait: the worker's
 * @property {boolean} [noPrefixCache]
 * @property {number} [swap] pages of requests that give way are kept in a file: 0 never, 1 where that
 *   pays, 2 always
 * @property {string} [swapFolder] of that file
 * @property {number} memoryLimit bytes, 0: none
 * @property {boolean} directoryOnly
 * @property {boolean} [metrics] whether ops are timed
 * @property {number} [timerGrainUs] how fine the clock is
 * @property {boolean} [chooseThreads] use as many threads as prove fastest, not always all
 */

/**
 * What is asked of the engine, every setting given.
 * @typedef {object} NativeRequest
 * @property {string | ArrayLike<number>} prompt
 * @property {number} tokenizeFlags
 * @property {number} maxTokens 0: until the context is full
 * @property {number} temperature
 * @property {number} topK
 * @property {number} topP
 * @property {number} minP
 * @property {number} repeatPenalty
 * @property {number} frequencyPenalty
 * @property {number} presencePenalty
 * @property {number} penaltyLast
 * @property {bigint} seed
 * @property {[token: number, bias: number][]} logitBias
 * @property {boolean} logprob each token's own is wanted
 * @property {number} logprobs alternatives of each token
 * @property {string[]} stop
 * @property {boolean} ignoreEnd
 * @property {boolean} printSpecial
 * @property {number} [session] that the text goes on from and stays in
 * @property {boolean} [prefillOnly] nothing is sampled
 * @property {[first: number, last: number] | undefined} [drop] from its session, which is read first
 * @property {number} priority higher ones go first
 * @property {boolean | 'always'} speculation whether what may follow is proposed and checked
 * @property {string} [salt] of its tenant, '' or left out: of those without one
 * @property {number[]} [forced] what comes out, whatever the logits say
 * @property {number} [completions] of the prompt, which is read once
 */

/** @param {NativeConfig} config @param {Passed} passed @returns {number} the address of a web_config */
export function passConfig(config, passed) {
  return passed.record(configFields, {
    memoryBytesMaxLow: config.memoryLimit,
    memoryBytesMaxHigh: config.memoryLimit / 2 ** 32,
    threads: config.threads,
    contextTokens: config.contextSize,
    batchTokens: config.batchSize,
    kType: kvTypes[config.kType],
    vType: kvTypes[config.vType],
    directoryOnly: Number(config.directoryOnly),
    metrics: Number(config.metrics ?? false),
    timerGrainUs: config.timerGrainUs ?? 0,
    chooseThreads: Number(config.chooseThreads ?? false),
    kvTokensMax: config.kvTokens ?? 0,
    noPrefixCache: Number(config.noPrefixCache ?? false),
    swap: config.swap ?? 0,
  });
}

/** @param {NativeRequest} request @param {Passed} passed @returns {number} the address of a web_request */
export function passRequest(request, passed) {
  const isText = typeof request.prompt === 'string';
  const text = passText(isText ? String(request.prompt) : '', passed);
  const tokens = isText ? [] : /** @type {ArrayLike<number>} */ (request.prompt);
  const salt = passText(request.salt, passed);
  const stops = request.stop.map((stop) => passed.text(stop));
  const bias = request.logitBias.map(([token, value]) => ({ token, bias: value }));
  const [dropFirst, dropLast] = request.drop ?? [0, 0];
  return passed.record(requestFields, {
    text: text.address,
    textBytes: text.sizeBytes,
    tokens: passInts(tokens, passed),
    tokenCount: tokens.length,
    tokenizeFlags: request.tokenizeFlags,
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    topK: request.topK,
    topP: request.topP,
    minP: request.minP,
    repeatPenalty: request.repeatPenalty,
    frequencyPenalty: request.frequencyPenalty,
    presencePenalty: request.presencePenalty,
    penaltyLast: request.penaltyLast,
    seedLow: Number(request.seed & 0xffffffffn),
    seedHigh: Number((request.seed >> 32n) & 0xffffffffn),
    bias: bias.length > 0 ? passed.records(biasFields, bias) : 0,
    biasCount: bias.length,
    logprob: Number(request.logprob),
    logprobs: request.logprobs,
    stops: passInts(
      stops.map(({ address }) => address),
      passed,
    ),
    stopBytes: passInts(
      stops.map(({ sizeBytes }) => sizeBytes),
      passed,
    ),
    stopCount: stops.length,
    ignoreEnd: Number(request.ignoreEnd),
    printSpecial: Number(request.printSpecial),
    session: request.session ?? 0,
    prefillOnly: Number(request.prefillOnly ?? false),
    dropFirst,
    dropLast,
    priority: request.priority,
    completions: request.completions ?? 1,
    speculation: request.speculation === 'always' ? 2 : Number(!request.speculation),
    forced: passInts(request.forced ?? [], passed),
    forcedCount: request.forced?.length ?? 0,
    salt: salt.address,
    saltBytes: salt.sizeBytes,
  });
}

const nothing = { address: 0, sizeBytes: 0 };

/** @param {string | undefined} text @param {Passed} passed */
const passText = (text, passed) => (text ? passed.text(text) : nothing);

/** @param {ArrayLike<number>} ints @param {Passed} passed @returns {number} 0 where there are none */
const passInts = (ints, passed) => (ints.length > 0 ? passed.ints(ints) : 0);
