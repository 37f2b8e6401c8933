// Measures the cost of a JSON schema per token and the savings from known keys. Constrained and
// unconstrained outputs with the same number of tokens alternate in one engine under Node.
//   node tools/bench/records.mjs [--model shape:type | file.gguf] [--rounds 15]
// "strings" are outputs for {"type": "string"} without forced tokens: each token is sampled from all
// that match. "records" have four keys, whose tokens are forced. The unconstrained output of a round
// has as many tokens as the constrained one. Exit code 1: a token of a string takes more than 3%
// longer, or a record is not 1.5 times as fast, each with a 95% interval.

import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { dist } from '../../tests/support/package.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { modelFile } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q4_0' },
    rounds: { type: 'string', default: '15' },
  },
});
const rounds = Number(options.rounds);
/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(pathToFileURL(`${dist}/index.js`).href);
const file = modelFile(options.model);
const engine = await createEngine({ file, threads: 1, contextSize: 1024, prefixCache: false });

const word = { type: 'string', maxLength: 12 };
const properties = {
  first_name: word,
  family_name: word,
  years_of_age: { type: 'integer', minimum: 0, maximum: 120 },
  is_a_member: { type: 'boolean' },
};
const schemas = {
  strings: { type: 'string', minLength: 400 },
  records: { type: 'object', properties, required: Object.keys(properties) },
};

/** @typedef {{ms: number, tokens: number}} Measured */

/**
 * @param {import('../../js/index.js').GenerateOptions} settings
 * @returns {Promise<Measured>} the time after the first token
 */
async function measure(settings) {
  const stream = engine.generate('A text:', { temperature: 1, speculation: false, ...settings });
  await stream.text();
  const { usage, timings } = /** @type {import('../../js/index.js').GenerationResult} */ (
    stream.result
  );
  return { ms: timings.decodeMs, tokens: usage.completionTokens };
}

console.log(`${environmentLine(describeEnvironment())}; ${rounds} rounds, ${file.split('/').at(-1)}

| | of the schema | free | of the schema / free (95% CI) | tokens |
|---|---|---|---|---|`);
const ratios = { strings: [0, 0], records: [0, 0] };
for (const [name, jsonSchema] of Object.entries(schemas)) {
  const maxTokens = name === 'strings' ? 64 : 200;
  /** @type {Measured[][]} */
  const [bound, free] = [[], []];
  await measure({ jsonSchema, maxTokens, seed: 0 });
  for (let round = 0; round < rounds; round++) {
    const first = await measure({ jsonSchema, maxTokens, seed: round + 1 });
    bound.push(first);
    free.push(await measure({ maxTokens: first.tokens, ignoreEnd: true, seed: round + 1 }));
  }
  const each = [bound, free].map((side) => side.map(({ ms, tokens }) => ms / (tokens - 1)));
  ratios[/** @type {'strings'} */ (name)] = ratioInterval(each[0], each[1]);
  const shown = ratios[/** @type {'strings'} */ (name)].map((value) => value.toFixed(3));
  const ratio = (median(each[0]) / median(each[1])).toFixed(3);
  const [ours, theirs] = each.map((side) => `${median(side).toFixed(3)} ms per token`);
  const tokens = median(bound.map((one) => one.tokens));
  console.log(`| ${name} | ${ours} | ${theirs} | ${ratio} (${shown.join(' to ')}) | ${tokens} |`);
}
await engine.close();
const isSlow = ratios.strings[0] > 1.03 || ratios.records[0] > 1 / 1.5;
if (isSlow) console.error('a schema costs too much, or known keys save too little');
process.exitCode = isSlow ? 1 : 0;
