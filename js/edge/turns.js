// js/edge/turns.js — decides when the computing thread yields to the event loop. Clocks may not
// advance while it computes (Workers), so units of work count in addition to time.

import { nowMs } from '../base/clock.js';
import { takeTurn } from '../base/take_turn.js';

/** If the clock advances, other tasks wait no longer than this plus one unit of work. */
const TURN_MS_MAX = 8;
/** The limit if the clock does not advance, in multiply-adds: 10 to 30 ms of work. */
const TURN_PRODUCTS_MAX = 100e6;
export class Turns {
  /** The number of units of one token that may run without yielding. */
  #unitsMax;
  #units = 0;
  #lastMs = nowMs();

  /** @param {{parameters?: number, layers?: number} | null | undefined} shape the model's dimensions */
  constructor(shape) {
    const { parameters = 0, layers = 1 } = shape ?? {};
    const products = Math.max(1, parameters / Math.max(1, layers));
    this.#unitsMax = Math.max(1, Math.floor(TURN_PRODUCTS_MAX / products));
  }

  /** @param {number} units of work that have been done */
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
