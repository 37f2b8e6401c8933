// Tools and reasoning in chat completions: a grammar forces the demo model's output, and the test's template determines how
// it is parsed. The grammar is added to the message to the worker, because a chat has no option for it.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { dist, hasCode, modelPath, openEngine } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** The model's next output. @type {string | undefined} */
let forced;
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  if (message.type === 'generate' && forced !== undefined) {
    const text = `root ::= ${JSON.stringify(forced)}`;
    message.settings.grammar = { kind: 1, text, isWhole: true };
  }
  return postMessage.call(this, message, ...more);
};

const tools = /** @type {const} */ ([
  {
    type: 'function',
    function: {
      name: 'weather',
      description: 'Of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
]);
const messages = [{ role: 'user', content: 'Is it cold in Oslo?' }];

/** A template whose source contains the tags but never writes them. */
const marks = '{% if false %}<tool_call>{% endif %}';
const turns =
  '{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}' +
  '{% for m in messages %}<{{ m.role }}>{{ m.content }}' +
  '{% for c in m.tool_calls %}({{ c.function.name }} {{ c.function.arguments }}){% endfor %}' +
  '{{ m.tool_call_id }}{% endfor %}<assistant>';
const plain = `${marks}${turns}`;
const thinking = `${plain}{% if false %}<think></think>{% endif %}`;

const call = (/** @type {string} */ city) =>
  `<tool_call>{"name": "weather", "arguments": {"city": "${city}"}}</tool_call>`;

/** @param {import('node:test').TestContext} t @param {string} chatTemplate */
const open = (t, chatTemplate) => openEngine(t, { file: modelPath, chatTemplate });

/** @typedef {import('../../js/index.js').Engine} Engine */

/** @param {Engine} engine @param {string} text the model's output @param {object} [more] */
async function complete(engine, text, more) {
  forced = text;
  try {
    const body = /** @type {any} */ ({ messages, tools, temperature: 0, ...more });
    return /** @type {any} */ (await engine.chat.completions.create(body));
  } finally {
    forced = undefined;
  }
}

/** @param {Engine} engine @param {string} text @param {object} [more] */
async function choiceOf(engine, text, more) {
  const { choices } = await complete(engine, text, more);
  return choices[0];
}

/** @param {AsyncIterable<any>} stream */
async function deltasOf(stream) {
  const choices = [];
  for await (const chunk of stream) choices.push(chunk.choices[0]);
  const finish = choices.pop().finish_reason;
  assert.deepEqual(choices.shift().delta, { role: 'assistant', content: '' });
  for (const one of choices) assert.equal(one.finish_reason, null);
  return { finish, deltas: choices.map(({ delta }) => delta) };
}

/** Combines deltas into a message, like openai-node. @param {any[]} deltas */
function messageOf(deltas) {
  /** @type {any} */
  const message = { content: '' };
  for (const { content, reasoning_content: thought, tool_calls: calls = [] } of deltas) {
    message.content += content ?? '';
    if (thought) message.reasoning_content = (message.reasoning_content ?? '') + thought;
    for (const { index, id, type, function: part } of calls) {
      message.tool_calls ??= [];
      message.tool_calls[index] ??= { id, type, function: { ...part, arguments: '' } };
      message.tool_calls[index].function.arguments += part.arguments;
    }
  }
  return message;
}

/** Removes members that differ between answers. @param {any} message */
function plainOf({ role, refusal, ...message }) {
  const calls = message.tool_calls?.map((/** @type {any} */ { id, ...one }) => one);
  return calls ? { ...message, tool_calls: calls } : message;
}

const oslo = { type: 'function', function: { name: 'weather', arguments: '{"city": "Oslo"}' } };
const lima = { type: 'function', function: { name: 'weather', arguments: '{"city": "Lima"}' } };

describe('parsing of output', () => {
  /** Name, template, output, message, finish reason. @type {any[][]} */
  const cases = [
    ['one call', plain, call('Oslo'), { content: '', tool_calls: [oslo] }, 'tool_calls'],
    [
      ...['content and two calls', plain, `Let me look.\n${call('Oslo')}\n${call('Lima')}`],
      ...[{ content: 'Let me look.', tool_calls: [oslo, lima] }, 'tool_calls'],
    ],
    ['no call', plain, 'It is  cold.\n\n ', { content: 'It is  cold.\n\n ' }, 'stop'],
    [
      ...['reasoning and content', thinking, '<think>\nHm, é?\n</think>\n\nCold.'],
      ...[{ content: 'Cold.', reasoning_content: 'Hm, é?' }, 'stop'],
    ],
    [
      ...['reasoning and a call', thinking, `<think>Hm.</think>${call('Oslo')}`],
      ...[{ content: '', reasoning_content: 'Hm.', tool_calls: [oslo] }, 'tool_calls'],
    ],
    [
      ...['reasoning opened by the template', `${thinking}<think>\n`, 'Hm.\n</think>\nCold.'],
      ...[{ content: 'Cold.', reasoning_content: 'Hm.' }, 'stop'],
    ],
    [
      ...['an invalid call', plain, 'Éh. <tool_call>{"name": "weather", "arguments": {?} end'],
      ...[{ content: 'Éh. <tool_call>{"name": "weather", "arguments": {?} end' }, 'stop'],
    ],
    [
      ...['an incomplete call', plain, '<tool_call>{"name": "weather", "arguments": {"city": "Os'],
      ...[{ content: '<tool_call>{"name": "weather", "arguments": {"city": "Os' }, 'stop'],
    ],
    [
      ...['a call before an invalid one', plain],
      `${call('Oslo')}<tool_call>{"name": "weather", "arguments": {]`,
      { content: '<tool_call>{"name": "weather", "arguments": {]', tool_calls: [oslo] },
      'stop',
    ],
  ];

  for (const [name, template, text, message, finish] of cases) {
    test(`${name}, streamed and not`, async (t) => {
      const engine = await open(t, template);
      const whole = await choiceOf(engine, text);
      assert.deepEqual([plainOf(whole.message), whole.finish_reason], [message, finish]);
      const ids = (whole.message.tool_calls ?? []).map((/** @type {any} */ { id }) => id);
      for (const id of ids) assert.match(id, /^[a-z0-9]{9}$/);
      assert.equal(new Set(ids).size, ids.length);
      const streamed = await deltasOf(await complete(engine, text, { stream: true }));
      assert.equal(streamed.finish, finish);
      const joined = plainOf(messageOf(streamed.deltas));
      assert.equal(joined.content, message.content);
      assert.equal(joined.reasoning_content, message.reasoning_content);
      if (finish === 'tool_calls') assert.deepEqual(joined.tool_calls, message.tool_calls);
    });
  }

  test('a streamed call begins with its id and name; its arguments arrive in pieces', async (t) => {
    const engine = await open(t, plain);
    const text = `Look.${call('Oslo, or a city whose name has many more letters')}${call('Lima')}`;
    const { deltas } = await deltasOf(await complete(engine, text, { stream: true }));
    const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
    const heads = calls.filter(({ id }) => id !== undefined);
    assert.deepEqual(
      heads.map(({ index, type, function: part }) => [index, type, part]),
      [0, 1].map((index) => [index, 'function', { name: 'weather', arguments: '' }]),
    );
    assert.equal(calls[0], heads[0]);
    const first = calls.filter(({ index, id }) => index === 0 && id === undefined);
    assert.ok(first.length > 3, `${first.length} pieces`);
    for (const piece of first) assert.deepEqual(Object.keys(piece), ['index', 'function']);
  });

  test('a truncated reply keeps the written part of its call', async (t) => {
    const engine = await open(t, plain);
    const whole = await complete(engine, call('Oslo'));
    const cut = { max_tokens: whole.usage.completion_tokens - 12 };
    const { message, finish_reason } = await choiceOf(engine, call('Oslo'), cut);
    assert.equal(finish_reason, 'length');
    const [{ function: part }] = message.tool_calls;
    assert.equal(part.name, 'weather');
    assert.ok(oslo.function.arguments.startsWith(part.arguments));
    assert.ok(part.arguments.length < oslo.function.arguments.length);
    assert.equal(message.content, '');
  });

  test('each of n choices has its calls', async (t) => {
    const engine = await open(t, plain);
    const { choices } = await complete(engine, call('Oslo'), { n: 3 });
    assert.equal(choices.length, 3);
    for (const { message } of choices) assert.deepEqual(plainOf(message).tool_calls, [oslo]);
  });

  test('logprobs include all tokens, also those of a call', async (t) => {
    const engine = await open(t, plain);
    const { usage, choices } = await complete(engine, call('Oslo'), { logprobs: true });
    const { content } = choices[0].logprobs;
    assert.equal(content.length, usage.completion_tokens);
    const text = content.map((/** @type {any} */ { token }) => token).join('');
    assert.ok(text.startsWith('<tool_call>'), text);
    const stream = await complete(engine, call('Oslo'), { logprobs: true, stream: true });
    const streamed = [];
    for await (const chunk of stream) {
      streamed.push(...(chunk.choices[0].logprobs?.content ?? []));
    }
    assert.deepEqual(streamed, content);
  });
});

describe('messages in the prompt', () => {
  /** @param {Engine} engine @param {object} body */
  async function promptTokens(engine, body) {
    const { usage } = await complete(engine, 'a', body);
    return usage.prompt_tokens;
  }

  test('tools, calls and results are rendered by the template', async (t) => {
    const engine = await open(t, plain);
    const history = [
      ...messages,
      { role: 'assistant', content: null, tool_calls: [{ id: 'a1', ...oslo }] },
      { role: 'tool', tool_call_id: 'a1', content: '-3 °C' },
    ];
    const text = await engine.applyTemplate(/** @type {any} */ (history), {
      variables: { tools },
    });
    assert.equal(
      text,
      '[weather]<user>Is it cold in Oslo?<assistant>(weather {"city": "Oslo"})<tool>-3 °Ca1<assistant>',
    );
    const asked = await promptTokens(engine, { messages: history });
    assert.equal(asked, await engine.countTokens(text));
    const without = await promptTokens(engine, { messages: history, tools: undefined });
    assert.equal(without, await engine.countTokens(text.replace('[weather]', '')));
  });

  test('with tool_choice none, or without tools, calls are text', async (t) => {
    const engine = await open(t, plain);
    const bare = await promptTokens(engine, { tools: undefined });
    for (const more of [
      { tool_choice: 'none' },
      { tools: undefined },
      { tools: null },
      { tools: [] },
    ]) {
      const { message, finish_reason } = await choiceOf(engine, ` ${call('Oslo')}\n`, more);
      assert.deepEqual(plainOf(message), { content: ` ${call('Oslo')}\n` });
      assert.equal(finish_reason, 'stop');
      assert.equal(await promptTokens(engine, more), bare);
    }
    const auto = await choiceOf(engine, call('Oslo'), { tool_choice: 'auto' });
    assert.equal(auto.finish_reason, 'tool_calls');
  });

  test('reasoning is content if the template does not support it', async (t) => {
    const engine = await open(t, turns);
    const text = '\n<think>Hm.</think>\n\nCold.';
    const { message } = await choiceOf(engine, text, { tools: undefined });
    assert.deepEqual(plainOf(message), { content: text });
    const stream = await complete(engine, text, { tools: undefined, stream: true });
    const { deltas } = await deltasOf(stream);
    assert.deepEqual(Object.keys(Object.assign({}, ...deltas)), ['content']);
    const other = await open(t, thinking);
    const split = await choiceOf(other, text, { tools: undefined });
    assert.deepEqual(plainOf(split.message), { content: 'Cold.', reasoning_content: 'Hm.' });
  });

  test('errors about invalid fields name the field', async (t) => {
    const engine = await open(t, plain);
    for (const more of [
      { tool_choice: 'sometimes' },
      { tool_choice: { type: 'function', function: {} } },
      { tool_choice: { type: 'function', function: { name: 'other' } } },
      { tool_choice: 'required', tools: [] },
      { parallel_tool_calls: 'no' },
    ]) {
      const [name] = Object.keys(more);
      await assert.rejects(complete(engine, 'a', more), (error) => {
        assert.match(/** @type {Error} */ (error).message, new RegExp(name));
        return hasCode('ARG')(error);
      });
    }
    for (const wrong of [{}, 'weather', [5], [{ type: 'x' }], [{ type: 'function' }]]) {
      await assert.rejects(complete(engine, 'a', { tools: wrong }), hasCode('ARG'));
    }
    const twice = { tools: [...tools, ...tools] };
    const second = tools.length;
    await assert.rejects(complete(engine, 'a', twice), (error) => {
      const { message } = /** @type {Error} */ (error);
      assert.ok(message.startsWith(`tools[${second}] has the same name as tools[0]`), message);
      return hasCode('ARG')(error);
    });
    const without = { tools: undefined, parallel_tool_calls: false };
    assert.equal((await choiceOf(engine, 'a', without)).message.content, 'a');
  });
});

describe('the handler', () => {
  /** @param {Engine} engine @param {string} text @param {object} [more] */
  async function post(engine, text, more) {
    forced = text;
    const body = JSON.stringify({ messages, tools, temperature: 0, ...more });
    const headers = { 'Content-Type': 'application/json' };
    const address = 'http://localhost/v1/chat/completions';
    try {
      const answer = await createHandler(engine)(
        new Request(address, { method: 'POST', headers, body }),
      );
      assert.equal(answer.status, 200);
      return await answer.text();
    } finally {
      forced = undefined;
    }
  }

  test('responds with calls, streamed and not', async (t) => {
    const engine = await open(t, thinking);
    const text = `<think>Hm.</think>${call('Oslo')}${call('Lima')}`;
    const message = { content: '', reasoning_content: 'Hm.', tool_calls: [oslo, lima] };
    const [whole] = JSON.parse(await post(engine, text)).choices;
    assert.deepEqual([plainOf(whole.message), whole.finish_reason], [message, 'tool_calls']);
    const events = (await post(engine, text, { stream: true })).split('\n\n').slice(0, -2);
    const choices = events.map((event) => JSON.parse(event.slice('data: '.length)).choices[0]);
    assert.equal(choices.at(-1).finish_reason, 'tool_calls');
    assert.deepEqual(plainOf(messageOf(choices.map(({ delta }) => delta))), message);
  });

  test('accepts tool results', async (t) => {
    const engine = await open(t, plain);
    const history = [
      ...messages,
      { role: 'assistant', content: null, tool_calls: [{ id: 'a1', ...oslo }] },
      { role: 'tool', tool_call_id: 'a1', content: '-3' },
    ];
    const { choices, usage } = JSON.parse(await post(engine, 'Cold.', { messages: history }));
    assert.deepEqual(plainOf(choices[0].message), { content: 'Cold.' });
    const direct = await complete(engine, 'Cold.', { messages: history });
    assert.equal(usage.prompt_tokens, direct.usage.prompt_tokens);
  });
});
