// Compares text embeddings with transformers.js (onnxruntime-web, WASM) in one Chromium,
// alternately, with the same weights, the same texts and one thread.
//   node tools/bench/embeddings.mjs [--folder build/embed] [--texts 32] [--tokens 64] [--rounds 15]
//     [--threads 1] [--document]
// --folder contains minilm-q8_0.gguf, minilm-f32.gguf and onnx/ (tools/embed/models.mjs). `make
// bench-embeddings` builds them first.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { openPage } from './browser_peer.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median, ratioInterval } from './statistics.mjs';
import { closeAll } from './turns.mjs';

const { values: options } = parseArgs({
  options: {
    folder: { type: 'string', default: 'build/embed' },
    texts: { type: 'string', default: '32' },
    tokens: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '15' },
    threads: { type: 'string', default: '1' },
    document: { type: 'boolean', default: false },
  },
});
const folder = resolve(root, options.folder);
const modules = resolve(root, '.toolchain/bench/node_modules');
const threads = Number(options.threads);
const WARM_UPS = 2;

/** The files that each side loads. Ours are compared with theirs for the same weights. */
const sides = {
  'wick Q8_0': { peer: 'wick', url: '/models/minilm-q8_0.gguf', threads },
  'wick F32': { peer: 'wick', url: '/models/minilm-f32.gguf', threads },
  'transformers.js q8': { peer: 'transformers', model: 'models/onnx', dtype: 'q8', threads },
  'transformers.js fp32': { peer: 'transformers', model: 'models/onnx', dtype: 'fp32', threads },
};
/** [ours, theirs, the minimum ratio that the project requires] */
const comparisons = /** @type {const} */ ([
  ['wick Q8_0', 'transformers.js q8', 1.5],
  ['wick F32', 'transformers.js fp32', 2],
]);

/** Reads words that are one token each from the tokenizer's file. @returns {string[]} */
function readWords() {
  const { model } = JSON.parse(readFileSync(resolve(folder, 'onnx/tokenizer.json'), 'utf8'));
  return Object.keys(model.vocab).filter((piece) => /^[a-z]{3,}$/.test(piece));
}

/**
 * Returns texts with the requested number of tokens, including [CLS] and [SEP].
 * @param {string[]} words
 * @param {number} round
 */
function makeTexts(words, round) {
  let state = 1 + round;
  const word = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator
    return words[Math.floor((state / 2 ** 32) * words.length)];
  };
  const text = () => Array.from({ length: Number(options.tokens) - 2 }, word).join(' ');
  return Array.from({ length: Number(options.texts) }, text);
}

/** @param {number[]} a @param {number[]} b */
function cosine(a, b) {
  const dot = (/** @type {number[]} */ x, /** @type {number[]} */ y) =>
    x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** @typedef {{ms: number, vectors: number[][]}} Embedded */
/** @typedef {{clock: number, processor: number}} Sample in milliseconds */

/**
 * Returns the CPU time of all pages so far. On a shared machine it is more reliable than the clock,
 * because only the measured page uses the CPU.
 * @param {import('playwright-core').CDPSession} session of the browser
 * @returns {Promise<number>} milliseconds
 */
async function processorMs(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const pages = processInfo.filter(({ type }) => type === 'renderer');
  return 1000 * pages.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/**
 * @param {Record<string, import('./browser_peer.mjs').Peer>} pages
 * @param {string[]} words
 * @returns {Promise<{samples: Record<string, Sample[]>, vectors: Record<string, number[][]>}>}
 */
async function measure(pages, words) {
  const names = Object.keys(pages);
  const session = await browser.newBrowserCDPSession();
  /** @type {Record<string, Sample[]>} */
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  /** @type {Record<string, number[][]>} */
  const vectors = {};
  for (let round = -WARM_UPS; round < Number(options.rounds); round++) {
    const texts = makeTexts(words, round + WARM_UPS);
    // the order changes from round to round
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round + WARM_UPS) % names.length];
      const before = await processorMs(session);
      /** @type {Embedded} */
      const found = await pages[name].call('embed', texts);
      const processor = (await processorMs(session)) - before;
      if (round >= 0) samples[name].push({ clock: found.ms, processor });
      vectors[name] = found.vectors;
    }
  }
  return { samples, vectors };
}

/**
 * @param {Sample[]} ours
 * @param {Sample[]} theirs
 * @param {keyof Sample} time
 * @returns {string} the ratio and its interval
 */
function ratio(ours, theirs, time) {
  const [slow, fast] = [theirs, ours].map((samples) => samples.map((sample) => sample[time]));
  const [low, high] = ratioInterval(slow, fast);
  return `${(median(slow) / median(fast)).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}

/** @param {Awaited<ReturnType<typeof measure>>} measured @returns {string} tables in Markdown */
function report({ samples, vectors }) {
  const exact = vectors['transformers.js fp32'];
  const ms = (/** @type {string} */ name, /** @type {keyof Sample} */ time) =>
    median(samples[name].map((sample) => sample[time])).toFixed(0);
  const near = (/** @type {string} */ name) =>
    Math.min(...vectors[name].map((vector, i) => cosine(vector, exact[i]))).toFixed(4);
  const all = Object.keys(sides).map((name) => [
    ...[name, ms(name, 'clock'), ms(name, 'processor'), near(name)],
  ]);
  const ratios = comparisons.map(([ours, theirs, least]) => [
    `${ours} to ${theirs}`,
    ratio(samples[ours], samples[theirs], 'clock'),
    ratio(samples[ours], samples[theirs], 'processor'),
    least,
  ]);
  const table = (/** @type {unknown[][]} */ rows) => {
    const [head, ...others] = rows.map((row) => `| ${row.join(' | ')} |`);
    return [head, `|${'---|'.repeat(rows[0].length)}`, ...others].join('\n');
  };
  return [
    table([['engine', 'ms', 'CPU ms', 'lowest cosine'], ...all]),
    table([['times as fast', 'by the clock', 'by CPU time', 'goal'], ...ratios]),
  ].join('\n\n');
}

for (const [path, how] of [
  [resolve(folder, 'onnx/onnx/model_quantized.onnx'), 'node tools/embed/models.mjs'],
  [resolve(modules, '@huggingface/transformers/package.json'), 'tools/setup.sh browsers bench'],
]) {
  if (!existsSync(path)) {
    console.error(`embeddings: ${path} is missing. Run ${how}`);
    process.exit(1);
  }
}
const environment = describeEnvironment();
const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    '/models': folder,
    '/transformers': resolve(modules, '@huggingface/transformers/dist'),
    '/onnxruntime': resolve(modules, 'onnxruntime-web/dist'),
  },
});
const browser = await launchChromium();
/** @type {Record<string, import('./browser_peer.mjs').Peer>} */
const pages = {};
try {
  for (const [name, { peer, ...wanted }] of Object.entries(sides)) {
    pages[name] = await openPage(browser, `${server.url}embeddings.html?peer=${peer}`);
    console.error(`${name}: ${await pages[name].call('load', wanted)}`);
  }
  const table = report(await measure(pages, readWords()));
  console.log(table);
  if (options.document) {
    writeSection(
      'embeddings',
      `## Text embeddings against transformers.js

${options.texts} inputs of ${options.tokens} tokens at once, with all-MiniLM-L6-v2's weights, ${threads} thread, in one Chromium
(${browser.version()}), measured alternately: medians of ${options.rounds} rounds, with 95% intervals of the ratio. The cosine is the
lowest similarity of any vector to transformers.js's F32 vector. On a shared machine, CPU time is more
reliable than wall-clock time.

\`node tools/bench/embeddings.mjs --rounds ${options.rounds} --document\`: ${environmentLine(environment)}.

${table}`,
    );
  }
} finally {
  await closeAll(pages);
  await browser.close();
  await server.close();
}
