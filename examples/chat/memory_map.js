// examples/chat/memory_map.js — shows the tree of a conversation and the map of KV cache pages: every question and answer,
// on all branches, with its pages in the engine, and the pages that branches share. This
// file is loaded when the map is first opened.

import { drawPages } from '../fork/kv_map.js';
import { messagesOf } from './answer_request.js';
import { untilHeld } from './attachments.js';
import { byId, formatBytes, make, moveByKeys } from './dom.js';
import { begunAhead } from './draft_answers.js';
import { goTo } from './message_controls.js';
import { chat } from './open_chat.js';
import { toolsOfPrompt } from './settings.js';
import { allAfter, isForgotten, saidUntil, shownAfter } from './tree.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Message, Place } from './tree.js' */
/**
 * The pages that belong to a question or an answer: their indexes, in token order. `missing` is the
 * number of pages that the engine does not have and would recompute.
 * @typedef {{places: number[], missing: number, tokens: number}} Held
 */
/** A line of the tree. @typedef {{message?: Message, who: string, text: string, held: Held, level: number, isShown: boolean}} Line */

/** The maximum number of lines; each requires an engine call. */
const LINES_MAX = 200;
const LETTERS_MAX = 70;
const SQUARES_MAX = 24;
const WORDS = {
  shared: 'shared by variants',
  private: 'in use',
  cached: 'cached',
  free: 'free',
};

const dialog = document.createElement('dialog');
dialog.id = 'memory-dialog';
dialog.setAttribute('aria-labelledby', 'memory-title');
dialog.innerHTML = `<h2 id="memory-title">What the model has in memory</h2>
  <p class="hint">Each square is a page: what the model has read of a few words. A page that several variants share is stored once.</p>
  <div class="memory-pages" role="img"></div>
  <p class="memory-legend"></p>
  <h3 id="memory-tree-title">This conversation</h3>
  <ul class="memory-tree" role="tree" aria-labelledby="memory-tree-title"></ul>
  <p class="memory-sum" role="status"></p>
  <form method="dialog" class="buttons"><button class="primary">Done</button></form>`;
const find = (/** @type {string} */ selector) =>
  /** @type {HTMLElement} */ (dialog.querySelector(selector));
const [picture, legend, list] = ['pages', 'legend', 'tree'].map((name) => find(`.memory-${name}`));
document.body.append(dialog);

// ---- the pages ----

/**
 * @param {Engine} engine @param {Message[]} messages @param {number} pageTokens tokens per page
 * @returns {Promise<Map<Message, Held>>} the pages of each message
 */
async function heldBy(engine, messages, pageTokens) {
  /** @type {Map<Message, Held>} */
  const held = new Map();
  const known = new Set(messages);
  await untilHeld(messages);
  for (const message of messages) {
    if (isForgotten(message)) continue;
    const { tokens } = await engine.findPages(messagesOf(saidUntil(message)), toolsOfPrompt());
    held.set(message, { places: [], missing: 0, tokens });
  }
  for (const leaf of messages) {
    if (leaf.children.some((one) => known.has(one))) continue;
    const path = saidUntil(leaf).filter((one) => held.has(one));
    if (path.length === 0) continue;
    const { pages } = await engine.findPages(messagesOf(path), toolsOfPrompt());
    let from = 0;
    for (const one of path) {
      const own = /** @type {Held} */ (held.get(one));
      const to = Math.floor(own.tokens / pageTokens);
      const there = pages.slice(from, to);
      own.places = [...new Set([...own.places, ...there])];
      own.missing = Math.max(0, to - from - own.places.length);
      from = to;
    }
  }
  return held;
}

/**
 * @param {Map<Message, Held>} held
 * @returns {Map<number, number>} the number of branches that have a page
 */
function countBranches(held) {
  /** @type {Map<number, Set<Message>>} */
  const ends = new Map();
  for (const [message, { places }] of held) {
    const leaves = allAfter(message).filter(({ children }) => children.length === 0);
    // answers that begin with the same words share pages, too
    for (const place of places) {
      const known = ends.get(place) ?? new Set();
      for (const leaf of leaves.length > 0 ? leaves : [message]) known.add(leaf);
      ends.set(place, known);
    }
  }
  return new Map([...ends].map(([place, known]) => [place, known.size]));
}

// ---- the lines ----

/** @param {string} text */
function shortened(text) {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > LETTERS_MAX ? `${line.slice(0, LETTERS_MAX)}…` : line || '…';
}

/**
 * Returns the lines of the tree. Branches are indented, the messages along a branch are not.
 * @param {Place} place
 * @param {Map<Message, Held>} held
 * @returns {Line[]}
 */
function linesOf(place, held) {
  const shown = new Set(shownAfter(place));
  /** @type {Line[]} */
  const lines = [];
  /** @type {{message: Message, level: number}[]} */
  const open = place.children.map((message) => ({ message, level: 1 })).reverse();
  for (let next = open.pop(); next && lines.length < LINES_MAX; next = open.pop()) {
    const { message, level } = next;
    const { role, content, children } = message;
    const isGone = isForgotten(message);
    const own = held.get(message) ?? { places: [], missing: 0, tokens: 0 };
    lines.push({
      ...{ message, level, held: own, isShown: shown.has(message) },
      who: role === 'user' ? 'You' : 'Model',
      text: isGone ? 'forgotten' : shortened(content),
    });
    const deeper = children.length > 1 ? level + 1 : level;
    open.push(...children.map((one) => ({ message: one, level: deeper })).reverse());
  }
  return lines;
}

/** @param {Engine} engine @param {number} pageTokens @param {number} level @returns {Promise<Line[]>} answers that were started before they were requested */
async function linesAhead(engine, pageTokens, level) {
  const lines = [];
  for (const { messages, text } of begunAhead()) {
    const { tokens, pages } = await engine.findPages(messages, toolsOfPrompt());
    const missing = Math.max(0, Math.floor(tokens / pageTokens) - pages.length);
    const who = 'Started before Enter';
    lines.push({
      who,
      text: shortened(text),
      level,
      isShown: false,
      held: { places: pages, missing, tokens },
    });
  }
  return lines;
}

/** @typedef {(place: number) => boolean} IsShared whether several branches have a page */

/** @param {Line} line @param {IsShared} isShared @returns {string} */
function wordsFor({ held, text }, isShared) {
  if (text === 'forgotten' && held.tokens === 0) return 'not sent to the model';
  const { places, missing } = held;
  const shared = places.filter(isShared).length;
  const parts = [
    ...(shared > 0 ? [`${shared} shared`] : []),
    ...(places.length > shared ? [`${places.length - shared} own`] : []),
    ...(missing > 0 ? [`${missing} to be recomputed`] : []),
  ];
  const all = places.length + missing;
  if (all === 0) return 'less than a page';
  const pages = `${all} ${all === 1 ? 'page' : 'pages'}`;
  return shared + missing === 0 ? pages : `${pages}: ${parts.join(', ')}`;
}

/** @param {Line} line @param {IsShared} isShared */
function stripOf({ held: { places, missing } }, isShared) {
  const strip = make('span', { className: 'memory-strip', ariaHidden: 'true' });
  const kinds = [
    ...places.map((place) => (isShared(place) ? 'shared' : 'private')),
    ...Array.from({ length: Math.min(missing, SQUARES_MAX) }, () => 'free'),
  ];
  for (const kind of kinds.slice(0, SQUARES_MAX))
    strip.append(make('span', { className: `kv-page ${kind}` }));
  if (kinds.length > SQUARES_MAX) strip.append(`+${kinds.length - SQUARES_MAX}`);
  return strip;
}

/** Marks the pages of a line on the map. @param {Line | undefined} line */
function point(line) {
  const places = new Set(line?.held.places);
  for (const [index, square] of [...picture.children].entries())
    square.classList.toggle('here', places.has(index));
}

/** @param {Line} line @param {IsShared} isShared @returns {HTMLElement} */
function itemOf(line, isShared) {
  const item = make(
    'li',
    {
      ...{ role: 'treeitem', tabIndex: -1 },
      ...{ ariaLevel: String(line.level), ariaSelected: String(line.isShown) },
    },
    ...[make('b', {}, `${line.who}: `), make('bdi', {}, line.text), ' '],
    ...[stripOf(line, isShared), ' ', make('small', {}, wordsFor(line, isShared))],
  );
  item.dataset.level = String(Math.min(line.level, 8));
  for (const name of ['focus', 'pointerenter']) item.addEventListener(name, () => point(line));
  item.addEventListener('pointerleave', () => point(undefined));
  item.addEventListener('click', () => {
    if (!line.message || chat.running) return;
    dialog.close();
    goTo(line.message);
  });
  return item;
}

// ---- drawing ----

let round = 0;

async function draw() {
  const own = ++round;
  const { engine, tree } = chat;
  if (!engine) return;
  const all = allAfter(tree);
  const { pageTokens, pageBytes } = await engine.kvStats();
  const held = await heldBy(engine, all.slice(0, LINES_MAX), pageTokens);
  const behind = linesOf(tree, held);
  const end = behind.findLast(({ isShown }) => isShown)?.level ?? 0;
  const ahead = await linesAhead(engine, pageTokens, end + 1);
  const stats = await engine.kvStats({ map: true });
  if (own !== round) return; // a newer drawing has begun
  const branches = countBranches(held);
  const siblings = all.length > 0 ? (shownAfter(tree).at(-1)?.children.length ?? 0) : 0;
  for (const { held: begun } of ahead)
    for (const place of begun.places)
      branches.set(place, (branches.get(place) ?? 0) + 1 + siblings);
  const isShared = (/** @type {number} */ place) => (branches.get(place) ?? 0) > 1;
  drawPages({ picture, legend, words: WORDS }, stats);
  const lines = [...behind, ...ahead];
  list.replaceChildren(...lines.map((line) => itemOf(line, isShared)));
  const first = /** @type {HTMLElement | null} */ (
    list.querySelector('[aria-selected=true]') ?? list.firstElementChild
  );
  if (first) first.tabIndex = 0;
  const there = new Set(lines.flatMap((line) => line.held.places));
  const shared = [...there].filter(isShared);
  const more =
    all.length > LINES_MAX ? ` ${all.length - LINES_MAX} more messages are not shown.` : '';
  const size = `${there.size} ${there.size === 1 ? 'page' : 'pages'} (${formatBytes(there.size * pageBytes)})`;
  find('.memory-sum').textContent =
    lines.length === 0
      ? 'The model has not read anything in this conversation yet.'
      : `This conversation uses ${size}${shared.length > 0 ? `, of which ${shared.length} are shared by variants` : ''}.${more}`;
}

moveByKeys(list, ['ArrowUp', 'ArrowDown']);

const drawIfOpen = () => {
  if (dialog.open) draw().catch(() => {}); // the engine is closed
};
for (const name of ['answered', 'memory', 'conversation', 'engine'])
  byId('log').addEventListener(name, drawIfOpen);

/** @returns {Promise<void>} a promise that settles when it is drawn */
export async function openMemory() {
  list.replaceChildren();
  find('.memory-sum').textContent = 'Looking up the pages …';
  dialog.showModal();
  await draw();
}
