// examples/notes/embedding.js — computes the vectors of passages with the model. Text that was
// embedded before is not embedded again, and a long note is stored piece by piece.

import { writeVectors } from './database.js';
import { embeddedText } from './passages.js';

/** @typedef {import('./database.js').Note} Note */
/** @typedef {import('./database.js').Vectors} Vectors */
/** @typedef {import('wick-llm').Engine} Engine */

const BATCH = 32;
/** The number of passages after which the part of a long note is stored. */
const STORED_PASSAGES = 256;

/** @param {Note} note @param {Vectors | undefined} kept */
export const isEmbedded = (note, kept) =>
  kept?.hash === note.hash && kept.texts.length === note.passages.length;

/**
 * @param {Note} note
 * @param {Vectors | undefined} kept
 * @returns {number} the number of its passages that have a vector
 */
export const countEmbedded = (note, kept) =>
  kept?.hash === note.hash ? Math.min(kept.texts.length, note.passages.length) : 0;

/**
 * @param {Vectors | undefined} kept
 * @returns {Map<string, Float32Array>} vectors by their texts
 */
function knownVectors(kept) {
  /** @type {Map<string, Float32Array>} */
  const known = new Map();
  if (!kept) return known;
  const { texts, vectors, dimensions } = kept;
  for (const [index, text] of texts.entries())
    known.set(text, vectors.subarray(index * dimensions, (index + 1) * dimensions));
  return known;
}

/** @param {Float32Array[]} rows */
function joined(rows) {
  const dimensions = rows[0]?.length ?? 0;
  const all = new Float32Array(rows.length * dimensions);
  for (const [index, row] of rows.entries()) all.set(row, index * dimensions);
  return { vectors: all, dimensions };
}

/**
 * @typedef {{engine: Engine, model: string, prefix: string, signal: AbortSignal, onVectors: (all: Vectors[]) => void,
 *   onPassages: (count: number) => void}} Work
 */

/**
 * @param {Note} note @param {Vectors | undefined} kept @param {Work} work
 * @returns {Promise<Vectors>}
 */
async function embedNote(note, kept, { engine, model, prefix, signal, onPassages, onVectors }) {
  const known = knownVectors(kept);
  const texts = note.passages.map((passage) => embeddedText(note.title, passage));
  /** @type {Float32Array[]} */
  const rows = [];
  const { folder, path, hash } = note;
  const vectorsOf = () => ({
    model,
    folder,
    path,
    hash,
    texts: texts.slice(0, rows.length),
    ...joined(rows),
  });
  for (let from = 0; from < texts.length; from += BATCH) {
    signal.throwIfAborted();
    const some = texts.slice(from, from + BATCH);
    const wanted = some.filter((text) => !known.has(text));
    const made = wanted.length > 0 ? await engine.embed(wanted, { prefix, truncate: true }) : [];
    for (const [index, text] of wanted.entries()) known.set(text, made[index]);
    for (const text of some) rows.push(/** @type {Float32Array} */ (known.get(text)));
    onPassages(wanted.length);
    const isLong = texts.length > STORED_PASSAGES && rows.length % STORED_PASSAGES === 0;
    if (isLong && wanted.length > 0) {
      const part = vectorsOf();
      onVectors([part]);
      await writeVectors([part]);
    }
  }
  return vectorsOf();
}

/**
 * Embeds passages that are not embedded yet, several short notes at a time, so that they are computed
 * in the same batches.
 * @param {Note[]} notes
 * @param {Map<string, Vectors>} kept the stored vectors by path
 * @param {Work} work
 */
export async function embedNotes(notes, kept, work) {
  const waiting = notes.filter((note) => !isEmbedded(note, kept.get(note.path)));
  while (waiting.length > 0) {
    work.signal.throwIfAborted();
    const some = [];
    for (let count = 0; count < BATCH && waiting.length > 0; ) {
      const note = /** @type {Note} */ (waiting.shift());
      count += Math.max(1, note.passages.length);
      some.push(note);
    }
    const all = await Promise.all(some.map((note) => embedNote(note, kept.get(note.path), work)));
    work.onVectors(all); // they can be searched even if they cannot be stored
    await writeVectors(all);
  }
}
