// wick-llm/prompt-api: each method of LanguageModel as specified by the explainer (webmachinelearning/prompt-api) and
// @types/dom-chromium-ai, with the demo model under Node.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { MessageCounter } from '../../js/prompt_api/message_counter.js';
import { Operations } from '../../js/prompt_api/operations.js';
import { dist, isAbort, modelPath, openEngine, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/prompt-api.js')} */
const prompts = await import(pathToFileURL(join(dist, 'prompt-api.js')).href);
const { defineLanguageModel, installLanguageModel, LanguageModelToolCall } = prompts;
const { definePolyfillBackend } = prompts;
const { LanguageModelToolError, LanguageModelToolSuccess } = prompts;

/** @typedef {import('../../js/prompt-api.js').CreateOptions} CreateOptions */
/** @typedef {import('../../js/index.js').EngineSettings} EngineOptions */

const system = 'You are Wick, a small and friendly assistant.';
/** @type {CreateOptions} */
const exact = { samplingMode: 'most-predictable' };
/** Keeps answers short, because the demo model rarely ends them. */
const short = { responseConstraint: /[a-z ]{1,12}/ };

/** @param {string} name @returns {{name: string}} the name of a DOMException, TypeError or RangeError */
const named = (name) => ({ name });

/**
 * @param {import('node:test').TestContext} t
 * @param {CreateOptions} [options]
 * @param {Partial<EngineOptions>} [engineOptions]
 */
async function open(t, options = {}, engineOptions = {}) {
  const engine = await openEngine(t, { file: modelPath, ...engineOptions });
  const LanguageModel = defineLanguageModel(engine);
  const session = await LanguageModel.create({ ...exact, ...options });
  return { engine, LanguageModel, session };
}

/** Returns the response of chat.completions. @param {import('../../js/index.js').Engine} engine @param {any[]} messages */
async function answerOf(engine, messages) {
  const body = { messages, temperature: 0, top_k: 40, salt: `${Math.random()}` };
  return (await engine.chat.completions.create(body)).choices[0].message.content;
}

/** @param {ReadableStream<any>} stream */
async function collect(stream) {
  const pieces = [];
  for await (const piece of /** @type {any} */ (stream)) pieces.push(piece);
  return pieces;
}

describe('availability', () => {
  test('availability is right before, during and after loading', async (t) => {
    /** @type {(nothing?: undefined) => void} */
    let go = () => {};
    const gate = new Promise((settle) => {
      go = settle;
    });
    const LanguageModel = defineLanguageModel(async () => {
      await gate;
      return openEngine(t);
    });
    assert.equal(await LanguageModel.availability(), 'downloadable');
    const made = LanguageModel.create();
    await waitUntil(
      async () => (await LanguageModel.availability()) === 'downloading',
      'the model to start loading',
    );
    go();
    (await made).destroy();
    assert.equal(await LanguageModel.availability(), 'available');
    for (const type of /** @type {const} */ (['image', 'audio'])) {
      assert.equal(await LanguageModel.availability({ expectedInputs: [{ type }] }), 'unavailable');
      const refused = LanguageModel.create({ expectedOutputs: [{ type }] });
      await assert.rejects(refused, named('NotSupportedError'));
    }
    const text = [{ type: /** @type {const} */ ('text'), languages: ['en', 'ja'] }];
    assert.equal(await LanguageModel.availability({ expectedInputs: text }), 'available');
  });

  test('a stored model needs no download', async (t) => {
    const caches = mkdtempSync(join(tmpdir(), 'wick-prompt-api-'));
    const { XDG_CACHE_HOME } = process.env;
    process.env.XDG_CACHE_HOME = caches;
    t.after(() => {
      if (XDG_CACHE_HOME === undefined) delete process.env.XDG_CACHE_HOME;
      else process.env.XDG_CACHE_HOME = XDG_CACHE_HOME;
      rmSync(caches, { recursive: true });
    });
    const { openModels } = await import(pathToFileURL(join(dist, 'models.js')).href);
    const url = 'https://example.com/wick.gguf';
    const models = await openModels();
    await models.import(modelPath, { url });
    await models.close();
    const settings = { url, threads: 1 };
    /** @type {[any, string][]} */
    const sources = [
      [{ ...settings, cache: true }, 'available'],
      [{ ...settings, cache: 'only', url: [url] }, 'available'],
      [{ threads: 1, model: url }, 'available'],
      [{ threads: 1, file: modelPath }, 'available'],
      [{ ...settings, cache: false }, 'downloadable'],
      [settings, 'downloadable'], // in Node, only cache: true stores models
      [{ ...settings, cache: true, url: `${url}?other` }, 'downloadable'],
      [{ ...settings, cache: true, url: [url, `${url}?other`] }, 'downloadable'],
      [async () => openEngine(t), 'downloadable'],
    ];
    for (const [source, expected] of sources) {
      const availability = await defineLanguageModel(source).availability();
      assert.equal(availability, expected, JSON.stringify(source));
    }
    const LanguageModel = defineLanguageModel({ ...settings, cache: 'only' });
    const session = await LanguageModel.create();
    assert.ok(await session.prompt('Hello', short));
    assert.equal(await LanguageModel.availability(), 'available');
  });

  test('invalid options are rejected', async (t) => {
    const LanguageModel = defineLanguageModel(await openEngine(t));
    /** @type {[any, string][]} */
    const wrong = [
      [{ expectedInputs: [{ type: 'smell' }] }, 'TypeError'],
      [{ expectedInputs: [{ type: 'text', languages: ['not a language'] }] }, 'RangeError'],
      [{ samplingMode: 'wild' }, 'TypeError'],
      [{ samplingMode: 'constructor' }, 'TypeError'],
      [{ expectedInputs: [{ type: 'text', languages: ['en-abc-invalid'] }] }, 'RangeError'],
      [{ thinking: { effort: 'much' } }, 'TypeError'],
    ];
    for (const [options, name] of wrong) {
      await assert.rejects(
        LanguageModel.availability(options),
        named(name),
        JSON.stringify(options),
      );
      await assert.rejects(LanguageModel.create(options), named(name));
    }
    // a valid tag for an undetermined language
    const languages = ['unk'];
    for (const name of ['expectedInputs', 'expectedOutputs']) {
      const options = { [name]: [{ type: /** @type {const} */ ('text'), languages }] };
      assert.equal(await LanguageModel.availability(options), 'unavailable');
      await assert.rejects(LanguageModel.create(options), named('NotSupportedError'));
    }
    assert.throws(() => defineLanguageModel(/** @type {any} */ (5)), named('TypeError'));
    assert.throws(() => new /** @type {any} */ (LanguageModel)(), /Illegal constructor/);
  });
});

describe('invalid tools are rejected', () => {
  const inputSchema = { type: 'object' };
  const good = { name: 'x', description: 'y', inputSchema };
  const circular = /** @type {any} */ ({ type: 'object' });
  circular.self = circular;
  const thrown = () => {
    throw new Error('mine');
  };
  /** @type {[string, any, {name: string} | RegExp][]} */
  const wrong = [
    ['without execute', good, named('TypeError')],
    ['without a name', { ...good, name: '' }, named('TypeError')],
    ['without a description', { ...good, description: '' }, named('TypeError')],
    ['without a schema', { ...good, inputSchema: undefined }, named('TypeError')],
    ['null', { ...good, inputSchema: null }, named('TypeError')],
    ['with a string as schema', { ...good, inputSchema: 'object' }, named('TypeError')],
    ['with an empty schema', { ...good, inputSchema: {} }, named('TypeError')],
    ['with a different type', { ...good, inputSchema: { type: 'string' } }, named('TypeError')],
    [
      'properties',
      { ...good, inputSchema: { ...inputSchema, properties: 'a' } },
      named('TypeError'),
    ],
    ['required', { ...good, inputSchema: { ...inputSchema, required: 'a' } }, named('TypeError')],
    ['with a circular schema', { ...good, inputSchema: circular }, named('TypeError')],
    [
      'with a toJSON that throws',
      { ...good, inputSchema: { ...inputSchema, toJSON: thrown } },
      /mine/,
    ],
  ];

  test('invalid tools are rejected, alone and together with valid ones', async (t) => {
    const LanguageModel = defineLanguageModel(await openEngine(t));
    const expectedOutputs = [{ type: /** @type {const} */ ('tool-call') }];
    for (const [what, tool, expected] of wrong) {
      const isOpen = what !== 'without execute';
      const options = isOpen ? { expectedOutputs } : {};
      const tools = isOpen ? [{ ...good, name: 'other' }, tool] : [tool];
      await assert.rejects(LanguageModel.create({ ...options, tools }), expected, what);
    }
    const twice = LanguageModel.create({ expectedOutputs, tools: [good, { ...good }] });
    await assert.rejects(twice, /Two tools have the name x/);
    await assert.rejects(twice, named('TypeError'));
    assert.ok(await LanguageModel.create({ expectedOutputs, tools: [good] }));
    assert.ok(await LanguageModel.create({ tools: [] }));
  });
});

describe('create', () => {
  test('monitor reports non-decreasing progress from 0 to 1 to all callers', async (t) => {
    const bytes = readFileSync(modelPath);
    const server = createServer((_, response) => {
      response.setHeader('Content-Length', bytes.length);
      for (let at = 0; at < bytes.length; at += 100_000) {
        setTimeout(() => response.write(bytes.subarray(at, at + 100_000)), at / 2000);
      }
      setTimeout(() => response.end(), bytes.length / 2000 + 50);
    });
    server.listen(0);
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = /** @type {any} */ (server.address());
    const LanguageModel = defineLanguageModel({
      url: `http://localhost:${port}/m.gguf`,
      threads: 1,
    });
    /** @type {number[][]} */
    const heard = [[], []];
    const sessions = await Promise.all(
      heard.map((list, index) =>
        LanguageModel.create({
          monitor(monitor) {
            const take = (/** @type {any} */ event) => {
              assert.deepEqual([event.total, event.type], [1, 'downloadprogress']);
              assert.equal(event.lengthComputable, true);
              list.push(event.loaded);
            };
            if (index === 0) monitor.addEventListener('downloadprogress', take);
            else monitor.ondownloadprogress = take;
          },
        }),
      ),
    );
    for (const list of heard) {
      assert.deepEqual([list[0], list.at(-1)], [0, 1]);
      assert.ok(list.length > 2);
      assert.ok(list.every((one, at) => at === 0 || one > list[at - 1]));
      assert.ok(list.every((one) => Number.isInteger(one * 65536)));
    }
    /** @type {number[]} */
    const again = [];
    await LanguageModel.create({
      monitor: (m) =>
        m.addEventListener('downloadprogress', (/** @type {any} */ e) => again.push(e.loaded)),
    });
    assert.deepEqual(again, [0, 1]);
    for (const session of sessions) assert.ok(await session.prompt('Hello', short));
  });

  test('create rejects if a download fails, a monitor throws, or it is aborted', async (t) => {
    const failing = defineLanguageModel({ url: 'http://localhost:9/m.gguf', retries: 0 });
    await assert.rejects(failing.create(), named('NetworkError'));
    assert.equal(await failing.availability(), 'downloadable');
    const { LanguageModel, engine } = await open(t);
    const monitor = () => {
      throw new Error('mine');
    };
    await assert.rejects(LanguageModel.create({ monitor }), /mine/);
    await assert.rejects(LanguageModel.create({ signal: AbortSignal.abort() }), isAbort);
    const never = defineLanguageModel(() => new Promise(() => {}));
    const stop = new AbortController();
    const made = never.create({ signal: stop.signal });
    stop.abort(new Error('why'));
    await assert.rejects(made, /why/);
    // a listener may abort at the first event, even if loading would never end
    const first = new AbortController();
    const abortFirst = (/** @type {any} */ m) =>
      m.addEventListener('downloadprogress', () => first.abort(new Error('at once')));
    const begun = never.create({ monitor: abortFirst, signal: first.signal });
    await assert.rejects(begun, /at once/);
    // a listener may still abort once everything has loaded
    const last = new AbortController();
    const abortAt = (/** @type {any} */ m) =>
      m.addEventListener('downloadprogress', (/** @type {any} */ { loaded }) => {
        if (loaded === 1) queueMicrotask(() => last.abort(new Error('late')));
      });
    await assert.rejects(LanguageModel.create({ monitor: abortAt, signal: last.signal }), /late/);
    // after create the signal destroys the session
    const later = new AbortController();
    const session = await LanguageModel.create({ signal: later.signal });
    later.abort();
    await assert.rejects(session.prompt('Hello'), isAbort);
    await waitUntil(async () => (await engine.kvStats()).sessions === 1, 'its pages to be freed');
  });

  test('sampling: modes are supported; topK and temperature have no effect in pages', async (t) => {
    const { LanguageModel, session } = await open(t);
    assert.equal(session.samplingMode, 'most-predictable');
    const plain = await LanguageModel.create({ topK: -2, temperature: 7 });
    assert.deepEqual(
      [plain.samplingMode, plain.topK, plain.temperature, 'params' in LanguageModel],
      ['balanced', undefined, undefined, false],
    );
    assert.equal(await LanguageModel.availability({ topK: 0, temperature: -1 }), 'available');
    const wild = await LanguageModel.create({ samplingMode: 'most-creative' });
    const texts = new Set();
    for (let i = 0; i < 4; i++) {
      texts.add(
        await (await wild.clone()).prompt('Tell me a story.', { responseConstraint: /[a-z ]{30}/ }),
      );
    }
    assert.ok(texts.size > 1);
  });

  test('sampling: extensions can set topK and temperature', async (t) => {
    const engine = await openEngine(t);
    const LanguageModel = defineLanguageModel(engine, { extensions: true });
    const { maxTopK, maxTemperature, defaultTopK } = await LanguageModel.params();
    assert.deepEqual([maxTopK, maxTemperature, defaultTopK], [128, 2, 40]);
    const own = await LanguageModel.create({ topK: 1e9, temperature: Number.POSITIVE_INFINITY });
    assert.deepEqual(
      [own.topK, own.temperature, own.samplingMode],
      [maxTopK, maxTemperature, null],
    );
    const copy = await own.clone();
    assert.deepEqual([copy.topK, copy.samplingMode], [maxTopK, null]);
    const less = await LanguageModel.create({ topK: 3.9 });
    assert.deepEqual(
      [less.topK, (await LanguageModel.create({ temperature: 1 })).topK],
      [3, defaultTopK],
    );
    /** @type {[any, string][]} */
    const wrong = [
      [{ samplingMode: 'creative', topK: 3 }, 'TypeError'],
      [{ temperature: -1 }, 'RangeError'],
      [{ topK: 0 }, 'RangeError'],
    ];
    for (const [options, name] of wrong) {
      await assert.rejects(LanguageModel.availability(options), named(name));
      await assert.rejects(LanguageModel.create(options), named(name));
    }
  });
});

describe('prompt', () => {
  test('prompt gives the answers of chat completions and continues the session', async (t) => {
    const { engine, session } = await open(t, {
      initialPrompts: [{ role: 'system', content: system }],
    });
    const first = await session.prompt('My name is Ada.');
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: 'My name is Ada.' },
    ];
    assert.equal(first, await answerOf(engine, messages));
    messages.push(
      { role: 'assistant', content: first },
      { role: 'user', content: 'What is my name?' },
    );
    const { cached } = (await engine.stats()).tokens;
    const second = await session.prompt([
      { role: 'user', content: [{ type: 'text', value: 'What is my name?' }] },
    ]);
    assert.equal(second, await answerOf(engine, messages));
    assert.ok(
      (await engine.stats()).tokens.cached > cached + 30,
      'the first turn was not recomputed',
    );
  });

  test('a system prompt is allowed only as the first message', async (t) => {
    const { LanguageModel, session } = await open(t);
    const said = /** @type {any[]} */ ([{ role: 'system', content: system }]);
    const hello = { role: 'user', content: 'Hello' };
    await session.append(said);
    await assert.rejects(session.append(said), named('TypeError'));
    await assert.rejects(session.prompt(said), named('TypeError'));
    const other = await LanguageModel.create(exact);
    await assert.rejects(other.prompt([hello, ...said]), named('TypeError'));
    assert.equal(await other.prompt([...said, hello]), await session.prompt('Hello'));
    await assert.rejects(
      LanguageModel.create({ initialPrompts: [hello, ...said] }),
      named('TypeError'),
    );
  });

  test('invalid prompts are rejected', async (t) => {
    const { session } = await open(t);
    const of = (/** @type {any} */ content) => [{ role: 'user', content }];
    /** @type {[any, string][]} */
    const wrong = [
      [[{ role: 'nobody', content: 'x' }], 'TypeError'],
      [[5], 'TypeError'],
      [of(5), 'TypeError'],
      [of([{ type: 'text', value: 5 }]), 'TypeError'],
      [of([{ type: 'smell', value: 'x' }]), 'TypeError'],
      [of([{ type: 'image', value: new Blob([]) }]), 'NotSupportedError'],
      [of([{ type: 'tool-call', value: {} }]), 'NotSupportedError'],
      [of([{ type: 'tool-response', value: {} }]), 'NotSupportedError'],
    ];
    for (const [input, name] of wrong) {
      await assert.rejects(session.prompt(input), named(name));
      await assert.rejects(session.append(input), named(name));
      await assert.rejects(session.measureContextUsage(input), named(name));
      await assert.rejects(collect(session.promptStreaming(input)), named(name));
    }
    assert.equal(session.contextUsage, 0);
  });

  test('empty prompts and prompts that are not strings are accepted', async (t) => {
    const { session } = await open(t);
    const of = (/** @type {any} */ content) => [{ role: 'user', content }];
    const inputs = /** @type {any[]} */ ([null, undefined, {}, '', [], of([]), of('')]);
    for (const input of inputs) {
      const copy = await session.clone();
      assert.equal(typeof (await copy.prompt(input, short)), 'string');
      await copy.append(input);
      assert.ok((await collect((await session.clone()).promptStreaming(input, short))).length > 0);
    }
  });

  test('prefix: the answer continues the prefix, and the history contains both', async (t) => {
    const { engine, session } = await open(t);
    const asked = { role: /** @type {const} */ ('user'), content: 'What is Wick?' };
    const whole = await answerOf(engine, [asked]);
    const begin = whole.split(' ').slice(0, 3).join(' ');
    const prefix = { role: /** @type {const} */ ('assistant'), content: begin, prefix: true };
    assert.equal(begin + (await session.prompt([asked, prefix])), whole);
    const usage = await engine.countTokens([asked, { role: 'assistant', content: whole }]);
    assert.equal(session.contextUsage, usage);
    await assert.rejects(session.prompt([prefix, asked]), named('SyntaxError'));
    await assert.rejects(session.prompt([{ ...asked, prefix: true }]), named('SyntaxError'));
    await assert.rejects(session.append([asked, prefix]), named('SyntaxError'));
  });

  test('prefix and responseConstraint: prefix and answer together match', async (t) => {
    const { session } = await open(t);
    const responseConstraint = {
      type: 'object',
      properties: { rating: { type: 'integer', minimum: 0, maximum: 5 } },
      required: ['rating'],
      additionalProperties: false,
    };
    const from = (/** @type {string} */ content) => [
      { role: /** @type {const} */ ('user'), content: 'How good is it?' },
      { role: /** @type {const} */ ('assistant'), content, prefix: true },
    ];
    for (const begin of ['{', '{ "rating": ', '{"rating":', '{\n  "rating" : 4']) {
      const copy = await session.clone();
      const text = begin + (await copy.prompt(from(begin), { responseConstraint }));
      const { rating, ...others } = JSON.parse(text);
      assert.ok(Number.isInteger(rating) && rating >= 0 && rating <= 5, text);
      assert.deepEqual(others, {});
      // the history contains the whole answer, which a further prompt continues
      assert.equal(typeof (await copy.prompt('Why?', short)), 'string');
    }
    const pieces = await collect(
      session.promptStreaming(from('2020-'), { responseConstraint: /^[0-9]{4}-[0-9]{2}$/ }),
    );
    assert.match(`2020-${pieces.join('')}`, /^2020-[0-9]{2}$/);
    for (const [begin, constraint] of /** @type {[string, any][]} */ ([
      ['Here: ', responseConstraint],
      ['{"rating": 9', responseConstraint],
      ['20-', /^[0-9]{4}$/],
    ])) {
      const asked = (await session.clone()).prompt(from(begin), { responseConstraint: constraint });
      await assert.rejects(asked, named('SyntaxError'));
    }
  });

  test('responseConstraint: a schema or a RegExp; anything else is rejected', async (t) => {
    const { session } = await open(t);
    const schema = {
      type: 'object',
      properties: { rating: { type: 'integer', minimum: 0, maximum: 5 } },
      required: ['rating'],
    };
    const { rating } = JSON.parse(
      await session.prompt('How was it?', { responseConstraint: schema }),
    );
    assert.ok(rating >= 0 && rating <= 5);
    assert.match(await session.prompt('A number?', { responseConstraint: /[0-9]{4}/ }), /^\d{4}$/);
    for (const responseConstraint of /** @type {any[]} */ (['x', 5, []])) {
      await assert.rejects(session.prompt('x', { responseConstraint }), named('TypeError'));
    }
    const omitted = { omitResponseConstraintInput: true };
    await assert.rejects(session.prompt('x', omitted), named('TypeError'));
    const circular = /** @type {any} */ ({});
    circular.self = circular;
    for (const schema of [{ type: 'string', pattern: '(?<=b)c' }, { type: 'soup' }, circular]) {
      const odd = { responseConstraint: schema };
      await assert.rejects(session.prompt('x', odd), named('NotSupportedError'));
    }
    await assert.rejects(
      session.prompt('x', { responseConstraint: /a/i }),
      named('NotSupportedError'),
    );
    // the schema is added to the prompt, unless this is turned off
    const plain = await session.measureContextUsage('x');
    const withSchema = await session.measureContextUsage('x', { responseConstraint: schema });
    const silent = { responseConstraint: schema, ...omitted };
    assert.ok(withSchema > plain + 20);
    assert.equal(await session.measureContextUsage('x', silent), plain);
  });

  test('an answer that cannot be completed rejects with a SyntaxError', async (t) => {
    const { session } = await open(t, {}, { contextSize: 64 });
    const long = { responseConstraint: /[a-z]{500}/ };
    await assert.rejects(session.prompt('x', long), named('SyntaxError'));
    assert.equal(session.contextUsage, 0);
  });

  test('promptStreaming returns pieces as they arrive', async (t) => {
    const { session } = await open(t);
    const other = await session.clone();
    const whole = await session.prompt('Tell me a joke.');
    const pieces = await collect(other.promptStreaming('Tell me a joke.'));
    assert.ok(pieces.length > 5);
    assert.equal(pieces.join(''), whole);
    assert.equal(other.contextUsage, session.contextUsage);
    const signal = AbortSignal.abort();
    assert.throws(() => session.promptStreaming('x', { signal }), isAbort);
  });
});

/** The model's output for the next request. @type {string | undefined} */
let forced;
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  if (message.type === 'generate' && forced !== undefined) {
    const text = `root ::= ${JSON.stringify(forced)}`;
    message.settings.grammar = { kind: 1, text, isWhole: true };
    forced = undefined;
  }
  return postMessage.call(this, message, ...more);
};

describe('tools', () => {
  const turns =
    '{% if false %}<tool_call>{% endif %}{% for t in tools %}[{{ t.function.name }}]{% endfor %}' +
    '{% for m in messages %}<{{ m.role }}>{{ m.content }}' +
    '{% for c in m.tool_calls %}({{ c.function.name }}){% endfor %}{% endfor %}<assistant>';
  const call = (/** @type {string} */ city, name = 'weather') =>
    `<tool_call>{"name": "${name}", "arguments": {"city": "${city}"}}</tool_call>`;
  const described = {
    ...{ name: 'weather', description: 'Of a city' },
    inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  };

  /**
   * Opens an engine whose model generates these outputs.
   * @param {import('node:test').TestContext} t @param {string[]} texts
   */
  async function scripted(t, texts) {
    const engine = await openEngine(t, { file: modelPath, chatTemplate: turns });
    /** @type {any[]} */
    const asked = [];
    const create = (/** @type {any} */ body, /** @type {any} */ call_) => {
      asked.push(body);
      forced = texts.shift();
      return engine.chat.completions.create(body, call_);
    };
    const proxy = {
      countTokens: engine.countTokens.bind(engine),
      createSession: engine.createSession.bind(engine),
      info: () => engine.info(),
      chat: { completions: { create } },
    };
    return { LanguageModel: defineLanguageModel(/** @type {any} */ (proxy)), asked };
  }

  test('closed loop: calls run concurrently, and their results are added to the prompt', async (t) => {
    const { LanguageModel, asked } = await scripted(t, [
      call('Oslo') + call('Lima'),
      'Lima is warm.',
    ]);
    let running = 0;
    let most = 0;
    const execute = async (/** @type {any} */ { city }) => {
      most = Math.max(most, ++running);
      await new Promise((settle) => setTimeout(settle, 5));
      running--;
      if (city === 'Oslo') throw new Error('no station');
      return `20 degrees in ${city}`;
    };
    const session = await LanguageModel.create({ ...exact, tools: [{ ...described, execute }] });
    assert.equal(await session.prompt('Where is it warm?'), 'Lima is warm.');
    assert.equal(most, 2);
    assert.deepEqual(
      asked[1].messages.map((/** @type {any} */ { role, content }) => [role, content]),
      [
        ...[
          ['user', 'Where is it warm?'],
          ['assistant', ''],
        ],
        ...[
          ['tool', 'Error: no station'],
          ['tool', '20 degrees in Lima'],
        ],
      ],
    );
    assert.equal(asked[0].tools[0].function.name, 'weather');
  });

  test('a call of an unknown tool is reported to the model', async (t) => {
    const { LanguageModel, asked } = await scripted(t, [call('Oslo', 'fly'), 'No.']);
    const session = await LanguageModel.create({
      tools: [{ ...described, execute: async () => '' }],
    });
    assert.equal(await session.prompt('Fly!'), 'No.');
    assert.equal(asked[1].messages.at(-1).content, 'Error: Unknown tool fly');
  });

  test('a model that never stops calling tools is stopped', async (t) => {
    const { LanguageModel, asked } = await scripted(t, Array(40).fill(call('Oslo')));
    const session = await LanguageModel.create({
      tools: [{ ...described, execute: async () => '1' }],
    });
    const message = /called tools (\d+) times in a row/;
    const error = await session.prompt('Go!').then(assert.fail, (reason) => reason);
    assert.equal(error.name, 'OperationError');
    assert.equal(asked.length, Number(message.exec(error.message)?.[1]));
    assert.equal(session.contextUsage, 0);
  });

  test('open loop: the page receives the calls and sends the results', async (t) => {
    const texts = [`Let me look.${call('Oslo')}`, 'It is cold.', call('Lima')];
    const { LanguageModel, asked } = await scripted(t, texts);
    const session = await LanguageModel.create({
      ...{ ...exact, tools: [described] },
      expectedInputs: [{ type: 'tool-response' }],
      expectedOutputs: [{ type: 'tool-call' }],
    });
    const [text, { type, value }] = /** @type {any} */ (await session.prompt('Is it cold?'));
    assert.deepEqual(text, { type: 'text', value: 'Let me look.' });
    assert.ok(value instanceof LanguageModelToolCall && type === 'tool-call');
    assert.deepEqual([value.name, value.arguments], ['weather', { city: 'Oslo' }]);
    const { callID: callId, name } = value;
    const result = /** @type {const} */ ([{ type: 'object', value: { degrees: -3 } }]);
    const response = new LanguageModelToolSuccess({ callId, name, result: [...result] });
    const answered = [
      {
        role: /** @type {const} */ ('user'),
        content: [{ type: /** @type {const} */ ('tool-response'), value: response }],
      },
    ];
    // an array even for text only, because the page requested calls
    assert.deepEqual(await session.prompt(answered), [{ type: 'text', value: 'It is cold.' }]);
    const last = asked[1].messages.at(-1);
    assert.deepEqual(
      [last.role, last.content, last.tool_call_id],
      ['tool', '{"degrees":-3}', callId],
    );
    const pieces = await collect(session.promptStreaming('And in Lima?'));
    assert.equal(pieces.at(-1).value.arguments.city, 'Lima');
    const failed = new LanguageModelToolError({ callId, name, errorMessage: 'no network' });
    const part = { type: /** @type {const} */ ('tool-response'), value: failed };
    await assert.doesNotReject(session.measureContextUsage([{ role: 'user', content: [part] }]));
    assert.deepEqual([failed.callId, failed.callID], [callId, callId]);
  });

  test('calls and results from the page: values that JSON cannot represent reject with a DataError', async (t) => {
    const { LanguageModel } = await scripted(t, ['a', 'a', 'a']);
    const session = await LanguageModel.create({
      tools: [described],
      expectedInputs: [{ type: 'tool-response' }, { type: 'tool-call' }],
      expectedOutputs: [{ type: 'tool-call' }],
    });
    const circular = /** @type {any} */ ({});
    circular.self = circular;
    const named_ = { callID: '1', name: 'weather' };
    const message = (/** @type {string} */ role, /** @type {string} */ type, value_ = {}) =>
      /** @type {any} */ ([{ role, content: [{ type, value: value_ }] }]);
    const response = (/** @type {any} */ value, type = 'text') =>
      new LanguageModelToolSuccess({ ...named_, result: /** @type {any} */ ([{ type, value }]) });
    const said = (/** @type {any} */ given) =>
      message('assistant', 'tool-call', new LanguageModelToolCall({ ...named_, arguments: given }));
    const bad = [circular, () => {}, 5n, new Map()];
    for (const value of bad) {
      const answer = message('user', 'tool-response', response(value));
      await assert.rejects(session.prompt(answer), named('DataError'));
    }
    for (const given of [circular, [], 'text']) {
      await assert.rejects(session.prompt(said(given)), named('DataError'));
    }
    const image = message('user', 'tool-response', response(new Blob([]), 'image'));
    await assert.rejects(session.prompt(image), named('NotSupportedError'));
    const fine = [response({ a: 1 }), response([1, 'a']), response('text', 'object')];
    for (const one of fine) await session.append(message('user', 'tool-response', one));
    // with the wrong role
    await assert.rejects(
      session.prompt(message('assistant', 'tool-response', fine[0])),
      named('TypeError'),
    );
    await assert.rejects(session.prompt(message('user', 'tool-call', fine[0])), named('TypeError'));
  });
});

test('thinking: the template receives the effort, from the session or from one prompt', async (t) => {
  // the template reports its variables in an error message
  const chatTemplate =
    "{{ raise_exception('thinking: ' ~ enable_thinking ~ ', ' ~ (reasoning_effort | default('of none'))) }}";
  const { LanguageModel, session } = await open(t, {}, { chatTemplate });
  const of = (/** @type {string} */ words) => ({ message: new RegExp(`thinking: ${words}`) });
  await assert.rejects(session.prompt('Hi'), of('False, of none'));
  for (const effort of /** @type {const} */ (['low', 'medium', 'high'])) {
    const thinking = { effort };
    await assert.rejects(session.prompt('Hi', { thinking }), of(`True, ${effort}`));
    const eager = await LanguageModel.create({ ...exact, thinking });
    await assert.rejects(eager.prompt('Hi'), of(`True, ${effort}`));
    const none = { thinking: { effort: /** @type {const} */ ('none') } };
    await assert.rejects(eager.prompt('Hi', none), of('False, of none'));
  }
});

describe('MessageCounter', () => {
  const user = (/** @type {string} */ content) => ({
    role: /** @type {const} */ ('user'),
    content,
  });

  /** @param {(input: any) => number | string} answer a number, or the code of an error */
  function counterOf(answer, tools = /** @type {any[]} */ ([])) {
    /** @type {any[]} */
    const asked = [];
    const countTokens = async (/** @type {any} */ input, /** @type {any} */ options) => {
      asked.push([input, options]);
      const found = answer(input);
      if (typeof found === 'number') return found;
      throw Object.assign(new Error('no'), { code: found });
    };
    return { counter: new MessageCounter(/** @type {any} */ ({ countTokens }), tools), asked };
  }

  test('messages are counted unchanged, then joined by role, then as plain text, which contains no control tokens', async () => {
    const { signal } = new AbortController();
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const messages = [user('a'), user('b')];
    const one = [user('a\n\nb')];
    const plain = counterOf(() => 7, tools);
    assert.equal(await plain.counter.count(messages, signal), 7);
    assert.deepEqual(plain.asked, [[messages, { tools, signal }]]);
    assert.equal(plain.counter.isJoined, false);
    assert.equal(plain.counter.asTaken(messages), messages);
    const joined = counterOf((input) => (input.length === 1 ? 5 : 'TEMPLATE'));
    assert.equal(await joined.counter.count(messages), 5);
    assert.deepEqual(joined.asked, [
      [messages, { signal: null }],
      [one, { signal: null }],
    ]);
    assert.equal(joined.counter.isJoined, true);
    assert.deepEqual(joined.counter.asTaken(messages), one);
    const refused = counterOf((input) => (typeof input === 'string' ? 0 : 'TEMPLATE'), tools);
    assert.equal(await refused.counter.count(messages, signal), 0);
    assert.deepEqual(refused.asked, [
      [messages, { tools, signal }],
      [one, { tools, signal }],
      ['a\nb', { parseSpecial: false, signal }],
    ]);
    assert.equal(refused.counter.isJoined, false);
    await refused.counter.count(messages);
    assert.deepEqual(refused.asked.at(-1), ['a\nb', { parseSpecial: false, signal: null }]);
    const nothing = counterOf(() => 3);
    assert.deepEqual([await nothing.counter.count([]), nothing.asked], [0, []]);
    const zero = counterOf(() => 0);
    assert.deepEqual([await zero.counter.count(messages), zero.asked.length], [0, 1]);
  });

  test('messages stay joined, and other errors are passed on', async () => {
    const { counter } = counterOf((input) => (input.length === 1 ? 5 : 'TEMPLATE'));
    await counter.count([user('a'), user('b')]);
    await counter.count([user('a')]);
    assert.equal(counter.isJoined, true);
    const failing = counterOf(() => 'CLOSED');
    await assert.rejects(failing.counter.count([user('a')]), { code: 'CLOSED' });
    assert.equal(failing.asked.length, 1);
    const thrown = counterOf(() => {
      throw undefined;
    });
    await assert.rejects(thrown.counter.count([user('a')]), (error) => error === undefined);
  });

  test('consecutive messages of one role are merged, except results, calls and prefixes', () => {
    const { counter } = counterOf(() => 1);
    counter.isJoined = true;
    const call = { role: 'assistant', content: 'c', tool_calls: [{ id: '1' }] };
    const begun = { role: 'assistant', content: 'd', prefix: true };
    const tool = (/** @type {string} */ content) => ({ role: 'tool', content });
    const model = { role: 'assistant', content: 'm' };
    const list = [
      ...[user('a'), user('b'), user('c'), model, model, call, model, call, call],
      ...[tool('x'), tool('y'), user('d'), model, begun],
    ];
    const before = structuredClone(list);
    assert.deepEqual(counter.asTaken(/** @type {any} */ (list)), [
      ...[user('a\n\nb\n\nc'), { role: 'assistant', content: 'm\n\nm' }, call, model, call, call],
      ...[tool('x'), tool('y'), user('d'), model, begun],
    ]);
    assert.deepEqual(list, before, 'the input is unchanged');
  });
});

describe('session operations', () => {
  const turn = () => new Promise((settle) => setImmediate(settle));

  test('run one by one, also after one that fails or is aborted, and are counted', async () => {
    const operations = new Operations();
    /** @type {string[]} */
    const events = [];
    /** @type {Record<string, (nothing?: undefined) => void>} */
    const ends = {};
    const run = (/** @type {string} */ name, /** @type {AbortSignal} */ signal) =>
      operations.run(signal, async () => {
        events.push(`${name} begins`);
        await new Promise((settle) => {
          ends[name] = settle;
        });
        events.push(`${name} ends`);
        if (name === 'b') throw new Error('b failed');
        return name;
      });
    const stop = new AbortController();
    const none = /** @type {any} */ (undefined);
    const [a, b, c, d] = [run('a', none), run('b', none), run('c', stop.signal), run('d', none)];
    for (const one of [a, b, c, d]) one.catch(() => {});
    await turn();
    assert.deepEqual([events.splice(0), operations.count], [['a begins'], 4]);
    stop.abort(new Error('c is aborted'));
    await assert.rejects(c, /c is aborted/);
    await turn();
    assert.deepEqual([events, operations.count], [[], 3], 'later prompts wait for earlier ones');
    ends.a();
    assert.equal(await a, 'a');
    await turn();
    assert.deepEqual([events.splice(0), operations.count], [['a ends', 'b begins'], 2]);
    ends.b();
    await assert.rejects(b, /b failed/);
    await turn();
    assert.deepEqual(events.splice(0), ['b ends', 'd begins']);
    ends.d();
    assert.equal(await d, 'd');
    assert.equal(operations.count, 0);
  });

  test('the caller’s signal and destroy reach the running prompt; no listener remains', async () => {
    const operations = new Operations();
    /** @type {any} */
    let own;
    const wait = (/** @type {AbortSignal | undefined} */ signal) =>
      operations.run(signal, (given) => {
        own = given;
        return new Promise((_, fail) => given.addEventListener('abort', () => fail(given.reason)));
      });
    const stop = new AbortController();
    const events = /** @type {string[]} */ ([]);
    for (const name of /** @type {const} */ (['addEventListener', 'removeEventListener'])) {
      const usual = stop.signal[name];
      /** @type {any} */ (stop.signal)[name] = (/** @type {any[]} */ ...args) => {
        events.push(name.slice(0, 3));
        Reflect.apply(usual, stop.signal, args);
      };
    }
    const first = wait(stop.signal);
    await turn();
    stop.abort(new Error('mine'));
    await assert.rejects(first, /mine/);
    assert.deepEqual([own.aborted, events], [true, ['add', 'rem']]);
    const [running, waiting] = [wait(undefined), wait(undefined)];
    await turn();
    operations.abort(new Error('all'));
    for (const one of [running, waiting]) await assert.rejects(one, /all/);
    assert.equal(operations.count, 0);
    const whole = await operations.run(undefined, async (given) => given);
    operations.abort(new Error('later'));
    assert.equal(whole.aborted, false, 'an operation that has ended is not aborted');
    let isRun = false;
    const before = operations.run(AbortSignal.abort(new Error('before')), async () => {
      isRun = true;
    });
    await assert.rejects(before, /before/);
    assert.deepEqual([isRun, operations.count], [false, 0]);
    const engines = Object.assign(new Error('no model'), { name: 'WickError', code: 'HTTP' });
    const failing = operations.run(undefined, () => Promise.reject(engines));
    await assert.rejects(failing, { name: 'NetworkError', message: 'no model', cause: engines });
  });
});

describe('append, measure, the context', () => {
  test('append processes tokens ahead, so the prompt processes only the new part', async (t) => {
    const { engine, session } = await open(t);
    const story = 'A fox went to the sea. '.repeat(20);
    assert.equal(await session.append(story), undefined);
    const { prompt, cached } = (await engine.stats()).tokens;
    await session.prompt('Hello', short);
    const after = (await engine.stats()).tokens;
    const read = after.prompt - prompt - (after.cached - cached);
    assert.ok(read < 40, `${read} tokens were processed`);
  });

  test('messages of one role are merged if the template requires alternating roles', async (t) => {
    const chatTemplate =
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}" +
      "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('in turn') }}{% endif %}" +
      "{% if 'never' in m.content %}{{ raise_exception('never') }}{% endif %}" +
      '<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>';
    const { engine, session } = await open(t, {}, { chatTemplate });
    await session.append('One.');
    await session.append('Two.');
    const clone = await session.clone();
    const text = await session.prompt('Three.', short);
    assert.equal(await clone.prompt('Three.', short), text);
    const said = '<user>One.\n\nTwo.\n\nThree.<assistant>';
    const usage = await engine.countTokens(`${said}${text}<assistant>`);
    assert.ok(Math.abs(session.contextUsage - usage) <= 2, `${session.contextUsage} and ${usage}`);
    // a system prompt, which the template rejects, is merged into the first question
    const system_ = [{ role: /** @type {const} */ ('system'), content: 'x' }];
    const LanguageModel = defineLanguageModel(engine);
    const asked = await LanguageModel.create({ ...exact, initialPrompts: system_ });
    const plain = await LanguageModel.create(exact);
    assert.equal(await asked.prompt('Hello', short), await plain.prompt('x\n\nHello', short));
    // other exceptions in the template reject the prompt
    const refused = await LanguageModel.create();
    await assert.rejects(refused.prompt('never'), named('OperationError'));
  });

  test('measureContextUsage returns how many tokens a prompt adds', async (t) => {
    const { engine, session } = await open(t, {
      initialPrompts: [{ role: 'system', content: system }],
    });
    assert.equal(session.contextWindow, (await engine.info()).contextSize);
    assert.equal(
      session.contextUsage,
      await engine.countTokens([{ role: 'system', content: system }]),
    );
    assert.deepEqual(
      [session.inputUsage, session.inputQuota],
      [session.contextUsage, session.contextWindow],
    );
    const before = session.contextUsage;
    const measured = await session.measureContextUsage('What is Wick?');
    assert.ok(measured > 4 && measured < 30);
    assert.equal(await session.measureInputUsage('What is Wick?'), measured);
    assert.equal(session.contextUsage, before);
    await session.append('What is Wick?');
    assert.equal(session.contextUsage, before + measured);
    // a system prompt is measured as the start of a new conversation
    const alone = await session.measureContextUsage([{ role: 'system', content: system }]);
    assert.equal(alone, before);
    const aborted = session.measureContextUsage('x', { signal: AbortSignal.abort() });
    await assert.rejects(aborted, isAbort);
    const reason = new Error('mine');
    const mine = session.measureContextUsage('x', { signal: AbortSignal.abort(reason) });
    await assert.rejects(mine, (error) => error === reason);
    session.destroy();
    await assert.rejects(session.measureContextUsage('x'), isAbort);
  });

  test('overflow: the oldest turns are dropped, initialPrompts are kept, and an event is fired', async (t) => {
    const initialPrompts = [{ role: /** @type {const} */ ('system'), content: system }];
    const { session, LanguageModel } = await open(t, { initialPrompts }, { contextSize: 160 });
    /** @type {string[]} */
    const events = [];
    session.addEventListener('contextoverflow', () => events.push('contextoverflow'));
    session.oncontextoverflow = () => events.push('on');
    session.onquotaoverflow = () => events.push('onquota');
    const fox = 'A fox went to the sea. ';
    await session.prompt(fox.repeat(2), short);
    const base = session.contextUsage;
    assert.deepEqual(events, [], 'there is still space');
    while (events.length === 0) await session.prompt(fox.repeat(2), short);
    assert.deepEqual(events, ['contextoverflow', 'on', 'onquota']);
    assert.ok(session.contextUsage < 160 && session.contextUsage >= base - 10);
    // a prompt that can never fit drops no turns
    const usage = session.contextUsage;
    await assert.rejects(session.prompt(fox.repeat(60)), (/** @type {any} */ error) => {
      assert.equal(error.name, 'QuotaExceededError');
      assert.equal(error.quota, 160 - usage);
      assert.ok(error.requested > 160);
      return true;
    });
    assert.deepEqual([session.contextUsage, events.length], [usage, 3]);
    await assert.rejects(session.append(fox.repeat(60)), named('QuotaExceededError'));
    const long = {
      initialPrompts: [{ role: /** @type {const} */ ('user'), content: fox.repeat(60) }],
    };
    await assert.rejects(LanguageModel.create(long), named('QuotaExceededError'));
  });
});

describe('clone, abort, destroy', () => {
  test('a clone diverges, and shares the processed tokens', async (t) => {
    const { engine, session } = await open(t, {
      initialPrompts: [{ role: 'system', content: system }],
    });
    await session.prompt('My name is Ada.');
    const clone = await session.clone();
    assert.equal(clone.contextUsage, session.contextUsage);
    assert.equal(clone.samplingMode, session.samplingMode);
    const [here, there] = await Promise.all([
      session.prompt('What is my name?'),
      clone.prompt('What is my name?'),
    ]);
    assert.equal(here, there);
    session.destroy();
    assert.ok(await clone.prompt('Hello', short));
    const refused = clone.clone({ signal: AbortSignal.abort() });
    await assert.rejects(refused, isAbort);
    clone.destroy();
    await waitUntil(async () => (await engine.kvStats()).sessions === 0, 'all pages to be free');
  });

  test('a clone that is aborted right after the call, or later, leaves no session', async (t) => {
    const { engine, session } = await open(t);
    await session.prompt('One', short);
    const sessions = (await engine.kvStats()).sessions;
    for (const turns of [0, 1, 2, 3]) {
      const stop = new AbortController();
      const cloned = session.clone({ signal: stop.signal });
      for (let count = 0; count < turns; count++) await Promise.resolve();
      stop.abort(new Error('mine'));
      await assert.rejects(cloned, /mine/);
    }
    await waitUntil(
      async () => (await engine.kvStats()).sessions === sessions,
      'the clones to be closed',
    );
    const cloned = session.clone();
    session.destroy();
    await assert.rejects(cloned, isAbort);
  });

  test('a stream adds one abort listener, regardless of its number of pieces', async (t) => {
    const { session } = await open(t);
    let added = 0;
    const usual = AbortSignal.prototype.addEventListener;
    t.mock.method(
      AbortSignal.prototype,
      'addEventListener',
      /** @this {AbortSignal} @param {any[]} args */
      function (...args) {
        added++;
        return Reflect.apply(usual, this, args);
      },
    );
    const count = async (/** @type {number} */ characters) => {
      added = 0;
      const responseConstraint = new RegExp(`[a-z]{${characters}}`);
      await collect(session.promptStreaming('One', { responseConstraint }));
      return added;
    };
    await count(4);
    const few = await count(4);
    assert.equal(await count(60), few);
  });

  test('prompts in a session run in order; an abort removes only its own prompt', async (t) => {
    const { session } = await open(t);
    const stop = new AbortController();
    const queued = new AbortController();
    /** @type {string[]} */
    const order = [];
    const endless = { responseConstraint: /([a-z]+ )+[.]/ };
    const first = session.prompt('One', { ...endless, signal: stop.signal }).catch((error) => {
      order.push('first');
      throw error;
    });
    const second = session.prompt('Two', { ...short, signal: queued.signal });
    const third = session.prompt('Three', short).then((text) => {
      order.push('third');
      return text;
    });
    queued.abort();
    await assert.rejects(second, isAbort);
    stop.abort(new Error('mine'));
    await assert.rejects(first, /mine/);
    const text = await third;
    assert.deepEqual(order, ['first', 'third']);
    const fresh = await session.clone();
    // only the third turn is in the history
    const { engine } = await open(t);
    const expected = await engine.countTokens([
      { role: 'user', content: 'Three' },
      { role: 'assistant', content: text },
    ]);
    assert.equal(fresh.contextUsage, expected);
    // an abort after the end does nothing
    const late = new AbortController();
    await session.prompt('Four', { ...short, signal: late.signal });
    late.abort();
    assert.ok(session.contextUsage > expected);
  });

  test('a stream that is cancelled or aborted leaves no turn', async (t) => {
    const { session, engine } = await open(t);
    const endless = { responseConstraint: /([a-z]+ )+[.]/ };
    const reader = session.promptStreaming('One', endless).getReader();
    await reader.read();
    await reader.cancel();
    const stop = new AbortController();
    const stream = session.promptStreaming('Two', { ...endless, signal: stop.signal });
    await assert.rejects(async () => {
      for await (const _ of /** @type {any} */ (stream)) stop.abort();
    }, isAbort);
    assert.ok(await session.prompt('Three', short));
    assert.ok(session.contextUsage < 60);
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 2,
      'both requests to be aborted',
    );
  });

  test('destroy rejects running and waiting prompts, and errors streams', async (t) => {
    const { session, engine } = await open(t);
    const endless = { responseConstraint: /([a-z]+ )+[.]/ };
    const reader = session.promptStreaming('One', endless).getReader();
    await reader.read();
    const waiting = session.prompt('Two');
    session.destroy();
    session.destroy();
    await assert.rejects(waiting, isAbort);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    }, isAbort);
    for (const call of [
      () => session.prompt('x'),
      () => session.append('x'),
      () => session.clone(),
      () => session.measureContextUsage('x'),
      () => collect(session.promptStreaming('x')),
    ]) {
      await assert.rejects(call(), isAbort);
    }
    await waitUntil(async () => (await engine.kvStats()).sessions === 0, 'its pages to be freed');
  });
});

describe('installLanguageModel', () => {
  test('LanguageModel is installed only if it is missing, or on request', async (t) => {
    const scope = /** @type {any} */ (globalThis);
    t.after(() => {
      for (const name of Object.keys(prompts)) delete scope[name];
      delete scope.LanguageModel;
    });
    const engine = await openEngine(t);
    const made = installLanguageModel(engine);
    assert.equal(scope.LanguageModel, made);
    assert.equal(scope.LanguageModelToolCall, LanguageModelToolCall);
    const session = await scope.LanguageModel.create();
    assert.ok(session instanceof scope.LanguageModel);
    assert.equal(typeof session.addEventListener, 'function');
    assert.ok(await session.prompt('Hello', short));
    assert.equal(installLanguageModel(engine), made);
    assert.notEqual(installLanguageModel(engine, { replace: true }), made);
    assert.notEqual(scope.LanguageModel, made);
  });
});

describe('a backend for Google’s polyfill', () => {
  /** Returns a message as sent by the polyfill. @param {string} text @param {'user' | 'model' | 'system'} [role] */
  const content = (text, role = 'user') => ({ role, parts: [{ text }] });

  /** @param {import('node:test').TestContext} t @param {object} [session] */
  async function begin(t, session = {}) {
    const engine = await openEngine(t);
    const Backend = definePolyfillBackend(engine);
    const backend = new Backend({ apiKey: 'none', modelName: 'mine' });
    assert.equal(await backend.createSession({}, { generationConfig: {}, ...session }), engine);
    return { engine, Backend, backend };
  }

  test('the backend answers a conversation, streamed and not, and processes only the new part', async (t) => {
    const { engine, backend } = await begin(t, { systemInstruction: system });
    assert.equal(backend.modelName, 'mine');
    const schema = { type: 'STRING', minLength: 3, maxLength: 12, nullable: false };
    await backend.createSession(
      {},
      { systemInstruction: system, generationConfig: { responseSchema: schema } },
    );
    const first = [content('My name is Ada.')];
    const { text, usage } = await backend.generateContent(first);
    const answered = [...first, content(text, 'model')];
    assert.ok(JSON.parse(text).length >= 3);
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: 'My name is Ada.' },
    ];
    assert.equal(await backend.countTokens(first), await engine.countTokens(messages));
    assert.ok(usage > (await backend.countTokens(first)));
    const { cached } = (await engine.stats()).tokens;
    const pieces = [];
    const asked = [...answered, content('What is my name?')];
    let tokens = 0;
    for await (const piece of await backend.generateContentStream(asked)) {
      pieces.push(piece.text());
      tokens = piece.usageMetadata.totalTokenCount;
    }
    assert.ok(JSON.parse(pieces.join('')).length <= 12);
    assert.ok(tokens > usage);
    assert.ok((await engine.stats()).tokens.cached > cached + 20, 'the first turn was recomputed');
  });

  test('a system prompt among the contents is used once; an empty string has no tokens', async (t) => {
    const { engine, backend } = await begin(t, { systemInstruction: system });
    const both = [content(system, 'system'), content('Hello')];
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: 'Hello' },
    ];
    assert.equal(await backend.countTokens(both), await engine.countTokens(messages));
    // a template may add a system prompt, such as the one above
    const own = await begin(t, { systemInstruction: 'Say little.' });
    const little = [{ role: /** @type {const} */ ('system'), content: 'Say little.' }, messages[1]];
    assert.equal(await own.backend.countTokens([both[1]]), await own.engine.countTokens(little));
    const other = await begin(t);
    assert.equal(await other.backend.countTokens([]), 0);
    const image = /** @type {any} */ ([{ role: 'user', parts: [{ inlineData: {} }] }]);
    await assert.rejects(other.backend.countTokens(image), named('NotSupportedError'));
    await assert.rejects(other.backend.generateContent(image), named('NotSupportedError'));
  });

  test('abandoning a stream cancels its request', async (t) => {
    const { engine, backend } = await begin(t);
    for await (const _ of await backend.generateContentStream([content('Tell me a story.')])) break;
    const isIdle = async () => (await engine.stats()).requests.running === 0;
    await waitUntil(isIdle, 'the request to end');
  });

  test('schemas in the format of Google’s services are accepted', async (t) => {
    const { backend, Backend } = await begin(t);
    const schema = {
      type: 'OBJECT',
      nullable: false,
      properties: {
        a: { type: 'INTEGER', nullable: true, enum: [null] },
        type: { type: 'BOOLEAN' },
      },
      required: ['a', 'type'],
    };
    assert.equal(Backend.convertSchema(schema), schema);
    assert.equal(backend.convertSchema(schema), schema);
    const held = { generationConfig: { responseSchema: { toJSON: () => schema } } };
    backend.createSession({}, held); // the polyfill does not wait for it
    const { text } = await backend.generateContent([content('Hello')]);
    const { a, type } = JSON.parse(text);
    assert.deepEqual([a, typeof type], [null, 'boolean']);
  });

  test('the model is set in the configuration; sessions share an engine; progress never decreases', async (t) => {
    const bytes = readFileSync(modelPath);
    let requests = 0;
    const server = createServer((_, response) => {
      requests++;
      response.setHeader('Content-Length', bytes.length);
      response.write(bytes.subarray(0, 1_000_000));
      setTimeout(() => response.end(bytes.subarray(1_000_000)), 200);
    });
    server.listen(0);
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = /** @type {any} */ (server.address());
    const Backend = definePolyfillBackend();
    assert.equal(Backend.availability(), 'available');
    const media = { expectedInputs: [{ type: /** @type {const} */ ('image') }] };
    assert.equal(Backend.availability(media), 'unavailable');
    const url = `http://localhost:${port}/m.gguf`;
    const config = { apiKey: 'none', url, threads: 1 };
    /** @type {number[]} */
    const heard = [];
    const monitor = /** @type {any} */ (new EventTarget());
    monitor.__lastProgressLoaded = 0; // the polyfill has reported the beginning
    monitor.addEventListener('downloadprogress', (/** @type {any} */ event) => {
      assert.equal(event.total, 1);
      heard.push(event.loaded);
    });
    const [one, two] = [new Backend(config), new Backend(config)];
    assert.equal(one.modelName, url);
    const engines = await Promise.all([
      one.createSession({}, {}, monitor),
      two.createSession({}, {}),
    ]);
    t.after(() => engines[0].close());
    assert.equal(engines[0], engines[1]);
    assert.equal(requests, 1);
    assert.ok(heard.length > 0 && heard.every((share, at) => share > (heard[at - 1] ?? 0)));
    const alone = { generationConfig: { responseSchema: { enum: ['yes', 'no'] } } };
    await one.createSession({}, alone);
    assert.match((await one.generateContent([content('Is it?')])).text, /^"(yes|no)"$/);
  });
});
