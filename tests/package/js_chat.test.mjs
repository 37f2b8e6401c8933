// Chats (engine.createChat) through the npm package under Node: turns that process only new messages, forks, edits, tools,
// aborts, errors, and saved chats.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { dist, hasCode, isAbort, modelPath, openEngine, waitUntil } from '../support/package.mjs';

/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {import('../../js/index.js').Chat} Chat */
/** @typedef {import('../../js/index.js').ChatMessage} ChatMessage */

const greedy = { temperature: 0, max_tokens: 90 };
/** Ignores the end token. */
const endless = { max_tokens: 3000, logit_bias: { 2: -100 } };
const system = 'You are Wick, a small and friendly assistant.';

/** @param {import('node:test').TestContext} t @param {import('../../js/index.js').ChatOptions} [options] */
async function openChat(t, options = {}) {
  const engine = await openEngine(t);
  return { engine, chat: await engine.createChat({ ...greedy, ...options }) };
}

/**
 * Returns a saved chat with its JSON replaced and its checksum corrected.
 * @param {Uint8Array} bytes
 * @param {string} json
 */
function withJson(bytes, json) {
  const text = Buffer.from(json);
  const header = Buffer.from(bytes.slice(0, 20));
  const state = bytes.subarray(20 + header.readUInt32LE(12));
  header.writeUInt32LE(text.length, 12);
  header.writeUInt32LE(crc32(text), 16);
  return Buffer.concat([header, text, state]);
}

/** Runs a turn to its end. @param {Chat} chat @param {Parameters<Chat['send']>} said */
async function turn(chat, ...said) {
  const reply = chat.send(...said);
  const text = await reply.text();
  const { result } = reply;
  assert.ok(result);
  return { text, ...result };
}

/** Generates the same answer without a session or the prefix cache. @param {Engine} engine @param {ChatMessage[]} messages */
async function answerOf(engine, messages) {
  const body = { ...greedy, messages, salt: `${Math.random()}` };
  const { choices, usage } = await engine.chat.completions.create(body);
  return { text: choices[0].message.content, tokens: usage.prompt_tokens };
}

describe('turns', () => {
  test('each turn gives the same answer as chat.completions and processes only the new part', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    /** @type {ChatMessage[]} */
    const messages = [{ role: 'system', content: system }];
    let before = 0;
    for (const content of ['Hello, my name is Ada.', 'What is my name?', 'What is Wick?']) {
      messages.push({ role: 'user', content });
      const { text, usage, message, finishReason } = await turn(chat, content);
      const expected = await answerOf(engine, messages);
      assert.equal(text, expected.text);
      assert.equal(usage.promptTokens, expected.tokens);
      assert.deepEqual(message, { role: 'assistant', content: text });
      assert.equal(finishReason, 'stop');
      // the whole previous turn: its prompt and its answer without the end token
      assert.ok(usage.cachedTokens >= before, `${usage.cachedTokens} of ${before}`);
      assert.ok(before > 0 || usage.cachedTokens === 0);
      before = usage.promptTokens + usage.completionTokens - 1;
      messages.push(message);
      assert.deepEqual(chat.history, messages);
    }
  });

  test('history returns a copy, and messages are copied when sent', async (t) => {
    const said = [{ role: 'user', content: 'Hello' }];
    const { chat } = await openChat(t, { messages: said });
    said[0].content = 'Good bye';
    chat.history[0].content = 'Good bye';
    assert.deepEqual(chat.history, [{ role: 'user', content: 'Hello' }]);
    const { text } = await turn(chat); // without content, answers the last message
    assert.deepEqual(chat.history[1], { role: 'assistant', content: text });
  });

  test('options of a turn override those of the chat', async (t) => {
    const { chat } = await openChat(t);
    const short = await turn(chat, 'Tell me a story.', { max_tokens: 3 });
    assert.equal(short.finishReason, 'length');
    assert.equal(short.usage.completionTokens, 3);
    assert.ok(short.timings && short.timings.ttftMs > 0);
    const chosen = await turn(chat, 'Is a fox an animal?', { choices: ['yes, it is'] });
    assert.equal(chosen.text, 'yes, it is');
    const matched = await turn(chat, 'A number, please.', { regex: /[0-9]{3}/ });
    assert.match(matched.text, /^\d{3}$/);
  });

  test('countTokens counts the tokens that send would process, with every setting', async (t) => {
    const chatTemplate =
      '{{ reasoning_effort }} {{ enable_thinking }} {{ tools is defined }} {{ a }} {{ messages[0].content }}';
    const engine = await openEngine(t, { chatTemplate, file: modelFile() });
    const tool = { type: 'function', function: { name: 'weather_of_a_city', parameters: {} } };
    for (const settings of /** @type {any[]} */ ([
      { reasoning_effort: 'high' },
      { reasoning_effort: 'none', chat_template_kwargs: { a: 'long text'.repeat(4) } },
      { tools: [tool], tool_choice: 'none' },
      { tools: [tool] },
    ])) {
      const chat = await engine.createChat({ temperature: 0, max_tokens: 1, ...settings });
      const counted = await chat.countTokens('Hello');
      const reply = chat.send('Hello');
      await reply.text();
      assert.equal(counted, reply.result?.usage.promptTokens, JSON.stringify(settings));
    }
  });

  test('countTokens is the length of the next prompt', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    await turn(chat, 'Hello');
    const counted = await chat.countTokens('What is Wick?');
    const { usage } = await turn(chat, 'What is Wick?');
    assert.equal(counted, usage.promptTokens);
    assert.equal(await engine.countTokens(chat.history.slice(0, -1)), counted);
  });

  test('tools: calls in the history, results as messages', async (t) => {
    const turns =
      '{% if false %}<tool_call>{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}' +
      '{% for c in m.tool_calls %}({{ c.function.name }}){% endfor %}{% endfor %}<assistant>';
    const engine = await openEngine(t, { chatTemplate: turns, file: modelFile() });
    const weather = { name: 'weather', parameters: { type: 'object' } };
    const chat = await engine.createChat({
      ...greedy,
      tools: [{ type: 'function', function: weather }],
    });
    const written = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>';
    const grammar = `root ::= ${JSON.stringify(written)}`;
    const { postMessage } = Worker.prototype;
    t.after(() => {
      Worker.prototype.postMessage = postMessage;
    });
    Worker.prototype.postMessage = function (message, ...more) {
      if (message.settings?.grammar) message.settings.grammar.isWhole = true; // the grammar includes the call
      return postMessage.call(this, message, ...more);
    };
    const { message, finishReason, text } = await turn(chat, 'Is it cold?', {
      grammar,
      max_tokens: 200,
    });
    assert.deepEqual([finishReason, text], ['tool_calls', '']);
    const [call] = message.tool_calls ?? [];
    assert.equal(call.function.name, 'weather');
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Oslo' });
    const result = { role: 'tool', tool_call_id: call.id, content: '-3' };
    const next = await turn(chat, [result], { choices: ['Yes.'] });
    assert.equal(next.text, 'Yes.');
    assert.deepEqual(
      chat.history.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant'],
    );
    // a truncated call is not a call
    const cut = await turn(chat, 'And now?', { grammar, max_tokens: 12 });
    assert.equal(cut.finishReason, 'length');
    assert.equal(cut.message.tool_calls, undefined);
  });

  test('a reply can be read as chunks or with message(), but only once', async (t) => {
    const { chat } = await openChat(t);
    let text = '';
    for await (const chunk of chat.send('Hello').chunks()) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    assert.equal(text, chat.history[1].content);
    const reply = chat.send('Hello again');
    assert.equal(reply.result, undefined);
    assert.deepEqual(await reply.message(), chat.history[3]);
    await assert.rejects(reply.text(), hasCode('ARG'));
  });
});

function modelFile() {
  return modelPath;
}

describe('forks and edits', () => {
  test('a fork shares the tokens of its parent and diverges', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    await turn(chat, 'My name is Ada.');
    const other = await chat.fork();
    const here = await turn(chat, 'What is my name?');
    const there = await turn(other, 'Tell me a poem about the sea.');
    for (const one of [here, there]) assert.ok(one.usage.cachedTokens > 20);
    for (const one of [chat, other]) {
      const { text } = await answerOf(engine, one.history.slice(0, -1));
      assert.equal(one.history.at(-1)?.content, text);
    }
    await chat.close();
    assert.ok((await turn(other, 'Thank you.')).text.length > 0);
    await other.close();
    assert.equal((await engine.kvStats()).sessions, 0);
  });

  test('edit replaces a message and drops what follows', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    await turn(chat, 'My name is Ada.');
    await turn(chat, 'What is my name?');
    chat.edit(1, 'My name is Tom.');
    assert.deepEqual(chat.history.slice(1), [{ role: 'user', content: 'My name is Tom.' }]);
    const { text, usage } = await turn(chat);
    assert.equal(text, (await answerOf(engine, chat.history.slice(0, -1))).text);
    assert.ok(usage.cachedTokens > 0 && usage.cachedTokens < usage.promptTokens);
    // without content, the message is removed as well
    chat.edit(2);
    assert.equal(chat.history.length, 2);
    const again = await turn(chat);
    assert.equal(again.text, text);
    assert.equal(again.usage.cachedTokens, again.usage.promptTokens - 1);
  });

  test('edits of other messages are rejected', async (t) => {
    const { chat } = await openChat(t, { system });
    for (const index of [1, -1, 0.5, '0', undefined, Symbol('x')]) {
      assert.throws(() => chat.edit(/** @type {any} */ (index), 'x'), hasCode('ARG'));
    }
    for (const content of [7, null, Symbol('x')]) {
      assert.throws(() => chat.edit(0, /** @type {any} */ (content)), hasCode('ARG'));
    }
    const message = { role: 'user', content: 'Hello', call() {} };
    for (const said of /** @type {any[]} */ ([message, [message], Symbol('x')])) {
      assert.throws(() => chat.send(said), hasCode('ARG'));
      await assert.rejects(openChat(t, { messages: said }), hasCode('ARG'));
    }
    assert.deepEqual(chat.history, [{ role: 'system', content: system }]);
  });
});

describe('turns that are interrupted', () => {
  test('an abort keeps the received part, and the next turn continues from there', async (t) => {
    const { engine, chat } = await openChat(t);
    const stop = new AbortController();
    const reply = chat.send('Tell me a story about a fox.', { signal: stop.signal, ...endless });
    let text = '';
    await assert.rejects(async () => {
      for await (const piece of reply) {
        text += piece;
        if (text.length > 20) stop.abort();
      }
    }, isAbort);
    assert.equal(reply.result?.finishReason, 'abort');
    assert.deepEqual(chat.history[1], { role: 'assistant', content: text });
    const next = await turn(chat, 'Thank you.');
    const expected = await answerOf(engine, chat.history.slice(0, -1));
    assert.deepEqual([next.text, next.usage.promptTokens], [expected.text, expected.tokens]);
  });

  test('leaving the loop has the same effect as an abort', async (t) => {
    const { engine, chat } = await openChat(t);
    const reply = chat.send('Tell me a story.', endless);
    let text = '';
    for await (const piece of reply) {
      text += piece;
      if (text.length > 10) break;
    }
    assert.deepEqual(chat.history[1], { role: 'assistant', content: text });
    assert.ok((await turn(chat, 'Hello')).text.length > 0);
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 1,
      'the request to be aborted',
    );
  });

  test('throw() on the reply and disposing of it also keep the partial reply', async (t) => {
    const { engine, chat } = await openChat(t);
    const thrown = chat.send('Tell me a story.', endless)[Symbol.asyncIterator]();
    await thrown.next();
    await assert.rejects(thrown.throw(new Error('mine')), /mine/);
    assert.deepEqual(await thrown.next(), { done: true, value: undefined });
    assert.equal(chat.history.length, 2);
    const disposed = chat.send('Tell me a story.', endless)[Symbol.asyncIterator]();
    await disposed.next();
    await disposed[Symbol.asyncDispose]();
    assert.equal(chat.history.length, 4);
    assert.ok((await turn(chat, 'Hello')).text.length > 0);
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 2,
      'both requests to be aborted',
    );
  });

  test('an abort before the first piece leaves the history unchanged', async (t) => {
    const { chat } = await openChat(t);
    const signal = AbortSignal.abort();
    await assert.rejects(chat.send('Hello', { signal }).text(), isAbort);
    assert.deepEqual(chat.history, []);
    const reply = chat.send('Hello');
    await reply[Symbol.asyncIterator]().return();
    assert.deepEqual(chat.history, []);
    assert.ok((await turn(chat, 'Hello')).text.length > 0);
  });

  test('an error leaves the history unchanged, and the chat continues', async (t) => {
    const { chat } = await openChat(t, { system });
    await turn(chat, 'Hello');
    const before = chat.history;
    await assert.rejects(chat.send('fox '.repeat(5000)).text(), hasCode('PROMPT_TOO_LONG'));
    await assert.rejects(
      chat.send('Hello', /** @type {any} */ ({ maxtokens: 3 })).text(),
      /did you mean max_tokens/,
    );
    await assert.rejects(chat.send('x', { regex: /a/, choices: ['b'] }).text(), hasCode('ARG'));
    assert.deepEqual(chat.history, before);
    const { usage } = await turn(chat, 'What is Wick?');
    assert.ok(usage.cachedTokens > 20, `${usage.cachedTokens}`);
  });

  test('a time limit rejects with a TimeoutError', async (t) => {
    const { engine, chat } = await openChat(t, endless);
    const isTimeout = { name: 'TimeoutError', message: /longer than 40 ms/ };
    await assert.rejects(chat.send('Hello', { timeout: 40 }).text(), isTimeout);
    const limited = engine.generate('Once', { ignoreEnd: true, timeout: 40 });
    await assert.rejects(limited.text(), isTimeout);
    const messages = [{ role: 'user', content: 'Hello' }];
    const body = { messages, ...endless };
    await assert.rejects(engine.chat.completions.create(body, { timeout: 40 }), isTimeout);
    assert.ok(await engine.generate('Once', { timeout: 1e9, maxTokens: 3 }).text());
    for (const timeout of [0, -1, Number.NaN, 2 ** 31, '9']) {
      const options = /** @type {any} */ ({ timeout });
      await assert.rejects(engine.chat.completions.create(body, options), hasCode('ARG'));
    }
  });

  test('a chat runs one turn at a time', async (t) => {
    const { chat } = await openChat(t);
    const first = chat.send('Tell me a story.')[Symbol.asyncIterator]();
    const started = first.next();
    await assert.rejects(chat.send('Hello').text(), hasCode('BUSY'));
    assert.throws(() => chat.edit(0, 'x'), hasCode('BUSY'));
    const busy = { code: 'BUSY', message: 'chat: a turn is running. Wait for its end or abort it' };
    await assert.rejects(chat.fork(), busy);
    await assert.rejects(chat.save(), busy);
    await started;
    await assert.rejects(chat.send('Hello').text(), hasCode('BUSY'));
    while (!(await first.next()).done);
    assert.equal(chat.history.length, 2);
    assert.ok((await turn(chat, 'Hello')).text.length > 0);
  });

  test('close cancels a running turn and frees its pages', async (t) => {
    const { engine, chat } = await openChat(t, endless);
    const pieces = chat.send('Tell me a story.')[Symbol.asyncIterator]();
    await pieces.next();
    await chat.close();
    assert.deepEqual(await pieces.next(), { done: true, value: undefined });
    await chat.close();
    const { sessions, requests } = await engine.kvStats();
    assert.deepEqual([sessions, requests.running], [0, 0]);
    await assert.rejects(chat.send('Hello').text(), hasCode('SEQ'));
    assert.throws(() => chat.edit(0), hasCode('SEQ'));
  });

  test('close at the start of a turn cancels the turn as well', async (t) => {
    const { engine, chat } = await openChat(t, endless);
    const text = chat.send('Tell me a story.').text();
    await chat.close();
    assert.equal(await text, '');
    const { sessions, requests } = await engine.kvStats();
    assert.deepEqual([sessions, requests.running], [0, 0]);
  });

  test('errors about wrong types name the argument', async (t) => {
    const { engine, chat } = await openChat(t);
    const refused = [
      ...[{ system: 7 }, { system, messages: [] }, { messages: [{}] }, { messages: 7 }],
      ...[{ n: 2 }, { stream: true }, { session: 1 }, { signal: AbortSignal.abort() }, 7, null],
    ];
    for (const options of refused) {
      await assert.rejects(engine.createChat(/** @type {any} */ (options)), hasCode('ARG'));
    }
    for (const content of [7, {}, [{}], null, [], undefined]) {
      assert.throws(() => chat.send(/** @type {any} */ (content)), hasCode('ARG'));
    }
    for (const options of [{ n: 2 }, { messages: [] }, { salt: 'x' }, { session: 1 }, 7, null]) {
      assert.throws(() => chat.send('Hello', /** @type {any} */ (options)), hasCode('ARG'));
    }
    assert.equal((await engine.kvStats()).sessions, 1);
  });
});

describe('saved chats', () => {
  test('a restored chat reuses the tokens it had processed', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    await turn(chat, 'My name is Ada.');
    const bytes = await chat.save();
    const other = await openEngine(t);
    const { createChat, loadChat } = await import(pathToFileURL(join(dist, 'chat.js')).href);
    for (const from of [bytes, new Blob([bytes]), bytes.buffer]) {
      const loaded = await loadChat(other, from, greedy);
      assert.deepEqual(loaded.history, chat.history);
      const { text, usage } = await turn(loaded, 'What is my name?');
      assert.ok(usage.cachedTokens > 20, `${usage.cachedTokens}`);
      assert.equal(text, (await answerOf(engine, loaded.history.slice(0, -1))).text);
      await loaded.close();
    }
    const empty = await other.loadChat(await (await createChat(other)).save());
    assert.deepEqual(empty.history, []);
    assert.ok((await turn(empty, 'Hello', greedy)).text.length > 0);
  });

  test('an engine with a different KV type recomputes the conversation', async (t) => {
    const { chat } = await openChat(t, { system });
    await turn(chat, 'My name is Ada.');
    const other = await openEngine(t, { file: modelFile(), kvType: 'q8' });
    const loaded = await other.loadChat(await chat.save(), greedy);
    assert.deepEqual(loaded.history, chat.history);
    const { usage } = await turn(loaded, 'What is my name?');
    assert.equal(usage.cachedTokens, 0);
  });

  test('damaged, truncated and foreign bytes are rejected and leave no session', async (t) => {
    const { engine, chat } = await openChat(t, { system });
    await turn(chat, 'My name is Ada.');
    const bytes = await chat.save();
    const { sessions } = await engine.kvStats();
    const step = Math.ceil(bytes.length / 60);
    for (let at = 0; at < bytes.length; at += at < 400 ? 7 : step) {
      const damaged = bytes.slice();
      damaged[at] ^= 4;
      await assert.rejects(
        engine.loadChat(damaged),
        /** @param {any} error */ (error) => {
          assert.match(error.code, /^(CORRUPT|FORMAT|TRUNCATED|FULL|ARG)$/, `at ${at}`);
          return true;
        },
      );
    }
    for (const length of [0, 7, 12, 19, 20, 60, bytes.length - 1]) {
      const cut = bytes.slice(0, length);
      await assert.rejects(engine.loadChat(cut), /FORMAT|TRUNCATED|saved chat|state/);
    }
    const newer = bytes.slice();
    newer[8] = 2;
    await assert.rejects(engine.loadChat(newer), /version 2, but only version 1 is supported/);
    const common = ['session', 'stream', 'stream_options', 'n', 'signal', 'timeout', 'onPrefill'];
    for (const name of [...common, 'messages', 'system']) {
      const wrong = /** @type {any} */ ({ [name]: 1 });
      const says = new RegExp(`${name} is not an option of loadChat`);
      await assert.rejects(engine.loadChat(bytes, wrong), says);
    }
    await assert.rejects(engine.loadChat(bytes, /** @type {any} */ (null)), hasCode('ARG'));
    for (const from of ['name', 7, undefined]) {
      await assert.rejects(engine.loadChat(/** @type {any} */ (from)), hasCode('ARG'));
    }
    for (const json of ['', 'null', '{bad', '[]', '{"messages":5}', '{"messages":[{"role":5}]}']) {
      await assert.rejects(engine.loadChat(withJson(bytes, json)), hasCode('FORMAT'), json);
    }
    assert.equal((await engine.kvStats()).sessions, sessions);
  });
});

describe('chat completions on a session', () => {
  const messages = [{ role: 'user', content: 'What is Wick?' }];

  test('the conversation replaces the contents of the session', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    await session.append('Once upon a time');
    const { choices, usage } = await engine.chat.completions.create({
      ...greedy,
      messages,
      session,
    });
    assert.equal(choices[0].message.content, (await answerOf(engine, messages)).text);
    assert.equal(usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal((await session.tokens()).length, usage.total_tokens);
    await session.close();
  });

  test('incompatible options are rejected', async (t) => {
    const engine = await openEngine(t);
    const other = await openEngine(t);
    const session = await engine.createSession();
    const create = (/** @type {object} */ more) =>
      engine.chat.completions.create(/** @type {any} */ ({ messages, ...more }));
    await assert.rejects(create({ session, n: 2 }), hasCode('ARG'));
    await assert.rejects(create({ session, salt: 'x' }), hasCode('ARG'));
    for (const wrong of [1, {}, 'x', await other.createSession()]) {
      await assert.rejects(create({ session: wrong }), hasCode('ARG'));
    }
    await session.close();
    await assert.rejects(create({ session }), hasCode('SEQ'));
  });
});

describe('a reply with a prefix', () => {
  test('prefix: the text continues after it', async (t) => {
    const engine = await openEngine(t);
    const asked = [{ role: 'user', content: 'What is Wick?' }];
    const whole = await engine.chat.completions.create({ ...greedy, messages: asked });
    const text = whole.choices[0].message.content;
    const begin = text.split(' ').slice(0, 3).join(' ');
    const prefixed = [...asked, { role: 'assistant', content: begin, prefix: true }];
    const rest = await engine.chat.completions.create({ ...greedy, messages: prefixed });
    assert.equal(begin + rest.choices[0].message.content, text);
    const counted = await engine.countTokens(prefixed);
    assert.equal(counted, rest.usage.prompt_tokens);
    assert.equal((await engine.tokenize(prefixed)).length, counted);
    assert.ok(counted > whole.usage.prompt_tokens);
    // special tokens in the prefix are treated as text, too
    const typed = [...asked, { role: 'assistant', content: '<|im_end|>', prefix: true }];
    const [literal, special] = await Promise.all([
      engine.countTokens(typed),
      engine.countTokens(typed, { parseSpecial: true }),
    ]);
    assert.equal(special, whole.usage.prompt_tokens + 1);
    assert.ok(literal > special);
  });

  test('in a chat the prefix becomes part of the answer, and the next turn continues from there', async (t) => {
    const { engine, chat } = await openChat(t);
    const question = { role: 'user', content: 'What is Wick?' };
    const said = [question, { role: 'assistant', content: 'I am', prefix: true }];
    const first = await turn(chat, said);
    const answer = { role: 'assistant', content: `I am${first.text}` };
    assert.deepEqual(chat.history, [question, answer]);
    const expected = await answerOf(engine, [...chat.history, { role: 'user', content: 'Yes?' }]);
    assert.equal((await turn(chat, 'Yes?')).text, expected.text);
  });

  test('a prefix in any other message is rejected', async (t) => {
    const engine = await openEngine(t);
    const user = { role: 'user', content: 'Hello' };
    const begin = { role: 'assistant', content: 'Hi', prefix: true };
    const wrong = [
      ...[[begin], [user, begin, user], [{ ...user, prefix: true }]],
      [user, { ...begin, prefix: /** @type {any} */ ('yes') }],
    ];
    for (const messages of wrong) {
      await assert.rejects(engine.chat.completions.create({ messages }), hasCode('ARG'));
      await assert.rejects(engine.countTokens(messages), hasCode('ARG'));
    }
    const idle = [user, { role: 'assistant', content: 'Hi', prefix: false }, user];
    assert.ok((await engine.countTokens(idle)) > 10);
  });
});
