// Public bug reports about other servers, over HTTP: sampling, streams, caches, requests that end early, embeddings and
// calls. tests/outside/README.md lists the reports with their symptoms.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createEngine, dist, modelPath } from '../support/package.mjs';
import { askHandler, CHAT, contentOf, post } from '../support/report_client.mjs';

const { createHandler } = await import(`${dist}/openai.js`);

const hello = { role: 'user', content: 'hi' };
const story = { role: 'user', content: 'Tell me a story about a fox.' };

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

/** @param {object} [more] @param {object[]} [messages] @returns {Promise<any>} */
const chat = (more, messages = [story]) => ask(CHAT, { messages, max_tokens: 12, ...more });

/** @param {object} [more] @param {object[]} [messages] @returns {Promise<string>} */
const textOf = async (more, messages) => (await chat(more, messages)).choices[0].message.content;

const warm = { temperature: 1.5, top_k: 0, top_p: 1, min_p: 0, max_tokens: 16 };

// ---- sampling ----

// vllm-project/vllm#51226
test('a seed is respected alongside requests without a seed', async () => {
  const alone = await textOf({ ...warm, seed: 42 });
  for (let round = 0; round < 4; round++) {
    const asked = [{ ...warm, seed: 42 }, warm, { ...warm, seed: 7 }, warm];
    const texts = await Promise.all(asked.map((more) => textOf(more)));
    assert.equal(texts[0], alone);
  }
});

// ollama/ollama#5044
test('a seed does not change the temperature: different seeds give different outputs', async () => {
  const texts = [];
  for (let seed = 1; seed <= 6; seed++) texts.push(await textOf({ ...warm, seed }));
  assert.equal(new Set(texts).size, 6);
});

// Blaizzy/mlx-vlm#1818 (within one batch)
test('without a seed all answers differ, even concurrent ones', async () => {
  const later = [await textOf(warm), await textOf(warm), await textOf(warm)];
  const together = await Promise.all([textOf(warm), textOf(warm), textOf(warm)]);
  assert.equal(new Set([...later, ...together]).size, 6);
});

// ollama/ollama#5274, ollama/ollama#586, vllm-project/vllm#23138
test('temperature 0 always gives the same answer, regardless of seed and other requests', async () => {
  const alone = await textOf({ temperature: 0 });
  const asked = [1, 2, 3, 4].flatMap((seed) => [
    { temperature: 0, seed },
    { ...warm, seed },
  ]);
  const texts = await Promise.all(asked.map((more) => textOf(more)));
  for (let i = 0; i < texts.length; i += 2) assert.equal(texts[i], alone);
});

// togethercomputer/together-py#214
test('choices with one seed differ, and the seed reproduces them', async () => {
  const texts = async () =>
    (await chat({ ...warm, n: 3, seed: 5 })).choices.map(
      (/** @type {any} */ one) => one.message.content,
    );
  const first = await texts();
  assert.equal(new Set(first).size, 3);
  assert.deepEqual(await texts(), first);
});

// raullenchai/Rapid-MLX#470, osaurus-ai/vmlx-swift#295
test('penalties count generated tokens but not the prompt', async () => {
  const body = { prompt: 'Once upon a time', temperature: 0, max_tokens: 1, logprobs: 1 };
  const plain = await ask('/v1/completions', body);
  const first = plain.choices[0].text;
  const said = { ...body, prompt: `${body.prompt}${first}${first}${first}` };
  for (const penalty of [{ frequency_penalty: 2 }, { presence_penalty: 2 }]) {
    const [with_, without] = [
      await ask('/v1/completions', { ...said, ...penalty }),
      await ask('/v1/completions', said),
    ];
    assert.equal(with_.choices[0].text, without.choices[0].text);
  }
  const long = { ...body, max_tokens: 60, logprobs: 0 };
  const repeats = async (/** @type {object} */ more) => {
    const { text } = (await ask('/v1/completions', { ...long, ...more })).choices[0];
    const ids = await engine.tokenize(text);
    return ids.length - new Set(ids).size;
  };
  assert.ok((await repeats({ frequency_penalty: 2 })) < (await repeats({})));
});

// ggml-org/llama.cpp#4047, mistralai/mistral-inference#122
test('an answer has the requested number of tokens, even if it is one', async () => {
  for (const max_tokens of [1, 2, 3]) {
    const { usage, choices } = await chat({ max_tokens, temperature: 0 });
    assert.equal(usage.completion_tokens, max_tokens);
    assert.equal(choices[0].finish_reason, 'length');
  }
});

// ---- streams and characters ----

// Arthur-Ficial/apfel#100, ROCm/ATOM#1711
test('a stream has a chunk of usage only on request, with an empty list of choices', async () => {
  const plain = await chat({ stream: true, max_tokens: 3 });
  assert.ok(plain.every((/** @type {any} */ one) => one.choices.length === 1 && !one.usage));
  const events = await chat({
    stream: true,
    max_tokens: 3,
    stream_options: { include_usage: true },
  });
  assert.deepEqual(events.at(-1).choices, []);
  assert.equal(events.at(-1).usage.completion_tokens, 3);
  assert.equal(events.filter((/** @type {any} */ one) => one.choices.length === 0).length, 1);
});

const emoji = '👩‍👩‍👧‍👦 Ça 北京 🦊';
const saysEmoji = {
  temperature: 0,
  max_tokens: 200,
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { const: emoji } } },
};

// elie222/rakazo#416, ggml-org/llama.cpp#4036, abetlen/llama-cpp-python#372
test('no chunk contains an incomplete character', async () => {
  const events = await chat({ ...saysEmoji, stream: true });
  for (const { choices } of events) {
    const content = choices[0]?.delta.content ?? '';
    assert.ok(content.isWellFormed() && !content.includes('\ufffd'), JSON.stringify(content));
  }
  assert.equal(JSON.parse(contentOf(events)), emoji);
});

// Michael-A-Kuykendall/shimmy#139
test('a stop string after multi-byte characters ends the answer at the right position', async () => {
  for (const stop of ['Ça', '京', '🦊', ' ']) {
    const text = await textOf({ ...saysEmoji, stop: [stop] });
    assert.equal(text, JSON.stringify(emoji).slice(0, JSON.stringify(emoji).indexOf(stop)));
  }
});

// JustVugg/colibri#1589, MadSkittles/Router-Maestro#37
test('a lone surrogate does not cause a server error', async () => {
  const half = '\\ud83d';
  for (const [path, body] of /** @type {const} */ ([
    [CHAT, `{"messages":[{"role":"user","content":"a ${half}"}],"max_tokens":2}`],
    ['/v1/completions', `{"prompt":"${half} b","max_tokens":2}`],
    ['/v1/embeddings', `{"input":"x ${half} y"}`],
    ['/v1/responses', `{"input":"x \\ude00 y","max_output_tokens":16}`],
  ])) {
    await ask(path, body);
  }
  const cut = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"stop":["${half}"]}`;
  const answer = await handle(post(CHAT, cut));
  assert.ok(answer.status < 500, await answer.text());
});

// ---- prompt cache ----

// vllm-project/vllm#7845, tenstorrent/vllm#415
test('an answer with a cached prompt equals the one without the cache', async () => {
  const text = 'A fox and a hen went to the market. '.repeat(12);
  const body = { temperature: 0, max_tokens: 16, logprobs: true, top_logprobs: 3 };
  const messages = [{ role: 'user', content: `${text}Then?` }];
  const first = await chat(body, messages);
  const again = await chat(body, messages);
  const other = await chat(body, [{ role: 'user', content: `${text}Why?` }]);
  assert.ok(first.usage.prompt_tokens_details.cached_tokens < 32);
  assert.ok(again.usage.prompt_tokens_details.cached_tokens > 64);
  assert.deepEqual(again.choices, first.choices);
  const fresh = await createEngine({ file: modelPath, threads: 1 });
  const alone = await askHandler(createHandler(fresh), CHAT, {
    ...body,
    messages: [{ role: 'user', content: `${text}Why?` }],
  });
  assert.ok(other.usage.prompt_tokens_details.cached_tokens > 64);
  assert.deepEqual(other.choices, alone.choices);
  await fresh.close();
});

// ggml-org/llama.cpp#4329, ggml-org/llama.cpp#14113, abetlen/llama-cpp-python#1369
test('the next turn of a chat finds the previous turn and its answer in the cache', async () => {
  const messages = [{ role: 'user', content: 'Count with me: '.repeat(10) }];
  const more = { temperature: 0, max_tokens: 48 };
  const { choices, usage } = await chat(more, messages);
  const turns = [...messages, choices[0].message, hello];
  const cached = (await chat(more, turns)).usage.prompt_tokens_details.cached_tokens;
  assert.ok(cached > usage.prompt_tokens, `${cached} of ${usage.total_tokens}`);
});

// ---- requests that end early ----

/** Waits until the engine is idle. */
async function atRest() {
  for (;;) {
    const { running, waiting } = (await engine.stats()).requests;
    if (running + waiting === 0) return;
    await new Promise((done) => setTimeout(done, 1));
  }
}

// ggml-org/llama.cpp#24496, ggml-org/llama.cpp#11720, vllm-project/vllm#54947, cubist38/mlx-openai-server#269
test('generation stops when a client disconnects', async () => {
  for (const stream of [true, false]) {
    const gone = new AbortController();
    const before = (await engine.stats()).requests.aborted;
    const body = { messages: [story], max_tokens: 2000, stream, logit_bias: { 0: -100, 2: -100 } };
    const answered = handle(post(CHAT, body, gone.signal));
    if (stream) await (await answered).body?.getReader().read();
    else await new Promise((done) => setTimeout(done, 5));
    gone.abort();
    await answered;
    await atRest();
    assert.equal((await engine.stats()).requests.aborted, before + 1);
    assert.equal(
      await textOf({ temperature: 0 }, [hello]),
      await textOf({ temperature: 0 }, [hello]),
    );
  }
});

// ggml-org/llama.cpp#15232
test('prefill stops when a client disconnects', async () => {
  const gone = new AbortController();
  const before = (await engine.stats()).requests.aborted;
  const body = { prompt: 'fox hen '.repeat(900), max_tokens: 5 };
  const answered = handle(post('/v1/completions', body, gone.signal));
  await new Promise((done) => setTimeout(done, 1));
  gone.abort();
  assert.equal((await answered).status, 499);
  await atRest();
  assert.equal((await engine.stats()).requests.aborted, before + 1);
});

// mlc-ai/web-llm#858
test('an abandoned stream does not block the next request', async () => {
  for (let i = 0; i < 4; i++) {
    const answer = await handle(post(CHAT, { messages: [story], max_tokens: 500, stream: true }));
    const reader = answer.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    assert.equal((await chat({ max_tokens: 1 })).choices.length, 1);
  }
  await atRest();
});

// ---- embeddings ----

// lmstudio-ai/lmstudio-bug-tracker#756, pietheinstrengholt/rssmonster#276, vllm-project/vllm#6174
test('vectors in base64 equal those in numbers', async () => {
  const input = ['a hen', 'a fox'];
  const [numbers, coded] = [
    await ask('/v1/embeddings', { input }),
    await ask('/v1/embeddings', { input, encoding_format: 'base64' }),
  ];
  for (const [i, { embedding }] of coded.data.entries()) {
    const bytes = Buffer.from(embedding, 'base64');
    const floats = Array.from({ length: bytes.length / 4 }, (_, k) => bytes.readFloatLE(4 * k));
    assert.deepEqual(floats, numbers.data[i].embedding.map(Math.fround));
  }
  await ask('/v1/embeddings', { input, encoding_format: 'md5' }, 400);
});

// michaelfeil/infinity#295, huggingface/text-embeddings-inference#106, tensorzero/tensorzero#4334
test('tokens are accepted in place of strings', async () => {
  const texts = ['a hen and a fox', 'a fox'];
  const ids = [await engine.tokenize(texts[0]), await engine.tokenize(texts[1])];
  const vectors = async (/** @type {unknown} */ input) =>
    (await ask('/v1/embeddings', { input })).data.map((/** @type {any} */ one) => one.embedding);
  const wanted = await vectors(texts);
  assert.deepEqual(await vectors(ids.map((list) => [...list])), wanted);
  assert.deepEqual(await vectors([...ids[0]]), [wanted[0]]);
});

// CodeWithKyrian/transformers-php#44, huggingface/sentence-transformers#2569
test('an input has the same vector alone and in a batch with longer ones', async () => {
  const texts = ['a', 'a hen', 'the fox and the hen '.repeat(20)];
  const together = (await ask('/v1/embeddings', { input: texts })).data;
  for (const [i, input] of texts.entries()) {
    const [{ embedding }] = (await ask('/v1/embeddings', { input })).data;
    assert.deepEqual(embedding, together[i].embedding);
  }
});

// ---- calls and constraints ----

const tool = (/** @type {string} */ name, /** @type {object} */ parameters) => ({
  type: 'function',
  function: { name, parameters },
});
const fixed = (/** @type {object} */ members) => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(members).map(([key, one]) => [key, { const: one }]),
  ),
  required: Object.keys(members),
  additionalProperties: false,
});

// sgl-project/sglang#9696
test('parallel_tool_calls: false allows only one call', async () => {
  const tools = [tool('f', fixed({ a: 1 })), tool('g', fixed({ b: 2 }))];
  const more = { tools, tool_choice: 'required', max_tokens: 300 };
  for (let seed = 0; seed < 6; seed++) {
    const { choices } = await chat({ ...warm, ...more, seed, parallel_tool_calls: false });
    assert.equal(choices[0].message.tool_calls.length, 1);
    assert.equal(choices[0].finish_reason, 'tool_calls');
  }
});

// openai/openai-agents-python#4330, openai/openai-openapi#287
test('parallel_tool_calls without tools, or null, is accepted', async () => {
  for (const parallel_tool_calls of [true, false, null]) {
    assert.equal((await chat({ parallel_tool_calls })).object, 'chat.completion');
    await ask('/v1/responses', { input: 'hi', max_output_tokens: 16, parallel_tool_calls });
  }
});

// ollama/ollama#15457, ollama/ollama#7881, ogx-ai/ogx#4430, BerriAI/litellm#37792
test('each of several streamed calls has its index, id and arguments', async () => {
  const tools = [tool('f', fixed({ a: 1 })), tool('g', fixed({ b: [2] }))];
  const logit_bias = { 0: -100, 2: -100 }; // forbids the end of the turn
  const more = { ...warm, tools, tool_choice: 'required', stream: true, logit_bias };
  let most = 0;
  for (let seed = 0; seed < 12 && most < 2; seed++) {
    const events = await chat({ ...more, max_tokens: 300, seed });
    assert.equal(new Set(events.map((/** @type {any} */ one) => one.id)).size, 1);
    /** @type {any[]} */
    const calls = [];
    for (const { choices } of events) {
      for (const { index, id, function: part } of choices[0]?.delta.tool_calls ?? []) {
        calls[index] ??= { id, name: part.name, text: '' };
        calls[index].text += part.arguments ?? '';
      }
    }
    most = Math.max(most, calls.length);
    assert.equal(new Set(calls.map(({ id }) => id)).size, calls.length);
    const wanted = /** @type {any} */ ({ f: { a: 1 }, g: { b: [2] } });
    const whole = events.at(-1).choices[0].finish_reason === 'tool_calls';
    for (const { name, text } of whole ? calls : calls.slice(0, -1)) {
      assert.deepEqual(JSON.parse(text), wanted[name]);
    }
  }
  assert.ok(most >= 2, 'no seed gave two calls');
});

// BerriAI/litellm#27144
test('arguments of a call are the same in the deltas, in the last event and in the item', async () => {
  const parameters = fixed({ a: 5, b: [7] });
  const events = await ask('/v1/responses', {
    ...{ input: 'hi', stream: true, tool_choice: 'required', max_output_tokens: 200 },
    tools: [{ type: 'function', name: 'add', parameters, strict: true }],
    parallel_tool_calls: false,
  });
  const of = (/** @type {string} */ type) =>
    events.filter((/** @type {any} */ one) => one.type === `response.${type}`);
  const text = of('function_call_arguments.delta')
    .map((/** @type {any} */ one) => one.delta)
    .join('');
  assert.deepEqual(JSON.parse(text), { a: 5, b: [7] });
  assert.deepEqual(
    of('function_call_arguments.done').map((/** @type {any} */ one) => one.arguments),
    [text],
  );
  const items = of('output_item.done').filter((/** @type {any} */ one) => one.item.name === 'add');
  assert.equal(items[0].item.arguments, text);
});

// ollama/ollama#9092
test('text is also streamed in pieces if there are tools', async () => {
  const tools = [tool('f', fixed({ a: 1 }))];
  const events = await chat({ tools, stream: true, temperature: 0, max_tokens: 24 });
  const pieces = events.filter((/** @type {any} */ one) => one.choices[0]?.delta.content);
  assert.ok(pieces.length > 8, `${pieces.length}`);
});

// ollama/ollama#2577, ollama/ollama#2623
test('JSON ends with its last bracket, without whitespace up to the limit', async () => {
  for (let seed = 0; seed < 4; seed++) {
    const more = { ...warm, seed, response_format: { type: 'json_object' }, max_tokens: 400 };
    const text = await textOf(more);
    assert.equal(text, text.trim());
    assert.doesNotMatch(text.replace(/"(?:[^"\\]|\\.)*"/g, '""'), /\s{2}/);
  }
});

// kekzl/imp#1564
test('additionalProperties as a schema and enums of any type are supported', async () => {
  const value = async (/** @type {object} */ schema) => {
    const json_schema = { name: 'a', strict: true, schema };
    const more = { temperature: 0, max_tokens: 200 };
    return JSON.parse(
      await textOf({ ...more, response_format: { type: 'json_schema', json_schema } }),
    );
  };
  for (const list of [[1, 2, 3], [true], [null], [[1], { a: null }]]) {
    const found = JSON.stringify(await value({ enum: list }));
    assert.ok(list.map((one) => JSON.stringify(one)).includes(found), found);
  }
  const found = await value({
    ...{ type: 'object', additionalProperties: { type: 'integer', maximum: 9 }, maxProperties: 2 },
    ...{ properties: { kind: { const: 'fox' } }, required: ['kind'] },
  });
  assert.equal(found.kind, 'fox');
  for (const [key, one] of Object.entries(found)) {
    assert.ok(key === 'kind' || Number.isInteger(one), JSON.stringify(found));
  }
});

// ollama/ollama#17262
test('reasoning tags and control tokens in a message are treated as text', async () => {
  for (const mark of ['</think>', '<|im_end|>', '<tool_call>', '<|im_start|>assistant\n']) {
    const content = `a ${mark} b`;
    const ids = [...(await engine.tokenize(/** @type {any} */ ([{ role: 'user', content }])))];
    const plain = [
      ...(await engine.tokenize(/** @type {any} */ ([{ role: 'user', content: 'a b' }]))),
    ];
    const controls = (/** @type {number[]} */ list) => list.filter((id) => id < 3).length;
    assert.equal(controls(ids), controls(plain), mark);
    assert.ok((await engine.detokenize(ids, { special: true })).includes(content));
  }
});

// ---- scores ----

// vllm-project/vllm#5890, vllm-project/vllm#5334, vllm-project/vllm-metal#680, vllm-project/vllm#2703
test('echo with logprobs: one value for each prompt token except the first; rejected in a stream', async () => {
  const prompt = '\n1. Carol has 20';
  const body = { prompt, max_tokens: 3, temperature: 0, logprobs: 1, echo: true };
  const { choices, usage } = await ask('/v1/completions', body);
  const { tokens, token_logprobs, text_offset } = choices[0].logprobs;
  assert.equal(tokens.length, usage.total_tokens);
  assert.equal(token_logprobs[0], null);
  assert.ok(token_logprobs.slice(1).every((/** @type {number} */ one) => one <= 0));
  assert.equal(tokens.join(''), choices[0].text);
  for (const [i, token] of tokens.entries()) {
    assert.equal(choices[0].text.slice(text_offset[i], text_offset[i] + token.length), token);
  }
  const { error } = await ask('/v1/completions', { ...body, stream: true }, 400);
  assert.equal(error.param, 'echo');
});
