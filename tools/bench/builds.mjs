// Compares the speed of two builds of the package in Node: decode, prefill and createEngine.
//   node tools/bench/builds.mjs OLD NEW [--pairs 15] [--file model.gguf] [--threads 1]
//     [--prompt 256] [--tokens 256] [--kv f16] [--runs 3]
// OLD and NEW are dist folders. A pair is one process per build, run one after the other in
// alternating order; the best run of each counts. A ratio is the speed of NEW divided by the speed
// of OLD: 0.9 is a tenth slower. The exit code is 1 if the 95% interval of a ratio is completely
// below 0.98.

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median, ratioInterval } from './statistics.mjs';

const LEAST_RATIO = 0.98;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    pairs: { type: 'string', default: '15' },
    file: { type: 'string', default: resolve(root, 'examples/models/wick-2.6m-q8_0.gguf') },
    threads: { type: 'string', default: '1' },
    prompt: { type: 'string', default: '256' },
    tokens: { type: 'string', default: '256' },
    kv: { type: 'string', default: 'f16' },
    runs: { type: 'string', default: '3' },
  },
});
const pairs = Number(options.pairs);
if (positionals.length !== 2 || !Number.isInteger(pairs) || pairs < 1) {
  console.error('usage: node tools/bench/builds.mjs OLD NEW [--pairs 15] (two dist folders)');
  process.exit(2);
}
const child = fileURLToPath(new URL('./builds_child.mjs', import.meta.url));

/** @typedef {import('./builds_child.mjs').Measured} Measured */

/** @param {string} dist @returns {Measured} */
function measureOnce(dist) {
  /** @type {import('./builds_child.mjs').Wanted} */
  const wanted = {
    index: pathToFileURL(resolve(dist, 'index.js')).href,
    file: resolve(options.file),
    threads: Number(options.threads),
    promptTokens: Number(options.prompt),
    tokens: Number(options.tokens),
    kvType: /** @type {import('../../js/index.js').KvType} */ (options.kv),
    runs: Number(options.runs),
  };
  return JSON.parse(
    execFileSync(process.execPath, [child, JSON.stringify(wanted)], { encoding: 'utf8' }),
  );
}

/** @type {{name: string, unit: string, speed: (one: Measured) => number, shown: (one: Measured) => number}[]} */
const measures = [
  { name: 'decode', unit: 'tok/s', speed: (one) => one.decode, shown: (one) => one.decode },
  { name: 'prefill', unit: 'tok/s', speed: (one) => one.prefill, shown: (one) => one.prefill },
  {
    name: 'createEngine',
    unit: 'ms',
    speed: (one) => 1000 / one.createMs,
    shown: (one) => one.createMs,
  },
];

/** @type {Measured[][]} */
const [old, fresh] = [[], []];
const sides = [
  { dist: positionals[0], found: old },
  { dist: positionals[1], found: fresh },
];
for (const { dist } of sides) measureOnce(dist); // so that the system caches the files
for (let pair = 0; pair < pairs; pair++) {
  const order = pair % 2 === 0 ? sides : [...sides].reverse();
  for (const { dist, found } of order) found.push(measureOnce(dist));
}

console.log(`${environmentLine(describeEnvironment())}; ${pairs} pairs, threads: ${options.threads}, KV: ${options.kv}

| | old | new | new / old (95% CI) |
|---|---|---|---|`);
/** @type {string[]} */
const slower = [];
for (const { name, unit, speed, shown } of measures) {
  const ratio = median(fresh.map(speed)) / median(old.map(speed));
  const [low, high] = ratioInterval(fresh.map(speed), old.map(speed));
  if (high < LEAST_RATIO) slower.push(name);
  const both = [old, fresh].map((side) => `${median(side.map(shown)).toFixed(1)} ${unit}`);
  const interval = [low, high].map((value) => value.toFixed(3)).join(' to ');
  console.log(`| ${name} | ${both.join(' | ')} | ${ratio.toFixed(3)} (${interval}) |`);
}
if (slower.length > 0) {
  console.error(`slower than ${LEAST_RATIO} of the old build: ${slower.join(', ')}`);
  process.exit(1);
}
