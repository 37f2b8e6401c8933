// Prints the cost of the decode loops on ARM processors: the number of instructions that V8
// generates for a loop in the current WASI modules, the number of cycles that llvm-mca estimates
// for an iteration on an Apple M1, a Cortex-X2 and a Cortex-A55, and the number of instructions on
// x64. This shows the cost of a kernel change on phones without a phone.
//
//   make native wasi && tools/setup.sh edge arm && node tools/bench/arm_cycles.mjs [q4_0 ...]

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { locate, root } from '../../tests/support/locate.mjs';

/** The loops: their type in `wick synth`, function name without its suffix, and multiplications per iteration. */
const LOOPS = [
  { type: 'q4_0', model: 'q4_0', products: 512 },
  { type: 'q8_0', model: 'q8_0', products: 512 },
  { type: 'q4_k', model: 'q4_k_m', products: 256 },
  { type: 'q6_k', model: 'q6_k', products: 256 },
];
const BUILDS = [
  { name: 'plain', config: 'wasi' },
  { name: 'relaxed', config: 'wasi-relaxed' },
];
const CPUS = ['apple-m1', 'cortex-x2', 'cortex-a55'];
const LLVM = /^LLVM := (\d+)/m.exec(readFileSync(join(root, 'flags.mk'), 'utf8'))?.[1];
const ITERATIONS = 100;
const folder = join(root, 'build/cycles');

/** @typedef {{at: number, hex: string, text: string}} Instruction */

/** Runs wasm-opt as for the shipped modules, but keeps symbol names. @param {string} config */
function namedModule(config) {
  const flags = /^WASM_OPT_FLAGS := ((?:.*\\\n)*.*)/m
    .exec(readFileSync(join(root, 'flags.mk'), 'utf8'))?.[1]
    .split(/[\s\\]+/)
    .filter((flag) => flag && flag !== '--strip-debug');
  const out = join(folder, `${config}.wasm`);
  const from = join(root, 'build/obj', config, 'wick-full.wasm');
  execFileSync(join(root, '.toolchain/bin/wasm-opt'), [...(flags ?? []), '-g', from, '-o', out]);
  return out;
}

/**
 * Runs one token through each model, in one process in which V8 prints the code that it generates.
 * @param {string} node
 * @param {string} module
 * @param {string[]} models
 */
function printedCode(node, module, models) {
  const script = `
    import { readFileSync } from 'node:fs';
    import { WASI } from 'node:wasi';
    import { followMemory } from ${JSON.stringify(pathToFileURL(join(root, 'js/cli/wasi_memory.js')).href)};
    const module = await WebAssembly.compile(readFileSync(${JSON.stringify(module)}));
    for (const model of ${JSON.stringify(models)}) {
      const args = ['wick', 'logits', '/models/' + model, '--tokens', '1', '--out', '/models/logits'];
      const wasi = new WASI({ version: 'preview1', args, returnOnExit: true, preopens: { '/models': ${JSON.stringify(folder)} } });
      const setMemory = followMemory(wasi);
      const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
      setMemory(instance.exports.memory);
      if (wasi.start(instance) !== 0) process.exit(1);
    }`;
  const flags = ['--no-liftoff', '--print-wasm-code', '--no-warnings', '--input-type=module'];
  const { status, stdout, stderr } = spawnSync(node, [...flags, '-e', script], {
    encoding: 'latin1',
    maxBuffer: 2 ** 30,
  });
  if (status !== 0) throw new Error(`${node}: ${stderr}`);
  return stdout;
}

/**
 * @param {string} code
 * @param {RegExp} name
 * @returns {Instruction[]} the instructions of the function
 */
function instructionsOf(code, name) {
  const found = code
    .split('--- WebAssembly code ---')
    .find((part) => name.test(/^name: (.*)$/m.exec(part)?.[1] ?? ''));
  if (!found) throw new Error(`V8 did not compile a function ${name}`);
  return [...found.matchAll(/^0x[0-9a-f]+ +([0-9a-f]+) +([0-9a-f]+) +(.*)$/gm)].map(
    ([, at, hex, text]) => ({ at: Number.parseInt(at, 16), hex, text }),
  );
}

/**
 * Returns the target of a backward branch, or undefined.
 * @param {Instruction} instruction
 * @param {boolean} isArm
 */
function targetOf({ at, hex, text }, isArm) {
  if (!isArm) {
    const to = /^j\w+ 0x[0-9a-f]+ +<\+0x([0-9a-f]+)>/.exec(text)?.[1];
    return to && Number.parseInt(to, 16);
  }
  const word = Number.parseInt(hex, 16) | 0;
  const is = (/** @type {number} */ mask, /** @type {number} */ bits) =>
    (word & mask) === (bits | 0);
  if (is(0xff000010, 0x54000000) || is(0x7e000000, 0x34000000)) return at + 4 * ((word << 8) >> 13);
  if (is(0x7e000000, 0x36000000)) return at + 4 * ((word << 13) >> 18);
  if (is(0xfc000000, 0x14000000)) return at + 4 * ((word << 6) >> 6);
  return undefined;
}

/** Finds the longest innermost loop. Code for rare cases is after the loops and jumps back into them. @param {Instruction[]} all @param {boolean} isArm */
function innerLoopOf(all, isArm) {
  const loops = all.flatMap((one) => {
    const first = targetOf(one, isArm);
    return first !== undefined && first !== '' && first <= one.at ? [{ first, last: one.at }] : [];
  });
  const inner = loops.filter(
    (a) => !loops.some((b) => b !== a && b.last <= a.last && b.last > a.first),
  );
  const [{ first, last }] = inner.sort((a, b) => b.last - b.first - (a.last - a.first));
  return all.filter(({ at }) => at >= first && at <= last);
}

/** @param {Instruction[]} loop @param {string} cpu @returns {number} cycles per iteration */
function cyclesOf(loop, cpu) {
  const bytes = loop.flatMap(
    ({ hex }) =>
      hex
        .match(/../g)
        ?.reverse()
        .map((byte) => `0x${byte}`) ?? [],
  );
  const triple = ['-triple=aarch64', '-mattr=+all'];
  const text = execFileSync(`llvm-mc-${LLVM}`, ['--disassemble', ...triple], {
    input: bytes.join(' '),
    encoding: 'utf8',
  });
  const straight = text.split('\n').filter((line) => !/^\s*(b\.?\w*|cb\w+|tb\w+)\s/.test(line));
  const report = execFileSync(
    `llvm-mca-${LLVM}`,
    ['-mtriple=aarch64', `-mcpu=${cpu}`, '-mattr=+dotprod,+i8mm', `-iterations=${ITERATIONS}`],
    { input: straight.join('\n'), encoding: 'utf8' },
  );
  return Number(/Total Cycles:\s+(\d+)/.exec(report)?.[1]) / ITERATIONS;
}

const wantedTypes = process.argv.slice(2);
const loops = LOOPS.filter(({ type }) => wantedTypes.length === 0 || wantedTypes.includes(type));
mkdirSync(folder, { recursive: true });
for (const { model } of loops)
  execFileSync(join(root, 'build/native/wick'), [
    'synth',
    'tiny',
    model,
    join(folder, `${model}.gguf`),
  ]);
const models = loops.map(({ model }) => `${model}.gguf`);
console.log(
  '| loop (products) | build | ARM64 instructions | M1, X2, A55 cycles | x64 instructions |',
);
console.log('|---|---|---|---|---|');
for (const { name, config } of BUILDS) {
  const module = namedModule(config);
  const arm = printedCode(locate('nodeArm').path, module, models);
  const x64 = printedCode(locate('node24').path, module, models);
  for (const { type, products } of loops) {
    const named = new RegExp(`^${type}_single_token_`);
    const loop = innerLoopOf(instructionsOf(arm, named), true);
    const cycles = CPUS.map((cpu) => Math.round(cyclesOf(loop, cpu)));
    const onX64 = innerLoopOf(instructionsOf(x64, named), false).length;
    console.log(
      `| ${type.toUpperCase()} (${products}) | ${name} | ${loop.length} | ${cycles.join(', ')} | ${onX64} |`,
    );
  }
}
