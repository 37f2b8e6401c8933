// js/best.js — best-of: several completions of one prompt, which share its pages, in the order of how
// likely the model finds them.

import { readersOf } from './generation.js';
import { checkCompletions, promptOf, settingsOf } from './options.js';

/** @typedef {import('./index.js').Beam} Beam */
/** @typedef {import('./index.js').GenerateOptions} GenerateOptions */
/** @typedef {import('./generation.js').PieceReader} PieceReader */

/** @param {PieceReader} reader @returns {Promise<Beam>} */
async function read(reader) {
  let text = '';
  let logprob = 0;
  const tokens = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    text += piece.text;
    // text that was held back is no token's
    if (!piece.token || piece.token.token < 0) continue;
    tokens.push(piece.token.token);
    logprob += piece.token.logprob ?? 0;
  }
  const { finish } = /** @type {import('./protocol.js').Done} */ (reader.done);
  return { text, tokens, logprob, finishReason: finish === 'length' ? 'length' : 'stop' };
}

/** A short text is not likelier for being short. @param {Beam} completion */
const score = ({ logprob, tokens }) => logprob / Math.max(1, tokens.length);

/**
 * @param {import('./link.js').Link} link
 * @param {string | ArrayLike<number>} prompt
 * @param {GenerateOptions & {n?: number}} options
 * @returns {Promise<Beam[]>} all of them, the best first
 */
export async function bestOf(link, prompt, { n = 4, ...options }) {
  const message = {
    input: { prompt: promptOf(prompt) },
    settings: settingsOf({ ...options, logprobs: options.logprobs ?? 0 }),
    wantsTokens: true,
  };
  const readers = readersOf(link, message, options, checkCompletions('n', n));
  const completions = await Promise.all(readers.map(read)).catch((error) => {
    for (const reader of readers) reader.cancel();
    throw error;
  });
  return completions.sort((a, b) => score(b) - score(a));
}
