// examples/chat/connection.js — connections to browser databases, and their transactions. A lost
// connection is opened again, and storage that does not respond is reported.

import { openDB } from 'idb';

/** @typedef {import('idb').IDBPDatabase<any>} Idb */
/**
 * The work of a transaction. It may only wait for requests to the stores, which it gets by their names.
 * @template T
 * @typedef {(store: (name: string) => import('idb').IDBPObjectStore<any, string[], string, 'readwrite'>) => Promise<T>} Work
 */

/**
 * A browser that has not responded within this time never will, for example WebKitGTK after a page
 * was closed while it stored something.
 */
const OPEN_MS = 30_000;

/**
 * @param {string} name
 * @param {number} version
 * @param {import('idb').OpenDBCallbacks<any>} callbacks
 * @returns {Promise<Idb>} the same as `openDB` from idb, but it rejects if the database does not
 * respond within half a minute
 */
async function openInTime(name, version, callbacks) {
  const opening = openDB(name, version, callbacks);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<never>} */
  const late = new Promise((_, fail) => {
    const error = new Error(`its storage has not responded for ${OPEN_MS / 1000} seconds`);
    timer = setTimeout(fail, OPEN_MS, error);
  });
  try {
    return await Promise.race([opening, late]);
  } catch (error) {
    opening.then((db) => db.close()).catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * On iOS, the process that serves a connection may be ended while the page is in the background, often without a `close` event.
 * @param {unknown} error
 */
const isConnectionLost = (error) =>
  ['InvalidStateError', 'UnknownError'].includes(/** @type {Error} */ (error)?.name);

/**
 * @template T
 * @param {Idb} db
 * @param {string[]} names
 * @param {'readonly' | 'readwrite'} mode
 * @param {'strict' | 'relaxed'} durability
 * @param {Work<T>} work
 * @returns {Promise<T>}
 */
async function transact(db, names, mode, durability, work) {
  const transaction = db.transaction(names, mode, { durability });
  const { done } = transaction; // rejects with the reason why a transaction failed, such as a full disk
  done.catch(() => {});
  try {
    const result = await work((name) => /** @type {any} */ (transaction.objectStore(name)));
    await done;
    return result;
  } catch (error) {
    try {
      transaction.abort();
    } catch {
      // it has ended
    }
    const reason = await done.catch((failure) => failure);
    throw reason && reason.name !== 'AbortError' ? reason : error;
  }
}

/**
 * @param {string} name
 * @param {number} version
 * @param {NonNullable<import('idb').OpenDBCallbacks<any>['upgrade']>} upgrade
 * @returns a connection to a database, which is opened when needed and closes for a page of a newer
 * version
 */
export function connectionTo(name, version, upgrade) {
  /** @type {Promise<Idb> | undefined} */
  let opening;
  const forget = () => {
    opening = undefined;
  };
  const open = () => {
    opening ??= openInTime(name, version, {
      upgrade,
      blocking: (_, __, event) => {
        forget();
        /** @type {IDBDatabase} */ (event.target).close();
      },
      terminated: forget,
    });
    opening.catch(forget);
    return opening;
  };
  return {
    open,
    /**
     * Runs a transaction. If it fails, it changes nothing.
     * @template T
     * @param {string[]} names of its stores
     * @param {'readonly' | 'readwrite'} mode
     * @param {Work<T>} work
     * @param {boolean} [isStrict] whether it ends when the records are on disk, not when the browser
     * has received them
     * @returns {Promise<T>}
     */
    async run(names, mode, work, isStrict = false) {
      const durability = isStrict ? 'strict' : 'relaxed';
      const own = open();
      const db = await own;
      try {
        return await transact(db, names, mode, durability, work);
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        // the transaction stored nothing
        if (opening === own) forget();
        db.close();
        return transact(await open(), names, mode, durability, work);
      }
    },
    async close() {
      const own = opening;
      forget();
      (await own?.catch(() => undefined))?.close();
    },
  };
}
