// js/storage/swap_file.js — a temporary file for the pages of preempted requests (src/schedule/swap.h). In browsers it is
// in the origin private file system, in Node and Deno in a folder. Everything is synchronous, so only workers use it.
// If a read or write fails, the engine recomputes those tokens.

import { openSyncFile } from './browser_files.js';

/**
 * `read` and `write` return the number of bytes transferred.
 * @typedef {{read: (bytes: Uint8Array, at: number) => number,
 *   write: (bytes: Uint8Array, at: number) => number, close: () => Promise<void> | void}} SyncFile
 */

/** Stores records in a file. A new record is placed in the first gap that is large enough. */
export class SwapFile {
  #file;
  /** Records sorted by offset. @type {{id: number, at: number, size: number}[]} */
  #records = [];

  /** @param {SyncFile} file */
  constructor(file) {
    this.#file = file;
  }

  /** @param {number} id @param {number} size @returns {boolean} */
  open(id, size) {
    let at = 0;
    let index = 0;
    for (; index < this.#records.length; index++) {
      const next = this.#records[index];
      if (at + size <= next.at) break;
      at = next.at + next.size;
    }
    this.#records.splice(index, 0, { id, at, size });
    return true;
  }

  /** @param {number} id @param {number} offset @param {Uint8Array} bytes @returns {boolean} */
  write(id, offset, bytes) {
    return this.#move(id, offset, bytes, 'write');
  }

  /**
   * @param {number} id
   * @param {number} offset
   * @param {Uint8Array} bytes the buffer to fill
   * @returns {boolean}
   */
  read(id, offset, bytes) {
    return this.#move(id, offset, bytes, 'read');
  }

  /** @param {number} id */
  drop(id) {
    this.#records = this.#records.filter((record) => record.id !== id);
  }

  close() {
    return this.#file.close();
  }

  /** @param {number} id @param {number} offset @param {Uint8Array} bytes @param {'read' | 'write'} how */
  #move(id, offset, bytes, how) {
    const record = this.#records.find((one) => one.id === id);
    if (!record || offset + bytes.byteLength > record.size) return false;
    try {
      return this.#file[how](bytes, record.at + offset) === bytes.byteLength;
    } catch {
      return false; // the disk is full or was removed
    }
  }
}

/**
 * @param {string | undefined} folder for Node and Deno; the system's temporary folder by default
 * @returns {Promise<SwapFile | undefined>} undefined if no file can be opened
 */
export async function openSwap(folder) {
  try {
    const isNode = globalThis.process?.getBuiltinModule?.('node:fs') !== undefined;
    return new SwapFile(isNode ? openNodeFile(folder) : await openBrowserFile());
  } catch {
    return undefined;
  }
}

/** @param {string | undefined} folder @returns {SyncFile} */
function openNodeFile(folder) {
  const { process } = globalThis;
  const fs = process.getBuiltinModule('node:fs');
  const path = process.getBuiltinModule('node:path');
  const os = process.getBuiltinModule('node:os');
  const name = path.join(folder ?? os.tmpdir(), `wick-swap-${crypto.randomUUID()}`);
  const file = fs.openSync(name, 'wx+', 0o600);
  const remove = () => fs.rmSync(name, { force: true });
  try {
    remove(); // the file disappears, however the process ends
  } catch {
    // Windows cannot remove an open file
  }
  return {
    read: (bytes, at) => fs.readSync(file, bytes, 0, bytes.byteLength, at),
    write: (bytes, at) => fs.writeSync(file, bytes, 0, bytes.byteLength, at),
    close: () => {
      fs.closeSync(file);
      remove();
    },
  };
}

/** @returns {Promise<SyncFile>} */
async function openBrowserFile() {
  const { access, remove } = await openSyncFile();
  return {
    read: (bytes, at) => access.read(bytes, { at }),
    write: (bytes, at) => access.write(bytes, { at }),
    close: () => {
      access.truncate(0); // if the file cannot be removed, it is at least empty
      access.close();
      return remove();
    },
  };
}
