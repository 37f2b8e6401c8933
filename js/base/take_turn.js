// js/base/take_turn.js — lets others have their turn: what has arrived is handled first.

/** How long to wait where only others' reading or the end of their requests can help. */
const PAUSE_MS = 5;

/** @returns {Promise<unknown>} settles after what has arrived, in the context of the caller's request */
export function takeTurn() {
  if (typeof setImmediate === 'function') return new Promise((settle) => setImmediate(settle));
  const { scheduler } = /** @type {any} */ (globalThis);
  // workerd has it; a channel would belong to the request that made it
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
