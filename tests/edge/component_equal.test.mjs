// Components give the same responses as createHandler, for one table of requests (tests/support/handler_requests.mjs).

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { clientRequests, toolTemplate } from '../support/client_requests.mjs';
import { startWasmtime } from '../support/component_servers.mjs';
import { ask } from '../support/example_servers.mjs';
import { poisonToken, writeNumbers, writeTemplates } from '../support/gguf_pieces.mjs';
import {
  closedMetrics,
  closedMetricsRequests,
  comparableOf,
  echoRequests,
  embeddingRequests,
  guarded,
  guardedRequests,
  infillRequests,
  nativeRequests,
  plainRequests,
} from '../support/handler_requests.mjs';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath, temporaryFolder, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {import('../support/handler_requests.mjs').Asked} Asked */
/** @typedef {import('../support/handler_requests.mjs').Opening} Opening */

const skip = locate('wasmtimeCommand').skip;
const shared = locate('shared');
/** @param {string} name */
const embedder = (name) => join(shared.path, 'vectors/reference-more/models', name);

/** @param {string} origin @param {Asked} asked @returns {Request} */
function requestOf(origin, { method = 'GET', path, headers, body }) {
  const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  /** @type {Record<string, string>} */
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  return new Request(`${origin}${path}`, { method, headers: { ...type, ...headers }, body: text });
}

/** Keys of fill-in-the-middle tokens. */
const infillTokens = Object.fromEntries(
  ['pre', 'suf', 'mid', 'sep', 'rep'].map((name, index) => [
    `tokenizer.ggml.fim_${name}_token_id`,
    300 + index,
  ]),
);

/** @param {Record<string, string>} env @returns {string[]} */
const envOf = (env) =>
  Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);

/**
 * @param {Asked[]} requests
 * @param {{model?: string, opening?: Opening, status?: number, chatTemplate?: string}} [with] the status of
 *   all responses; the engine's template
 */
async function compare(requests, { model = modelPath, opening, status, chatTemplate } = {}) {
  const given = chatTemplate === undefined ? {} : { chatTemplate };
  const engine = await createEngine({ file: model, threads: 1, ...given });
  const handle = createHandler(engine, opening?.options);
  const args = envOf(opening?.env ?? {});
  const names = ['p2', 'p3'];
  const servers = await Promise.all(names.map((name) => startWasmtime(name, { model, args })));
  try {
    for (const asked of requests) {
      const wanted = await comparableOf(await handle(requestOf('http://wick.test', asked)));
      for (const [index, { origin }] of servers.entries()) {
        const found = await comparableOf(await fetch(requestOf(origin, asked)));
        if (asked.method === 'HEAD') wanted.body = ''; // a server sends no body
        // if the handler reports no field, the component may still report one
        if (wanted.body?.error?.param === null) found.body.error.param = null;
        const label = `${names[index]}: ${JSON.stringify(asked).slice(0, 300)}`;
        assert.deepEqual(found, wanted, label);
        if (status) assert.equal(found.status, status, `${label} ${JSON.stringify(found.body)}`);
      }
    }
  } finally {
    for (const server of servers) await server.close();
    await engine.close();
  }
}

describe('components and createHandler', { skip }, () => {
  test('responses, errors, methods, media types and sizes are handled the same', () =>
    compare(plainRequests));

  test('keys, origins, limits and the model name behave the same', () =>
    compare(guardedRequests, { opening: guarded }));

  test('private metrics and any origin behave the same', () =>
    compare(closedMetricsRequests, { opening: closedMetrics }));

  test('echo repeats the prompt before each choice', () => compare(echoRequests));

  test('the routes of llama.cpp’s server behave the same', () => compare(nativeRequests));

  test('prompts with fill-in-the-middle tokens are the same', async () => {
    const model = join(temporaryFolder(), 'infill.gguf');
    writeNumbers(modelPath, infillTokens, model);
    await compare(infillRequests, { model });
  });

  test('requests of real clients give the same answers with a model that supports tools', async () => {
    const model = join(temporaryFolder(), 'tools.gguf');
    writeTemplates(modelPath, { '': toolTemplate }, model);
    const whole = { stream: false, stream_options: undefined };
    const asked = clientRequests.map(({ path, body }) => ({
      ...{ method: 'POST', path, body: { ...body, ...whole } },
    }));
    await compare(asked, { model, status: 200 });
  });

  test('prompts that open reasoning are limited the same, also if they have token ids', async () => {
    const model = join(temporaryFolder(), 'thinking.gguf');
    const template = '<think>{{ messages[0].content }}</think>';
    writeTemplates(modelPath, { '': template }, model);
    const limits = { thinking_budget_tokens: 1, max_tokens: 12, temperature: 0 };
    const asked = ['/v1/completions', '/completion'].flatMap((path) =>
      ['<think>', ['<think>', 60]].map((prompt) => ({
        ...{ method: 'POST', path, body: { ...limits, prompt } },
      })),
    );
    await compare(asked, { model, status: 200 });
  });

  test('named templates and non-finite vectors are handled the same', async () => {
    const folder = temporaryFolder();
    const [named, poisoned] = ['named.gguf', 'poisoned.gguf'].map((name) => join(folder, name));
    const tool = '{% if false %}<tool_call>{% endif %}{{ tools[0].function.name }}<|im_end|>';
    const rag = 'rag {{ messages[0].content }} and more';
    const templates = { '': 'plain {{ messages[0].content }}', tool_use: tool, rag };
    writeTemplates(modelPath, templates, named);
    const tools = [{ type: 'function', function: { name: 'weather', parameters: {} } }];
    const chat = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 12, temperature: 0 };
    const bodies = [chat, { ...chat, tools }, { ...chat, tools, tool_choice: 'required' }];
    const path = '/v1/chat/completions';
    const asked = bodies.map((body) => ({ method: 'POST', path, body }));
    await compare(asked, { model: named });
    for (const chatTemplate of ['default', 'rag', 'chatml', 'own {{ messages[0].content }}!']) {
      const env = { WICK_CHAT_TEMPLATE: chatTemplate };
      await compare(asked.slice(0, 2), {
        model: named,
        chatTemplate,
        opening: { options: {}, env },
      });
    }
    const token = 300;
    poisonToken(modelPath, token, poisoned);
    const body = { input: ['a hen', 'b', [5, token]] };
    await compare([{ method: 'POST', path: '/v1/embeddings', body }], { model: poisoned });
  });

  for (const name of ['bert-cls.gguf', 'bert-rank.gguf', 'qwen3-rank.gguf']) {
    test(`embeddings and rankings of ${name} are the same`, { skip: shared.skip }, () =>
      compare(embeddingRequests, { model: embedder(name) }),
    );
  }
});

test('an invalid chat template or an unknown template name is reported', { skip }, async (t) => {
  for (const [template, reason] of [
    ['rags', "no chat template named 'rags'"],
    ['{% if %}', 'line 1'],
  ]) {
    const args = envOf({ WICK_CHAT_TEMPLATE: template });
    const server = await startWasmtime('p2', { args });
    t.after(() => server.close());
    const answer = await ask(server.origin, '/v1/completions', { prompt: 'a' });
    const { error } = await answer.json();
    assert.deepEqual([answer.status, error.code], [500, 'settings']);
    assert.match(error.message, /^WICK_CHAT_TEMPLATE: /);
    assert.ok(error.message.includes(reason), error.message);
  }
});

describe('a component under load', { skip }, () => {
  const long = {
    ...{ prompt: 'Once', temperature: 0, max_tokens: 4000, stream: true },
    logit_bias: { 0: -100, 2: -100 },
  };

  test('a full queue results in 429 with Retry-After', async (t) => {
    const server = await startWasmtime('p3', { args: envOf({ WICK_QUEUE_LIMIT: '2' }) });
    t.after(() => server.close());
    const leaves = new AbortController();
    const hold = () => ask(server.origin, '/v1/completions', long, { signal: leaves.signal });
    const held = [await hold(), await hold()];
    // wasmtime may send a request to a new instance
    for (let more = 0; more < 20 && held[held.length - 1].status === 200; more++) {
      held.push(await hold());
    }
    const full = held[held.length - 1];
    assert.ok(held.length >= 3);
    assert.deepEqual([full.status, full.headers.get('retry-after')], [429, '1']);
    const { error } = await full.json();
    assert.deepEqual([error.type, error.code], ['rate_limit_error', 'queue_full']);
    leaves.abort();
    await waitUntil(
      async () => (await ask(server.origin, '/v1/embeddings', { input: 'a' })).status === 200,
      'space in the queue',
    );
  });

  /** @param {number} pid @returns {number} its CPU time in seconds */
  const busySeconds = (pid) => {
    const numbers = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(numbers[11]) + Number(numbers[12])) / 100;
  };
  const silent = [
    ['/v1/completions', { ...long, stream: false, n: 16 }],
    ['/v1/embeddings', { input: Array(2000).fill('The fox ran over the hill. '.repeat(18)) }],
  ];
  for (const name of ['p2', 'p3']) {
    for (const [path, body] of /** @type {[string, object][]} */ (silent)) {
      test(`${path} ends when its client disconnects before the first byte, ${name}`, async (t) => {
        const server = await startWasmtime(name);
        t.after(() => server.close());
        const leaves = new AbortController();
        const gone = ask(server.origin, path, body, { signal: leaves.signal })
          .then((response) => response.text())
          .catch(() => {});
        await waitUntil(() => busySeconds(server.pid) > 0.5, 'the work to begin');
        leaves.abort();
        await gone;
        const left = busySeconds(server.pid);
        let before = -1;
        await waitUntil(async () => {
          await new Promise((settle) => setTimeout(settle, 500));
          const now = busySeconds(server.pid);
          assert.ok(now - left < 4, `${now - left} s of CPU time after the client disconnected`);
          [before] = [now - before < 0.02 ? Infinity : now];
          return before === Infinity;
        }, 'rest');
      });
    }
  }

  for (const name of ['p2', 'p3']) {
    test(`a client that sends its whole request before reading receives the error, ${name}`, async (t) => {
      const server = await startWasmtime(name, { args: envOf({ WICK_KEYS: 'one' }) });
      t.after(() => server.close());
      const { hostname, port } = new URL(server.origin);
      const size = 900_000;
      const head = `POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n`;
      const text = `${head}Connection: close\r\nAuthorization: Bearer two\r\n\r\n${'a'.repeat(size)}`;
      const send = async () => {
        const socket = connect(Number(port), hostname).pause();
        let answer = '';
        socket.on('error', (error) => {
          answer += error.message;
        });
        for (let at = 0; at < text.length && !socket.destroyed; at += 90_000) {
          socket.write(text.slice(at, at + 90_000));
          await new Promise((settle) => setTimeout(settle, 2));
        }
        socket.on('data', (piece) => {
          answer += piece;
        });
        socket.resume();
        if (!socket.closed) await once(socket, 'close');
        return /^HTTP\/1.1 401 .*"invalid_api_key"\}\}[\r\n0]*$/s.test(answer) ? 'well' : answer;
      };
      for (let round = 0; round < 8; round++) {
        const outcomes = await Promise.all(Array.from({ length: 8 }, send));
        assert.deepEqual(new Set(outcomes), new Set(['well']));
      }
    });
  }

  test('different keys do not share prefixes', async (t) => {
    const server = await startWasmtime('p3', { args: envOf({ WICK_KEYS: 'one,two' }) });
    t.after(() => server.close());
    /** @param {string} key @param {string} [salt] @returns {Promise<number>} cached tokens */
    const cachedBy = async (key, salt) => {
      const body = { prompt: 'Once upon a time, '.repeat(8), max_tokens: 1, temperature: 0, salt };
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
      const answer = await ask(server.origin, '/v1/completions', body, { headers });
      const { usage } = await answer.json();
      return usage.prompt_tokens_details.cached_tokens;
    };
    assert.equal(await cachedBy('one'), 0);
    assert.ok((await cachedBy('one')) >= 16);
    assert.equal(await cachedBy('two'), 0);
    assert.equal(await cachedBy('one', 'a'), 0);
    assert.ok((await cachedBy('one', 'a')) >= 16);
    assert.equal(await cachedBy('two', 'a'), 0);
  });

  test('concurrent embedding requests give the same vectors as separate ones', async (t) => {
    const server = await startWasmtime('p3');
    t.after(() => server.close());
    const embed = async (/** @type {string} */ input) => {
      const { data } = await (await ask(server.origin, '/v1/embeddings', { input })).json();
      return data[0].embedding;
    };
    const inputs = Array.from({ length: 10 }, (_, n) => `${'The fox ran. '.repeat(n)}Story ${n}`);
    const alone = [];
    for (const input of inputs) alone.push(await embed(input));
    const leaves = new AbortController();
    const gone = ask(server.origin, '/v1/embeddings', { input: 'a '.repeat(2000) }, leaves);
    const streaming = await ask(server.origin, '/v1/completions', long, leaves);
    const together = Promise.all(inputs.map(embed));
    leaves.abort();
    await gone.catch(() => {});
    assert.deepEqual(await together, alone);
    assert.equal(streaming.status, 200);
  });

  for (const [env, word] of [
    [{ WICK_KEYS: '' }, 'WICK_KEYS'],
    [{ WICK_KEYS: 'a,,b' }, 'WICK_KEYS'],
    [{ WICK_QUEUE_LIMIT: '0' }, 'WICK_QUEUE_LIMIT'],
    [{ WICK_BODY_BYTES_MAX: '12x' }, 'WICK_BODY_BYTES_MAX'],
    [{ WICK_CORS: '' }, 'WICK_CORS'],
    [{ WICK_KV_TOKENS: '-1' }, 'WICK_KV_TOKENS'],
    [{ WICK_CHAT_TEMPLATE: '' }, 'WICK_CHAT_TEMPLATE'],
  ]) {
    test(`an invalid setting stops the component: ${JSON.stringify(env)}`, async (t) => {
      const server = await startWasmtime('p2', { args: envOf(/** @type {any} */ (env)) });
      t.after(() => server.close());
      for (const path of ['/v1/models', '/health', '/metrics']) {
        const response = await fetch(`${server.origin}${path}`);
        const { error } = await response.json();
        assert.deepEqual([response.status, error.code], [500, 'settings']);
        assert.ok(error.message.includes(word), error.message);
      }
    });
  }
});
