// Models loaded by URL over an unreliable network: every fault is either handled or reported.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { HttpSource } from '../../js/bytes/http_source.js';
import { createEngine, hasCode, modelPath, openEngine, waitUntil } from '../support/package.mjs';

const model = readFileSync(modelPath);

/**
 * @typedef {import('node:http').IncomingMessage} Request
 * @typedef {import('node:http').ServerResponse} Response
 */

/**
 * Starts a server for one test that responds through `handler` and records its requests.
 * @param {import('node:test').TestContext} t
 * @param {(request: Request, response: Response, count: number) => void} handler `count` from 1
 */
async function listen(t, handler) {
  /** @type {{path: string | undefined, range: string | undefined, ifRange: unknown}[]} */
  const asked = [];
  const server = createServer((request, response) => {
    const { range, 'if-range': ifRange } = request.headers;
    asked.push({ path: request.url, range, ifRange });
    handler(request, response, asked.length);
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', () => settle(undefined)));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/model.gguf`, asked };
}

/** @param {Request} request @returns {number} where the range begins, 0 without a range */
const startOf = (request) => Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);

/**
 * Responds with up to `limit` bytes, and then drops the connection.
 * @param {Request} request
 * @param {Response} response
 * @param {{limit?: number, headers?: Record<string, string>}} [options]
 */
function answer(request, response, { limit = Number.POSITIVE_INFINITY, headers = {} } = {}) {
  const start = startOf(request);
  const body = model.subarray(start);
  const range = start > 0 && {
    'Content-Range': `bytes ${start}-${model.length - 1}/${model.length}`,
  };
  response.writeHead(start > 0 ? 206 : 200, {
    'Content-Length': body.length,
    ETag: '"one"',
    ...range,
    ...headers,
  });
  if (limit >= body.length) response.end(body);
  else response.write(body.subarray(0, limit), () => setTimeout(() => response.destroy(), 20));
}

/** @param {import('../../js/index.js').Engine} engine */
async function assertWhole(engine) {
  const { fingerprint } = await engine.info();
  assert.equal(fingerprint, wantedFingerprint);
  await engine.close();
}

/** @type {string | null} */
let wantedFingerprint;
test('loads the model from disk', async (t) => {
  wantedFingerprint = (await (await openEngine(t)).info()).fingerprint;
  assert.match(String(wantedFingerprint), /^[0-9a-f]+$/);
});

describe('faults that are handled', () => {
  test('no Content-Length', async (t) => {
    const { url } = await listen(t, (_, response) => {
      response.writeHead(200);
      for (let at = 0; at < model.length; at += 500_000)
        response.write(model.subarray(at, at + 500_000));
      response.end();
    });
    await assertWhole(await openEngine(t, { url }));
  });

  test('Content-Encoding: gzip, with and without the length of the compressed bytes', async (t) => {
    const body = gzipSync(model, { level: 1 });
    for (const length of [{}, { 'Content-Length': body.length }]) {
      const { url } = await listen(t, (_, response) => {
        response.writeHead(200, { 'Content-Encoding': 'gzip', ...length }).end(body);
      });
      /** @type {import('../../js/index.js').Progress[]} */
      const reports = [];
      const onProgress = (/** @type {import('../../js/index.js').Progress} */ one) =>
        reports.push(one);
      await assertWhole(await openEngine(t, { url, onProgress }));
      for (const { loaded, total } of reports) assert.ok(total === undefined || loaded <= total);
    }
  });

  test('redirects', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      if (count <= 3) response.writeHead(302, { Location: `/hop${count}` }).end();
      else answer(request, response);
    });
    await assertWhole(await openEngine(t, { url }));
    assert.deepEqual(
      asked.map(({ path }) => path),
      ['/model.gguf', '/hop1', '/hop2', '/hop3'],
    );
  });

  test('a download that breaks repeatedly is resumed where it broke', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      answer(request, response, { limit: count <= 4 ? 600_000 : Number.POSITIVE_INFINITY });
    });
    const phases = new Set();
    const engine = await openEngine(t, { url, onProgress: ({ phase }) => phases.add(phase) });
    await assertWhole(engine);
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 'bytes=600000-', 'bytes=1200000-', 'bytes=1800000-', 'bytes=2400000-'],
    );
    assert.ok(asked.slice(1).every(({ ifRange }) => ifRange === '"one"'));
    assert.deepEqual(phases, new Set(['loading', 'retrying', 'ready']));
  });

  test('… also within the directory', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      answer(request, response, { limit: count === 1 ? 7 : count === 2 ? 3000 : 1e9 });
    });
    await assertWhole(await openEngine(t, { url }));
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 'bytes=7-', 'bytes=3007-'],
    );
  });

  test('… from a server that ignores Range', async (t) => {
    const { url, asked } = await listen(t, (_, response, count) => {
      response.writeHead(200, { 'Content-Length': model.length });
      if (count > 1) response.end(model);
      else
        response.write(model.subarray(0, 20_000), () => setTimeout(() => response.destroy(), 20));
    });
    await assertWhole(await openEngine(t, { url }));
    assert.equal(asked.length, 2);
  });

  test('… from the beginning if the body is compressed', async (t) => {
    const body = gzipSync(model, { level: 1 });
    const { url, asked } = await listen(t, (_, response, count) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', ETag: '"z"' });
      if (count > 1) response.end(body);
      else
        response.write(body.subarray(0, 900_000), () => setTimeout(() => response.destroy(), 20));
    });
    await assertWhole(await openEngine(t, { url }));
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, undefined],
    );
  });

  test('a range that is only a part of the rest', async (t) => {
    const { url } = await listen(t, (request, response, count) => {
      const start = startOf(request);
      const end = count === 1 ? 1_000_000 : Math.min(start + 1_000_000, model.length);
      const range = `bytes ${start}-${end - 1}/${model.length}`;
      if (count === 1) answer(request, response, { limit: end });
      else response.writeHead(206, { 'Content-Range': range, 'Content-Length': end - start });
      if (count > 1) response.end(model.subarray(start, end));
    });
    await assertWhole(await openEngine(t, { url }));
  });

  test('a range that begins earlier than requested', async (t) => {
    const { url } = await listen(t, (request, response, count) => {
      if (count === 1) {
        answer(request, response, { limit: 500_123 });
        return;
      }
      const start = 500_000;
      const range = `bytes ${start}-${model.length - 1}/${model.length}`;
      response.writeHead(206, { 'Content-Range': range }).end(model.subarray(start));
    });
    await assertWhole(await openEngine(t, { url }));
  });

  test('a server that is busy for a while', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      if (count === 1) response.writeHead(503).end();
      else if (count === 2) response.writeHead(429, { 'Retry-After': '1' }).end();
      else answer(request, response);
    });
    const start = performance.now();
    await assertWhole(await openEngine(t, { url }));
    assert.equal(asked.length, 3);
    assert.ok(performance.now() - start >= 1250);
  });

  test('a connection that stalls for the stall time is dropped', async (t) => {
    const hungUp = [new AbortController(), new AbortController()];
    const { url, asked } = await listen(t, (request, response, count) => {
      if (count > 2) return answer(request, response);
      response.on('close', () => hungUp[count - 1].abort());
      const start = startOf(request); // the first sends half of the file, the second not even headers
      if (count === 1) {
        response.writeHead(200, { 'Content-Length': model.length - start, ETag: '"one"' });
        response.write(model.subarray(0, 600_000));
      }
    });
    await assertWhole(await openEngine(t, { url, stallMs: 500 }));
    assert.deepEqual(
      asked.slice(0, 3).map(({ range }) => range),
      [undefined, 'bytes=600000-', 'bytes=600000-'],
    );
    for (const { signal } of hungUp) if (!signal.aborted) await once(signal, 'abort');
    const silent = await listen(t, () => {});
    await assert.rejects(createEngine({ url: silent.url, stallMs: 500, retries: 1 }), {
      code: 'NETWORK',
      message: /resumed 1 times.*no byte arrived for 0\.5 s/,
    });
    assert.equal(silent.asked.length, 2);
  });

  test('… but with a stall time of 0, the download waits', async (t) => {
    const { url, asked } = await listen(t, (request, response) => {
      setTimeout(() => answer(request, response), 300);
    });
    await assertWhole(await openEngine(t, { url, stallMs: 0 }));
    assert.equal(asked.length, 1);
  });

  test('416 after a broken connection: resumes from the last available byte', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      if (count === 1) answer(request, response, { limit: 600_000 });
      else if (count === 2) response.writeHead(416).end();
      else answer(request, response);
    });
    await assertWhole(await openEngine(t, { url }));
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 'bytes=600000-', 'bytes=599999-'],
    );
  });

  test('… even at the end of a file of unknown length', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      const start = startOf(request);
      if (start >= model.length) response.writeHead(416).end();
      else if (count > 1) answer(request, response);
      else {
        response.writeHead(200, { ETag: '"one"' });
        response.write(model, () => setTimeout(() => response.destroy(), 20));
      }
    });
    const source = new HttpSource({
      ...{ urls: [url], headers: {}, retries: 5, stallMs: 30_000 },
    });
    const stream = await source.open(0, 0);
    let size = 0;
    for (let piece = await stream.read(); piece; piece = await stream.read()) {
      assert.deepEqual(Buffer.from(piece), model.subarray(size, size + piece.byteLength));
      size += piece.byteLength;
    }
    assert.equal(size, model.length);
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, `bytes=${model.length}-`, `bytes=${model.length - 1}-`],
    );
  });

  test('an abort while waiting for a busy server leaves no timer', async (t) => {
    const { url, asked } = await listen(t, (_, response) => {
      response.writeHead(503, { 'Retry-After': '30' }).end();
    });
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const source = new HttpSource({
      ...{ urls: [url], headers: {}, retries: 5, stallMs: 30_000 },
    });
    const before = timers();
    const opening = source.open(0, 0).catch((error) => error);
    await waitUntil(() => timers() > before && asked.length === 1, 'the first response');
    await new Promise((settle) => setTimeout(settle, 100));
    source.close();
    assert.equal((await opening).code, 'HTTP');
    assert.ok(timers() <= before, 'the timer is cleared');
  });

  test('headers are sent with every request', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      if (request.headers.authorization !== 'Bearer x') response.writeHead(401).end();
      else answer(request, response, { limit: count === 1 ? 100_000 : 1e9 });
    });
    const headers = { Authorization: 'Bearer x' };
    await assertWhole(await openEngine(t, { url, headers }));
    assert.equal(asked.length, 2);
  });

  test('with directoryOnly, only the directory is read', async (t) => {
    const hungUp = new AbortController();
    const { url, asked } = await listen(t, (_, response) => {
      response.writeHead(200, { 'Content-Length': model.length });
      response.on('close', () => hungUp.abort());
      response.write(model.subarray(0, model.length >> 1)); // the rest is never sent
    });
    await openEngine(t, { url, directoryOnly: true });
    if (!hungUp.signal.aborted) await once(hungUp.signal, 'abort');
    assert.equal(asked.length, 1);
  });
});

describe('faults that are reported', () => {
  /**
   * @param {Promise<unknown>} promise
   * @param {string} code
   * @param {RegExp} words
   * @returns {Promise<any>} the error
   */
  async function assertFails(promise, code, words) {
    const error = await promise.then(
      () => assert.fail(`not ${code}`),
      (/** @type {any} */ reason) => reason,
    );
    assert.ok(hasCode(code)(error));
    assert.match(error.message, words);
    return error;
  }

  test('404 and 403: immediately, with the status', async (t) => {
    for (const status of [404, 403]) {
      const { url, asked } = await listen(t, (_, response) => response.writeHead(status).end('no'));
      const error = await assertFails(
        createEngine({ url }),
        'HTTP',
        new RegExp(`${url}.*${status}`),
      );
      assert.equal(error.cause.status, status);
      assert.equal(asked.length, 1);
    }
  });

  test('only some statuses are retried', async (t) => {
    for (const status of [400, 401, 403, 404, 410, 428, 430, 499]) {
      const { url, asked } = await listen(t, (_, response) => response.writeHead(status).end());
      await assertFails(createEngine({ url, retries: 1 }), 'HTTP', new RegExp(`${status}`));
      assert.equal(asked.length, 1, `${status}`);
    }
    for (const status of [429, 500, 503, 599]) {
      const { url, asked } = await listen(t, (request, response, count) => {
        if (count > 1) answer(request, response);
        else response.writeHead(status).end();
      });
      await (await createEngine({ url, retries: 1, directoryOnly: true })).close();
      assert.equal(asked.length, 2, `${status}`);
    }
  });

  test('500 for every request', async (t) => {
    const { url, asked } = await listen(t, (_, response) => response.writeHead(500).end());
    await assertFails(createEngine({ url, retries: 2 }), 'HTTP', /500/);
    assert.equal(asked.length, 3);
  });

  test('a web page instead of a model', async (t) => {
    const page = '<!doctype html><html><title>Sign in to the hub</title>';
    const { url } = await listen(t, (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page);
    });
    await assertFails(
      createEngine({ url }),
      'NOT_GGUF',
      / is a web page \(«Sign in to the hub»\), not a GGUF file/,
    );
    const lying = await listen(t, (_, response) => response.writeHead(200).end(page));
    await assertFails(createEngine({ url: lying.url }), 'NOT_GGUF', /web page/);
  });

  test('an unreachable server', async (t) => {
    const { url } = await listen(t, () => {});
    const elsewhere = url.replace(/:\d+/, ':1');
    await assertFails(
      createEngine({ url: elsewhere }),
      'NETWORK',
      /127\.0\.0\.1:1 could not be reached/,
    );
  });

  test('a connection that breaks too often', async (t) => {
    const { url, asked } = await listen(t, (request, response) => {
      if (startOf(request) > 100) response.destroy();
      else answer(request, response, { limit: 100_000 });
    });
    await assertFails(
      createEngine({ url, retries: 2 }),
      'NETWORK',
      /was interrupted after 100000 bytes.*2 times/,
    );
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 'bytes=100000-', undefined], // the last attempt has no range, in case ranges cause the failure
    );
  });

  test('a file that changed during the download, with a different size or the same', async (t) => {
    const words = /changed while it was being downloaded/;
    for (const [text, code, said] of /** @type {[string, string, RegExp][]} */ ([
      ['GGUF, but shorter', 'CHANGED', words],
      ['other', 'NOT_GGUF', /begins with «other»/],
    ])) {
      const other = await listen(t, (request, response, count) => {
        if (count === 1) answer(request, response, { limit: 600_000 });
        else response.writeHead(200, { 'Content-Length': text.length }).end(text);
      });
      await assertFails(createEngine({ url: other.url }), code, said);
    }
    const { url } = await listen(t, (request, response, count) => {
      if (count === 1) answer(request, response, { limit: 600_000 });
      else answer(request, response, { headers: { ETag: '"two"' } }); // ignores If-Range
    });
    await assertFails(createEngine({ url }), 'CHANGED', words);
  });

  test('a file that is shorter than its directory requires', async (t) => {
    const short = model.subarray(0, 2_000_000);
    const { url } = await listen(t, (_, response) => {
      response.writeHead(200, { 'Content-Length': short.length }).end(short);
    });
    await assertFails(createEngine({ url }), 'TRUNCATED', /\w/);
  });

  test('416 for every request after a broken connection, and for the first request', async (t) => {
    const { url, asked } = await listen(t, (request, response, count) => {
      if (count === 1) answer(request, response, { limit: 600_000 });
      else response.writeHead(416).end();
    });
    const words = /has no byte 600000: the file is shorter \(416\)/;
    await assertFails(createEngine({ url, retries: 2 }), 'TRUNCATED', words);
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 'bytes=600000-', 'bytes=599999-'],
    );
    const never = await listen(t, (_, response) => response.writeHead(416).end());
    await assertFails(createEngine({ url: never.url }), 'TRUNCATED', /has no byte 0/);
    assert.equal(never.asked.length, 1);
  });

  test('a Git LFS pointer instead of a model', async (t) => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n';
    const { url } = await listen(t, (_, response) => response.writeHead(200).end(pointer));
    const words = /Git LFS pointer, not the model/;
    await assertFails(createEngine({ url }), 'NOT_GGUF', words);
    await assertFails(createEngine({ blob: new Blob([pointer]) }), 'NOT_GGUF', words);
  });

  test('headers that cannot be sent are reported before any request', async (t) => {
    const { url, asked } = await listen(t, (_, response) => response.end());
    const headers = { 'a b': 'c' };
    await assertFails(createEngine({ url, headers }), 'ARG', /"a b" cannot be sent/);
    assert.equal(asked.length, 0);
  });

  test('an empty response', async (t) => {
    const { url } = await listen(t, (_, response) => response.writeHead(200).end());
    await assertFails(createEngine({ url }), 'TRUNCATED', /\w/);
  });
});
