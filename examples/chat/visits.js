// examples/chat/visits.js — what the next visit finds: the conversation, and what the engine has read of
// it, so that the same beginning is not read again. All of it stays in this browser; where that keeps
// nothing, each visit is the first.

import { WickError } from 'wick-llm';
import { note } from './developer.js';
import { formatBytes } from './dom.js';
import { settings } from './settings.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('./tree.js').Kept} Kept */

/** One state, of the model that answered last: a browser's room is not ours to fill. */
const STATE = 'chat-page';
const STATE_BYTES_MAX = 256e6;
const CONVERSATION = 'wick-chat-conversation';

// ---- the conversation ----

/** @returns {unknown} */
export function readConversation() {
  try {
    return JSON.parse(localStorage.getItem(CONVERSATION) ?? '[]');
  } catch {
    return []; // no storage here, or not ours
  }
}

/** @param {Kept[]} messages */
export function keepConversation(messages) {
  try {
    if (settings.remember && messages.length > 0) {
      localStorage.setItem(CONVERSATION, JSON.stringify(messages));
    } else {
      localStorage.removeItem(CONVERSATION);
    }
  } catch {
    // A page without storage, or without room there, forgets the conversation, that is all.
  }
}

// ---- what was read of it ----

/** @param {unknown} error @returns {string} */
const inWords = (error) =>
  error instanceof WickError ? `${error.code}: ${error.message}` : String(error);

/**
 * Takes up what the last visit has left. A state of another model, or a damaged one, is told of and no
 * more: then the engine reads everything, and the next answer's state replaces it.
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
      const isGone = error instanceof WickError && error.code === 'CLOSED'; // another model came
      if (!isGone) note('Next visit', inWords(error));
    });
  }
  isKeeping = false;
  if (!settings.remember) await forget(); // the user changed his mind meanwhile
}

/** Leaves nothing of what was said in this browser. */
export async function forget() {
  next = undefined;
  keepConversation([]);
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('wick-llm');
    await folder.removeEntry(STATE);
  } catch {
    // there was nothing
  }
  note('Next visit', 'nothing is kept');
}
