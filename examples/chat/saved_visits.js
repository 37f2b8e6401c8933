// examples/chat/saved_visits.js — saves the model's state of a conversation, so that it is not
// recomputed at the next visit or after another model was used. The state stays in this browser, and
// is deleted first if storage is low.

import { WickError } from 'wick-llm';
import { note } from './developer.js';
import { byId, formatBytes } from './dom.js';
import { fits, keepBytes, readState, removeStates } from './kv_states.js';
import { chat } from './open_chat.js';
import { settings } from './settings.js';
import { listenToAll } from './tabs.js';

/** @import { ChatMessage, Engine } from 'wick-llm' */

/** The priority: below a user's question, because this work is for later ones. */
const PRIORITY = -10;

/** @param {unknown} error @returns {string} an empty string if the engine was closed, for example for another model */
function inWords(error) {
  if (!(error instanceof WickError)) return String(error);
  return error.code === 'CLOSED' ? '' : `${error.code}: ${error.message}`;
}

// ---- resuming ----

/**
 * The conversations that an engine has read, or has tried to read.
 * @type {WeakMap<Engine, Set<string>>}
 */
const read = new WeakMap();
/** The session that is being resumed. */
let taking = Promise.resolve();

/**
 * Adds the pages of a restored session to the prefix cache: the engine adds them as a prompt prefix
 * after one more token.
 * @param {Engine} own
 * @param {string} id of the conversation
 * @returns {Promise<string>} the outcome
 */
async function takeUp(own, id) {
  const kept = await readState(id);
  if (!kept) return 'none';
  const { fingerprint } = await own.info();
  if (fingerprint !== kept.facts.fingerprint) return 'MISMATCH: it was read by a different model';
  const { session } = await own.loadState(/** @type {any} */ (kept.bytes));
  if (!session) return 'not restored';
  try {
    const { messages } = kept.facts;
    const body = { messages, session, max_tokens: 1, temperature: 0 };
    const { usage } = await own.chat.completions.create(body);
    const { prompt_tokens: all, prompt_tokens_details: details } = usage;
    return `${details.cached_tokens} of ${all} tokens restored`;
  } finally {
    await session.close();
  }
}

function takeUpSoon() {
  const { engine: own, tree } = chat;
  const { id } = chat.about;
  if (!own) return;
  if (!settings.remember) return note('Last visit', 'not saved');
  if (tree.children.length === 0) return note('Last visit', 'none');
  const known = read.get(own) ?? new Set();
  read.set(own, known);
  if (known.has(id)) return;
  known.add(id);
  taking = taking
    .then(() => takeUp(own, id))
    .catch(inWords)
    .then((words) => void (words && note('Last visit', words)));
}

/**
 * @returns {Promise<void>} a promise that settles when the engine has loaded the saved state of the
 * conversation
 */
export const untilTakenUp = () => taking;

// ---- keeping ----

/** @typedef {{engine: Engine, id: string, messages: ChatMessage[]}} Wanted */

/** @param {Wanted} wanted @returns {Promise<string>} the outcome */
async function keepOnce({ engine: own, id, messages }) {
  const { pageBytes, pageTokens } = await own.kvStats();
  const guess = ((await own.countTokens(messages)) * pageBytes) / pageTokens;
  if (!fits(guess)) return `${formatBytes(guess)} is too large to store`;
  const { fingerprint } = await own.info();
  const session = await own.createSession();
  try {
    // the prompt is in the prefix cache, so only its last tokens are read
    const body = { messages, session, max_tokens: 1, temperature: 0, priority: PRIORITY };
    await own.chat.completions.create(body);
    const bytes = await session.save();
    if (!settings.remember) return ''; // the user has switched it off in the meantime
    const facts = {
      id,
      fingerprint: fingerprint ?? '',
      messages,
      size: bytes.byteLength,
      used: Date.now(),
    };
    await keepBytes(facts, bytes);
    return `${formatBytes(bytes.byteLength)} kept in this browser`;
  } finally {
    await session.close();
  }
}

/** The state to save after the one that is being saved. @type {Wanted | undefined} */
let next;
let isKeeping = false;

/**
 * @param {Engine} own the engine that has just answered
 * @param {string} id of the conversation
 * @param {ChatMessage[]} messages that it has read
 */
export async function keepState(own, id, messages) {
  if (messages.some(({ content }) => Array.isArray(content))) return; // images are not saved, so they would be recomputed
  next = { engine: own, id, messages };
  const known = read.get(own) ?? new Set();
  read.set(own, known.add(id));
  if (isKeeping) return;
  isKeeping = true;
  while (next && settings.remember) {
    const one = next;
    next = undefined;
    const words = await keepOnce(one).catch(inWords);
    if (words) note('Next visit', words); // its session is closed, so the panel is drawn without it
  }
  isKeeping = false;
  if (!settings.remember) await forget();
}

/** Removes the saved states of all conversations. */
export async function forget() {
  next = undefined;
  await removeStates().catch(() => {}); // no storage is available
  note('Next visit', 'nothing is saved');
}

for (const name of ['engine', 'conversation']) byId('log').addEventListener(name, takeUpSoon);
listenToAll(({ kind, conversation: id }) => {
  if (kind === 'gone') removeStates(id).catch(() => {});
});
