// examples/chat/journal.js — what is typed and not stored yet. IndexedDB takes some milliseconds, in which the page may be
// closed; localStorage takes none. An entry goes as soon as the store has it. Those of tabs that are gone are
// stored at the next start.

import { settings } from './settings.js';
import { isOpenElsewhere, tab } from './tabs.js';

/** @typedef {import('./records.js').Conversation} Conversation */
/** @typedef {import('./store.js').Store} Store */
/** @typedef {{tab: string, about: Conversation, draft: import('./records.js').Draft}} TypedDraft */
/** @typedef {{tab: string, about: Conversation, question: import('./records.js').Turn}} TypedQuestion */
/** @typedef {{tab: string, about: Conversation, forgotten: {id: string, at: number}}} Forgotten */

const PREFIX = 'wick-chat-typed ';
/** What entries of questions to forget begin with. */
export const FORGET = 'forget ';

/** @param {string} id @param {Omit<TypedDraft, 'tab'> | Omit<TypedQuestion, 'tab'> | Omit<Forgotten, 'tab'>} entry */
export function enter(id, entry) {
  try {
    if (settings.remember) localStorage.setItem(PREFIX + id, JSON.stringify({ tab, ...entry }));
  } catch {
    // no storage here, or no room: the store has it a little later
  }
}

/** @param {string} id of what the store has now, or what was taken back */
export function strike(id) {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // no storage here
  }
}

/** @param {Store} store @param {any} entry */
async function keep(store, { about, draft, question, forgotten }) {
  if (forgotten) await store.changeTurn(forgotten.id, { forgotten: forgotten.at });
  if (question && !(await store.turn(question.id))) await store.ask(about, question);
  const kept = draft && (await store.draft(draft.id));
  if (draft && !(kept?.changed > draft.changed)) await store.keepDraft(about, draft);
}

/** Stores what tabs have typed that are gone. @param {Store} store */
export async function takeUp(store) {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  const isForgetting = (/** @type {string} */ key) => Number(key.startsWith(PREFIX + FORGET));
  keys.sort((a, b) => isForgetting(a) - isForgetting(b)); // after the questions that it is about
  for (const key of keys) {
    const text = localStorage.getItem(key);
    const entry = text && JSON.parse(text);
    if (!entry || (await isOpenElsewhere(entry.tab))) continue;
    await keep(store, entry);
    localStorage.removeItem(key);
  }
}
