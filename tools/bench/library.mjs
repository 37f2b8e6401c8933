// Compares the decode speed of a program that links libwick.a (Emscripten, one thread) with the npm
// package in the same Node, and shows the effect of linking with -O1, as in wick.pc, and with -O3.
//   node tools/bench/library.mjs [--rounds 7] [--file model.gguf] [--prompt 128] [--tokens 256]
// A round is one process of each, run one after the other in alternating order. The exit code is 1 if the 95% interval of
// library / package is completely below 0.97. Needs `make dist library`.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { hasRelaxedSimd, root } from '../../tests/support/locate.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median, ratioInterval } from './statistics.mjs';

const LEAST_RATIO = 0.97;
const RUNS = 3;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    file: { type: 'string', default: resolve(root, 'examples/models/wick-2.6m-q8_0.gguf') },
    prompt: { type: 'string', default: '128' },
    tokens: { type: 'string', default: '256' },
  },
});
const rounds = Number(options.rounds);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: node tools/bench/library.mjs [--rounds 7]');
  process.exit(2);
}
const file = resolve(options.file);
const build = resolve(root, 'build/bench/library');
const variant = `emscripten-${hasRelaxedSimd(process.execPath) ? 'relaxed' : 'simd128'}-single`;
const emcc = process.env.EMSDK
  ? join(process.env.EMSDK, 'upstream/emscripten/emcc')
  : resolve(root, '.toolchain/emscripten/usr/share/emscripten/emcc');

/** @param {string} program @param {string[]} args @returns {string} */
const run = (program, args) => execFileSync(program, args, { encoding: 'utf8' });

/** @param {string} optimization link option, placed after the library's own @returns {string} */
function link(optimization) {
  mkdirSync(build, { recursive: true });
  writeFileSync(join(build, 'package.json'), '{"type": "commonjs"}'); // the module format of emcc's programs
  const program = join(build, `library${optimization}.js`);
  const path = resolve(root, 'build/library/lib/pkgconfig');
  const flags = execFileSync('pkg-config', ['--cflags', '--libs', `wick-${variant}`], {
    encoding: 'utf8',
    env: { ...process.env, PKG_CONFIG_LIBDIR: path },
  });
  const source = fileURLToPath(new URL('./library.c', import.meta.url));
  const own = ['-std=c17', '-O2', source, ...flags.trim().split(/\s+/), '-sNODERAWFS'];
  run(emcc, [...own, '-sENVIRONMENT=node', optimization, '-o', program]);
  return program;
}

/** @param {string} program @returns {() => number} its decode speed in tokens per second */
const ofProgram = (program) => () =>
  JSON.parse(run(process.execPath, [program, file, options.prompt, options.tokens, `${RUNS}`]))
    .decode;

/** @returns {number} the package's decode speed in tokens per second */
function ofPackage() {
  /** @type {import('./builds_child.mjs').Wanted} */
  const wanted = {
    index: pathToFileURL(resolve(root, 'dist/index.js')).href,
    file,
    threads: 1,
    promptTokens: Number(options.prompt),
    tokens: Number(options.tokens),
    runs: RUNS,
  };
  const child = fileURLToPath(new URL('./builds_child.mjs', import.meta.url));
  return JSON.parse(run(process.execPath, [child, JSON.stringify(wanted)])).decode;
}

/** @type {{name: string, measure: () => number, found: number[]}[]} */
const sides = [
  { name: 'the package', measure: ofPackage, found: [] },
  { name: 'libwick.a, linked with -O1', measure: ofProgram(link('-O1')), found: [] },
  { name: 'libwick.a, linked with -O3', measure: ofProgram(link('-O3')), found: [] },
];
for (let round = 0; round < rounds; round++) {
  for (let i = 0; i < sides.length; i++) {
    const side = sides[(round + i) % sides.length];
    side.found.push(side.measure());
  }
}

console.log(`${environmentLine(describeEnvironment())}; ${variant}, ${rounds} rounds

| | decode, tok/s | to the package (95% CI) |
|---|---|---|`);
const [wanted] = sides;
for (const { name, found } of sides) {
  const ratio = (median(found) / median(wanted.found)).toFixed(3);
  const interval = ratioInterval(found, wanted.found).map((value) => value.toFixed(3));
  console.log(`| ${name} | ${median(found).toFixed(0)} | ${ratio} (${interval.join(' to ')}) |`);
}
const [, high] = ratioInterval(sides[1].found, wanted.found);
if (high < LEAST_RATIO) {
  console.error(`the library's decode speed is below ${LEAST_RATIO} of the package's`);
  process.exit(1);
}
