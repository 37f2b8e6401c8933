// js/worker/helper.js — a helper of the engine's worker: a thread that computes and hears no messages.

import { runHelper } from '../wasm/wasm_module.js';

/** @param {import('../connection/messages.js').HelperMessage} message */
export function becomeHelper({ module, index, port }) {
  const ask = () => port.postMessage('memory?');
  port.onmessage = ({ data }) => {
    // an exception of a task, not of a promise, is heard outside
    runHelper(module, data, index).catch((error) => setTimeout(() => raise(error)));
  };
  // Firefox loses shared memory that is sent while the port is still on its way.
  port.onmessageerror = ask;
  ask();
}

/** @param {unknown} error */
function raise(error) {
  throw error;
}
