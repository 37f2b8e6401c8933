// The chat page is killed at random moments while a model downloads and a question is typed: by a reload, a crash, a lost network,
// a server that disconnects or rejects requests, a full disk. No input is lost, and no stored byte is downloaded twice. In
// Chromium, with the package's engine and store. `make soak` kills the page 200 times; a normal test run, a twentieth as often.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { launchProfile, PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { locate, root } from '../support/locate.mjs';
import { serveModel, TAIL_BYTES } from '../support/model_server.mjs';
import { untilTrue, waitForPage } from '../support/package.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const { skip } = locate('chromium');
const { url: siteUrl } = useChat('chat-download-kills');
const small = readFileSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'));
/** The bytes after the weights are not read. */
const CHUNKS = 12;
const model = Buffer.concat([small, Buffer.alloc(CHUNKS * CHUNK_BYTES - small.length - 4321)]);

/** @typedef {import('playwright-core').Page} Page */

/** Returns the number of stored bytes of models, and whether a model is complete. @param {Page} page */
const stored = (page) =>
  page.evaluate(async () => {
    const entry = '/wick-llm/models.js';
    /** @type {typeof import('../../js/models.js')} */
    const { openModels } = await import(entry);
    const store = await openModels();
    const entries = await store.list();
    await store.close();
    const [one] = entries.filter(({ name }) => name === 'slow.gguf');
    return { bytes: one?.storedBytes ?? 0, isWhole: one?.isWhole ?? false };
  });

/** @param {Page} page */
const crash = (page) =>
  Promise.race([
    page.waitForEvent('crash'),
    page.goto('chrome://crash').catch(() => new Promise(() => {})),
  ]);

/** Waits for the model. A page that crashed while it was loading offers the model instead of loading it automatically. @param {Page} page */
async function untilLoaded(page) {
  const isLoaded = "document.getElementById('model-name').textContent === 'slow.gguf'";
  await untilTrue(page, `${isLoaded} || !document.getElementById('retry-loading').hidden`);
  const offer = page.locator('#retry-loading');
  if (await offer.isVisible()) await offer.click();
  await untilTrue(page, isLoaded);
}

test('killed while a model downloads: input is kept, and no stored part is fetched again', {
  skip,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'wick-kills-'));
  const context = await launchProfile(folder);
  context.setDefaultTimeout(PATIENCE_MS);
  const server = await serveModel(model);
  t.after(async () => {
    await context.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const { state } = server;
  state.paceMs = 60;
  const address = `${server.url.replace(/\/[^/]*$/, '')}/slow.gguf`;
  const url = `${siteUrl()}?model=${encodeURIComponent(address)}`;
  const random = randomOf(soakSeed + 3);
  const pause = () => new Promise((settle) => setTimeout(settle, random() * 700));
  const { origin } = new URL(siteUrl());
  const devtools = await context.newCDPSession(context.pages()[0]);
  /** @param {number} [quotaSize] undefined: no limit */
  const setQuota = (quotaSize) =>
    devtools.send('Storage.overrideQuotaForOrigin', {
      origin,
      ...(quotaSize && { quotaSize }),
    });

  const open = async () => {
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForSelector('#send:not([disabled])');
    return page;
  };
  let page = await open();

  /** Each interrupts the current work; the page is reopened afterwards. @type {Record<string, () => Promise<unknown>>} */
  const kills = {
    reload: () => page.reload({ waitUntil: 'commit' }),
    close: () => page.close(),
    crash: async () => {
      await crash(page);
      await page.close();
    },
    offline: async () => {
      await context.setOffline(true);
      await pause();
      await context.setOffline(false);
      await page.close();
    },
    cut: async () => {
      const cut = Math.floor(random() * 2 * CHUNK_BYTES);
      let faults = 1 + Math.floor(random() * 3);
      state.fault = () => (faults-- > 0 ? (random() < 0.5 ? { cut } : { status: 503 }) : undefined);
      await page.reload({ waitUntil: 'commit' });
      await pause();
      await page.close();
      state.fault = () => undefined;
    },
    full: async () => {
      await setQuota(1e6);
      await pause();
      await page.close();
      await setQuota();
    },
  };

  const kinds = Object.keys(kills);
  const rounds = soakCount(200);
  let wholes = 0;
  for (let round = 0; round < rounds; round++) {
    const text = `Draft ${round} of ${soakSeed}`;
    await page.fill('#prompt', text);
    await pause();
    const kind = kinds[round < kinds.length ? round : Math.floor(random() * kinds.length)];
    const what = `seed ${soakSeed}, round ${round}, ${kind}`;
    const before = await stored(page);
    state.starts.length = 0;
    await kills[kind]();
    if (kind !== 'reload') page = await open();
    else await page.waitForSelector('#send:not([disabled])');
    await untilTrue(page, `document.getElementById('prompt').value === ${JSON.stringify(text)}`);
    const after = await stored(page);
    assert.ok(after.bytes >= before.bytes, `${what}: ${after.bytes} of ${before.bytes} are left`);
    for (const start of state.starts)
      assert.ok(
        start >= before.bytes - TAIL_BYTES,
        `${what}: requested from byte ${start}, but ${before.bytes} bytes are stored`,
      );
    if (!after.isWhole) continue;
    // the model is complete, so the next one begins
    wholes++;
    await untilLoaded(page);
    await page.click('#choose-model');
    const line = page.locator('#kept-models li', { hasText: 'slow.gguf' });
    await line.getByRole('button', { name: 'Verify' }).click();
    await line.getByText('undamaged').waitFor();
    await line.getByRole('button', { name: 'Delete' }).click();
    await line.getByText('Really?').click();
    await waitForPage(async () => (await stored(page)).bytes === 0, 'it is deleted');
    await page.close();
    page = await open();
  }
  t.diagnostic(`${rounds} kills, ${wholes} models became whole meanwhile`);
});
