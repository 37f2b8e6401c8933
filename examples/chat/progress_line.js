// examples/chat/progress_line.js — shows the model's progress in a line: how much of the prompt it
// has read, then how fast it generates. A speed is shown once it is known, with its significant
// digits.

import { byId, formatNumber } from './dom.js';

/** Before this time, a measured speed would depend more on the clock than on the model. */
const MEASURED_MS = 700;
const DRAWN_MS = 250;

const line = byId('live');

/** @param {number} speed @returns {string} two digits */
const two = (speed) => (speed >= 10 ? String(Math.round(speed)) : speed.toFixed(1));

/** @param {number} done @param {number} total @param {number} ms since the first part arrived */
export function readingInWords(done, total, ms) {
  const words = `Reading ${formatNumber(done)} of ${formatNumber(total)} tokens`;
  if (ms < MEASURED_MS || done === 0 || done >= total) return words;
  const seconds = Math.ceil(((total - done) * ms) / done / 1000);
  return `${words}, about ${seconds} s left`;
}

/** @param {number} tokens @param {number} ms since the first of them @param {boolean} isThinking */
export function writingInWords(tokens, ms, isThinking) {
  const what = `${isThinking ? 'Thinking' : 'Writing'}: ${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  return ms < MEASURED_MS ? what : `${what}, ${two(((tokens - 1) * 1000) / ms)} tokens/s`;
}

/** Shows the progress of one answer. */
export class Live {
  #began = performance.now();
  #firstAt = 0;
  #tokens = 0;
  #text = '';
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** Shows text immediately, and later updates at a readable rate. @param {string} text */
  #show(text) {
    this.#text = text;
    if (this.#timer) return;
    line.textContent = text;
    line.hidden = false;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (line.textContent !== this.#text) this.#show(this.#text);
    }, DRAWN_MS);
  }

  /** @param {{done: number, total: number}} progress */
  read({ done, total }) {
    if (this.#tokens === 0)
      this.#show(readingInWords(done, total, performance.now() - this.#began));
  }

  /**
   * Called when a piece of the answer has arrived: a token, or a few that belong together.
   * @param {boolean} isThinking
   */
  write(isThinking) {
    const now = performance.now();
    this.#firstAt ||= now;
    this.#tokens++;
    this.#show(writingInWords(this.#tokens, now - this.#firstAt, isThinking));
  }

  end() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#text = '';
    line.textContent = '';
    line.hidden = true;
  }
}
