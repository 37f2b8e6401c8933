// js/storage/browser_files.js — files in the origin private file system. All pages can read them.
// In some browsers only workers can write them (Safari before 26).

import { WickError } from '../base/errors.js';

const FOLDER = 'wick-llm';
/** Swapped pages are in a separate folder, because callers choose the names of states. */
const SWAP_FOLDER = 'wick-llm-swap';

/**
 * @param {string} name
 * @param {unknown} error
 * @param {string} [missing] the message if a file or folder is missing
 * @returns {WickError}
 */
export function storageError(name, error, missing = `Saved state not found: ${name}`) {
  if (error instanceof WickError) return error;
  const { name: kind, code } = /** @type {any} */ (error) ?? {};
  if (kind === 'NotFoundError' || code === 'ENOENT') {
    return new WickError('NOT_FOUND', missing, error);
  }
  if (kind === 'QuotaExceededError' || code === 'ENOSPC' || code === 'EDQUOT') {
    return new WickError('STORAGE_FULL', `${name}: cannot be saved, storage is full`, error);
  }
  return new WickError('IO', `${name} could not be saved or read: ${error}`, error);
}

/** @param {string} name @param {string} [folder] @returns {Promise<FileSystemDirectoryHandle>} */
async function openFolder(name, folder = FOLDER) {
  const storage = globalThis.navigator?.storage;
  if (typeof storage?.getDirectory !== 'function') {
    throw new WickError(
      'NO_STORAGE',
      `${name}: cannot be saved, this browser does not let pages write files`,
    );
  }
  const root = await storage.getDirectory();
  return root.getDirectoryHandle(folder, { create: true });
}

/** How many times a file is reopened if another tab replaces it. */
const LOOKS_MAX = 20;

/**
 * Reads a file that another tab may replace. In Chromium, a file that is replaced after it is opened cannot be read
 * any more, so it is opened again.
 * @param {FileSystemFileHandle} handle
 * @returns {Promise<Uint8Array<ArrayBuffer>>} the old content or the new one
 */
export async function readReplaced(handle) {
  for (let look = 1; ; look++) {
    try {
      return new Uint8Array(await (await handle.getFile()).arrayBuffer());
    } catch (error) {
      if (look === LOOKS_MAX) throw error;
    }
  }
}

/** @param {string} name @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function readFile(name) {
  const folder = await openFolder(name);
  return readReplaced(await folder.getFileHandle(name));
}

/** @returns {boolean} whether this thread can use writeFile; also true if no thread can */
export function canWriteHere() {
  const { prototype } = globalThis.FileSystemFileHandle ?? {};
  return prototype === undefined || typeof prototype.createWritable === 'function';
}

/** @param {string} name @param {Uint8Array<ArrayBuffer>} bytes */
export async function writeFile(name, bytes) {
  const folder = await openFolder(name);
  const file = await folder.getFileHandle(name, { create: true });
  const isCopied = typeof file.createWritable === 'function';
  try {
    await (isCopied ? writeCopy(file, bytes) : writeInPlace(file, bytes));
  } catch (error) {
    // a partly written state is useless, and so is an empty file
    const isEmpty = isCopied && (await file.getFile()).size === 0;
    if (isEmpty || !isCopied) await folder.removeEntry(name).catch(() => {});
    throw error;
  }
}

/**
 * Copies a view, because Safari 26 would write the whole buffer (WebKit bug 302733).
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export const wholeArray = (bytes) =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();

/**
 * Writes to a copy; the old file is kept until the copy is closed.
 * @param {FileSystemFileHandle} file
 * @param {string | Uint8Array<ArrayBuffer>} content
 */
export async function writeCopy(file, content) {
  const writable = await file.createWritable();
  try {
    await writable.write(typeof content === 'string' ? content : wholeArray(content));
    await writable.close();
  } catch (error) {
    await writable.abort().catch(() => {}); // an error has already ended it
    throw error;
  }
}

/** Writes with the synchronous API that workers have instead. @param {any} file @param {Uint8Array} bytes */
async function writeInPlace(file, bytes) {
  if (typeof file.createSyncAccessHandle !== 'function') {
    throw new WickError('NO_STORAGE', 'storage: this browser does not let pages write files');
  }
  const access = await file.createSyncAccessHandle();
  try {
    access.truncate(0);
    for (let done = 0; done < bytes.byteLength; ) {
      const written = access.write(bytes.subarray(done), { at: done });
      if (written === 0)
        throw new WickError('STORAGE_FULL', 'state: cannot be saved, storage is full');
      done += written;
    }
    access.flush();
  } finally {
    access.close();
  }
}

/**
 * Opens a new file that a worker reads and writes synchronously. Leftover files from crashed tabs
 * are removed. Files that are open in another tab cannot be removed.
 * @returns {Promise<{access: any, remove: () => Promise<void>}>}
 */
export async function openSyncFile() {
  const name = crypto.randomUUID();
  const folder = /** @type {any} */ (await openFolder(name, SWAP_FOLDER));
  for await (const left of folder.keys()) await folder.removeEntry(left).catch(() => {});
  const file = await folder.getFileHandle(name, { create: true });
  const access = await file.createSyncAccessHandle();
  return { access, remove: () => removeClosed(folder, name) };
}

/**
 * Removes a file, with retries: Chromium allows this only some time after its access handle was
 * closed.
 * @param {any} folder
 * @param {string} name
 */
async function removeClosed(folder, name) {
  for (let tries = 0; tries < 100; tries++) {
    try {
      return await folder.removeEntry(name);
    } catch {
      await new Promise((settle) => setTimeout(settle, 20));
    }
  }
}
