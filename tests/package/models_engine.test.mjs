// createEngine and the model store: a model is stored as it arrives, and read from the store the next time.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { startHub } from '../support/fake_hub.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { serveModel, sha256Of } from '../support/model_server.mjs';
import {
  assertSpeaks,
  createEngine,
  dist,
  hasCode,
  modelPath,
  openEngine,
  waitUntil,
} from '../support/package.mjs';

/** @typedef {import('node:test').TestContext} TestContext */

const folder = mkdtempSync(join(tmpdir(), 'wick-models-engine-'));
process.env.XDG_CACHE_HOME = folder;
after(() => rmSync(folder, { recursive: true, force: true }));
const model = readFileSync(modelPath);

/** @type {typeof import('../../js/models.js')} */
const { openModels } = await import(pathToFileURL(join(dist, 'models.js')).href);
const store = await openModels();

/** @param {TestContext} t @param {import('../../js/index.js').EngineSettings & {model: string}} options */
async function openNamed(t, options) {
  const engine = await createEngine({ threads: 1, ...options });
  t.after(() => engine.close());
  return engine;
}

/** Stores a model that an earlier version considered complete. @param {string} url @param {Buffer} bytes */
async function putOld(url, bytes) {
  const blank = Buffer.concat([bytes.subarray(0, 4), Buffer.alloc(bytes.length - 4)]);
  const { id } = await store.import(new Blob([blank]), { url });
  const record = join(folder, 'wick-llm/models', id, 'record.json');
  const sums = [sha256Of(bytes).slice(0, 32)];
  const old = { ...JSON.parse(readFileSync(record, 'utf8')), sums, sha256: null };
  writeFileSync(record, JSON.stringify(old));
  writeFileSync(join(folder, 'wick-llm/models', id, 'model.gguf'), bytes);
}

/** @param {TestContext} t */
async function begin(t) {
  const server = await serveModel(model);
  t.after(() => server.close());
  return server;
}

describe('in Node', () => {
  test('a model is stored while it downloads, and afterwards no server is asked', async (t) => {
    const { url, state } = await begin(t);
    const first = await openEngine(t, { url, cache: true });
    await assertSpeaks(first);
    await waitUntil(() => store.has(url), 'the rest of the model');
    assert.deepEqual(state.starts, [0]);
    for (const cache of /** @type {const} */ ([true, 'only'])) {
      const again = await openEngine(t, { url, cache });
      await assertSpeaks(again);
    }
    assert.deepEqual(state.starts, [0]);
    assert.ok((await store.info(url))?.isWhole);
  });

  test('a model is stored completely even if its engine is closed right after loading', async (t) => {
    for (let round = 0; round < 3; round++) {
      const { url, state } = await begin(t);
      await store.clear(); // other tests store the same content
      const first = await createEngine({ url, cache: true, threads: 1 });
      await first.close();
      const again = await openEngine(t, { url, cache: 'only' });
      await assertSpeaks(again);
      assert.deepEqual(state.starts, [0]);
    }
  });

  test('no model is stored by default or with cache: false', async (t) => {
    const { url, state } = await begin(t);
    for (const options of [{}, { cache: false }]) {
      await assertSpeaks(await openEngine(t, { url, ...options }));
    }
    assert.equal(state.starts.length, 2);
    assert.equal(await store.info(url), undefined);
  });

  test("cache: 'only' asks no server, and other values are rejected", async (t) => {
    const { url, state } = await begin(t);
    await assert.rejects(createEngine({ url, cache: 'only' }), hasCode('NOT_FOUND'));
    const wrong = createEngine({ url, cache: /** @type {any} */ ('yes') });
    await assert.rejects(wrong, hasCode('ARG'));
    assert.deepEqual(state.starts, []);
  });

  test('the caller’s fetch function is used if the model is to be stored', async (t) => {
    const { url, state } = await begin(t);
    let calls = 0;
    /** @type {typeof fetch} */
    const own = (...given) => {
      calls++;
      return fetch(...given);
    };
    await openEngine(t, { url, cache: true, fetch: own, headers: { 'X-Own': 'a' } });
    assert.equal(calls, 1);
    assert.equal(state.headers[0]['x-own'], 'a');
  });

  test('a connection that breaks is resumed, and this is reported to the caller', async (t) => {
    const { url, state } = await begin(t);
    state.fault = (start) => (start === 0 ? { cut: 1_000_000 } : undefined);
    /** @type {string[]} */
    const phases = [];
    const engine = await openEngine(t, {
      url,
      cache: true,
      onProgress: ({ phase }) => phases.push(phase),
    });
    await assertSpeaks(engine);
    assert.ok(phases.includes('retrying'), String(phases));
    assert.equal(state.starts.length, 2);
  });

  test('a download that ended early is completed by the next load', async (t) => {
    const { url, state } = await begin(t);
    state.fault = () => ({ text: model.subarray(0, model.length >> 1) });
    await assert.rejects(createEngine({ url, cache: true, threads: 1 }), hasCode('TRUNCATED'));
    state.fault = () => undefined;
    for (let visit = 0; visit < 2; visit++) {
      await (await createEngine({ url, cache: true, threads: 1 })).close();
      await waitUntil(() => store.has(url), 'the whole model');
    }
    assert.equal(state.starts.length, 2);
  });

  test('a cached model that the engine rejects is downloaded again', async (t) => {
    const { url, state, change } = await begin(t);
    const own = Buffer.concat([model, Buffer.alloc(64)]); // content that no other test uses
    const wrong = Buffer.from(own);
    wrong.writeUInt32LE(2 ** 31, 16); // number of metadata entries
    for (const bytes of [wrong, own.subarray(0, 4000)]) {
      await store.delete(url);
      change(bytes);
      await store.import(new Blob([bytes]), { url }).catch(() => putOld(url, bytes));
      change(own);
      const isRefused = (/** @type {any} */ { code }) => ['FORMAT', 'TRUNCATED'].includes(code);
      await assert.rejects(createEngine({ url, cache: true, threads: 1 }), isRefused);
      state.starts.length = 0;
      await (await createEngine({ url, cache: true, threads: 1 })).close();
      assert.deepEqual(state.starts, [0]);
      await waitUntil(() => store.has(url), 'the whole model');
    }
  });

  test('the damaged part of a cached model is fetched again', async (t) => {
    const { url, state } = await begin(t);
    const { id } = await store.get(url);
    state.starts.length = 0;
    const damaged = Buffer.from(model);
    damaged.fill(255, 16, 24);
    writeFileSync(join(folder, 'wick-llm/models', id, 'model.gguf'), damaged);
    const loading = createEngine({ url, cache: true, threads: 1 });
    await assert.rejects(loading, (/** @type {any} */ { code }) => /FORMAT|TRUNC/.test(code));
    await (await createEngine({ url, cache: true, threads: 1 })).close();
    assert.deepEqual(state.starts, [0]);
  });

  test('errors equal those of a load without the store', async (t) => {
    const { url, state } = await begin(t);
    for (const [fault, code] of /** @type {const} */ ([
      [{ status: 404 }, 'HTTP'],
      [{ page: true }, 'NOT_GGUF'],
      [{ text: `version https://git-lfs.github.com/spec/v1\n` }, 'NOT_GGUF'],
    ])) {
      state.fault = () => fault;
      await assert.rejects(createEngine({ url, cache: true, threads: 1 }), hasCode(code));
    }
    assert.equal(await store.info(url), undefined);
  });

  test('aborting a load ends the download', async (t) => {
    const { url, state } = await begin(t);
    state.fault = () => ({ cut: 1_000_000, stall: true });
    const stop = new AbortController();
    const loading = createEngine({
      url,
      cache: true,
      threads: 1,
      signal: stop.signal,
      onProgress: ({ loaded }) => loaded > 0 && stop.abort(),
    });
    await assert.rejects(loading, { name: 'AbortError' });
    state.fault = () => undefined;
    await assertSpeaks(await openEngine(t, { url, cache: true }));
  });

  test('a model that was imported for a URL is used for it', async (t) => {
    const { url, state } = await begin(t);
    await store.import(modelPath, { url });
    await assertSpeaks(await openEngine(t, { url, cache: true }));
    assert.deepEqual(state.starts, []);
  });
});

describe('a model given by name', () => {
  /** @param {TestContext} t */
  async function beginHub(t) {
    const hub = await startHub({ 'maker/tiny': { 'tiny-Q8_0.gguf': model } });
    t.after(() => hub.close());
    await store.clear(); // other tests store the same content
    return { hub: { endpoint: hub.url }, state: hub.state };
  }

  test('a model is found on the hub and stored', async (t) => {
    const { hub, state } = await beginHub(t);
    const name = 'maker/tiny:Q8_0';
    await assert.rejects(createEngine({ model: name, hub, cache: 'only' }), hasCode('NOT_FOUND'));
    assert.deepEqual(state.asked, []);
    await assertSpeaks(await openNamed(t, { model: name, hub }));
    await waitUntil(() => store.has(name), 'the rest of the model');
    const asked = state.asked.length;
    await assertSpeaks(await openNamed(t, { model: `hf:${name}`, hub }));
    const { fingerprint, id } = /** @type {any} */ (await store.info(name));
    await assertSpeaks(await openNamed(t, { model: fingerprint, cache: 'only' }));
    await assertSpeaks(await openNamed(t, { model: id }));
    assert.equal(state.asked.length, asked);
    assert.deepEqual(state.starts, [0]);
  });

  test('is loaded without the store, by the worker or with the caller’s fetch function', async (t) => {
    const { hub, state } = await beginHub(t);
    await store.clear();
    for (const fetch of [undefined, globalThis.fetch]) {
      const options = { model: 'hf:maker/tiny/tiny-Q8_0.gguf', hub, fetch, cache: false };
      await assertSpeaks(await openNamed(t, options));
    }
    assert.equal(state.starts.length, 2);
    assert.equal(await store.has('hf:maker/tiny/tiny-Q8_0.gguf'), false);
  });

  test('an invalid model option is rejected', async () => {
    const any = (/** @type {object} */ options) => createEngine(/** @type {any} */ (options));
    for (const [options, code] of /** @type {[object, string][]} */ ([
      [{ model: 7 }, 'ARG'],
      [{ model: 'a/b:c', url: 'x.gguf' }, 'ARG'],
      [{ model: 'a/b:c', hub: { tokens: 'x' } }, 'ARG'],
      [{ model: 'nothing' }, 'NOT_FOUND'],
      [{ model: 'nothing', cache: false }, 'NOT_FOUND'],
      [{ model: 'a/b:c', hub: { endpoint: 'http://127.0.0.1:9' } }, 'NETWORK'],
    ])) {
      await assert.rejects(any({ threads: 1, ...options }), hasCode(code));
    }
  });
});

// ---- browsers, one visit each ----

/** @type {string[]} */
const requests = [];
/** @type {Awaited<ReturnType<typeof serve>>} */
let site;
before(async () => {
  const folders = {
    '/': join(root, 'tests/support/empty_page'),
    '/wick-llm/': dist,
    '/wick-llm/models/': join(root, 'examples/models'),
  };
  site = await serve({ root: folders, onRequest: (path) => requests.push(path) });
});
after(() => site.close());

const visitScript = `
  const { createEngine } = await import('/wick-llm/index.js');
  const { openModels } = await import('/wick-llm/models.js');
  const url = '/wick-llm/models/wick-2.6m-q8_0.gguf';
  const engine = await createEngine({ url, threads: 1 });
  const text = await engine.generate('Hello', { temperature: 0, maxTokens: 8 }).text();
  const store = await openModels();
  while (!(await store.has(url))) await new Promise((settle) => setTimeout(settle, 20));
  await engine.close();
  // several engines read the stored model at the same time
  const both = await Promise.all([1, 2].map(async () => {
    const only = await createEngine({ url, threads: 1, cache: 'only' });
    const again = await only.generate('Hello', { temperature: 0, maxTokens: 8 }).text();
    await only.close();
    return again;
  }));
  return [text, ...both];`;

/** @param {(script: string) => Promise<any>} visit */
async function keepsByDefault(visit) {
  const isModel = (/** @type {string} */ path) => path.endsWith('.gguf');
  requests.length = 0;
  const [text, ...both] = await visit(visitScript);
  assert.ok(text.length > 0);
  assert.deepEqual(both, [text, text]);
  assert.equal(requests.filter(isModel).length, 1);
  assert.deepEqual(await visit(visitScript), [text, text, text]);
  assert.equal(requests.filter(isModel).length, 1);
}

/** @param {{newPage: () => Promise<any>}} browser */
const visitsIn = (browser) => async (/** @type {string} */ script) => {
  const page = await browser.newPage();
  try {
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(site.url);
    return await page.evaluate(`(async () => { ${script} })()`);
  } finally {
    await page.close();
  }
};

test('Chromium stores loaded models', { skip: locate('chromium').skip }, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  await keepsByDefault(visitsIn(await browser.newContext()));
});

/** Features that the store needs and a page may lack, each with a script that removes it. */
const lacks = {
  locks: `LockManager.prototype.request = async () => {
    throw new DOMException('Access to the Locks API is denied in this context.', 'SecurityError');
  }`,
  files: `StorageManager.prototype.getDirectory = async () => {
    throw new DOMException('Storage is denied in this context.', 'SecurityError');
  }`,
  storage: `delete FileSystemFileHandle.prototype.createWritable;
    Object.defineProperty(globalThis, 'indexedDB', { value: undefined });`,
  room: `FileSystemWritableFileStream.prototype.write = async () => {
    throw new DOMException('There is no room.', 'QuotaExceededError');
  }`,
};

test('a page that cannot store a model still loads it', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  for (const [what, script] of Object.entries(lacks)) {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.addInitScript(script);
    /** @type {string[]} */
    const warnings = [];
    page.on('console', (message) => warnings.push(message.text()));
    await page.goto(site.url);
    const text = await page.evaluate(`(async () => {
      const { createEngine } = await import('/wick-llm/index.js');
      const url = '/wick-llm/models/wick-2.6m-q8_0.gguf';
      const engine = await createEngine({ url, threads: 1 });
      return engine.generate('Hello', { temperature: 0, maxTokens: 8 }).text();
    })()`);
    assert.ok(String(text).length > 0, what);
    const reports = warnings.filter((one) => one.includes('the model is not cached'));
    // a model with one chunk may have loaded before storing the chunk fails
    assert.ok(
      reports.length === 1 || (what === 'room' && reports.length === 0),
      `${what}: ${warnings}`,
    );
  }
});

test('foreign messages in the store’s channel are ignored', {
  skip: locate('chromium').skip || !isFull,
}, async (t) => {
  const browser = await launchChromium();
  t.after(() => browser.close());
  const failures = await visitsIn(await browser.newContext())(`
    const failures = [];
    addEventListener('error', ({ message }) => failures.push(message));
    const { openModels } = await import('/wick-llm/models.js');
    const store = await openModels();
    const stranger = new BroadcastChannel('wick-llm models');
    for (const message of [null, undefined, 7, {}, { type: 'kept' }, { type: 'x', detail: {} }]) {
      stranger.postMessage(message);
    }
    const heard = new Promise((settle) => store.addEventListener('kept', settle));
    stranger.postMessage({ type: 'kept', detail: { id: 'a' } });
    await heard;
    return failures;`);
  assert.deepEqual(failures, []);
});

test('Firefox stores loaded models', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await keepsByDefault(visitsIn(firefox));
});

test('WebKitGTK stores loaded models', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await keepsByDefault(async (script) => {
    await page.goto(site.url);
    return page.evaluate(script);
  });
});
