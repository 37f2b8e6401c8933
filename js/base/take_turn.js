// js/base/take_turn.js — lets waiting events run first: messages and requests that have arrived.

/**
 * How long to wait when this request cannot continue until another one is read or ends.
 */
const PAUSE_MS = 5;

/** @returns {Promise<unknown>} settles after the events that have arrived, in the context of the caller's request */
export function takeTurn() {
  if (typeof setImmediate === 'function') return new Promise((settle) => setImmediate(settle));
  const { scheduler } = /** @type {any} */ (globalThis);
  // workerd has scheduler.wait; a channel would belong to the request that created it
  if (typeof scheduler?.wait === 'function') return scheduler.wait(0);
  if (typeof MessageChannel !== 'function') return pause(0);
  const { port1, port2 } = new MessageChannel();
  return new Promise((settle) => {
    port1.onmessage = () => {
      port1.close();
      settle(undefined);
    };
    port2.postMessage(0);
  });
}

/** @param {number} [ms] @returns {Promise<unknown>} */
export const pause = (ms = PAUSE_MS) => new Promise((settle) => setTimeout(settle, ms));
