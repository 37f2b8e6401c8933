// Measures downloads into the store over 1 to 6 connections, from servers that limit the speed per
// connection, in total, or not at all, and respond after a delay. Downloads with different numbers of
// connections alternate; nothing is written to disk.
//   node tools/bench/connections.mjs [--megabytes 64] [--runs 5] [--document]

import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ModelStore } from '../../js/models/model_store.js';
import { MemoryBackend, MemoryDisk } from '../../tests/support/memory_backend.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '64' },
    runs: { type: 'string', default: '5' },
    document: { type: 'boolean', default: false },
  },
});
const numbers = [1, 2, 3, 6];
const PIECE_BYTES = 1 << 16;
const size = Number(options.megabytes) * 1e6;
const file = Buffer.alloc(size, 'GGUF');

/**
 * The simulated network: `latencyMs` before the first byte, MB/s per connection and in total.
 * @typedef {{name: string, latencyMs: number, each: number, all: number}} Network
 */
/** @type {Network[]} */
const networks = [
  { name: '10 MB/s per connection, 100 ms', latencyMs: 100, each: 10, all: 1e9 },
  { name: '10 MB/s per connection, 25 MB/s in total, 100 ms', latencyMs: 100, each: 10, all: 25 },
  { name: '25 MB/s in total, 100 ms', latencyMs: 100, each: 1e9, all: 25 },
  { name: '25 MB/s in total, 500 ms', latencyMs: 500, each: 1e9, all: 25 },
  { name: 'no limits', latencyMs: 0, each: 1e9, all: 1e9 },
];

/** Limits throughput to `perMs` bytes per millisecond. @param {number} perMs */
function limitOf(perMs) {
  let freeAtMs = 0;
  return async (/** @type {number} */ bytes) => {
    const now = performance.now();
    freeAtMs = Math.max(freeAtMs, now) + bytes / perMs;
    if (freeAtMs - now > 1) await sleep(freeAtMs - now);
  };
}

/** @param {Network} network */
async function startServer({ latencyMs, each, all }) {
  const pass = limitOf(all * 1e3);
  const server = createServer(async (request, response) => {
    const [, from = '0'] = /bytes=(\d+)-/.exec(request.headers.range ?? '') ?? [];
    const begin = Number(from);
    await sleep(latencyMs);
    response.writeHead(request.headers.range ? 206 : 200, {
      'Content-Length': size - begin,
      ETag: '"same"',
      ...(request.headers.range && { 'Content-Range': `bytes ${begin}-${size - 1}/${size}` }),
    });
    const passOne = limitOf(each * 1e3);
    for (let at = begin; at < size && !response.destroyed; at += PIECE_BYTES) {
      const piece = file.subarray(at, Math.min(at + PIECE_BYTES, size));
      await passOne(piece.byteLength);
      await pass(piece.byteLength);
      if (response.write(piece)) continue;
      await new Promise((settle) => {
        response.once('drain', settle);
        response.once('close', settle);
      });
    }
    response.end();
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', () => settle(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}/m.gguf`, close };
}

/** @param {string} url @param {number} connections @returns {Promise<number>} ms */
async function download(url, connections) {
  const store = new ModelStore(new MemoryBackend(new MemoryDisk()));
  const begin = performance.now();
  await store.get(url, { connections });
  const ms = performance.now() - begin;
  await store.close();
  return ms;
}

/** @param {Network} network @returns {Promise<string>} a table row of median MB/s */
async function measure(network) {
  const server = await startServer(network);
  /** @type {number[][]} */
  const times = numbers.map(() => []);
  for (let run = 0; run < Number(options.runs); run++) {
    for (const [index, connections] of numbers.entries()) {
      times[index].push(await download(server.url, connections));
    }
  }
  server.close();
  const rates = times.map((list) => (size / 1e3 / median(list)).toFixed(1));
  return `| ${network.name} | ${rates.join(' | ')} |`;
}

const rows = [];
for (const network of networks) rows.push(await measure(network));
const table = `| server | ${numbers.map((one) => (one === 1 ? '1 connection' : one)).join(' | ')} |
|---|${numbers.map(() => '---').join('|')}|
${rows.join('\n')}`;
const environment = describeEnvironment();
console.log(`${environmentLine(environment)}\n\n${table}`);
if (options.document) {
  writeSection(
    'connections',
    `## Connections of a download

Speed in MB/s of downloads of ${options.megabytes} MB over \`connections\` parallel connections: medians of ${options.runs} downloads each, run alternately.

\`node tools/bench/connections.mjs --document\`: ${environmentLine(environment)}.

${table}`,
  );
}
