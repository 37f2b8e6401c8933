// examples/notes/results.js — shows search results, and the text of a note. Notes are untrusted: they are shown as text, never as HTML.

import { byId } from '../chat/dom.js';

/** @typedef {import('./searching.js').Hit} Hit */
/** @typedef {import('./database.js').Note} Note */

/** The number of passages shown around a found passage. */
const SHOWN_PASSAGES = 60;

/** @param {string} tag @param {string} className @param {string} text */
const element = (tag, className, text) =>
  Object.assign(document.createElement(tag), { className, textContent: text });

/** @param {string} text @param {string[]} words that were found in it @returns {(string | Element)[]} */
function marked(text, words) {
  if (words.length === 0) return [text];
  const escaped = words.slice(0, 50).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // whole words
  const pattern = `(?<![\\p{L}\\p{N}])(${escaped.join('|')})(?![\\p{L}\\p{N}])`;
  const pieces = text.split(new RegExp(pattern, 'giu'));
  return pieces.map((piece, index) => (index % 2 === 1 ? element('mark', '', piece) : piece));
}

/** @param {Note} note @param {number} found */
function showNote({ title, path, passages }, found) {
  byId('note-title').textContent = title;
  byId('note-path').textContent = path;
  const first = Math.max(0, found - SHOWN_PASSAGES / 2);
  const shown = passages.slice(first, first + SHOWN_PASSAGES);
  const all = shown.flatMap(({ heading, text }, index) => {
    const isNew = heading !== '' && heading !== shown[index - 1]?.heading;
    const paragraph = element('p', first + index === found ? 'found' : '', text);
    return isNew ? [element('h3', '', heading), paragraph] : [paragraph];
  });
  if (first > 0) all.unshift(element('p', 'soft', '…'));
  if (first + SHOWN_PASSAGES < passages.length) all.push(element('p', 'soft', '…'));
  byId('note-text').replaceChildren(...all);
  /** @type {HTMLDialogElement} */ (byId('note')).showModal();
  byId('note-text').querySelector('.found')?.scrollIntoView({ block: 'center' });
}

/** @param {Hit} hit @param {boolean} hasScore */
function itemOf({ note, index, score, words }, hasScore) {
  const { heading, text } = note.passages[index];
  const item = document.createElement('li');
  const open = element('button', 'open', note.title);
  open.setAttribute('type', 'button');
  open.addEventListener('click', () => showNote(note, index));
  const parts = [
    note.path,
    heading === note.title ? '' : heading,
    hasScore ? score.toFixed(2) : '',
  ];
  const place = element('div', 'place', parts.filter(Boolean).join(' · '));
  const passage = element('p', 'passage', '');
  passage.dir = 'auto';
  passage.append(...marked(text, words));
  item.append(open, place, passage);
  return item;
}

/** @param {'meaning' | 'words'} id @param {Hit[]} hits */
export function showHits(id, hits) {
  byId(id).replaceChildren(...hits.map((hit) => itemOf(hit, id === 'meaning')));
}
