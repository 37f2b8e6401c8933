// examples/chat/database.js — storage for records: in IndexedDB, or in this page's memory if the
// browser has no IndexedDB or the user chooses to store nothing. Transactions are atomic.

import { connectionTo } from './connection.js';

/** The version of the database's stores and indices. Records have their own versions (records.js). */
const SCHEMA_VERSION = 1;

/** @import { Work } from './connection.js' */
/**
 * `isStrict`: the transaction ends when the records are on disk, not when the browser has received
 * them.
 * @typedef {{kind: 'indexeddb' | 'memory', close: () => Promise<void>,
 *   run: <T>(mode: 'readonly' | 'readwrite', work: Work<T>, isStrict?: boolean) => Promise<T>}} Database
 */

const stores = ['conversations', 'turns', 'drafts'];

/** @param {import('idb').IDBPDatabase} db */
function createStores(db) {
  for (const name of stores) {
    const store = db.createObjectStore(name, { keyPath: 'id' });
    if (name !== 'conversations') store.createIndex('conversation', 'conversation');
  }
}

/**
 * @param {string} name
 * @returns {Promise<Database>}
 */
export async function openDatabase(name) {
  const connection = connectionTo(name, SCHEMA_VERSION, createStores);
  await connection.open();
  return {
    kind: 'indexeddb',
    run: (mode, work, isStrict) => connection.run(stores, mode, work, isStrict),
    close: () => connection.close(),
  };
}

/**
 * The part of an object store that is used here.
 * @param {Map<string, any>} records
 */
const storeOf = (records) => ({
  get: async (/** @type {string} */ id) => structuredClone(records.get(id)),
  getAll: async () => structuredClone([...records.values()]),
  index: () => ({
    getAll: async (/** @type {string} */ conversation) =>
      structuredClone([...records.values()].filter((one) => one.conversation === conversation)),
  }),
  put: async (/** @type {any} */ record) => records.set(record.id, structuredClone(record)),
  delete: async (/** @type {string} */ id) => records.delete(id),
});

/** @returns {Database} a database that exists until the page is closed */
export function openMemory() {
  /** The records of each store. @type {Map<string, Map<string, any>>} */
  let kept = new Map(stores.map((name) => [name, new Map()]));
  /**
   * Settles after the last transaction, so that only one runs at a time.
   * @type {Promise<unknown>}
   */
  let last = Promise.resolve();
  return {
    kind: 'memory',
    run(_, work) {
      const own = last.then(async () => {
        const copies = new Map(stores.map((name) => [name, new Map(kept.get(name))]));
        const result = await work(
          (name) => /** @type {any} */ (storeOf(copies.get(name) ?? new Map())),
        );
        kept = copies;
        return result;
      });
      last = own.catch(() => {});
      return own;
    },
    async close() {},
  };
}
