// Unit tests of the handler for OpenAI's API, with a fake engine: the calls to the engine, and every byte of the
// responses.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { VERSION } from '../../js/base/version.js';
import { createHandler } from '../../js/handler/create_handler.js';
import { randomName } from '../../js/handler/random_name.js';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const turn = () => new Promise((settle) => setImmediate(settle));
/** Members that the handler adds to chat completions of `fox`. */
const servedBy = { model: 'fox', system_fingerprint: `wick-${VERSION}` };
const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const RERANK = '/v1/rerank';

/** A generation whose text is provided by the test, piece by piece. */
class Speech {
  /** @type {any[]} */
  #come = [];
  /** @type {((value: any) => void)[]} */
  #waiting = [];
  isLeft = false;
  /** The number of requested reads. */
  reads = 0;
  /** @type {any} */
  result;

  /** @param {any} come a result of next(), or a promise of one */
  #put(come) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(come);
    else this.#come.push(come);
  }

  /** @param {string} text */
  say(text) {
    this.#put({ done: false, value: text });
    return this;
  }

  /** @param {string} finishReason @param {number[]} usage prompt, cached and completion tokens */
  end(finishReason, [promptTokens, cachedTokens, completionTokens]) {
    this.result = { finishReason, usage: { promptTokens, cachedTokens, completionTokens } };
    this.#put({ done: true, value: undefined });
    return this;
  }

  /** @param {unknown} error */
  fail(error) {
    const failed = Promise.reject(error);
    failed.catch(() => {});
    this.#put(failed);
    return this;
  }

  [Symbol.asyncIterator]() {
    return {
      next: async () => {
        this.reads++;
        return this.#come.shift() ?? new Promise((settle) => this.#waiting.push(settle));
      },
      return: () => {
        this.isLeft = true;
      },
    };
  }
}

/** @param {Speech[]} speeches the generations, in order @param {any} [more] members of the engine */
function engineOf(speeches, more = {}) {
  /** @type {any[]} */
  const asked = [];
  const left = [...speeches];
  const engine = {
    generate(/** @type {any} */ prompt, /** @type {any} */ options) {
      asked.push(['generate', prompt, options]);
      return left.shift();
    },
    generateMany(/** @type {any} */ prompt, /** @type {any} */ options) {
      asked.push(['generateMany', prompt, options]);
      return left.splice(0, options.n);
    },
    info: async () => {
      asked.push(['info']);
      return { name: 'fox', architecture: 'llama' };
    },
    stats: async () => 'stats\n',
    metrics: async () => 'metrics\n',
    ...more,
  };
  return { engine: any(engine), asked };
}

/** @param {string} path @param {unknown} body @param {RequestInit} [init] */
const post = (path, body, { headers = {}, ...init } = {}) =>
  new Request(`http://wick.test${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', .../** @type {any} */ (headers) },
    body: JSON.stringify(body),
    ...init,
  });

/** @param {string} path @param {string} [method] @param {Record<string, string>} [headers] */
const bare = (path, method = 'GET', headers = {}) =>
  new Request(`http://wick.test${path}`, { method, headers });

/** @param {Response} response @returns {Promise<any[]>} its events */
async function eventsOf(response) {
  const events = (await response.text()).split('\n\n');
  assert.equal(events.pop(), '');
  return events.map((event) => {
    assert.equal(event.slice(0, 6), 'data: ');
    return event === 'data: [DONE]' ? 'end' : JSON.parse(event.slice(6));
  });
}

/** @param {any} body @param {string} object @param {string} model @returns {any} its other fields */
function headless({ id, created, system_fingerprint, ...body }, object, model) {
  assert.match(id, /^cmpl-[a-z\d]{28}$/);
  assert.match(system_fingerprint, /^wick-\d+\.\d+\.\d+$/);
  assert.ok(Math.abs(created - Date.now() / 1000) < 100 && Number.isInteger(created));
  assert.deepEqual([body.object, body.model], [object, model]);
  const { object: _, model: __, ...rest } = body;
  return rest;
}

const sha256 = (/** @type {string} */ text) => createHash('sha256').update(text).digest('hex');

describe('completions', () => {
  test('each prompt has its choices, and usage is summed over them', async () => {
    const { engine, asked } = engineOf([
      new Speech().say('a').say('b').end('length', [7, 2, 3]),
      new Speech().end('stop', [7, 4, 1]),
      new Speech().end('stop', [7, 5, 100]),
      new Speech().say('c').end('tool', [11, 1, 5]),
      new Speech().say('d').end('length', [11, 8, 9]),
      new Speech().end('stop', [11, 9, 1000]),
    ]);
    const body = { prompt: ['x', [1]], n: 3, seed: 5, model: 'any' };
    const response = await createHandler(engine)(post(COMPLETIONS, body));
    assert.equal(response.status, 200);
    assert.match(response.headers.get('X-Request-Id') ?? '', /^req-[a-z\d]{28}$/);
    const common = { logprobs: null };
    assert.deepEqual(headless(await response.json(), 'text_completion', 'fox'), {
      choices: [
        { index: 0, text: 'ab', ...common, finish_reason: 'length' },
        { index: 1, text: '', ...common, finish_reason: 'stop' },
        { index: 2, text: '', ...common, finish_reason: 'stop' },
        { index: 3, text: 'c', ...common, finish_reason: 'stop' },
        { index: 4, text: 'd', ...common, finish_reason: 'length' },
        { index: 5, text: '', ...common, finish_reason: 'stop' },
      ],
      usage: {
        prompt_tokens: 18,
        completion_tokens: 1118,
        total_tokens: 1136,
        prompt_tokens_details: { cached_tokens: 3 },
      },
    });
    const { signal } = asked[1][2];
    assert.ok(signal instanceof AbortSignal);
    const options = { adapters: undefined, maxTokens: 16, signal, salt: undefined, seed: 5, n: 3 };
    assert.deepEqual(asked, [
      ['info'],
      ['generateMany', 'x', options],
      ['generateMany', [1], options],
    ]);
  });

  test('every field is passed on as an option', async () => {
    const { engine, asked } = engineOf([new Speech().end('stop', [1, 0, 0])]);
    /** @type {[string, unknown, string][]} */
    const fields = [
      ['max_tokens', 9, 'maxTokens'],
      ['stop', ['a'], 'stop'],
      ['temperature', 0.5, 'temperature'],
      ['top_p', 0.25, 'topP'],
      ['top_k', 3, 'topK'],
      ['min_p', 0.125, 'minP'],
      ['repeat_penalty', 1.5, 'repeatPenalty'],
      ['thinking_budget_tokens', 5, 'thinkingBudgetTokens'],
      ['frequency_penalty', -1, 'frequencyPenalty'],
      ['presence_penalty', 2, 'presencePenalty'],
      ['logit_bias', { 3: 1 }, 'logitBias'],
      ['typical_p', 0.9, 'typicalP'],
      ['top_n_sigma', 2, 'topNSigma'],
      ['xtc_probability', 0.1, 'xtcProbability'],
      ['xtc_threshold', 0.2, 'xtcThreshold'],
      ['dynatemp_range', 0.3, 'dynatempRange'],
      ['dynatemp_exponent', 1.1, 'dynatempExponent'],
      ['dry_multiplier', 0.4, 'dryMultiplier'],
      ['dry_base', 1.5, 'dryBase'],
      ['dry_allowed_length', 0, 'dryAllowedLength'],
      ['dry_penalty_last_n', -1, 'dryPenaltyLast'],
      ['mirostat', 2, 'mirostat'],
      ['mirostat_tau', 4, 'mirostatTau'],
      ['mirostat_eta', 0.2, 'mirostatEta'],
      ['adaptive_target', 0.5, 'adaptiveTarget'],
      ['adaptive_decay', 0.8, 'adaptiveDecay'],
      ['repeat_last_n', 64, 'penaltyLast'],
      ['dry_sequence_breakers', ['\n'], 'drySequenceBreakers'],
      ['samplers', ['top_k'], 'samplers'],
      ['post_sampling_probs', true, 'logprobsAfter'],
      ['ignore_eos', true, 'ignoreEnd'],
      ['json_schema', { type: 'object' }, 'jsonSchema'],
      ['salt', 'mine', 'salt'],
    ];
    const body = Object.fromEntries(fields.map(([field, value]) => [field, value]));
    const idle = { best_of: 1, echo: false, suffix: '', user: {}, stream: false, logprobs: null };
    const sent = { prompt: 'x', ...body, ...idle };
    assert.equal((await createHandler(engine)(post(COMPLETIONS, sent))).status, 200);
    const { signal, seed, n, adapters, ...options } = asked[1][2];
    assert.deepEqual([seed, n, adapters], [undefined, 1, undefined]);
    assert.deepEqual(
      options,
      Object.fromEntries(fields.map(([, value, option]) => [option, value])),
    );
  });

  test('at most sixteen choices, no null fields, prompts of strings or tokens', async () => {
    const speeches = Array.from({ length: 16 }, () => new Speech().end('stop', [1, 1, 1]));
    const { engine, asked } = engineOf(speeches);
    const handle = createHandler(engine, { model: 'fox' });
    assert.equal((await handle(post(COMPLETIONS, { prompt: ['a', 'b'], n: 8 }))).status, 200);
    assert.equal(asked.length, 2); // the model name is accepted
    const many = 'A request may have at most 16 choices in total over its prompts';
    const prompts =
      'prompt must be a string, an array of token ids and strings, or an array of these';
    const most = 'n must be a whole number from 1 to 16, not 17';
    const unsupported = 'unsupported_parameter';
    /** @type {[any, string, string, string?][]} body, param, message, code */
    const wrong = [
      [{ prompt: 'a', n: 17 }, 'n', most],
      [{ prompt: ['a'], n: 17 }, 'n', most],
      [{ prompt: ['a', 'b', 'c'], n: 6 }, 'prompt', many],
      [{}, 'prompt', 'prompt is missing', 'missing_required_parameter'],
      [{ prompt: ['a', 'b'], n: 9 }, 'prompt', many],
      [{ prompt: [] }, 'prompt', prompts],
      [{ prompt: ['a', []] }, 'prompt', prompts],
      [{ prompt: [['a']] }, 'prompt', prompts],
      [{ prompt: [1, 0.5] }, 'prompt', prompts],
      [{ prompt: [[1], 'a', [2, '3', {}]] }, 'prompt', prompts],
      [{ prompt: { 0: 'a' } }, 'prompt', prompts],
      [{ prompt: 5 }, 'prompt', prompts],
      [
        { prompt: 'a', logprobs: -1 },
        'logprobs',
        'logprobs must be a whole number from 0 to 20, not -1',
      ],
      [{ prompt: 'a', best_of: 2 }, 'best_of', 'best_of: 2 is not supported', unsupported],
      [{ prompt: 'a', echo: 1 }, 'echo', 'echo must be true or false, not 1'],
      [{ prompt: 'a', echo: true, stream: true }, 'echo', 'echo is not available with stream'],
      [{ prompt: 'a', max_tokens: 0 }, 'max_tokens', 'max_tokens: 0 needs echo'],
      [{ prompt: 'a', suffix: 'b' }, 'suffix', 'suffix: "b" is not supported', unsupported],
    ];
    for (const [body, param, message, code = 'invalid_value'] of wrong) {
      const response = await handle(post(COMPLETIONS, body));
      const error = { message, type: 'invalid_request_error', param, code };
      assert.deepEqual([response.status, await response.json()], [400, { error }]);
    }
  });

  const token = (/** @type {number[]} */ bytes, /** @type {string} */ text, more = {}) => ({
    ...{ token: 1, text, bytes: Uint8Array.from(bytes), logprob: -1, ...more },
    top: [
      { text, logprob: -2 },
      { text: 'z', logprob: -3 },
      { text: 'y', logprob: -4 },
    ],
  });

  test('logprobs: one request per choice, and tokens are reported with the text they begin in', async () => {
    const speeches = [new Speech(), new Speech()];
    const { engine, asked } = engineOf(speeches);
    const handle = createHandler(engine);
    const body = { prompt: 'x', n: 2, seed: 5, logprobs: 2, stream: true };
    const answered = handle(post(COMPLETIONS, body));
    await turn();
    await turn();
    const onToken = asked.slice(1).map(([, , options]) => options.onToken);
    assert.deepEqual(
      asked
        .slice(1)
        .map(([name, prompt, { seed, n, logprobs }]) => [name, prompt, seed, n, logprobs]),
      [
        ['generate', 'x', 5, undefined, 2],
        ['generate', 'x', 6, undefined, 2],
      ],
    );
    onToken[0](token([97], 'a', { logprob: -0.5 }));
    onToken[0](token([0xc3], '\ufffd'));
    onToken[0](token([0xa9], '\ufffd', { logprob: undefined }));
    onToken[0](token([98, 99], 'bc'));
    onToken[0](token([], ''));
    onToken[1](token([113], 'q'));
    speeches[0].say('a').say('éb').say('c').end('stop', [1, 0, 5]);
    speeches[1].say('q').end('length', [1, 0, 1]);
    const events = await eventsOf(await answered);
    assert.equal(events.pop(), 'end');
    const choices = events.map((chunk) => {
      const { choices: own, ...rest } = headless(chunk, 'text_completion', 'fox');
      assert.deepEqual([own.length, rest], [1, {}]);
      return own[0];
    });
    const shape = (/** @type {any[]} */ ...tokens) => ({
      tokens: tokens.map(([text]) => text),
      token_logprobs: tokens.map(([, , logprob]) => logprob),
      top_logprobs: tokens.map(([text]) => ({ [text]: -2, z: -3 })),
      text_offset: tokens.map(([, offset]) => offset),
    });
    const [half, rest] = [
      ['\ufffd', 1, -1],
      ['\ufffd', 2, null],
    ];
    assert.deepEqual(
      choices
        .filter(({ index }) => index === 0)
        .map(({ text, logprobs, finish_reason }) => [text, logprobs, finish_reason]),
      [
        ['a', shape(['a', 0, -0.5]), null],
        ['éb', shape(half, rest, ['bc', 3, -1]), null],
        ['c', shape(), null],
        ['', shape(['', 5, -1]), 'stop'],
      ],
    );
    assert.deepEqual(
      choices
        .filter(({ index }) => index === 1)
        .map(({ text, logprobs }) => [text, logprobs.tokens]),
      [
        ['q', ['q']],
        ['', []],
      ],
    );
  });

  test('pieces are streamed as they arrive, and the usage at the end on request', async () => {
    for (const options of [undefined, { include_usage: false }, { include_usage: true }]) {
      const speeches = [new Speech(), new Speech()];
      const { engine } = engineOf(speeches);
      const body = { prompt: 'x', n: 2, stream: true, stream_options: options };
      const answered = createHandler(engine)(post(COMPLETIONS, body));
      speeches[1].say('b');
      const response = await answered;
      assert.deepEqual(
        [...response.headers].filter(([name]) => name !== 'x-request-id'),
        [
          ['cache-control', 'no-cache'],
          ['content-type', 'text/event-stream; charset=utf-8'],
          ['x-accel-buffering', 'no'],
        ],
      );
      const events = eventsOf(response);
      await turn();
      speeches[0].say('a');
      await turn();
      speeches[1].end('length', [3, 1, 2]);
      await turn();
      speeches[0].end('stop', [3, 2, 4]);
      const chunks = (await events).map((chunk) =>
        chunk === 'end' ? chunk : headless(chunk, 'text_completion', 'fox'),
      );
      const piece = (/** @type {number} */ index, text = '', finish = any(null)) => ({
        choices: [{ index, text, logprobs: null, finish_reason: finish }],
        ...(options?.include_usage && { usage: null }),
      });
      const usage = {
        ...{ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 },
        prompt_tokens_details: { cached_tokens: 2 },
      };
      assert.deepEqual(chunks, [
        ...[piece(1, 'b'), piece(0, 'a'), piece(1, '', 'length'), piece(0, '', 'stop')],
        ...(options?.include_usage ? [{ choices: [], usage }] : []),
        'end',
      ]);
    }
  });

  const full = () =>
    Object.assign(new Error('n is too many'), { name: 'WickError', code: 'RANGE' });
  const refusal = { message: 'n is too many', type: 'invalid_request_error', param: 'n' };

  test('a failing choice ends the others: with a status before the first piece, with an event afterwards', async () => {
    for (const stream of [false, true]) {
      const speeches = [new Speech(), new Speech()];
      speeches[1].fail(full());
      const { engine } = engineOf(speeches);
      const handle = createHandler(engine);
      const response = await handle(post(COMPLETIONS, { prompt: 'x', n: 2, stream }));
      assert.equal(response.status, 400);
      assert.deepEqual(await response.json(), { error: { ...refusal, code: 'invalid_value' } });
      assert.deepEqual([speeches[0].isLeft, speeches[1].isLeft], [true, true]);
      assert.match(await (await metricsOf(handle)).text(), /^wick_http_generations 0$/m);
    }
    const speeches = [new Speech().say('a'), new Speech()];
    const { engine } = engineOf(speeches);
    /** @type {any[]} */
    const reports = [];
    const handle = createHandler(engine, {
      onError: (error) => void reports.push(any(error).code),
    });
    const response = await handle(post(COMPLETIONS, { prompt: 'x', n: 2, stream: true }));
    speeches[0].fail(full());
    const events = await eventsOf(response);
    assert.deepEqual(events.slice(1), [
      { error: { ...refusal, param: null, code: 'invalid_value' } },
    ]);
    assert.deepEqual([speeches[0].isLeft, speeches[1].isLeft, reports], [true, true, ['RANGE']]);
  });

  const metricsOf = (/** @type {any} */ handle) => handle(bare('/metrics'));

  test('a stream is read at its reader’s pace, and cancelled with it', async () => {
    const speech = new Speech().say('a').say('b').say('c');
    const { engine } = engineOf([speech]);
    const handle = createHandler(engine);
    const response = await handle(post(COMPLETIONS, { prompt: 'x', stream: true }));
    const reads = [speech.reads];
    const generations = async () =>
      /wick_http_generations (\d)/.exec(await (await metricsOf(handle)).text())?.[1];
    assert.equal(await generations(), '1');
    const reader = /** @type {ReadableStream} */ (response.body).getReader();
    for (let i = 0; i < 3; i++) {
      await reader.read();
      await turn();
      reads.push(speech.reads);
    }
    assert.deepEqual(
      reads,
      [1, 2, 3, 4].map((count, i) => count - Number(i > 0)),
    );
    assert.equal(speech.isLeft, false);
    await reader.cancel();
    assert.equal(speech.isLeft, true);
    assert.equal(await generations(), '0');
  });

  test('a client that disconnects before or during the response is dropped', async () => {
    for (const stream of [false, true]) {
      const speech = new Speech();
      const { engine, asked } = engineOf([speech]);
      const handle = createHandler(engine, { onError: (one) => assert.fail(`${one}`) });
      const gone = new AbortController();
      const body = { prompt: 'x', stream };
      const answered = handle(post(COMPLETIONS, body, { signal: gone.signal }));
      await turn();
      await turn();
      if (stream) speech.say('a');
      const response = stream ? await answered : undefined;
      const reader = response?.body?.getReader();
      await reader?.read();
      const next = reader?.read().then(
        () => undefined,
        (reason) => reason,
      );
      await turn();
      gone.abort();
      assert.equal(asked[1][2].signal.aborted, true);
      assert.match(await (await metricsOf(handle)).text(), /^wick_http_generations 0$/m);
      const error = new Error('left');
      speech.fail(error);
      if (stream) {
        assert.equal(await next, error);
        assert.equal(speech.isLeft, true);
        const page = await (await metricsOf(handle)).text();
        assert.match(page, /^wick_http_generations 0$/m); // counted as ended only once
        continue;
      }
      const refused = await answered;
      assert.equal(refused.status, 499);
      assert.deepEqual(await refused.json(), {
        error: {
          message: 'The client has disconnected',
          type: 'invalid_request_error',
          param: null,
          code: 'client_gone',
        },
      });
    }
  });
});

describe('chats', () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  /** @param {(wanted: any, call: any) => any} create */
  const chatting = (create) => {
    /** @type {any[]} */
    const asked = [];
    const answer = async (/** @type {any} */ wanted, /** @type {any} */ call) => {
      asked.push([wanted, call]);
      return create(wanted, call);
    };
    const { engine } = engineOf([], { chat: { completions: { create: answer } } });
    return { handle: createHandler(engine, { model: 'fox' }), asked };
  };

  test('every field is passed on, and the response has the model’s name', async () => {
    const { handle, asked } = chatting(() => ({ id: 1, model: 'file' }));
    const call = { id: 'c', function: { name: 'get', arguments: '{}' } };
    const given = {
      ...{ n: 2, max_tokens: 1, max_completion_tokens: 1, seed: 0, stop: 'a', stream: false },
      ...{ temperature: 0, top_p: 1, top_k: 0, logprobs: true, top_logprobs: 20, logit_bias: {} },
      ...{ chat_template_kwargs: {}, response_format: { type: 'text' }, parallel_tool_calls: true },
      ...{ thinking_budget_tokens: 0, reasoning_effort: 'low' },
      tools: [{ type: 'function', function: { name: 'get' } }],
      tool_choice: 'none',
    };
    const talk = [
      { role: 'developer', content: 'Be short', name: 'a' },
      { role: 'system', content: [{ type: 'text', text: 'x' }] },
      { role: 'assistant', tool_calls: [call], reasoning_content: 'r', refusal: null },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: '', tool_call_id: 'c' },
      { role: 'assistant', content: 'b', tool_calls: [] },
    ];
    const idle = {
      ...{ model: 'x', user: 5, store: {}, metadata: 1, service_tier: 0, prediction: [] },
      ...{ safety_identifier: 1, prompt_cache_key: 1, prompt_cache_retention: 1, functions: [] },
      ...{ function_call: 'auto', modalities: ['text'], audio: null },
      ...{ verbosity: 'medium', web_search_options: null, presence_penalty: null },
    };
    const response = await handle(post(CHAT, { messages: talk, ...given, ...idle, salt: 'mine' }));
    assert.deepEqual([response.status, await response.json()], [200, { id: 1, ...servedBy }]);
    const [[wanted, { signal }]] = asked;
    assert.ok(signal instanceof AbortSignal);
    const sent = talk;
    assert.deepEqual(wanted, { messages: sent, ...given, adapters: undefined, salt: 'mine' });
  });

  test('errors state the fault', async () => {
    const { handle, asked } = chatting(() => ({}));
    const of = (/** @type {any} */ message) => ({ messages: [...messages, message] });
    const content = (/** @type {any} */ part) =>
      of({ role: 'user', content: [{ type: 'text', text: 'ok' }, part] });
    const roles = 'must be one of system, developer, user, assistant, tool';
    const noPart = 'must be a part with a type and a text';
    const tool = 'must be {"type": "function", "function": {"name", ...}}';
    const call = 'must be {"id", "function": {"name", "arguments": a string}}';
    const parts = 'must be a string or an array of parts';
    const calls = (/** @type {any} */ one) =>
      of({ role: 'assistant', tool_calls: [{ function: { name: '', arguments: '' } }, one] });
    const tools = (/** @type {any} */ one) => ({
      messages,
      tools: [{ type: 'function', function: { name: 'a' } }, one],
    });
    const [value, kind, field] = ['invalid_value', 'unsupported_value', 'unsupported_parameter'];
    /** @type {[any, string, string, string?][]} body, param, the rest of the message, code */
    const wrong = [
      [{}, 'messages', 'is missing', 'missing_required_parameter'],
      [{ messages: [] }, 'messages', 'must be an array of at least one message'],
      [{ messages: {} }, 'messages', 'must be an array of at least one message'],
      [of(5), 'messages[1]', 'must be an object'],
      [of([]), 'messages[1]', 'must be an object'],
      [of({ content: 'a' }), 'messages[1].role', ' has no role'],
      [of({ role: 'user' }), 'messages[1].content', ' has no content'],
      [of({ role: 'user', content: null }), 'messages[1].content', ' has no content'],
      [of({ role: 'user', tool_calls: [] }), 'messages[1].content', ' has no content'],
      [of({ role: 'me', content: 'a' }), 'messages[1].role', roles],
      [of({ role: 5, content: 'a' }), 'messages[1].role', roles],
      [
        of({ role: 'function', content: 'a' }),
        'messages[1].role',
        ': "function" is not supported',
        field,
      ],
      [of({ role: 'user', content: 5 }), 'messages[1].content', parts],
      [content(null), 'messages[1].content[1]', noPart],
      [content('a'), 'messages[1].content[1]', noPart],
      [content({ type: 5, text: 'a' }), 'messages[1].content[1]', noPart],
      [content({ type: 'text' }), 'messages[1].content[1]', noPart],
      [content({ type: 'text', text: 5 }), 'messages[1].content[1]', noPart],
      [
        content({ type: 'x'.repeat(50), text: 'a' }),
        'messages[1].content[1]',
        `is of type ${'x'.repeat(40)}: text, image_url and input_audio are supported`,
        kind,
      ],
      [
        content({ type: 'image_url', image_url: {} }),
        'messages[1].content[1].image_url',
        ' must have a url',
      ],
      [
        content({ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }),
        'messages[1].content[1].image_url',
        ' must have a data URL: this server does not fetch URLs',
        kind,
      ],
      [
        content({ type: 'input_audio', input_audio: { data: 'a' } }),
        'messages[1].content[1].input_audio',
        ' must have data and a format',
      ],
      [calls({}), 'messages[1].tool_calls[1]', call],
      [calls(null), 'messages[1].tool_calls[1]', call],
      [calls({ function: { name: 'a' } }), 'messages[1].tool_calls[1]', call],
      [calls({ function: { arguments: 'a' } }), 'messages[1].tool_calls[1]', call],
      [of({ role: 'assistant', tool_calls: 5 }), 'messages[1].tool_calls', 'must be an array'],
      [
        of({ role: 'tool', content: '', tool_call_id: 5 }),
        'messages[1].tool_call_id',
        'must be a string, not 5',
      ],
      [
        of({ role: 'user', content: '', reasoning_content: 5 }),
        'messages[1].reasoning_content',
        'must be a string, not 5',
      ],
      [
        of({ role: 'user', content: '', audio: { id: 'a' } }),
        'messages[1].audio',
        ': {"id":"a"} is not supported',
        field,
      ],
      [
        of({ role: 'user', content: '', refusal: 5 }),
        'messages[1].refusal',
        'must be a string, not 5',
      ],
      [
        of({ role: 'user', content: '', function_call: 1 }),
        'messages[1].function_call',
        ': 1 is not supported',
        field,
      ],
      [{ messages, tools: {} }, 'tools', 'must be an array'],
      [tools({ type: 'x', function: { name: 'a' } }), 'tools[1]', tool],
      [tools({ type: 'function', function: { name: '' } }), 'tools[1]', tool],
      [tools({ type: 'function' }), 'tools[1]', tool],
      [tools(null), 'tools[1]', tool],
      [{ messages, top_logprobs: 1 }, 'top_logprobs', 'needs logprobs: true'],
      [{ messages, top_logprobs: 1, logprobs: false }, 'top_logprobs', 'needs logprobs: true'],
      [
        { messages, top_logprobs: 21, logprobs: true },
        'top_logprobs',
        'must be a whole number from 0 to 20, not 21',
      ],
      [
        { messages, max_completion_tokens: 0 },
        'max_completion_tokens',
        'must be a whole number of at least 1, or -1 for no limit, not 0',
      ],
      [{ messages, functions: [1] }, 'functions', ': [1] is not supported', field],
      [{ messages, functions: {} }, 'functions', ': {} is not supported', field],
      [{ messages, function_call: 'x' }, 'function_call', ': "x" is not supported', field],
      [
        { messages, tool_choice: 'always' },
        'tool_choice',
        'must be none, auto, required or {"type": "function", "function": {"name"}}',
      ],
      [
        { messages, modalities: ['text', 'audio'] },
        'modalities',
        ': ["text","audio"] is not supported',
        field,
      ],
      [{ messages, modalities: 'text' }, 'modalities', ': "text" is not supported', field],
      [
        { messages, reasoning_effort: 'much' },
        'reasoning_effort',
        'must be one of none, minimal, low, medium, high, xhigh, max, not "much"',
      ],
      [{ messages, verbosity: 'low' }, 'verbosity', ': "low" is not supported', field],
      [{ messages, audio: {} }, 'audio', ': {} is not supported', field],
      [{ messages, web_search_options: {} }, 'web_search_options', ': {} is not supported', field],
      [{ messages, logprobs: 1 }, 'logprobs', 'must be true or false, not 1'],
      [{ messages, response_format: 'json' }, 'response_format', 'must be an object, not "json"'],
      [{ messages, model: 5 }, 'model', 'must be a string, not 5'],
    ];
    for (const [body, param, rest, code = value] of wrong) {
      const response = await handle(post(CHAT, body));
      const subject = rest.startsWith(' ') ? param.replace(/\.\w+$/, '') : param;
      const message = /^[ :]/.test(rest) ? `${subject}${rest}` : `${subject} ${rest}`;
      const error = { message, type: 'invalid_request_error', param, code };
      assert.deepEqual([response.status, await response.json()], [400, { error }]);
    }
    assert.deepEqual(asked, []);
    assert.equal((await handle(post(CHAT, { messages, top_logprobs: 0 }))).status, 200);
  });

  test('a streamed response starts after the role chunks and one more', async () => {
    for (const n of [undefined, 2]) {
      let [given, isLeft] = [0, false];
      /** @type {(value?: unknown) => void} */
      let more = () => {};
      async function* chunks() {
        try {
          for (; given < 3 + (n ?? 1); given++) {
            if (given === (n ?? 1) + 1) await new Promise((settle) => (more = settle));
            yield { given, model: 'file' };
          }
        } finally {
          isLeft = true;
        }
      }
      const { handle } = chatting(() => chunks());
      const response = await handle(post(CHAT, { messages, n, stream: true }));
      assert.equal(given, n ?? 1);
      const events = eventsOf(response);
      await turn();
      more();
      assert.deepEqual(await events, [
        ...Array.from({ length: 3 + (n ?? 1) }, (_, i) => ({ given: i, ...servedBy })),
        'end',
      ]);
      assert.equal(isLeft, true);
    }
  });

  test('a stream that fails after its role chunks returns an error status; a short one ends', async () => {
    let isLeft = false;
    const failing = chatting(() => ({
      [Symbol.asyncIterator]: () => {
        let count = 0;
        return {
          next: async () => {
            if (count++ < 2) return { done: false, value: {} };
            throw Object.assign(new Error('full'), { name: 'WickError', code: 'QUEUE_FULL' });
          },
          return: async () => {
            isLeft = true;
          },
        };
      },
    }));
    const refused = await failing.handle(post(CHAT, { messages, n: 2, stream: true }));
    assert.deepEqual(
      [refused.status, refused.headers.get('Retry-After'), isLeft],
      [429, '1', true],
    );
    const short = chatting(async function* () {
      yield { a: 1 };
    });
    const response = await short.handle(post(CHAT, { messages, n: 3, stream: true }));
    assert.deepEqual(await eventsOf(response), [{ a: 1, ...servedBy }, 'end']);
  });
});

describe('embeddings and rankings', () => {
  test('the request is passed to the engine, and its result is returned', async () => {
    /** @type {any[]} */
    const asked = [];
    const { engine } = engineOf([], {
      embeddings: {
        create: async (/** @type {any} */ body, /** @type {any} */ call) => {
          asked.push([body, Object.keys(call), call.signal instanceof AbortSignal]);
          return { object: 'list' };
        },
      },
      rerank: async (/** @type {any[]} */ ...args) => {
        const { signal, ...options } = args.pop();
        asked.push([...args, options, signal instanceof AbortSignal]);
        return {
          results: [
            { index: 1, score: 3.5, probability: 0.75 },
            { index: 0, score: -1, probability: 0.25 },
          ],
          tokens: 12,
        };
      },
    });
    const handle = createHandler(engine);
    const embed = {
      input: [1, 2],
      dimensions: 1,
      encoding_format: 'base64',
      user: 'me',
      model: 'x',
    };
    assert.deepEqual(await (await handle(post('/v1/embeddings', embed))).json(), {
      object: 'list',
    });
    const passed = { ...embed, input: [[1, 2]], model: 'fox' };
    assert.deepEqual(asked.pop(), [passed, ['signal'], true]);
    const question = { query: 'q', documents: ['a', { text: 'b' }] };
    const results = [
      { index: 1, relevance_score: 0.75 },
      { index: 0, relevance_score: 0.25 },
    ];
    const usage = { prompt_tokens: 12, total_tokens: 12 };
    const answer = { model: 'fox', object: 'list', results, usage };
    assert.deepEqual(await (await handle(post(RERANK, question))).json(), answer);
    assert.deepEqual(asked.pop(), ['q', ['a', 'b'], { topN: 2 }, true]);
    const more = { ...question, top_n: 1, return_documents: true };
    assert.deepEqual(await (await handle(post(RERANK, more))).json(), {
      ...answer,
      results: [
        { ...results[0], document: { text: 'b' } },
        { ...results[1], document: { text: 'a' } },
      ],
    });
    assert.deepEqual(asked.pop(), ['q', ['a', 'b'], { topN: 1 }, true]);
    const raw = await (await handle(post(RERANK, { ...question, raw_scores: true }))).json();
    assert.deepEqual(
      raw.results.map((/** @type {any} */ one) => one.relevance_score),
      [3.5, -1],
    );
    asked.pop();
    // in the format of text-embeddings-inference
    const texts = { query: 'q', texts: ['a', 'b'], top_n: 2 };
    assert.deepEqual(await (await handle(post(RERANK, texts))).json(), [
      { index: 1, score: 0.75 },
      { index: 0, score: 0.25 },
    ]);
    const shown = { ...texts, return_text: true, raw_scores: true };
    assert.deepEqual(await (await handle(post(RERANK, shown))).json(), [
      { index: 1, score: 3.5, text: 'b' },
      { index: 0, score: -1, text: 'a' },
    ]);
    assert.deepEqual(asked.splice(-2), Array(2).fill(['q', ['a', 'b'], { topN: 2 }, true]));
    const plain = { ...question, return_documents: false, top_n: null, raw_scores: false };
    assert.deepEqual(await (await handle(post(RERANK, plain))).json(), answer);
    const list = 'documents must be an array of strings, not';
    /** @type {[string, any, string, string][]} */
    const wrong = [
      [RERANK, { ...question, documents: [] }, 'documents', `${list} []`],
      [RERANK, { ...question, documents: ['a', 5] }, 'documents', `${list} ["a",5]`],
      [RERANK, { ...question, documents: [null] }, 'documents', `${list} [null]`],
      [RERANK, { ...question, documents: 'a' }, 'documents', `${list} "a"`],
      [RERANK, { ...question, query: 5 }, 'query', 'query must be a string, not 5'],
      [RERANK, { documents: ['a'] }, 'query', 'query is missing'],
      [RERANK, { query: 'a' }, 'documents', 'documents is missing'],
      [
        RERANK,
        { ...question, top_n: 0 },
        'top_n',
        'top_n must be a whole number of at least 1, not 0',
      ],
      [
        RERANK,
        { ...question, return_documents: 1 },
        'return_documents',
        'return_documents must be true or false, not 1',
      ],
      ['/v1/embeddings', {}, 'input', 'input is missing'],
      [
        '/v1/embeddings',
        { input: 'a', dimensions: 0 },
        'dimensions',
        'dimensions must be a whole number of at least 1, not 0',
      ],
      [
        '/v1/embeddings',
        { input: 'a', encoding_format: 'hex' },
        'encoding_format',
        'encoding_format must be float or base64, not "hex"',
      ],
    ];
    asked.length = 0;
    for (const [path, body, param, message] of wrong) {
      const response = await handle(post(path, body));
      const { error } = /** @type {any} */ (await response.json());
      assert.deepEqual([response.status, error.param, error.message], [400, param, message]);
    }
    assert.deepEqual(asked, []);
  });
});

describe('routes', () => {
  test('wrong methods, unknown paths and missing fields are rejected', async () => {
    const { engine } = engineOf([]);
    const handle = createHandler(engine);
    const reads = 'GET, HEAD, OPTIONS';
    const writes = 'POST, OPTIONS';
    for (const [path, allowed] of [
      ...['/health', '/metrics', '/v1/models', '/v1/models/fox'].map((path) => [path, reads]),
      ...[CHAT, COMPLETIONS, RERANK, '/v1/embeddings', '/v1/responses'].map((path) => [
        path,
        writes,
      ]),
    ]) {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const response = await handle(bare(path, method));
        const isAllowed = allowed.split(', ').includes(method);
        assert.equal(response.status === 405, !isAllowed, `${method} ${path}`);
        const allow = !isAllowed || method === 'OPTIONS' ? allowed : null;
        assert.equal(response.headers.get('Allow'), allow, `${method} ${path}`);
        if (method === 'OPTIONS') assert.equal(response.status, 204);
        if (isAllowed) continue;
        const { error } = any(await response.json());
        const message = `Method ${method} is not allowed for ${path}`;
        assert.deepEqual([error.code, error.message], ['method_not_allowed', message]);
      }
    }
    for (const [path, known] of [
      ['/', '/'],
      ['/v1/model', '/v1/model'],
      ['/toString', '/toString'],
      [`/${'x'.repeat(300)}`, `/${'x'.repeat(199)}`],
    ]) {
      const response = await handle(bare(path));
      const { error } = any(await response.json());
      assert.deepEqual(
        [response.status, error.code, error.message],
        [404, 'not_found', `No route for ${known}`],
      );
    }
  });

  test('/metrics has counters of responses, the engine’s statistics, and op timings if they are on', async () => {
    const failure = (/** @type {string} */ code) => async () => {
      throw Object.assign(new Error(code), { name: 'WickError', code });
    };
    const { engine } = engineOf([new Speech()]);
    const handle = createHandler(engine);
    for (const path of ['/health', '/health', '/nothing', '/also', '/v1/models/x']) {
      await handle(bare(path));
    }
    await handle(post(COMPLETIONS, {}));
    void handle(post(COMPLETIONS, { prompt: 'x' }));
    await turn();
    const page = await handle(bare('/metrics'));
    const counted = (/** @type {string} */ route, /** @type {number} */ status, count = 1) =>
      `wick_http_responses_total{route="${route}",status="${status}"} ${count}\n`;
    assert.equal(
      await page.text(),
      '# HELP wick_http_responses_total Responses by route and status.\n' +
        '# TYPE wick_http_responses_total counter\n' +
        counted('/health', 200, 2) +
        counted('none', 404, 2) +
        counted('/v1/models/', 404) +
        counted(COMPLETIONS, 400) +
        '# HELP wick_http_generations Running and waiting text requests.\n' +
        '# TYPE wick_http_generations gauge\nwick_http_generations 1\nstats\nmetrics\n',
    );
    assert.equal(page.headers.get('Content-Type'), 'text/plain; version=0.0.4; charset=utf-8');
    const untimed = engineOf([], { metrics: failure('NODATA') });
    assert.match(
      await (await createHandler(untimed.engine)(bare('/metrics'))).text(),
      / 0\nstats\n$/,
    );
    for (const more of [{ metrics: failure('CLOSED') }, { stats: failure('NODATA') }]) {
      const broken = engineOf([], more);
      const refused = await createHandler(broken.engine)(bare('/metrics'));
      assert.equal(refused.status, any(more).stats ? 501 : 503);
    }
    const health = engineOf([], { info: failure('WORKER_CRASHED') });
    assert.equal((await createHandler(health.engine)(bare('/health'))).status, 503);
  });

  test('the model’s name is the given one, or that of the file or the architecture', async () => {
    for (const [info, model, id] of /** @type {[any, string | undefined, string][]} */ ([
      [{ name: 'é/b', architecture: 'x' }, undefined, 'é/b'],
      [{ name: null, architecture: 'x' }, undefined, 'x'],
      [{ name: null, architecture: null }, undefined, 'model'],
      [{ name: 'a', architecture: 'x' }, 'own name', 'own name'],
    ])) {
      let asked = 0;
      const { engine } = engineOf([], {
        info: async () => {
          asked++;
          return info;
        },
      });
      const handle = createHandler(engine, { model });
      const list = any(await (await handle(bare('/v1/models'))).json());
      const { created } = list.data[0];
      assert.ok(Math.abs(created - Date.now() / 1000) < 100);
      const one = { id, object: 'model', created, owned_by: 'wick-llm' };
      assert.deepEqual(list, { object: 'list', data: [one] });
      for (const name of new Set([encodeURIComponent(id), encodeURI(id), id])) {
        assert.deepEqual(await (await handle(bare(`/v1/models/${name}`))).json(), one);
      }
      const other = await handle(bare(`/v1/models/${id}x`));
      assert.deepEqual(any(await other.json()).error, {
        message: `This server's model is ${id}`,
        type: 'invalid_request_error',
        param: 'model',
        code: 'model_not_found',
      });
      assert.equal(asked, model === undefined ? 1 : 0);
    }
  });

  test('the key determines a request’s routes and salt', async () => {
    const speeches = Array.from({ length: 4 }, () => new Speech().end('stop', [1, 0, 0]));
    const create = async (/** @type {any} */ wanted) => {
      asked.push(['chat', wanted]);
      return {};
    };
    const { engine, asked } = engineOf(speeches, { chat: { completions: { create } } });
    const handle = createHandler(engine, { keys: ['one', 'two'], metricsKey: 'op', model: 'm' });
    const salts = ['one', 'two'].map((key) => sha256(`wick-llm/openai tenant\n${key}`));
    for (const [
      authorization,
      own,
      salt,
    ] of /** @type {[string, string | undefined, string][]} */ ([
      ['Bearer one', undefined, salts[0]],
      ['bearer   two  ', undefined, salts[1]],
      ['BEARER one', 'mine', `${salts[0]}/mine`],
    ])) {
      const request = post(COMPLETIONS, { prompt: 'a', salt: own }, { headers: { authorization } });
      assert.equal((await handle(request)).status, 200);
      assert.equal(asked.at(-1)[2].salt, salt);
    }
    for (const [authorization, message] of [
      ['', 'A key is required: Authorization: Bearer KEY'],
      ['one', 'A key is required: Authorization: Bearer KEY'],
      ['Bearer one two', 'A key is required: Authorization: Bearer KEY'],
      ['Bearer op', 'The key is not valid'],
      ['Bearer on', 'The key is not valid'],
    ]) {
      for (const path of ['/v1/models', COMPLETIONS, '/v1/responses']) {
        const headers = any(authorization === '' ? {} : { authorization });
        const isRead = path === '/v1/models';
        const request = isRead ? bare(path, 'GET', headers) : post(path, {}, { headers });
        const response = await handle(request);
        assert.equal(response.headers.get('WWW-Authenticate'), 'Bearer');
        const error = {
          message,
          type: 'invalid_request_error',
          param: null,
          code: 'invalid_api_key',
        };
        assert.deepEqual([response.status, await response.json()], [401, { error }]);
      }
    }
    const status = async (/** @type {any} */ handler, /** @type {string} */ key) =>
      (await handler(bare('/metrics', 'GET', { authorization: `Bearer ${key}` }))).status;
    assert.deepEqual([await status(handle, 'op'), await status(handle, 'one')], [200, 401]);
    const closed = createHandler(engine, { keys: 'one' });
    assert.equal(await status(closed, 'one'), 403);
    assert.equal((await closed(bare('/health'))).status, 200);
    const open = createHandler(engine, { metricsKey: 'op', model: 'm' });
    assert.deepEqual([await status(open, 'op'), await status(open, 'x')], [200, 401]);
    const chat = post(
      CHAT,
      { messages: [{ role: 'user', content: '' }] },
      { headers: { authorization: 'Bearer two' } },
    );
    assert.equal((await handle(chat)).status, 200);
    assert.equal(asked.at(-1)[1].salt, salts[1]);
    const request = post(COMPLETIONS, { prompt: 'a', salt: 'mine' });
    assert.equal((await open(request)).status, 200);
    assert.equal(asked.at(-1)[2].salt, 'mine');
  });

  test('CORS: every header', async () => {
    const { engine } = engineOf([]);
    const [page, other] = ['https://page.test', 'https://other.test'];
    const exposed = 'Retry-After, X-Request-Id, X-Wick-Ignored';
    const may = (/** @type {string} */ origin) => ({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': exposed,
    });
    const preflight = (/** @type {string} */ methods, /** @type {any} */ headers = {}) => ({
      'access-control-allow-methods': methods,
      'access-control-max-age': '600',
      allow: methods,
      ...headers,
    });
    const [reads, writes] = ['GET, HEAD, OPTIONS', 'POST, OPTIONS'];
    const asks = { 'Access-Control-Request-Headers': 'x-a, x-b' };
    const reports = { 'access-control-allow-headers': 'x-a, x-b' };
    const vary = { vary: 'Origin' };
    /** @type {[any, string, string, any, any][]} cors, method, path, headers, response headers */
    const cases = [
      [undefined, 'GET', '/health', { origin: page }, {}],
      [page, 'GET', '/health', {}, vary],
      [page, 'GET', '/health', { origin: other }, vary],
      [[other, page], 'GET', '/health', { origin: page }, { ...vary, ...may(page) }],
      ['*', 'GET', '/health', { origin: page }, may('*')],
      ['*', 'GET', '/health', {}, {}],
      ['*', 'GET', '/health', { origin: page, ...asks }, may('*')],
      ['*', 'OPTIONS', '/health', { origin: page }, { ...may('*'), ...preflight(reads) }],
      [
        '*',
        'OPTIONS',
        CHAT,
        { origin: page, ...asks },
        { ...may('*'), ...preflight(writes, reports) },
      ],
      [page, 'OPTIONS', CHAT, { origin: other, ...asks }, { ...vary, allow: writes }],
    ];
    for (const [cors, method, path, headers, wanted] of cases) {
      const response = await createHandler(engine, { cors })(bare(path, method, headers));
      const {
        'content-type': _,
        'x-request-id': __,
        ...got
      } = Object.fromEntries(response.headers);
      assert.deepEqual(got, wanted);
    }
    const lost = await createHandler(engine, { cors: '*' })(
      bare('/x', 'OPTIONS', { origin: page }),
    );
    assert.equal(lost.headers.get('Access-Control-Allow-Methods'), '');
  });

  test('options', () => {
    const { engine } = engineOf([]);
    const texts = 'must be a non-empty string or a non-empty array of them';
    const keys = 'must be visible ASCII characters without spaces';
    const count = 'must be a whole number of at least 1';
    /** @type {[any, string][]} */
    const wrong = [
      [{ keys: [] }, `keys ${texts}`],
      [{ keys: ['a', ''] }, `keys ${texts}`],
      [{ keys: ['a', 5] }, `keys ${texts}`],
      [{ keys: null }, `keys ${texts}`],
      [{ keys: ['a', 'b c'] }, `keys ${keys}`],
      [{ metricsKey: 'é' }, `metricsKey ${keys}`],
      [{ cors: [] }, `cors ${texts}`],
      [{ model: '' }, `model ${texts}`],
      [{ queueLimit: 0 }, `queueLimit ${count}`],
      [{ queueLimit: '1' }, `queueLimit ${count}`],
      [{ bodyBytesMax: 1.5 }, `bodyBytesMax ${count}`],
      [{ bodyBytesMax: 0 }, `bodyBytesMax ${count}`],
      [{ itemsMax: 0 }, `itemsMax ${count}`],
      [{ onError: 5 }, 'onError must be a function'],
      [{ model: 'a', key: 'a' }, 'key is not an option'],
    ];
    for (const [options, message] of wrong) {
      const error = { name: 'TypeError', message: `createHandler: ${message}` };
      assert.throws(() => createHandler(engine, options), error);
    }
    createHandler(engine, { queueLimit: 1, bodyBytesMax: 1, keys: '!', metricsKey: '~' });
    for (const none of [null, undefined, {}]) {
      const error = {
        name: 'TypeError',
        message: 'createHandler needs an engine from createEngine',
      };
      assert.throws(() => createHandler(any(none)), error);
    }
  });
});

describe('slow clients', () => {
  /** Returns a request whose body never arrives completely. */
  const idle = () =>
    new Request(`http://wick.test${COMPLETIONS}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode('{')) }),
      ...any({ duplex: 'half' }),
    });

  test('bodies that do not arrive time out and do not block others', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { engine } = engineOf([new Speech().say('a').end('stop', [1, 0, 1])]);
    const handle = createHandler(engine, { queueLimit: 1, bodyTimeout: 900 });
    const waiting = [handle(idle()), handle(idle())];
    await turn();
    const answered = await handle(post(COMPLETIONS, { prompt: 'a' }));
    assert.equal(answered.status, 200);
    t.mock.timers.tick(900);
    for (const response of await Promise.all(waiting)) {
      const { error } = any(await response.json());
      assert.deepEqual(
        [response.status, response.headers.get('Connection'), error.code],
        [408, 'close', 'body_timeout'],
      );
    }
  });

  test('input that is nested too deeply is rejected in every field', async () => {
    const { engine } = engineOf([], { chat: { completions: { create: async () => ({}) } } });
    const handle = createHandler(engine);
    const nested = (/** @type {number} */ depth) => '['.repeat(depth) + ']'.repeat(depth);
    for (const field of ['max_tokens', 'metadata', 'messages', 'tools']) {
      for (const depth of [500, 5000, 100_000]) {
        const body = `{"${field}": ${nested(depth)}}`;
        const request = new Request(post(CHAT, {}), { body });
        const response = await handle(request);
        const { error } = any(await response.json());
        assert.deepEqual([response.status, error.code], [400, 'invalid_json'], `${field} ${depth}`);
      }
    }
    const text = JSON.stringify({
      messages: [{ role: 'user', content: `"\\\\"${'['.repeat(600)}` }],
    });
    assert.equal((await handle(new Request(post(CHAT, {}), { body: text }))).status, 200);
  });

  test('a stream sends headers before the first token, and comments while it waits', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const speech = new Speech();
    const { engine } = engineOf([speech]);
    const answer = createHandler(engine)(post(COMPLETIONS, { prompt: 'a', stream: true }));
    for (let count = 0; count < 9; count++) await turn();
    t.mock.timers.tick(1000);
    const response = await answer;
    assert.equal(response.status, 200);
    const reader = any(response.body).pipeThrough(new TextDecoderStream()).getReader();
    for (let count = 0; count < 2; count++) {
      const comment = reader.read();
      for (let turns = 0; turns < 9; turns++) await turn();
      t.mock.timers.tick(10_000);
      assert.deepEqual((await comment).value, ': waiting\n\n');
    }
    speech.say('Once').end('stop', [1, 0, 1]);
    let text = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
    assert.match(
      text,
      /^data: .*"text":"Once".*\n\ndata: .*"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/,
    );
  });
});

describe('bodies', () => {
  const handlerOf = (/** @type {any} */ options = {}) => {
    const speeches = Array.from({ length: 9 }, () => new Speech().end('stop', [1, 0, 0]));
    return createHandler(engineOf(speeches).engine, options);
  };
  const body = '{"prompt":"é"}'; // 15 bytes

  /** @param {any} handle @param {any} sent @param {Record<string, string>} [headers] */
  async function ask(handle, sent, headers = {}) {
    const response = await handle(
      new Request(`http://wick.test${COMPLETIONS}`, {
        ...{ method: 'POST', body: sent, duplex: 'half' },
        headers: { 'content-type': 'application/json', ...headers },
      }),
    );
    const { error } = await response.json();
    return error ? [response.status, error.code, error.message] : [response.status];
  }

  const pieces = (/** @type {string} */ text, isBroken = false) => {
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    return new ReadableStream({
      pull(controller) {
        if (at < bytes.length) return controller.enqueue(bytes.subarray(at, ++at));
        return isBroken ? controller.error(new Error('reset')) : controller.close();
      },
    });
  };

  test('types, encodings and sizes are checked', async () => {
    const handle = handlerOf({ bodyBytesMax: 15 });
    for (const type of [
      ...['application/json', 'Application/JSON ; charset=utf-8', 'application/x.a-b+json'],
    ]) {
      assert.deepEqual(await ask(handle, body, { 'content-type': type }), [200]);
    }
    const said = 'The body must be JSON with Content-Type: application/json, not';
    for (const type of ['text/plain', 'application/jsonx', 'xapplication/json', 'text/json']) {
      const refused = await ask(handle, body, { 'content-type': type });
      assert.deepEqual(refused, [415, 'unsupported_media_type', `${said} ${type}`]);
    }
    const none = new Request(`http://wick.test${COMPLETIONS}`, { method: 'POST' });
    assert.equal(any(await (await handle(none)).json()).error.message, `${said} none`);
    assert.deepEqual(await ask(handle, body, { 'content-encoding': 'Identity' }), [200]);
    assert.deepEqual(await ask(handle, body, { 'content-encoding': 'gzip' }), [
      ...[415, 'unsupported_media_type', 'Content-Encoding: gzip is not supported'],
    ]);
    const large = [413, 'body_too_large', 'The body has more than 15 bytes'];
    assert.deepEqual(await ask(handle, body, { 'content-length': '15' }), [200]);
    assert.deepEqual(await ask(handle, body, { 'content-length': '16' }), large);
    assert.deepEqual(await ask(handle, pieces(body)), [200]);
    assert.deepEqual(await ask(handle, pieces(`${body} `)), large);
    assert.deepEqual(await ask(handlerOf(), `${body}${' '.repeat(2 ** 20 - 15)}`), [200]);
    const usual = `${body}${' '.repeat(2 ** 20 - 14)}`;
    assert.deepEqual((await ask(handlerOf(), usual)).slice(0, 2), [413, 'body_too_large']);
  });

  test('bodies that are not JSON, UTF-8 or an object, or do not end, are rejected', async () => {
    const handle = handlerOf();
    const wrong = async (/** @type {any} */ sent) => {
      const [status, code, message] = await ask(handle, sent);
      assert.deepEqual([status, code], [400, 'invalid_json']);
      return message;
    };
    assert.match(await wrong('{"prompt"'), /^The body is not JSON: .*JSON/);
    for (const other of ['[]', 'null', '5', '"a"']) {
      assert.equal(await wrong(other), 'The body must be a JSON object');
    }
    assert.equal(await wrong(Uint8Array.of(34, 0xff, 34)), 'The body is not UTF-8');
    assert.equal(await wrong(Uint8Array.of(34, 34, 0xc3)), 'The body is not UTF-8');
    assert.equal(await wrong(pieces(body, true)), 'The body ended early');
    let isCancelled = false;
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1 << 19)),
      cancel: () => {
        isCancelled = true;
      },
    });
    assert.equal((await ask(handle, endless))[0], 413);
    assert.equal(isCancelled, true);
  });

  test('an incomplete body is abandoned once its client is gone', async () => {
    for (const isGoneBefore of [true, false]) {
      let isCancelled = false;
      const open = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
        cancel: () => {
          isCancelled = true;
        },
      });
      const gone = new AbortController();
      if (isGoneBefore) gone.abort();
      const handle = handlerOf();
      const init = any({ body: open, duplex: 'half', signal: gone.signal });
      const answered = handle(post(COMPLETIONS, {}, init));
      await turn();
      gone.abort();
      const limit = new Promise((_, fail) =>
        setTimeout(fail, 5000, new Error('the request still waits')).unref(),
      );
      assert.equal((await Promise.race([answered, limit])).status, 499);
      assert.equal(isCancelled, true);
    }
  });

  test('response ids have 28 characters from 36 and are unique', () => {
    const names = Array.from({ length: 400 }, randomName);
    assert.ok(names.every((name) => /^[a-z\d]{28}$/.test(name)));
    assert.equal(new Set(names).size, 400);
    assert.equal(new Set(names.join('')).size, 36);
  });

  test('concurrent requests are limited', async () => {
    const speeches = Array.from({ length: 4 }, () => new Speech());
    const handle = createHandler(engineOf(speeches).engine, { queueLimit: 2 });
    const send = () => handle(post(COMPLETIONS, { prompt: 'x' }));
    const first = [send(), send()];
    const refused = await send();
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, '1']);
    assert.deepEqual(await refused.json(), {
      error: {
        message: '2 requests are already running or waiting',
        type: 'rate_limit_error',
        param: null,
        code: 'queue_full',
      },
    });
    speeches[1].end('stop', [1, 0, 0]);
    assert.equal((await first[1]).status, 200);
    const third = send();
    assert.equal((await send()).status, 429);
    speeches[0].end('stop', [1, 0, 0]);
    speeches[2].end('stop', [1, 0, 0]);
    for (const one of [first[0], third]) assert.equal((await one).status, 200);
  });
});

describe('errors of the engine', () => {
  test('internal errors are reported to the server’s operator', async () => {
    /** @type {[string, string, number, boolean][]} name, code, status, whether it is reported */
    const cases = [
      ['WickError', 'NOMEM', 503, true],
      ['WickError', 'CORRUPT', 500, true],
      ['TypeError', 'ARG', 500, true],
      ['WickError', 'NODATA', 501, false],
      ['WickError', 'ARG', 400, false],
    ];
    for (const [name, code, status, isReported] of cases) {
      /** @type {any[]} */
      const reports = [];
      const error = Object.assign(new Error('it'), { name, code });
      const { engine } = engineOf([new Speech().fail(error)]);
      const handle = createHandler(engine, { onError: (one) => void reports.push(one) });
      assert.equal((await handle(post(COMPLETIONS, { prompt: 'a' }))).status, status);
      assert.deepEqual(reports, isReported ? [error] : []);
    }
  });

  test('errors name the field of their option, of their first word, or of the prompt', async () => {
    /** @type {[string, string, any, string, string | null][]} path, code, cause, message, param */
    const cases = [
      [COMPLETIONS, 'ARG', { option: 'maxTokens' }, 'it is', 'max_tokens'],
      [COMPLETIONS, 'ARG', { option: 'kvTokens' }, 'topK is', 'top_k'],
      [COMPLETIONS, 'ARG', undefined, 'temperature is -1', 'temperature'],
      [COMPLETIONS, 'ARG', undefined, 'nothing is', null],
      [COMPLETIONS, 'ARG', undefined, ' n is', null],
      [COMPLETIONS, 'ARG', { option: 5 }, '', null],
      [COMPLETIONS, 'PROMPT_TOO_LONG', undefined, 'temperature is', 'prompt'],
      [COMPLETIONS, 'ARG', { option: 'grammar' }, 'x', 'grammar'],
      [RERANK, 'PROMPT_TOO_LONG', undefined, 'x', 'documents'],
      [CHAT, 'PROMPT_TOO_LONG', undefined, 'x', 'messages'],
      [CHAT, 'GRAMMAR_TOO_LARGE', { option: 'grammar' }, 'n is', 'response_format'],
      [CHAT, 'ARG', { option: 'grammar' }, 'n is', 'response_format'],
      [CHAT, 'ARG', { option: 'grammars' }, 'n is', 'n'],
      ['/v1/embeddings', 'PROMPT_TOO_LONG', undefined, 'x', 'input'],
    ];
    const bodies = /** @type {any} */ ({
      [COMPLETIONS]: { prompt: 'a' },
      [CHAT]: { messages: [{ role: 'user', content: '' }] },
      [RERANK]: { query: 'a', documents: ['a'] },
      '/v1/embeddings': { input: 'a' },
    });
    for (const [path, code, cause, message, param] of cases) {
      const fail = () => {
        throw Object.assign(new Error(message, { cause }), { name: 'WickError', code });
      };
      const more = {
        rerank: fail,
        embeddings: { create: fail },
        chat: { completions: { create: fail } },
      };
      const { engine } = engineOf([], { ...more, generateMany: fail });
      const response = await createHandler(engine)(post(path, bodies[path]));
      const { error } = any(await response.json());
      assert.deepEqual([response.status, error.param, error.message], [400, param, message]);
    }
  });
});
