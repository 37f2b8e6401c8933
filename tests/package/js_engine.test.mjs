// The npm package under Node: every way to load a model, stopping, queueing, failing, closing. Text and chat are tested in
// js_text.test.mjs, options in js_options.test.mjs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createReadStream, openAsBlob, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { serve } from '../../tools/serve.mjs';
import { locate } from '../support/locate.mjs';
import {
  assertSpeaks,
  createEngine,
  dist,
  hasCode,
  isAbort,
  keepWorkers,
  modelFolder,
  modelPath,
  openEngine,
  resultOf,
  sleep,
  synthesize,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';

const shared = locate('shared');
const folder = temporaryFolder();
const question = /** @type {const} */ ([{ role: 'user', content: 'What is Wick?' }]);
const greedy = { temperature: 0 };

/** Large enough that an answer takes longer than a test waits. */
const slowModel = join(folder, 'slow.gguf');
await synthesize('100mb', 'q8_0', slowModel);

/** @param {AsyncIterable<string>} pieces @param {() => void} onPiece */
async function readAll(pieces, onPiece) {
  for await (const _ of pieces) onPiece();
}

describe('model sources', () => {
  /** @type {string} */
  let wanted;
  /** @param {import('../../js/index.js').Engine} engine */
  const answer = (engine) =>
    engine.generate('Once upon a time', { ...greedy, maxTokens: 12 }).text();

  test('file: a path', async (t) => {
    wanted = await answer(await openEngine(t));
    assert.ok(wanted.length > 0);
  });

  test('file: a file URL, as wick-llm-demo-model exports', async (t) => {
    const { modelUrl } = await import('wick-llm-demo-model');
    const text = await answer(await openEngine(t, { url: modelUrl }));
    assert.ok(text.length > 0);
    assert.equal(text, await answer(await openEngine(t, { file: fileURLToPath(modelUrl) })));
  });

  test('url', async (t) => {
    const server = await serve({ root: modelFolder });
    t.after(() => server.close());
    const engine = await openEngine(t, { url: `${server.url}wick-2.6m-q8_0.gguf` });
    assert.equal(await answer(engine), wanted);
  });

  test('blob and File', async (t) => {
    const blob = await openAsBlob(modelPath);
    assert.equal(await answer(await openEngine(t, { blob })), wanted);
    const { File } = await import('node:buffer');
    const file = /** @type {any} */ (new File([/** @type {any} */ (blob)], 'model.gguf'));
    assert.equal(await answer(await openEngine(t, { file })), wanted);
  });

  test('stream: a ReadableStream, and any async iterable of bytes', async (t) => {
    const handle = await open(modelPath);
    t.after(() => handle.close());
    const web = /** @type {any} */ (handle.readableWebStream({ type: 'bytes' }));
    assert.equal(await answer(await openEngine(t, { stream: web })), wanted);
    const stream = createReadStream(modelPath, { highWaterMark: 1000 });
    assert.equal(await answer(await openEngine(t, { stream })), wanted);
    const bytes = readFileSync(modelPath);
    const parts = async function* () {
      yield bytes.subarray(0, 1000);
      yield bytes.subarray(1000); // the caller's buffer must not be detached
    };
    assert.equal(await answer(await openEngine(t, { stream: parts() })), wanted);
    assert.equal(bytes.length, statSync(modelPath).size);
  });

  test('fetch: a custom function, with headers', async (t) => {
    /** @type {string[]} */
    const seen = [];
    /** @type {typeof fetch} */
    const own = async (url, init) => {
      seen.push(`${url} ${new Headers(init?.headers).get('x-key')}`);
      return new Response(readFileSync(modelPath));
    };
    const options = { url: 'https://models.invalid/a.gguf', headers: { 'X-Key': 'abc' } };
    const engine = await openEngine(t, { ...options, fetch: own });
    assert.equal(await answer(engine), wanted);
    assert.deepEqual(seen, ['https://models.invalid/a.gguf abc']);
  });

  test('a split model by one name, by all names, as blobs in any order', {
    skip: shared.skip,
  }, async (t) => {
    const split = join(shared.path, 'vectors/reference/split');
    const { readdirSync } = await import('node:fs');
    const names = readdirSync(split)
      .filter((name) => name.endsWith('.gguf'))
      .sort();
    const paths = names.map((name) => join(split, name));
    const texts = [];
    for (const file of [paths[1], paths]) texts.push(await answer(await openEngine(t, { file })));
    const { File } = await import('node:buffer');
    const files = paths.map(
      (path, i) => /** @type {any} */ (new File([readFileSync(path)], names[i])),
    );
    texts.push(await answer(await openEngine(t, { file: files.reverse() })));
    const server = await serve({ root: split });
    t.after(() => server.close());
    texts.push(await answer(await openEngine(t, { url: server.url + names[0] })));
    const deaf = await serve({ root: split, ranges: false });
    t.after(() => deaf.close());
    texts.push(await answer(await openEngine(t, { url: deaf.url + names[0] })));
    assert.deepEqual(new Set(texts), new Set([texts[0]]));
    await assert.rejects(createEngine({ stream: createReadStream(paths[0]) }), hasCode('ARG'));
  });

  test('errors state what is wrong with the options', async () => {
    const wrong = /** @type {any[]} */ ([
      undefined,
      {},
      { url: 'a', file: 'b' },
      { file: 7 },
      { file: modelPath, threads: 0 },
      { file: modelPath, threads: 1.5 },
      { file: modelPath, contextSize: -1 },
      { file: modelPath, kvType: 'f64' },
      { file: modelPath, kvTokens: -1 },
      { url: 'not an address' },
    ]);
    for (const options of wrong) await assert.rejects(createEngine(options), hasCode('ARG'));
    await assert.rejects(createEngine({ file: join(folder, 'none.gguf') }), hasCode('IO'));
    await assert.rejects(createEngine({ file: modelPath, contextSize: 1e6 }), hasCode('ARG'));
  });

  test('errors state what is wrong with the file, and where', async () => {
    const bytes = readFileSync(modelPath);
    const cut = new Blob([bytes.subarray(0, 1_000_000)]);
    await assert.rejects(createEngine({ blob: cut }), hasCode('TRUNCATED'));
    await assert.rejects(createEngine({ blob: new Blob([]) }), hasCode('TRUNCATED'));
    const page = new Blob(['<!DOCTYPE html><title>Sign in</title>']);
    await assert.rejects(createEngine({ blob: page }), hasCode('NOT_GGUF'));
    const other = new Blob([new Uint8Array(5000).fill(65)]);
    await assert.rejects(createEngine({ blob: other }), (error) => {
      assert.ok(hasCode('FORMAT')(error));
      assert.equal(/** @type {any} */ (error).cause.offset, 0);
      return true;
    });
  });

  test('a model over the memory limit is rejected before its weights are read', async () => {
    let read = 0;
    /** @param {AsyncIterable<Uint8Array>} stream */
    async function* counted(stream) {
      for await (const bytes of stream) {
        read += bytes.byteLength;
        yield bytes;
      }
    }
    const stream = counted(createReadStream(slowModel));
    const refused = createEngine({ stream, memoryLimit: 50e6, threads: 1 });
    await assert.rejects(refused, (error) => {
      assert.match(/** @type {Error} */ (error).message, /needs \d+ bytes .* budget is 50000000/);
      return hasCode('NOMEM')(error);
    });
    assert.ok(read < 4e6, `${read} bytes were read`);
  });

  test('directoryOnly inspects and tokenizes without the weights', async (t) => {
    const engine = await openEngine(t, { file: modelPath, directoryOnly: true });
    const { metadata, tensors } = await engine.inspect();
    assert.ok(metadata.some(({ key }) => key === 'general.architecture'));
    assert.equal(tensors.length, 38);
    assert.ok((await engine.countTokens('Hello there')) > 1);
    const info = await engine.info();
    assert.ok(info.memory.linearBytes < 2_500_000, `${info.memory.linearBytes}`);
    const refused = engine.generate('Hello').text();
    await assert.rejects(refused, { code: 'NODATA', message: /directoryOnly/ });
  });

  test('progress is reported from the first bytes to the last', async (t) => {
    /** @type {import('../../js/index.js').Progress[]} */
    const reports = [];
    await openEngine(t, { file: slowModel, onProgress: (progress) => reports.push(progress) });
    const last = reports[reports.length - 1];
    assert.equal(last.phase, 'ready');
    assert.equal(last.loaded, last.total);
    assert.ok(reports.every(({ loaded }, i) => i === 0 || loaded >= reports[i - 1].loaded));
  });
});

describe('stopping', () => {
  test('an abort during loading stops it immediately and frees everything', async () => {
    const controller = new AbortController();
    const [begun, again] = [new AbortController(), new AbortController()];
    let pulls = 0;
    let isLeft = false;
    async function* halting() {
      try {
        yield readFileSync(modelPath).subarray(0, 100_000);
        for (;;) {
          pulls++;
          begun.abort();
          if (!again.signal.aborted) await once(again.signal, 'abort');
          yield new Uint8Array(0);
        }
      } finally {
        isLeft = true;
      }
    }
    const loading = createEngine({ stream: halting(), signal: controller.signal, threads: 2 });
    if (!begun.signal.aborted) await once(begun.signal, 'abort');
    controller.abort();
    await assert.rejects(loading, isAbort); // although the stream never delivers more bytes
    again.abort();
    await waitUntil(() => isLeft, 'the stream to be cancelled');
    assert.equal(pulls, 1, 'the stream was not read further');
    const aborted = AbortSignal.abort();
    await assert.rejects(createEngine({ file: modelPath, signal: aborted }), isAbort);
  });

  test('aborts while prefilling, decoding and queued leave the engine working', async (t) => {
    const engine = await openEngine(t, { file: slowModel, contextSize: 2048 });
    const long = await engine.tokenize('lorem ipsum '.repeat(800));
    for (const [during, ids] of /** @type {const} */ ([
      ['prefill', long.slice(0, 2000)],
      ['decode', long.slice(0, 4)],
    ])) {
      const before = await engine.stats();
      const controller = new AbortController();
      const { signal } = controller;
      const begun = new AbortController();
      const running = engine.generate(ids, { signal, ignoreEnd: true, onPrefill });
      /** @param {{done: number, total: number}} progress */
      function onPrefill({ done, total }) {
        if (during === 'prefill' && done > 0 && done < total) begun.abort();
      }
      let isRejected = false;
      const ended = readAll(running, () => begun.abort()).catch((error) => {
        isRejected = isAbort(error);
      });
      const queued = engine.generate(ids, { signal }).text();
      queued.catch(() => {});
      await once(begun.signal, 'abort');
      controller.abort();
      await new Promise((settle) => setImmediate(settle));
      assert.ok(isRejected, `${during}: the caller must not wait for the engine`);
      await ended;
      await assert.rejects(queued, isAbort);
      // the engine itself must have cancelled the request, long before its end
      await waitUntil(async () => {
        const { requests } = await engine.stats();
        return requests.aborted - before.requests.aborted === 2;
      }, 'the engine to cancel both requests');
      const { requests, rows } = await engine.stats();
      assert.equal(requests.running + requests.waiting, 0);
      assert.ok(rows - before.rows < 1900, `${during}: continued for ${rows - before.rows} tokens`);
    }
    await assertSpeaks(engine);
    await assert.rejects(engine.generate('x', { signal: AbortSignal.abort() }).text(), isAbort);
    const why = new Error('because');
    const reasoned = engine.generate('x', { signal: AbortSignal.abort(why) }).text();
    await assert.rejects(reasoned, (error) => error === why);
  });

  test('leaving the loop cancels the request', async (t) => {
    const engine = await openEngine(t, { file: slowModel, contextSize: 2048 });
    for await (const piece of engine.generate('Hello', { ignoreEnd: true })) {
      assert.equal(typeof piece, 'string');
      break;
    }
    await engine.generate('Hello', { maxTokens: 20, ignoreEnd: true }).text();
    const { requests } = await engine.stats();
    assert.equal(requests.aborted, 1);
    assert.equal(requests.running, 0, 'the cancelled request continued');
  });

  test('a chat stream can be ended by its controller or by a signal', async (t) => {
    const engine = await openEngine(t);
    const body = { ...greedy, messages: [...question], stream: /** @type {const} */ (true) };
    const stream = await engine.chat.completions.create(body);
    await assert.rejects(async () => {
      for await (const _ of stream) stream.controller.abort();
    }, isAbort);
    const controller = new AbortController();
    const other = await engine.chat.completions.create(body, { signal: controller.signal });
    await assert.rejects(async () => {
      for await (const _ of other) controller.abort();
    }, isAbort);
    await assertSpeaks(engine);
  });

  test('a reader that does not read pauses its own request, not another one', async (t) => {
    const engine = await openEngine(t);
    const lazy = engine.generate('Hello', { ...greedy, ignoreEnd: true, maxTokens: 600 });
    const pieces = lazy[Symbol.asyncIterator]();
    await pieces.next();
    await waitUntil(
      async () => (await engine.stats()).requests.paused === 1,
      'the request to pause',
    );
    const { value: held } = await pieces.next(); // still available, and the request has not finished
    assert.equal(typeof held, 'string');
    assert.equal(lazy.result, undefined);
    await assertSpeaks(engine);
    let count = 2;
    for await (const _ of { [Symbol.asyncIterator]: () => pieces }) count++;
    assert.equal(resultOf(lazy).usage.completionTokens, 600);
    assert.ok(count > 100);
  });
});

describe('several calls', () => {
  test('are queued first in, first out, beyond the size of the engine’s own queue', async (t) => {
    const engine = await openEngine(t);
    /** @type {number[]} */
    const order = [];
    const texts = Array.from({ length: 100 }, (_, index) => {
      const onPrefill = () => order.push(index);
      return engine.generate('Hello', { maxTokens: 2, ignoreEnd: true, onPrefill }).text();
    });
    assert.equal((await Promise.all(texts)).length, 100);
    assert.deepEqual(
      order,
      Array.from({ length: 100 }, (_, index) => index),
    );
  });

  test('are answered during a generation', async (t) => {
    const engine = await openEngine(t, { file: slowModel });
    const controller = new AbortController();
    const { signal } = controller;
    const writing = engine.generate('Hello', { signal, ignoreEnd: true });
    const begun = new AbortController();
    const text = readAll(writing, () => begun.abort());
    await once(begun.signal, 'abort');
    await engine.tokenize('Hello');
    assert.equal(writing.result, undefined);
    controller.abort();
    await assert.rejects(text, isAbort);
  });
});

describe('closing', () => {
  test('close: pending and later calls fail with a typed error, closing twice is allowed', async () => {
    const engine = await createEngine({ file: slowModel, threads: 2 });
    const pending = engine.generate('Hello', { ignoreEnd: true }).text();
    pending.catch(() => {});
    await sleep(50);
    await engine.close();
    await assert.rejects(pending, hasCode('CLOSED'));
    await engine.close();
    await assert.rejects(engine.generate('Hello').text(), hasCode('CLOSED'));
    await assert.rejects(engine.tokenize('Hello'), hasCode('CLOSED'));
    await assert.rejects(
      engine.chat.completions.create({ messages: [...question] }),
      hasCode('CLOSED'),
    );
    await assert.rejects(engine.info(), hasCode('CLOSED'));
    await engine[Symbol.asyncDispose]();
  });

  test('close frees the memory', async () => {
    // memory that only garbage collection would free is freed
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const held = () => {
      collect();
      return process.memoryUsage().rss / 1e6;
    };
    const cycle = async (/** @type {number} */ threads) => {
      const engine = await createEngine({ file: slowModel, threads });
      await engine.close();
    };
    await cycle(1);
    for (const threads of [1, 2]) {
      const before = held();
      for (let i = 0; i < 4; i++) await cycle(threads);
      // a thread's memory is freed shortly after its end
      let after = held();
      for (let i = 0; i < 200 && after >= before + 120; i++) {
        await sleep(50);
        after = held();
      }
      assert.ok(after < before + 120, `${after} MB, before ${before} MB`);
    }
  });

  test('if the worker dies, every pending and later call fails with a typed error', async () => {
    const { workers, worker } = keepWorkers();
    const engine = await createEngine({ file: slowModel, worker, threads: 2 });
    const pending = [
      engine.generate('Hello', { ignoreEnd: true }).text(),
      engine.generate('Hello').text(),
      engine.tokenize('Hello'.repeat(1000)),
    ];
    for (const call of pending) call.catch(() => {});
    await workers[0].terminate();
    for (const call of pending.slice(0, 2)) await assert.rejects(call, hasCode('WORKER_CRASHED'));
    await assert.rejects(engine.tokenize('x'), hasCode('WORKER_CRASHED'));
    await assert.rejects(engine.generate('x').text(), hasCode('WORKER_CRASHED'));
    await waitUntil(() => workers[1].threadId === -1, 'the helper to be terminated as well');
    await engine.close();
  });

  test('loading fails if the worker dies or does not exist', async () => {
    const worker = () => {
      const made = new Worker(join(dist, 'worker.js'));
      setTimeout(() => made.terminate(), 150);
      return made;
    };
    async function* endless() {
      for (;;) {
        await sleep(5);
        yield new Uint8Array(0);
      }
    }
    const loading = createEngine({ stream: endless(), worker, threads: 1 });
    await assert.rejects(loading, hasCode('WORKER_CRASHED'));
    const missing = pathToFileURL(join(folder, 'no_worker.js'));
    const lost = createEngine({ file: modelPath, worker: missing });
    await assert.rejects(lost, hasCode('WORKER_CRASHED'));
    const noModule = createEngine({
      file: modelPath,
      wasm: pathToFileURL(join(folder, 'no.wasm')),
    });
    await assert.rejects(noModule, hasCode('WASM'));
    const page = new Response('', { headers: { 'Content-Type': 'text/html; charset=utf-8' } });
    const lostFile = createEngine({ file: modelPath, wasm: page });
    await assert.rejects(lostFile, /web page instead of the engine's WebAssembly: a bundler/);
  });

  test('an idle engine does not keep the process alive', async () => {
    const { run } = await import('../support/process.mjs');
    const script = `
      const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
      const engine = await createEngine({ file: ${JSON.stringify(modelPath)}, threads: 2 });
      const options = { temperature: 0, maxTokens: 8, ignoreEnd: true };
      console.log((await engine.generate('Hello', options).text()).length > 0);`;
    const args = ['--input-type=module', '-e', script];
    const { code, stdout, stderr } = await run(process.execPath, args);
    assert.equal(`${code} ${stdout}${stderr}`, '0 true\n');
  });

  test('Node’s warnings in the worker are reported', async () => {
    const { run } = await import('../support/process.mjs');
    const warning = join(folder, 'warning.cjs');
    writeFileSync(
      warning,
      `const { isMainThread } = require('node:worker_threads');
      if (!isMainThread) setImmediate(() => process.emitWarning('from below'));`,
    );
    const script = `
      const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
      const engine = await createEngine({ file: ${JSON.stringify(modelPath)}, threads: 1 });
      await engine.tokenize('Hello');
      await engine.close();`;
    const args = ['--input-type=module', '-e', script];
    const env = { NODE_OPTIONS: `--require ${JSON.stringify(warning)}` };
    const { code, stdout, stderr } = await run(process.execPath, args, { env });
    assert.equal(`${code} ${stdout}${stderr}`, '0 Warning: from below\n');
  });
});

describe('builds', () => {
  test('wasm: bytes, a module, a response, a folder', async (t) => {
    const path = join(dist, 'wasm/wick-simd128-single.wasm');
    const bytes = readFileSync(path);
    const folder = pathToFileURL(join(dist, 'wasm/'));
    const module = await WebAssembly.compile(bytes);
    for (const wasm of [bytes, module, new Response(bytes), folder, pathToFileURL(path)]) {
      const engine = await openEngine(t, { file: modelPath, wasm, threads: 2 });
      const { threads } = await engine.info();
      if (wasm !== folder) assert.equal(threads, 1);
      await assertSpeaks(engine);
    }
  });
});
