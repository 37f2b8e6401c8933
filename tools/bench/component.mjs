// Compares 8 clients of the WASI 0.3 component under `wasmtime serve` with 8 requests to the same
// build in `wick-lab serve` under `wasmtime run`, alternately. Also measures requests for one token
// in a reused instance, and in a snapshot with a new instance per request.
//   node tools/bench/component.mjs [--model wick-2.6m:q8_0] [--clients 8] [--tokens 200] [--rounds 9] [--runs 200]
// Linux only: CPU times are read from /proc. The clients run on the same processors.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { basename, dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { snapshotOf, startWasmtime } from '../../tests/support/component_servers.mjs';
import { built, locate, root } from '../../tests/support/locate.mjs';
import { run } from '../../tests/support/process.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'wick-2.6m:q8_0' },
    clients: { type: 'string', default: '8' },
    tokens: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '9' },
    runs: { type: 'string', default: '200' },
  },
});
const [clients, tokens, rounds, runs] = [
  ...[options.clients, options.tokens, options.rounds, options.runs],
].map(Number);
const PROMPT_TOKENS = 20;
const TICK_MS = 10; // the resolution of times in /proc
const model = modelFile(options.model);

/** @typedef {import('../../tests/support/component_servers.mjs').Started} Started */
/** @typedef {{tokensPerSecond: number, worstMs: number}} Load */

/** @returns {Promise<Load>} */
async function direct() {
  const guest = ['serve', `/models/${basename(model)}`, '--rate', '0'];
  const mix = ['--requests', `${clients}`, '--mix', `${PROMPT_TOKENS}/${tokens}:1`];
  const args = ['run', '--dir', `${dirname(model)}::/models`, built('wasi/wick-lab.wasm')];
  const wasmtime = locate('wasmtimeCommand').path;
  const told = ['--format', 'json'];
  const { code, stdout, stderr } = await run(wasmtime, [...args, ...guest, ...mix, ...told]);
  if (code !== 0) throw new Error(stderr);
  const { load, result } = JSON.parse(stdout.toString());
  return { tokensPerSecond: load.tokens_per_s, worstMs: Math.max(...result.ttft_ms) };
}

const agent = new Agent({ keepAlive: true });

/**
 * @param {string} origin @param {object} body @param {(piece: Buffer) => void} onPiece
 * @returns {Promise<void>}
 */
const post = (origin, body, onPiece) =>
  new Promise((done, failed) => {
    const text = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': text.length };
    const sent = request(
      `${origin}/v1/completions`,
      { method: 'POST', agent, headers },
      (answer) => {
        if (answer.statusCode !== 200) failed(new Error(`status ${answer.statusCode}`));
        answer.on('data', onPiece).on('end', done).on('error', failed);
      },
    );
    sent.on('error', failed).end(text);
  });

/** @param {number} pid @returns {number} the CPU time it has used, in milliseconds */
function cpuMsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

const promptOf = (/** @type {number} */ seed) =>
  Array.from({ length: PROMPT_TOKENS }, (_, at) => 300 + ((seed * 131 + at * 37) % 600));

/** @param {Started} server @param {number} round @returns {Promise<Load>} */
async function served(server, round) {
  const common = {
    temperature: 0,
    max_tokens: tokens,
    stream: true,
    logit_bias: { 0: -100, 2: -100 },
  };
  const stream_options = { include_usage: true };
  const began = performance.now();
  const readers = Array.from({ length: clients }, async (_, client) => {
    let [firstMs, last] = [0, Buffer.alloc(0)];
    const body = { prompt: promptOf(round * clients + client), ...common, stream_options };
    await post(server.origin, body, (piece) => {
      firstMs ||= performance.now() - began;
      last = Buffer.concat([last, piece]).subarray(-1000);
    });
    return { firstMs, count: Number(/"completion_tokens":(\d+)/.exec(last.toString())?.[1]) };
  });
  const ended = await Promise.all(readers);
  const count = ended.reduce((sum, one) => sum + one.count, 0);
  if (count !== clients * tokens)
    throw new Error(`received ${count} tokens, expected ${clients * tokens}`);
  return {
    tokensPerSecond: (count * 1000) / (performance.now() - began),
    worstMs: Math.max(...ended.map(({ firstMs }) => firstMs)),
  };
}

/** @param {Started} server @returns {Promise<{best: number, middle: number, cpu: number}>} milliseconds per request */
async function oneToken(server) {
  const times = [];
  const body = { prompt: promptOf(0).slice(0, 4), temperature: 0, max_tokens: 1 };
  for (let warm = 0; warm < 20; warm++) await post(server.origin, body, () => {});
  const cpuBegan = cpuMsOf(server.pid);
  for (let index = 0; index < runs; index++) {
    const began = performance.now();
    await post(server.origin, body, () => {});
    times.push(performance.now() - began);
  }
  const cpu = (cpuMsOf(server.pid) - cpuBegan) / runs;
  return { best: Math.min(...times), middle: median(times), cpu };
}

/** @param {Load[]} ours @param {Load[]} theirs @param {keyof Load} name */
const ratiosOf = (ours, theirs, name) => ours.map((one, index) => one[name] / theirs[index][name]);

console.log(`${environmentLine(describeEnvironment())}\n`);
const server = await startWasmtime('p3', { model });
/** @type {Load[][]} */
const [ours, theirs] = [[], []];
try {
  await served(server, 0);
  for (let round = 1; round <= rounds; round++) {
    theirs.push(await direct());
    ours.push(await served(server, round));
  }
} finally {
  await server.close();
}
console.log(
  `| ${clients} requests of ${tokens} tokens | wasmtime run | wasmtime serve | ratio: median | best |`,
);
console.log('|---|---|---|---|---|');
/** @type {[keyof Load, string, (...values: number[]) => number][]} */
const rows = [
  ['tokensPerSecond', 'tokens/s', Math.max],
  ['worstMs', 'worst time to the first token, ms', Math.min],
];
for (const [name, words, best] of rows) {
  const middles = [theirs, ours].map((list) => median(list.map((one) => one[name])).toFixed(0));
  const ratios = ratiosOf(ours, theirs, name);
  const told = [median(ratios), best(...ratios)].map((ratio) => ratio.toFixed(2));
  console.log(`| ${[words, ...middles, ...told].join(' | ')} |`);
}

console.log(
  '\n| request for one token after four | best, ms | median | CPU time |\n|---|---|---|---|',
);
const p2 = await snapshotOf('p2', resolve(root, 'build/bench'), model);
const p3 = await snapshotOf('p3', resolve(root, 'build/bench'), model);
const reused = ['--max-instance-reuse-count', '1000000'];
/** @type {[string, Promise<Started>][]} */
const starts = [
  ['0.3, instance reused', startWasmtime('p3', { model })],
  ['0.2, instance reused', startWasmtime('p2', { model, args: reused })],
  [
    '0.3, snapshot, one instance per request',
    startWasmtime('p3', { component: p3, isReused: false }),
  ],
  ['0.2, snapshot, one instance per request', startWasmtime('p2', { component: p2 })],
];
for (const [words, start] of starts) {
  const started = await start;
  const { best, middle, cpu } = await oneToken(started);
  console.log(`| ${[words, ...[best, middle, cpu].map((ms) => ms.toFixed(2))].join(' | ')} |`);
  await started.close();
}
agent.destroy();
