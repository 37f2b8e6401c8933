// js/worker/helper.js — a helper of the engine's worker: a compute thread that receives no messages.

import { runHelper } from '../wasm/wasm_module.js';

/**
 * WebKit may lose shared memory that is sent through a port, on every attempt. The engine then runs
 * without this helper.
 */
const ASKS_MAX = 10;

/** @param {import('../connection/messages.js').HelperMessage} message */
export function becomeHelper({ module, index, port }) {
  let asked = 0;
  const ask = () => {
    if (++asked <= ASKS_MAX) return port.postMessage('memory?');
    port.close();
    console.warn(
      'wick-llm: this browser cannot share memory with a helper, so fewer threads are used',
    );
  };
  port.onmessage = ({ data }) => {
    if (typeof data === 'object' && !data?.memory) return ask();
    runHelper(data.module ?? module, data, index).catch((error) => {
      // an error thrown in a task reaches the page's error event, but a rejected promise does not
      setTimeout(() => {
        throw error;
      });
    });
  };
  // Firefox loses shared memory that is sent while the port is being transferred.
  port.onmessageerror = ask;
  ask();
}
