// What several sequences at once bring: tokens a second of 1, 2, 4, 8 and 16 that are decoded together,
// beside the rate of prefill, with the package as it is shipped, one after the other in each round.
//   node tools/bench/batch.mjs [--model shape:type | file.gguf] [--tokens 32] [--repetitions 5]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q8_0' },
    tokens: { type: 'string', default: '32' },
    repetitions: { type: 'string', default: '5' },
    counts: { type: 'string', default: '1,2,4,8,16' },
  },
});
const [shape, type] = options.model.split(':');
const file = type ? makeModel(shape, type).path : resolve(options.model);
const tokens = Number(options.tokens);
const counts = options.counts.split(',').map(Number);
const PROMPT_TOKENS = 256;

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const engine = await createEngine({ file, threads: 1, contextSize: 512, prefixCache: false });
const info = await engine.info();
const vocab = info.shape?.vocab ?? 1;

/** @param {number} count @returns {Promise<number>} tokens a second of all together */
async function decodeRate(count) {
  const prompt = Array.from({ length: 16 }, (_, i) => (i * 7919 + 1) % vocab);
  const settings = { temperature: 0, ignoreEnd: true, speculation: false, maxTokens: tokens + 1 };
  const many = engine.generateMany(prompt, { n: count, ...settings });
  await Promise.all(many.map((one) => one.text()));
  const times = many.map((one) => one.result?.timings.decodeMs ?? 0);
  return (count * tokens * 1000) / Math.max(...times);
}

/** @param {number} round @returns {Promise<number>} */
async function prefillRate(round) {
  const prompt = Array.from({ length: PROMPT_TOKENS }, (_, i) => (i * 31 + round * 977) % vocab);
  const run = engine.generate(prompt, { temperature: 0, ignoreEnd: true, maxTokens: 1 });
  await run.text();
  return run.result?.timings.prefillTokensPerSecond ?? 0;
}

/** @type {number[]} */
const prefill = [];
/** @type {Map<number, number[]>} */
const decode = new Map(counts.map((count) => [count, []]));
for (let round = -1; round < Number(options.repetitions); round++) {
  const rate = await prefillRate(round + 1);
  if (round >= 0) prefill.push(rate);
  for (const count of counts) {
    const together = await decodeRate(count);
    if (round >= 0) decode.get(count)?.push(together);
  }
}

const solo = /** @type {number[]} */ (decode.get(counts[0]));
console.log(JSON.stringify(describeEnvironment()));
console.log(
  `${options.model}, ${info.kernels} kernels, 1 thread; prefill ${median(prefill).toFixed(1)} tok/s`,
);
console.log('| at once | tok/s together | x alone (95 %) | x prefill |');
console.log('|---|---|---|---|');
for (const [count, rates] of decode) {
  const [low, high] = ratioInterval(rates, solo);
  const times = (median(rates) / median(solo)).toFixed(2);
  const share = (median(rates) / median(prefill)).toFixed(2);
  console.log(
    `| ${count} | ${median(rates).toFixed(1)} | ${times} (${low.toFixed(2)} to ${high.toFixed(2)}) | ${share} |`,
  );
}
await engine.close();
