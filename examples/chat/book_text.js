// examples/chat/book_text.js — a book as a model reads it: the messages before every question, their
// tokens, and the part of a long text that fits into the model's context.

import { asBlock } from './blocks.js';

/** @import { ChatMessage, Engine } from 'wick-llm' */

/**
 * The tokens that are reserved for questions and answers: this number, or a quarter of the context.
 */
const TALK_TOKENS = 1024;
/** The number of attempts to shorten a part until it fits. */
const CUTS_MAX = 40;
export const PARTS_MAX = 200;

/** @param {string} title @param {string} text @returns {ChatMessage[]} */
export const messagesOfBook = (title, text) => [
  { role: 'user', content: `${asBlock(title, text)}\n\nRead it: I will ask you about it.` },
  { role: 'assistant', content: 'I have read it.' },
];

/** @param {Engine} engine @param {ChatMessage[]} messages @returns {Promise<number[]>} the tokens that do not depend on the next question */
export async function tokensOfBook(engine, messages) {
  const asked = ['Why?', '2 + 2'].map((content) =>
    engine.tokenize([...messages, { role: 'user', content }]),
  );
  const [one, two] = await Promise.all(asked);
  const most = Math.min(one.length, two.length);
  let same = 0;
  while (same < most && one[same] === two[same]) same++;
  return one.slice(0, same);
}

/** @param {number} contextSize @returns {number} the maximum number of tokens of a book */
export const roomFor = (contextSize) =>
  contextSize - Math.min(TALK_TOKENS, Math.floor(contextSize / 4));

/**
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @returns {number} the offset of the end of a paragraph, line, sentence or word in the last third
 */
function cutAt(text, from, to) {
  if (to >= text.length) return text.length;
  const least = to - Math.floor((to - from) / 3);
  for (const mark of ['\n\n', '\n', '. ', ' ']) {
    const at = text.lastIndexOf(mark, to - mark.length);
    if (at >= least) return at + mark.length;
  }
  const isHalf = /[\uD800-\uDBFF]/.test(text[to - 1]); // half of a surrogate pair
  return isHalf && to - 1 > from ? to - 1 : to;
}

/**
 * Splits a text into consecutive parts, each of which fits.
 * @param {Engine} engine
 * @param {string} title
 * @param {string} text
 * @param {number} most tokens per part
 * @param {number} [countMax] the maximum number of parts
 * @returns {Promise<string[]>} the parts, which together are the text or its beginning
 */
export async function partsOf(engine, title, text, most, countMax = PARTS_MAX) {
  const count = async (/** @type {string} */ part) =>
    (await tokensOfBook(engine, messagesOfBook(`${title} (part 000 of 000)`, part))).length;
  const own = await count('');
  let lettersPerToken = text.length / Math.max(1, (await count(text)) - own);
  const parts = [];
  for (let from = 0; from < text.length && parts.length < countMax; ) {
    let length = Math.max(1, Math.floor((most - own) * lettersPerToken));
    let to = cutAt(text, from, from + length);
    let tokens = await count(text.slice(from, to));
    for (let cuts = 0; tokens > most && cuts < CUTS_MAX && to - from > 1; cuts++) {
      length = Math.max(1, Math.floor(((to - from) * (most - own) * 0.97) / (tokens - own)));
      to = cutAt(text, from, from + length);
      tokens = await count(text.slice(from, to));
    }
    if (tokens > most) throw new Error('the context is too small for even a word of it');
    lettersPerToken = (to - from) / Math.max(1, tokens - own);
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

/**
 * @param {string[]} parts from partsOf
 * @param {string} text
 * @returns {string} a sentence about the parts, and whether text is left out
 */
export function partsInWords(parts, text) {
  const letters = parts.reduce((sum, { length }) => sum + length, 0);
  const share = Math.floor((100 * letters) / text.length);
  const rest =
    letters < text.length ? ` They contain its first ${share} %; the rest is left out.` : '';
  return `It was split into ${parts.length} parts. The first one is being read.${rest}`;
}

/**
 * @param {Engine} engine
 * @param {string} title
 * @param {string} text
 * @returns {Promise<{tokens: number, most: number, size: number}>} `most`: the number of tokens
 * that fit; `size`: that of the context
 */
export async function measureBook(engine, title, text) {
  const { contextSize: size } = await engine.info();
  const { length } = await tokensOfBook(engine, messagesOfBook(title, text));
  return { tokens: length, most: roomFor(size), size };
}

/**
 * @param {Engine | undefined} engine
 * @returns {Promise<string>} the fingerprint of its model; empty if unknown
 */
export const fingerprintOf = async (engine) => (await engine?.info())?.fingerprint ?? '';
