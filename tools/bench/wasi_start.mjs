// Measures the time to the first token of the built-in model with the wasmtime command and modules
// compiled ahead of time (wasmtime compile).
//   node tools/bench/wasi_start.mjs [--runs 21]

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { built, locate, root } from '../../tests/support/locate.mjs';
import { run } from '../../tests/support/process.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({ options: { runs: { type: 'string', default: '21' } } });
const runs = Number(options.runs);
const wasmtime = locate('wasmtimeCommand').path;
const folder = resolve(root, 'build/bench');
mkdirSync(folder, { recursive: true });

/** @param {string} name of a module in build/wasi @returns {Promise<string>} */
async function compile(name) {
  const made = resolve(folder, `${name}.cwasm`);
  const { code, stderr } = await run(wasmtime, ['compile', built(`wasi/${name}.wasm`), '-o', made]);
  if (code !== 0) throw new Error(stderr);
  return made;
}

/** @param {string} module @returns {Promise<number>} milliseconds from the start of the process to its first text */
async function firstMs(module) {
  const models = `${resolve(root, 'examples/models')}::/models`;
  const guest = ['run', '/models/wick-2.6m-q8_0.gguf', '-p', 'Once upon a time', '-n', '8'];
  const args = ['run', '--allow-precompiled', '--dir', models, module, ...guest];
  const began = performance.now();
  const child = spawn(wasmtime, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  const ms = performance.now() - began;
  child.stdout.resume();
  const [code] = await exited;
  if (code !== 0) throw new Error(`wasmtime exited with status ${code}`);
  return ms;
}

console.log(`${environmentLine(describeEnvironment())}

| module | to the first token, ms: best | median |
|---|---|---|`);
const names = ['wick', 'wick-relaxed'];
const modules = await Promise.all(names.map(compile));
/** @type {number[][]} */
const found = names.map(() => []);
for (let i = -1; i < runs; i++) {
  for (const [index, module] of modules.entries()) {
    const ms = await firstMs(module);
    if (i >= 0) found[index].push(ms);
  }
}
for (const [index, name] of names.entries()) {
  const [best, middle] = [Math.min(...found[index]), median(found[index])];
  console.log(`| ${name}.wasm | ${best.toFixed(1)} | ${middle.toFixed(1)} |`);
}
