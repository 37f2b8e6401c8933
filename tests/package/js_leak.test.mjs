// A long-lived engine: the memory of a process or renderer does not grow with the number of requests.
// Memory is measured after garbage collections that also shrink V8's young generations
// (docs/requests.md). `make soak` sends 20,000 requests.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchOwnChromium } from '../support/browsers.mjs';
import { memoryAfterCollections } from '../support/chromium_memory.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelPath } from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { isSoak, soakCount } from '../support/soak.mjs';

const skip = existsSync('/proc/self/smaps_rollup') ? false : 'no /proc/self/smaps_rollup here';
const counts = [soakCount(5000), soakCount(20_000)];
// V8 may still be compiling at the second count, so a third count distinguishes compiled code from
// memory that each request keeps.
if (!isSoak) counts.push(2 * counts[1] - counts[0]);
const requests = counts[1] - counts[0];
const SLOPE_KB_MAX = 0.15;
/** Limits on the growth of the process and of the heaps between two counts of the shorter run. */
const WARMING_KB_MAX = { privateKb: 4000, usedKb: 500 };

/** @typedef {{privateKb: number, usedKb: number}} Sizes private memory of a process, and used heap memory of its threads */

/** @param {import('node:test').TestContext} t @param {Sizes[]} sizes at each of the counts */
function checkGrowth(t, sizes) {
  for (const key of /** @type {const} */ (['usedKb', 'privateKb'])) {
    const growths = sizes.slice(1).map((size, i) => size[key] - sizes[i][key]);
    t.diagnostic(
      `${key}: ${sizes.map((size) => size[key]).join(', ')}, each after ${requests} more`,
    );
    const grownKb = Math.min(...growths);
    const mostKb = isSoak ? SLOPE_KB_MAX * requests : WARMING_KB_MAX[key];
    assert.ok(grownKb < mostKb, `${key} has grown by ${growths}, each time by at least ${mostKb}`);
  }
}

test('soak: an engine in Node frees all memory of its requests', { skip }, async (t) => {
  const script = join(root, 'tests/support/many_requests.mjs');
  const args = [script, dist, modelPath, ...counts.map(String)];
  const { stdout, stderr } = await run(process.execPath, args);
  assert.equal(stderr, '');
  const lines = String(stdout).trimEnd().split('\n');
  const reported = lines.map((line) => JSON.parse(line));
  checkGrowth(t, reported);
  // Wick limits the worker's young generation; the host determines this thread's
  const { uncollectedKb } = reported[1];
  t.diagnostic(`before the collections: ${uncollectedKb} KB`);
  assert.ok(uncollectedKb < 56_000, `${uncollectedKb} KB before the collections`);
});

test('soak: an engine in Chromium frees all memory of its requests', {
  skip: skip || locate('chromium').skip,
}, async (t) => {
  const models = resolve(root, 'examples/models');
  const pages = resolve(root, 'tests/support/empty_page');
  const site = { '/': pages, '/dist/': dist, '/dist/models/': models };
  const server = await serve({ root: site });
  const browser = await launchOwnChromium();
  t.after(async () => {
    await browser.close();
    await server.close();
  });
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.goto(server.url);
  await page.evaluate(async (path) => {
    const { createEngine } = await import(`${path}index.js`);
    const engine = await createEngine({ url: '/dist/models/wick-2.6m-q8_0.gguf', threads: 1 });
    Object.assign(globalThis, { engine });
  }, '/dist/');
  const sizes = [];
  let asked = 0;
  for (const count of counts) {
    await page.evaluate(async (more) => {
      const { engine } = /** @type {any} */ (globalThis);
      const messages = [{ role: 'user', content: 'Hi' }];
      for (let i = 0; i < more; i++) {
        await engine.chat.completions.create({ messages, max_tokens: 1 });
      }
    }, count - asked);
    asked = count;
    sizes.push(await memoryAfterCollections(browser, page));
  }
  checkGrowth(t, sizes);
});
