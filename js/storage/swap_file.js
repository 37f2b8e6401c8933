// js/storage/swap_file.js — one temporary file for the pages of requests that gave way (src/schedule/swap.h): in
// browsers in the origin private file system, in Node and Deno in a folder. All of it is synchronous,
// so it is for workers; whatever fails is refused, and the engine reads those tokens again.

import { openSyncFile } from './browser_files.js';

/**
 * Reading and writing answer how many bytes they did.
 * @typedef {{read: (bytes: Uint8Array, at: number) => number,
 *   write: (bytes: Uint8Array, at: number) => number, close: () => Promise<void> | void}} SyncFile
 */

/** Records in a file, each in the first gap that it fits into. */
export class SwapFile {
  #file;
  /** In their order in the file. @type {{id: number, at: number, size: number}[]} */
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

  /** @param {number} id @param {number} offset @param {Uint8Array} bytes filled @returns {boolean} */
  read(id, offset, bytes) {
    return this.#move(id, offset, bytes, 'read');
  }

  /** @param {number} id */
  drop(id) {
    this.#records = this.#records.filter((record) => record.id !== id);
  }

  /** @returns {number} records that are kept now */
  get count() {
    return this.#records.length;
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
      return false; // the disk is full, or gone
    }
  }
}

/**
 * @param {string | undefined} folder in Node and Deno, the system's temporary one by default
 * @returns {Promise<SwapFile | undefined>} nothing where no file can be had
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
    remove(); // so that nothing stays behind, whatever becomes of the process
  } catch {
    // Windows removes no file that is open
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
      access.truncate(0); // if it cannot be removed, it takes no room
      access.close();
      return remove();
    },
  };
}
