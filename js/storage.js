// js/storage.js — where saved states are kept: in browsers in the origin private file system, in a folder
// of ours; in Node and Deno in files. Writing is all or nothing: what was there stays until the new
// bytes are whole.

import { WickError } from './errors.js';
import { argumentError } from './options.js';

const FOLDER = 'wick-llm';

const fs = () => globalThis.process?.getBuiltinModule?.('node:fs');

/** @param {string} name @param {unknown} error @returns {WickError} */
function storageError(name, error) {
  const { name: kind, code } = /** @type {any} */ (error) ?? {};
  if (kind === 'NotFoundError' || code === 'ENOENT') {
    return new WickError('NOT_FOUND', `There is no saved state ${name}`, error);
  }
  if (kind === 'QuotaExceededError' || code === 'ENOSPC' || code === 'EDQUOT') {
    return new WickError('STORAGE_FULL', `There is no room to keep ${name}`, error);
  }
  return new WickError('IO', `${name} could not be kept or read: ${error}`, error);
}

/** @param {string} name @returns {Promise<FileSystemDirectoryHandle>} */
async function openFolder(name) {
  const storage = globalThis.navigator?.storage;
  if (typeof storage?.getDirectory !== 'function') {
    throw new WickError('NO_STORAGE', `This browser keeps no files for a page, so not ${name}`);
  }
  const root = await storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

/** @param {string} name */
function checkName(name) {
  if (typeof name !== 'string' || name === '') throw argumentError('A state is kept under a name');
  if (!fs() && /[/\\]|^\.+$/.test(name)) {
    throw argumentError(`${name} is no name for a state: in browsers it is not a path`);
  }
}

/** @param {string} name @param {Uint8Array<ArrayBuffer>} bytes */
export async function keepBytes(name, bytes) {
  checkName(name);
  try {
    const files = fs()?.promises;
    if (files) {
      const unfinished = `${name}.${crypto.randomUUID()}.tmp`;
      try {
        await files.writeFile(unfinished, bytes);
        await files.rename(unfinished, name);
      } finally {
        await files.rm(unfinished, { force: true });
      }
      return;
    }
    const folder = await openFolder(name);
    const file = await folder.getFileHandle(name, { create: true });
    if (typeof file.createWritable !== 'function') {
      throw new WickError('NO_STORAGE', `This browser lets no page write files, so not ${name}`);
    }
    const writable = await file.createWritable(); // a copy, until it is closed
    await writable.write(bytes);
    await writable.close();
  } catch (error) {
    throw error instanceof WickError ? error : storageError(name, error);
  }
}

/** @param {string} name @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function readBytes(name) {
  checkName(name);
  try {
    const files = fs()?.promises;
    if (files) return new Uint8Array(await files.readFile(name));
    const folder = await openFolder(name);
    const file = await (await folder.getFileHandle(name)).getFile();
    return new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    throw error instanceof WickError ? error : storageError(name, error);
  }
}
