// The benchmark page in Chromium: one run on the built-in model, its figures, what is copied, a stop,
// words for what cannot be done. Screenshots (light, dark, phone) go to build/screenshots.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { buildBench, site } from '../examples/bench/build.mjs';
import { serve } from '../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from './support/browsers.mjs';
import { locate, root } from './support/locate.mjs';

const { skip } = locate('chromium');
const pictures = resolve(root, 'build/screenshots');

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  await buildBench();
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {import('playwright-core').BrowserContextOptions} [options] */
async function openPage(options = {}) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext({
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(server.url);
  return { page, problems, close: () => context.close() };
}

/** @param {import('playwright-core').Page} page @param {Record<string, string>} fields */
async function run(page, fields) {
  for (const [id, value] of Object.entries(fields)) await page.fill(`#${id}`, value);
  await page.click('#run');
}

const small = { threads: '1, 2', prompts: '16', tokens: '24', repetitions: '2' };

test('a run on the built-in model: speeds, ops, environment, JSON and Markdown', {
  skip,
}, async () => {
  const { page, problems, close } = await openPage({ colorScheme: 'light' });
  await run(page, small);
  await page.locator('#results:not([hidden])').waitFor();
  assert.equal(await page.locator('#state').innerText(), 'Done');
  assert.equal(await page.locator('#speeds tbody tr').count(), 2);
  assert.equal(await page.locator('canvas').count(), 2);

  await page.click('#copy-json');
  await page.locator('#copied:text("Copied")').waitFor();
  const json = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  assert.deepEqual(
    json.rows.map((/** @type {any} */ row) => [row.threads, row.samples.length]),
    [
      [1, 2],
      [2, 2],
    ],
  );
  for (const row of json.rows) assert.ok(row.prefill_tok_s > 0 && row.decode_tok_s > 0);
  assert.ok(json.metrics.passes.decode.gate_up.gb_per_s > 0);
  assert.equal(json.environment.architecture, 'llama');
  assert.match(json.environment.wick, /^\d+\.\d+\.\d+, commit \w/);
  assert.equal(json.environment['cross-origin isolated'], true);

  await page.click('#copy-markdown');
  const markdown = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(markdown, /^\| threads \| prompt \|/);
  assert.match(markdown, /\| decode gate_up \|/);

  await page.screenshot({ path: resolve(pictures, 'bench-light.png'), fullPage: true });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForTimeout(200);
  await page.screenshot({ path: resolve(pictures, 'bench-dark.png'), fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForTimeout(200);
  await page.screenshot({ path: resolve(pictures, 'bench-phone.png'), fullPage: true });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `${width} pixels wide on a phone`);
  assert.deepEqual(problems, []);
  await close();
});

test('a stop keeps what was measured', { skip }, async () => {
  const { page, problems, close } = await openPage();
  // 40,000 tokens: it is stopped long before its end
  await run(page, { ...small, threads: '1', tokens: '400', repetitions: '100' });
  await page.locator('#speeds tbody td').first().waitFor({ state: 'attached' });
  await page.click('#stop');
  await page.locator('#state:text("Stopped")').waitFor();
  assert.equal(await page.locator('#speeds tbody tr').count(), 1);
  assert.equal(await page.locator('#run').isVisible(), true);
  assert.deepEqual(problems, []);
  await close();
});

test('a model that is not there is said in words', { skip }, async () => {
  const { page, problems, close } = await openPage();
  await page.selectOption('#model', 'url');
  await run(page, { ...small, url: `${server.url}nothing.gguf` });
  await page.locator('#problem:not([hidden])').waitFor();
  assert.match(await page.locator('#problem').innerText(), /404/);
  assert.deepEqual(problems, []);
  await close();
});

test('what is no model, or several, is said in words before anything is recorded', {
  skip,
}, async () => {
  const { page, problems, close } = await openPage();
  const file = (/** @type {string} */ name, text = 'no model') => ({
    name,
    mimeType: 'application/octet-stream',
    buffer: Buffer.from(text),
  });
  await page.selectOption('#model', 'file');
  /** @type {[ReturnType<typeof file>[], RegExp][]} */
  const cases = [
    [[file('a.gguf')], /not a GGUF file/],
    [[file('a.gguf', '')], /the file is empty/],
    [[file('a.gguf'), file('b.gguf')], /one file is wanted, or all parts/],
    [[file('a-00002-of-00002.gguf'), file('a-00001-of-00002.gguf')], /not a GGUF file/],
  ];
  for (const [files, wanted] of cases) {
    await page.setInputFiles('#file', files);
    await run(page, small);
    await page.locator('#run:not([hidden])').waitFor();
    await page.locator('#problem:not([hidden])').waitFor();
    assert.match(await page.locator('#problem').innerText(), wanted);
    assert.equal(await page.locator('#results').isVisible(), false);
  }
  assert.deepEqual(problems, []);
  await close();
});
