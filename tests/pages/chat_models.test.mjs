// The chat page's models: downloads that continue in the background, pause and resume after a reload without downloading any
// stored byte again; a dropped file that is kept for the next visit; the list of stored models. In Chromium, with the package's
// engine and store.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { isFull } from '../support/level.mjs';
import { root } from '../support/locate.mjs';
import { assertContinued, serveModel } from '../support/model_server.mjs';
import { untilTrue, waitForPage } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, browser, url: siteUrl } = useChat('chat-models');
const small = readFileSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'));
/** Four chunks in the store; the bytes after the weights are not read. */
const large = Buffer.concat([small, Buffer.alloc(3 * CHUNK_BYTES)]);

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t */
async function newContext(t) {
  const context = await browser().newContext({ viewport: { width: 1100, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  return {
    /** @param {string} [address] @param {string} [script] */
    open: async (address = siteUrl(), script = '') => {
      const page = await context.newPage();
      page.on('pageerror', (error) => problems.push(error.message));
      await page.addInitScript(script);
      await page.goto(address);
      return page;
    },
  };
}

/** Serves a model whose download stops after two chunks and a megabyte, until `state.holdAt` is set to Infinity. @param {import('node:test').TestContext} t */
async function slowModel(t) {
  const model = await serveModel(large);
  t.after(() => model.close());
  model.state.holdAt = 2 * CHUNK_BYTES + 1e6;
  const address = `${model.url.replace(/\/[^/]*$/, '')}/slow.gguf`;
  return { state: model.state, address, url: `${siteUrl()}?model=${encodeURIComponent(address)}` };
}

/** @param {Page} page @param {string} name */
const untilModel = (page, name) =>
  untilTrue(
    page,
    `document.getElementById('model-name').textContent === ${JSON.stringify(name)} && !document.getElementById('send').disabled`,
  );

/** @param {Page} page @param {string} [text] */
async function ask(page, text = 'What is Wick?') {
  const count = await page.locator('.message.assistant footer').count();
  await page.fill('#prompt', text);
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').nth(count).waitFor();
}

/** Returns the number of stored bytes of models. @param {Page} page */
const storedBytes = (page) =>
  page.evaluate(async () => {
    const entry = '/wick-llm/models.js';
    /** @type {typeof import('../../js/models.js')} */
    const { openModels } = await import(entry);
    const store = await openModels();
    const { usedBytes } = await store.estimate();
    await store.close();
    return usedBytes;
  });

test('the previous model stays in use during a download; a paused download resumes after a reload, and fetches nothing twice', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const { state, url } = await slowModel(t);
  const page = await open(url);
  await untilModel(page, 'Wick 4.2M');
  await ask(page);
  await waitForPage(async () => (await storedBytes(page)) >= CHUNK_BYTES, 'a chunk');
  await page.click('#cancel-loading');
  await page.locator('#loading').waitFor({ state: 'hidden' });
  assert.equal(await page.isHidden('#problem'), true);
  const stored = await storedBytes(page);
  assert.ok(stored >= CHUNK_BYTES && stored < large.length, `${stored}`);
  await page.goto(siteUrl());
  await untilModel(page, 'Wick 4.2M');
  await page.click('#choose-model');
  await page.getByRole('button', { name: 'Resume: slow.gguf' }).waitFor();
  assert.equal(state.starts.length, 1, 'a paused download stays paused');
  await takePicture(page, 'models-paused');
  state.holdAt = Infinity;
  await page.getByRole('button', { name: 'Resume: slow.gguf' }).click();
  await page.getByRole('button', { name: 'Use: slow.gguf', exact: true }).click();
  await untilModel(page, 'slow.gguf');
  await ask(page);
  assertContinued(state.starts, stored);
});

test('a download that was not paused continues after a reload, and its model is used when it is complete', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const { state, url } = await slowModel(t);
  const page = await open(url);
  await waitForPage(async () => (await storedBytes(page)) >= CHUNK_BYTES, 'a chunk');
  await page.goto(siteUrl());
  state.holdAt = Infinity;
  await untilModel(page, 'Wick 4.2M');
  await untilModel(page, 'slow.gguf');
  assert.ok(state.starts[1] >= CHUNK_BYTES, `${state.starts}`);
  assertContinued(state.starts, state.starts[1]);
});

test('a background download does not change the page, and reports when it is complete', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const { state, url } = await slowModel(t);
  const page = await open(url);
  await untilModel(page, 'Wick 4.2M');
  await page.click('#hide-loading');
  await page.locator('#loading').waitFor({ state: 'hidden' });
  await ask(page);
  state.holdAt = Infinity;
  await page.locator('#notice-text', { hasText: 'slow.gguf has been downloaded.' }).waitFor();
  assert.equal(await page.innerText('#model-name'), 'Wick 4.2M');
  await page.click('#undo');
  await untilModel(page, 'slow.gguf');
  assert.equal(state.starts.length, 1);
});

/** @param {Page} page @param {string} name */
const drop = (page, name) =>
  page.evaluate(
    async ([text, file]) => {
      const data = new DataTransfer();
      const body = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      data.items.add(new File([body], file));
      dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
    },
    [small.toString('base64'), name],
  );

test('a dropped file is available at the next visit, with the text that it has read', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await untilModel(page, 'Wick 4.2M');
  await drop(page, 'mine.gguf');
  await untilModel(page, 'mine.gguf');
  await page.locator('#notice-text', { hasText: 'mine.gguf (1.6 MB) is saved' }).waitFor();
  await openDeveloper(page);
  await ask(page);
  await page.getByText('kept in this browser', { exact: false }).last().waitFor();
  await page.locator('[data-fact="Next visit"]', { hasText: 'kept' }).waitFor();
  await page.reload();
  await untilModel(page, 'mine.gguf');
  await openDeveloper(page);
  await page.locator('[data-fact="Last visit"]', { hasText: /^[1-9]\d* of/ }).waitFor();
  await page.click('#new-chat');
  await ask(page, 'And now?');
});

/** @param {Page} page @param {number} chunk */
const damage = (page, chunk) =>
  page.evaluate(async (name) => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(
      'wick-llm-models',
    );
    for await (const handle of /** @type {any} */ (folder).values()) {
      if (handle.kind !== 'directory') continue;
      const file = await handle.getFileHandle(name).catch(() => undefined);
      if (!file) continue;
      const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
      bytes[99] ^= 1;
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
    }
  }, String(chunk));

test('the model list: damage is found and repaired, a model is deleted after confirmation', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const { state, url } = await slowModel(t);
  state.holdAt = Infinity;
  const page = await open(url);
  await untilModel(page, 'slow.gguf');
  await page.click('#choose-model');
  const line = page.locator('#kept-models li', { hasText: 'slow.gguf' });
  await line.getByRole('button', { name: 'Verify' }).click();
  await line.getByText('undamaged').waitFor();
  await damage(page, 2);
  await line.getByRole('button', { name: 'Verify' }).click();
  await line.getByText('1 damaged part: Resume downloads them again').waitFor();
  await takePicture(page, 'models-damaged');
  await line.getByRole('button', { name: 'Resume' }).click();
  await line.getByRole('button', { name: 'Verify' }).click();
  await line.getByText('undamaged').waitFor();
  assertContinued(state.starts, 2 * CHUNK_BYTES);
  await line.getByRole('button', { name: 'Delete' }).click();
  await line.getByText('Really?').click();
  await page.locator('#kept-room', { hasText: 'None yet' }).waitFor();
  assert.equal(await storedBytes(page), 0);
});

test('without storage space, a model is loaded but not stored, and the page lists data to delete', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  writeFileSync(resolve(site, 'large.gguf'), large); // servers on other origins do not expose sizes
  const page = await open(
    `${siteUrl()}?model=large.gguf`,
    'StorageManager.prototype.estimate = async () => ({ usage: 0, quota: 5e6 });',
  );
  await untilModel(page, 'large.gguf');
  await page.locator('#room-text', { hasText: 'no room for large.gguf' }).waitFor();
  await ask(page);
  assert.equal(await storedBytes(page), 0);
});
