// The runner of the tests: what fails twice fails the run, what fails once is named, and a crash is a failure.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const RUNNER = join(root, 'tools/run_tests.mjs');
/** The environment of a run of its own, as CI has it. */
const CLEAN = { CI: 'true', NODE_TEST_CONTEXT: undefined, WICK_SOAK: undefined };
const OK = "import { test } from 'node:test'; test('fine', () => {});";
const BAD = "import { test } from 'node:test'; test('bad', () => { throw new Error('always'); });";
const ONCE = `import { existsSync, writeFileSync } from 'node:fs'; import { test } from 'node:test';
  const seen = new URL('seen', import.meta.url);
  test('unsteady', () => { if (!existsSync(seen)) { writeFileSync(seen, ''); throw new Error('once'); } });`;

/**
 * Runs test files made of `sources` as CI does.
 * @param {Record<string, string>} sources by file name
 * @param {Record<string, string>} [env]
 */
async function runs(sources, env = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'wick-run-'));
  const files = Object.keys(sources).map((name) => join(folder, name));
  for (const file of files) await writeFile(file, sources[file.slice(folder.length + 1)] ?? '');
  const { code, stdout } = await run(process.execPath, [RUNNER, ...files], {
    env: { ...CLEAN, ...env },
  });
  await rm(folder, { recursive: true });
  return { code, text: stdout.toString() };
}

/** The count that the output ends with, e.g. countOf(text, 'pass'). */
const countOf = (/** @type {string} */ text, /** @type {string} */ name) =>
  Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(text.split('\n').slice(-9).join('\n'))?.[1]);

test('all pass: the counts are last, nothing runs again', async () => {
  const { code, text } = await runs({ 'a.test.mjs': OK, 'b.test.mjs': OK });
  assert.equal(code, 0);
  assert.deepEqual(
    [countOf(text, 'tests'), countOf(text, 'pass'), countOf(text, 'fail')],
    [2, 2, 0],
  );
  assert.doesNotMatch(text, /# failed/);
});

test('the files that took the longest are named, the longest first', async () => {
  const slow = OK.replace('() => {}', '() => new Promise((done) => setTimeout(done, 1200))');
  const { text } = await runs({ 'quick.test.mjs': OK, 'slow.test.mjs': slow });
  assert.match(text, /^# slowest files: [1-9]\d* s .*slow\.test\.mjs, \d+ s .*quick\.test\.mjs$/m);
});

test('what fails twice fails the run, and is named at its end', async () => {
  const { code, text } = await runs({ 'a.test.mjs': OK, 'b.test.mjs': BAD });
  assert.equal(code, 1);
  assert.deepEqual(
    [countOf(text, 'tests'), countOf(text, 'pass'), countOf(text, 'fail')],
    [2, 1, 1],
  );
  assert.match(text, /# failed:\n# .*b\.test\.mjs: bad: always \(b\.test\.mjs:\d+\)\n# tests 2/);
});

test('what fails beside others and passes alone is named, and the run passes', async () => {
  const { code, text } = await runs({ 'a.test.mjs': OK, 'b.test.mjs': ONCE });
  assert.equal(code, 0);
  assert.deepEqual(
    [countOf(text, 'tests'), countOf(text, 'pass'), countOf(text, 'fail')],
    [2, 2, 0],
  );
  assert.match(
    text,
    /# failed beside other tests, so that its file ran again:\n# .*b\.test\.mjs: unsteady: once \(b\.test\.mjs:\d+\)\n# tests/,
  );
});

test('in a soak and of a fuzzer one failure is enough', async () => {
  const soak = await runs({ 'b.test.mjs': ONCE }, { WICK_SOAK: '1' });
  assert.equal(soak.code, 1);
  const fuzz = await runs({ 'b.test.mjs': `${ONCE} // build/test/fuzz` });
  assert.equal(fuzz.code, 1);
  assert.equal(countOf(fuzz.text, 'fail'), 1);
});

test('failures in many files are no accident', async () => {
  const bad = [...'bcdefg'].map((letter) => [`${letter}.test.mjs`, BAD]);
  const { code, text } = await runs({ 'a.test.mjs': ONCE, ...Object.fromEntries(bad) });
  assert.equal(code, 1);
  assert.doesNotMatch(text, /ran again/);
  const few = await runs({ 'a.test.mjs': ONCE, ...Object.fromEntries(bad.slice(1)) });
  assert.match(few.text, /ran again/);
  assert.equal(countOf(few.text, 'fail'), 5);
});

test('a message that begins with an empty line is told by its next', async () => {
  const { text } = await runs({ 'a.test.mjs': BAD.replace("'always'", "'\\nnot ok 2'") });
  assert.match(text, /# .*a\.test\.mjs: bad: not ok 2 \(/);
});

test('a file that ends its process or cannot be read as a program is a failure', async () => {
  const ended = await runs({ 'a.test.mjs': OK, 'b.test.mjs': 'process.exit(3)' });
  assert.equal(ended.code, 1);
  assert.match(ended.text, /# failed:\n# .*b\.test\.mjs/);
  assert.equal((await runs({ 'a.test.mjs': 'const' })).code, 1);
  const none = await run(process.execPath, [RUNNER, 'none.test.mjs'], { env: CLEAN });
  assert.equal(none.code, 1);
  assert.equal(countOf(none.stdout.toString(), 'fail'), 1);
});
