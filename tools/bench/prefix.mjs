// Measures the savings from the prefix cache: the time to the first token of requests that share a
// long prompt, for the first one (cold) and for a later one, in Node with the shipped package.
//   node tools/bench/prefix.mjs [--model shape:type | file.gguf] [--prompt 1000] [--repetitions 7]
//     [--forks 200] [--document]
// Also forks a session that contains such a prompt, `--forks` times, and prints the times from the
// call until the fork is ready. They include the messages to the worker and back; a call that does
// nothing, measured alternately, shows their cost. With --document, it writes its section of
// docs/benchmarks.md.

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q8_0' },
    prompt: { type: 'string', default: '1000' },
    repetitions: { type: 'string', default: '7' },
    forks: { type: 'string', default: '200' },
    document: { type: 'boolean', default: false },
  },
});
const file = modelFile(options.model);

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));
const engine = await createEngine({ file, threads: 1, contextSize: 2048, kvTokens: 4096 });
const vocab = (await engine.info()).shape?.vocab ?? 1;

/** @param {number} round @param {number} question the text after the shared prompt */
async function firstTokenMs(round, question) {
  const shared = Array.from(
    { length: Number(options.prompt) },
    (_, i) => (i * 7919 + round * 104729) % vocab,
  );
  const run = engine.generate([...shared, question, question + 1], {
    maxTokens: 1,
    temperature: 0,
    ignoreEnd: true,
  });
  await run.text();
  const { result } = run;
  if (!result) throw new Error('the generation has no result');
  return { ms: result.timings.ttftMs, cached: result.usage.cachedTokens };
}

/** Returns sorted times in us: of forks, and of a call that does nothing. */
async function forkTimes() {
  const session = await engine.createSession();
  const prompt = Array.from({ length: Number(options.prompt) }, (_, i) => (i * 7919 + 1) % vocab);
  await session.prompt(prompt, { maxTokens: 1, temperature: 0, ignoreEnd: true }).text();
  /** @type {number[]} */
  const forks = [];
  /** @type {number[]} */
  const calls = [];
  for (let i = -20; i < Number(options.forks); i++) {
    const start = performance.now();
    const fork = await session.fork();
    const middle = performance.now();
    await session.truncate(Number(options.prompt));
    const end = performance.now();
    await fork.close();
    if (i < 0) continue;
    forks.push(1e3 * (middle - start));
    calls.push(1e3 * (end - middle));
  }
  await session.close();
  return [forks, calls].map((times) => times.sort((a, b) => a - b));
}

/** @type {number[]} */
const cold = [];
/** @type {number[]} */
const warm = [];
let cached = 0;
for (let round = -1; round < Number(options.repetitions); round++) {
  const first = await firstTokenMs(round + 1, 5);
  const later = await firstTokenMs(round + 1, 9);
  if (round < 0) continue;
  cold.push(first.ms);
  warm.push(later.ms);
  cached = later.cached;
}
const [low, high] = ratioInterval(cold, warm);
const environment = describeEnvironment();
const said =
  `${options.model}, ${options.prompt} shared tokens, ${cached} of them from the cache: ` +
  `first token after ${median(cold).toFixed(1)} ms cold, ${median(warm).toFixed(1)} ms warm, ` +
  `1/${(median(cold) / median(warm)).toFixed(1)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
console.log(`${JSON.stringify(environment)}\n${said}`);
if (options.document) {
  writeSection(
    'prefix',
    `## Prompts with the same beginning

Medians of ${options.repetitions} rounds.

\`node tools/bench/prefix.mjs --document\`: ${environmentLine(environment)}.

${said}.`,
  );
}
const measured = await forkTimes();
for (const [i, what] of ['a fork', 'a call that does nothing'].entries()) {
  const [early, late] = [0.1, 0.99].map(
    (part) => measured[i][Math.floor(part * measured[i].length)],
  );
  console.log(
    `${what}, a session of ${options.prompt} tokens: median ${median(measured[i]).toFixed(1)} us, 10 % ${early.toFixed(1)} us, 99 % ${late.toFixed(1)} us`,
  );
}
const { forks, prefix } = await engine.kvStats();
console.log(`hits ${prefix?.hits}, tokens saved ${prefix?.tokensSaved}, forks ${forks}`);
await engine.close();
