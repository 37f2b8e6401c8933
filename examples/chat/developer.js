// examples/chat/developer.js — updates the developer panel while the engine answers and when it is opened.

import { byId } from './dom.js';

/** @typedef {import('wick-llm').Engine} Engine */

const INTERVAL_MS = 150;

const panel = /** @type {HTMLDetailsElement} */ (byId('developer'));

/** @type {Engine | undefined} */
let engine;
let isAnswering = false;
let isWatching = false;
let isStale = false;
/** The facts that were drawn last. @type {[name: string, text: string][]} */
let facts = [];
/** Other modules' reports, by their names. @type {Map<string, string>} */
const notes = new Map();

const loadPanel = () => import('./developer_panel.js');

async function showNotes() {
  const { showFacts } = await loadPanel();
  showFacts([...facts, ...notes]);
}

/** @param {Engine} shown */
async function draw(shown) {
  const { drawStats, factsOf } = await loadPanel();
  const stats = await shown.kvStats({ map: true });
  if (shown !== engine) return;
  drawStats(stats);
  facts = factsOf(stats);
  await showNotes();
}

/** Draws while the panel is open: once, and repeatedly while an answer is generated. */
async function watch() {
  isStale = true;
  if (isWatching) return;
  isWatching = true;
  while ((isStale || isAnswering) && panel.open && engine) {
    isStale = false;
    await draw(engine).catch(() => {}); // the engine was closed; the next one is drawn when it is ready
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

/** @param {string} name @param {string} text empty to remove the fact */
export function note(name, text) {
  if (text === '') notes.delete(name);
  else notes.set(name, text);
  if (panel.open) showNotes().catch(() => {}); // immediately, because this does not need the engine
  watch();
}

panel.addEventListener('toggle', watch);
