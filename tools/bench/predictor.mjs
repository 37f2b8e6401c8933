// Measures the cost of a layer that predicts further tokens if its proposals are never accepted: random weights in the shape of
// Qwen3.5-0.8B with such a layer, and random sampling. Two engines, with and without the layer, generate alternately, in Node.
//   node tools/bench/predictor.mjs [--model qwen3.5-0.8b-mtp:q4_0] [--rounds 5] [--prompt 64] [--tokens 192]

import { parseArgs } from 'node:util';
import { createEngine } from '../../tests/support/package.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'qwen3.5-0.8b-mtp:q4_0' },
    rounds: { type: 'string', default: '5' },
    prompt: { type: 'string', default: '64' },
    tokens: { type: 'string', default: '192' },
  },
});
const [rounds, promptTokens, tokens] = [options.rounds, options.prompt, options.tokens].map(Number);
const file = modelFile(options.model);
const { cpu, node, commit, date } = describeEnvironment();
console.log(
  `${cpu}, Node ${node}, ${commit}, ${date}: ${options.model}, prompts of ${promptTokens} tokens, ${tokens} generated, ${rounds} rounds`,
);

const open = async (/** @type {boolean} */ predictor) => {
  const given = { file, predictor, threads: 1, contextSize: 1024, prefixCache: false };
  return {
    engine: await createEngine(given),
    prefill: /** @type {number[]} */ ([]),
    decode: /** @type {number[]} */ ([]),
  };
};
const sides = [await open(false), await open(true)];
let word = 1;
for (let round = 0; round <= rounds; round++) {
  const prompt = Array.from({ length: promptTokens }, () => {
    word = (word * 48271) % 2147483647;
    return 300 + (word % 200_000);
  });
  for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
    const request = { maxTokens: tokens, temperature: 1, seed: round, ignoreEnd: true };
    const run = side.engine.generate(prompt, request);
    await run.text();
    const { timings, usage } = /** @type {any} */ (run.result);
    if (round === 0) continue;
    side.prefill.push((1e3 * promptTokens) / timings.prefillMs);
    side.decode.push((1e3 * (usage.completionTokens - 1)) / timings.decodeMs);
  }
}
const [off, on] = sides;
for (const [name, { engine }] of Object.entries({ without: off, with: on })) {
  const { proposed, accepted, out } = (await engine.stats()).tokens;
  console.log(`${name}: ${out} tokens generated, ${proposed} proposed, ${accepted} accepted`);
}
for (const phase of /** @type {const} */ (['prefill', 'decode'])) {
  const [low, high] = ratioInterval(on[phase], off[phase]);
  const ratio = median(on[phase]) / median(off[phase]);
  console.log(
    `${phase}: ${median(off[phase]).toFixed(2)} tokens/s without, ${median(on[phase]).toFixed(2)} with: ${ratio.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`,
  );
}
for (const { engine } of sides) await engine.close();
