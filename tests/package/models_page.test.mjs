// The model store in browsers: the origin private file system in Chromium and Firefox; IndexedDB in WebKitGTK, or if files
// cannot be written. Each browser stores a model, finds it on its next visit, and detects damage.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { serve } from '../../tools/serve.mjs';
import {
  launchChromium,
  launchFirefox,
  launchProfile,
  launchWebKit,
  PATIENCE_MS,
} from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { assertContinued, pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { dist, waitUntil } from '../support/package.mjs';

const SIZE = CHUNK_BYTES + 4321;
const model = pretendedModel(SIZE);
const folder = mkdtempSync(join(tmpdir(), 'wick-models-page-'));
/** @type {string[]} */
const requests = [];
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

before(async () => {
  writeFileSync(join(folder, 'model.gguf'), model);
  const folders = {
    '/': join(root, 'tests/support/empty_page'),
    '/wick-llm/': dist,
    '/js/': join(root, 'js'),
    '/models/': folder,
  };
  server = await serve({ root: folders, onRequest: (path) => requests.push(path) });
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** Shared by the pages: the store, and the checksum of a Blob. */
const begin = `
  const { openModels } = await import('/wick-llm/models.js');
  const store = await openModels();
  const url = '/models/model.gguf';
  const sumOf = async (blob) => {
    const found = await crypto.subtle.digest('SHA-256', await blob.arrayBuffer());
    return [...new Uint8Array(found)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  };`;

const firstVisit = `${begin}
  const events = [];
  for (const type of ['progress', 'kept']) store.addEventListener(type, () => events.push(type));
  const before = await store.list();
  const { isWhole, storedBytes } = await store.get(url);
  const sum = await sumOf(await store.blob(url));
  const { usedBytes } = await store.estimate();
  return { kind: store.kind, before, isWhole, storedBytes, events, sum, usedBytes };`;

const secondVisit = `${begin}
  const [entry] = await store.list();
  const { isWhole } = await store.get(url);
  const verified = await store.verify(url);
  const imported = await store.import(new File([await store.blob(url)], 'own.gguf'));
  const { length } = await store.list();
  return { name: entry.name, isWhole, verified, length, sha256: imported.sha256,
    sum: await sumOf(await store.blob(imported.fingerprint)) };`;

/** @param {string} damage one chunk, by \`id\` */
const damaged = (damage) => `${begin}
  const { id } = await store.info(url);
  ${damage}
  const found = await store.verify(url);
  const has = await store.has(url);
  await store.get(url);
  const sum = await sumOf(await store.blob(url));
  await store.delete(url);
  const left = await store.list();
  return { found, has, sum, left };`;

const damageFile = `
  const root = await navigator.storage.getDirectory();
  const models = await root.getDirectoryHandle('wick-llm-models');
  const file = await (await models.getDirectoryHandle(id)).getFileHandle('1');
  const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
  bytes[99] ^= 1;
  const writable = await file.createWritable();
  await writable.write(bytes);
  await writable.close();`;

const damageRecord = `
  await new Promise((settle, fail) => {
    const opening = indexedDB.open('wick-llm-models', 1);
    opening.onerror = fail;
    opening.onsuccess = () => {
      const chunks = opening.result.transaction('chunks', 'readwrite').objectStore('chunks');
      const reading = chunks.get([id, 1]);
      reading.onsuccess = () => {
        new Uint8Array(reading.result)[99] ^= 1;
        chunks.put(reading.result, [id, 1]).onsuccess = () => settle(opening.result.close());
      };
    };
  });`;

/**
 * @param {(script: string) => Promise<any>} visit runs a script in a new page of the same profile
 * @param {'opfs' | 'indexeddb'} kind
 */
async function keepsModels(visit, kind) {
  const sum = sha256Of(model);
  requests.length = 0;
  const first = await visit(firstVisit);
  assert.deepEqual(first, {
    kind,
    before: [],
    isWhole: true,
    storedBytes: SIZE,
    events: ['progress', 'progress', 'kept'],
    sum,
    usedBytes: SIZE,
  });
  const wanted = (/** @type {string} */ path) => path.startsWith('/models/');
  assert.equal(requests.filter(wanted).length, 1);
  assert.deepEqual(await visit(secondVisit), {
    name: 'model.gguf',
    isWhole: true,
    verified: { isWhole: true, damagedChunks: [] },
    length: 1,
    sha256: sum,
    sum,
  });
  assert.equal(requests.filter(wanted).length, 1);
  assert.deepEqual(await visit(damaged(kind === 'opfs' ? damageFile : damageRecord)), {
    found: { isWhole: false, damagedChunks: [1] },
    has: false,
    sum,
    left: [],
  });
  assert.equal(requests.filter(wanted).length, 2);
}

/**
 * @param {{newPage: () => Promise<any>}} browser
 * @param {(page: any) => Promise<unknown>} [prepare]
 */
const visitsIn = (browser, prepare) => async (/** @type {string} */ script) => {
  const page = await browser.newPage();
  try {
    page.setDefaultTimeout(PATIENCE_MS);
    await prepare?.(page);
    await page.goto(server.url);
    return await page.evaluate(`(async () => { ${script} })()`);
  } finally {
    await page.close();
  }
};

test('Chromium stores models in files', { skip: locate('chromium').skip }, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  await keepsModels(visitsIn(await browser.newContext()), 'opfs');
});

test('Chromium stores models in IndexedDB if a page cannot write files', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  // like Safari before 26
  const script = 'delete FileSystemFileHandle.prototype.createWritable';
  const prepare = (/** @type {any} */ page) => page.addInitScript(script);
  await keepsModels(visitsIn(await browser.newContext(), prepare), 'indexeddb');
});

/** Loads models by URL and by name without the store. */
const withoutStore = `
  const ask = async (work) => work().then(() => 'it continued', ({ code, message }) => code + ': ' + message);
  const { openModels } = await import('/wick-llm/models.js');
  const { createEngine } = await import('/wick-llm/index.js');
  const hub = { endpoint: location.origin };
  return {
    opened: await ask(openModels),
    address: await ask(() => createEngine({ url: location.origin + '/models/model.gguf' })),
    named: await ask(() => createEngine({ model: 'hf:owner/repo/model.gguf', hub })),
    only: await ask(() => createEngine({ model: 'model.gguf', cache: 'only' })),
  };`;

/** Shortens timeouts of 30 seconds to 100 ms. */
const soon = `
    const later = setTimeout;
    globalThis.setTimeout = (run, ms, ...rest) => later(run, ms === 30_000 ? 100 : ms, ...rest);`;

test('if IndexedDB never responds, this is reported, and models load without being stored', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  const script = `
    delete FileSystemFileHandle.prototype.createWritable;
    IDBFactory.prototype.open = () => ({});
    ${soon}`;
  const prepare = (/** @type {any} */ page) => page.addInitScript(script);
  const visit = visitsIn(await browser.newContext(), prepare);
  const { opened, address, named, only } = await visit(withoutStore);
  const late = /^NO_STORAGE: .*: IndexedDB did not respond within 30 seconds$/;
  assert.match(opened, late);
  assert.match(only, late);
  assert.match(address, /^(?!NO_STORAGE)/);
  assert.match(named, /^(?!NO_STORAGE)/);
});

test('if the origin private file system never responds, the store times out with an error', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  const script = `
    StorageManager.prototype.getDirectory = () => new Promise(() => {});
    ${soon}`;
  const prepare = (/** @type {any} */ page) => page.addInitScript(script);
  const visit = visitsIn(await browser.newContext(), prepare);
  const { opened, only } = await visit(withoutStore);
  const late = /^NO_STORAGE: .*: The origin private file system did not respond within 30 seconds$/;
  assert.match(opened, late);
  assert.match(only, late);
});

test('Firefox stores models in files', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await keepsModels(visitsIn(firefox), 'opfs');
});

/** Writes a record repeatedly and reads it at the same time; counts how often it was missing. */
const readsBesideWrites = `
  const { OpfsBackend } = await import('/js/models/opfs_backend.js');
  const { newRecord } = await import('/js/models/records.js');
  const [writer, reader] = [new OpfsBackend(), new OpfsBackend()];
  const record = newRecord('beside', 'http://localhost/beside.gguf', {});
  await writer.writeRecord(record);
  let [isOver, missing, looks] = [false, 0, 0];
  const look = async () => {
    for (; !isOver; looks++) if (!(await reader.readRecord('beside'))) missing++;
  };
  const looking = [look(), look(), look()];
  for (let count = 0; count < 60; count++) await writer.writeRecord({ ...record, usedMs: count });
  isOver = true;
  await Promise.all(looking);
  return { missing, isMany: looks > 60, last: (await reader.readRecord('beside')).usedMs };`;

/** @param {any} browser */
async function readsWhileItIsWritten(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  const counts = await page.evaluate(`(async () => { ${readsBesideWrites} })()`);
  assert.deepEqual(counts, { missing: 0, isMany: true, last: 59 });
}

test('Chromium: a record that another tab replaces always exists', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  await readsWhileItIsWritten(await browser.newContext());
});

test('Firefox: a record that another tab replaces always exists', {
  skip: locate('firefox').skip,
}, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await readsWhileItIsWritten(firefox);
});

/**
 * Two tabs request one model, and the tab that downloads it is closed during the download.
 * @param {import('node:test').TestContext} t
 * @param {{newPage: () => Promise<any>}} browser
 */
async function sharesDownload(t, browser) {
  const remote = await serveModel(pretendedModel(3 * CHUNK_BYTES));
  t.after(() => remote.close());
  const { state } = remote;
  state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
  /** @type {any[]} */
  const tabs = [];
  for (let count = 0; count < 2; count++) {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await page.evaluate(`(async () => {
      const { openModels } = await import('/wick-llm/models.js');
      globalThis.store = await openModels();
      globalThis.heard = 0;
      store.addEventListener('progress', () => heard++);
      globalThis.getting = store.get('${remote.url}');
      getting.catch((error) => { globalThis.failure = String(error); });
    })()`);
    await waitUntil(
      () => page.evaluate('heard > 0 || store.list().then(([one]) => one?.storedBytes > 0)'),
      'a chunk',
    );
    tabs.push(page);
  }
  assert.equal(await tabs[1].evaluate('globalThis.failure'), undefined);
  assert.deepEqual(state.starts, [0]);
  await tabs[0].close();
  const entry = await tabs[1].evaluate(
    'getting.then(({ isWhole, storedBytes }) => ({ isWhole, storedBytes }))',
  );
  assert.deepEqual(entry, { isWhole: true, storedBytes: 3 * CHUNK_BYTES });
  assertContinued(state.starts, CHUNK_BYTES);
  assert.deepEqual(await tabs[1].evaluate(`store.verify('${remote.url}')`), {
    isWhole: true,
    damagedChunks: [],
  });
  await tabs[1].close();
}

test('two tabs of Chromium fetch a model once, and one continues for the other', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  await sharesDownload(t, await browser.newContext());
});

test('a tab that follows a download in another tab reports progress and size before a chunk is stored', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  const remote = await serveModel(pretendedModel(2 * CHUNK_BYTES));
  t.after(() => Promise.all([browser.close(), remote.close()]));
  remote.state.holdAt = CHUNK_BYTES / 2;
  let answer = () => {};
  const listened = new Promise((settle) => {
    answer = () => settle(undefined);
  });
  remote.state.before = () => listened;
  const context = await browser.newContext();
  const tabs = await Promise.all([context.newPage(), context.newPage()]);
  for (const page of tabs) {
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await page.evaluate(`(async () => {
      const { openModels } = await import('/wick-llm/models.js');
      globalThis.store = await openModels();
      const onProgress = (progress) => {
        if (progress.received > 0) globalThis.firstReport ??= progress; // the size may be reported first
      };
      store.get('${remote.url}', { onProgress }).catch(() => {});
    })()`);
  }
  answer();
  await waitUntil(() => tabs[1].evaluate('globalThis.firstReport !== undefined'), 'progress');
  const { loaded, received, total } = await tabs[1].evaluate('firstReport');
  assert.deepEqual({ loaded, total }, { loaded: 0, total: 2 * CHUNK_BYTES });
  assert.ok(received > 0 && received < CHUNK_BYTES, `${received}`);
  assert.equal(remote.state.starts.length, 1);
});

test('a download resumes after Chromium has crashed', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const remote = await serveModel(pretendedModel(3 * CHUNK_BYTES));
  const profile = mkdtempSync(join(tmpdir(), 'wick-models-crash-'));
  let close = async () => {};
  t.after(async () => {
    await Promise.all([remote.close(), close()]); // before the profile is removed
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const { state } = remote;
  state.fault = (start) => (start === 0 ? { cut: 2 * CHUNK_BYTES + 5, stall: true } : undefined);
  const open = async () => {
    const browser = await launchProfile(profile);
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await page.evaluate(`(async () => {
      const { openModels } = await import('/wick-llm/models.js');
      globalThis.store = await openModels();
    })()`);
    return { browser, page };
  };
  const first = await open();
  await first.page.evaluate(`void store.get('${remote.url}').catch(() => {})`);
  const stored = 'store.list().then(([one]) => one?.storedBytes)';
  await waitUntil(
    async () => (await first.page.evaluate(stored)) === 2 * CHUNK_BYTES,
    'two chunks',
  );
  const closed = new Promise((settle) => first.browser.once('close', settle));
  const session = await first.browser.newCDPSession(first.page);
  session.send('Browser.crash').catch(() => {}); // no tab responds after this
  await closed;

  const second = await open();
  close = () => second.browser.close();
  assert.equal(await second.page.evaluate(stored), 2 * CHUNK_BYTES);
  const isWhole = `store.get('${remote.url}').then(({ isWhole }) => isWhole)`;
  assert.equal(await second.page.evaluate(isWhole), true);
  assertContinued(state.starts, 2 * CHUNK_BYTES);
  assert.deepEqual(await second.page.evaluate(`store.verify('${remote.url}')`), {
    isWhole: true,
    damagedChunks: [],
  });
});

test('two tabs of Firefox fetch a model once, and one continues for the other', {
  skip: locate('firefox').skip,
}, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await sharesDownload(t, firefox);
});

test('WebKitGTK stores models in IndexedDB', {
  skip: locate('webkitDriver').skip,
}, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  const visit = async (/** @type {string} */ script) => {
    await page.goto(server.url);
    return page.evaluate(script);
  };
  await keepsModels(visit, 'indexeddb');
});
