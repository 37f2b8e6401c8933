// A helper: an instance that has some rows of each matrix. A message that is a buffer requests a
// matrix product; all other messages are part of the setup.

import { stayAwake } from './awake.js';
import { EMPTY, HEADER_BYTES, headerOf, makeInstance, payloadOf } from './instance.js';

/** @type {Awaited<ReturnType<typeof makeInstance>>} */
let instance;
let act = 0;
let outputs = 0;

/** @param {ArrayBuffer} buffer @param {any} target of the reply */
function answer(buffer, target) {
  const header = headerOf(buffer);
  const [product, tokens, bytes, isTransferred, awakeMs] = header;
  let reply = buffer;
  if (product !== EMPTY) {
    instance.bytes().set(payloadOf(buffer, bytes), act);
    const size = instance.wasm.answer(product, tokens, act, outputs);
    if (!isTransferred) reply = new ArrayBuffer(HEADER_BYTES + size);
    headerOf(reply)[2] = size;
    payloadOf(reply, size).set(instance.bytes().subarray(outputs, outputs + size));
  }
  target.postMessage(reply, isTransferred ? [reply] : []);
  if (awakeMs > 0) stayAwake(awakeMs);
}

/** @type {Record<string, (argument: any) => Promise<void> | void>} */
const methods = {
  async open({ module, port }) {
    instance = await makeInstance(module);
    port.onmessage = (/** @type {MessageEvent} */ event) => answer(event.data, port);
  },
  load({ products, rows, actBytes, outputBytes }) {
    instance.addProducts(products, (_, product) => rows[product].shift());
    act = instance.alloc(actBytes);
    outputs = instance.alloc(outputBytes);
  },
};

const scope = /** @type {any} */ (globalThis);
scope.onmessage = async (/** @type {MessageEvent} */ { data }) => {
  if (data instanceof ArrayBuffer) {
    answer(data, scope);
    return;
  }
  try {
    await methods[data.method](data.argument);
    scope.postMessage({ done: true });
  } catch (error) {
    scope.postMessage({ done: false, reason: String(error) });
  }
};
