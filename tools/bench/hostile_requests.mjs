// tools/bench/hostile_requests.mjs — the hostile traffic of tools/bench/hostile_load.mjs, in a
// separate thread so that generating it does not delay the measured requests. Kinds alternate, and
// no two requests of a kind are equal, so caches do not help.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { url, rate, only } = workerData;
const { port } = new URL(url);
const HOLD_MS = 30_000;
const PACE_MS = 1000;
/** The number of connections that each slow kind of request opens. */
const MANY = 40;

let isStopped = false;
let serial = 0;

/**
 * Sends bytes to the server and reads its response.
 * @param {(string | Buffer)[]} pieces
 * @param {number} paceMs between pieces
 * @param {number} holdMs
 * @returns {Promise<string>} the status, or how the connection ended
 */
function raw(pieces, paceMs, holdMs) {
  return new Promise((settle) => {
    const socket = connect(Number(port), '127.0.0.1');
    let head = '';
    let end = 'held';
    const finish = () => {
      settle(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? end);
      socket.destroy();
    };
    socket.on('data', (data) => {
      head = (head + data.toString('latin1')).slice(0, 100);
      if (paceMs === 0) finish();
    });
    socket.on('error', () => {
      end = 'reset';
      finish();
    });
    socket.on('close', finish);
    setTimeout(finish, holdMs).unref();
    void (async () => {
      for (const piece of pieces) {
        if (socket.destroyed || isStopped) break;
        socket.write(piece);
        if (paceMs > 0) await sleep(paceMs);
      }
    })();
  });
}

/** @param {string} path @param {BodyInit} body @param {Record<string, string>} headers */
async function send(path, body, headers = {}) {
  const signal = AbortSignal.timeout(HOLD_MS);
  const init = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
    signal,
  };
  const answer = await fetch(url + path, init);
  await answer.arrayBuffer();
  return String(answer.status);
}

/** @param {object} body @param {string} path */
const json = (body, path = '/v1/chat/completions') => send(path, JSON.stringify(body));

/**
 * Opens MANY connections and returns the result of the first one.
 * @param {() => Promise<string>} one
 */
async function many(one) {
  const [first] = await Promise.all(list(MANY, one));
  return first;
}

const hello = [{ role: 'user', content: 'hi' }];
const head = (/** @type {number} */ size) =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`;

/** @param {object} schema */
const withSchema = (schema) =>
  json({
    messages: hello,
    max_tokens: 4,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
  });

/** @template T @param {number} count @param {(i: number) => T} make */
const list = (count, make) => Array.from({ length: count }, (_, i) => make(i));
/** @param {[string, any][]} entries @returns {Record<string, any>} */
const object = (entries) => Object.fromEntries(entries);

const tool = (/** @type {number} */ i) => ({
  type: 'function',
  function: {
    name: `tool_${serial}_${i}`,
    description: 'does something '.repeat(5),
    parameters: {
      type: 'object',
      properties: object(
        list(10, (k) => [`argument_${k}`, { type: ['string', 'integer', 'null'] }]),
      ),
    },
  },
});

/** Requests a stream and disconnects after the first bytes. */
async function leave() {
  const left = new AbortController();
  const body = JSON.stringify({ messages: hello, max_tokens: 400, stream: true });
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body,
    signal: left.signal,
  });
  await answer.body?.getReader().read();
  left.abort();
  return String(answer.status);
}

/** Sends requests but never reads the responses. */
function neverReads() {
  const body = JSON.stringify({ messages: hello, max_tokens: 200, stream: true });
  return new Promise((settle) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(head(body.length) + body);
    setTimeout(() => {
      socket.destroy();
      settle('held');
    }, HOLD_MS).unref();
  });
}

/** One request of each kind. @type {Record<string, () => Promise<any>>} */
const kinds = {
  'idle connection': () => many(() => raw([], 0, HOLD_MS)),
  'slow head': () =>
    many(() => raw([...'POST /v1/chat/completions HTTP/1.1\r\nHost: a'], PACE_MS, HOLD_MS)),
  'slow body': () =>
    many(() => raw([head(1000), ...'{"messages": [{"role": "user", "content"'], PACE_MS, HOLD_MS)),
  'truncated body': () => raw([`${head(1000)}{"messages":`], 0, 300),
  'abandoned stream': leave,
  'unread stream': neverReads,
  garbage: () => raw([Buffer.from(list(4096, (i) => (i * serial * 31 + 7) & 255))], 0, 2000),
  'TLS hello': () => raw([Buffer.from('16030100a5010000a10303', 'hex')], 0, 2000),
  'two lengths': () => raw([`${head(3).trimEnd()}\r\nContent-Length: 4\r\n\r\n{}  `], 0, 2000),
  'huge header': () =>
    raw([`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`], 0, 2000),
  'unknown route': () => send(`/v1/${serial}/../${'a'.repeat(2000)}`, '{}'),
  'unknown method': () => raw([`BREW /v1/models HTTP/1.1\r\nHost: a\r\n\r\n`], 0, 2000),
  'body over the limit': () => send('/v1/chat/completions', `{"a":"${'x'.repeat(3 << 20)}"}`),
  'body of 1 MB': () => json({ messages: hello, max_tokens: 1, user: 'x'.repeat(1e6), n: serial }),
  'wrong type': () => send('/v1/chat/completions', '<xml/>', { 'Content-Type': 'text/xml' }),
  'not JSON': () => send('/v1/chat/completions', `{"messages": [${serial}`),
  'not UTF-8': () =>
    send('/v1/chat/completions', Uint8Array.of(0x7b, 0x22, 0xc3, 0x28, 0xff, 0x22, 0x7d)),
  'lone surrogate': () =>
    send(
      '/v1/chat/completions',
      `{"messages":[{"role":"user","content":"\\ud83d ${serial}"}],"max_tokens":2}`,
    ),
  'nested JSON': () =>
    send('/v1/chat/completions', `{"messages":${'['.repeat(200_000)}${']'.repeat(200_000)}}`),
  'many small values': () =>
    send(
      '/v1/chat/completions',
      `{"messages":[{"role":"user","content":"a"}],"metadata":[${'{},'.repeat(300_000)}{}]}`,
    ),
  'prompt larger than the context': () =>
    json({ messages: [{ role: 'user', content: `${serial} fox `.repeat(100_000) }] }),
  'prompt of one letter': () =>
    json({ prompt: 'a'.repeat(900_000 + (serial % 999)), max_tokens: 1 }, '/v1/completions'),
  'prompt of emoji': () =>
    json({ prompt: '👩‍👩‍👧‍👦'.repeat(20_000), max_tokens: 1, seed: serial }, '/v1/completions'),
  'thousands of messages': () =>
    json({
      messages: list(2000, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${serial}` })),
    }),
  'image for a text model': () =>
    json({
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'image_url',
              image_url: { url: `data:image/png;base64,${'A'.repeat(900_000)}` },
            },
          ],
        },
      ],
    }),
  'hundreds of tools': () =>
    json({ messages: hello, max_tokens: 4, tools: list(500, tool), tool_choice: 'required' }),
  'pattern of nested repeats': () =>
    withSchema({
      type: 'string',
      pattern: `((((a{1,${99 + (serial % 900)}}){1,99}){1,99}){1,99})`,
    }),
  'pattern of alternatives': () =>
    withSchema({
      type: 'string',
      pattern: `^(${list(800, (i) => `w${i}x${serial}`).join('|')})*$`,
    }),
  'pattern of ranges': () =>
    withSchema({
      type: 'string',
      pattern: `^(?=.*[a-z]{${3 + (serial % 40)}})(?!.*\\p{L}{50})[\\p{L}\\p{N}]{0,200}$`,
    }),
  'ten thousand members': () =>
    withSchema({
      type: 'object',
      properties: object(list(10_000, (i) => [`m${i}_${serial}`, { type: 'string' }])),
    }),
  'enum of ten thousand': () => withSchema({ enum: list(10_000, (i) => `word ${i} ${serial}`) }),
  'nested definitions': () =>
    withSchema({
      $defs: object(
        list(60, (i) => [
          `d${i}`,
          {
            anyOf: list(4, (k) => ({
              type: 'object',
              properties: { [`p${k}_${serial}`]: { $ref: `#/$defs/d${Math.min(59, i + 1)}` } },
            })),
          },
        ]),
      ),
      $ref: '#/$defs/d0',
    }),
  'bounded numbers': () =>
    withSchema({
      type: 'number',
      minimum: -1e15 - serial,
      maximum: 123456789.123456,
      multipleOf: 0.0001,
    }),
  'recursive grammar': () =>
    json({
      messages: hello,
      max_tokens: 8,
      grammar: `root ::= root2*\nroot2 ::= ("a" | root2 "${serial}")*`,
    }),
  'many choices': () => json({ messages: hello, max_tokens: 1, n: 1000 + serial }),
  'thousands of biases': () =>
    json({
      messages: hello,
      max_tokens: 2,
      logit_bias: object(list(1000, (i) => [String(i), -1])),
      seed: serial,
    }),
  'out-of-range numbers': () =>
    send(
      '/v1/chat/completions',
      `{"messages":[{"role":"user","content":"a"}],"max_tokens":1e308,"temperature":-1e999,"seed":${serial}}`,
    ),
  'thousand embeddings': () =>
    json({ input: list(1000, (i) => `text ${i} ${serial}`) }, '/v1/embeddings'),
  'constructor as a name': () =>
    send(
      '/v1/chat/completions',
      `{"__proto__":{"a":1},"messages":[{"role":"constructor","content":{"toString":1}}],"seed":${serial}}`,
    ),
};

/** @type {Record<string, Record<string, number>>} */
const counts = {};

/** @param {string} name */
async function run(name) {
  let end = '';
  try {
    end = await kinds[name]();
  } catch (error) {
    const { cause, name: kind } = /** @type {Error & {cause?: {code?: string}}} */ (error);
    end = cause?.code ?? kind;
  }
  counts[name] ??= {};
  counts[name][end] = (counts[name][end] ?? 0) + 1;
}

parentPort?.on('message', () => {
  isStopped = true;
  parentPort?.postMessage(counts);
});
const names = Object.keys(kinds).filter((name) => only.length === 0 || only.includes(name));
while (!isStopped) {
  void run(names[serial++ % names.length]);
  await sleep(1000 / rate);
}
