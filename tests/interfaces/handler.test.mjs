// OpenAI's API for an engine (wick-llm/openai), with Request and Response objects of the Fetch standard.
// tests/interfaces/handler_http.test.mjs tests it over the network.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startPrinting } from '../support/example_servers.mjs';
import { poisonToken, writeTemplates } from '../support/gguf_pieces.mjs';
import { root } from '../support/locate.mjs';
import {
  dist,
  modelPath,
  openEngine,
  openHeldEngine,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { wrongBodies } from '../support/wrong_bodies.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {(request: Request) => Promise<Response>} Handle */

const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const greedy = { messages, temperature: 0, max_tokens: 24 };
const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';

/** @param {string} path @param {unknown} body @param {RequestInit} [init] */
function post(path, body, { headers, ...init } = {}) {
  return new Request(`http://wick.test${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...Object.fromEntries(new Headers(headers)) },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
}

/** @param {Handle} handle @param {string} path @param {Record<string, string>} [headers] */
const get = (handle, path, headers = {}) =>
  handle(new Request(`http://wick.test${path}`, { headers }));

/** @param {Response} response @returns {Promise<any>} */
async function jsonOf(response) {
  assert.equal(response.headers.get('Content-Type'), 'application/json');
  return response.json();
}

/** @param {Response} response @param {number} status @param {object} error members that it must have */
async function assertRefused(response, status, error) {
  const body = await jsonOf(response);
  assert.equal(response.status, status, JSON.stringify(body));
  assert.deepEqual(Object.keys(body), ['error']);
  const { n_prompt_tokens, n_ctx, ...members } = body.error; // only if the prompt is too long
  assert.deepEqual(Object.keys(members).sort(), ['code', 'message', 'param', 'type']);
  assert.deepEqual(body.error, { ...body.error, ...error });
  return body.error;
}

/** @param {Response} response @returns {Promise<any[]>} the chunks of a complete stream */
async function chunksOf(response) {
  assert.equal(response.status, 200);
  assert.match(response.headers.get('Content-Type') ?? '', /^text\/event-stream/);
  const events = (await response.text()).split('\n\n');
  assert.deepEqual(events.slice(-2), ['data: [DONE]', '']);
  return events.slice(0, -2).map((event) => JSON.parse(event.replace(/^data: /, '')));
}

/** @param {any[]} chunks @param {number} [index] */
const textOf = (chunks, index = 0) =>
  chunks
    .flatMap(({ choices }) => choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta?.content ?? choice.text ?? '')
    .join('');

/** @param {import('../../js/index.js').Engine} engine */
async function atRest(engine) {
  await waitUntil(async () => {
    const { requests } = await engine.stats();
    return requests.running + requests.waiting === 0;
  }, 'the requests to end');
}

describe('errors of the engine', () => {
  const types = /** @type {Record<number, string>} */ ({
    400: 'invalid_request_error',
    429: 'rate_limit_error',
    500: 'server_error',
    501: 'not_implemented_error',
    503: 'server_error',
  });
  const text = readFileSync(join(root, 'docs/guide/server.md'), 'utf8');
  const rows = [...text.matchAll(/^- (\d+)( with `Retry-After`)?: ((?:.|\n {2})+)$/gm)];
  const documented = rows.flatMap(([, status, retry, list]) =>
    [...list.matchAll(/`([A-Z_]+)`(?:\s+\(`(\w+)`\))?/g)].map(([, code, name]) => ({
      ...{ code, status: Number(status), retry: retry ? '1' : null },
      name: name ?? code.toLowerCase(),
    })),
  );

  const question = { query: 'a', documents: ['b'] };

  /** @param {unknown} error @returns {any} an engine whose every request fails */
  const failing = (error) => {
    const fail = async () => {
      throw error;
    };
    return { generate: fail, rerank: fail, info: async () => ({}) };
  };

  test('errors have the documented statuses', async () => {
    assert.equal(documented.length, 15);
    const reports = /** @type {any[]} */ ([]);
    for (const { code, status, retry, name } of documented) {
      const error = Object.assign(new Error(`It is ${code}`), { name: 'WickError', code });
      const onError = (/** @type {any} */ one) => void reports.push(one.code);
      const response = await createHandler(failing(error), { onError })(
        post('/v1/rerank', question),
      );
      assert.equal(response.headers.get('Retry-After'), retry, code);
      // the engine's message is for programmers, the handler's own for operators of a server
      const own = code === 'NO_TEMPLATE' ? {} : { message: `It is ${code}` };
      const { message } = await assertRefused(response, status, {
        ...{ code: name, type: types[status], ...own },
      });
      if (code === 'NO_TEMPLATE') assert.match(message, /--chat-template of wick serve/);
    }
    const severe = documented
      .filter(({ status }) => status >= 500 && status !== 501)
      .map(({ code }) => code);
    assert.deepEqual(reports, severe);
  });

  test('errors with other codes or from other libraries do not expose their message', async () => {
    const codes = ['CORRUPT', 'INTERNAL', 'toString'];
    const errors = codes.map((code) => Object.assign(new Error('it'), { name: 'WickError', code }));
    for (const error of [...errors, new TypeError('it'), 'it', null]) {
      const response = await createHandler(failing(error))(post('/v1/rerank', question));
      const { message } = await assertRefused(response, 500, {
        code: 'internal_error',
        param: null,
      });
      assert.equal(message, 'The server failed to handle this request');
    }
  });
});

describe('chat completions', () => {
  test('chats return the engine’s answers, streamed and not', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    /** @type {any} */
    const wanted = await engine.chat.completions.create(greedy);
    const whole = await jsonOf(await handle(post(CHAT, greedy)));
    assert.deepEqual(whole.choices, wanted.choices);
    assert.equal(whole.object, 'chat.completion');
    assert.equal(whole.usage.total_tokens, wanted.usage.total_tokens);
    const body = { ...greedy, stream: true, stream_options: { include_usage: true } };
    const chunks = await chunksOf(await handle(post(CHAT, body)));
    assert.equal(textOf(chunks), wanted.choices[0].message.content);
    assert.ok(chunks.length > 20, `${chunks.length} chunks`);
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(chunks.at(-1).usage.completion_tokens, 24);
    assert.ok(chunks.slice(0, -1).every(({ usage }) => usage === null));
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'length');
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
  });

  test('n, seed, stop and logprobs take effect', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine, { model: 'fox' });
    const body = { messages, max_completion_tokens: 16, seed: 5, n: 2 };
    const [one, again] = [
      await jsonOf(await handle(post(CHAT, body))),
      await chunksOf(await handle(post(CHAT, { ...body, stream: true }))),
    ];
    const texts = one.choices.map((/** @type {any} */ { message }) => message.content);
    assert.notEqual(texts[0], texts[1]);
    assert.deepEqual([textOf(again, 0), textOf(again, 1)], texts);
    assert.deepEqual([one.model, again[0].model], ['fox', 'fox']);
    const reports = { ...greedy, logprobs: true, top_logprobs: 2 };
    const [choice] = (await jsonOf(await handle(post(CHAT, reports)))).choices;
    assert.equal(choice.logprobs.content.length, 24);
    assert.equal(choice.logprobs.content[3].top_logprobs.length, 2);
    const stop = choice.logprobs.content[9].token;
    const cut = (await jsonOf(await handle(post(CHAT, { ...greedy, stop })))).choices[0];
    assert.equal(cut.finish_reason, 'stop');
    assert.equal(cut.message.content, choice.message.content.split(stop)[0]);
  });

  test('the developer role becomes system, text parts are joined as lines, null is ignored', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const text = 'Answer in\none word.';
    const system = [{ role: 'system', content: text }, ...messages];
    const developer = [
      { role: 'developer', content: [...'ab'].map((_, i) => part(text, i)) },
      ...messages,
    ];
    /** @param {string} whole @param {number} index */
    function part(whole, index) {
      return { type: 'text', text: whole.split('\n')[index] };
    }
    const [one, two] = [
      await jsonOf(await handle(post(CHAT, { ...greedy, messages: system }))),
      await jsonOf(
        await handle(
          post(CHAT, { ...greedy, messages: developer, stop: null, tools: null, user: 'me' }),
        ),
      ),
    ];
    assert.equal(two.choices[0].message.content, one.choices[0].message.content);
    assert.equal(two.usage.prompt_tokens, one.usage.prompt_tokens);
  });
});

describe('completions', () => {
  test('completions return the output of generate for each prompt and choice', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const prompts = ['Once upon a time', 'Hello'];
    const body = { prompt: prompts, max_tokens: 12, seed: 3, n: 2 };
    const wanted = [];
    for (const prompt of prompts) {
      for (const seed of [3, 4]) {
        wanted.push(await engine.generate(prompt, { maxTokens: 12, seed }).text());
      }
    }
    const whole = await jsonOf(await handle(post(COMPLETIONS, body)));
    assert.deepEqual(
      whole.choices.map((/** @type {any} */ { text }) => text),
      wanted,
    );
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
    const chunks = await chunksOf(await handle(post(COMPLETIONS, streamed)));
    assert.deepEqual(
      wanted.map((_, index) => textOf(chunks, index)),
      wanted,
    );
    const { usage } = chunks.at(-1);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
    assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens);
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
    const tokens = await engine.tokenize(prompts[0]);
    const ofTokens = await jsonOf(await handle(post(COMPLETIONS, { ...body, prompt: tokens })));
    assert.equal(ofTokens.choices[1].text, wanted[1]);
    const short = await jsonOf(await handle(post(COMPLETIONS, { prompt: 'Once', logit_bias: {} })));
    assert.ok(short.usage.completion_tokens <= 16);
  });

  test('logprobs match the text', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const body = { prompt: 'Once', max_tokens: 20, temperature: 0, logprobs: 2, n: 2 };
    const whole = await jsonOf(await handle(post(COMPLETIONS, body)));
    for (const { text, logprobs } of whole.choices) {
      assert.equal(logprobs.tokens.join(''), text);
      assert.equal(logprobs.token_logprobs.length, logprobs.tokens.length);
      assert.equal(Object.keys(logprobs.top_logprobs[0]).length, 2);
      for (const [index, at] of logprobs.text_offset.entries()) {
        assert.ok(text.startsWith(logprobs.tokens[index], at));
      }
    }
    const chunks = await chunksOf(await handle(post(COMPLETIONS, { ...body, stream: true })));
    for (const { choices } of chunks) {
      for (const { text, logprobs } of choices) assert.equal(logprobs.tokens.join(''), text);
    }
    assert.equal(textOf(chunks, 1), whole.choices[1].text);
  });
});

describe('echo', () => {
  const prompt = 'The fox ran over the hill, and the hen was glad.';

  /** @param {import('node:test').TestContext} t */
  async function open(t) {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const ask = async (/** @type {object} */ body) => {
      const response = await handle(post(COMPLETIONS, { temperature: 0, echo: true, ...body }));
      const answer = await jsonOf(response);
      assert.equal(response.status, 200, JSON.stringify(answer));
      return answer;
    };
    return { engine, ask };
  }

  /**
   * Returns the logprob of each token except the first, each requested separately.
   * @param {import('../../js/index.js').Engine} engine @param {number[]} ids
   */
  async function logprobsOf(engine, ids) {
    /** @type {number[]} */
    const found = [];
    for (let at = 1; at < ids.length; at++) {
      const onToken = (/** @type {any} */ token) => void found.push(token.logprob);
      const own = { maxTokens: 1, logprobs: 0, forced: [ids[at]], onToken };
      await engine.generate(ids.slice(0, at), own).text();
    }
    return found;
  }

  test('requests from lm-evaluation-harness are supported: token ids, logprobs: 1, max_tokens: 1', async (t) => {
    const { engine, ask } = await open(t);
    const ids = await engine.tokenize(prompt);
    const { choices, usage } = await ask({ prompt: [ids], max_tokens: 1, logprobs: 1, seed: 1234 });
    const [{ logprobs, text, finish_reason }] = choices;
    const { token_logprobs: found, top_logprobs: tops, tokens, text_offset: offsets } = logprobs;
    for (const list of [found, tops, tokens, offsets]) assert.equal(list.length, ids.length + 1);
    assert.deepEqual([found[0], tops[0], offsets[0], finish_reason], [null, null, 0, 'length']);
    assert.deepEqual(found.slice(1, -1), await logprobsOf(engine, ids));
    for (const [at, top] of tops.slice(1).entries()) {
      const [most] = /** @type {number[]} */ (Object.values(top));
      assert.ok(most >= found[at + 1] - 1e-6);
    }
    assert.ok(text.includes(prompt));
    assert.equal(usage.completion_tokens, 1);
    const { choices: whole } = await ask({ prompt: [ids], max_tokens: 1, echo: false });
    assert.ok(text.endsWith(whole[0].text));
  });

  test('text is scored without sampling tokens, for several prompts and choices', async (t) => {
    const { engine, ask } = await open(t);
    const ids = await engine.tokenize(prompt);
    const own = await engine.tokenize(prompt, { addSpecial: false });
    const alone = await ask({ prompt, max_tokens: 0, logprobs: 0 });
    const [{ text, logprobs, finish_reason }] = alone.choices;
    assert.deepEqual([text, finish_reason], [prompt, 'length']);
    assert.equal(logprobs.tokens.length, own.length);
    const wanted = await logprobsOf(engine, ids);
    const first = ids.length > own.length ? [] : [null];
    assert.deepEqual(logprobs.token_logprobs, [...first, ...wanted]);
    assert.deepEqual(alone.usage, {
      ...{ prompt_tokens: ids.length, completion_tokens: 0, total_tokens: ids.length },
      prompt_tokens_details: { cached_tokens: 0 },
    });
    const many = await ask({ prompt: [prompt, [ids[0]]], n: 2, max_tokens: 3, logprobs: 2 });
    assert.equal(many.choices.length, 4);
    const lengths = many.choices.map((/** @type {any} */ one) => one.logprobs.tokens.length);
    assert.deepEqual(lengths, [own.length + 3, own.length + 3, 1 + 3, 1 + 3]);
    const plain = await ask({ prompt, max_tokens: 3 });
    assert.equal(plain.choices[0].logprobs, null);
    assert.ok(plain.choices[0].text.startsWith(prompt) && plain.choices[0].text !== prompt);
  });

  test('a prompt longer than the context is rejected', async (t) => {
    const engine = await openEngine(t, { file: modelPath, contextSize: 64 });
    const body = { prompt: Array(66).fill(5), echo: true, logprobs: 1 };
    for (const max_tokens of [0, 1]) {
      const asked = post(COMPLETIONS, { ...body, max_tokens });
      const error = { code: 'context_length_exceeded', param: 'prompt' };
      await assertRefused(await createHandler(engine)(asked), 400, error);
    }
  });
});

test('the error about a non-finite vector names its input', async (t) => {
  const folder = temporaryFolder();
  const file = join(folder, 'poisoned.gguf');
  const engine = await openEngine(t);
  const [token] = (await engine.tokenize('a fox', { addSpecial: false })).slice(-1);
  poisonToken(modelPath, token, file);
  const handle = createHandler(await openEngine(t, { file }));
  const response = await handle(post('/v1/embeddings', { input: ['a hen', 'b', 'a fox'] }));
  const { message } = await assertRefused(response, 500, { code: 'nonfinite' });
  assert.match(message, /text 2\b/);
});

describe('named templates', () => {
  const plain = 'plain {{ messages[0].content }}';
  const tool = '{% if false %}<tool_call>{% endif %}{{ tools[0].function.name }}<|im_end|>';
  const rag = 'rag {{ messages[0].content }} and some more';
  const tools = [{ type: 'function', function: { name: 'weather', parameters: {} } }];
  const folder = temporaryFolder();
  const file = join(folder, 'templates.gguf');
  before(() => writeTemplates(modelPath, { '': plain, tool_use: tool, rag }, file));

  test('the tool template is used with tools; a name selects a different one', async (t) => {
    for (const [chatTemplate, without, withTools] of [
      [undefined, 'plain hi', 'weather<|im_end|>'],
      ['default', 'plain hi', 'plain hi'],
      ['rag', 'rag hi and some more', 'rag hi and some more'],
      ['chatml', undefined, undefined],
    ]) {
      const engine = await openEngine(t, { file, ...(chatTemplate && { chatTemplate }) });
      const asked = [{ role: 'user', content: 'hi' }];
      if (without === undefined) continue;
      assert.equal(await engine.applyTemplate(asked), without);
      assert.equal(await engine.applyTemplate(asked, { variables: { tools } }), withTools);
      const body = { messages: asked, max_tokens: 1, temperature: 0 };
      const count = async (/** @type {object} */ more) => {
        const answer = await createHandler(engine)(post(CHAT, { ...body, ...more }));
        return (await jsonOf(answer)).usage.prompt_tokens;
      };
      const lengthOf = async (/** @type {any} */ text) => (await engine.tokenize(text)).length;
      assert.equal(await count({}), await lengthOf(without));
      assert.equal(await count({ tools }), await lengthOf(withTools));
      assert.equal(await count({ tools, tool_choice: 'none' }), await lengthOf(without));
    }
  });

  test('an unknown template name is rejected', async (t) => {
    const engine = await openEngine(t, { file, chatTemplate: 'rags' });
    const response = await createHandler(engine)(post(CHAT, greedy));
    const { message } = await assertRefused(response, 400, { code: 'template' });
    assert.match(message, /no chat template named 'rags'/);
  });

  test('wick serve accepts the name', async (t) => {
    const cli = join(dist, 'cli.js');
    const asked = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 1, temperature: 0 };
    const args = [cli, 'serve', file, '--port', '0', '--chat-template', 'rag'];
    const server = await startPrinting(process.execPath, args);
    t.after(() => server.close());
    const response = await fetch(`${server.origin}/v1/chat/completions`, {
      ...{ method: 'POST', body: JSON.stringify(asked) },
      headers: { 'content-type': 'application/json' },
    });
    const engine = await openEngine(t, { file });
    const { usage } = await jsonOf(response);
    assert.equal(usage.prompt_tokens, (await engine.tokenize('rag hi and some more')).length);
    const wrong = await run(process.execPath, [cli, 'serve', file, '--chat-template', 'rags']);
    assert.equal(wrong.code, 3);
    assert.match(wrong.stderr, /--chat-template: .*no chat template named 'rags'/);
  });
});

test('a seed of -1 means a random seed for every choice', async (t) => {
  const handle = createHandler(await openEngine(t));
  const body = { prompt: 'Once', max_tokens: 30, temperature: 2, logprobs: 1, n: 2, seed: -1 };
  const texts = new Set();
  for (let i = 0; i < 2; i++) {
    const { choices } = await jsonOf(await handle(post(COMPLETIONS, body)));
    for (const { text } of choices) texts.add(text);
  }
  assert.equal(texts.size, 4);
});

describe('rejected requests', () => {
  test('each rejected request has a status, names the field, and does not reach the engine', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    for (const [path, body, status, param, code] of wrongBodies) {
      const error = await assertRefused(await handle(post(path, body)), status, { param, code });
      assert.ok(error.message.length > 10 && error.message.length < 300, error.message);
    }
    const long = { messages: [{ role: 'user', content: 'a '.repeat(9000) }], stream: true };
    const wanted = { param: 'messages', code: 'context_length_exceeded' };
    const error = await assertRefused(await handle(post(CHAT, long)), 400, wanted);
    assert.match(error.message, /prompt is too long.*exceeds the available context size/);
    assert.equal(error.n_ctx, (await engine.info()).contextSize);
    assert.ok(error.n_prompt_tokens > 9000, error.message);
    assert.equal((await engine.stats()).tokens.out, 0);
    const page = await (await get(handle, '/metrics')).text();
    assert.match(page, /^wick_http_generations 0$/m);
  });

  test('bodies are checked: size, type, encoding and bytes', async (t) => {
    const handle = createHandler(await openEngine(t), { bodyBytesMax: 1000 });
    const large = JSON.stringify({ messages: [{ role: 'user', content: 'a'.repeat(1000) }] });
    await assertRefused(await handle(post(CHAT, large)), 413, { code: 'body_too_large' });
    let pulled = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(300).fill(32));
      },
    });
    const endless = { method: 'POST', body, duplex: 'half' };
    const headers = { 'Content-Type': 'application/json' };
    const request = new Request(`http://wick.test${CHAT}`, { ...endless, headers });
    await assertRefused(await handle(request), 413, { code: 'body_too_large' });
    assert.ok(pulled <= 6, `${pulled} pieces were read`);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
      const init = { headers: { 'Content-Type': type } };
      await assertRefused(await handle(post(CHAT, greedy, init)), 415, { param: null });
    }
    const zipped = { headers: { 'Content-Encoding': 'gzip' } };
    await assertRefused(await handle(post(CHAT, greedy, zipped)), 415, { param: null });
    const broken = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array([0x7b])),
      pull: (controller) => controller.error(new Error('the socket is closed')),
    });
    const half = new Request(`http://wick.test${CHAT}`, { ...endless, headers, body: broken });
    await assertRefused(await handle(half), 400, { code: 'invalid_json' });
    let isCancelled = false;
    const open = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array([0x7b, 0xff])),
      cancel: () => {
        isCancelled = true;
      },
    });
    const odd = new Request(`http://wick.test${CHAT}`, { ...endless, headers, body: open });
    await assertRefused(await handle(odd), 400, { code: 'invalid_json' });
    assert.ok(isCancelled, 'the rest of the body is not read');
    const bytes = new Uint8Array([0x22, 0xff, 0x22]);
    const raw = new Request(`http://wick.test${CHAT}`, { method: 'POST', body: bytes, headers });
    await assertRefused(await handle(raw), 400, { code: 'invalid_json' });
  });

  test('a full queue in the handler or the engine results in 429 with Retry-After', async (t) => {
    const { engine, release } = await openHeldEngine(t, { queueLimit: 2 });
    const handle = createHandler(engine, { queueLimit: 3 });
    const running = [1, 2].map(() => handle(post(CHAT, greedy)));
    await waitUntil(
      async () => (await engine.stats()).requests.submitted === 2,
      'both requests to wait',
    );
    const refused = await handle(post(CHAT, { ...greedy, stream: true }));
    await assertRefused(refused, 429, { code: 'queue_full', type: 'rate_limit_error' });
    assert.equal(refused.headers.get('Retry-After'), '1');
    const narrow = createHandler(engine, { queueLimit: 1 });
    const held = new AbortController();
    const waits = narrow(post(CHAT, '', { body: new ReadableStream(), ...half(held.signal) }));
    const alsoRefused = await narrow(post(CHAT, greedy));
    await assertRefused(alsoRefused, 429, { code: 'queue_full' });
    assert.equal(alsoRefused.headers.get('Retry-After'), '1');
    held.abort();
    assert.equal((await waits).status, 499);
    release();
    for (const response of await Promise.all(running)) assert.equal(response.status, 200);
    assert.equal((await narrow(post(CHAT, greedy))).status, 200);
  });

  /** @param {AbortSignal} signal @returns {RequestInit} */
  const half = (signal) => /** @type {any} */ ({ duplex: 'half', signal });

  test('options of createHandler', async (t) => {
    const engine = await openEngine(t);
    for (const options of [
      ...[{ keys: [] }, { keys: '' }, { keys: ['a', 5] }, { keys: 'a b' }, { key: 'a' }],
      ...[{ queueLimit: 0 }, { bodyBytesMax: 1.5 }, { cors: [] }, { onError: 'log' }],
    ]) {
      const make = () => createHandler(engine, /** @type {any} */ (options));
      assert.throws(make, TypeError, JSON.stringify(options));
    }
    assert.throws(() => createHandler(/** @type {any} */ ({})), TypeError);
  });
});

describe('keys', () => {
  test('a request without a key is rejected; each key is a tenant', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine, { keys: ['key-one', 'key-two'], metricsKey: 'operator' });
    /** @param {string} [key] */
    const sent = (key) => ({
      headers: new Headers(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
    });
    for (const key of [undefined, 'key-on', 'key-one2', 'KEY-ONE', 'operator', 'key-one key-two']) {
      const refused = await handle(post(CHAT, greedy, sent(key)));
      await assertRefused(refused, 401, { code: 'invalid_api_key' });
      assert.equal(refused.headers.get('WWW-Authenticate'), 'Bearer');
    }
    assert.equal((await get(handle, '/v1/models')).status, 401);
    /** @param {string} key @param {object} [more] */
    const cached = async (key, more) => {
      const answer = await jsonOf(await handle(post(CHAT, { ...greedy, ...more }, sent(key))));
      return answer.usage.prompt_tokens_details.cached_tokens;
    };
    assert.equal(await cached('key-one'), 0);
    assert.ok((await cached('key-one')) > 0, 'a tenant finds its own cached prompts');
    assert.equal(await cached('key-two'), 0);
    assert.equal(await cached('key-one', { salt: 'a' }), 0);
    assert.ok((await cached('key-one', { salt: 'a' })) > 0);
    assert.equal(await cached('key-two', { salt: 'a' }), 0);
  });

  test('health is public, metrics need the operator’s key', async (t) => {
    const engine = await openEngine(t);
    const open = createHandler(engine);
    const page = await get(open, '/metrics');
    assert.match(page.headers.get('Content-Type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(await page.text(), /^wick_requests\{state="running"\} 0$/m);
    const closed = createHandler(engine, { keys: 'tenant' });
    const tenant = { Authorization: 'Bearer tenant' };
    assert.equal((await get(closed, '/metrics', tenant)).status, 403);
    const handle = createHandler(engine, { keys: 'tenant', metricsKey: 'operator' });
    assert.equal((await get(handle, '/metrics', tenant)).status, 401);
    assert.equal((await get(handle, '/metrics', { Authorization: 'bearer operator' })).status, 200);
    assert.deepEqual(await jsonOf(await get(handle, '/health')), { status: 'ok' });
    await engine.close();
    await assertRefused(await get(handle, '/health'), 503, { code: 'closed' });
  });
});

describe('models and origins', () => {
  test('the list contains the model under its name', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const { data, object } = await jsonOf(await get(handle, '/v1/models'));
    const { name } = await engine.info();
    assert.deepEqual([object, data.length, data[0].id, data[0].object], ['list', 1, name, 'model']);
    const one = await jsonOf(await get(handle, `/v1/models/${encodeURIComponent(data[0].id)}`));
    assert.deepEqual(one, data[0]);
    await assertRefused(await get(handle, '/v1/models/gpt'), 404, { code: 'model_not_found' });
  });

  test('pages from other origins can read responses only if allowed', async (t) => {
    const engine = await openEngine(t);
    const origin = 'https://page.test';
    const allowed = 'Access-Control-Allow-Origin';
    const none = await get(createHandler(engine), '/health', { Origin: origin });
    assert.equal(none.headers.get(allowed), null);
    const handle = createHandler(engine, { cors: [origin] });
    assert.equal((await get(handle, '/health', { Origin: origin })).headers.get(allowed), origin);
    const other = await get(handle, '/health', { Origin: 'https://other.test' });
    assert.deepEqual([other.headers.get(allowed), other.headers.get('Vary')], [null, 'Origin']);
    const any = createHandler(engine, { cors: '*', keys: 'k' });
    const preflight = await any(
      new Request(`http://wick.test${CHAT}`, {
        method: 'OPTIONS',
        headers: { Origin: origin, 'Access-Control-Request-Headers': 'authorization, x-a' },
      }),
    );
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get(allowed), '*');
    assert.equal(preflight.headers.get('Access-Control-Allow-Methods'), 'POST, OPTIONS');
    assert.equal(preflight.headers.get('Access-Control-Allow-Headers'), 'authorization, x-a');
    const refused = await any(post(CHAT, greedy, { headers: { Origin: origin } }));
    assert.deepEqual([refused.status, refused.headers.get(allowed)], [401, '*']);
  });
});

describe('slow and disconnecting readers', () => {
  const long = { prompt: 'Once', max_tokens: 900, stream: true, temperature: 0 };

  test('a reader that does not pull pauses its own request', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    const forever = { ...long, logit_bias: await noEnd(engine) };
    const { body } = await handle(post(COMPLETIONS, forever));
    await waitUntil(
      async () => (await engine.stats()).requests.paused === 1,
      'the request to pause',
    );
    assert.equal((await handle(post(CHAT, greedy))).status, 200);
    await body?.cancel();
    await atRest(engine);
    const { requests, kv } = await engine.stats();
    assert.equal(requests.aborted, 1);
    assert.equal(kv.sequences, 0);
  });

  /** @param {import('../../js/index.js').Engine} engine @returns {Promise<Record<string, number>>} */
  async function noEnd(engine) {
    const ends = (await engine.info()).tokenizer?.ends ?? [];
    assert.ok(ends.length > 0);
    return Object.fromEntries(ends.map((id) => [id, -1000]));
  }

  test('an aborted request ends, before and after its first token', async (t) => {
    const engine = await openEngine(t);
    const handle = createHandler(engine);
    for (const isStream of [true, false]) {
      for (const path of [CHAT, COMPLETIONS]) {
        const controller = new AbortController();
        const text = { ...(path === CHAT ? { messages } : { prompt: 'Once' }), stream: isStream };
        const body = { ...text, max_tokens: 900, logit_bias: await noEnd(engine) };
        const answer = handle(post(path, body, { signal: controller.signal }));
        if (isStream) {
          const reader = /** @type {ReadableStream} */ ((await answer).body).getReader();
          await reader.read();
          controller.abort('gone');
          await assert.rejects(async () => {
            for (let next = await reader.read(); !next.done; ) next = await reader.read();
          });
        } else {
          await waitUntil(
            async () => (await engine.stats()).requests.running > 0,
            'the request to run',
          );
          controller.abort('gone');
          assert.equal((await answer).status, 499);
        }
        await atRest(engine);
      }
    }
    assert.equal((await engine.stats()).requests.aborted, 4);
    assert.match(await (await get(handle, '/metrics')).text(), /^wick_http_generations 0$/m);
  });

  test('if the engine fails, streams end with an error and without [DONE]', async (t) => {
    const engine = await openEngine(t);
    /** @type {any[]} */
    const errors = [];
    const handle = createHandler(engine, { onError: (error) => errors.push(error) });
    const { body } = await handle(post(COMPLETIONS, { ...long, logit_bias: await noEnd(engine) }));
    const reader = /** @type {ReadableStream} */ (body).getReader();
    await reader.read();
    await engine.close();
    let text = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += new TextDecoder().decode(next.value);
    }
    assert.match(text, /\n\ndata: \{"error":\{.*"code":"closed"\}\}\n\n$|^data: \{"error":/);
    assert.ok(!text.includes('[DONE]'));
    assert.equal(errors[0].code, 'CLOSED');
  });
});

test('an exception in the template is reported with its message', async (t) => {
  const engine = await openEngine(t, {
    file: modelPath,
    chatTemplate: '{{ raise_exception("no") }}',
  });
  const refused = await createHandler(engine)(post(CHAT, greedy));
  await assertRefused(refused, 400, { code: 'template' });
});

describe('request records', () => {
  /** @param {import('node:test').TestContext} t */
  async function open(t) {
    /** @type {any[]} */
    const records = [];
    const onRequest = (/** @type {any} */ record) => records.push(record);
    const handle = createHandler(await openEngine(t), { onRequest, instance: 'a"b', model: 'fox' });
    return { records, handle };
  }

  test('each record has the token counts that the client received, streamed and not', async (t) => {
    const { records, handle } = await open(t);
    for (const [path, body] of /** @type {[string, any][]} */ ([
      [CHAT, { ...greedy, n: 2 }],
      [COMPLETIONS, { prompt: ['Once', 'The'], max_tokens: 5, temperature: 0 }],
      ['/v1/responses', { input: 'A fox', max_output_tokens: 16, temperature: 0 }],
    ])) {
      const whole = await jsonOf(await handle(post(path, body)));
      const usage = {
        input: whole.usage.prompt_tokens ?? whole.usage.input_tokens,
        output: whole.usage.completion_tokens ?? whole.usage.output_tokens,
        cached: (whole.usage.prompt_tokens_details ?? whole.usage.input_tokens_details)
          .cached_tokens,
      };
      const cached = records.at(-1)['gen_ai.usage.cache_read.input_tokens'];
      assert.equal(cached, usage.cached);
      const before = records.length;
      const streamed = await handle(post(path, { ...body, stream: true }));
      assert.equal(records.length, before, 'a stream is recorded only at its end');
      const text = await streamed.text();
      if (path !== '/v1/responses') assert.doesNotMatch(text, /"usage"/);
      assert.equal(records.length, before + 1);
      for (const record of records.slice(-2)) {
        assert.equal(record['http.route'], path);
        assert.equal(record['gen_ai.usage.input_tokens'], usage.input);
        assert.equal(record['gen_ai.usage.output_tokens'], usage.output);
        assert.equal(record['gen_ai.response.model'], 'fox');
        assert.equal(record['service.instance.id'], 'a"b');
        assert.deepEqual([record.level, record['error.type']], ['info', undefined]);
      }
      const { 'gen_ai.server.time_to_first_token': first, 'http.server.request.duration': all } =
        records[records.length - 1];
      assert.ok(first > 0 && first <= all);
    }
    assert.deepEqual(records[0]['gen_ai.response.finish_reasons'], ['length', 'length']);
    const stream_options = { include_usage: true };
    const asked = await handle(post(CHAT, { ...greedy, stream: true, stream_options }));
    assert.equal((await chunksOf(asked)).at(-1).usage.completion_tokens, 24);
    const off = { ...greedy, stream: true, stream_options: { include_usage: false } };
    assert.equal((await chunksOf(await handle(post(CHAT, off)))).at(-1).usage, undefined);
    assert.equal(records.at(-1)['gen_ai.usage.output_tokens'], 24);
  });

  test('rejected requests, health requests and disconnects are recorded', async (t) => {
    const { records, handle } = await open(t);
    await handle(post(CHAT, { messages: 1 }));
    await get(handle, '/health');
    await get(handle, '/nothing');
    const brief = () =>
      records.map((one) => [
        one['http.route'],
        one['http.response.status_code'],
        one['error.type'],
      ]);
    assert.deepEqual(brief(), [
      [CHAT, 400, 'invalid_value'],
      ['/health', 200, undefined],
      ['none', 404, 'not_found'],
    ]);
    const long = { ...greedy, max_tokens: 3000, stream: true };
    const left = await handle(post(CHAT, long));
    await left.body?.cancel();
    await waitUntil(() => records.length === 4, 'the record of the disconnect');
    assert.deepEqual(brief().at(-1), [CHAT, 200, 'client_gone']);
    const leaves = new AbortController();
    const { signal } = leaves;
    const gone = handle(post(CHAT, { ...long, stream: false }, { signal }));
    leaves.abort();
    await gone;
    assert.deepEqual(brief().at(-1), [CHAT, 499, 'client_gone']);
  });

  test('each sample of /metrics has an instance label', async (t) => {
    const { handle } = await open(t);
    await handle(post(CHAT, { ...greedy, max_tokens: 2 }));
    const page = await (await get(handle, '/metrics')).text();
    const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assert.ok(samples.length > 20);
    for (const line of samples) assert.match(line, /^\w+\{wick_instance="a\\"b"[,}]/);
    assert.match(page, /^wick_http_generations\{wick_instance="a\\"b"\} 0$/m);
    assert.throws(() => createHandler(/** @type {any} */ ({ generate() {} }), { instance: '' }));
  });
});
