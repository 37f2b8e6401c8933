// js/connection/messages.js — the shapes of the messages between the page and its workers, and whether something
// that came from anywhere has one of them.

import { COMPLETIONS_MAX } from '../wasm/layout.js';

/** @typedef {import('../base/errors.js').PlainError} PlainError */
/** @typedef {import('../wasm/engine_records.js').NativeConfig} NativeConfig */
/** @typedef {import('../wasm/engine_records.js').NativeRequest} NativeRequest */
/** @typedef {import('../bytes/model_sources.js').SourceDescription} SourceDescription */
/** What a worker reads by itself. @typedef {Exclude<SourceDescription, {kind: 'page'}>} OwnSource */
/** @typedef {import('../bytes/download_progress.js').Progress} Progress */
/** A message of a conversation. @typedef {{role: string, content: string} & Record<string, unknown>} PlainMessage */

/**
 * The first message makes a worker what it is: a helper hears nothing after it.
 * Helpers ask the engine's worker for the memory through ports of their own: the page never has it, so
 * that it is gone with the workers.
 * @typedef {{type: 'helper', module: WebAssembly.Module, index: number,
 *   port: MessagePort}} HelperMessage
 *
 * @typedef {{type: 'init', module: WebAssembly.Module, helpers: MessagePort[],
 *   config: NativeConfig, source: SourceDescription, draft: OwnSource | undefined,
 *   isEager: boolean,
 *   chatTemplate: string | undefined}} InitMessage
 */

/**
 * What is generated from: a prompt, or a conversation that the worker renders.
 * @typedef {{prompt: string | number[]} | {messages: PlainMessage[],
 *   variables: Record<string, unknown>}} Input
 *
 * @typedef {Omit<NativeRequest, 'prompt' | 'tokenizeFlags' | 'passesWaited'>} Settings
 *
 * The completions of one prompt have the ids from `id` on.
 * @typedef {{type: 'generate', id: number, completions: number, input: Input, settings: Settings,
 *   wantsTokens: boolean}} GenerateMessage
 */

/**
 * To the engine's worker. `ack` says how many pieces of a request's text were taken by its reader.
 * @typedef {HelperMessage | InitMessage | GenerateMessage |
 *   {type: 'cancel', id: number} |
 *   {type: 'close'} |
 *   {type: 'ack', id: number, count: number} |
 *   {type: 'call', id: number, method: string, args: unknown[]} |
 *   {type: 'answer', id: number, value: unknown} |
 *   {type: 'answer-error', id: number, error: PlainError}} ToWorker
 */

/**
 * @typedef {{token: number, text: string, bytes: number[], logprob: number}} TokenLogprob
 * Without its own logprob, unless it was asked for.
 * @typedef {Omit<TokenLogprob, 'logprob'> & {logprob?: number, top: TokenLogprob[]}} TokenDetail
 *
 * @typedef {{finish: 'stop' | 'length' | 'abort', promptTokens: number, cachedTokens: number,
 *   completionTokens: number, queueMs: number, prefillMs: number, decodeMs: number,
 *   ttftMs: number}} Done
 */

/**
 * What one step of the engine brought a request: `texts` are the pieces that can be shown, `tokens`
 * (when asked for) as many details.
 * @typedef {{id: number, texts: string[], tokens: TokenDetail[],
 *   prefill: {done: number, total: number} | undefined, done: Done | undefined,
 *   error: PlainError | undefined}} Output
 */

/**
 * From the engine's worker. `ask` calls the page (bytes of a stream that only the page has), `log` is
 * for its console where the worker has none.
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

/** The package's: tabs of another one may know other messages. */
export const VERSION = '0.1.0';

// ---- what comes over a channel that every script of the origin can write to ----

/** @param {any} value @returns {boolean} */
const isObject = (value) => typeof value === 'object' && value !== null;

/** @param {any} value @returns {boolean} */
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** @param {any} error @returns {boolean} */
const isPlainError = (error) =>
  isObject(error) && typeof error.code === 'string' && typeof error.message === 'string';

/** @param {any} progress whether there is none, or one of a prompt @returns {boolean} */
const isPrefill = (progress) =>
  progress === undefined ||
  (isObject(progress) && isCount(progress.done) && isCount(progress.total));

/** @param {any} output @returns {boolean} */
const isOutput = (output) =>
  isObject(output) &&
  isCount(output.id) &&
  Array.isArray(output.texts) &&
  output.texts.every((/** @type {any} */ text) => typeof text === 'string') &&
  Array.isArray(output.tokens) &&
  output.tokens.every(isObject) &&
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

/** @param {unknown} message @returns {message is FromWorker} of those that a leader sends its clients */
export const isFromLeader = (message) => isOneOf(message, fromLeader);

/** @param {unknown} message @returns {message is ToWorker} of those that a client sends its leader */
export const isToLeader = (message) => isOneOf(message, toLeader);

/** @param {any} value @returns {boolean} whether it could be a client's name */
export const isClientName = (value) => typeof value === 'string' && value !== '';
