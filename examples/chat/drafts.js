// examples/chat/drafts.js — stores text after each keystroke, in the message field and in the
// fields for editing questions. A draft belongs to one tab. After that tab is closed, the next one
// that opens the conversation takes it over.

import { attachedMedia, setAttached } from './attachments.js';
import { byId } from './dom.js';
import { enter, strike } from './journal.js';
import { chat } from './open_chat.js';
import { newId, RECORD_VERSION } from './records.js';
import { isOpenElsewhere, tab } from './tabs.js';
import { keeper } from './write_queue.js';

/** @import { Medium } from './attachments.js' */
/** @import { Conversation, Draft } from './records.js' */

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** This tab's drafts, by conversation and field. @type {Map<string, Draft>} */
const own = new Map();

/** @param {string} conversation @param {string} field */
const placeOf = (conversation, field) => `${conversation} ${field}`;

/** @param {Conversation} conversation @param {string} field @param {string} text @param {Medium[]} media @returns {Draft} */
function draftOf({ id: conversation }, field, text, media) {
  const place = placeOf(conversation, field);
  const id = own.get(place)?.id ?? newId();
  const known = { id, version: RECORD_VERSION, conversation, field, text, tab };
  const draft = { ...known, changed: Date.now(), ...(media.length > 0 && { media }) };
  own.set(place, draft);
  return draft;
}

/** @param {Conversation} conversation @param {string} field @param {string} text @param {Medium[]} media */
function save(conversation, field, text, media) {
  const place = placeOf(conversation.id, field);
  if (text === '' && media.length === 0 && !own.has(place)) return;
  const draft = draftOf(conversation, field, text, media);
  const about = { ...conversation };
  enter(draft.id, { about, draft });
  keeper.replace(`draft ${draft.id}`, async (store) => {
    await store.keepDraft(about, draft);
    if (own.get(place) === draft) strike(draft.id);
  });
}

/** @param {string} text @param {string} [field] the id of a question that is being edited */
export const keepDraft = (text, field = '') =>
  save(chat.about, field, text, field === '' ? attachedMedia() : []);

/** @param {Conversation} conversation */
const draftIn = ({ id }) => own.get(placeOf(id, ''));

/** @param {Conversation} conversation @returns {Medium[]} the attachments of the next message */
export const mediaIn = (conversation) =>
  conversation.id === chat.about.id ? attachedMedia() : (draftIn(conversation)?.media ?? []);

/** @param {Conversation} conversation which may not be open any more @param {Medium[]} media the attachments of its next message */
export function setMediaIn(conversation, media) {
  if (conversation.id === chat.about.id) setAttached(media);
  else save(conversation, '', draftIn(conversation)?.text ?? '', media);
}

/**
 * @param {string} conversation
 * @param {string} [field]
 * @returns {string | undefined} the id of the draft that is sent now; the next one gets a new id
 */
export function takeDraft(conversation, field = '') {
  const place = placeOf(conversation, field);
  const id = own.get(place)?.id;
  own.delete(place);
  if (id) keeper.forget(`draft ${id}`);
  return id;
}

/** Removes this tab's draft of a conversation, and the conversation if it has nothing else. @param {Conversation} conversation */
export function dropDraft(conversation) {
  const id = takeDraft(conversation.id);
  if (!id) return;
  strike(id);
  const none = { ...draftOf(conversation, '', '', []), id };
  own.delete(placeOf(conversation.id, ''));
  keeper.add((store) => store.keepDraft(conversation, none));
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
    const isOwn = own.get(place)?.id === draft.id;
    const isTaken = texts.has(field) || own.has(place);
    if (!isOwn && (isTaken || (await isOpenElsewhere(draft.tab)))) continue;
    texts.set(field, text);
    if (field === '') setAttached([...(draft.media ?? []), ...attachedMedia()], false);
    if (isOwn) continue;
    const adopted = draftOf(conversation, field, text, draft.media ?? []);
    keeper.add((store) => store.adoptDraft(draft, adopted));
  }
  return texts;
}

function fitPrompt() {
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

promptField.addEventListener('input', () => {
  fitPrompt();
  keepDraft(promptField.value);
});
