// examples/chat/network.js — a time limit for requests whose answer is also stored in this browser.

/** A network in a train may neither answer nor fail. */
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
