// examples/chat/database.js — storage for records: in IndexedDB, or in this page's memory if the
// browser has no IndexedDB or the user chooses to store nothing. Transactions are atomic.

import { connectionTo } from './connection.js';

/** The version of the database's stores and indices. Records have their own versions (records.js). */
const SCHEMA_VERSION = 1;

/** @typedef {'conversations' | 'turns' | 'drafts'} StoreName */
/**
 * The records within a transaction. `of` returns the turns or drafts of one conversation.
 * @typedef {{get: (store: StoreName, id: string) => Promise<any>, all: (store: StoreName) => Promise<any[]>,
 *   of: (store: 'turns' | 'drafts', conversation: string) => Promise<any[]>,
 *   put: (store: StoreName, record: any) => Promise<unknown>,
 *   delete: (store: StoreName, id: string) => Promise<unknown>}} Rows
 */
/**
 * `isStrict`: the transaction ends when the records are on disk, not when the browser has received
 * them.
 * @typedef {{kind: 'indexeddb' | 'memory', close: () => Promise<void>,
 *   run: <T>(mode: 'readonly' | 'readwrite', work: (rows: Rows) => Promise<T>, isStrict?: boolean) => Promise<T>}} Database
 */

/** @type {StoreName[]} */
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
    run: (mode, work, isStrict) =>
      connection.run(
        stores,
        mode,
        (store) =>
          work({
            get: (name, id) => store(name).get(id),
            all: (name) => store(name).getAll(),
            of: (name, conversation) => store(name).index('conversation').getAll(conversation),
            put: (name, record) => store(name).put(record),
            delete: (name, id) => store(name).delete(id),
          }),
        isStrict,
      ),
    close: () => connection.close(),
  };
}

/** @returns {Database} a database that exists until the page is closed */
export function openMemory() {
  /** @type {Record<StoreName, Map<string, any>>} */
  let kept = { conversations: new Map(), turns: new Map(), drafts: new Map() };
  /**
   * Settles after the last transaction, so that only one runs at a time.
   * @type {Promise<unknown>}
   */
  let last = Promise.resolve();
  return {
    kind: 'memory',
    run(_, work) {
      const own = last.then(async () => {
        const copies = /** @type {typeof kept} */ (
          Object.fromEntries(stores.map((name) => [name, new Map(kept[name])]))
        );
        const result = await work({
          get: async (store, id) => structuredClone(copies[store].get(id)),
          all: async (store) => structuredClone([...copies[store].values()]),
          of: async (store, conversation) =>
            structuredClone(
              [...copies[store].values()].filter((one) => one.conversation === conversation),
            ),
          put: async (store, record) => copies[store].set(record.id, structuredClone(record)),
          delete: async (store, id) => copies[store].delete(id),
        });
        kept = copies;
        return result;
      });
      last = own.catch(() => {});
      return own;
    },
    async close() {},
  };
}
