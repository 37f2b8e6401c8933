// Random requests to a component: mutated valid bodies, random bytes, incomplete requests, clients that disconnect, read
// slowly, pipeline several requests or close one half of their connection. Every response has OpenAI's format, the engine
// becomes idle again, and valid requests are still answered.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { startWasmtime } from '../support/component_servers.mjs';
import { ask } from '../support/example_servers.mjs';
import {
  embeddingRequests,
  infillRequests,
  nativeRequests,
  plainRequests,
} from '../support/handler_requests.mjs';
import { locate } from '../support/locate.mjs';
import { waitUntil } from '../support/package.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const skip = locate('wasmtimeCommand').skip;
const all = [plainRequests, embeddingRequests, nativeRequests, infillRequests].flat();
const seeds = all.filter(({ body }) => {
  return typeof body === 'object' && JSON.stringify(body).length < 5000;
});
const values = [
  ...[null, true, false, 0, -1, 1, 0.5, 1e21, -1e308, 4294967296, '', 'a', '\u0000', '\ud800'],
  ...['\u{1f98a}'.repeat(50), [], {}, [[]], [null], { type: 'text' }, { type: 'function' }],
  ...['none', 'auto', 'required', 'json_object', 'assistant', 'tool', 'x'.repeat(3000)],
];

/** @param {() => number} random @param {any} value @param {number} depth @returns {any} the value with one change */
function changed(random, value, depth = 0) {
  const pick = (/** @type {readonly any[]} */ list) => list[Math.floor(random() * list.length)];
  const isLeaf = typeof value !== 'object' || value === null || Object.keys(value).length === 0;
  if (isLeaf || (depth > 0 && random() < 0.25)) return pick(values);
  const copy = Array.isArray(value) ? [...value] : { ...value };
  const key = pick(Object.keys(value));
  const deed = random();
  if (deed < 0.15) delete copy[key];
  else if (deed < 0.25) copy[pick(Object.keys(seeds[0].body ?? {}))] = pick(values);
  else if (deed < 0.3 && Array.isArray(copy)) copy.push(...copy);
  else copy[key] = changed(random, value[key], depth + 1);
  return copy;
}

/** @param {() => number} random @param {string} text @returns {string} the text with a few changed characters, or truncated */
function damaged(random, text) {
  const at = Math.floor(random() * text.length);
  if (random() < 0.3) return text.slice(0, at);
  const inserted = ['"', '{', ']', '\\u', '\\', '\u0007', '9'.repeat(400), '['.repeat(300), ','];
  return text.slice(0, at) + inserted[Math.floor(random() * inserted.length)] + text.slice(at + 1);
}

/** @param {Response} response */
async function checkAnswer(response) {
  const text = await response.text();
  const statuses = [200, 204, 400, 404, 405, 413, 415, 429, 501, 503];
  assert.ok(statuses.includes(response.status), `${response.status} ${text.slice(0, 300)}`);
  const type = response.headers.get('content-type') ?? '';
  if (response.status === 200 && type.startsWith('text/event-stream')) {
    for (const line of text.split('\n')) {
      if (line.startsWith('data: {')) JSON.parse(line.slice(6));
    }
    return;
  }
  const answer = JSON.parse(text);
  if (response.status === 200) return;
  const { message, code, type: kind } = answer.error;
  assert.ok(message.length > 5 && message.length < 500, message);
  assert.ok(code && kind, text);
}

/** @param {string} origin @param {string[]} pieces of a request, with a pause after each */
async function sendRaw(origin, pieces) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {}); // the server may close the connection
  const closed = once(socket, 'close');
  socket.resume();
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((settle) => setTimeout(settle, 2));
  }
  socket.destroy();
  await closed;
}

const POST = 'POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
const start = '{"prompt":"Once","max_tokens":100,"stream":true';

/**
 * Sends several requests at once on one connection, and reads some of the responses.
 * @param {() => number} random @param {string} origin @param {boolean} isHalfClosed whether the client closes its sending half
 */
async function sendSeveral(random, origin, isHalfClosed) {
  const { hostname, port } = new URL(origin);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  const count = 1 + Math.floor(random() * 3);
  const texts = Array.from({ length: count }, (_, index) => {
    const more = { max_tokens: 1 + Math.floor(random() * 60), n: 1 + Math.floor(random() * 3) };
    const body = JSON.stringify({
      prompt: 'fox '.repeat(1 + random() * 150),
      stream: random() < 0.5,
      ...more,
    });
    const last = index === count - 1 ? 'Connection: close\r\n' : '';
    return `${POST}${last}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  });
  let wanted = random() < 0.5 ? Infinity : random() * 3000; // the number of bytes to read
  socket.on('data', (piece) => {
    wanted -= piece.length;
    if (wanted < 0) socket.destroy();
  });
  socket.write(texts.join(''));
  if (isHalfClosed) socket.end();
  socket.on('end', () => socket.end());
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, 60_000);
  await closed;
  clearTimeout(timer);
  assert.ok(!isLate, 'the response must end');
}

/** Disconnects from a stream after some bytes. @param {() => number} random @param {string} origin */
async function leave(random, origin) {
  const leaves = new AbortController();
  const body = { prompt: 'fox '.repeat(150), max_tokens: 100, stream: true, n: 3 };
  const response = await ask(origin, '/v1/completions', body, { signal: leaves.signal });
  if (random() < 0.3) await response.body?.getReader().read();
  else await new Promise((settle) => setTimeout(settle, random() * 60)); // reads no bytes
  leaves.abort();
}

/** @param {string} origin @returns {Promise<string>} the metrics of an instance that should be 0 when idle but are not */
async function unrest(origin) {
  const page = await (await fetch(`${origin}/metrics`)).text();
  const gauges = /^(wick_http_generations|wick_requests)\{.*\} [1-9]\d*$/gm;
  return (page.match(gauges) ?? []).join();
}

/** @type {((random: () => number, origin: string) => Promise<void>)[]} */
const deeds = [
  async (random, origin) => {
    const { path, body } = seeds[Math.floor(random() * seeds.length)];
    const own = changed(random, body);
    // keeps outputs short
    const short = {
      max_tokens: 4,
      ...own,
      ...(path.endsWith('responses') && { max_tokens: undefined }),
    };
    await checkAnswer(await ask(origin, path, short));
  },
  async (random, origin) => {
    const { path, body } = seeds[Math.floor(random() * seeds.length)];
    await checkAnswer(await ask(origin, path, damaged(random, JSON.stringify(body))));
  },
  async (random, origin) => {
    const leaves = new AbortController();
    const body = {
      prompt: 'Once',
      max_tokens: 2000,
      stream: random() < 0.7,
      n: 1 + (random() > 0.5 ? 3 : 0),
    };
    const path = random() < 0.8 ? '/v1/completions' : '/v1/embeddings';
    const own = path.endsWith('s') && path.includes('embed') ? { input: 'a '.repeat(900) } : body;
    const answer = ask(origin, path, own, { signal: leaves.signal });
    setTimeout(() => leaves.abort(), random() * 20);
    await answer.then((response) => response.text()).catch(() => {});
  },
  (random, origin) =>
    sendRaw(origin, [
      `${POST}Content-Length: ${random() < 0.5 ? 5000 : 60}\r\n\r\n`,
      start.slice(0, Math.floor(random() * start.length)),
    ]),
  (random, origin) => {
    const name = random() < 0.5 ? 'Authorization' : 'Content-Type';
    const value = 'x'.repeat(Math.floor(random() * 20_000));
    return sendRaw(origin, [`${POST}${name}: ${value}\r\nContent-Length: 2\r\n\r\n{}`]);
  },
  (random, origin) =>
    sendRaw(origin, [
      `${POST}Transfer-Encoding: chunked\r\n\r\n`,
      ...Array.from(start, (letter) => `1\r\n${letter}\r\n`).slice(0, Math.floor(random() * 20)),
      random() < 0.5 ? 'zz\r\n' : '1\r\n}\r\n0\r\n\r\n',
    ]),
  (random, origin) => sendSeveral(random, origin, false),
  (random, origin) => sendSeveral(random, origin, true),
  leave,
  async (_, origin) => {
    const body = { prompt: 'Once', max_tokens: 60, stream: true };
    const response = await ask(origin, '/v1/completions', body);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      await new Promise((settle) => setTimeout(settle, 1));
    }
  },
];

for (const name of ['p2', 'p3']) {
  describe(`random requests to ${name}`, { skip }, () => {
    test('each request is answered or aborted without affecting others', async (t) => {
      const args = ['--env', 'WICK_QUEUE_LIMIT=12', '--env', 'WICK_CONTEXT_TOKENS=256'];
      const server = await startWasmtime(name, { args });
      t.after(() => server.close());
      const right = { prompt: 'Once upon a', temperature: 0, max_tokens: 12 };
      /** @returns {Promise<string | undefined>} */
      const rightText = async () => {
        const response = await ask(server.origin, '/v1/completions', right);
        return response.status === 200 ? (await response.json()).choices[0].text : undefined;
      };
      const wanted = await rightText();
      for (let round = 0; round < soakCount(800); round++) {
        const random = randomOf(soakSeed * 1000 + round);
        const some = Array.from({ length: 4 }, () => deeds[Math.floor(random() * deeds.length)]);
        const done = some.map((deed, index) => deed(randomOf(round * 10 + index), server.origin));
        await Promise.all(done);
        const text = await rightText();
        assert.ok(text === undefined || text === wanted, `round ${round}: ${text}`);
        assert.doesNotMatch(server.output(), /panicked|wasm trap|unreachable/, `round ${round}`);
      }
      for (let round = 0; round < 12; round++) {
        await waitUntil(async () => (await unrest(server.origin)) === '', 'all requests to end');
        await leave(randomOf(round), server.origin);
      }
      await waitUntil(async () => (await unrest(server.origin)) === '', 'all requests to end');
      assert.equal(await rightText(), wanted);
    });
  });
}
