// examples/chat/drafts.js — stores text after each keystroke, in the message field and in the
// fields for editing questions. A draft belongs to one tab. After that tab is closed, the next one
// that opens the conversation takes it over.

import { attachedMedia, setAttached } from './attachments.js';
import { byId } from './dom.js';
import { enter, strike } from './journal.js';
import { newId, RECORD_VERSION } from './records.js';
import { isOpenElsewhere, tab } from './tabs.js';
import { keeper } from './write_queue.js';

/** @typedef {import('./records.js').Conversation} Conversation */
/** @typedef {import('./records.js').Draft} Draft */

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** @type {() => Conversation} */
let current = () => {
  throw new Error('no conversation yet');
};
/** This tab's drafts: their ids by conversation and field. @type {Map<string, string>} */
const ids = new Map();

/** The latest drafts, by id. @type {Map<string, Draft>} */
const latest = new Map();

/** @param {string} conversation @param {string} field */
const placeOf = (conversation, field) => `${conversation} ${field}`;

/** @param {Conversation} conversation @param {string} field @param {string} text @returns {Draft} */
function draftOf({ id: conversation }, field, text) {
  const place = placeOf(conversation, field);
  const id = ids.get(place) ?? newId();
  ids.set(place, id);
  const media = field === '' ? attachedMedia() : [];
  const draft = { id, version: RECORD_VERSION, conversation, field, text, tab };
  return { ...draft, changed: Date.now(), ...(media.length > 0 && { media }) };
}

/** @param {string} text @param {string} [field] the id of a question that is being edited */
export function keepDraft(text, field = '') {
  const conversation = current();
  const place = placeOf(conversation.id, field);
  const isEmpty = text === '' && (field !== '' || attachedMedia().length === 0);
  if (isEmpty && !ids.has(place)) return;
  const draft = draftOf(conversation, field, text);
  const about = { ...conversation };
  enter(draft.id, { about, draft });
  keeper.replace(`draft ${draft.id}`, async (store) => {
    await store.keepDraft(about, draft);
    if (latest.get(draft.id) === draft) strike(draft.id);
  });
  latest.set(draft.id, draft);
}

/**
 * @param {string} conversation
 * @param {string} [field]
 * @returns {string | undefined} the id of the draft that is sent now; the next one gets a new id
 */
export function takeDraft(conversation, field = '') {
  const place = placeOf(conversation, field);
  const id = ids.get(place);
  ids.delete(place);
  if (id) keeper.forget(`draft ${id}`);
  if (id) latest.delete(id);
  return id;
}

/**
 * @param {Conversation} conversation
 * @param {Draft[]} drafts the conversation's drafts
 * @returns {Promise<Map<string, string>>} texts by field: this tab's, or the newest of a closed tab
 */
export async function takeUpDrafts(conversation, drafts) {
  const texts = new Map();
  for (const draft of drafts.sort((a, b) => b.changed - a.changed)) {
    const { field, text } = draft;
    const place = placeOf(conversation.id, field);
    const isOwn = ids.get(place) === draft.id;
    const isTaken = texts.has(field) || ids.has(place);
    if (!isOwn && (isTaken || (await isOpenElsewhere(draft.tab)))) continue;
    texts.set(field, text);
    if (field === '') setAttached(draft.media ?? [], false);
    if (isOwn) continue;
    const own = draftOf(conversation, field, text);
    keeper.add((store) => store.adoptDraft(draft, own));
  }
  return texts;
}

export function fitPrompt() {
  promptField.style.height = 'auto';
  promptField.style.height = `${promptField.scrollHeight}px`;
}

/**
 * Returns the question for the typed text. Text that the model continues keeps its leading white
 * space.
 * @param {string} text
 */
export const asSent = (text) =>
  document.body.classList.contains('continuing') ? text.replace(/ +$/, '') : text.trim();

/** @param {string} text */
export function setPrompt(text) {
  promptField.value = text;
  fitPrompt();
}

/**
 * Enters text as if it were typed: it is stored, and the user may send it.
 * @param {string} text
 */
export function writePrompt(text) {
  promptField.value = text;
  promptField.dispatchEvent(new Event('input'));
  promptField.focus();
}

/** @param {() => Conversation} conversation returns the open one */
export function watchPrompt(conversation) {
  current = conversation;
  promptField.addEventListener('input', () => {
    fitPrompt();
    keepDraft(promptField.value);
  });
}
