// An engine in the calling thread (wick-llm/edge) gives the same answers as an engine with a worker, for any source and
// reader. It does work only while its output is read, and stays within the memory of an isolate.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { WickError as OwnError } from '../../js/base/errors.js';
import { takeTurn } from '../../js/base/take_turn.js';
import { BytesSource } from '../../js/bytes/given_sources.js';
import { RangeSource } from '../../js/bytes/range_source.js';
import { EdgeConnection } from '../../js/edge/edge_connection.js';
import { inWords, memoryLimitOf } from '../../js/edge/memory_plan.js';
import { Turns } from '../../js/edge/turns.js';
import { configOf } from '../../js/page/engine_options.js';
import { settingsOf } from '../../js/page/request_options.js';
import { EVENT_TOKEN, STEP_IDLE, STEP_PROGRESS } from '../../js/wasm/layout.js';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { Embedder } from '../../js/worker/embedder.js';
import { claimModel } from '../support/claimed_model.mjs';
import {
  bodyAbout,
  lists,
  messagePartOf,
  partOf,
  refusedParts,
  skip,
  texts,
  typeOf,
} from '../support/media_files.mjs';
import { dist, modelPath, openEngine, sleep, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/edge.js')} */
const { createEngine, openOnce, WickError } = await import(
  pathToFileURL(join(dist, 'edge.js')).href
);
/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {import('../../js/edge.js').EdgeOptions} EdgeOptions */

const moduleOf = (/** @type {string} */ build) =>
  new WebAssembly.Module(readFileSync(join(dist, `wasm/wick-${build}.wasm`)));
const wasm = moduleOf('simd128-single');
const extrasWasm = moduleOf('simd128-single-extras');
const mediaWasm = moduleOf('simd128-single-media');
const bytes = new Uint8Array(readFileSync(modelPath));
const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const greedy = { temperature: 0, maxTokens: 24, ignoreEnd: true };

/** @param {string} code @param {RegExp} [words] */
const refused =
  (code, words = /./) =>
  (/** @type {any} */ error) => {
    assert.ok(error instanceof WickError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  };

/** @param {import('node:test').TestContext} t @param {Partial<EdgeOptions>} [options] */
async function openEdge(t, options = { bytes }) {
  const engine = await createEngine({ wasm, extrasWasm, ...options });
  t.after(() => engine.close());
  return engine;
}

/** @param {string} path @param {object} body @param {RequestInit} [init] */
const post = (path, body, init) =>
  new Request(`http://wick.test${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...init,
  });

describe('answers equal those of an engine with a worker', () => {
  /** @param {string} text a response @returns {string} without parts that differ between responses */
  const constant = (text) =>
    text
      .replace(/"id":"[^"]*"/g, '"id":""')
      .replace(/"created":\d+/g, '"created":0')
      .replace(/,"timings":\{[^}]*\}/g, '')
      .replace(/"delta":\{"role":"assistant","content":""\},"logprobs":null,/g, '');

  for (const [path, body] of /** @type {[string, object][]} */ ([
    ['/v1/chat/completions', { messages, temperature: 0, max_tokens: 40 }],
    ['/v1/chat/completions', { messages, temperature: 0, max_tokens: 40, stream: true }],
    ['/v1/chat/completions', { messages, seed: 7, n: 3, max_tokens: 12 }],
    ['/v1/chat/completions', { messages, seed: 7, logprobs: true, top_logprobs: 2, max_tokens: 8 }],
    ['/v1/completions', { prompt: 'Once upon a time', seed: 3, n: 2, max_tokens: 20 }],
    ['/v1/completions', { prompt: ['Once', 'The'], seed: 3, max_tokens: 9, logprobs: 1 }],
    ['/v1/embeddings', { input: ['a fox', 'a hen'] }],
    ['/v1/rerank', { query: 'a fox', documents: ['a hen'] }], // rejected: the model has no head
    ['/v1/chat/completions', { messages: 'none' }],
  ])) {
    test(`${path} ${JSON.stringify(body).slice(0, 90)}`, async (t) => {
      const [edge, worker] = [await openEdge(t), await openEngine(t)];
      const [mine, theirs] = await Promise.all(
        [edge, worker].map(async (engine) => {
          const response = await createHandler(engine)(post(path, body));
          return { status: response.status, text: constant(await response.text()) };
        }),
      );
      assert.deepEqual(mine, theirs);
      assert.ok(mine.text.length > 20);
    });
  }

  test('concurrent requests get the same answers as separate ones', async (t) => {
    const engine = await openEdge(t);
    const ask = (/** @type {number} */ seed) =>
      engine.generate(`Story ${seed % 5}`, { seed, maxTokens: 30, ignoreEnd: true }).text();
    const seeds = Array.from({ length: 12 }, (_, seed) => seed);
    const together = await Promise.all(seeds.map(ask));
    for (const seed of seeds) assert.equal(await ask(seed), together[seed]);
    assert.equal(new Set(together).size, 12);
    assert.ok((await engine.stats()).requests.runningMax >= 10);
  });

  test('sessions, tokens, templates, reports and saved states work', async (t) => {
    const [edge, worker] = [await openEdge(t), await openEngine(t)];
    const describeEngine = async (/** @type {import('../../js/index.js').Engine} */ engine) => {
      const session = await engine.createSession();
      await session.append('Once upon a time');
      const fork = await session.fork();
      const texts = await Promise.all([session, fork].map((one) => one.prompt('', greedy).text()));
      await session.truncate(3);
      const left = session.prompt(' there', { ...greedy, maxTokens: 500 })[Symbol.asyncIterator]();
      await left.next();
      await left.return();
      await session.truncate(4); // whether the request has made progress or not
      const again = await session.prompt(' was', greedy).text(); // the session is free after the cancelled request
      const state = await session.save();
      const { session: loaded } = await engine.loadState(state);
      const tokens = await loaded?.tokens();
      const chat = await engine.createChat();
      const reply = await chat.send('Tell me a story.', { temperature: 0, max_tokens: 20 }).text();
      await engine.close();
      return { texts, again, tokens, sizeBytes: state.byteLength, reply };
    };
    const reports = await Promise.all(
      [edge, worker].map(async (engine) => ({
        tokens: await engine.tokenize('a fox'),
        text: await engine.detokenize([40, 41]),
        prompt: await engine.applyTemplate(messages),
        info: Object.assign(await engine.info(), { memory: null, threadsUsed: null }),
      })),
    );
    assert.deepEqual(reports[0], reports[1]);
    assert.deepEqual(await describeEngine(edge), await describeEngine(worker));
  });
});

describe('model bytes', () => {
  /** @param {Partial<EdgeOptions>} source */
  const fingerprintOf = async (source) => {
    const engine = await createEngine({ wasm, ...source });
    const { fingerprint } = await engine.info();
    await engine.close();
    return fingerprint;
  };
  const part = async (/** @type {number} */ offset, /** @type {number} */ length) =>
    bytes.slice(offset, offset + length);
  const server = createServer((request, response) => {
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const end = to ? Number(to) + 1 : bytes.length;
    const sent = bytes.subarray(Number(from ?? 0), end);
    const range = `bytes ${from}-${end - 1}/${bytes.length}`;
    response.writeHead(from ? 206 : 200, from ? { 'Content-Range': range } : {}).end(sent);
  }).listen(0);
  after(() => server.close());
  const url = () => `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/model.gguf`;

  for (const [name, source] of /** @type {[string, () => Promise<Partial<EdgeOptions>>][]} */ ([
    ['an ArrayBuffer', async () => ({ bytes: bytes.buffer })],
    ['a range of bytes', async () => ({ range: part })],
    [
      'a range of Responses',
      async () => ({ range: async (o, n) => new Response(await part(o, n)) }),
    ],
    ['a range of buffers', async () => ({ range: async (o, n) => (await part(o, n)).buffer })],
    ['a Response', async () => ({ stream: await fetch(url()) })],
    ['a stream', async () => ({ stream: new Blob([bytes]).stream() })],
    ['a Blob', async () => ({ blob: new Blob([bytes]) })],
    ['a URL', async () => ({ url: url() })],
    ['a URL through a binding', async () => ({ url: url(), fetch: (u, init) => fetch(u, init) })],
    ['a file', async () => ({ file: modelPath })],
  ])) {
    test(`a model loads from ${name}`, async () => {
      assert.equal(await fingerprintOf(await source()), await fingerprintOf({ bytes }));
    });
  }

  test('responses of object storage are read into one buffer, if the host supports it', async (t) => {
    /** @type {Set<number>} */
    const memories = new Set();
    let whole = 0;
    /** @param {boolean} isByte @param {number} offset @param {number} length */
    const answer = (isByte, offset, length) => {
      let at = offset;
      const end = Math.min(offset + length, bytes.length);
      /** @type {any} */
      const source = {
        ...(isByte && { type: 'bytes' }),
        /** @param {any} controller */
        pull(controller) {
          if (at >= end) controller.close();
          const request = controller.byobRequest;
          if (at >= end) return request?.respond(0);
          const size = Math.min(100_000, end - at, request?.view.byteLength ?? end);
          const piece = bytes.subarray(at, at + size);
          at += size;
          if (!request) return controller.enqueue(piece.slice());
          new Uint8Array(request.view.buffer, request.view.byteOffset).set(piece);
          memories.add(request.view.byteLength);
          request.respond(size);
        },
      };
      const response = new Response(new ReadableStream(source));
      const { arrayBuffer } = response;
      response.arrayBuffer = () => {
        whole++;
        return arrayBuffer.call(response);
      };
      return response;
    };
    for (const isByte of [true, false]) {
      const range = async (/** @type {number} */ offset, /** @type {number} */ length) =>
        answer(isByte, offset, length);
      const engine = await openEdge(t, { range });
      assert.ok((await engine.generate('Once', greedy).text()).length > 10);
      assert.equal(whole > 0, !isByte);
    }
    assert.deepEqual([...memories], [1 << 18]);
    // a model that needs more than one range
    const { bytes: head } = claimModel({ layers: 8 });
    const large = new Uint8Array(5 << 20);
    large.set(head);
    const tooMuch = async () => new Response(new Blob([large]));
    await assert.rejects(
      createEngine({ wasm, range: tooMuch }),
      refused('ARG', /^range returned \d+ bytes where 4194304 were requested/),
    );
  });

  test('failing sources are reported', async () => {
    for (const [source, code, words] of /** @type {[any, string, RegExp][]} */ ([
      [{}, 'ARG', /one of bytes, range, .*: none was given/],
      [{ bytes, url: 'x' }, 'ARG', /bytes and url were given/],
      [{ bytes: 'x' }, 'ARG', /bytes must be a Uint8Array or an ArrayBuffer, not the string "x"/],
      [{ bytes: bytes.subarray(0, 5000) }, 'TRUNCATED', /the file ends in/],
      [{ range: async () => undefined }, 'ARG', /range must return bytes/],
      [
        { range: async () => bytes.slice(0, 5e6).buffer.slice(0), batchSize: 'x' },
        'ARG',
        /batchSize/,
      ],
      [{ range: async () => new Uint8Array((4 << 20) + 1) }, 'ARG', /no more/],
      [{ range: async () => new Response('', { status: 403 }) }, 'IO', /range\(0\).*403/],
      [{ range: async () => Promise.reject(new Error('gone')) }, 'IO', /range\(0\) failed.*gone/],
      [{ stream: new Response('', { status: 404 }) }, 'HTTP', /answered 404/],
      [{ stream: new Response(null) }, 'ARG', /no body/],
    ])) {
      await assert.rejects(createEngine({ wasm, ...source }), refused(code, words));
    }
  });
});

describe('RangeSource', () => {
  const most = 4 << 20;

  /** @param {import('../../js/bytes/model_sources.js').ByteStream} stream @returns {Promise<number[][]>} positions and sizes */
  async function readAll(stream) {
    const found = [];
    for (;;) {
      const at = stream.position;
      const piece = await stream.read();
      if (piece === null) return found;
      found.push([at, piece.byteLength]);
    }
  }

  test('a source is one file that can be reopened at any offset', async () => {
    const given = Uint8Array.from({ length: 10 }, (_, i) => i);
    const range = async (/** @type {number} */ offset, /** @type {number} */ length) =>
      given.slice(offset, offset + length);
    for (const source of [new BytesSource(given), new RangeSource(range)]) {
      assert.deepEqual([source.canSeek, source.files], [true, 1]);
      for (const file of [1, 2]) await assert.rejects(source.open(file, 0), /file|missing/i);
      for (const offset of [0, 4, 9, 0]) {
        const stream = await source.open(0, offset);
        assert.equal(stream.position, offset);
        assert.deepEqual([...((await stream.read()) ?? [])], [...given.subarray(offset)]);
        assert.equal(stream.position, 10);
        assert.equal(await stream.read(), null);
        stream.cancel();
      }
      assert.equal(await (await source.open(0, 10)).read(), null);
    }
    assert.equal((await new BytesSource(given).open(0, 0)).size, 10);
    const large = new BytesSource(new Uint8Array((2 << 20) + 5));
    assert.deepEqual(await readAll(await large.open(0, 0)), [
      ...[
        [0, 1 << 20],
        [1 << 20, 1 << 20],
        [2 << 20, 5],
      ],
    ]);
  });

  test('a range may be full, short or empty, but not longer than requested', async () => {
    /** @type {number[][]} */
    const asked = [];
    const sizes = [most, 5, 0];
    const range = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      asked.push([offset, length]);
      return new Uint8Array(sizes[asked.length - 1]);
    };
    const stream = await new RangeSource(range).open(0, 3);
    assert.deepEqual(await readAll(stream), [
      [3, most],
      [3 + most, 5],
    ]);
    assert.deepEqual(asked, [
      [3, most],
      [3 + most, most],
      [8 + most, most],
    ]);
    const long = await new RangeSource(async () => new Uint8Array(most + 1)).open(0, 0);
    const words = /^range returned 4194305 bytes where 4194304 were requested/;
    await assert.rejects(long.read(), { code: 'ARG', message: words });
    for (const nothing of [undefined, null, 5, {}, 'x']) {
      const none = await new RangeSource(/** @type {any} */ (async () => nothing)).open(0, 0);
      await assert.rejects(none.read(), { code: 'ARG', message: /^range must return bytes/ });
    }
    const failing = new RangeSource(() => {
      throw new Error('gone');
    });
    const failed = { code: 'IO', message: 'range(7) failed: Error: gone' };
    await assert.rejects((await failing.open(0, 7)).read(), failed);
  });

  test('a response read in pieces continues where it ended, and is cancelled with its stream', async () => {
    let given = 0;
    let isCancelled = false;
    /** @param {number} pieces @returns {any} */
    const answerOf = (pieces) => {
      let left = pieces;
      const body = new ReadableStream({
        type: 'bytes',
        pull: (/** @type {any} */ out) => {
          if (left-- > 0) return out.enqueue(Uint8Array.of(++given));
          out.close();
          out.byobRequest?.respond(0);
        },
        cancel: () => {
          isCancelled = true;
        },
      });
      return {
        ok: true,
        body,
        arrayBuffer: () => assert.fail('the response must be read in pieces'),
      };
    };
    /** @type {number[]} */
    const offsets = [];
    const pieces = [2, 1, 0];
    const source = new RangeSource(async (offset) => answerOf(pieces[offsets.push(offset) - 1]));
    const stream = await source.open(0, 0);
    const read = [];
    for (let piece = await stream.read(); piece; piece = await stream.read()) read.push(...piece);
    assert.deepEqual(
      [read, offsets],
      [
        [1, 2, 3],
        [0, 2, 3],
      ],
    );
    assert.equal(stream.position, 3);
    const left = await new RangeSource(async () => answerOf(9)).open(0, 0);
    await left.read();
    left.cancel();
    assert.equal(isCancelled, true);
    left.cancel(); // cancelling twice is allowed
    // more bytes than requested: the rest is cancelled
    isCancelled = false;
    const piece = new Uint8Array(1 << 18);
    const pull = (/** @type {any} */ out) => out.enqueue(piece.slice());
    const cancel = () => {
      isCancelled = true;
    };
    const endless = new ReadableStream({ type: 'bytes', pull, cancel }, { highWaterMark: 0 });
    const long = await new RangeSource(async () => new Response(endless)).open(0, 0);
    for (let given = 0; given < most; given += piece.length) await long.read();
    await assert.rejects(long.read(), { code: 'ARG', message: /^range returned \d+ bytes/ });
    assert.equal(isCancelled, true);
    const broken = { ok: false, status: 500, body: null, arrayBuffer: () => assert.fail() };
    const refusing = await new RangeSource(/** @type {any} */ (async () => broken)).open(0, 2);
    await assert.rejects(refusing.read(), { code: 'IO', message: /^range\(2\) failed: .*500/ });
  });
});

describe('the memory plan', () => {
  const kept = (1 << 20) + (1 << 18) + (19 << 20);

  test('the memory limit is derived from the isolate’s memory', () => {
    const limit = (/** @type {any} */ options, held = 0) => memoryLimitOf(options, held);
    assert.equal(limit({}), 0);
    assert.equal(limit({ isolateBytes: null, memoryLimit: 7 }), 7);
    assert.equal(limit({ isolateBytes: kept + 1 }), 1);
    assert.equal(limit({ isolateBytes: kept + 10 }, 4), 6);
    assert.equal(limit({ isolateBytes: kept + 10, memoryLimit: 3 }), 3);
    assert.equal(limit({ isolateBytes: kept + 10, memoryLimit: 30 }), 10);
    for (const [isolateBytes, held] of [
      [kept, 0],
      [kept + 4, 4],
      [1, 0],
    ]) {
      const words = `isolateBytes is ${isolateBytes}, but JavaScript needs ${kept + held} of them: no memory is left for a model`;
      assert.throws(() => limit({ isolateBytes }, held), { code: 'NOMEM', message: words });
    }
    for (const wrong of [
      { isolateBytes: 0 },
      { isolateBytes: 1.5 },
      { memoryLimit: -1 },
      { memoryLimit: '5' },
    ]) {
      assert.throws(() => limit(wrong), { code: 'ARG' });
    }
  });

  test('an out-of-memory error mentions the isolate’s limit, if it has one', () => {
    const full = new OwnError('NOMEM', 'too large', 5);
    const error = /** @type {any} */ (inWords(full, 100, 4));
    const words = `too large (isolateBytes is 100, of which JavaScript and the module need ${kept + 4})`;
    assert.deepEqual([error.code, error.message, error.cause], ['NOMEM', words, 5]);
    for (const none of [undefined, null]) assert.equal(inWords(full, none, 4), full);
    for (const other of [new OwnError('IO', 'x'), new Error('x'), undefined]) {
      assert.equal(inWords(other, 100, 4), other);
    }
  });
});

describe('a connection with a fake engine', () => {
  /** @param {any} [more] functions of the engine */
  function connect(more = {}) {
    /** @type {any[]} */
    const events = [];
    /** @type {any[]} */
    const log = [];
    let submitted = 0;
    const native = {
      info: () => ({ shape: { layers: 2, parameters: 8 } }),
      submit: () => ++submitted,
      lacks: () => false,
      passes: () => 0,
      pause: (/** @type {number} */ number, /** @type {boolean} */ isPaused) =>
        log.push(['pause', number, isPaused]),
      cancel: (/** @type {number} */ number) => log.push(['cancel', number]),
      takeEvents: () => events.splice(0),
      stepUnits: (/** @type {number} */ units) => {
        log.push(['step', units]);
        return STEP_PROGRESS;
      },
      destroy: () => log.push(['destroy']),
      ...more,
    };
    const connection = new EdgeConnection(/** @type {any} */ (native), {
      queueLimit: undefined,
      chatTemplate: undefined,
    });
    /** @param {number} count of completions @param {object} [settings] */
    const generate = (count, settings = {}) => {
      const outputs = Array.from({ length: count }, () => /** @type {any[]} */ ([]));
      /** @type {any[]} */
      const failures = [];
      const waiters = outputs.map((list) => ({
        onOutput: (/** @type {any} */ output) => void list.push(output),
        fail: (/** @type {any} */ error) => void failures.push(error),
      }));
      const message = {
        input: { prompt: [1] },
        settings: settingsOf(settings),
        wantsTokens: false,
      };
      return { outputs, failures, running: connection.generate(message, waiters) };
    };
    return { connection, events, log, generate };
  }

  test('pieces are acknowledged per request: an unread request is paused, then continues', async () => {
    const { events, log, generate } = connect();
    generate(1);
    const { outputs, running } = generate(1);
    for (let i = 0; i < 256; i++) events.push({ request: 2, kind: EVENT_TOKEN, text: 'a' });
    await running[0].drive?.();
    assert.equal(outputs[0].flatMap(({ texts }) => texts).length, 256);
    const rests = () => log.filter(([name]) => name === 'pause');
    assert.deepEqual(rests(), [['pause', 2, true]]);
    running[0].acknowledge(32);
    assert.deepEqual(rests(), [
      ['pause', 2, true],
      ['pause', 2, false],
    ]);
  });

  test('output is kept for its reader and dropped when the reader is cancelled', async () => {
    const { connection, events, log, generate } = connect();
    const [one, two] = [generate(1), generate(1)];
    events.push(
      { request: 1, kind: EVENT_TOKEN, text: 'x' },
      { request: 2, kind: EVENT_TOKEN, text: 'y' },
    );
    await two.running[0].drive?.();
    assert.deepEqual([one.outputs[0].length, two.outputs[0][0].texts], [0, ['y']]);
    const steps = log.length;
    await one.running[0].drive?.();
    assert.deepEqual([one.outputs[0][0].texts, log.length], [['x'], steps], 'no step was needed');
    one.running[0].forget();
    await one.running[0].drive?.();
    assert.equal(log.length, steps, 'no step runs for a cancelled reader');
    two.running[0].cancel();
    two.running[0].cancel();
    assert.deepEqual(
      log.slice(steps),
      [
        ['cancel', 2],
        ['step', 1],
      ],
      'cancelled once, with one unit of work',
    );
    await connection.close();
    await connection.close();
    assert.deepEqual(log.filter(([name]) => name === 'destroy').length, 1);
    assert.throws(() => connection.check(), { code: 'CLOSED', message: 'engine: closed' });
    await assert.rejects(connection.call('info', []), { code: 'CLOSED' });
    assert.throws(() => generate(1), { code: 'CLOSED' });
    assert.equal(connection.isEnded, true);
  });

  test('work is done layer by layer until the first piece, then in whole passes', async () => {
    for (const [shape, pass] of /** @type {[any, number][]} */ ([
      [{ layers: 2, parameters: 8 }, 3],
      [{ parameters: 8 }, 1],
      [null, 1],
    ])) {
      const { events, log, generate } = connect({ info: () => ({ shape }) });
      const { running } = generate(1);
      for (const text of ['a', 'b']) {
        events.push({ request: 1, kind: EVENT_TOKEN, text });
        await running[0].drive?.();
      }
      assert.deepEqual(log, [
        ['step', 1],
        ['step', pass],
      ]);
    }
  });

  test('a call is passed to the engine by name; an aborted call sends no request', async () => {
    /** @type {any[]} */
    const asked = [];
    const detokenize = (/** @type {any} */ tokens) => {
      asked.push(tokens);
      return 'text';
    };
    const { connection } = connect({ detokenize });
    assert.equal(await connection.call('detokenize', [[1], {}]), 'text');
    const aborted = connection.call('detokenize', [[2], {}], AbortSignal.abort());
    await assert.rejects(aborted, { name: 'AbortError' });
    const { signal } = new AbortController();
    assert.equal(await connection.call('detokenize', [[3], {}], signal), 'text');
    assert.deepEqual(asked, [[1], [3]]);
    const broken = connect({
      detokenize: () => {
        throw new TypeError('no tokens');
      },
    });
    const call = broken.connection.call('detokenize', [[1], {}]);
    await assert.rejects(call, { name: 'WickError', code: 'ARG' });
  });

  test('an error is reported to each completion with the engine’s message', () => {
    const detokenize = () => {
      throw new TypeError('settings are wrong');
    };
    const { connection, generate } = connect({ detokenize });
    const { failures, running } = generate(2, { thinkingBudgetTokens: 5 });
    assert.deepEqual(
      failures.map(({ code, message }) => [code, message]),
      [
        ['ARG', 'settings are wrong'],
        ['ARG', 'settings are wrong'],
      ],
    );
    assert.equal(running.length, 2);
    assert.equal(connection.isEnded, false, 'the connection stays open');
  });
});

/** Returns a module that exports a memory with the given name. @param {number[]} [imports] a section */
const foreignModule = (name = 'memory', imports = []) =>
  new WebAssembly.Module(
    new Uint8Array([
      ...[0, 97, 115, 109, 1, 0, 0, 0, ...imports, 5, 3, 1, 0, 1, 7, name.length + 4, 1],
      ...[name.length, ...Buffer.from(name), 2, 0],
    ]),
  );

describe('options', () => {
  test('worker options and unknown options are rejected with their name', async () => {
    for (const name of ['threads', 'worker', 'shared', 'swap', 'eager', 'draft', 'onLead']) {
      const options = /** @type {any} */ ({ wasm, bytes, [name]: 1 });
      await assert.rejects(
        createEngine(options),
        refused('ARG', new RegExp(`^${name} is an option`)),
      );
      assert.throws(() => openOnce(options), refused('ARG'));
    }
    for (const [options, words] of /** @type {[any, RegExp][]} */ ([
      [{ wasm, bytes, contextSise: 1 }, /did you mean contextSize/],
      [{ bytes }, /wasm must be a WebAssembly.Module/],
      [{ wasm: new Uint8Array(8), bytes }, /wasm must be a WebAssembly.Module/],
      [{ wasm: moduleOf('simd128-threads'), bytes }, /build with threads/],
      [{ wasm: foreignModule(), bytes }, /not an engine of this package. Use wick-simd128-single/],
      [{ wasm, bytes, isolateBytes: 0 }, /isolateBytes/],
      [{ wasm, bytes, memoryLimit: 1.5 }, /memoryLimit/],
      [{ wasm, bytes, chatTemplate: 1 }, /chatTemplate/],
      [{ wasm, bytes, onProgress: 1 }, /onProgress/],
      [{ wasm, bytes, fetch: 1 }, /^fetch must be a function/],
      [{ wasm, bytes, retries: -1 }, /^retries must be/],
      [null, /an options object/],
    ])) {
      await assert.rejects(createEngine(options), refused('ARG', words));
    }
  });

  test('a module of a different version is rejected', async () => {
    // a module that imports the function env.y
    const imports = [1, 4, 1, 0x60, 0, 0, 2, 9, 1, 3, ...Buffer.from('env'), 1, 121, 0, 0];
    const other = foreignModule('engine_create', imports);
    const wanted = refused('WASM', /^wasm is from a different version of the engine: .*env/);
    await assert.rejects(createEngine({ wasm: other, bytes }), wanted);
  });

  test('progress is reported, and the template and the queue limit are applied', async (t) => {
    const phases = /** @type {string[]} */ ([]);
    const engine = await openEdge(t, {
      ...{ bytes, queueLimit: 2, chatTemplate: '{{ messages[0].content }}!' },
      onProgress: ({ phase }) => void phases.push(phase),
    });
    assert.equal(phases.at(-1), 'ready');
    assert.equal(await engine.applyTemplate(messages), 'Tell me a story about a fox.!');
    const running = [1, 2].map(() => engine.generate('Once', greedy)[Symbol.asyncIterator]());
    for (const one of running) await one.next();
    await assert.rejects(engine.generate('Once', greedy).text(), refused('QUEUE_FULL'));
    await running[0].return();
    await engine.generate('Once', greedy).text();
    await running[1].return();
  });
});

describe('memory', () => {
  test('a model that is too large for an isolate is rejected before its weights are read', async () => {
    let readBytes = 0;
    const range = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      const piece = bytes.slice(offset, offset + Math.min(length, 65536));
      readBytes += piece.byteLength;
      return piece;
    };
    await assert.rejects(
      createEngine({ wasm, range, isolateBytes: 24e6 }),
      refused('NOMEM', /isolateBytes is 24000000, of which JavaScript and the module need \d{8}/),
    );
    assert.ok(readBytes < 200_000, `${readBytes} bytes were read`);
    await assert.rejects(
      createEngine({ wasm, range, isolateBytes: 20e6 }),
      refused('NOMEM', /no memory is left/),
    );
  });

  test('the engine can use the memory that JavaScript and the model bytes do not need', async () => {
    const limitOf = async (/** @type {Partial<EdgeOptions>} */ options) => {
      const engine = await createEngine({ wasm, ...options });
      const { memory } = await engine.info();
      await engine.close();
      return memory.limitBytes;
    };
    const range = async (/** @type {number} */ o, /** @type {number} */ n) => bytes.slice(o, o + n);
    const all = await limitOf({ range, isolateBytes: 128e6 });
    assert.ok(all > 90e6 && all < 128e6);
    assert.equal(await limitOf({ bytes, isolateBytes: 128e6 }), all - bytes.byteLength);
    assert.equal(await limitOf({ range, isolateBytes: 128e6, memoryLimit: 50e6 }), 50e6);
    assert.equal(await limitOf({ range, isolateBytes: 128e6, memoryLimit: 120e6 }), all);
  });

  test('closing frees the engine and rejects pending calls', async (t) => {
    const engine = await openEdge(t);
    const reading = engine.generate('Once', { ...greedy, maxTokens: 1000 })[Symbol.asyncIterator]();
    await reading.next();
    await engine.close();
    await engine.close();
    await assert.rejects(reading.next(), refused('CLOSED'));
    await assert.rejects(engine.info(), refused('CLOSED'));
    await assert.rejects(engine.generate('Once').text(), refused('CLOSED'));
  });
});

describe('reading drives computation', () => {
  test('no work is done while a reader does not read', async (t) => {
    const engine = await openEdge(t);
    const texts = engine.generate('Once', { ...greedy, maxTokens: 500 })[Symbol.asyncIterator]();
    await texts.next();
    const { passes } = await engine.stats();
    await sleep(50);
    assert.equal((await engine.stats()).passes, passes);
    await texts.next();
    assert.ok((await engine.stats()).passes > passes);
    await texts.return();
  });

  test('an abandoned request frees its pages immediately', async (t) => {
    const engine = await openEdge(t, { bytes, prefixCache: false });
    const controller = new AbortController();
    const { signal } = controller;
    const body = { messages, stream: true, max_tokens: 900 };
    const response = await createHandler(engine)(post('/v1/chat/completions', body, { signal }));
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    await reader.read();
    assert.equal((await engine.stats()).requests.running, 1);
    controller.abort();
    await waitUntil(async () => {
      const { requests, kv } = await engine.stats();
      return requests.running === 0 && requests.aborted === 1 && kv.bytes.used === 0;
    }, 'the request to end');
  });

  test('requests that are all aborted during a pass end', async (t) => {
    const engine = await openEdge(t, { bytes, prefixCache: false });
    for (let turns = 1; turns <= 12; turns++) {
      const controller = new AbortController();
      const { signal } = controller;
      const asked = [1, 2, 3].map((i) =>
        engine.generate(`${i} `.repeat(300), { ...greedy, signal }).text(),
      );
      const read = engine.generate('Once', { maxTokens: turns }).text(); // may end in the same pass
      if (turns % 2) await read;
      for (let i = 0; i < turns; i++) await takeTurn();
      controller.abort();
      await Promise.allSettled([...asked, read]);
      await waitUntil(
        async () => (await engine.stats()).requests.running === 0,
        'the requests to end',
      );
    }
    assert.equal((await engine.stats()).kv.bytes.used, 0);
  });

  test('one reader does not starve the others', async (t) => {
    const engine = await openEdge(t);
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    const start = performance.now();
    await engine.generate('Once', { ...greedy, maxTokens: 600 }).text();
    clearInterval(timer);
    const ms = performance.now() - start;
    assert.ok(turns >= Math.min(4, ms / 40), `${turns} turns in ${ms} ms`);
  });

  test('turns depend on the amount of work if the clock does not advance', async () => {
    const turns = new Turns({ parameters: 40e6, layers: 4 });
    turns.count(9);
    assert.equal(new Turns(null).isDue, false);
    assert.equal(turns.isDue, false);
    turns.count(1);
    assert.equal(turns.isDue, true);
    await turns.take();
    assert.equal(turns.isDue, false);
  });

  test('a turn uses the host’s scheduling function', async (t) => {
    const host = /** @type {any} */ (globalThis);
    for (const name of ['setImmediate', 'scheduler', 'MessageChannel']) {
      const found = Object.getOwnPropertyDescriptor(host, name);
      t.after(() => found && Object.defineProperty(host, name, found));
    }
    await takeTurn();
    host.setImmediate = undefined;
    let waits = 0;
    Object.defineProperty(host, 'scheduler', {
      value: { wait: async () => waits++ },
      configurable: true,
      writable: true,
    });
    await takeTurn();
    assert.equal(waits, 1);
    host.scheduler = undefined;
    await takeTurn();
    Object.defineProperty(host, 'MessageChannel', { value: undefined, configurable: true });
    await takeTurn();
  });

  test('a trap ends the engine with a message', async () => {
    const native = await NativeEngine.create(wasm, configOf({ file: modelPath }, 1));
    native.feed(0, 0, bytes);
    const connection = new EdgeConnection(native, {
      queueLimit: undefined,
      chatTemplate: undefined,
    });
    native.stepUnits = () => {
      throw new WebAssembly.RuntimeError('unreachable');
    };
    const message = { input: { prompt: 'Once' }, settings: settingsOf({}), wantsTokens: false };
    /** @type {any[]} */
    const failures = [];
    const waiter = {
      onOutput: () => assert.fail(),
      fail: (/** @type {any} */ error) => failures.push(error),
    };
    const [running] = connection.generate(message, [waiter]);
    const crashed = { code: 'WORKER_CRASHED', message: /The engine crashed: .*unreachable/ };
    await assert.rejects(running.drive?.() ?? assert.fail(), crashed);
    assert.deepEqual(
      failures.map(({ code }) => code),
      ['WORKER_CRASHED'],
    );
    await assert.rejects(connection.call('info', []), crashed);
    assert.equal(connection.isEnded, true);
    running.cancel(); // must not call the module again
  });

  test('an embedding whose caller is suspended is completed by later calls', async () => {
    /** @type {string[]} */
    const begun = [];
    let left = 0;
    const native = /** @type {any} */ ({
      embedBegin(/** @type {any} */ { texts: [text] }) {
        begun.push(text);
        left = 3;
      },
      embedded: () => begun.at(-1),
      embedEnd: () => begun.push('end'),
    });
    const gone = new Promise(() => {});
    let isGone = true;
    const host = {
      step: () => (--left > 0 ? STEP_PROGRESS : STEP_IDLE),
      takeTurn: () => /** @type {Promise<any>} */ (isGone ? gone : takeTurn()),
      isClosed: () => false,
    };
    const embedder = new Embedder(native, host);
    embedder.embed(/** @type {any} */ ({ texts: ['first'] }));
    isGone = false;
    const others = ['second', 'third'].map((text) =>
      embedder.embed(/** @type {any} */ ({ texts: [text] })),
    );
    assert.deepEqual(await Promise.all(others), [['second'], ['third']]);
    assert.deepEqual(begun, ['first', 'end', 'second', 'end', 'third', 'end']);
  });
});

describe('images and recordings', { skip }, () => {
  const CHAT = '/v1/chat/completions';
  /** @param {string} id of a type @returns {any} options */
  const optionsOf = (id) => {
    const { model, mmproj } = typeOf(id);
    return {
      ...{ bytes: new Uint8Array(readFileSync(model)), mediaWasm, contextSize: 512 },
      mmproj: new Uint8Array(readFileSync(mmproj)),
    };
  };

  for (const [id, name, chatTemplate] of [
    ['gemma3', 'sq', texts],
    ['idefics3', 'tall', lists],
    ['qwen3a', 'a2', texts],
  ]) {
    test(`${id}: a data URL gives the same answer as with a worker`, async (t) => {
      const { model, mmproj } = typeOf(id);
      const edge = await openEdge(t, { ...optionsOf(id), chatTemplate });
      const worker = await openEngine(
        t,
        /** @type {any} */ ({ file: model, mmproj, contextSize: 512, chatTemplate }),
      );
      const body = bodyAbout(messagePartOf(partOf(id, name)));
      const [mine, theirs] = await Promise.all(
        [edge, worker].map(async (engine) => {
          const response = await createHandler(engine)(post(CHAT, body));
          return { status: response.status, body: /** @type {any} */ (await response.json()) };
        }),
      );
      assert.equal(mine.status, 200, JSON.stringify(mine.body));
      assert.deepEqual(mine.body.choices, theirs.body.choices);
      assert.deepEqual((await edge.info()).media, (await worker.info()).media);
    });
  }

  test('undecodable formats are rejected with their name, unless a function decodes them', async (t) => {
    const decodeImage = async () => ({ width: 1, height: 1, data: new Uint8Array(3) });
    const options = { ...optionsOf('gemma3'), chatTemplate: texts };
    const [plain, able] = [
      await openEdge(t, options),
      await openEdge(t, { ...options, decodeImage, maxImageTokens: 100 }),
    ];
    for (const [part, code, words] of refusedParts) {
      const response = await createHandler(plain)(post(CHAT, bodyAbout(part)));
      const { error } = /** @type {any} */ (await response.json());
      assert.deepEqual([response.status, error.code], [400, code], error.message);
      assert.match(error.message, words);
    }
    const response = await createHandler(able)(post(CHAT, bodyAbout(refusedParts[0][0])));
    assert.equal(response.status, 200);
  });

  test('other streams continue while an image is encoded, and cancelling its reader frees it', async (t) => {
    const engine = await openEdge(t, { ...optionsOf('idefics3'), chatTemplate: texts });
    const [part] = bodyAbout(messagePartOf(partOf('idefics3', 'wide'))).messages[0].content;
    /** @param {any} prompt */
    const ask = (prompt) => engine.generate(prompt, greedy);
    const wanted = await ask('Once').text();
    const content = [part, { type: 'text', text: 'What?' }];
    const alone = await ask(content).text();
    const other = ask(content)[Symbol.asyncIterator]();
    const first = other.next();
    const [one, two] = await Promise.all([ask('Once').text(), ask(content).text()]);
    assert.deepEqual([one, two], [wanted, alone]);
    await first;
    await other.return();
    const left = ask([{ type: 'image', image: { width: 2, height: 2, data: new Uint8Array(12) } }]);
    const reading = left[Symbol.asyncIterator]();
    reading.next().catch(() => {});
    await takeTurn();
    await reading.return();
    assert.equal(await ask(content).text(), alone);
  });

  test('the file is read in ranges, and a second loader continues where the first one stopped', async () => {
    const { bytes: model, mmproj, ...options } = optionsOf('gemma3');
    const open = openOnce({ ...options, wasm, extrasWasm, chatTemplate: texts });
    /** @type {number[]} */
    const offsets = [];
    const controller = new AbortController();
    const { signal } = controller;
    const range = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      offsets.push(offset);
      if (offset > 0 && !signal.aborted) {
        controller.abort();
        return new Promise(() => {});
      }
      return mmproj.subarray(offset, offset + Math.min(length, 50_000));
    };
    await assert.rejects(open({ bytes: model, mmproj: range, signal }), { name: 'AbortError' });
    const engine = await open({ bytes: model, mmproj: range });
    assert.deepEqual(offsets.slice(0, 3), [0, 50_000, 50_000]);
    assert.deepEqual((await engine.info()).media, ['image']);
    await engine.close();
  });

  test('options are checked', async () => {
    const { mediaWasm: _, ...options } = optionsOf('gemma3');
    await assert.rejects(
      createEngine({ ...options, wasm, extrasWasm }),
      refused('ARG', /^mmproj needs mediaWasm/),
    );
    await assert.rejects(
      createEngine({ ...optionsOf('gemma3'), wasm, extrasWasm, mmproj: /** @type {any} */ (7) }),
      refused('ARG', /^mmproj must be/),
    );
    await assert.rejects(
      createEngine({ ...optionsOf('gemma3'), wasm, extrasWasm, mmproj: bytes }),
      refused('FORMAT', /^mmproj: /),
    );
  });
});

describe('one engine for all requests in an isolate', () => {
  test('the engine is loaded once, and again after it has ended', async () => {
    let reads = 0;
    const range = async (/** @type {number} */ offset, /** @type {number} */ length) => {
      reads++;
      await sleep(5);
      return bytes.slice(offset, offset + Math.min(length, 1 << 20));
    };
    const open = openOnce({ wasm });
    const engines = await Promise.all([1, 2, 3].map(() => open({ range })));
    assert.equal(new Set(engines).size, 1);
    assert.equal(reads, Math.ceil(bytes.length / (1 << 20)));
    await engines[0].close();
    const next = await open({ bytes });
    assert.notEqual(next, engines[0]);
    assert.equal(await open({ bytes }), next);
    await next.close();
  });

  test('when the loading request ends, another request continues the load', async () => {
    for (const isAborted of [true, false]) {
      const open = openOnce({ wasm });
      const controller = new AbortController();
      const { signal } = controller;
      /** @type {number[]} */
      const offsets = [];
      const stalled = open({
        signal,
        async range(offset, length) {
          offsets.push(offset);
          if (offset > 1e6)
            await new Promise((_, fail) => (signal.onabort = () => fail(signal.reason)));
          return bytes.slice(offset, offset + Math.min(length, 600_000));
        },
      });
      stalled.catch(() => {});
      const range = async (/** @type {number} */ offset, /** @type {number} */ length) => {
        offsets.push(offset);
        return bytes.slice(offset, offset + length);
      };
      const other = open({ range });
      await waitUntil(() => offsets.some((offset) => offset > 1e6), 'the stall');
      if (isAborted) controller.abort();
      const engine = await other;
      assert.deepEqual(offsets, [0, 600_000, 1_200_000, 1_200_000]);
      assert.ok((await engine.generate('Once', greedy).text()).length > 10);
      controller.abort(); // the stalled request resumes too late
      await assert.rejects(stalled);
      assert.ok((await engine.generate('Once', greedy).text()).length > 10);
      await engine.close();
    }
  });

  test('when the request that creates the engine ends, another request creates it', async (t) => {
    const { openOnce: openHere } = await import('../../js/edge/create_edge_engine.js');
    const { create } = NativeEngine;
    t.after(() => Object.assign(NativeEngine, { create }));
    /** @type {((native: NativeEngine) => void)[]} */
    const settle = [];
    NativeEngine.create = async (...args) => {
      if (settle.length > 0) return create(...args);
      return new Promise((done) => settle.push(done));
    };
    const open = openHere({ wasm });
    const ended = open({ bytes });
    const engine = await open({ bytes });
    assert.ok((await engine.generate('Once', greedy).text()).length > 10);
    // the first request resumes too late
    settle[0](await create(wasm, configOf(/** @type {any} */ ({ threads: 1 }), 1)));
    assert.equal(await ended, engine);
    assert.ok((await engine.generate('Once', greedy).text()).length > 10);
    await engine.close();
  });

  test('cancelling does not wait for a stalled source', async () => {
    const open = openOnce({ wasm });
    for (const make of [open, (/** @type {any} */ model) => createEngine({ wasm, ...model })]) {
      const controller = new AbortController();
      const range = () => {
        queueMicrotask(() => controller.abort());
        return new Promise(() => {});
      };
      await assert.rejects(make({ range, signal: controller.signal }), { name: 'AbortError' });
    }
    await (await open({ bytes })).close();
  });

  test('after a failure the next request starts again', async () => {
    const open = openOnce({ wasm });
    for (const model of /** @type {any[]} */ ([undefined, null, 5])) {
      await assert.rejects(open(model), refused('ARG', /^model must be an options object/));
    }
    await assert.rejects(open({ bytes: new Uint8Array(9000) }), refused('FORMAT'));
    await assert.rejects(
      open({ range: async () => Promise.reject(new Error('gone')) }),
      refused('IO'),
    );
    const engine = await open({ bytes });
    assert.ok((await engine.generate('Once', greedy).text()).length > 10);
    await engine.close();
  });
});
