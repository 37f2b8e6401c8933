// js/models/indexed_db_backend.js — models in IndexedDB, for pages that cannot write files: a
// record for each model, and one for each of its chunks.

import { storageError, wholeArray } from '../storage/browser_files.js';
import { BrowserBackend, noStorage, openedInTime } from './browser_locks.js';
import { checkRecord, chunkCount } from './records.js';

/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */

const NAME = 'wick-llm-models';
const RECORDS = 'records';
const CHUNKS = 'chunks';

/** @returns {IDBOpenDBRequest} */
function openDatabase() {
  try {
    return indexedDB.open(NAME, 1);
  } catch (error) {
    throw noStorage(error); // in a frame with an opaque origin
  }
}

/** @returns {boolean} */
export const hasIndexedDb = () => globalThis.indexedDB !== undefined;

/** @param {string} id */
const chunksOf = (id) => IDBKeyRange.bound([id], [id, []]); // arrays sort after numbers

/** @param {unknown} error */
const isConnectionLost = (error) =>
  ['InvalidStateError', 'UnknownError'].includes(/** @type {Error} */ (error)?.name);

/**
 * @template T
 * @param {IDBDatabase} database
 * @param {'readonly' | 'readwrite'} mode
 * @param {(stores: {records: IDBObjectStore, chunks: IDBObjectStore}) => IDBRequest<T>} ask
 * @returns {Promise<T>} resolves when the transaction is complete
 */
const askOnce = (database, mode, ask) =>
  new Promise((settle, fail) => {
    const options = /** @type {IDBTransactionOptions} */ ({ durability: 'strict' });
    const transaction = database.transaction([RECORDS, CHUNKS], mode, options);
    const request = ask({
      records: transaction.objectStore(RECORDS),
      chunks: transaction.objectStore(CHUNKS),
    });
    transaction.oncomplete = () => settle(request.result);
    transaction.onabort = () => fail(transaction.error ?? request.error);
  });

/** @implements {Backend} */
export class IndexedDbBackend extends BrowserBackend {
  kind = /** @type {const} */ ('indexeddb');
  /** @type {Promise<IDBDatabase> | undefined} */
  #database;

  /** Rejects if nothing can be stored. @returns {Promise<IDBDatabase>} */
  open() {
    this.#database ??= this.#begin();
    return this.#database;
  }

  /** @returns {Promise<IDBDatabase>} rejects after a time limit; if the database opens later, later calls use it */
  #begin() {
    /** @type {Promise<IDBDatabase>} */
    const opening = new Promise((settle, fail) => {
      const request = openDatabase();
      const forget = () => {
        if (this.#database === own) this.#database = undefined;
      };
      request.onupgradeneeded = () => {
        request.result.createObjectStore(RECORDS);
        request.result.createObjectStore(CHUNKS);
      };
      request.onerror = () => {
        forget();
        fail(noStorage(request.error));
      };
      request.onsuccess = () => {
        const { result } = request;
        const isClosed = this.#database !== own;
        own = Promise.resolve(result);
        if (isClosed) result.close();
        else this.#database = own;
        settle(result);
        result.onclose = forget;
        result.onversionchange = () => {
          forget();
          result.close();
        };
      };
    });
    let own = openedInTime(opening, 'IndexedDB');
    return own;
  }

  /**
   * @template T
   * @param {'readonly' | 'readwrite'} mode
   * @param {(stores: {records: IDBObjectStore, chunks: IDBObjectStore}) => IDBRequest<T>} ask
   * @returns {Promise<T>} resolves when the transaction is complete
   */
  async #ask(mode, ask) {
    const database = await this.open();
    try {
      return await askOnce(database, mode, ask).catch(async (error) => {
        if (!isConnectionLost(error)) throw error;
        // iOS ends the process that serves a connection while the page is in the background; nothing was stored
        await this.#forget(database);
        return askOnce(await this.open(), mode, ask);
      });
    } catch (error) {
      throw storageError('a model', error);
    }
  }

  /**
   * Forgets a lost connection, so that the next transaction opens a new one.
   * @param {IDBDatabase} database whose connection was lost
   */
  async #forget(database) {
    if ((await this.#database?.catch(() => undefined)) === database) this.#database = undefined;
    database.close();
  }

  async ids() {
    const keys = await this.#ask('readonly', ({ records }) => records.getAllKeys());
    return /** @type {string[]} */ (keys);
  }

  /** @param {string} id */
  async readRecord(id) {
    return checkRecord(await this.#ask('readonly', ({ records }) => records.get(id)));
  }

  /** @param {ModelRecord} record */
  async writeRecord(record) {
    await this.#ask('readwrite', ({ records }) => records.put(record, record.id));
  }

  /** @param {string} id @param {number} index @param {number} size */
  async readChunk(id, index, size) {
    const bytes = await this.#ask('readonly', ({ chunks }) => chunks.get([id, index]));
    return bytes?.byteLength === size ? new Uint8Array(bytes) : undefined;
  }

  /** @param {string} id @param {number} index @param {Uint8Array<ArrayBuffer>} bytes */
  async writeChunk(id, index, bytes) {
    const piece = wholeArray(bytes).buffer;
    await this.#ask('readwrite', ({ chunks }) => chunks.put(piece, [id, index]));
  }

  /** @param {ModelRecord} record */
  async hasChunks({ id, size }) {
    const count = await this.#ask('readonly', ({ chunks }) => chunks.count(chunksOf(id)));
    return count === chunkCount(size ?? 0);
  }

  /** @param {string} id */
  async remove(id) {
    await this.#ask('readwrite', ({ records, chunks }) => {
      records.delete(id);
      return chunks.delete(chunksOf(id));
    });
  }

  /**
   * Not supported: a worker would need access to the database, too.
   * @returns {Promise<undefined>}
   */
  async describe() {
    return undefined;
  }

  async close() {
    const opening = this.#database;
    this.#database = undefined;
    const database = await opening?.catch(() => undefined);
    database?.close();
  }
}
