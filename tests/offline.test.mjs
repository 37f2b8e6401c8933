// The chat page without a network: its files and the model are kept, isolated as before, and never older
// than what the server has.

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { addServiceWorker, buildChat } from '../examples/chat/build.mjs';
import { serve } from '../tools/serve.mjs';
import { launchChromium, launchFirefox, PATIENCE_MS } from './support/browsers.mjs';
import { locate, root } from './support/locate.mjs';
import { temporaryFolder, waitUntil } from './support/package.mjs';

const { skip } = locate('chromium');
const site = resolve(root, 'build/chat-offline');
const models = resolve(root, 'examples/models');

/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  await buildChat(site);
  if (!skip) browser = await launchChromium();
});

after(() => browser?.close());

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t @returns {Promise<Page>} one of an empty profile */
async function newPage(t) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  return context.newPage();
}

/** @param {Page} page */
const waitUntilReady = (page) => page.waitForSelector('#send:not([disabled])');

/** In a new conversation: the last visit's is remembered. @param {Page} page */
async function ask(page) {
  await page.click('#new-chat');
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').waitFor();
  return page.locator('.message.assistant .body').innerText();
}

/** page.waitForFunction takes a promise for true. @param {Page} page @param {string} condition */
const untilTrue = (page, condition) => waitUntil(() => page.evaluate(condition), condition);

/** Whether the files of the build that the page is of are. */
const isKept = `(async () => {
  const version = document.querySelector('meta[name=version]').content;
  const names = (await caches.keys()).filter((name) => name.endsWith(version));
  return names.length === 1 && (await caches.match('./', { cacheName: names[0] })) !== undefined;
})()`;

test('the page is there without a network, isolated, and answers', { skip }, async (t) => {
  const server = await serve({ root: site });
  const page = await newPage(t);
  await page.goto(server.url);
  await waitUntilReady(page);
  const answer = await ask(page);
  const facts = await page.innerText('#facts');
  await untilTrue(page, isKept);
  await server.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('crossOriginIsolated'), true);
  assert.equal(await ask(page), answer);
  assert.equal(await page.innerText('#facts'), facts);
  const icon = await page.evaluate("document.querySelector('h1 img').naturalWidth > 0");
  assert.equal(icon, true);
});

test('a new build is there at once, and kept from then on', { skip }, async (t) => {
  const folder = temporaryFolder();
  await buildChat(folder);
  const server = await serve({ root: folder });
  const page = await newPage(t);
  await page.goto(server.url);
  await untilTrue(page, isKept);
  appendFileSync(resolve(folder, 'page.js'), '\nglobalThis.isNew = true;');
  await addServiceWorker(folder);
  await page.reload();
  await page.waitForFunction('globalThis.isNew');
  await untilTrue(page, isKept);
  assert.equal((await page.evaluate('caches.keys()')).length, 1);
  await server.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('globalThis.isNew'), true);
});

test('a model of an address is kept, until the server has another one', { skip }, async (t) => {
  const folder = temporaryFolder();
  const file = resolve(folder, 'own.gguf');
  /** @type {string[]} */
  const requests = [];
  const serveModel = (port = 0) =>
    serve({ root: folder, port, cors: true, onRequest: (path) => requests.push(path) });
  const sizeKept = `(async () => {
    const cache = await caches.open('wick-chat-models');
    const [request] = await cache.keys();
    return request && (await (await cache.match(request)).blob()).size;
  })()`;
  copyFileSync(resolve(models, 'wick-2.6m-q8_0.gguf'), file);
  const [server, model] = [await serve({ root: site }), await serveModel()];
  t.after(() => server.close());
  const page = await newPage(t);
  const address = `${server.url}?model=${encodeURIComponent(`${model.url}own.gguf`)}`;
  await page.goto(address);
  await waitUntilReady(page);
  const answer = await ask(page);
  await untilTrue(page, sizeKept);
  await model.close();
  await page.goto(address);
  await waitUntilReady(page);
  assert.equal(await ask(page), answer);
  const before = await page.evaluate(sizeKept);
  assert.equal(requests.length, 1);

  copyFileSync(resolve(models, 'wick-2.6m-q4_0.gguf'), file);
  const again = await serveModel(model.port);
  t.after(() => again.close());
  await page.goto(address);
  await waitUntilReady(page);
  await untilTrue(page, `${sizeKept}.then((size) => size < ${before})`);
  assert.equal(requests.length, 2);
  // what cannot be had is no reason to have nothing
  rmSync(file);
  await page.goto(address);
  await waitUntilReady(page);
  assert.equal(requests.length, 3);
});

test('Firefox has the page without a network, too', {
  skip: locate('firefox').skip,
}, async () => {
  const server = await serve({ root: site });
  const firefox = await launchFirefox();
  /** A visit is a page of its own: reloading one that is isolated confuses the driver. */
  const visit = async () => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await page.waitForFunction(`!document.getElementById('send').disabled`);
    return page;
  };
  try {
    const first = await visit();
    await first.waitForFunction(isKept);
    await first.close();
    await server.close();
    const second = await visit();
    assert.equal(await second.evaluate('crossOriginIsolated'), true);
  } finally {
    await firefox.close();
  }
});
