// The bench tools: statistics, rows and sections of the document. Also a run against peers with a tiny
// model, which checks only the format of the result.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { drawBars } from '../../tools/bench/bars_svg.mjs';
import { drawCurve, roundMarks } from '../../tools/bench/curve_svg.mjs';
import { readSection, withSection } from '../../tools/bench/document.mjs';
import { drawPeers } from '../../tools/bench/peers_picture.mjs';
import { phaseTables, ratioLines, readPhaseTables } from '../../tools/bench/peers_tables.mjs';
import { compareSamples, peersFile, peersTable } from '../../tools/bench/rows.mjs';
import {
  fitShare,
  interpolate,
  passTime,
  planMatrices,
  shapes,
  splitRows,
} from '../../tools/bench/spread/plan.mjs';
import { median, ratioInterval } from '../../tools/bench/statistics.mjs';
import { closeAll, doEach, takeTurns, withinLimit } from '../../tools/bench/turns.mjs';
import { locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const key = { model: 'm', type: 'q8_0', threads: 1, peer: 'wllama', peer_version: '3.8.1' };

describe('statistics', () => {
  test('median', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  test('the interval of a ratio contains it, is reproducible, and is a point without spread', () => {
    const ours = [10, 11, 12, 13, 14];
    const theirs = [5, 5.2, 4.9, 5.1, 5];
    const [low, high] = ratioInterval(ours, theirs);
    assert.ok(low < 12 / 5 && 12 / 5 < high, `${low} to ${high}`);
    assert.deepEqual(ratioInterval(ours, theirs), [low, high]);
    assert.deepEqual(ratioInterval([6, 6, 6], [2, 2, 2]), [3, 3]);
  });
});

describe('weights split over several memories', () => {
  test('the main instance and its helpers finish together', () => {
    const share = fitShare(300, 60, 3);
    assert.equal(share, 0.2);
    const kind = { share, bytes: 0, us: 300, count: 10 };
    assert.ok(Math.abs(passTime([kind], 50, 3, () => 60) - 1250) < 1e-9);
  });

  test('a matrix product that does not justify an exchange is not split', () => {
    assert.equal(fitShare(50, 60, 1), 0);
    assert.equal(
      passTime([{ share: 0, bytes: 0, us: 50, count: 4 }], 0, 1, () => 60),
      200,
    );
  });

  test('rows are split into whole groups', () => {
    assert.deepEqual(splitRows(896, 0.4, 1), [536, 896]);
    assert.deepEqual(splitRows(128, 0.2, 3), [56, 80, 104, 128]);
    assert.deepEqual(splitRows(128, 0, 1), [128, 128]);
  });

  test('matrices have the types that llama-quantize chooses', () => {
    const { products, slots } = planMatrices(shapes['Qwen2.5-0.5B'], 'q4_k_m');
    assert.equal(slots, 24);
    const types = (/** @type {number} */ product) => products[product].map(({ type }) => type);
    // rows of 896 values are not whole blocks of 256: Q5_0 and Q8_0 instead of Q4_K and Q6_K
    assert.deepEqual([0, 1, 2, 3, 96].map(types), [[6, 6, 8], [6], [6, 6], [14], [8]]);
    assert.equal(planMatrices(shapes['Qwen3-4B'], 'q4_0').slots, 5);
  });

  test('times between measurements are interpolated linearly', () => {
    const time = interpolate([
      [4, 50],
      [8, 60],
      [16, 100],
    ]);
    assert.deepEqual([1, 4, 6, 8, 12, 16, 32].map(time), [50, 50, 55, 60, 80, 100, 180]);
  });
});

test('two builds are compared, and a slower one is an error', async () => {
  const slow = mkdtempSync(join(tmpdir(), 'wick-builds-'));
  try {
    const fast = pathToFileURL(resolve(root, 'dist/index.js')).href;
    writeFileSync(
      join(slow, 'index.js'),
      `import { createEngine as create } from '${fast}';
      export async function createEngine(options) {
        await new Promise((settle) => setTimeout(settle, 2000));
        return await create(options);
      }`,
    );
    const { code, stdout, stderr } = await run(process.execPath, [
      resolve(root, 'tools/bench/builds.mjs'),
      ...[resolve(root, 'dist'), slow, '--pairs', '2', '--prompt', '16', '--tokens', '4'],
    ]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /slower than 0\.98 of the old build:.* createEngine/);
    for (const name of ['decode', 'prefill', 'createEngine']) {
      assert.match(stdout.toString(), new RegExp(`\\| ${name} \\| [\\d.]+ .* to [\\d.]+\\) \\|`));
    }
  } finally {
    rmSync(slow, { recursive: true });
  }
});

describe('rows', () => {
  test('a ratio above 1 means that Wick is better, for speeds and times', () => {
    const measured = { ours: [20], theirs: [10], hasInterval: false };
    const speed = compareSamples({ row: { ...key, phase: 'decode' }, ...measured });
    assert.deepEqual([speed.ratio, speed.unit, speed.ratio_ci], [2, 'tok/s', null]);
    const time = compareSamples({ row: { ...key, phase: 'cold_ttft' }, ...measured });
    assert.deepEqual([time.ratio, time.unit], [0.5, 'ms']);
    assert.equal(peersTable([speed, time]).split('\n').length, 4);
  });

  test('the file has exactly the keys that its readers need', () => {
    const measured = { ours: [20, 22], theirs: [10, 11] };
    const rows = [true, false].map((hasInterval) =>
      compareSamples({ row: { ...key, phase: 'prefill' }, ...measured, hasInterval }),
    );
    const common = { model: 'm', type: 'q8_0', threads: 1, phase: 'prefill', peer: 'wllama' };
    const values = { wick: 21, peer_value: 10.5, ratio: 2 };
    assert.deepEqual(peersFile(rows), {
      rows: [
        { ...common, ...values, ratio_ci: [2, 2] },
        { ...common, ...values, ratio_ci: null },
      ],
    });
  });
});

describe('turns', () => {
  const always = { rounds: 3, hasTimeFor: () => true };

  test('a side that fails in a round has no samples, and the others continue', async () => {
    /** @type {Record<string, string>} */
    const failures = {};
    const samples = await takeTurns(['wick', 'one', 'two'], failures, {
      ...always,
      measure: async (name, round) => {
        if (name === 'one' && round === 1) throw new Error('out of memory\nat some place');
        return round;
      },
    });
    assert.deepEqual(samples, { wick: [0, 1, 2], two: [0, 1, 2] });
    assert.deepEqual(failures, { one: 'out of memory' });
  });

  test('without Wick or without a peer, no round starts', async () => {
    for (const broken of ['wick', 'one']) {
      const failures = { [broken]: 'did not load' };
      let calls = 0;
      await takeTurns(['wick', 'one'], failures, { ...always, measure: async () => calls++ });
      assert.equal(calls, 0);
    }
  });

  test('no round starts if there is not enough time', async () => {
    const hasTimeFor = (/** @type {number} */ round) => round < 2;
    const measure = async () => 1;
    const samples = await takeTurns(['wick', 'one'], {}, { rounds: 3, hasTimeFor, measure });
    assert.deepEqual(samples, { wick: [1, 1], one: [1, 1] });
  });

  test('a side that never responds is skipped', async () => {
    /** @type {Record<string, string>} */
    const failures = {};
    await doEach(['wick', 'one'], failures, (name) =>
      withinLimit(name === 'one' ? new Promise(() => {}) : Promise.resolve(), 20),
    );
    assert.deepEqual(failures, { one: 'no response within 0 s' });
  });

  test('all sides are closed, even if one hangs and another fails', async () => {
    /** @type {string[]} */
    const closed = [];
    const side = (/** @type {string} */ name, /** @type {() => Promise<unknown>} */ end) => ({
      close: () => {
        closed.push(name);
        return end();
      },
    });
    const sides = {
      broken: side('broken', () => {
        throw new Error('gone already');
      }),
      hanging: side('hanging', () => new Promise(() => {})),
      failing: side('failing', () => Promise.reject(new Error('crashed'))),
      fine: side('fine', async () => {}),
    };
    await closeAll(sides, 20);
    assert.deepEqual(closed, ['broken', 'hanging', 'failing', 'fine']);
  });
});

describe('the document', () => {
  test('a new section is added at the end, an existing one is replaced in place', () => {
    const once = withSection('# Title\n', 'one', 'first');
    assert.equal(once, '# Title\n\n<!-- one: begin -->\nfirst\n<!-- one: end -->\n');
    const twice = withSection(`${once}\nbelow\n`, 'one', 'second');
    assert.equal(twice, '# Title\n\n<!-- one: begin -->\nsecond\n<!-- one: end -->\n\nbelow\n');
  });

  test('peer tables contain the values of the rows, and can be parsed again', () => {
    const common = { model: 'm', type: 'q8_0', threads: 1, wick: 20 };
    /** @type {import('../../tools/bench/peers_tables.mjs').PeerRow[]} */
    const rows = [
      {
        ...common,
        phase: 'decode',
        peer: 'llama.cpp',
        peer_value: 10,
        ratio: 2,
        ratio_ci: [1.5, 3],
      },
      { ...common, phase: 'decode', peer: 'wllama', peer_value: 4, ratio: 5, ratio_ci: null },
      { ...common, phase: 'cold_ttft', peer: 'wllama', peer_value: 40, ratio: 2, ratio_ci: null },
    ];
    const tables = phaseTables(rows);
    assert.match(tables, /^\| m q8_0 \| 1 \| 20\.0 \| 2\.00 \(1\.50 to 3\.00\) \| 5\.00 \|$/m);
    assert.deepEqual(readPhaseTables(tables), rows);
    assert.equal(
      ratioLines(rows).split('\n')[0],
      '- Decode: 2.00 times llama.cpp, 5.00 times wllama.',
    );
  });

  test('the peers chart is drawn from the tables in the document', () => {
    const rows = readPhaseTables(readSection('peers'));
    assert.ok(rows.length > 0);
    assert.ok(readSection('peers').includes(ratioLines(rows)), 'the lines above the tables match');
    const picture = readFileSync(resolve(root, 'docs/benchmarks-peers.svg'), 'utf8');
    assert.equal(picture, drawPeers(rows));
  });

  test('bar lengths are proportional to values, and a missing value has no bar', () => {
    const groups = [{ name: 'a & b', values: [8, 4, undefined] }];
    const picture = drawBars('speeds', ['x', 'y', 'z'], [{ title: 'first', groups }]);
    const widths = [...picture.matchAll(/<g><rect class="bar\d"[^>]* width="([\d.]+)"/g)].map(
      ([, width]) => Number(width),
    );
    assert.equal(widths.length, 2);
    assert.equal(widths[0], widths[1] * 2);
    assert.match(picture, /a &#38; b/);
  });

  test('a curve passes through its points', () => {
    const picture = drawCurve(
      [
        [0, 0],
        [100, 10],
      ],
      'x',
      'y',
    );
    assert.match(picture, /<polyline class="curve" points="60\.0,216\.0 520\.0,30\.0"/);
  });

  test('axis ticks are round numbers, and point labels do not overlap', () => {
    assert.deepEqual(roundMarks(8192), [2000, 4000, 6000, 8000]);
    assert.deepEqual(roundMarks(0.45), [0.1, 0.2, 0.3, 0.4]);
    for (const most of [1, 2, 3, 7, 9.9, 25, 81, 105, 767]) {
      const { length } = roundMarks(most);
      assert.ok(length >= 3 && length <= 8, `${length} ticks up to ${most}`);
    }
    const near = [1000, 1010, 2000].map((x) => [x, 77]);
    assert.equal(drawCurve(near, 'x', 'y').match(/>77\.0</g)?.length, 2);
  });
});

const bench = (/** @type {string[]} */ ...options) =>
  run(process.execPath, [resolve(root, 'tools/bench/peers.mjs'), ...options]);

test('an unknown peer is reported', async () => {
  const { code, stderr } = await bench('--peers', 'ollama');
  assert.equal(code, 1);
  assert.match(stderr, /unknown peer 'ollama'/);
});

test('an unknown browser is reported', { skip: locate('chromium').skip }, async () => {
  const program = resolve(root, 'tools/bench/browsers.mjs');
  const { code, stderr } = await run(process.execPath, [program, '--hosts', 'chromium,mosaic']);
  assert.equal(code, 1);
  assert.match(stderr, /unknown host 'mosaic'/);
});

const native = resolve(root, '.toolchain/bench/node_modules/node-llama-cpp');
const isComplete = existsSync(native) || process.env.CI === 'true';
const { skip } = locate('chromium');

test('a run writes a row for each phase and peer', { skip }, async (t) => {
  if (!isComplete) t.diagnostic('without native llama.cpp: tools/setup.sh bench');
  const peers = isComplete ? 'wllama,llama.cpp' : 'wllama';
  const out = 'build/bench/test.json';
  const { code, stderr } = await bench(
    ...['--models', 'tiny:q8_0', '--cold', 'tiny:q8_0', '--threads', '1', '--prompt', '16'],
    ...['--tokens', '4', '--repetitions', '2', '--peers', peers, '--out', out, '--no-document'],
  );
  assert.equal(code, 0, stderr);
  const { rows } = JSON.parse(readFileSync(resolve(root, out), 'utf8'));
  const details = JSON.parse(readFileSync(resolve(root, 'build/bench/test.details.json'), 'utf8'));
  const found = rows.map((/** @type {any} */ row) => `${row.peer} ${row.phase}`).sort();
  const wanted = peers.split(',').flatMap((peer) => [`${peer} decode`, `${peer} prefill`]);
  assert.deepEqual(found, [...wanted, 'wllama cold_ttft'].sort());
  assert.deepEqual(details.skipped, []);
  for (const row of rows) {
    assert.deepEqual(Object.keys(row), [
      ...['model', 'type', 'threads', 'phase', 'peer', 'wick', 'peer_value', 'ratio', 'ratio_ci'],
    ]);
    assert.ok(row.wick > 0 && row.peer_value > 0 && row.ratio > 0);
    assert.equal(row.ratio_ci.length, 2);
  }
  if (isComplete) assert.match(details.environment.llama_cpp_cpu_variant, /^\w+$/);
});

test('an interrupted run leaves a complete file without results of an older run', {
  skip,
}, async () => {
  const out = resolve(root, 'build/bench/test-interrupted.json');
  writeFileSync(out, '{"rows": [{"model": "of an older run"}]}\n');
  const child = spawn(process.execPath, [
    ...[resolve(root, 'tools/bench/peers.mjs'), '--models', 'tiny:q8_0', '--cold', 'none'],
    ...['--peers', 'wllama', '--out', out, '--no-document'],
  ]);
  await once(child.stderr, 'data'); // the first comparison has started
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.deepEqual(JSON.parse(readFileSync(out, 'utf8')), { rows: [] });
});

test('browsers are measured, including plain SIMD and a second visit', {
  skip,
}, async () => {
  const out = 'build/bench/test-browsers.json';
  const { code, stderr } = await run(process.execPath, [
    resolve(root, 'tools/bench/browsers.mjs'),
    ...['--models', 'tiny:q8_0', '--prompt', '16', '--tokens', '4', '--repetitions', '1'],
    ...['--hosts', 'chromium,plain', '--visits', '1', '--out', out, '--no-document'],
  ]);
  assert.equal(code, 0, stderr);
  const { rows, visits } = JSON.parse(readFileSync(resolve(root, out), 'utf8'));
  const found = rows.map((/** @type {any} */ { host, kernels }) => [host, kernels.slice(0, 7)]);
  assert.deepEqual(found, [
    ['Chromium', 'relaxed'],
    ['Chromium, plain SIMD', 'simd128'],
  ]);
  assert.ok(rows.every((/** @type {any} */ row) => row.prefill > 0 && row.decode > 0));
  assert.deepEqual([rows[0].prefill_ratio, rows[0].decode_ratio], [1, 1]);
  assert.ok(visits.first_ms > 0 && visits.second_ms > 0);
});
