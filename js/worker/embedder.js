// js/worker/embedder.js — texts become vectors, a step at a time beside requests. Callers wait for each other: the engine
// embeds the texts of one call.

import { WickError } from '../base/errors.js';
import { STEP_IDLE, STEP_WAIT_BYTES } from '../wasm/layout.js';

/** @typedef {import('../wasm/native_engine.js').Embedded} Embedded */
/** @typedef {import('../wasm/native_engine.js').NativeEngine} NativeEngine */

/** How long a step may take: messages and requests wait for its end. */
const STEP_BUDGET_US = 4000;
/** How long to wait for bytes of the model before the next look. */
const BYTES_MS = 5;

/** @param {() => void} begin FULL can only mean a text that is too long */
function inWords(begin) {
  try {
    begin();
  } catch (error) {
    if (!(error instanceof WickError) || error.code !== 'FULL') throw error;
    throw new WickError('PROMPT_TOO_LONG', error.message, error.cause);
  }
}

export class Embedder {
  #native;
  #takeTurn;
  #isClosed;
  /** Settles when the calls before are done. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * @param {NativeEngine} native
   * @param {() => Promise<void>} takeTurn lets messages and requests have their turn
   * @param {() => boolean} isClosed the engine is gone
   */
  constructor(native, takeTurn, isClosed) {
    this.#native = native;
    this.#takeTurn = takeTurn;
    this.#isClosed = isClosed;
  }

  /** @param {import('../wasm/engine_records.js').NativeEmbed} request @returns {Promise<Embedded[]>} */
  embed(request) {
    const answer = this.#last.then(() => this.#run(request));
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** @param {import('../wasm/engine_records.js').NativeEmbed} request */
  async #run(request) {
    this.#check();
    inWords(() => this.#native.embedBegin(request));
    try {
      for (;;) {
        const result = this.#native.embedStep(STEP_BUDGET_US);
        if (result === STEP_IDLE) break;
        if (result === STEP_WAIT_BYTES) await new Promise((settle) => setTimeout(settle, BYTES_MS));
        else await this.#takeTurn();
        this.#check();
      }
      return request.texts.map((_, index) => this.#native.embedded(index));
    } finally {
      if (!this.#isClosed()) this.#native.embedEnd();
    }
  }

  #check() {
    if (this.#isClosed()) throw new WickError('CLOSED', 'The engine was closed');
  }
}
