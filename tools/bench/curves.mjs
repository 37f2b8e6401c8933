// Measures the time per token by context length and by model size, in Node with the shipped package.
// Writes its section of docs/benchmarks.md and two charts next to it.
//   node tools/bench/curves.mjs [--threads 1] [--contexts 128,512,...] [--context-model shape:type]
//     [--sizes shape:type,...] [--repetitions 3] [--no-document]

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { drawCurve } from './curve_svg.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel } from './models.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    threads: { type: 'string', default: '1' },
    contexts: { type: 'string', default: '128,512,1024,2048,4096,8192' },
    'context-model': { type: 'string', default: 'smollm2-135m:q8_0' },
    sizes: {
      type: 'string',
      default:
        'tiny:q4_0,100mb:q4_0,smollm2-135m:q4_0,smollm2-360m:q4_0,qwen2.5-0.5b:q4_0,llama3.2-1b:q4_0',
    },
    repetitions: { type: 'string', default: '3' },
    document: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const threads = Number(options.threads);
const repetitions = Number(options.repetitions);
const NEW_TOKENS = 32;
/** Longer prompts take a long time, so they are measured only once. */
const REPEATED_PROMPT_MAX = 1024;

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));

/** @param {number} count @param {number} vocab @param {number} round */
function makeTokens(count, vocab, round) {
  return Array.from({ length: count }, (_, i) => (i * 7919 + round * 104729) % vocab);
}

/**
 * @param {import('../../js/index.js').Engine} engine
 * @param {number} promptTokens
 */
async function measure(engine, promptTokens) {
  const vocab = (await engine.info()).shape?.vocab ?? 1;
  const rounds = promptTokens <= REPEATED_PROMPT_MAX ? repetitions : 1;
  /** @type {import('../../js/index.js').Timings[]} */
  const timings = [];
  for (let round = 0; round < rounds; round++) {
    const prompt = makeTokens(promptTokens, vocab, round);
    const run = engine.generate(prompt, {
      maxTokens: NEW_TOKENS,
      temperature: 0,
      ignoreEnd: true,
      speculation: false,
    });
    await run.text();
    if (run.result) timings.push(run.result.timings);
  }
  return {
    prefill: median(timings.map(({ prefillTokensPerSecond }) => prefillTokensPerSecond)),
    decode: median(timings.map(({ decodeTokensPerSecond }) => decodeTokensPerSecond)),
  };
}

/** @param {string} pair @param {number} contextSize */
async function openModel(pair, contextSize) {
  const [shape, type] = pair.split(':');
  const { path } = makeModel(shape, type);
  const engine = await createEngine({ file: path, threads, contextSize, prefixCache: false });
  await measure(engine, 16); // warm-up
  return engine;
}

/** @returns {Promise<{context: number, prefill: number, decode: number}[]>} */
async function measureContexts() {
  const contexts = options.contexts.split(',').map(Number);
  const engine = await openModel(options['context-model'], Math.max(...contexts));
  const rows = [];
  for (const context of contexts) {
    const row = { context, ...(await measure(engine, context - NEW_TOKENS)) };
    console.error(`context ${context}: ${row.prefill.toFixed(1)} / ${row.decode.toFixed(1)} tok/s`);
    rows.push(row);
  }
  await engine.close();
  return rows;
}

/** @returns {Promise<{model: string, megabytes: number, prefill: number, decode: number}[]>} */
async function measureSizes() {
  const rows = [];
  for (const pair of options.sizes.split(',').filter(Boolean)) {
    const engine = await openModel(pair, 512);
    const megabytes = ((await engine.info()).plan?.weightsBytes ?? 0) / 1e6;
    const row = { model: pair.replace(':', ' '), megabytes, ...(await measure(engine, 128)) };
    console.error(`${row.model}: ${row.prefill.toFixed(1)} / ${row.decode.toFixed(1)} tok/s`);
    rows.push(row);
    await engine.close();
  }
  return rows;
}

/** @param {Awaited<ReturnType<typeof measureContexts>>} contexts */
function contextTable(contexts) {
  const first = contexts[0].decode;
  return [
    '| context | prefill tok/s | decode tok/s | relative to the first |',
    '|---|---|---|---|',
    ...contexts.map(
      ({ context, prefill, decode }) =>
        `| ${context} | ${prefill.toFixed(1)} | ${decode.toFixed(1)} | ${(decode / first).toFixed(2)} |`,
    ),
  ].join('\n');
}

const environment = describeEnvironment();
const contexts = await measureContexts();
const sizes = await measureSizes();
const values =
  repetitions === 1
    ? 'Each value was\nmeasured once.'
    : `Values are\nmedians of ${repetitions} measurements, but only one was made for each context longer than ${REPEATED_PROMPT_MAX} tokens.`;
const text = `## Cost against context and model size

The engine runs in Node with ${threads === 1 ? '1 thread' : `${threads} threads`} and decodes ${NEW_TOKENS} tokens at the end of the context. ${values}

\`make bench-curves\`: ${environmentLine(environment)}.

The model is ${options['context-model'].replace(':', ' ')}:

${contextTable(contexts)}

![Milliseconds per decoded token by context length](benchmarks-context.svg)

![Milliseconds per decoded token by size of the weights](benchmarks-size.svg)`;
console.log(text);
if (options.document) {
  const pictures = {
    'benchmarks-context.svg': drawCurve(
      contexts.map(({ context, decode }) => [context, 1000 / decode]),
      'context tokens',
      'ms per token',
    ),
    'benchmarks-size.svg': drawCurve(
      sizes.map(({ megabytes, decode }) => [megabytes, 1000 / decode]),
      'MB of weights',
      'ms per token',
    ),
  };
  for (const [name, picture] of Object.entries(pictures)) {
    writeFileSync(resolve(root, 'docs', name), picture);
  }
  writeSection('curves', text);
}
