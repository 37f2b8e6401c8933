// examples/chat/network.js — for how long the network is waited for where something is kept that does
// in its place.

/** A train's network may neither answer nor fail. */
const NETWORK_MS_MAX = 4000;

/**
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T | undefined>} nothing: there is no network
 */
export function inTime(answer) {
  const late = new Promise((settle) => setTimeout(settle, NETWORK_MS_MAX));
  return Promise.race([answer, /** @type {Promise<undefined>} */ (late)]).catch(() => undefined);
}
