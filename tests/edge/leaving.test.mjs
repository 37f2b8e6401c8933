// Clients, readers and engines that end at any moment: in the middle of a body, a prompt, an image, a grammar, a batch of inputs
// or a stream, or while they wait. The engine becomes idle again, there are no unhandled rejections, and every answer that is
// read to its end equals that of an idle engine.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { takeTurn } from '../../js/base/take_turn.js';
import { EdgeConnection } from '../../js/edge/edge_connection.js';
import { createEngine } from '../../js/edge.js';
import { createHandler } from '../../js/openai.js';
import { settingsOf } from '../../js/page/request_options.js';
import { EVENT_LOGITS, EVENT_TOKEN, STEP_PROGRESS } from '../../js/wasm/layout.js';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { isFull } from '../support/level.mjs';
import { bodyAbout, messagePartOf, partOf, skip, texts, typeOf } from '../support/media_files.mjs';
import { dist, modelPath, openEngine, sleep } from '../support/package.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { isSoak, soakSeed } from '../support/soak.mjs';

/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {(request: Request) => Promise<Response>} Handle */
/** @typedef {() => number} Random numbers below 1 */

const moduleOf = (/** @type {string} */ name) =>
  new WebAssembly.Module(readFileSync(join(dist, `wasm/wick-simd128-single${name}.wasm`)));
const parts = {
  wasm: moduleOf(''),
  extrasWasm: moduleOf('-extras'),
  grammarWasm: moduleOf('-grammar'),
  mediaWasm: moduleOf('-media'),
};

/** Unhandled rejections. @type {unknown[]} */
const unhandled = [];
const hear = (/** @type {unknown} */ reason) => void unhandled.push(reason);
process.on('unhandledRejection', hear);
process.on('uncaughtException', hear);
after(() => {
  process.off('unhandledRejection', hear);
  process.off('uncaughtException', hear);
});

// ---- requests ----

/** @param {Random} random @param {number} count @returns {number} a number below count */
const below = (random, count) => Math.floor(random() * count);
/** @template T @param {Random} random @param {T[]} list @returns {T} */
const pick = (random, list) => list[below(random, list.length)];

const words = ['fox', 'hen', 'once', 'the old man', 'rain', 'Tell me', '\u{1f98a}', '1, 2, 3'];
/** @param {Random} random @returns {string} */
const text = (random) =>
  Array.from({ length: 1 + below(random, random() < 0.3 ? 300 : 6) }, () =>
    pick(random, words),
  ).join(' ');

/** Returns a new schema, which has to be compiled. @param {Random} random */
const schema = (random) => ({
  type: 'object',
  properties: { [`name${below(random, 1e6)}`]: { type: 'string', maxLength: 20 } },
  required: [],
  additionalProperties: false,
});

/** @param {Random} random @returns {any} fields of a generation request */
const limits = (random) => ({
  temperature: 0,
  max_tokens: 1 + below(random, 40),
  stream: random() < 0.6,
});

/** @param {Random} random */
const messagesOf = (random) => [{ role: 'user', content: text(random) }];

/** @type {((random: Random) => [path: string, body: any])[]} */
const asks = [
  (random) => ['/v1/chat/completions', { ...limits(random), messages: messagesOf(random) }],
  (random) => [
    '/v1/chat/completions',
    { ...limits(random), messages: messagesOf(random), n: 1 + below(random, 4), logprobs: true },
  ],
  (random) => [
    '/v1/chat/completions',
    {
      ...limits(random),
      messages: messagesOf(random),
      response_format: { type: 'json_schema', json_schema: { schema: schema(random) } },
    },
  ],
  (random) => [
    '/v1/chat/completions',
    {
      ...{ ...limits(random), messages: messagesOf(random), tool_choice: 'required' },
      tools: [{ type: 'function', function: { name: 'call', parameters: schema(random) } }],
    },
  ],
  (random) => [
    '/v1/completions',
    {
      ...limits(random),
      prompt: Array.from({ length: 1 + below(random, 3) }, () => text(random)),
      n: 1 + below(random, 3),
    },
  ],
  (random) => ['/v1/completions', { ...limits(random), prompt: text(random), logprobs: 2, n: 2 }],
  (random) => [
    '/v1/completions',
    { ...limits(random), stream: false, prompt: text(random), echo: true, logprobs: 1 },
  ],
  (random) => [
    '/v1/completions',
    { ...limits(random), prompt: text(random), regex: `[a-z${below(random, 9)}]{1,200}` },
  ],
  (random) => {
    const { max_tokens: most, ...own } = limits(random);
    return ['/v1/responses', { ...own, max_output_tokens: most, input: text(random) }];
  },
  (random) => ['/v1/messages', { ...limits(random), messages: messagesOf(random) }],
  (random) => ['/completion', { ...limits(random), prompt: [text(random), text(random)] }],
  (random) => ['/completion', { ...limits(random), prompt: text(random), n_probs: 2 }],
  (random) => [
    '/v1/embeddings',
    { input: Array.from({ length: 1 + below(random, 20) }, () => text(random)) },
  ],
  (random) => ['/v1/messages/count_tokens', { messages: messagesOf(random) }],
  (random) => ['/tokenize', { content: text(random), with_pieces: true }],
];

// ---- clients ----

/**
 * Returns the body in pieces, with pauses between them.
 * @param {any} body @param {Random} random @param {boolean} isSlow
 */
function bodyOf(body, random, isSlow) {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  if (!isSlow) return bytes;
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      await takeTurn();
      const end = Math.min(bytes.length, at + 1 + below(random, 1 + (bytes.length >> 1)));
      controller.enqueue(bytes.subarray(at, end));
      at = end;
      if (at === bytes.length) controller.close();
    },
  });
}

/** @param {string} path @param {any} body @param {RequestInit} [init] */
const post = (path, body, init) =>
  new Request(`http://wick.test${path}`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, duplex: 'half' },
    ...{ body: typeof body === 'object' && !isBytes(body) ? JSON.stringify(body) : body },
    ...init,
  });
const isBytes = (/** @type {any} */ body) =>
  body instanceof Uint8Array || body instanceof ReadableStream;

const turns = async (/** @type {number} */ count) => {
  for (let i = 0; i < count; i++) await takeTurn();
};

/**
 * Sends a request as a client that may disconnect.
 * @param {Handle} handle @param {string} path @param {any} body @param {Random} random
 * @returns {Promise<string | undefined>} the response, if it was read completely
 */
async function ask(handle, path, body, random) {
  const way = below(random, 6); // 0, 1: does not disconnect
  const patience = below(random, 1 + below(random, 80));
  const leaves = new AbortController();
  const sent = bodyOf(body, random, random() < 0.3);
  const request = post(path, sent, { signal: leaves.signal });
  if (way === 2) void turns(patience).then(() => leaves.abort());
  const response = await handle(request);
  if (!response.body) return undefined;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let answer = '';
  for (let pieces = 0; ; pieces++) {
    if (way >= 3 && pieces === below(random, 12)) {
      if (way === 3) await turns(patience); // stays connected without reading
      if (way !== 4) leaves.abort();
      if (way >= 4) await reader.cancel().catch(() => {});
      return undefined;
    }
    const next = await reader.read().catch(() => undefined);
    if (!next) return undefined;
    if (next.done) return leaves.signal.aborted ? undefined : `${response.status} ${answer}`;
    answer += decoder.decode(next.value, { stream: true });
  }
}

/** Members with names and times, which differ between responses. */
const variable = new Set([
  ...['id', 'created', 'created_at', 'timings', 'item_id', 'call_id', 'completed_at'],
]);
/** @param {any} value @returns {any} the value without these members */
const constant = (value) =>
  Array.isArray(value)
    ? value.map(constant)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([name]) => !variable.has(name))
            .map(([name, own]) => [name, constant(own)]),
        )
      : value;

/** @param {string} answer @returns {string} the parts that are the same in every response, with a stream's choices in order */
function essence(answer) {
  const events = answer
    .split('\n\n')
    .filter((event) => /^(event|data|\d+ data|\d+ event)/.test(event));
  if (events.length === 0) return JSON.stringify(constant(JSON.parse(answer.slice(4))));
  const data = events
    .map((event) => event.slice(event.indexOf('data: ') + 6))
    .filter((event) => event !== '[DONE]')
    .map((event) => constant(JSON.parse(event)));
  const indexOf = (/** @type {any} */ one) =>
    one.choices?.[0]?.index ?? (one.choices ? 99 : (one.index ?? 0));
  const isNamed = data.some(({ type }) => type);
  if (!isNamed) data.sort((a, b) => indexOf(a) - indexOf(b));
  return `${answer.slice(0, 4)}${data.map((one) => JSON.stringify(one)).join('\n')}`;
}

/** Direct uses of the engine that are cancelled. @type {((engine: Engine, random: Random, signal: AbortSignal) => Promise<unknown>)[]} */
const readers = [
  async (engine, random) => {
    let left = below(random, 9);
    for await (const _ of engine.generate(text(random), { maxTokens: 60, ignoreEnd: true })) {
      if (left-- === 0) break;
    }
  },
  (engine, random, signal) =>
    engine.generate(text(random), { maxTokens: 90, ignoreEnd: true, signal }).text(),
  (engine, random) =>
    engine
      .generate(text(random), { maxTokens: 900, ignoreEnd: true, timeout: 1 + below(random, 30) })
      .text(),
  async (engine, random, signal) => {
    const many = engine.generateMany(text(random), { n: 3, maxTokens: 40, signal });
    const [first, ...others] = many.map((one) => one[Symbol.asyncIterator]());
    await first.next();
    for (const other of others) await other.return();
    await turns(below(random, 9));
    await first.return();
  },
  (engine, random, signal) => engine.bestOf(text(random), { n: 3, maxTokens: 30, signal }),
  (engine, random, signal) => engine.beamSearch(text(random), { width: 3, maxTokens: 9, signal }),
  (engine, random, signal) =>
    engine.extract(text(random), schema(random), { maxTokens: 30, signal }),
  (engine, random, signal) => engine.classify(text(random), words.slice(0, 4), { signal }),
  (engine, random, signal) => engine.embed(Array(9).fill(text(random)), { signal }),
  async (engine, random, signal) => {
    const body = { messages: messagesOf(random), max_tokens: 60 };
    const stream = engine.chat.completions.stream(body, { signal });
    let left = below(random, 9);
    for await (const _ of stream) if (left-- === 0) break;
  },
  async (engine, random, signal) => {
    const session = await engine.createSession();
    try {
      await session.append(text(random), { signal });
      const said = session.prompt(text(random), { maxTokens: 40, signal });
      let left = below(random, 9);
      for await (const _ of said) if (left-- === 0) break;
      const fork = await session.fork();
      await fork
        .prompt(' and', { maxTokens: 9, signal })
        .text()
        .catch(() => {});
      await fork.close();
    } finally {
      await session.close();
    }
  },
];

/** @param {Engine} engine @param {Random} random */
async function read(engine, random) {
  const leaves = new AbortController();
  const patience = below(random, 1 + below(random, 80));
  void turns(patience).then(() => leaves.abort());
  try {
    await pick(random, readers)(engine, random, leaves.signal);
  } catch (/** @type {any} */ error) {
    const isRefused = ['PROMPT_TOO_LONG', 'INCOMPLETE'].includes(error.code);
    if (!isRefused && !['AbortError', 'TimeoutError'].includes(error.name)) throw error;
  }
}

// ---- checks ----

/** @param {Engine} engine @param {Handle} handle @returns {Promise<string>} the counters that are not 0; empty if the engine is idle */
async function unrest(engine, handle) {
  const { requests, kv } = await engine.stats();
  const page = await (await handle(new Request('http://wick.test/metrics'))).text();
  const generations = Number(/^wick_http_generations (\d+)$/m.exec(page)?.[1]);
  const { running, waiting } = requests;
  const { sessions = 0 } = kv;
  const found = { running, waiting, generations, bytes: kv.bytes.used, sessions };
  return Object.values(found).some((count) => count !== 0) ? JSON.stringify(found) : '';
}

const LONGEST_MS = Number(process.env.REST_MS ?? 5000);

/** @param {Engine} engine @param {Handle} handle @param {string} name */
async function checkRest(engine, handle, name) {
  let found = '';
  for (const end = Date.now() + LONGEST_MS; Date.now() < end; await sleep(5)) {
    found = await unrest(engine, handle);
    if (found === '') break;
  }
  assert.equal(found, '', name);
  assert.deepEqual(unhandled, [], name);
}

/**
 * Runs rounds of concurrent clients and readers.
 * @param {Engine} engine @param {Handle} handle
 * @param {((random: Random) => [string, any])[]} asked
 * @param {{rounds: number, ms: number}} bound
 */
async function storm(engine, handle, asked, { rounds, ms }) {
  const end = Date.now() + ms;
  let whole = 0;
  for (let round = 0; round < rounds && (round < 8 || Date.now() < end); round++) {
    const seed = soakSeed * 1e6 + round * 100;
    const random = randomOf(seed);
    /** @type {[string, any, Promise<string | undefined>][]} */
    const clients = [];
    /** @type {Promise<unknown>[]} */
    const others = [];
    for (let i = 0; i < 1 + below(random, 7); i++) {
      const own = randomOf(seed + i + 1);
      if (random() < 0.25) {
        others.push(read(engine, own));
        others.at(-1)?.catch(() => {}); // awaited below
      } else {
        const [path, body] = pick(own, asked)(own);
        clients.push([path, body, ask(handle, path, body, own)]);
      }
      await turns(below(random, 12));
    }
    const name = `seed ${soakSeed}, round ${round}: ${clients.map(([path]) => path)}`;
    await Promise.all(others);
    for (const [path, body, answered] of clients) {
      const answer = await answered;
      if (answer === undefined) continue;
      whole++;
      const response = await handle(post(path, body));
      const alone = `${response.status} ${await response.text()}`;
      assert.equal(essence(answer), essence(alone), `${name}: ${JSON.stringify(body)}`);
    }
    await checkRest(engine, handle, name);
  }
  return whole;
}

const usual = isFull ? { rounds: 40, ms: 3000 } : { rounds: 12, ms: 1000 };
const bound = isSoak ? { rounds: 1e6, ms: 60_000 } : usual;
const own = { contextSize: 2048, prefixCache: false };

describe('clients and readers that disconnect', () => {
  test('an edge engine becomes idle again', async (t) => {
    const engine = await createEngine({ ...parts, ...own, bytes: readFileSync(modelPath) });
    t.after(() => engine.close());
    const whole = await storm(engine, createHandler(engine), asks, bound);
    assert.ok(whole > 0);
  });

  test('an engine with a worker becomes idle again', async (t) => {
    const engine = await openEngine(t, { file: modelPath, ...own });
    const whole = await storm(engine, createHandler(engine), asks, bound);
    assert.ok(whole > 0);
  });

  test('requests with images can be cancelled as well', { skip }, async (t) => {
    const { model, mmproj } = typeOf('idefics3');
    const bytes = readFileSync(model);
    const options = { bytes, mmproj: readFileSync(mmproj), chatTemplate: texts };
    const engine = await createEngine({ ...parts, ...options, prefixCache: false });
    t.after(() => engine.close());
    const images = ['wide', 'tall'].map((name) =>
      bodyAbout(messagePartOf(partOf('idefics3', name))),
    );
    /** @type {((random: Random) => [string, any])[]} */
    const asked = [
      (random) => ['/v1/chat/completions', { ...pick(random, images), stream: random() < 0.5 }],
      (random) => ['/v1/chat/completions', { ...pick(random, images), n: 3 }],
      (random) => [
        '/v1/completions',
        { prompt: 'fox', max_tokens: 5 + below(random, 9), temperature: 0, stream: true },
      ],
    ];
    await storm(engine, createHandler(engine), asked, bound);
  });
});

describe('readers and engines that end early', () => {
  const bytes = readFileSync(modelPath);
  const greedy = { temperature: 0, ignoreEnd: true };
  /** @param {import('node:test').TestContext} t */
  const openEdge = async (t) => {
    const engine = await createEngine({ ...parts, ...own, bytes });
    t.after(() => engine.close());
    return engine;
  };
  /** @param {Engine} engine @param {number} count number of requests */
  const untilRunning = async (engine, count) => {
    let running = -1;
    for (
      const end = Date.now() + LONGEST_MS;
      running !== count && Date.now() < end;
      await sleep(5)
    ) {
      running = (await engine.stats()).requests.running;
    }
    assert.equal(running, count);
  };

  test('a paused reader does not keep abandoned requests alive', async (t) => {
    const engine = await openEdge(t);
    const rests = engine.generate('Once', { ...greedy, maxTokens: 500 })[Symbol.asyncIterator]();
    await rests.next();
    for (let count = 1; count <= 12; count++) {
      const leaves = new AbortController();
      const { signal } = leaves;
      const gone = engine.generate('fox '.repeat(300), { ...greedy, signal }).text();
      gone.catch(() => {});
      await turns(count);
      leaves.abort();
      await assert.rejects(gone, { name: 'AbortError' });
      await untilRunning(engine, 1);
    }
    await rests.return();
    await untilRunning(engine, 0);
  });

  test('a request whose reader was garbage-collected ends when the next request arrives', async (t) => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const engine = await openEdge(t);
    const begin = async () => {
      const [read, _unread] = engine.generateMany('Once', { ...greedy, n: 2, maxTokens: 600 });
      await read[Symbol.asyncIterator]().next();
    };
    await begin();
    await untilRunning(engine, 2);
    for (let tries = 0; tries < 5; tries++) {
      await sleep(10);
      collect();
    }
    await engine.generate('Once', { ...greedy, maxTokens: 1 }).text();
    await untilRunning(engine, 0);
  });

  for (const [name, open] of /** @type {[string, (t: any) => Promise<Engine>][]} */ ([
    ['an edge engine', openEdge],
    ['an engine with a worker', (t) => openEngine(t, { file: modelPath, ...own })],
  ])) {
    test(`inputs of an aborted call are not embedded, ${name}`, async (t) => {
      const engine = await open(t);
      const before = (await engine.stats()).tokens.prompt;
      const leaves = new AbortController();
      const long = Array(64).fill('The fox ran over the hill. '.repeat(30));
      const calls = [1, 2, 3].map(() => engine.embed(long, { signal: leaves.signal }));
      for (const call of calls) call.catch(() => {});
      await sleep(30);
      leaves.abort();
      for (const call of calls) await assert.rejects(call, { name: 'AbortError' });
      const start = performance.now();
      const [vector] = await engine.embed('fox');
      const ms = performance.now() - start;
      assert.ok(vector.length > 0);
      assert.ok(ms < 1000, `the next call waited for ${ms} ms`);
      assert.equal((await engine.stats()).kv.bytes.used, 0);
      assert.equal(before, 0);
    });
  }

  /** @param {Partial<NativeEngine>} [traps] functions of the engine */
  async function openTrapped(traps = {}) {
    const { wasm, ...others } = parts;
    const { grammarWasm: grammar, extrasWasm: extras } = others;
    const config = /** @type {any} */ ({ threads: 1, contextSize: 512, noPrefixCache: true });
    const native = await NativeEngine.create(wasm, config, { grammar, extras });
    native.feed(0, 0, bytes);
    const options = { queueLimit: undefined, chatTemplate: undefined };
    const connection = new EdgeConnection(native, options);
    Object.assign(native, traps);
    /** @type {unknown[]} */
    const failures = [];
    const waiter = {
      onOutput: () => {},
      fail: (/** @type {unknown} */ error) => failures.push(error),
    };
    const generate = (/** @type {object} */ options) => {
      const message = {
        input: { prompt: 'Once' },
        settings: settingsOf(options),
        wantsTokens: false,
      };
      return connection.generate(message, [waiter])[0];
    };
    return { native, connection, generate, failures };
  }
  const trap = () => {
    throw new WebAssembly.RuntimeError('unreachable');
  };
  const crashed = { code: 'WORKER_CRASHED', message: /The engine crashed: .*unreachable/ };

  test('a trap during cancellation ends the engine, and is not thrown to the reader', async () => {
    for (const name of /** @type {const} */ (['stepUnits', 'cancel'])) {
      const { native, connection, generate } = await openTrapped();
      const [running, other] = [generate({}), generate({})];
      native[name] = trap;
      running.cancel();
      await assert.rejects(other.drive?.() ?? assert.fail(), crashed);
      await assert.rejects(connection.call('info', []), crashed);
    }
  });

  test('a trap in a grammar or an embedding ends the engine', async () => {
    for (const error of [undefined, new Error('no grammar')]) {
      const { native, connection, generate } = await openTrapped();
      const running = generate({ regex: '(fox|hen){1,900}x' });
      native.submit = trap;
      if (error) native.loadGrammarPart = () => Promise.reject(error);
      await assert.rejects(running.drive?.() ?? assert.fail(), crashed);
      await assert.rejects(connection.call('info', []), crashed);
    }
    for (const name of /** @type {const} */ (['embedBegin', 'embedded'])) {
      const { native, connection } = await openTrapped();
      native[name] = trap;
      const request = { texts: ['fox'], pooling: 'mean', normalize: true, dimensions: 0 };
      await assert.rejects(connection.call('embed', [request]), crashed, name);
      await assert.rejects(connection.call('info', []), crashed, name);
    }
    await turns(3);
    assert.deepEqual(unhandled, []);
  });

  test('reading pieces after the engine was closed does not call it', async () => {
    const { native, connection, generate } = await openTrapped();
    /** @type {any[]} */
    const events = [];
    native.takeEvents = () => events.splice(0);
    native.stepUnits = () => STEP_PROGRESS;
    native.requestLogits = () => /** @type {any} */ ({});
    const running = generate({});
    for (let i = 0; i < 300; i++) events.push({ request: 1, kind: EVENT_TOKEN, text: 'a' });
    events.push({ request: 1, kind: EVENT_LOGITS });
    await running.drive?.();
    await connection.close();
    native.pause = native.answerLogits = trap;
    running.acknowledge(300);
    running.answer(Float32Array.of(1));
    running.cancel();
  });

  test('an engine can be closed during any kind of work', async (t) => {
    for (let round = 0; round < 12; round++) {
      const random = randomOf(round);
      const engine =
        round % 2
          ? await createEngine({ ...parts, ...own, bytes })
          : await openEngine(t, { file: modelPath, ...own });
      const handle = createHandler(engine);
      const clients = Array.from({ length: 6 }, (_, index) => {
        const mine = randomOf(100 * round + index);
        const [path, body] = pick(mine, asks)(mine);
        return index < 4 ? ask(handle, path, body, mine) : read(engine, mine).catch(() => {});
      });
      await turns(below(random, 60));
      await engine.close();
      await Promise.all(clients);
      const page = await handle(new Request('http://wick.test/health'));
      assert.equal(page.status, 503);
    }
    await turns(9);
    assert.deepEqual(unhandled, []);
  });
});
