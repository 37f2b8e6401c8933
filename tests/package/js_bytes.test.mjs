// Unit tests of the sources of a model's bytes: HTTP with a fake fetch, in a page and outside of one,
// blobs, files on disk and streams.

import assert from 'node:assert/strict';
import fs, { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, describe, test } from 'node:test';
import { HttpSource } from '../../js/bytes/http_source.js';
import { BlobSource, createSource, StreamSource } from '../../js/bytes/model_sources.js';
import { openRows } from '../../js/bytes/row_readers.js';
import { loadModel } from '../../js/worker/load_model.js';
import { ownSource } from '../../js/worker/own_source.js';
import { PageBytes } from '../../js/worker/page_source.js';
import { pretend } from '../support/pretend.mjs';

const folder = mkdtempSync(join(tmpdir(), 'wick-bytes-'));
after(() => rmSync(folder, { recursive: true }));
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @param {{read: () => Promise<Uint8Array | null>}} stream @returns {Promise<Uint8Array[]>} copies */
async function piecesOf(stream) {
  const pieces = [];
  let bytes = await stream.read();
  for (; bytes; bytes = await stream.read()) pieces.push(bytes.slice());
  assert.equal(bytes, null);
  return pieces;
}
const textOf = (/** @type {Uint8Array[]} */ pieces) => Buffer.concat(pieces).toString();

const url = 'http://models.example/m.gguf';
const file = 'GGUF0123456789abcdef';

/**
 * Simulates a server with one file: each response is a function of the request; the last one serves all further requests.
 * @param {((range: number | undefined, init: any) => any)[]} answers
 * @param {any} [options]
 */
function server(answers, options = {}) {
  /** @type {any[]} */
  const asked = [];
  const retries = /** @type {number[]} */ ([]);
  const source = new HttpSource({
    ...{ urls: [url], headers: { 'X-A': 'b' }, retries: 2, stallMs: 0 },
    onRetry: (attempt) => void retries.push(attempt),
    fetch: any(async (/** @type {string} */ from, /** @type {any} */ init) => {
      const range = /^bytes=(\d+)-$/.exec(init.headers.get('Range') ?? '')?.[1];
      asked.push({
        from,
        range: range && Number(range),
        ifRange: init.headers.get('If-Range'),
        a: init.headers.get('X-A'),
      });
      return answers[Math.min(asked.length, answers.length) - 1](range && any(Number(range)), init);
    }),
    ...options,
  });
  return { source, asked, retries };
}

/** @param {string} text @param {any} [init] a response; if `breaks`, its body fails after the text */
function answer(text, { breaks = false, headers = {}, status = 200, type = undefined } = {}) {
  const bytes = new TextEncoder().encode(text);
  let isDone = false;
  const body = new ReadableStream({
    pull(controller) {
      if (isDone && breaks) return controller.error(new Error('reset'));
      if (isDone) return controller.close();
      isDone = true;
      controller.enqueue(bytes);
    },
  });
  const response = new Response(any(body), { status, headers });
  if (type) Object.defineProperty(response, 'type', { value: type });
  return response;
}
const whole = () => answer(file, { headers: any({ 'Content-Length': '20' }) });
const part = (/** @type {number} */ from, /** @type {any} */ headers = {}) =>
  answer(file.slice(from), {
    status: 206,
    headers: any({
      'Content-Range': `bytes ${from}-19/20`,
      'Content-Length': `${20 - from}`,
      ...headers,
    }),
  });
const broken = (/** @type {number} */ to, /** @type {any} */ headers = {}) =>
  answer(file.slice(0, to), { breaks: true, headers: { 'Content-Length': '20', ...headers } });

describe('HTTP', () => {
  test('a whole file with its size and headers', async () => {
    const { source, asked } = server([whole]);
    const stream = await source.open(0, 0);
    assert.deepEqual(
      [stream.size, stream.position, source.files, source.canSeek],
      [20, 0, 1, true],
    );
    assert.equal(textOf(await piecesOf(stream)), file);
    assert.equal(stream.position, 20);
    assert.deepEqual(asked, [{ from: url, range: undefined, ifRange: null, a: 'b' }]);
    stream.cancel();
    source.close();
  });

  test('from an offset: accepts a part (even one that begins earlier) or the whole file', async () => {
    const one = server([() => part(6)]);
    const stream = await one.source.open(0, 6);
    assert.deepEqual([stream.position, stream.size, one.asked[0].range], [6, 20, 6]);
    assert.equal(textOf(await piecesOf(stream)), file.slice(6));
    const two = server([() => part(4)]);
    const early = await two.source.open(0, 6);
    assert.equal(early.position, 4); // the loader skips the bytes it already has
    assert.equal(textOf(await piecesOf(early)), file.slice(4));
    const three = server([whole]);
    const all = await three.source.open(0, 6);
    assert.deepEqual([all.position, three.source.canSeek, all.size], [0, false, 20]);
    assert.equal(textOf(await piecesOf(all)), file);
    const four = server([() => part(8)]);
    await assert.rejects(four.source.open(0, 6), {
      code: 'HTTP',
      message: /returned bytes from 8, not from 6/,
    });
  });

  test('a broken download resumes where it stopped, from a part or the whole file', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const [second, seeks] of /** @type {const} */ ([
      [() => part(7), true],
      [whole, false],
    ])) {
      const { source, asked, retries } = server([() => broken(7), second]);
      const stream = await source.open(0, 0);
      const reading = piecesOf(stream);
      for (let i = 0; i < 60; i++) {
        await new Promise((settle) => setImmediate(settle));
        t.mock.timers.tick(50);
      }
      assert.equal(textOf(await reading), file);
      assert.deepEqual([asked[1].range, retries, stream.takesRanges], [7, [1], seeks]);
    }
  });

  test('a download that breaks too often fails, with delays between retries', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const breaking = (/** @type {any} */ from) =>
      from === undefined
        ? broken(7)
        : answer('', {
            breaks: true,
            status: 206,
            headers: any({ 'Content-Range': 'bytes 7-19/20' }),
          });
    const { source, asked, retries } = server([breaking], { retries: 3 });
    const stream = await source.open(0, 0);
    const reading = assert.rejects(piecesOf(stream), {
      code: 'NETWORK',
      message: `The download of ${url} was interrupted after 7 bytes (resumed 3 times): reset`,
    });
    const settle = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    const counts = [];
    for (const ms of [249, 1, 499, 1, 999, 1]) {
      await settle();
      t.mock.timers.tick(ms);
      await settle();
      counts.push(asked.length);
    }
    await reading;
    assert.deepEqual(counts, [1, 2, 2, 3, 3, 4]);
    assert.deepEqual(retries, [1, 2, 3]);
  });

  test('a changed file is detected by its tag, date or size', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    /** @type {[any, any, boolean][]} */
    const cases = [
      [{ ETag: '"a"' }, { ETag: '"b"' }, true],
      [{ ETag: '"a"' }, { ETag: '"a"' }, false],
      [{ ETag: 'W/"a"' }, { ETag: 'W/"b"' }, false], // weak tags do not identify bytes
      [{ 'Last-Modified': 'x' }, { 'Last-Modified': 'y' }, true],
      [{ ETag: 'W/"a"', 'Last-Modified': 'x' }, { ETag: 'W/"a"', 'Last-Modified': 'y' }, true],
      [{}, { ETag: '"b"' }, false],
      [{ ETag: '"a"' }, {}, false],
      [{}, { 'Content-Range': 'bytes 7-20/21' }, true],
    ];
    for (const [first, second, isOther] of cases) {
      const { source } = server([() => broken(7, first), () => part(7, second)]);
      const reading = piecesOf(await source.open(0, 0)).then(textOf, (error) => error.code);
      for (let i = 0; i < 20; i++) {
        await new Promise((settle) => setImmediate(settle));
        t.mock.timers.tick(50);
      }
      assert.equal(await reading, isOther ? 'CHANGED' : file, JSON.stringify([first, second]));
    }
  });

  test('unknown sizes and sizes of compressed bodies are not reported', async () => {
    const sizeOf = async (/** @type {any} */ headers, /** @type {any} */ more = {}) =>
      (await server([() => answer(file, { headers, ...more })]).source.open(0, 0)).size;
    assert.equal(await sizeOf({}), undefined);
    assert.equal(await sizeOf({ 'Content-Length': '20' }), 20);
    assert.equal(await sizeOf({ 'Content-Length': 'x' }), undefined);
    for (const kind of ['gzip', 'br', 'deflate', 'zstd', 'GZIP']) {
      assert.equal(await sizeOf({ 'Content-Length': '9', 'Content-Encoding': kind }), undefined);
    }
    assert.equal(await sizeOf({ 'Content-Length': '20', 'Content-Encoding': 'identity' }), 20);
    assert.equal(await sizeOf({ 'Content-Length': '20' }, { type: 'cors' }), undefined);
    const limited = server([
      () =>
        answer('0123', {
          status: 206,
          headers: any({ 'Content-Length': '4', 'Content-Range': 'bytes 4-7/20' }),
        }),
    ]);
    assert.equal((await limited.source.open(0, 4)).size, 20);
  });

  test('rejected downloads report the reason', async () => {
    const refused = async (/** @type {any} */ response) => {
      const { source, asked } = server([() => response], { retries: 0 });
      const error = await source.open(0, 0).then(
        () => undefined,
        (reason) => reason,
      );
      assert.equal(asked.length, 1);
      return [error.code, error.message];
    };
    assert.deepEqual(await refused(new Response('', { status: 404, statusText: 'Not Found' })), [
      'HTTP',
      `${url} answered 404 Not Found`,
    ]);
    assert.deepEqual(await refused(new Response('', { status: 403 })), [
      'HTTP',
      `${url} answered 403`,
    ]);
    assert.deepEqual(await refused(new Response('', { status: 503 })), [
      'HTTP',
      `${url} answered 503`,
    ]);
    assert.deepEqual(await refused(new Response('', { status: 416 })), [
      'TRUNCATED',
      `${url} has no byte 0: the file is shorter (416)`,
    ]);
    assert.deepEqual(await refused(new Response(null, { status: 200 })), [
      'HTTP',
      `${url}: response has no body`,
    ]);
    assert.deepEqual(await refused({}), ['ARG', 'fetch: did not return a Response']);
    assert.deepEqual(await refused(undefined), ['ARG', 'fetch: did not return a Response']);
    const page = (/** @type {string} */ text) =>
      new Response(text, { headers: { 'Content-Type': 'text/html; charset=utf-8' } });
    const [code, message] = await refused(page('<html><TITLE lang=en>\n Hub, a model </title>'));
    assert.equal(code, 'NOT_GGUF');
    assert.match(message, /is a web page \(«Hub, a model»\), not a GGUF file/);
    assert.match((await refused(page('<p>')))[1], /is a web page, not a GGUF file/);
    assert.match(
      (await refused(new Response(null, { headers: { 'Content-Type': 'text/html' } })))[1],
      /is a web page, not/,
    );
  });

  test('requests to a busy server are retried after the requested pause', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const settle = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    const now = 'Sat, 28 Nov 2026 10:00:00 GMT';
    /** @type {[number, any, number][]} status, Retry-After, the wait */
    const cases = [
      [429, undefined, 250],
      [500, '0', 250],
      [503, '2', 2000],
      [503, '99', 99_000],
      [503, '120', 120_000],
      [503, 'Sat, 28 Nov 2026 10:01:00 GMT', 60_000],
      [503, 'Sat, 28 Nov 2026 09:59:00 GMT', 250],
      [503, 'soon', 250],
    ];
    t.mock.method(Date, 'now', () => Date.parse(now));
    for (const [status, after_, waitMs] of cases) {
      const headers = any(after_ === undefined ? {} : { 'Retry-After': after_ });
      /** @type {number[]} */
      const waits = [];
      const { source, asked } = server([() => new Response('', { status, headers }), whole], {
        onRetry: (/** @type {number} */ _, /** @type {number} */ ms) => void waits.push(ms),
      });
      const opened = source.open(0, 0);
      await settle();
      assert.deepEqual(waits, [waitMs]);
      t.mock.timers.tick(waitMs - 1);
      await settle();
      assert.equal(asked.length, 1);
      t.mock.timers.tick(1);
      await opened;
      assert.equal(asked.length, 2);
    }
  });

  test('a requested pause of more than two minutes fails immediately', async () => {
    const headers = { 'Retry-After': '121' };
    const { source, asked } = server([() => new Response('', { status: 429, headers })]);
    await assert.rejects(source.open(0, 0), (/** @type {any} */ { code, message, cause }) => {
      assert.equal(code, 'HTTP');
      const words = 'it requests a pause of 121 s (limit 120 s). Try again later';
      assert.equal(message, `${url} answered 429: ${words}`);
      assert.equal(cause.retryAfterSeconds, 121);
      return true;
    });
    assert.equal(asked.length, 1);
  });

  test('a stalled connection is dropped, an unneeded one is closed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const settle = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    /** @type {AbortSignal[]} */
    const signals = [];
    const silent = (/** @type {any} */ _, /** @type {any} */ init) => {
      signals.push(init.signal);
      return new Promise(() => {});
    };
    const { source } = server([silent], { stallMs: 1500, retries: 0 });
    const opened = assert.rejects(source.open(0, 0), {
      code: 'NETWORK',
      message: /was interrupted after 0 bytes: .*no byte arrived for 1.5 s/,
    });
    await settle();
    t.mock.timers.tick(1500);
    await opened;
    assert.equal(signals[0].aborted, true);
    const waiting = server([silent], { stallMs: 0 });
    const cancelled = assert.rejects(waiting.source.open(0, 0), {
      code: 'NETWORK',
      message: /it was cancelled/,
    });
    await settle();
    waiting.source.close();
    await cancelled;
    assert.deepEqual([signals.length, signals[1].aborted], [2, true]);
  });

  test('an unreachable server fails immediately, with Node’s reason', async () => {
    const none = server([
      () =>
        Promise.reject(new TypeError('fetch failed', { cause: new Error('refused by 1.2.3.4') })),
    ]);
    await assert.rejects(none.source.open(0, 0), {
      code: 'NETWORK',
      message: 'models.example could not be reached: refused by 1.2.3.4',
    });
    assert.equal(none.asked.length, 1);
    const plain = server([() => Promise.reject(new TypeError('x'))]);
    await assert.rejects(plain.source.open(0, 0), {
      message: 'models.example could not be reached',
    });
  });
});

describe('HTTP with unreliable ranges', () => {
  const rest = (/** @type {any} */ headers, /** @type {string} */ text = file.slice(7)) =>
    answer(text, { status: 206, headers });
  const cors = (/** @type {Response} */ response) =>
    Object.defineProperty(response, 'type', { value: 'cors' });
  /** The server's response to the second request, which has no range. */
  const first = () => broken(7);

  /** @param {((range: number | undefined) => any)[]} answers @param {any} [options] */
  async function read(answers, options) {
    const made = server(answers, options);
    const text = await made.source
      .open(0, 0)
      .then(piecesOf)
      .then(textOf, (error) => error.code);
    return { text, ranges: made.asked.map(({ range }) => range) };
  }

  test('headers that contradict each other: the file is requested without a range', async () => {
    for (const headers of [
      { 'Content-Range': 'bytes 9-19/20' },
      { 'Content-Range': 'bytes 7-19/20', 'Content-Length': '12' },
      { 'Content-Range': 'bytes 7-6/20' },
      { 'Content-Range': 'bytes seven-19/20' },
      { 'Content-Range': 'items 7-19/20' },
      { 'Content-Range': 'bytes 7-19/20', 'Content-Encoding': 'gzip' },
      { 'Content-Type': 'multipart/byteranges; boundary=x' },
    ]) {
      const { text, ranges } = await read([first, () => rest(headers), whole]);
      assert.deepEqual([text, ranges], [file, [undefined, 7, undefined]], JSON.stringify(headers));
    }
  });

  test('a range without Content-Range is compared with the bytes before it', async () => {
    const from = (/** @type {number} */ at) => () => rest({}, file.slice(at));
    // a range that begins here would contain all received bytes
    assert.deepEqual(await read([first, from(9), whole]), {
      text: file,
      ranges: [undefined, 7, undefined],
    });
    const long = 'GGUF'.padEnd(9000, '0123456789abc');
    for (const [shift, wanted] of /** @type {const} */ ([
      [0, [undefined, 8000, 8000 - 4096]],
      [100, [undefined, 8000, 8000 - 4096, undefined]],
      [-100, [undefined, 8000, 8000 - 4096, undefined]],
    ])) {
      const { text, ranges } = await read([
        () =>
          cors(
            answer(long.slice(0, 8000), { breaks: true, headers: { 'Content-Length': '9000' } }),
          ),
        (range) =>
          range === undefined ? cors(answer(long)) : cors(rest({}, long.slice(range + shift))),
      ]);
      assert.deepEqual([text, ranges], [long, wanted], String(shift));
    }
  });

  test('a cross-origin range with only a part of the rest is continued', async () => {
    const long = 'GGUF'.padEnd(9000, '0123456789abc');
    const { text, ranges } = await read([
      () => cors(answer(long.slice(0, 5000), { breaks: true })),
      (range = 0) =>
        range >= long.length
          ? new Response('', { status: 416 })
          : cors(rest({}, long.slice(range, range + 4096 + 1500))),
    ]);
    assert.equal(text, long);
    assert.deepEqual(ranges, [undefined, 5000, 904, 2404, 3904, 4904]);
  });

  test('after a part of the rest the next request follows immediately, because no connection broke', async () => {
    const parts = (/** @type {number | undefined} */ range = 0) => {
      const end = Math.min(20, range + 5);
      const headers = { 'Content-Range': `bytes ${range}-${end - 1}/20`, 'Content-Length': '5' };
      return rest({ ...headers, 'Content-Length': `${end - range}` }, file.slice(range, end));
    };
    const made = server([first, parts], { retries: 1 });
    const stream = await made.source.open(0, 0);
    assert.equal(textOf(await piecesOf(stream)), file);
    assert.deepEqual(
      made.asked.map(({ range }) => range),
      [undefined, 7, 12, 17],
    );
    assert.deepEqual(made.retries, [1]);
  });

  test('a range whose body cannot be decoded is requested once without a range', async () => {
    const undecodable = () =>
      answer('', { breaks: true, status: 206, headers: any({ 'Content-Range': 'bytes 7-19/20' }) });
    assert.deepEqual(await read([first, undecodable, whole]), {
      text: file,
      ranges: [undefined, 7, undefined],
    });
    const refused = () => Promise.reject(new TypeError('Failed to fetch'));
    assert.deepEqual(await read([first, refused, whole]), {
      text: file,
      ranges: [undefined, 7, undefined],
    });
  });

  test('repeated bytes that differ mean a different file', async () => {
    const other = file.replace('0', 'x');
    assert.equal((await read([first, () => answer(other)])).text, 'CHANGED');
  });
});

describe('HTTP in a page', () => {
  const location = { origin: 'http://page.example' };
  const failing = () => Promise.reject(new TypeError('Failed to fetch'));

  test('a server without CORS is distinguished from one that does not exist', async (t) => {
    /** @type {any[]} */
    const probed = [];
    let isThere = true;
    const fetch = async (/** @type {any[]} */ ...args) => {
      probed.push(args);
      if (!isThere) throw new TypeError('none');
      return new Response('');
    };
    pretend(t, { location, fetch });
    await assert.rejects(server([failing]).source.open(0, 0), {
      code: 'CORS',
      message:
        'models.example does not let this page (http://page.example) read the file: its response has no ' +
        'Access-Control-Allow-Origin header. Serve the model from the page’s own origin, or allow it on that server',
    });
    assert.deepEqual(probed, [[url, { method: 'HEAD', mode: 'no-cors' }]]);
    isThere = false;
    await assert.rejects(server([failing]).source.open(0, 0), {
      code: 'NETWORK',
      message: 'models.example could not be reached',
    });
    pretend(t, { crossOriginIsolated: true });
    await assert.rejects(server([failing]).source.open(0, 0), {
      code: 'NETWORK',
      message: /could not be reached, or does not let this page read/,
    });
    pretend(t, { crossOriginIsolated: false, fetch: () => new Promise(() => {}) });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let isOver = false;
    const silent = assert
      .rejects(server([failing]).source.open(0, 0), { code: 'NETWORK' })
      .then(() => {
        isOver = true;
      });
    const settled = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    for (const [ms, wanted] of /** @type {[number, boolean][]} */ ([
      [4999, false],
      [1, true],
    ])) {
      await settled();
      t.mock.timers.tick(ms);
      await settled();
      assert.equal(isOver, wanted);
    }
    await silent;
    pretend(t, { fetch });
    probed.length = 0;
    pretend(t, { location: { origin: 'http://models.example' } });
    await assert.rejects(server([failing]).source.open(0, 0), {
      code: 'NETWORK',
      message: 'models.example could not be reached',
    });
    assert.deepEqual(probed, []); // no probe: the server is same-origin
  });

  test('If-Range is sent only to a same-origin server', async (t) => {
    for (const [origin, wanted] of [
      ['http://models.example', '"a"'],
      ['http://page.example', null],
      ['null', '"a"'],
    ]) {
      pretend(t, { location: { origin } });
      const { source, asked } = server([
        () => broken(7, { ETag: '"a"' }),
        () => part(7, { ETag: '"a"' }),
      ]);
      assert.equal(textOf(await piecesOf(await source.open(0, 0))), file);
      assert.deepEqual([asked[0].ifRange, asked[1].ifRange], [null, wanted]);
    }
  });
});

describe('blobs, files and streams', () => {
  const bytes = Uint8Array.from({ length: (1 << 20) + 5 }, (_, i) => i % 251);

  test('a blob is read in pieces of a megabyte, from any offset', async () => {
    const source = new BlobSource([new Blob([bytes]), new Blob(['x'])]);
    assert.deepEqual([source.files, source.canSeek], [2, true]);
    const stream = await source.open(0, 0);
    assert.equal(stream.size, bytes.length);
    const pieces = await piecesOf(stream);
    assert.deepEqual(
      pieces.map((piece) => piece.length),
      [1 << 20, 5],
    );
    assert.ok(Buffer.concat(pieces).equals(bytes));
    const rest = await piecesOf(await source.open(0, bytes.length - 3));
    assert.deepEqual(Buffer.concat(rest), Buffer.from(bytes.slice(-3)));
    assert.deepEqual(await piecesOf(await source.open(0, bytes.length)), []);
    await assert.rejects(source.open(2, 0), (error) => any(error).code !== undefined);
    const gone = new BlobSource([
      any({ size: 5, slice: () => ({ arrayBuffer: () => Promise.reject(new Error('gone')) }) }),
    ]);
    await assert.rejects((await gone.open(0, 0)).read(), {
      code: 'IO',
      message: /could not be read: Error: gone/,
    });
  });

  test('a file on disk, small or large', async () => {
    const small = join(folder, 'small');
    const large = join(folder, 'large');
    writeFileSync(small, bytes);
    writeFileSync(large, bytes);
    truncateSync(large, (16 << 20) + 1); // a single read returns one byte less
    const source = createSource({ kind: 'path', paths: [small, large] }, () => {});
    const stream = await source.open(0, 7);
    assert.deepEqual([stream.position, stream.size], [7, bytes.length]);
    const read = await piecesOf(stream);
    assert.deepEqual(
      read.map((piece) => piece.length),
      [1 << 18, 1 << 18, 1 << 18, (1 << 18) - 2],
    );
    assert.ok(Buffer.concat(read).equals(bytes.subarray(7)));
    assert.equal(stream.position, bytes.length);
    stream.cancel();
    const other = await source.open(1, 3);
    assert.equal(other.size, (16 << 20) + 1);
    const first = await other.read();
    assert.equal(first?.length, 1 << 20);
    assert.ok(
      Buffer.from(/** @type {Uint8Array} */ (first).subarray(0, 1000)).equals(
        bytes.subarray(3, 1003),
      ),
    );
    assert.equal(other.position, 3 + (1 << 20));
    let size = other.position;
    for (let piece = await other.read(); piece; piece = await other.read()) size += piece.length;
    assert.equal(size, (16 << 20) + 1);
    other.cancel();
    await assert.rejects(createSource({ kind: 'path', paths: [folder] }, () => {}).open(0, 0), {
      code: 'IO',
      message: /it is a folder/,
    });
    await assert.rejects(
      createSource({ kind: 'path', paths: [join(folder, 'none')] }, () => {}).open(0, 0),
      { code: 'IO', message: /none cannot be read: .*ENOENT/ },
    );
    writeFileSync(join(folder, 'empty'), '');
    const empty = await createSource(
      { kind: 'path', paths: [join(folder, 'empty')] },
      () => {},
    ).open(0, 0);
    assert.deepEqual([empty.size, await empty.read()], [undefined, null]);
    empty.cancel();
  });

  test('a small file is closed with its stream', async (t) => {
    const closed = t.mock.method(fs, 'closeSync');
    const path = join(folder, 'closed');
    writeFileSync(path, 'wick');
    closed.mock.resetCalls();
    const stream = await createSource({ kind: 'path', paths: [path] }, () => {}).open(0, 0);
    await stream.read();
    assert.equal(closed.mock.callCount(), 0);
    stream.cancel();
    assert.equal(closed.mock.callCount(), 1);
  });

  test('a large file is closed with its stream', async (t) => {
    const { open } = fs.promises;
    /** @type {any} */
    let handle;
    t.mock.method(fs.promises, 'open', async (/** @type {[any, any]} */ ...how) => {
      handle = await open(...how);
      return handle;
    });
    const path = join(folder, 'closed large');
    writeFileSync(path, '');
    truncateSync(path, (16 << 20) + 1);
    const stream = await createSource({ kind: 'path', paths: [path] }, () => {}).open(0, 0);
    await stream.read();
    assert.ok(handle.fd >= 0);
    const closed = new Promise((settle) => handle.once('close', settle));
    stream.cancel();
    await closed;
    assert.equal(handle.fd, -1);
  });

  test('rows of files are read by file number and offset, up to the end of the file', (t) => {
    const paths = ['one', 'two'].map((name) => join(folder, name));
    writeFileSync(paths[0], 'abc');
    writeFileSync(paths[1], 'defgh');
    const rows = /** @type {import('../../js/bytes/row_readers.js').RowReader} */ (
      openRows({ kind: 'path', paths })
    );
    t.after(rows.close);
    assert.equal(rows.size, 8);
    const read = (/** @type {number[]} */ ...at) => Buffer.from(any(rows).read(...at)).toString();
    assert.deepEqual([read(1, 1, 3), read(0, 2, 9), read(1, 5, 1)], ['efg', 'c', '']);
    assert.equal(openRows({ kind: 'path', paths: [...paths, join(folder, 'none')] }), undefined);
  });

  test('rows of Blobs are read if the host can read Blobs synchronously', async (t) => {
    const blobs = [new Blob(['abc']), new Blob(['defgh'])];
    const source = any({ kind: 'blob', blobs });
    assert.equal(openRows(source), undefined, 'Node has no FileReaderSync');
    class Reader {
      readAsArrayBuffer = (/** @type {Blob} */ blob) => new ArrayBuffer(blob.size);
    }
    pretend(t, { FileReaderSync: Reader });
    const chunks = any({ kind: 'chunks', files: blobs.map((blob) => ({ blob })) });
    for (const rows of [openRows(source), openRows(chunks)]) {
      assert.equal(rows?.size, 8);
      assert.deepEqual([rows?.read(1, 1, 3).length, rows?.read(1, 3, 3).length], [3, 2]);
      rows?.close();
    }
    assert.equal(openRows(any({ kind: 'page' })), undefined);
  });

  test('a stream is read once, from the beginning, and must yield bytes', async () => {
    const given = async function* () {
      yield Uint8Array.of(1, 2);
      yield Buffer.from([3]);
    };
    const source = new StreamSource(given());
    assert.deepEqual([source.files, source.canSeek], [1, false]);
    const stream = await source.open(0, 5);
    assert.deepEqual([stream.position, stream.size], [0, undefined]);
    assert.deepEqual(Buffer.concat(await piecesOf(stream)), Buffer.from([1, 2, 3]));
    assert.equal(stream.position, 3);
    await assert.rejects(source.open(0, 0), { code: 'INTERNAL' });
    await assert.rejects(source.open(1, 0), (error) => any(error).code !== 'INTERNAL');
    const words = new StreamSource(
      any(
        (async function* () {
          yield 'a';
        })(),
      ),
    );
    await assert.rejects((await words.open(0, 0)).read(), {
      code: 'ARG',
      message: /must yield bytes/,
    });
    const failing = new StreamSource(
      (async function* () {
        yield* /** @type {Uint8Array[]} */ ([]);
        throw new Error('tap');
      })(),
    );
    await assert.rejects((await failing.open(0, 0)).read(), {
      code: 'IO',
      message: /The stream failed: Error: tap/,
    });
  });

  test('cancelled streams are closed', async () => {
    let isCancelled = false;
    const web = new ReadableStream({
      cancel() {
        isCancelled = true;
      },
    });
    (await new StreamSource(any(web)).open(0, 0)).cancel();
    assert.equal(isCancelled, true);
    const node = new Readable({ read() {} });
    const source = new StreamSource(node);
    const stream = await source.open(0, 0);
    void stream.read().catch(() => {});
    source.close();
    assert.equal(node.destroyed, true);
    let isClosed = false;
    const own = (async function* () {
      try {
        yield Uint8Array.of(1);
      } finally {
        isClosed = true;
      }
    })();
    const mine = await new StreamSource(own).open(0, 0);
    await mine.read();
    mine.cancel();
    await new Promise((settle) => setImmediate(settle));
    assert.equal(isClosed, true);
  });
});

describe('chunks in the origin private file system', () => {
  const chunkBytes = 400_000;
  const whole = new Uint8Array(2 * chunkBytes + 1234).map((_, index) => index % 251);
  const blob = new Blob([whole]);
  const bytesOf = (/** @type {number} */ index) =>
    whole.subarray(index * chunkBytes, (index + 1) * chunkBytes);

  /**
   * Returns a folder whose files are opened with `open`, and a list of the open ones.
   * @param {(index: number) => Promise<Uint8Array>} open
   */
  function pretendFolder(open, { hasFolder = true } = {}) {
    const held = new Set();
    /** @type {string[]} */
    const opened = [];
    const getFileHandle = async (/** @type {string} */ name) => ({
      async createSyncAccessHandle(/** @type {{mode: string}} */ { mode }) {
        assert.equal(mode, 'read-only');
        const bytes = await open(Number(name));
        opened.push(name);
        held.add(name);
        const read = (/** @type {Uint8Array} */ to, /** @type {{at: number}} */ { at }) => {
          assert.ok(held.has(name));
          const from = bytes.subarray(at, at + to.byteLength);
          to.set(from);
          return from.byteLength;
        };
        return { read, close: () => held.delete(name) };
      },
    });
    const folders = ['models', 'one'];
    const getDirectoryHandle = async (/** @type {string} */ name) => {
      if (!hasFolder || name !== folders.shift()) throw new Error('NotFoundError');
      return { getDirectoryHandle, getFileHandle };
    };
    const storage = { getDirectory: async () => ({ getDirectoryHandle }) };
    Object.defineProperty(globalThis, 'navigator', { value: { storage }, configurable: true });
    const given = { folder: ['models', 'one'], size: whole.byteLength, chunkBytes, blob };
    structuredClone({ ...given, blob: undefined }); // Safari cannot send a handle to a worker
    const source = ownSource({ kind: 'chunks', files: [given] }, () => {});
    return { source, held, opened };
  }

  /** @param {ReturnType<typeof pretendFolder>} folder_ @param {number} offset */
  async function assertReads({ source }, offset) {
    const stream = await source.open(0, offset);
    assert.equal(stream.size, whole.byteLength);
    const pieces = Buffer.concat(await piecesOf(stream));
    assert.ok(pieces.equals(whole.subarray(offset)), `from ${offset}`);
    assert.equal(stream.position, whole.byteLength);
    stream.cancel();
  }

  test('are read through handles, from any offset, and closed', async () => {
    for (const offset of [
      0,
      1,
      chunkBytes - 1,
      chunkBytes,
      2 * chunkBytes + 1233,
      whole.byteLength,
    ]) {
      const made = pretendFolder(async (index) => bytesOf(index));
      await assertReads(made, offset);
      await new Promise(setImmediate);
      assert.equal(made.held.size, 0);
      const first = Math.floor(offset / chunkBytes);
      const expected = ['0', '1', '2'].slice(offset === whole.byteLength ? 3 : first);
      assert.deepEqual(made.opened, expected);
    }
    const made = pretendFolder(async (index) => bytesOf(index));
    await assert.rejects(made.source.open(1, 0), any({ code: 'ARG' }));
  });

  test('abandoned streams are closed, even those that open later', async () => {
    /** @type {(() => void)[]} */
    const answers = [];
    const made = pretendFolder(
      (index) => new Promise((settle) => void answers.push(() => settle(bytesOf(index)))),
    );
    const stream = await made.source.open(0, 0);
    const read = stream.read();
    await new Promise(setImmediate);
    assert.equal(answers.length, 3, 'chunks are opened ahead');
    answers[0]();
    assert.equal((await read)?.byteLength, 1 << 18);
    stream.cancel();
    for (const answer of answers) answer();
    await new Promise(setImmediate);
    assert.deepEqual([made.held.size, made.opened.length], [0, 3]);
  });

  test('that are locked, truncated or never open are read from the Blob', async (t) => {
    await assertReads(
      pretendFolder(async (index) => bytesOf(index), { hasFolder: false }),
      5,
    );
    await assertReads(
      pretendFolder(() => Promise.reject(new Error('it is locked'))),
      5,
    );
    const cut = (/** @type {number} */ index) =>
      bytesOf(index).subarray(0, index === 1 ? 7 : undefined);
    await assertReads(
      pretendFolder(async (index) => cut(index)),
      0,
    );
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const never = pretendFolder((index) =>
      index === 1 ? new Promise(() => {}) : Promise.resolve(bytesOf(index)),
    );
    const reading = assertReads(never, 0);
    for (let turn = 0; turn < 60; turn++) {
      await new Promise(setImmediate);
      t.mock.timers.tick(2000);
    }
    await reading;
  });
});

describe('HTTP, one connection after another', () => {
  const settled = () => new Promise((done) => setImmediate(() => setImmediate(done)));

  /**
   * Returns a body that delivers the given pieces, into the reader's buffer if the reader passes one.
   * @param {string[]} pieces
   * @param {{isBytes?: boolean, end?: 'close' | 'break' | 'stay'}} [options]
   */
  function bodyOf(pieces, { isBytes = false, end = 'close' } = {}) {
    const left = pieces.map((piece) => new TextEncoder().encode(piece));
    /** @type {any} */
    const seen = { isCancelled: false, rooms: [], starts: [] };
    const body = new ReadableStream(
      any({
        ...(isBytes && { type: 'bytes' }),
        pull(/** @type {any} */ controller) {
          const piece = left.shift();
          const request = controller.byobRequest;
          if (request) {
            seen.rooms.push(request.view.byteLength);
            seen.starts.push(request.view[0]);
          }
          if (piece && !request) return controller.enqueue(piece);
          if (piece) {
            request.view.set(piece);
            return request.respond(piece.length);
          }
          if (end === 'stay') return new Promise(() => {});
          if (end === 'break') return controller.error(new Error('reset'));
          controller.close();
          request?.respond(0);
        },
        cancel() {
          seen.isCancelled = true;
        },
      }),
      { highWaterMark: 0 },
    );
    return { body, seen };
  }

  const answerOf = (/** @type {any} */ body, /** @type {any} */ headers = {}, status = 200) =>
    new Response(body, { status, headers });
  const sized = { 'Content-Length': '20' };

  /** @param {import('node:test').TestContext} t @param {Promise<any>} promise settles while delays between retries are skipped */
  async function soon(t, promise) {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    promise.then(over, over);
    for (let i = 0; i < 400 && !isOver; i++) {
      await settled();
      t.mock.timers.tick(500);
    }
    return promise;
  }

  test('if the body can fill a buffer, one buffer of a megabyte is used for all pieces', async () => {
    const { body, seen } = bodyOf(['abc', 'de', 'f'], { isBytes: true });
    const stream = await server([() => answerOf(body)]).source.open(0, 0);
    const pieces = [];
    for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read()) {
      pieces.push(Buffer.from(bytes).toString());
    }
    assert.deepEqual(pieces, ['abc', 'de', 'f']);
    assert.deepEqual(seen.rooms, Array(4).fill(1 << 20));
    assert.deepEqual(seen.starts, [0, 97, 100, 102]); // each buffer also contains the bytes read before
    stream.cancel();
    const left = bodyOf(['abc'], { isBytes: true, end: 'stay' });
    const other = await server([() => answerOf(left.body)]).source.open(0, 0);
    await other.read();
    other.cancel();
    await settled();
    assert.equal(left.seen.isCancelled, true);
  });

  test('bytes repeated by a second response are skipped, in pieces of any size', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const size of [1, 3, 7, 8, 20]) {
      const pieces = file.match(new RegExp(`.{1,${size}}`, 'g')) ?? [];
      const again = () => answerOf(bodyOf(pieces).body, sized);
      const { source, asked } = server([() => broken(7), again]);
      const stream = await source.open(0, 0);
      assert.equal(textOf(await soon(t, piecesOf(stream))), file);
      assert.deepEqual([stream.position, stream.size, asked.length], [20, 20, 2]);
    }
  });

  test('a file that ends too soon is resumed; one of unknown size is considered complete', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const short = () => answerOf(bodyOf([file.slice(0, 5)]).body, sized);
    const one = server([short, () => part(5)]);
    assert.equal(textOf(await soon(t, piecesOf(await one.source.open(0, 0)))), file);
    assert.deepEqual([one.asked[1].range, one.retries], [5, [1]]);
    const two = server([short, short], { retries: 1 });
    const stream = await two.source.open(0, 0);
    const message = `The download of ${url} was interrupted after 5 bytes (resumed 1 times): it ended after 5 of 20 bytes`;
    await assert.rejects(soon(t, piecesOf(stream)), (error) => {
      assert.deepEqual([any(error).code, any(error).message], ['NETWORK', message]);
      assert.equal(any(error).cause.name, 'Interrupted');
      return true;
    });
    const three = server([() => answerOf(bodyOf([file.slice(0, 5)]).body)]);
    assert.equal(textOf(await piecesOf(await three.source.open(0, 0))), file.slice(0, 5));
    assert.equal(three.asked.length, 1);
  });

  test('retries are counted from the last received byte', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const from = (/** @type {number} */ start, /** @type {number} */ stop) => () =>
      answerOf(
        bodyOf([file.slice(start, stop)], { end: 'break' }).body,
        {
          ...{ 'Content-Range': `bytes ${start}-19/20`, 'Content-Length': `${20 - start}` },
        },
        206,
      );
    const { source, asked, retries } = server(
      [() => broken(2), from(2, 4), from(4, 6), from(6, 8), () => part(8)],
      { retries: 1 },
    );
    assert.equal(textOf(await soon(t, piecesOf(await source.open(0, 0)))), file);
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 2, 4, 6, 8],
    );
    assert.deepEqual(retries, [1, 1, 1, 1]);
  });

  test('each attempt has a separate signal; the previous connection is closed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    /** @type {AbortSignal[]} */
    const signals = [];
    /** @type {boolean[]} */
    const fresh = [];
    const remember = (/** @type {any} */ init) => {
      signals.push(init.signal);
      fresh.push(!init.signal.aborted);
    };
    const stalled = bodyOf([file.slice(0, 3)], { end: 'stay' });
    const rest = bodyOf([file.slice(3)], { end: 'stay' });
    const answers = [
      answerOf(stalled.body, sized),
      answerOf(rest.body, { 'Content-Range': 'bytes 3-19/20' }, 206),
    ];
    const answering = (/** @type {any} */ _, /** @type {any} */ init) => {
      remember(init);
      return answers.shift();
    };
    const { source } = server([answering], { stallMs: 1000 });
    const stream = await source.open(0, 0);
    await stream.read();
    assert.equal((await soon(t, stream.read()))?.length, 17);
    assert.deepEqual(fresh, [true, true]);
    assert.deepEqual([signals[0].aborted, stalled.seen.isCancelled], [true, true]);
    assert.deepEqual([signals[1].aborted, rest.seen.isCancelled, stream.size], [false, false, 20]);
    let cancels = 0;
    stream.cancel();
    await settled();
    assert.deepEqual([signals[1].aborted, rest.seen.isCancelled], [true, true]);
    stream.cancel = () => void cancels++;
    source.close();
    assert.equal(cancels, 0); // the stream is no longer registered as open
  });

  test('a response that arrives too late is closed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    /** @type {(response: any) => void} */
    let arrive = () => {};
    const late = bodyOf(['x'], { end: 'stay' });
    const { source } = server([() => new Promise((settle) => (arrive = settle))], {
      ...{ stallMs: 1000, retries: 0 },
    });
    await assert.rejects(soon(t, source.open(0, 0)), { code: 'NETWORK' });
    arrive(answerOf(late.body));
    await settled();
    assert.equal(late.seen.isCancelled, true);
  });

  test('an offset of one byte is requested as a range, too', async () => {
    const one = server([() => part(1)]);
    assert.deepEqual([(await one.source.open(0, 1)).position, one.asked[0].range], [1, 1]);
    const two = server([whole]);
    assert.deepEqual([(await two.source.open(0, 1)).position, two.source.canSeek], [0, false]);
  });

  test('416 fails a first request; after received bytes, the range is requested again with the last byte', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const none = () => new Response('', { status: 416 });
    const first = server([none]);
    await assert.rejects(first.source.open(0, 5), { code: 'TRUNCATED' });
    assert.equal(first.asked.length, 1);
    const brokenAgain = () =>
      answerOf(
        bodyOf([file.slice(6, 9)], { end: 'break' }).body,
        {
          'Content-Range': 'bytes 6-19/20',
        },
        206,
      );
    const { source, asked } = server([() => broken(7), none, brokenAgain, () => part(9)]);
    assert.equal(textOf(await soon(t, piecesOf(await source.open(0, 0)))), file);
    assert.deepEqual(
      asked.map(({ range }) => range),
      [undefined, 7, 6, 9],
    );
    const ended = server([() => broken(7), none], { retries: 2 });
    await assert.rejects(soon(t, piecesOf(await ended.source.open(0, 0))), { code: 'TRUNCATED' });
    assert.deepEqual(
      ended.asked.map(({ range }) => range),
      [undefined, 7, 6],
    );
  });

  test('the size stays known; Content-Range counts only in a 206 response', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const unsized = () =>
      answerOf(bodyOf([file.slice(7)]).body, { 'Content-Range': 'bytes 7-19/20' }, 206);
    const one = await server([() => broken(7), unsized]).source.open(0, 0);
    assert.equal(textOf(await soon(t, piecesOf(one))), file);
    assert.equal(one.size, 20);
    const two = server([
      () => answerOf(bodyOf([file]).body, { ...sized, 'Content-Range': 'bytes 0-19/99' }),
    ]);
    assert.equal((await two.source.open(0, 0)).size, 20);
    const bare = server([
      () => answerOf(bodyOf([file.slice(6)]).body, { 'Content-Length': '14' }, 206),
    ]);
    const stream = await bare.source.open(0, 6);
    assert.deepEqual([stream.size, stream.position], [20, 6]);
  });

  test('a part of a file of a different size is a change, even without Content-Length', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const longer = () =>
      answerOf(bodyOf([file.slice(7)]).body, { 'Content-Range': 'bytes 7-20/21' }, 206);
    const { source } = server([() => broken(7), longer]);
    await assert.rejects(soon(t, piecesOf(await source.open(0, 0))), { code: 'CHANGED' });
  });

  test('a changed file is not retried', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { source, asked, retries } = server([
      () => broken(7, { ETag: '"a"' }),
      () => part(7, { ETag: '"b"' }),
    ]);
    await assert.rejects(soon(t, piecesOf(await source.open(0, 0))), { code: 'CHANGED' });
    assert.deepEqual([asked.length, retries], [2, [1]]);
  });

  test('only statuses that a retry may change are retried', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const [status, tries] of [
      ...[400, 401, 404, 428, 430, 499].map((one) => [one, 1]),
      ...[429, 500, 502, 599].map((one) => [one, 3]),
    ]) {
      const { source, asked } = server([() => new Response('', { status })]);
      await assert.rejects(soon(t, source.open(0, 0)), { code: 'HTTP' });
      assert.equal(asked.length, tries, `${status}`);
    }
  });

  test('the connection to a web page is closed once its title is read', async () => {
    const page = bodyOf(['<title>Hub</title>', 'and more'], { end: 'stay' });
    const { source } = server([() => answerOf(page.body, { 'Content-Type': 'text/html' })]);
    await assert.rejects(source.open(0, 0), { code: 'NOT_GGUF', message: /«Hub»/ });
    await settled();
    assert.equal(page.seen.isCancelled, true);
  });

  test('an abort before the next retry leaves no timer', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const { source } = server([() => new Response('', { status: 503 })]);
    const opened = assert.rejects(source.open(0, 0), { code: 'HTTP' });
    await settled();
    assert.equal(timers(), before + 1);
    source.close();
    await opened;
    assert.equal(timers(), before);
  });

  test('between reads, a stream has no listener on its signal', async (t) => {
    const { addEventListener, removeEventListener } = AbortSignal.prototype;
    let [added, removed] = [0, 0];
    const count = {
      add(/** @type {any[]} */ ...args) {
        added++;
        return addEventListener.apply(any(this), any(args));
      },
      remove(/** @type {any[]} */ ...args) {
        removed++;
        return removeEventListener.apply(any(this), any(args));
      },
    };
    t.mock.method(AbortSignal.prototype, 'addEventListener', count.add);
    t.mock.method(AbortSignal.prototype, 'removeEventListener', count.remove);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { source } = server([() => broken(7), () => part(7)], { stallMs: 1000 });
    assert.equal(textOf(await soon(t, piecesOf(await source.open(0, 0)))), file);
    assert.ok(added >= 4, `${added}`);
    assert.equal(removed, added);
  });
});

describe('the loader', () => {
  /**
   * Returns an engine that requests ranges, and a source of files of the given sizes. Both log their
   * calls.
   * @param {[file: number, offset: number, length: number][]} wanted
   * @param {{sizes?: (number | undefined)[], pieceBytes?: number, canSeek?: boolean, contents?: string,
   *   early?: number}} [options] `early`: a stream begins this many bytes before the offset
   */
  function loading(
    wanted,
    { sizes = [], pieceBytes = 100, canSeek = true, contents, early = 0 } = {},
  ) {
    /** @type {string[]} */
    const log = [];
    const left = [...wanted];
    /** @type {any} the part of the current range that the engine still needs */
    let want;
    const native = {
      nextRange() {
        const [file, offset, length] = left[0] ?? [0, 0, 0];
        want = { file, offset, length };
        return want;
      },
      feed(
        /** @type {number} */ file,
        /** @type {number} */ offset,
        /** @type {Uint8Array} */ bytes,
      ) {
        log.push(`feed ${file} ${offset}+${bytes.length}`);
        const end = offset + bytes.length;
        if (end >= want.offset + want.length) left.shift();
        else if (end > want.offset) left[0] = [file, end, want.offset + want.length - end];
      },
      endFile: (/** @type {number} */ file, /** @type {number} */ size) =>
        void log.push(`end ${file} ${size}`),
    };
    const source = {
      files: 9,
      canSeek,
      async open(/** @type {number} */ file, /** @type {number} */ offset) {
        log.push(`open ${file} ${offset}`);
        const size = sizes[file];
        return {
          position: Math.max(0, offset - early),
          size,
          async read() {
            if (this.position >= (size ?? 1e9)) return null;
            const bytes = contents
              ? new TextEncoder().encode(contents)
              : new Uint8Array(Math.min(pieceBytes, (size ?? 1e9) - this.position));
            this.position += bytes.length;
            return bytes;
          },
          cancel: () => void log.push(`cancel ${file}`),
        };
      },
    };
    return { native: any(native), source: any(source), log };
  }

  test('reads each range, from an open stream or a new one, and closes all streams at the end', async () => {
    const far = 4 << 20;
    const { native, source, log } = loading(
      [
        [0, 0, 150],
        [0, 250, 10],
        [0, 300 + far, 10],
        [0, 401 + 2 * far + far, 10],
        [0, 5, 10],
      ],
      { sizes: [1e9], pieceBytes: far },
    );
    const small = loading(
      [
        [0, 0, 150],
        [0, 200, 10],
        [0, 210, 10],
        [0, 350, 10],
      ],
      { sizes: [1000] },
    );
    await loadModel(small.native, small.source);
    assert.deepEqual(small.log, [
      ...['open 0 0', 'end 0 1000', 'feed 0 0+100', 'feed 0 100+100', 'feed 0 200+100'],
      // the stream is already at 300, so offset 210 needs a new one
      ...['open 0 210', 'end 0 1000', 'cancel 0', 'feed 0 210+100', 'feed 0 310+100', 'cancel 0'],
    ]);
    await loadModel(native, source);
    assert.deepEqual(
      log.filter((line) => !line.startsWith('end')),
      [
        ...['open 0 0', `feed 0 0+${far}`],
        ...['open 0 250', 'cancel 0', `feed 0 250+${far}`],
        `feed 0 ${250 + far}+${far}`, // begins 50 bytes before the requested range
        ...[`open 0 ${401 + 3 * far}`, 'cancel 0', `feed 0 ${401 + 3 * far}+${far}`],
        ...['open 0 5', 'cancel 0', `feed 0 5+${far}`, 'cancel 0'],
      ],
    );
  });

  test('gaps of up to four megabytes are read and discarded; larger ones only if the source cannot seek', async () => {
    const gap = 4 << 20;
    for (const [more, canSeek, opens] of /** @type {[number, boolean, number][]} */ ([
      [0, true, 1],
      [1, true, 2],
      [1, false, 1],
    ])) {
      const options = { pieceBytes: 1 << 20, canSeek };
      const ranges = /** @type {[number, number, number][]} */ ([
        [0, 0, 10],
        [0, (1 << 20) + gap + more, 10],
      ]);
      const { native, source, log } = loading(ranges, options);
      await loadModel(native, source);
      assert.equal(log.filter((line) => line.startsWith('open')).length, opens);
    }
  });

  test('at most three streams are open: the least recently used one is closed', async () => {
    const order = [0, 1, 2, 0, 3, 4, 0, 2];
    const at = [0, 0, 0, 0, 0];
    const ranges = order.map((file) => {
      at[file] += 10;
      return /** @type {[number, number, number]} */ ([file, at[file] - 10, 10]);
    });
    const { native, source, log } = loading(ranges, { sizes: Array(5).fill(50), pieceBytes: 10 });
    await loadModel(native, source);
    assert.deepEqual(
      log.filter((line) => /^(open|cancel)/.test(line)),
      [
        ...['open 0 0', 'open 1 0', 'open 2 0'],
        ...['cancel 1', 'open 3 0', 'cancel 2', 'open 4 0'],
        ...['cancel 3', 'open 2 10'],
        ...['cancel 4', 'cancel 0', 'cancel 2'],
      ],
    );
  });

  test('truncated files and files that are not models are rejected', async () => {
    const short = loading([[1, 0, 30]], { sizes: [0, 20], pieceBytes: 10 });
    await assert.rejects(loadModel(short.native, short.source), {
      code: 'TRUNCATED',
      message: 'model: file ends at byte 20, before all tensors were read',
    });
    assert.deepEqual(short.log, [
      ...['open 1 0', 'end 1 20', 'feed 1 0+10', 'feed 1 10+10', 'end 1 20', 'cancel 1'],
    ]);
    const unsized = loading([[0, 0, 10]]);
    await loadModel(unsized.native, unsized.source);
    assert.deepEqual(unsized.log, ['open 0 0', 'feed 0 0+100', 'cancel 0']);
    const page = 'file: a web page, not a GGUF file';
    const pointer =
      'This is a Git LFS pointer, not the model: it only describes where the model is stored. Fetch the model itself ' +
      '(git lfs pull), or use the URL of the download';
    for (const [contents, message] of [
      ['<!DOCTYPE html>', page],
      [' \n<html>', page],
      ['<?xml version', page],
      ['<Head>', page],
      ['<body', page],
      ['version https://git-lfs.github.com/spec/v1\noid', pointer],
      ['<a>', ''],
      ['GGUF<html>', ''],
      ['a version https://git-lfs.github.com/spec/', ''],
      [`${' '.repeat(59)}<html>`, page],
      [`${' '.repeat(60)}<html>`, ''],
    ]) {
      const { native, source, log } = loading([[0, 0, 5]], { contents });
      const loaded = loadModel(native, source);
      if (message) await assert.rejects(loaded, { code: 'NOT_GGUF', message });
      else await loaded;
      assert.deepEqual(log.at(-1), 'cancel 0');
    }
    const within = loading([[0, 10, 5]], { contents: '<html>', early: 0 });
    await loadModel(within.native, within.source); // only the beginning of a file is checked
  });

  test('a closed engine is not called again, whatever the loader was doing', async () => {
    const opened = ['open 0 0'];
    const logs = [
      opened.concat('cancel 0'),
      opened.concat('end 0 50', 'cancel 0'),
      opened.concat('end 0 50', 'cancel 0'),
      opened.concat('end 0 50', 'feed 0 0+10', 'pause', 'cancel 0'),
    ];
    for (const [count, wanted] of logs.entries()) {
      const { native, source, log } = loading([[0, 0, 50]], { sizes: [50], pieceBytes: 10 });
      let asked = 0;
      await loadModel(native, source, {
        isClosed: () => asked++ >= count,
        onBytes: async () => void log.push('pause'),
      });
      assert.deepEqual(log, wanted);
    }
    const { native, source, log } = loading([[0, 0, 30]], { sizes: [50], pieceBytes: 10 });
    await loadModel(native, source, {
      onBytes: async () => {
        await new Promise((settle) => setImmediate(settle));
        log.push('pause');
      },
    });
    const fed = [0, 10, 20].flatMap((offset) => [`feed 0 ${offset}+10`, 'pause']);
    assert.deepEqual(log, [...opened, 'end 0 50', ...fed, 'cancel 0']);
  });
});

describe('bytes read by the page', () => {
  const posts = () => {
    /** @type {any[]} */
    const asked = [];
    const bytes = new PageBytes((message) => void asked.push(message));
    return { bytes, asked, source: bytes.source({ files: 2, canSeek: true }) };
  };
  const ask = (
    /** @type {number} */ id,
    /** @type {string} */ method,
    /** @type {any[]} */ args,
  ) => ({
    ...{ type: 'ask', id, method, args },
  });
  const settled = () => new Promise((done) => setImmediate(done));

  test('one piece is requested ahead, and responses are matched to requests', async () => {
    const { bytes, asked, source } = posts();
    assert.deepEqual([source.files, source.canSeek], [2, true]);
    const opening = source.open(1, 7);
    assert.deepEqual(asked, [ask(1, 'open', [1, 7, 0])]);
    bytes.answer(1, { id: 40, position: 5, size: 9, canSeek: false });
    const stream = await opening;
    assert.deepEqual([stream.position, stream.size, source.canSeek], [5, 9, false]);
    assert.deepEqual(asked.splice(0), [ask(1, 'open', [1, 7, 0]), ask(2, 'read', [40])]);
    bytes.answer(2, Uint8Array.of(1, 2));
    bytes.answer(2, Uint8Array.of(9)); // it was already answered
    bytes.answer(77, Uint8Array.of(9));
    assert.deepEqual(await stream.read(), Uint8Array.of(1, 2));
    assert.deepEqual([stream.position, asked.splice(0)], [7, [ask(3, 'read', [40])]]);
    bytes.answer(3, Uint8Array.of(3));
    assert.deepEqual(await stream.read(), Uint8Array.of(3));
    bytes.answer(4, null);
    assert.equal(await stream.read(), null);
    assert.deepEqual([stream.position, asked.splice(0)], [8, [ask(4, 'read', [40])]]);
    stream.cancel();
    assert.deepEqual(asked, [ask(5, 'cancel', [40])]);
    bytes.refuse(5, new Error('gone')); // no call waits for this error
    await settled();
  });

  test('errors from the page are passed on', async () => {
    const { bytes, source } = posts();
    const opening = source.open(0, 0);
    bytes.refuse(1, new Error('no file'));
    await assert.rejects(opening, { message: 'no file' });
    const other = source.open(0, 0);
    bytes.answer(2, { id: 1, position: 0, size: undefined, canSeek: true });
    const stream = await other;
    bytes.refuse(3, new Error('broke'));
    await settled();
    await assert.rejects(stream.read(), { message: 'broke' });
    assert.equal(source.canSeek, true);
  });
});
