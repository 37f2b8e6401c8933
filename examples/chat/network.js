// examples/chat/network.js — a time limit for requests whose answer is also stored in this browser.

/** On a train, a request may neither be answered nor fail. */
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
