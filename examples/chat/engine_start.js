// examples/chat/engine_start.js — starts the engine with the built-in model on a first visit, as soon as the package's code has
// arrived. The page's other modules are evaluated in the meantime, and loader.js takes the engine over.

import { createEngine } from 'wick-llm';
import { BUILT_IN_URL, LAST_MODEL, SETTINGS, SHARED } from './built_in.js';
import { readJson, readValue } from './local_storage.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').EngineOptions} EngineOptions */

/** Values that are passed between this file and first_paint.js. @type {{firstWorker?: Worker, isEngineStarted?: boolean}} */
const handed = /** @type {any} */ (globalThis);

/** Returns whether no other model can have been requested. */
export const isFirstVisit = () => readValue(LAST_MODEL) === undefined && location.search === '';

/**
 * Starts a worker of the engine. The first one has been started already.
 * @returns {Worker}
 */
function startWorker() {
  const { firstWorker } = handed;
  delete handed.firstWorker;
  return firstWorker ?? new Worker('wick-llm/worker.js', { type: 'module' });
}

/** Returns the option for the worker that has been started, if an engine can use it. */
export const workerOption = () => (handed.firstWorker ? { worker: startWorker } : {});

/** @returns {{making: Promise<Engine>, control: AbortController, onProgress: NonNullable<EngineOptions['onProgress']>}} */
function start() {
  const control = new AbortController();
  /** @type {{control: AbortController, onProgress: NonNullable<EngineOptions['onProgress']>}} */
  const begun = { control, onProgress: () => {} };
  const making = createEngine({
    ...{ url: BUILT_IN_URL, cache: false, shared: SHARED, signal: control.signal },
    ...workerOption(),
    onProgress: (progress) => begun.onProgress(progress),
  });
  making.catch(() => {}); // the loader reports the error
  return Object.assign(begun, { making });
}

handed.isEngineStarted = true;
const { threads, context } = readJson(SETTINGS) ?? {};
let begun = isFirstVisit() && !threads && !context ? start() : undefined;

/**
 * @param {EngineOptions} options of the engine that is needed now
 * @returns {Promise<Engine> | undefined} the engine, if it was started with these options and has not been taken yet
 */
export function takeStarted({ url, threads: wanted, signal, onProgress }) {
  const taken = begun;
  if (!taken || url !== BUILT_IN_URL || wanted) return undefined;
  begun = undefined;
  if (onProgress) taken.onProgress = onProgress;
  const abort = () => taken.control.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort, { once: true });
  return taken.making;
}
