// Compares the speed of two builds of the package in one process of Node, request by request,
// alternately, for machines whose speed fluctuates within seconds (builds.mjs compares processes,
// including createEngine).
//   node tools/bench/builds_turns.mjs OLD NEW [--model qwen3.5-0.8b:q4_0] [--rounds 9] [--prompt 64] [--tokens 16]
// OLD and NEW are dist folders. A ratio is the speed of NEW divided by the speed of OLD: the median of the rounds' ratios, with its
// 95 % interval.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    model: { type: 'string', default: 'qwen3.5-0.8b:q4_0' },
    rounds: { type: 'string', default: '9' },
    prompt: { type: 'string', default: '64' },
    tokens: { type: 'string', default: '16' },
  },
});
const [rounds, promptTokens, tokens] = [options.rounds, options.prompt, options.tokens].map(Number);
if (positionals.length !== 2 || !(rounds >= 1)) {
  console.error('usage: node tools/bench/builds_turns.mjs OLD NEW [--rounds 9]: two dist folders');
  process.exit(2);
}
const file = modelFile(options.model);

/** @param {string} dist */
async function open(dist) {
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
  const engine = await createEngine({ file, threads: 1, contextSize: 1024, prefixCache: false });
  return {
    engine,
    prefill: /** @type {number[]} */ ([]),
    decode: /** @type {number[]} */ ([]),
  };
}

const sides = [await open(positionals[0]), await open(positionals[1])];
for (let round = 0; round <= rounds; round++) {
  const prompt = Array.from(
    { length: promptTokens },
    (_, i) => 300 + ((i * 31 + round * 977) % 20_000),
  );
  for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
    const settings = { maxTokens: tokens, temperature: 0, ignoreEnd: true, speculation: false };
    const run = side.engine.generate(prompt, settings);
    await run.text();
    const { timings } = /** @type {import('../../js/index.js').GenerationResult} */ (run.result);
    if (round === 0) continue;
    side.prefill.push(timings.prefillTokensPerSecond);
    side.decode.push(timings.decodeTokensPerSecond);
  }
}
const [old, fresh] = sides;
console.log(`${environmentLine(describeEnvironment())}; ${options.model}, ${rounds} rounds`);
for (const phase of /** @type {const} */ (['prefill', 'decode'])) {
  const ratios = fresh[phase].map((speed, i) => speed / old[phase][i]);
  const [low, high] = ratioInterval(
    ratios,
    ratios.map(() => 1),
  );
  const speeds = [old, fresh].map((side) => median(side[phase]).toFixed(1)).join(' and ');
  console.log(
    `${phase}: ${speeds} tokens/s, ${median(ratios).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`,
  );
}
for (const { engine } of sides) await engine.close();
