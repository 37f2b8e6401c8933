// Measures the cost of metrics: one engine with metrics and one without, alternately, in Node. The figures are CPU times,
// which are meaningful even on a shared machine.
//   node tools/bench/overhead.mjs [MODEL.gguf] [--tokens 64] [--repetitions 31]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options, positionals } = parseArgs({
  options: {
    tokens: { type: 'string', default: '64' },
    repetitions: { type: 'string', default: '31' },
    threads: { type: 'string', default: '1' },
  },
  allowPositionals: true,
});
const file = positionals[0] ?? resolve(root, 'examples/models/wick-2.6m-q8_0.gguf');
const maxTokens = Number(options.tokens);

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const threads = Number(options.threads);
const engines = {
  off: await createEngine({ file, threads, prefixCache: false }),
  on: await createEngine({ file, threads, metrics: true, prefixCache: false }),
};

/** @param {import('../../js/index.js').Engine} engine @param {number} round */
async function decode(engine, round) {
  const prompt = Array.from({ length: 16 }, (_, i) => (i * 31 + round * 7) % 256);
  const before = process.cpuUsage();
  await engine
    .generate(prompt, { maxTokens, temperature: 0, ignoreEnd: true, speculation: false })
    .text();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / maxTokens;
}

/** @type {Record<'on' | 'off', number[]>} milliseconds per token */
const samples = { on: [], off: [] };
for (let round = -3; round < Number(options.repetitions); round++) {
  /** @type {(keyof typeof samples)[]} */
  const order = round % 2 === 0 ? ['on', 'off'] : ['off', 'on'];
  for (const side of order) {
    const ms = await decode(engines[side], round + 3);
    if (round >= 0) samples[side].push(ms);
  }
}
const percent = (/** @type {number} */ ratio) => `${((ratio - 1) * 100).toFixed(2)} %`;
const [low, high] = ratioInterval(samples.on, samples.off);
console.log(
  `${file}\nms per token: ${median(samples.off).toFixed(4)} without, ${median(samples.on).toFixed(4)} with; ` +
    `metrics cost ${percent(median(samples.on) / median(samples.off))} (${percent(low)} to ${percent(high)}), ` +
    `fastest runs ${percent(Math.min(...samples.on) / Math.min(...samples.off))}`,
);
await engines.on.close();
await engines.off.close();
