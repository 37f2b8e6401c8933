// A component reads its model from a URL with range requests, from working and failing servers.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { startWasmtime } from '../support/component_servers.mjs';
import { ask } from '../support/example_servers.mjs';
import { built, locate } from '../support/locate.mjs';
import { modelPath } from '../support/package.mjs';

const skip = locate('wasmtimeCommand').skip;
const file = readFileSync(modelPath);
const body = { prompt: 'Once upon a', temperature: 0, max_tokens: 8 };

/** @typedef {import('node:http').IncomingMessage} Incoming */
/** @typedef {import('node:http').ServerResponse} Outgoing */
/** @typedef {(request: Incoming, response: Outgoing, range: [number, number]) => void} Mode */

/** @param {Outgoing} response @param {[number, number]} range @param {Record<string, string>} [headers] */
function give(response, [first, last], headers = {}) {
  if (first >= file.length) {
    response.writeHead(416).end();
    return;
  }
  const end = Math.min(last, file.length - 1);
  const range = `bytes ${first}-${end}/${file.length}`;
  const length = end - first + 1;
  response.writeHead(206, {
    'content-range': range,
    'content-length': length,
    etag: '"1"',
    ...headers,
  });
  response.end(file.subarray(first, end + 1));
}

/** The number of requests in the current mode. */
let asked = 0;
/** @type {Record<string, Mode>} */
const modes = {
  well: (_, response, range) => give(response, range),
  'well, through redirects': ({ url }, response, range) => {
    if (url === '/real?a=b') give(response, range);
    else if (url === '/second') response.writeHead(307, { location: '/real?a=b' }).end();
    else response.writeHead(302, { location: `http://${response.req.headers.host}/second` }).end();
  },
  'well, at the third attempt': (_, response, range) => {
    if (asked % 3 === 0) give(response, range);
    else if (asked % 3 === 1) response.writeHead(500).end('oh');
    else response.socket?.destroy();
  },
  'well, but bodies are truncated at first': (_, response, range) => {
    if (asked % 2 === 0) return give(response, range);
    response.writeHead(206, {
      'content-range': `bytes ${range[0]}-${range[0] + 999}/${file.length}`,
      'content-length': 1000,
    });
    response.write(file.subarray(range[0], range[0] + 500), () => response.socket?.destroy());
  },
};
/** Responses while the server is failing. @type {[string, RegExp, Mode][]} */
const faults = [
  ['gone', /did not respond/, (_, response) => void response.socket?.destroy()],
  [
    'killed between two ranges',
    /did not respond/,
    (_, response, range) => {
      if (asked === 1) give(response, range);
      else response.socket?.destroy();
    },
  ],
  ['broken', /did not respond/, (_, response) => void response.writeHead(503).end()],
  ['forgetful', /status 404/, (_, response) => void response.writeHead(404).end('no')],
  ['without ranges', /without ranges/, (_, response) => void response.writeHead(200).end(file)],
  ['with different ranges', /different range/, (_, response) => give(response, [7, 1e6])],
  [
    'with an invalid Content-Range',
    /different range/,
    (_, response, range) => give(response, range, { 'content-range': 'bytes 0-9/-3' }),
  ],
  [
    'with changing files',
    /changed while/,
    (_, response, range) => give(response, range, { etag: `"${asked}"` }),
  ],
  [
    'with circular redirects',
    /too many redirects/,
    ({ headers }, response) =>
      void response.writeHead(302, { location: `http://${headers.host}/again` }).end(),
  ],
  [
    'with a redirect without a target',
    /Location header/,
    (_, response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  ],
];

/** Points at which the server stalls. @type {Record<string, Mode>} */
const hanging = {
  'before the headers': () => {},
  'in the body': (_, response, range) => {
    response.writeHead(206, { 'content-range': `bytes ${range.join('-')}/${file.length}` });
    response.write(file.subarray(0, 1000));
  },
  'after each byte': (_, response, range) => {
    response.writeHead(206, { 'content-range': `bytes ${range.join('-')}/${file.length}` });
    const timer = setInterval(() => response.write('a'), 20);
    response.on('close', () => clearInterval(timer));
  },
};

/** @param {import('node:test').TestContext} t @param {Mode} answer @returns {Promise<string>} the URL of its model */
async function startModelServer(t, answer) {
  const server = createServer((request, response) => {
    asked++;
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    answer(request, response, [Number(first), Number(last)]);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}/model.gguf`;
}

for (const name of ['p2', 'p3']) {
  describe(`a model at a URL, ${name}`, { skip }, () => {
    test('loading succeeds once the server works; after a failure, the next request retries', async (t) => {
      let mode = modes.well;
      const url = await startModelServer(t, (...request) => mode(...request));
      const env = ['--env', `WICK_MODEL_URL=${url}`];
      /** @param {boolean} isReused */
      const start = async (isReused) => {
        const component = built(`edge/wick-${name}.wasm`);
        const started = await startWasmtime(name, { component, args: env, isReused });
        t.after(() => started.close());
        return started.origin;
      };
      const fresh = await start(false);
      /** @type {string | undefined} */
      let text;
      for (const [words, own] of Object.entries(modes)) {
        [mode, asked] = [own, 0];
        const answer = await (await ask(fresh, '/v1/completions', body)).json();
        text ??= answer.choices?.[0].text;
        assert.equal(answer.choices?.[0].text, text, `${words}: ${JSON.stringify(answer.error)}`);
        assert.ok(asked >= 1);
      }
      const reused = await start(true);
      for (const [words, wanted, own] of faults) {
        [mode, asked] = [own, 0];
        const response = await ask(reused, '/v1/completions', body);
        const { error } = await response.json();
        assert.deepEqual([response.status, error?.code], [503, 'model_server'], words);
        assert.match(error.message, wanted, words);
        assert.equal(response.headers.get('retry-after'), '1');
        assert.ok(asked < 12, `${asked} requests`);
      }
      mode = modes.well;
      const { choices } = await (await ask(reused, '/v1/completions', body)).json();
      assert.equal(choices[0].text, text);
      mode = (_, response) => void response.socket?.destroy();
      // a p3 instance keeps the model that it has loaded
      const again = await ask(reused, '/v1/completions', body);
      assert.equal(again.status, name === 'p3' ? 200 : 503);
    });

    test('a hanging server blocks an instance no longer than the timeout', async (t) => {
      let mode = modes.well;
      const url = await startModelServer(t, (...request) => mode(...request));
      const component = built(`edge/wick-${name}.wasm`);
      const args = ['--env', `WICK_MODEL_URL=${url}`, '--env', 'WICK_MODEL_TIMEOUT_MS=100'];
      const server = await startWasmtime(name, { component, args });
      t.after(() => server.close());
      for (const [words, own] of Object.entries(hanging)) {
        [mode, asked] = [own, 0];
        const signal = AbortSignal.timeout(15_000); // the host's default limit is 600 s
        const response = await ask(server.origin, '/v1/completions', body, { signal });
        const { error } = await response.json();
        assert.deepEqual([response.status, error.code], [503, 'model_server'], words);
        assert.match(error.message, /did not respond within 100 ms/, words);
        assert.equal(asked, 1, words);
      }
    });

    for (const url of ['ftp://a/b', 'http://', 'http://me:word@127.0.0.1/', 'model.gguf', '']) {
      test(`${JSON.stringify(url)} is rejected as a URL`, async (t) => {
        const component = built(`edge/wick-${name}.wasm`);
        const args = ['--env', `WICK_MODEL_URL=${url}`];
        const server = await startWasmtime(name, { component, args });
        t.after(() => server.close());
        const response = await ask(server.origin, '/v1/completions', body);
        const { error } = await response.json();
        assert.deepEqual([response.status, error.code], [500, 'settings']);
        assert.match(error.message, /WICK_MODEL_URL/);
      });
    }
  });
}
