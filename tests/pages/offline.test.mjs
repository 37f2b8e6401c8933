// The chat page offline: its files and the model are cached, the page stays isolated, and cached files
// are never older than the server's.

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { addServiceWorker } from '../../examples/chat/build.mjs';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { isKept } from '../support/offline.mjs';
import { temporaryFolder, untilTrue, waitForPage, waitUntil } from '../support/package.mjs';

const { skip } = locate('chromium');
const site = resolve(root, 'build/chat-offline');
const models = resolve(root, 'examples/models');

/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  await copyChat(site);
  if (!skip) browser = await launchChromium();
});

after(() => browser?.close());

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t @returns {Promise<Page>} a tab with an empty profile */
async function newPage(t) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  return context.newPage();
}

/** @param {Page} page */
const waitUntilReady = (page) => page.waitForSelector('#send:not([disabled])');

/** Asks in a new conversation, because the page opens the last visit's. @param {Page} page */
async function ask(page) {
  await page.click('#new-chat');
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').waitFor();
  return page.locator('.message.assistant .body').innerText();
}

test('the page works offline, isolated, and answers', { skip }, async (t) => {
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

test('a new build is used immediately, and then cached', {
  skip: skip || !isFull,
}, async (t) => {
  const folder = temporaryFolder();
  await copyChat(folder);
  const server = await serve({ root: folder });
  const page = await newPage(t);
  await page.goto(server.url);
  await untilTrue(page, isKept);
  appendFileSync(resolve(folder, 'page.js'), '\nglobalThis.isNew = true;');
  await addServiceWorker(folder);
  await page.reload();
  await untilTrue(page, 'globalThis.isNew');
  await untilTrue(page, isKept);
  // the older cache is removed when the new worker is activated
  await untilTrue(page, 'caches.keys().then((names) => names.length === 1)');
  await server.close();
  await page.reload();
  await waitUntilReady(page);
  assert.equal(await page.evaluate('globalThis.isNew'), true);
});

test('a page is used until a newer one is stored completely', {
  skip: skip || !isFull,
}, async (t) => {
  const folder = temporaryFolder();
  await copyChat(folder);
  // browsers with shared memory do not use it, but it is one of the page's files
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
  await waitUntil(() => missed.length > 0, 'a missing file');
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

/** Returns the complete models in the store: their names and sizes. */
const keptModels = `import('./wick-llm/models.js')
  .then(({ openModels }) => openModels())
  .then(async (store) => {
    const all = await store.list();
    await store.close();
    return all.filter(({ isWhole }) => isWhole).map(({ name, size }) => [name, size]);
  })`;

/** @param {Page} page @param {string} name */
const untilModel = (page, name) =>
  untilTrue(page, `document.getElementById('model-name').textContent === ${JSON.stringify(name)}`);

test('a model from a URL is stored: it is not requested again until it is deleted', {
  skip: skip || !isFull,
}, async (t) => {
  const folder = temporaryFolder();
  const file = resolve(folder, 'own.gguf');
  /** @type {string[]} */
  const requests = [];
  const onRequest = (/** @type {string} */ path) => requests.push(path);
  const serveModel = (port = 0) => serve({ root: folder, port, cors: true, onRequest });
  copyFileSync(resolve(models, 'wick-2.6m-q8_0.gguf'), file);
  const [server, model] = [await serve({ root: site }), await serveModel()];
  t.after(() => server.close());
  const page = await newPage(t);
  const address = `${server.url}?model=${encodeURIComponent(`${model.url}own.gguf`)}`;
  await page.goto(address);
  await untilModel(page, 'own.gguf');
  const answer = await ask(page);
  await model.close();
  await page.goto(address);
  await untilModel(page, 'own.gguf');
  assert.equal(await ask(page), answer);
  const before = readFileSync(file).length;
  assert.deepEqual(await page.evaluate(keptModels), [['own.gguf', before]]);
  const asked = requests.length;

  copyFileSync(resolve(models, 'wick-2.6m-q4_0.gguf'), file);
  const again = await serveModel(model.port);
  t.after(() => again.close());
  await page.goto(address);
  await untilModel(page, 'own.gguf');
  assert.equal(requests.length, asked, 'a complete file is not requested');
  await page.click('#choose-model');
  const remove = page.getByRole('button', { name: 'Delete: own.gguf' });
  await remove.click();
  await remove.click();
  await page.locator('#kept-room', { hasText: 'None yet' }).waitFor();
  await page.goto(address);
  await untilModel(page, 'own.gguf');
  assert.ok(requests.length > asked);
  assert.deepEqual(await page.evaluate(keptModels), [['own.gguf', readFileSync(file).length]]);
});

/** @typedef {(response: import('node:http').ServerResponse) => void} Answer */

const good = readFileSync(resolve(models, 'wick-2.6m-q4_0.gguf'));
/** @param {number} first @param {number} last @param {number} byte @returns {Buffer} a file of the same size */
const damaged = (first, last, byte) => Buffer.from(good).fill(byte, first, last);
/** @param {Buffer | string} body @param {string} type @returns {Answer} */
const whole = (body, type) => (response) =>
  void response.writeHead(200, { 'Content-Type': type }).end(body);
const binary = 'application/octet-stream';

/** Answers with status 200 from a server, or from a proxy in front of it. @type {Record<string, Answer>} */
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

/** @typedef {{goto: (url: string) => Promise<any>, evaluate: (code: any) => Promise<any>,
 *   close: () => Promise<void>}} Tab */

/**
 * @param {import('node:test').TestContext} t
 * @param {() => Promise<Tab>} newTab of one browser
 * @param {[what: string, bad: Answer][]} [answers]
 */
async function badAnswers(t, newTab, answers = Object.entries(notModels)) {
  /** @type {Answer} */
  let answer = whole(good, binary);
  const server = await serve({ root: site });
  const badServer = createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    if (request.headers.range === undefined) answer(response);
    else response.writeHead(404).end(); // so that a broken download cannot be resumed
  });
  await new Promise((settle) => badServer.listen(0, '127.0.0.1', () => settle(undefined)));
  t.after(() => {
    badServer.closeAllConnections();
    badServer.close();
    return server.close();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (badServer.address());
  /** @param {string} file @param {string} model used at the end @param {(tab: Tab) => Promise<void>} [use] */
  const visit = async (file, model, use) => {
    const tab = await newTab();
    const address = encodeURIComponent(`http://127.0.0.1:${port}/${file}`);
    await tab.goto(`${server.url}?model=${address}`);
    await use?.(tab);
    const name = `document.getElementById('model-name').textContent === '${model}'`;
    const rest = `document.getElementById('loading').hidden && !document.getElementById('send').disabled`;
    await waitForPage(() => tab.evaluate(`${name} && ${rest}`), `${model} for ${file}`);
    const kept = await tab.evaluate(keptModels);
    const problem = await tab.evaluate(`document.getElementById('problem-text').textContent`);
    await tab.close();
    return { kept, problem };
  };
  const own = [['own.gguf', good.length]];
  assert.deepEqual((await visit('own.gguf', 'own.gguf')).kept, own);
  for (const [what, bad] of answers) {
    answer = bad;
    const { kept, problem } = await visit(`${what.replaceAll(' ', '-')}.gguf`, 'Wick 4.2M');
    assert.deepEqual(kept, own, what);
    assert.match(problem, /could not be loaded: .* is still loaded\.$/, what);
  }
  answer = (response) => {
    response.writeHead(200, { 'Content-Length': good.length });
    response.write(good.subarray(0, good.length / 2)); // the rest is never sent
  };
  const { kept } = await visit('half.gguf', 'Wick 4.2M', async (tab) => {
    const facts = `document.getElementById('loading').innerText`;
    const isHalf = `/half\\.gguf[^]* 823 kB of 1\\.[0-9] MB/.test(${facts})`;
    await waitForPage(() => tab.evaluate(isHalf), 'a part of the model');
    await tab.evaluate(`document.getElementById('cancel-loading').click()`);
  });
  assert.deepEqual(kept, own, 'a paused download');
  answer = (response) => void response.destroy();
  assert.deepEqual((await visit('own.gguf', 'own.gguf')).kept, own);
}

test('a stored model is kept until another one is complete', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  await badAnswers(t, () => context.newPage());
});

/** Responses that browsers handle differently; the page's own code checks the bytes of all others. */
const ofBrowsers = ['a web page', 'nothing', 'a part of what was promised'];

test('a stored model is kept in Firefox, too', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const answers = Object.entries(notModels).filter(([what]) => ofBrowsers.includes(what));
  await badAnswers(t, () => firefox.newPage(), answers);
});

test('WebKitGTK has the page and a model from a URL offline, too', {
  skip: locate('webkitDriver').skip,
}, async (t) => {
  const server = await serve({ root: site });
  t.after(() => server.close());
  const page = await launchWebKit();
  t.after(() => page.close());
  /** @param {string} code */
  const evaluate = (code) => page.evaluate(`return (${code})`);
  copyFileSync(resolve(models, 'wick-2.6m-q8_0.gguf'), resolve(site, 'own.gguf'));
  t.after(() => rmSync(resolve(site, 'own.gguf')));
  const isReady = `document.getElementById('model-name').textContent === 'own.gguf' && !document.getElementById('send').disabled`;
  await page.goto(`${server.url}?model=own.gguf`);
  await waitForPage(() => evaluate(isReady), 'the model');
  // a worker that controls pages has cached all files; the state that WebKitGTK reports may be
  // outdated
  await waitForPage(() => evaluate('navigator.serviceWorker.controller !== null'), 'the files');
  assert.equal((await evaluate(keptModels)).length, 1);
  await server.close();
  await page.goto(`${server.url}?visit=2`);
  await waitForPage(() => evaluate(isReady), 'the model without a network');
});

test('Firefox has the page offline, too', {
  skip: locate('firefox').skip,
}, async () => {
  const server = await serve({ root: site });
  const firefox = await launchFirefox();
  /** Visits the site in a new page each time, because reloading an isolated page confuses the driver. */
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
