// Measures the cost of createHandler per token: the CPU time of the main thread while the engine, in its worker, streams
// chat completions that are read directly from the engine or through the handler (Request, JSON, events, Response).
//   node tools/bench/handler.mjs [--model shape:type] [--tokens 400] [--rounds 9] [--clients 1]
// Linux only: the times are read from /proc.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel } from './models.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    tokens: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '9' },
    clients: { type: 'string', default: '1' },
  },
});
const [tokens, rounds, clients] = [options.tokens, options.rounds, options.clients].map(Number);

function modelFile() {
  if (!options.model) return resolve(root, 'examples/models/wick-2.6m-q8_0.gguf');
  const [shape, type] = options.model.split(':');
  return makeModel(shape, type).path;
}

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(resolve(root, 'dist/openai.js'));
const engine = await createEngine({ file: modelFile(), threads: 1, prefixCache: false });
const handle = createHandler(engine);

/** @returns {number} the CPU time of this process's main thread in microseconds */
const threadUs = () =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1000;

/** Makes a request that ignores end tokens. @param {number} seed */
const bodyOf = (seed) => ({
  messages: [{ role: 'user', content: `Tell me story ${seed}.` }],
  ...{ seed, max_tokens: tokens, stream: true, stream_options: { include_usage: true } },
  logit_bias: { 0: -100, 2: -100 },
});

/** @param {number} seed @returns {Promise<number>} tokens */
async function askEngine(seed) {
  const create = /** @type {any} */ (engine.chat.completions);
  let count = 0;
  for await (const chunk of await create.create(bodyOf(seed))) {
    count = chunk.usage?.completion_tokens ?? count;
  }
  return count;
}

/** @param {number} seed @returns {Promise<number>} tokens */
async function askHandler(seed) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = JSON.stringify(bodyOf(seed));
  const url = 'http://wick.test/v1/chat/completions';
  const response = await handle(new Request(url, { ...init, body }));
  if (response.status !== 200 || !response.body) throw new Error(await response.text());
  let last = new Uint8Array();
  for await (const bytes of response.body) {
    if (bytes.length > 40) last = bytes; // only [DONE] follows it
  }
  const text = new TextDecoder().decode(last);
  return Number(/"completion_tokens":(\d+)/.exec(text)?.[1]);
}

/** @param {(seed: number) => Promise<number>} ask @param {number} seed @returns {Promise<{us: number, rate: number}>} */
async function measure(ask, seed) {
  const [began, started] = [threadUs(), performance.now()];
  const counts = await Promise.all(Array.from({ length: clients }, (_, i) => ask(seed * 100 + i)));
  const count = counts.reduce((sum, one) => sum + one, 0);
  if (!(count >= 0.5 * tokens * clients)) throw new Error(`received only ${count} tokens`);
  return {
    us: (threadUs() - began) / count,
    rate: (1000 * count) / (performance.now() - started),
  };
}

/** @type {Record<'engine' | 'handler', {us: number, rate: number}[]>} */
const found = { engine: [], handler: [] };
for (let round = -2; round < rounds; round++) {
  const sides = /** @type {const} */ ([
    ['engine', askEngine],
    ['handler', askHandler],
  ]);
  for (const [side, ask] of round % 2 === 0 ? sides : [...sides].reverse()) {
    const one = await measure(ask, round + 10);
    if (round >= 0) found[side].push(one);
  }
}
await engine.close();
const us = (/** @type {'engine' | 'handler'} */ side) => median(found[side].map((one) => one.us));
const rate = median(found.engine.map((one) => one.rate));
const cost = us('handler') - us('engine');
console.log(`${environmentLine(describeEnvironment())}
${options.model ?? 'wick-2.6m:q8_0'}, ${clients} requests at once, ${tokens} tokens each, median of ${rounds} rounds
main thread, us per token: ${us('engine').toFixed(1)} engine only, ${us('handler').toFixed(1)} through the handler
the handler costs ${cost.toFixed(1)} us a token: ${((cost * rate) / 1e4).toFixed(2)} % of ${(1e6 / rate).toFixed(0)} us that a token takes`);
