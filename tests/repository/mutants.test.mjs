// The tools that measure which faults tests detect: the mutants that `make mutants` creates, and how V8's counts are
// mapped to lines and branches.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { ranOf, segmentsOf } from '../../tools/coverage/v8.mjs';
import { describeMutation, mutate, mutationsOf } from '../../tools/mutants/operators.mjs';
import { linesOf, Reach } from '../../tools/mutants/reach.mjs';
import { intervalOf } from '../../tools/mutants/report.mjs';
import { hashOf, runUntilFailure, tryTests } from '../../tools/mutants/trial.mjs';
import { root } from '../support/locate.mjs';

/** @param {string} source @param {'c' | 'js'} language @returns {string[]} each as `operator: after` */
const changes = (source, language) =>
  mutationsOf(source, language).map((mutation) => {
    return `${mutation.operator}: ${describeMutation(source, mutation).after}`;
  });

test('mutants of a C function, but not of tables, comments, types and directives', () => {
  const source = `
#define SIZE (1 + 2)
static const int table[] = {1, 2};  // a < b
static int find(const int *list, int count) {
  if (count > 3 && list[0]) return 7;
  count *= 2;
  use(list, count);
  use(Math.min(list, count), size_max(list, count), maximal(list, count));
  use(wasm_f32x4_add(list, count), wasm_f32x4_sub(list, count));
  free(list);
  SIMD_OPAQUE(list);
  list = work_alloc(work, 9, sizeof *list);
  jinja_step(run, 6);
  capacity = capacity == 0 ? 8 : capacity * 2;
  if (used > most) most = used;
  if (used < 3 && used > most) most = used;
  return true;
}
`;
  assert.deepEqual(changes(source, 'c'), [
    'condition: if (!(count > 3 && list[0])) return 7;',
    'boundary: if (count >= 3 && list[0]) return 7;',
    'constant: if (count > 4 && list[0]) return 7;',
    'constant: if (count > 2 && list[0]) return 7;',
    'logic: if (count > 3 || list[0]) return 7;',
    'constant: if (count > 3 && list[1]) return 7;',
    'early return: if (count > 3 && list[0]) ;',
    'return value: if (count > 3 && list[0]) return 0;',
    'constant: if (count > 3 && list[0]) return 8;',
    'constant: if (count > 3 && list[0]) return 6;',
    'statement: ;',
    'constant: count *= 3;',
    'constant: count *= 1;',
    'statement: ;',
    'arguments: use(count, list);',
    'statement: ;',
    'arguments: use(Math.min(list, count), size_max(list, count), maximal(count, list));',
    'statement: ;',
    'arguments: use(wasm_f32x4_add(list, count), wasm_f32x4_sub(count, list));',
    'statement: ;',
    'constant: list = work_alloc(work, 8, sizeof *list);',
    'statement: ;',
    'constant: jinja_step(run, 5);',
    'statement: ;',
    'equality: capacity = capacity != 0 ? 8 : capacity * 2;',
    'constant: capacity = capacity == 1 ? 8 : capacity * 2;',
    'arithmetic: capacity = capacity == 0 ? 8 : capacity / 2;',
    'constant: capacity = capacity == 0 ? 8 : capacity * 1;',
    'condition: if (!(used > most)) most = used;',
    'statement: if (used > most) ;',
    'condition: if (!(used < 3 && used > most)) most = used;',
    'boundary: if (used <= 3 && used > most) most = used;',
    'constant: if (used < 4 && used > most) most = used;',
    'constant: if (used < 2 && used > most) most = used;',
    'logic: if (used < 3 || used > most) most = used;',
    'statement: if (used < 3 && used > most) ;',
    'constant: return false;',
  ]);
});

test('mutants of JavaScript, but not of strings, template expressions and limits', () => {
  const source = `
import { a } from './1.js';
const LIMIT_MAX = 64;
const word = \`\${1 + 1} and\`.replace(/a+b/, '1 + 1');
function find(list) {
  list.push(word);
  return list.length === 0 ? a : !list;
}
`;
  assert.deepEqual(changes(source, 'js'), [
    'statement: ;',
    'return value: return undefined;',
    'equality: return list.length !== 0 ? a : !list;',
    'constant: return list.length === 1 ? a : !list;',
    'negation: return list.length === 0 ? a : list;',
  ]);
  const [first] = mutationsOf(source, 'js');
  assert.equal(mutate(source, first).split('\n')[5], '  ;');
});

/** @param {('passed' | 'failed' | 'overdue')[]} ends the result of each run of a test */
function placeOf(ends) {
  /** @type {[string, number, number][]} */
  const runs = [];
  /** @type {import('../../tools/mutants/trial.mjs').Place['runTest']} */
  const runTest = async (test, { cpuMs, idleMs }) => {
    runs.push([test, cpuMs, idleMs]);
    return { status: ends[runs.length - 1], cpuMs: 9000, idleMs: 0 };
  };
  return { runTest, runs };
}

test('tests run until one fails, one is overdue, or time runs out', async () => {
  const usual = () => ({ cpuMs: 1000, idleMs: 500 });
  const killed = placeOf(['passed', 'failed']);
  assert.deepEqual(await tryTests(killed, ['a', 'b', 'c'], usual, ''), {
    outcome: 'killed',
    by: 'b',
  });
  assert.deepEqual(killed.runs, [
    ['a', 5000, 7000],
    ['b', 5000, 7000],
  ]);
  const hangs = placeOf(['overdue', 'overdue']);
  assert.deepEqual(await tryTests(hangs, ['a', 'b'], usual, ''), { outcome: 'timeout', by: 'a' });
  const late = placeOf(['overdue', 'passed', 'passed']);
  assert.equal((await tryTests(late, ['a', 'b'], usual, '')).outcome, 'survived');
  assert.deepEqual(
    late.runs.map(([name]) => name),
    ['a', 'a', 'b'],
  );
  const passes = placeOf(['passed', 'passed', 'passed']);
  assert.deepEqual(await tryTests(passes, ['a', 'b', 'c', 'd'], usual, ''), {
    outcome: 'survived',
    by: 'no time for d',
  });
});

test('a test can detect a fault in a line that it runs, or whose coverage is unknown', (t) => {
  const text = `SF:${root}/src/a.c\nFN:3,f\nDA:3,2\nDA:4,0\nend_of_record\nSF:/usr/x.h\nDA:1,1\nend_of_record\n`;
  const lines = linesOf(text);
  assert.deepEqual(lines, { 'src/a.c': { 3: true, 4: false } });
  const folder = mkdtempSync(join(tmpdir(), 'wick-reach-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'reach.json');
  const keep = (/** @type {string} */ stamp) =>
    writeFileSync(path, JSON.stringify([['a_test', { stamp, lines }]]));
  keep(hashOf(join(root, 'build/test/coverage/a_test')));
  const reach = new Reach(folder);
  assert.equal(reach.mayRun('a_test', 'src/a.c', 3), true);
  assert.equal(reach.mayRun('a_test', 'src/a.c', 4), false);
  assert.equal(reach.mayRun('a_test', 'src/a.c', 5), true, 'a line without code, such as a table');
  assert.equal(reach.mayRun('a_test', 'src/b.c', 3), false, 'not linked');
  assert.equal(reach.mayRun('tests/engine/cli.test.mjs', 'src/a.c', 4), true);
  keep('of another program');
  assert.equal(new Reach(folder).mayRun('a_test', 'src/a.c', 4), true);
});

test('the proportion in a sample has a confidence interval', () => {
  // Newcombe 1998, Statistics in Medicine 17, table I, method 3
  const [from, to] = intervalOf(81 / 263, 263).map((end) => end.toFixed(4));
  assert.deepEqual([from, to], ['0.2553', '0.3662']);
  assert.deepEqual(intervalOf(1, 0), [0, 1]);
  assert.ok(intervalOf(1, 20)[0] < 0.85 && intervalOf(1, 20)[1] > 0.9999);
});

test('a process is overdue due to CPU time or waiting, and its output can end it', async () => {
  const of = (/** @type {string} */ script, cpuMs = 1000, idleMs = 60_000) =>
    runUntilFailure('bash', ['-c', script], { cwd: root, env: {}, limits: { cpuMs, idleMs } });
  assert.equal((await of('while :; do :; done')).status, 'overdue');
  const waits = await of('sleep 3; echo ok 1', 100);
  assert.equal(waits.status, 'passed'); // waiting takes no CPU time
  assert.ok(waits.idleMs > 500 && waits.cpuMs < 1000, JSON.stringify(waits));
  assert.equal((await of('sleep 60', 1000, 1500)).status, 'overdue');
  assert.equal((await of('echo not ok 1; sleep 60')).status, 'failed');
  assert.equal((await of('exit 3')).status, 'failed');
  const some =
    "printf 'ok 1 # SKIP none\\n  ok 2 # SKIP test name does not match pattern\\nok 3\\n'";
  assert.equal((await of(some)).skipped, 1);
});

test('a suspended machine does not count as waiting', async () => {
  const limits = { cpuMs: 1000, idleMs: 600 };
  const ended = runUntilFailure('bash', ['-c', 'sleep 0.2'], { cwd: root, env: {}, limits });
  await new Promise((done) => setTimeout(() => setImmediate(done), 50));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); // the process ends in the meantime
  assert.equal((await ended).status, 'passed');
});

/** @typedef {{sources: string[], tests: string[], own?: Record<string, string[]>}} Room */
/** @type {Record<'c' | 'js', Record<string, Room>>} */
const rooms = JSON.parse(readFileSync(join(root, 'tools/mutants/rooms.json'), 'utf8'));

test('every source and test in rooms.json exists, and each source is listed', () => {
  const files = ['src', 'component'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.c'))
      .map((name) => `${folder}/${name}`),
  );
  const inJs = readdirSync(join(root, 'js'), { recursive: true, encoding: 'utf8' });
  const scripts = inJs.filter((name) => name.endsWith('.js'));
  assert.ok(scripts.length > 40, `${scripts.length} files of js/ were found`);
  files.push(...scripts.map((name) => `js/${name}`));
  for (const file of files) {
    const own = Object.values(rooms[file.endsWith('.c') ? 'c' : 'js']).some(({ sources }) =>
      sources.some((source) => file.startsWith(source)),
    );
    assert.ok(own, `${file} is missing in tools/mutants/rooms.json`);
  }
  const units = new Map(
    readdirSync(join(root, 'tests/c'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.c'))
      .map((file) => [basename(file, '.c'), file]),
  );
  for (const { sources, tests, own = {} } of [
    ...Object.values(rooms.c),
    ...Object.values(rooms.js),
  ]) {
    for (const file of Object.keys(own)) {
      const isIn = sources.some((source) => file.startsWith(source));
      assert.ok(isIn && existsSync(join(root, file)), file);
    }
    for (const entry of [...tests, ...Object.values(own).flat()]) {
      const [name, ...words] = entry.split(' '); // the rest is a pattern for test titles
      if (name.endsWith('.mjs')) {
        assert.ok(existsSync(join(root, name)), name);
        continue;
      }
      const unit = units.get(name) ?? assert.fail(`${name} is not in tests/c`);
      const text = readFileSync(join(root, 'tests/c', unit), 'utf8');
      const parts = [...text.matchAll(/^TEST\((\w+)\)/gm)].map(([, part]) => part);
      for (const word of words)
        assert.ok(
          parts.some((part) => part.includes(word)),
          `${entry}: ${word}`,
        );
    }
  }
});

test('listed mutants have a reason and exist in their file; a changed source invalidates them', () => {
  /** @type {{file: string, above?: string, before: string, after: string, reason: string}[]} */
  const listed = JSON.parse(readFileSync(join(root, 'tools/mutants/equivalent.json'), 'utf8'));
  for (const { file, above, before, after, reason } of listed) {
    assert.ok(reason.length > 10 && before !== after, `${before}: ${reason}`);
    const lines = readFileSync(join(root, file), 'utf8')
      .split('\n')
      .map((line) => line.replace(/\s+/g, ' ').trim());
    const isThere = lines.some(
      (line, i) => line === before && (above === undefined || lines[i - 1] === above),
    );
    assert.ok(isThere, `${file}: ${before}`);
  }
  const source = 'int f(int a) {\n  use(a);\n  return a +\n         1;\n}\n';
  const described = mutationsOf(source, 'c').map((one) => describeMutation(source, one));
  const [sum] = described.filter(({ after }) => after === 'return a - 1;');
  assert.equal(sum, undefined); // lines are compared, not statements
  assert.ok(
    described.some(({ before, after }) => before === 'return a +' && after === 'return a -'),
  );
});

test('V8’s counts inside a range that was not run are reported', () => {
  const functions = [
    {
      isBlockCoverage: true,
      ranges: [
        { startOffset: 0, endOffset: 10, count: 1 },
        { startOffset: 4, endOffset: 8, count: 0 },
      ],
    },
  ];
  assert.equal(ranOf(functions, 12).join(''), '111100001111');
  // two segments in a line, one in the next, as VLQ of (0, 0, 0, 0), (4, 0, 1, 2), (1, 1, -1, -2)
  assert.deepEqual(segmentsOf('abcdefgh\nij', 'AAAA,IACE;CCDF'), [
    { offset: 0, source: 0, line: 0, column: 0 },
    { offset: 4, source: 0, line: 1, column: 2 },
    { offset: 10, source: 1, line: 0, column: 0 },
  ]);
});

test('patterns in rooms.json match existing titles', () => {
  const rooms = readFileSync(join(root, 'tools/mutants/rooms.json'), 'utf8');
  for (const [, file, pattern] of rooms.matchAll(/"(tests\/\S+\.mjs) \^(?:\()?([^"]*?)\)?\$?"/g)) {
    const text = readFileSync(join(root, file), 'utf8');
    const titles = [...text.matchAll(/\b(?:test|describe)\(\s*(['`])(.*?)\1/g)].map(
      ([, , title]) => title,
    );
    for (const start of pattern.split('|'))
      assert.ok(
        titles.some((title) => title.startsWith(start)),
        `${file}: ${start}`,
      );
  }
});
