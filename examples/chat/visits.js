// examples/chat/visits.js — stores the engine's prefix cache for the next visit, so that the same beginning is
// not read again. It stays in this browser. In a browser that stores nothing, each visit is the first.

import { WickError } from 'wick-llm';
import { note } from './developer.js';
import { formatBytes } from './dom.js';
import { settings } from './settings.js';

/** @typedef {import('wick-llm').Engine} Engine */

/** One state, of the model that answered last, to use little of the browser's storage. */
const STATE = 'chat-page';
const STATE_BYTES_MAX = 256e6;

/** @param {unknown} error @returns {string} */
const inWords = (error) =>
  error instanceof WickError ? `${error.code}: ${error.message}` : String(error);

/**
 * Loads the state of the last visit. A state of another model, or a damaged one, is only reported: the
 * engine then reads everything, and the state after the next answer replaces it.
 * @param {Engine} engine
 */
export async function takeUpState(engine) {
  if (!settings.remember) return note('Last visit', 'not remembered');
  try {
    const { entries } = await engine.loadState(STATE);
    note('Last visit', `${entries} entries of the prefix cache taken up`);
  } catch (error) {
    const isFirst = error instanceof WickError && error.code === 'NOT_FOUND';
    note('Last visit', isFirst ? 'none' : inWords(error));
  }
}

/** @param {Engine} engine */
async function keepOnce(engine) {
  const { prefix, pageBytes } = await engine.kvStats();
  const size = (prefix?.pagesHeld ?? 0) * pageBytes;
  if (size === 0) return;
  if (size > STATE_BYTES_MAX) {
    note('Next visit', `${formatBytes(size)} are too much to keep`);
    return;
  }
  const { byteLength } = await engine.saveState(STATE);
  note('Next visit', `${formatBytes(byteLength)} kept in this browser`);
}

/** @type {Engine | undefined} whose state is to be kept when the one under way is */
let next;
let isKeeping = false;

/** @param {Engine} engine that has just answered */
export async function keepState(engine) {
  next = engine;
  if (isKeeping) return;
  isKeeping = true;
  while (next && settings.remember) {
    const one = next;
    next = undefined;
    await keepOnce(one).catch((error) => {
      const isGone = error instanceof WickError && error.code === 'CLOSED'; // another model was loaded
      if (!isGone) note('Next visit', inWords(error));
    });
  }
  isKeeping = false;
  if (!settings.remember) await forget(); // the user has switched it off meanwhile
}

/** Removes the state from this browser. */
export async function forget() {
  next = undefined;
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('wick-llm');
    await folder.removeEntry(STATE);
  } catch {
    // there was nothing
  }
  note('Next visit', 'nothing is kept');
}
