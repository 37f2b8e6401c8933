// examples/chat/network.js — a time limit for requests whose response is also stored in this browser.

/** Needed because a request may neither succeed nor fail, for example on a train. */
const NETWORK_MS_MAX = 4000;

/**
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T | undefined>} undefined if the network is unavailable
 */
export function inTime(answer) {
  const late = new Promise((settle) => setTimeout(settle, NETWORK_MS_MAX));
  return Promise.race([answer, /** @type {Promise<undefined>} */ (late)]).catch(() => undefined);
}
