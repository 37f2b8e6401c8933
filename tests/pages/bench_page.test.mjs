// The benchmark page in Chromium: a run with the built-in model, its figures, copying, stopping, error messages. Results
// are saved, linked and opened again, in Firefox and WebKitGTK as well. Screenshots (light, dark, phone) are written to
// build/screenshots.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildBench, site } from '../../examples/bench/build.mjs';
import { packFragment } from '../../examples/shared/fragment.js';
import { serve } from '../../tools/serve.mjs';
import { violations } from '../support/accessible.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip } = locate('chromium');

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
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
  assert.equal(await page.locator('canvas').count(), 3);
  // each setting is a separate line, and a repetition is counted within it
  for (const plot of ['prefill', 'decode']) {
    assert.deepEqual(await page.locator(`#${plot}-plot .u-legend .u-label`).allInnerTexts(), [
      'repetition',
      '1 thread, 16 tokens',
      '2 threads, 16 tokens',
    ]);
  }

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

  await takePicture(page, 'bench-light', { fullPage: true });
  await page.emulateMedia({ colorScheme: 'dark' });
  await takePicture(page, 'bench-dark', { fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await takePicture(page, 'bench-phone', { fullPage: true });
  await untilTrue(page, 'document.documentElement.scrollWidth <= 390'); // a phone's; charts follow in the next frame
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(problems, []);
  await close();
});

test('a stop keeps the measured results', { skip: skip || !isFull }, async () => {
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

test('a missing model is reported', { skip: skip || !isFull }, async () => {
  const { page, problems, close } = await openPage();
  await page.selectOption('#model', 'url');
  await run(page, { ...small, url: `${server.url}nothing.gguf` });
  await page.locator('#problem:not([hidden])').waitFor();
  assert.match(await page.locator('#problem').innerText(), /404/);
  assert.deepEqual(problems, []);
  await close();
});

test('no model, or several, is reported before anything is recorded', {
  skip: skip || !isFull,
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
    [[file('a.gguf'), file('b.gguf')], /choose one file, or all parts/],
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

/** @param {number} threads @param {number} speed */
const row = (threads, speed) => ({
  ...{ threads, prompt_tokens: 64, tokens: 8, load_ms: 10 },
  samples: [1, 2, 3].map((n) => ({ prefill: speed * n, decode: speed, ttftMs: n })),
});
const saved = {
  environment: { browser: '<img src=x onerror=alert(1)>', processors: 8, odd: { a: 1 } },
  rows: [row(1, 10), row(4, 30)],
  metrics: null,
};

test('a result is saved, linked and shown elsewhere without a new measurement', {
  skip,
}, async () => {
  const { page, problems, close } = await openPage();
  const file = (/** @type {string} */ text) => ({
    name: 'old.json',
    mimeType: 'application/json',
    buffer: Buffer.from(text),
  });
  await page.setInputFiles('#import', file(JSON.stringify(saved)));
  await page.locator('#results:not([hidden])').waitFor();
  assert.match(await page.locator('#origin').innerText(), /from the file old\.json/);
  const cells = await page.locator('#speeds tbody tr').nth(1).locator('td').allInnerTexts();
  assert.deepEqual(cells, ['4', '64', '8', '60.0', '30.0', '2.00', '10.0']);
  assert.equal(await page.locator('#prefill-plot .u-legend tr').count(), 3);
  assert.match(await page.locator('#environment').innerText(), /<img src=x/); // shown as text
  assert.equal(await page.locator('#ops-part').isVisible(), false);
  await page.click('#copy-link');
  await page.locator('#copied:text("Copied")').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.goto('about:blank');
  await page.goto(link);
  assert.match(await page.locator('#origin').innerText(), /from a link/);
  assert.equal(await page.locator('#speeds tbody tr').count(), 2);
  /** @type {[string, RegExp][]} */
  const wrong = [
    ['{', /^old\.json is not a result/],
    ['{}', /rows must be a list/],
    [JSON.stringify({ rows: [] }), /rows is empty/],
    [JSON.stringify({ rows: [{ ...row(1, 1), threads: '1' }] }), /threads is not a number/],
    [JSON.stringify({ rows: Array(401).fill(row(1, 1)) }), /rows must be a list of at most 400/],
    [`"${'a'.repeat(5 << 20)}"`, /too large/],
  ];
  for (const [text, words] of wrong) {
    await page.setInputFiles('#import', file(text));
    await page.locator('#problem', { hasText: words }).waitFor();
  }
  await page.goto(`${server.url}?#AAAA`);
  assert.match(await page.locator('#problem').innerText(), /^The link is not a result/);
  assert.deepEqual(problems, []);
  await close();
});

const shown = `return new Promise((settle) => {
  const look = () => {
    const rows = document.querySelectorAll('#speeds tbody tr').length;
    const lines = document.querySelectorAll('#decode-plot .u-legend tr').length;
    if (rows && lines === 3) settle([rows, lines]);
    else setTimeout(look, 50);
  };
  look();
});`;

test('Firefox shows a linked result', { skip: locate('firefox').skip }, async () => {
  const firefox = await launchFirefox();
  try {
    const page = await firefox.newPage();
    await page.goto(`${server.url}#${await packFragment(saved)}`);
    assert.deepEqual(await page.evaluate(`(() => { ${shown} })()`), [2, 3]);
  } finally {
    await firefox.close();
  }
});

test('WebKitGTK shows a linked result', { skip: locate('webkitDriver').skip }, async () => {
  const page = await launchWebKit();
  try {
    await page.goto(`${server.url}#${await packFragment(saved)}`);
    assert.deepEqual(await page.evaluate(shown), [2, 3]);
  } finally {
    await page.close();
  }
});
