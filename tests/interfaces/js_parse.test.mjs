// chat.completions.parse and .stream through the npm package under Node: schema libraries, OpenAI's helpers, events, and
// errors.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { hasCode, isAbort, modelPath, openEngine, waitUntil } from '../support/package.mjs';
import '../support/whole_grammars.mjs';

const messages = [{ role: 'user', content: 'Ada is 36 years old.' }];
const ask = { messages, temperature: 0, max_tokens: 60 };
const Person = z.object({ name: z.enum(['Ada', 'Tom']), age: z.number().int().min(0).max(99) });

describe('parse', () => {
  test('a zod schema validates and types the value', async (t) => {
    const { completions } = (await openEngine(t)).chat;
    const { choices } = await completions.parse({
      ...ask,
      response_format: Person,
      n: 2,
      temperature: 1,
    });
    assert.equal(choices.length, 2);
    for (const { message } of choices) {
      assert.deepEqual(message.parsed, JSON.parse(message.content));
      assert.ok(message.parsed && message.parsed.age >= 0);
    }
    const Length = z.object({ name: z.enum(['Ada']) }).transform(({ name }) => name.length);
    const { choices: two } = await completions.parse({ ...ask, response_format: Length });
    assert.equal(two[0].message.parsed, 3);
  });

  test('OpenAI’s helper and a plain format are accepted', async (t) => {
    const { completions } = (await openEngine(t)).chat;
    const helper = zodResponseFormat(Person, 'person');
    const { choices } = await completions.parse({ ...ask, response_format: helper });
    assert.deepEqual(
      choices[0].message.parsed,
      Person.parse(JSON.parse(choices[0].message.content)),
    );
    const json_schema = { name: 'x', schema: { enum: ['a', 'b'] } };
    const format = { type: 'json_schema', json_schema };
    const plain = await completions.parse({ ...ask, response_format: format });
    assert.ok(['a', 'b'].includes(/** @type {any} */ (plain.choices[0].message.parsed)));
  });

  test('a value that the schema rejects, a truncated reply and an invalid schema are errors', async (t) => {
    const { completions } = (await openEngine(t)).chat;
    const Odd = z.object({
      deep: z.object({ name: z.enum(['Ada']).refine(() => false, 'never') }),
    });
    await assert.rejects(
      completions.parse({ ...ask, response_format: Odd }),
      (/** @type {any} */ error) => {
        assert.match(error.message, /schema: deep\.name: never/);
        assert.deepEqual(JSON.parse(error.cause.text), { deep: { name: 'Ada' } });
        assert.equal(error.cause.issues.length, 1);
        return hasCode('INVALID')(error);
      },
    );
    const short = { ...ask, response_format: Person, max_tokens: 3 };
    await assert.rejects(completions.parse(short), (/** @type {any} */ error) => {
      assert.ok(error.cause.text.startsWith('{'));
      return hasCode('INCOMPLETE')(error);
    });
    const silent = { '~standard': { version: 1, vendor: 'mine', validate: () => ({ value: 1 }) } };
    for (const response_format of [undefined, null, { type: 'text' }, silent]) {
      const body = /** @type {any} */ ({ ...ask, response_format });
      await assert.rejects(completions.parse(body), hasCode('ARG'));
    }
    const cut = { ...ask, response_format: Person, stop: ':' };
    for (const response_format of [Person, { type: 'json_object' }]) {
      const body = { ...cut, response_format };
      await assert.rejects(completions.parse(body), hasCode('INVALID'));
    }
    const streamed = /** @type {any} */ ({ ...ask, response_format: Person, stream: true });
    await assert.rejects(completions.parse(streamed), hasCode('ARG'));
    const signal = AbortSignal.abort();
    await assert.rejects(
      completions.parse({ ...ask, response_format: Person }, { signal }),
      isAbort,
    );
  });
});

describe('stream', () => {
  test('stream emits chunks and events, and its completion equals that of create', async (t) => {
    const { completions } = (await openEngine(t)).chat;
    const body = { ...ask, n: 2, logprobs: true, top_logprobs: 1, seed: 5, temperature: 1 };
    const whole = await completions.create(body);
    const helper = completions.stream(body);
    /** @type {string[]} */
    const events = [];
    /** @type {string[]} */
    const contents = [];
    helper
      .on('content', (delta, snapshot) => {
        assert.ok(snapshot.endsWith(delta));
        contents.push(delta);
      })
      .on('chunk', (chunk, { id }) => assert.equal(chunk.id, id))
      .on('finalChatCompletion', () => events.push('final'))
      .on('end', () => events.push('end'));
    let chunks = 0;
    for await (const { object } of helper) {
      assert.equal(object, 'chat.completion.chunk');
      chunks++;
    }
    assert.ok(chunks > 10);
    const made = await helper.finalChatCompletion();
    await helper.done();
    assert.deepEqual(events, ['final', 'end']);
    const plain = (/** @type {any} */ { choices, object, model }) => ({ choices, object, model });
    assert.deepEqual(plain(made), plain(whole));
    assert.equal((await helper.totalUsage()).completion_tokens, whole.usage.completion_tokens);
    assert.equal((await helper.finalMessage()).content, await helper.finalContent());
    assert.equal(
      contents.join('').length,
      whole.choices.map((one) => one.message.content).join('').length,
    );
  });

  test('reasoning and tool calls are assembled; an invalid call is content', async (t) => {
    const chatTemplate =
      '{% if false %}<tool_call><think></think>{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}<assistant>';
    const { completions } = (await openEngine(t, { file: modelPath, chatTemplate })).chat;
    const weather = { name: 'weather', parameters: { type: 'object' } };
    const tools = [{ type: /** @type {const} */ ('function'), function: weather }];
    const written = async (/** @type {string} */ text) => {
      const grammar = `root ::= ${JSON.stringify(text)}`;
      const helper = completions.stream({ ...ask, max_tokens: 200, tools, grammar });
      return (await helper.finalChatCompletion()).choices[0];
    };
    const call = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>';
    const { message, finish_reason } = await written(`<think>Hm.</think>${call}`);
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.reasoning_content, 'Hm.');
    const [{ type, function: called }] = message.tool_calls ?? [];
    assert.deepEqual(
      [type, called.name, JSON.parse(called.arguments)],
      ['function', 'weather', { city: 'Oslo' }],
    );
    const broken = await written(
      '<tool_call>{"name": "weather", "arguments": {"city": no}}</tool_call>',
    );
    assert.deepEqual([broken.finish_reason, broken.message.tool_calls], ['stop', undefined]);
    assert.match(broken.message.content, /"city": no/);
  });

  test('an error and an abort reach waiting calls and listeners', async (t) => {
    const engine = await openEngine(t);
    const { completions } = engine.chat;
    /** @type {string[]} */
    const events = [];
    const listen = (/** @type {ReturnType<typeof completions.stream>} */ helper) =>
      helper
        .on('error', () => events.push('error'))
        .on('abort', () => events.push('abort'))
        .on('end', () => events.push('end'));
    const wrong = listen(completions.stream(/** @type {any} */ ({ messages, maxtokens: 1 })));
    await assert.rejects(wrong.finalContent(), /did you mean max_tokens/);
    await assert.rejects(async () => {
      for await (const _ of wrong);
    }, hasCode('ARG'));
    const endless = { messages, logit_bias: { 2: -100 } };
    const own = listen(completions.stream(endless));
    own.on('content', () => own.abort());
    await assert.rejects(own.done(), isAbort);
    const stop = new AbortController();
    const given = listen(completions.stream(endless, { signal: stop.signal }));
    given.on('content', () => stop.abort(new Error('mine')));
    await assert.rejects(given.finalMessage(), /mine/);
    const left = listen(completions.stream(endless));
    for await (const { choices } of left) if (choices[0]?.delta.content) break;
    await assert.rejects(left.done(), isAbort);
    await assert.rejects(
      completions.stream(endless, { signal: AbortSignal.abort() }).done(),
      isAbort,
    );
    assert.deepEqual(events, ['error', 'end', 'abort', 'end', 'abort', 'end', 'abort', 'end']);
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 3,
      'all requests to be aborted',
    );
    // no caller waits, so no unhandled rejection may remain
    completions.stream(/** @type {any} */ ({ messages, maxtokens: 1 }));
    await new Promise((settle) => setTimeout(settle, 20));
  });
});
