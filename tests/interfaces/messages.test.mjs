// POST /v1/messages (wick-llm/openai): with Anthropic's client and an engine, and with a fake engine for tool calls,
// reasoning and failures.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import Anthropic from '@anthropic-ai/sdk';
import { madeUp } from '../support/made_up_engine.mjs';
import { createEngine, dist, modelPath, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const question = 'Tell me a story about a fox.';
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @param {any} engine @param {import('../../js/openai.js').HandlerOptions} [options] */
function serverOf(engine, options) {
  const handle = createHandler(engine, options);
  /** @param {string} apiKey */
  const clientOf = (apiKey) =>
    new Anthropic({
      ...{ apiKey, baseURL: 'http://wick.test', maxRetries: 0 },
      fetch: (url, init) => handle(new Request(any(url), any(init))),
    });
  /** @param {object} body @param {string} [path] */
  const post = async (body, path = '/v1/messages') => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    return handle(new Request(`http://wick.test${path}`, init));
  };
  return { client: clientOf('none'), clientOf, post };
}

describe('Anthropic’s client', () => {
  /** @type {import('../../js/index.js').Engine} */
  let engine;
  /** @type {ReturnType<typeof serverOf>} */
  let server;
  before(async () => {
    engine = await createEngine({ file: modelPath, threads: 1 });
    server = serverOf(engine);
  });
  after(() => engine.close());
  const messages = [{ role: /** @type {const} */ ('user'), content: question }];
  const ask = { model: 'any', messages, temperature: 0, max_tokens: 30 };

  test('a conversation is answered like a chat completion', async () => {
    const chat = await engine.chat.completions.create({
      messages: [{ role: 'system', content: 'You are Wick.\nBe kind.' }, ...messages],
      ...{ temperature: 0, max_tokens: 30 },
    });
    const system = ['You are Wick.', 'Be kind.'].map((text) => ({
      ...{ type: /** @type {const} */ ('text'), text },
      cache_control: { type: /** @type {const} */ ('ephemeral') },
    }));
    const message = await server.client.messages.create({ ...ask, system });
    assert.deepEqual(message.content, [
      { type: 'text', text: chat.choices[0].message.content, citations: null },
    ]);
    assert.match(message.id, /^msg_/);
    assert.equal(message.role, 'assistant');
    assert.equal(message.stop_reason, 'max_tokens');
    const { input_tokens, cache_read_input_tokens, output_tokens } = message.usage;
    assert.equal(input_tokens + (cache_read_input_tokens ?? 0), chat.usage.prompt_tokens);
    assert.equal(output_tokens, 30);
    const { input_tokens: counted } = await server.client.messages.countTokens({
      ...{ model: 'any', messages, system },
    });
    assert.equal(counted, chat.usage.prompt_tokens);
  });

  test('the events of a stream add up to the full response', async () => {
    for (const body of [ask, { ...ask, max_tokens: 400, stop_sequences: ['.'] }]) {
      const whole = await server.client.messages.create(body);
      const stream = server.client.messages.stream(body);
      /** @type {string[]} */
      const kinds = [];
      for await (const { type } of stream) if (type !== kinds.at(-1)) kinds.push(type);
      const { id, usage, parsed_output, ...last } = any(await stream.finalMessage());
      assert.equal(parsed_output, null);
      const { id: first, usage: wholeUsage, ...wanted } = whole;
      assert.notEqual(id, first);
      assert.deepEqual(JSON.parse(JSON.stringify(last)), JSON.parse(JSON.stringify(wanted)));
      assert.equal(usage.output_tokens, wholeUsage.output_tokens);
      assert.deepEqual(kinds, [
        ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
        ...['message_delta', 'message_stop'],
      ]);
      const end = body === ask ? ['max_tokens', null] : ['stop_sequence', '.'];
      assert.deepEqual([whole.stop_reason, whole.stop_sequence], end);
    }
  });

  test('the prompt of a stream is not tokenized again for counting', async () => {
    let calls = 0;
    const countTokens = async () => calls++;
    const { chat } = engine;
    const { client } = serverOf({ generate() {}, info: () => engine.info(), chat, countTokens });
    const { input_tokens: wanted } = (await client.messages.create(ask)).usage;
    const events = [];
    for await (const event of await client.messages.create({ ...ask, stream: true }))
      events.push(event);
    const [first] = events;
    const { usage } = any(first).message;
    const whole = await server.client.messages.countTokens({ model: 'any', messages });
    assert.equal(usage.input_tokens, whole.input_tokens);
    assert.equal(usage.output_tokens, 0);
    assert.ok(wanted <= usage.input_tokens); // cached tokens are not included
    assert.equal(calls, 0);
  });

  test('the reply continues a final assistant message', async () => {
    const begun = { role: /** @type {const} */ ('assistant'), content: 'Once upon' };
    const message = await server.client.messages.create({ ...ask, messages: [...messages, begun] });
    const chat = await engine.chat.completions.create({
      ...{ messages: [...messages, { ...begun, prefix: true }], temperature: 0, max_tokens: 30 },
    });
    assert.equal(any(message.content[0]).text, chat.choices[0].message.content);
  });

  test('the output has the requested format', async () => {
    const schema = {
      ...{ type: 'object', additionalProperties: false, required: ['legs'] },
      properties: { legs: { type: 'integer', maximum: 9, minimum: 0 } },
    };
    const message = await server.client.messages.create({
      ...ask,
      output_config: { format: { type: 'json_schema', schema } },
    });
    assert.ok(Number.isInteger(JSON.parse(any(message.content[0]).text).legs));
  });

  test('a client that disconnects cancels its request', async () => {
    const stream = await server.client.messages.create({ ...ask, max_tokens: 900, stream: true });
    for await (const event of stream) if (event.type === 'content_block_delta') break;
    await waitUntil(
      async () => (await engine.stats()).requests.running === 0,
      'the request to end',
    );
  });

  test('the key is accepted in Anthropic’s header', async () => {
    const closed = serverOf(engine, { keys: ['sesame'] });
    assert.ok(await closed.clientOf('sesame').messages.create(ask));
    await assert.rejects(
      closed.clientOf('open').messages.create(ask),
      (/** @type {any} */ error) => {
        assert.equal(error.status, 401);
        assert.equal(error.error.type, 'error');
        assert.equal(error.error.error.type, 'authentication_error');
        return true;
      },
    );
  });

  test('errors about invalid or missing fields name the field', async () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } };
    const result = { type: 'tool_result', tool_use_id: 'a' };
    /** @param {...object} content */
    const user = (...content) => [{ role: 'user', content }];
    for (const [body, name] of /** @type {[object, string][]} */ ([
      [{}, 'messages'],
      [{ messages: [] }, 'messages'],
      [{ messages: ['a'] }, 'messages[0]'],
      [{ messages: [{ role: 'system', content: 'a' }] }, 'messages[0].role'],
      [{ messages: [{ role: 'user' }] }, 'messages[0].content'],
      [{ messages: user({ type: 'text' }) }, 'messages[0].content[0]'],
      [{ messages: user({ text: 'a' }) }, 'messages[0].content[0]'],
      [{ messages: user({ type: 'toString' }) }, 'messages[0].content[0]'],
      [
        { messages: user({ type: 'tool_use', id: 'a', name: 'b', input: {} }) },
        'messages[0].content[0]',
      ],
      [{ messages: user({ type: 'tool_result' }) }, 'messages[0].content[0] has no tool_use_id'],
      [
        { messages: user({ ...result, content: [{ type: 'text', text: 5 }] }) },
        'messages[0].content[0].content[0].text',
      ],
      [{ messages: user({ ...result, content: [image] }) }, 'messages[0].content[0].content[0]'],
      [{ messages, system: [image] }, 'system[0]'],
      [{ messages: user(image) }, 'messages[0].content[0] must have a data URL'],
      [
        { messages: user({ type: 'image', source: { type: 'base64' } }) },
        'messages[0].content[0].source',
      ],
      [{ messages, max_tokens: 0 }, 'max_tokens'],
      [{ messages, max_completion_tokens: 9 }, 'max_completion_tokens'],
      [{ messages, stop_sequences: 'a' }, 'stop_sequences'],
      [{ messages, tools: [{ description: 'a' }] }, 'tools[0]'],
      [{ messages, tools: [{ name: 'a', input_schema: 5 }] }, 'tools[0].input_schema'],
      [{ messages, tool_choice: { type: 'tool' } }, 'tool_choice'],
      [{ messages, tool_choice: {} }, 'tool_choice'],
      [{ messages, thinking: { type: 'enabled', budget_tokens: -1 } }, 'thinking.budget_tokens'],
      [{ messages, mcp_servers: [{}] }, 'mcp_servers'],
      [{ messages: [{ role: 'user', content: 'a '.repeat(9000) }] }, 'context'],
    ])) {
      const response = await server.post({ model: 'any', max_tokens: 9, ...body });
      const { type, error } = any(await response.json());
      assert.equal(response.status, 400, `${name}: ${error?.message}`);
      assert.deepEqual([type, error.type], ['error', 'invalid_request_error']);
      assert.ok(error.message.includes(name), `${name}: ${error.message}`);
    }
    const counted = await server.post({ messages, max_tokens: 5 }, '/v1/messages/count_tokens');
    assert.equal(counted.status, 400);
  });
});

describe('tool calls', () => {
  const calls = [
    { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"at":"Rome"}' } },
    { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}' } },
  ];
  const message = {
    ...{ role: 'assistant', content: 'Look:', reasoning_content: 'Hm. Ah.', tool_calls: calls },
  };
  const deltas = [
    ...[{ reasoning_content: 'Hm.' }, { reasoning_content: ' Ah.' }],
    ...[{ content: 'Look' }, { content: ':' }],
    { tool_calls: [{ ...calls[0], index: 0, function: { name: 'weather', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    { tool_calls: [{ ...calls[1], index: 1 }] },
  ];
  const schema = { type: /** @type {const} */ ('object'), properties: { at: { type: 'string' } } };
  const body = any({
    ...{ model: 'any', max_tokens: 99 },
    tools: [
      { name: 'weather', description: 'It rains?', input_schema: schema },
      { type: 'bash_20250124', name: 'bash' },
    ],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    thinking: { type: 'enabled', budget_tokens: 64 },
    metadata: { user_id: 'me' },
    messages: [
      { role: 'user', content: 'How is Rome?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'x' },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'call_0', name: 'weather', input: { at: 'Rome' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_0', content: [{ type: 'text', text: 'sun' }] },
          { type: 'text', text: 'And now?' },
        ],
      },
    ],
  });
  const wanted = [
    { type: 'thinking', thinking: 'Hm. Ah.', signature: '' },
    { type: 'text', text: 'Look:', citations: null },
    { type: 'tool_use', id: 'call_a', name: 'weather', input: { at: 'Rome' } },
    { type: 'tool_use', id: 'call_b', name: 'time', input: {} },
  ];

  test('earlier calls and results become messages, and new calls become blocks', async () => {
    const { asked, engineOf } = madeUp();
    const { client, post } = serverOf(engineOf(message, deltas, 'tool_calls'));
    const whole = await client.messages.create(body);
    assert.deepEqual(whole.content, wanted);
    assert.equal(whole.stop_reason, 'tool_use');
    assert.deepEqual(whole.usage, {
      ...{ input_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 4 },
      output_tokens: 5,
    });
    assert.deepEqual(asked[0].messages, [
      { role: 'user', content: 'How is Rome?' },
      {
        ...{ role: 'assistant', content: 'I look.', reasoning_content: 'Hm.' },
        tool_calls: [
          {
            ...{ id: 'call_0', type: 'function' },
            function: { name: 'weather', arguments: '{"at":"Rome"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'sun' },
      { role: 'user', content: 'And now?' },
    ]);
    const { tools, tool_choice, parallel_tool_calls, thinking_budget_tokens } = asked[0];
    assert.deepEqual(tools, [
      {
        type: 'function',
        function: { name: 'weather', description: 'It rains?', parameters: schema },
      },
    ]);
    assert.deepEqual(
      [tool_choice, parallel_tool_calls, thinking_budget_tokens],
      ['required', false, 64],
    );
    assert.deepEqual(asked[0].chat_template_kwargs, { enable_thinking: true, thinking: true });
    const answered = await post(body);
    assert.equal(answered.headers.get('x-wick-ignored'), 'tools[1]=bash_20250124');
    const stream = client.messages.stream(body);
    const last = await stream.finalMessage();
    assert.deepEqual(JSON.parse(JSON.stringify(last.content)), wanted);
    assert.equal(last.stop_reason, 'tool_use');
    assert.equal(last.usage.output_tokens, 5);
  });

  test('a tool result may contain images', async () => {
    const { asked, engineOf } = madeUp();
    const { client, post } = serverOf(engineOf({ content: 'A fox.' }, [], 'stop'));
    const use = { type: 'tool_use', id: 'a', name: 'look', input: {} };
    const messagesWith = (/** @type {any} */ ...content) => [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] },
    ];
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBO' };
    const text = { type: 'text', text: 'Seen:' };
    await client.messages.create({
      ...body,
      messages: /** @type {any} */ (messagesWith(text, { type: 'image', source })),
    });
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } };
    const wanted = { role: 'tool', tool_call_id: 'a', content: [text, image] };
    assert.deepEqual(asked[0].messages.at(-1), wanted);
    const far = { type: 'url', url: 'https://a.test/b.png' };
    const refused = await post({
      ...body,
      messages: messagesWith(text, { type: 'image', source: far }),
    });
    const { error } = /** @type {any} */ (await refused.json());
    assert.equal(refused.status, 400);
    assert.match(error.message, /messages\[2\]\.content\[0\]\.content\[1\]/);
  });

  test('images are parts of the message, in order', async () => {
    const { asked, engineOf } = madeUp();
    const { client } = serverOf(engineOf({ content: 'A fox.' }, [], 'stop'));
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBO' };
    const content = [
      { type: 'text', text: 'What is' },
      { type: 'image', source },
      { type: 'text', text: 'this?' },
    ];
    await client.messages.create({ ...body, messages: [{ role: 'user', content }] });
    assert.deepEqual(asked[0].messages, [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          { type: 'text', text: 'this?' },
        ],
      },
    ]);
  });

  test('tool choices match those of chat completions', async () => {
    const { asked, engineOf } = madeUp();
    const { client } = serverOf(engineOf(message, deltas, 'tool_calls'));
    for (const [choice, chosen] of [
      [{ type: 'auto' }, 'auto'],
      [{ type: 'none' }, 'none'],
      [
        { type: 'tool', name: 'weather' },
        { type: 'function', function: { name: 'weather' } },
      ],
    ]) {
      await client.messages.create({
        ...body,
        tool_choice: choice,
        thinking: { type: 'disabled' },
      });
      const { tool_choice, parallel_tool_calls, chat_template_kwargs: variables } = asked.at(-1);
      assert.deepEqual([tool_choice, parallel_tool_calls], [chosen, undefined]);
      assert.deepEqual(variables, { enable_thinking: false, thinking: false });
    }
  });

  test('a truncated call has no input, and an empty reply has an empty text block', async () => {
    const cut = [{ ...calls[0], function: { name: 'weather', arguments: '{"at":"Ro' } }];
    const { engineOf } = madeUp();
    const { client } = serverOf(engineOf({ content: '', tool_calls: cut }, [], 'length'));
    const { content, stop_reason: reason } = await client.messages.create(body);
    assert.deepEqual(content, [{ type: 'tool_use', id: 'call_a', name: 'weather', input: {} }]);
    assert.equal(reason, 'max_tokens');
    const empty = serverOf(engineOf({ content: '' }, [], 'stop')).client;
    const silent = [{ type: 'text', text: '', citations: null }];
    assert.deepEqual((await empty.messages.create(body)).content, silent);
    assert.deepEqual((await empty.messages.stream(body).finalMessage()).content, silent);
  });

  test('an engine that fails ends the stream with an error', async () => {
    const { engineOf } = madeUp();
    const failing = engineOf(message, deltas, 'stop', new Error('secret'));
    const { post } = serverOf(failing, { onError() {} });
    const text = await (await post({ ...body, stream: true })).text();
    const events = text.trim().split('\n\n');
    const last = JSON.parse(String(/^event: error\ndata: (.*)$/.exec(String(events.at(-1)))?.[1]));
    assert.equal(last.error.type, 'api_error');
    assert.ok(!text.includes('secret'));
  });
});
