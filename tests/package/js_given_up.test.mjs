// Loads that are cancelled or fail unexpectedly: resources passed by the caller (a fetch function, a stream) are released
// immediately, and the process can exit.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  createEngine,
  dist,
  hasCode,
  isAbort,
  keepWorkers,
  modelPath,
  openEngine,
  waitUntil,
} from '../support/package.mjs';
import { run } from '../support/process.mjs';

const model = new Uint8Array(readFileSync(modelPath));
const url = 'http://nowhere.invalid/model.gguf';

describe('a custom fetch function', () => {
  /** Results of the function. The late response ignores the abort signal. */
  const answers = {
    'a pending promise': 'new Promise(() => {})',
    'a late response':
      'new Promise((settle) => setTimeout(() => settle(new Response(body())), 50))',
    'status 503': 'Promise.resolve(new Response("", { status: 503 }))',
    'a partial body': 'Promise.resolve(new Response(body(new TextEncoder().encode("GG"))))',
  };
  for (const [name, answer] of Object.entries(answers)) {
    test(`that returns ${name} is called once, and the process exits`, async () => {
      const script = `
        const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')))});
        const controller = new AbortController();
        let asked = 0, open = 0;
        const body = (...chunks) => new ReadableStream({
          start(stream) { open++; for (const chunk of chunks) stream.enqueue(chunk); },
          cancel() { open--; },
        });
        const fetch = () => {
          asked++;
          setTimeout(() => controller.abort(), 20);
          return ${answer};
        };
        await createEngine({ url: '${url}', retries: 1, fetch, signal: controller.signal })
          .catch((error) => console.log(error.name));
        process.on('exit', () => console.log(asked, open));`;
      const args = ['--input-type=module', '-e', script];
      const { stdout, stderr } = await run(process.execPath, args);
      assert.equal(`${stdout}${stderr}`, 'AbortError\n1 0\n');
    });
  }

  test('that returns no response, or throws a value that cannot be cloned', async () => {
    const fetches = /** @type {any[]} */ ([
      async () => undefined,
      async () => {
        throw { reason: () => {} };
      },
    ]);
    const [none, strange] = fetches;
    await assert.rejects(createEngine({ url, fetch: none }), hasCode('ARG'));
    await assert.rejects(createEngine({ url, fetch: strange }), hasCode('NETWORK'));
  });
});

describe('a stream', () => {
  test('that stalls is cancelled', async () => {
    let isCancelled = false;
    const web = new ReadableStream({
      start: (stream) => stream.enqueue(model.slice(0, 1000)),
      cancel: () => {
        isCancelled = true;
      },
    });
    const node = new Readable({ read() {} });
    node.push(model.slice(0, 1000));
    for (const stream of [web, node]) {
      const controller = new AbortController();
      const onProgress = () => controller.abort();
      const loading = createEngine({ stream, onProgress, signal: controller.signal, threads: 1 });
      await assert.rejects(loading, isAbort);
    }
    await waitUntil(() => isCancelled && node.destroyed, 'the streams to be cancelled');
  });

  test('may return early in any way, as a custom async iterable', async (t) => {
    const ways = [
      () => ({ done: true }),
      () => {
        throw new Error('mine');
      },
    ];
    for (const leave of ways) {
      const chunks = [model, undefined];
      const next = async () => ({ done: chunks.length === 1, value: chunks.shift() });
      const stream = { [Symbol.asyncIterator]: () => ({ next, return: leave }) };
      const engine = await openEngine(t, { stream: /** @type {any} */ (stream) });
      await engine.close();
    }
  });

  test('may fail with any value', async () => {
    for (const reason of [{ reason: () => {} }, Symbol('mine'), Object.create(null), undefined]) {
      const stream = new ReadableStream({ start: (one) => one.error(reason) });
      await assert.rejects(createEngine({ stream }), hasCode('IO'));
    }
  });
});

test('null options are ignored; an invalid URL is rejected', async (t) => {
  const none = /** @type {any} */ ({ worker: null, wasm: null, signal: null, swap: null });
  await openEngine(t, { file: modelPath, ...none });
  const lost = createEngine({ file: modelPath, worker: './worker.js' });
  await assert.rejects(lost, hasCode('ARG'));
});

test('a second close waits for the first', async () => {
  const { workers, worker } = keepWorkers();
  const engine = await createEngine({ file: modelPath, worker, threads: 2 });
  const first = engine.close();
  await engine.close();
  for (const { threadId } of workers) assert.equal(threadId, -1);
  await first;
});
