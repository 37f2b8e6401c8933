// examples/chat/book_reading.js — reads a book in steps and stores its progress from time to time.
// Reading resumes after a pause, a reload or a crash, and no stored part is read twice.

import { WickError } from 'wick-llm';
import { READING } from './book.js';
import { loadReading } from './book_open.js';
import { keepReading, keyOf, readBook } from './book_store.js';
import { fingerprintOf, measureBook, messagesOfBook, tokensOfBook } from './book_text.js';
import { formatBytes } from './dom.js';
import { keepJson, readList } from './local_storage.js';
import { isFull, offerRoom, withRoom } from './storage_quota.js';

/** @import { Engine, Session } from 'wick-llm' */
/** @import { Kind } from './book_store.js' */

const STEP_TOKENS = 512;
/** The state is stored at this interval, or less often if storing takes more than a tenth of the time. */
const STORED_MS = 10_000;
const STORING_SHARE = 10;
/** The sizes of these types relative to f16. */
const SHARES = { q8: 9 / 16, q4: 5 / 16 };

/**
 * `ms` is the time for reading `done` tokens; `begun` of them were stored before, and took `msBefore`.
 * @typedef {{done: number, total: number, ms: number, begun: number, msBefore: number, stored: number,
 *   state: 'reading' | 'paused' | 'read' | 'failed', problem: string}} Progress
 */

// ---- resuming after a reload ----

/** @returns {string[]} keys of book and model (keyOf) */
export function wantedReadings() {
  return readList(READING).filter((one) => typeof one === 'string');
}

/** @param {string} key @param {boolean} isWanted */
function remember(key, isWanted) {
  const others = wantedReadings().filter((one) => one !== key);
  const all = isWanted ? [...others, key] : others;
  keepJson(READING, all.length > 0 ? all : undefined);
}

// ---- one tab at a time ----

/**
 * @param {string} name
 * @param {() => Promise<void>} work
 * @param {LockOptions} how
 * @returns {Promise<boolean>} false if another tab is doing it
 */
async function alone(name, work, how) {
  if (!navigator.locks) {
    await work(); // without locks, two tabs may store the same state
    return true;
  }
  return navigator.locks.request(name, how, async (lock) => {
    if (lock) await work();
    return lock !== null;
  });
}

// ---- the size of its state ----

/**
 * @param {Engine} engine
 * @param {number} tokens
 * @param {Kind} kind
 * @returns {Promise<number>} the size in bytes, for a model that has only attention
 */
export async function sizeOf(engine, tokens, kind) {
  const { pageBytes, pageTokens } = await engine.kvStats();
  return (tokens * pageBytes * SHARES[kind]) / pageTokens;
}

/**
 * @param {number} size
 * @returns {Promise<string>} an empty string if there is space, or if the browser does not report it
 */
export async function lackOfRoom(size) {
  const found = await navigator.storage?.estimate?.().catch(() => undefined);
  const { usage = 0, quota = 0 } = found ?? {};
  const free = quota - usage;
  if (quota === 0 || free > size * 1.1) return '';
  return `It takes about ${formatBytes(size)}, and this browser has ${formatBytes(Math.max(0, free))} free.`;
}

// ---- reading ----

/** A book that is being read, or was read. */
export class BookReading {
  /** @type {Progress} */
  progress = {
    ...{ done: 0, total: 0, ms: 0, begun: 0, msBefore: 0, stored: 0 },
    ...{ state: 'reading', problem: '' },
  };
  #controller = new AbortController();
  #isPaused = false;
  /** The fingerprint of the model. */
  #fingerprint = '';
  /** The time of the last save. */
  #storedAt = 0;
  #storingMs = 0;
  /** The session whose state was too large for the storage. @type {Session | undefined} */
  #left;
  /** @type {() => void} */
  #tell;

  /**
   * @param {Engine} engine
   * @param {string} model its name
   * @param {string} book
   * @param {Kind} kind
   * @param {() => void} tell called after each step of progress
   */
  constructor(engine, model, book, kind, tell) {
    this.engine = engine;
    this.model = model;
    this.book = book;
    this.kind = kind;
    this.#tell = tell;
  }

  /** The key in the list of books to resume after a reload. */
  get #key() {
    return keyOf(this.book, this.#fingerprint);
  }

  /** Stores the progress and pauses until the book is needed again. */
  pause() {
    this.#isPaused = true;
    this.#controller.abort();
    remember(this.#key, false);
  }

  /** @param {Partial<Progress>} change */
  #now(change) {
    Object.assign(this.progress, change);
    this.#tell();
  }

  /**
   * @returns {Promise<void>} a promise that settles when the book is read, paused, or cannot
   * continue
   */
  async run() {
    try {
      this.#fingerprint = await fingerprintOf(this.engine);
      if (this.#isPaused) return;
      remember(this.#key, true);
      const name = `wick-book ${this.#key}`;
      if (await alone(name, () => this.#read(), { ifAvailable: true })) return;
      this.#now({ state: 'paused', problem: 'Another tab is reading it.' });
      await alone(name, () => this.#takeOver(), { signal: this.#controller.signal });
    } catch (error) {
      if (/** @type {Error} */ (error).name !== 'AbortError') this.#fail(error);
    }
  }

  /**
   * Continues after another tab, which has read the book, was paused or was closed (such as the page
   * before a reload).
   */
  async #takeOver() {
    this.#now({ problem: '' });
    if (this.#isPaused || !wantedReadings().includes(this.#key)) return;
    this.#now({ state: 'reading' });
    await this.#read();
  }

  /** @param {unknown} error */
  #fail(error) {
    const { code, message } = /** @type {WickError} */ (error);
    const isGone = error instanceof WickError && ['CLOSED', 'WORKER_CRASHED'].includes(code);
    if (!isGone) remember(this.#key, false);
    const problem = isGone ? 'Its model was unloaded.' : `It could not be read: ${message}`;
    this.#now({ state: isGone ? 'paused' : 'failed', problem });
  }

  async #read() {
    const found = await readBook(this.book);
    if (!found) throw new Error('it was deleted');
    const { title } = found.book;
    const messages = messagesOfBook(title, found.text);
    const { tokens: count, most } = await measureBook(this.engine, title, found.text);
    if (count > most) throw new Error(`it is ${count - most} tokens too long`);
    const wanted = await tokensOfBook(this.engine, messages);
    const session = this.#left ?? (await this.#begin(wanted));
    this.#left = undefined;
    try {
      const isStored = await this.#steps(session, wanted);
      if (!isStored) this.#left = session;
    } finally {
      if (this.#left !== session) await session.close().catch(() => {}); // already closed with the engine
    }
  }

  /** @param {number[]} wanted @returns {Promise<Session>} a session with the stored part */
  async #begin(wanted) {
    const known = await loadReading(this.engine, this.#key, wanted);
    const { tokens: begun, ms } = known?.reading ?? { tokens: 0, ms: 0 };
    this.#now({ done: begun, begun, stored: begun, ms, msBefore: ms, total: wanted.length });
    return known?.session ?? this.engine.createSession();
  }

  /**
   * @param {Session} session
   * @param {number[]} wanted
   * @returns {Promise<boolean>} whether everything that was read is stored
   */
  async #steps(session, wanted) {
    this.#storedAt = performance.now();
    while (this.progress.done < wanted.length && !this.#isPaused) {
      await this.#step(session, wanted);
      const since = performance.now() - this.#storedAt;
      const isDue = since > Math.max(STORED_MS, this.#storingMs * STORING_SHARE);
      if (isDue && this.progress.done < wanted.length) await this.#store(session);
    }
    const isRead = this.progress.done === wanted.length;
    const isStored = await this.#store(session);
    if (isRead && isStored) remember(this.#key, false);
    this.#now({ state: !isStored ? 'failed' : isRead ? 'read' : 'paused' });
    return isStored;
  }

  /** Stops the reading, for example because its engine closes. */
  close() {
    this.#isPaused = true;
    this.#controller.abort();
    this.#left?.close().catch(() => {}); // already closed with the engine
    this.#left = undefined;
  }

  /** Reads the next part of the book. @param {Session} session @param {number[]} wanted */
  async #step(session, wanted) {
    const { done, ms } = this.progress;
    const began = performance.now();
    const show = (/** @type {{done: number, total: number}} */ part) => {
      const now = Math.max(done, Math.min(wanted.length, part.done));
      const spent = performance.now() - began;
      this.#now({ done: now, ms: ms + spent });
    };
    try {
      const { signal } = this.#controller;
      const step = wanted.slice(done, done + STEP_TOKENS);
      await session.append(step, { signal, onPrefill: show });
      this.#now({ done: done + step.length, ms: ms + performance.now() - began });
    } catch (error) {
      this.#now({ done, ms });
      if (/** @type {Error} */ (error).name !== 'AbortError') throw error;
      // the session contains no part of this step, or all of it if the pause was requested at its
      // end
      this.#now({ done: (await session.tokens()).length });
    }
  }

  /** @param {Session} session @returns {Promise<boolean>} */
  async #store(session) {
    const { done, stored, total, ms } = this.progress;
    if (done <= stored) return done === stored;
    const began = performance.now();
    const bytes = await session.save({ kvType: this.kind });
    const known = { book: this.book, fingerprint: this.#fingerprint, model: this.model };
    const reading = { ...known, kvType: this.kind, tokens: done, total, ms };
    try {
      await withRoom(() => keepReading(reading, bytes));
      this.#now({ stored: done, problem: '' });
      return true;
    } catch (error) {
      this.#sayFull(error, bytes.byteLength);
      return false;
    } finally {
      this.#storingMs = performance.now() - began;
      this.#storedAt = performance.now();
    }
  }

  /**
   * Reports a failure to store the state. The earlier stored state is kept.
   * @param {unknown} error
   * @param {number} size
   */
  #sayFull(error, size) {
    const why = isFull(error)
      ? `This browser's storage is full: ${formatBytes(size)} of its saved state could not be stored.`
      : `Its saved state could not be stored: ${/** @type {Error} */ (error).message}`;
    this.#now({ problem: why });
    if (isFull(error)) offerRoom(`${why} The text and the part that was stored before are kept.`);
  }
}
