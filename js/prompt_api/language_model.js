// js/prompt_api/language_model.js — implements LanguageModel of the Prompt API (webmachinelearning/prompt-api) with
// an engine.

import { Conversation } from './conversation.js';
import { domError, fromEngine } from './dom_errors.js';
import { CreateMonitor, ModelLoading } from './model_loading.js';
import { aborted, Operations } from './operations.js';
import { readOptions, samplingLimits } from './options.js';
import { takeMedia } from './prompt_media.js';
import { readConstraint, readPrompt } from './prompts.js';
import * as parts from './tool_parts.js';

/** @import { ModelSource as Source } from '../prompt-api.js' */
/** @typedef {ReturnType<Conversation['answer']>} Answer */

/** Only this file has this key, so no other code can construct sessions. */
const key = Symbol('LanguageModel');
const destroyed = () => domError('AbortError', 'The session was destroyed');

/** The number of pieces that a stream buffers before its prompt waits for the reader. */
const STREAM_PIECES = 16;

/**
 * @param {AbortSignal | undefined} signal
 * @returns a controller that aborts with the signal until they are disconnected
 */
function joined(signal) {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  return { controller, part: () => signal?.removeEventListener('abort', abort) };
}

/** The sampling settings of a session. @type {(session: Session) => Conversation['options']['sampling']} */
let samplingOf;

/** Copies media now: a canvas may change while the prompt waits. @param {Conversation} to @param {import('../index.js').ChatMessage[]} said */
function takenNow(to, said) {
  const taken = takeMedia(to.engine, said);
  taken.catch(() => {}); // the prompt may be abandoned before it is read
  return taken;
}

/** The state that sessions of all models share. */
class Session extends EventTarget {
  #conversation;
  #operations = new Operations();
  #isDestroyed = false;
  /** @type {((event: Event) => void) | null} */
  oncontextoverflow = null;
  /** @type {((event: Event) => void) | null} */
  onquotaoverflow = null;

  /** @param {symbol} given @param {Conversation} conversation */
  constructor(given, conversation) {
    if (given !== key) throw new TypeError('Illegal constructor: use LanguageModel.create()');
    super();
    this.#conversation = conversation;
  }

  get contextUsage() {
    return this.#conversation.usage;
  }

  get contextWindow() {
    return this.#conversation.window;
  }

  get inputUsage() {
    return this.contextUsage;
  }

  get inputQuota() {
    return this.contextWindow;
  }

  get samplingMode() {
    return this.#conversation.options.sampling.samplingMode;
  }

  static {
    samplingOf = (session) => session.#conversation.options.sampling;
  }

  get #isFirst() {
    return this.#conversation.isEmpty && this.#operations.count === 0;
  }

  /** @param {unknown} input @param {any} options @param {boolean} isFirst whether it may be a system prompt */
  #read(input, options, isFirst) {
    const { inputs } = this.#conversation.options;
    const said = readPrompt(input, { isFirst, mayPrefix: true, inputs });
    const { effort } =
      options.thinking === undefined ? this.#conversation.options : readOptions(options);
    const constraint = readConstraint(options);
    return { taken: takenNow(this.#conversation, said), effort, ...constraint };
  }

  /**
   * Drops old turns if necessary, reports dropped messages, and returns an answer. It counts as an
   * operation until it has been read.
   * @param {unknown} input
   * @param {any} options
   * @param {(piece: import('./conversation.js').Piece, signal: AbortSignal) => void | Promise<void>} take
   */
  async #ask(input, options, take) {
    if (this.#isDestroyed) throw destroyed();
    const { taken, ...how } = this.#read(input, options, this.#isFirst);
    await this.#operations.run(options.signal ?? undefined, async (signal) => {
      const said = await taken;
      signal.throwIfAborted();
      await this.#makeRoom(said, how.words, signal);
      for await (const piece of this.#conversation.answer(said, { ...how, signal })) {
        await take(piece, signal);
      }
    });
  }

  /** @param {import('../index.js').ChatMessage[]} said @param {string} words @param {AbortSignal} signal */
  async #makeRoom(said, words, signal) {
    if (!(await this.#conversation.makeRoom(said, words, signal))) return;
    for (const name of /** @type {const} */ (['contextoverflow', 'quotaoverflow'])) {
      const event = new Event(name);
      this.dispatchEvent(event);
      this[`on${name}`]?.(event);
    }
  }

  /** @param {unknown} input @param {any} [options] @returns {Promise<string | object[]>} */
  async prompt(input, options = {}) {
    let text = '';
    /** @type {object[]} */
    const calls = [];
    await this.#ask(input, options, (piece) => {
      if (typeof piece === 'string') text += piece;
      else calls.push({ type: 'tool-call', value: piece });
    });
    // the input is always an array of parts if calls are possible, so a page need not check its
    // type
    const { hasParts } = this.#conversation.options;
    if (calls.length === 0) return hasParts ? [{ type: 'text', value: text }] : text;
    return text === '' ? calls : [{ type: 'text', value: text }, ...calls];
  }

  /**
   * @param {unknown} input
   * @param {any} [options]
   * @returns {ReadableStream<any>} a stream; a slow reader pauses its prompt
   */
  promptStreaming(input, options = {}) {
    options.signal?.throwIfAborted();
    const leaving = joined(options.signal);
    const { signal } = leaving.controller;
    /** @type {(nothing?: undefined) => void} */
    let wake = () => {};
    /** @param {ReadableStreamDefaultController<unknown>} out */
    const start = async (out) => {
      /** @type {AbortSignal | undefined} */
      let watched;
      try {
        await this.#ask(input, { ...options, signal }, async (piece, own) => {
          out.enqueue(typeof piece === 'string' ? piece : { type: 'tool-call', value: piece });
          if (watched !== own) own.addEventListener('abort', () => wake());
          watched = own;
          while ((out.desiredSize ?? 1) <= 0 && !own.aborted) {
            await new Promise((settle) => {
              wake = settle;
            });
          }
          own.throwIfAborted();
        });
        if (!signal.aborted) out.close();
      } catch (error) {
        out.error(error);
      } finally {
        leaving.part();
      }
    };
    return new ReadableStream(
      {
        start: (out) => void start(out),
        pull: () => wake(),
        cancel: (reason) => leaving.controller.abort(reason),
      },
      { highWaterMark: STREAM_PIECES },
    );
  }

  /** @param {unknown} input @param {{signal?: AbortSignal}} [options] @returns {Promise<undefined>} */
  async append(input, { signal } = {}) {
    if (this.#isDestroyed) throw destroyed();
    const { inputs } = this.#conversation.options;
    const said = readPrompt(input, { isFirst: this.#isFirst, mayPrefix: false, inputs });
    const taken = takenNow(this.#conversation, said);
    await this.#operations.run(signal, async (own) => {
      const read = await taken;
      own.throwIfAborted();
      await this.#makeRoom(read, '', own);
      await this.#conversation.append(read, own);
    });
  }

  /** @param {unknown} input @param {any} [options] @returns {Promise<number>} */
  async measureContextUsage(input, options = {}) {
    if (this.#isDestroyed) throw destroyed();
    const { taken, words } = this.#read(input, options, true);
    options.signal?.throwIfAborted();
    try {
      return await this.#conversation.measure(await taken, words, options.signal);
    } catch (error) {
      throw fromEngine(error);
    }
  }

  /** @param {unknown} input @param {any} [options] */
  measureInputUsage(input, options) {
    return this.measureContextUsage(input, options);
  }

  /** @param {{signal?: AbortSignal}} [options] @returns {Promise<this>} */
  async clone({ signal } = {}) {
    if (this.#isDestroyed) throw destroyed();
    const made = await this.#operations.run(signal, async (own) => {
      const forked = this.#conversation.fork();
      try {
        return await Promise.race([forked, aborted(own)]);
      } catch (error) {
        forked.then((late) => late.close()).catch(() => {}); // no caller will receive it
        throw error;
      }
    });
    const Class = /** @type {any} */ (this.constructor);
    return new Class(key, made);
  }

  destroy() {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#operations.abort(destroyed());
    this.#conversation.close().catch(() => {}); // the engine has ended
  }
}

/**
 * @param {ModelLoading} loading
 * @param {any} options
 * @param {boolean} isExtension
 * @returns {Promise<Conversation>}
 */
async function open(loading, options, isExtension) {
  const { signal, monitor, initialPrompts } = options;
  const read = readOptions(options, isExtension);
  const { inputs, media } = read;
  const beginning = initialPrompts ?? [];
  if (!Array.isArray(beginning)) throw new TypeError('initialPrompts must be an array');
  const said = readPrompt(beginning, { isFirst: true, mayPrefix: false, inputs });
  signal?.throwIfAborted();
  const checkMedia = async () => {
    if (read.isSupported && (await loading.reads(media))) return;
    throw domError('NotSupportedError', 'The model does not read or write all expected types');
  };
  await checkMedia();
  const progress = new CreateMonitor();
  monitor?.(progress);
  return new Operations().run(signal, async (own) => {
    progress.tell(0);
    const loaded = loading.engine((share) => own.aborted || progress.tell(share));
    const engine = await Promise.race([loaded, aborted(own)]);
    await checkMedia();
    const begun = await takeMedia(engine, said);
    const { contextSize } = await engine.info();
    const session = await engine.createSession({ signal: own });
    const conversation = new Conversation(engine, session, read, contextSize);
    try {
      await conversation.begin(begun, own);
      own.throwIfAborted();
      progress.tell(1);
      await new Promise((settle) => setTimeout(settle)); // a listener may still abort after the end
      own.throwIfAborted();
    } catch (error) {
      await conversation.close();
      throw error;
    }
    return conversation;
  });
}

/**
 * @param {Source} source
 * @param {{extensions?: boolean}} [options] `extensions`: whether to include the members that
 * browsers reserve for extensions
 * @returns {any} the class LanguageModel, whose sessions share one engine
 */
export function defineLanguageModel(source, { extensions = false } = {}) {
  const loading = new ModelLoading(source);
  class LanguageModel extends Session {
    /** @param {any} [options] */
    static async availability(options) {
      const { isSupported, media } = readOptions(options, extensions);
      return isSupported ? loading.availability(media) : 'unavailable';
    }

    /** @param {any} [options] */
    static async create(options = {}) {
      const made = new LanguageModel(key, await open(loading, options, extensions));
      options.signal?.addEventListener('abort', () => made.destroy());
      return made;
    }
  }
  if (extensions) addExtensions(LanguageModel);
  return LanguageModel;
}

/** @param {any} Class */
function addExtensions(Class) {
  Class.params = async () => ({ ...samplingLimits });
  for (const name of /** @type {const} */ (['topK', 'temperature'])) {
    const get = /** @this {Session} */ function () {
      return samplingOf(this)[name];
    };
    Object.defineProperty(Class.prototype, name, { get, configurable: true });
  }
}

/**
 * Installs LanguageModel if the browser does not have it.
 * @param {Source} source
 * @param {{replace?: boolean, extensions?: boolean}} [options]
 * @returns {any} the class that is installed now
 */
export function installLanguageModel(source, { replace = false, extensions } = {}) {
  const scope = /** @type {any} */ (globalThis);
  if (scope.LanguageModel && !replace) return scope.LanguageModel;
  const all = { LanguageModel: defineLanguageModel(source, { extensions }), ...parts };
  for (const [name, value] of Object.entries(all)) {
    Object.defineProperty(scope, name, { value, configurable: true, writable: true });
  }
  return scope.LanguageModel;
}
