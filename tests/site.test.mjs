// make site: a folder of files that works under any path, on hosts that read files of headers and on those that set none.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildSite } from '../examples/site/build.mjs';
import { serve } from '../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from './support/browsers.mjs';
import { locate } from './support/locate.mjs';
import { temporaryFolder, untilTrue } from './support/package.mjs';

const { skip } = locate('chromium');
const folder = join(temporaryFolder(), 'site');

/** A host that sets no headers, and serves the site under a path. @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  await buildSite(folder);
  server = await serve({ root: { '/some/path/': folder }, isolated: false });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {import('node:test').TestContext} t */
async function openPage(t) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  return page;
}

test('hosts find the headers of isolation in a file of theirs', () => {
  const read = (/** @type {string} */ name) => readFileSync(join(folder, name), 'utf8');
  for (const name of ['_headers', 'vercel.json', 'staticwebapp.config.json', '.htaccess']) {
    const text = read(name);
    assert.match(text, /Cross-Origin-Opener-Policy\W.*same-origin/s, name);
    assert.match(text, /Cross-Origin-Embedder-Policy\W.*require-corp/s, name);
  }
  assert.equal(JSON.parse(read('vercel.json')).headers[0].headers.length, 2);
});

test('under a path: the first page leads to the others, and each is ready, without an error', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const ready = {
    Chat: "!document.getElementById('send').disabled",
    Forks: "document.getElementById('begin').getAttribute('aria-disabled') !== 'true'",
    Benchmark: "document.getElementById('run') !== null",
  };
  for (const [name, condition] of Object.entries(ready)) {
    await page.goto(`${server.url}some/path/`);
    await page.getByRole('link', { name }).click();
    await page.waitForURL(/\/some\/path\/\w+\//);
    await untilTrue(page, condition);
  }
});

test('where the host sets no headers, the service worker isolates the chat from its second visit on', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.goto(`${server.url}some/path/chat/`);
  assert.equal(await page.evaluate('crossOriginIsolated'), false);
  await untilTrue(page, 'navigator.serviceWorker.controller !== null');
  await page.reload();
  assert.equal(await page.evaluate('crossOriginIsolated'), true);
  await page.waitForSelector('#send:not([disabled])');
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').waitFor();
  assert.match(await page.locator('.message.assistant .body').innerText(), /\w+ \w+/);
});
