// js/page/session.js — a session: text that continues from call to call. The engine keeps its KV cache, so
// nothing is computed twice. Forks share the cache.

import { unlessAborted } from '../base/abort_signals.js';
import { bytesOfBlob } from '../base/blob_bytes.js';
import { argumentError, throwIfAborted, WickError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { keepBytes, readBytes } from '../storage/saved_states.js';
import { kvTypesOf } from './engine_options.js';
import { Generation } from './generation.js';
import { checkCount } from './option_checks.js';
import { readerOf } from './piece_reader.js';
import { promptOf, saltOf, settingsOf } from './request_options.js';

/** @typedef {import('../index.js').Session} PublicSession whose method types apply here */
/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { GenerateOptions } from '../index.js' */

export class Session {
  #connection;
  #id;
  /** @type {Promise<void> | undefined} */
  #closing;

  /** @param {EngineConnection} connection @param {number} id the engine's number for the session */
  constructor(connection, id) {
    this.#connection = connection;
    this.#id = id;
  }

  /**
   * @param {EngineConnection} connection
   * @param {{signal?: AbortSignal | null, salt?: string | null | undefined}} options
   */
  static async create(connection, { signal, salt }) {
    throwIfAborted(signal);
    const made = connection
      .call('createSession', [saltOf(salt)])
      .then((id) => new Session(connection, id));
    return unlessAborted(made, signal, (session) => session.close());
  }

  /**
   * @param {unknown} session
   * @param {EngineConnection} connection the connection of the session's engine
   * @returns {number} the engine's number for the session
   */
  static numberOf(session, connection) {
    if (session instanceof Session && session.#connection === connection) return session.#id;
    throw argumentError('session must be a session of this engine');
  }

  /**
   * @param {string | ArrayLike<number>} prompt the continuation
   * @param {GenerateOptions} [options]
   * @returns {Generation}
   */
  prompt(prompt, options = {}) {
    if ((options.salt ?? undefined) !== undefined) {
      throw argumentError('salt: is set by createSession and cannot be changed later');
    }
    const message = {
      input: { prompt: promptOf(prompt, true) },
      settings: Object.assign(settingsOf(options), { session: this.#id }),
      wantsTokens: options.onToken !== undefined,
    };
    return new Generation(readerOf(this.#connection, message, options));
  }

  /** @type {PublicSession['append']} */
  async append(text, options = {}) {
    return this.#read(text, checkNames(options, ['signal', 'onPrefill']));
  }

  /**
   * @param {string | ArrayLike<number>} text
   * @param {Pick<GenerateOptions, 'signal' | 'onPrefill'>} options
   * @param {[first: number, last: number]} [drop] tokens to drop once all others are computed
   */
  async #read(text, options, drop) {
    const message = {
      input: { prompt: promptOf(text, true) },
      settings: Object.assign(settingsOf({}), { session: this.#id, prefillOnly: true, drop }),
      wantsTokens: false,
    };
    const reader = readerOf(this.#connection, message, options);
    while (await reader.next());
    const done = /** @type {import('../connection/messages.js').Done} */ (reader.done);
    return { tokens: done.promptTokens, cachedTokens: done.cachedTokens };
  }

  /** @type {PublicSession['fork']} */
  async fork() {
    return new Session(this.#connection, await this.#connection.call('forkSession', [this.#id]));
  }

  /** @type {PublicSession['truncate']} */
  async truncate(tokens) {
    await this.#connection.call('truncateSession', [this.#id, checkCount('tokens', tokens)]);
  }

  /**
   * Drops tokens from the middle. The tokens after them keep their KV entries, which depend on
   * the dropped ones. If these have not been computed, or their pages were evicted, the engine
   * computes them first.
   * @type {PublicSession['drop']}
   */
  async drop(first, last) {
    const range = [checkCount('first', first), checkCount('last', last)];
    if (first < last) await this.#read('', {}, [first, last]);
    else await this.#connection.call('dropFromSession', [this.#id, ...range]);
  }

  /** @type {PublicSession['tokens']} */
  async tokens() {
    return this.#connection.call('sessionTokens', [this.#id]);
  }

  /** @type {PublicSession['save']} */
  async save(how) {
    if (typeof how !== 'object' || how === null) return saveState(this.#connection, this.#id, how);
    const { to, kvType } = checkNames(how, ['to', 'kvType']);
    const packed = kvType === undefined || kvType === null ? undefined : kvTypesOf(kvType);
    return saveState(this.#connection, this.#id, to, packed);
  }

  /** Frees its pages. May be called more than once, even after the engine is closed. */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    try {
      if (!this.#connection.isEnded) await this.#connection.call('closeSession', [this.#id]);
    } catch (error) {
      const isGone = error instanceof WickError && error.code === 'LEADER_GONE';
      if (isGone || this.#connection.isEnded) return; // its pages were freed with the engine
      this.#closing = undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/**
 * @param {EngineConnection} connection
 * @param {number} session 0: the prefix cache
 * @param {string} [to] a file's path (Node, Deno) or a name in the origin's private file system
 * @param {ReturnType<typeof kvTypesOf>} [packed]
 */
export async function saveState(connection, session, to, packed) {
  /** @type {Uint8Array<ArrayBuffer>} */
  const bytes = await connection.call('saveState', [session, packed]);
  if (to !== undefined) await keepBytes(to, bytes, () => connection.call('keepFile', [to, bytes]));
  return bytes;
}

/**
 * @param {EngineConnection} connection
 * @param {string | Blob | ArrayBuffer | Uint8Array} from
 * @returns {Promise<{session: Session | undefined, entries: number}>}
 */
export async function loadState(connection, from) {
  connection.check();
  const bytes = typeof from === 'string' ? await readBytes(from) : await bytesOf(from);
  const { session, entries } = await connection.call('loadState', [bytes]);
  return { session: session === 0 ? undefined : new Session(connection, session), entries };
}

/** @param {Blob | ArrayBuffer | Uint8Array} from */
async function bytesOf(from) {
  if (from instanceof Blob) return new Uint8Array(await bytesOfBlob(from));
  if (from instanceof ArrayBuffer) return new Uint8Array(from);
  if (from instanceof Uint8Array) return from;
  throw argumentError('state must be a name, a Blob or bytes');
}
