// js/bytes/download_progress.js — bytes, speed and remaining time of a download, reported at most
// every 100 ms and when the size becomes known.

import { nowMs } from '../base/clock.js';

const INTERVAL_MS = 100;
/** The speed is an average over this time. */
const WINDOW_MS = 4000;
const WINDOW_MS_MIN = 250;

/** @typedef {import('../index.js').Progress} Progress */

export class ProgressMeter {
  #report;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isTotalTold = false;
  /** @type {{ms: number, loaded: number}[]} */
  #samples = [];

  /** @param {(progress: Progress) => void} report */
  constructor(report) {
    this.#report = report;
  }

  /**
   * @param {number} loaded bytes
   * @param {number | undefined} total
   * @param {Progress['phase']} [phase] phases other than 'loading', and the first `total`, are
   * reported at once: if the connection stalls, the next call may be much later
   * @param {number} [retryMs] the time to the next attempt
   */
  update(loaded, total, phase = 'loading', retryMs = undefined) {
    const ms = nowMs();
    const isNews = phase !== 'loading' || (total !== undefined && !this.#isTotalTold);
    if (!isNews && ms - this.#lastMs < INTERVAL_MS) return;
    this.#isTotalTold ||= total !== undefined;
    this.#lastMs = ms;
    const bytesPerSecond = this.#measure(ms, loaded);
    const isKnown = total !== undefined && bytesPerSecond !== undefined && bytesPerSecond > 0;
    const secondsLeft = isKnown ? Math.max(0, total - loaded) / bytesPerSecond : undefined;
    const retry = retryMs === undefined ? undefined : { retrySeconds: retryMs / 1000 };
    this.#report({ loaded, total, bytesPerSecond, secondsLeft, phase, ...retry });
  }

  /** @param {number} ms @param {number} loaded @returns {number | undefined} bytes per second */
  #measure(ms, loaded) {
    this.#samples.push({ ms, loaded });
    while (this.#samples.length > 2 && ms - this.#samples[0].ms > WINDOW_MS) this.#samples.shift();
    const [first] = this.#samples;
    const elapsedMs = ms - first.ms;
    return elapsedMs < WINDOW_MS_MIN ? undefined : ((loaded - first.loaded) / elapsedMs) * 1000;
  }
}
