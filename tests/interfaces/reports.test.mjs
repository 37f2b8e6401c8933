// Public bug reports about other servers and clients, over HTTP: each test sends the request from the report.
// tests/outside/README.md lists the reports with their symptoms.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath } from '../support/package.mjs';
import { askHandler, CHAT, contentOf } from '../support/report_client.mjs';

const { createHandler } = await import(`${dist}/openai.js`);

const shared = locate('shared');
const hello = { role: 'user', content: 'hi' };

/** @type {import('../../js/index.js').Engine} */
let engine;
/** @type {(request: Request) => Promise<Response>} */
let handle;
before(async () => {
  engine = await createEngine({ file: modelPath, threads: 1 });
  handle = createHandler(engine);
});
after(() => engine.close());

/** @param {string} path @param {unknown} body @param {number} [status] @returns {Promise<any>} the response body, or the events of a stream */
const ask = (path, body, status) => askHandler(handle, path, body, status);

/** @param {object[]} messages @param {object} [more] @returns {Promise<any>} */
const chat = (messages, more) => ask(CHAT, { messages, max_tokens: 2, temperature: 0, ...more });

/** @param {object[]} messages @param {object} [more] @returns {Promise<any[]>} */
const chunks = (messages, more) => chat(messages, { stream: true, ...more });

const promptTokens = async (/** @type {object[]} */ messages) =>
  (await chat(messages)).usage.prompt_tokens;

// QwenLM/qwen-code#3421
test('a history message may have only reasoning and no content', async () => {
  for (const thought of [{ reasoning_content: 'Done.' }, { reasoning: 'Done.' }]) {
    const tokens = (/** @type {string | null | undefined} */ content) =>
      promptTokens([hello, { role: 'assistant', content, ...thought }, hello]);
    const whole = await tokens('');
    assert.equal(await tokens(null), whole);
    assert.equal(await tokens(undefined), whole);
  }
});

// vllm-project/vllm#17553: depending on the server, 0 or -1 turns it off
test('top_k -1 means no limit, like 0', async () => {
  const texts = await Promise.all(
    [0, -1].map(async (top_k) => {
      const more = { top_k, top_p: 1, min_p: 0, temperature: 2, seed: 7, max_tokens: 30 };
      return (await chat([hello], more)).choices[0].message.content;
    }),
  );
  assert.equal(texts[1], texts[0]);
});

// justrach/codegraff2#92
test('client_metadata, which Codex sends, is accepted', async () => {
  const body = { input: 'hi', max_output_tokens: 16, client_metadata: { installation_id: 'a' } };
  assert.equal((await ask('/v1/responses', body)).object, 'response');
});

// BerriAI/litellm#8350, sigoden/aichat#767
test('a trailing slash in the base URL or the path is accepted', async () => {
  for (const path of ['/v1//chat/completions', '//v1/chat/completions', '/v1/chat/completions/']) {
    assert.equal((await ask(path, { messages: [hello], max_tokens: 1 })).object, 'chat.completion');
  }
  const list = await handle(new Request('http://localhost/v1/models/'));
  assert.equal((await list.json()).object, 'list');
});

// zai-org/feedback#629: the option of Z.ai's and Alibaba's services
test('thinking can be turned on and off with fields from other services', async () => {
  const chatTemplate =
    '{{ "Think step by step. " if enable_thinking and thinking }}{{ messages[0].content }}';
  const own = await createEngine({ file: modelPath, threads: 1, chatTemplate });
  const handleOwn = createHandler(own);
  const count = async (/** @type {object} */ more) => {
    const answer = await handleOwn(
      new Request(`http://localhost${CHAT}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ messages: [hello], max_tokens: 1, ...more }),
      }),
    );
    const body = await answer.json();
    return answer.status === 200 ? body.usage.prompt_tokens : body.error.param;
  };
  const kwargs = (/** @type {boolean} */ is) =>
    count({ chat_template_kwargs: { enable_thinking: is, thinking: is } });
  const [on, off] = [await kwargs(true), await kwargs(false)];
  assert.notEqual(on, off);
  assert.equal(await count({ enable_thinking: true }), on);
  assert.equal(await count({ enable_thinking: false }), off);
  assert.equal(await count({ thinking: { type: 'enabled', budget_tokens: 1024 } }), on);
  assert.equal(await count({ thinking: { type: 'disabled' } }), off);
  assert.equal(await count({ thinking: { type: 'disabled' }, enable_thinking: null }), off);
  assert.equal(
    await count({
      enable_thinking: true,
      chat_template_kwargs: { enable_thinking: false, thinking: false },
    }),
    off,
  );
  assert.equal(await count({ enable_thinking: 'no' }), 'enable_thinking');
  assert.equal(await count({ thinking: { type: 'maybe' } }), 'thinking');
  await own.close();
});

// ggml-org/llama.cpp#23465, unslothai/unsloth#5141
test('Codex’s tools and results are accepted in every form', async () => {
  const output = [{ type: 'output_text', text: 'a.c' }];
  const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' };
  const input = [{ role: 'user', content: 'hi' }, call];
  const tools = [
    { type: 'custom', name: 'p' },
    { type: 'web_search' },
    { type: 'function', name: 'f' },
  ];
  for (const one of ['a.c', output, [{ type: 'input_text', text: 'a.c' }]]) {
    const items = [...input, { type: 'function_call_output', call_id: 'a', output: one }];
    const { usage } = await ask('/v1/responses', { input: items, tools, max_output_tokens: 1 });
    assert.ok(usage.input_tokens > 0);
  }
});

// vllm-project/vllm#53626, #9426
test('tool_choice for a missing tool is a client error', async () => {
  const tools = [{ type: 'function', name: 'f' }];
  for (const tool_choice of [{ type: 'web_search' }, { type: 'function', name: 'g' }, 'maybe']) {
    const { error } = await ask('/v1/responses', { input: 'hi', tools, tool_choice }, 400);
    assert.equal(error.param, 'tool_choice');
  }
  assert.equal((await chat([hello], { tool_choice: 'none' })).object, 'chat.completion');
});

// vllm-project/vllm#6862, charmbracelet/crush#279, NousResearch/hermes-agent#20154, datarobot-oss/datarobot-genai#264:
// orders of turns that Mistral's templates reject
test('turns in an unusual order are accepted', { skip: shared.skip }, async () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const called = { role: 'assistant', content: null, tool_calls: [call] };
  const result = { role: 'tool', tool_call_id: 'call_1', content: 'a.c' };
  const system = { role: 'system', content: 'Be brief.' };
  const conversations = [
    [system, hello, hello],
    [hello, called, result, hello],
    [hello, called, hello],
    [hello, called, hello, result],
    [result, hello],
    [system, { role: 'assistant', content: 'Hello' }, hello],
    [hello, { role: 'assistant', content: null }, hello],
  ];
  for (const name of [
    'mistralai-Ministral-3-14B-Reasoning-2512',
    'mistralai-Mistral-Nemo-Instruct-2407',
  ]) {
    const chatTemplate = readFileSync(join(shared.path, `vectors/templates/${name}.jinja`), 'utf8');
    const own = await createEngine({ file: modelPath, threads: 1, chatTemplate });
    for (const messages of conversations) {
      assert.ok((await own.countTokens(/** @type {any} */ (messages))) > 0);
    }
    await own.close();
  }
});

// ggml-org/llama.cpp#17040, openai/gpt-oss#225
test('gpt-oss keeps reasoning before a call in the prompt, with and without text', {
  skip: shared.skip,
}, async () => {
  const path = 'vectors/templates/openai-gpt-oss-120b.jinja';
  const chatTemplate = readFileSync(join(shared.path, path), 'utf8');
  const own = await createEngine({ file: modelPath, threads: 1, chatTemplate });
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  for (const content of [null, 'I look.']) {
    const thought = {
      role: 'assistant',
      content,
      reasoning_content: 'Files first.',
      tool_calls: [call],
    };
    const messages = [hello, thought, { role: 'tool', tool_call_id: 'call_1', content: 'a.c' }];
    const ids = await own.tokenize(/** @type {any} */ (messages));
    const prompt = await own.detokenize(ids, { special: true });
    assert.match(prompt, /<\|channel\|>analysis<\|message\|>Files first\./);
    assert.ok(prompt.includes(content ?? ''));
  }
  await own.close();
});

test('answers and results without content count as empty', async () => {
  const whole = await promptTokens([hello, { role: 'assistant', content: '' }, hello]);
  for (const content of [null, undefined]) {
    assert.equal(await promptTokens([hello, { role: 'assistant', content }, hello]), whole);
    assert.ok(await promptTokens([hello, { role: 'tool', tool_call_id: 'a', content }]));
    assert.equal(
      (await ask(CHAT, { messages: [{ role: 'user', content }] }, 400)).error.param,
      'messages[0].content',
    );
  }
});

const story = [{ role: 'user', content: 'Tell me a story about a fox.' }];

// vllm-project/vllm#3574, SharpAI/SwiftLM#126, mzau/mlx-knife#68
test('a stop string that starts or ends inside a token is not streamed', async () => {
  const { content } = (await chat(story, { max_tokens: 24 })).choices[0].message;
  for (let at = 1; at + 5 < content.length; at += 4) {
    const stop = content.slice(at, at + 5);
    const events = await chunks(story, { max_tokens: 24, stop: [stop] });
    assert.equal(contentOf(events), content.slice(0, content.indexOf(stop)), stop);
    assert.equal(events.at(-1).choices[0].finish_reason, 'stop');
  }
});

// LostRuins/koboldcpp#1031
test('text that could be the start of a stop string is returned when the reply ends', async () => {
  for (const [messages, max_tokens] of /** @type {const} */ ([
    [[hello], 40],
    [story, 9],
  ])) {
    const whole = (await chat([...messages], { max_tokens })).choices[0];
    const stop = [`${whole.message.content.slice(-4)} never`, `${whole.message.content} never`];
    const cut = (await chat([...messages], { max_tokens, stop })).choices[0];
    assert.deepEqual(cut, whole);
    assert.equal(
      contentOf(await chat([...messages], { max_tokens, stop, stream: true })),
      whole.message.content,
    );
  }
});

// LostRuins/koboldcpp#791
test('a stop string can be a control token', async () => {
  const id = 1;
  assert.equal(await engine.detokenize([id], { special: true }), '<|im_start|>');
  const body = { prompt: 'a', max_tokens: 5, temperature: 0, logit_bias: { [id]: 100 } };
  const stopped = await ask('/v1/completions', { ...body, stop: ['never', '<|im_start|>'] });
  assert.deepEqual([stopped.choices[0].finish_reason, stopped.choices[0].text], ['stop', '']);
  const other = await ask('/v1/completions', { ...body, stop: ['<|im_start|>user'] });
  assert.equal(other.choices[0].finish_reason, 'length');
});

// BerriAI/litellm#10686, vllm-project/vllm#27572 (the latter with tools)
test('exactly one chunk has a finish_reason, also with logprobs and tools', async () => {
  const tools = [{ type: 'function', function: { name: 'f' } }];
  for (const more of [
    {},
    { logprobs: true, top_logprobs: 1 },
    { tools, tool_choice: 'auto' },
    { n: 3 },
  ]) {
    const events = await chunks([hello], { max_tokens: 3, ...more });
    const ends = events.flatMap(({ choices }) => choices).filter((one) => one.finish_reason);
    assert.deepEqual(
      ends.map(({ index, finish_reason }) => [index, finish_reason]).sort(),
      Array.from({ length: ends.length }, (_, index) => [index, 'length']),
    );
    assert.equal(ends.length, 'n' in more ? 3 : 1);
  }
});

const fixed = {
  type: 'object',
  properties: { a: { const: 'x' }, b: { const: [1, 2] } },
  required: ['a', 'b'],
  additionalProperties: false,
};

// mudler/LocalAI#9722, sgl-project/sglang#32167, googleapis/python-genai#2868
test('a streamed call has one index, one id, all of its arguments and finish_reason tool_calls', async () => {
  const tools = [{ type: 'function', function: { name: 'f', parameters: fixed } }];
  const more = { tools, tool_choice: 'required', parallel_tool_calls: false };
  const events = await chunks([hello], { max_tokens: 200, ...more });
  const deltas = events.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  const text = deltas.map((delta) => delta.function.arguments ?? '').join('');
  assert.deepEqual(JSON.parse(text), { a: 'x', b: [1, 2] });
  assert.deepEqual([...new Set(deltas.map(({ index }) => index))], [0]);
  assert.equal(deltas.filter(({ id }) => id !== undefined).length, 1);
  assert.equal(events.at(-1).choices[0].finish_reason, 'tool_calls');
  assert.equal(contentOf(events), '');
});

// vllm-project/vllm#9453, abetlen/llama-cpp-python#349
test('logprobs are independent of sampling options', async () => {
  const first = async (/** @type {object} */ more) => {
    const body = { max_tokens: 1, logprobs: true, top_logprobs: 5, ...more };
    return (await chat([hello], body)).choices[0].logprobs.content[0].top_logprobs;
  };
  const plain = await first({});
  const values = plain.map((/** @type {any} */ one) => one.logprob);
  assert.deepEqual(
    [...values].sort((a, b) => b - a),
    values,
  );
  assert.ok(values.every((/** @type {number} */ value) => value <= 0));
  assert.ok(
    values.reduce(
      (/** @type {number} */ sum, /** @type {number} */ value) => sum + Math.exp(value),
      0,
    ) <= 1.0001,
  );
  for (const more of [
    { temperature: 2, seed: 1 },
    { top_k: 1 },
    { top_p: 0.1, temperature: 1 },
    { logit_bias: { 300: -100 } },
  ]) {
    assert.deepEqual(await first(more), plain);
  }
});

// vllm-project/vllm#4795
test('logprobs: true works without top_logprobs', async () => {
  const { content } = (await chat([hello], { logprobs: true })).choices[0].logprobs;
  assert.deepEqual(
    content.map((/** @type {any} */ one) => one.top_logprobs),
    [[], []],
  );
});

// ggml-org/llama.cpp#19699, ggml-org/llama.cpp#13605
test('a token with a bias of -100 is never sampled', async () => {
  const body = { prompt: 'Once upon a time', max_tokens: 1, temperature: 0 };
  const banned = new Set();
  for (let i = 0; i < 8; i++) {
    const logit_bias = Object.fromEntries([...banned].map((id) => [id, -100]));
    const { text } = (await ask('/v1/completions', { ...body, logit_bias })).choices[0];
    const [id] = await engine.tokenize(text);
    assert.ok(!banned.has(id), `${text} was banned`);
    banned.add(id);
  }
});

// ngxson/wllama#261, ggml-org/llama.cpp#14223
test('concurrent chats and embeddings give the same results as separate ones', async () => {
  const asked = [
    () => chat([hello], { max_tokens: 12 }).then(({ choices }) => choices[0].message.content),
    () => chat(story, { max_tokens: 20 }).then(({ choices }) => choices[0].message.content),
    () => ask('/v1/embeddings', { input: ['a hen', 'a'] }).then(({ data }) => data),
  ];
  const alone = [];
  for (const one of asked) alone.push(await one());
  const together = await Promise.all([...asked, ...asked, ...asked].map((one) => one()));
  assert.deepEqual(together, [...alone, ...alone, ...alone]);
});

// ggml-org/llama.cpp#13688, #6722, #14543: more inputs than tokens, and one vector per input
test('each input has a vector, even if inputs are single tokens', async () => {
  const texts = Array.from({ length: 40 }, (_, i) => 'abcdefgh'[i % 8]);
  const { data, usage } = await ask('/v1/embeddings', {
    input: [...texts, 'a long text of a few words'],
  });
  assert.equal(data.length, 41);
  assert.ok(usage.total_tokens < 60);
  for (const [i, { index, embedding }] of data.entries()) {
    assert.equal(index, i);
    assert.equal(embedding.length, data[0].embedding.length);
    if (i >= 8 && i < 40) assert.deepEqual(embedding, data[i - 8].embedding);
  }
});

// ggml-org/llama.cpp#5724, #5246
test('empty inputs are rejected, and the next request is answered', async () => {
  for (const [path, body] of /** @type {[string, object][]} */ ([
    ['/v1/embeddings', { input: '' }],
    ['/v1/embeddings', { input: ['a', ''] }],
    ['/v1/completions', { prompt: '' }],
    ['/v1/completions', { prompt: ['a', ''] }],
  ])) {
    await ask(path, { ...body, ...(path.endsWith('completions') && { max_tokens: 1 }) }, 400);
    assert.equal((await chat([hello])).choices.length, 1);
  }
});

// ggml-org/llama.cpp#24115
test('reasoning items without content are accepted', async () => {
  for (const item of [{ content: null }, {}, { summary: [], encrypted_content: null }]) {
    const input = [hello, { type: 'reasoning', id: 'r', summary: [], ...item }, hello];
    await ask('/v1/responses', { input, max_output_tokens: 16 });
  }
});

// lmstudio-ai/lmstudio-bug-tracker#618
test('an unknown path results in 404', async () => {
  const { error } = await ask('/v1/chat/complete', { messages: [hello] }, 404);
  assert.equal(error.code, 'not_found');
});

// ggml-org/llama.cpp#19051, #24097, guidance-ai/llguidance#265
test('a schema is enforced or rejected, never ignored', async () => {
  const withSchema = (/** @type {object} */ schema, status = 200) =>
    ask(
      CHAT,
      {
        ...{ messages: [hello], temperature: 0, max_tokens: 60 },
        response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } },
      },
      status,
    );
  const text = async (/** @type {object} */ schema) =>
    JSON.parse((await withSchema(schema)).choices[0].message.content);
  assert.equal(
    await text({ type: 'string', pattern: '^hello there indeed\\\\!$' }),
    'hello there indeed\\!',
  );
  assert.equal(
    (await withSchema({ type: 'string', pattern: '^a(b$' }, 400)).error.param,
    'response_format',
  );
  const score = { type: 'integer', multipleOf: 5, minimum: 11, maximum: 19 };
  const both = { properties: { score }, patternProperties: { '^score$': { type: 'integer' } } };
  const closed = { type: 'object', required: ['score'], additionalProperties: false };
  assert.deepEqual(await text({ ...closed, ...both }), { score: 15 });
});

/** @param {string} chatTemplate @param {(ask: (messages: object[], status?: number) => Promise<any>) => Promise<void>} run */
async function withTemplate(chatTemplate, run) {
  const own = await createEngine({ file: modelPath, threads: 1, chatTemplate });
  const [before, handler] = [handle, createHandler(own)];
  handle = handler;
  try {
    await run((messages, status) => ask(CHAT, { messages, max_tokens: 1 }, status));
  } finally {
    handle = before;
    await own.close();
  }
}

// mitsuhiko/minijinja#815, nobodywho-ooo/nobodywho#61
test('templates may contain {% generation %} or a token that the model lacks', async () => {
  const body =
    '{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}';
  for (const template of [body, `{{ bos_token + messages[0].content }}`]) {
    await withTemplate(template, async (run) => {
      assert.equal((await run([hello])).usage.prompt_tokens, (await engine.tokenize('hi')).length);
    });
  }
});

// ggml-org/llama.cpp#11402
test('a conversation that the template rejects results in 400 with the template’s message', async () => {
  const template =
    "{{ raise_exception('roles must alternate') if messages|length > 1 }}{{ messages[0].content }}";
  await withTemplate(template, async (run) => {
    const turns = [hello, { role: 'assistant', content: 'Hi' }, hello];
    assert.match((await run(turns, 400)).error.message, /roles must alternate/);
    assert.equal((await run([hello, hello])).choices.length, 1); // joined
    assert.equal((await run([hello])).choices.length, 1);
  });
});

// ggml-org/llama.cpp#16983
test('a conversation that filled the context does not affect the next one', async () => {
  const small = await createEngine({ file: modelPath, threads: 1, contextSize: 64 });
  const [before, own] = [handle, createHandler(small)];
  handle = own;
  try {
    for (let turn = 0; turn < 3; turn++) {
      const { choices, usage } = await chat([hello], {
        max_tokens: 500,
        logit_bias: { 0: -100, 2: -100 },
      });
      assert.equal(choices[0].finish_reason, 'length');
      assert.ok(usage.total_tokens <= 65);
      const long = [{ role: 'user', content: 'word '.repeat(100) }];
      await ask(CHAT, { messages: long, max_tokens: 1 }, 400);
      assert.equal((await chat(story)).choices.length, 1);
    }
  } finally {
    handle = before;
    await small.close();
  }
});
