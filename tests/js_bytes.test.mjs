// Sources of a model's bytes by themselves, from their sources: HTTP over a fetch that is made up, in a page and out of
// one, blobs, files of the disk and streams.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, describe, test } from 'node:test';
import { HttpSource } from '../js/bytes/http_source.js';
import { BlobSource, createSource, StreamSource } from '../js/bytes/model_sources.js';

const folder = mkdtempSync(join(tmpdir(), 'wick-bytes-'));
after(() => rmSync(folder, { recursive: true }));
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @param {{read: () => Promise<Uint8Array | null>}} stream @returns {Promise<Uint8Array[]>} copies */
async function piecesOf(stream) {
  const pieces = [];
  for (let bytes = await stream.read(); bytes; bytes = await stream.read())
    pieces.push(bytes.slice());
  return pieces;
}
const textOf = (/** @type {Uint8Array[]} */ pieces) => Buffer.concat(pieces).toString();

const url = 'http://models.example/m.gguf';
const file = 'GGUF0123456789abcdef';

/**
 * A server of one file: each answer is a function of the request, the last one answers all further requests.
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

/** @param {string} text @param {any} [init] a response whose body breaks off behind the text if `breaks` */
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
  test('a whole file, its size, its headers', async () => {
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

  test('from an offset: a part, a part that begins before it, the whole file', async () => {
    const one = server([() => part(6)]);
    const stream = await one.source.open(0, 6);
    assert.deepEqual([stream.position, stream.size, one.asked[0].range], [6, 20, 6]);
    assert.equal(textOf(await piecesOf(stream)), file.slice(6));
    const two = server([() => part(4)]);
    const early = await two.source.open(0, 6);
    assert.equal(early.position, 4); // the loader skips what it has
    assert.equal(textOf(await piecesOf(early)), file.slice(4));
    const three = server([whole]);
    const all = await three.source.open(0, 6);
    assert.deepEqual([all.position, three.source.canSeek, all.size], [0, false, 20]);
    assert.equal(textOf(await piecesOf(all)), file);
    const four = server([() => part(8)]);
    await assert.rejects(four.source.open(0, 6), {
      code: 'HTTP',
      message: /answered bytes from 8, not from 6/,
    });
  });

  test('broken off: taken up where it broke, with a part or with the whole file', async (t) => {
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

  test('broken off too often, and the waits between', async (t) => {
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
      message: `The download of ${url} broke off after 7 bytes (taken up 3 times): reset`,
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

  test('another file in between: by its tag, its date, its size', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    /** @type {[any, any, boolean][]} */
    const cases = [
      [{ ETag: '"a"' }, { ETag: '"b"' }, true],
      [{ ETag: '"a"' }, { ETag: '"a"' }, false],
      [{ ETag: 'W/"a"' }, { ETag: 'W/"b"' }, false], // weak tags say nothing of bytes
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

  test('sizes that are not told, or not the file’s', async () => {
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

  test('refusals, each with its reason', async () => {
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
      `${url} has no byte 0: it ends before (416)`,
    ]);
    assert.deepEqual(await refused(new Response(null, { status: 200 })), [
      'HTTP',
      `${url} answered without a body`,
    ]);
    assert.deepEqual(await refused({}), ['ARG', 'fetch gave no Response']);
    assert.deepEqual(await refused(undefined), ['ARG', 'fetch gave no Response']);
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

  test('a busy server is asked again, after the time that it says', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const settle = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    /** @type {[number, any, number][]} status, Retry-After, the wait */
    const cases = [
      [429, undefined, 250],
      [500, '0', 250],
      [503, '2', 2000],
      [503, '99', 8000],
      [503, 'soon', 250],
    ];
    for (const [status, after_, waitMs] of cases) {
      const headers = any(after_ === undefined ? {} : { 'Retry-After': after_ });
      const { source, asked } = server([() => new Response('', { status, headers }), whole]);
      const opened = source.open(0, 0);
      await settle();
      t.mock.timers.tick(waitMs - 1);
      await settle();
      assert.equal(asked.length, 1);
      t.mock.timers.tick(1);
      await opened;
      assert.equal(asked.length, 2);
    }
  });

  test('who stalls is left, who is not wanted is hung up', async (t) => {
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
      message: /broke off after 0 bytes: .*no byte came for 1.5 s/,
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

  test('nobody there: at once, with Node’s reason', async () => {
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

describe('HTTP in a page', () => {
  /** @param {import('node:test').TestContext} t @param {any} globals */
  function pretend(t, globals) {
    for (const [name, value] of Object.entries(globals)) {
      const before = Object.getOwnPropertyDescriptor(globalThis, name);
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
      t.after(() => {
        if (before) Object.defineProperty(globalThis, name, before);
        else delete any(globalThis)[name];
      });
    }
  }
  const location = { origin: 'http://page.example' };
  const failing = () => Promise.reject(new TypeError('Failed to fetch'));

  test('a server that lets nobody read is told from one that is not there', async (t) => {
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
        'models.example does not let this page (http://page.example) read the file: its answer has no ' +
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
    probed.length = 0;
    pretend(t, { location: { origin: 'http://models.example' } });
    await assert.rejects(server([failing]).source.open(0, 0), {
      code: 'NETWORK',
      message: 'models.example could not be reached',
    });
    assert.deepEqual(probed, []); // its own server lets it read
  });

  test('If-Range is sent to its own server alone', async (t) => {
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

  test('a blob comes in pieces of a megabyte, from any offset', async () => {
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

  test('a file of the disk, small or large', async () => {
    const small = join(folder, 'small');
    const large = join(folder, 'large');
    writeFileSync(small, bytes);
    writeFileSync(large, bytes);
    truncateSync(large, (16 << 20) + 1); // a byte more than what is read at once
    const source = createSource({ kind: 'path', paths: [small, large] }, () => {});
    const stream = await source.open(0, 7);
    assert.deepEqual([stream.position, stream.size], [7, bytes.length]);
    assert.ok(Buffer.concat(await piecesOf(stream)).equals(bytes.subarray(7)));
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

  test('a stream: once, from the beginning, bytes alone', async () => {
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
      message: /must give bytes/,
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

  test('streams that are left are ended', async () => {
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
