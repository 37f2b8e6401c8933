// examples/chat/journal.js — a journal of input that is not stored yet. IndexedDB needs a few
// milliseconds, during which the page may be closed; localStorage is immediate. An entry is removed
// as soon as its input is stored. Entries from closed tabs are stored at the next start
// (orphaned_drafts.js).

import { keepJson, keepValue, readJson } from './local_storage.js';
import { settings } from './settings.js';
import { tab } from './tabs.js';

/** @typedef {import('./records.js').Conversation} Conversation */
/** @typedef {{tab: string, about: Conversation, draft: import('./records.js').Draft}} TypedDraft */
/** @typedef {{tab: string, about: Conversation, question: import('./records.js').Turn}} TypedQuestion */
/** @typedef {{tab: string, about: Conversation, forgotten: {id: string, at: number, isForGood: boolean}}} Forgotten */

const PREFIX = 'wick-chat-typed ';
/** The id prefix of entries for questions to forget. */
const FORGET = 'forget ';

/**
 * @param {string} id
 * @param {Omit<TypedDraft, 'tab'> | Omit<TypedQuestion, 'tab'> | Omit<Forgotten, 'tab'>} entry
 * @returns {boolean} false if it is not in the journal
 */
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

/** @returns {string[]} the keys of all entries, of any tab */
export const enteredKeys = () => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
