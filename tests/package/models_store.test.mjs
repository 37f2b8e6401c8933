// The model store (js/models) in memory and in folders: stored models, imports, verification, maintenance, and a process that
// is killed before any of its writes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { WickError } from '../../js/base/errors.js';
import { FolderBackend } from '../../js/models/folder_backend.js';
import { OpenModel } from '../../js/models/model_lease.js';
import { ModelStore } from '../../js/models/model_store.js';
import { openModels } from '../../js/models/open_store.js';
import * as records from '../../js/models/records.js';
import { CHUNK_BYTES, VERSION } from '../../js/models/records.js';
import { checksum, Sha256 } from '../../js/models/sha256.js';
import { KeptSource } from '../../js/models/stored_source.js';
import { root } from '../support/locate.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { waitUntil } from '../support/package.mjs';
import { pretend } from '../support/pretend.mjs';
import { randomBytes } from '../support/random_bytes.mjs';

/** @typedef {import('node:test').TestContext} TestContext */

const SIZE = 2 * CHUNK_BYTES + 1234;
const model = pretendedModel(SIZE);
const other = pretendedModel(CHUNK_BYTES, 2);

/** @param {TestContext} t */
function newFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-models-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** @param {TestContext} t @param {Buffer} bytes */
async function newServer(t, bytes = model) {
  const server = await serveModel(bytes);
  t.after(() => server.close());
  return server;
}

/** @param {string} code */
const hasCode = (code) => (/** @type {any} */ error) => {
  assert.equal(error?.code, code, String(error));
  return true;
};

/** @param {Blob | undefined} blob @param {Buffer} bytes */
async function assertHolds(blob, bytes) {
  const held = Buffer.from(await /** @type {Blob} */ (blob).arrayBuffer());
  assert.ok(held.equals(bytes), 'wrong bytes are stored');
}

describe('records', () => {
  const url = 'https://example.com/a.gguf';
  const made = (/** @type {any} */ more = {}) => ({
    ...records.newRecord('id', { name: 'a.gguf' }),
    ...more,
  });

  test('a new record has the known values', () => {
    const before = Date.now();
    const { stamp, createdMs, usedMs, ...empty } = made();
    assert.deepEqual(empty, {
      ...{
        version: VERSION,
        id: 'id',
        name: 'a.gguf',
        urls: [],
        size: null,
        tag: null,
        sha256: null,
      },
      ...{ sums: [], hash: null, fingerprint: null },
    });
    assert.ok(createdMs === usedMs && createdMs >= before && createdMs <= Date.now());
    assert.notEqual(made().stamp, stamp);
    const urls = [url];
    const known = records.newRecord('id', { name: 'a', urls, size: 5, sha256: 'f' });
    assert.deepEqual([known.urls, known.size, known.sha256], [urls, 5, 'f']);
    assert.notEqual(known.urls, urls);
    assert.match(records.idOf(url), /^[\da-f]{32}$/);
    assert.notEqual(records.idOf(url), records.idOf(`${url}x`));
  });

  test('with an invalid form or version are ignored', () => {
    const record = made();
    assert.equal(records.checkRecord(record), record);
    assert.deepEqual(records.parseRecord(JSON.stringify(record)), record);
    for (const wrong of [
      ...[
        undefined,
        null,
        5,
        {},
        { ...record, version: VERSION + 1 },
        { ...record, version: `${VERSION}` },
      ],
      ...[
        { ...record, sums: {} },
        { ...record, urls: 'x' },
        { ...record, id: 5 },
      ],
    ]) {
      assert.equal(records.checkRecord(wrong), undefined);
    }
    for (const text of ['', '{', 'null', '[]', '5'])
      assert.equal(records.parseRecord(text), undefined);
  });

  test('count chunks and bytes up to the last one, which may be shorter', () => {
    for (const [size, count] of [
      [0, 0],
      [1, 1],
      [CHUNK_BYTES, 1],
      [CHUNK_BYTES + 1, 2],
      [SIZE, 3],
    ]) {
      assert.equal(records.chunkCount(size), count);
    }
    const whole = made({ size: SIZE, sums: ['a', 'b', 'c'] });
    assert.deepEqual(
      [0, 1, 2].map((index) => records.chunkSize(whole, index)),
      [CHUNK_BYTES, CHUNK_BYTES, 1234],
    );
    assert.equal(records.chunkSize(made(), 7), CHUNK_BYTES);
    assert.deepEqual([records.hasAllChunks(whole), records.storedBytes(whole)], [true, SIZE]);
    for (const [sums, bytes] of /** @type {[any[], number][]} */ ([
      [[], 0],
      [['a', 'b'], 2 * CHUNK_BYTES],
      [['a', null, 'c'], CHUNK_BYTES + 1234],
      [[null, 'b', 'c'], CHUNK_BYTES + 1234],
    ])) {
      const part = made({ size: SIZE, sums });
      assert.deepEqual([records.hasAllChunks(part), records.storedBytes(part)], [false, bytes]);
    }
    assert.equal(records.hasAllChunks(made({ sums: ['a'] })), false, 'the size is not known');
    assert.equal(records.hasAllChunks(made({ size: 0 })), false);
    const print = records.fingerprintOf(whole);
    for (const other of [
      { size: SIZE + 1 },
      { sums: ['a', 'b', 'd'] },
      { sums: ['b', 'a', 'c'] },
    ]) {
      assert.notEqual(records.fingerprintOf({ ...whole, ...other }), print);
    }
    assert.equal(records.fingerprintOf({ ...whole, name: 'b', urls: [url] }), print);
  });

  test('are reported without unknown members', () => {
    const record = made({ createdMs: 5, usedMs: 7 });
    assert.deepEqual(records.entryOf(record), {
      ...{ id: 'id', name: 'a.gguf', urls: [], size: undefined, storedBytes: 0, isWhole: false },
      ...{
        fingerprint: undefined,
        sha256: undefined,
        created: new Date(5),
        used: new Date(7),
        version: VERSION,
      },
    });
    const whole = { ...record, size: 3, sums: ['a'], sha256: 's', fingerprint: 'f', urls: [url] };
    const entry = records.entryOf(whole);
    assert.deepEqual(
      [entry.size, entry.storedBytes, entry.isWhole, entry.sha256, entry.fingerprint, entry.urls],
      [3, 3, true, 's', 'f', [url]],
    );
    assert.notEqual(entry.urls, whole.urls);
  });
});

describe('a model that is opened', () => {
  const url = 'https://example.com/a.gguf';
  const refused = Object.assign(new Error('no server is asked'), { code: 'NETWORK' });

  /** @param {any} known @param {any} [record] its record in the store */
  async function openWith(known, record) {
    const backend = new MemoryBackend(new MemoryDisk());
    if (record) {
      await backend.writeRecord({
        ...records.newRecord('id', { name: 'a.gguf', urls: [url] }),
        ...record,
      });
    }
    const chunk = new Uint8Array(10).fill(7);
    if (record?.size) await backend.writeChunk('id', 0, chunk);
    let connected = 0;
    const connect = () => {
      connected++;
      throw refused;
    };
    const none = () => {};
    const open = new OpenModel(
      'id',
      backend,
      /** @type {any} */ ({
        ...{
          known: { name: 'a.gguf', ...known },
          connect,
          onStored: none,
          onWhole: none,
          onArrived: none,
        },
      }),
    );
    return { open, backend, chunk, connected: () => connected };
  }
  const whole = { size: 10, sums: ['s'], fingerprint: 'f', sha256: 'a' };

  test('complete: it is read unchanged, and new URLs are added', async () => {
    for (const known of [{}, { sha256: null }, { sha256: 'a' }]) {
      const { open, backend, chunk, connected } = await openWith(
        { urls: ['b', url, 'c'], ...known },
        whole,
      );
      await open.complete(() => false);
      assert.deepEqual([open.isWhole, connected(), open.hasFailed], [true, 0, false]);
      assert.deepEqual([open.record?.urls, open.record?.sha256], [[url, 'b', 'c'], 'a']);
      assert.deepEqual(await open.bytesAt(0, () => false), chunk);
      assert.deepEqual(await open.bytesAt(4, () => false), chunk.subarray(4));
      assert.equal(await open.bytesAt(10, () => false), null);
      assert.deepEqual(open.progress, { loaded: 10, received: 10, total: 10 });
      assert.equal(backend.disk.locks.size, 0);
    }
    const unknown = await openWith({ sha256: 'b' }, { ...whole, sha256: null });
    await unknown.open.complete(() => false);
    assert.equal(
      unknown.open.record?.sha256,
      null,
      'a complete model keeps only a computed SHA-256',
    );
  });

  test('with a different SHA-256, or incomplete: the server is asked', async () => {
    const other = await openWith({ sha256: 'b' }, whole);
    await assert.rejects(
      other.open.complete(() => false),
      refused,
    );
    assert.deepEqual([other.connected(), other.backend.disk.records.size], [1, 0]);
    assert.equal(other.backend.disk.chunks.size, 0, 'no chunk of a different file is kept');
    const part = await openWith({ sha256: 'b' }, { sums: [], sha256: null });
    await assert.rejects(
      part.open.complete(() => false),
      refused,
    );
    assert.deepEqual([part.connected(), part.backend.disk.records.size], [1, 1]);
    const fresh = await openWith({});
    await assert.rejects(
      fresh.open.complete(() => false),
      refused,
    );
    assert.deepEqual([fresh.connected(), fresh.open.hasFailed], [1, true]);
    await assert.rejects(
      fresh.open.bytesAt(0, () => false),
      refused,
    );
    assert.equal(fresh.backend.disk.locks.size, 0);
  });

  test('complete, but a chunk is missing: that chunk is fetched again', async () => {
    const { open, backend, connected } = await openWith(
      {},
      { ...whole, hash: { size: 10, state: [] } },
    );
    backend.disk.chunks.clear();
    await assert.rejects(
      open.bytesAt(0, () => false),
      refused,
    );
    assert.equal(connected(), 1);
    const kept = await backend.readRecord('id');
    assert.deepEqual([kept?.sums, kept?.fingerprint, kept?.hash], [[null], null, null]);
  });

  test('reports from another tab are applied', async () => {
    const { open } = await openWith({});
    assert.equal(open.progress, undefined);
    open.hear({ received: 5 });
    assert.deepEqual(open.progress, { loaded: 0, received: 5, total: undefined });
    open.hear({ received: 5, total: 5 });
    assert.deepEqual(open.progress, { loaded: 0, received: 5, total: 5 });
    open.hear({ received: 6, total: 5 });
    assert.deepEqual(open.progress, { loaded: 0, received: 6, total: undefined });
    open.record = /** @type {any} */ ({ size: 9, sums: [] });
    assert.deepEqual(open.progress, { loaded: 0, received: 6, total: 9 });
  });

  test('bytes of two versions are not mixed', async () => {
    const { open, chunk } = await openWith({}, whole);
    assert.deepEqual(await open.bytesAt(0, () => false), chunk);
    Object.assign(/** @type {any} */ (open.record), { stamp: 'another' });
    const changed = {
      code: 'CHANGED',
      message: 'a.gguf was changed while it was being downloaded',
    };
    for (const at of [0, 4, 10]) {
      await assert.rejects(
        open.bytesAt(at, () => false),
        changed,
      );
    }
  });

  test('a cancelled reader does not wait, and a stopped model is not read', async () => {
    const { open } = await openWith({}, whole);
    await open.complete(() => true);
    assert.equal(open.record, undefined);
    await assert.rejects(
      open.bytesAt(0, () => true),
      { code: 'CLOSED' },
    );
    await open.stop();
    await assert.rejects(open.advance(), {
      code: 'CLOSED',
      message: 'model: reading stopped',
    });
  });
});

test('closing a store ends its downloads', { timeout: 100_000 }, async (t) => {
  const { url, state } = await newServer(t);
  state.fault = () => ({ cut: CHUNK_BYTES + 5, stall: true });
  const store = new ModelStore(new MemoryBackend(new MemoryDisk()));
  const got = store.get(url);
  got.catch(() => {});
  await waitUntil(async () => (await store.list())[0]?.storedBytes === CHUNK_BYTES, 'a chunk');
  await store.close();
  await assert.rejects(got, hasCode('CLOSED'));
});

test('other tabs receive progress every 200 ms', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  /** @type {[number, any][]} */
  const calls = [];
  const channel = class {
    /** @param {any} message */
    postMessage(message) {
      calls.push([nowMs, message]);
    }
    close() {}
  };
  pretend(t, { BroadcastChannel: channel });
  const PIECE = 1 << 18;
  let at = 0;
  const pull = (/** @type {ReadableStreamDefaultController} */ out) => {
    nowMs += 50;
    out.enqueue(new Uint8Array(other.subarray(at, at + PIECE)));
    at += PIECE;
    if (at >= other.length) out.close();
  };
  const headers = { 'Content-Length': String(other.length) };
  const fetch = async () =>
    new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers });
  const backend = Object.assign(new MemoryBackend(new MemoryDisk()), { kind: 'opfs' });
  const store = new ModelStore(/** @type {any} */ (backend));
  await store.get('https://example.com/a.gguf', { fetch: /** @type {any} */ (fetch) });
  await store.close();
  const arrived = calls.filter(([, { type }]) => type === 'arrived');
  assert.ok(arrived.length > 1, `${arrived.length} of ${other.length / PIECE} pieces`);
  for (const [index, [ms, { detail }]] of arrived.entries()) {
    if (index > 0) assert.ok(ms - arrived[index - 1][0] >= 200, `${ms} ms`);
    assert.equal(detail.total, other.length);
    assert.ok(detail.received >= (arrived[index - 1]?.[1].detail.received ?? 0));
  }
});

describe('the source of a stored model', () => {
  /** @param {any} model @param {any} [options] */
  function sourceWith(model, options = {}) {
    /** @type {any[]} */
    const calls = [];
    const store = {
      takeKept: async (/** @type {any} */ file, /** @type {any} */ how) => {
        calls.push(['take', file, how]);
        return model;
      },
      release: async (/** @type {any} */ one) => void calls.push(['release', one]),
    };
    /** @type {import('../../js/models/model_store.js').Wanted[]} */
    const files = [
      { url: 'https://example.com/a', headers: { a: '1', c: '2' } },
      { url: 'https://example.com/b', headers: { a: '3', b: '4' } },
    ];
    const how = { headers: {}, cache: true, ...options };
    return { source: new KeptSource(/** @type {any} */ (store), files, how), calls, files, how };
  }

  test('opens each file once, at any offset, and releases all files at the end', async () => {
    let news = 0;
    const kept = Uint8Array.of(1, 2, 3, 4);
    const model = {
      record: { size: 4 },
      news: { notify: () => news++ },
      bytesAt: async (/** @type {number} */ at, /** @type {() => boolean} */ isLeft) => {
        if (isLeft()) throw new Error('left');
        return at >= 4 ? null : kept.subarray(at, at + 2);
      },
    };
    const { source, calls, files, how } = sourceWith(model);
    assert.deepEqual([source.canSeek, source.files], [true, 2]);
    for (const offset of [0, 2]) {
      const stream = await source.open(1, offset);
      assert.deepEqual([stream.position, stream.size], [offset, 4]);
      const read = [];
      for (let piece = await stream.read(); piece; piece = await stream.read()) read.push(...piece);
      assert.deepEqual([read, stream.position], [[...kept.subarray(offset)], 4]);
    }
    assert.deepEqual(calls, [['take', files[1], how]]);
    await assert.rejects(source.open(2, 0), /file/i);
    const left = await source.open(1, 0);
    await left.read();
    left.cancel();
    assert.equal(news, 1, 'a reader that waits for bytes is notified');
    await assert.rejects(left.read(), /left/);
    const late = await source.open(1, 0);
    source.close();
    source.close();
    assert.deepEqual(calls.slice(1), [['release', model]]);
    await late.read(); // the received part
    await assert.rejects(late.read(), /left/);
  });

  test('continues without the store only if the store failed', async (t) => {
    const { warn } = console;
    t.after(() => {
      console.warn = warn;
    });
    /** @type {string[]} */
    const warned = [];
    console.warn = (text) => void warned.push(text);
    const fail = (/** @type {string} */ code) => new WickError(code, 'why');
    const bytesAt = (/** @type {unknown} */ error) => async () => {
      throw error;
    };
    const model = (/** @type {unknown} */ error) => ({
      bytesAt: bytesAt(error),
      news: { notify() {} },
    });
    for (const code of ['NETWORK', 'CHANGED', 'HTTP', 'CLOSED']) {
      await assert.rejects(sourceWith(model(fail(code))).source.open(0, 0), { code });
    }
    for (const error of [fail('STORAGE_FULL'), fail('NO_STORAGE'), fail('IO'), new Error('why')]) {
      const only = sourceWith(model(error), { cache: 'only' });
      await assert.rejects(only.source.open(0, 0), (thrown) => thrown === error);
      /** @type {any[]} */
      const asked = [];
      const fetch = async (/** @type {any} */ url, /** @type {any} */ { headers }) => {
        const sent = new Headers(headers);
        asked.push([String(url), sent.get('a'), sent.get('b'), sent.get('c'), sent.get('d')]);
        return new Response('wick', { headers: { 'Content-Length': '4' } });
      };
      const how = { fetch, retries: 0, stallMs: 1000, headers: { c: '5', d: '6' } };
      const { source } = sourceWith(model(error), how);
      for (let time = 0; time < 2; time++) {
        const stream = await source.open(0, 0);
        assert.equal(Buffer.from((await stream.read()) ?? []).toString(), 'wick');
        stream.cancel();
      }
      assert.deepEqual(
        warned.splice(0),
        [`wick-llm: the model is not cached: ${error}`],
        'it is reported once',
      );
      source.close();
    }
  });
});

describe('SHA-256', () => {
  test('equals that of node:crypto, for any size and any split', () => {
    for (let size = 0; size < 200; size++) {
      const bytes = randomBytes(size, size + 1);
      const cut = size >> 1;
      const hash = new Sha256().update(bytes.subarray(0, cut)).update(bytes.subarray(cut));
      assert.equal(hash.hex(), createHash('sha256').update(bytes).digest('hex'), `${size} bytes`);
    }
  });

  test('continues from a saved state', () => {
    const first = new Sha256().update(model.subarray(0, CHUNK_BYTES));
    const kept = JSON.parse(JSON.stringify({ state: first.state, size: first.size }));
    const rest = Sha256.resume(kept.state, kept.size).update(model.subarray(CHUNK_BYTES));
    assert.equal(rest.hex(), sha256Of(model));
  });

  test('is the same without Web Crypto', async (t) => {
    const bytes = new Uint8Array(other);
    const sum = await checksum(bytes);
    pretend(t, { crypto: {} });
    assert.equal(await checksum(bytes), sum);
    assert.match(sum, /^[0-9a-f]{32}$/);
  });
});

/** The same for both backends. @type {[string, (t: TestContext) => () => ModelStore][]} */
const kinds = [
  [
    'memory',
    () => {
      const disk = new MemoryDisk();
      return () => new ModelStore(new MemoryBackend(disk));
    },
  ],
  [
    'folder',
    (t) => {
      const folder = newFolder(t);
      return () => new ModelStore(new FolderBackend(folder));
    },
  ],
];

for (const [kind, prepare] of kinds) {
  describe(`a store in ${kind === 'memory' ? 'memory' : 'a folder'}`, () => {
    test('keeps an imported file, and finds it by each of its names', async (t) => {
      const open = prepare(t);
      const store = open();
      const file = new File([model], 'some.gguf');
      /** @type {number[]} */
      const loaded = [];
      const entry = await store.import(file, {
        url: 'https://example.com/some.gguf',
        onProgress: (progress) => loaded.push(progress.loaded),
      });
      assert.deepEqual(loaded, [CHUNK_BYTES, 2 * CHUNK_BYTES, SIZE]);
      assert.equal(entry.sha256, sha256Of(model));
      const { name, size, storedBytes, isWhole, version } = entry;
      assert.deepEqual(
        { name, size, storedBytes, isWhole, version },
        { name: 'some.gguf', size: SIZE, storedBytes: SIZE, isWhole: true, version: VERSION },
      );
      const again = open(); // as on the next visit
      for (const one of [entry.id, entry.fingerprint, entry.sha256, entry.name, entry.urls[0]]) {
        assert.deepEqual(await again.info(String(one)), entry);
        assert.equal(await again.has(String(one)), true);
      }
      assert.equal(await again.has(new URL(entry.urls[0])), true);
      assert.equal(await again.has('another'), false);
      assert.equal(await again.info('another'), undefined);
      assert.deepEqual(await again.list(), [entry]);
      await assertHolds(await again.blob('some.gguf'), model);
      assert.equal(await again.blob('another'), undefined);
    });

    test('has one entry for the same content, with both URLs', async (t) => {
      const store = prepare(t)();
      const urls = ['https://example.com/a.gguf', 'https://example.org/b.gguf'];
      const [first, second] = [
        await store.import(new File([model], 'a.gguf'), { url: urls[0] }),
        await store.import(new File([model], 'b.gguf'), { url: urls[1] }),
      ];
      assert.equal(first.fingerprint, second.fingerprint);
      const list = await store.list();
      assert.deepEqual(
        list.map((entry) => entry.urls),
        [urls],
      );
      await store.import(new File([other], 'c.gguf'));
      assert.equal((await store.list()).length, 2);
      await assertHolds(await store.blob(urls[1]), model);
    });

    test('a worker reads complete models directly, if it can', async (t) => {
      const store = prepare(t)();
      const urls = ['https://example.com/a.gguf', 'https://example.com/b.gguf'];
      const entries = [
        await store.import(new File([model], 'a.gguf'), { url: urls[0] }),
        await store.import(new File([other], 'b.gguf'), { url: urls[1] }),
      ];
      const files = entries.map(({ id }, index) => ({ id, url: urls[index] }));
      for (const wanted of [files.slice(0, 1), files]) {
        const described = /** @type {any} */ (await store.describe(wanted));
        if (kind === 'memory') assert.equal(described, undefined);
        else {
          assert.equal(described.kind, 'path');
          const sizes = described.paths.map((/** @type {string} */ path) => statSync(path).size);
          assert.deepEqual(sizes, [SIZE, CHUNK_BYTES].slice(0, wanted.length));
        }
      }
      const missing = { url: 'https://example.com/c.gguf' };
      assert.equal(await store.describe([missing]), undefined);
      assert.equal(await store.describe([...files, missing]), undefined);
    });

    test('removes one model, or all', async (t) => {
      const store = prepare(t)();
      /** @type {string[]} */
      const removed = [];
      store.addEventListener('removed', (event) => {
        removed.push(/** @type {CustomEvent} */ (event).detail.name);
      });
      for (const [name, bytes] of /** @type {[string, Buffer<ArrayBuffer>][]} */ ([
        ['a.gguf', model],
        ['b.gguf', other],
      ])) {
        await store.import(new File([bytes], name));
      }
      assert.equal((await store.estimate()).usedBytes, SIZE + CHUNK_BYTES);
      assert.equal(await store.delete('a.gguf'), true);
      assert.equal(await store.delete('a.gguf'), false);
      assert.deepEqual(
        (await store.list()).map(({ name }) => name),
        ['b.gguf'],
      );
      await store.clear();
      assert.deepEqual(await store.list(), []);
      assert.deepEqual(removed, ['a.gguf', 'b.gguf']);
      assert.equal((await store.estimate()).usedBytes, 0);
    });

    test('rejects files that are not models', async (t) => {
      const store = prepare(t)();
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\n`;
      for (const text of ['<!doctype html><title>', pointer, 'GGML', '']) {
        await assert.rejects(store.import(new Blob([text])), hasCode('NOT_GGUF'));
      }
      assert.deepEqual(await store.list(), []);
    });

    test('an aborted import stores nothing', async (t) => {
      const store = prepare(t)();
      const stop = new AbortController();
      const importing = store.import(new File([model], 'a.gguf'), {
        signal: stop.signal,
        onProgress: () => stop.abort(),
      });
      await assert.rejects(importing, { name: 'AbortError' });
      assert.deepEqual(await store.list(), []);
      assert.equal((await store.estimate()).usedBytes, 0);
    });

    test('a damaged chunk is found, and only this chunk is fetched again', async (t) => {
      const server = await newServer(t);
      const disk = new MemoryDisk();
      const folder = newFolder(t);
      const backend = kind === 'memory' ? new MemoryBackend(disk) : new FolderBackend(folder);
      const store = new ModelStore(backend);
      const { id } = await store.get(server.url);
      assert.deepEqual(await store.verify(id), { isWhole: true, damagedChunks: [] });
      if (kind === 'memory') {
        /** @type {Uint8Array} */ (disk.chunks.get(`${id} 1`))[77] ^= 1;
      } else {
        const file = openSync(join(folder, id, 'model.gguf'), 'r+');
        writeSync(file, Buffer.from([model[CHUNK_BYTES + 77] ^ 1]), 0, 1, CHUNK_BYTES + 77);
      }
      /** @type {string[]} */
      const events = [];
      for (const type of ['damaged', 'kept']) store.addEventListener(type, () => events.push(type));
      assert.deepEqual(await store.verify(id), { isWhole: false, damagedChunks: [1] });
      assert.equal(await store.has(id), false);
      assert.equal((await store.info(id))?.storedBytes, SIZE - CHUNK_BYTES);
      server.state.starts.length = 0;
      await store.get(id);
      assert.deepEqual(server.state.starts, [CHUNK_BYTES]);
      assert.deepEqual(events, ['damaged', 'kept']);
      await assertHolds(await store.blob(id), model);
    });

    test('an unknown name is rejected with the name', async (t) => {
      const store = prepare(t)();
      await assert.rejects(store.get('nothing'), hasCode('NOT_FOUND'));
      await assert.rejects(store.verify('nothing'), hasCode('NOT_FOUND'));
      await assert.rejects(store.get(/** @type {any} */ (7)), hasCode('ARG'));
      await store.close();
      await assert.rejects(store.list(), hasCode('CLOSED'));
    });
  });
}

describe('a folder', () => {
  test('is given by the option, or is the cache folder', async (t) => {
    const folder = newFolder(t);
    const before = process.env.XDG_CACHE_HOME;
    process.env.XDG_CACHE_HOME = folder;
    t.after(() => {
      if (before === undefined) delete process.env.XDG_CACHE_HOME;
      else process.env.XDG_CACHE_HOME = before;
    });
    const store = await openModels();
    await store.import(new File([other], 'a.gguf'));
    assert.equal(readdirSync(join(folder, 'wick-llm/models')).length, 1);
    const own = join(folder, 'own');
    const second = await openModels({ folder: own });
    await second.import(join(folder, 'wick-llm/models', (await store.list())[0].id, 'model.gguf'));
    const [{ id, name }] = await second.list();
    assert.equal(name, 'model.gguf');
    assert.ok(readFileSync(join(own, id, 'model.gguf')).equals(other));
    assert.equal(second.kind, 'folder');
    assert.equal(await second.persist(), true);
    assert.ok(Number((await second.estimate()).freeBytes) > 0);
    await assert.rejects(openModels({ folder: /** @type {any} */ (1) }), hasCode('ARG'));
  });

  test('a model whose file was truncated is incomplete: the rest is fetched again', async (t) => {
    const server = await newServer(t);
    const folder = newFolder(t);
    const store = new ModelStore(new FolderBackend(folder));
    const { id } = await store.get(server.url);
    const path = join(folder, id, 'model.gguf');
    writeFileSync(path, model.subarray(0, CHUNK_BYTES));
    server.state.starts.length = 0;
    await store.get(server.url);
    assert.deepEqual(server.state.starts, [CHUNK_BYTES]);
    assert.ok(readFileSync(path).equals(model));
  });

  test('a record that is damaged, or has a different version, is ignored', async (t) => {
    const server = await newServer(t);
    const folder = newFolder(t);
    const store = new ModelStore(new FolderBackend(folder));
    const { id } = await store.get(server.url);
    const path = join(folder, id, 'record.json');
    const record = JSON.parse(readFileSync(path, 'utf8'));
    assert.equal(record.version, VERSION);
    for (const text of ['{', '', 'null', JSON.stringify({ ...record, version: VERSION + 1 })]) {
      writeFileSync(path, text);
      assert.deepEqual(await store.list(), []);
      assert.equal(await store.has(server.url), false);
      await store.get(server.url);
      assert.equal(await store.has(server.url), true);
      assert.equal(statSync(join(folder, id, 'model.gguf')).size, SIZE);
    }
  });

  test('models stored by version 1 are opened', async (t) => {
    const folder = newFolder(t);
    cpSync(join(root, 'tests/package/kept/version1'), folder, { recursive: true });
    const store = await openModels({ folder });
    const entry = await store.get('https://example.com/small.gguf');
    assert.equal(entry.version, 1);
    assert.deepEqual(await store.verify(entry.id), { isWhole: true, damagedChunks: [] });
    const text = await (await store.blob(entry.id))?.text();
    assert.equal(text, 'GGUF, as far as the store can tell: a file that version 1 kept.\n');
    assert.equal(entry.sha256, sha256Of(Buffer.from(String(text))));
  });

  test('the lock of a process that has exited is taken over', async (t) => {
    const folder = newFolder(t);
    const [one, two] = [new FolderBackend(folder), new FolderBackend(folder)];
    const unlock = await one.tryLock('a');
    assert.equal(await two.tryLock('a'), undefined);
    await unlock?.();
    const again = await two.tryLock('a');
    assert.ok(again);
    await again();
    mkdirSync(join(folder, 'a'));
    writeFileSync(join(folder, 'a/lock'), '999999999 gone');
    const stolen = await one.tryLock('a');
    assert.ok(stolen);
    await stolen();
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('a process that is killed before one of its writes', () => {
  test('leaves a model that is complete and valid, or is completed later', async (t) => {
    const server = await newServer(t);
    /** @type {Set<number>} */
    const stored = new Set();
    for (let writes = 0; ; writes++) {
      const disk = new MemoryDisk();
      const backend = new MemoryBackend(disk);
      backend.writesLeft = writes;
      const dying = new ModelStore(backend);
      let isDone = false;
      dying.get(server.url).then(() => {
        isDone = true;
      });
      await waitUntil(() => isDone || backend.writesLeft < 0, 'the end of a process');
      if (isDone) break;
      disk.locks.clear(); // locks are released with the process
      const store = new ModelStore(new MemoryBackend(disk));
      const [left] = await store.list();
      assert.notEqual(left?.isWhole, true, `${writes} writes`);
      const before = left?.storedBytes ?? 0;
      stored.add(before);
      const { sent } = server.state;
      server.state.starts.length = 0;
      disk.written.length = 0;
      await store.get(server.url);
      await assertHolds(await store.blob(server.url), model);
      // stored bytes are not requested again, and each missing chunk is written once
      assert.equal(new Set(disk.written).size, disk.written.length);
      assert.equal(disk.written.length, Math.ceil((SIZE - before) / CHUNK_BYTES));
      assert.ok(server.state.sent - sent >= SIZE - before);
      assert.deepEqual(server.state.starts, before === SIZE ? [] : [before]);
    }
    assert.deepEqual([...stored], [0, CHUNK_BYTES, 2 * CHUNK_BYTES, SIZE]);
  });
});
