// js/base/abort_signals.js — runs actions when an AbortSignal aborts. A listener is removed as soon
// as no caller is waiting, because a program may pass one signal to all of its calls.

import { abortError } from './errors.js';

/** @typedef {{actions: Set<() => void>, abort: () => void}} Listener */

/**
 * One listener for each signal, regardless of the number of waiting actions, because Node warns
 * about more than ten.
 * @type {WeakMap<AbortSignal, Listener>}
 */
const listeners = new WeakMap();

/** @returns {Listener} */
function newListener() {
  /** @type {Listener['actions']} */
  const actions = new Set();
  const abort = () => {
    for (const action of actions) action();
  };
  return { actions, abort };
}

/**
 * @param {AbortSignal | null | undefined} signal that has not aborted yet
 * @param {() => void} action
 * @returns {() => void} a function that stops waiting
 */
export function onAbort(signal, action) {
  if (!signal) return () => {};
  const listener = listeners.get(signal) ?? newListener();
  listeners.set(signal, listener);
  const { actions, abort } = listener;
  if (actions.size === 0) signal.addEventListener('abort', abort);
  const own = () => action(); // the same function may be registered twice
  actions.add(own);
  return () => {
    if (actions.delete(own) && actions.size === 0) signal.removeEventListener('abort', abort);
  };
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
