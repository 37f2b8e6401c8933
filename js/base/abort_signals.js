// js/base/abort_signals.js — runs actions when an AbortSignal aborts. A listener is removed as soon
// as no caller is waiting, because a program may pass one signal to all of its calls.

import { abortError } from './errors.js';

/**
 * One listener for each signal, regardless of the number of waiting actions, because Node warns
 * about more than ten.
 */
class Listener {
  #signal;
  #abort = () => {
    for (const action of this.#actions) action();
  };
  /** @type {Set<() => void>} */
  #actions = new Set();

  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.#signal = signal;
  }

  /** @param {() => void} action */
  add(action) {
    if (this.#actions.size === 0) this.#signal.addEventListener('abort', this.#abort);
    this.#actions.add(action);
  }

  /** @param {() => void} action */
  remove(action) {
    if (!this.#actions.delete(action) || this.#actions.size > 0) return;
    this.#signal.removeEventListener('abort', this.#abort);
  }
}

/** @type {WeakMap<AbortSignal, Listener>} */
const listeners = new WeakMap();

/**
 * @param {AbortSignal | null | undefined} signal that has not aborted yet
 * @param {() => void} action
 * @returns {() => void} a function that stops waiting
 */
export function onAbort(signal, action) {
  if (!signal) return () => {};
  const listener = listeners.get(signal) ?? new Listener(signal);
  listeners.set(signal, listener);
  const own = () => action(); // the same function may be registered twice
  listener.add(own);
  return () => listener.remove(own);
}

/**
 * Waits for a value unless the signal aborts first. A value that arrives after the abort is passed
 * to `undo`.
 * @template T
 * @param {Promise<T>} made
 * @param {AbortSignal | null | undefined} signal
 * @param {(value: T) => unknown} undo
 * @returns {Promise<T>}
 */
export async function unlessAborted(made, signal, undo) {
  let stop = () => {};
  const aborted = new Promise((_, fail) => {
    stop = onAbort(signal, () => fail(abortError(signal?.reason)));
  });
  try {
    return await Promise.race([made, /** @type {Promise<never>} */ (aborted)]);
  } catch (error) {
    made.then(undo).catch(() => {}); // the value was not created, or was freed with the engine
    throw error;
  } finally {
    stop();
  }
}
