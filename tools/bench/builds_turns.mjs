// Compares the speed of two builds of the package in one Node process. Requests to the two alternate,
// for machines whose speed changes from second to second (builds.mjs compares
// processes, with createEngine).
//   node tools/bench/builds_turns.mjs OLD NEW [--model qwen3.5-0.8b:q4_0 | --file model.gguf] [--rounds 9]
//     [--prompt 64] [--tokens 16] [--kv f16] [--context 0]
// OLD and NEW are dist folders. With --context N, each request continues a session whose N tokens were
// prefilled once. A ratio is the speed of NEW divided by the speed of OLD: the median of the rounds'
// ratios, with its 95% interval.

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
    file: { type: 'string' },
    kv: { type: 'string', default: 'f16' },
    context: { type: 'string', default: '0' },
    rounds: { type: 'string', default: '9' },
    prompt: { type: 'string', default: '64' },
    tokens: { type: 'string', default: '16' },
  },
});
const [rounds, promptTokens, tokens, contextTokens] = [
  ...[options.rounds, options.prompt, options.tokens, options.context],
].map(Number);
if (positionals.length !== 2 || !(rounds >= 1)) {
  console.error('usage: node tools/bench/builds_turns.mjs OLD NEW [--rounds 9] (two dist folders)');
  process.exit(2);
}
const file = options.file ? resolve(options.file) : modelFile(options.model);

/** @param {number} length @param {number} [round] @returns {number[]} token ids */
const promptOf = (length, round = 0) =>
  Array.from({ length }, (_, i) => 300 + ((i * 31 + round * 977) % 15_000));

/** @param {string} dist */
async function open(dist) {
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
  const engine = await createEngine({
    ...{ file, threads: 1, prefixCache: false },
    contextSize: Math.max(1024, contextTokens + promptTokens + tokens),
    kvType: /** @type {import('../../js/index.js').KvType} */ (options.kv),
  });
  const session = contextTokens > 0 ? await engine.createSession() : undefined;
  await session?.append(promptOf(contextTokens));
  return {
    ...{ engine, session },
    prefill: /** @type {number[]} */ ([]),
    decode: /** @type {number[]} */ ([]),
  };
}

const sides = [await open(positionals[0]), await open(positionals[1])];
for (let round = 0; round <= rounds; round++) {
  const prompt = promptOf(promptTokens, round);
  for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
    const settings = { maxTokens: tokens, temperature: 0, ignoreEnd: true, speculation: false };
    const run = side.session
      ? side.session.prompt(prompt, settings)
      : side.engine.generate(prompt, settings);
    await run.text();
    await side.session?.truncate(contextTokens);
    const { timings } = /** @type {import('../../js/index.js').GenerationResult} */ (run.result);
    if (round === 0) continue;
    side.prefill.push(timings.prefillTokensPerSecond);
    side.decode.push(timings.decodeTokensPerSecond);
  }
}
const [old, fresh] = sides;
console.log(
  `${environmentLine(describeEnvironment())}; ${options.file ?? options.model}, KV ${options.kv}, context ${contextTokens}, ${rounds} rounds`,
);
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
