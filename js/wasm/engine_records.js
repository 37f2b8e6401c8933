// js/wasm/engine_records.js — the records that web/exports.c takes, field by field: an engine's configuration and a
// request.

/** @typedef {{u32: number} | {f32: number}} Field */

const kvTypes = { f32: 0, f16: 1, q8: 2, q4: 3 };
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

/**
 * The fields of web/exports.c's web_config.
 * @param {NativeConfig} config
 * @returns {Field[]}
 */
export function configFields(config) {
  const fields = [
    config.memoryLimit >>> 0,
    Math.floor(config.memoryLimit / 2 ** 32),
    config.threads,
    config.contextSize,
    config.batchSize,
    kvTypes[config.kType],
    kvTypes[config.vType],
    Number(config.directoryOnly),
    Number(config.metrics ?? false),
    config.timerGrainUs ?? 0,
    Number(config.chooseThreads ?? false),
    config.kvTokens ?? 0,
    Number(config.noPrefixCache ?? false),
    config.swap ?? 0,
  ];
  return fields.map((u32) => ({ u32 }));
}

/**
 * The fields of web/exports.c's web_request.
 * @param {NativeRequest} request
 * @param {import('./heap.js').Passed} passed
 * @returns {Field[]}
 */
export function requestFields(request, passed) {
  const isText = typeof request.prompt === 'string';
  const text = isText ? passed.text(String(request.prompt)) : { address: 0, sizeBytes: 0 };
  const tokens = isText ? [] : /** @type {ArrayLike<number>} */ (request.prompt);
  const forced = request.forced ?? [];
  const salt = request.salt ? passed.text(request.salt) : { address: 0, sizeBytes: 0 };
  const stops = request.stop.map((stop) => passed.text(stop));
  const bias = request.logitBias.flatMap(([token, value]) => [{ u32: token }, { f32: value }]);
  return [
    { u32: text.address },
    { u32: text.sizeBytes },
    { u32: tokens.length > 0 ? passed.ints(tokens) : 0 },
    { u32: tokens.length },
    { u32: request.tokenizeFlags },
    { u32: request.maxTokens },
    { f32: request.temperature },
    { u32: request.topK },
    { f32: request.topP },
    { f32: request.minP },
    { f32: request.repeatPenalty },
    { f32: request.frequencyPenalty },
    { f32: request.presencePenalty },
    { u32: request.penaltyLast },
    { u32: Number(request.seed & 0xffffffffn) },
    { u32: Number((request.seed >> 32n) & 0xffffffffn) },
    { u32: bias.length > 0 ? passed.record(bias) : 0 },
    { u32: request.logitBias.length },
    { u32: Number(request.logprob) },
    { u32: request.logprobs },
    { u32: stops.length > 0 ? passed.ints(stops.map(({ address }) => address)) : 0 },
    { u32: stops.length > 0 ? passed.ints(stops.map(({ sizeBytes }) => sizeBytes)) : 0 },
    { u32: stops.length },
    { u32: Number(request.ignoreEnd) },
    { u32: Number(request.printSpecial) },
    { u32: request.session ?? 0 },
    { u32: Number(request.prefillOnly ?? false) },
    ...(request.drop ?? [0, 0]).map((token) => ({ u32: token })),
    { u32: request.priority },
    { u32: request.completions ?? 1 },
    { u32: request.speculation === 'always' ? 2 : Number(!request.speculation) },
    { u32: forced.length > 0 ? passed.ints(forced) : 0 },
    { u32: forced.length },
    { u32: salt.address },
    { u32: salt.sizeBytes },
  ];
}
