// js/worker/worker.js — the file that workers run, as the engine's worker or as a helper of it (the first
// message says which): one bundled script, classic and module, in browsers, Deno and Node.

import { EngineWorker } from './engine_worker.js';
import { becomeHelper } from './helper.js';

/** @typedef {import('../connection/messages.js').ToWorker} ToWorker */

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
 * The same in Node, where messages come from a port to the thread that started this one, and words for
 * the console go there, too: the standard streams of a worker that started quickly lead nowhere.
 */
function listenInNode() {
  const { parentPort, receiveMessageOnPort } =
    globalThis.process.getBuiltinModule('node:worker_threads');
  const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
  const log = (/** @type {string} */ text) => port.postMessage({ type: 'log', text });
  worker = new EngineWorker((message) => port.postMessage(message), log);
  port.on('message', receive);
  // What has come already is taken without an event: the first event costs Node 24 some 30 ms.
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
    receive(next.message);
  }
}

if (typeof globalThis.postMessage === 'function') listen();
else listenInNode();
