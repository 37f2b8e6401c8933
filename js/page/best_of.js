// js/page/best_of.js — best-of: generates several completions of one prompt, which share its pages, and sorts
// them by their mean logprob.

/** @import { Beam } from '../index.js' */
/** @import { PieceReader } from './piece_reader.js' */

/** @param {PieceReader} reader @returns {Promise<Beam>} */
async function read(reader) {
  let text = '';
  let logprob = 0;
  const tokens = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    text += piece.text;
    // text that was held back does not belong to a token
    if (!piece.token || piece.token.token < 0) continue;
    tokens.push(piece.token.token);
    logprob += piece.token.logprob ?? 0;
  }
  const { finish } = /** @type {import('../connection/messages.js').Done} */ (reader.done);
  return { text, tokens, logprob, finishReason: finish === 'length' ? 'length' : 'stop' };
}

/** Returns the mean logprob, so that short texts are not preferred. @param {Beam} completion */
const score = ({ logprob, tokens }) => logprob / Math.max(1, tokens.length);

/**
 * @param {PieceReader[]} readers of the completions, with logprobs
 * @returns {Promise<Beam[]>} all completions, best first
 */
export async function readAll(readers) {
  const completions = await Promise.all(readers.map(read)).catch((error) => {
    for (const reader of readers) reader.cancel();
    throw error;
  });
  return completions.sort((a, b) => score(b) - score(a));
}
