// Runs the C unit tests in tests/c/, natively or as a WASI module built from the shipped objects. A
// soak (make soak) runs only tests that have more cases in a soak.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { built, locate, root } from './locate.mjs';
import { run } from './process.mjs';
import { isSoak } from './soak.mjs';
import { openPool } from './wasi_pool.mjs';

const shared = locate('shared');
const temporary = mkdtempSync(join(tmpdir(), 'wick-units-'));
after(() => rmSync(temporary, { recursive: true }));

/** The source of each program, by name. */
const sources = new Map(
  readdirSync(join(root, 'tests/c'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('_test.c'))
    .map((file) => [basename(file, '.c'), join(root, 'tests/c', file)]),
);
const programs = [...sources.keys()].sort();
const soaks = (/** @type {string} */ name) =>
  /\bsoak_(count|seed|is_on)\b/.test(readFileSync(sources.get(name) ?? '', 'utf8'));

export const threaded = programs.filter((name) => name.endsWith('_tsan_test') && !isSoak);
export const units = programs.filter(
  (name) => !name.endsWith('_tsan_test') && (!isSoak || soaks(name)),
);

/** @param {string} name @returns {string} the folder of its source, e.g. "kernels" */
export const roomOf = (name) => basename(dirname(sources.get(name) ?? ''));

const sanitizers = {
  ASAN_OPTIONS: 'detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  TSAN_OPTIONS: 'halt_on_error=1',
};

/** @param {import('../support/process.mjs').Result} result */
function assertPassed({ code, signal, stdout, stderr }) {
  const report = `${stdout}\n${stderr}`.trim();
  const failed = /^not ok.*$/m.exec(report)?.[0] ?? '';
  assert.equal(signal ?? code, 0, `${failed}\n${report}`);
  assert.match(report, /^# [1-9]\d* run, 0 failed/m, `no test ran:\n${report}`);
}

/** @param {string} program in build/, e.g. "test/native/choice_test" */
export async function runNative(program) {
  const env = { WICK_SHARED: shared.path, WICK_ROOT: root, WICK_TMP: temporary, ...sanitizers };
  assertPassed(await run(built(program), [], { env }));
}

/** @param {ReturnType<typeof openPool>} pool @param {string} module */
async function runModule(pool, module) {
  /** @type {Record<string, string>} */
  const folders = { '/repository': root, '/temporary': temporary };
  if (shared.path) folders['/shared'] = shared.path;
  const env = {
    WICK_SHARED: shared.path && '/shared',
    WICK_ROOT: '/repository',
    WICK_TMP: '/temporary',
  };
  assertPassed(await pool.run(built(module), [], { folders, env }));
}

/**
 * Adds a test for each module; all modules run in one process of the runtime.
 * @param {'node' | 'node24'} runtime
 * @param {string} folder in build/test
 * @param {string[]} names
 */
export function testModules(runtime, folder, names) {
  const pool = openPool(runtime);
  after(pool.close);
  for (const name of names) test(name, () => runModule(pool, `test/${folder}/${name}.wasm`));
}
