// examples/notes/database.js — notes, their passages and their vectors in IndexedDB. Vectors are
// stored by model, so that they are kept when another model is used.

import { openDB } from 'idb';

const NAME = 'wick-notes';
const VERSION = 1;

/**
 * @typedef {import('./passages.js').Passage} Passage
 * @typedef {{folder: string, path: string, size: number, modified: number, hash: string, title: string,
 *   passages: Passage[]}} Note
 * @typedef {{model: string, folder: string, path: string, hash: string, texts: string[], vectors: Float32Array,
 *   dimensions: number}} Vectors of the first `texts.length` passages, one after the other
 */

/** @type {Promise<import('idb').IDBPDatabase> | undefined} */
let opening;

function open() {
  opening ??= openDB(NAME, VERSION, {
    upgrade: (db) => {
      db.createObjectStore('notes', { keyPath: ['folder', 'path'] });
      db.createObjectStore('vectors', { keyPath: ['model', 'folder', 'path'] });
      db.createObjectStore('settings');
    },
    blocking: (_, __, event) => /** @type {IDBDatabase} */ (event.target).close(),
    terminated: () => {
      opening = undefined;
    },
  });
  opening.catch(() => {
    opening = undefined;
  });
  return opening;
}

/** Returns the range of keys that begin with these parts. @param {...string} parts */
const beginning = (...parts) => IDBKeyRange.bound(parts, [...parts, []]);

/** @param {string} folder @returns {Promise<Note[]>} */
export const readNotes = async (folder) => (await open()).getAll('notes', beginning(folder));

/** @param {string} folder @returns {Promise<Map<string, number>>} the sizes of its notes' files in bytes, by path */
export async function readSizes(folder) {
  const transaction = (await open()).transaction('notes');
  const found = new Map();
  for await (const { value } of transaction.store.iterate(beginning(folder)))
    found.set(value.path, value.size);
  return found;
}

/** @param {string} model @param {string} folder @returns {Promise<Vectors[]>} */
export const readVectors = async (model, folder) =>
  (await open()).getAll('vectors', beginning(model, folder));

/** @param {Note} note */
export const writeNote = async (note) => void (await (await open()).put('notes', note));

/** @param {Vectors[]} all stored in one transaction */
export async function writeVectors(all) {
  const transaction = (await open()).transaction('vectors', 'readwrite');
  const done = transaction.done; // rejects with the reason why a transaction failed, such as a full disk
  await Promise.all([...all.map((one) => transaction.store.put(one)), done]);
}

/** @param {string} folder @param {string[]} paths of deleted notes */
export async function deleteNotes(folder, paths) {
  if (paths.length === 0) return;
  const gone = new Set(paths);
  const transaction = (await open()).transaction(['notes', 'vectors'], 'readwrite');
  const vectors = transaction.objectStore('vectors');
  for (const path of gone) transaction.objectStore('notes').delete([folder, path]);
  for (const key of /** @type {string[][]} */ (await vectors.getAllKeys()))
    if (key[1] === folder && gone.has(key[2])) vectors.delete(key);
  await transaction.done;
}

/** @param {string} name */
export const readSetting = async (name) => (await open()).get('settings', name);

/** @param {string} name @param {unknown} value */
export const writeSetting = async (name, value) =>
  void (await (await open()).put('settings', value, name));

/** Deletes all stored data of all folders. */
export async function forgetAll() {
  const stores = ['notes', 'vectors', 'settings'];
  const transaction = (await open()).transaction(stores, 'readwrite');
  for (const name of stores) transaction.objectStore(name).clear();
  await transaction.done;
}
