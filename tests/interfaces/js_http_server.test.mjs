// Unit tests of the server of `wick serve` (js/cli/http_server.js): requests to its handler,
// responses, and the signal that a client has disconnected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listen } from '../../js/cli/http_server.js';
import { waitUntil } from '../support/package.mjs';

/** @param {import('node:test').TestContext} t @param {(request: Request) => Promise<Response>} handle */
async function serve(t, handle) {
  const { url, close } = await listen(handle, { host: '127.0.0.1', port: 0 });
  t.after(close);
  return url;
}

test('requests and responses arrive completely; a client that received its response has not disconnected', async (t) => {
  /** @type {AbortSignal[]} */
  const signals = [];
  const url = await serve(t, async (request) => {
    signals.push(request.signal);
    const reports = `${request.method} ${new URL(request.url).pathname} ${request.headers.get('a')} `;
    const pieces = [reports, 'body: ', await request.text()].map((text) => Buffer.from(text));
    const body = /** @type {any} */ (ReadableStream).from(pieces);
    return new Response(body, { status: 201, headers: { b: '2' } });
  });
  const asked = { method: 'POST', headers: { a: '1' }, body: 'text' };
  const answer = await fetch(`${url}/path`, asked);
  assert.deepEqual([answer.status, answer.headers.get('b')], [201, '2']);
  assert.equal(await answer.text(), 'POST /path 1 body: text');
  const bare = await fetch(`${url}/path`, { method: 'HEAD', headers: { a: '3' } });
  assert.deepEqual([bare.status, await bare.text()], [201, '']);
  assert.equal(await (await fetch(url)).text(), 'GET / null body: ');
  assert.deepEqual(
    signals.map((signal) => signal.aborted),
    [false, false, false],
  );
});

test('if a client disconnects before the response, its signal is aborted and the response cancelled', async (t) => {
  let isAborted = false;
  let isCancelled = false;
  const stop = new AbortController();
  const url = await serve(t, ({ signal }) => {
    stop.abort();
    const cancel = () => {
      isCancelled = true;
    };
    return new Promise((settle) =>
      signal.addEventListener('abort', () => {
        isAborted = true;
        settle(new Response(new ReadableStream({ cancel })));
      }),
    );
  });
  await assert.rejects(fetch(url, { signal: stop.signal }), { name: 'AbortError' });
  await waitUntil(() => isAborted && isCancelled, 'the server to detect the disconnect');
});

test('if a client disconnects during a response, its signal is aborted and reading stops', async (t) => {
  let isCancelled = false;
  /** @type {AbortSignal | undefined} */
  let signal;
  const url = await serve(t, async (request) => {
    signal = request.signal;
    const start = (/** @type {ReadableStreamDefaultController} */ out) =>
      out.enqueue(Buffer.from('first'));
    const cancel = () => {
      isCancelled = true;
    };
    return new Response(new ReadableStream({ start, cancel }));
  });
  const stop = new AbortController();
  const answer = await fetch(url, { signal: stop.signal });
  const { value } = (await answer.body?.getReader().read()) ?? {};
  assert.equal(Buffer.from(value ?? []).toString(), 'first');
  assert.equal(signal?.aborted, false);
  stop.abort();
  await waitUntil(
    () => isCancelled && Boolean(signal?.aborted),
    'the server to detect the disconnect',
  );
});

test('a handler that throws ends only its own connection', async (t) => {
  const url = await serve(t, async (request) => {
    if (request.url.endsWith('/bad')) throw new Error('a fault');
    return new Response('good');
  });
  await assert.rejects(fetch(`${url}/bad`), TypeError);
  assert.equal(await (await fetch(url)).text(), 'good');
});
