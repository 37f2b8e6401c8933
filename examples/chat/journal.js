// examples/chat/journal.js — a journal of input that is not stored yet. IndexedDB needs a few
// milliseconds, during which the page may be closed; localStorage is immediate. An entry is removed
// as soon as its input is stored. Entries from closed tabs are stored at the next start.

import { keepJson, keepValue, readJson } from './local_storage.js';
import { settings } from './settings.js';
import { isOpenElsewhere, tab } from './tabs.js';

/** @import { Conversation } from './records.js' */
/** @import { Store } from './store.js' */
/**
 * Input of a conversation: typed text, a question, or that a question is forgotten.
 * @typedef {{about: Conversation, draft?: import('./records.js').Draft, question?: import('./records.js').Turn,
 *   forgotten?: {id: string, at: number, isForGood: boolean}}} Entry
 */

const PREFIX = 'wick-chat-typed ';
/** The id prefix of entries for questions to forget. */
const FORGET = 'forget ';

/** @param {string} id @param {Entry} entry @returns {boolean} false if it is not in the journal */
export const enter = (id, entry) => settings.remember && keepJson(PREFIX + id, { tab, ...entry });

/** @param {string} id of input that is now stored, or was undone */
export const strike = (id) => keepValue(PREFIX + id, undefined);

/**
 * Records that a question is forgotten or restored.
 * @param {string} question its id
 * @param {Conversation} about
 * @param {number} at the time; 0 restores it
 * @param {boolean} [isForGood]
 */
export function enterForgotten(question, about, at, isForGood = false) {
  enter(FORGET + question, { about: { ...about }, forgotten: { id: question, at, isForGood } });
}

/** Stores an entry of a closed tab. @param {Store} store @param {Entry} entry */
async function keep(store, { about, draft, question, forgotten }) {
  if (forgotten) {
    const { id, at, isForGood } = forgotten;
    await store.changeTurn(id, { forgotten: at });
    if (isForGood) await store.erase(about.id, (one) => one.id === id);
  }
  if (question && !(await store.turn(question.id))) await store.ask(about, question);
  const kept = draft && (await store.draft(draft.id));
  if (draft && !(kept && kept.changed > draft.changed)) await store.keepDraft(about, draft);
}

/** Stores the entries of closed tabs. @param {Store} store */
export async function takeUp(store) {
  const keys = enteredKeys();
  const isForgetting = (/** @type {string} */ key) => Number(key.startsWith(PREFIX + FORGET));
  keys.sort((a, b) => isForgetting(a) - isForgetting(b)); // a forgotten turn comes after the question that it refers to
  for (const key of keys) {
    const entry = readJson(key);
    if (!entry || (await isOpenElsewhere(entry.tab))) continue;
    await keep(store, entry);
    localStorage.removeItem(key);
  }
}

/**
 * Removes the entry, unless the question was changed again in the meantime.
 * @param {string} question
 * @param {number} at
 * @param {boolean} [isForGood]
 */
export function strikeForgotten(question, at, isForGood = false) {
  const { forgotten } = readJson(PREFIX + FORGET + question) ?? {};
  if (forgotten?.at === at && forgotten.isForGood === isForGood) strike(FORGET + question);
}

/** @returns {string[]} the keys of the entries of other tabs; write_queue.js stores those of this one */
export const enteredKeys = () =>
  Object.keys(localStorage).filter((key) => key.startsWith(PREFIX) && readJson(key)?.tab !== tab);
