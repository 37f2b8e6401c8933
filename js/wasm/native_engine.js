// js/wasm/native_engine.js — wraps web/exports.c with JavaScript types: one engine in one instance
// of the module. js/wasm/heap.js reads and writes the memory, js/wasm/engine_records.js fills the
// records.

import { nameOption, optionOf, subjectName } from '../base/error_subjects.js';
import { codeOfStatus, WickError } from '../base/errors.js';
import { AdapterTable } from './adapter_table.js';
import { configWords, embedWords, kvTypes, passChat, requestWords } from './engine_records.js';
import { decodeEvents } from './event_records.js';
import { Heap, Passed, unsigned } from './heap.js';
import * as layout from './layout.js';
import { MediaTable } from './media_table.js';
import { ModulePart } from './module_part.js';
import { StateBytes } from './state_transfer.js';
import { createMemory, instantiate, isThreaded } from './wasm_module.js';
import { isWide } from './wide_calls.js';

/** The size of the buffer for copying the model's bytes. */
const STAGING_BYTES = 262144;

const TEXT_SLACK_BYTES = 64;

/** @import { KvType, NativeConfig, NativeRequest } from './engine_records.js' */
/**
 * @typedef {WebAssembly.Module | (() => Promise<WebAssembly.Module>)} PartSource a module, or a
 * function that loads it
 */
/** @typedef {{grammar: ModulePart, extras: ModulePart, media: ModulePart}} Parts */
/**
 * The parts of the engine that its tables need: its functions, whose first argument is the handle;
 * memory for one call; results; and a status that is thrown as an error.
 * @typedef {object} Tools
 * @property {(name: string, ...args: number[]) => number} run
 * @property {<T>(use: (passed: Passed) => T) => T} pass
 * @property {Heap} heap
 * @property {(status: number) => void} check
 * @property {() => boolean} wantsExtras
 */
/** @typedef {(engine: number, out: number, capacity: number, ...more: number[]) => number} WriteText */

/**
 * A function of web/exports.c that takes the engine and the listed arguments, and returns a status
 * or one of these: the number of a session (0 after a failure), tokens (a status; `numbers` has
 * their address and count), or JSON (the function writes text).
 * @typedef {{native: string, takes: ('number' | 'flag' | 'text')[],
 *   gives?: 'session' | 'tokens' | 'json'}} NativeCall
 */

/**
 * The result for a text: its vector or scores, or the concatenated vectors of its tokens; and its
 * number of tokens.
 * @typedef {{vector: Float32Array<ArrayBuffer>, tokens: number}} Embedded
 */

export class NativeEngine {
  #heap;
  #exports;
  #engine;
  #state;
  /** @type {NativeEngine | undefined} */
  #draft;
  /** @type {{address: number, sizeBytes: number} | undefined} */
  #staging;
  /**
   * The size limit of memory with 64-bit addresses on this host; 0: not supported, or already in
   * use.
   */
  mostBytes = 0;

  /**
   * @param {Heap} heap
   * @param {import('./wasm_module.js').Exports} exports
   * @param {number} engine
   * @param {StateBytes} state
   * @param {Parts} [parts] every engine has them; some tests omit them
   */
  constructor(heap, exports, engine, state, parts) {
    this.#state = state;
    this.parts = /** @type {Parts} */ (parts);
    this.#heap = heap;
    this.#exports = exports;
    this.#engine = engine;
    /** @type {Tools} */
    const tools = {
      run: (name, ...args) => exports[name](engine, ...args),
      pass: (use) => this.#with(use),
      heap,
      check: (status) => this.#check(status),
      wantsExtras: () => this.wantsExtras(),
    };
    this.adapters = new AdapterTable(tools);
    this.media = new MediaTable(tools);
  }

  /**
   * @param {WebAssembly.Module} module
   * @param {NativeConfig} config
   * @param {{onMemory?: (memory: WebAssembly.Memory) => void, onLog?: (text: string) => void,
   *   wasteBytes?: number, host?: (heap: () => Heap) => Partial<import('./wasm_module.js').Host>,
   *   grammar?: PartSource | null, extras?: PartSource | null, media?: PartSource | null}} [options]
   *   `onMemory` is passed the memory as soon as it exists, for the helpers. `onLog` is passed text for the console.
   *   `wasteBytes` allocates this many bytes first: tests of high addresses use it. `host` has the functions for
   * swapping, for tables outside of memory and for the mmproj file. `grammar`, `extras` and `media` are the other
   * modules of the build (module_part.js).
   * @returns {Promise<NativeEngine>}
   */
  static async create(module, config, options = {}) {
    const { onMemory, onLog, wasteBytes = 0, host } = options;
    const helpers = isThreaded(module) ? config.threads - 1 : 0;
    const created = createMemory({ shared: isThreaded(module), helpers, isWide: isWide(module) });
    if (!created) {
      const code = helpers > 0 ? 'NO_SHARED_MEMORY' : 'NOMEM';
      throw new WickError(code, 'host: could not allocate memory for the engine');
    }
    const { memory, maximum } = created;
    onMemory?.(memory);
    /** @type {Heap | undefined} */
    let heap;
    const state = new StateBytes(() => /** @type {Heap} */ (heap));
    const exports = instantiate(module, memory, {
      log: (address, size) => onLog?.(heap?.readText(address, size) ?? ''),
      random: (address, size) => heap?.write(address, crypto.getRandomValues(new Uint8Array(size))),
      state_write: (address, size) => state.take(address, size),
      state_read: (address, size) => state.give(address, size),
      ...host?.(() => /** @type {Heap} */ (heap)),
    });
    exports.start(helpers, maximum);
    heap = new Heap(memory, exports);
    if (wasteBytes > 0 && heap.alloc(wasteBytes) === 0) throw noRoom(heap, wasteBytes);
    const parts = {
      grammar: new ModulePart(exports, options.grammar, 'grammar'),
      extras: new ModulePart(exports, options.extras, 'extras'),
      media: new ModulePart(exports, options.media, 'media'),
    };
    exports.extras_set(Number(parts.extras.isReady));
    return new NativeEngine(heap, exports, createEngine(heap, exports, config), state, parts);
  }

  /**
   * Creates a second engine in the same memory, for a smaller model that proposes tokens
   * (useDraft).
   * @param {NativeConfig} config
   * @returns {NativeEngine}
   */
  createSibling(config) {
    const engine = createEngine(this.#heap, this.#exports, config);
    return new NativeEngine(this.#heap, this.#exports, engine, this.#state, this.parts);
  }

  /** Makes this loaded sibling engine propose tokens from now on. @param {NativeEngine} draft */
  useDraft(draft) {
    this.#check(this.#exports.engine_set_draft(this.#engine, draft.#engine), 'The draft model');
    this.#draft = draft;
  }

  /** Must be the last call. Frees everything and ends the helpers' loops. */
  destroy() {
    this.#exports.engine_destroy(this.#engine);
    if (this.#draft) this.#exports.engine_destroy(this.#draft.#engine);
    this.#freeStaging();
    this.#exports.helpers_dismiss?.();
  }

  /** @param {number} status @param {string} [context] a prefix for the message */
  #check(status, context) {
    if (status !== 0) throw this.#lastError(context);
  }

  /** @param {string} [context] */
  #lastError(context) {
    return errorOf(this.#heap, context);
  }

  /**
   * @template T
   * @param {(passed: Passed) => T} call
   * @returns {T}
   */
  #with(call) {
    const passed = new Passed(this.#heap);
    try {
      return call(passed);
    } catch (error) {
      if (error instanceof RangeError) throw new WickError('NOMEM', error.message, error);
      throw error;
    } finally {
      passed.free();
    }
  }

  // ---- loading ----

  /** @returns {{file: number, offset: number, length: number}} length 0: the engine needs no more bytes */
  nextRange() {
    this.#exports.load_next_range(this.#engine);
    const { file, offsetBytes, sizeBytes } = this.#heap.results(layout.RANGE);
    return { file, offset: offsetBytes, length: sizeBytes };
  }

  /**
   * @param {number} file
   * @param {number} offset
   * @param {Uint8Array} bytes any number of bytes
   * @returns {unknown} true if the model needs the extras module: the caller then loads it and
   * feeds these bytes again
   */
  feed(file, offset, bytes) {
    const { address, sizeBytes } = this.#takeStaging();
    for (let done = 0; done < bytes.byteLength; done += sizeBytes) {
      const piece = bytes.subarray(done, done + sizeBytes);
      this.#heap.write(address, piece);
      this.#check(
        this.#exports.load_feed(this.#engine, file, offset + done, address, piece.byteLength),
      );
    }
    if (this.loadState().isComplete) this.#freeStaging();
    return this.wantsExtras();
  }

  /** @returns {boolean} whether the model, or an adapter, needs the extras module */
  wantsExtras() {
    return Boolean(this.#exports.extras_are_wanted?.());
  }

  /**
   * @template T
   * @param {() => T} call that needs extras
   * @returns {T | Promise<T>} a promise if they must be loaded first
   */
  withExtras(call) {
    const { extras } = this.parts;
    const go = () => {
      this.#exports.extras_set(1);
      return call();
    };
    return extras.isLacking() ? extras.load().then(go) : go();
  }

  /**
   * @template T
   * @param {() => T} call that needs the encoders
   * @returns {Promise<T>}
   */
  async withMedia(call) {
    const { media } = this.parts;
    if (media.isLacking()) await media.load();
    return this.withExtras(call); // some tensor types are in the extras module
  }

  #takeStaging() {
    if (!this.#staging) {
      const address = this.#heap.alloc(STAGING_BYTES);
      if (address === 0) throw noRoom(this.#heap, STAGING_BYTES);
      this.#staging = { address, sizeBytes: STAGING_BYTES };
    }
    return this.#staging;
  }

  #freeStaging() {
    if (this.#staging) this.#heap.free(this.#staging.address, this.#staging.sizeBytes);
    this.#staging = undefined;
  }

  /** @param {number} file @param {number} sizeBytes where the file ends */
  endFile(file, sizeBytes) {
    this.#check(this.#exports.load_end(this.#engine, file, sizeBytes));
  }

  loadState() {
    this.#exports.load_state(this.#engine);
    const { fingerprint, ...state } = this.#heap.results(layout.LOAD);
    return state;
  }

  // ---- the model ----

  /** @returns {any} the object of wick_info_json (include/wick.h) */
  info() {
    return this.#json(this.#exports.info_json);
  }

  /** @returns {any} the object of ops_json (src/metrics/ops.h); undefined if metrics are off */
  metrics() {
    const text = this.#text(this.#exports.metrics_json);
    return text === '' ? undefined : JSON.parse(text);
  }

  /** @returns {string | undefined} the same metrics in Prometheus' text format */
  metricsText() {
    return this.#text(this.#exports.metrics_prometheus) || undefined;
  }

  resetMetrics() {
    this.#exports.metrics_reset(this.#engine);
  }

  /** @param {WriteText} write @param {number[]} [more] additional arguments */
  #json(write, more) {
    return JSON.parse(this.#text(write, more));
  }

  /** @param {WriteText} write @param {number[]} [more] @returns {string} */
  #text(write, more = []) {
    return this.#with((passed) => {
      // numbers in the text may become longer between the two calls
      const sizeBytes = unsigned(write(this.#engine, 0, 0, ...more)) + TEXT_SLACK_BYTES;
      const out = passed.room(sizeBytes);
      const writtenBytes = unsigned(write(this.#engine, out, sizeBytes, ...more));
      return this.#heap.readText(out, Math.min(writtenBytes, sizeBytes));
    });
  }

  /**
   * Returns the counters of the engine's allocator (src/base/memory.h), its threads, and the size
   * of the linear memory.
   */
  counters() {
    this.#exports.engine_counters(this.#engine);
    const { budgetBytes, calls, threadsDecode, threadsPrefill, ...counters } = this.#heap.results(
      layout.COUNTER,
    );
    return {
      ...counters,
      mostBytes: this.mostBytes || counters.limitBytes,
      allocations: calls,
      threadsUsed: { decode: threadsDecode, prefill: threadsPrefill },
      linearBytes: this.#heap.sizeBytes,
    };
  }

  // ---- text ----

  /** @param {string} text @param {number} flags @returns {Int32Array} */
  tokenize(text, flags) {
    return this.#with((passed) => {
      const [address, sizeBytes] = passed.text(text);
      let capacity = sizeBytes + 16;
      let tokens = passed.room(capacity * 4);
      /** @returns {number} */
      const call = () =>
        this.#exports.tokenize(this.#engine, address, sizeBytes, flags, tokens, capacity);
      let status = call();
      if (status === layout.E_FULL) {
        capacity = this.#heap.number(0);
        tokens = passed.room(capacity * 4);
        status = call();
      }
      this.#check(status);
      return this.#heap.readInts(tokens, this.#heap.number(0));
    });
  }

  /**
   * @param {ArrayLike<number>} tokens
   * @param {{whole: boolean, special: boolean}} options
   * @returns {string}
   */
  detokenize(tokens, { whole, special }) {
    return this.#with((passed) => {
      const room = unsigned(this.#exports.detokenize_bytes_max(this.#engine, tokens.length));
      const out = passed.room(room);
      const ids = passed.ints(tokens);
      const flags = [Number(whole), Number(special)];
      this.#check(this.#exports.detokenize(this.#engine, ids, tokens.length, ...flags, out));
      return this.#heap.readText(out, this.#heap.number(0));
    });
  }

  /** @param {number} token @returns {Uint8Array} its bytes, which may end within a character */
  tokenBytes(token) {
    return this.#with((passed) => {
      const scratch = passed.room(unsigned(this.#exports.detokenize_bytes_max(this.#engine, 1)));
      this.#check(this.#exports.token_piece(this.#engine, token, scratch));
      return this.#heap.read(...this.#heap.array);
    });
  }

  // ---- conversations ----

  /** @param {string} source Jinja, or the name of a template that the engine knows */
  setChatTemplate(source) {
    this.#with((passed) => {
      this.#check(this.#exports.chat_set_template(this.#engine, ...passed.text(source)));
    });
  }

  /** @param {import('./engine_records.js').NativeChat} chat @returns {string} */
  renderChat(chat) {
    return this.#with((passed) => {
      this.#check(this.#exports.chat_render(this.#engine, passChat(chat, passed)));
      return this.#heap.readText(...this.#heap.array);
    });
  }

  /** @param {import('./engine_records.js').NativeChat} chat @returns {Int32Array} */
  tokenizeChat(chat) {
    return this.#with((passed) => {
      this.#check(this.#exports.chat_tokenize(this.#engine, passChat(chat, passed)));
      return this.#heap.readInts(...this.#heap.array);
    });
  }

  // ---- requests ----

  /**
   * @param {NativeRequest} request
   * @returns {boolean} whether the grammar module must be loaded before it is submitted
   */
  lacks({ grammar, healing, conversation }) {
    const isLimited = grammar !== undefined || healing === true || conversation?.toolChoice;
    return Boolean(isLimited) && this.parts.grammar.isLacking();
  }

  /** @returns {Promise<void>} settles when the grammar module is loaded */
  loadGrammarPart() {
    return this.parts.grammar.load();
  }

  /**
   * @param {NativeRequest} request
   * @returns {number} the number of its first completion; 0 if its grammar is still being compiled,
   * which takes a few milliseconds in each call
   */
  submit(request) {
    if (this.lacks(request))
      throw new WickError('WASM', 'grammarWasm: grammar module is not loaded');
    return this.#with((passed) => {
      const words = requestWords(request, passed, this.adapters);
      const record = passed.record(words, layout.REQUEST_KINDS);
      const id = this.#exports.request_submit(this.#engine, record);
      return id === 0 && this.#heap.number(0) !== 0 ? 0 : this.#idOf(id);
    });
  }

  /** @param {number} id */
  cancel(id) {
    this.#exports.request_cancel(this.#engine, id);
  }

  /** @param {number} id @param {boolean} isPaused steps skip paused requests */
  pause(id, isPaused) {
    this.#exports.request_pause(this.#engine, id, Number(isPaused));
  }

  /**
   * @param {number} id a request that is waiting for its hook
   * @returns {{logits: Float32Array, tokens: Int32Array}} copies
   */
  requestLogits(id) {
    this.#check(this.#exports.request_logits(this.#engine, id));
    const { logits, vocab, tokens, count } = this.#heap.results(layout.ASKED);
    return {
      logits: new Float32Array(this.#heap.readInts(logits, vocab).buffer),
      tokens: this.#heap.readInts(tokens, count),
    };
  }

  /** @param {number} id @param {Float32Array} logits from which its next token is sampled */
  answerLogits(id, logits) {
    this.#check(this.#exports.request_logits(this.#engine, id));
    const { buffer, byteOffset, byteLength } = logits;
    const { logits: address } = this.#heap.results(layout.ASKED);
    this.#heap.write(address, new Uint8Array(buffer, byteOffset, byteLength));
    this.#exports.request_go_on(this.#engine, id);
  }

  /** @returns {number} the number of passes that have begun */
  passes() {
    return this.#exports.passes(this.#engine);
  }

  /** @returns {any} the object of wick_stats_json (include/wick.h) */
  stats() {
    return this.#json(this.#exports.stats_json);
  }

  /** @returns {any} the object of wick_pages_json (include/wick.h), without the map of pages */
  kvStats() {
    return this.#json(this.#exports.kv_json, [0]);
  }

  /** @param {number[]} tokens of a prompt @returns {number[]} its cached pages, the last one first */
  findPages(tokens) {
    return this.#with((passed) =>
      this.#json(this.#exports.kv_find, [passed.ints(tokens), tokens.length]),
    );
  }

  // ---- embeddings ----

  /** @param {import('./engine_records.js').NativeEmbed} request */
  embedBegin(request) {
    this.#with((passed) => {
      const words = passed.record(embedWords(request, passed, this.adapters), layout.EMBED_KINDS);
      this.#check(this.#exports.embed_begin(this.#engine, words));
    });
  }

  /** @param {number} budgetUs @returns {number} STEP_* */
  embedStep(budgetUs) {
    this.#check(this.#exports.embed_step(this.#engine, budgetUs));
    return this.#heap.number(0);
  }

  /** @param {number} index of a text, once all steps have run @returns {Embedded} */
  embedded(index) {
    const address = unsigned(this.#exports.embed_get(this.#engine, index));
    const { rows, width, tokens } = this.#heap.results(layout.VECTORS);
    const bytes = this.#heap.read(address, rows * width * 4);
    return { vector: new Float32Array(bytes.buffer), tokens };
  }

  embedEnd() {
    this.#exports.embed_end(this.#engine);
  }

  // ---- calls that are described by a NativeCall ----

  /**
   * @param {NativeCall} call
   * @param {any[]} args the arguments of the call
   * @returns {unknown} the result of the call
   */
  call({ native, takes, gives }, args) {
    const run = this.#exports[native];
    return this.#with((passed) => {
      const values = takes.flatMap((kind, index) => valuesOf(kind, args[index], passed));
      if (gives === 'json') return this.#json(run, values);
      const result = run(this.#engine, ...values);
      if (gives === 'session') return this.#idOf(result);
      this.#check(result);
      if (!gives) return undefined;
      return Array.from(this.#heap.readInts(...this.#heap.array));
    });
  }

  /** @param {number} id of a request or a session, 0 after a failure */
  #idOf(id) {
    if (id === 0) throw this.#lastError();
    return id >>> 0;
  }

  // ---- saved state: withExtras calls these ----

  /**
   * @param {number} session 0: the prefix cache
   * @param {{kType: KvType, vType: KvType} | undefined} [packed] KV types of a saved session; the engine's
   * own by default
   * @returns {Uint8Array<ArrayBuffer>}
   */
  saveState(session, packed) {
    const types = packed ? [kvTypes[packed.kType], kvTypes[packed.vType]] : [-1, -1];
    this.#check(this.#exports.state_bytes(this.#engine, session, ...types));
    return this.#with(() => {
      this.#state.begin(new Uint8Array(this.#heap.number(0))); // may throw if memory is full
      const status = this.#exports.state_save(this.#engine, session, ...types);
      const bytes = this.#state.end();
      this.#check(status);
      return bytes;
    });
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes @returns {{session: number, entries: number}} */
  restoreState(bytes) {
    this.#state.begin(bytes);
    const status = this.#exports.state_load(this.#engine, bytes.byteLength);
    this.#state.end();
    this.#check(status, 'The saved state was rejected');
    return this.#heap.results(layout.STATE);
  }

  // ---- steps ----

  /** @param {number} budgetUs @returns {number} STEP_* */
  step(budgetUs) {
    return this.#exports.step(this.#engine, budgetUs);
  }

  /**
   * Runs a step with a given amount of work, for hosts whose clock does not advance.
   * @param {number} units of work: layers and blocks of logits
   * @returns {number} STEP_*
   */
  stepUnits(units) {
    return this.#exports.step_units(this.#engine, units);
  }

  /** @returns {import('./event_records.js').EngineEvent[]} */
  takeEvents() {
    const address = this.#exports.events_take(this.#engine);
    const sizeBytes = this.#heap.number(0);
    return sizeBytes === 0 ? [] : decodeEvents(this.#heap.read(address, sizeBytes));
  }
}

/**
 * @param {NativeCall['takes'][number]} kind
 * @param {any} value
 * @param {Passed} passed
 * @returns {number[]} the arguments to pass for it: text becomes an address and a size
 */
function valuesOf(kind, value, passed) {
  if (kind === 'number') return [value];
  if (kind === 'flag') return [value ? 1 : 0];
  return passed.text(String(value ?? ''));
}

/** @param {Heap} heap @param {number} sizeBytes */
function noRoom(heap, sizeBytes) {
  const text = `linear memory: cannot allocate ${sizeBytes} bytes in addition to ${heap.sizeBytes}`;
  return new WickError('NOMEM', text);
}

/** @param {Heap} heap @param {string} [context] */
function errorOf(heap, context) {
  const { status, subject, offset, numbers, message } = heap.lastError();
  const code = codeOfStatus(status);
  const named = nameOption(message, subject);
  const text = context ? `${context}: ${named}` : named;
  const [option, about] = [optionOf(subject), subjectName(subject)];
  return new WickError(code, text, {
    status: `WICK_E_${code}`,
    ...{ offset, option, numbers, subject: about },
  });
}

/**
 * @param {Heap} heap
 * @param {import('./wasm_module.js').Exports} exports
 * @param {NativeConfig} config
 * @returns {number} the engine's address
 */
function createEngine(heap, exports, config) {
  const passed = new Passed(heap);
  const record = passed.record(configWords(config, passed), layout.CONFIG_KINDS);
  const engine = unsigned(exports.engine_create(record));
  passed.free();
  if (engine === 0) throw errorOf(heap);
  return engine;
}
