// Model storage in memory, which outlives the stores that use it. It counts writes, and fails at a
// write chosen by the test.

import { parseRecord } from '../../js/models/records.js';

/** @typedef {import('../../js/models/backends.js').Backend} Backend */

/** Data that persists when a process ends. */
export class MemoryDisk {
  /** @type {Map<string, string>} */
  records = new Map();
  /** @type {Map<string, Uint8Array<ArrayBuffer>>} */
  chunks = new Map();
  /** The controller given to the holder of each lock. @type {Map<string, AbortController>} */
  locks = new Map();
  /** Names of written chunks, in order. @type {string[]} */
  written = [];
  /** Free space in bytes. */
  room = Number.POSITIVE_INFINITY;
  /** Whether the free space is not reported. */
  isSilent = false;

  get usedBytes() {
    return [...this.chunks.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }
}

/** @implements {Backend} */
export class MemoryBackend {
  kind = /** @type {const} */ ('memory');
  /** The number of writes before the process ends and further writes are lost. */
  writesLeft = Number.POSITIVE_INFINITY;

  /** @param {MemoryDisk} disk */
  constructor(disk) {
    this.disk = disk;
  }

  /** @returns {Promise<void>} */
  async #write() {
    if (this.writesLeft-- > 0) return;
    await new Promise(() => {}); // writes of an ended process never settle
  }

  async ids() {
    return [...this.disk.records.keys()];
  }

  /** @param {string} id */
  async readRecord(id) {
    return parseRecord(this.disk.records.get(id) ?? '');
  }

  /** @param {import('../../js/models/records.js').ModelRecord} record */
  async writeRecord(record) {
    const text = JSON.stringify(record);
    await this.#write();
    this.disk.records.set(record.id, text);
  }

  /** @param {string} id @param {number} index @param {number} size */
  async readChunk(id, index, size) {
    const bytes = this.disk.chunks.get(`${id} ${index}`);
    return bytes?.byteLength === size ? bytes.slice() : undefined;
  }

  /** @param {string} id @param {number} index @param {Uint8Array<ArrayBuffer>} bytes */
  async writeChunk(id, index, bytes) {
    const copy = bytes.slice();
    await this.#write();
    if (this.disk.usedBytes + copy.byteLength > this.disk.room) {
      const { WickError } = await import('../../js/base/errors.js');
      throw new WickError('STORAGE_FULL', 'chunk: cannot be saved, storage is full');
    }
    this.disk.chunks.set(`${id} ${index}`, copy);
    this.disk.written.push(`${id} ${index}`);
  }

  async settle() {}

  /** @param {import('../../js/models/records.js').ModelRecord} record */
  async hasChunks({ id, sums }) {
    return sums.every((_, index) => this.disk.chunks.has(`${id} ${index}`));
  }

  /** @param {string} id */
  async remove(id) {
    await this.#write();
    this.disk.records.delete(id);
    for (const name of this.disk.chunks.keys()) {
      if (name.startsWith(`${id} `)) this.disk.chunks.delete(name);
    }
  }

  async describe() {
    return undefined;
  }

  async estimate() {
    const { room, usedBytes, isSilent } = this.disk;
    const isKnown = Number.isFinite(room) && !isSilent;
    return { freeBytes: isKnown ? room - usedBytes : undefined, isPersisted: true };
  }

  async persist() {
    return true;
  }

  /** @param {string} id @param {{steal?: boolean}} [options] */
  async tryLock(id, { steal = false } = {}) {
    const { locks } = this.disk;
    if (locks.has(id) && !steal) return undefined;
    locks.get(id)?.abort();
    const own = new AbortController();
    locks.set(id, own);
    const isHeld = async () => locks.get(id) === own;
    const unlock = async () => void ((await isHeld()) && locks.delete(id));
    return Object.assign(unlock, { isHeld, lost: own.signal });
  }

  async close() {}
}
