// The server of `wick serve` (js/cli/http_server.js) alone: the requests to its handler, the parts
// of an answer that arrive, and the notice that a client has left.

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

test('a request and its answer arrive whole; a client with an answer has not left', async (t) => {
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

test('a client that leaves before the answer is reported by the signal, and its answer is cancelled', async (t) => {
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
  await waitUntil(() => isAborted && isCancelled, 'the server to notice it');
});

test('a client that leaves during an answer is reported, and no more of it is read', async (t) => {
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
  await waitUntil(() => isCancelled && Boolean(signal?.aborted), 'the server to notice it');
});

test('a handler that throws ends its connection alone', async (t) => {
  const url = await serve(t, async (request) => {
    if (request.url.endsWith('/bad')) throw new Error('a fault');
    return new Response('good');
  });
  await assert.rejects(fetch(`${url}/bad`), TypeError);
  assert.equal(await (await fetch(url)).text(), 'good');
});
