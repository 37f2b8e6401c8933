// examples/notes/searching.js — the two searches: by meaning, in the vectors of all passages, and by keyword, in their text.

import MiniSearch from 'minisearch';
import { firstWords } from '../shared/query.js';

/** @typedef {import('./database.js').Note} Note */
/** @typedef {import('./database.js').Vectors} Vectors */
/** @typedef {{note: Note, index: number, score: number, words: string[]}} Hit `index`: the passage's index */

const HITS_MAX = 20;
/** The maximum number of hits per note, so that a long note does not fill the list. */
const HITS_NOTE_MAX = 3;

/** @param {Hit[]} sorted @returns {Hit[]} */
function spread(sorted) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const hits = [];
  for (const hit of sorted) {
    const count = counts.get(hit.note.path) ?? 0;
    if (count >= HITS_NOTE_MAX) continue;
    counts.set(hit.note.path, count + 1);
    hits.push(hit);
    if (hits.length === HITS_MAX) break;
  }
  return hits;
}

/** @param {Float32Array} a @param {Float32Array} b @param {number} from the offset in b */
function dot(a, b, from) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[from + i];
  return sum;
}

/**
 * Searches by meaning. Vectors are normalized, so their dot product is the cosine.
 * @param {Float32Array} query @param {Map<string, Note>} notes @param {Map<string, Vectors>} vectors
 * @returns {Hit[]}
 */
export function searchMeaning(query, notes, vectors) {
  /** @type {Hit[]} */
  const hits = [];
  for (const [path, { hash, texts, vectors: all, dimensions }] of vectors) {
    const note = notes.get(path);
    if (!note || note.hash !== hash || dimensions !== query.length) continue;
    const most = Math.min(texts.length, note.passages.length);
    for (let index = 0; index < most; index++)
      hits.push({ note, index, score: dot(query, all, index * dimensions), words: [] });
  }
  return spread(hits.sort((a, b) => b.score - a.score));
}

export class WordIndex {
  #index = new MiniSearch({
    idField: 'id',
    fields: ['title', 'heading', 'text'],
    searchOptions: {
      boost: { title: 3, heading: 2 },
      prefix: true,
      fuzzy: 0.15,
      combineWith: 'AND',
    },
  });
  /** The ids of a note's passages. @type {Map<string, {hash: string, first: number, count: number}>} */
  #places = new Map();
  /** @type {Map<number, {path: string, index: number}>} */
  #passages = new Map();
  #next = 0;

  /** @param {Note} note */
  put(note) {
    if (this.#places.get(note.path)?.hash === note.hash) return;
    this.remove(note.path);
    const first = this.#next;
    for (const [index, { heading, text }] of note.passages.entries()) {
      this.#passages.set(this.#next, { path: note.path, index });
      this.#index.add({ id: this.#next++, title: index === 0 ? note.title : '', heading, text });
    }
    this.#places.set(note.path, { hash: note.hash, first, count: note.passages.length });
  }

  /** @param {string} path */
  remove(path) {
    const place = this.#places.get(path);
    if (!place) return;
    for (let id = place.first; id < place.first + place.count; id++) {
      this.#index.discard(id);
      this.#passages.delete(id);
    }
    this.#places.delete(path);
  }

  /** @param {string} text @param {Map<string, Note>} notes @returns {Hit[]} */
  search(text, notes) {
    const found = this.#index.search(firstWords(text));
    return spread(
      found.flatMap(({ id, score, terms }) => {
        const place = this.#passages.get(id);
        const note = place && notes.get(place.path);
        return note ? [{ note, index: place.index, score, words: terms }] : [];
      }),
    );
  }
}
