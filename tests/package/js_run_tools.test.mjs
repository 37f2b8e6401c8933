// engine.runTools: a grammar forces the demo model's output, reply by reply, and the loop runs the called tools. The grammar
// is added to the message to the worker, because a chat has no option for it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { hasCode, modelPath, openEngine } from '../support/package.mjs';

/** The model's output, reply by reply. @type {string[]} */
let replies = [];
/** The conversations passed to the model. @type {any[]} */
let asked = [];
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  if (message.type === 'generate') {
    asked.push(structuredClone(message.input));
    const text = replies.shift();
    if (text !== undefined) {
      const whole = `root ::= ${JSON.stringify(text)}`;
      message.settings.grammar = { kind: 1, text: whole, isWhole: true };
    }
  }
  return postMessage.call(this, message, ...more);
};

const chatTemplate =
  '{% if false %}<tool_call>{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>';
const messages = [{ role: 'user', content: 'Is it cold?' }];
const schema = { type: 'object', properties: { city: { type: 'string' } } };

const call = (/** @type {string} */ city, name = 'weather') =>
  `<tool_call>{"name": "${name}", "arguments": {"city": "${city}"}}</tool_call>`;

/**
 * @param {import('node:test').TestContext} t
 * @param {string[]} texts
 * @param {any} options
 */
async function run(t, texts, options) {
  const engine = await openEngine(t, { file: modelPath, chatTemplate });
  replies = [...texts];
  asked = [];
  return engine.runTools({ messages, temperature: 0, ...options });
}

/** @param {(argument: any, call: any) => unknown} body */
const weather = (body) => ({ weather: { description: 'Of a city', schema, run: body } });

describe('runTools', () => {
  test('runs the called tools, adds their results, and ends with the answer', async (t) => {
    /** @type {any[]} */
    const seen = [];
    const tools = weather((argument, { id, name, signal }) => {
      seen.push([argument, name, signal, typeof id]);
      return argument.city === 'Oslo' ? { degrees: -3 } : 'warm';
    });
    const given = [...messages];
    const result = await run(t, [`Hm.${call('Oslo')}`, call('Lima'), 'Cold.'], {
      tools,
      messages: given,
    });
    assert.deepEqual(seen, [
      [{ city: 'Oslo' }, 'weather', undefined, 'string'],
      [{ city: 'Lima' }, 'weather', undefined, 'string'],
    ]);
    assert.deepEqual(given, messages);
    assert.deepEqual(
      [result.message.content, result.finish_reason, result.rounds],
      ['Cold.', 'stop', 3],
    );
    assert.deepEqual(
      result.messages.map(({ role, content }) => [role, content]),
      [
        ['user', 'Is it cold?'],
        ['assistant', 'Hm.'],
        ['tool', '{"degrees":-3}'],
        ['assistant', ''],
        ['tool', 'warm'],
        ['assistant', 'Cold.'],
      ],
    );
    assert.equal(result.messages[2].tool_call_id, result.messages[1].tool_calls?.[0].id);
    assert.equal(asked.length, 3);
    assert.deepEqual(asked[2].messages.length, 5);
    assert.deepEqual(asked[0].tools, [
      {
        type: 'function',
        function: { name: 'weather', description: 'Of a city', parameters: schema },
      },
    ]);
    const { usage } = result;
    assert.ok(usage.completion_tokens > 3);
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  });

  test('the calls of one reply run concurrently; results are in the order of the calls', async (t) => {
    /** @type {string[]} */
    const order = [];
    /** @type {() => void} */
    let release = () => {};
    const lima = new Promise((done) => {
      release = () => done(undefined);
    });
    const tools = weather(async ({ city }) => {
      order.push(city);
      if (city === 'Oslo') await lima;
      else release();
      return city;
    });
    const { messages: all } = await run(t, [call('Oslo') + call('Lima'), 'Both.'], { tools });
    assert.deepEqual(order, ['Oslo', 'Lima']);
    assert.deepEqual(
      all.slice(2, 4).map(({ content }) => content),
      ['Oslo', 'Lima'],
    );
  });

  test('errors are passed to the model as results, or reject if the option is set', async (t) => {
    const tools = {
      ...weather(() => {
        throw new TypeError('no such city');
      }),
      silent: { run: () => undefined },
    };
    const texts = [call('X') + call('Y', 'other') + call('Z', 'silent'), 'Sorry.'];
    const { messages: all } = await run(t, texts, { tools });
    assert.deepEqual(
      all.slice(2, 5).map(({ content }) => content),
      ['Error: no such city', 'Error: Unknown tool other', ''],
    );
    await assert.rejects(run(t, texts, { tools, throwErrors: true }), {
      name: 'TypeError',
      message: 'no such city',
    });
  });

  test('runTools rejects if the model calls tools in every round', async (t) => {
    const tools = weather(() => 1);
    const calls = [call('A'), call('B'), call('C')];
    /** @type {any} */
    const error = await run(t, calls, { tools, maxRounds: 2 }).catch((reason) => reason);
    assert.equal(error.code, 'TOOL_ROUNDS');
    assert.match(error.message, /2 rounds/);
    assert.equal(error.cause.messages.length, 5);
    assert.equal(asked.length, 2);
    assert.equal((await run(t, [call('A'), 'Done.'], { tools, maxRounds: 2 })).rounds, 2);
  });

  test('a signal aborts a running tool call and a reply', async (t) => {
    const controller = new AbortController();
    const { signal } = controller;
    const tools = weather((_, { signal: given }) => {
      assert.equal(given, signal);
      controller.abort();
      return new Promise(() => {});
    });
    await assert.rejects(run(t, [call('A'), 'Never.'], { tools, signal }), { name: 'AbortError' });
    assert.equal(asked.length, 1);
    await assert.rejects(run(t, ['Never.'], { tools, signal }), { name: 'AbortError' });
    assert.equal(asked.length, 0);
  });

  test('a truncated reply runs no tools', async (t) => {
    const tools = weather(() => assert.fail('the tool ran'));
    const { finish_reason, message } = await run(t, [call('Oslo')], { tools, max_tokens: 8 });
    assert.equal(finish_reason, 'length');
    assert.equal(message.role, 'assistant');
  });

  test('errors about invalid arguments name the argument', async (t) => {
    const tools = weather(() => 1);
    /** @type {[any, RegExp][]} */
    const wrong = [
      [undefined, /tools must be an object/],
      [{}, /tools must be an object/],
      [{ tools: [] }, /tools must be an object/],
      [{ tools: { a: {} } }, /tools\.a\.run must be a function/],
      [{ tools, stream: true }, /stream is not an option of runTools/],
      [{ tools, n: 2 }, /n is not an option of runTools/],
      [{ tools, maxRounds: -1 }, /maxRounds/],
      [{ tools, messages: 'a' }, /messages must be an array/],
      [{ tools, maxround: 1 }, /maxround is not an option/],
    ];
    const engine = await openEngine(t, { file: modelPath, chatTemplate });
    for (const [options, message] of wrong) {
      const given = options && { messages, ...options };
      await assert.rejects(engine.runTools(given), (error) => {
        assert.match(/** @type {Error} */ (error).message, message);
        return hasCode('ARG')(error);
      });
    }
  });
});
