// The engine as a wasi:http component, served by wasmtime: its responses equal those of the JavaScript handler.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { native, wick } from '../support/cli.mjs';
import { embedModel, snapshotOf, startJco, startWasmtime } from '../support/component_servers.mjs';
import { ask, readEvents } from '../support/example_servers.mjs';
import { isFull } from '../support/level.mjs';
import { built, locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath, temporaryFolder, waitUntil } from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { wrongBodies } from '../support/wrong_bodies.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 9 } } },
  },
};
const city = {
  type: 'object',
  properties: { city: { type: 'string', maxLength: 8 } },
  required: ['city'],
  additionalProperties: false,
};

/** Returns the response of an engine in Node. @type {(path: string, body: unknown) => Promise<Response>} */
let reference;
/** @type {import('../../js/index.js').Engine} */
let engine;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1 });
  const handle = createHandler(engine);
  reference = (path, body) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return handle(new Request(`http://wick.test${path}`, { ...init, body: text }));
  };
});
after(() => engine.close());

/** @type {[string, any][]} */
const bodies = [
  [CHAT, { messages, temperature: 0, max_tokens: 30 }],
  [CHAT, { messages, seed: 5, max_tokens: 20, n: 2, logprobs: true, top_logprobs: 2 }],
  [
    CHAT,
    {
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be ' },
            { type: 'text', text: 'short. "\\u00e4"' },
          ],
        },
        ...messages,
        { role: 'assistant', content: 'Once.', name: null },
        { role: 'user', content: 'And then? \u{1f98a}' },
      ],
      ...{ seed: 1, max_completion_tokens: 20, stop: ['.', 'fox'], repeat_penalty: 1.2 },
      ...{ logit_bias: { 300: -100, 17: 2.5 }, user: 'me', store: true },
    },
  ],
  [
    CHAT,
    { messages, seed: 2, max_tokens: 24, min_p: 0, typical_p: 0.9, mirostat: 2, repeat_last_n: 0 },
  ],
  [
    CHAT,
    {
      messages,
      seed: 3,
      max_tokens: 24,
      dry_multiplier: 0.8,
      dry_sequence_breakers: ['\n', 'the'],
      samplers: ['dry', 'top_k', 'temperature'],
    },
  ],
  // only temperature: with the default samplers, a top_k of 1 would leave only one token
  [
    CHAT,
    { messages, seed: 5, temperature: 4, top_k: 1, max_tokens: 12, samplers: ['temperature'] },
  ],
  [
    CHAT,
    {
      messages,
      seed: 4,
      max_tokens: 40,
      response_format: { type: 'json_schema', json_schema: { schema: city } },
    },
  ],
  [CHAT, { messages, seed: 4, max_tokens: 20, response_format: { type: 'json_object' } }],
  [
    CHAT,
    {
      ...{ messages, seed: 4, max_tokens: 60, reasoning_effort: 'low' },
      response_format: { type: 'json_object', schema: city },
    },
  ],
  [CHAT, { messages, seed: 4, max_tokens: 5, reasoning_effort: 'none' }],
  [CHAT, { messages, temperature: 0, max_tokens: 60, tools: [weather], tool_choice: 'required' }],
  [CHAT, { messages, temperature: 0, max_tokens: 12, tools: [weather] }],
  [CHAT, { messages, temperature: 0, max_tokens: 12, tools: [weather], tool_choice: 'none' }],
  [
    CHAT,
    {
      ...{ messages, seed: 4, max_tokens: 40, tools: [weather] },
      response_format: { type: 'json_schema', json_schema: { schema: city } },
    },
  ],
  [COMPLETIONS, { prompt: ['Once', 'The'], seed: 2, max_tokens: 20, n: 2 }],
  [COMPLETIONS, { prompt: 'Once upon a', temperature: 0, logprobs: 3, max_tokens: 12 }],
  [COMPLETIONS, { prompt: [[300, 301], [302]], temperature: 0 }],
];

/** Removes call ids, which are random. @param {any} choice */
function withoutIds(choice) {
  for (const call of choice.message?.tool_calls ?? []) {
    assert.match(call.id, /^\w{9}$/);
    delete call.id;
  }
  return choice;
}

/** Rounds logprobs, which are printed with the digits of a float or of a double. @param {any} value @returns {any} */
function rounded(value) {
  if (typeof value === 'number') return Math.fround(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, rounded(one)]));
}

/** @param {any} answer */
const constant = ({ object, model, choices, usage }) => ({
  ...{ object, model, choices: rounded(choices).map(withoutIds) },
  usage: { ...usage, prompt_tokens_details: {} }, // the number of cached tokens differs
});

const skip = locate('wasmtimeCommand').skip;
const folder = temporaryFolder();
/** @param {string} name @returns {Promise<string>} the component with the embedded model */
const embedded = (name) => embedModel(name, folder);

/** @type {Record<string, () => Promise<import('../support/example_servers.mjs').Started>>} */
const servers = {
  'p2 in wasmtime': () => startWasmtime('p2'),
  'p3 in wasmtime': () => startWasmtime('p3'),
  'p2 with embedded model, in jco': async () => startJco(await embedded('p2'), folder),
  'p3 with embedded model, in wasmtime': async () =>
    startWasmtime('p3', { component: await embedded('p3') }),
  'p2 from a snapshot, one instance per request': async () =>
    startWasmtime('p2', { component: await snapshotOf('p2', folder) }),
  'p3 from a snapshot': async () =>
    startWasmtime('p3', { component: await snapshotOf('p3', folder) }),
};
const inMain = ['p3 in wasmtime', 'p2 with embedded model, in jco'];
for (const [name, start] of Object.entries(servers)) {
  if (!isFull && !inMain.includes(name)) continue;
  describe(name, { skip }, () => {
    /** @type {import('../support/example_servers.mjs').Started} */
    let server;
    before(async () => {
      server = await start();
    });
    after(() => server.close());
    /** @param {string} path @param {unknown} body @param {RequestInit} [init] */
    const post = (path, body, init) => ask(server.origin, path, body, init);

    test('responses are the same as in Node, streamed and not', async () => {
      for (const [path, body] of bodies) {
        const response = await post(path, body);
        const theirs = constant(await (await reference(path, body)).json());
        const text = await response.text();
        assert.equal(response.status, 200, text);
        assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
        assert.deepEqual(constant(JSON.parse(text)), theirs);
        const stream_options = { include_usage: true };
        const events = await (await post(path, { ...body, stream: true, stream_options })).text();
        const { isWhole, chunks } = readEvents(events);
        assert.ok(isWhole, events);
        assertSame(chunks, theirs);
      }
    });

    test('errors are the same as in Node', async () => {
      for (const [path, body, status, param, code] of wrongBodies) {
        // two mistakes: the reported one differs
        if (typeof body === 'string' && body.includes('"messages": [], ')) continue;
        if (!['/v1/embeddings', '/v1/rerank'].includes(path)) {
          const response = await post(path, body);
          const { error } = /** @type {any} */ (await response.json());
          assert.equal(response.status, status, JSON.stringify([body, error]).slice(0, 500));
          assert.equal(error.code, code, JSON.stringify([body, error]).slice(0, 500));
          if (param !== null) assert.equal(error.param, param, error.message);
          assert.ok(error.message.length > 10 && error.message.length < 300, error.message);
        }
      }
    });

    test('a prefix of the reply is rejected', async () => {
      const begun = { role: 'assistant', content: 'Once', prefix: true };
      const messages = [{ role: 'user', content: 'Hi' }, begun];
      const ask = (/** @type {object[]} */ list) =>
        post('/v1/chat/completions', { messages: list, max_tokens: 1 });
      const response = await ask(messages);
      assert.equal(response.status, 400);
      const { error } = /** @type {any} */ (await response.json());
      assert.equal(error.param, 'messages[1].prefix');
      assert.equal((await ask([messages[0], { ...begun, prefix: false }])).status, 200);
    });

    test('models, health, methods, media types and sizes are handled as documented', async () => {
      const get = async (/** @type {string} */ path, init = {}) =>
        fetch(`${server.origin}${path}`, init);
      assert.deepEqual(await (await get('/health')).json(), { status: 'ok' });
      const { data } = await (await get('/v1/models?x=1')).json();
      const { name } = await engine.info();
      assert.deepEqual(
        data.map((/** @type {any} */ one) => one.id),
        [name],
      );
      assert.equal((await get(`/v1/models/${encodeURIComponent(String(name))}`)).status, 200);
      assert.equal((await get('/v1/models/other')).status, 404);
      assert.equal((await get('/nothing')).status, 404);
      assert.equal((await get(CHAT)).headers.get('allow'), 'POST, OPTIONS');
      assert.equal((await get(CHAT, { method: 'OPTIONS' })).status, 204);
      const head = await get('/health', { method: 'HEAD' });
      assert.deepEqual([head.status, await head.text()], [200, '']);
      const plain = await post(CHAT, { messages }, { headers: { 'content-type': 'text/plain' } });
      assert.equal(plain.status, 415);
      assert.equal((await post(CHAT, `{"messages":"${' '.repeat(1 << 20)}"}`)).status, 413);
      assert.equal((await post(CHAT, Buffer.from([0x22, 0xff]).toString('latin1'))).status, 400);
    });
  });
}

describe('p3 in wasmtime: requests share the instance', { skip }, () => {
  /** @type {import('../support/example_servers.mjs').Started} */
  let server;
  before(async () => {
    server = await startWasmtime('p3');
  });
  after(() => server.close());
  const metric = async (/** @type {string} */ name, labels = '') => {
    const page = await (await fetch(`${server.origin}/metrics`)).text();
    const sample = `^${name}\\{wick_instance="\\w+"${labels}\\} (\\S+)$`;
    return Number(new RegExp(sample, 'm').exec(page)?.[1]);
  };

  test('requests share a batch and the prefix cache', async () => {
    const body = { messages, temperature: 0, max_tokens: 1000, stream: true };
    const readers = [];
    for (let client = 0; client < 6; client++) {
      const response = await ask(server.origin, CHAT, body);
      const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
      await reader.read();
      readers.push(reader);
    }
    // wasmtime may start another instance while one is busy with the start of a request
    const isShared = async () => (await metric('wick_requests_submitted_total')) >= 2;
    await waitUntil(isShared, 'an instance with several requests');
    for (const reader of readers) await reader.cancel();
    await waitUntil(async () => {
      const asked = { messages, temperature: 0, max_tokens: 2 };
      const { usage } = await (await ask(server.origin, CHAT, asked)).json();
      return usage.prompt_tokens_details.cached_tokens >= 16;
    }, 'a prompt with a cached prefix');
  });

  test('the log does not contain text of requests', async () => {
    const bodies = Array.from({ length: 12 }, (_, seed) => ({
      ...{ prompt: `Story ${seed % 5}`, seed, max_tokens: 40, stream: seed % 2 === 0 },
    }));
    const texts = await Promise.all(
      bodies.map(async (body) => {
        const response = await ask(server.origin, COMPLETIONS, body);
        if (body.stream) return readEvents(await response.text()).text;
        return (await response.json()).choices[0].text;
      }),
    );
    for (const [index, body] of bodies.entries()) {
      const theirs = await (await reference(COMPLETIONS, { ...body, stream: false })).json();
      assert.equal(texts[index], theirs.choices[0].text);
    }
  });

  test('a disconnected client is cancelled, and the others continue', async () => {
    const long = { messages, temperature: 0, max_tokens: 3000, stream: true };
    const stays = ask(server.origin, CHAT, { messages, temperature: 0, max_tokens: 60 });
    const leave = async (/** @type {number} */ pieces) => {
      const leaves = new AbortController();
      const response = await ask(server.origin, CHAT, long, { signal: leaves.signal });
      const reader = /** @type {ReadableStream} */ (response.body).getReader();
      for (let piece = 0; piece < pieces; piece++) await reader.read();
      leaves.abort();
    };
    for (let round = 0; round < 12; round++) await leave(round % 4);
    const { choices } = await (await stays).json();
    const wanted = await (
      await reference(CHAT, { messages, temperature: 0, max_tokens: 60 })
    ).json();
    assert.equal(choices[0].message.content, wanted.choices[0].message.content);
    await waitUntil(
      async () => (await metric('wick_http_generations')) === 0,
      'all requests to end',
    );
    // there is no other client to continue the pass
    for (let pieces = 0; pieces < 4; pieces++) {
      await leave(pieces);
      const running = () => metric('wick_requests', ',state="running"');
      await waitUntil(
        async () => (await metric('wick_http_generations')) === 0,
        'the request to end',
      );
      await waitUntil(async () => (await running()) === 0, 'the engine to be idle');
    }
  });
});

test('without a model every generation request is rejected with the reason', {
  skip,
}, async (t) => {
  const server = await startWasmtime('p2', { model: join(folder, 'missing.gguf') });
  t.after(() => server.close());
  const response = await ask(server.origin, CHAT, { messages });
  const { error } = await response.json();
  assert.deepEqual([response.status, error.code], [503, 'model']);
  assert.match(error.message, /missing\.gguf/);
});

test('a snapshot contains the model, but not the environment in which it was made', {
  skip,
}, async (t) => {
  const component = await snapshotOf('p2', folder);
  assert.ok(statSync(component).size < 1.1 * statSync(await embedded('p2')).size);
  const args = ['--env', 'WICK_KEYS=one', '--env', 'WICK_MODEL_NAME=mine'];
  const server = await startWasmtime('p2', { component, args });
  t.after(() => server.close());
  assert.equal((await fetch(`${server.origin}/v1/models`)).status, 401);
  const headers = { authorization: 'Bearer one' };
  const { data } = await (await fetch(`${server.origin}/v1/models`, { headers })).json();
  assert.equal(data[0].id, 'mine');
  const wasmtime = locate('wasmtimeCommand').path;
  const plain = ['wizer', '-Scli', '-Shttp', '-f', 'preload()', built('edge/wick-p2.wasm')];
  const { code, stderr } = await run(wasmtime, [...plain, '-o', join(folder, 'none.wasm')]);
  assert.notEqual(code, 0);
  assert.match(stderr.toString(), /cannot open \/models\/model\.gguf/);
});

test('embed-component rejects files that are not a model or a component, and components with a model', {
  skip,
}, async () => {
  const plain = built('edge/wick-p2.wasm');
  const [out, other] = [join(folder, 'out.wasm'), join(folder, 'other')];
  writeFileSync(other, '\0asm nonsense');
  const cut = join(folder, 'cut.wasm');
  writeFileSync(cut, readFileSync(plain).subarray(0, 400_000));
  for (const [model, component, words] of [
    [other, plain, /is not a GGUF file/],
    [join(folder, 'nothing'), plain, /cannot open/],
    [modelPath, other, /is not a component/],
    [modelPath, cut, /is not a component/],
    [modelPath, built('wasi/wick.wasm'), /is not a component/],
    [modelPath, join(folder, 'nothing'), /cannot open .*make edge/],
    [modelPath, await embedded('p2'), /is not a component without a model/],
  ]) {
    const args = ['embed-component', String(model), '-o', out, '--component', String(component)];
    const { code, stderr } = await wick(native, args);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /** @type {RegExp} */ (words));
    assert.equal(existsSync(out), false);
  }
  assert.equal((await wick(native, ['embed-component', modelPath])).code, 2);
});

/** @param {any[]} chunks @param {any} whole the same response, not streamed */
function assertSame(chunks, whole) {
  const choices = whole.choices.map(() => ({
    text: '',
    finish: null,
    calls: /** @type {any[]} */ ([]),
  }));
  for (const {
    choices: [one],
  } of chunks) {
    if (!one) continue;
    const to = choices[one.index];
    to.text += one.delta?.content ?? one.text ?? '';
    to.finish ??= one.finish_reason;
    for (const { index, function: part } of one.delta?.tool_calls ?? []) {
      to.calls[index] ??= { name: part.name, arguments: '' };
      to.calls[index].arguments += part.arguments;
    }
  }
  assert.deepEqual(
    choices,
    whole.choices.map((/** @type {any} */ one) => ({
      text: one.message?.content ?? one.text,
      finish: one.finish_reason,
      calls: (one.message?.tool_calls ?? []).map((/** @type {any} */ call) => call.function),
    })),
  );
  const { prompt_tokens, completion_tokens } = chunks.at(-1).usage;
  assert.deepEqual(
    [prompt_tokens, completion_tokens],
    [whole.usage.prompt_tokens, whole.usage.completion_tokens],
  );
}
