// js/worker/embedder.js — embeds texts, a step at a time alongside requests. The engine embeds the
// texts of one call at a time. Each caller drives its own call. It also drives the first call of
// the queue if no other caller does: on hosts with a context per request, a caller stops when its
// client disconnects.

import { WickError } from '../base/errors.js';
import { STEP_IDLE, STEP_PROGRESS, STEP_WAIT_BYTES } from '../wasm/layout.js';

/** @import { NativeEmbed } from '../wasm/engine_records.js' */
/** @import { Embedded, NativeEngine } from '../wasm/native_engine.js' */

/** The time to wait for bytes of the model before checking again. */
const BYTES_MS = 5;

/**
 * A call in the queue. `steps` counts the steps that were run for it. When it has ended, it has vectors or a
 * failure.
 * @typedef {{id: number, request: NativeEmbed, steps: number, isBegun: boolean, vectors: Embedded[] | undefined,
 *   failure: {error: unknown} | undefined}} Job
 */

/**
 * @typedef {object} Host
 * @property {() => number} step does some work; returns STEP_*
 * @property {() => Promise<void>} takeTurn yields to messages and requests
 * @property {() => boolean} isClosed whether the engine is closed
 */

/** @param {() => void} begin makes a call in which FULL can only mean that a text is too long */
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
  #host;
  /** Calls in order of arrival. @type {Job[]} */
  #line = [];

  /** @param {NativeEngine} native @param {Host} host */
  constructor(native, host) {
    this.#native = native;
    this.#host = host;
  }

  /** @param {NativeEmbed} request @param {number} [id] of the call, for `cancel` @returns {Promise<Embedded[]>} */
  async embed(request, id = 0) {
    /** @type {Job} */
    const job = { id, request, steps: 0, isBegun: false, vectors: undefined, failure: undefined };
    this.#line.push(job);
    /** The call that was first in the queue at the last check. */
    let [seen, steps] = [job, 0];
    while (!job.vectors && !job.failure) {
      if (this.#host.isClosed()) throw new WickError('CLOSED', 'engine: closed');
      const [first] = this.#line;
      const isIdle = first === job || (first === seen && first.steps === steps);
      const result = isIdle ? this.#work(first) : STEP_PROGRESS;
      [seen, steps] = [first, first.steps];
      if (result === STEP_WAIT_BYTES) await new Promise((settle) => setTimeout(settle, BYTES_MS));
      else if (result === STEP_PROGRESS) await this.#host.takeTurn();
    }
    if (job.failure) throw job.failure.error;
    return /** @type {Embedded[]} */ (job.vectors);
  }

  /** @param {number} id of a call, which has ended if it is not in the queue */
  cancel(id) {
    const job = this.#line.find((one) => one.id === id);
    if (!job) return;
    job.failure = { error: new WickError('ABORTED', 'embedding: aborted') };
    this.#line = this.#line.filter((one) => one !== job);
    if (job.isBegun) this.#native.embedEnd();
  }

  /** @param {Job} job the first job of the queue @returns {number} STEP_* */
  #work(job) {
    job.steps++;
    try {
      if (!job.isBegun) inWords(() => this.#native.embedBegin(job.request));
      job.isBegun = true;
      const result = this.#host.step();
      if (result !== STEP_IDLE) return result;
      job.vectors = job.request.texts.map((_, index) => this.#native.embedded(index));
    } catch (error) {
      job.failure = { error };
    }
    this.#line.shift();
    if (job.isBegun) this.#native.embedEnd();
    return STEP_IDLE;
  }
}
