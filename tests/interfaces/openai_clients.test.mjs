// Unmodified clients of OpenAI's API over the network: OpenAI's client for Python, LangChain's classes, the AI SDK with its
// OpenAI provider, and curl. (handler_http.test.mjs tests OpenAI's client for Node.)

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, embedMany, generateText, Output, streamText, tool } from 'ai';
import { z } from 'zod';
import { listen } from '../../js/cli/http_server.js';
import { readEvents } from '../support/example_servers.mjs';
import { locate, root } from '../support/locate.mjs';
import { createEngine, dist, modelPath, waitUntil } from '../support/package.mjs';
import { run } from '../support/process.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const key = 'secret-key';
const question = 'Tell me a story about a fox.';
const greedy = { messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 24 };
/** Defines a tool call format, which the demo model's template lacks. */
const chatTemplate =
  '{% if false %}<tool_call>{% endif %}{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}' +
  '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}' +
  '{% for c in m.tool_calls %}{{ c.function.name }} {{ c.function.arguments }}{% endfor %}<|im_end|>\n{% endfor %}' +
  '<|im_start|>assistant\n';
const client = (/** @type {string} */ name) => join(root, 'tests/support/clients', name);

/** @type {import('../../js/index.js').Engine} */
let engine;
/** @type {Awaited<ReturnType<typeof listen>>} */
let server;
/** @type {string} */
let baseURL;
/** The engine's own output. @type {string} */
let story;
/** @type {string} */
let once;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1, chatTemplate });
  const handle = createHandler(engine, { keys: key, metricsKey: key, model: 'fox' });
  server = await listen(handle, { host: '127.0.0.1', port: 0 });
  baseURL = `${server.url}/v1`;
  const answer = await engine.chat.completions.create(/** @type {any} */ (greedy));
  story = /** @type {any} */ (answer).choices[0].message.content;
  once = await engine.generate('Once', { temperature: 0, maxTokens: 8 }).text();
});
after(async () => {
  await server.close();
  await engine.close();
});

const atRest = () =>
  waitUntil(async () => {
    const headers = { Authorization: `Bearer ${key}` };
    const page = await (await fetch(`${server.url}/metrics`, { headers })).text();
    return /^wick_http_generations 0$/m.test(page) && /\{state="running"\} 0$/m.test(page);
  }, 'all requests to end');

/** @param {string} program @param {string[]} args @returns {Promise<any>} its output, as JSON */
async function outputOf(program, args) {
  const { code, stdout, stderr } = await run(program, args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

/** @param {{kind: unknown, legs: unknown}} pet */
function assertPet({ kind, legs }) {
  assert.equal(typeof kind, 'string');
  assert.ok(Number.isInteger(legs));
}

/** @param {[string, {city: string}]} call */
function assertCall([name, { city }]) {
  assert.equal(name, 'weather');
  assert.ok(['Oslo', 'Rome'].includes(city), city);
}

const python = locate('clients');
test('OpenAI’s client for Python', { skip: python.skip }, async () => {
  const found = await outputOf(python.path, [client('openai_client.py'), baseURL, key]);
  const { chat, texts, structures, vectors, errors } = found;
  assert.deepEqual([chat.whole, chat.streamed], [story, story]);
  assert.deepEqual(chat.tokens, [24, 24]);
  assert.match(chat.request_id, /^req-/);
  assert.deepEqual(texts, {
    ...{ whole: once, streamed: once },
    ...{ response: story, response_streamed: story },
  });
  assertPet(structures.parsed);
  assertCall(structures.called);
  assert.equal(structures.finish, 'tool_calls');
  const { sizes, ...rest } = vectors;
  assert.deepEqual(rest, { same: true, models: ['fox'], retrieved: 'fox' });
  assert.ok(sizes[0] > 0 && sizes[0] === sizes[1]);
  assert.deepEqual(errors, {
    key: ['AuthenticationError', 401, 'invalid_api_key', null],
    value: ['BadRequestError', 400, 'invalid_value', 'temperature'],
    model: ['NotFoundError', 404, 'model_not_found', 'model'],
  });
  assert.equal(found.left_after, 5);
  await atRest();
});

const node24 = locate('node24');
test('LangChain’s classes', { skip: node24.skip }, async () => {
  const folder = join(root, '.toolchain/edge');
  const args = [client('langchain_client.mjs'), folder, baseURL, key];
  const { chats, structures, others, errors } = await outputOf(node24.path, args);
  assert.deepEqual([chats.whole, chats.streamed], [story, story]);
  assert.deepEqual(chats.tokens, [24, 24]);
  assert.deepEqual(chats.batch, ['string', 'string']);
  assert.equal(chats.same, true);
  assertPet(structures.parsed);
  assertCall(structures.called);
  assertCall(structures.streamed);
  assert.deepEqual([structures.isResult, structures.contentType], [true, 'string']);
  assert.equal(others.text, once);
  assert.equal(others.response, story);
  assert.ok(others.sizes[0] > 0 && others.sizes[0] === others.sizes[1] && others.isSame);
  assert.deepEqual(errors.key, [401, 'invalid_api_key']);
  await atRest();
});

describe('the AI SDK with its OpenAI provider', () => {
  const own = { temperature: 0, maxOutputTokens: 24, maxRetries: 0 };
  const providerOf = (apiKey = key) => createOpenAI({ baseURL, apiKey });
  const weather = tool({
    description: 'Of a city',
    inputSchema: z.object({ city: z.enum(['Oslo', 'Rome']) }),
  });

  for (const name of /** @type {const} */ (['chat', 'responses'])) {
    const model = (apiKey = key) => providerOf(apiKey)[name]('any');

    test(`${name}: text, streamed and not`, async () => {
      const whole = await generateText({ ...own, model: model(), prompt: question });
      assert.equal(whole.text, story);
      assert.equal(whole.usage.outputTokens, 24);
      const { textStream, usage } = streamText({ ...own, model: model(), prompt: question });
      let streamed = '';
      for await (const piece of textStream) streamed += piece;
      assert.equal(streamed, story);
      assert.equal((await usage).outputTokens, 24);
    });

    test(`${name}: objects and tool calls`, async () => {
      const asked = { ...own, maxOutputTokens: 100, model: model(), prompt: question };
      const schema = z.object({ kind: z.string(), legs: z.number().int() });
      const { output } = await generateText({ ...asked, output: Output.object({ schema }) });
      assertPet(/** @type {any} */ (output));
      const tools = { weather };
      const { toolCalls } = await generateText({ ...asked, tools, toolChoice: 'required' });
      assertCall([toolCalls[0].toolName, /** @type {any} */ (toolCalls[0].input)]);
      const streamed = streamText({ ...asked, tools, toolChoice: 'required' });
      const [call] = await streamed.toolCalls;
      assertCall([call.toolName, /** @type {any} */ (call.input)]);
    });

    test(`${name}: errors and aborted streams`, async () => {
      await assert.rejects(
        generateText({ ...own, model: model('wrong'), prompt: question }),
        (error) => APICallError.isInstance(error) && error.statusCode === 401,
      );
      const controller = new AbortController();
      const more = { maxOutputTokens: 900, abortSignal: controller.signal };
      const { textStream } = streamText({ ...own, ...more, model: model(), prompt: question });
      for await (const _ of textStream) controller.abort();
      await atRest();
    });
  }

  test('embeddings and completions', async () => {
    const provider = providerOf();
    const model = provider.embedding('any');
    const { embeddings } = await embedMany({ model, values: ['a fox', 'a hen'] });
    const wanted = await engine.embed(['a fox', 'a hen']);
    assert.deepEqual(
      embeddings,
      wanted.map((each) => Array.from(each)),
    );
    const asked = { ...own, maxOutputTokens: 8, model: provider.completion('any') };
    const { text, usage } = await generateText({ ...asked, prompt: 'Once' });
    assert.ok(text.length > 0); // the provider adds text around the prompt
    assert.ok(Number(usage.outputTokens) > 0 && Number(usage.outputTokens) <= 8);
  });
});

const curl = locate('curl');
describe('curl', { skip: curl.skip }, () => {
  /** @param {object} body @param {string[]} [more] */
  const ask = (body, more = []) => {
    const headers = ['Content-Type: application/json', `Authorization: Bearer ${key}`];
    const flags = headers.flatMap((one) => ['-H', one]);
    const args = ['-sS', '-N', ...flags, '-d', JSON.stringify(body), ...more];
    return run(curl.path, [...args, `${baseURL}/chat/completions`]);
  };

  test('receives stream events, also with compression and over HTTP/1.0', async () => {
    for (const more of [[], ['--compressed'], ['--http1.0'], ['-H', 'Expect: 100-continue']]) {
      const { code, stdout, stderr } = await ask({ ...greedy, stream: true }, more);
      assert.equal(code, 0, stderr);
      const { text, isWhole } = readEvents(stdout.toString());
      assert.deepEqual([text, isWhole], [story, true], more.join(' '));
    }
  });

  test('receives statuses and headers', async () => {
    const shown = await ask({ ...greedy, stream: true }, ['-i']);
    assert.match(shown.stdout.toString(), /^HTTP\/1.1 200 OK\r\n/);
    assert.match(shown.stdout.toString(), /^content-type: text\/event-stream/im);
    const refused = await ask({ ...greedy, temperature: -1 }, ['-f']);
    assert.equal(refused.code, 22);
    assert.match(refused.stderr, /400/);
  });

  test('a client that exits during a stream cancels its request', async () => {
    const { code } = await ask({ ...greedy, max_tokens: 900, stream: true }, ['--max-time', '0.2']);
    assert.ok(code === 28 || code === 0, `${code}`);
    await atRest();
  });
});
