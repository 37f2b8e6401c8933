// The test runner: what it runs and when, its report, and which failures it retries.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { changedGroups, findTestFiles, recordFullRun } from '../../tools/changed_tests.mjs';
import { CONCURRENCY } from '../../tools/run_tests.mjs';
import { alone, concerned, groups, groupsOf, longest, onlyInAll, planOf } from '../plan.mjs';
import { root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const RUNNER = join(root, 'tools/run_tests.mjs');
/** The environment of a separate run, as in CI. */
const CLEAN = { CI: 'true', NODE_TEST_CONTEXT: undefined, WICK_TEST_LEVEL: undefined };
const OK = "import { test } from 'node:test'; test('fine', () => {});";
const BAD = "import { test } from 'node:test'; test('bad', () => { throw new Error('always'); });";
const ONCE = `import { existsSync, writeFileSync } from 'node:fs'; import { test } from 'node:test';
  const seen = new URL('seen', import.meta.url);
  test('unsteady', () => { if (!existsSync(seen)) { writeFileSync(seen, ''); throw new Error('once'); } });`;
/** Puts a file into the browser queue. */
const BROWSER = "import './browsers.mjs';";

/**
 * Runs test files with the contents of `sources` like CI.
 * @param {Record<string, string>} sources by file name
 * @param {string[]} [args] of the runner
 */
async function runs(sources, args = []) {
  const folder = await mkdtemp(join(tmpdir(), 'wick-run-'));
  const files = Object.keys(sources).map((name) => join(folder, name));
  for (const file of files) await writeFile(file, sources[file.slice(folder.length + 1)] ?? '');
  await writeFile(join(folder, 'browsers.mjs'), '');
  const { code, stdout } = await run(process.execPath, [RUNNER, ...args, ...files], { env: CLEAN });
  await rm(folder, { recursive: true });
  return { code, text: stdout.toString() };
}

/** Returns a count at the end of the output, e.g. countOf(text, 'pass'). */
const countOf = (/** @type {string} */ text, /** @type {string} */ name) =>
  Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(text.split('\n').slice(-9).join('\n'))?.[1]);
const countsOf = (/** @type {string} */ text) =>
  ['tests', 'pass', 'fail'].map((name) => countOf(text, name));

describe('the report', () => {
  test('if all tests pass, the counts are printed last and no test is retried', async () => {
    const { code, text } = await runs({ 'a.test.mjs': OK, 'b.test.mjs': OK });
    assert.equal(code, 0);
    assert.deepEqual(countsOf(text), [2, 2, 0]);
    assert.doesNotMatch(text, /# failed/);
    assert.match(text, /^ok 2 - fine\n[\s\S]*^1\.\.2\n/m);
    assert.equal(text.match(/^1\.\./gm)?.length, 1);
  });

  test('the slowest files are listed, slowest first', async () => {
    const slow = OK.replace('() => {}', '() => new Promise((done) => setTimeout(done, 3000))');
    const { text } = await runs({ 'quick.test.mjs': OK, 'slow.test.mjs': slow });
    assert.match(text, /^# slowest files: \d+ s .*slow\.test\.mjs, \d+ s .*quick\.test\.mjs$/m);
  });

  test('setup, build and tests are timed separately', async () => {
    const env = { ...CLEAN, WICK_TEST_TIMES: '100 130 190' };
    const { stdout } = await run(process.execPath, [RUNNER, 'none.test.mjs'], { env });
    assert.match(stdout.toString(), /^# setup 30 s, build 60 s, tests \d+ s$/m);
  });

  test('a failed test fails the run and is listed at the end', async () => {
    const { code, text } = await runs({ 'a.test.mjs': OK, 'b.test.mjs': BAD });
    assert.equal(code, 1);
    assert.deepEqual(countsOf(text), [2, 1, 1]);
    assert.match(text, /# failed:\n# .*b\.test\.mjs: bad: always \(b\.test\.mjs:\d+\)\n# tests 2/);
  });

  test('a message that begins with an empty line is shown by its second line', async () => {
    const { text } = await runs({ 'a.test.mjs': BAD.replace("'always'", "'\\nnot ok 2'") });
    assert.match(text, /# .*a\.test\.mjs: bad: not ok 2 \(/);
  });

  test('a file that exits its process or is not a program is a failure', async () => {
    const ended = await runs({ 'a.test.mjs': OK, 'b.test.mjs': 'process.exit(3)' });
    assert.equal(ended.code, 1);
    assert.match(ended.text, /# failed:\n# .*b\.test\.mjs/);
    assert.equal((await runs({ 'a.test.mjs': 'const' })).code, 1);
    const none = await run(process.execPath, [RUNNER, 'none.test.mjs'], { env: CLEAN });
    assert.equal(none.code, 1);
    assert.equal(countOf(none.stdout.toString(), 'fail'), 1);
  });
});

describe('queues', () => {
  test('more browser files run concurrently once CPU-bound files have ended', async () => {
    const { browser, browserNextToCpu } = CONCURRENCY;
    const waiting = `import assert from 'node:assert'; import { test } from 'node:test';
      import { existsSync, readdirSync, writeFileSync } from 'node:fs';
      const here = new URL('.', import.meta.url);
      const begun = () => readdirSync(here).filter((name) => name.endsWith('.begun')).length;
      const until = async (condition) => {
        for (const end = Date.now() + 100e3; !condition(); await new Promise((go) => setTimeout(go, 50)))
          assert.ok(Date.now() < end, begun() + ' have begun');
      };`;
    const cpuFile = `${waiting} test('cpu', async () => {
      await until(() => begun() >= ${browserNextToCpu});
      await new Promise((go) => setTimeout(go, 1000));
      assert.equal(begun(), ${browserNextToCpu});
      writeFileSync(new URL('ended', here), '');
    });`;
    const browserFile = `${BROWSER} ${waiting} test('browser', async () => {
      writeFileSync(import.meta.filename + '.begun', '');
      await until(() => existsSync(new URL('ended', here)) && begun() === ${browser});
    });`;
    const names = Array.from({ length: browser }, (_, index) => `browser${index}.test.mjs`);
    const { code, text } = await runs({
      'cpu.test.mjs': cpuFile,
      ...Object.fromEntries(names.map((name) => [name, browserFile])),
    });
    assert.equal(code, 0, text);
    assert.deepEqual(countsOf(text), [browser + 1, browser + 1, 0]);
  });
});

describe('levels', () => {
  test('the main level runs some of the files and sets an environment variable for them', async () => {
    const level = `import assert from 'node:assert'; import { test } from 'node:test';
      test('level', () => assert.equal(process.env.WICK_TEST_LEVEL, 'main'));`;
    const sources = { 'a.test.mjs': level, 'a_kills.test.mjs': level };
    const { code, text } = await runs(sources, ['--level', 'main']);
    assert.equal(code, 0, text);
    assert.deepEqual(countsOf(text), [1, 1, 0]);
  });

  test('a browser file is retried only in the full level, and is reported', async () => {
    const sources = { 'a.test.mjs': OK, 'b.test.mjs': BROWSER + ONCE };
    for (const args of [[], ['--level', 'main']])
      assert.deepEqual(countsOf((await runs(sources, args)).text), [2, 1, 1]);
    const { code, text } = await runs(sources, ['--level', 'all']);
    assert.equal(code, 0);
    assert.deepEqual(countsOf(text), [2, 2, 0]);
    assert.match(
      text,
      /# failed next to other tests, so the file was rerun:\n# .*b\.test\.mjs: unsteady: once \(b\.test\.mjs:\d+\)\n# tests/,
    );
    const failing = await runs({ 'b.test.mjs': BROWSER + BAD }, ['--level', 'all']);
    assert.deepEqual(countsOf(failing.text), [1, 0, 1]);
  });

  test('a file without a browser is never retried', async () => {
    const { code, text } = await runs({ 'b.test.mjs': ONCE }, ['--level', 'all']);
    assert.equal(code, 1);
    assert.deepEqual(countsOf(text), [1, 0, 1]);
  });

  test('if many files fail, none is retried', async () => {
    const bad = [...'bcdefghi'].map((letter) => [`${letter}.test.mjs`, BROWSER + BAD]);
    const sources = { 'a.test.mjs': BROWSER + ONCE, ...Object.fromEntries(bad) };
    const { text } = await runs(sources, ['--level', 'all']);
    assert.deepEqual(countsOf(text), [9, 0, 9]);
    assert.doesNotMatch(text, /ran again/);
  });
});

describe('the plan', () => {
  const plan = (/** @type {string} */ name) => planOf(join(root, `tests/${name}.test.mjs`));

  test('the queue depends on a file’s direct and indirect imports', () => {
    assert.equal(plan('pages/chat_pdf').queue, 'browser'); // imports browsers.mjs through chat_page.mjs
    assert.equal(plan('package/js_base').queue, 'cpu');
    assert.equal(plan('repository/run_tests').queue, 'cpu'); // mentions it only in a string
    assert.equal(plan('package/js_leak').queue, 'alone');
    assert.equal(plan('engine/of_tomorrow').isMain, true);
  });

  test('each rule and each list entry matches a file', async () => {
    const files = await findTestFiles();
    for (const rule of [...onlyInAll, ...alone])
      assert.ok(
        files.some((file) => rule.test(file)),
        `${rule}`,
      );
    for (const name of longest) assert.ok(files.some((file) => file.endsWith(`/${name}.test.mjs`)));
    for (const path of concerned.keys()) assert.ok(existsSync(join(root, path)), path);
  });

  test('a change is mapped to the affected groups', async () => {
    const files = await findTestFiles();
    const of = (/** @type {string[]} */ ...paths) => groupsOf(paths, files);
    assert.deepEqual(of(), []);
    assert.deepEqual(of('CHANGELOG.md'), []);
    assert.deepEqual(of('src/model/rope.c'), ['engine']);
    assert.deepEqual(of('examples/chat/index.html', 'component/component.mk'), [
      ...['pages', 'edge', 'repository'],
    ]);
    assert.deepEqual(of('tests/package/js_base.test.mjs'), ['package']);
    assert.deepEqual(of('tests/support/fleet.mjs'), ['edge']);
    for (const path of ['Makefile', 'flags.mk', 'tools/setup.sh', 'package.json', 'nobody/knows.c'])
      assert.deepEqual(of(path), groups, path);
  });
});

test('changes since the last full run are listed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'wick-changed-'));
  t.after(() => rm(folder, { recursive: true }));
  const git = async (/** @type {string[]} */ ...args) => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.example'];
    const { code, stdout, stderr } = await run('git', [...who, ...args], { cwd: folder });
    assert.equal(code, 0, stderr);
    return stdout.toString().trim();
  };
  assert.deepEqual(await changedGroups(folder), groups, 'no repository');
  await git('init', '-q');
  await mkdir(join(folder, 'tests'));
  await writeFile(join(folder, 'README.md'), 'one');
  await git('add', '.');
  await git('commit', '-qm', 'one');
  assert.deepEqual(await changedGroups(folder), groups, 'no record');
  await recordFullRun(folder);
  assert.deepEqual(await changedGroups(folder), []);
  await mkdir(join(folder, 'library'));
  await writeFile(join(folder, 'library/new.c'), '');
  assert.deepEqual(await changedGroups(folder), ['edge'], 'an untracked file');
  await recordFullRun(folder);
  const record = await readFile(join(folder, 'tests/full_run.txt'), 'utf8');
  await git('add', '.');
  await git('commit', '-qm', 'two');
  assert.deepEqual(
    await changedGroups(folder),
    ['edge'],
    'the record is kept while files are modified',
  );
  assert.notEqual(record.trim(), await git('rev-parse', 'HEAD'));
  await writeFile(join(folder, 'tests/full_run.txt'), `${'1'.repeat(40)}\n`);
  assert.deepEqual(await changedGroups(folder), groups, 'an unknown commit');
});
