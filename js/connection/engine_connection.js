// js/connection/engine_connection.js — the page's connection to the engine's workers: handles calls
// and their answers and the output of requests, and ends them if a worker crashes or the engine is
// closed.

import { onAbort } from '../base/abort_signals.js';
import {
  abortError,
  fromPlainError,
  throwIfAborted,
  toPlainError,
  WickError,
} from '../base/errors.js';
import { countPosts, startThread } from './start_worker.js';

/** @import { ByteStream, Source } from '../bytes/model_sources.js' */
/** @import { FromWorker, Output, ToWorker } from './messages.js' */

/**
 * The receiver of messages with one id.
 * @typedef {{onOutput?: (output: Output) => void, settle: (value: any) => void,
 *   fail: (error: unknown) => void}} Waiter
 */

/**
 * How long the worker may take to end its helpers and remove its swap file. After that all workers
 * are terminated.
 */
const CLOSE_MS_MAX = 5000;

/**
 * A worker with a 512 KB stack, as in Safari, cannot receive a message nested 1000 levels deep.
 * Templates accept 96 levels.
 */
const LEVELS_MAX = 200;

/**
 * If the model was loaded quickly, its helpers start this long after the engine is ready, because starting them slows the
 * first answer of a small model.
 */
export const HELPERS_MS = 100;

const ignore = () => {};

/**
 * @param {unknown} value
 * @param {number} levels the maximum number of levels
 * @returns {boolean} whether the value has more
 */
function isDeeper(value, levels) {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  if (Array.isArray(value) && typeof value[0] === 'number') return false; // tokens
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1));
}

export class EngineConnection {
  /** The engine's worker, then the helpers that were started. @type {import('./start_worker.js').Thread[]} */
  #threads = [];
  /** Functions that start the remaining helpers. @type {(() => void)[]} */
  #late = [];
  /** @type {() => import('./start_worker.js').Thread} */
  #startThread = () => {
    throw new WickError('INTERNAL', 'engine: has no workers');
  };
  /** @type {Map<number, Waiter>} */
  #waiters = new Map();
  #lastId = 0;
  /** The error of every later call. @type {WickError | undefined} */
  #end;
  /** Settles when the workers have ended. @type {Promise<void> | undefined} */
  #ending;
  /** @type {Waiter | undefined} */
  #start;
  /** @type {(() => void) | undefined} */
  #onClosed;
  #hasFile = false;
  /** Whether progress has been reported. */
  #isLoading = false;
  /** @type {((info: any) => void) | undefined} */
  #onReadyAgain;
  #onProgress;
  #onEnd;
  /** @type {PageSource | undefined} */
  #pageSource;
  /**
   * The caller's functions that decode media instead of the host.
   * @type {{decodeImage?: import('../index.js').DecodeImage | null | undefined} | undefined}
   */
  decoders;

  /**
   * @param {(progress: import('./messages.js').Progress) => void} onProgress
   * @param {(error: WickError) => void} [onEnd] receives the error that every later call throws
   */
  constructor(onProgress, onEnd) {
    this.#onProgress = onProgress;
    this.#onEnd = onEnd;
  }

  /**
   * Starts the engine's worker. Its helpers start when it is ready or has been loading for a while: with few cores,
   * they would slow down the start. The engine uses a helper as soon as it has started.
   * @param {import('./start_worker.js').WorkerOption} option
   * @param {import('./start_worker.js').SpareThread} [spare] the engine's worker, if it was started before
   */
  startWorker(option, spare) {
    const onMessage = (/** @type {FromWorker} */ message) => this.#receive(message);
    const onEnd = (/** @type {string} */ reason, /** @type {unknown} */ cause) =>
      this.#crash(reason, cause);
    this.#startThread = () => startThread(option, onMessage, onEnd);
    this.#threads.push(countPosts(spare?.take(onMessage, onEnd) ?? this.#startThread()));
    globalThis.addEventListener?.('pagehide', this.#leave);
  }

  /**
   * Safari before 18.2 never ends a worker that waits for memory, so each reload would leak the memory of a page.
   * A page that may be shown again (`persisted`) keeps its engine.
   * @param {{persisted?: boolean}} event
   */
  #leave = ({ persisted }) => {
    if (persisted) return;
    this.#late = [];
    if (this.#threads.length > 1) this.#threads[0].post({ type: 'close' });
  };

  /** @param {import('./messages.js').Progress} progress of reading bytes in the page */
  report(progress) {
    if (!this.#end && this.#start) this.#onProgress(progress);
  }

  /**
   * Starts helpers in a separate turn of the event loop, because that takes some milliseconds of
   * this thread.
   * @param {number} [waitMs] a Node process does not wait for the helpers
   */
  #startHelpersSoon(waitMs = 0) {
    if (this.#late.length === 0) return;
    const start = () => {
      for (const one of this.#late.splice(0)) one();
    };
    /** @type {any} */ (setTimeout(start, waitMs)).unref?.();
  }

  /** @param {Omit<import('./messages.js').HelperMessage, 'type'>} message */
  #startHelper(message) {
    try {
      const helper = this.#startThread();
      helper.keepAlive(false);
      this.#threads.push(helper);
      helper.post({ type: 'helper', ...message }, [message.port]);
    } catch (error) {
      this.#crash(`a helper could not be started: ${error}`, error);
    }
  }

  /**
   * Uses an engine that is shared between tabs, instead of its own workers.
   * @param {(onMessage: (message: FromWorker) => void) => import('./start_worker.js').Thread} take
   * @param {(info: any) => void} onReadyAgain is called when another tab's engine has replaced a lost one
   * @returns {Promise<object>} settles when the model is loaded, with the engine's information about it
   */
  share(take, onReadyAgain) {
    this.#onReadyAgain = onReadyAgain;
    return new Promise((settle, fail) => {
      this.#start = { settle, fail };
      this.#threads.push(take((message) => this.#receive(message)));
    });
  }

  /**
   * @param {Omit<import('./messages.js').InitMessage, 'helpers' | 'sent'>} message
   * @param {Source | undefined} pageSource bytes that the worker reads through this page
   * @param {Source} [mmprojSource] the same for the mmproj file
   * @returns {Promise<object>} settles when the model is loaded, with the engine's information about it
   */
  init(message, pageSource, mmprojSource) {
    const isOnPage = pageSource ?? mmprojSource;
    this.#pageSource = isOnPage && new PageSource([pageSource, mmprojSource]);
    this.#hasFile = Boolean(message.config.swap);
    return new Promise((settle, fail) => {
      if (this.#end) {
        fail(this.#end);
        return;
      }
      this.#start = { settle, fail };
      const { module, config } = message;
      this.#late = [];
      const ports = Array.from({ length: config.threads - 1 }, (_, index) => {
        const { port1, port2 } = new MessageChannel();
        this.#late[index] = () => this.#startHelper({ module, index, port: port1 });
        return port2;
      });
      const { sent } = this.#threads[0];
      this.#threads[0].post({ ...message, helpers: ports, sent }, ports);
    });
  }

  /** @param {ToWorker} message */
  #send(message) {
    if (isDeeper(message, LEVELS_MAX)) {
      throw new WickError('ARG', `argument: is nested deeper than ${LEVELS_MAX} levels`);
    }
    try {
      this.#threads[0].post(message);
    } catch (error) {
      throw new WickError('ARG', `argument: cannot be sent to the engine: ${error}`, error);
    }
  }

  /** @param {FromWorker} message */
  #receive(message) {
    if (message.type === 'log') console.warn(message.text);
    if (this.#end && message.type !== 'closed') return; // sent before the engine ended
    this.#handlers[message.type]?.(/** @type {any} */ (message));
  }

  /** @type {{[Type in FromWorker['type']]?: (message: Extract<FromWorker, {type: Type}>) => unknown}} */
  #handlers = {
    progress: ({ progress }) => {
      if (this.#start && this.#isLoading && progress.phase === 'loading') this.#startHelpersSoon();
      this.#isLoading = true;
      this.#onProgress(progress);
    },
    ready: ({ info }) => {
      if (this.#start) this.#start.settle(info);
      else this.#onReadyAgain?.(info);
      this.#start = undefined;
      this.#startHelpersSoon(HELPERS_MS);
      this.#rest();
    },
    failed: ({ error }) => this.#fail(fromPlainError(error)),
    closed: () => this.#onClosed?.(),
    crashed: ({ message }) => this.#crash(message),
    step: ({ outputs }) => {
      for (const output of outputs) this.#waiters.get(output.id)?.onOutput?.(output);
    },
    result: ({ id, value }) => this.#take(id)?.settle(value),
    error: ({ id, error }) => this.#take(id)?.fail(fromPlainError(error)),
    ask: ({ id, method, args }) => this.#answer(id, method, args),
  };

  /** @param {number} id @param {string} method @param {number[]} args */
  async #answer(id, method, args) {
    const source = /** @type {PageSource} */ (this.#pageSource);
    try {
      const value = await source.answer(method, args);
      const transfer = value instanceof Uint8Array ? [value.buffer] : [];
      const end = method === 'read' ? source.positionOf(args[0]) : undefined;
      const answer = { type: 'answer', id, value, ...(end !== undefined && { end }) };
      if (!this.#end) this.#threads[0].post(answer, transfer);
    } catch (error) {
      if (!this.#end) this.#send({ type: 'answer-error', id, error: toPlainError(error) });
    }
  }

  // ---- waiting ----

  /** @param {Waiter} waiter @returns {number} its id */
  #wait(waiter) {
    this.#lastId++;
    this.#waiters.set(this.#lastId, waiter);
    this.#threads[0].keepAlive(true);
    return this.#lastId;
  }

  /** @param {number} id @returns {Waiter | undefined} */
  #take(id) {
    const waiter = this.#waiters.get(id);
    this.#waiters.delete(id);
    this.#rest();
    return waiter;
  }

  /** Allows a Node process to exit if no calls are pending. */
  #rest() {
    if (this.#waiters.size === 0 && !this.#end) this.#threads[0].keepAlive(false);
  }

  /** Throws if the engine has ended. */
  check() {
    if (this.#end) throw this.#end;
  }

  get isEnded() {
    return this.#end !== undefined;
  }

  /**
   * @param {import('./calls.js').CallName} method
   * @param {unknown[]} args
   * @param {AbortSignal | null} [signal]
   * @returns {Promise<any>}
   */
  async call(method, args, signal) {
    this.check();
    throwIfAborted(signal);
    let id = 0;
    const stop = onAbort(signal, () => {
      const waiter = this.#take(id);
      if (waiter) this.#send({ type: 'cancel', id });
      waiter?.fail(abortError(signal?.reason));
    });
    try {
      return await new Promise((settle, fail) => {
        id = this.#wait({ settle, fail });
        this.#send({ type: 'call', id, method, args });
      });
    } finally {
      stop();
      this.#take(id); // it is still pending if the message could not be sent
    }
  }

  /**
   * @param {Omit<import('./messages.js').GenerateMessage, 'type' | 'id' | 'completions'>} message
   * @param {{onOutput: (output: Output) => void, fail: (error: unknown) => void, isLost?: () =>
   * boolean}[]} waiters one for each completion; `isLost`: whether the waiter was garbage-collected
   * @returns {RunningRequest[]}
   */
  generate(message, waiters) {
    this.check();
    if (this.#onReadyAgain && message.settings.asksHost) {
      throw new WickError('UNSUPPORTED', 'logitsHook: is not available with a shared engine');
    }
    // not a spread: V8 creates a hidden class for each object copied by spreading, which keeps the request alive
    // for a while
    const ids = waiters.map(({ onOutput, fail }) => this.#wait({ onOutput, fail, settle: ignore }));
    try {
      this.#send({ type: 'generate', id: ids[0], completions: ids.length, ...message });
    } catch (error) {
      for (const id of ids) this.#take(id);
      throw error;
    }
    return ids.map((id) => this.#running(id));
  }

  /** @param {number} id @returns {RunningRequest} */
  #running(id) {
    return {
      acknowledge: (count) => {
        if (this.#waiters.has(id)) this.#send({ type: 'ack', id, count });
      },
      answer: (logits) => {
        if (this.#waiters.has(id)) this.#send({ type: 'logits', id, logits });
      },
      forget: () => void this.#take(id),
      cancel: () => {
        if (this.#take(id)) this.#send({ type: 'cancel', id });
      },
    };
  }

  // ---- the end ----

  /** @param {unknown} error a loading error; an eager engine may have started already */
  #fail(error) {
    if (this.#start) this.#start.fail(error);
    else this.#stop(/** @type {WickError} */ (error));
  }

  /** @param {string} reason @param {unknown} [cause] */
  #crash(reason, cause) {
    const isTold = cause instanceof WickError; // the worker could not be started
    const crash = () =>
      new WickError('WORKER_CRASHED', `The engine's worker crashed: ${reason}`, cause);
    this.#stop(isTold ? cause : crash());
  }

  /**
   * @param {WickError} error the error of every pending and every later call
   * @param {{isPolite?: boolean}} [options] whether the workers are asked to end before they are
   * terminated
   * @returns {Promise<void> | undefined} the promise of the first call to #stop
   */
  #stop(error, options = {}) {
    if (!this.#end) this.#ending = this.#endAll(error, options);
    return this.#ending;
  }

  /** @param {WickError} error @param {{isPolite?: boolean}} options */
  async #endAll(error, { isPolite = false }) {
    this.#end = error;
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    this.#start?.fail(error);
    this.#start = undefined;
    for (const { fail } of waiters) fail(error);
    this.#onEnd?.(error);
    this.#pageSource?.cancel();
    globalThis.removeEventListener?.('pagehide', this.#leave);
    const threads = this.#threads;
    this.#threads = [];
    this.#late = [];
    if (isPolite && (threads.length > 1 || this.#hasFile)) await this.#askToClose(threads[0]);
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  /** Not every host can terminate waiting helpers. The worker also removes the swap file. @param {import('./start_worker.js').Thread} engine */
  #askToClose(engine) {
    return new Promise((settle) => {
      const timer = setTimeout(settle, CLOSE_MS_MAX);
      this.#onClosed = () => {
        clearTimeout(timer);
        settle(undefined);
      };
      engine.keepAlive(true);
      engine.post({ type: 'close' });
    });
  }

  /** Ends the workers, which frees the memory. May be called more than once. */
  async close() {
    await this.#stop(new WickError('CLOSED', 'engine: closed'), { isPolite: true });
  }
}

/**
 * @typedef {object} RunningRequest
 * @property {(count: number) => void} acknowledge reports the number of further pieces that were
 * read
 * @property {(logits: Float32Array) => void} answer passes the hook's logits to the worker
 * @property {() => void} forget called when the request has ended
 * @property {() => void} cancel
 * @property {() => Promise<void>} [drive] if the engine has no worker: computes until there is
 * output for this request, and delivers it
 */

/** Bytes that only the page can read (a stream, the caller's fetch). The worker requests them. */
class PageSource {
  #sources;
  /** @type {Map<number, ByteStream>} */
  #streams = new Map();
  #opened = 0;

  /** @param {(Source | undefined)[]} sources of the model and of the mmproj file */
  constructor(sources) {
    this.#sources = sources;
  }

  /** @param {string} method @param {number[]} args @returns {Promise<unknown>} */
  async answer(method, args) {
    if (method === 'open') return this.#open(args[0], args[1], args[2]);
    const stream = /** @type {ByteStream} */ (this.#streams.get(args[0]));
    if (method === 'read') {
      const bytes = await stream?.read();
      // a copy, because sending transfers the buffer, which the caller may still use (slice() of a
      // Node Buffer does not copy)
      return bytes ? new Uint8Array(bytes) : null;
    }
    stream?.cancel();
    this.#streams.delete(args[0]);
    return undefined;
  }

  /** @param {number} id of a stream @returns {number | undefined} */
  positionOf(id) {
    return this.#streams.get(id)?.position;
  }

  /** @param {number} file @param {number} offset @param {number} which source */
  async #open(file, offset, which = 0) {
    const source = /** @type {Source} */ (this.#sources[which]);
    const stream = await source.open(file, offset);
    const id = ++this.#opened;
    this.#streams.set(id, stream);
    return { id, position: stream.position, size: stream.size, canSeek: source.canSeek };
  }

  cancel() {
    for (const source of this.#sources) source?.close?.();
    this.#streams.clear();
  }
}
