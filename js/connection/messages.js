// js/connection/messages.js — the messages between the page and its workers, and checks for messages from channels that
// other scripts can write to.

import { COMPLETIONS_MAX } from '../base/option_table.js';

/** @import { PlainError } from '../base/errors.js' */
/** @import { SourceDescription } from '../bytes/model_sources.js' */
/** @import { NativeConfig, NativeRequest } from '../wasm/engine_records.js' */
/** A source that a worker reads without the page. @typedef {Exclude<SourceDescription, {kind: 'page'}>} OwnSource */
/** @typedef {import('../bytes/download_progress.js').Progress} Progress */
/**
 * A message of a conversation.
 * @typedef {{role: string, content?: string | {type: 'text', text: string}[] | null} &
 *   Record<string, unknown>} PlainMessage
 */

/**
 * The first message says whether a worker is the engine's or a helper. A helper receives no other message.
 * Each helper receives the memory from the engine's worker through a port. The page never has a
 * reference to the memory, so it is freed when the workers end.
 * @typedef {{type: 'helper', module: WebAssembly.Module, index: number,
 *   port: MessagePort}} HelperMessage
 *
 * `sent` counts the messages posted to the engine's worker, if memory can be shared.
 * `grammar`, `extras` and `media` are the other modules of the build, or their URLs. `wide` is the URL of the module with
 * 64-bit addresses, for models that need more than 4 GiB; '': the host does not support such memory; undefined: the caller
 * passed a module without a URL.
 * @typedef {{type: 'init', module: WebAssembly.Module, wide?: string | undefined, helpers: MessagePort[],
 *   grammar?: WebAssembly.Module | string | undefined, extras?: WebAssembly.Module | string | undefined,
 *   media?: WebAssembly.Module | string | undefined,
 *   config: NativeConfig, source: SourceDescription, draft: OwnSource | undefined,
 *   mmproj?: SourceDescription | undefined,
 *   isEager: boolean, sent: Int32Array | undefined,
 *   chatTemplate: string | undefined}} InitMessage
 */

/**
 * The input of a request: a prompt, or a conversation that the worker renders. `prefix` is the
 * beginning of the reply. `media` contains its images and recordings; `marker` is the text in their
 * place.
 * @typedef {{media?: import('../wasm/media_table.js').Medium[] | undefined, marker?: string | undefined}} InputMedia
 * @typedef {({prompt: string | number[]} | {messages: PlainMessage[],
 *   variables: Record<string, unknown>, parseSpecial?: boolean, tools?: object[] | undefined,
 *   toolChoice?: ToolChoice | undefined, prefix?: string | undefined}) & InputMedia} Input
 * @typedef {{tool_choice: 'auto' | 'none' | 'required' | object, parallel_tool_calls: boolean}} ToolChoice
 *
 * @typedef {import('../wasm/engine_records.js').Delta} Delta
 *
 * @typedef {Omit<NativeRequest, 'prompt' | 'tokenizeFlags' | 'passesWaited'>} Settings
 *
 * The completions of one prompt have consecutive ids, beginning with `id`.
 * @typedef {{type: 'generate', id: number, completions: number, input: Input, settings: Settings,
 *   wantsTokens: boolean}} GenerateMessage
 */

/**
 * Messages to the engine's worker. `ack` is the number of further pieces that the reader of a
 * request has read; `end` is the offset in the file where the returned bytes end.
 * @typedef {HelperMessage | InitMessage | GenerateMessage |
 *   {type: 'cancel', id: number} |
 *   {type: 'close'} |
 *   {type: 'ack', id: number, count: number} |
 *   {type: 'logits', id: number, logits: Float32Array} |
 *   {type: 'call', id: number, method: string, args: unknown[]} |
 *   {type: 'answer', id: number, value: unknown, end?: number} |
 *   {type: 'answer-error', id: number, error: PlainError}} ToWorker
 */

/** @typedef {import('../index.js').TokenDetail} TokenDetail */
/**
 * @typedef {{finish: 'stop' | 'length' | 'abort', stop?: string, promptTokens: number, cachedTokens: number,
 *   completionTokens: number, queueMs: number, prefillMs: number, decodeMs: number,
 *   ttftMs: number}} Done
 */

/**
 * The results of a step for one request. `texts` contains the new pieces. `tokens` has the details of each piece, if
 * they were requested. `deltas` has the kind of each piece of a reply to a conversation, unless all are content.
 * With `asked`, the request waits until its hook has returned the logits for the position after
 * these tokens.
 * @typedef {{logits: Float32Array, tokens: Int32Array}} Asked
 * @typedef {{id: number, texts: string[], tokens: TokenDetail[], deltas?: Delta[][] | undefined,
 *   asked?: Asked | undefined,
 *   prefill: {done: number, total: number} | undefined, done: Done | undefined,
 *   error: PlainError | undefined}} Output
 */

/**
 * Messages from the engine's worker. `ask` requests bytes of a stream that only the page can read.
 * `log` is text for the page's console, if the worker has none.
 * @typedef {{type: 'ready', info: object} |
 *   {type: 'failed', error: PlainError} |
 *   {type: 'closed'} |
 *   {type: 'crashed', message: string} |
 *   {type: 'log', text: string} |
 *   {type: 'progress', progress: Progress} |
 *   {type: 'step', outputs: Output[]} |
 *   {type: 'result', id: number, value: unknown} |
 *   {type: 'error', id: number, error: PlainError} |
 *   {type: 'ask', id: number, method: string, args: number[]}} FromWorker
 */

// ---- checks of messages from channels, which every script of the origin can write to ----

/** @param {any} value @returns {boolean} */
const isObject = (value) => typeof value === 'object' && value !== null;

/** @param {any} value @returns {boolean} */
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** @param {any} error @returns {boolean} */
const isPlainError = (error) =>
  isObject(error) && typeof error.code === 'string' && typeof error.message === 'string';

/** @param {any} progress undefined, or the progress of a prompt @returns {boolean} */
const isPrefill = (progress) =>
  progress === undefined ||
  (isObject(progress) && isCount(progress.done) && isCount(progress.total));

/** @param {any} call a piece of a call @returns {boolean} */
const isCall = (call) => isObject(call) && isCount(call.index) && isObject(call.function);

/** @param {any} delta @returns {boolean} */
const isDelta = ({ tool_calls: calls = [] }) => Array.isArray(calls) && calls.every(isCall);

/** @param {any} deltas of each piece @returns {boolean} */
const areDeltas = (deltas) =>
  Array.isArray(deltas) &&
  deltas.every((list) => Array.isArray(list) && list.every((one) => isObject(one) && isDelta(one)));

/** @param {any} output @returns {boolean} */
const isOutput = (output) =>
  isObject(output) &&
  isCount(output.id) &&
  Array.isArray(output.texts) &&
  output.texts.every((/** @type {any} */ text) => typeof text === 'string') &&
  Array.isArray(output.tokens) &&
  output.tokens.every(isObject) &&
  (output.deltas === undefined || areDeltas(output.deltas)) &&
  isPrefill(output.prefill) &&
  (output.done === undefined || isObject(output.done)) &&
  (output.error === undefined || isPlainError(output.error));

/** @type {Record<string, (message: any) => boolean>} */
const fromLeader = {
  ready: ({ info }) => isObject(info) && isObject(info.load),
  failed: ({ error }) => isPlainError(error),
  progress: ({ progress }) => isObject(progress),
  step: ({ outputs }) => Array.isArray(outputs) && outputs.every(isOutput),
  result: ({ id }) => isCount(id),
  error: ({ id, error }) => isCount(id) && isPlainError(error),
};

/** @type {Record<string, (message: any) => boolean>} */
const toLeader = {
  generate: ({ id, completions, input, settings }) =>
    isCount(id) &&
    isCount(completions) &&
    completions >= 1 &&
    completions <= COMPLETIONS_MAX &&
    isObject(input) &&
    isObject(settings),
  call: ({ id, method, args }) => isCount(id) && typeof method === 'string' && Array.isArray(args),
  ack: ({ id, count }) => isCount(id) && isCount(count),
  cancel: ({ id }) => isCount(id),
};

/** @param {any} message @param {Record<string, (message: any) => boolean>} kinds @returns {boolean} */
const isOneOf = (message, kinds) =>
  isObject(message) && Object.hasOwn(kinds, message.type) && kinds[message.type](message);

/** @param {unknown} message @returns {message is FromWorker} a message that a leader may send to its clients */
export const isFromLeader = (message) => isOneOf(message, fromLeader);

/** @param {unknown} message @returns {message is ToWorker} a message that a client may send to its leader */
export const isToLeader = (message) => isOneOf(message, toLeader);

/** @param {any} value @returns {boolean} whether the value may be a client's name */
export const isClientName = (value) => typeof value === 'string' && value !== '';
