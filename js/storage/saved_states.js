// js/storage/saved_states.js — saved states: in browsers in the origin private file system, in Node and Deno in files.
// The old file is kept until the new one is complete, if the system supports that.

import { argumentError } from '../base/errors.js';
import { canWriteHere, readFile, storageError, writeFile } from './browser_files.js';
import { replaceFile } from './replace_file.js';

const fs = () => globalThis.process?.getBuiltinModule?.('node:fs');

/** @param {string} name */
function checkName(name) {
  if (typeof name !== 'string' || name === '') throw argumentError('state: needs a name');
  if (!fs() && /[/\\]|^\.+$/.test(name)) {
    throw argumentError(
      `${name} is not a valid name for a state: it must not be a path in browsers`,
    );
  }
}

/**
 * @param {string} name
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {() => Promise<void>} askWorker lets a worker write them if this thread cannot
 */
export async function keepBytes(name, bytes, askWorker) {
  checkName(name);
  try {
    const files = fs()?.promises;
    if (!files) return await (canWriteHere() ? writeFile(name, bytes) : askWorker());
    await replaceFile(files, name, bytes);
  } catch (error) {
    throw storageError(name, error, `Folder not found: ${name}`);
  }
}

/** @param {string} name @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function readBytes(name) {
  checkName(name);
  try {
    const files = fs()?.promises;
    return files ? new Uint8Array(await files.readFile(name)) : await readFile(name);
  } catch (error) {
    throw storageError(name, error);
  }
}
