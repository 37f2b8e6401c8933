// Downloads into the store with random network faults, and with processes that are killed at random moments. No wrong byte
// is ever stored, each chunk is stored once, and stored chunks are not requested again. `make soak` simulates 1,000 faults
// and kills 200 processes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { FolderBackend } from '../../js/models/folder_backend.js';
import { ModelStore } from '../../js/models/model_store.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { root } from '../support/locate.mjs';
import { MemoryBackend, MemoryDisk } from '../support/memory_backend.mjs';
import { pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const FAULTS = soakCount(1000);
const KILLS = soakCount(200);
const CHUNKS = 6;
const SIZE = (CHUNKS - 1) * CHUNK_BYTES + 12_345;
const model = pretendedModel(SIZE);
const sha256 = sha256Of(model);

/** Returns a random fault of the server or the network. @param {() => number} random */
function randomFault(random) {
  const cut = Math.floor(random() ** 2 * 2 * CHUNK_BYTES);
  const kinds = [
    { cut },
    { cut },
    { cut, whole: true },
    { cut, stall: true },
    { status: 500 },
    { status: 503 },
    { status: 429 },
    { status: 404 },
    { page: true },
    { text: 'version https://git-lfs.github.com/spec/v1\n' },
    { text: '' },
    { unknown: true, cut },
    { damaged: true },
  ];
  return kinds[Math.floor(random() * kinds.length)];
}

/** @param {ModelStore} store @param {string} name */
async function assertHolds(store, name) {
  const held = Buffer.from(await /** @type {Blob} */ (await store.blob(name)).arrayBuffer());
  assert.ok(held.equals(model), 'wrong bytes are stored');
}

test(`downloads survive ${FAULTS} network faults`, async (t) => {
  const random = randomOf(soakSeed + 1);
  const server = await serveModel(model);
  t.after(() => server.close());
  const { state, url } = server;
  let faults = 0;
  let downloads = 0;
  while (faults < FAULTS) {
    const disk = new MemoryDisk();
    downloads++;
    let isDamaged = false;
    state.starts.length = 0;
    state.fault = () => {
      if (faults >= FAULTS || random() < 0.3) return undefined;
      faults++;
      const fault = /** @type {any} */ (randomFault(random));
      isDamaged ||= fault.damaged === true;
      return fault;
    };
    for (let tries = 0, isWhole = false; !isWhole; tries++) {
      assert.ok(tries < 10_000, 'the download makes no progress');
      const store = new ModelStore(new MemoryBackend(disk)); // as after a reload
      const connections = random() < 0.3 ? 2 : 1;
      const watch = new AskedAgain(disk, connections, impatient(random));
      const options = { sha256, retries: 1, stallMs: 20, connections, fetch: watch.fetch };
      try {
        isWhole = (await store.get(url, options)).isWhole;
      } catch (error) {
        const { code } = /** @type {any} */ (error);
        const known = ['NETWORK', 'HTTP', 'NOT_GGUF', 'TRUNCATED', 'CORRUPT', 'CHANGED'];
        assert.ok(known.includes(code), String(error));
        if (code === 'CHANGED') assert.ok(isDamaged, 'an unchanged file was reported as changed');
        const isDropped = code === 'CORRUPT' || code === 'CHANGED'; // the store cannot know which byte is wrong
        if (isDropped) disk.written.length = 0;
        assert.equal(await store.has(url), false);
      }
      await store.close();
      if (!isDamaged) assert.deepEqual(watch.found, []);
    }
    await assertHolds(new ModelStore(new MemoryBackend(disk)), url);
    const written = disk.written.length;
    assert.equal(new Set(disk.written).size, written, 'a chunk was written twice');
    if (!isDamaged) assert.equal(written, CHUNKS);
  }
  t.diagnostic(`${faults} faults in ${downloads} downloads`);
});

/**
 * Finds requests for stored chunks. A connection may request the whole file once after each range without data, because the
 * server may not support ranges.
 */
class AskedAgain {
  /** Offsets that were requested again. @type {number[]} */
  found = [];
  /** Upper bound on the connections whose last request had a range. */
  #ranges = 0;

  /** @param {MemoryDisk} disk @param {number} connections @param {typeof fetch} inner */
  constructor(disk, connections, inner) {
    /** @type {typeof fetch} */
    this.fetch = async (input, init) => {
      const range = new Headers(init?.headers).get('Range');
      const start = Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')?.[1]);
      const names = [...disk.chunks.keys()];
      const isStored = names.some((name) => name.endsWith(` ${start / CHUNK_BYTES}`));
      if (isStored && (range !== null || this.#ranges-- <= 0)) this.found.push(start);
      if (range !== null) this.#ranges = Math.min(this.#ranges + 1, connections);
      return inner(input, init);
    };
  }
}

/**
 * Returns a fetch that sometimes fails while it waits for a response.
 * @param {() => number} random
 * @returns {typeof fetch}
 */
const impatient = (random) => async (input, init) => {
  if (random() < 0.05) throw new TypeError('the network has changed');
  return fetch(input, init);
};

const child = `
  const [, folder, url, sha256] = process.argv;
  const { ModelStore } = await import(${JSON.stringify(pathToFileURL(resolve(root, 'js/models/model_store.js')).href)});
  const { FolderBackend } = await import(${JSON.stringify(pathToFileURL(resolve(root, 'js/models/folder_backend.js')).href)});
  const store = new ModelStore(new FolderBackend(folder));
  store.addEventListener('progress', () => process.stdout.write('.'));
  process.stdout.write('begun');
  const { isWhole } = await store.get(url, { sha256 });
  process.stdout.write(isWhole ? ' whole' : ' part');`;

test(`downloads survive ${KILLS} processes killed at random moments`, async (t) => {
  const random = randomOf(soakSeed + 2);
  const server = await serveModel(model);
  const folder = mkdtempSync(join(tmpdir(), 'wick-models-faults-'));
  t.after(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const { state, url } = server;
  // slow enough that a process is killed during a download
  state.paceMs = 10;
  const look = () => new ModelStore(new FolderBackend(folder));
  let kills = 0;
  let whole = 0;
  while (kills < KILLS) {
    const before = (await look().info(url))?.storedBytes ?? 0;
    state.starts.length = 0;
    const started = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      child,
      folder,
      url,
      sha256,
    ]);
    let said = '';
    /** @type {any} */
    let timer;
    const last = `begun${'.'.repeat(Math.floor(random() * 4))}`; // after this many chunks
    const delayMs = random() * 60;
    started.stdout.on('data', (/** @type {Buffer} */ data) => {
      said += data;
      const isTime = timer === undefined && said.startsWith(last);
      if (isTime) timer = setTimeout(() => started.kill('SIGKILL'), delayMs);
    });
    let faults = '';
    started.stderr.on('data', (/** @type {Buffer} */ data) => {
      faults += data;
    });
    const signal = await new Promise((settle) => started.on('close', (_, name) => settle(name)));
    clearTimeout(timer);
    assert.equal(faults, '');
    const entry = await look().info(url);
    // no stored chunk is lost or requested again
    const stored = entry?.storedBytes ?? 0;
    assert.ok(stored >= before, `${stored} of ${before} bytes are left`);
    if (state.starts.length > 0) assert.deepEqual(state.starts, [before]);
    assert.equal(entry?.isWhole ?? false, stored === SIZE && entry?.fingerprint !== undefined);
    const isKilled = signal === 'SIGKILL';
    kills += Number(isKilled);
    assert.ok(isKilled || /^begun\.* whole$/.test(said), said);
    if (!entry?.isWhole) continue;
    whole++;
    await assertHolds(look(), url);
    assert.deepEqual(await look().verify(url), { isWhole: true, damagedChunks: [] });
    await look().delete(url);
  }
  await look().get(url, { sha256 });
  await assertHolds(look(), url);
  assert.ok(whole > 0 || KILLS < 10, 'no model was completed');
  t.diagnostic(`${kills} processes were killed, ${whole} models were completed`);
});
