// POST /v1/responses (wick-llm/openai): with OpenAI's client and an engine, and with a fake engine for tool calls,
// reasoning and failures.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import OpenAI from 'openai';
import { ResponseEvents } from '../../js/handler/response_events.js';
import { madeUp } from '../support/made_up_engine.mjs';
import { createEngine, dist, modelPath, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const PATH = '/v1/responses';
const question = 'Tell me a story about a fox.';
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

/** @param {any} engine */
function serverOf(engine) {
  const handle = createHandler(engine);
  const client = new OpenAI({
    ...{ apiKey: 'none', baseURL: 'http://wick.test/v1', maxRetries: 0 },
    fetch: (url, init) => handle(new Request(any(url), any(init))),
  });
  const post = async (/** @type {object} */ body) => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    return handle(new Request(`http://wick.test${PATH}`, init));
  };
  return { client, post };
}

/** @param {Response} response @returns {Promise<any[]>} the events, whose names must equal their types */
async function eventsOf(response) {
  assert.equal(response.status, 200);
  assert.match(String(response.headers.get('content-type')), /^text\/event-stream/);
  const parts = (await response.text()).split('\n\n');
  assert.equal(parts.pop(), '');
  return parts.map((part, index) => {
    const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? assert.fail(part);
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    assert.equal(event.sequence_number, index);
    return event;
  });
}

/** @param {any} response @returns {any} the same without members that differ each time */
const constant = (response) =>
  JSON.parse(JSON.stringify(response), (key, value) =>
    ['id', 'created_at', 'output_text', 'output_parsed', 'parsed', 'parsed_arguments'].includes(key)
      ? undefined
      : value,
  );

describe('OpenAI’s client', () => {
  /** @type {import('../../js/index.js').Engine} */
  let engine;
  /** @type {ReturnType<typeof serverOf>} */
  let server;
  before(async () => {
    engine = await createEngine({ file: modelPath, threads: 1 });
    server = serverOf(engine);
  });
  after(() => engine.close());

  test('a prompt is answered like a chat completion', async () => {
    const messages = [
      { role: /** @type {const} */ ('system'), content: 'You are Wick.' },
      { role: /** @type {const} */ ('user'), content: question },
    ];
    const chat = await engine.chat.completions.create({ messages, temperature: 0, max_tokens: 30 });
    const response = await server.client.responses.create({
      ...{ model: 'any', input: question, instructions: 'You are Wick.', temperature: 0 },
      ...{ max_output_tokens: 30, metadata: { a: 'b' }, store: true },
    });
    assert.equal(response.output_text, chat.choices[0].message.content);
    assert.equal(response.status, 'incomplete');
    assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' });
    assert.deepEqual(response.metadata, { a: 'b' });
    assert.match(response.id, /^resp_/);
    assert.equal(response.usage?.input_tokens, chat.usage.prompt_tokens);
    assert.equal(response.usage?.output_tokens, 30);
    assert.equal(response.usage?.total_tokens, chat.usage.prompt_tokens + 30);
    const items = await server.client.responses.create({
      ...{ model: 'any', temperature: 0, max_output_tokens: 30 },
      input: [
        { role: 'developer', content: 'You are Wick.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: question }] },
      ],
    });
    assert.equal(items.output_text, response.output_text);
  });

  test('the events of a stream add up to the full response', async () => {
    for (const body of [
      { model: 'any', input: 'What is Wick?', temperature: 0 },
      { model: 'any', input: question, temperature: 0, max_output_tokens: 12 },
    ]) {
      const whole = await server.client.responses.create(body);
      const stream = server.client.responses.stream(body);
      let text = '';
      const kinds = [];
      for await (const event of stream) {
        kinds.push(event.type);
        if (event.type === 'response.output_text.delta') text += event.delta;
      }
      const last = constant(await stream.finalResponse());
      last.usage.input_tokens_details = constant(whole).usage.input_tokens_details;
      assert.deepEqual(last, constant(whole));
      assert.equal(text, whole.output_text);
      const deltas = kinds.lastIndexOf('response.output_text.delta');
      assert.deepEqual(kinds.slice(0, 5), [
        ...['response.created', 'response.in_progress', 'response.output_item.added'],
        ...['response.content_part.added', 'response.output_text.delta'],
      ]);
      assert.deepEqual(kinds.slice(deltas + 1), [
        ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
        `response.${whole.status}`,
      ]);
    }
  });

  test('the output has the requested format', async () => {
    const schema = {
      ...{ type: 'object', additionalProperties: false, required: ['animal', 'legs'] },
      properties: { animal: { enum: ['fox', 'hen'] }, legs: { type: 'integer', maximum: 9 } },
    };
    const format = {
      type: /** @type {const} */ ('json_schema'),
      name: 'animal',
      schema,
      strict: true,
    };
    const { output_text: text } = await server.client.responses.create({
      ...{ model: 'any', input: question, text: { format }, max_output_tokens: 60 },
    });
    const { animal, legs, ...more } = JSON.parse(text);
    assert.ok(['fox', 'hen'].includes(animal) && Number.isInteger(legs));
    assert.deepEqual(more, {});
  });

  test('tokens have logprobs if they are requested, streamed or not', async () => {
    const { client } = server;
    const body = any({ model: 'any', input: question, temperature: 0, max_output_tokens: 12 });
    const include = ['message.output_text.logprobs'];
    for (const [more, count] of /** @type {[any, number][]} */ ([
      [{ include }, 0],
      [{ top_logprobs: 3, include }, 3],
      [{ top_logprobs: 2 }, 2],
    ])) {
      const whole = await client.responses.create({ ...body, ...more });
      const [{ content }] = any(whole.output);
      const { text, logprobs } = content[0];
      assert.equal(logprobs.length, 12);
      assert.equal(logprobs.map((/** @type {any} */ { token }) => token).join(''), text);
      for (const { logprob, top_logprobs: top, bytes, token } of logprobs) {
        assert.ok(logprob <= 0 && top.length === count);
        if (count > 0) assert.deepEqual(top[0], { token, logprob, bytes }); // the most likely token
      }
      const reports = [];
      let done;
      for await (const one of any(
        await client.responses.create({ ...body, ...more, stream: true }),
      )) {
        if (one.type === 'response.output_text.delta') reports.push(...one.logprobs);
        if (one.type === 'response.output_text.done') done = one.logprobs;
      }
      assert.deepEqual(reports, logprobs);
      assert.deepEqual(done, logprobs);
    }
    const silent = await client.responses.create({ ...body, include: [], top_logprobs: 0 });
    assert.deepEqual(any(silent.output)[0].content[0].logprobs, []);
  });

  test('a client that disconnects cancels its request', async () => {
    const stream = await server.client.responses.create({
      ...{ model: 'any', input: question, stream: true },
    });
    for await (const event of stream) if (event.type === 'response.output_text.delta') break;
    await waitUntil(
      async () => (await engine.stats()).requests.running === 0,
      'the request to end',
    );
  });

  test('errors about invalid or missing fields name the field', async () => {
    const tool = { type: 'function', name: 'f', parameters: {} };
    const tools = [tool];
    for (const [body, param, code] of /** @type {[object, string, string][]} */ ([
      [{}, 'input', 'missing_required_parameter'],
      [{ input: [] }, 'input', 'invalid_value'],
      [{ input: 5 }, 'input', 'invalid_value'],
      [{ input: ['a'] }, 'input[0]', 'invalid_value'],
      [{ input: [{ role: 'tool', content: 'a' }] }, 'input[0].role', 'invalid_value'],
      [{ input: [{ role: 'user' }] }, 'input[0].content', 'invalid_value'],
      [
        { input: [{ role: 'user', content: [{ text: 'a' }] }] },
        'input[0].content[0]',
        'invalid_value',
      ],
      [{ input: [{ type: 'toString' }] }, 'input[0]', 'unsupported_value'],
      [{ input: [{ type: 'item_reference', id: 'a' }] }, 'input[0]', 'unsupported_value'],
      [
        { input: [{ role: 'user', content: [{ type: 'input_image' }] }] },
        ...['input[0].content[0]', 'unsupported_value'],
      ],
      [
        { input: [{ type: 'function_call', call_id: 'a', name: 'b' }] },
        'input[0].arguments',
        'invalid_value',
      ],
      [
        { input: [{ type: 'function_call_output', call_id: 'a' }] },
        'input[0].output',
        'invalid_value',
      ],
      [{ input: 'a', max_tokens: 5 }, 'max_tokens', 'unknown_parameter'],
      [{ input: 'a', max_output_tokens: 0 }, 'max_output_tokens', 'invalid_value'],
      [{ input: 'a', previous_response_id: 'b' }, 'previous_response_id', 'unsupported_parameter'],
      [{ input: 'a', background: true }, 'background', 'unsupported_parameter'],
      [{ input: 'a', include: ['message.input_image'] }, 'include', 'unsupported_parameter'],
      [{ input: 'a', reasoning: { effort: 'much' } }, 'reasoning.effort', 'invalid_value'],
      [{ input: 'a', truncation: 'some' }, 'truncation', 'unsupported_parameter'],
      [{ input: 'a', tools: [{ type: 5 }] }, 'tools[0]', 'invalid_value'],
      [{ input: 'a', tools: [{ ...tool, strict: 1 }] }, 'tools[0].strict', 'invalid_value'],
      [{ input: 'a', tools, tool_choice: 'maybe' }, 'tool_choice', 'invalid_value'],
      [{ input: 'a', text: { format: { type: 'xml' } } }, 'text.format', 'invalid_value'],
      [
        { input: 'a', text: { format: { type: 'json_schema', name: 'b' } } },
        ...['text.format.schema', 'invalid_value'],
      ],
      [{ input: 'a', text: { verbosity: 'low' } }, 'text.verbosity', 'unsupported_parameter'],
      [
        { input: 'a', text: { format: { type: 'json_schema', name: 'b', schema: { type: 'c' } } } },
        ...['text', 'invalid_value'],
      ],
      [{ input: 'a '.repeat(9000) }, 'input', 'context_length_exceeded'],
    ])) {
      const response = await server.post(body);
      const { error } = any(await response.json());
      assert.deepEqual(
        [response.status, error.param, error.code],
        [400, param, code],
        error.message,
      );
    }
  });
});

test('the output of a call may contain images', async () => {
  const { asked, engineOf } = madeUp();
  const { client } = serverOf(engineOf({ content: 'A fox.' }, [], 'stop'));
  const image_url = 'data:image/png;base64,iVBO';
  const output = [{ type: 'input_image', image_url }];
  const input = [
    { role: 'user', content: 'Look.' },
    { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output },
  ];
  await client.responses.create(any({ model: 'any', input }));
  const content = [{ type: 'image_url', image_url: { url: image_url } }];
  assert.deepEqual(asked[0].messages.at(-1), { role: 'tool', tool_call_id: 'a', content });
});

test('images are parts of the message', async () => {
  const { asked, engineOf } = madeUp();
  const { client, post } = serverOf(engineOf({ content: 'A fox.' }, [], 'stop'));
  const url = 'data:image/png;base64,iVBO';
  const input = (/** @type {string} */ image_url) => [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url, detail: 'auto' },
      ],
    },
  ];
  await client.responses.create(any({ model: 'any', input: input(url) }));
  assert.deepEqual(asked[0].messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ]);
  const refused = await post({ input: input('https://a.test/b.png') });
  const { error } = any(await refused.json());
  assert.deepEqual([refused.status, error.param], [400, 'input[0].content[1]']);
});

describe('tool calls', () => {
  const calls = [
    { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"at":"Rome"}' } },
    { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}' } },
  ];
  const message = {
    role: 'assistant',
    content: 'Look:',
    reasoning_content: 'Hm. Ah.',
    tool_calls: calls,
  };
  const deltas = [
    ...[
      { reasoning_content: 'Hm.' },
      { reasoning_content: ' Ah.' },
      { content: 'Look' },
      { content: ':' },
    ],
    { tool_calls: [{ ...calls[0], index: 0, function: { name: 'weather', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    { tool_calls: [{ ...calls[1], index: 1 }] },
  ];
  const tools = [
    { type: /** @type {const} */ ('function'), name: 'weather', description: 'It rains?' },
    { type: /** @type {const} */ ('function'), name: 'time', parameters: {}, strict: null },
  ].map((tool) => ({ parameters: null, strict: null, ...tool }));
  const wanted = [
    {
      type: 'reasoning',
      status: 'completed',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Hm. Ah.' }],
    },
    {
      ...{ type: 'message', status: 'completed', role: 'assistant' },
      content: [{ type: 'output_text', text: 'Look:', annotations: [], logprobs: [] }],
    },
    {
      type: 'function_call',
      status: 'completed',
      call_id: 'call_a',
      name: 'weather',
      arguments: '{"at":"Rome"}',
    },
    {
      type: 'function_call',
      status: 'completed',
      call_id: 'call_b',
      name: 'time',
      arguments: '{}',
    },
  ];

  test('are output items, streamed or not, after reasoning and text', async () => {
    const { asked, engineOf } = madeUp();
    const { client, post } = serverOf(engineOf(message, deltas, 'tool_calls'));
    const body = {
      model: 'any',
      input: 'How is it?',
      tools,
      tool_choice: /** @type {const} */ ('auto'),
    };
    const whole = await client.responses.create(body);
    assert.equal(whole.status, 'completed');
    assert.equal(whole.model, 'Made up');
    assert.deepEqual(constant(whole.output), wanted);
    assert.deepEqual(whole.usage, {
      ...{ input_tokens: 9, input_tokens_details: { cached_tokens: 4 } },
      ...{ output_tokens: 5, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 14 },
    });
    const events = await eventsOf(await post({ ...body, stream: true }));
    assert.deepEqual(constant(events.at(-1)?.response), constant(whole));
    const short = events.map(({ type, output_index: at, delta, name, text, arguments: args }) =>
      [type.replace('response.', ''), at, delta ?? text ?? args, name]
        .filter((one) => one !== undefined)
        .join(' '),
    );
    assert.deepEqual(short, [
      ...['created', 'in_progress'],
      ...['output_item.added 0', 'content_part.added 0', 'reasoning_text.delta 0 Hm.'],
      ...['reasoning_text.delta 0  Ah.', 'reasoning_text.done 0 Hm. Ah.', 'content_part.done 0'],
      ...['output_item.done 0', 'output_item.added 1', 'content_part.added 1'],
      ...['output_text.delta 1 Look', 'output_text.delta 1 :', 'output_text.done 1 Look:'],
      ...['content_part.done 1', 'output_item.done 1', 'output_item.added 2'],
      ...['function_call_arguments.delta 2 {"at":', 'function_call_arguments.delta 2 "Rome"}'],
      ...['function_call_arguments.done 2 {"at":"Rome"} weather', 'output_item.done 2'],
      ...['output_item.added 3', 'function_call_arguments.delta 3 {}'],
      ...['function_call_arguments.done 3 {} time', 'output_item.done 3', 'completed'],
    ]);
    assert.deepEqual(asked[0], {
      messages: [{ role: 'user', content: 'How is it?' }],
      tools: [
        { type: 'function', function: { name: 'weather', description: 'It rains?' } },
        { type: 'function', function: { name: 'time', parameters: {} } },
      ],
      ...{ tool_choice: 'auto', salt: undefined },
    });
    assert.deepEqual(asked[1].stream_options, { include_usage: true });
  });

  test('results of calls become messages', async () => {
    const { asked, engineOf } = madeUp();
    const { client } = serverOf(engineOf({ role: 'assistant', content: 'Dry.' }, [], 'stop'));
    const response = await client.responses.create({
      model: 'any',
      input: any([
        { role: 'user', content: 'How is it?' },
        ...wanted.map((item, index) => ({ ...item, id: `id_${index}` })),
        { type: 'function_call_output', call_id: 'call_a', output: 'dry' },
        {
          type: 'function_call_output',
          call_id: 'call_b',
          output: [{ type: 'input_text', text: 'noon' }],
        },
        { type: 'function_call', call_id: 'call_c', name: 'time', arguments: '{}' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      ]),
    });
    assert.equal(response.output_text, 'Dry.');
    assert.deepEqual(asked[0].messages, [
      { role: 'user', content: 'How is it?' },
      { role: 'assistant', content: 'Look:', reasoning_content: 'Hm. Ah.', tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_a', content: 'dry' },
      { role: 'tool', tool_call_id: 'call_b', content: 'noon' },
      { role: 'assistant', content: '', tool_calls: [{ ...calls[1], id: 'call_c' }] },
      { role: 'assistant', content: 'No.' },
    ]);
  });

  test('a truncated call is incomplete', async () => {
    const { engineOf } = madeUp();
    const { post } = serverOf(engineOf(message, deltas.slice(0, 6), 'length'));
    const events = await eventsOf(await post({ input: 'a', stream: true }));
    const { type, response } = events.at(-1);
    assert.equal(type, 'response.incomplete');
    const { status, arguments: args } = response.output.at(-1);
    assert.deepEqual([status, args], ['incomplete', '{"at":']);
  });

  test('an empty answer has a message', async () => {
    const { engineOf } = madeUp();
    const { client } = serverOf(engineOf({ role: 'assistant', content: '' }, [], 'stop'));
    const body = { model: 'any', input: 'a' };
    const whole = await client.responses.create(body);
    const { output } = await client.responses.stream(body).finalResponse();
    assert.deepEqual(constant(output), constant(whole.output));
    assert.equal(whole.output.length, 1);
  });

  test('logprobs of a message include its tokens, but not reasoning and calls', () => {
    const events = new ResponseEvents({});
    const one = (/** @type {string} */ token) => ({
      token,
      logprob: -1,
      bytes: [],
      top_logprobs: [],
    });
    const add = (/** @type {object} */ delta, /** @type {string[]} */ ...tokens) =>
      events.add({ choices: [{ delta, logprobs: { content: tokens.map(one) } }] });
    add({ reasoning_content: 'Hm.' }, 'H', 'm.');
    add({}, '</think>'); // a token without text
    add({ content: 'Lo' }, 'Lo');
    add({}, 'o');
    add({ content: 'ok' }, 'k');
    add({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }, '{}');
    events.add({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] });
    const usage = { prompt_tokens_details: {} };
    events.add({ choices: [], usage });
    const { response } = /** @type {any} */ (events.take().at(-1));
    const tokens = response.output.map((/** @type {any} */ { content }) =>
      content?.[0].logprobs?.map((/** @type {any} */ { token }) => token),
    );
    assert.deepEqual(tokens, [undefined, ['Lo', 'o', 'k'], undefined]);
  });

  test('an engine failure is the last event', async () => {
    const { engineOf } = madeUp();
    const failure = Object.assign(new Error('It crashed'), {
      name: 'WickError',
      code: 'WORKER_CRASHED',
    });
    const { post } = serverOf(engineOf(message, deltas.slice(0, 3), 'stop', failure));
    const events = await eventsOf(await post({ input: 'a', stream: true }));
    const { type, response } = events.at(-1);
    assert.equal(type, 'response.failed');
    assert.equal(response.status, 'failed');
    assert.deepEqual(response.error, { code: 'server_error', message: 'It crashed' });
    assert.equal(events.filter((event) => event.type === 'response.completed').length, 0);
  });
});
