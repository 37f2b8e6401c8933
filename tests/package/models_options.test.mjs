// Invalid arguments for the model store: each is rejected with its name before a byte is fetched.
// Also tests exceptions in callbacks.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseHubName } from '../../js/models/hub.js';
import { ModelStore } from '../../js/models/model_store.js';
import { openModels } from '../../js/models/open_store.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { startHub } from '../support/fake_hub.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { waitUntil } from '../support/package.mjs';

const model = pretendedModel(2 * CHUNK_BYTES + 99);

/** @param {import('node:test').TestContext} t @param {Buffer} [bytes] */
async function begin(t, bytes = model) {
  const server = await serveModel(bytes);
  t.after(() => server.close());
  return { ...server, store: new ModelStore(new MemoryBackend(new MemoryDisk())) };
}

describe('options of get', () => {
  test('that are invalid are rejected with their name, and no server is asked', async (t) => {
    const { store, url, state } = await begin(t);
    for (const [name, values] of Object.entries({
      sha256: ['xyz', 5, '0'.repeat(63)],
      size: [-1, 0, 1.5, 'many', Number.NaN],
      retries: [-1, 'x', Number.NaN],
      stallMs: [-5, 'x'],
      connections: [0, -1, 1e9, 'two'],
      headers: [5, { 'a b': 'c' }],
      fetch: [5],
      hub: [5, 'x'],
      signal: [5],
      onProgress: [5],
      sha: ['0'.repeat(64)],
      onprogress: [() => {}],
    })) {
      for (const value of values) {
        const refused = store.get(url, /** @type {any} */ ({ [name]: value }));
        await assert.rejects(refused, { code: 'ARG', message: new RegExp(`${name}\\b`) });
      }
    }
    for (const wrong of [null, 5, 'x']) {
      await assert.rejects(store.get(url, /** @type {any} */ (wrong)), { code: 'ARG' });
    }
    assert.deepEqual([state.starts, await store.list()], [[], []]);
  });

  test('may have the minimum and maximum values', async (t) => {
    for (const options of [
      { connections: 1, retries: 0, stallMs: 2 ** 31 - 1 },
      { connections: 64, stallMs: 0 },
    ]) {
      const { store, url } = await begin(t);
      assert.equal((await store.get(url, options)).isWhole, true);
      for (const more of [{ connections: 65 }, { stallMs: 2 ** 31 }]) {
        await assert.rejects(store.get(url, more), { code: 'ARG' });
      }
    }
    const { store, url } = await begin(t);
    await assert.rejects(
      store.get(url, { size: 1 }),
      { code: 'CORRUPT' },
      'one byte is a valid size',
    );
    const few = { message: /connections must be a whole number from 1 to 64, not 0$/ };
    await assert.rejects(store.get(url, { connections: 0 }), few);
    const none = { message: /size must be a whole number of at least 1, not "x"$/ };
    await assert.rejects(store.get(url, /** @type {any} */ ({ size: 'x' })), none);
  });

  test('may contain the SHA-256 in upper case', async (t) => {
    const { store, url } = await begin(t);
    const sha256 = sha256Of(model);
    assert.equal((await store.get(url, { sha256: sha256.toUpperCase() })).sha256, sha256);
  });

  test('with a wrong size end the download', async (t) => {
    const { store, url, state } = await begin(t);
    const wrong = store.get(url, { size: model.length + 1 });
    await assert.rejects(wrong, { code: 'CORRUPT', message: /its size is not 8388708 bytes/ });
    assert.equal(state.starts.length, 1);
    assert.deepEqual(await store.list(), []);
    assert.equal((await store.get(url, { size: model.length })).isWhole, true);
  });

  test('with a callback that throws reject the call with its error', async (t) => {
    const { store, url, state } = await begin(t);
    state.fault = (start) => (start === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const onProgress = () => {
      throw new Error('mine');
    };
    await assert.rejects(store.get(url, { onProgress }), { message: 'mine' });
    assert.deepEqual(state.starts, [0], 'an abandoned connection was opened again');
    state.fault = () => undefined;
    assert.equal((await store.get(url)).isWhole, true);
  });
});

test('a wrong size in a hub’s listing does not cause an endless download', async (t) => {
  const hub = await startHub({ 'maker/tiny': { 'tiny-Q8_0.gguf': model } });
  t.after(() => hub.close());
  const store = new ModelStore(new MemoryBackend(new MemoryDisk()));
  const lying = /** @type {typeof fetch} */ (
    async (address, init) => {
      const response = await fetch(address, init);
      if (!String(address).includes('/tree/')) return response;
      const rows = /** @type {any[]} */ (await response.json());
      for (const row of rows) Object.assign(row.lfs ?? row, { size: 12345 });
      return new Response(JSON.stringify(rows), { headers: response.headers });
    }
  );
  const got = store.get('maker/tiny:Q8_0', { hub: { endpoint: hub.url }, fetch: lying });
  await assert.rejects(got, { code: 'CHANGED' });
  assert.deepEqual([hub.state.starts, await store.list()], [[0], []]);
});

describe('names', () => {
  test('invalid hub file names are rejected, and none points outside its repository', async (t) => {
    const { store, state } = await begin(t);
    for (const name of [
      ...['hf:', 'hf:a', 'hf://a/b/c.gguf', 'hf:a/b\n/c.gguf', 'hf:ü/ß/ö.gguf', ' hf:a/b'],
      ...['hf:../x/f.gguf', 'hf:a/../b.gguf', 'hf:a/b@../f.gguf', 'hf:a/b/../../c.gguf'],
    ]) {
      assert.equal(parseHubName(name), undefined, name);
      const refused = store.get(name);
      await assert.rejects(refused, { code: 'ARG', message: /is not a valid hub name/ }, name);
      assert.equal(await store.has(name), false);
    }
    assert.deepEqual(state.starts, []);
  });

  test('of files may contain a literal %', async (t) => {
    const { store, url } = await begin(t);
    const entry = await store.get(url.replace('model.gguf', '100%.gguf'));
    assert.deepEqual([entry.name, entry.isWhole], ['100%.gguf', true]);
  });
});

test('a file shorter than the magic number is not a model', async (t) => {
  for (const text of ['', 'GGU']) {
    for (const unknown of [true, false]) {
      const { store, url, state } = await begin(t, Buffer.from(text));
      state.fault = () => ({ unknown });
      await assert.rejects(store.get(url), { code: 'NOT_GGUF' });
      assert.deepEqual(await store.list(), []);
    }
  }
});

describe('a store in a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wick-options-'));
  const given = join(folder, 'given.gguf');
  writeFileSync(given, model.subarray(0, 100));

  test('rejects anything but a file, and invalid options', async (t) => {
    t.after(() => rmSync(folder, { recursive: true }));
    const models = await openModels({ folder: join(folder, 'store') });
    for (const wrong of [5, null, undefined, {}, model, new Response(), new URL('http://x/y')]) {
      const refused = models.import(/** @type {any} */ (wrong));
      await assert.rejects(refused, { code: 'ARG', message: /a Blob or a path/ });
    }
    for (const path of [folder, join(folder, 'none.gguf')]) {
      await assert.rejects(models.import(path), { code: 'IO' });
    }
    for (const [name, value] of [
      ...[
        ['name', ''],
        ['name', 5],
        ['url', ''],
        ['url', 5],
        ['onProgress', 5],
        ['nam', 'x'],
      ],
    ]) {
      const refused = models.import(given, /** @type {any} */ ({ [name]: value }));
      await assert.rejects(refused, { code: 'ARG', message: new RegExp(`${name}\\b`) });
    }
    assert.deepEqual(await models.list(), []);
    const noFolder = await openModels({ folder: given });
    await assert.rejects(noFolder.estimate(), {
      code: 'IO',
      message: /is not a folder for models/,
    });
    assert.equal((await models.import(given, { name: 'mine' })).name, 'mine');
  });

  test('invalid options are rejected', async () => {
    for (const wrong of [{ folder: '' }, { folder: 5 }, { evict: 'no' }, { foldr: 'x' }, null, 5]) {
      await assert.rejects(openModels(/** @type {any} */ (wrong)), { code: 'ARG' });
    }
  });
});

test('changes in a store are reported once to other stores of the origin', {
  timeout: 100_000,
}, async (t) => {
  const disk = new MemoryDisk();
  const [one, other] = [1, 2].map(() => {
    const backend = new MemoryBackend(disk);
    return new ModelStore(Object.assign(backend, { kind: /** @type {any} */ ('indexeddb') }));
  });
  t.after(() => Promise.all([one, other].map((store) => store.close())));
  /** @type {string[]} */
  const reports = [];
  for (const [name, store] of Object.entries({ one, other })) {
    for (const type of ['kept', 'removed']) {
      store.addEventListener(type, (event) => {
        reports.push(`${name}: ${type} ${/** @type {any} */ (event).detail.name}`);
      });
    }
  }
  await one.import(new Blob([model]), { name: 'own.gguf' });
  await waitUntil(() => reports.length === 2, 'the other store to be notified');
  await one.delete('own.gguf');
  await waitUntil(() => reports.length === 4, 'the other store to be notified of the end');
  assert.deepEqual(reports.toSorted(), [
    ...['one: kept own.gguf', 'one: removed own.gguf'],
    ...['other: kept own.gguf', 'other: removed own.gguf'],
  ]);
});
