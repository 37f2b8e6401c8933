// OpenAI's API over the network: `wick serve` in a separate process, with OpenAI's client for Node and with connections
// that break.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { listen } from '../../js/cli/http_server.js';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath, waitUntil } from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const cli = join(dist, 'cli.js');
const shared = locate('shared');

/** @param {string[]} args after the model @param {string} [model] */
async function startServer(args, model = modelPath) {
  const child = spawn(process.execPath, [cli, 'serve', model, '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface(child.stdout), 'line');
  return {
    baseURL: String(line),
    origin: new URL(String(line)).origin,
    child,
    async close() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}

const key = 'secret-key';
const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story about a fox.' }];
const greedy = { model: 'any', messages, temperature: 0, max_tokens: 24 };

/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {OpenAI} */
let client;
before(async () => {
  server = await startServer(['--key', key, '--queue', '16']);
  client = new OpenAI({ baseURL: server.baseURL, apiKey: key, maxRetries: 0 });
});
after(() => server.close());

/** @returns {Promise<string>} */
async function metrics() {
  const headers = { Authorization: `Bearer ${key}` };
  return (await fetch(`${server.origin}/metrics`, { headers })).text();
}

const atRest = () =>
  waitUntil(async () => {
    const page = await metrics();
    return /^wick_http_generations 0$/m.test(page) && /\{state="running"\} 0$/m.test(page);
  }, 'all requests to end');

describe('OpenAI’s client for Node', () => {
  test('chats, streamed and not', async () => {
    const whole = await client.chat.completions.create(greedy);
    const text = whole.choices[0].message.content;
    assert.equal(whole.usage?.completion_tokens, 24);
    assert.match(whole._request_id ?? '', /^req-/);
    const stream = await client.chat.completions.create({
      ...greedy,
      stream: true,
      stream_options: { include_usage: true },
    });
    let streamed = '';
    let usage;
    for await (const chunk of stream) {
      streamed += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(streamed, text);
    assert.equal(usage?.completion_tokens, 24);
    const runner = client.chat.completions.stream(greedy);
    assert.equal(await runner.finalContent(), text);
  });

  test('completions and models', async () => {
    const body = { model: 'any', prompt: 'Once', max_tokens: 8, temperature: 0, logprobs: 1 };
    const { choices } = await client.completions.create(body);
    assert.equal(choices[0].logprobs?.tokens?.join(''), choices[0].text);
    let text = '';
    for await (const chunk of await client.completions.create({ ...body, stream: true })) {
      text += chunk.choices[0].text;
    }
    assert.equal(text, choices[0].text);
    const names = [];
    for await (const { id } of client.models.list()) names.push(id);
    assert.equal(names.length, 1);
    assert.equal((await client.models.retrieve(names[0])).id, names[0]);
  });

  test('errors have the client’s classes', async () => {
    const stranger = new OpenAI({ baseURL: server.baseURL, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.chat.completions.create(greedy), OpenAI.AuthenticationError);
    await assert.rejects(
      client.chat.completions.create({ ...greedy, temperature: -1 }),
      (/** @type {any} */ error) =>
        error instanceof OpenAI.BadRequestError &&
        error.param === 'temperature' &&
        error.code === 'invalid_value' &&
        error.type === 'invalid_request_error',
    );
    await assert.rejects(client.models.retrieve('gpt'), OpenAI.NotFoundError);
    const asked = client.responses.create({ model: 'any', input: 'a', background: true });
    await assert.rejects(asked, OpenAI.BadRequestError);
    assert.match(await metrics(), /\{route="\/v1\/responses",status="400"\} 1$/m);
  });

  test('embeddings, as numbers and in base64, which the client requests', async () => {
    const body = { model: 'any', input: ['a fox', 'a hen'] };
    const packed = await client.embeddings.create(body);
    const plain = await client.embeddings.create({ ...body, encoding_format: 'float' });
    assert.deepEqual(
      packed.data.map(({ embedding }) => Array.from(embedding)),
      plain.data.map(({ embedding }) => embedding),
    );
    assert.notDeepEqual(plain.data[0].embedding, plain.data[1].embedding);
    assert.equal(plain.usage.prompt_tokens, plain.usage.total_tokens);
    const squares = plain.data[0].embedding.map((value) => value * value);
    assert.ok(Math.abs(squares.reduce((a, b) => a + b) - 1) < 1e-5);
  });

  test('aborting a stream cancels its request', async () => {
    const stream = await client.chat.completions.create({
      ...greedy,
      max_tokens: 900,
      stream: true,
    });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 5) stream.controller.abort();
    assert.ok(chunks < 100, `${chunks} chunks`);
    await atRest();
  });
});

describe('connections', () => {
  test('a body that is too large is answered before the connection closes', async () => {
    const response = await fetch(`${server.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...greedy, user: 'a'.repeat(4 << 20) }),
    });
    assert.equal(response.status, 413);
    assert.equal((await response.json()).error.code, 'body_too_large');
  });

  test('input that is not HTTP and unrepresentable requests are rejected', async () => {
    for (const text of ['nonsense\r\n\r\n', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n']) {
      const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
      socket.end(text);
      let answer = '';
      for await (const bytes of socket) answer += bytes;
      assert.match(answer, /^HTTP\/1\.1 400 /);
    }
    assert.equal((await fetch(`${server.origin}/health`)).status, 200);
  });

  test('a slow client receives the whole answer, and the server does not buffer it', async (t) => {
    /** @type {Error[]} */
    const warnings = [];
    const note = (/** @type {Error} */ warning) => warnings.push(warning);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    let pulled = 0;
    const pull = (/** @type {ReadableStreamDefaultController} */ controller) => {
      if (pulled++ < 400) controller.enqueue(new Uint8Array(1 << 16));
      else controller.close();
    };
    const own = await listen(async () => new Response(new ReadableStream({ pull })), {
      host: '127.0.0.1',
      port: 0,
    });
    t.after(own.close);
    const reader = (await fetch(own.url)).body?.getReader();
    let bytesCount = (await reader?.read())?.value?.length ?? 0;
    let before = -1;
    await waitUntil(() => {
      const isAtRest = pulled === before;
      before = pulled;
      return isAtRest;
    }, 'the server to wait for the client');
    assert.ok(pulled < 400, `${pulled} pieces were produced for a client that does not read`);
    for (let next = await reader?.read(); next?.value; next = await reader?.read()) {
      bytesCount += next.value.length;
    }
    assert.equal(bytesCount, 400 << 16);
    assert.deepEqual(warnings, []);
  });

  test('HEAD returns only headers', async () => {
    const response = await fetch(`${server.origin}/health`, { method: 'HEAD' });
    assert.deepEqual([response.status, await response.text()], [200, '']);
  });
});

/** Returns a small reproducible random number generator, like tests/c/support/random.h. @param {number} seed */
function randomOf(seed) {
  let state = BigInt(seed) + 1n;
  return (/** @type {number} */ below) => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number((state >> 33n) % BigInt(below));
  };
}

test('concurrent requests with random disconnects each receive their own text', async () => {
  const engine = await createEngine({ file: modelPath, threads: 1 });
  const questions = ['fox', 'boat', 'dog', 'moon', 'tree'].map((one) => `Tell me of a ${one}.`);
  /** @type {string[]} */
  const wanted = [];
  for (const content of questions) {
    const body = { messages: [{ role: 'user', content }], temperature: 0, max_tokens: 60 };
    wanted.push((await engine.chat.completions.create(body)).choices[0].message.content);
  }
  await engine.close();
  assert.equal(new Set(wanted).size, questions.length);
  const random = randomOf(soakSeed);
  const counts = { whole: 0, left: 0, refused: 0 };
  const count = Math.max(100, soakCount(1000));
  let next = 0;
  const ask = async () => {
    const at = random(questions.length);
    const leavesAfter = random(3) === 0 ? random(12) : Number.POSITIVE_INFINITY;
    const controller = new AbortController();
    const body = {
      ...greedy,
      ...{ messages: [{ role: /** @type {const} */ ('user'), content: questions[at] }] },
      max_tokens: 60,
      stream: /** @type {const} */ (true),
    };
    if (random(8) === 0) {
      const wrong = client.chat.completions.create({ ...body, n: 99 });
      await assert.rejects(wrong, OpenAI.BadRequestError);
      counts.refused++;
      return;
    }
    if (leavesAfter === 0) setTimeout(() => controller.abort(), random(20));
    let text = '';
    try {
      const stream = await client.chat.completions.create(body, { signal: controller.signal });
      let chunks = 0;
      for await (const chunk of stream) {
        text += chunk.choices[0].delta.content ?? '';
        if (++chunks > leavesAfter) break;
      }
    } catch (error) {
      if (!(error instanceof OpenAI.APIUserAbortError)) throw error;
    }
    assert.ok(wanted[at].startsWith(text), `${questions[at]}: ${text}`);
    counts[text === wanted[at] ? 'whole' : 'left']++;
    if (leavesAfter > 100) assert.equal(text, wanted[at]);
  };
  const worker = async () => {
    while (next++ < count) await ask();
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  assert.equal(counts.whole + counts.left + counts.refused, count);
  assert.ok(counts.whole > 20 && counts.left > 10 && counts.refused > 2, JSON.stringify(counts));
  await atRest();
  const page = await metrics();
  assert.match(page, /^wick_http_responses_total\{route="\/v1\/chat\/completions",status="200"\}/m);
  assert.doesNotMatch(page, /status="(500|503|429)"/);
});

test('requests beyond the queue limit are rejected, the others are answered', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 48 }, async () => {
      const response = await fetch(`${server.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ ...greedy, max_tokens: 100 }),
      });
      if (response.status === 429) assert.equal(response.headers.get('Retry-After'), '1');
      await response.json();
      return response.status;
    }),
  );
  const answered = statuses.filter((status) => status === 200).length;
  const refused = statuses.filter((status) => status === 429).length;
  assert.equal(answered + refused, 48);
  assert.ok(answered >= 16 && refused > 0, `${answered} answered, ${refused} refused`);
});

describe('the command', () => {
  const serve = (/** @type {string[]} */ ...args) => run(process.execPath, [cli, 'serve', ...args]);

  test('help and errors', async () => {
    const { code, stdout } = await serve('--help');
    assert.equal(code, 0);
    for (const option of ['--port', '--key', '--cors']) assert.ok(String(stdout).includes(option));
    for (const [status, args] of /** @type {[number, string[]][]} */ ([
      [2, []],
      [2, [modelPath, modelPath]],
      [2, [modelPath, '--port', 'x']],
      [2, [modelPath, '--port', '70000']],
      [2, [modelPath, '--ctx', '0']],
      [2, [modelPath, '--threads', '0']],
      [2, [modelPath, '--queue', '0']],
      [2, [modelPath, '--key']],
      [2, [modelPath, '--key', 'two words']],
      [2, [modelPath, '--no-such-option', '1']],
      [2, [modelPath, '--kv', 'f8']],
      [3, ['none.gguf', '--port', '0']],
      [3, [modelPath, '--port', new URL(server.origin).port]],
    ])) {
      const found = await serve(...args);
      assert.equal(found.code, status, `${args}: ${found.stderr}`);
      assert.match(found.stderr, /^wick: [^\n]+\n$/);
      assert.equal(found.stdout.length, 0);
    }
  });

  test('a template file and a draft model are used; the draft model does not change answers', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'wick-serve-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const template = join(folder, 'chat.jinja');
    writeFileSync(template, 'Once upon a time {{ messages[0].content }}');
    const answers = [];
    for (const more of [[], ['--draft', modelPath]]) {
      const own = await startServer(['--chat-template', template, ...more]);
      t.after(() => own.child.kill());
      const open = new OpenAI({ baseURL: own.baseURL, apiKey: 'none', maxRetries: 0 });
      const chat = await open.chat.completions.create(greedy);
      const prompt = `Once upon a time ${messages[0].content}`;
      const { messages: _, ...settings } = greedy;
      const plain = await open.completions.create({ ...settings, prompt });
      assert.equal(chat.usage?.prompt_tokens, plain.usage?.prompt_tokens);
      assert.equal(chat.choices[0].message.content, plain.choices[0].text);
      answers.push(chat.choices[0].message.content);
      assert.equal(await own.close(), 0);
    }
    assert.equal(answers[1], answers[0]);
    const missing = await serve(modelPath, '--lora', 'none.gguf', '--port', '0');
    assert.match(missing.stderr, /^wick: [^\n]*none\.gguf[^\n]*\n$/);
  });

  test('adapters are applied to every request with their scales', {
    skip: shared.skip,
  }, async (t) => {
    const vectors = join(shared.path, 'vectors');
    const model = join(vectors, 'reference/models/llama.gguf');
    const [both, values] = ['attn-ffn', 'qv'].map((name) =>
      join(vectors, `reference-more/lora/llama.${name}.gguf`),
    );
    const engine = await createEngine({ file: model, threads: 1 });
    t.after(() => engine.close());
    for (const file of [both, values]) await engine.adapters.add({ file }, { name: file });
    const prompt = [1, 5, 9];
    const body = { model: 'any', prompt, temperature: 0, max_tokens: 8 };
    const found = [];
    for (const [args, adapters] of /** @type {[string[], any[]][]} */ ([
      [[], []],
      [['--lora', both], [{ name: both, scale: 1 }]],
      [
        ['--lora', `${both}:2`, '--lora', `${values}:-4`],
        [
          { name: both, scale: 2 },
          { name: values, scale: -4 },
        ],
      ],
    ])) {
      const own = await startServer(args, model);
      t.after(() => own.child.kill());
      const open = new OpenAI({ baseURL: own.baseURL, apiKey: 'none', maxRetries: 0 });
      const { text } = (await open.completions.create(body)).choices[0];
      const options = { temperature: 0, maxTokens: 8, adapters };
      assert.equal(text, await engine.generate(prompt, options).text());
      found.push(text);
      await own.close();
    }
    assert.equal(new Set(found).size, 3);
  });

  test('a signal stops the server, even during an answer', async () => {
    const own = await startServer(['--name', 'fox']);
    const open = new OpenAI({ baseURL: own.baseURL, apiKey: 'none', maxRetries: 0 });
    const { data } = await open.models.list();
    assert.deepEqual([data.length, data[0].id], [1, 'fox']);
    const stream = await open.chat.completions.create({ ...greedy, max_tokens: 900, stream: true });
    const reading = (async () => {
      for await (const _ of stream);
    })();
    const cut = assert.rejects(reading);
    assert.equal(await own.close(), 0);
    await cut;
  });
});

test('wick serve logs a line of JSON for each request, unless logging is turned off', async () => {
  for (const args of [[], ['--no-log']]) {
    const child = spawn(process.execPath, [cli, 'serve', modelPath, '--port', '0', ...args]);
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      log += text;
    });
    const [line] = await once(createInterface(child.stdout), 'line');
    const { origin } = new URL(String(line));
    const body = JSON.stringify({ messages, max_tokens: 3 });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers, body });
    const { usage } = await answer.json();
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
    if (args.length > 0) {
      assert.equal(log, '');
      continue;
    }
    const [record] = log
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text));
    assert.equal(record['http.route'], '/v1/chat/completions');
    assert.equal(record['gen_ai.usage.input_tokens'], usage.prompt_tokens);
    assert.equal(record['gen_ai.usage.output_tokens'], 3);
    assert.equal(record.request_id, answer.headers.get('x-request-id'));
  }
});
