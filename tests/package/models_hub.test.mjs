// Names of models on a hub, with a fake hub (tests/support/fake_hub.mjs).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalName, parseHubName, resolveHubModel } from '../../js/models/hub.js';
import { ModelStore } from '../../js/models/model_store.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { startHub } from '../support/fake_hub.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, sha256Of } from '../support/model_server.mjs';

/** @typedef {import('node:test').TestContext} TestContext */

const small = pretendedModel(5000, 1);
const usual = pretendedModel(CHUNK_BYTES + 5000, 2);
const large = pretendedModel(6000, 3);
const vision = pretendedModel(700, 4);
const parts = [5, 6, 7].map((seed) => pretendedModel(2000 + seed, seed));
const repositories = () => ({
  'maker/tiny': {
    'mmproj-tiny-Q4_K_M.gguf': vision,
    'tiny-Q2_K.gguf': small,
    'tiny-q4_k_m.gguf': usual,
    'more/tiny-Q8_0.gguf': large,
    'split-BF16-00001-of-00003.gguf': parts[0],
    'split-BF16-00002-of-00003.gguf': parts[1],
    'split-BF16-00003-of-00003.gguf': parts[2],
  },
  'maker/other': { 'other-Q8_0.gguf': large, 'gap-F16-00001-of-00002.gguf': small },
  'maker/empty': {},
});

/** @param {TestContext} t */
async function begin(t) {
  const hub = await startHub(repositories());
  t.after(() => hub.close());
  const disk = new MemoryDisk();
  const open = () => new ModelStore(new MemoryBackend(disk));
  return { ...hub, open, store: open(), how: { hub: { endpoint: hub.url } } };
}

/** @param {string} code @param {RegExp} [message] */
const hasCode =
  (code, message = /./) =>
  (/** @type {any} */ error) => {
    assert.equal(error?.code, code, String(error));
    assert.match(error.message, message);
    return true;
  };

// This must be the first test: mocked timers must not close connections of an earlier one.
test('requests to a busy hub are retried after the requested time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const settle = () => new Promise((done) => setImmediate(() => setImmediate(done)));
  const wanted = /** @type {any} */ (parseHubName('hf:maker/tiny:Q8_0'));
  for (const [status, after, waitMs] of /** @type {[number, string | undefined, number][]} */ ([
    [429, undefined, 500],
    [500, '0', 500],
    [503, '2', 2000],
    [503, '3600', 8000],
    [503, 'soon', 500],
  ])) {
    let asked = 0;
    const fetch = async () => {
      const headers = /** @type {any} */ (after === undefined ? {} : { 'Retry-After': after });
      return new Response('[]', asked++ === 0 ? { status, headers } : {});
    };
    const found = resolveHubModel(wanted, { fetch });
    found.catch(() => {}); // fails, because the listing is empty
    await settle();
    t.mock.timers.tick(waitMs - 1);
    await settle();
    assert.equal(asked, 1);
    t.mock.timers.tick(1);
    await settle();
    assert.ok(asked > 1);
    await assert.rejects(found);
  }
});

test('an mmproj file is stored by name, and deleted with the last model of its repository', async (t) => {
  const { store, how } = await begin(t);
  const kept = async () => (await store.list()).map(({ name }) => name).sort();
  await store.get('hf:maker/tiny:Q8_0', how);
  await store.get('hf:maker/tiny:Q2_K', how);
  const mmproj = await store.get('hf:maker/tiny:mmproj', how);
  assert.equal(mmproj.name, 'mmproj-tiny-Q4_K_M.gguf');
  assert.equal(mmproj.sha256, sha256Of(vision));
  assert.ok(await store.has('hf:maker/tiny:MMPROJ'));
  await store.delete('hf:maker/tiny:Q8_0');
  assert.deepEqual(await kept(), ['mmproj-tiny-Q4_K_M.gguf', 'tiny-Q2_K.gguf']);
  await store.delete('hf:maker/tiny:Q2_K');
  assert.deepEqual(await kept(), []);
  await assert.rejects(store.get('hf:maker/other:mmproj', how), hasCode('NOT_FOUND', /MMPROJ/i));
});

test('names are distinguished from URLs', () => {
  const names = {
    'hf:a/b/c/d.gguf': 'hf:a/b/c/d.gguf',
    'HF:a/b@v1.0/d.gguf': 'hf:a/b@v1.0/d.gguf',
    'a/b:q8_0': 'hf:a/b:Q8_0',
    'hf:a/b:Q8_0': 'hf:a/b:Q8_0',
    'hf:a/b': 'hf:a/b:Q4_K_M',
    'a/b@main:IQ1_S': 'hf:a/b@main:IQ1_S',
  };
  for (const [name, canonical] of Object.entries(names)) {
    const parsed = parseHubName(name);
    assert.equal(parsed && canonicalName(parsed), canonical, name);
  }
  for (const name of [
    'models/x.gguf',
    '/a/b:c',
    'https://a.b/c:d',
    'x.gguf',
    '',
    7,
    'a/b/c.gguf',
  ]) {
    assert.equal(parseHubName(name), undefined, String(name));
  }
});

describe('a model on a hub', () => {
  test('is stored under its file name, with its SHA-256, from the current commit', async (t) => {
    const { store, how, url, state } = await begin(t);
    const entry = await store.get('hf:maker/tiny/more/tiny-Q8_0.gguf', how);
    const { name, size, sha256, isWhole } = entry;
    const expected = { name: 'tiny-Q8_0.gguf', size: 6000, sha256: sha256Of(large), isWhole: true };
    assert.deepEqual({ name, size, sha256, isWhole }, expected);
    const address = `${url}/maker/tiny/resolve/${state.commit}/more/tiny-Q8_0.gguf`;
    assert.deepEqual(entry.urls, [address, 'hf:maker/tiny/more/tiny-Q8_0.gguf']);
  });

  test('is rejected before it is fetched if the given SHA-256 differs from the hub’s', async (t) => {
    const { store, how, state } = await begin(t);
    const name = 'hf:maker/tiny/more/tiny-Q8_0.gguf';
    const own = sha256Of(large);
    const other = sha256Of(usual);
    await assert.rejects(store.get(name, { ...how, sha256: other }), {
      code: 'CORRUPT',
      message: `tiny-Q8_0.gguf: is on the hub with the SHA-256 ${own}, not ${other}`,
    });
    assert.deepEqual(
      state.asked.filter((asked) => asked.includes('/resolve/')),
      [],
    );
    assert.equal((await store.get(name, { ...how, sha256: own })).sha256, own);
    await assert.rejects(store.get(name, { ...how, sha256: other }), { code: 'CORRUPT' });
  });

  test('is chosen by its quantization type, or has the default type', async (t) => {
    const { store, how } = await begin(t);
    const found = async (/** @type {string} */ name) => (await store.get(name, how)).name;
    assert.equal(await found('maker/tiny:q2_k'), 'tiny-Q2_K.gguf');
    assert.equal(await found('hf:maker/tiny'), 'tiny-q4_k_m.gguf');
    assert.equal(await found('hf:maker/other'), 'other-Q8_0.gguf');
  });

  test('is not a draft model or an importance matrix, and not larger than needed', async (t) => {
    const bytes = Buffer.from('GGUF');
    const hub = await startHub({
      'o/drafter': Object.fromEntries(
        ['MTP/toy-MTP-Q8_0.gguf', 'mtp-toy-Q8_0.gguf', 'toy-Q8_0.gguf'].map((path) => [
          path,
          bytes,
        ]),
      ),
      'o/matrix': { 'imatrix_unsloth.gguf': bytes, 'toy-Q8_0.gguf': bytes },
      'o/large': { 'BF16/toy-BF16.gguf': bytes, 'toy-Q4_K_S.gguf': bytes, 'toy-Q8_0.gguf': bytes },
      'o/only': { 'toy-MTP-BF16.gguf': bytes },
      'o/made': { 'toy.imatrix.gguf': bytes, 'toy-Q4_K_M-imatrix.gguf': bytes },
    });
    t.after(() => hub.close());
    const pathOf = async (/** @type {string} */ text) => {
      const name = /** @type {import('../../js/models/hub.js').HubName} */ (parseHubName(text));
      const [{ url }] = await resolveHubModel(name, { endpoint: hub.url });
      return url.replace(/.*resolve\/\w+\//, '');
    };
    assert.equal(await pathOf('o/drafter:Q8_0'), 'toy-Q8_0.gguf');
    assert.equal(await pathOf('hf:o/matrix'), 'toy-Q8_0.gguf');
    assert.equal(await pathOf('hf:o/large'), 'toy-Q4_K_S.gguf');
    assert.equal(await pathOf('hf:o/only'), 'toy-MTP-BF16.gguf');
    assert.equal(await pathOf('hf:o/made'), 'toy-Q4_K_M-imatrix.gguf');
    assert.equal(await pathOf('o/made:Q4_K_M'), 'toy-Q4_K_M-imatrix.gguf');
  });

  test('is read from the store without asking the hub', async (t) => {
    const { store, open, how, state } = await begin(t);
    const first = await store.get('maker/tiny:Q2_K', how);
    state.asked.length = 0;
    assert.equal((await open().get('hf:maker/tiny:q2_k', how)).id, first.id);
    assert.equal(await open().has('maker/tiny:Q2_K'), true);
    assert.deepEqual(state.asked, []);
    // the same content in a different repository is the same model
    const other = await store
      .get('hf:maker/other/gap-F16-00001-of-00002.gguf', how)
      .catch(() => {});
    assert.equal(other, undefined);
    const large1 = await store.get('maker/tiny:Q8_0', how);
    const large2 = await store.get('maker/other:Q8_0', how);
    assert.equal(large1.id, large2.id);
    assert.deepEqual(state.starts.length, 2);
    assert.ok(large2.urls.includes('hf:maker/other:Q8_0'));
  });

  test('in several files is fetched completely', async (t) => {
    const { store, how, url, state } = await begin(t);
    await store.get('maker/tiny:BF16', how);
    const kept = (await store.list()).map((entry) => entry.sha256).sort();
    assert.deepEqual(kept, parts.map(sha256Of).sort());
    const second = `${url}/maker/tiny/resolve/${state.commit}/split-BF16-00002-of-00003.gguf`;
    assert.equal(await store.has(second), true);
    state.asked.length = 0;
    await store.get('maker/tiny:BF16', how);
    assert.deepEqual(state.asked, []);
    await store.delete(second);
    await store.get('maker/tiny:BF16', how);
    assert.equal(await store.has(second), true);
    const gap = store.get('maker/other:F16', how);
    await assert.rejects(gap, hasCode('NOT_FOUND', /gap-F16-00002-of-00002/));
  });

  test('continues after its signed URL has expired', async (t) => {
    const { store, open, how, state } = await begin(t);
    state.cut = CHUNK_BYTES + 100;
    await assert.rejects(store.get('hf:maker/tiny', { ...how, retries: 0 }), hasCode('NETWORK'));
    state.epoch++;
    await open().get('hf:maker/tiny', how);
    assert.deepEqual(state.starts, [0, CHUNK_BYTES]);
    assert.equal(state.storageHeaders.at(-1)?.authorization, undefined);
  });

  test('continues after its revision has moved, if the file is the same', async (t) => {
    const { store, open, how, state } = await begin(t);
    state.cut = CHUNK_BYTES + 100;
    await assert.rejects(store.get('hf:maker/tiny', { ...how, retries: 0 }), hasCode('NETWORK'));
    state.commit = 'beef'.padEnd(40, '0');
    const entry = await open().get('hf:maker/tiny', how);
    assert.deepEqual(state.starts, [0, CHUNK_BYTES]);
    assert.equal(entry.sha256, sha256Of(usual));
    assert.equal((await store.list()).length, 1);
  });

  test('that is gated needs a token, which is sent only to the hub', async (t) => {
    const { store, how, state } = await begin(t);
    state.gated['maker/tiny'] = 'secret';
    const name = 'maker/tiny:Q2_K';
    await assert.rejects(store.get(name, how), hasCode('GATED', /token/));
    const wrong = { hub: { ...how.hub, token: 'other' } };
    await assert.rejects(store.get(name, wrong), hasCode('GATED', /token/));
    const right = { hub: { ...how.hub, token: 'secret' } };
    assert.equal((await store.get(name, right)).isWhole, true);
    assert.ok(state.storageHeaders.every(({ authorization }) => authorization === undefined));
  });

  test('is requested again if the hub is busy', async (t) => {
    const { store, how, state } = await begin(t);
    state.busy = 2;
    await store.get('maker/tiny:Q2_K', how);
    assert.equal(state.asked.filter((one) => one === 'GET /api/models/maker/tiny').length, 3);
  });

  test('that does not exist is rejected with its name', async (t) => {
    const { store, how, url } = await begin(t);
    for (const [name, message] of /** @type {const} */ ([
      ['hf:nobody/nothing', /Repository not found/],
      ['maker/tiny:Q5_K_M', /tiny-Q2_K\.gguf/],
      ['hf:maker/tiny/none.gguf', /none\.gguf/],
      ['hf:maker/empty', /no GGUF file/],
      ['hf:maker/tiny@nowhere', /Invalid rev id/],
    ])) {
      await assert.rejects(store.get(name, how), hasCode('NOT_FOUND', message));
    }
    const away = { hub: { endpoint: 'http://127.0.0.1:9' } };
    await assert.rejects(store.get('maker/tiny:Q2_K', away), hasCode('NETWORK'));
    const wrong = { hub: { endpoint: 'nowhere' } };
    await assert.rejects(store.get('maker/tiny:Q2_K', wrong), hasCode('ARG'));
    await assert.rejects(
      store.get(`${url}/maker/tiny/raw/main/tiny-Q2_K.gguf`),
      hasCode('NOT_GGUF', /LFS/),
    );
    assert.deepEqual(await store.list(), []);
  });

  test('can be given by the URL of its file’s page', async (t) => {
    const { store, url } = await begin(t);
    const page = `${url}/maker/tiny/blob/main/tiny-Q2_K.gguf`;
    assert.equal((await store.get(page)).isWhole, true);
    assert.equal(await store.has(page.replace('/blob/', '/resolve/')), true);
  });
});
