// The bench tools: statistics, rows and sections of the document; and a run against the peers on a tiny
// model, in which only the shape of the result counts.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { drawCurve } from '../tools/bench/curve_svg.mjs';
import { withSection } from '../tools/bench/document.mjs';
import { compareSamples, peersTable } from '../tools/bench/rows.mjs';
import { median, ratioInterval } from '../tools/bench/statistics.mjs';
import { locate, root } from './support/locate.mjs';
import { run } from './support/process.mjs';

const key = { model: 'm', type: 'q8_0', threads: 1, peer: 'wllama', peer_version: '3.8.1' };

describe('statistics', () => {
  test('median', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  test('the interval of a ratio holds it, is the same each time, and is a point without spread', () => {
    const ours = [10, 11, 12, 13, 14];
    const theirs = [5, 5.2, 4.9, 5.1, 5];
    const [low, high] = ratioInterval(ours, theirs);
    assert.ok(low < 12 / 5 && 12 / 5 < high, `${low} to ${high}`);
    assert.deepEqual(ratioInterval(ours, theirs), [low, high]);
    assert.deepEqual(ratioInterval([6, 6, 6], [2, 2, 2]), [3, 3]);
  });
});

describe('rows', () => {
  test('a ratio above 1 means that Wick is better, for speeds and for times', () => {
    const measured = { ours: [20], theirs: [10], hasInterval: false };
    const speed = compareSamples({ row: { ...key, phase: 'decode' }, ...measured });
    assert.deepEqual([speed.ratio, speed.unit, speed.ratio_ci], [2, 'tok/s', null]);
    const time = compareSamples({ row: { ...key, phase: 'cold_ttft' }, ...measured });
    assert.deepEqual([time.ratio, time.unit], [0.5, 'ms']);
    assert.equal(peersTable([speed, time]).split('\n').length, 4);
  });
});

describe('the document', () => {
  test('a section is added at the end, and replaced where it is', () => {
    const once = withSection('# Title\n', 'one', 'first');
    assert.equal(once, '# Title\n\n<!-- one: begin -->\nfirst\n<!-- one: end -->\n');
    const twice = withSection(`${once}\nbelow\n`, 'one', 'second');
    assert.equal(twice, '# Title\n\n<!-- one: begin -->\nsecond\n<!-- one: end -->\n\nbelow\n');
  });

  test('a curve goes through its points', () => {
    const picture = drawCurve(
      [
        [0, 0],
        [100, 10],
      ],
      'x',
      'y',
    );
    assert.match(picture, /<polyline points="60\.0,216\.0 520\.0,22\.0"/);
  });
});

const bench = (/** @type {string[]} */ ...options) =>
  run(process.execPath, [resolve(root, 'tools/bench/peers.mjs'), ...options]);

test('a peer that nobody knows is named', async () => {
  const { code, stderr } = await bench('--peers', 'ollama');
  assert.equal(code, 1);
  assert.match(stderr, /no peer is called 'ollama'/);
});

const native = resolve(root, '.toolchain/bench/node_modules/node-llama-cpp');
const isComplete = existsSync(native) || process.env.CI === 'true';
const { skip } = locate('chromium');

test('a run gives a row for each phase and peer', { skip }, async (t) => {
  if (!isComplete) t.diagnostic('without native llama.cpp: tools/setup.sh bench');
  const peers = isComplete ? 'wllama,llama.cpp' : 'wllama';
  const out = 'build/bench/test.json';
  const { code, stderr } = await bench(
    ...['--models', 'tiny:q8_0', '--cold', 'tiny:q8_0', '--threads', '1', '--prompt', '16'],
    ...['--tokens', '4', '--repetitions', '2', '--peers', peers, '--out', out, '--no-document'],
  );
  assert.equal(code, 0, stderr);
  const { rows, skipped, environment } = JSON.parse(readFileSync(resolve(root, out), 'utf8'));
  const found = rows.map((/** @type {any} */ row) => `${row.peer} ${row.phase}`).sort();
  const wanted = peers.split(',').flatMap((peer) => [`${peer} decode`, `${peer} prefill`]);
  assert.deepEqual(found, [...wanted, 'wllama cold_ttft'].sort());
  assert.deepEqual(skipped, []);
  for (const row of rows) {
    assert.ok(row.wick > 0 && row.peer_value > 0 && row.ratio > 0);
    assert.equal(row.ratio_ci.length, 2);
  }
  if (isComplete) assert.match(environment.llama_cpp_cpu_variant, /^\w+$/);
});

test('browsers are measured side by side, plain SIMD and a second visit with them', {
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
