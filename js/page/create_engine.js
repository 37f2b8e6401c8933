// js/page/create_engine.js — createEngine: chooses the modules and the number of threads, starts the worker and
// waits for the model. The calling thread does no computation.

import { onAbort } from '../base/abort_signals.js';
import { abortError, throwIfAborted, WickError } from '../base/errors.js';
import { defaultThreads, hasSharedMemory, mostThreads } from '../base/host_features.js';
import { EngineConnection } from '../connection/engine_connection.js';
import { SpareThread } from '../connection/start_worker.js';
import { isThreaded } from '../wasm/wasm_module.js';
import { keptSource, mmprojSource, namedSource } from './caching_source.js';
import { Engine } from './engine.js';
import { findModules, isAddress } from './engine_modules.js';
import { checkEngineNames, checkThreads, configOf, sharedNameOf } from './engine_options.js';
import { infoOf } from './engine_reports.js';
import { loadTabs } from './later.js';
import { draftOf, sourceOf } from './model_options.js';
import { checkCallback } from './option_checks.js';

/** @import { EngineOptions } from '../index.js' */
/** @import { ModelLocation } from './model_options.js' */

/** Locates the model and its mmproj file. @typedef {() => Promise<{model: ModelLocation, mmproj: ModelLocation | undefined}>} Locate */

/** @type {{total: undefined, bytesPerSecond: undefined, secondsLeft: undefined}} */
const unknownProgress = { total: undefined, bytesPerSecond: undefined, secondsLeft: undefined };

/** @param {EngineOptions} options @returns {number} */
function chooseThreads({ threads, worker, wasm }) {
  if (threads !== undefined) checkThreads(threads);
  const isOneWorker = worker && typeof worker === 'object' && 'postMessage' in worker;
  if (threads === 1 || isOneWorker || !hasSharedMemory()) return 1;
  if (wasm instanceof WebAssembly.Module && !isThreaded(wasm)) return 1;
  return threads === undefined ? defaultThreads() : limitThreads(threads);
}

/** @param {number} threads @returns {number} */
function limitThreads(threads) {
  const most = mostThreads();
  if (threads <= most) return threads;
  console.warn(
    `wick-llm: ${threads} threads are too many for this machine's processors; using ${most}`,
  );
  return most;
}

/**
 * @param {EngineOptions} options
 * @returns {Promise<Engine>}
 */
export async function createEngine(options) {
  checkEngineNames(options);
  const { signal } = options;
  checkCallback('onLead', options.onLead);
  throwIfAborted(signal);
  const wanted = chooseThreads(options);
  const config = configOf(options, wanted);
  const from = options.model === undefined ? sourceOf(options) : namedSource(options);
  const mmproj = (options.mmproj ?? undefined) === undefined ? undefined : mmprojSource(options);
  const shared = sharedNameOf(options, config, from.description);
  /** @type {(error: unknown) => void} */
  let giveUp = () => {};
  const aborted = new Promise((_, fail) => {
    giveUp = fail;
  });
  /** @type {import('../index.js').Progress} */
  let last = { loaded: 0, phase: 'loading', ...unknownProgress };
  const connection = new EngineConnection((progress) => {
    last = progress;
    try {
      if (!signal?.aborted) options.onProgress?.(progress);
    } catch (error) {
      giveUp(error);
    }
  });
  const stop = onAbort(signal, () => giveUp(abortError(signal?.reason)));
  try {
    const onRetry = (/** @type {number} */ _, /** @type {number} */ waitMs) =>
      connection.report({ ...last, phase: 'retrying', retrySeconds: waitMs / 1000 });
    const onWaiting = () => connection.report({ ...last, phase: 'waiting' });
    const reports = { onRetry, onWaiting };
    /** @type {Locate} */
    const locate = async () => ({
      model: await keptSource(options, from, reports),
      mmproj: mmproj && (await keptSource(options, mmproj, reports)),
    });
    /** @param {EngineConnection} own @param {SpareThread} [spare] */
    const start = (own, spare) => startEngine(own, options, config, locate, spare);
    connection.decoders = { decodeImage: options.decodeImage };
    const load = async () => {
      if (shared === undefined) return start(connection);
      // the worker starts while the tabs agree; a follower may lead later
      if (options.wasm === undefined) findModules(options, wanted).catch(() => {});
      const spare = startSpare(options.worker);
      try {
        const { join, TabThread } = await loadTabs();
        const member = await join(shared);
        if (connection.isEnded) member?.end.abort(); // the caller has aborted in the meantime
        connection.check();
        if (!member) return await start(connection, spare);
        return await connection.share(
          (onMessage) => {
            const lead = (/** @type {EngineConnection} */ own) => start(own, spare);
            return new TabThread(shared, member, lead, onMessage, EngineConnection);
          },
          // its errors are reported to the page, not to a call
          ({ sharing }) => sharing === 'leader' && queueMicrotask(() => options.onLead?.()),
        );
      } finally {
        spare?.drop();
      }
    };
    return new Engine(connection, infoOf(await Promise.race([load(), aborted])));
  } catch (error) {
    const closing = connection.close();
    if (!signal?.aborted) await closing;
    throw error;
  } finally {
    stop();
  }
}

/**
 * @param {EngineOptions['worker']} worker
 * @returns {SpareThread | undefined} undefined if the caller has made the worker, or it cannot be
 * started, which is reported once it is needed
 */
function startSpare(worker) {
  if (worker && !isAddress(worker) && typeof worker !== 'function') return undefined;
  try {
    return new SpareThread(worker);
  } catch {
    return undefined;
  }
}

/**
 * @param {EngineConnection} connection
 * @param {EngineOptions} options
 * @param {import('../wasm/engine_records.js').NativeConfig} config
 * @param {Locate} locate
 * @param {SpareThread} [spare]
 * @returns {Promise<object>}
 */
async function startEngine(connection, options, config, locate, spare) {
  connection.startWorker(options.worker, spare);
  const found = locate();
  found.catch(() => {}); // loadEngine throws this error
  try {
    return await loadEngine(connection, options, config, found);
  } catch (error) {
    const code = error instanceof WickError ? error.code : '';
    if (code !== 'NO_SHARED_MEMORY') {
      if (damageCodes.includes(code)) await invalidate((await found).model, code, options);
      throw error;
    }
    // some phones cannot reserve the memory that helpers need
    return loadEngine(connection, options, { ...config, threads: 1 }, found);
  }
}

/** The engine's errors for a file that is not the expected model. */
const damageCodes = ['TRUNCATED', 'FORMAT', 'CORRUPT', 'NOT_GGUF'];

/**
 * Marks damaged chunks, which the next call downloads again. The error may also be about a draft or
 * an mmproj file.
 * @param {ModelLocation} from
 * @param {string} code
 * @param {EngineOptions} options
 */
async function invalidate(from, code, { draft, mmproj }) {
  try {
    await from.invalidate?.(code, !draft && !mmproj);
  } catch (error) {
    console.warn(`wick-llm: the cached model could not be removed: ${error}`);
  }
}

/**
 * @param {EngineConnection} connection
 * @param {EngineOptions} options
 * @param {import('../wasm/engine_records.js').NativeConfig} config
 * @param {ReturnType<Locate>} found
 * @returns {Promise<object>}
 */
async function loadEngine(connection, options, config, found) {
  const { module, grammar, extras, media, wide } = await findModules(options, config.threads);
  const { model, mmproj } = await found;
  connection.check();
  const threads = isThreaded(module) ? config.threads : 1;
  const message = {
    type: /** @type {const} */ ('init'),
    module,
    grammar,
    extras,
    wide,
    config: { ...config, threads },
    source: model.description,
    draft: options.draft && draftOf(options.draft),
    ...(mmproj && { media, mmproj: mmproj.description }),
    chatTemplate: options.chatTemplate,
    isEager: options.eager === true,
  };
  return connection.init(message, await model.source?.(), await mmproj?.source?.());
}
