// Public bug reports about other servers: streams with several choices, response streams, limits, references in schemas,
// calls in a history, reranking and Anthropic's API. tests/outside/README.md lists the reports with their symptoms.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath } from '../support/package.mjs';
import { askHandler, CHAT } from '../support/report_client.mjs';

const { createHandler } = await import(`${dist}/openai.js`);

const COMPLETIONS = '/v1/completions';
const MESSAGES = '/v1/messages';
const shared = locate('shared');
const hello = { role: 'user', content: 'hi' };
const story = { role: 'user', content: 'Tell me a story about a fox.' };
const warm = { temperature: 1.5, top_k: 0, top_p: 1, min_p: 0 };

/** @type {import('../../js/index.js').Engine} */
let engine;
/** @type {import('../support/report_client.mjs').Handle} */
let handle;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1 });
  handle = createHandler(engine);
});
after(() => engine.close());

/** @param {string} path @param {unknown} body @param {number} [status] @returns {Promise<any>} */
const ask = (path, body, status) => askHandler(handle, path, body, status);

/** @param {object} [more] @param {number} [status] @returns {Promise<any>} */
const chat = (more, status) => ask(CHAT, { messages: [story], max_tokens: 12, ...more }, status);

/** @param {string} name @param {object} [parameters] */
const tool = (name, parameters) => ({ type: 'function', function: { name, parameters } });

/**
 * Returns a function that sends requests to a separate engine.
 * @param {import('node:test').TestContext} t
 * @param {object} options
 * @returns {Promise<(path: string, body: unknown, status?: number) => Promise<any>>}
 */
async function openOther(t, options) {
  const other = await createEngine(/** @type {any} */ ({ threads: 1, ...options }));
  t.after(() => other.close());
  const own = createHandler(other);
  return (path, body, status) => askHandler(own, path, body, status);
}

// ---- streams ----

// ollama/ollama#4357, sgl-project/sglang#3912
test('finish_reason is null until the end, and never an empty string', async () => {
  const streamed = { stream: true, temperature: 0, max_tokens: 4 };
  for (const events of [
    await chat(streamed),
    await ask(COMPLETIONS, { ...streamed, prompt: 'Once' }),
  ]) {
    const reasons = events.map((/** @type {any} */ one) => one.choices[0].finish_reason);
    assert.ok(reasons.length > 3);
    assert.deepEqual(reasons, [...reasons.slice(1).fill(null), 'length']);
  }
});

// BerriAI/litellm#3276, BerriAI/litellm#5236
test('pieces of several choices have the choice’s index, and add up to its text', async () => {
  for (const [path, body] of /** @type {[string, object][]} */ ([
    [CHAT, { messages: [story] }],
    [COMPLETIONS, { prompt: 'Once upon a time' }],
  ])) {
    const asked = { ...body, ...warm, n: 3, seed: 4, max_tokens: 10 };
    const textOf = (/** @type {any} */ one) => one.text ?? (one.message ?? one.delta).content ?? '';
    const whole = (await ask(path, asked)).choices.map(textOf);
    const texts = ['', '', ''];
    const ends = [0, 0, 0];
    for (const { choices } of await ask(path, { ...asked, stream: true })) {
      for (const choice of choices) {
        texts[choice.index] += textOf(choice);
        if (choice.finish_reason !== null) ends[choice.index]++;
      }
    }
    assert.deepEqual([texts, ends], [whole, [1, 1, 1]]);
    assert.equal(new Set(texts).size, 3);
  }
});

// tenstorrent/tt-inference-server#632, ikawrakow/ik_llama.cpp#2189
test('a streamed completion reports token counts once, at its end', async () => {
  const stream_options = { include_usage: true };
  const asked = { prompt: 'Once', stream: true, stream_options, max_tokens: 5, temperature: 0 };
  const events = await ask(COMPLETIONS, asked);
  const counted = events.filter((/** @type {any} */ one) => one.usage);
  assert.deepEqual(counted, [events.at(-1)]);
  assert.equal(counted[0].usage.completion_tokens, 5);
});

// ogx-ai/ogx#5309, Sophomoresty/gemini-web2api#57, lemonade-sdk/lemonade#3607, BerriAI/litellm#28899
test('the events of a response are numbered, have indices, and are complete', async () => {
  const asked = { input: story.content, stream: true, temperature: 0, max_output_tokens: 16 };
  const events = await ask('/v1/responses', asked);
  const names = events.map((/** @type {any} */ one) => one.type.replace(/^response\./, ''));
  assert.deepEqual(
    names.filter((/** @type {string} */ name, /** @type {number} */ i) => name !== names[i - 1]),
    [
      ...['created', 'in_progress', 'output_item.added', 'content_part.added'],
      ...['output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done'],
      'incomplete',
    ],
  );
  assert.deepEqual(
    events.map((/** @type {any} */ one) => one.sequence_number),
    Object.keys(events).map(Number),
  );
  let text = '';
  for (const event of events) {
    if (/output_item|content_part|output_text/.test(event.type))
      assert.equal(event.output_index, 0);
    if (/content_part|output_text/.test(event.type)) assert.equal(event.content_index, 0);
    if (event.type === 'response.output_text.delta') text += event.delta;
    if (event.type === 'response.output_text.done') assert.equal(event.text, text);
  }
  assert.equal(events.at(-1).response.output[0].content[0].text, text);
});

// ---- limits ----

// abetlen/llama-cpp-python#1907
test('max_completion_tokens limits a chat, even if max_tokens is given', async () => {
  for (const more of [{ max_tokens: undefined }, { max_tokens: 9 }, { max_tokens: null }]) {
    const { usage } = await chat({ temperature: 0, max_completion_tokens: 3, ...more });
    assert.equal(usage.completion_tokens, 3);
  }
});

// JustVugg/colibri#260: clients send the limit of a different model
test('a limit beyond the context is not an error', async () => {
  const stop = [' ', '.'];
  for (const max_tokens of [32_000, 4_294_967_295]) {
    assert.equal((await chat({ max_tokens, stop })).choices[0].finish_reason, 'stop');
    await ask(MESSAGES, { messages: [story], max_tokens, stop_sequences: stop });
  }
});

// RooCodeInc/Roo-Code#10149, alondmnt/joplin-plugin-jarvis#84
test('a negative limit is rejected with its value, except -1, which means no limit', async () => {
  const { error } = await chat({ max_tokens: -24 }, 400);
  assert.equal(error.param, 'max_tokens');
  assert.match(error.message, /-24/);
  assert.equal((await chat({ max_tokens: -1, stop: [' '] })).choices[0].finish_reason, 'stop');
});

// gonka-ai/gonka#1170: ids outside the vocabulary crashed vLLM's engine
test('an unknown token id is rejected, and the next request is answered', async () => {
  for (const id of ['100000', '4294967295', '99999999999999999999']) {
    await chat({ logit_bias: { [id]: 5 } }, 400);
    await ask(COMPLETIONS, { prompt: [Number(id)], max_tokens: 1 }, 400);
    await ask('/v1/embeddings', { input: [Number(id)] }, 400);
  }
  await chat({ stop_token_ids: [100_000], min_tokens: 1 }, 400);
  assert.equal((await chat()).choices.length, 1);
});

// ---- constraints ----

/** @param {object} schema @param {number} [status] @returns {Promise<any>} */
const withSchema = (schema, status) => {
  const json_schema = { name: 'a', strict: true, schema };
  return chat(
    { temperature: 0, max_tokens: 200, response_format: { type: 'json_schema', json_schema } },
    status,
  );
};
/** @param {object} schema @returns {Promise<any>} */
const parsedOf = async (schema) =>
  JSON.parse((await withSchema(schema)).choices[0].message.content);

// ggml-org/llama.cpp#24096: the answer was the reasoning
test('json_object also gives an object after reasoning', { skip: shared.skip }, async (t) => {
  const path = join(shared.path, 'vectors/templates/Qwen-Qwen3-0.6B.jinja');
  const other = await openOther(t, {
    file: modelPath,
    chatTemplate: readFileSync(path, 'utf8'),
    contextSize: 512,
  });
  const keys = { type: 'object', properties: { status: { const: 'ok' } }, required: ['status'] };
  for (const enable_thinking of [false, true]) {
    const { choices } = await other(CHAT, {
      ...{ messages: [hello], temperature: 0, max_tokens: 120 },
      response_format: { type: 'json_object', schema: { ...keys, additionalProperties: false } },
      chat_template_kwargs: { enable_thinking },
    });
    const [{ message, finish_reason }] = choices;
    if (finish_reason === 'length')
      assert.equal(message.content ?? '', '', 'only reasoning was generated');
    else assert.deepEqual(JSON.parse(message.content), { status: 'ok' });
    if (!enable_thinking) assert.equal(finish_reason, 'stop');
  }
});

// ggml-org/llama.cpp#16790
test('a reference may point into a list of schemas', async () => {
  const schema = {
    ...{ type: 'object', required: ['tree'], additionalProperties: false },
    properties: {
      tree: { anyOf: [{ const: 'leaf' }, { type: 'array', maxItems: 1 }] },
      copy: { $ref: '#/properties/tree/anyOf/0' },
    },
  };
  const found = await parsedOf({ ...schema, required: ['tree', 'copy'] });
  assert.equal(found.copy, 'leaf');
});

// ggml-org/llama.cpp#8073, abetlen/llama-cpp-python#1048
test('definitions that refer to each other are enforced, including enums', async () => {
  const found = await parsedOf({
    $defs: {
      Color: { enum: ['red', 'green'] },
      Box: {
        ...{ type: 'object', required: ['color', 'lid'], additionalProperties: false },
        properties: { color: { $ref: '#/$defs/Color' }, lid: { $ref: '#/$defs/Lid' } },
      },
      Lid: { type: ['null', 'boolean'] },
    },
    $ref: '#/$defs/Box',
  });
  assert.deepEqual(Object.keys(found), ['color', 'lid']);
  assert.ok(['red', 'green'].includes(found.color));
  assert.ok([null, true, false].includes(found.lid));
});

// mlc-ai/xgrammar#774: such references allowed anything
test('an unresolved reference is rejected with its path', async () => {
  for (const $ref of [
    ...['https://example.com/schema.json', 'other.json', 'other.json#/$defs/value'],
    ...['#named-anchor', '/$defs/Name', '#/$defs/Other', '#/$defs/Name/properties'],
  ]) {
    const schema = {
      ...{ type: 'object', required: ['a'], additionalProperties: false },
      properties: { a: { $ref } },
      $defs: { Name: { enum: ['x'] } },
    };
    const { error } = await withSchema(schema, 400);
    assert.equal(error.param, 'response_format');
    assert.match(error.message, /#\/properties\/a\/\$ref: /);
  }
});

// ggml-org/llama.cpp#26596, unslothai/unsloth#9923, openclaw/openclaw#63509
test('bounds in the thousands in the schemas of many tools are compiled', async () => {
  const finding = {
    ...{ type: 'object', required: ['title', 'text'], additionalProperties: false },
    properties: {
      title: { type: 'string', minLength: 1, maxLength: 65_536 },
      text: { type: 'string', maxLength: 2000 },
      tags: { type: 'array', maxItems: 2000, items: { type: 'string', maxLength: 2000 } },
    },
  };
  const list = { type: 'array', items: finding, maxItems: 2000 };
  const parameters = { type: 'object', properties: { list }, required: ['list'] };
  const tools = Array.from({ length: 34 }, (_, i) => tool(`report_${i}`, parameters));
  for (const tool_choice of ['auto', 'required']) {
    assert.equal((await chat({ tools, tool_choice, max_tokens: 2 })).choices.length, 1);
  }
});

// ---- calls ----

// sigoden/aichat#1296, sigoden/aichat#1217, qwersyk/Newelle#429
test('earlier calls without an id, or with empty arguments, are accepted', async () => {
  /** @type {number[]} */
  const counts = [];
  for (const [id, args] of [
    ['call_1', '{}'],
    [null, '{}'],
    [undefined, '{}'],
    ['call_1', ''],
  ]) {
    const call = { id, type: 'function', function: { name: 'now', arguments: args } };
    const result = { role: 'tool', tool_call_id: id, content: 'noon' };
    const messages = [hello, { role: 'assistant', content: null, tool_calls: [call] }, result];
    counts.push((await chat({ messages, tools: [tool('now')] })).usage.prompt_tokens);
  }
  assert.deepEqual(counts.slice(1, 3), [counts[0], counts[0]]);
});

// agno-agi/agno#6303, writer/writer-framework#675
test('a call of a tool without parameters has an empty object as arguments', async () => {
  const empty = { type: 'object', properties: {}, additionalProperties: false };
  for (const parameters of [undefined, empty]) {
    for (const stream of [false, true]) {
      const asked = { tools: [tool('now', parameters)], tool_choice: 'required', max_tokens: 60 };
      const found = await chat({ ...asked, temperature: 0, stream, parallel_tool_calls: false });
      const parts = stream
        ? found.flatMap((/** @type {any} */ one) => one.choices[0]?.delta.tool_calls ?? [])
        : found.choices[0].message.tool_calls;
      const text = parts.map((/** @type {any} */ one) => one.function.arguments ?? '').join('');
      const value = JSON.parse(text);
      assert.equal(typeof value, 'object');
      if (parameters) assert.deepEqual(value, {});
    }
  }
});

// ---- templates ----

// huggingface/transformers.js#1176
test('a template may remove the reasoning, like DeepSeek’s', async (t) => {
  const template =
    "{% for m in messages %}{% set content = m['content'] %}{% if '</think>' in content %}" +
    "{% set content = content.split('</think>')[-1] %}{% endif %}{{ content }}|{% endfor %}";
  const other = await openOther(t, { file: modelPath, chatTemplate: template });
  const thought = { role: 'assistant', content: '<think>No.</think>Yes.' };
  const { prompt } = await other('/apply-template', { messages: [hello, thought, hello] });
  assert.equal(prompt, 'hi|Yes.|hi|');
});

// ---- reranking and embeddings ----

// mudler/LocalAI#7189, mudler/LocalAI#6700, run-llama/llama_index#20597
test('a ranking is sorted by score, cut to top_n, and contains the index of each document', {
  skip: shared.skip,
}, async (t) => {
  const file = join(shared.path, 'vectors/reference-more/models/bert-rank.gguf');
  const other = await openOther(t, { file });
  const documents = ['a fox', 'the hen ran', 'it is cold', 'a', 'the fox and the hen'];
  const asked = { query: 'a fox', documents, return_documents: true };
  const { results } = await other('/v1/rerank', asked);
  const scores = results.map((/** @type {any} */ one) => one.relevance_score);
  assert.deepEqual(
    scores,
    scores.toSorted((/** @type {number} */ a, /** @type {number} */ b) => b - a),
  );
  assert.ok(new Set(scores).size > 3);
  for (const { index, document } of results) assert.equal(document.text, documents[index]);
  for (const top_n of [1, 2, 9]) {
    const cut = await other('/v1/rerank', { ...asked, top_n });
    assert.deepEqual(cut.results, results.slice(0, top_n));
  }
  for (const [index, text] of documents.entries()) {
    const alone = await other('/v1/rerank', { ...asked, documents: [text] });
    const own = results.find((/** @type {any} */ one) => one.index === index);
    assert.equal(alone.results[0].relevance_score, own.relevance_score);
  }
});

// kekzl/imp#890
test('dimensions are applied or rejected, and inputs longer than the context are rejected', async () => {
  const [{ embedding }] = (await ask('/v1/embeddings', { input: 'a hen' })).data;
  const [short] = (await ask('/v1/embeddings', { input: 'a hen', dimensions: 8 })).data;
  assert.equal(short.embedding.length, 8);
  const length = Math.hypot(...embedding.slice(0, 8));
  for (const [i, one] of short.embedding.entries()) {
    assert.ok(Math.abs(one - embedding[i] / length) < 1e-6);
  }
  for (const dimensions of [0, -1, 1.5, embedding.length + 1]) {
    const { error } = await ask('/v1/embeddings', { input: 'a hen', dimensions }, 400);
    assert.match(error.message, /dimensions/);
  }
  await ask('/v1/embeddings', { input: 'word '.repeat(9000) }, 400);
});

// ---- Anthropic's API ----

// router-for-me/CLIProxyAPI#679: system and tools were not counted
test('tokens counted in advance equal those of the answer', async () => {
  const input_schema = { type: 'object', properties: { city: { type: 'string' } } };
  const asked = {
    messages: [hello],
    system: 'You are a fox that answers in one word.',
    tools: [{ name: 'weather', description: 'Of a city', input_schema }],
  };
  const counted = [];
  for (const body of [{ messages: [hello] }, { ...asked, tools: undefined }, asked]) {
    const { input_tokens } = await ask('/v1/messages/count_tokens', body);
    const { usage } = await ask(MESSAGES, { ...body, max_tokens: 1 });
    assert.equal(input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
    counted.push(input_tokens);
  }
  assert.ok(counted[0] < counted[1]);
});

// BerriAI/litellm#31069: 0 at the beginning of a stream
test('cached tokens are counted in a stream as in a full response', async () => {
  const system = 'A fox and a hen lived near the river, and they were friends. '.repeat(6);
  const asked = { messages: [hello], system, max_tokens: 2, temperature: 0 };
  await ask(MESSAGES, asked);
  const { usage } = await ask(MESSAGES, asked);
  assert.ok(usage.cache_read_input_tokens > 32, JSON.stringify(usage));
  const events = await ask(MESSAGES, { ...asked, stream: true });
  /** @type {Record<string, number>} */
  const streamed = {};
  for (const event of events) Object.assign(streamed, event.message?.usage, event.usage);
  assert.equal(streamed.cache_read_input_tokens, usage.cache_read_input_tokens);
  assert.equal(streamed.input_tokens, usage.input_tokens);
  assert.equal(streamed.output_tokens, usage.output_tokens);
});
