// examples/chat/database.js — storage for records: in IndexedDB, or in this page's memory if the
// browser has no IndexedDB or the user chooses to store nothing. Transactions are atomic.

import { Connection } from './open_in_time.js';

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
    if (db.objectStoreNames.contains(name)) continue;
    const store = db.createObjectStore(name, { keyPath: 'id' });
    if (name !== 'conversations') store.createIndex('conversation', 'conversation');
  }
}

/** @param {import('idb').IDBPTransaction<unknown, StoreName[], any>} transaction @returns {Rows} */
const rowsOf = (transaction) => ({
  get: (store, id) => transaction.objectStore(store).get(id),
  all: (store) => transaction.objectStore(store).getAll(),
  of: (store, conversation) =>
    transaction.objectStore(store).index('conversation').getAll(conversation),
  put: async (store, record) => transaction.objectStore(store).put?.(record),
  delete: async (store, id) => transaction.objectStore(store).delete?.(id),
});

/**
 * On iOS, the process that serves a connection may be ended while the page is in the background, often without a `close` event.
 * @param {unknown} error
 */
const isConnectionLost = (error) =>
  ['InvalidStateError', 'UnknownError'].includes(/** @type {Error} */ (error)?.name);

/**
 * @template T
 * @param {import('idb').IDBPDatabase} db
 * @param {'readonly' | 'readwrite'} mode
 * @param {'strict' | 'relaxed'} durability
 * @param {(rows: Rows) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function runOnce(db, mode, durability, work) {
  const transaction = db.transaction(stores, mode, { durability });
  // `done` has the reason why a transaction failed, such as a full disk
  const done = transaction.done.then(
    () => undefined,
    (reason) => ({ reason }),
  );
  try {
    const result = await work(rowsOf(/** @type {any} */ (transaction)));
    const failure = await done;
    if (failure) throw failure.reason;
    return result;
  } catch (error) {
    try {
      transaction.abort();
    } catch {
      // it has ended
    }
    const failure = await done;
    const isPlain = !failure?.reason || failure.reason.name === 'AbortError';
    throw isPlain ? error : failure.reason;
  }
}

/**
 * @param {string} name
 * @returns {Promise<Database>}
 */
export async function openDatabase(name) {
  const held = new Connection(name, SCHEMA_VERSION, createStores);
  await held.open();
  return {
    kind: 'indexeddb',
    async run(mode, work, isStrict = false) {
      const durability = isStrict ? 'strict' : 'relaxed';
      const connection = await held.open();
      try {
        return await runOnce(connection, mode, durability, work);
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        // the transaction stored nothing
        if ((await held.current()) === connection) held.forget();
        connection.close();
        return runOnce(await held.open(), mode, durability, work);
      }
    },
    async close() {
      const db = await held.current();
      held.forget();
      db?.close();
    },
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
