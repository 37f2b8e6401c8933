// wick-llm/ai-sdk with the AI SDK (ai 7): text, streams, objects, tools, reasoning, embeddings, reranking, useChat without
// a server, and errors.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  AbstractChat,
  DirectChatTransport,
  embed,
  embedMany,
  generateObject,
  generateText,
  isStepCount,
  Output,
  rerank,
  streamText,
  ToolLoopAgent,
  tool,
} from 'ai';
import { z } from 'zod';
import { requestOf, textOfJson, unsupported } from '../../js/ai_sdk/prompt.js';
import { finishOf, PartMaker, usageOf } from '../../js/ai_sdk/stream_parts.js';
import { locate } from '../support/locate.mjs';
import { dist, hasCode, isAbort, modelPath, openEngine, waitUntil } from '../support/package.mjs';
import '../support/whole_grammars.mjs';

/** @type {typeof import('../../js/ai-sdk.js')} */
const { createWick, WickChatTransport } = await import(pathToFileURL(join(dist, 'ai-sdk.js')).href);
const shared = locate('shared');
const models = join(shared.path, 'vectors/reference-more/models');

const greedy = { temperature: 0, maxOutputTokens: 90, maxRetries: 0 };
/** Suppresses the end token. */
const endless = { wick: { logit_bias: { 2: -100 } } };

const turns =
  '{% if false %}<tool_call><think></think>{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}' +
  '{% for c in m.tool_calls %}({{ c.function.name }} {{ c.function.arguments }}){% endfor %}{% endfor %}<assistant>';
const call = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>';
/** Returns provider options that force the model's output. @param {string} text */
const written = (text) => ({ wick: { grammar: `root ::= ${JSON.stringify(text)}` } });
const weather = tool({
  description: 'Of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `-3 degrees in ${city}`,
});

/** @param {import('node:test').TestContext} t @param {string} [chatTemplate] */
async function open(t, chatTemplate) {
  const engine = await openEngine(t, {
    file: modelPath,
    ...(chatTemplate ? { chatTemplate } : {}),
  });
  return { engine, wick: createWick(engine) };
}

/** @param {AsyncIterable<any>} stream */
async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

describe('text', () => {
  test('generateText returns the same text as chat.completions, with usage and the model’s name', async (t) => {
    const { engine, wick } = await open(t);
    const instructions = 'You are Wick, a small and friendly assistant.';
    const result = await generateText({
      ...greedy,
      model: wick(),
      instructions,
      prompt: 'What is Wick?',
    });
    const messages = [
      { role: 'system', content: instructions },
      { role: 'user', content: 'What is Wick?' },
    ];
    const expected = await engine.chat.completions.create({
      ...{ messages, temperature: 0, max_tokens: 90, salt: 'x' },
    });
    assert.equal(result.text, expected.choices[0].message.content);
    assert.equal(result.finishReason, 'stop');
    assert.equal(result.usage.inputTokens, expected.usage.prompt_tokens);
    assert.equal(result.usage.outputTokens, expected.usage.completion_tokens);
    assert.equal(result.response.modelId, expected.model);
    assert.deepEqual(result.warnings ?? [], []);
    assert.ok(/** @type {any} */ (result.providerMetadata).wick.timings.ttftMs > 0);
    // a second request finds the first prompt in the prefix cache
    const again = await generateText({
      ...greedy,
      model: wick(),
      instructions,
      prompt: 'What is Wick?',
    });
    const { cacheReadTokens = 0, noCacheTokens = 0 } = again.usage.inputTokenDetails;
    assert.ok(cacheReadTokens > 0);
    assert.equal(cacheReadTokens + noCacheTokens, again.usage.inputTokens);
  });

  test('streamText streams the same text, with start and end of each block', async (t) => {
    const { wick } = await open(t);
    const whole = await generateText({ ...greedy, model: wick(), prompt: 'Hello' });
    const { stream, finishReason } = streamText({ ...greedy, model: wick(), prompt: 'Hello' });
    const parts = (await collect(stream)).filter(({ type }) => /^text-|^finish$/.test(type));
    const kinds = parts.map(({ type }) => type);
    assert.deepEqual([kinds[0], kinds.at(-2), kinds.at(-1)], ['text-start', 'text-end', 'finish']);
    assert.equal(kinds.filter((kind) => kind === 'text-start').length, 1);
    assert.ok(kinds.length > 5);
    assert.equal(parts.map(({ text }) => text ?? '').join(''), whole.text);
    assert.equal(await finishReason, 'stop');
    assert.ok(parts.at(-1).totalUsage.outputTokens > 5);
  });

  test('a model has its properties, and a stream reports its model once', async (t) => {
    const { wick } = await open(t);
    const model = wick();
    const { specificationVersion, provider, supportedUrls } = model;
    assert.deepEqual([specificationVersion, provider, supportedUrls], ['v4', 'wick.chat', {}]);
    const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }];
    const options = /** @type {any} */ ({ prompt, temperature: 0, maxOutputTokens: 3 });
    const before = Math.floor(Date.now() / 1000);
    const parts = await collect(/** @type {any} */ ((await model.doStream(options)).stream));
    const described = parts.filter(({ type }) => type === 'response-metadata');
    assert.equal(described.length, 1);
    assert.match(described[0].id, /^chatcmpl-/);
    assert.ok(described[0].modelId.length > 0);
    assert.ok(described[0].timestamp >= before * 1000 && described[0].timestamp <= Date.now());
  });

  test('the last part contains timings, if there are any', async (t) => {
    const { wick } = await open(t);
    const said = (/** @type {string} */ text) => ({
      prompt: [
        {
          role: /** @type {const} */ ('user'),
          content: [{ type: /** @type {const} */ ('text'), text }],
        },
      ],
      maxOutputTokens: 3,
    });
    const last = async (/** @type {string} */ text) => {
      const { stream } = await wick().doStream(said(text));
      return (await collect(/** @type {any} */ (stream))).at(-1);
    };
    const good = await last('Hello');
    assert.ok(good.providerMetadata.wick.timings.ttftMs > 0);
    const bad = await last('fox '.repeat(5000));
    assert.deepEqual([bad.finishReason.unified, bad.providerMetadata], ['error', undefined]);
  });

  test('settings reach the engine', async (t) => {
    const { wick } = await open(t);
    const model = wick();
    const ask = { model, prompt: 'Tell me a story.', maxRetries: 0 };
    const cut = await generateText({ ...ask, maxOutputTokens: 4 });
    assert.deepEqual([cut.finishReason, cut.usage.outputTokens], ['length', 4]);
    const hot = { ...ask, temperature: 2, topK: 0, topP: 1, maxOutputTokens: 30 };
    const drawn = await Promise.all(
      [1, 1, 2].map((seed) => generateText({ ...hot, seed }).then(({ text }) => text)),
    );
    assert.equal(drawn[0], drawn[1]);
    assert.notEqual(drawn[0], drawn[2]);
    const plain = await generateText({ ...ask, temperature: 0 });
    const word = plain.text.split(' ')[3];
    const stopped = await generateText({ ...ask, temperature: 0, stopSequences: [word] });
    assert.equal(stopped.text, plain.text.slice(0, plain.text.indexOf(word)));
    const chosen = await generateText({
      ...ask,
      providerOptions: { wick: { choices: ['so be it'] } },
    });
    assert.equal(chosen.text, 'so be it');
  });

  test('the reply continues a final assistant message', async (t) => {
    const { wick } = await open(t);
    const whole = await generateText({ ...greedy, model: wick(), prompt: 'What is Wick?' });
    const begin = whole.text.split(' ').slice(0, 3).join(' ');
    const { text } = await generateText({
      ...{ ...greedy, model: wick() },
      messages: [
        { role: 'user', content: 'What is Wick?' },
        { role: 'assistant', content: begin },
      ],
    });
    assert.equal(begin + text, whole.text);
  });

  test('reasoning arrives in a separate block', async (t) => {
    const { wick } = await open(t, turns);
    const providerOptions = written('<think>Hm.</think>Cold.');
    const ask = { ...greedy, model: wick(), prompt: 'Is it cold?', providerOptions };
    const { text, reasoningText } = await generateText(ask);
    assert.deepEqual([reasoningText, text], ['Hm.', 'Cold.']);
    const kinds = (await collect(streamText(ask).stream)).map(({ type }) => type);
    const blocks = kinds.filter((kind) => /-(start|end)$/.test(kind) && !/step/.test(kind));
    assert.deepEqual(blocks, ['reasoning-start', 'reasoning-end', 'text-start', 'text-end']);
  });

  test('reasoning settings become template variables', async (t) => {
    const template = '{{ enable_thinking }} {{ reasoning_effort }}<assistant>';
    const { wick } = await open(t, template);
    const model = wick();
    for (const [reasoning, tokens] of /** @type {const} */ ([
      ['none', 'False '],
      ['xhigh', 'True high'],
    ])) {
      const { usage } = await generateText({
        ...greedy,
        model,
        prompt: 'x',
        reasoning,
        maxOutputTokens: 1,
      });
      const engine = await openEngine(t);
      assert.equal(usage.inputTokens, await engine.countTokens(`${tokens}<assistant>`), reasoning);
    }
  });

  test('files: text is used, an image is rejected', async (t) => {
    const { wick } = await open(t, turns);
    const model = wick();
    /** @param {any} part */
    const ask = (part) =>
      generateText({
        ...{ ...greedy, model, maxOutputTokens: 1 },
        messages: [{ role: 'user', content: [part, { type: 'text', text: 'Hello' }] }],
      });
    const counts = [];
    for (const data of ['aGVsbG8gdGhlcmU=', new TextEncoder().encode('hello there')]) {
      const { usage } = await ask({ type: 'file', data, mediaType: 'text/plain' });
      counts.push(usage.inputTokens);
    }
    counts.push((await ask({ type: 'text', text: 'hello there' })).usage.inputTokens);
    assert.equal(new Set(counts).size, 1);
    const image = ask({ type: 'file', data: new Uint8Array(4), mediaType: 'image/png' });
    await assert.rejects(image, hasCode('UNSUPPORTED'));
  });
});

describe('requestOf', () => {
  const user = (/** @type {string} */ text) => ({
    role: 'user',
    content: [{ type: 'text', text }],
  });
  const usual = {
    ...{ max_tokens: null, temperature: null, top_p: null, top_k: null, presence_penalty: null },
    ...{ frequency_penalty: null, stop: null, seed: null, reasoning_effort: null },
  };
  const read = (/** @type {any} */ options) => requestOf({ prompt: [user('a')], ...options });
  const messagesOf = (/** @type {any[]} */ ...prompt) => read({ prompt }).body.messages;

  test('missing settings have the engine’s defaults, and zeros are passed on', () => {
    const messages = [{ role: 'user', content: 'a' }];
    assert.deepEqual(read({}), { body: { messages, ...usual }, warnings: [] });
    const zeros = {
      ...{ maxOutputTokens: 0, temperature: 0, topP: 0, topK: 0, presencePenalty: 0 },
      ...{ frequencyPenalty: 0, stopSequences: [], seed: 0, reasoning: 'none' },
    };
    assert.deepEqual(read(zeros).body, {
      ...{ messages, max_tokens: 0, temperature: 0, top_p: 0, top_k: 0, presence_penalty: 0 },
      ...{ frequency_penalty: 0, stop: [], seed: 0, reasoning_effort: 'none' },
    });
    assert.equal(read({ reasoning: 'provider-default' }).body.reasoning_effort, null);
    assert.equal(read({ providerOptions: { wick: { n: 1, top_k: 3 } }, topK: 5 }).body.top_k, 3);
    for (const n of [0, 2]) {
      assert.throws(() => read({ providerOptions: { wick: { n } } }), { code: 'ARG' });
    }
  });

  test('converts messages of each role, with the text of files', () => {
    const bytes = new TextEncoder().encode('é');
    const file = (/** @type {any} */ data, mediaType = 'text/plain') => ({
      type: 'file',
      data,
      mediaType,
    });
    const parts = [
      ...[{ type: 'text', text: 'a' }, file({ type: 'text', text: 'b' }, 'image/png')],
      ...[
        file({ type: 'data', data: bytes }),
        file({ type: 'data', data: 'w6k=' }, 'application/json'),
      ],
    ];
    assert.deepEqual(
      messagesOf({ role: 'system', content: 's' }, { role: 'user', content: parts }),
      [
        { role: 'system', content: 's' },
        { role: 'user', content: 'abéé' },
      ],
    );
    const url = new URL('https://a.example/b.png');
    const media = [
      { type: 'text', text: 'a' },
      file({ type: 'data', data: bytes }, 'image/png'),
      file({ type: 'data', data: 'w6k=' }, 'audio/wav'),
      file({ type: 'url', url }, 'image/*'),
    ];
    assert.deepEqual(messagesOf({ role: 'user', content: media }), [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', image: bytes },
          { type: 'audio', audio: 'data:audio/wav;base64,w6k=' },
          { type: 'image', image: url },
        ],
      },
    ]);
    for (const one of [
      file({ type: 'data', data: bytes }, 'application/pdf'),
      ...[file({ type: 'url', url: 'x' }), file({ type: 'data', data: bytes }, 'texture/x')],
    ]) {
      const words = `A file of type ${one.mediaType} is in the prompt: only text, images and audio are supported`;
      assert.throws(() => messagesOf({ role: 'user', content: [one] }), {
        code: 'UNSUPPORTED',
        message: words,
      });
    }
  });

  test('an answer with reasoning, calls and results becomes a message followed by result messages', () => {
    const result = (/** @type {any} */ output) => ({
      type: 'tool-result',
      toolCallId: '1',
      toolName: 'f',
      output,
    });
    const content = [
      ...[
        { type: 'text', text: 'x' },
        { type: 'reasoning', text: 'r' },
        { type: 'reasoning', text: 's' },
      ],
      ...[
        { type: 'file', mediaType: 'text/x', data: { type: 'text', text: 'y' } },
        { type: 'custom' },
      ],
      { type: 'tool-call', toolCallId: '1', toolName: 'f', input: { a: 1 } },
      { type: 'tool-call', toolCallId: '2', toolName: 'g', input: '{}' },
      result({ type: 'text', value: 'done' }),
    ];
    const toolMessage = { role: 'tool', tool_call_id: '1', name: 'f' };
    assert.deepEqual(messagesOf(user('a'), { role: 'assistant', content }), [
      { role: 'user', content: 'a' },
      {
        ...{ role: 'assistant', content: 'xy', reasoning_content: 'rs' },
        tool_calls: [
          { id: '1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          { id: '2', type: 'function', function: { name: 'g', arguments: '{}' } },
        ],
      },
      { ...toolMessage, content: 'done' },
    ]);
    for (const [output, text] of /** @type {[any, string][]} */ ([
      [{ type: 'error-text', value: 'no' }, 'no'],
      [{ type: 'json', value: { a: 1 } }, '{"a":1}'],
      [{ type: 'error-json', value: 'x' }, 'x'],
      [{ type: 'json', value: undefined }, ''],
      [{ type: 'execution-denied' }, 'The user refused to run this tool.'],
      [{ type: 'execution-denied', reason: 'never' }, 'never'],
      [
        {
          type: 'content',
          value: [{ type: 'text', text: 'a' }, { type: 'custom' }, { type: 'text', text: 'b' }],
        },
        'ab',
      ],
    ])) {
      const list = messagesOf({
        role: 'tool',
        content: [{ type: 'tool-approval-response' }, result(output)],
      });
      assert.deepEqual(list, [{ ...toolMessage, content: text }]);
    }
    const screenshot = {
      type: 'file',
      data: { type: 'data', data: 'w6k=' },
      mediaType: 'image/png',
    };
    const value = [{ type: 'text', text: 'a' }, screenshot];
    const shown = messagesOf({ role: 'tool', content: [result({ type: 'content', value })] });
    const image = { type: 'image', image: 'data:image/png;base64,w6k=' };
    assert.deepEqual(shown, [{ ...toolMessage, content: [{ type: 'text', text: 'a' }, image] }]);
    assert.throws(() => messagesOf({ role: 'assistant', content: [screenshot] }), {
      code: 'UNSUPPORTED',
      message: 'A file of type image/png is in the prompt: only text is supported',
    });
    assert.deepEqual([textOfJson('a'), textOfJson(5), textOfJson(undefined)], ['a', '5', '']);
    assert.deepEqual(unsupported('x'), { type: 'unsupported', feature: 'x' });
    assert.deepEqual(unsupported('x', ''), { type: 'unsupported', feature: 'x', details: '' });
  });

  test('a final assistant message is a prefix, unless it is the only one, empty, a call, or used with a schema', () => {
    const said = (/** @type {string} */ text, /** @type {any[]} */ ...more) => ({
      role: 'assistant',
      content: [{ type: 'text', text }, ...more],
    });
    const prefixOf = (/** @type {any[]} */ prompt, /** @type {any} */ more = {}) =>
      read({ prompt, ...more }).body.messages.at(-1)?.prefix;
    assert.equal(prefixOf([user('a'), said('b')]), true);
    assert.equal(prefixOf([user('a'), said('b')], { responseFormat: { type: 'text' } }), true);
    const called = { type: 'tool-call', toolCallId: '1', toolName: 'f', input: {} };
    for (const prompt of [
      [said('b')],
      [user('a'), said('')],
      [user('a'), said('b', called)],
      [said('b'), user('a')],
    ]) {
      assert.equal(prefixOf(prompt), undefined);
    }
    assert.equal(prefixOf([user('a'), said('b')], { responseFormat: { type: 'json' } }), undefined);
  });

  test('tools and formats are passed on, with warnings about unsupported ones', () => {
    const inputSchema = { type: 'object' };
    const f = { type: 'function', name: 'f', inputSchema };
    const made = { type: 'function', function: { name: 'f', parameters: inputSchema } };
    const toolsOf = (/** @type {any} */ more) => {
      const { body, warnings } = read({ tools: [f], ...more });
      return [body.tools, body.tool_choice, body.response_format, warnings.length];
    };
    assert.deepEqual(toolsOf({}), [[made], 'auto', undefined, 0]);
    assert.deepEqual(toolsOf({ toolChoice: { type: 'required' } }), [
      [made],
      'required',
      undefined,
      0,
    ]);
    const named = { type: 'function', function: { name: 'f' } };
    assert.deepEqual(toolsOf({ toolChoice: { type: 'tool', toolName: 'f' } }), [
      [made],
      named,
      undefined,
      0,
    ]);
    const declared = { ...f, description: '', strict: false };
    const whole = { ...made, function: { ...made.function, description: '', strict: false } };
    assert.deepEqual(toolsOf({ tools: [declared] })[0], [whole]);
    const { body, warnings } = read({ tools: [{ type: 'provider', id: 'x.y' }] });
    assert.equal('tools' in body, false);
    assert.deepEqual(warnings, [unsupported('tool x.y', 'only functions can be called')]);
    const json = { type: 'json' };
    assert.deepEqual(toolsOf({ responseFormat: json }), [
      [made],
      'auto',
      { type: 'json_object' },
      0,
    ]);
    const none = { toolChoice: { type: 'none' }, responseFormat: json };
    assert.deepEqual(toolsOf(none), [[made], 'none', { type: 'json_object' }, 0]);
    const schema = { type: 'string' };
    const formatOf = (/** @type {any} */ responseFormat) =>
      read({ responseFormat }).body.response_format;
    const ofSchema = (/** @type {string} */ name) => ({
      type: 'json_schema',
      json_schema: { name, schema },
    });
    assert.deepEqual(formatOf({ ...json, schema }), ofSchema('answer'));
    assert.deepEqual(formatOf({ ...json, schema, name: 'n' }), ofSchema('n'));
    assert.deepEqual(formatOf({ type: 'text' }), undefined);
  });
});

describe('stream parts', () => {
  const chunk = (/** @type {any} */ delta, /** @type {any} */ more = {}) => {
    const { finish_reason = null, ...others } = more;
    const choices = delta ? [{ index: 0, delta, finish_reason }] : [];
    return { id: 'i', created: 3, model: 'm', choices, ...others };
  };
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 4,
    prompt_tokens_details: { cached_tokens: 2 },
  };
  const begins = { type: 'response-metadata', id: 'i', timestamp: new Date(3000), modelId: 'm' };
  const unknown = {
    inputTokens: {
      total: undefined,
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
    },
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
  };

  test('blocks do not overlap and have separate ids', () => {
    const maker = new PartMaker(false);
    const parts = [
      ...[
        chunk({ role: 'assistant', content: '' }),
        chunk({ reasoning_content: 'r' }),
        chunk({ reasoning_content: 's' }),
      ],
      ...[
        chunk({ content: 'a' }),
        chunk({ content: 'b' }),
        chunk({ reasoning_content: 't', content: 'c' }),
      ],
      ...[
        chunk({}, { finish_reason: 'stop' }),
        chunk(undefined, { usage, timings: { ttftMs: 5 } }),
      ],
    ].flatMap((one) => maker.partsOf(one));
    assert.deepEqual(parts, [
      begins,
      ...[
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'r' },
      ],
      ...[
        { type: 'reasoning-delta', id: '0', delta: 's' },
        { type: 'reasoning-end', id: '0' },
      ],
      ...[
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'a' },
      ],
      ...[
        { type: 'text-delta', id: '1', delta: 'b' },
        { type: 'text-end', id: '1' },
      ],
      ...[
        { type: 'reasoning-start', id: '2' },
        { type: 'reasoning-delta', id: '2', delta: 't' },
      ],
      ...[
        { type: 'reasoning-end', id: '2' },
        { type: 'text-start', id: '3' },
        { type: 'text-delta', id: '3', delta: 'c' },
      ],
    ]);
    assert.deepEqual(maker.end(), [
      { type: 'text-end', id: '3' },
      {
        ...{
          type: 'finish',
          usage: usageOf(/** @type {any} */ (usage)),
          finishReason: { unified: 'stop', raw: 'stop' },
        },
        providerMetadata: { wick: { timings: { ttftMs: 5 } } },
      },
    ]);
  });

  test('calls are streamed in pieces, and count as calls if the reply ended with them', () => {
    for (const reason of ['tool_calls', 'length']) {
      const maker = new PartMaker(true);
      const call = (/** @type {number} */ index, /** @type {any} */ part, id = '') => ({
        ...(id && { id }),
        index,
        function: { arguments: '', ...part },
      });
      const chunks = [
        ...[chunk({ content: 'x' }), chunk({ tool_calls: [call(0, { name: 'f' }, 'c0')] })],
        chunk({
          tool_calls: [call(0, { arguments: '{' }), call(1, { name: 'g', arguments: '1' }, 'c1')],
        }),
        chunk({ tool_calls: [call(0, { arguments: '}' })] }, { finish_reason: reason }),
      ];
      const parts = chunks.flatMap((one) => maker.partsOf(/** @type {any} */ (one)));
      assert.deepEqual(
        parts.filter(({ type }) => type === 'raw').map((one) => /** @type {any} */ (one).rawValue),
        chunks,
      );
      assert.deepEqual(parts.filter(({ type }) => type !== 'raw').slice(3), [
        ...[
          { type: 'text-end', id: '0' },
          { type: 'tool-input-start', id: 'c0', toolName: 'f' },
        ],
        { type: 'tool-input-delta', id: 'c0', delta: '{' },
        ...[
          { type: 'tool-input-start', id: 'c1', toolName: 'g' },
          { type: 'tool-input-delta', id: 'c1', delta: '1' },
        ],
        { type: 'tool-input-delta', id: 'c0', delta: '}' },
      ]);
      const ends = [
        { type: 'tool-input-end', id: 'c0' },
        { type: 'tool-call', toolCallId: 'c0', toolName: 'f', input: '{}' },
        { type: 'tool-input-end', id: 'c1' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'g', input: '1' },
      ].filter(({ type }) => reason === 'tool_calls' || type !== 'tool-call');
      assert.deepEqual(maker.end(), [
        ...ends,
        { type: 'finish', usage: unknown, finishReason: finishOf(reason) },
      ]);
    }
  });

  test('an error part precedes the finish part, whose reason is error', () => {
    const maker = new PartMaker(false);
    maker.partsOf(/** @type {any} */ (chunk({ content: 'a' })));
    const error = new Error('why');
    const finish = {
      type: 'finish',
      usage: unknown,
      finishReason: { unified: 'error', raw: 'error' },
    };
    assert.deepEqual(maker.fail(error), [
      { type: 'text-end', id: '0' },
      { type: 'error', error },
      finish,
    ]);
  });

  test('finish reasons and usage are mapped', () => {
    assert.deepEqual(
      ['stop', 'length', 'tool_calls', 'x', undefined].map((raw) => finishOf(raw).unified),
      ['stop', 'length', 'tool-calls', 'other', 'other'],
    );
    assert.deepEqual(usageOf(undefined), unknown);
    assert.deepEqual(usageOf(/** @type {any} */ (usage)), {
      inputTokens: { total: 9, noCache: 7, cacheRead: 2, cacheWrite: undefined },
      outputTokens: { total: 4, text: undefined, reasoning: undefined },
      raw: usage,
    });
  });
});

describe('objects', () => {
  const schema = z.object({ name: z.enum(['Ada', 'Tom']), age: z.number().int().min(0).max(99) });

  test('Output.object and generateObject give valid objects with any model', async (t) => {
    const { wick } = await open(t);
    const ask = { ...greedy, model: wick(), prompt: 'Ada is 36 years old. Who is it?' };
    const { output } = await generateText({ ...ask, output: Output.object({ schema }) });
    assert.deepEqual(schema.parse(output), output);
    const { object } = await generateObject({ ...ask, schema });
    assert.deepEqual(object, output);
    const { output: list } = await generateText({
      ...{ ...ask, output: Output.array({ element: z.enum(['fox', 'hen']) }) },
      providerOptions: { wick: { logit_bias: {} } },
    });
    assert.ok(list.every((one) => ['fox', 'hen'].includes(one)));
    const { output: choice } = await generateText({
      ...ask,
      output: Output.choice({ options: ['a', 'b'] }),
    });
    assert.ok(['a', 'b'].includes(choice));
  });

  test('partial objects are streamed', async (t) => {
    const { wick } = await open(t);
    const ask = { ...greedy, model: wick(), prompt: 'Ada is 36 years old. Who is it?' };
    const result = streamText({ ...ask, output: Output.object({ schema }) });
    const partial = await collect(result.partialOutputStream);
    assert.ok(partial.length >= 2);
    assert.deepEqual(partial.at(-1), await result.output);
    schema.parse(await result.output);
  });

  test('an unsupported schema is rejected', async (t) => {
    const { wick } = await open(t);
    const odd = z.object({ a: z.string().regex(/(?<=b)c/) });
    const ask = { ...greedy, model: wick(), prompt: 'x', output: Output.object({ schema: odd }) };
    await assert.rejects(generateText(ask), hasCode('UNSUPPORTED'));
  });
});

describe('tools', () => {
  /** Returns options with the model's output for each step. @param {string[]} texts */
  const steps = (...texts) => ({
    stopWhen: isStepCount(5),
    prepareStep: (/** @type {{stepNumber: number}} */ { stepNumber }) => ({
      providerOptions: written(texts[stepNumber]),
    }),
  });

  test('generateText runs the tool and passes its result to the model', async (t) => {
    const { engine, wick } = await open(t, turns);
    const ask = { ...greedy, maxOutputTokens: 200, model: wick(), tools: { weather } };
    const result = await generateText({ ...ask, ...steps(call, 'Yes.'), prompt: 'Is it cold?' });
    assert.equal(result.text, 'Yes.');
    const [{ toolCalls, toolResults, finishReason }, last] = result.steps;
    assert.equal(finishReason, 'tool-calls');
    assert.deepEqual(toolCalls[0].input, { city: 'Oslo' });
    assert.equal(toolResults[0].output, '-3 degrees in Oslo');
    const read = [
      { role: 'user', content: 'Is it cold?' },
      {
        ...{ role: 'assistant', content: '' },
        tool_calls: [
          {
            ...{ id: '1', type: /** @type {const} */ ('function') },
            function: { name: 'weather', arguments: '{"city":"Oslo"}' },
          },
        ],
      },
      { role: 'tool', content: '-3 degrees in Oslo' },
    ];
    assert.equal(last.usage.inputTokens, await engine.countTokens(read));
  });

  test('a tool’s result may be a text file', async (t) => {
    const { wick } = await open(t, turns);
    /** @param {any} part */
    const ask = async (part) => {
      const output = /** @type {any} */ ({ type: 'content', value: [part] });
      const input = { city: 'Oslo' };
      const of = { toolCallId: '1', toolName: 'weather' };
      const { usage } = await generateText({
        ...{ ...greedy, model: wick(), maxOutputTokens: 1 },
        messages: [
          { role: 'user', content: 'Is it cold?' },
          { role: 'assistant', content: [{ type: 'tool-call', ...of, input }] },
          { role: 'tool', content: [{ type: 'tool-result', ...of, output }] },
        ],
      });
      return usage.inputTokens;
    };
    const data = { type: 'data', data: new TextEncoder().encode('hello there') };
    const ofFile = await ask({ type: 'file', data, mediaType: 'text/plain' });
    assert.equal(ofFile, await ask({ type: 'text', text: 'hello there' }));
    assert.notEqual(ofFile, await ask({ type: 'text', text: '' }));
  });

  test('streamText: the tool input in pieces, then the call', async (t) => {
    const { wick } = await open(t, turns);
    const ask = { ...greedy, maxOutputTokens: 200, model: wick(), tools: { weather } };
    const parts = await collect(
      streamText({ ...ask, ...steps(`Let me look. ${call}`, 'Yes.'), prompt: 'Is it cold?' })
        .stream,
    );
    const kinds = parts
      .map(({ type }) => type)
      .filter((type) => /^tool-|^text-(start|end)/.test(type));
    const deltas = parts.filter(({ type }) => type === 'tool-input-delta');
    assert.ok(deltas.length > 1);
    assert.deepEqual(JSON.parse(deltas.map(({ delta }) => delta).join('')), { city: 'Oslo' });
    assert.deepEqual(
      kinds.filter((kind, at) => kind !== kinds[at - 1]),
      [
        ...['text-start', 'text-end', 'tool-input-start', 'tool-input-delta', 'tool-input-end'],
        ...['tool-call', 'tool-result', 'text-start', 'text-end'],
      ],
    );
  });

  test('a truncated call is not a call', async (t) => {
    const { wick } = await open(t, turns);
    const ask = { ...greedy, maxOutputTokens: 12, model: wick(), tools: { weather } };
    const wanted = { ...ask, providerOptions: written(call), prompt: 'Is it cold?' };
    const whole = await generateText(wanted);
    assert.deepEqual([whole.finishReason, whole.toolCalls], ['length', []]);
    const streamed = streamText(wanted);
    assert.deepEqual([await streamed.finishReason, await streamed.toolCalls], ['length', []]);
  });

  test('a schema in addition to tools constrains the text', async (t) => {
    const { wick } = await open(t, turns);
    const { content, warnings } = await wick().doGenerate({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
      responseFormat: { type: 'json', schema: { enum: ['sunny', 'rainy'] } },
      maxOutputTokens: 40,
      tools: [
        { type: 'function', name: 'weather', inputSchema: { type: 'object' } },
        { type: 'provider', id: 'some.search', name: 'search', args: {} },
      ],
    });
    assert.deepEqual(
      warnings.map((one) => one.type === 'unsupported' && one.feature),
      ['tool some.search'],
    );
    const [part] = content;
    const text = part.type === 'text' ? JSON.parse(part.text) : part.type;
    assert.ok(['sunny', 'rainy', 'tool-call'].includes(text), JSON.stringify(content));
  });
});

describe('embeddings and reranking', () => {
  test('embed and embedMany return the engine’s vectors and tokens', {
    skip: shared.skip,
  }, async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-cls.gguf') });
    const model = createWick(engine).embeddingModel();
    const { embedding, usage } = await embed({ model, value: 'a fox' });
    const [vector] = await engine.embed('a fox');
    assert.deepEqual(embedding, Array.from(vector));
    assert.equal(usage.tokens, await engine.countTokens('a fox'));
    const many = await embedMany({ model, values: ['a fox', 'a hen'] });
    assert.deepEqual(many.embeddings[0], embedding);
    const providerOptions = { wick: { prefix: 'a ' } };
    const prefixed = await embed({ model, value: 'fox', providerOptions });
    assert.deepEqual(prefixed.embedding, embedding);
    const { embeddings } = await model.doEmbed({ values: ['a fox'], dimensions: 8 });
    assert.equal(embeddings[0].length, 8);
    const abort = embed({ model, value: 'a fox', maxRetries: 0, abortSignal: AbortSignal.abort() });
    await assert.rejects(abort, isAbort);
    assert.deepEqual((await model.doEmbed({ values: [] })).embeddings, []);
  });

  test('rerank accepts strings and objects', { skip: shared.skip }, async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-rank.gguf') });
    const model = createWick(engine).rerankingModel();
    const documents = ['a hen', 'a fox', 'the sea'];
    const { ranking } = await rerank({ model, query: 'a fox', documents, topN: 2 });
    const { results } = await engine.rerank('a fox', documents, { topN: 2 });
    assert.deepEqual(
      ranking.map(({ originalIndex, score }) => ({ index: originalIndex, score })),
      results.map(({ index, score }) => ({ index, score })),
    );
    const objects = { type: /** @type {const} */ ('object'), values: [{ a: 1 }, { a: 2 }] };
    const signal = { query: 'a', documents: objects, abortSignal: AbortSignal.abort() };
    await assert.rejects(async () => model.doRerank(signal), isAbort);
    const { ranking: two, warnings } = await model.doRerank({ query: 'a', documents: objects });
    assert.deepEqual([two.length, warnings?.[0].type], [2, 'compatibility']);
  });
});

describe('failures', () => {
  test('an abort cancels a generation and a stream, and the engine continues', async (t) => {
    const { engine, wick } = await open(t);
    const ask = {
      model: wick(),
      prompt: 'Tell me a story.',
      providerOptions: endless,
      maxRetries: 0,
    };
    const abortSignal = AbortSignal.timeout(50);
    await assert.rejects(generateText({ ...ask, abortSignal }), { name: 'TimeoutError' });
    const stop = new AbortController();
    const kinds = [];
    for await (const { type } of streamText({ ...ask, abortSignal: stop.signal }).stream) {
      kinds.push(type);
      if (type === 'text-delta') stop.abort();
    }
    assert.equal(kinds.at(-1), 'abort');
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 2,
      'both requests to be aborted',
    );
    assert.ok((await generateText({ ...greedy, model: wick(), prompt: 'Hello' })).text);
  });

  test('a stream whose signal is already aborted does not start', async (t) => {
    const { wick } = await open(t);
    const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }];
    const asked = /** @type {any} */ ({ prompt, abortSignal: AbortSignal.abort() });
    await assert.rejects(async () => collect((await wick().doStream(asked)).stream), isAbort);
  });

  test('leaving a stream cancels its request', async (t) => {
    const { engine, wick } = await open(t);
    const { stream } = await wick().doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Tell me a story.' }] }],
      providerOptions: endless,
    });
    const reader = stream.getReader();
    for (
      let part = await reader.read();
      part.value?.type !== 'text-delta';
      part = await reader.read()
    );
    await reader.cancel();
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 1,
      'the request to be aborted',
    );
  });

  test('an engine error rejects the call, and is a part of a stream', async (t) => {
    const { wick } = await open(t);
    const ask = { ...greedy, model: wick(), prompt: 'fox '.repeat(5000) };
    await assert.rejects(generateText(ask), hasCode('PROMPT_TOO_LONG'));
    /** @type {any[]} */
    const errors = [];
    const result = streamText({ ...ask, onError: ({ error }) => void errors.push(error) });
    const parts = await collect(result.stream);
    assert.equal(errors.length, 1);
    hasCode('PROMPT_TOO_LONG')(errors[0]);
    assert.ok(parts.some(({ type }) => type === 'error'));
  });

  test('the engine is created once, on the first request, and again after a failure', async (t) => {
    const engine = await openEngine(t);
    let calls = 0;
    const wick = createWick(() => {
      calls++;
      if (calls === 1) throw new Error('no network');
      return engine;
    });
    const ask = { ...greedy, model: wick('a name'), prompt: 'Hello' };
    assert.equal(calls, 0);
    await assert.rejects(generateText(ask), /no network/);
    await Promise.all([generateText(ask), generateText(ask)]);
    assert.equal(calls, 2);
    assert.equal(wick('a name').modelId, 'a name');
    for (const wrong of /** @type {any[]} */ ([undefined, null, 5, {}, { url: 'x.gguf' }])) {
      assert.throws(() => createWick(wrong), hasCode('ARG'));
      const late = createWick(async () => wrong)();
      await assert.rejects(async () => late.doGenerate({ prompt: [] }), hasCode('ARG'));
    }
    assert.throws(() => wick.imageModel('x'), hasCode('UNSUPPORTED'));
    const two = { wick: { n: 2 } };
    await assert.rejects(generateText({ ...ask, providerOptions: two }), /n must be 1/);
  });
});

/** The chat class of useChat, without React. @extends {AbstractChat<import('ai').UIMessage>} */
class TestChat extends AbstractChat {
  /** @param {any} init */
  constructor(init) {
    /** @type {any} */
    const state = { status: 'ready', error: undefined, messages: [] };
    state.pushMessage = (/** @type {any} */ one) => state.messages.push(one);
    state.popMessage = () => state.messages.pop();
    state.replaceMessage = (/** @type {number} */ at, /** @type {any} */ one) => {
      state.messages[at] = one;
    };
    state.snapshot = structuredClone;
    super({ ...init, state });
  }
}

/** @param {any} message */
const textOf = ({ parts }) =>
  parts.map((/** @type {any} */ part) => (part.type === 'text' ? part.text : '')).join('');

describe('useChat without a server', () => {
  test('useChat runs turns and regenerates an answer', async (t) => {
    const { engine, wick } = await open(t);
    const system = 'You are Wick, a small and friendly assistant.';
    const model = wick();
    const chat = new TestChat({ transport: new WickChatTransport({ ...greedy, model, system }) });
    await chat.sendMessage({ text: 'My name is Ada.' });
    await chat.sendMessage({ text: 'What is my name?' });
    assert.deepEqual([chat.status, chat.error, chat.messages.length], ['ready', undefined, 4]);
    const messages = [
      { role: 'system', content: system },
      ...chat.messages.map((one) => ({ role: one.role, content: textOf(one) })),
    ];
    const last = messages.pop();
    const body = { messages, temperature: 0, max_tokens: 90, salt: 'x' };
    const expected = await engine.chat.completions.create(body);
    assert.equal(last?.content, expected.choices[0].message.content);
    await chat.regenerate();
    assert.equal(textOf(chat.messages[3]), last?.content);
  });

  test('stop keeps the received part; an error becomes the chat’s error', async (t) => {
    const { wick } = await open(t);
    const transport = new WickChatTransport({ model: wick(), providerOptions: endless });
    const chat = new TestChat({ transport });
    const sent = chat.sendMessage({ text: 'Tell me a story.' });
    while (chat.messages.length < 2 || textOf(chat.messages[1]).length < 10) {
      await new Promise((settle) => setTimeout(settle, 1));
    }
    await chat.stop();
    await sent;
    assert.equal(chat.status, 'ready');
    assert.ok(textOf(chat.messages[1]).length >= 10);
    const refused = new TestChat({
      transport: new WickChatTransport({ ...greedy, model: wick() }),
    });
    await refused.sendMessage({ text: 'fox '.repeat(5000) });
    assert.equal(refused.status, 'error');
    assert.match(refused.error?.message ?? '', /tokens/);
    assert.throws(() => new WickChatTransport(/** @type {any} */ ({})), hasCode('ARG'));
    assert.equal(await transport.reconnectToStream({}), null);
  });

  test('results of tools that run in the page are sent to the model', async (t) => {
    const { wick } = await open(t, turns);
    const model = wick();
    const texts = [call, 'Yes.'];
    /** @type {any[]} */
    let prompt = [];
    const scripted = {
      doStream(/** @type {any} */ options) {
        prompt = options.prompt;
        return model.doStream({ ...options, providerOptions: written(texts.shift() ?? '') });
      },
    };
    const tools = [{ type: 'function', name: 'weather', inputSchema: { type: 'object' } }];
    const options = /** @type {any} */ ({
      ...greedy,
      maxOutputTokens: 200,
      model: scripted,
      tools,
    });
    const chat = new TestChat({
      transport: new WickChatTransport(options),
      onToolCall: (/** @type {any} */ { toolCall: { toolCallId } }) => {
        void chat.addToolOutput({ tool: 'weather', toolCallId, output: { degrees: -3 } });
      },
      sendAutomaticallyWhen: (/** @type {any} */ { messages }) =>
        messages.length === 2 && texts.length === 1,
    });
    await chat.sendMessage({ text: 'Is it cold?' });
    while (chat.status !== 'ready' || texts.length > 0) {
      await new Promise((settle) => setTimeout(settle, 1));
    }
    const kinds = chat.messages[1].parts.map(({ type }) => type);
    assert.deepEqual(kinds, ['step-start', 'tool-weather', 'step-start', 'text']);
    assert.equal(textOf(chat.messages[1]), 'Yes.');
    // a further question uses the whole history
    texts.push('Good.');
    await chat.sendMessage({ text: 'Thank you.' });
    assert.equal(textOf(chat.messages[3]), 'Good.');
    const said = prompt.map(({ role, content }) => [role, content[0].type]);
    const roles = [
      ...[
        ['user', 'text'],
        ['assistant', 'tool-call'],
        ['tool', 'tool-result'],
      ],
      ...[
        ['assistant', 'text'],
        ['user', 'text'],
      ],
    ];
    assert.deepEqual(said, roles);
    assert.deepEqual(prompt[2].content[0].output, { type: 'json', value: { degrees: -3 } });
  });

  test('each part of a message and of an answer is converted', async () => {
    /** @type {any[]} */
    let prompt = [];
    const call = { toolCallId: '1', toolName: 'w' };
    const answered = [
      { type: 'stream-start' },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'text-delta', id: 't', delta: 'Yes.' },
      { type: 'tool-input-start', id: '1', toolName: 'w' },
      { type: 'tool-input-delta', id: '1', delta: '{' },
      { type: 'tool-call', ...call, input: '{"a":1}' },
      { type: 'tool-call', ...call, input: '{"a"' },
      { type: 'error', error: new Error('no') },
      { type: 'error', error: 'never' },
      { type: 'finish', finishReason: { unified: 'stop' } },
    ];
    const model = /** @type {any} */ ({
      doStream(/** @type {any} */ options) {
        prompt = options.prompt;
        const stream = new ReadableStream({
          start(to) {
            for (const part of answered) to.enqueue(part);
            to.close();
          },
        });
        return { stream };
      },
    });
    const transport = new WickChatTransport({ model, system: 'Be brief.' });
    const chunksOf = async (/** @type {AsyncIterable<any>} */ stream) => {
      const chunks = [];
      for await (const chunk of stream) chunks.push(chunk);
      return chunks;
    };
    const parts = [
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'dynamic-tool', toolName: 'a', toolCallId: '1', state: 'input-available' },
      { type: 'dynamic-tool', toolName: 'a', toolCallId: '2', state: 'output-available' },
      { type: 'tool-b', toolCallId: '3', state: 'output-available', input: { c: 1 }, output: 'x' },
      { type: 'tool-b', toolCallId: '4', state: 'output-error', errorText: 'broken' },
      { type: 'tool-b', toolCallId: '5', state: 'output-denied', approval: { reason: 'no' } },
      { type: 'data-own', data: 1 },
      { type: 'step-start' },
      { type: 'text', text: 'Yes.' },
    ];
    const asked = [
      { type: 'text', text: 'See:' },
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAA=' },
      { type: 'file', mediaType: 'image/png', url: 'https://example.org/a.png' },
      { type: 'data-own', data: 1 },
    ];
    const messages = [
      {
        role: 'system',
        parts: [
          { type: 'text', text: 'In ' },
          { type: 'data-own' },
          { type: 'text', text: 'rhymes.' },
        ],
      },
      { role: 'user', parts: asked },
      { role: 'assistant', parts },
      { role: 'assistant', parts: [{ type: 'data-own', data: 1 }] },
    ];
    const stream = await transport.sendMessages(/** @type {any} */ ({ messages }));
    const results = [
      ['2', 'a', {}, { type: 'json', value: null }],
      ['3', 'b', { c: 1 }, { type: 'text', value: 'x' }],
      ['4', 'b', {}, { type: 'error-text', value: 'broken' }],
      ['5', 'b', {}, { type: 'execution-denied', reason: 'no' }],
    ].map(([toolCallId, toolName, input, output]) => ({ toolCallId, toolName, input, output }));
    assert.deepEqual(prompt, [
      { role: 'system', content: 'Be brief.' },
      { role: 'system', content: 'In rhymes.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See:' },
          { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAA=' } },
          {
            type: 'file',
            mediaType: 'image/png',
            data: { type: 'url', url: 'https://example.org/a.png' },
          },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.' },
          ...results.map(({ output, ...one }) => ({ type: 'tool-call', ...one })),
        ],
      },
      {
        role: 'tool',
        content: results.map(({ input, ...one }) => ({ type: 'tool-result', ...one })),
      },
      { role: 'assistant', content: [{ type: 'text', text: 'Yes.' }] },
    ]);
    const errorText = 'The arguments of w are not JSON';
    assert.deepEqual(await chunksOf(stream), [
      { type: 'start' },
      { type: 'start-step' },
      ...answered.slice(1, 5),
      { type: 'tool-input-start', toolCallId: '1', toolName: 'w' },
      { type: 'tool-input-delta', toolCallId: '1', inputTextDelta: '{' },
      { type: 'tool-input-available', ...call, input: { a: 1 } },
      { type: 'tool-input-error', ...call, input: '{"a"', errorText },
      { type: 'error', errorText: 'no' },
      { type: 'error', errorText: 'never' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ]);
  });

  test('an AI SDK agent can run in the page', async (t) => {
    const { wick } = await open(t, turns);
    const agent = new ToolLoopAgent({
      ...{ ...greedy, maxOutputTokens: 200, model: wick(), tools: { weather } },
      prepareStep: ({ stepNumber }) => ({ providerOptions: written([call, 'Yes.'][stepNumber]) }),
    });
    const chat = new TestChat({ transport: new DirectChatTransport({ agent }) });
    await chat.sendMessage({ text: 'Is it cold?' });
    assert.equal(chat.error, undefined);
    assert.equal(textOf(chat.messages[1]), 'Yes.');
  });
});
