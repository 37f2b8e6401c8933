// js/models/news.js — waiting until something has changed.

/** All waiters are woken by the next `tell`. */
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

  tell() {
    const wake = this.#wake;
    this.#next = this.#begin();
    wake();
  }

  /** @param {number} [limitMs] ends the waiting as well @returns {Promise<void>} */
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
