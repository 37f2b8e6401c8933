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

/** The parts of a turn that are erased with its text. */
const ERASED = /** @type {const} */ ([
  ...['system', 'facts', 'fork', 'fold', 'reasoning', 'reasoningMs', 'rounds', 'media'],
]);

/**
 * Empties a turn that was forgotten permanently. It keeps its position.
 * @template {Pick<Turn, 'content' | typeof ERASED[number]>} T
 * @param {T} turn which is changed
 * @returns {T}
 */
export function erase(turn) {
  turn.content = '';
  for (const name of ERASED) delete turn[name];
  return turn;
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

/** @param {unknown} value @returns {string | undefined} undefined if it is empty */
const textOf = (value) => (typeof value === 'string' && value !== '' ? value : undefined);

/** @template {object} T @param {T} fields @returns {T} the fields that are defined */
const defined = (fields) =>
  /** @type {T} */ (
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  );

/** @param {any} model @returns {ModelName | undefined} */
function modelOf(model) {
  const [name, url, kept, mmproj] = ['name', 'url', 'kept', 'mmproj'].map((field) =>
    textOf(model?.[field]),
  );
  if (name === undefined) return undefined;
  return defined({ name, url, kept, mmproj: model.mmproj === true || mmproj });
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
 * Converts a list of unknown origin to turns with new ids. A parent must come before its children.
 * @param {any[]} list each with its own `id` and the `parent`'s
 * @param {string} conversation
 * @returns {Map<unknown, Turn> | undefined} the turns by their ids in the list; undefined if it is
 * not a conversation
 */
function turnsOf(list, conversation) {
  /** @type {Map<unknown, Turn>} */
  const known = new Map();
  const now = Date.now();
  for (const [index, one] of list.entries()) {
    const isTurn = ['user', 'assistant'].includes(one?.role) && typeof one.content === 'string';
    const parent = known.get(one?.parent);
    if (!isTurn || typeof one.id !== 'string' || known.has(one.id)) return undefined;
    if (!parent && one.parent !== '') return undefined;
    const isQuestion = one.role === 'user';
    const reasoning = textOf(one.reasoning);
    known.set(one.id, {
      id: newId(),
      version: RECORD_VERSION,
      conversation,
      parent: parent?.id ?? '',
      role: one.role,
      content: one.content,
      state: ['stopped', 'length'].includes(one.state) ? one.state : 'whole',
      created: timeOf(one.created) ?? now + index,
      ...defined({
        system: textOf(one.system),
        facts: textOf(one.facts),
        reasoning,
        reasoningMs: reasoning === undefined ? undefined : timeOf(one.reasoningMs),
        rounds: isQuestion ? undefined : roundsFrom(one.rounds),
        media: isQuestion ? mediaFrom(one.media) : undefined,
        isStart: one.isStart === true || undefined,
        fold: one.isStart === true ? textOf(one.fold) : undefined,
        forgotten: (isQuestion && timeOf(one.forgotten)) || undefined,
      }),
    });
  }
  for (const one of list) {
    const [turn, shown] = [known.get(one.id), known.get(one.shown)];
    if (turn && shown?.parent === turn.id) turn.shown = shown.id;
  }
  return known;
}

/**
 * Converts an imported conversation, with new ids so that existing conversations are not replaced.
 * @param {any} found
 * @returns {Whole | undefined} undefined if it is not a record
 */
export function wholeFrom(found) {
  const list = found?.turns;
  const about = found?.conversation ?? {};
  if (!Array.isArray(list) || list.length === 0 || list.length > TURNS_MAX) return undefined;
  const id = newId();
  const known = turnsOf(list, id);
  if (!known) return undefined;
  const turns = [...known.values()];
  const first = turns.find(({ role }) => role === 'user')?.content ?? '';
  const conversation = newConversation({
    id,
    title: titleOf(textOf(about.title) ?? first),
    created: timeOf(about.created) ?? turns[0].created,
    changed: timeOf(about.changed) ?? Date.now(),
    isPinned: about.isPinned === true,
    ...defined({
      model: modelOf(about.model),
      settings: about.settings instanceof Object ? { ...about.settings } : undefined,
      shown: known.get(about.shown)?.id,
    }),
  });
  return { conversation, turns };
}
