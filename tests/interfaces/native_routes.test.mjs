// POST /completion and /infill as in llama.cpp's server, and fields from other servers that affect generation
// (wick-llm/openai).

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { writeNumbers } from '../support/gguf_pieces.mjs';
import { createEngine, dist, modelPath, temporaryFolder } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const prompt = 'Once upon a time, there was a fox';
const brief = { prompt, n_predict: 8, temperature: 0 };

/** @param {import('../../js/index.js').Engine} engine */
function askOf(engine) {
  const handle = createHandler(engine, { model: 'small' });
  /** @param {string} path @param {object} body @returns {Promise<Response>} */
  return (path, body) => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    return handle(new Request(`http://wick.test${path}`, init));
  };
}

/** @param {Response} response @returns {Promise<any[]>} the events, which must be the end of the stream */
async function eventsOf(response) {
  const events = (await response.text()).split('\n\n');
  assert.equal(events.pop(), '');
  return events.map((event) => JSON.parse(event.slice('data: '.length)));
}

describe('the format of llama.cpp’s server', () => {
  /** @type {import('../../js/index.js').Engine} */
  let engine;
  /** @type {ReturnType<typeof askOf>} */
  let post;
  before(async () => {
    engine = await createEngine({ file: modelPath, threads: 1 });
    post = askOf(engine);
  });
  after(() => engine.close());

  /** @param {object} body @param {string} [path] @returns {Promise<any>} */
  const ask = async (body, path = '/completion') => (await post(path, body)).json();

  test('a completion has the text, its tokens and statistics', async () => {
    const generation = engine.generate(prompt, { maxTokens: 8, temperature: 0 });
    const text = await generation.text();
    const reported = await ask({ ...brief, return_tokens: true });
    assert.equal(reported.content, text);
    assert.equal(await engine.detokenize(reported.tokens), text);
    assert.equal(reported.prompt, prompt);
    assert.deepEqual(
      [reported.stop, reported.stop_type, reported.stopping_word],
      [true, 'limit', ''],
    );
    assert.equal(reported.tokens_predicted, 8);
    assert.equal(reported.tokens_evaluated, generation.result?.usage.promptTokens);
    assert.equal(reported.timings.predicted_n, 8);
    assert.equal(reported.timings.prompt_n + reported.timings.cache_n, reported.tokens_evaluated);
    const {
      n_predict: most,
      temperature,
      top_k: topK,
      repeat_last_n: last,
    } = reported.generation_settings;
    assert.deepEqual([most, temperature, topK, last], [8, 0, 40, 64]);
    assert.deepEqual((await ask(brief)).tokens, []);
  });

  test('the events of a stream add up to the full response, and no [DONE] follows', async () => {
    const whole = await ask({ ...brief, return_tokens: true });
    const events = await eventsOf(await post('/completion', { ...brief, stream: true }));
    const last = events.pop();
    assert.ok(events.length > 1);
    assert.ok(events.every(({ stop }) => stop === false));
    assert.equal(events.map(({ content }) => content).join(''), whole.content);
    assert.deepEqual([...events.flatMap(({ tokens }) => tokens), ...last.tokens], whole.tokens);
    assert.deepEqual([last.stop, last.content, last.stop_type], [true, '', 'limit']);
    assert.equal(last.tokens_predicted, 8);
  });

  test('chat completions with one choice also have these timings', async () => {
    const body = { messages: [{ role: 'user', content: prompt }], max_tokens: 6, temperature: 0 };
    const chat = '/v1/chat/completions';
    const { timings, usage } = await ask(body, chat);
    assert.equal(timings.prompt_n + timings.cache_n, usage.prompt_tokens);
    assert.equal(timings.cache_n, usage.prompt_tokens_details.cached_tokens);
    assert.equal(timings.predicted_n, usage.completion_tokens);
    for (const rate of ['predicted_per_second', 'decodeTokensPerSecond']) {
      assert.ok(timings[rate] > 0, rate);
    }
    for (const include_usage of [true, false]) {
      const streamed = { ...body, stream: true, stream_options: { include_usage } };
      const text = await (await post(chat, streamed)).text();
      const events = text.split('\n\n').slice(0, -2); // without [DONE]
      const chunks = events.map((event) => JSON.parse(event.slice('data: '.length)));
      const timed = chunks.filter(
        (chunk) => chunk.timings?.predicted_n === usage.completion_tokens,
      );
      const last = chunks.at(-1);
      assert.deepEqual(timed, chunks.slice(include_usage ? -2 : -1));
      assert.equal(last.choices.length, include_usage ? 0 : 1);
      assert.equal('usage' in last, include_usage);
      assert.equal('usage' in chunks[0], include_usage);
    }
    const two = await ask({ ...body, n: 2 }, chat);
    assert.equal(two.timings.predicted_n, undefined); // the usage is that of both choices
  });

  test('the matched stop string is reported', async () => {
    const { content } = await ask(brief);
    const word = content.trim().split(' ')[1];
    const reported = await ask({ ...brief, stop: ['zzz', word] });
    assert.deepEqual([reported.stop_type, reported.stopping_word], ['word', word]);
    assert.ok(content.startsWith(reported.content) && !reported.content.includes(word));
  });

  test('several prompts, and prompts that mix strings and ids, are supported', async () => {
    const ids = await engine.tokenize(prompt);
    const { content } = await ask(brief);
    const list = await ask({ ...brief, prompt: [prompt, ids] });
    assert.deepEqual(
      list.map((/** @type {any} */ one) => [one.index, one.content]),
      [
        [0, content],
        [1, content],
      ],
    );
    const end = await engine.detokenize(ids.slice(1));
    const mixed = await ask({ ...brief, prompt: [ids[0], end] });
    assert.equal(mixed.tokens_evaluated > 1, true);
    assert.equal(typeof mixed.content, 'string');
    const streamed = { ...brief, prompt: [prompt, ids], stream: true };
    const events = await eventsOf(await post('/completion', streamed));
    for (const index of [0, 1]) {
      const own = events.filter((event) => event.index === index);
      assert.equal(own.map((event) => event.content).join(''), content);
      assert.equal(own.at(-1).stop, true);
    }
  });

  test('prompts may be objects with prompt_string and multimodal_data', async () => {
    const { content } = await ask(brief);
    const wrapped = { prompt_string: prompt };
    assert.equal((await ask({ ...brief, prompt: wrapped })).content, content);
    const ids = await engine.tokenize(prompt);
    const list = await ask({
      ...brief,
      prompt: [ids, { ...wrapped, multimodal_data: [] }],
    });
    assert.deepEqual(
      list.map((/** @type {any} */ one) => one.content),
      [content, content],
    );
    for (const multimodal_data of [['aGk='], 'aGk=']) {
      const { error } = await ask({ ...brief, prompt: { ...wrapped, multimodal_data } });
      assert.equal(error.code, 'unsupported_parameter');
      assert.equal(error.param, 'prompt.multimodal_data');
    }
  });

  test('logit biases for token ids and strings, in all formats of llama.cpp’s server', async () => {
    const { content } = await ask(brief);
    const word = ` ${content.trim().split(' ')[0]}`;
    const ids = await engine.tokenize(word, { addSpecial: false });
    const banned = ids.map((id) => ({ token: id, bias: null }));
    for (const logit_bias of [
      [[word, false]],
      { [word]: false },
      ids.map((id) => [id, false]),
      Object.fromEntries(ids.map((id) => [id, false])),
    ]) {
      const reported = await ask({ ...brief, logit_bias });
      assert.ok(!reported.content.startsWith(word), JSON.stringify(logit_bias));
      assert.deepEqual(reported.generation_settings.logit_bias, banned);
    }
    const twice = await ask({ ...brief, logit_bias: [...ids, ...ids].map((id) => [id, -40]) });
    assert.deepEqual(
      twice.generation_settings.logit_bias,
      ids.map((id) => ({ token: id, bias: -80 })),
    );
    for (const logit_bias of [
      ...[5, [5], [[5]], [[5, true]], [[-1, 1]], [[0.5, 1]], { a: 'b' }],
      Array(1025).fill(['a', 1]),
    ]) {
      const { error } = await ask({ ...brief, logit_bias });
      assert.equal(error?.param, 'logit_bias', JSON.stringify(logit_bias).slice(0, 40));
    }
  });

  test('with ignore_eos, end tokens are reported with a bias', async () => {
    const { ends = [] } = (await engine.info()).tokenizer ?? {};
    const [reported, plain] = await Promise.all(
      [{ ...brief, ignore_eos: true }, brief].map((body) => ask(body)),
    );
    assert.deepEqual(
      reported.generation_settings.logit_bias,
      ends.map((token) => ({ token, bias: null })),
    );
    assert.deepEqual(plain.generation_settings.logit_bias, []);
  });

  test('a stream reports whether it contains line breaks', async () => {
    const body = { prompt, grammar: 'root ::= "a\\nb"', stream: true };
    const events = await eventsOf(await post('/completion', body));
    assert.equal(events.at(-1).has_new_line, true);
    const other = { prompt, grammar: 'root ::= "ab"', stream: true };
    assert.equal((await eventsOf(await post('/completion', other))).at(-1).has_new_line, false);
  });

  test('token probabilities, before and after the samplers', async () => {
    const reported = await ask({ ...brief, n_probs: 3, return_tokens: true });
    const list = reported.completion_probabilities;
    assert.deepEqual(
      list.map((/** @type {any} */ { id }) => id),
      reported.tokens,
    );
    for (const { token, bytes, logprob, top_logprobs: top } of list) {
      assert.equal(new TextDecoder().decode(Uint8Array.from(bytes)), token);
      assert.ok(logprob <= 0);
      assert.equal(top.length, 3);
      assert.equal(top[0].logprob, logprob); // greedy
    }
    const after = await ask({ ...brief, n_probs: 2, post_sampling_probs: true });
    assert.ok(after.completion_probabilities.every((/** @type {any} */ { prob }) => prob > 0.99));
    const events = await eventsOf(
      await post('/completion', { ...brief, n_probs: 3, stream: true }),
    );
    assert.deepEqual(
      events.flatMap(({ completion_probabilities: some = [] }) => some),
      list,
    );
  });

  test('response_fields selects the returned members', async () => {
    const names = ['content', 'generation_settings/n_predict', 'nothing'];
    const reported = await ask({ ...brief, response_fields: names });
    assert.deepEqual(Object.keys(reported), ['content', 'generation_settings/n_predict']);
    assert.equal(reported['generation_settings/n_predict'], 8);
  });

  test('fields from other servers are accepted on all routes', async () => {
    const { content } = await ask({ ...brief, json_schema: { const: 'fox' } });
    assert.equal(content, '"fox"');
    const completion = { prompt, temperature: 0, n_predict: 8 };
    for (const more of [
      { guided_json: { const: 'fox' } },
      { guided_json: '{"const": "fox"}' },
      { guided_regex: '"fox"' },
      { guided_choice: ['"fox"'] },
      { guided_grammar: 'root ::= "\\"fox\\""' },
      { structured_outputs: { json: { const: 'fox' } } },
      { structured_outputs: { choice: ['"fox"'] } },
    ]) {
      const whole = await ask({ ...completion, ...more }, '/v1/completions');
      assert.equal(whole.choices[0].text, '"fox"', JSON.stringify(more));
      const messages = [{ role: 'user', content: 'hi' }];
      const chat = await ask({ messages, temperature: 0, ...more }, '/v1/chat/completions');
      assert.equal(chat.choices[0].message.content, '"fox"', JSON.stringify(more));
    }
    const penalized = { ...completion, repetition_penalty: 1.8, n_predict: 30 };
    const own = { prompt, temperature: 0, repeat_penalty: 1.8, max_tokens: 30 };
    const [one, other, plain] = await Promise.all(
      [penalized, own, { ...own, repeat_penalty: 1 }].map((body) => ask(body, '/v1/completions')),
    );
    assert.equal(one.choices[0].text, other.choices[0].text);
    assert.notEqual(one.choices[0].text, plain.choices[0].text);
    const { choices } = await ask({ ...completion, n_probs: 2 }, '/v1/completions');
    assert.equal(choices[0].logprobs.tokens.length, 8);
    assert.equal(choices[0].logprobs.top_logprobs[0].length, undefined);
  });

  test('an end token does not end an answer if it is ignored', async () => {
    const messages = [{ role: 'user', content: 'Tell me a story.' }];
    const body = { messages, temperature: 0, max_tokens: 300 };
    const [ends, goes] = await Promise.all(
      [body, { ...body, ignore_eos: true }].map((one) => ask(one, '/v1/chat/completions')),
    );
    assert.equal(ends.choices[0].finish_reason, 'stop');
    assert.equal(goes.choices[0].finish_reason, 'length');
    assert.equal(goes.usage.completion_tokens, 300);
  });

  test('the last message is continued as in vLLM', async () => {
    const begun = { role: 'assistant', content: 'Once upon' };
    const messages = [{ role: 'user', content: 'Tell me a story.' }, begun];
    const body = { messages, temperature: 0, max_tokens: 9 };
    const path = '/v1/chat/completions';
    const wanted = await ask(
      { ...body, messages: [messages[0], { ...begun, prefix: true }] },
      path,
    );
    const reported = await ask(
      { ...body, continue_final_message: true, add_generation_prompt: false },
      path,
    );
    assert.deepEqual(reported.choices, wanted.choices);
    for (const [more, param] of /** @type {[object, string][]} */ ([
      [{ add_generation_prompt: false }, 'add_generation_prompt'],
      [{ add_generation_prompt: true, continue_final_message: true }, 'continue_final_message'],
      [{ continue_final_message: true, messages: messages.slice(0, 1) }, 'continue_final_message'],
      [{ continue_final_message: 'yes' }, 'continue_final_message'],
    ])) {
      const { error } = await ask({ ...body, ...more }, path);
      assert.equal(error.param, param);
    }
  });

  test('inputs of embeddings may be mixes of strings and ids, or objects', async () => {
    const ids = await engine.tokenize('a fox', { addSpecial: false });
    const mixed = [...(await engine.tokenize('a hen')), 60, ...ids];
    const content = [...'ab'].map((text) => ({ type: 'text', text }));
    /** @param {any} input @returns {Promise<number[][]>} */
    const embed = async (input) =>
      (await ask({ input }, '/v1/embeddings')).data.map((/** @type {any} */ one) => one.embedding);
    const wanted = await embed([mixed, 'ab', ids]);
    assert.deepEqual(await embed([['a hen', 60, ...ids], { content }, ids]), wanted);
    assert.deepEqual(await embed([{ prompt_string: 'ab' }]), [wanted[1]]);
    assert.deepEqual(await embed(['a hen', 60, 'a fox']), [wanted[0]]);
    for (const input of [[], {}, { content: 'a' }, [['a']], { content: [{ type: 'image_url' }] }]) {
      const { error } = await ask({ input }, '/v1/embeddings');
      assert.equal(error.param, 'input', JSON.stringify(input));
    }
  });

  test('/embedding returns vectors in the format of llama.cpp’s server', async () => {
    const input = ['a fox', [5, 60]];
    const [found, raw, { data }] = await Promise.all([
      ask({ content: input }, '/embedding'),
      ask({ input, embd_normalize: -1 }, '/embedding'),
      ask({ input }, '/v1/embeddings'),
    ]);
    assert.deepEqual(
      found,
      data.map((/** @type {any} */ { index, embedding }) => ({ index, embedding: [embedding] })),
    );
    const length = Math.hypot(...raw[0].embedding[0]);
    assert.ok(Math.abs(length - 1) > 0.01);
    assert.ok(Math.abs(raw[0].embedding[0][0] / length - found[0].embedding[0][0]) < 1e-5);
    for (const [body, param] of /** @type {[object, string][]} */ ([
      [{}, 'input'],
      [{ input: 'a', content: 'a' }, 'content'],
      [{ input: 'a', embd_normalize: 1 }, 'embd_normalize'],
    ])) {
      assert.equal((await ask(body, '/embedding')).error.param, param);
    }
  });

  test('errors about invalid fields name the field', async () => {
    for (const [body, param] of /** @type {[object, string][]} */ ([
      [{}, 'prompt'],
      [{ prompt: 5 }, 'prompt'],
      [{ prompt: [] }, 'prompt'],
      [{ prompt: [{}] }, 'prompt'],
      [{ prompt: Array(17).fill('a') }, 'prompt'],
      [{ ...brief, n_predict: 'many' }, 'n_predict'],
      [{ ...brief, n_probs: -1 }, 'n_probs'],
      [{ ...brief, return_tokens: 1 }, 'return_tokens'],
      [{ ...brief, response_fields: 'content' }, 'response_fields'],
      [{ ...brief, n_indent: 2 }, 'n_indent'],
      [{ ...brief, colour: 'red' }, 'colour'],
      [{ ...brief, grammar: 'root' }, 'grammar'],
    ])) {
      const response = await post('/completion', body);
      const { error } = await response.json();
      assert.deepEqual([response.status, error.param], [400, param], JSON.stringify(error));
    }
  });

  test('infill is rejected for a model without infill tokens', async () => {
    const response = await post('/infill', { input_prefix: 'a', input_suffix: 'b' });
    assert.equal(response.status, 501);
    assert.equal((await response.json()).error.type, 'not_implemented_error');
  });
});

test('the returned prompt includes the BOS token, and an answer that fills the context is truncated', async () => {
  const file = join(temporaryFolder(), 'begins.gguf');
  const begins = { 'tokenizer.ggml.bos_token_id': 1, 'tokenizer.ggml.add_bos_token': true };
  writeNumbers(modelPath, begins, file);
  const engine = await createEngine({ file, threads: 1, contextSize: 32 });
  try {
    const post = askOf(engine);
    const ask = async (/** @type {object} */ body) => (await post('/completion', body)).json();
    const tokens = await engine.tokenize(prompt);
    const reported = await ask({ prompt, ignore_eos: true });
    assert.equal(reported.prompt, await engine.detokenize(tokens, { special: true }));
    assert.equal(reported.truncated, true);
    for (const n_predict of [4, reported.tokens_predicted]) {
      assert.equal((await ask({ prompt, n_predict, ignore_eos: true })).truncated, false);
    }
  } finally {
    await engine.close();
  }
});

test('infill: the prompt consists of extra files, prefix, suffix and middle', async () => {
  const file = join(temporaryFolder(), 'infill.gguf');
  const [prefix, suffix, middle, separator, repository] = [300, 301, 302, 303, 304];
  const key = (/** @type {string} */ name) => `tokenizer.ggml.fim_${name}_token_id`;
  const ids = { pre: prefix, suf: suffix, mid: middle, sep: separator, rep: repository };
  const numbers = Object.fromEntries(Object.entries(ids).map(([name, id]) => [key(name), id]));
  writeNumbers(modelPath, numbers, file);
  const engine = await createEngine({ file, threads: 1 });
  try {
    const post = askOf(engine);
    const plain = (/** @type {string} */ text) =>
      engine.tokenize(text, { addSpecial: false, parseSpecial: false });
    const body = { input_prefix: 'a fox ', prompt: 'and ', input_suffix: ' hen<|im_end|>' };
    const more = { n_predict: 4, temperature: 0 };
    const tokens = [prefix, ...(await plain('a fox and ')), suffix];
    tokens.push(...(await plain(' hen<|im_end|>')), middle);
    const wanted = await (await post('/completion', { ...more, prompt: tokens })).json();
    const reported = await (await post('/infill', { ...more, ...body })).json();
    assert.equal(reported.content, wanted.content);
    assert.equal(reported.prompt, wanted.prompt);
    const extra = [{ filename: 'a.c', text: 'int a;' }, { text: 'b' }];
    const files = [repository, ...(await plain('project\n'))];
    files.push(separator, ...(await plain('a.c\nint a;\n')));
    files.push(separator, ...(await plain('file\nb\n')), separator, ...(await plain('file\n')));
    const long = await (await post('/infill', { ...more, ...body, input_extra: extra })).json();
    const all = await (
      await post('/completion', { ...more, prompt: [...files, ...tokens] })
    ).json();
    assert.equal(long.prompt, all.prompt);
    assert.equal(long.content, all.content);
    for (const input_extra of [[{}], [{ filename: 'a' }], [{ filename: 5, text: 'a' }], 5]) {
      const { error } = await (await post('/infill', { ...body, input_extra })).json();
      assert.equal(error.param, 'input_extra');
    }
  } finally {
    await engine.close();
  }
});
