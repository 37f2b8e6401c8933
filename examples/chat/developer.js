// examples/chat/developer.js — the developer panel: the engine's pages of keys and values while it answers,
// their owners, and the part of the prompts that was not read again.

import { drawPages } from '../fork/kv_map.js';
import { byId, formatBytes } from './dom.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').KvStats} KvStats */

const INTERVAL_MS = 150;

const panel = /** @type {HTMLDetailsElement} */ (byId('developer'));
const where = {
  picture: byId('kv-pages'),
  legend: byId('kv-legend'),
  words: { shared: 'shared', private: "an answer's own", cached: 'kept for later', free: 'free' },
};

/** @type {Engine | undefined} */
let engine;
let isAnswering = false;
let isWatching = false;
let isStale = false;
/** As they were drawn last. @type {[name: string, text: string][]} */
let facts = [];
/** Other modules' reports, by their names. @type {Map<string, string>} */
const notes = new Map();

/** @param {KvStats} stats @returns {[name: string, text: string][]} */
function factsOf({ kType, vType, pageTokens, pageBytes, bytes, forks, cowCopies, prefix }) {
  const types = `keys ${kType}, values ${vType}; a page is ${pageTokens} tokens, ${formatBytes(pageBytes)}`;
  const used = `${formatBytes(bytes.used)} of ${formatBytes(bytes.capacity)} in use, ${forks} forks, ${cowCopies} copies`;
  const saved = prefix && `${prefix.hits} hits, ${prefix.tokensSaved} tokens not read again`;
  return [
    ['Types', types],
    ['Memory', used],
    ['Prefix cache', saved ?? 'off'],
  ];
}

function showFacts() {
  const list = [...facts, ...notes].flatMap(([name, text]) => {
    const [term, description] = ['dt', 'dd'].map((tag) => document.createElement(tag));
    term.textContent = name;
    description.textContent = text;
    description.dataset.fact = name;
    return [term, description];
  });
  byId('kv-facts').replaceChildren(...list);
}

/** @param {Engine} shown */
async function draw(shown) {
  const stats = await shown.kvStats({ map: true });
  if (shown !== engine) return;
  drawPages(where, stats);
  facts = factsOf(stats);
  showFacts();
}

/** Draws while the panel is open: once, and repeatedly while an answer is written. */
async function watch() {
  isStale = true;
  if (isWatching) return;
  isWatching = true;
  while ((isStale || isAnswering) && panel.open && engine) {
    isStale = false;
    await draw(engine).catch(() => {}); // the engine was closed: the next engine is drawn when it is ready
    if (isAnswering) await new Promise((settle) => setTimeout(settle, INTERVAL_MS));
  }
  isWatching = false;
}

/** @param {Engine | undefined} shown */
export function showEngine(shown) {
  engine = shown;
  facts = [];
  notes.clear();
  watch();
}

/** @param {boolean} isBusy */
export function showAnswering(isBusy) {
  isAnswering = isBusy;
  watch();
}

/** @param {string} name @param {string} text empty: removes the fact */
export function note(name, text) {
  if (text === '') notes.delete(name);
  else notes.set(name, text);
  if (panel.open) showFacts(); // at once: the engine is not asked
  watch();
}

panel.addEventListener('toggle', watch);
