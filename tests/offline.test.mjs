// The chat page without a network: its files and the model are kept, isolated as before, and never older
// than what the server has.

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { addServiceWorker, buildChat } from '../examples/chat/build.mjs';
import { serve } from '../tools/serve.mjs';
import { launchChromium, launchFirefox, PATIENCE_MS } from './support/browsers.mjs';
import { locate, root } from './support/locate.mjs';
import { temporaryFolder, untilTrue, waitUntil } from './support/package.mjs';

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
  await untilTrue(page, 'globalThis.isNew');
  await untilTrue(page, isKept);
  // the older one goes when the new worker is activated
  await untilTrue(page, 'caches.keys().then((names) => names.length === 1)');
  await server.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('globalThis.isNew'), true);
});

test('a page stays until all of a newer one is kept', { skip }, async (t) => {
  const folder = temporaryFolder();
  await buildChat(folder);
  // no browser with shared memory uses it, but it is a file of the page
  const last = resolve(folder, 'wick-llm/wasm/wick-simd128-single.wasm');
  /** @type {string[]} */
  const missed = [];
  const onRequest = (/** @type {string} */ path) => {
    if (!existsSync(last) && path.endsWith('/wick-simd128-single.wasm')) missed.push(path);
  };
  const server = await serve({ root: folder, onRequest });
  const page = await newPage(t);
  await page.goto(server.url);
  await untilTrue(page, isKept);
  appendFileSync(resolve(folder, 'page.js'), '\nglobalThis.isNew = true;');
  await addServiceWorker(folder);
  rmSync(last);
  await page.reload();
  await untilTrue(page, 'globalThis.isNew');
  await waitUntilReady(page);
  await waitUntil(() => missed.length > 0, 'a file that is not there');
  await untilTrue(page, 'navigator.serviceWorker.ready.then(({ installing }) => !installing)');
  await server.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('globalThis.isNew'), undefined);
  assert.match(await ask(page), /\w+ \w+/);

  copyFileSync(resolve(root, 'dist/wasm/wick-simd128-single.wasm'), last);
  const again = await serve({ root: folder, port: server.port });
  await page.reload();
  await untilTrue(page, 'globalThis.isNew');
  await untilTrue(page, isKept);
  await untilTrue(page, 'caches.keys().then((names) => names.length === 1)');
  await again.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('globalThis.isNew'), true);
});

/** Of the one whole model that is kept, in bytes; nothing while there is none, or two. The mark of a whole one comes last. */
const sizeKept = `(async () => {
  const sizes = [];
  for (const name of await caches.keys()) {
    if (!name.startsWith('wick-chat-model')) continue;
    const cache = await caches.open(name);
    if ((await cache.match('/wick-chat-whole-model')) === undefined) continue;
    for (const request of await cache.keys()) {
      if (request.url.endsWith('.gguf')) sizes.push((await (await cache.match(request)).blob()).size);
    }
  }
  return sizes.length === 1 ? sizes[0] : undefined;
})()`;

test('a model of an address is kept, until the server has another one', { skip }, async (t) => {
  const folder = temporaryFolder();
  const file = resolve(folder, 'own.gguf');
  /** @type {string[]} */
  const requests = [];
  const serveModel = (port = 0) =>
    serve({ root: folder, port, cors: true, onRequest: (path) => requests.push(path) });
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

/** @typedef {(response: import('node:http').ServerResponse) => void} Answer */

const good = readFileSync(resolve(models, 'wick-2.6m-q4_0.gguf'));
/** @param {number} first @param {number} last @param {number} byte @returns {Buffer} of the same size */
const damaged = (first, last, byte) => Buffer.from(good).fill(byte, first, last);
/** @param {Buffer | string} body @param {string} type @returns {Answer} */
const whole = (body, type) => (response) =>
  void response.writeHead(200, { 'Content-Type': type }).end(body);
const binary = 'application/octet-stream';

/** What a server, or what stands before it, may answer with status 200. @type {Record<string, Answer>} */
const notModels = {
  'a web page': whole('<!doctype html><title>Sign in</title>Sign in to this network', 'text/html'),
  'a web page that calls itself a file': whole('<html><body>Sign in</body></html>', binary),
  'an error in JSON': whole('{"error": "quota exceeded"}', 'application/json'),
  nothing: whole('', binary),
  'a part that calls itself the whole': whole(good.subarray(0, good.length / 2), binary),
  'a part of what was promised': (response) => {
    response.writeHead(200, { 'Content-Length': good.length });
    response.write(good.subarray(0, good.length / 2), () => response.destroy());
  },
  'a damaged directory': whole(damaged(24, 4096, 0xff), binary),
  'damaged weights': whole(damaged(good.length - 200_000, good.length, 0xff), binary),
};

/** Those that are tried at the address of another model, too. */
const elsewhere = new Set(['a web page', 'an error in JSON', 'a damaged directory']);

/** @typedef {{goto: (url: string) => Promise<any>, evaluate: (code: any) => Promise<any>,
 *   close: () => Promise<void>}} Tab */

/**
 * @param {import('node:test').TestContext} t
 * @param {() => Promise<Tab>} newTab of one browser
 */
async function badAnswers(t, newTab) {
  /** @type {Answer} */
  let answer = whole(good, binary);
  const server = await serve({ root: site });
  const own = createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    if (request.headers.range === undefined) answer(response);
    else response.writeHead(404).end(); // a broken download stays broken
  });
  await new Promise((settle) => own.listen(0, '127.0.0.1', () => settle(undefined)));
  t.after(() => {
    own.closeAllConnections();
    own.close();
    return server.close();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (own.address());
  /** @param {string} file @param {(tab: Tab) => Promise<void>} [use] */
  const visit = async (file, use) => {
    const tab = await newTab();
    const model = encodeURIComponent(`http://127.0.0.1:${port}/${file}`);
    await tab.goto(`${server.url}?model=${model}`);
    await use?.(tab);
    await waitUntil(() => tab.evaluate(`!document.getElementById('send').disabled`), 'a model');
    const name = await tab.evaluate(`document.getElementById('model-name').textContent`);
    if (answer === offline || name !== 'own.gguf') return { tab, name };
    await waitUntil(() => tab.evaluate(sizeKept), 'the model in the cache');
    return { tab, name };
  };
  /** @type {Answer} */
  const offline = (response) => void response.destroy();
  const first = await visit('own.gguf');
  assert.equal(first.name, 'own.gguf');
  await first.tab.close();

  /** @param {string} what */
  const isStillThere = async (what) => {
    answer = offline;
    const { tab, name } = await visit('own.gguf');
    assert.equal(name, 'own.gguf', what);
    assert.equal(await tab.evaluate(sizeKept), good.length, what);
    await tab.close();
  };
  for (const [what, bad] of Object.entries(notModels)) {
    const files = elsewhere.has(what) ? ['own.gguf', 'another.gguf'] : ['own.gguf'];
    for (const file of files) {
      answer = bad;
      const { tab } = await visit(file);
      await tab.close();
      await isStillThere(`${what} at ${file}`);
    }
  }
  answer = (response) => {
    response.writeHead(200, { 'Content-Length': good.length });
    response.write(good.subarray(0, good.length / 2));
  };
  for (const file of ['own.gguf', 'another.gguf']) {
    const { tab } = await visit(file, async (loading) => {
      const isLoading = `document.getElementById('loading-facts').textContent.includes(' of ')`;
      await waitUntil(() => loading.evaluate(isLoading), 'a part of the model');
      await loading.evaluate(`document.getElementById('cancel-loading').click()`);
    });
    await tab.close();
  }
  await isStillThere('a download that was cancelled');
}

test('a kept model stays until another one is whole', { skip }, async (t) => {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  await badAnswers(t, () => context.newPage());
});

test('a kept model stays in Firefox, too', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await badAnswers(t, () => firefox.newPage());
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
    await untilTrue(page, `!document.getElementById('send').disabled`);
    return page;
  };
  try {
    const first = await visit();
    await untilTrue(first, isKept);
    await first.close();
    await server.close();
    const second = await visit();
    assert.equal(await second.evaluate('crossOriginIsolated'), true);
  } finally {
    await firefox.close();
  }
});
