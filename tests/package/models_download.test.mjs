// Downloads into the model store: interrupted downloads resume, stored chunks are not fetched again,
// and only bytes of the file are ever stored.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { WickError } from '../../js/base/errors.js';
import { FolderBackend } from '../../js/models/folder_backend.js';
import { ModelStore } from '../../js/models/model_store.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { KeptSource } from '../../js/models/stored_source.js';
import { pair, string, types, u32, u64 } from '../support/gguf_bytes.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { waitUntil } from '../support/package.mjs';

/** @typedef {import('node:test').TestContext} TestContext */

const SIZE = 3 * CHUNK_BYTES + 999;
const model = pretendedModel(SIZE);
const newer = pretendedModel(SIZE, 2);

/** @param {TestContext} t @param {{disk?: MemoryDisk, evict?: boolean, bytes?: Buffer}} [options] */
async function begin(t, { disk = new MemoryDisk(), evict, bytes = model } = {}) {
  const server = await serveModel(bytes);
  t.after(() => server.close());
  const open = () => new ModelStore(new MemoryBackend(disk), { evict });
  return { ...server, disk, open, store: open() };
}

/** @returns {Buffer<ArrayBuffer>} a file with one tensor, one and a half chunks long */
function longModel() {
  const values = (1.5 * CHUNK_BYTES) / 4;
  const directory = Buffer.concat([
    ...[Buffer.from('GGUF'), u32(3), u64(1), u64(2)],
    pair('general.alignment', types.u32, u32(64)),
    pair('a', types.array, u32(types.string), u64(2), string('x'), string('y')),
    ...[string('t'), u32(1), u64(values), u32(0), u64(64)],
  ]);
  const rest = Math.ceil(directory.length / 64) * 64 - directory.length;
  return Buffer.concat([directory, Buffer.alloc(rest + 64 + 4 * values, 7)]);
}

/** @param {string} code */
const hasCode = (code) => (/** @type {any} */ error) => {
  assert.equal(error?.code, code, String(error));
  return true;
};

/** @param {ModelStore} store @param {string} name @param {Buffer} [bytes] */
async function assertHolds(store, name, bytes = model) {
  const held = Buffer.from(await /** @type {Blob} */ (await store.blob(name)).arrayBuffer());
  assert.ok(held.equals(bytes), 'wrong bytes are stored');
}

/** Downloads until a chunk is stored, and pauses. @param {ModelStore} store @param {string} url @param {number} [chunks] */
async function pauseAfter(store, url, chunks = 1) {
  const stop = new AbortController();
  const paused = store.get(url, {
    signal: stop.signal,
    onProgress: ({ loaded }) => loaded >= chunks * CHUNK_BYTES && stop.abort(),
  });
  await assert.rejects(paused, { name: 'AbortError' });
  return /** @type {import('../../js/models.js').ModelEntry} */ (await store.info(url));
}

describe('a download', () => {
  test('that breaks continues at the same byte', async (t) => {
    const { store, url, state } = await begin(t);
    const cuts = [1_000_000, 5_000_000];
    state.fault = () => {
      const cut = cuts.shift();
      return cut === undefined ? undefined : { cut };
    };
    await store.get(url);
    assert.equal(state.starts.length, 3);
    const [first, second, third] = state.starts;
    assert.ok(first === 0 && second > 0 && second <= 1_000_000, String(state.starts));
    assert.ok(third > second && third <= second + 5_000_000, String(state.starts));
    await assertHolds(store, url);
  });

  test('that is paused continues at the chunk, also on the next visit', async (t) => {
    const { store, url, state, disk, open } = await begin(t);
    /** No bytes are sent after the second chunk, so that the download pauses. */
    state.fault = (start) => (start === 0 ? { cut: 2 * CHUNK_BYTES + 5, stall: true } : undefined);
    const { storedBytes, isWhole } = await pauseAfter(store, url, 2);
    assert.deepEqual([storedBytes, isWhole], [2 * CHUNK_BYTES, false]);
    assert.equal(await store.has(url), false);
    const again = open();
    const entry = await again.get(url);
    assert.equal(entry.isWhole, true);
    assert.deepEqual(state.starts, [0, 2 * CHUNK_BYTES]);
    assert.equal(state.headers[1]['if-range'], state.tag);
    assert.equal(disk.written.length, new Set(disk.written).size);
    await assertHolds(again, url);
  });

  test('is not started for a complete model', async (t) => {
    const { store, url, state, open } = await begin(t);
    const first = await store.get(url);
    const second = await open().get(url);
    assert.equal(second.id, first.id);
    assert.ok(second.used >= first.used);
    assert.deepEqual(state.starts, [0]);
  });

  test('with a different SHA-256 or size than the complete file is rejected, and the file is kept', async (t) => {
    const { store, url, state, open } = await begin(t);
    await store.get(url);
    const [own, other] = [sha256Of(model), sha256Of(newer)];
    for (let time = 0; time < 2; time++) {
      await assert.rejects(store.get(url, { sha256: other }), {
        code: 'CORRUPT',
        message: `model.gguf: is stored with the SHA-256 ${own}, not ${other}`,
      });
    }
    await assert.rejects(store.get(url, { size: 5 }), {
      code: 'CORRUPT',
      message: `model.gguf: is stored with the size ${SIZE}, not 5`,
    });
    const entry = await open().get(url, { sha256: own, size: SIZE });
    assert.deepEqual([entry.isWhole, entry.sha256], [true, own], 'the SHA-256 is stored');
    await assert.rejects(open().get(url, { sha256: other }), { code: 'CORRUPT' });
    assert.deepEqual(state.starts, [0]);
    await assertHolds(store, url);
  });

  test('with a SHA-256 is rejected if the stored bytes cannot be read', async (t) => {
    const { store, url, disk } = await begin(t);
    await store.get(url);
    const { readChunk } = MemoryBackend.prototype;
    t.mock.method(
      MemoryBackend.prototype,
      'readChunk',
      async (/** @type {[any, any, any]} */ ...of) =>
        of[1] === 2 ? undefined : readChunk.apply(new MemoryBackend(disk), of),
    );
    await assert.rejects(store.get(url, { sha256: sha256Of(model) }), {
      code: 'CORRUPT',
      message: 'model.gguf: chunk 2 is missing',
    });
  });

  test('of a file that has changed since the pause starts over', async (t) => {
    const { store, url, state, change, open } = await begin(t);
    state.fault = () => ({ cut: CHUNK_BYTES + 5, stall: true });
    await pauseAfter(store, url);
    change(newer);
    state.fault = () => undefined;
    const again = open();
    await again.get(url);
    await assertHolds(again, url, newer);
  });

  test('of a file that changes during the download is rejected, and then starts over', async (t) => {
    const { store, url, state, change } = await begin(t);
    state.fault = (start) => {
      if (start > 0) return undefined;
      setTimeout(() => change(newer));
      return { cut: CHUNK_BYTES + 5 };
    };
    await assert.rejects(store.get(url), hasCode('CHANGED'));
    assert.equal(await store.info(url), undefined);
    state.fault = () => undefined;
    await store.get(url);
    await assertHolds(store, url, newer);
  });

  test('from a server without ranges completes as well', async (t) => {
    const { store, url, state } = await begin(t);
    state.fault = (start) => ({ whole: true, ...(start === 0 && { cut: CHUNK_BYTES + 5 }) });
    await assert.rejects(store.get(url, { retries: 0 }), hasCode('NETWORK'));
    state.fault = () => ({ whole: true });
    await store.get(url);
    await assertHolds(store, url);
  });

  test('of unknown length ends with the file', async (t) => {
    for (const size of [SIZE, 2 * CHUNK_BYTES]) {
      const bytes = model.subarray(0, size);
      const { store, url, state } = await begin(t, { bytes });
      state.fault = () => ({ unknown: true });
      const entry = await store.get(url);
      assert.equal(entry.size, size);
      await assertHolds(store, url, bytes);
    }
  });

  test('that ends before the size in its directory is incomplete, and continues the next time', async (t) => {
    const bytes = longModel();
    for (const [cut, starts] of /** @type {const} */ ([
      [1000, [0, 0]],
      [CHUNK_BYTES, [0, CHUNK_BYTES]],
      [CHUNK_BYTES + 5, [0, CHUNK_BYTES]],
      [bytes.length - 1, [0, CHUNK_BYTES]],
    ])) {
      const { store, url, state, open } = await begin(t, { bytes });
      state.fault = () => ({ text: bytes.subarray(0, cut) });
      await assert.rejects(store.get(url), hasCode('TRUNCATED'));
      assert.equal(await store.has(url), false);
      state.fault = () => undefined;
      const again = open();
      assert.equal((await again.get(url)).size, bytes.length);
      assert.deepEqual(state.starts, starts);
      await assertHolds(again, url, bytes);
    }
  });

  test('of a file truncated on the server is rejected, and nothing is stored', async (t) => {
    const bytes = longModel();
    const { store, url, change } = await begin(t, { bytes: bytes.subarray(0, -1) });
    await assert.rejects(store.get(url), {
      code: 'TRUNCATED',
      message: `${url}: file ends after ${bytes.length - 1} bytes, but its directory requires ${bytes.length}. Download the file again`,
    });
    assert.deepEqual(await store.list(), []);
    change(bytes);
    assert.equal((await store.get(url)).isWhole, true);
    const cut = new Blob([bytes.subarray(0, -1)]);
    await assert.rejects(store.import(cut, { name: 'cut.gguf' }), hasCode('TRUNCATED'));
  });

  test('of something other than a model is rejected, and nothing is stored', async (t) => {
    const { store, url, state, disk } = await begin(t);
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\n`;
    for (const fault of [{ page: true }, { text: pointer }, { text: '<html>' }, { text: 'GGML' }]) {
      state.fault = () => fault;
      await assert.rejects(store.get(url), hasCode('NOT_GGUF'));
      assert.deepEqual(await store.list(), []);
    }
    state.fault = () => ({ status: 404 });
    await assert.rejects(store.get(url), hasCode('HTTP'));
    assert.equal(disk.usedBytes, 0);
    state.fault = () => undefined;
    await store.get(url);
  });

  test('with a given SHA-256 is verified', async (t) => {
    const { store, url, state, open } = await begin(t);
    const sha256 = sha256Of(model);
    const wrong = store.get(url, { sha256: sha256Of(newer) });
    await assert.rejects(wrong, hasCode('CORRUPT'));
    assert.deepEqual(await store.list(), []);
    state.fault = (start) => (start === 0 ? { cut: 2 * CHUNK_BYTES + 5, stall: true } : undefined);
    const stop = new AbortController();
    const paused = store.get(url, {
      sha256,
      signal: stop.signal,
      onProgress: ({ loaded }) => loaded >= CHUNK_BYTES && stop.abort(),
    });
    await assert.rejects(paused, { name: 'AbortError' });
    state.fault = () => undefined;
    const entry = await open().get(url, { sha256 });
    assert.equal(entry.sha256, sha256);
    assert.equal(await store.has(sha256), true);
    // a different URL with the same content is the same model
    const other = await store.get(`${url}?mirror`);
    assert.equal(other.id, entry.id);
    assert.equal((await store.list()).length, 1);
  });

  test('uses headers and the caller’s fetch function', async (t) => {
    const { store, url, state } = await begin(t);
    let calls = 0;
    /** @type {typeof fetch} */
    const own = (...given) => {
      calls++;
      return fetch(...given);
    };
    await store.get(url, { headers: { Authorization: 'Bearer a' }, fetch: own });
    assert.equal(calls, 1);
    assert.equal(state.headers[0].authorization, 'Bearer a');
  });

  test('over several connections fetches each chunk once', async (t) => {
    const bytes = pretendedModel(12 * CHUNK_BYTES + 77);
    const { store, url, state, disk } = await begin(t, { bytes });
    await store.get(url, { connections: 3, sha256: sha256Of(bytes) });
    await assertHolds(store, url, bytes);
    assert.equal(disk.written.length, 13);
    assert.equal(new Set(disk.written).size, 13);
    assert.ok(
      state.starts.some((start) => start >= 4 * CHUNK_BYTES),
      String(state.starts),
    );
    state.fault = (start) => (start === 0 ? undefined : { status: 404 });
    await store.delete(url);
    await assert.rejects(store.get(url, { connections: 3 }), hasCode('HTTP'));
  });
});

/** A fetch that returns responses like those of a cross-origin server. @param {Record<string, string>} headers @returns {typeof fetch} */
const foreign =
  (headers = {}) =>
  async (...given) => {
    const { body, status, headers: own } = await fetch(...given);
    const reports = new Headers(own);
    for (const [name, value] of Object.entries(headers)) reports.set(name, value);
    const seen = new Response(body, { status, headers: reports });
    return Object.defineProperty(seen, 'type', { value: 'cors' });
  };

describe('progress of a cross-origin download', () => {
  /** @param {TestContext} t @param {Record<string, string>} [headers] */
  async function reports(t, headers) {
    const all = await begin(t);
    /** @type {import('../../js/models.js').KeepProgress[]} */
    const progress = [];
    const onProgress = (/** @type {import('../../js/models.js').KeepProgress} */ one) =>
      progress.push(one);
    return { ...all, progress, options: { fetch: foreign(headers), onProgress } };
  }

  test('counts received bytes, including incomplete chunks, and the announced size', async (t) => {
    const { store, url, state, progress, options } = await reports(t);
    state.fault = () => ({ cut: 100_000, stall: true });
    const stop = new AbortController();
    const got = store.get(url, { ...options, signal: stop.signal });
    await waitUntil(async () => (progress.at(-1)?.received ?? 0) === 100_000, '100 kB');
    assert.deepEqual(progress.at(-1), { loaded: 0, received: 100_000, total: SIZE });
    stop.abort();
    await assert.rejects(got, { name: 'AbortError' });
  });

  test('after a pause includes the whole file, not only the rest', async (t) => {
    const { store, url, state, progress, options, open } = await reports(t);
    state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const stop = new AbortController();
    const got = store.get(url, { ...options, signal: stop.signal });
    await waitUntil(async () => progress.at(-1)?.loaded === CHUNK_BYTES, 'a chunk');
    stop.abort();
    await assert.rejects(got, { name: 'AbortError' });
    progress.length = 0;
    const again = open();
    await again.get(url, options);
    await assertHolds(again, url);
    assert.ok(progress.every(({ received, loaded }) => received >= loaded && loaded > 0));
    const totals = new Set(progress.map(({ total }) => total));
    totals.delete(undefined);
    assert.deepEqual([...totals], [SIZE]);
  });

  for (const [what, length] of Object.entries({
    'of a compressed body': '1000000',
    'that is not a number': 'x',
    'that is impossibly large': '99999999999999999999',
    'of zero': '0',
  }))
    test(`ignores a length ${what}`, async (t) => {
      const { store, url, progress, options } = await reports(t, { 'Content-Length': length });
      await store.get(url, options);
      await assertHolds(store, url);
      for (const { received, total = SIZE } of progress) {
        assert.ok(received <= total, `${received} of ${total}`);
        assert.ok(Number.isSafeInteger(total), `${total}`);
      }
      assert.deepEqual(progress.at(-1), { loaded: SIZE, received: SIZE, total: SIZE });
    });
});

describe('callers that need the same model', () => {
  test('two loads in one page share a download', async (t) => {
    const { store, url, state } = await begin(t);
    const entries = await Promise.all([store.get(url), store.get(url), store.get(url)]);
    assert.equal(new Set(entries.map(({ fingerprint }) => fingerprint)).size, 1);
    assert.deepEqual(state.starts, [0]);
  });

  test('in one page: an aborted caller does not end the download for the others', async (t) => {
    const { store, url, state } = await begin(t);
    const stop = new AbortController();
    const left = store.get(url, { signal: stop.signal });
    const stays = store.get(url, { onProgress: () => stop.abort() });
    await assert.rejects(left, { name: 'AbortError' });
    assert.equal((await stays).isWhole, true);
    assert.deepEqual(state.starts, [0]);
  });

  test('in several processes download it once, and one process continues for another', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'wick-models-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const { url, state } = await begin(t);
    state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const [one, two] = [0, 1].map(() => new ModelStore(new FolderBackend(folder)));
    const first = one.get(url);
    await waitUntil(async () => (await one.info(url))?.storedBytes === CHUNK_BYTES, 'a chunk');
    const second = two.get(url);
    await new Promise((settle) => setTimeout(settle, 300));
    assert.deepEqual(state.starts, [0]);
    const ended = assert.rejects(first, hasCode('CLOSED'));
    await one.close();
    await ended;
    const { id, isWhole } = await second;
    assert.equal(isWhole, true);
    assert.deepEqual(state.starts, [0, CHUNK_BYTES]);
    assert.ok(readFileSync(join(folder, id, 'model.gguf')).equals(model));
  });
});

describe('when storage is full', () => {
  test('the error reports the missing bytes, and which models could be removed', async (t) => {
    const disk = new MemoryDisk();
    const { store, url, state } = await begin(t, { disk });
    const kept = await store.import(new File([newer], 'old.gguf'));
    disk.room = SIZE + 2 * CHUNK_BYTES;
    /** @type {any} */
    let error;
    await assert.rejects(store.get(url), (given) => {
      error = given;
      return hasCode('STORAGE_FULL')(given);
    });
    assert.equal(error.cause.missingBytes, SIZE);
    assert.equal(error.cause.freeBytes, 2 * CHUNK_BYTES);
    assert.deepEqual(error.cause.candidates, [kept]);
    assert.equal(await store.has('old.gguf'), true);
    assert.ok(state.sent <= SIZE);
    await assert.rejects(store.import(new File([newer], 'new.gguf')), {
      ...{
        code: 'STORAGE_FULL',
        message: new RegExp(`full\\. ${newer.length} more bytes are needed`),
      },
      cause: { ...error.cause, missingBytes: newer.length },
    });
    await store.delete('old.gguf');
    await store.get(url);
  });

  test('the least recently used models are removed if the page allows it', async (t) => {
    const disk = new MemoryDisk();
    const { store, url } = await begin(t, { disk, evict: true });
    const half = pretendedModel(2 * CHUNK_BYTES, 3);
    await store.import(new File([half], 'oldest.gguf'));
    await new Promise((settle) => setTimeout(settle, 5));
    await store.import(new File([newer], 'newest.gguf'));
    await new Promise((settle) => setTimeout(settle, 5));
    await store.get('oldest.gguf'); // now it is the most recently used
    disk.room = SIZE + 2 * CHUNK_BYTES + 1000;
    await store.get(url);
    assert.equal(await store.has('oldest.gguf'), true);
    assert.equal(await store.has('newest.gguf'), false);
    await assertHolds(store, url);
  });

  test('the same applies if there is no space for a journal', async (t) => {
    for (const evict of [false, true]) {
      const disk = new MemoryDisk();
      const { url, open } = await begin(t, { disk });
      const old = await open().import(new Blob([pretendedModel(SIZE, 9)]), { name: 'old.gguf' });
      const backend = new MemoryBackend(disk);
      const write = backend.writeRecord.bind(backend);
      backend.writeRecord = async (record) => {
        if (!disk.records.has(old.id)) return write(record);
        throw new WickError('STORAGE_FULL', 'record.json: cannot be saved, storage is full');
      };
      const got = new ModelStore(backend, { evict }).get(url);
      if (evict) {
        assert.equal((await got).isWhole, true);
        continue;
      }
      await assert.rejects(got, (/** @type {any} */ { code, cause }) => {
        assert.equal(code, 'STORAGE_FULL');
        assert.ok(cause.missingBytes > 0);
        assert.deepEqual(cause.candidates, [old]);
        return true;
      });
    }
  });

  test('if no more writes are possible, a complete model is read without asking a server', async (t) => {
    const disk = new MemoryDisk();
    const { store, url, state } = await begin(t, { disk });
    await store.get(url);
    state.starts.length = 0;
    const backend = new MemoryBackend(disk);
    backend.writeRecord = async () => {
      throw new WickError('STORAGE_FULL', 'record.json: cannot be saved, storage is full');
    };
    const full = new ModelStore(backend);
    assert.equal((await full.get(url)).isWhole, true);
    await assertHolds(full, url);
    assert.deepEqual(state.starts, []);
  });

  test('storage that reports this late is handled as well', async (t) => {
    const disk = new MemoryDisk();
    const { store, url } = await begin(t, { disk });
    disk.room = CHUNK_BYTES + 100;
    disk.isSilent = true;
    await assert.rejects(store.get(url), hasCode('STORAGE_FULL'));
    assert.equal((await store.info(url))?.storedBytes, CHUNK_BYTES);
    disk.room = 1e9;
    await store.get(url);
    await assertHolds(store, url);
    assert.equal(new Set(disk.written).size, disk.written.length);
  });
});

describe('a tab that is frozen during a download', () => {
  /** Makes time run ten times as fast. @param {TestContext} t */
  function hurry(t) {
    const now = performance.now.bind(performance);
    t.mock.method(performance, 'now', () => 10 * now());
    return t.mock.method(console, 'warn', () => {});
  }

  test('is reported and replaced, and becomes a follower when it resumes', async (t) => {
    const { store, url, state, disk, open } = await begin(t);
    const warn = hurry(t);
    state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const frozen = new MemoryBackend(disk);
    const write = frozen.writeChunk.bind(frozen);
    /** @type {() => void} */
    let thaw = () => {};
    const thawed = new Promise((settle) => {
      thaw = () => settle(undefined);
    });
    frozen.writeChunk = async (id, index, bytes) => {
      if (index > 0) await thawed;
      await write(id, index, bytes);
    };
    const first = new ModelStore(frozen).get(url);
    await waitUntil(() => disk.written.length === 1, 'the first chunk');
    let wasWaiting = false;
    const entry = await store.get(url, {
      onProgress: ({ isWaiting }) => {
        wasWaiting ||= isWaiting === true;
      },
    });
    assert.deepEqual([entry.isWhole, wasWaiting], [true, true]);
    assert.match(String(warn.mock.calls[0].arguments[0]), /another tab is downloading it/);
    assert.deepEqual(state.starts, [0, CHUNK_BYTES]);
    thaw();
    assert.equal((await first).isWhole, true);
    assert.equal(disk.written.length, new Set(disk.written).size, 'two tabs wrote the same chunk');
    await assertHolds(open(), url);
  });

  test('is not replaced while it responds', async (t) => {
    const { store, url, state, disk, open } = await begin(t);
    hurry(t);
    state.fault = () => ({ cut: CHUNK_BYTES + 5, stall: true });
    const first = assert.rejects(store.get(url), hasCode('CLOSED'));
    await waitUntil(() => disk.written.length === 1, 'the first chunk');
    const backend = new MemoryBackend(disk);
    let looks = 0;
    Object.assign(backend, { isAlive: async () => ++looks > 0 });
    const second = new ModelStore(backend);
    const waiting = second.get(url).catch((error) => error);
    await waitUntil(() => looks > 8, 'sixteen seconds');
    assert.deepEqual(state.starts, [0]);
    await Promise.all([second.close(), store.close()]);
    await Promise.all([waiting, first]);
    assert.equal(await open().has(url), false);
  });
});

describe('an engine’s source', () => {
  const options = {
    headers: {},
    retries: 5,
    stallMs: 0,
    cache: true,
    onRetry: () => {},
  };

  /** @param {KeptSource} source @param {number} [offset] */
  async function readAll(source, offset = 0) {
    const stream = await source.open(0, offset);
    /** @type {Uint8Array[]} */
    const pieces = [];
    for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read()) {
      pieces.push(bytes.slice());
    }
    assert.equal(stream.position, SIZE);
    return Buffer.concat(pieces);
  }

  test('returns bytes as they arrive, and can return any of them again', async (t) => {
    const { store, url, state } = await begin(t);
    state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const source = new KeptSource(store, [{ url }], options);
    const stream = await source.open(0, 0);
    assert.equal(stream.size, SIZE);
    let [read, held] = [0, 0];
    while (read < CHUNK_BYTES + 5) {
      const bytes = /** @type {Uint8Array} */ (await stream.read());
      assert.ok(model.subarray(read, read + bytes.byteLength).equals(bytes));
      read += bytes.byteLength;
      held = (await store.info(url))?.storedBytes ?? 0;
    }
    assert.ok(held <= CHUNK_BYTES, 'bytes were returned before their chunk was stored');
    assert.deepEqual(state.starts, [0]);
    source.close();
    const again = new KeptSource(store, [{ url }], options);
    assert.ok((await readAll(again)).equals(model));
    assert.ok((await readAll(again, SIZE - 7)).equals(model.subarray(SIZE - 7)));
    assert.deepEqual(state.starts, [0, CHUNK_BYTES]);
    again.close();
  });

  test('continues without the store when storage is full', async (t) => {
    const disk = new MemoryDisk();
    const { store, url } = await begin(t, { disk });
    t.mock.method(console, 'warn', () => {});
    for (const [room, isSilent] of /** @type {const} */ ([
      [CHUNK_BYTES + 100, true],
      [CHUNK_BYTES + 100, false],
      [0, true],
    ])) {
      Object.assign(disk, { room, isSilent });
      const source = new KeptSource(store, [{ url }], options);
      assert.ok((await readAll(source)).equals(model));
      source.close();
      assert.equal(await store.has(url), false);
    }
  });

  test('continues at its position if the server ignores ranges', async (t) => {
    const disk = new MemoryDisk();
    const { store, url, state } = await begin(t, { disk });
    t.mock.method(console, 'warn', () => {});
    state.fault = () => ({ whole: true });
    for (const room of [0, 1.5, 2.5].map((chunks) => chunks * CHUNK_BYTES)) {
      Object.assign(disk, { room, isSilent: true });
      const source = new KeptSource(store, [{ url }], options);
      const stream = await source.open(0, 0);
      let position = 0;
      for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read()) {
        assert.ok(model.subarray(position, position + bytes.byteLength).equals(bytes));
        position += bytes.byteLength;
        assert.equal(stream.position, position);
      }
      assert.equal(position, SIZE);
      source.close();
      await store.delete(url);
    }
  });

  test('continues with the same version or reports that the file was changed', async (t) => {
    const disk = new MemoryDisk();
    const { store, url, state, change } = await begin(t, { disk });
    t.mock.method(console, 'warn', () => {});
    for (const whole of [true, false]) {
      change(model);
      Object.assign(disk, { room: CHUNK_BYTES + 100, isSilent: true });
      let asked = 0;
      state.fault = () => {
        if (++asked === 1) setTimeout(() => change(newer));
        return { whole };
      };
      const source = new KeptSource(store, [{ url }], options);
      await assert.rejects(readAll(source), hasCode('CHANGED'));
      source.close();
      await store.delete(url);
    }
  });

  test('compares a download without the store with the known SHA-256', async (t) => {
    const disk = new MemoryDisk();
    const { store, url, state } = await begin(t, { disk });
    t.mock.method(console, 'warn', () => {});
    for (const room of [0, CHUNK_BYTES + 100]) {
      for (const damaged of [false, true]) {
        Object.assign(disk, { room, isSilent: true });
        let asked = 0;
        state.fault = () => (++asked > 1 ? { damaged } : undefined);
        const source = new KeptSource(store, [{ url, sha256: sha256Of(model) }], options);
        if (damaged) await assert.rejects(readAll(source), hasCode('CORRUPT'));
        else assert.ok((await readAll(source)).equals(model));
        source.close();
        await store.delete(url);
      }
    }
  });

  test('warns when the last chunk could not be stored', async (t) => {
    const disk = new MemoryDisk();
    const { store, url } = await begin(t, { disk });
    const warn = t.mock.method(console, 'warn', () => {});
    Object.assign(disk, { room: SIZE - 1, isSilent: true });
    const source = new KeptSource(store, [{ url }], options);
    assert.ok((await readAll(source)).equals(model));
    await waitUntil(() => warn.mock.callCount() === 1, 'the warning');
    assert.match(
      String(warn.mock.calls[0].arguments[0]),
      /the model is not cached: .*storage: full/,
    );
    source.close();
  });

  test('never mixes two versions of a file', async (t) => {
    const { store, url, state, change } = await begin(t);
    state.fault = () => ({ cut: CHUNK_BYTES + 5, stall: true });
    await pauseAfter(store, url);
    change(newer);
    state.fault = () => undefined;
    const source = new KeptSource(store, [{ url }], options);
    assert.ok((await readAll(source)).equals(newer));
    source.close();
    await store.delete(url);
    change(model);
    state.fault = (start) => {
      if (start > 0) return undefined;
      setTimeout(() => change(newer));
      return { cut: CHUNK_BYTES + 5 };
    };
    const other = new KeptSource(store, [{ url }], options);
    await assert.rejects(readAll(other), hasCode('CHANGED'));
    other.close();
  });
});
