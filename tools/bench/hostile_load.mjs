// Measures `wick serve` under hostile load: the latency of normal requests, first without other load and
// then alongside slow, malformed, oversized and expensive requests
// (tools/bench/hostile_requests.mjs). Both parts run within minutes of each other on the same
// machine, because only their ratio is comparable.
//   node tools/bench/hostile_load.mjs [--seconds 600] [--quiet 30] [--rate 4] [--model FILE] [--only KIND,...]
// Exit status 1: a normal request failed or got a different answer than without load, the server responded to a hostile
// request with a status of 500 or above, or the median latency is more than twice the latency without load.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    quiet: { type: 'string', default: '30' },
    rate: { type: 'string', default: '4' },
    model: { type: 'string', default: 'examples/models/wick-4.2m-q8_0.gguf' },
    only: { type: 'string', default: '' },
  },
});
const RATIO_MAX = 2;
const PAUSE_MS = 100;

const chat = (/** @type {object} */ more) => ({
  messages: [{ role: 'user', content: 'Tell me a story about a fox.' }],
  temperature: 0,
  max_tokens: 24,
  ...more,
});
const city = {
  type: 'object',
  properties: { city: { type: 'string', maxLength: 8 } },
  required: ['city'],
};
/**
 * A few requests that are repeated, similar to those of an application.
 * @type {[string, object][]}
 */
const normal = [
  ['/v1/chat/completions', chat({})],
  ['/v1/chat/completions', chat({ stream: true })],
  ['/v1/completions', { prompt: 'Once upon a time', temperature: 0, max_tokens: 24 }],
  [
    '/v1/chat/completions',
    chat({ response_format: { type: 'json_schema', json_schema: { name: 'city', schema: city } } }),
  ],
];

async function startServer() {
  const argument = ['dist/cli.js', 'serve', options.model, '--port', '0', '--no-log'];
  const child = spawn(process.execPath, argument, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(child.stdout), 'line');
  return { child, url: new URL(line).origin };
}

/** Returns the text of a response without ids and times. @param {string} text */
const saidIn = (text) =>
  [...text.matchAll(/"(?:content|text)":("(?:[^"\\]|\\.)*")/g)]
    .map(([, said]) => JSON.parse(said))
    .join('');

/**
 * @typedef {{ms: number[], failures: string[]}} Measured
 * @param {string} url
 * @param {number} seconds
 * @param {Map<number, string>} said the expected text of each request
 * @returns {Promise<Measured>}
 */
async function measure(url, seconds, said) {
  /** @type {Measured} */
  const found = { ms: [], failures: [] };
  const end = performance.now() + seconds * 1000;
  for (let i = 0; performance.now() < end; i = (i + 1) % normal.length) {
    const [path, body] = normal[i];
    const headers = { 'Content-Type': 'application/json' };
    const start = performance.now();
    try {
      const answer = await fetch(url + path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      found.ms.push(performance.now() - start);
      const now = saidIn(text);
      if (answer.status !== 200) found.failures.push(`${answer.status} ${text.slice(0, 200)}`);
      else if (now !== (said.get(i) ?? now)) found.failures.push(`different answer: ${now}`);
      said.set(i, now);
    } catch (error) {
      found.failures.push(String(error));
    }
    await sleep(PAUSE_MS);
  }
  return found;
}

/** @param {number[]} ms */
const p95 = (ms) => [...ms].sort((a, b) => a - b)[Math.floor(ms.length * 0.95)];

/** @param {string} name @param {Measured} found */
function print(name, { ms, failures }) {
  const numbers = `median ${median(ms).toFixed(1)} ms, p95 ${p95(ms).toFixed(1)} ms, longest ${Math.max(...ms).toFixed(1)} ms`;
  console.log(`${name}: ${ms.length} requests, ${numbers}, ${failures.length} failed`);
  for (const failure of failures.slice(0, 5)) console.log(`  ${failure}`);
}

/** @param {number | undefined} pid @returns {number} MB, or 0 if the host does not report it */
function residentMb(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return 0;
  }
}

const { child, url } = await startServer();
try {
  /** @type {Map<number, string>} */
  const said = new Map();
  await measure(url, 3, said);
  const before = residentMb(child.pid);
  const quiet = await measure(url, Number(options.quiet) / 2, said);
  const workerData = {
    url,
    rate: Number(options.rate),
    only: options.only.split(',').filter(Boolean),
  };
  const hostile = new Worker(new URL('hostile_requests.mjs', import.meta.url), { workerData });
  const loaded = await measure(url, Number(options.seconds), said);
  hostile.postMessage('stop');
  const [counts] = await once(hostile, 'message');
  await hostile.terminate();
  await sleep(2000);
  const after = await measure(url, Number(options.quiet) / 2, said);
  const alone = {
    ms: [...quiet.ms, ...after.ms],
    failures: [...quiet.failures, ...after.failures],
  };
  console.log(describeEnvironment());
  print('quiet', alone);
  print(`hostile (${options.rate}/s)`, loaded);
  console.table(counts);
  const ratios = [median, p95].map((of) => of(loaded.ms) / of(alone.ms));
  console.log(`ratios: median ${ratios[0].toFixed(2)}, p95 ${ratios[1].toFixed(2)}`);
  console.log(
    `memory of the server: ${before.toFixed(0)} MB, then ${residentMb(child.pid).toFixed(0)} MB`,
  );
  const refused = Object.values(counts).some((/** @type {Record<string, number>} */ of) =>
    Object.keys(of).some((status) => Number(status) >= 500),
  );
  if (ratios[0] > RATIO_MAX || refused || alone.failures.length + loaded.failures.length > 0)
    process.exitCode = 1;
} finally {
  child.kill();
}
