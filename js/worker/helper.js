// js/worker/helper.js — a helper of the engine's worker: a thread that computes and receives no messages.

import { runHelper } from '../wasm/wasm_module.js';

/** @param {import('../connection/messages.js').HelperMessage} message */
export function becomeHelper({ module, index, port }) {
  const ask = () => port.postMessage('memory?');
  port.onmessage = ({ data }) => {
    // an error of a task reaches the page's error event, one of a promise does not
    runHelper(module, data, index).catch((error) => setTimeout(() => raise(error)));
  };
  // Firefox loses shared memory that is sent while the port is being transferred.
  port.onmessageerror = ask;
  ask();
}

/** @param {unknown} error */
function raise(error) {
  throw error;
}
