// js/connection/start_worker.js — starts web workers and Node workers, with one interface for both.

import { WickError } from '../base/errors.js';
import { hasSharedMemory } from '../base/host_features.js';
import { ownFile } from '../base/own_files.js';

/** @import { Worker as NodeWorker } from 'node:worker_threads' */
/** @typedef {import('../index.js').EngineOptions['worker']} WorkerOption */

/**
 * A worker of either kind. `onEnd` is called if the worker fails or ends on its own.
 * @typedef {object} Thread
 * @property {(message: unknown, transfer?: Transferable[]) => void} post
 * @property {Int32Array} [sent] the number of posted messages, in shared memory (countPosts): a
 * busy worker reads it to see whether a message is waiting
 * @property {() => Promise<void>} terminate
 * @property {(isBusy: boolean) => void} keepAlive whether a Node process waits for this worker
 */

/**
 * @param {WorkerOption} option
 * @param {(message: any) => void} onMessage
 * @param {(reason: string, cause?: unknown) => void} onEnd
 * @returns {Thread}
 */
export function startThread(option, onMessage, onEnd) {
  const worker = startWorker(option);
  return 'addEventListener' in worker
    ? adaptWeb(worker, onMessage, onEnd)
    : adaptNode(worker, onMessage, onEnd);
}

/** A worker that was started before it is known whether it is needed. */
export class SpareThread {
  /** @type {Thread | undefined} */
  #thread;
  /** @type {(message: any) => void} */
  #onMessage = () => {};
  /** @type {[reason: string, cause?: unknown] | undefined} */
  #ended;
  /** @type {(reason: string, cause?: unknown) => void} */
  #onEnd = (...ended) => {
    this.#ended = ended;
  };

  /** @param {WorkerOption} option */
  constructor(option) {
    this.#thread = startThread(
      option,
      (message) => this.#onMessage(message),
      (...ended) => this.#onEnd(...ended),
    );
  }

  /**
   * @param {(message: any) => void} onMessage
   * @param {(reason: string, cause?: unknown) => void} onEnd is also called if it has failed already
   * @returns {Thread | undefined} undefined if it was taken or dropped before
   */
  take(onMessage, onEnd) {
    const thread = this.#thread;
    this.#thread = undefined;
    if (!thread) return undefined;
    this.#onMessage = onMessage;
    this.#onEnd = onEnd;
    const ended = this.#ended;
    if (ended) queueMicrotask(() => onEnd(...ended));
    return thread;
  }

  /** Terminates the worker, unless it was taken. */
  drop() {
    this.#thread?.terminate();
    this.#thread = undefined;
  }
}

/**
 * @param {Thread} thread
 * @returns {Thread} the same worker, which counts its posts if memory can be shared
 */
export function countPosts(thread) {
  if (!hasSharedMemory()) return thread;
  const sent = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const { post } = thread;
  return Object.assign(thread, {
    sent,
    /** @type {Thread['post']} */
    post: (message, transfer) => {
      post(message, transfer); // a message that cannot be copied is not counted
      Atomics.add(sent, 0, 1);
    },
  });
}

/** @param {WorkerOption} option @returns {Worker | NodeWorker} */
function startWorker(option) {
  const made = typeof option === 'function' ? option() : option;
  if (made && typeof made === 'object' && 'postMessage' in made) {
    return /** @type {Worker | NodeWorker} */ (made);
  }
  if (typeof Worker === 'function') return startWebWorker(made);
  const threads = globalThis.process?.getBuiltinModule?.('node:worker_threads');
  // workerd has the module, but does not support threads
  if (!threads || globalThis.navigator?.userAgent === 'Cloudflare-Workers') {
    throw new WickError(
      'UNSUPPORTED',
      "workers: not available on this host. Import createEngine from 'wick-llm/edge', which " +
        'runs the engine in the calling thread',
    );
  }
  // Workers reject some flags of the process (--input-type).
  if (made) return new threads.Worker(addressOf(made), { execArgv: [] });
  return startQuickly(threads);
}

/**
 * Starts the worker's file as a script, which is 6 ms faster than as a module. The worker's standard streams are not
 * connected, because creating them takes 3 ms. Its warnings arrive as messages instead.
 * @param {typeof import('node:worker_threads')} threads
 * @returns {NodeWorker}
 */
function startQuickly(threads) {
  const text = `const from = process.getBuiltinModule, fs = from('node:fs');
const { parentPort, workerData: { file } } = from('node:worker_threads');
const tell = ({ name, message }) =>
  parentPort.postMessage({ type: 'log', text: name + ': ' + message });
process.on('warning', tell);
from('node:vm').runInThisContext(fs.readFileSync(file, 'utf8'), file);`;
  const { fileURLToPath } = globalThis.process.getBuiltinModule('node:url');
  const workerData = { file: fileURLToPath(ownFile(workerUrl)) };
  const streams = { stdin: true, stdout: true, stderr: true };
  // limits the young generation, so that it is collected often; V8 would let it grow to 48 MB
  const resourceLimits = { maxYoungGenerationSizeMb: 6 };
  return new threads.Worker(text, {
    eval: true,
    execArgv: [],
    workerData,
    resourceLimits,
    ...streams,
  });
}

/** @param {URL | string} option */
function addressOf(option) {
  try {
    return new URL(option, globalThis.location?.href);
  } catch {
    throw new WickError('ARG', `worker must be a URL, not ${option}`);
  }
}

/** @param {URL | string | undefined} option */
function startWebWorker(option) {
  const url = option ? addressOf(option) : workerUrl();
  if (isElsewhere(url)) return startByBlob(url);
  return allowed(() => new Worker(url, { type: 'module' }), "'self'");
}

/**
 * Functions that return the error if a page's policy blocked the worker. Some browsers throw it
 * immediately, others send an error event to the worker.
 * @type {WeakMap<Worker, () => WickError | undefined>}
 */
const refusals = new WeakMap();

/**
 * The origins from which workers import their file. If the import is blocked, only the worker gets
 * an event.
 * @type {WeakMap<Worker, string>}
 */
const imports = new WeakMap();

/**
 * Starts a worker that the page's Content Security Policy may block.
 * @param {() => Worker} start
 * @param {string} source the source that worker-src must allow
 * @returns {Worker}
 */
function allowed(start, source) {
  const watch = watchPolicy(source);
  try {
    const worker = start();
    refusals.set(worker, watch.refusal);
    worker.addEventListener('message', watch.stop, { once: true });
    worker.addEventListener('error', () => setTimeout(watch.stop), { once: true });
    return worker;
  } catch (error) {
    watch.stop();
    throw refusedBy(String(error), source, error) ?? error;
  }
}

/** @param {string} source */
function watchPolicy(source) {
  /** @type {WickError | undefined} */
  let found;
  const hear = (/** @type {Event} */ event) => {
    found ??= refusedBy(
      /** @type {SecurityPolicyViolationEvent} */ (event).effectiveDirective,
      source,
    );
  };
  globalThis.document?.addEventListener('securitypolicyviolation', hear);
  const stop = () => globalThis.document?.removeEventListener('securitypolicyviolation', hear);
  return { refusal: () => found, stop };
}

/**
 * @param {string} words the text of an error, or the directive
 * @param {string} source the source that worker-src must allow
 * @param {unknown} [cause]
 * @returns {WickError | undefined} undefined if no policy was the reason
 */
function refusedBy(words, source, cause) {
  const page = "The page's Content Security Policy";
  if (/trusted/i.test(words)) {
    return new WickError(
      'CSP',
      `${page} has require-trusted-types-for 'script', which rejects a string as a worker URL. Pass ` +
        'worker: () => new Worker(policy.createScriptURL(url)) to createEngine, with a policy that ' +
        'the trusted-types directive allows',
      cause,
    );
  }
  if (!/worker-src|content security policy/i.test(words)) return undefined;
  return new WickError(
    'CSP',
    `${page} blocks the engine's worker: its worker-src directive must allow ${source}`,
    cause,
  );
}

/**
 * Bundlers search for exactly this expression and copy the file, which is self-contained. Within
 * `new Worker(...)` they would also bundle it.
 */
const workerUrl = () => new URL('./worker.js', import.meta.url);

/** @param {URL} url @returns {boolean} whether the browser would reject a worker with that URL */
function isElsewhere(url) {
  const here = globalThis.location?.origin;
  return here !== undefined && url.protocol.startsWith('http') && url.origin !== here;
}

/** @param {URL} url on another origin, such as a CDN, that lets any page read it */
function startByBlob(url) {
  const address = JSON.stringify(url.href);
  // Chromium does not start modules in a (sandboxed) frame with an opaque origin
  const isOpaque = globalThis.location.origin === 'null';
  const text = isOpaque ? `importScripts(${address});` : `import ${address};`;
  const blob = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  const type = isOpaque ? 'classic' : 'module';
  const worker = allowed(() => new Worker(blob, { type }), `blob: and ${url.origin}`);
  imports.set(worker, url.origin);
  worker.addEventListener('message', () => URL.revokeObjectURL(blob), { once: true });
  return worker;
}

/**
 * @param {Worker} worker
 * @param {(message: any) => void} onMessage
 * @param {(reason: string, cause?: unknown) => void} onEnd
 * @returns {Thread}
 */
function adaptWeb(worker, onMessage, onEnd) {
  worker.addEventListener('message', ({ data }) => onMessage(data));
  worker.addEventListener('messageerror', () =>
    onEnd('it sent a message that could not be deserialized'),
  );
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    const { message, error } = event;
    if (message) return onEnd(message, error ?? undefined);
    // the policy's event may arrive later
    const origin = imports.get(worker);
    const or = origin
      ? `, or worker-src of the Content Security Policy does not allow ${origin}`
      : '';
    setTimeout(() => onEnd(`its file could not be loaded${or}`, refusals.get(worker)?.()));
  });
  return {
    post: (message, transfer) => worker.postMessage(message, transfer ?? []),
    terminate: async () => worker.terminate(),
    keepAlive: () => {},
  };
}

/**
 * @param {NodeWorker} worker
 * @param {(message: any) => void} onMessage
 * @param {(reason: string, cause?: unknown) => void} onEnd
 * @returns {Thread}
 */
function adaptNode(worker, onMessage, onEnd) {
  worker.on('message', onMessage);
  worker.on('messageerror', (error) =>
    onEnd('it sent a message that could not be deserialized', error),
  );
  worker.on('error', (error) => onEnd(String(error), error));
  let isEnding = false;
  worker.on('exit', (code) => {
    if (!isEnding) onEnd(`it ended with code ${code}`);
  });
  return {
    post: (message, transfer) => worker.postMessage(message, /** @type {any} */ (transfer ?? [])),
    terminate: async () => {
      isEnding = true;
      await worker.terminate();
    },
    keepAlive: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
  };
}
