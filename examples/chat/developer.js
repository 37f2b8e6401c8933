// examples/chat/developer.js — updates the developer panel while the engine answers and when it is opened.

import { byId } from './dom.js';
import { chat } from './open_chat.js';

const INTERVAL_MS = 150;

const panel = /** @type {HTMLDetailsElement} */ (byId('developer'));

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

/** @param {import('wick-llm').Engine} engine */
async function draw(engine) {
  const { drawStats, factsOf } = await loadPanel();
  const stats = await engine.kvStats({ map: true });
  if (engine !== chat.engine) return;
  drawStats(stats);
  facts = factsOf(stats);
  await showNotes();
}

/** Draws while the panel is open: once, and repeatedly while an answer is generated. */
export async function updatePanel() {
  isStale = true;
  if (isWatching) return;
  isWatching = true;
  while ((isStale || chat.running) && panel.open && chat.engine) {
    isStale = false;
    await draw(chat.engine).catch(() => {}); // the engine was closed; the next one is drawn when it is ready
    if (chat.running) await new Promise((settle) => setTimeout(settle, INTERVAL_MS));
  }
  isWatching = false;
}

/** @param {string} name @param {string} text empty to remove the fact */
export function note(name, text) {
  if (text === '') notes.delete(name);
  else notes.set(name, text);
  if (panel.open) showNotes().catch(() => {}); // immediately, because this does not need the engine
  updatePanel();
}

panel.addEventListener('toggle', updatePanel);
byId('log').addEventListener('engine', () => {
  facts = [];
  notes.clear();
  updatePanel();
});
