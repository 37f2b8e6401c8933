// js/worker/worker.js — the file that workers run. The first message says whether a worker is the engine's or a
// helper. The bundle works as a classic script and as a module, in browsers, Deno and Node.

import { EngineWorker } from './engine_worker.js';
import { becomeHelper } from './helper.js';

/** @import { ToWorker } from '../connection/messages.js' */

/** @type {EngineWorker} */
let worker;

/** @param {ToWorker} message */
function receive(message) {
  if (message.type === 'helper') becomeHelper(message);
  else worker.receive(message);
}

function listen() {
  const scope = /** @type {any} */ (globalThis);
  worker = new EngineWorker((message) => scope.postMessage(message), console.debug);
  scope.onmessage = (/** @type {MessageEvent<ToWorker>} */ { data }) => receive(data);
}

/**
 * Listens for messages in Node, where they arrive through the port to the thread that started this one. Console
 * output is sent there as well, because the worker's standard streams are not connected.
 */
function listenInNode() {
  const { parentPort, receiveMessageOnPort } =
    globalThis.process.getBuiltinModule('node:worker_threads');
  const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
  const log = (/** @type {string} */ text) => port.postMessage({ type: 'log', text });
  worker = new EngineWorker((message) => port.postMessage(message), log);
  port.on('message', receive);
  // Messages that have arrived are received synchronously, because the first event costs about 30
  // ms in Node 24.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
    receive(next.message);
  }
}

if (typeof globalThis.postMessage === 'function') listen();
else listenInNode();
