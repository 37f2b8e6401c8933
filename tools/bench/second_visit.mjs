// Measures a second visit: the time until the weights of a stored model are in memory, compared with
// reading a file of the same size from the origin private file system, and the additional time
// until the first token after a prompt of 8 tokens. Visits and file reads alternate in one
// Chromium, each in a separate page.
//   node tools/bench/second_visit.mjs [--model qwen2.5-0.5b:q4_0] [--runs 10] [--threads 0] [--dist dist] [--document]
// With `--threads 0`, the engine chooses.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchProfile } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { makePrompt } from './prompts.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'qwen2.5-0.5b:q4_0' },
    runs: { type: 'string', default: '10' },
    threads: { type: 'string', default: '0' },
    dist: { type: 'string', default: 'dist' },
    document: { type: 'boolean', default: false },
  },
});
const PROMPT_TOKENS = 8;
const PATIENCE_MS = 600_000;

const path = modelFile(options.model);
const { size } = statSync(path);
const { text } = makePrompt(path, PROMPT_TOKENS, 0);
const server = await serve({
  root: {
    '/': resolve(root, 'tests/support/empty_page'),
    '/dist/': resolve(root, options.dist),
    '/models/': dirname(path),
  },
});
const profile = mkdtempSync(join(tmpdir(), 'wick-second-visit-'));
const browser = await launchProfile(profile);
const given = {
  url: `/models/${basename(path)}`,
  text,
  size,
  threads: Number(options.threads) || undefined,
};

/** @typedef {typeof given} Given @typedef {{placedMs: number, readyMs: number, firstTokenMs: number}} Visit */

/**
 * Runs code in an unused page.
 * @template T
 * @param {(given: Given) => Promise<T>} code
 * @returns {Promise<T>}
 */
async function inNewPage(code) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  const found = await page.evaluate(/** @type {any} */ (code), given);
  await page.close();
  return found;
}

/** Makes the first visit, which stores the model and a file of the same size. @param {Given} given_ */
async function prepare({ url }) {
  const entry = '/dist/models.js';
  const { openModels } = await import(entry);
  const models = await openModels();
  await models.get(new URL(url, document.baseURI));
  const blob = await models.blob(new URL(url, document.baseURI).href);
  const folder = await navigator.storage.getDirectory();
  const file = await folder.getFileHandle('same-bytes', { create: true });
  await blob.stream().pipeTo(await file.createWritable());
}

/** Reads the file in a worker, in pieces of 1 MB, with a handle and as a Blob. @param {Given} given_ */
async function readFile({ size: expected }) {
  const code = `onmessage = async () => {
    const folder = await navigator.storage.getDirectory();
    const file = await folder.getFileHandle('same-bytes');
    const begin = performance.now();
    const handle = await file.createSyncAccessHandle();
    const piece = new Uint8Array(1 << 20);
    let bytes = 0;
    for (let got = 1; got > 0; bytes += got) got = handle.read(piece, { at: bytes });
    handle.close();
    const handleMs = performance.now() - begin;
    const again = performance.now();
    const blob = await file.getFile();
    let read = 0;
    for (; read < blob.size; read += 1 << 20) await blob.slice(read, read + (1 << 20)).arrayBuffer();
    postMessage({ bytes, handleMs, blobMs: performance.now() - again });
  };`;
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const found = await new Promise((settle) => {
    worker.onmessage = ({ data }) => settle(data);
    worker.postMessage(0);
  });
  worker.terminate();
  if (found.bytes !== expected) throw new Error(`read ${found.bytes} of ${expected} bytes`);
  return /** @type {{handleMs: number, blobMs: number}} */ (found);
}

/** @param {Given} given_ @returns {Promise<Visit>} */
async function visit({ url, text: prompt, threads, size: expected }) {
  const entry = '/dist/index.js';
  const { createEngine } = await import(entry);
  const begin = performance.now();
  let placedMs = 0;
  const engine = await createEngine({
    ...{ url, threads, cache: 'only', contextSize: 512 },
    onProgress: (/** @type {{loaded: number}} */ { loaded }) => {
      if (placedMs === 0 && loaded >= expected) placedMs = performance.now() - begin;
    },
  });
  const readyMs = performance.now() - begin;
  let firstTokenMs = 0;
  const onToken = () => {
    firstTokenMs ||= performance.now() - begin;
  };
  await engine.generate(prompt, { maxTokens: 8, temperature: 0, ignoreEnd: true, onToken }).text();
  await engine.close();
  return { placedMs: placedMs || readyMs, readyMs, firstTokenMs };
}

/** @param {number[]} times */
const row = (times) =>
  `${median(times).toFixed(0)} (${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)})`;

try {
  await inNewPage(prepare);
  await inNewPage(visit); // afterwards the code cache contains the engine, as on a second visit
  /** @type {Awaited<ReturnType<typeof readFile>>[]} */
  const readings = [];
  /** @type {Visit[]} */
  const visits = [];
  for (let run = 0; run < Number(options.runs); run++) {
    readings.push(await inNewPage(readFile));
    visits.push(await inNewPage(visit));
  }
  const handle = readings.map(({ handleMs }) => handleMs);
  const blob = readings.map(({ blobMs }) => blobMs);
  const placed = visits.map(({ placedMs }) => placedMs);
  const later = visits.map(({ firstTokenMs, placedMs }) => firstTokenMs - placedMs);
  const ratioTo = (/** @type {number[]} */ reading) => {
    const [low, high] = ratioInterval(placed, reading);
    const ratio = median(placed) / median(reading);
    return `${ratio.toFixed(2)} (95% CI: ${low.toFixed(2)} to ${high.toFixed(2)})`;
  };
  const table = `| ${options.model}, ${(size / 1e6).toFixed(0)} MB | ms: median (min to max) |
|---|---|
| reading the file from OPFS by a sync access handle | ${row(handle)} |
| reading it as a Blob | ${row(blob)} |
| createEngine until the weights are in memory | ${row(placed)} |
| after that, the first token after a prompt of ${PROMPT_TOKENS} | ${row(later)} |
| in memory / read as a Blob | ${ratioTo(blob)} |
| in memory / read by a handle | ${ratioTo(handle)} |`;
  const environment = describeEnvironment();
  console.log(`${environmentLine(environment)}\n\n${table}`);
  if (options.document) {
    writeSection(
      'second-visit',
      `## A second visit

A model stored in the origin private file system is read, checked and placed in memory; ${options.runs} visits and file reads alternated in
one Chromium.

\`node tools/bench/second_visit.mjs --document\`: ${environmentLine(environment)}.

${table}`,
    );
  }
} finally {
  await browser.close();
  await server.close();
  rmSync(profile, { recursive: true, force: true });
}
