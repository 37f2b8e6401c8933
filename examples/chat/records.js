// examples/chat/records.js — the records of conversations: their shapes, and the conversion of
// values from outside (an earlier page, an imported file) to records.

import { roundsFrom } from './tool_calls.js';

/**
 * The version of the record format. Records with a higher version are not changed, because a newer
 * page has written them.
 */
export const RECORD_VERSION = 1;

/**
 * `kept` is the fingerprint of a stored model without a URL. `mmproj` is the fingerprint of
 * its encoders, or true if they are in its repository.
 * @typedef {{name: string, url?: string, kept?: string, mmproj?: string | true}} ModelName
 */
/**
 * `changed` is the time of the last message. `deleted` is when the user deleted it, or 0. `shown`
 * is the turn that is shown first. `book` is the book that it is about (book_store.js).
 * @typedef {{id: string, version: number, title: string, created: number, changed: number, isPinned: boolean,
 *   deleted: number, model?: ModelName, settings?: Record<string, unknown>, shown?: string, book?: string}} Conversation
 */
/**
 * `writing`: an answer that is being generated, or one whose tab was closed in the meantime.
 * @typedef {'whole' | 'writing' | 'stopped' | 'length'} State
 */
/**
 * `parent` is the turn before it, '' at the beginning. `shown` is the turn that is shown after it.
 * `writer` is the tab that generates it. With `isStart`, the model reads the conversation starting
 * here; `fold` is a summary of the turns before. `forgotten` is when the user removed this question
 * and its answers from the model's prompt, or 0. `fork` is the answer with which this one shares its
 * beginning, and where the two differ. `reasoning` is the model's reasoning before the answer, and
 * `rounds` are the tool calls before it.
 * @typedef {{id: string, version: number, conversation: string, parent: string, role: 'user' | 'assistant',
 *   content: string, state: State, created: number, system?: string, facts?: string, writer?: string,
 *   shown?: string, isStart?: boolean, fold?: string, forgotten?: number, fork?: {of: string, at: number},
 *   reasoning?: string, reasoningMs?: number, media?: import('./attachments.js').Medium[],
 *   rounds?: import('./tool_calls.js').Round[]}} Turn
 */
/**
 * Text that was typed but not sent. `field` is '' or the question that is being edited.
 * @typedef {{id: string, version: number, conversation: string, field: string, text: string, tab: string, changed: number,
 *   media?: import('./attachments.js').Medium[]}} Draft
 */
/** A whole conversation. @typedef {{conversation: Conversation, turns: Turn[]}} Whole */

const TITLE_LETTERS_MAX = 60;
/** Limits for imported files. */
const TURNS_MAX = 100_000;
const NUMBER_MAX = Number.MAX_SAFE_INTEGER;

export const newId = () =>
  globalThis.crypto?.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (one) => one.toString(36)).join('-');

/** @param {Turn} turn that was forgotten permanently @returns {Turn} an empty turn in its position */
export function erased({
  system,
  facts,
  fork,
  fold,
  reasoning,
  reasoningMs,
  rounds,
  media,
  ...place
}) {
  return { ...place, content: '' };
}

/** @param {Partial<Conversation>} [known] @returns {Conversation} */
export function newConversation(known = {}) {
  const now = Date.now();
  return {
    id: newId(),
    version: RECORD_VERSION,
    title: '',
    created: now,
    changed: now,
    isPinned: false,
    deleted: 0,
    ...known,
  };
}

/** @param {string} text @returns {string} its first words */
export function titleOf(text) {
  const line = text
    .replace(/^`{3,}.*$/gm, '') // fences around attached text
    .trim()
    .replace(/\s+/g, ' ');
  if (line.length <= TITLE_LETTERS_MAX) return line;
  const cut = line.slice(0, TITLE_LETTERS_MAX);
  const space = cut.lastIndexOf(' ');
  return `${cut.slice(0, space > TITLE_LETTERS_MAX / 2 ? space : undefined)}…`;
}

/** @param {unknown} value @returns {number | undefined} */
const timeOf = (value) =>
  typeof value === 'number' && value >= 0 && value <= NUMBER_MAX ? value : undefined;

/** @param {unknown} value @returns {string | undefined} */
const textOf = (value) => (typeof value === 'string' ? value : undefined);

/** @param {any} model @returns {ModelName | undefined} */
function modelOf(model) {
  const [name, url, kept] = [model?.name, model?.url, model?.kept].map(textOf);
  if (name === undefined) return undefined;
  const mmproj = model.mmproj === true || textOf(model.mmproj);
  return {
    name,
    ...(url !== undefined && { url }),
    ...(kept !== undefined && { kept }),
    ...(mmproj && { mmproj }),
  };
}

/** The maximum number of attachments, which is above the page's own limit. */
const MEDIA_MAX = 100;
const MEDIA_NAME_MAX = 1000;

/**
 * @param {any} one
 * @returns {boolean} whether it is an attachment; SVG drawings are rejected, because they could
 * contain scripts
 */
const isMedium = (one) =>
  /^[\w-]{1,100}$/.test(one?.id) &&
  ['image', 'audio', 'text'].includes(one.kind) &&
  typeof one.name === 'string' &&
  one.name.length <= MEDIA_NAME_MAX &&
  /^((image|audio)\/(?!svg)[\w.+-]{1,100}|text\/plain)$/.test(one.type) &&
  ['string', 'undefined'].includes(typeof one.data);

/**
 * @param {unknown} list of unknown origin
 * @returns {import('./attachments.js').Medium[] | undefined} `data` is base64 in an exported
 * conversation
 */
function mediaFrom(list) {
  if (!Array.isArray(list) || list.length === 0 || list.length > MEDIA_MAX) return undefined;
  if (!list.every(isMedium)) return undefined;
  return list.map(({ id, kind, name, type, data }) => ({
    ...{ id, kind, name, type, ...(data !== undefined && { data }) },
  }));
}

/**
 * Converts a list of unknown origin to turns. A parent must come before its children.
 * @param {any[]} list each with its own `id` and the `parent`'s
 * @param {string} conversation
 * @param {(id: string) => string} idFor
 * @returns {Turn[] | undefined} undefined if it is not a conversation
 */
function turnsOf(list, conversation, idFor) {
  /** @type {Map<unknown, Turn>} */
  const known = new Map();
  const now = Date.now();
  for (const [index, one] of list.entries()) {
    const isTurn = ['user', 'assistant'].includes(one?.role) && typeof one.content === 'string';
    const parent = known.get(one?.parent);
    if (!isTurn || typeof one.id !== 'string' || known.has(one.id)) return undefined;
    if (!parent && one.parent !== '') return undefined;
    const system = textOf(one.system);
    const facts = textOf(one.facts);
    const reasoning = textOf(one.reasoning);
    const fold = textOf(one.fold);
    const reasoningMs = timeOf(one.reasoningMs);
    const rounds = one.role === 'assistant' ? roundsFrom(one.rounds) : undefined;
    const media = one.role === 'user' ? mediaFrom(one.media) : undefined;
    known.set(one.id, {
      id: idFor(one.id),
      version: RECORD_VERSION,
      conversation,
      parent: parent?.id ?? '',
      role: one.role,
      content: one.content,
      state: ['stopped', 'length'].includes(one.state) ? one.state : 'whole',
      created: timeOf(one.created) ?? now + index,
      ...(system && { system }),
      ...(facts && { facts }),
      ...(reasoning && { reasoning, ...(reasoningMs !== undefined && { reasoningMs }) }),
      ...(rounds && { rounds }),
      ...(media && { media }),
      ...(one.isStart === true && { isStart: true, ...(fold && { fold }) }),
      ...(one.role === 'user' && timeOf(one.forgotten) && { forgotten: one.forgotten }),
    });
  }
  for (const one of list) {
    const [turn, shown] = [known.get(one.id), known.get(one.shown)];
    if (turn && shown?.parent === turn.id) turn.shown = shown.id;
  }
  return [...known.values()];
}

/**
 * Converts an imported conversation, with new ids so that existing conversations are not replaced.
 * @param {any} found
 * @param {string} [base] the id prefix; random by default
 * @returns {Whole | undefined} undefined if it is not a record
 */
export function wholeFrom(found, base) {
  const { conversation: about = {}, turns: list } = found ?? {};
  if (!Array.isArray(list) || list.length === 0 || list.length > TURNS_MAX) return undefined;
  const id = base ?? newId();
  /** @type {Map<string, string>} */
  const ids = new Map();
  const idFor = (/** @type {string} */ one) => {
    const made = ids.get(one) ?? (base ? `${base}-${ids.size}` : newId());
    ids.set(one, made);
    return made;
  };
  const turns = turnsOf(list, id, idFor);
  if (!turns) return undefined;
  const first = turns.find(({ role }) => role === 'user')?.content ?? '';
  const model = modelOf(about?.model);
  const shown = typeof about?.shown === 'string' ? ids.get(about.shown) : undefined;
  const isObject = typeof about?.settings === 'object' && about.settings !== null;
  const conversation = newConversation({
    id,
    title: titleOf(textOf(about?.title) ?? first),
    created: timeOf(about?.created) ?? turns[0].created,
    changed: timeOf(about?.changed) ?? Date.now(),
    isPinned: about?.isPinned === true,
    ...(model && { model }),
    ...(isObject && { settings: { ...about.settings } }),
    ...(shown && { shown }),
  });
  return { conversation, turns };
}

/**
 * Converts the only conversation of earlier versions of the page: a list, in which `parent` is an
 * index, or -1 for the beginning.
 * @param {unknown} list
 * @param {string} base the prefix of its ids
 * @returns {Whole | undefined} undefined if it is not a record
 */
export function wholeFromList(list, base) {
  if (!Array.isArray(list)) return undefined;
  /** @type {Map<number, string>} */
  const shown = new Map();
  const turns = list.map((one, index) => {
    const parent = one?.parent ?? index - 1;
    if (one?.isShown !== false) shown.set(parent, String(index));
    return { ...one, id: String(index), parent: parent === -1 ? '' : String(parent) };
  });
  const withShown = turns.map((one, index) => ({ ...one, shown: shown.get(index) }));
  return wholeFrom({ conversation: { shown: shown.get(-1) }, turns: withShown }, base);
}
