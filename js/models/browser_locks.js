// js/models/browser_locks.js — shared parts of the two browser backends: locks between tabs, the
// free space, and time limits for storage.

import { WickError } from '../base/errors.js';

/**
 * Returns the error for pages that cannot use the storage APIs: frames with an opaque origin have these
 * objects but may not use them.
 * @param {unknown} cause
 */
export const noStorage = (cause) =>
  new WickError(
    'NO_STORAGE',
    `storage: the browser does not store data for this page: ${cause}`,
    cause,
  );

/**
 * A browser that has not opened its storage after this time may never do so; even a slow disk is
 * faster.
 */
const OPEN_MS = 30_000;

/**
 * @template T
 * @param {Promise<T>} opening
 * @param {string} what the name of the storage that is being opened
 * @returns {Promise<T>} rejects if it has not settled in time
 */
export function openedInTime(opening, what) {
  return new Promise((settle, fail) => {
    const timer = setTimeout(() => {
      fail(noStorage(`${what} did not respond within ${OPEN_MS / 1000} seconds`));
    }, OPEN_MS);
    opening.then(settle, fail).finally(() => clearTimeout(timer));
  });
}

/** The parts that the two backends have in common. */
export class BrowserBackend {
  /**
   * @param {string} id
   * @param {{steal?: boolean}} [options]
   * @returns {Promise<import('./backends.js').Unlock | undefined>} undefined if another tab has it
   */
  tryLock(id, { steal = false } = {}) {
    const locks = globalThis.navigator?.locks;
    if (!locks) return Promise.resolve(async () => {}); // insecure pages have no locks
    return new Promise((settle, fail) => {
      const lost = new AbortController();
      /** @type {() => void} */
      let release = () => {};
      const held = new Promise((end) => {
        release = () => end(undefined);
      });
      const how = steal ? { steal } : { ifAvailable: true };
      const ended = locks.request(`wick-llm model ${id}`, how, (lock) => {
        if (lock === null) {
          settle(undefined);
          return undefined;
        }
        const unlock = async () => {
          release();
          await ended.catch(() => {}); // another tab has taken the lock
        };
        const isHeld = async () => {
          await locks.query?.(); // if a frozen tab has lost its lock, it is notified before this query is answered
          return !lost.signal.aborted;
        };
        settle(Object.assign(unlock, { isHeld, lost: lost.signal }));
        return held;
      });
      ended.catch((error) => {
        lost.abort();
        fail(error);
      });
    });
  }

  /** @returns {Promise<{freeBytes: number | undefined, isPersisted: boolean}>} */
  async estimate() {
    const storage = globalThis.navigator?.storage;
    const { quota, usage } = (await storage?.estimate?.().catch(() => undefined)) ?? {};
    const isPersisted = (await storage?.persisted?.().catch(() => false)) ?? false;
    const isKnown = quota !== undefined && usage !== undefined;
    return { freeBytes: isKnown ? Math.max(0, quota - usage) : undefined, isPersisted };
  }

  /** @returns {Promise<boolean>} whether the browser keeps the models until the user removes them */
  async persist() {
    return (await globalThis.navigator?.storage?.persist?.().catch(() => false)) ?? false;
  }

  /** Does nothing: every chunk is stored when it has been written. */
  async settle() {}
}
