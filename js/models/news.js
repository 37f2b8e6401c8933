// js/models/news.js — lets callers wait until something changes.

/** All waiters are woken by the next `notify`. */
export class News {
  /** @type {() => void} */
  #wake = () => {};
  #next = this.#begin();

  /** @returns {Promise<void>} */
  #begin() {
    return new Promise((settle) => {
      this.#wake = settle;
    });
  }

  notify() {
    const wake = this.#wake;
    this.#next = this.#begin();
    wake();
  }

  /** @param {number} [limitMs] the longest time to wait @returns {Promise<void>} */
  async next(limitMs) {
    if (limitMs === undefined) return this.#next;
    /** @type {any} */
    let timer;
    const late = new Promise((settle) => {
      timer = setTimeout(settle, limitMs);
    });
    await Promise.race([this.#next, late]);
    clearTimeout(timer);
  }
}
