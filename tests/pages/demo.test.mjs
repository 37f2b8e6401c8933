// `make demo` as a visitor sees it: the page's own model answers immediately; SmolLM2-135M is one click away on the same
// server, and is loaded from the store on the next visit. In Chromium, with the package's engine.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { startPrinting } from '../support/example_servers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { takePicture } from '../support/pictures.mjs';

const skip = locate('chromium').skip || locate('smollm2').skip;
const NAME = 'SmolLM2 135M Instruct, Q4_1';

/** @param {import('playwright-core').Page} page @param {string} question @returns {Promise<string>} the answer */
async function ask(page, question) {
  const before = await page.locator('.message.assistant').count();
  await page.fill('#prompt', question);
  await page.keyboard.press('Enter');
  const answer = page.locator('.message.assistant').nth(before);
  await answer.waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  return answer.locator('.body').innerText();
}

test('the demo answers with the built-in model, and after one click with SmolLM2', {
  skip,
}, async (t) => {
  const script = resolve(root, 'examples/chat/serve.mjs');
  const server = await startPrinting(process.execPath, [script, '--port', '0']);
  t.after(() => server.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript("localStorage.setItem('wick-chat-settings', '{\"temperature\":0}')");
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  const elsewhere = new Set();
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== server.origin) elsewhere.add(origin);
  });

  await page.goto(server.origin);
  await page.waitForSelector('#send:not([disabled])');
  assert.match(await ask(page, 'Who was king of Portugal in 1703?'), /know/);
  await page.getByText(`${NAME} knows more: 98 MB to download`).waitFor();
  await takePicture(page, 'demo-offer');
  await page.getByRole('button', { name: 'Load it' }).click();
  const isReady = () => page.locator('#model-name', { hasText: NAME }).waitFor();
  await isReady();
  assert.match(await ask(page, 'What is the capital of France?'), /Paris/);
  await takePicture(page, 'demo');

  /** @type {string[]} */
  const fetched = [];
  page.on('request', (request) => {
    if (request.url().endsWith('.gguf')) fetched.push(request.url());
  });
  await page.reload();
  await isReady();
  await page.waitForSelector('#send:not([disabled])');
  if (isFull) assert.notEqual(await ask(page, 'What is the capital of Italy?'), '');
  assert.deepEqual(
    fetched.filter((url) => url.includes('smollm2')),
    [],
  );
  assert.deepEqual([...elsewhere], []);
  assert.deepEqual(problems, []);
});
