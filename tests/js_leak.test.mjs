// A long-lived engine: its process grows with no number of requests. What V8's small collections cannot
// free makes its young generation grow, up to 60 MB in this thread and the worker's; how that comes about is
// told in docs/architecture.md. WICK_SOAK=1 asks 20,000 times.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './support/locate.mjs';
import { dist, modelPath } from './support/package.mjs';
import { run } from './support/process.mjs';

const skip = existsSync('/proc/self/smaps_rollup') ? false : 'no /proc/self/smaps_rollup here';

/** @param {number[]} counts */
async function measure(...counts) {
  const script = join(root, 'tests/support/many_requests.mjs');
  const args = ['--expose-gc', script, dist, modelPath, ...counts.map(String)];
  const { stdout, stderr } = await run(process.execPath, args);
  assert.equal(stderr, '');
  const lines = String(stdout).trimEnd().split('\n');
  return lines.map((line) => /** @type {Record<string, number>} */ (JSON.parse(line)));
}

test('the heap does not grow from request to request', { skip }, async (t) => {
  const [early, late] = await measure(300, 3000);
  const grown = { heap: late.heapKb - early.heapKb, all: late.privateKb - early.privateKb };
  t.diagnostic(`300 to 3,000 requests: heap ${grown.heap} KB, process ${grown.all} KB`);
  assert.ok(grown.heap < 5000, `this thread's heap grew by ${grown.heap} KB`);
  assert.ok(grown.all < 10_000, `the process grew by ${grown.all} KB`);
});

test('soak: from request 5,000 to 20,000 less than 0.15 KB each', {
  skip: skip || (process.env.WICK_SOAK ? false : 'WICK_SOAK is not set'),
}, async (t) => {
  const [early, late] = await measure(5000, 20_000);
  const slope = (late.privateKb - early.privateKb) / 15_000;
  t.diagnostic(`${slope.toFixed(3)} KB a request`);
  assert.ok(slope < 0.15, `${slope} KB a request`);
});
