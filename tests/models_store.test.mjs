// The store of models (js/models) over memory and over folders: what is kept, imports, checks, upkeep, and a process
// that ends before any of its writes.

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
import { FolderBackend } from '../js/models/folder_backend.js';
import { ModelStore } from '../js/models/model_store.js';
import { openModels } from '../js/models/open_models.js';
import { CHUNK_BYTES, VERSION } from '../js/models/records.js';
import { checksum, Sha256 } from '../js/models/sha256.js';
import { root } from './support/locate.mjs';
import { MemoryBackend, MemoryDisk } from './support/memory_backend.mjs';
import { pretendedModel, serveModel, sha256Of } from './support/model_server.mjs';
import { waitUntil } from './support/package.mjs';
import { pretend } from './support/pretend.mjs';
import { randomBytes } from './support/random_bytes.mjs';

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
  assert.ok(held.equals(bytes), 'other bytes are kept');
}

describe('SHA-256', () => {
  test('is that of node:crypto, for any size and any cut', () => {
    for (let size = 0; size < 200; size++) {
      const bytes = randomBytes(size, size + 1);
      const cut = size >> 1;
      const hash = new Sha256().update(bytes.subarray(0, cut)).update(bytes.subarray(cut));
      assert.equal(hash.hex(), createHash('sha256').update(bytes).digest('hex'), `${size} bytes`);
    }
  });

  test('goes on from a state that was kept', () => {
    const first = new Sha256().update(model.subarray(0, CHUNK_BYTES));
    const kept = JSON.parse(JSON.stringify({ state: first.state, size: first.size }));
    const rest = Sha256.resume(kept.state, kept.size).update(model.subarray(CHUNK_BYTES));
    assert.equal(rest.hex(), sha256Of(model));
  });

  test('checksums are the same without Web Crypto', async (t) => {
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
      const again = open(); // as the next visit
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

    test('has one entry for the same content, with the addresses of both', async (t) => {
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

    test('removes one, and all', async (t) => {
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

    test('takes no file that is no model', async (t) => {
      const store = prepare(t)();
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\n`;
      for (const text of ['<!doctype html><title>', pointer, 'GGML', '']) {
        await assert.rejects(store.import(new Blob([text])), hasCode('NOT_GGUF'));
      }
      assert.deepEqual(await store.list(), []);
    });

    test('an import that is aborted leaves nothing', async (t) => {
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

    test('a damaged chunk is found, and it alone is fetched again', async (t) => {
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

    test('an unknown name is refused by name', async (t) => {
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
  test('is that of the option, or that of caches', async (t) => {
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

  test('a model whose file was cut is none: its rest is fetched again', async (t) => {
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

  test('a record that is damaged, or of another version, counts as none', async (t) => {
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

  test('what version 1 kept is opened', async (t) => {
    const folder = newFolder(t);
    cpSync(join(root, 'tests/kept/version1'), folder, { recursive: true });
    const store = await openModels({ folder });
    const entry = await store.get('https://example.com/small.gguf');
    assert.equal(entry.version, 1);
    assert.deepEqual(await store.verify(entry.id), { isWhole: true, damagedChunks: [] });
    const text = await (await store.blob(entry.id))?.text();
    assert.equal(text, 'GGUF, as far as the store can tell: a file that version 1 kept.\n');
    assert.equal(entry.sha256, sha256Of(Buffer.from(String(text))));
  });

  test('the lock of a process that has ended is taken', async (t) => {
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

describe('a process that ends before one of its writes', () => {
  test('leaves a model that is whole and right, or is completed later', async (t) => {
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
      disk.locks.clear(); // they go with the process
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
      // no byte that is stored comes again, and a chunk that was not is written once
      assert.equal(new Set(disk.written).size, disk.written.length);
      assert.equal(disk.written.length, Math.ceil((SIZE - before) / CHUNK_BYTES));
      assert.ok(server.state.sent - sent >= SIZE - before);
      assert.deepEqual(server.state.starts, before === SIZE ? [] : [before]);
    }
    assert.deepEqual([...stored], [0, CHUNK_BYTES, 2 * CHUNK_BYTES, SIZE]);
  });
});
