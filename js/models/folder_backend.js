// js/models/folder_backend.js — models in a folder, on hosts with node:fs (Node, Deno, Bun). Each model has a folder with
// its record and the file itself, which other programs can open.

import { WickError, wordsOf } from '../base/errors.js';
import { storageError } from '../storage/browser_files.js';
import { isRunning, replaceFile } from '../storage/replace_file.js';
import { CHUNK_BYTES, parseRecord } from './records.js';

/** @import { Backend } from './backends.js' */
/** @import { ModelRecord } from './records.js' */

const RECORD = 'record.json';
const DATA = 'model.gguf';
const LOCK = 'lock';
/**
 * The holder of a lock renews it at this interval. A holder that has not renewed it for SILENT_MS
 * counts as ended, even if a process with its id exists.
 */
const BEAT_MS = 2000;
const SILENT_MS = 15_000;
const TAKE_TRIES = 10;

/** @returns {string} the default folder */
function defaultFolder() {
  const { process } = globalThis;
  const path = process.getBuiltinModule('node:path');
  const os = process.getBuiltinModule('node:os');
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || path.join(os.homedir(), '.cache');
  return path.join(caches, 'wick-llm', 'models');
}

/**
 * Models in a folder. The writer of a model has its lock, whose file also creates the model's
 * folder.
 * @implements {Backend}
 */
export class FolderBackend {
  kind = /** @type {const} */ ('folder');
  #fs;
  #path;
  /**
   * Open files of models that are being stored.
   * @type {Map<string, Promise<import('node:fs').promises.FileHandle>>}
   */
  #open = new Map();

  /** @param {string} [folder] */
  constructor(folder = defaultFolder()) {
    this.#fs = globalThis.process.getBuiltinModule('node:fs').promises;
    this.#path = globalThis.process.getBuiltinModule('node:path');
    this.folder = folder;
  }

  /** @param {string} id @param {string} name */
  #at(id, name) {
    return this.#path.join(this.folder, id, name);
  }

  async ids() {
    return this.#fs.readdir(this.folder).catch(() => /** @type {string[]} */ ([]));
  }

  /** @param {string} id */
  async readRecord(id) {
    const text = await this.#fs.readFile(this.#at(id, RECORD), 'utf8').catch(() => '');
    return parseRecord(text);
  }

  /**
   * Replaces a record. The old one is kept until the new one is complete.
   * @param {ModelRecord} record
   */
  async writeRecord(record) {
    const name = this.#at(record.id, RECORD);
    await this.#write(name, async () => {
      await this.#fs.mkdir(this.#path.dirname(name), { recursive: true });
      await replaceFile(this.#fs, name, JSON.stringify(record), { flush: true });
    });
  }

  /** @param {string} id @param {number} index @param {number} size */
  async readChunk(id, index, size) {
    const bytes = new Uint8Array(size);
    const file = await this.#fs.open(this.#at(id, DATA), 'r').catch(() => undefined);
    if (!file) return undefined;
    try {
      const { bytesRead } = await file.read(bytes, 0, size, index * CHUNK_BYTES);
      return bytesRead === size ? bytes : undefined;
    } finally {
      await file.close();
    }
  }

  /**
   * Writes a chunk. Its bytes are on disk before the record lists the chunk.
   * @param {string} id
   * @param {number} index
   * @param {Uint8Array} bytes
   */
  async writeChunk(id, index, bytes) {
    await this.#write(this.#at(id, DATA), async () => {
      const opened = this.#open.get(id) ?? this.#openData(id);
      this.#open.set(id, opened);
      const file = await opened;
      await file.write(bytes, 0, bytes.byteLength, index * CHUNK_BYTES);
      await file.datasync();
    });
  }

  /** @param {string} id */
  async #openData(id) {
    const { constants } = globalThis.process.getBuiltinModule('node:fs');
    return this.#fs.open(this.#at(id, DATA), constants.O_RDWR | constants.O_CREAT);
  }

  /** @param {string} id of a model that currently has no writer */
  async settle(id) {
    const file = this.#open.get(id);
    this.#open.delete(id);
    await (await file?.catch(() => undefined))?.close();
  }

  /** Returns whether the whole file of a complete model is stored. @param {ModelRecord} record */
  async hasChunks({ id, size }) {
    const facts = await this.#fs.stat(this.#at(id, DATA)).catch(() => undefined);
    return facts?.size === size;
  }

  /**
   * Adopts a file, without copying its blocks if the file system supports that.
   * @param {string} id
   * @param {string} path
   */
  async adopt(id, path) {
    const { constants } = globalThis.process.getBuiltinModule('node:fs');
    const name = this.#at(id, DATA);
    await this.#write(name, async () => {
      await this.#fs.copyFile(path, name, constants.COPYFILE_FICLONE);
      await this.#fs.chmod(name, 0o644); // the file's own permissions may forbid writing
    });
  }

  /**
   * Removes a model, starting with its record, so that a partly removed model is not found. The
   * lock stays with its holder.
   * @param {string} id
   */
  async remove(id) {
    await this.settle(id);
    await this.#fs.rm(this.#at(id, RECORD), { force: true });
    const names = await this.#fs
      .readdir(this.#at(id, ''))
      .catch(() => /** @type {string[]} */ ([]));
    for (const name of names.filter((one) => one !== LOCK)) {
      await this.#fs.rm(this.#at(id, name), { force: true });
    }
    await this.#removeEmpty(id);
  }

  /** @param {string} id */
  async #removeEmpty(id) {
    await this.#fs.rmdir(this.#at(id, '')).catch(() => {}); // the folder is not empty
  }

  /** @param {ModelRecord} record @returns {Promise<import('./backends.js').KeptPaths | undefined>} */
  async describe(record) {
    if (!(await this.hasChunks(record))) return undefined;
    return { kind: 'path', paths: [this.#at(record.id, DATA)] };
  }

  async estimate() {
    try {
      await this.#fs.mkdir(this.folder, { recursive: true });
      const { bavail, bsize } = await this.#fs.statfs(this.folder);
      return { freeBytes: bavail * bsize, isPersisted: true };
    } catch (error) {
      throw new WickError(
        'IO',
        `${this.folder} is not a folder for models: ${wordsOf(error)}`,
        error,
      );
    }
  }

  async persist() {
    return true;
  }

  /**
   * @param {string} id
   * @returns {Promise<boolean>} whether the process that has the lock has renewed it recently
   */
  async isAlive(id) {
    const facts = await this.#fs.stat(this.#at(id, LOCK)).catch(() => undefined);
    return facts !== undefined && Date.now() - facts.mtimeMs < 2 * BEAT_MS;
  }

  /**
   * Takes the lock, even from a holder that has not renewed it.
   * @param {string} id
   * @returns {Promise<import('./backends.js').Unlock | undefined>} undefined if another process has
   * it
   */
  async tryLock(id) {
    const name = this.#at(id, LOCK);
    const own = `${globalThis.process.pid} ${crypto.randomUUID()}`;
    if (!(await this.#take(name, own)) && !(await this.#steal(name, own))) return undefined;
    const now = () => new Date();
    // a process that was stopped for a while must not renew the lock of the one that has replaced it
    const isHeld = async () => (await this.#fs.readFile(name, 'utf8').catch(() => '')) === own;
    const renew = async () => (await isHeld()) && this.#fs.utimes(name, now(), now());
    const beat = setInterval(() => renew().catch(() => {}), BEAT_MS);
    /** @type {any} */ (beat).unref?.();
    const unlock = async () => {
      clearInterval(beat);
      if (await isHeld()) await this.#fs.rm(name, { force: true });
      await this.#removeEmpty(id);
    };
    return Object.assign(unlock, { isHeld });
  }

  /** @param {string} name @param {string} own */
  async #take(name, own) {
    for (let tries = 1; ; tries++) {
      try {
        await this.#fs.mkdir(this.#path.dirname(name), { recursive: true });
        await this.#fs.writeFile(name, own, { flag: 'wx' });
        return true;
      } catch (error) {
        const { code } = /** @type {any} */ (error);
        if (code === 'EEXIST') return false;
        // unlocking removes an empty folder
        if (code !== 'ENOENT' || tries === TAKE_TRIES) throw storageError(name, error);
      }
    }
  }

  /** Takes over the lock of a process that has ended. @param {string} name @param {string} own */
  async #steal(name, own) {
    const held = await this.#fs.readFile(name, 'utf8').catch(() => '');
    const facts = await this.#fs.stat(name).catch(() => undefined);
    const isSilent = facts !== undefined && Date.now() - facts.mtimeMs > SILENT_MS;
    const isWritten = held !== ''; // otherwise it may have been created but not written yet
    if (!isSilent && (!isWritten || isRunning(Number.parseInt(held, 10)))) return false;
    const aside = `${name}.${crypto.randomUUID()}`;
    try {
      await this.#fs.rename(name, aside); // only one of several contenders succeeds
    } catch {
      return false;
    }
    await this.#fs.rm(aside, { force: true });
    return this.#take(name, own);
  }

  /** @param {string} name @param {() => Promise<void>} action */
  async #write(name, action) {
    try {
      await action();
    } catch (error) {
      throw storageError(name, error, `${name} no longer exists`);
    }
  }

  async close() {
    for (const id of [...this.#open.keys()]) await this.settle(id);
  }
}

/**
 * Returns whether models are stored in a folder. An Electron page with node integration stores them like
 * other pages, because its workers have no access to files.
 * @returns {boolean}
 */
export function hasFolders() {
  const { process, document } = /** @type {any} */ (globalThis);
  const isPage = document !== undefined || /^(renderer|worker)$/.test(process?.type ?? '');
  return !isPage && process?.getBuiltinModule?.('node:fs') !== undefined;
}

/** @param {unknown} path @returns {string} */
export function pathOf(path) {
  if (typeof path === 'string' && !path.startsWith('file:')) return path;
  const url = globalThis.process?.getBuiltinModule?.('node:url');
  if (!url)
    throw new WickError(
      'ARG',
      `Files are not available on this host: ${wordsOf(path)} cannot be opened`,
    );
  try {
    return url.fileURLToPath(/** @type {string | URL} */ (path));
  } catch (error) {
    throw new WickError(
      'ARG',
      `file must be a File, a Blob or a path, not ${wordsOf(path)}`,
      error,
    );
  }
}
