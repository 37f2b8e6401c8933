// examples/chat/search.js — finds conversations by their messages, titles and drafts. The index
// (MiniSearch) is built at the first search and rebuilt after changes.

import MiniSearch from 'minisearch';
import { asText, untilHeld } from './attachments.js';
import { listenToAll } from './tabs.js';
import { keeper } from './write_queue.js';

/** `around` is the text where `words` were found. @typedef {{conversation: string, around: string, words: string[]}} Found */

const RESULTS_MAX = 50;
const LETTERS_BEFORE = 30;
const LETTERS_AROUND = 110;

/** @type {MiniSearch | undefined} */
let index;
/** @type {Promise<void> | undefined} */
let building;

listenToAll(() => {
  index = undefined;
});

async function build() {
  const { conversations, turns, drafts } = await keeper.store.everything();
  const made = new MiniSearch({ fields: ['title', 'text'], storeFields: ['conversation', 'text'] });
  const there = new Map(
    conversations.filter((one) => one.deleted === 0).map((one) => [one.id, one]),
  );
  const gone = new Set(turns.filter(({ forgotten }) => forgotten).map(({ id }) => id));
  const isGone = (/** @type {any} */ { id, role, parent }) =>
    gone.has(id) || (role === 'assistant' && gone.has(parent));
  const all = [...turns, ...drafts].filter((one) => there.has(one.conversation) && !isGone(one));
  const files = all.flatMap(({ media = [] }) => media.filter(({ kind }) => kind === 'text'));
  await untilHeld([{ media: files }]);
  made.addAll([
    ...[...there.values()].map(({ id, title }) => ({ id, conversation: id, title, text: '' })),
    ...all.map((one) => ({
      ...{ id: one.id, conversation: one.conversation, title: '' },
      text: ['content' in one ? one.content : one.text, ...(one.media ?? []).map(asText)].join(' '),
    })),
  ]);
  index = made;
}

/** @param {string} text @param {string[]} words @returns {string} */
function aroundFirst(text, words) {
  const low = text.toLowerCase();
  const places = words.map((word) => low.indexOf(word)).filter((at) => at >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - LETTERS_BEFORE);
  const cut = text.slice(start, start + LETTERS_AROUND).replace(/\s+/g, ' ');
  return `${start > 0 ? '…' : ''}${cut}${start + LETTERS_AROUND < text.length ? '…' : ''}`;
}

/** @param {string} query @returns {Promise<Found[]>} each conversation at most once, the best match first */
export async function search(query) {
  if (!index) {
    building ??= build().finally(() => {
      building = undefined;
    });
    await building;
  }
  const results = index?.search(query, {
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    boost: { title: 2 },
    combineWith: 'AND',
  });
  /** @type {Map<string, Found>} */
  const found = new Map();
  for (const { conversation, text, terms } of results ?? []) {
    if (found.has(conversation) || found.size === RESULTS_MAX) continue;
    found.set(conversation, { conversation, around: aroundFirst(text, terms), words: terms });
  }
  return [...found.values()];
}
