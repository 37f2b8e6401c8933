// wick-llm/node in node:http, Express, Fastify and Hono: all give the same responses, and disconnecting clients cancel
// their requests.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ask, readEvents } from '../support/example_servers.mjs';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);
/** @type {typeof import('../../js/node.js')} */
const { fastifyPlugin, honoHandler, nodeListener } = await import(
  pathToFileURL(join(dist, 'node.js')).href
);

const frameworks = locate('frameworks');
/** @param {string} name @returns {Promise<any>} */
const load = async (name) => {
  const require = createRequire(`${frameworks.path}/`);
  const path = require.resolve(name);
  return import(pathToFileURL(path).href);
};

const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const greedy = { messages, temperature: 0, max_tokens: 16 };

/** @typedef {(request: Request) => Promise<Response>} Handle */
/** @typedef {{origin: string, close: () => Promise<unknown>}} Listening */

/** @param {(incoming: any, outgoing: any) => void} listener @returns {Promise<Listening>} */
async function listen(listener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    origin: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** @param {Handle} handle @param {(app: any, express: any) => void} [prepare] @param {string} [at] */
async function inExpress(handle, prepare, at) {
  const { default: express } = await load('express');
  const app = express();
  prepare?.(app, express);
  if (at === undefined) app.use(nodeListener(handle));
  else app.use(at, nodeListener(handle));
  app.get('/own', (/** @type {any} */ _, /** @type {any} */ response) => response.send('own'));
  return listen(app);
}

/** @param {Handle} handle @param {string} [prefix] @returns {Promise<Listening>} */
async function inFastify(handle, prefix) {
  const { default: fastify } = await load('fastify');
  const app = fastify();
  app.addHook('onSend', async () => {});
  app.register(fastifyPlugin, { handle, ...(prefix && { prefix }) });
  app.post('/own', async (/** @type {any} */ request) => request.body);
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    origin,
    close: () => {
      app.server.closeAllConnections();
      return app.close();
    },
  };
}

/** @param {Handle} handle @param {string} [path] @returns {Promise<Listening>} */
async function inHono(handle, path = '/v1/*') {
  const { Hono } = await load('hono');
  const { serve } = await load('@hono/node-server');
  const app = new Hono();
  app.all(path, honoHandler(handle));
  app.all('/health', honoHandler(handle));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Servers with the path of the handler. @type {[string, string, (handle: Handle) => Promise<Listening>][]} */
const servers = [
  ['node:http', '', async (handle) => listen(nodeListener(handle))],
  ['node:http below a path', '/ai', async (handle) => listen(nodeListener(handle))],
  ['Express', '', (handle) => inExpress(handle)],
  [
    'Express with a JSON parser, below a path',
    '/ai',
    (handle) => inExpress(handle, (app, express) => app.use(express.json()), '/ai'),
  ],
  [
    'Express with a raw parser, at /v1',
    '',
    (handle) => inExpress(handle, (app, express) => app.use(express.raw({ type: '*/*' })), '/v1'),
  ],
  ['Fastify', '', (handle) => inFastify(handle)],
  ['Fastify below a path', '/ai', (handle) => inFastify(handle, '/ai')],
  ['Fastify at /v1', '', (handle) => inFastify(handle, '/v1')],
  ['Hono', '', (handle) => inHono(handle)],
  ['Hono below a path', '/ai', (handle) => inHono(handle, '/ai/*')],
];

/** @type {import('../../js/index.js').Engine} */
let engine;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1 });
});
after(() => engine.close());

for (const [name, base, start] of servers) {
  const isPlain = name.startsWith('node:http');
  describe(name, { skip: isPlain ? false : frameworks.skip }, () => {
    /** @type {any[]} */
    const records = [];
    /** @type {Listening} */
    let server;
    let origin = '';
    before(async () => {
      const onRequest = (/** @type {any} */ record) => records.push(record);
      server = await start(createHandler(engine, { onRequest, bodyBytesMax: 90_000 }));
      origin = server.origin + base;
    });
    after(() => server.close());

    test('responses equal those of the handler, streamed and not', async () => {
      const response = await ask(origin, CHAT, greedy);
      const whole = await response.json();
      assert.equal(response.status, 200, JSON.stringify(whole));
      assert.match(response.headers.get('x-request-id') ?? '', /^req-/);
      const text = whole.choices[0].message.content;
      const streamed = await ask(origin, CHAT, { ...greedy, stream: true });
      assert.match(streamed.headers.get('content-type') ?? '', /^text\/event-stream/);
      assert.equal(readEvents(await streamed.text()).text, text);
      const { data } = await (await fetch(`${origin}/v1/models?limit=1`)).json();
      assert.equal(data.length, 1);
      assert.equal((await ask(origin, CHAT, { messages: 1 })).status, 400);
      const head = await fetch(`${origin}/v1/models`, { method: 'HEAD' });
      assert.deepEqual([head.status, await head.text()], [200, '']);
    });

    test('long bodies arrive completely, and the handler’s limit is enforced', async () => {
      const text = 'a fox, ä '.repeat(7000);
      const long = { messages: [{ role: 'user', content: text }] };
      const { error } = await (await ask(origin, CHAT, long)).json();
      assert.equal(error.code, 'context_length_exceeded');
      const larger = await ask(origin, CHAT, { ...long, user: text });
      assert.equal(larger.status, 413);
    });

    test('clients that disconnect before or during a response cancel their requests', async () => {
      const before = records.length;
      for (const stream of [true, false]) {
        const leaves = new AbortController();
        const body = { ...greedy, max_tokens: 3000, stream };
        const asked = ask(origin, CHAT, body, { signal: leaves.signal });
        if (stream) {
          const reader = /** @type {ReadableStream} */ ((await asked).body).getReader();
          await reader.read();
        } else {
          await waitUntil(
            async () => (await engine.stats()).requests.running > 0,
            'the request to start',
          );
        }
        leaves.abort();
        await asked.catch(() => {});
        await waitUntil(
          async () => (await engine.stats()).requests.running === 0,
          'the request to end',
        );
      }
      await waitUntil(() => records.length === before + 2, 'the records');
      const errors = records.slice(before).map((record) => record['error.type']);
      assert.deepEqual(errors, ['client_gone', 'client_gone']);
    });

    test('clients that disconnect while sending a request do not affect others', async () => {
      const { hostname, port } = new URL(origin);
      for (let client = 0; client < 5; client++) {
        const socket = connect(Number(port), hostname);
        socket.on('error', () => {});
        socket.write(
          `POST ${base}${CHAT} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n` +
            'content-length: 1000\r\n\r\n{"messages": [',
        );
        await once(socket, 'connect');
        socket.destroy();
      }
      assert.equal((await ask(origin, CHAT, greedy)).status, 200);
    });
  });
}

test('Express and Fastify handle requests for other routes themselves', {
  skip: frameworks.skip,
}, async (t) => {
  const handle = createHandler(engine);
  const express = await inExpress(handle);
  t.after(() => express.close());
  assert.equal(await (await fetch(`${express.origin}/own`)).text(), 'own');
  assert.equal((await fetch(`${express.origin}/nothing`)).status, 404);
  const fastify = await inFastify(handle);
  t.after(() => fastify.close());
  const echoed = await ask(fastify.origin, '/own', { a: 1 });
  assert.deepEqual(await echoed.json(), { a: 1 });
});

test('a failing handler ends only its connection; a value that is not a handler is rejected', async (t) => {
  const handle = async (/** @type {Request} */ request) => {
    if (request.url.endsWith('/bad')) throw new Error('a fault');
    return new Response('good');
  };
  const server = await listen(nodeListener(handle));
  t.after(() => server.close());
  await assert.rejects(fetch(`${server.origin}/bad`), TypeError);
  assert.equal(await (await fetch(server.origin)).text(), 'good');
  for (const adapter of [nodeListener, honoHandler]) {
    assert.throws(() => adapter(/** @type {any} */ ({})), /needs a handler from createHandler/);
  }
  await assert.rejects(fastifyPlugin(/** @type {any} */ ({}), /** @type {any} */ ({})), TypeError);
});
