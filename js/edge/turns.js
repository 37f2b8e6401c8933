// js/edge/turns.js — when a thread that computes itself lets others have their turn. Clocks may stand still while it
// computes (Workers), so units of work count beside time.

import { nowMs } from '../base/clock.js';

/** Where the clock goes on, others wait no longer than this, and what a unit of work takes. */
const TURN_MS_MAX = 8;
/** Where it stands still: products of weights and tokens, some 10 to 30 ms of work. */
const TURN_PRODUCTS_MAX = 100e6;
/** How long to wait where only others' reading or the end of their requests can help. */
const PAUSE_MS = 5;

/** @returns {Promise<unknown>} settles after what has arrived, in the context of the caller's request */
export function takeTurn() {
  if (typeof setImmediate === 'function') return new Promise((settle) => setImmediate(settle));
  const { scheduler } = /** @type {any} */ (globalThis);
  // workerd has it; a channel would belong to the request that made it
  if (typeof scheduler?.wait === 'function') return scheduler.wait(0);
  if (typeof MessageChannel !== 'function') return pause(0);
  const { port1, port2 } = new MessageChannel();
  return new Promise((settle) => {
    port1.onmessage = () => {
      port1.close();
      settle(undefined);
    };
    port2.postMessage(0);
  });
}

/** @param {number} [ms] @returns {Promise<unknown>} */
export const pause = (ms = PAUSE_MS) => new Promise((settle) => setTimeout(settle, ms));

export class Turns {
  /** Units of one token that may follow each other without a turn. */
  #unitsMax;
  #units = 0;
  #lastMs = nowMs();

  /** @param {{parameters?: number, layers?: number} | null | undefined} shape the model's */
  constructor(shape) {
    const { parameters = 0, layers = 1 } = shape ?? {};
    const products = Math.max(1, parameters / Math.max(1, layers));
    this.#unitsMax = Math.max(1, Math.floor(TURN_PRODUCTS_MAX / products));
  }

  /** @param {number} units that were worked */
  count(units) {
    this.#units += units;
  }

  get isDue() {
    return this.#units >= this.#unitsMax || nowMs() - this.#lastMs >= TURN_MS_MAX;
  }

  async take() {
    await takeTurn();
    this.#units = 0;
    this.#lastMs = nowMs();
  }
}
