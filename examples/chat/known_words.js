// examples/chat/known_words.js — constrains the built-in model's answers to known words. The list and
// the code that looks words up are loaded after the model. Until then, or if they cannot be loaded,
// answers are not constrained.

import { hasBook } from './book.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Chunk } from './tool_calls.js' */
/** @typedef {typeof import('../models/words.js')} Holding */

/** The model to which the words belong. */
const MODEL = 'Wick 4.2M';
const LIST = 'wick-llm-demo-model/wick-4.2m-words.txt';

/** @type {{engine: Engine, holding: Holding, words: import('../models/words.js').Words} | undefined} */
let ready;
/** Counts changes of the model. */
let turn = 0;

/**
 * @param {Engine | undefined} engine that has the built-in model; undefined if another model
 * answers
 */
export async function useWords(engine) {
  ready = undefined;
  const own = ++turn;
  if (!engine || (await engine.info()).name !== MODEL) return;
  const list = fetch(LIST).then((reply) => {
    if (!reply.ok) throw new TypeError(`word list: status ${reply.status}`);
    return reply.text();
  });
  const [holding, text] = await Promise.all([import('../models/words.js'), list]);
  if (own === turn) ready = { engine, holding, words: holding.readWords(text) };
}

/**
 * @param {Engine} engine
 * @param {any} body the request
 * @param {AsyncIterable<Chunk>} chunks of the answer
 * @param {AbortSignal} signal
 * @returns {AsyncIterable<Chunk>} the same chunks if the answer is not constrained: other models,
 * and answers with a format, tools or a book
 */
export function inKnownWords(engine, body, chunks, signal) {
  const isFree = !body.tools && !body.response_format && !body.grammar;
  if (ready?.engine !== engine || !isFree || hasBook()) return chunks; // a book would be recomputed
  /** @type {import('../models/words.js').Ask} */
  const ask = (asked) => engine.chat.completions.create({ ...asked, signal });
  return ready.holding.held(chunks, body, ready.words, ask);
}
