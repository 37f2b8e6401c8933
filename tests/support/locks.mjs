// Web Locks for tests outside a browser.

/** Each lock has one holder; the others wait in order. */
export class TestLocks {
  /** @type {Map<string, (() => void)[]>} the first holds the lock */
  #queues = new Map();

  /**
   * @param {string} name
   * @param {{signal?: AbortSignal} | (() => any)} options or `held`
   * @param {() => any} [held]
   */
  async request(name, options, held) {
    if (typeof options === 'function') return this.#hold(name, undefined, options);
    return this.#hold(name, options.signal, /** @type {() => any} */ (held));
  }

  /** @param {string} name @param {AbortSignal | undefined} signal @param {() => any} held */
  async #hold(name, signal, held) {
    signal?.throwIfAborted();
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    await new Promise((settle, fail) => {
      const go = () => settle(undefined);
      queue.push(go);
      if (queue[0] === go) go();
      signal?.addEventListener('abort', () => {
        if (queue[0] === go) return;
        queue.splice(queue.indexOf(go), 1);
        fail(signal.reason);
      });
    });
    try {
      return await held();
    } finally {
      queue.shift();
      queue[0]?.();
    }
  }
}
