// A model that cannot fit a host is rejected after the directory is read, without requesting any byte of the
// weights.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { totalmem } from 'node:os';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../../tools/serve.mjs';
import { launchChromium } from '../support/browsers.mjs';
import { claimModel } from '../support/claimed_model.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { dist, hasCode, openEngine } from '../support/package.mjs';

const GiB = 2 ** 30;
/** A model of 5.9 GB, and the largest model of this shape that fits in 4 GiB with its KV cache and scratch. */
const tooLarge = claimModel({ layers: 50 });
const largest = claimModel({ layers: 35 });
/** Exceeds Chromium's limit of 16 GiB for memory with 64-bit addresses. */
const huge = claimModel({ layers: 200 });
const over = claimModel({ layers: 37 });
/** The weights fit, but not together with the KV cache of this context. */
const longContext = claimModel({ layers: 31, context: 300_000 });

/** Measures the part of a model that an engine reads before it fails; the weights never arrive. */
class Watched {
  /** @param {Buffer} directory @param {number} patienceMs for the weights: a reader that reads ahead rejects the model earlier */
  constructor(directory, patienceMs) {
    this.bytes = 0;
    this.wantsWeights = false;
    this.directory = directory;
    this.patienceMs = patienceMs;
  }

  stream() {
    return new ReadableStream(
      {
        pull: async (controller) => {
          if (this.bytes < this.directory.length) {
            const piece = this.directory.subarray(this.bytes, this.bytes + 4096);
            this.bytes += piece.length;
            controller.enqueue(new Uint8Array(piece));
          } else {
            await sleep(this.patienceMs, undefined, { ref: false });
            this.wantsWeights = true;
            controller.error(new Error('the weights were requested'));
          }
        },
      },
      { highWaterMark: 0 },
    );
  }
}

/** @param {string} message @returns {number[]} required bytes, and the limit */
const numbersOf = (message) => {
  const found = /needs (\d+) bytes with a context of \d+ tokens; the [\w' ]+ is (\d+)/.exec(
    message,
  );
  assert.ok(found, message);
  return [Number(found[1]), Number(found[2])];
};

describe('in Node', () => {
  /**
   * @param {import('node:test').TestContext} t
   * @param {{bytes: Buffer}} model
   * @param {object} [options]
   * @param {boolean} [fits] whether the engine is expected to request the weights
   */
  const open = async (t, { bytes }, options = {}, fits = false) => {
    const watched = new Watched(bytes, fits ? 1000 : 60_000);
    const opened = openEngine(t, {
      stream: /** @type {any} */ (watched.stream()),
      threads: 1,
      ...options,
    });
    const error = await opened.then(
      () => assert.fail('the model was loaded'),
      (reason) => reason,
    );
    return { watched, error };
  };

  for (const threads of [1, 2]) {
    test(`a plan larger than the address space is rejected (${threads} threads)`, async (t) => {
      for (const model of [tooLarge, over]) {
        const { watched, error } = await open(t, model, { threads });
        assert.ok(hasCode('NOMEM')(error));
        const [needed, limit] = numbersOf(error.message);
        assert.ok(needed > model.weightsBytes);
        assert.ok(limit < 4 * GiB && limit > 4 * GiB - 2e6, `${limit}`);
        assert.match(error.message, /the host's limit is .*contextSize/);
        assert.equal(watched.wantsWeights, false);
        t.diagnostic(`${watched.bytes} bytes fetched of ${model.weightsBytes} that it claims`);
      }
    });
  }

  test('weights that fit are rejected if the KV cache does not', async (t) => {
    const { watched, error } = await open(t, longContext, { contextSize: 290_000 });
    assert.ok(hasCode('NOMEM')(error), String(error));
    const [needed] = numbersOf(error.message);
    assert.ok(needed > 5.9e9 && longContext.weightsBytes < 3.7e9, `${needed}`);
    assert.equal(watched.wantsWeights, false);
    const shorter = await open(t, longContext, {}, true);
    assert.equal(shorter.watched.wantsWeights, true, String(shorter.error));
  });

  test('just below the limit the weights are requested', async (t) => {
    const { watched, error } = await open(t, largest, {}, true);
    assert.equal(watched.wantsWeights, true, String(error));
    assert.notEqual(error.code, 'NOMEM');
  });

  test('memoryLimit is exact to the byte and never exceeds what the host can provide', async (t) => {
    const small = claimModel({ layers: 2 });
    const refused = await open(t, small, { memoryLimit: 1_000_000 });
    const [needed, limit] = numbersOf(refused.error.message);
    assert.equal(limit, 1_000_000);
    assert.match(refused.error.message, /the budget is .*memoryLimit, contextSize/);
    const below = await open(t, small, { memoryLimit: needed - 1 });
    assert.deepEqual(numbersOf(below.error.message), [needed, needed - 1]);
    assert.equal(below.watched.wantsWeights, false);
    const beyond = await open(t, tooLarge, { memoryLimit: 64 * GiB });
    assert.ok(numbersOf(beyond.error.message)[1] < 4 * GiB);
  });

  test('info() reports the limit', async (t) => {
    const file = resolve(root, 'examples/models/wick-2.6m-q4_0.gguf');
    const { memory } = await (await openEngine(t, { file, threads: 1 })).info();
    assert.ok(memory.limitBytes < 4 * GiB && memory.limitBytes > 4 * GiB - 2e6);
    const own = await (await openEngine(t, { file, memoryLimit: 2e8 })).info();
    assert.equal(own.memory.limitBytes, 2e8);
  });
});

/** @param {string[]} command @param {{bytes: Buffer}} model */
function runOn([program, ...args], { bytes }) {
  const { status, stderr } = spawnSync(program, [...args, 'run', '-', '-p', 'Hello'], {
    input: bytes,
    encoding: 'utf8',
  });
  assert.notEqual(status, 0);
  return stderr;
}

test('under WASI, in Node and in wasmtime', () => {
  const wasi = [JSON.stringify({}), built('wasi/wick.wasm')];
  const support = resolve(root, 'tests/support');
  const commands = [[process.execPath, '--no-warnings', `${support}/run_wasi.mjs`, ...wasi]];
  const { skip, path } = locate('wasmtime');
  if (!skip) commands.push([path, `${support}/run_wasi.py`, ...wasi]);
  for (const command of commands) {
    for (const model of [tooLarge, over]) {
      const [needed, limit] = numbersOf(runOn(command, model));
      assert.ok(needed > limit && limit < 4 * GiB && limit > 4 * GiB - 4e6, `${limit}`);
    }
    // the load continues to the weights, which are missing
    for (const layers of [18, 19]) assert.match(runOn(command, claimModel({ layers })), /ends/);
    assert.match(runOn(command, largest), /ends/);
  }
});

test('natively', () => {
  const command = [built('native/wick')];
  const layers = Math.ceil(totalmem() / 118e6) + 8;
  const [needed, limit] = numbersOf(runOn(command, claimModel({ layers })));
  assert.ok(needed > limit);
  assert.equal(limit, totalmem());
  assert.match(runOn(command, claimModel({ layers: 1 })), /ends/);
});

test('wick inspect shows the limit and the memory that WebAssembly needs', () => {
  const inspect = (/** @type {{bytes: Buffer}} */ { bytes }) =>
    spawnSync(built('native/wick'), ['inspect', '-'], { input: bytes }).stdout.toString();
  assert.match(inspect(tooLarge), /limit here +[\d.]+ [KMG]?i?B/);
  assert.match(inspect(tooLarge), /in WebAssembly +needs 64-bit addresses/);
  assert.match(inspect(huge), /in WebAssembly +too large, at most 16 GiB fit/);
  assert.doesNotMatch(inspect(largest), /in WebAssembly/);
});

test('in Chromium', { skip: locate('chromium').skip }, async (t) => {
  /** @type {string[]} */
  const asked = [];
  const models = new Map([
    ['/huge.gguf', huge],
    ['/too-large.gguf', tooLarge],
    ['/largest.gguf', largest],
  ]);
  // sends only the directory
  const own = createServer((request, response) => {
    const model = models.get(request.url ?? '');
    if (!model) return void response.writeHead(404).end();
    asked.push(`${request.url} ${request.headers.range ?? 'from the beginning'}`);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    response.writeHead(200, { 'Content-Length': model.bytes.length + model.weightsBytes });
    response.write(model.bytes);
  });
  await new Promise((settle) => own.listen(0, '127.0.0.1', () => settle(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (own.address());
  const site = { '/': resolve(root, 'tests/support/empty_page'), '/dist/': dist };
  const server = await serve({ root: site });
  const browser = await launchChromium();
  t.after(async () => {
    own.closeAllConnections();
    own.close();
    await browser.close();
    await server.close();
  });
  const page = await browser.newPage();
  await page.goto(server.url);
  /** @param {string} name */
  const open = (name) =>
    page.evaluate(
      async ([url, path]) => {
        const { createEngine } = await import(path);
        /** @type {number[]} */
        const totals = [];
        const end = new AbortController();
        const signal = end.signal;
        const onProgress = (/** @type {any} */ { loaded }) => {
          totals.push(loaded);
          // the directory was accepted, and the engine waits for the weights
          if (loaded > 0) setTimeout(() => end.abort(), 2000);
        };
        const error = await createEngine({ url, threads: 1, signal, onProgress }).catch(
          (/** @type {any} */ reason) => reason,
        );
        return {
          code: typeof error.code === 'string' ? error.code : error.name,
          message: String(error.message),
          totals,
        };
      },
      [`http://127.0.0.1:${port}${name}`, '/dist/index.js'],
    );
  const refused = await open('/huge.gguf');
  assert.equal(refused.code, 'NOMEM', refused.message);
  const [needed, limit] = numbersOf(refused.message);
  assert.ok(needed > huge.weightsBytes && limit > 15 * GiB && limit <= 16 * GiB);
  for (const name of ['/too-large.gguf', '/largest.gguf']) {
    const waits = await open(name);
    assert.equal(waits.code, 'AbortError', waits.message);
  }
  // the first two are also requested a second time, for 64-bit addresses, if they are not in the browser's cache
  assert.deepEqual(
    [...new Set(asked)],
    ['/huge.gguf', '/too-large.gguf', '/largest.gguf'].map((name) => `${name} from the beginning`),
  );
  t.diagnostic(`${huge.bytes.length} bytes sent, limit ${limit}`);
});
