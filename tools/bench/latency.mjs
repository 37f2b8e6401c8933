// How long a first piece of text takes beside what the engine itself needs (ttftMs), how long a request of
// one token takes just after another was aborted, and how fast a streamed text comes: medians in this Node.
//
//   node tools/bench/latency.mjs [DIST] [THREADS]      two DISTs are compared by running this in turns

import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { median } from './statistics.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [dist = resolve(root, 'dist'), threads = '1'] = process.argv.slice(2);
const { createEngine } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
const file = resolve(dist, 'models/wick-2.6m-q8_0.gguf');
const engine = await createEngine({ file, threads: Number(threads) });
const greedy = { temperature: 0, ignoreEnd: true };

async function firstPieceMs() {
  const start = performance.now();
  const text = engine.generate('Hi', { ...greedy, maxTokens: 60 });
  let ms = 0;
  for await (const _ of text) ms ||= performance.now() - start;
  return ms - text.result.timings.ttftMs;
}

async function afterAbortMs() {
  let pieces = 0;
  for await (const _ of engine.generate('Hi', greedy)) if (++pieces === 50) break;
  const start = performance.now();
  await engine.generate('Hi', { ...greedy, maxTokens: 1 }).text();
  return performance.now() - start;
}

async function tokensPerSecond() {
  const start = performance.now();
  const tokens = 400;
  const options = { ...greedy, maxTokens: tokens, speculation: false };
  for await (const _ of engine.generate('Hi', options));
  return (tokens * 1000) / (performance.now() - start);
}

/** @param {() => Promise<number>} measure @param {number} times */
async function medianOf(measure, times) {
  await measure();
  const found = [];
  for (let i = 0; i < times; i++) found.push(await measure());
  return median(found).toFixed(2);
}

console.log(`first piece behind its token: ${await medianOf(firstPieceMs, 40)} ms`);
console.log(`one token after an abort: ${await medianOf(afterAbortMs, 40)} ms`);
console.log(`streamed: ${await medianOf(tokensPerSecond, 12)} tokens/s`);
await engine.close();
