// Measures the cost of a long context: tokens per second in sessions with 128, 1,024 and 4,096 tokens,
// which take turns, in Node with the shipped package.
//   node tools/bench/contexts.mjs [--model shape:type | file.gguf] [--contexts 128,1024,4096]
//     [--tokens 12] [--repetitions 7] [--threads 1] [--kv f32|f16|q8|q4]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q8_0' },
    contexts: { type: 'string', default: '128,1024,4096' },
    tokens: { type: 'string', default: '12' },
    repetitions: { type: 'string', default: '7' },
    threads: { type: 'string', default: '1' },
    kv: { type: 'string', default: 'f16' },
  },
});
const file = modelFile(options.model);
const contexts = options.contexts.split(',').map(Number);
const tokens = Number(options.tokens);
const longest = Math.max(...contexts) + tokens + 32;

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const engine = await createEngine({
  file,
  threads: Number(options.threads),
  kvType: /** @type {'f32' | 'f16' | 'q8' | 'q4'} */ (options.kv),
  contextSize: longest,
  kvTokens: 2 * contexts.length * longest,
});
const { shape: facts, kernels } = await engine.info();
const vocab = facts?.vocab ?? 1;

/** @type {{context: number, session: import('../../js/index.js').Session, rates: number[]}[]} */
const sides = [];
for (const context of contexts) {
  const session = await engine.createSession();
  await session.append(Array.from({ length: context }, (_, i) => (i * 7919 + context) % vocab));
  sides.push({ context, session, rates: [] });
}
for (let round = -1; round < Number(options.repetitions); round++) {
  for (const { session, rates } of sides) {
    const fork = await session.fork();
    const settings = { temperature: 0, ignoreEnd: true, speculation: false, maxTokens: tokens + 1 };
    const run = fork.prompt([5], settings);
    await run.text();
    if (round >= 0) rates.push(run.result?.timings.decodeTokensPerSecond ?? 0);
    await fork.close();
  }
}
console.log(JSON.stringify(describeEnvironment()));
console.log(
  `${options.model}, ${kernels} kernels, ${options.kv} keys and values, threads: ${options.threads}\n\n| context | tok/s | relative to the first (95% CI) |`,
);
console.log('|---|---|---|');
for (const { context, rates } of sides) {
  const [low, high] = ratioInterval(rates, sides[0].rates);
  const ratio = (median(rates) / median(sides[0].rates)).toFixed(2);
  const interval = `${low.toFixed(2)} to ${high.toFixed(2)}`;
  console.log(`| ${context} | ${median(rates).toFixed(1)} | ${ratio} (${interval}) |`);
}
await engine.close();
