// js/page/generation.js — the object that generate() returns: an async iterable of text that also provides the
// result.

import { argumentError } from '../base/errors.js';
import { leavable } from './piece_reader.js';

/** @import { Done } from '../connection/messages.js' */
/** @import { PieceReader } from './piece_reader.js' */

/**
 * A running request and its text.
 * @implements {AsyncIterable<string>}
 */
export class Generation {
  #reader;
  #isTaken = false;

  /** @param {PieceReader} reader */
  constructor(reader) {
    this.#reader = reader;
    reader.heldBy(this);
  }

  /** Finish reason, usage and timings. Undefined until the request has ended, and after an error. */
  get result() {
    const done = this.#reader.done ?? this.#reader.left;
    return done && resultOf(done);
  }

  /** @returns {AsyncGenerator<string, void, void>} */
  [Symbol.asyncIterator]() {
    if (this.#isTaken) throw argumentError('generation: can be read only once');
    this.#isTaken = true;
    const reader = this.#reader;
    const texts = leavable(readTexts(reader), () => reader.cancel());
    reader.heldBy(texts);
    return texts;
  }

  /** @returns {Promise<string>} the whole text, once it has ended */
  async text() {
    let text = '';
    for await (const piece of this) text += piece;
    return text;
  }
}

/** @param {PieceReader} reader */
async function* readTexts(reader) {
  try {
    for (let piece = await reader.next(); piece; piece = await reader.next()) {
      if (piece.text !== '') yield piece.text;
    }
  } finally {
    reader.cancel();
  }
}

/** @param {Done} done */
function resultOf(done) {
  return {
    finishReason: done.finish,
    ...(done.stop !== undefined && { stop: done.stop }),
    usage: usageOf(done),
    timings: timingsOf(done),
  };
}

/** @param {Done} done */
function usageOf(done) {
  return {
    promptTokens: done.promptTokens,
    completionTokens: done.completionTokens,
    cachedTokens: done.cachedTokens,
  };
}

/** @param {Done} done */
export function timingsOf(done) {
  const { promptTokens, cachedTokens, completionTokens, queueMs, prefillMs, decodeMs, ttftMs } =
    done;
  return {
    queueMs,
    prefillMs,
    decodeMs,
    ttftMs,
    prefillTokensPerSecond: perSecond(promptTokens - cachedTokens, prefillMs),
    // the first token counts as part of the prefill
    decodeTokensPerSecond: perSecond(completionTokens - 1, decodeMs),
  };
}

/** @param {number} count @param {number} ms */
function perSecond(count, ms) {
  return count > 0 && ms > 0 ? (count * 1000) / ms : 0;
}
