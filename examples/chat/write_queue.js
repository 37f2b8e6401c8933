// examples/chat/write_queue.js — runs the writes of this tab one after the other. A failed write,
// for example on a full disk, stays first in the queue and is retried, so nothing is lost while the
// page is open.

/** @import { Store } from './store.js' */
/** @typedef {(store: Store) => Promise<unknown>} Write */
/** @typedef {{write: Write, key?: string, settle: () => void}} Queued */

const AGAIN_MS = 5000;

export class Keeper {
  /** @type {Store | undefined} */
  #store;
  /** @type {Queued[]} */
  #queue = [];
  #isWriting = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #later;
  /** @type {(error: unknown) => void} */
  #onTrouble = () => {};

  /** @returns {Store} */
  get store() {
    if (!this.#store) throw new Error('the store is not open yet');
    return this.#store;
  }

  /** @param {Store} store the new store */
  use(store) {
    this.#store = store;
    this.#run();
  }

  /**
   * @param {(error: unknown) => void} listener receives the reason why writing fails, and
   * `undefined` once it works again
   */
  onTrouble(listener) {
    this.#onTrouble = listener;
  }

  /** The number of waiting writes. */
  get waiting() {
    return this.#queue.length;
  }

  /**
   * @param {Write} write
   * @param {string} [key]
   * @returns {Promise<void>} settles when the record is stored, or writing fails
   */
  add(write, key) {
    return new Promise((settle) => {
      this.#queue.push({ write, key, settle });
      this.#run();
    });
  }

  /**
   * Adds a write that supersedes the waiting ones with its key. It is queued after all waiting
   * ones, because one of them may write the same record.
   * @param {string} key
   * @param {Write} write
   */
  replace(key, write) {
    this.forget(key);
    this.add(write, key);
  }

  /** @param {string} key whose waiting writes are dropped */
  forget(key) {
    const first = this.#isWriting ? 1 : 0;
    this.#queue = this.#queue.filter((one, index) => index < first || one.key !== key);
  }

  /** Retries the write that failed. */
  retry() {
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#run();
  }

  /** @returns {Promise<void>} a promise that settles when no write is waiting, except for storage space */
  untilIdle() {
    return this.add(async () => {});
  }

  async #run() {
    if (this.#later) for (const { settle } of this.#queue) settle(); // writes that wait for storage space do not count
    if (this.#isWriting || this.#later || !this.#store) return;
    this.#isWriting = true;
    for (let [next] = this.#queue; next && !this.#later; [next] = this.#queue) {
      try {
        await next.write(this.#store);
        this.#queue.shift();
        this.#onTrouble(undefined);
      } catch (error) {
        this.#later = setTimeout(() => this.retry(), AGAIN_MS);
        this.#onTrouble(error);
      }
      next.settle();
    }
    this.#isWriting = false;
    if (this.#later) this.#run();
  }
}

/** The write queue of this tab. */
export const keeper = new Keeper();
