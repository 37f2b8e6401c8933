// js/prompt_api/operations.js — runs the operations of a session one after the other, each with a signal that aborts
// it.

import { fromEngine } from './dom_errors.js';

export class Operations {
  /** Settles when the last operation has ended. @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {Set<AbortController>} */
  #controllers = new Set();
  count = 0;

  /**
   * Runs an action when the previous ones have ended.
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {(signal: AbortSignal) => Promise<T>} action
   * @returns {Promise<T>} rejects as soon as the signal aborts
   */
  async run(signal, action) {
    signal?.throwIfAborted();
    const controller = new AbortController();
    this.#controllers.add(controller);
    this.count++;
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    const before = this.#last;
    /** @type {(nothing?: undefined) => void} */
    let end = () => {};
    this.#last = new Promise((settle) => {
      end = settle;
    });
    try {
      await Promise.race([before, aborted(controller.signal)]);
      controller.signal.throwIfAborted();
      return await action(controller.signal);
    } catch (error) {
      throw fromEngine(error);
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#controllers.delete(controller);
      this.count--;
      before.then(() => end());
    }
  }

  /** @param {unknown} reason */
  abort(reason) {
    for (const controller of this.#controllers) controller.abort(reason);
  }
}

/** @param {AbortSignal} signal of an operation @returns {Promise<never>} rejects when it aborts */
export const aborted = (signal) =>
  new Promise((_, fail) => {
    if (signal.aborted) fail(signal.reason);
    signal.addEventListener('abort', () => fail(signal.reason));
  });
