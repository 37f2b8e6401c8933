// Unit tests of the IndexedDB backend for models, with fake-indexeddb: what it stores, and how it fails.
// tests/package/models_page.test.mjs tests browsers.

import 'fake-indexeddb/auto';
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { IDBFactory } from 'fake-indexeddb';
import { hasIndexedDb, IndexedDbBackend } from '../../js/models/indexed_db_backend.js';
import { CHUNK_BYTES, newRecord } from '../../js/models/records.js';

beforeEach(() => {
  globalThis.indexedDB = new IDBFactory();
});

/** @param {string} id */
const recordOf = (id, size = CHUNK_BYTES + 3) => newRecord(id, { name: `${id}.gguf`, size });

/** @param {any} found the replacement of a property while a test runs */
function replace(
  /** @type {import('node:test').TestContext} */ t,
  /** @type {any} */ on,
  /** @type {string} */ name,
  found,
) {
  const before = on[name];
  on[name] = found;
  t.after(() => {
    on[name] = before;
  });
}

describe('models in IndexedDB', () => {
  test('records and chunks are read back unchanged, each model separately', async () => {
    const backend = new IndexedDbBackend();
    assert.ok(hasIndexedDb());
    const [one, two] = [recordOf('one'), recordOf('two')];
    for (const record of [one, two]) await backend.writeRecord(record);
    assert.deepEqual(await backend.ids(), ['one', 'two']);
    assert.deepEqual(await backend.readRecord('two'), two);
    assert.equal(await backend.readRecord('three'), undefined);
    const part = new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 4);
    await backend.writeChunk('one', 1, part);
    assert.deepEqual(await backend.readChunk('one', 1, 3), new Uint8Array([1, 2, 3]));
    for (const [id, index, size] of /** @type {[string, number, number][]} */ ([
      ['one', 1, 5],
      ['one', 0, 3],
      ['two', 1, 3],
    ])) {
      assert.equal(await backend.readChunk(id, index, size), undefined);
    }
    assert.equal(await backend.hasChunks(one), false);
    await backend.writeChunk('one', 0, new Uint8Array(9));
    assert.equal(await backend.hasChunks(one), true);
    assert.equal(await backend.hasChunks(two), false);
    assert.equal(await backend.hasChunks({ ...two, size: null }), true);
    await backend.writeChunk('two', 0, new Uint8Array(2));
    await backend.remove('one');
    assert.deepEqual(await backend.ids(), ['two']);
    assert.equal(await backend.readChunk('one', 0, 9), undefined);
    assert.deepEqual(await backend.readChunk('two', 0, 2), new Uint8Array(2));
    await backend.close();
    assert.deepEqual(await backend.readRecord('two'), two, 'the database is opened again');
    await backend.close();
  });

  test('an aborted transaction reports its own error, or its request’s', async (t) => {
    const backend = new IndexedDbBackend();
    await backend.writeRecord(recordOf('kept'));
    const { put } = IDBObjectStore.prototype;
    /** @type {DOMException | undefined} */
    let reason = new DOMException('full', 'QuotaExceededError');
    /** @this {IDBObjectStore} @param {[any, IDBValidKey?]} args */
    function putAndAbort(...args) {
      const request = put.apply(this, args);
      this.transaction.abort();
      if (reason) Object.defineProperty(this.transaction, 'error', { value: reason });
      return request;
    }
    replace(t, IDBObjectStore.prototype, 'put', putAndAbort);
    await assert.rejects(backend.writeRecord(recordOf('x')), { code: 'STORAGE_FULL' });
    reason = undefined;
    await assert.rejects(backend.writeRecord(recordOf('x')), { code: 'IO', message: /AbortError/ });
    assert.deepEqual(await backend.ids(), ['kept']);
    await backend.close();
  });

  test('opening is retried after a failure', async (t) => {
    const backend = new IndexedDbBackend();
    const { open } = indexedDB;
    replace(t, indexedDB, 'open', () => {
      throw new DOMException('no origin', 'SecurityError');
    });
    const isRefused = { code: 'NO_STORAGE' };
    await assert.rejects(backend.ids(), isRefused);
    indexedDB.open = () => {
      const request = /** @type {any} */ ({ error: new DOMException('broken', 'UnknownError') });
      setTimeout(() => request.onerror());
      return request;
    };
    const again = new IndexedDbBackend();
    await assert.rejects(again.ids(), isRefused);
    indexedDB.open = open;
    assert.deepEqual(await again.ids(), []);
    await again.close();
  });

  /** @returns {any} the request of an open that the test completes */
  function holdOpen(/** @type {import('node:test').TestContext} */ t) {
    const request = /** @type {any} */ ({});
    replace(t, indexedDB, 'open', () => request);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    return request;
  }

  test('opening times out after 30 seconds; if the database opens later, it is used', async (t) => {
    const { open } = indexedDB;
    const request = holdOpen(t);
    const backend = new IndexedDbBackend();
    const asked = [backend.open(), backend.ids(), backend.readRecord('one')];
    const settled = Promise.allSettled(asked);
    let isSettled = false;
    settled.then(() => {
      isSettled = true;
    });
    t.mock.timers.tick(29_999);
    await new Promise(setImmediate);
    assert.equal(isSettled, false, 'a slow disk is waited for');
    t.mock.timers.tick(1);
    await settled;
    const late = { code: 'NO_STORAGE', message: /IndexedDB did not respond within 30 seconds$/ };
    for (const one of asked) await assert.rejects(one, late);
    await assert.rejects(backend.ids(), late, 'later calls do not wait again');
    indexedDB.open = open;
    t.mock.timers.reset();
    await assert.rejects(backend.ids(), late);
    const other = new IndexedDbBackend();
    await other.writeRecord(recordOf('kept'));
    await other.close();
    request.result = await new Promise((settle) => {
      const opening = indexedDB.open('wick-llm-models');
      opening.onsuccess = () => settle(opening.result);
    });
    request.onsuccess();
    assert.deepEqual(await backend.ids(), ['kept']);
    await backend.close();
  });

  test('a connection that opens after the store was closed is closed as well', async (t) => {
    const request = holdOpen(t);
    const backend = new IndexedDbBackend();
    const opening = backend.open();
    const closing = backend.close();
    let closed = 0;
    request.result = { close: () => closed++ };
    request.onsuccess();
    await Promise.all([opening, closing]);
    assert.ok(closed > 0);
  });

  test('a tab that upgrades or deletes the database is not blocked, and the database is opened again', async () => {
    const backend = new IndexedDbBackend();
    await backend.writeRecord(recordOf('kept'));
    await new Promise((settle, fail) => {
      const removing = indexedDB.deleteDatabase('wick-llm-models');
      removing.onsuccess = settle;
      removing.onblocked = () => fail(new Error('the deletion is blocked'));
    });
    assert.deepEqual(await backend.ids(), []);
    await backend.close();
  });

  test('a connection closed by the browser is opened again', async () => {
    const backend = new IndexedDbBackend();
    await backend.writeRecord(recordOf('kept'));
    const database = await backend.open();
    database.close();
    database.onclose?.(new Event('close'));
    assert.deepEqual(await backend.ids(), ['kept']);
    await backend.close();
  });
});
