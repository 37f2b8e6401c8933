// The npm package under Node: options that have the wrong type or an unknown name or exceed a limit are rejected with a
// message, and the engine continues.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { root } from '../support/locate.mjs';
import {
  assertSpeaks,
  createEngine,
  dist,
  hasCode,
  modelPath,
  openEngine,
  waitUntil,
} from '../support/package.mjs';

const question = /** @type {const} */ ([{ role: 'user', content: 'What is Wick?' }]);

describe('options of the wrong type', () => {
  test('an invalid folder, callback or signal results in a typed error', async () => {
    await assert.rejects(createEngine({ file: root }), hasCode('IO'));
    const onProgress = /** @type {any} */ (5);
    await assert.rejects(createEngine({ file: 'a', onProgress }), hasCode('ARG'));
    const wrong = [{ worker: 5 }, { chatTemplate: () => 'x' }, { chatTemplate: 5 }];
    for (const one of /** @type {any[]} */ (wrong)) {
      await assert.rejects(createEngine({ file: modelPath, ...one }), hasCode('ARG'));
    }
    const signal = /** @type {any} */ ('x');
    await assert.rejects(createEngine({ file: 'a', signal }), hasCode('ARG'));
  });

  test('strings and numbers are not accepted as booleans', async (t) => {
    const wrong = ['false', 'no', 1, 0, NaN, {}, []];
    const names = ['metrics', 'directoryOnly', 'prefixCache'];
    for (const [name, value] of names.flatMap((one) => wrong.map((value) => [one, value]))) {
      const options = /** @type {any} */ ({ file: modelPath, [String(name)]: value });
      await assert.rejects(createEngine(options), (/** @type {any} */ error) => {
        assert.match(error.message, new RegExp(`^${name} must be true or false, not `));
        return hasCode('ARG')(error);
      });
    }
    for (const swap of /** @type {any[]} */ ([1, 0, NaN, { always: 'no' }, { folder: 5 }, []])) {
      await assert.rejects(createEngine({ file: modelPath, swap }), hasCode('ARG'));
    }
    const given = /** @type {any} */ ({ file: modelPath, metrics: null, prefixCache: null });
    const engine = await openEngine(t, given);
    for (const name of ['ignoreEnd', 'printSpecial']) {
      for (const value of wrong) {
        const options = /** @type {any} */ ({ maxTokens: 1, [name]: value });
        assert.throws(() => engine.generate('a', options), hasCode('ARG'), `${name} ${value}`);
      }
    }
  });

  test('an unknown pre-tokenizer is rejected', async (t) => {
    const unknown = createEngine({ file: modelPath, directoryOnly: true, preTokenizer: 'nope' });
    await assert.rejects(unknown, (/** @type {any} */ error) => {
      assert.match(error.message, /'nope' is not supported/);
      return hasCode('ARG')(error);
    });
    const number = /** @type {any} */ (5);
    await assert.rejects(createEngine({ file: modelPath, preTokenizer: number }), hasCode('ARG'));
    const options = { file: modelPath, directoryOnly: true };
    const engine = await openEngine(t, { ...options, preTokenizer: 'whitespace' });
    // the model's own tokenizer merges characters into words, and its vocabulary has no token for a space
    const own = await openEngine(t, options);
    assert.notDeepEqual(await engine.tokenize('a fox'), await own.tokenize('a fox'));
  });

  test('a source of the wrong type', async () => {
    const wrong = [{ stream: {} }, { stream: 5 }, { blob: 'a' }, { url: 'http://a', fetch: 5 }];
    for (const options of [...wrong, { url: 'http://a', headers: 5 }]) {
      await assert.rejects(createEngine(/** @type {any} */ (options)), hasCode('ARG'));
    }
  });

  test('a request with invalid options is rejected immediately, and the engine continues', async (t) => {
    const engine = await openEngine(t);
    const wrong = [null, 5, { signal: {} }, { signal: 'x' }, { onToken: 5 }, { onPrefill: 'x' }];
    for (const options of [...wrong, { logitBias: 5 }]) {
      const given = /** @type {any} */ (options);
      assert.throws(() => engine.generate('Hello', given), hasCode('ARG'));
    }
    const { completions } = engine.chat;
    const messages = [{ role: 'user', content: 'Hello' }];
    for (const body of [null, 5, { messages, signal: {} }, { messages, onPrefill: 5 }]) {
      await assert.rejects(completions.create(/** @type {any} */ (body)), hasCode('ARG'));
    }
    const signal = /** @type {any} */ ({});
    await assert.rejects(engine.tokenize('Hello', { signal }), hasCode('ARG'));
    for (const tokens of [null, 5, 'x', ['a'], [1.5]]) {
      await assert.rejects(engine.detokenize(/** @type {any} */ (tokens)), hasCode('ARG'));
    }
    await assertSpeaks(engine);
  });

  test('download options, draft, eager and swap of the wrong type, even if nothing is fetched', async () => {
    const symbol = Symbol('x');
    const wrong = [{ fetch: 5 }, { eager: 1 }, { eager: 'no' }, { retries: symbol }];
    const drafts = [NaN, 0, false, '', {}].map((draft) => ({ draft }));
    for (const one of /** @type {any[]} */ ([...wrong, ...drafts, { swap: { allways: true } }])) {
      const name = Object.keys(one)[0];
      await assert.rejects(createEngine({ file: modelPath, ...one }), hasCode('ARG'), name);
    }
  });

  test('errors about fields of a chat completion name the field', async (t) => {
    const engine = await openEngine(t);
    const symbol = Symbol('x');
    const part = { type: symbol };
    const toolOf = (/** @type {object} */ more) => ({
      type: 'function',
      function: { name: 'f', ...more },
    });
    for (const [fields, code, message] of /** @type {[any, string, RegExp][]} */ ([
      [{ response_format: 'json' }, 'ARG', /^response_format must be an object, /],
      [{ response_format: [] }, 'ARG', /^response_format must be an object, /],
      [{ logprobs: 'yes' }, 'ARG', /^logprobs must be true or false, /],
      [{ logprobs: true, top_logprobs: -1 }, 'ARG', /^top_logprobs must be a whole number /],
      [{ top_logprobs: '2' }, 'ARG', /^top_logprobs must be a whole number /],
      [{ stream_options: 'x' }, 'ARG', /^stream_options must be an object, /],
      [{ stream_options: { include_usage: 'yes' } }, 'ARG', /^stream_options\.include_usage must /],
      [{ chat_template_kwargs: 'x' }, 'ARG', /^chat_template_kwargs must be an object, /],
      [{ reasoning_effort: 'much' }, 'ARG', /^reasoning_effort must be one of none, minimal, /],
      [
        { tools: [toolOf({ parameters: 5 })] },
        'ARG',
        /^tools\[0\]\.function\.parameters must be an /,
      ],
      [
        { tools: [toolOf({ description: 5 })] },
        'ARG',
        /^tools\[0\]\.function\.description must be a /,
      ],
      [{ session: 0 }, 'ARG', /^session must be a session /],
      [{ temperature: symbol }, 'ARG', /^temperature must be a number of at least 0, not Symbol/],
      [{ logit_bias: [1] }, 'ARG', /^logitBias must be an object /],
      [{ logit_bias: { '': 1 } }, 'ARG', /^a token of logitBias must .* not the string ""$/],
      [{ logit_bias: new Map([[symbol, 1]]) }, 'ARG', /^a token of logitBias must /],
      [
        { messages: [{ role: 'user', content: [part] }] },
        'UNSUPPORTED',
        /unknown part type Symbol/,
      ],
    ])) {
      const body = { messages: question, max_tokens: 1, ...fields };
      await assert.rejects(engine.chat.completions.create(body), (/** @type {any} */ error) => {
        assert.match(error.message, message);
        return hasCode(code)(error);
      });
    }
    const variables = /** @type {any} */ (5);
    await assert.rejects(engine.countTokens([...question], { variables }), hasCode('ARG'));
    const none = /** @type {any} */ (null);
    const stream = engine.chat.completions.stream({ messages: [...question], max_tokens: 1 }, none);
    assert.equal(typeof (await stream.finalContent()), 'string');
    await assertSpeaks(engine);
  });
});

describe('values over a limit', () => {
  test('at most as many threads are started as there are processors', async (t) => {
    const found = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
    t.after(() => {
      if (found) Object.defineProperty(globalThis, 'navigator', found);
      else Reflect.deleteProperty(globalThis, 'navigator');
    });
    /** @param {number} hardwareConcurrency */
    const pretend = (hardwareConcurrency) =>
      Object.defineProperty(globalThis, 'navigator', {
        value: { hardwareConcurrency },
        configurable: true,
      });
    const warn = t.mock.method(console, 'warn', () => {});
    for (const [processors, asked, most] of [
      [2, 64, 8],
      [5, 64, 10],
      [5, 9, 9],
    ]) {
      pretend(processors);
      let workers = 0;
      const worker = () => {
        workers++;
        return new Worker(join(dist, 'worker.js'));
      };
      const engine = await openEngine(t, { file: modelPath, threads: asked, worker });
      await waitUntil(async () => (await engine.info()).threads === most, 'the helpers');
      assert.equal(workers, most);
      await engine.close();
    }
    const reported = warn.mock.calls.map((call) => call.arguments[0]);
    assert.equal(reported.length, 2);
    assert.match(reported[0], /64 threads are too many for this machine's processors; using 8/);
  });

  test('errors from the engine contain the option and the numbers', async () => {
    await assert.rejects(
      createEngine({ file: modelPath, contextSize: 1e6 }),
      (/** @type {any} */ { cause }) => {
        assert.equal(cause.option, 'contextSize');
        assert.deepEqual(cause.numbers, [1e6, 4096, 0]);
        return true;
      },
    );
  });

  test('errors from the engine name the option', async (t) => {
    const engine = await openEngine(t, { file: modelPath, contextSize: 256, kvTokens: 48 });
    const load = (/** @type {object} */ options) => () =>
      openEngine(t, { file: modelPath, ...options });
    const ask = (/** @type {object} */ options, prompt = 'Once') => {
      return () => engine.generate(prompt, { maxTokens: 2, ...options }).text();
    };
    const messages = [{ role: 'user', content: 'Hello' }];
    /** @type {[() => Promise<unknown>, RegExp][]} */
    const refused = [
      [load({ contextSize: 1e6 }), /trained on 4096 \(option contextSize\)$/],
      [load({ memoryLimit: 3e6 }), /budget is 3000000 \(options memoryLimit, contextSize\)$/],
      [load({ memoryLimit: 1e4 }), /budget 10000\) \(option memoryLimit\)$/],
      [ask({ maxTokens: 200, ignoreEnd: true }), /3 are available \(option kvTokens\)$/],
      [
        ask({}, 'Once '.repeat(300)),
        /exceeds the available context size of 256 \(option contextSize\)$/,
      ],
      [ask({ drySequenceBreakers: ['x'.repeat(41)] }), / \(option drySequenceBreakers\)$/],
      [ask({ logitBias: { 999999: 1 } }), / \(option logitBias\)$/],
      [ask({ stop: Array(65).fill('x') }), /limit is 64 \(option stop\)$/],
      [
        () => engine.chat.completions.create({ messages, logit_bias: { 999999: 1 } }),
        / \(option logitBias\)$/,
      ],
    ];
    for (const [call, message] of refused) {
      await assert.rejects(call, (/** @type {any} */ error) => {
        assert.equal(error.name, 'WickError');
        assert.match(error.message, message);
        const [, option] = /\(options? (.+)\)$/.exec(error.message) ?? [];
        assert.equal(error.cause.option, option);
        return true;
      });
    }
    // the last accepted values
    for (const options of [
      { topP: 0 },
      { typicalP: 0 },
      { stop: [''] },
      { stop: Array(64).fill('x') },
    ]) {
      assert.equal(typeof (await ask(options)()), 'string');
    }
  });
});

describe('unknown option names', () => {
  /** @param {string} message */
  const says = (message) => (/** @type {any} */ error) => {
    assert.equal(error.message, message);
    return hasCode('ARG')(error);
  };

  test('are rejected with the nearest known name, by createEngine and every call', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    const messages = [...question];
    /** @type {[(options: any) => unknown, string, string | undefined][]} */
    const calls = [
      [(options) => createEngine({ file: modelPath, ...options }), 'contextsize', 'contextSize'],
      [(options) => createEngine({ file: modelPath, draft: options }), 'ulr', undefined],
      [async (options) => engine.generate('x', options), 'maxtokens', 'maxTokens'],
      [async (options) => engine.generate('x', options), 'max_tokens', 'maxTokens'],
      [async (options) => engine.generate('x', options), 'temprature', 'temperature'],
      [async (options) => engine.generate('x', options), 'n', undefined],
      [async (options) => engine.generateMany('x', { n: 2, ...options }), 'topk', 'topK'],
      [async (options) => session.prompt('x', options), 'Seed', 'seed'],
      [(options) => session.append('x', options), 'onPrefil', 'onPrefill'],
      [(options) => engine.chat.completions.create({ messages, ...options }), 'topP', 'top_p'],
      [(options) => engine.chat.completions.create({ messages }, options), 'sginal', 'signal'],
      [(options) => engine.beamSearch('x', options), 'beamWidth', undefined],
      [(options) => engine.beamSearch('x', options), 'lengthPenality', 'lengthPenalty'],
      [(options) => engine.tokenize('x', options), 'addSpecials', 'addSpecial'],
      [(options) => engine.countTokens('x', options), 'parsespecial', 'parseSpecial'],
      [(options) => engine.detokenize([1], options), 'specials', 'special'],
      [(options) => engine.applyTemplate(messages, options), 'variable', 'variables'],
      [(options) => engine.createSession(options), 'foo', undefined],
      [(options) => engine.stats(options), 'fromat', 'format'],
      [(options) => engine.metrics(options), 'resett', 'reset'],
      [(options) => engine.kvStats(options), 'maps', 'map'],
      [(options) => engine.findPages(messages, options), 'tool', 'tools'],
    ];
    for (const [call, name, nearest] of calls) {
      const hint = nearest ? `; did you mean ${nearest}?` : '';
      await assert.rejects(
        async () => call({ [name]: 1 }),
        says(`${name} is not an option${hint}`),
      );
    }
    await assertSpeaks(engine);
  });

  test('an undefined option is ignored; invalid options are rejected', async (t) => {
    const engine = await openEngine(t);
    const left = /** @type {any} */ ({ temprature: undefined });
    assert.deepEqual(await engine.tokenize('a', left), await engine.tokenize('a'));
    for (const options of /** @type {any[]} */ ([null, 5, 'special'])) {
      await assert.rejects(engine.detokenize([1], options), hasCode('ARG'));
      await assert.rejects(engine.beamSearch('a', options), hasCode('ARG'));
    }
  });

  test('a request body for OpenAI’s service is accepted unchanged', async (t) => {
    const { chat } = await openEngine(t);
    /** @type {any} */
    const answer = await chat.completions.create(
      /** @type {any} */ ({
        ...{ messages: [...question], model: 'gpt-5', max_completion_tokens: 2, temperature: 0 },
        ...{ n: 1, stream: false, tools: null, tool_choice: undefined, response_format: null },
        ...{ user: 'u', store: true, metadata: { a: 'b' }, service_tier: 'auto' },
        ...{ parallel_tool_calls: true, reasoning_effort: 'low', verbosity: 'low' },
        ...{ safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
        ...{ prediction: null, modalities: null, audio: null, web_search_options: undefined },
      }),
      /** @type {any} */ ({ headers: {}, maxRetries: 2 }),
    );
    assert.equal(answer.usage.completion_tokens, 2);
  });
});
