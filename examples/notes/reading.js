// examples/notes/reading.js — reads the notes of a folder whose size or date has changed since the
// last time. Files that are not text are skipped and reported.

import { deleteNotes, readNotes, writeNote } from './database.js';
import { passagesOf, titleOf } from './passages.js';

/** @typedef {import('./database.js').Note} Note */
/** @typedef {import('./folder.js').Listing} Listing */

const NOTE_BYTES_MAX = 20 << 20;

/** @param {ArrayBuffer} bytes @returns {Promise<string>} a hash of the bytes */
async function hashOf(bytes) {
  // crypto.subtle exists only in pages that are served over HTTPS or from localhost
  if (!crypto.subtle) return `${bytes.byteLength} ${Math.random()}`;
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return [...digest.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {ArrayBuffer} bytes @returns {string | undefined} undefined if it is not text */
function textOf(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text.replaceAll('\r\n', '\n');
  } catch {
    return undefined;
  }
}

/**
 * @param {string} folder
 * @param {import('./folder.js').Found} found
 * @param {Note | undefined} before
 * @returns {Promise<Note | string>} the note, or a string with the reason why it was skipped
 */
async function readNote(folder, { path, file: open }, before) {
  const file = await open();
  const { size, lastModified: modified } = file;
  if (before && before.size === size && before.modified === modified) return before;
  if (size > NOTE_BYTES_MAX) return 'larger than 20 MB';
  const bytes = await file.arrayBuffer();
  const hash = await hashOf(bytes);
  if (before?.hash === hash) return { ...before, size, modified };
  const text = textOf(bytes);
  if (text === undefined) return 'not UTF-8 text';
  const title = titleOf(text, path);
  return { folder, path, size, modified, hash, title, passages: passagesOf(text) };
}

/**
 * @typedef {{notes: Note[], read: number, removed: number, skipped: {path: string, reason: string}[], isEmpty: boolean,
 *   unkept: number}} Reading `read`: the number of new or changed notes; `unkept`: the number that
 *   could not be stored; `isEmpty`: whether the folder no longer has notes, so that `notes` are from
 *   the last visit
 */

/** @param {Note} note @returns {Promise<boolean>} whether it could be stored */
async function keep(note) {
  try {
    await writeNote(note);
    return true;
  } catch (error) {
    if (/** @type {any} */ (error)?.name !== 'QuotaExceededError') throw error;
    return false;
  }
}

/**
 * @param {Listing} listing
 * @param {{onProgress: (done: number, all: number) => void, signal: AbortSignal}} how
 * @returns {Promise<Reading>}
 */
export async function readFolder({ name, found }, { onProgress, signal }) {
  const before = new Map((await readNotes(name)).map((note) => [note.path, note]));
  /** @type {Reading} */
  const reading = { notes: [], read: 0, removed: 0, skipped: [], isEmpty: false, unkept: 0 };
  // a folder that is suddenly empty may be a disk that is not connected
  if (found.length === 0 && before.size > 0)
    return { ...reading, notes: [...before.values()], isEmpty: true };
  for (const [index, one] of found.entries()) {
    signal.throwIfAborted();
    const old = before.get(one.path);
    /** @type {Note | string} */
    let note;
    try {
      note = await readNote(name, one, old);
    } catch (error) {
      note = error instanceof Error ? error.message : String(error); // it was removed, or its permissions forbid reading
    }
    if (typeof note === 'string') reading.skipped.push({ path: one.path, reason: note });
    else {
      reading.notes.push(note);
      if (note !== old && !(await keep(note))) reading.unkept++;
      if (note.hash !== old?.hash) reading.read++;
    }
    onProgress(index + 1, found.length);
  }
  const there = new Set(reading.notes.map(({ path }) => path));
  const gone = [...before.keys()].filter((path) => !there.has(path));
  await deleteNotes(name, gone);
  reading.removed = gone.length;
  return reading;
}
