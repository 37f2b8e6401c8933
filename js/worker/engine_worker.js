// js/worker/engine_worker.js — the engine in its worker. It handles messages and steps the engine,
// and yields to the event loop when a message is waiting. It never blocks.

import { nowMs } from '../base/clock.js';
import { fromPlainError, refusalOf, toPlainError, WickError } from '../base/errors.js';
import { ProgressMeter } from '../bytes/download_progress.js';
import { openRows } from '../bytes/row_readers.js';
import { openSwap } from '../storage/swap_file.js';
import { rowsHost, swapHost } from '../wasm/host_functions.js';
import { STEP_PROGRESS, STEP_WAIT_BYTES } from '../wasm/layout.js';
import { NativeEngine } from '../wasm/native_engine.js';
import { compileModule } from '../wasm/wasm_module.js';
import { loadModel } from './load_model.js';
import { HeldFile, loadMedia, mediaHost } from './media_desk.js';
import { ownSource } from './own_source.js';
import { PageBytes } from './page_source.js';
import { infoOf, ServedEngine } from './served_engine.js';
import { isRefused, isTooLarge, isWanted, WIDE_BYTES, widened, withReason } from './wide_engine.js';

/** @import { FromWorker, ToWorker } from '../connection/messages.js' */
/** @import { HelperStart } from '../wasm/wasm_module.js' */

/**
 * How long a step may take. Messages that arrive during a step (a cancellation, the next request)
 * wait until it ends.
 */
const STEP_BUDGET_US = 1000;
/** The same limit while a request is waiting for its first piece. */
const FIRST_STEP_BUDGET_US = 250;
/** How long an embedding step may take: messages and requests wait until it ends. */
const EMBED_STEP_BUDGET_US = 4000;
/**
 * How long steps may run without yielding while no message is waiting. Streams and timers wait for a turn of the
 * event loop. A turn costs about 30 us in Node.
 */
const TURN_MS_MAX = 15;
/**
 * The first piece and the end of a request are sent at once, the pieces in between at this
 * interval, because each message takes time.
 */
const TELL_MS = 15;
/** Every host has more memory than this. */
const SMALL_BYTES = 2 ** 29;
/** How long loading may delay messages and steps while requests are waiting. */
const FEED_MS_MAX = 8;

/** @param {WebAssembly.Module | string | undefined} part a module of the build, or its URL */
const loaderOf = (part) => (typeof part === 'string' ? () => compileModule(part) : part);

export class EngineWorker {
  #post;
  /** @type {NativeEngine | undefined} */
  #native;
  /** @type {ServedEngine | undefined} */
  #served;
  #isStepping = false;
  /** Whether a step of an encoder is scheduled. */
  #isEncoding = false;
  #hasSteppedEarly = false;
  #isReady = false;
  #isClosed = false;
  /**
   * The number of messages that were posted to this worker, if the page can share it.
   * @type {Int32Array | undefined}
   */
  #sent;
  #received = 0;
  /** @type {import('../storage/swap_file.js').SwapFile | undefined} */
  #swap;
  /** @type {import('../bytes/row_readers.js').RowReader | undefined} */
  #rows;
  #rowsAreUsed = false;
  #yield;
  #letIn;
  #letInMs = 0;
  #toldMs = 0;
  /** Continues loading after messages and steps have had a turn. */
  #goOn = () => {};
  #pageBytes;
  #log;

  /**
   * @param {(message: FromWorker) => void} post
   * @param {(text: string) => void} log receives text for the console
   */
  constructor(post, log) {
    this.#post = post;
    this.#log = log;
    this.#yield = makeYield(() => this.#guard(() => this.#step()));
    this.#letIn = makeYield(() => this.#goOn());
    this.#pageBytes = new PageBytes(post);
  }

  /** @param {ToWorker} message */
  receive(message) {
    this.#received++;
    if (this.#isClosed) return;
    this.#guard(() => this.#handlers[message.type]?.(/** @type {any} */ (message)));
  }

  /** @type {{[Type in ToWorker['type']]?: (message: Extract<ToWorker, {type: Type}>) => unknown}} */
  #handlers = {
    init: (message) => this.#start(message).catch((error) => this.#failStart(error)),
    generate: (message) => this.#generate(message),
    cancel: ({ id }) => this.#wakeAfter(() => this.#served?.cancel(id)),
    ack: ({ id, count }) => this.#wakeAfter(() => this.#requests?.acknowledge(id, count)),
    logits: ({ id, logits }) => this.#wakeAfter(() => this.#requests?.answer(id, logits)),
    call: ({ id, method, args }) => this.#call(id, method, args),
    close: () => this.#close(),
    answer: ({ id, value, end }) => this.#pageBytes.answer(id, value, end),
    'answer-error': ({ id, error }) => this.#pageBytes.refuse(id, fromPlainError(error)),
  };

  /**
   * Runs an action and reports a trap. After a trap the module's memory is in an unknown state, so the engine
   * cannot continue.
   * @param {() => unknown} action
   */
  #guard(action) {
    try {
      action();
    } catch (error) {
      this.#post({ type: 'crashed', message: String(error) });
    }
  }

  // ---- start ----

  /** @param {import('../connection/messages.js').InitMessage} message */
  async #start(message) {
    this.#sent = message.sent;
    let isTold = false;
    /**
     * Sends the helpers the data that they need. Set once the directory is known.
     * @type {(start: HelperStart) => void}
     */
    let tellHelpers = () => {};
    const needed = new Promise((/** @type {typeof tellHelpers} */ settle) => {
      tellHelpers = (start) => {
        isTold = true;
        settle(start);
      };
    });
    for (const helper of message.helpers) {
      helper.onmessage = () => needed.then((start) => helper.postMessage(start));
    }
    if (isWanted(message)) return this.#load(await widened(message), tellHelpers);
    try {
      await this.#load(message, tellHelpers);
    } catch (error) {
      if (!isTooLarge(error, message)) throw error;
      const wide = await widened(message, { error, isLoading: isTold });
      if (this.#isClosed) return;
      this.#native?.destroy();
      this.#native = undefined;
      await this.#load(wide, tellHelpers).catch((failure) => {
        throw isRefused(failure) ? withReason(error, failure.message) : failure;
      });
    }
  }

  /**
   * @param {import('../connection/messages.js').InitMessage} message
   * @param {(start: HelperStart) => void} tellHelpers
   */
  async #load(message, tellHelpers) {
    const { module, grammar, extras, media, config, source, draft, mmproj, chatTemplate } = message;
    const { isEager } = message;
    const file = new HeldFile();
    if (config.swap) this.#swap ??= await openSwap(config.swapFolder);
    const swap = this.#swap;
    const rows = this.#openRows(config, source);
    const able = {
      ...config,
      swap: swap ? config.swap : 0,
      tables: rows || config.tables === 'outside' ? config.tables : 'inside',
    };
    /** @type {WebAssembly.Memory | undefined} */
    let memory;
    const native = await NativeEngine.create(module, able, {
      host: (heap) => ({
        ...(swap && swapHost(swap, heap)),
        ...(rows && rowsHost(rows, heap)),
        ...(mmproj && mediaHost(file, heap)),
      }),
      grammar: loaderOf(grammar),
      extras: loaderOf(extras),
      ...(mmproj && { media: loaderOf(media) }),
      onLog: this.#log,
      onMemory: (made) => {
        memory = made;
      },
    });
    this.#native = native;
    if (message.wide) native.mostBytes = WIDE_BYTES;
    if (mmproj) await native.withMedia(() => {});
    const startOf = () => ({
      module,
      memory: /** @type {WebAssembly.Memory} */ (memory),
      extras: native.parts.extras.module,
      ...(mmproj && { media: native.parts.media.module }),
    });
    this.#served = new ServedEngine(native, {
      queueLimit: config.queueLimit,
      chatTemplate,
      wake: (trap) =>
        this.#guard(() => {
          if (trap) throw trap; // of the module
          this.#wake();
        }),
      step: () => this.#stepOnce(),
      embedding: {
        step: () => native.embedStep(EMBED_STEP_BUDGET_US),
        takeTurn,
        isClosed: () => this.#isClosed,
      },
    });
    const meter = new ProgressMeter((progress) => this.#post({ type: 'progress', progress }));
    /** @param {import('../connection/messages.js').Progress['phase']} [phase] @param {number} [retryMs] */
    const report = (phase, retryMs) => {
      const { bytesPlaced, bytesWanted, isDirectoryReady } = native.loadState();
      const total = isDirectoryReady ? bytesWanted + file.total : undefined;
      meter.update(bytesPlaced + file.size, total, phase, retryMs);
    };
    /** @param {import('../bytes/model_sources.js').SourceDescription} description @param {number} [which] 1: the mmproj file */
    const open = (description, which) =>
      description.kind === 'page'
        ? this.#pageBytes.source(description, which)
        : ownSource(description, (_, waitMs) => report('retrying', waitMs));
    const isRemote = source.kind === 'url' || (source.kind === 'page' && source.isRemote);
    const isClosed = () => this.#isClosed;
    if (isClosed()) return;
    const onBytes = () => {
      report();
      if (native.loadState().isDirectoryReady) this.#closeUnused(native, config);
      if (native.loadState().isDirectoryReady) tellHelpers(startOf());
      if (isRemote && native.loadState().isDirectoryReady) this.#stepEarly();
      if (isEager && native.loadState().isDirectoryReady) this.#beReady();
      this.#wake();
      return this.#isReady ? this.#breathe() : undefined;
    };
    await loadModel(native, open(source), { onBytes, isClosed });
    tellHelpers(startOf());
    if (mmproj && !isClosed()) {
      const { directoryOnly } = config;
      await loadMedia(native, open(mmproj, 1), file, { onBytes: report, isClosed, directoryOnly });
    }
    if (draft && !isClosed()) await this.#loadDraft(native, config, draft);
    if (isClosed()) return;
    report('ready');
    this.#beReady();
  }

  /**
   * Returns a reader for the tables that stay outside of memory, if the source can be read while
   * the engine runs.
   * @param {import('../wasm/engine_records.js').NativeConfig} config
   * @param {import('../bytes/model_sources.js').SourceDescription} source
   */
  #openRows({ tables, directoryOnly, memoryLimit }, source) {
    if ((tables ?? 'inside') === 'inside') return undefined;
    this.#rows ??= openRows(source);
    // small files do not need the code for tables outside of memory
    const least = tables === 'auto' ? Math.min(memoryLimit || SMALL_BYTES, SMALL_BYTES) / 2 : 0;
    if (this.#rows && this.#rows.size > least) return this.#rows;
    this.#closeRows();
    if (tables === 'auto' || directoryOnly) return undefined; // a memory plan needs no reader
    throw new WickError(
      'UNSUPPORTED',
      "tables: 'outside' needs a model that can be read while it runs: a file, a Blob in a browser, or a stored model",
    );
  }

  #closeRows() {
    this.#rows?.close();
    this.#rows = undefined;
  }

  /**
   * Closes the files unless tables stay outside of memory.
   * @param {NativeEngine} native that has read the directory
   * @param {import('../wasm/engine_records.js').NativeConfig} config
   */
  #closeUnused(native, { directoryOnly }) {
    if (!this.#rows || this.#rowsAreUsed) return;
    this.#rowsAreUsed = !directoryOnly && native.info().plan.outside_bytes > 0;
    if (!this.#rowsAreUsed) this.#closeRows();
  }

  /**
   * Pauses from time to time. A stream that always has bytes available is read without yielding to the event loop, so
   * without this pause, no message would be handled and no layer computed until the model is complete.
   * @returns {Promise<void> | undefined}
   */
  #breathe() {
    if (nowMs() - this.#letInMs < FEED_MS_MAX) return undefined;
    return new Promise((settle) => {
      this.#goOn = () => {
        this.#letInMs = nowMs();
        settle();
      };
      this.#letIn();
    });
  }

  /**
   * @param {NativeEngine} native
   * @param {import('../wasm/engine_records.js').NativeConfig} config the main model's configuration
   * @param {Parameters<typeof ownSource>[0]} description
   */
  async #loadDraft(native, config, description) {
    const contextSize = native.info().plan.context_tokens;
    const own = {
      ...{ threads: 1, chooseThreads: false, metrics: false, swap: 0 },
      ...{ noPrefixCache: true, noPredictor: true },
      tables: /** @type {const} */ ('inside'),
    };
    const used = native.counters().bytesNow;
    const memoryLimit = config.memoryLimit && Math.max(1, config.memoryLimit - used);
    const drafting = native.createSibling({
      ...config,
      ...own,
      memoryLimit,
      contextSize: 0,
      kvTokens: contextSize,
    });
    const source = ownSource(description, () => {});
    await loadModel(drafting, source, { onBytes: () => {}, isClosed: () => this.#isClosed });
    if (!this.#isClosed) native.useDraft(drafting);
  }

  /** Accepts requests from now on. The directory is complete; the weights may still be loading. */
  #beReady() {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#post({ type: 'ready', info: infoOf(/** @type {NativeEngine} */ (this.#native)) });
    this.#stepEarly();
  }

  /**
   * Runs the engine's first step, which checks the kernels and takes some milliseconds. It runs while the worker
   * waits for bytes from a server, or when the engine is ready, so that no request waits for it.
   */
  #stepEarly() {
    if (this.#hasSteppedEarly) return;
    this.#hasSteppedEarly = true;
    takeTurn().then(() => this.#guard(() => this.#isClosed || this.#stepOnce()));
  }

  /** @param {unknown} error */
  #failStart(error) {
    this.#closeRows();
    if (error instanceof WickError) this.#post({ type: 'failed', error: toPlainError(error) });
    else this.#post({ type: 'crashed', message: String(error) });
  }

  /**
   * Helpers wait inside the module. They must leave it first, because not every host can terminate
   * a waiting thread.
   */
  async #close() {
    this.#isClosed = true;
    this.#requests?.close();
    this.#native?.destroy();
    await this.#swap?.close();
    this.#closeRows();
    this.#post({ type: 'closed' });
  }

  // ---- calls ----

  /** @param {number} id @param {string} method @param {unknown[]} args */
  #call(id, method, args) {
    /** @param {unknown} error */
    const fail = (error) => this.#post({ type: 'error', id, error: toPlainError(error) });
    /** @param {unknown} value */
    const settle = (value) => this.#post({ type: 'result', id, value });
    try {
      const value = /** @type {ServedEngine} */ (this.#served).call(method, args, id);
      if (value instanceof Promise) {
        value.then(settle, (error) => this.#guard(() => fail(refusalOf(error))));
      } else settle(value);
    } catch (error) {
      fail(refusalOf(error));
    }
  }

  // ---- generation ----

  /** @param {import('../connection/messages.js').GenerateMessage} message */
  #generate(message) {
    const { id, completions } = message;
    /** @param {unknown} error */
    const fail = (error) => {
      const plain = toPlainError(refusalOf(error));
      for (let i = 0; i < completions; i++) this.#post({ type: 'error', id: id + i, error: plain });
    };
    try {
      /** @type {ServedEngine} */ (this.#served).submit(message, fail);
      this.#encodeSoon();
      this.#wake();
    } catch (error) {
      fail(error);
    }
  }

  /**
   * Starts to encode images and recordings between messages and steps, unless that is already
   * happening.
   */
  #encodeSoon() {
    if (this.#isEncoding || !this.#served?.isEncoding()) return;
    this.#isEncoding = true;
    takeTurn().then(() => this.#guard(() => this.#encode()));
  }

  #encode() {
    this.#isEncoding = false;
    if (this.#isClosed) return;
    this.#served?.encodeStep();
    this.#encodeSoon();
    this.#wake();
  }

  get #requests() {
    return this.#served?.requests;
  }

  /** @param {() => void} action after which a step may be possible */
  #wakeAfter(action) {
    action();
    this.#wake();
  }

  /** Starts stepping the engine, unless it is already running. */
  #wake() {
    if (this.#isStepping || !this.#requests?.canStep()) return;
    this.#isStepping = true;
    this.#yield();
  }

  /** @returns {number} STEP_* */
  #stepOnce() {
    const requests = /** @type {ServedEngine} */ (this.#served).requests;
    const budgetUs = requests.awaitsFirst() ? FIRST_STEP_BUDGET_US : STEP_BUDGET_US;
    const result = /** @type {NativeEngine} */ (this.#native).step(budgetUs);
    const isUrgent = requests.hear();
    const isLast = result !== STEP_PROGRESS || !requests.canStep();
    if (isUrgent || isLast || nowMs() - this.#toldMs >= TELL_MS) this.#tell();
    return result;
  }

  #tell() {
    const outputs = /** @type {ServedEngine} */ (this.#served).requests.collect();
    if (outputs.length > 0) this.#post({ type: 'step', outputs });
    this.#toldMs = nowMs();
  }

  #step() {
    if (this.#isClosed) return;
    const requests = /** @type {ServedEngine} */ (this.#served).requests;
    const startMs = nowMs();
    do {
      const result = this.#stepOnce();
      // an idle engine has already received all waiting requests
      this.#isStepping = result !== STEP_WAIT_BYTES && requests.canStep();
    } while (this.#isStepping && !this.#hasMail() && nowMs() - startMs < TURN_MS_MAX);
    if (this.#isStepping) this.#yield();
  }

  /** @returns {boolean} whether a message may be waiting for the event loop */
  #hasMail() {
    return this.#sent === undefined || Atomics.load(this.#sent, 0) !== this.#received;
  }
}

/** @returns {Promise<void>} settles after the messages that have already arrived */
const takeTurn = () => new Promise((settle) => makeYield(settle)());

/**
 * Returns a function that runs `action` after the messages that have already arrived.
 * @param {() => void} action
 * @returns {() => void}
 */
function makeYield(action) {
  // Node handles up to a thousand messages of a port in one turn, including those posted by a
  // handler.
  if (typeof setImmediate === 'function') return () => void setImmediate(action);
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = action;
  return () => port2.postMessage(0);
}
