// Runs the C unit tests of tests/c/: natively under the sanitizers (and under ThreadSanitizer what
// is named *_tsan_test.c), and as WASI modules made of the very objects that are shipped. A soak (make soak)
// runs natively those alone that do more then.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { built, locate, locateRelaxedNode, root } from '../support/locate.mjs';
import { run, runWasi } from '../support/process.mjs';
import { isSoak } from '../support/soak.mjs';

const shared = locate('shared');
const relaxedNode = locateRelaxedNode();
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
const wasiUnits = isSoak ? [] : units;

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

/** @param {string} runtime @param {string} module */
async function runModule(runtime, module) {
  /** @type {Record<string, string>} */
  const folders = { '/repository': root, '/temporary': temporary };
  if (shared.path) folders['/shared'] = shared.path;
  const env = {
    WICK_SHARED: shared.path && '/shared',
    WICK_ROOT: '/repository',
    WICK_TMP: '/temporary',
  };
  assertPassed(await runWasi(runtime, built(module), [], { folders, env }));
}

describe('C units, native, address and undefined behaviour sanitizers', { concurrency: 2 }, () => {
  for (const name of units) test(name, () => runNative(`test/native/${name}`));
});

describe('C units, native, thread sanitizer', () => {
  for (const name of threaded) test(name, () => runNative(`test/tsan/${name}`));
});

describe('C units, WASI, plain SIMD', { concurrency: 2 }, () => {
  for (const name of wasiUnits) test(name, () => runModule('node', `test/wasi/${name}.wasm`));
});

describe('C units, WASI, relaxed SIMD', { concurrency: 2, skip: relaxedNode.skip }, () => {
  for (const name of wasiUnits)
    test(name, () => runModule('node24', `test/wasi-relaxed/${name}.wasm`));
});
