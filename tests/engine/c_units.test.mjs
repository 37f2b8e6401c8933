// Runs the C unit tests of tests/c/: natively under the sanitizers (and under ThreadSanitizer what
// is named *_tsan_test.c), and as WASI modules made of the very objects that are shipped. `make test` runs them
// natively. A soak (make soak) runs natively only those that do more then.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { isFull } from '../support/level.mjs';
import { built, locate, locateRelaxedNode, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { isSoak } from '../support/soak.mjs';
import { openPool } from '../support/wasi_pool.mjs';

const shared = locate('shared');
const concurrency = availableParallelism();
const temporary = mkdtempSync(join(tmpdir(), 'wick-units-'));
after(() => rmSync(temporary, { recursive: true }));

/** The source of each program by its name. */
const sources = new Map(
  readdirSync(join(root, 'tests/c'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('_test.c'))
    .map((file) => [basename(file, '.c'), join(root, 'tests/c', file)]),
);
const programs = [...sources.keys()].sort();
const soaks = (/** @type {string} */ name) =>
  /\bsoak_(count|seed|is_on)\b/.test(readFileSync(sources.get(name) ?? '', 'utf8'));
const threaded = programs.filter((name) => name.endsWith('_tsan_test') && !isSoak);
const units = programs.filter((name) => !name.endsWith('_tsan_test') && (!isSoak || soaks(name)));
const wasiUnits = isSoak || !isFull ? [] : units;
/** Relaxed SIMD changes kernels, and so what runs whole models. */
const relaxedRooms = ['conformance', 'engine', 'kernels', 'kv', 'model'];
const relaxedUnits = wasiUnits.filter((name) =>
  relaxedRooms.includes(basename(dirname(sources.get(name) ?? ''))),
);

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

/** @param {string} program */
async function runNative(program) {
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

/** @param {'node' | 'node24'} runtime @param {string} folder @param {string[]} names */
function testModules(runtime, folder, names) {
  const pool = openPool(runtime);
  after(pool.close);
  for (const name of names) test(name, () => runModule(pool, `test/${folder}/${name}.wasm`));
}

describe('C units, native, address and undefined behaviour sanitizers', { concurrency }, () => {
  for (const name of units) test(name, () => runNative(`test/native/${name}`));
});

describe('C units, native, thread sanitizer', () => {
  for (const name of threaded) test(name, () => runNative(`test/tsan/${name}`));
});

if (wasiUnits.length > 0) {
  describe('C units, WASI, plain SIMD', { concurrency }, () => {
    testModules('node', 'wasi', wasiUnits);
  });

  const { skip } = locateRelaxedNode();
  describe('C units, WASI, relaxed SIMD', { concurrency, skip }, () => {
    testModules('node24', 'wasi-relaxed', relaxedUnits);
  });
}
