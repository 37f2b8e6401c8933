// js/models/opfs_backend.js — models in the origin private file system: a folder for each model, with its record and a
// file for each chunk. A chunk is written to a copy that replaces it once it is complete, so no chunk is ever incomplete.

import { readReplaced, storageError, writeCopy } from '../storage/browser_files.js';
import { BrowserBackend, noStorage, openedInTime } from './browser_locks.js';
import { CHUNK_BYTES, chunkCount, chunkSize, parseRecord } from './records.js';

/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */

const ROOT = 'wick-llm-models';
const RECORD = 'record.json';
/**
 * The number of files that are opened at the same time; each one costs a message to the browser
 * process.
 */
const OPENED_AT_ONCE = 16;

/** @returns {boolean} whether this thread can use it */
export function hasOpfs() {
  const { prototype } = globalThis.FileSystemFileHandle ?? {};
  const hasFolder = typeof globalThis.navigator?.storage?.getDirectory === 'function';
  return hasFolder && typeof prototype?.createWritable === 'function';
}

/** @implements {Backend} */
export class OpfsBackend extends BrowserBackend {
  kind = /** @type {const} */ ('opfs');

  /** @returns {Promise<any>} */
  async #root() {
    const opening = navigator.storage.getDirectory().catch((cause) => {
      throw noStorage(cause);
    });
    const root = await openedInTime(opening, 'The origin private file system');
    return root.getDirectoryHandle(ROOT, { create: true });
  }

  open() {
    return this.#root();
  }

  /** @param {string} id @param {boolean} [create] @returns {Promise<FileSystemDirectoryHandle>} */
  async #folder(id, create = false) {
    return (await this.#root()).getDirectoryHandle(id, { create });
  }

  async ids() {
    const ids = [];
    for await (const id of (await this.#root()).keys()) ids.push(id);
    return ids;
  }

  /** @param {string} id @param {string} name @returns {Promise<File | undefined>} */
  async #file(id, name) {
    try {
      const folder = await this.#folder(id);
      return await (await folder.getFileHandle(name)).getFile();
    } catch {
      return undefined;
    }
  }

  /** @param {string} id @param {string} name @param {string | Uint8Array<ArrayBuffer>} content */
  async #write(id, name, content) {
    try {
      const folder = await this.#folder(id, true);
      await writeCopy(await folder.getFileHandle(name, { create: true }), content);
    } catch (error) {
      throw storageError(`a part of model ${id}`, error, `model ${id} no longer exists`);
    }
  }

  /** @param {string} id */
  async readRecord(id) {
    try {
      const bytes = await readReplaced(await (await this.#folder(id)).getFileHandle(RECORD));
      return parseRecord(new TextDecoder().decode(bytes));
    } catch {
      return undefined;
    }
  }

  /** @param {ModelRecord} record */
  async writeRecord(record) {
    await this.#write(record.id, RECORD, JSON.stringify(record));
  }

  /** @param {string} id @param {number} index @param {number} size */
  async readChunk(id, index, size) {
    const file = await this.#file(id, String(index));
    if (file?.size !== size) return undefined;
    return new Uint8Array(await file.arrayBuffer());
  }

  /** @param {string} id @param {number} index @param {Uint8Array<ArrayBuffer>} bytes */
  async writeChunk(id, index, bytes) {
    await this.#write(id, String(index), bytes);
  }

  /** @param {ModelRecord} record */
  async hasChunks(record) {
    return (await this.describe(record)) !== undefined;
  }

  /**
   * Removes a model, starting with its record, so that a partly removed model is not found.
   * @param {string} id
   */
  async remove(id) {
    const root = await this.#root();
    const folder = await this.#folder(id).catch(() => undefined);
    await folder?.removeEntry(RECORD).catch(() => {});
    await root.removeEntry(id, { recursive: true }).catch(() => {});
  }

  /**
   * Returns the path of the chunks, and one Blob of all of them.
   * @param {ModelRecord} record
   * @returns {Promise<import('./backends.js').KeptChunks | undefined>} undefined if a chunk is
   * missing
   */
  async describe(record) {
    const size = record.size ?? 0;
    const count = chunkCount(size);
    const folder = await this.#folder(record.id).catch(() => undefined);
    if (!folder) return undefined;
    const open = async (/** @type {number} */ index) => {
      const handle = await folder.getFileHandle(String(index)).catch(() => undefined);
      const file = await handle?.getFile();
      return file?.size === chunkSize(record, index) ? file : undefined;
    };
    /** @type {File[]} */
    const files = [];
    for (let first = 0; first < count; first += OPENED_AT_ONCE) {
      const length = Math.min(OPENED_AT_ONCE, count - first);
      const opened = await Promise.all(Array.from({ length }, (_, index) => open(first + index)));
      for (const file of opened) {
        if (!file) return undefined;
        files.push(file);
      }
    }
    const path = [ROOT, record.id];
    const whole = { folder: path, size, chunkBytes: CHUNK_BYTES, blob: new Blob(files) };
    return { kind: 'chunks', files: [whole] };
  }

  async close() {}
}
