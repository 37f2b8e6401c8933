// Measures decoding with and without proposals from the text itself, alternately. A model with random weights, which would only
// repeat itself, is forced to generate real text: code repeated with an edit and JSON repeated with a changed field, both
// complete, and prose without repetitions. The vocabulary is a real one if WICK_SHARED has it (qwen2), otherwise the
// vocabulary of the built-in model.
//   node tools/bench/speculation.mjs [--model shape:type | file.gguf] [--tokens 260] [--repetitions 5]
//     [--document]
// With --document it writes its section of docs/benchmarks.md.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { locate, root } from '../../tests/support/locate.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'qwen2.5-0.5b:q4_0' },
    tokens: { type: 'string', default: '260' },
    repetitions: { type: 'string', default: '5' },
    document: { type: 'boolean', default: false },
  },
});
const file = modelFile(options.model);

/** @typedef {{name: string, prompt: string, answer: string}} Case */

/** @param {string} path */
const read = (path) => readFileSync(resolve(root, path), 'utf8');

/** @returns {Case} */
function codeEdit() {
  const code = read('tools/bench/environment.mjs');
  const edited = code.replaceAll('commit', 'revision').replace('cores:', 'threads: 1,\n    cores:');
  return { name: 'code, edited', prompt: `${code}\nWith commit renamed:\n`, answer: edited };
}

/** @returns {Case} */
function jsonEdit() {
  const people = ['Anna', 'Ben', 'Cara', 'Dan', 'Eve', 'Finn', 'Gita', 'Hugo'];
  const records = people.map((name, i) => ({
    id: 40 + 7 * i,
    name,
    city: 'Oslo',
    active: i % 3 > 0,
  }));
  const changed = records.map((one, i) => (i === 3 ? { ...one, city: 'Bergen' } : one));
  const text = (/** @type {object[]} */ list) => JSON.stringify(list, null, 1);
  return {
    name: 'JSON, one field changed',
    prompt: `${text(records)}\nDan moves to Bergen:\n`,
    answer: text(changed),
  };
}

/** @returns {Case} */
function prose() {
  const answer = read('docs/build.md');
  return { name: 'prose, no repetitions', prompt: read('README.md').slice(0, 1500), answer };
}

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(resolve(root, 'dist/index.js'));

/** @param {Case[]} cases */
async function tokenized(cases) {
  const real = resolve(locate('shared').path || '.', 'vectors/vocab/ggml-vocab-qwen2.gguf');
  const vocabulary = existsSync(real) ? real : resolve(root, 'examples/models/wick-2.6m-q8_0.gguf');
  const reader = await createEngine({ file: vocabulary, directoryOnly: true, threads: 1 });
  const list = [];
  for (const { name, prompt, answer } of cases) {
    const answerTokens = await reader.tokenize(answer, { addSpecial: false });
    list.push({
      name,
      prompt: await reader.tokenize(prompt, { addSpecial: false }),
      answer: answerTokens.slice(0, Number(options.tokens)),
    });
  }
  await reader.close();
  return list;
}

const engine = await createEngine({ file, threads: 1, contextSize: 2048 });

/** @param {{prompt: number[], answer: number[]}} text @param {boolean} speculation */
async function decodeRate({ prompt, answer }, speculation) {
  const before = await engine.stats();
  const run = engine.generate(prompt, {
    temperature: 0,
    ignoreEnd: true,
    maxTokens: answer.length,
    forced: answer,
    speculation,
  });
  await run.text();
  const { tokens, passes } = await engine.stats();
  return {
    rate: run.result?.timings.decodeTokensPerSecond ?? 0,
    proposed: tokens.proposed - before.tokens.proposed,
    accepted: tokens.accepted - before.tokens.accepted,
    passes: passes - before.passes,
  };
}

const environment = describeEnvironment();
const { kernels } = await engine.info();
const lines = [
  `${options.model}, ${kernels} kernels, 1 thread, ${options.tokens} tokens`,
  '',
  '| text | plain tok/s | with proposals | ratio (95% CI) | passes | accepted of proposed |',
  '|---|---|---|---|---|---|',
];
for (const text of await tokenized([codeEdit(), jsonEdit(), prose()])) {
  /** @type {number[]} */
  const plain = [];
  /** @type {number[]} */
  const guessed = [];
  let proposed = 0;
  let accepted = 0;
  /** @type {number[][]} */
  const passes = [[], []];
  for (let round = -1; round < Number(options.repetitions); round++) {
    const without = await decodeRate(text, false);
    const having = await decodeRate(text, true);
    if (round < 0) continue;
    plain.push(without.rate);
    guessed.push(having.rate);
    proposed += having.proposed;
    accepted += having.accepted;
    passes[0].push(without.passes);
    passes[1].push(having.passes);
  }
  const [low, high] = ratioInterval(guessed, plain);
  lines.push(
    `| ${text.name} | ${median(plain).toFixed(2)} | ${median(guessed).toFixed(2)} | ` +
      `${(median(guessed) / median(plain)).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)}) | ` +
      `${median(passes[0])} and ${median(passes[1])} | ${accepted} of ${proposed} |`,
  );
}
const { passUs } = await engine.stats();
const costs = passUs.map((us) => (us === 0 ? '-' : (us / passUs[0]).toFixed(2)));
console.log(
  `time of a pass of 1 to ${passUs.length} rows, relative to one row: ${costs.join(', ')}`,
);
console.log(`${JSON.stringify(environment)}\n${lines.join('\n')}`);
if (options.document) {
  writeSection(
    'speculation',
    `## Speculative decoding

One pass checks up to 15 proposed tokens. A model with random weights is forced to generate the answers. Medians of ${options.repetitions} rounds.

\`node tools/bench/speculation.mjs --document\`: ${environmentLine(environment)}.

${lines.join('\n')}`,
  );
}
await engine.close();
