// Starts one engine in a separate Node process (start.mjs) and prints the time at which it was
// ready, as JSON. With "marks", the workers also start through this file, which records when they
// reach each point and how long the engine's calls take; the package is unchanged. Without "dist",
// it waits for an empty worker, which shows the time that Node itself takes.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInThisContext } from 'node:vm';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** One clock for all threads. */
const now = () => performance.timeOrigin + performance.now();
const begun = now();

/** @typedef {{dist?: string, file: string, threads: number | undefined, marks: boolean}} Wanted */
/** @typedef {[name: string, atMs: number]} Mark */

const wasm = /** @type {any} */ (WebAssembly);
/** @type {Mark[]} */
const seen = [];
/** The durations of the engine's calls. @type {Record<string, number>} */
const tookMs = {};

/** @param {any} owner @param {string} name of a function that returns a promise @param {string} label */
function noteEnds(owner, name, label) {
  const original = owner[name];
  owner[name] = async (/** @type {unknown[]} */ ...given) => {
    seen.push([`${label} begins`, now()]);
    const value = await original.apply(owner, given);
    seen.push([`${label} ends`, now()]);
    return value;
  };
}

/** @param {Wanted} wanted */
const measure = ({ dist, ...wanted }) => (dist ? measureEngine(dist, wanted) : measureNode());

async function measureNode() {
  const start = now();
  const text = 'process.getBuiltinModule("node:worker_threads").parentPort.postMessage(0)';
  const worker = new Worker(text, { eval: true, execArgv: [] });
  await new Promise((settle) => worker.once('message', settle));
  console.log(JSON.stringify({ importMs: 0, readyMs: now() - start, marks: [], callsMs: {} }));
}

/** @param {string} dist @param {Omit<Wanted, 'dist'>} wanted */
async function measureEngine(dist, { file, threads, marks }) {
  const importStart = now();
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(dist);
  const importMs = now() - importStart;
  /** @type {Record<string, number>} */
  let callsMs = {};
  let count = 0;
  const worker = () => {
    const name = count++ === 0 ? 'worker' : 'helper';
    const made = new Worker(new URL(import.meta.url), { workerData: { name, dist } });
    seen.push([`${name} constructed`, now()]);
    made.on('message', (message) => {
      if (message.type === 'ready') seen.push(['page receives ready', now()]);
      if (message.type !== 'marks') return;
      seen.push(...message.seen);
      if (name === 'worker') callsMs = message.tookMs;
    });
    return made;
  };
  if (marks) noteEnds(wasm, 'compile', 'compiling');
  const start = now();
  const engine = await createEngine({ file, threads, ...(marks && { worker }) });
  const readyMs = now() - start;
  await engine.tokenize('a'); // the marks arrive before this answer
  await engine.close();
  const relative = seen.map(([name, atMs]) => [name, atMs - start]);
  console.log(JSON.stringify({ importMs, readyMs, marks: relative, callsMs }));
}

/** @param {any} exports the engine's functions @returns {any} the same functions, timed */
function timed(exports) {
  /** @type {Record<string, unknown>} */
  const all = {};
  for (const [name, value] of Object.entries(exports)) {
    all[name] = value;
    if (typeof value !== 'function') continue;
    all[name] = (/** @type {number[]} */ ...given) => {
      const start = now();
      const result = value(...given);
      tookMs[name] = (tookMs[name] ?? 0) + now() - start;
      return result;
    };
  }
  return all;
}

/** @param {{name: string, dist: string}} given */
function work({ name, dist }) {
  const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
  seen.push([`${name} runs code`, begun]);
  const { Instance } = wasm;
  wasm.Instance = class {
    constructor(/** @type {unknown[]} */ ...given) {
      seen.push([`${name} instantiates`, now()]);
      const { exports } = new Instance(...given);
      seen.push([`${name} has an instance`, now()]);
      if (name === 'helper') port.postMessage({ type: 'marks', seen });
      this.exports = name === 'helper' ? exports : timed(exports);
    }
  };
  const { postMessage } = port;
  port.postMessage = (/** @type {any} */ message) => {
    if (message.type === 'ready') {
      seen.push([`${name} is ready`, now()]);
      postMessage.call(port, { type: 'marks', seen, tookMs });
    }
    postMessage.call(port, message);
  };
  const file = fileURLToPath(new URL('worker.js', dist));
  runInThisContext(readFileSync(file, 'utf8'), file);
  seen.push([`${name} has its code`, now()]);
}

if (isMainThread) await measure(JSON.parse(process.argv[2]));
else work(workerData);
