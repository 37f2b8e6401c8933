// Runs the engine on an emulated ARM64 CPU (tools/setup.sh arm): the native build, and both WebAssembly builds in Node.
// The logits of every golden model must be bit-identical to those on x86: the native and the plain build form one group,
// and the relaxed build the other. golden.test.mjs compares the x86 logits with the references. `make test-arm` runs this
// file.
//
// V8 uses only TurboFan, because models mostly run in the code that TurboFan compiles. The second CPU has no dot product
// instructions. Only the relaxed build uses them, so this CPU only runs that build's kernel tests and quantized models.
// answers_test is omitted because it measures time, and attention_test is omitted in WebAssembly to save time, because the
// same source runs natively.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { concurrency } from '../support/level.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { openPool } from '../support/wasi_pool.mjs';

const shared = locate('shared');
const arm = locate('runArm');
const skip = shared.skip || arm.skip;
const folders = { [root]: root, [shared.path]: shared.path };
const KERNEL_UNITS = ['kernels_test', 'kernels_vectors_test'];
const NATIVE_UNITS = [
  ...[...KERNEL_UNITS, 'attention_test', 'recurrent_test'],
  ...['choice_test', 'grid_points_test', 'pool_test', 'rope_test'],
];
/** The unit tests that run in Node, by CPU and build. @type {{cpu: string, group: 'plain' | 'relaxed', units: string[]}[]} */
const IN_NODE = [
  { cpu: 'max', group: 'plain', units: [...KERNEL_UNITS, 'recurrent_test'] },
  { cpu: 'max', group: 'relaxed', units: [...KERNEL_UNITS, 'recurrent_test'] },
  { cpu: 'cortex-a72', group: 'relaxed', units: KERNEL_UNITS },
];

/** Enough tokens for a pass of several and a pass of a single one, which use different kernels. */
const TOKENS_MAX = 7;

/** @typedef {{id: string, path: string, tokens: number[], isQuantised: boolean}} Golden */

/** @param {string} name @returns {Golden[]} */
function goldensOf(name) {
  const folder = join(shared.path, 'vectors', name);
  const text = readFileSync(join(folder, 'manifest.json'), 'utf8').replace(/:NaN\b/g, ':null');
  const { archs, quants = [] } = JSON.parse(text);
  const entries = [...archs, ...quants.filter((/** @type {any} */ { model }) => model)];
  return entries.map(({ id, model, cases }) => ({
    ...{
      id,
      path: join(folder, model),
      isQuantised: quants.some((/** @type {any} */ q) => q.id === id),
    },
    tokens: cases[0].tokens.slice(0, TOKENS_MAX),
  }));
}
const goldens = skip ? [] : [...goldensOf('reference'), ...goldensOf('reference-more')];

/** @param {Golden} golden */
const argumentsOf = ({ path, tokens }) => [
  'logits',
  path,
  '--tokens',
  tokens.join(','),
  '--out',
  '-',
];

/** @param {import('../support/process.mjs').Result} result */
function bytesOf({ code, stdout, stderr }) {
  assert.equal(code, 0, stderr);
  assert.ok(stdout.length > 0, 'no logits');
  return stdout;
}

/** Results on x86, each computed once. @type {Map<string, Promise<Buffer>>} */
const wanted = new Map();
const x86 = openPool('node24');
after(x86.close);
/** @param {Golden} golden @param {'plain' | 'relaxed'} group */
function bitsOnX86(golden, group) {
  const key = `${group} ${golden.path}`;
  const args = argumentsOf(golden);
  const compute =
    group === 'plain'
      ? () => run(built('native/wick'), args)
      : () => x86.run(built('wasi/wick-full-relaxed.wasm'), args, { folders });
  const found = wanted.get(key) ?? compute().then(bytesOf);
  wanted.set(key, found);
  return found;
}

/** @param {import('../support/process.mjs').Result} result */
function assertPassed({ code, stdout, stderr }) {
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  assert.match(stdout.toString(), /^# [1-9]\d* run, 0 failed/m);
}
const unitEnvironment = { WICK_SHARED: shared.path, WICK_ROOT: root };

describe('ARM64, native', { concurrency, skip }, () => {
  for (const golden of goldens) {
    test(`${golden.id}: the logits of x86`, async () => {
      const found = bytesOf(await run(arm.path, [built('arm/wick'), ...argumentsOf(golden)]));
      assert.ok(found.equals(await bitsOnX86(golden, 'plain')), 'logits differ from x86');
    });
  }
  for (const name of NATIVE_UNITS) {
    test(name, async () => {
      assertPassed(await run(arm.path, [built(`test/arm/${name}`)], { env: unitEnvironment }));
    });
  }
});

for (const { cpu, group, units } of IN_NODE) {
  describe(`ARM64, Node, ${group} SIMD, ${cpu}`, { concurrency, skip }, () => {
    const pool = openPool('nodeArm', { env: { ARM_CPU: cpu }, flags: ['--no-liftoff'] });
    after(pool.close);
    const suffix = group === 'plain' ? '' : '-relaxed';
    for (const golden of goldens.filter(({ isQuantised }) => cpu === 'max' || isQuantised)) {
      test(`${golden.id}: the logits of x86`, async () => {
        const program = built(`wasi/wick-full${suffix}.wasm`);
        const found = bytesOf(await pool.run(program, argumentsOf(golden), { folders }));
        assert.ok(found.equals(await bitsOnX86(golden, group)), 'logits differ from x86');
      });
    }
    for (const name of units) {
      test(name, async () => {
        const program = built(`test/wasi${suffix}/${name}.wasm`);
        assertPassed(await pool.run(program, [], { folders, env: unitEnvironment }));
      });
    }
  });
}
