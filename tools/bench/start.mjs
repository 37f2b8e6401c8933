// Measures how soon an engine is ready in Node. Each fresh process imports the package and then
// creates one engine with the built-in model. Processes of all kinds alternate.
//   node tools/bench/start.mjs [--node node,/path/to/node24] [--threads default,1] [--runs 20]
//     [--dist dist,/path/to/another/dist] [--file model.gguf] [--breakdown] [--document]

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../../tests/support/locate.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    threads: { type: 'string', default: 'default,1' },
    runs: { type: 'string', default: '20' },
    dist: { type: 'string', default: 'dist' },
    file: { type: 'string', default: 'examples/models/wick-2.6m-q8_0.gguf' },
    breakdown: { type: 'boolean', default: false },
    document: { type: 'boolean', default: false },
  },
});
const child = fileURLToPath(new URL('./start_child.mjs', import.meta.url));

/**
 * @typedef {{importMs: number, readyMs: number, marks: [string, number][],
 *   callsMs: Record<string, number>}} Start
 * @typedef {{node: string, version: string, dist: string, threads: string, starts: Start[]}} Side
 */

/** @param {Side} side @param {boolean} marks @returns {Start} */
function startOnce({ node, dist, threads }, marks) {
  const wanted = {
    dist: dist === '' ? undefined : pathToFileURL(resolve(root, dist, 'index.js')).href,
    file: resolve(root, options.file),
    threads: threads === 'default' ? undefined : Number(threads),
    marks,
  };
  return JSON.parse(execFileSync(node, [child, JSON.stringify(wanted)], { encoding: 'utf8' }));
}

/** @returns {Side[]} */
function listSides() {
  return options.node.split(',').flatMap((node) => {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    /** @type {Side} */
    const floor = { node, version, dist: '', threads: '', starts: [] };
    const engines = options.dist
      .split(',')
      .flatMap((dist) =>
        options.threads.split(',').map((threads) => ({ node, version, dist, threads, starts: [] })),
      );
    return [floor, ...engines];
  });
}

/** @param {number[]} values @param {number} share */
const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.ceil(values.length * share) - 1];

/** @param {Side} side @returns {string} a row */
function rowOf({ version, dist, threads, starts }) {
  const ready = starts.map(({ readyMs }) => readyMs);
  const numbers = [Math.min(...ready), median(ready), quantile(ready, 0.9)];
  const importMs = median(starts.map((start) => start.importMs));
  const name = options.dist.includes(',') && dist ? `${version}, ${dist}` : version;
  return `| ${name} | ${threads || 'none: an empty worker'} | ${[...numbers, importMs].map((ms) => ms.toFixed(1)).join(' | ')} |`;
}

/**
 * Prints the median time at which each mark is passed and the median duration of the engine's calls.
 * @param {Side} side
 * @param {Start[]} starts
 */
function printBreakdown({ version, dist, threads }, starts) {
  console.log(`\n${version}, ${dist}, threads: ${threads}; ms since createEngine was called`);
  /** @type {Map<string, number[]>} */
  const all = new Map();
  for (const [name, atMs] of starts.flatMap(({ marks }) => marks)) {
    all.set(name, [...(all.get(name) ?? []), atMs]);
  }
  const marks = [...all].map(([name, times]) => /** @type {const} */ ([name, median(times)]));
  for (const [name, ms] of marks.sort((a, b) => a[1] - b[1])) {
    console.log(`  ${ms.toFixed(1).padStart(7)}  ${name}`);
  }
  const names = Object.keys(starts[0].callsMs);
  const calls = names.map(
    (name) =>
      /** @type {const} */ ([name, median(starts.map(({ callsMs }) => callsMs[name] ?? 0))]),
  );
  const longest = calls.sort((a, b) => b[1] - a[1]).slice(0, 5);
  console.log(
    `  in the engine: ${longest.map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join(', ')}`,
  );
}

const environment = describeEnvironment();
const sides = listSides();
const runs = Number(options.runs);
for (const side of sides) startOnce(side, false); // so that the system caches the files
for (let run = 0; run < runs; run++) {
  for (const side of sides) side.starts.push(startOnce(side, false));
}
const table = `| Node | threads | best | median | p90 | import, median |
|---|---|---|---|---|---|
${sides.map(rowOf).join('\n')}`;
console.log(`${environmentLine(environment)}\n\n${table}`);
if (options.breakdown) {
  for (const side of sides.filter(({ dist }) => dist !== '')) {
    printBreakdown(
      side,
      Array.from({ length: runs }, () => startOnce(side, true)),
    );
  }
}
if (options.document) {
  const text = `## Startup in Node

Milliseconds from the call to \`createEngine\` for the built-in model (Q8_0, 2.8 MB) until the engine and its worker
threads are ready. Each row was measured in ${runs} fresh processes, run alternately.

\`node tools/bench/start.mjs --document\`: ${environmentLine(environment)}.

${table}`;
  writeSection('start', text);
}
