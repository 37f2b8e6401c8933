// js/engine.js — the package's face: createEngine starts workers and loads a model, an Engine passes
// calls on to them. The thread that calls never computes.

import { beamSearch } from './beam.js';
import { bestOf } from './best.js';
import { ChatCompletions, messagesOf } from './chat.js';
import { abortError, throwIfAborted, WickError } from './errors.js';
import { defaultThreads, detectSimd, hasSharedMemory, mostThreads } from './features.js';
import { Generation, readerOf, readersOf } from './generation.js';
import { infoOf, kvStatsOf, prometheusOf, statsOf } from './info.js';
import { checkNames } from './known.js';
import { Link } from './link.js';
import { TOKENIZE_ADD_SPECIAL, TOKENIZE_PARSE_SPECIAL } from './native.js';
import {
  argumentError,
  checkCallback,
  checkCompletions,
  checkEngineNames,
  checkThreads,
  configOf,
  draftOf,
  promptOf,
  settingsOf,
  sharedNameOf,
  shown,
  sourceOf,
  tokensOf,
} from './options.js';
import { loadState, Session, saveState } from './session.js';
import { onAbort } from './signals.js';
import { canShare, TabThread } from './tabs.js';
import { compileModule, isThreaded } from './wasm.js';

/** @typedef {import('./index.js').EngineOptions} EngineOptions */
/** @typedef {import('./index.js').GenerateOptions} GenerateOptions */

/** Bundlers look for exactly these expressions. @type {Record<string, () => URL>} */
const moduleUrls = {
  'simd128-single': () => new URL('./wasm/wick-simd128-single.wasm', import.meta.url),
  'simd128-threads': () => new URL('./wasm/wick-simd128-threads.wasm', import.meta.url),
  'relaxed-single': () => new URL('./wasm/wick-relaxed-single.wasm', import.meta.url),
  'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads.wasm', import.meta.url),
};

/** Compiled modules of the package's own files: a second engine needs not compile again. */
const compiled = /** @type {Map<string, Promise<WebAssembly.Module>>} */ (new Map());

/** @param {string} build */
function ownModule(build) {
  const found = compiled.get(build);
  if (found) return found;
  const module = compileModule(moduleUrls[build]());
  compiled.set(build, module);
  module.catch(() => compiled.delete(build));
  return module;
}

/**
 * @param {EngineOptions['wasm']} option
 * @param {number} threads
 * @returns {Promise<WebAssembly.Module>}
 */
async function findModule(option, threads) {
  const build = `${detectSimd()}-${threads > 1 ? 'threads' : 'single'}`;
  if (option === undefined || option === null) return ownModule(build);
  if (typeof option === 'string' || option instanceof URL) {
    const folder = String(option);
    return compileModule(folder.endsWith('/') ? `${folder}wick-${build}.wasm` : folder);
  }
  return compileModule(option);
}

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
    `wick-llm: ${threads} threads are too many for the processors here, ${most} are used`,
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
  checkCallback('onProgress', options.onProgress);
  checkCallback('onLead', options.onLead);
  throwIfAborted(signal);
  const wanted = chooseThreads(options);
  const config = configOf(options, wanted);
  const from = sourceOf(options);
  const shared = sharedNameOf(options, config, from.description);
  /** @type {(error: unknown) => void} */
  let giveUp = () => {};
  const aborted = new Promise((_, fail) => {
    giveUp = fail;
  });
  const link = new Link((progress) => {
    try {
      if (!signal?.aborted) options.onProgress?.(progress);
    } catch (error) {
      giveUp(error);
    }
  });
  const stop = onAbort(signal, () => giveUp(abortError(signal?.reason)));
  try {
    const start = (/** @type {Link} */ own) => startEngine(own, options, config, from);
    const load = async () => {
      if (shared === undefined) return start(link);
      const isPossible = await canShare();
      link.check(); // it may have been given up meanwhile
      if (!isPossible) return start(link);
      return link.share(
        (onMessage) => new TabThread(shared, start, onMessage),
        // what it throws is the page's, and no call's
        ({ sharing }) => sharing === 'leader' && queueMicrotask(() => options.onLead?.()),
      );
    };
    return new Engine(link, infoOf(await Promise.race([load(), aborted])));
  } catch (error) {
    const closing = link.close();
    if (!signal?.aborted) await closing;
    throw error;
  } finally {
    stop();
  }
}

/**
 * @param {Link} link
 * @param {EngineOptions} options
 * @param {import('./records.js').NativeConfig} config
 * @param {ReturnType<typeof sourceOf>} from
 * @returns {Promise<object>}
 */
async function startEngine(link, options, config, from) {
  link.startWorker(options.worker);
  try {
    return await loadEngine(link, options, config, from);
  } catch (error) {
    const isRefused = error instanceof WickError && error.code === 'NO_SHARED_MEMORY';
    if (!isRefused) throw error;
    // phones: less can be reserved than what helpers would need
    return loadEngine(link, options, { ...config, threads: 1 }, from);
  }
}

/** @type {typeof startEngine} */
async function loadEngine(link, options, config, { description, source }) {
  const module = await findModule(options.wasm, config.threads);
  link.check();
  const threads = isThreaded(module) ? config.threads : 1;
  const message = {
    type: /** @type {const} */ ('init'),
    module,
    config: { ...config, threads },
    source: description,
    draft: options.draft && draftOf(options.draft),
    chatTemplate: options.chatTemplate,
    isEager: options.eager === true,
  };
  return link.init(message, source);
}

export class Engine {
  #link;
  #info;

  /** @param {Link} link @param {ReturnType<typeof infoOf>} info */
  constructor(link, info) {
    this.#link = link;
    this.#info = info;
    this.chat = {
      completions: new ChatCompletions(link, info.name ?? info.architecture ?? 'model'),
    };
  }

  /**
   * @param {string | ArrayLike<number>} prompt
   * @param {GenerateOptions} [options]
   * @returns {Generation}
   */
  generate(prompt, options = {}) {
    const message = {
      input: { prompt: promptOf(prompt) },
      settings: settingsOf(options),
      wantsTokens: options.onToken !== undefined,
    };
    return new Generation(readerOf(this.#link, message, options));
  }

  /**
   * Several continuations of one prompt, which is read once. They run together; each is read for
   * itself, and all of them start when the first one is.
   * @param {string | ArrayLike<number>} prompt
   * @param {GenerateOptions & {n?: number}} [options] `seed` is the first one's, the others follow
   * @returns {Generation[]}
   */
  generateMany(prompt, { n = 2, ...options } = {}) {
    const message = {
      input: { prompt: promptOf(prompt) },
      settings: settingsOf(options),
      wantsTokens: options.onToken !== undefined,
    };
    const readers = readersOf(this.#link, message, options, checkCompletions('n', n));
    return readers.map((reader) => new Generation(reader));
  }

  /**
   * The most probable continuation that a beam search finds.
   * @param {string | ArrayLike<number>} prompt
   * @param {import('./index.js').BeamSearchOptions} [options]
   */
  async beamSearch(prompt, options = {}) {
    return beamSearch(this, promptOf(prompt), options);
  }

  /**
   * Several continuations, by how likely the model finds them.
   * @param {string | ArrayLike<number>} prompt
   * @param {GenerateOptions & {n?: number}} [options]
   */
  async bestOf(prompt, options = {}) {
    return bestOf(this.#link, prompt, options);
  }

  /**
   * @param {string} text
   * @param {{addSpecial?: boolean, parseSpecial?: boolean, signal?: AbortSignal | null}} [options]
   * @returns {Promise<number[]>}
   */
  async tokenize(text, options = {}) {
    checkNames(options, ['addSpecial', 'parseSpecial', 'signal']);
    const { addSpecial = true, parseSpecial = true, signal } = options;
    if (typeof text !== 'string') throw argumentError('tokenize wants a string');
    const flags =
      (addSpecial ? TOKENIZE_ADD_SPECIAL : 0) | (parseSpecial ? TOKENIZE_PARSE_SPECIAL : 0);
    return this.#link.call('tokenize', [text, flags], signal);
  }

  /**
   * @param {ArrayLike<number>} tokens
   * @param {{special?: boolean, signal?: AbortSignal | null}} [options]
   * @returns {Promise<string>}
   */
  async detokenize(tokens, options = {}) {
    const { special = false, signal } = checkNames(options, ['special', 'signal']);
    return this.#link.call('detokenize', [tokensOf(tokens), special], signal);
  }

  /**
   * @param {string} text
   * @param {Parameters<Engine['tokenize']>[1]} [options]
   * @returns {Promise<number>}
   */
  async countTokens(text, options) {
    return (await this.tokenize(text, options)).length;
  }

  /**
   * @param {unknown} messages
   * @param {{addGenerationPrompt?: boolean, variables?: Record<string, unknown>,
   *   signal?: AbortSignal | null}} [options]
   * @returns {Promise<string>}
   */
  async applyTemplate(messages, options = {}) {
    checkNames(options, ['addGenerationPrompt', 'variables', 'signal']);
    const { addGenerationPrompt = true, variables, signal } = options;
    const given = { ...variables, add_generation_prompt: addGenerationPrompt };
    return this.#link.call('applyTemplate', [messagesOf(messages), given], signal);
  }

  /** What the model is and what it takes, memory and threads as they are now. */
  async info() {
    this.#info = infoOf(await this.#link.call('info', []));
    return this.#info;
  }

  /** The file's metadata and tensors (long values shortened), as `wick inspect --json` prints them. */
  async inspect() {
    return this.#link.call('inspect', []);
  }

  /**
   * What the ops of the forward passes took so far.
   * @param {{format?: 'json' | 'prometheus', reset?: boolean, signal?: AbortSignal | null}} [options]
   * @returns {Promise<any>}
   */
  async metrics(options = {}) {
    checkNames(options, ['format', 'reset', 'signal']);
    const { format = 'json', reset = false, signal } = options;
    return this.#link.call('metrics', [format, reset], signal);
  }

  /**
   * @param {{signal?: AbortSignal | null, salt?: string | null | undefined}} [options]
   * @returns {Promise<Session>} an empty text
   */
  async createSession(options = {}) {
    return Session.create(this.#link, checkNames(options, ['signal', 'salt']));
  }

  /**
   * The prefix cache, to be loaded again by an engine with the same model.
   * @param {string} [to] a file's path (Node, Deno) or a name in the origin's private file system
   * @returns {Promise<Uint8Array<ArrayBuffer>>}
   */
  async saveState(to) {
    return saveState(this.#link, 0, to);
  }

  /**
   * What saveState or a session's save has written.
   * @param {string | Blob | ArrayBuffer | Uint8Array} from a path or name as above, or the bytes
   * @returns {Promise<{session: Session | undefined, entries: number}>}
   */
  async loadState(from) {
    return loadState(this.#link, from);
  }

  /**
   * The pages of keys and values, who has them, and what is running.
   * @param {{map?: boolean}} [options] with a letter a page
   */
  async kvStats(options = {}) {
    const { map = false } = checkNames(options, ['map']);
    return kvStatsOf(await this.#link.call('kvStats', [map === true]));
  }

  /**
   * Who runs, who waits, and what came of those before.
   * @param {{format?: 'json' | 'prometheus'}} [options]
   * @returns {Promise<any>}
   */
  async stats(options = {}) {
    const { format = 'json' } = checkNames(options, ['format']);
    if (format !== 'json' && format !== 'prometheus') {
      throw argumentError(`stats are json or prometheus, not ${shown(format)}`);
    }
    const stats = statsOf(await this.#link.call('stats', []));
    return format === 'json' ? stats : prometheusOf(stats);
  }

  async close() {
    await this.#link.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}
