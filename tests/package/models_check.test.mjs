// Compares a stored model with its server: the server has the same version or a different one, cannot be reached, or does
// not report a version. Stored models do not change.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ModelStore } from '../../js/models/model_store.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { startHub } from '../support/fake_hub.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, serveModel } from '../support/model_server.mjs';

const model = pretendedModel(CHUNK_BYTES + 77);
const newer = pretendedModel(CHUNK_BYTES + 77, 2);
const longer = pretendedModel(CHUNK_BYTES + 78, 2);

/** @param {import('node:test').TestContext} t */
async function begin(t) {
  const server = await serveModel(model);
  t.after(() => server.close());
  const store = new ModelStore(new MemoryBackend(new MemoryDisk()));
  await store.get(server.url);
  return { ...server, store };
}

/** @param {ModelStore} store @param {string} url */
async function assertKept(store, url) {
  const blob = /** @type {Blob} */ (await store.blob(url));
  assert.ok(Buffer.from(await blob.arrayBuffer()).equals(model), 'the stored model was changed');
}

describe('a server', () => {
  test('has the same version, a different one, or one of a different size', async (t) => {
    const { store, url, change, state } = await begin(t);
    const { state: same, reason, entry } = await store.check(url);
    assert.deepEqual([same, reason, entry.isWhole], ['same', undefined, true]);
    assert.equal(state.headers.at(-1)?.range, 'bytes=0-0');
    change(newer);
    assert.equal((await store.check(url)).state, 'newer');
    assert.equal((await store.check(entry.id)).state, 'newer');
    change(longer);
    assert.equal((await store.check(url)).state, 'newer');
    change(model);
    assert.equal((await store.check(url)).state, 'same');
    await assertKept(store, url);
    // the page can then update to it at any time
    change(newer);
    await store.delete(url);
    await store.get(url);
    assert.equal((await store.check(url)).state, 'same');
  });

  test('cannot be reached: the model is used anyway', async (t) => {
    const { store, url, state, close } = await begin(t);
    for (const status of [404, 403, 500]) {
      state.fault = () => ({ status });
      const found = await store.check(url);
      assert.deepEqual([found.state, found.entry.isWhole], ['unknown', true]);
      assert.match(found.reason ?? '', new RegExp(`answered ${status}`));
    }
    await close();
    const found = await store.check(url);
    assert.equal(found.state, 'unknown');
    assert.ok(found.reason);
    const offline = /** @type {typeof fetch} */ (() => Promise.reject(new TypeError('offline')));
    assert.match((await store.check(url, { fetch: offline })).reason ?? '', /offline/);
    await assertKept(store, url);
  });

  test('does not report a version: the state is unknown', async (t) => {
    const { store, url } = await begin(t);
    const silent = /** @type {typeof fetch} */ (async () => new Response('G', { status: 200 }));
    const found = await store.check(url, { fetch: silent });
    assert.deepEqual(
      [found.state, found.reason],
      ['unknown', 'the server does not report a version'],
    );
    const wrong = /** @type {typeof fetch} */ (
      async () => new Response('G', { headers: { 'Content-Length': 'many', ETag: 'W/"weak"' } })
    );
    assert.equal((await store.check(url, { fetch: wrong })).state, 'unknown');
  });

  test('reports only the size, in a full or partial response', async (t) => {
    const { store, url } = await begin(t);
    const [own, others] = [String(model.length), String(model.length + 1)];
    /** @type {[number, Record<string, string>, string][]} */
    const cases = [
      [200, { 'Content-Length': own }, 'unknown'],
      [200, { 'Content-Length': others }, 'newer'],
      [200, { 'Content-Length': others, 'Content-Encoding': 'gzip' }, 'unknown'],
      [206, { 'Content-Length': '1', 'Content-Range': `bytes 0-0/${own}` }, 'unknown'],
      [206, { 'Content-Length': '1', 'Content-Range': `bytes 0-0/${others}` }, 'newer'],
      [206, { 'Content-Length': '1', 'Content-Range': 'bytes 0-0/*' }, 'unknown'],
      [206, { 'Content-Length': '1' }, 'unknown'],
    ];
    for (const [status, headers, state] of cases) {
      const fetch = /** @type {any} */ (async () => new Response('G', { status, headers }));
      assert.equal((await store.check(url, { fetch })).state, state, JSON.stringify(headers));
    }
  });

  test('is not asked about models that are not stored, and an abort rejects', async (t) => {
    const { store, url } = await begin(t);
    await assert.rejects(store.check('http://127.0.0.1:9/none.gguf'), { code: 'NOT_FOUND' });
    const stop = new AbortController();
    const slow = /** @type {typeof fetch} */ (
      (_, init) =>
        new Promise((_settle, fail) => {
          init?.signal?.addEventListener('abort', () => fail(init.signal?.reason));
          stop.abort();
        })
    );
    const asked = store.check(url, { fetch: slow, signal: stop.signal });
    await assert.rejects(asked, { name: 'AbortError' });
    await assert.rejects(store.check(url, { signal: stop.signal }), { name: 'AbortError' });
    for (const wrong of [{ fetch: 7 }, { headers: 7 }, { headers: { 'a b': 'c' } }]) {
      await assert.rejects(store.check(url, /** @type {any} */ (wrong)), { code: 'ARG' });
    }
    for (const nothing of [undefined, null]) {
      assert.equal((await store.check(url, /** @type {any} */ (nothing))).state, 'same');
    }
    for (const name of [undefined, null, 7, {}]) {
      await assert.rejects(store.check(/** @type {any} */ (name)), { code: 'ARG' });
    }
    const { id } = await store.import(new Blob([longer]), { name: 'own.gguf' });
    const { state, reason } = await store.check(id);
    assert.deepEqual([state, reason], ['unknown', 'its URL is not known']);
  });
});

test('the version on a hub is the SHA-256 in its listing', async (t) => {
  const hub = await startHub({ 'maker/tiny': { 'tiny-Q8_0.gguf': model } });
  t.after(() => hub.close());
  const store = new ModelStore(new MemoryBackend(new MemoryDisk()));
  const how = { hub: { endpoint: hub.url } };
  const name = 'hf:maker/tiny/tiny-Q8_0.gguf';
  await store.get(name, how);
  const { starts } = hub.state;
  const fetched = starts.length;
  assert.equal((await store.check(name, how)).state, 'same');
  hub.state.repositories = { 'maker/tiny': { 'tiny-Q8_0.gguf': newer } };
  assert.equal((await store.check(name, how)).state, 'newer');
  assert.equal(starts.length, fetched, 'no file is requested');
  hub.state.repositories = {};
  const gone = await store.check(name, how);
  assert.deepEqual([gone.state, gone.entry.isWhole], ['unknown', true]);
  await assertKept(store, name);
});
