// Unit tests of the page's side of the engine, with a fake connection and worker: the messages that each call of the API
// sends, and the results returned for the responses.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { WickError } from '../../js/base/errors.js';
import { defaultThreads, detectSimd, hasSharedMemory } from '../../js/base/host_features.js';
import { checkNames } from '../../js/base/option_names.js';
import { Adapters, adaptersOf } from '../../js/page/adapters.js';
import { CompletionStream } from '../../js/page/completion_stream.js';
import { createEngine } from '../../js/page/create_engine.js';
import { Engine } from '../../js/page/engine.js';
import { sourceOf } from '../../js/page/model_options.js';
import { settingsOf } from '../../js/page/request_options.js';
import { Session } from '../../js/page/session.js';
import { root } from '../support/locate.mjs';
import { logListeners } from '../support/pretend.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const turn = () => new Promise((settle) => setImmediate(settle));
const u32 = 2 ** 32 - 1;

const folder = mkdtempSync(join(tmpdir(), 'wick-page-'));
after(() => rmSync(folder, { recursive: true }));

/** A connection that records its calls and returns the test's responses. */
class Connection {
  /** @type {any[]} */
  asked = [];
  /** @type {Record<string, any>} a response for each call, or an error */
  answers = {};
  /** @type {any[]} */
  waiters = [];
  isEnded = false;

  check() {
    this.asked.push('check');
  }

  /** @param {string} name @param {any[]} args @param {any[]} more a signal */
  async call(name, args, ...more) {
    this.asked.push(more[0] ? [name, args, ...more] : [name, args]);
    if (this.answers[name] instanceof Error) throw this.answers[name];
    return this.answers[name];
  }

  /** @param {any} message @param {any[]} waiters */
  generate(message, waiters) {
    this.asked.push(['generate', message, waiters.length]);
    this.waiters = waiters;
    return waiters.map((_, i) => ({
      cancel: () => this.asked.push(`cancel ${i}`),
      forget: () => this.asked.push(`forget ${i}`),
      acknowledge() {},
    }));
  }

  async close() {
    this.asked.push('close');
  }
}

const done = {
  ...{ finish: 'stop', promptTokens: 30, cachedTokens: 10, completionTokens: 5 },
  ...{ queueMs: 1, prefillMs: 40, decodeMs: 8, ttftMs: 41 },
};

/** @param {any} [answers] @param {any} [info] */
function engineOf(answers = {}, info = { name: 'fox', architecture: 'llama' }) {
  const connection = new Connection();
  connection.answers = answers;
  return { connection, engine: new Engine(any(connection), any(info)), asked: connection.asked };
}

const refused = (/** @type {string | RegExp} */ message) => ({ code: 'ARG', message });

describe('embeddings', () => {
  const found = [
    { vector: Float32Array.of(1, -0.5), tokens: 3 },
    { vector: Float32Array.of(0.25, 2), tokens: 4 },
  ];
  const embedding = { pooling: 'model', normalize: true, truncate: false, dimensions: 0 };
  const usual = { ...embedding, adapters: undefined };

  test('of strings and tokens, with every option', async () => {
    const { engine, asked } = engineOf({ embed: found });
    const signal = new AbortController().signal;
    /** @type {[any, any, any][]} inputs, options, the request */
    const cases = [
      ['a', undefined, { texts: ['a'] }],
      [['a', ''], {}, { texts: ['a', ''] }],
      [[5], {}, { texts: [[5]] }],
      [[1, 2], { prefix: 'p' }, { texts: [[1, 2]] }],
      [Int32Array.of(7, 8), {}, { texts: [[7, 8]] }],
      [[[1], 'b', Uint8Array.of(3)], { prefix: 'p: ' }, { texts: [[1], 'p: b', [3]] }],
      [
        'a',
        { pooling: 'none', normalize: false },
        { texts: ['a'], pooling: 'none', normalize: false },
      ],
      ['a', { pooling: 'mean', truncate: true }, { texts: ['a'], pooling: 'mean', truncate: true }],
      ['a', { pooling: 'cls', dimensions: 1 }, { texts: ['a'], pooling: 'cls', dimensions: 1 }],
      [
        'a',
        { pooling: 'last', dimensions: u32 },
        { texts: ['a'], pooling: 'last', dimensions: u32 },
      ],
      ['a', { pooling: 'rank', truncate: null }, { texts: ['a'], pooling: 'rank' }],
    ];
    for (const [texts, options, request] of cases) {
      const vectors = await engine.embed(texts, options);
      assert.deepEqual(vectors, [found[0].vector, found[1].vector]);
      assert.deepEqual(asked.splice(0), [['embed', [{ ...usual, ...request }]]]);
    }
    await engine.embed('a', { signal });
    assert.equal(asked.pop()[2], signal);
    const list = 'texts must be a string or an array of strings, not';
    const number = 'dimensions must be a whole number';
    /** @type {[any, any, string][]} */
    const wrong = [
      [5, {}, `${list} 5`],
      [undefined, {}, `${list} undefined`],
      [[], {}, `${list} `],
      [{ length: 1 }, {}, `${list} [object Object]`],
      [new Uint8Array(0), {}, `${list} `],
      [[1.5], {}, 'texts[0] must be a string or token ids, not 1.5'],
      [['a', 5], {}, 'texts[1] must be a string or token ids, not 5'],
      [['a', []], {}, 'texts[1] must be a string or token ids, not '],
      [['a', ['b']], {}, 'texts[1] must be a string or token ids, not b'],
      [
        ['a', { length: 1, 0: 1 }],
        {},
        'texts[1] must be a string or token ids, not [object Object]',
      ],
      [
        'a',
        { pooling: 'max' },
        'pooling must be one of model, none, mean, cls, last, rank, not the string "max"',
      ],
      ['a', { prefix: 5 }, 'prefix must be a string, not 5'],
      ['a', { normalize: 1 }, 'normalize must be true or false, not 1'],
      ['a', { truncate: 'x' }, 'truncate must be true or false, not the string "x"'],
      [
        'a',
        { dimensions: 0 },
        `${number} of at least 1, not 0`.replace('of at least 1', `from 1 to ${u32}`),
      ],
      ['a', { dimensions: u32 + 1 }, `${number} from 1 to ${u32}, not ${u32 + 1}`],
      ['a', { dimensions: 1.5 }, `${number} from 1 to ${u32}, not 1.5`],
      ['a', { dimension: 1 }, 'dimension is not an option; did you mean dimensions?'],
    ];
    for (const [texts, options, message] of wrong) {
      await assert.rejects(engine.embed(texts, options), refused(message));
    }
    assert.deepEqual(asked, []);
  });

  test('rankings are sorted by score, ties in input order, and cut to topN', async () => {
    const score = (/** @type {number} */ value) => ({
      vector: Float32Array.of(value, 9),
      tokens: 5,
    });
    const scores = [0.5, 2, -1, 2, 0.5].map(score);
    const { engine, asked } = engineOf({ embed: scores });
    const documents = ['a', 'b', 'c', 'd', 'e'];
    const request = {
      texts: documents.map((one) => ['q', one]),
      ...{ pooling: 'rank', normalize: false, truncate: false, dimensions: 0 },
    };
    const all = [1, 3, 0, 4, 2].map((index) => {
      const [value] = scores[index].vector;
      return { index, score: value, probability: Math.fround(1 / (1 + Math.exp(-value))) };
    });
    assert.deepEqual(await engine.rerank('q', documents), { results: all, tokens: 25 });
    assert.deepEqual(asked.splice(0), [['embed', [request]]]);
    for (const topN of [0, 1, 4, 5, 6]) {
      const reported = await engine.rerank('q', documents, { topN, truncate: true });
      assert.deepEqual(reported, { results: all.slice(0, topN), tokens: 25 });
      assert.deepEqual(asked.splice(0), [['embed', [{ ...request, truncate: true }]]]);
    }
    const one = engineOf({ embed: [score(1)] });
    const { signal } = new AbortController();
    const reported = await one.engine.rerank('q', ['a'], { signal });
    assert.deepEqual(reported, {
      results: [{ index: 0, score: 1, probability: Math.fround(1 / (1 + Math.exp(-1))) }],
      tokens: 5,
    });
    assert.equal(one.asked[0][2], signal);
    /** @type {[any, any, any, string][]} */
    const wrong = [
      ['q', [], {}, 'documents must be an array of strings, not '],
      ['q', 'a', {}, 'documents must be an array of strings, not the string "a"'],
      ['q', ['a', 5], {}, 'documents[1] must be a string, not 5'],
      [5, ['a'], {}, 'query must be a string, not 5'],
      ['q', ['a'], { truncate: 1 }, 'truncate must be true or false, not 1'],
      ['q', ['a'], { topN: -1 }, `topN must be a whole number from 0 to ${u32}, not -1`],
      ['q', ['a'], { top: 1 }, 'top is not an option; did you mean topN?'],
    ];
    for (const [query, list, options, message] of wrong) {
      await assert.rejects(engine.rerank(query, list, options), refused(message));
    }
    assert.deepEqual(asked, []);
  });

  test('in OpenAI’s format', async () => {
    const { engine, asked } = engineOf({ embed: found });
    const of = (/** @type {any} */ body, call = {}) => engine.embeddings.create(body, call);
    const [one, two] = [new AbortController().signal, new AbortController().signal];
    const base64 = found.map(({ vector }) => Buffer.from(vector.buffer).toString('base64'));
    const answer = (/** @type {any[]} */ vectors, model = 'fox') => ({
      object: 'list',
      model,
      data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    const plain = found.map(({ vector }) => Array.from(vector));
    assert.deepEqual(await of({ input: ['a', [1]] }), answer(plain));
    const more = { encoding_format: 'base64', dimensions: 2, model: 'own', user: 'u', signal: one };
    assert.deepEqual(await of({ input: 'a', ...more }), answer(base64, 'own'));
    await of(
      { input: 'a', dimensions: null, encoding_format: 'float', signal: one },
      { signal: two },
    );
    assert.deepEqual(asked.splice(0), [
      ['embed', [{ ...usual, texts: ['a', [1]] }]],
      ['embed', [{ ...usual, texts: ['a'], dimensions: 2 }], one],
      ['embed', [{ ...usual, texts: ['a'] }], two],
    ]);
    await assert.rejects(
      of({ input: 5 }),
      refused('input must be a string or an array of strings, not 5'),
    );
    const format = 'encoding_format must be float or base64, not the string "hex"';
    await assert.rejects(of({ input: 'a', encoding_format: 'hex' }), refused(format));
    await assert.rejects(
      of({ input: 'a', inputs: 1 }),
      refused('inputs is not an option; did you mean input?'),
    );
    await assert.rejects(of({ input: 'a', mode: 1 }), refused('mode is not an option'));
    assert.deepEqual(asked, []);
    for (const [info, name] of /** @type {[any, string][]} */ ([
      [{ name: null, architecture: 'llama' }, 'llama'],
      [{ name: null, architecture: null }, 'model'],
    ])) {
      const other = engineOf({ embed: [] }, info);
      assert.equal((await other.engine.embeddings.create({ input: 'a' })).model, name);
    }
  });
});

describe('extract', () => {
  const schema = { type: 'object' };
  const settings = (/** @type {any} */ more) => ({
    ...settingsOf({ temperature: 0, maxTokens: 1024, seed: 1, jsonSchema: schema, ...more }),
  });
  const lines = (schemaText = '{"type":"object"}', instructions = '') =>
    `${instructions || 'Read the text and write down what it says, as JSON of this schema:'}\n${schemaText}\n\nthe text`;

  /** @param {Connection} connection @param {string[]} texts @param {any} [more] */
  const give = (connection, texts, more = {}) =>
    connection.waiters[0].onOutput({ texts, tokens: [], done: { ...done, ...more } });

  test('sends the messages and settings, and returns the record', async () => {
    /** @type {[any, any, string, any][]} schema, options, the message's text, settings */
    const cases = [
      [schema, { seed: 1 }, lines(), {}],
      [
        '{ "type": "object" }',
        { seed: 1 },
        lines('{ "type": "object" }'),
        { jsonSchema: '{ "type": "object" }' },
      ],
      [
        schema,
        { seed: 1, instructions: 'Read', maxTokens: 5, temperature: 1, salt: 's' },
        lines(undefined, 'Read'),
        { maxTokens: 5, temperature: 1, salt: 's' },
      ],
    ];
    for (const [given, options, content, more] of cases) {
      const { engine, connection, asked } = engineOf();
      const record = engine.extract('the text', given, options);
      await turn();
      const variables = { enable_thinking: false };
      const input = { messages: [{ role: 'user', content }], variables };
      const asks = settings({ thinkingBudgetTokens: 0, ...more }); // no reasoning before the record
      const message = { input, settings: asks, wantsTokens: false };
      assert.deepEqual(asked, [['generate', message, 1]]);
      give(connection, ['{"a":', '[1]}']);
      assert.deepEqual(await record, { a: [1] });
    }
  });

  test('without a template the prompt has no turns; other errors are reported', async () => {
    const { engine, connection, asked } = engineOf();
    const record = engine.extract('the text', schema, { seed: 1 });
    await turn();
    connection.waiters[0].onOutput({
      texts: [],
      tokens: [],
      error: { code: 'NO_TEMPLATE', message: '' },
    });
    await turn();
    await turn();
    const last = asked.at(-1);
    assert.deepEqual(last, [
      'generate',
      { input: { prompt: `${lines()}\n\nJSON: ` }, settings: settings({}), wantsTokens: false },
      1,
    ]);
    give(connection, ['5']);
    assert.equal(await record, 5);
    const other = engineOf();
    const failed = assert.rejects(other.engine.extract('the text', schema), { code: 'NOMEM' });
    await turn();
    other.connection.waiters[0].fail(new WickError('NOMEM', 'none'));
    await failed;
    assert.equal(other.asked.filter((one) => one[0] === 'generate').length, 1);
  });

  test('an incomplete record and invalid arguments are reported', async () => {
    const { engine, connection, asked } = engineOf();
    const cut = engine.extract('the text', schema);
    const message =
      'The record is incomplete after 5 tokens: it reached maxTokens or the end of the context';
    const isCut = assert.rejects(cut, (error) => {
      const { code, message: said, cause } = any(error);
      assert.deepEqual([code, said, cause], ['INCOMPLETE', message, { text: '{"a"' }]);
      return true;
    });
    await turn();
    give(connection, ['{', '"a"'], { finish: 'length' });
    await isCut;
    const abort = new AbortController();
    const left = assert.rejects(engine.extract('a', schema, { signal: abort.signal }), {
      message: 'mine',
    });
    await turn();
    abort.abort(new Error('mine'));
    await left;
    assert.equal(asked.at(-1), 'cancel 0');
    asked.length = 0;
    /** @type {[any, any, any, string][]} */
    const wrong = [
      [5, schema, {}, 'text must be a string, not 5'],
      ['a', schema, { instructions: 5 }, 'instructions must be a string, not 5'],
      ['a', undefined, {}, 'extract needs a JSON schema'],
      ['a', null, {}, 'extract needs a JSON schema'],
      [
        'a',
        schema,
        { instruction: 'a' },
        'instruction is not an option; did you mean instructions?',
      ],
      ['a', schema, { topK: 1 }, 'topK is not an option'],
    ];
    for (const [text, given, options, said] of wrong) {
      await assert.rejects(engine.extract(text, given, options), refused(said));
    }
    assert.deepEqual(asked, []);
  });
});

describe('calls of an engine', () => {
  test('each call is sent by name, with its arguments and their defaults', async () => {
    const { signal } = new AbortController();
    /** @type {[string, any[], any, any][]} method, arguments, the call, its result */
    const cases = [
      ['tokenize', ['a'], ['tokenize', ['a', 3]], [1, 2]],
      ['tokenize', ['', { addSpecial: false }], ['tokenize', ['', 2]], []],
      ['tokenize', ['a', { parseSpecial: false, signal }], ['tokenize', ['a', 1], signal], []],
      ['tokenize', ['a', { parseSpecial: false, addSpecial: false }], ['tokenize', ['a', 0]], []],
      ['detokenize', [[1, 2]], ['detokenize', [[1, 2], false]], 'ab'],
      ['detokenize', [[], { special: true, signal }], ['detokenize', [[], true], signal], ''],
      [
        'applyTemplate',
        [[{ role: 'user', content: 'a' }]],
        ['applyTemplate', [[{ role: 'user', content: 'a' }], { add_generation_prompt: true }]],
        'a',
      ],
      [
        'applyTemplate',
        [
          [{ role: 'user', content: 'a' }],
          { addGenerationPrompt: false, variables: { b: 1 }, signal },
        ],
        [
          'applyTemplate',
          [[{ role: 'user', content: 'a' }], { b: 1, add_generation_prompt: false }],
          signal,
        ],
        'a',
      ],
      ['inspect', [], ['inspect', []], { a: 1 }],
      ['metrics', [], ['metrics', ['json', false]], {}],
      [
        'metrics',
        [{ format: 'prometheus', reset: true, signal }],
        ['metrics', ['prometheus', true], signal],
        '',
      ],
    ];
    for (const [method, args, call, value] of cases) {
      const { engine, asked } = engineOf({ [call[0]]: value });
      assert.equal(await any(engine)[method](...args), value);
      assert.deepEqual(asked, [call]);
    }
    const { engine, asked } = engineOf({ tokenize: [7, 8, 9], createSession: 4 });
    assert.equal(await engine.countTokens('a', { addSpecial: false }), 3);
    assert.deepEqual(asked.splice(0), [['tokenize', ['a', 2]]]);
    assert.ok((await engine.createSession()) instanceof Session);
    await engine.createSession({ salt: 'x' });
    assert.deepEqual(asked.splice(0), [
      ['createSession', ['']],
      ['createSession', ['x']],
    ]);
    await engine.close();
    await engine[Symbol.asyncDispose]();
    assert.deepEqual(asked.splice(0), ['close', 'close']);
    for (const [method, args, message] of /** @type {[string, any[], string | RegExp][]} */ ([
      ['tokenize', [5], 'tokenize needs a string'],
      [
        'tokenize',
        ['a', { addspecial: 1 }],
        'addspecial is not an option; did you mean addSpecial?',
      ],
      ['detokenize', [[1], { specials: 1 }], 'specials is not an option; did you mean special?'],
      [
        'applyTemplate',
        [[], { variable: 1 }],
        'variable is not an option; did you mean variables?',
      ],
      ['metrics', [{ formats: 1 }], 'formats is not an option; did you mean format?'],
      ['stats', [{ format: 'xml' }], 'format must be json or prometheus, not the string "xml"'],
      ['stats', [{ map: 1 }], 'map is not an option'],
      ['kvStats', [{ maps: 1 }], 'maps is not an option; did you mean map?'],
      ['runTools', [{ tools: 5 }], /^tools must be an object of .*, not 5/],
      ['createSession', [{ salts: 1 }], 'salts is not an option; did you mean salt?'],
    ])) {
      await assert.rejects(any(engine)[method](...args), refused(message));
    }
    assert.deepEqual(asked, []);
  });

  test('classify uses the scores of the head, with its labels and options', async () => {
    const scores = Float32Array.of(0, Math.log(3));
    const { engine, asked } = engineOf({ embed: [{ vector: scores, tokens: 2 }] });
    const found = await engine.classify('a fox', ['no', 'yes'], { truncate: true });
    const rounded = found.map(({ label, score }) => [label, score.toFixed(4)]);
    assert.deepEqual(rounded, [
      ['yes', '0.7500'],
      ['no', '0.2500'],
    ]);
    const request = { texts: ['a fox'], pooling: 'rank', normalize: false };
    assert.deepEqual(asked, [['embed', [{ ...request, truncate: true, dimensions: 0 }]]]);
  });

  const kv = {
    ...{ pages: { all: 3, free: 1 }, bytes: { used: 5 }, groups: [], states: null, prefix: null },
    ...{ page_tokens: 16, fragmentation: {}, map: ['pp'] },
  };

  test('reports are returned in each format', async () => {
    const stats = { requests: { running_max: 2 }, tokens: {}, pass_us: [], passes: 1, rows: 2, kv };
    const { engine, asked } = engineOf({ kvStats: kv, stats, info: { name: 'n', load: {} } });
    assert.equal(any(await engine.kvStats()).map, 'pp');
    await engine.kvStats({ map: true });
    await engine.kvStats({ map: any(1) });
    assert.equal((await engine.stats()).requests.runningMax, 2);
    assert.match(await engine.stats({ format: 'prometheus' }), /^# HELP wick_requests /);
    assert.equal((await engine.info()).name, 'n');
    const calls = asked.map(([name, args]) => [name, ...args]);
    assert.deepEqual(calls, [
      ...[
        ['kvStats', false],
        ['kvStats', true],
        ['kvStats', false],
        ['stats'],
        ['stats'],
        ['info'],
      ],
    ]);
  });

  test('generations, best-of and beam search', async () => {
    const { engine, connection, asked } = engineOf();
    const settings = settingsOf({ seed: 1 });
    void engine.generate('a', { seed: 1 })[Symbol.asyncIterator]().next();
    const message = { input: { prompt: 'a' }, settings, wantsTokens: false };
    assert.deepEqual(asked.splice(0), [['generate', message, 1]]);
    void engine
      .generate([1], { seed: 1, onToken() {} })
      [Symbol.asyncIterator]()
      .next();
    const reported = { input: { prompt: [1] }, settings, wantsTokens: true };
    assert.deepEqual(asked.splice(0), [['generate', reported, 1]]);
    const two = engine.generateMany('a', { seed: 1 });
    assert.equal(two.length, 2);
    void two[1][Symbol.asyncIterator]().next();
    assert.deepEqual(asked.splice(0), [['generate', message, 2]]);
    const three = engine.generateMany('a', { seed: 1, n: 3, onToken() {} });
    void three[0][Symbol.asyncIterator]().next();
    assert.deepEqual(asked.splice(0), [['generate', { ...reported, input: { prompt: 'a' } }, 3]]);
    const best = engine.bestOf('a', { seed: 1, n: 1 });
    while (asked.length === 0) await turn(); // its code is loaded on first use
    assert.deepEqual(asked.splice(0), [
      [
        'generate',
        { ...message, settings: settingsOf({ seed: 1, logprobs: 0 }), wantsTokens: true },
        1,
      ],
    ]);
    connection.waiters[0].onOutput({
      texts: ['x'],
      tokens: [{ token: 5, text: 'x', logprob: -2 }],
      done: { ...done, finish: 'length' },
    });
    const beam = { text: 'x', tokens: [5], logprob: -2, finishReason: 'length' };
    assert.deepEqual(await best, [beam]);
    const four = engine.bestOf('a', { logprobs: 2 });
    asked.splice(0);
    while (asked.length === 0) await turn();
    assert.deepEqual([asked[0][1].settings.logprobs, asked[0][2]], [2, 4]);
    for (const waiter of connection.waiters) waiter.onOutput({ texts: [], tokens: [], done });
    assert.equal((await four).length, 4);
    await assert.rejects(engine.bestOf('a', { n: 17 }), { code: 'ARG' });
    await assert.rejects(engine.bestOf([]), { code: 'ARG' });
    await assert.rejects(engine.beamSearch(any(5)), refused(/prompt/));
    await assert.rejects(engine.beamSearch('a', any({ width: -1 })), { code: 'ARG' });
  });
});

describe('adapters', () => {
  const all = [{ name: 'a' }, { name: 'b', bytes: 5 }];

  /** @param {any} [answers] */
  function adaptersWith(answers = {}) {
    const connection = new Connection();
    connection.answers = { listAdapters: all, ...answers };
    return { adapters: new Adapters(any(connection)), asked: connection.asked };
  }

  test('an adapter of a request has a name and a finite scale (default 1)', () => {
    for (const none of [undefined, null]) assert.equal(adaptersOf(none), undefined);
    assert.deepEqual(adaptersOf([]), []);
    assert.deepEqual(
      adaptersOf([{ name: 'a' }, { name: 'b', scale: -0.5 }, { name: 'a', scale: 0 }]),
      [
        { name: 'a', scale: 1 },
        { name: 'b', scale: -0.5 },
        { name: 'a', scale: 0 },
      ],
    );
    for (const scale of [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      '1',
      null,
      true,
      1n,
    ]) {
      assert.throws(
        () => adaptersOf([{ name: 'a', scale }]),
        refused(/^adapter .*a.*: scale must be a number/),
      );
    }
    for (const name of ['', undefined, null, 5]) {
      assert.throws(() => adaptersOf([{ name }]), refused(/^name must be a non-empty string/));
    }
    for (const uses of ['a', {}, { length: 0 }, 5, true]) {
      assert.throws(() => adaptersOf(uses), refused(/^adapters must be an array/));
    }
    for (const use of [null, 5, 'a']) assert.throws(() => adaptersOf([use]), { code: 'ARG' });
    assert.throws(() => adaptersOf([{ name: 'a', scales: 1 }]), refused(/scale/));
  });

  test('the bytes of an adapter are sent in order, and its record is returned', async () => {
    const { adapters, asked } = adaptersWith();
    const { signal } = new AbortController();
    async function* stream() {
      yield Uint8Array.of(1, 2, 3);
      yield Uint8Array.of(4, 5);
    }
    assert.equal(await adapters.add({ stream: stream() }, { name: 'b', signal }), all[1]);
    assert.deepEqual(asked, [
      ['addAdapter', ['b']],
      ['feedAdapter', ['b', 0, Uint8Array.of(1, 2, 3)], signal],
      ['feedAdapter', ['b', 3, Uint8Array.of(4, 5)], signal],
      ['endAdapter', ['b', 5], signal],
      ['listAdapters', []],
    ]);
    assert.equal(await adaptersWith().adapters.list(), all);
    for (const from of [
      { bytes: Uint8Array.of(6, 7) },
      { blob: new Blob([Uint8Array.of(6, 7)]) },
    ]) {
      const whole = adaptersWith();
      await whole.adapters.add(from, { name: 'a' });
      assert.deepEqual(whole.asked[1], ['feedAdapter', ['a', 0, Uint8Array.of(6, 7)]]);
    }
  });

  test('an abort before the start sends no request; a later abort or failure frees the name', async () => {
    const before = adaptersWith();
    const aborted = { name: 'b', signal: AbortSignal.abort() };
    const call = before.adapters.add({ bytes: Uint8Array.of(1) }, aborted);
    await assert.rejects(call, { name: 'AbortError' });
    assert.deepEqual(before.asked, []);
    const cases = /** @type {[any, any][]} */ ([
      [{ feedAdapter: new WickError('CORRUPT', 'no file of one') }, { code: 'CORRUPT' }],
      [{ endAdapter: new WickError('TRUNCATED', 'cut off') }, { code: 'TRUNCATED' }],
      [
        { endAdapter: new WickError('IO', 'why'), removeAdapter: new Error('gone') },
        { code: 'IO' },
      ],
    ]);
    for (const [answers, wanted] of cases) {
      const { adapters, asked } = adaptersWith(answers);
      let isLeft = false;
      const stream = new ReadableStream({
        start: (out) => out.enqueue(Uint8Array.of(1)),
        pull: (out) => ('endAdapter' in answers ? out.close() : undefined),
        cancel: () => {
          isLeft = true;
        },
      });
      await assert.rejects(adapters.add({ stream }, { name: 'b' }), wanted);
      assert.deepEqual(asked.at(-1), ['removeAdapter', ['b']]);
      if ('feedAdapter' in answers) await turn();
      assert.equal(
        isLeft,
        'feedAdapter' in answers,
        'a stream that is not read to its end is cancelled',
      );
    }
    const taken = adaptersWith({ addAdapter: new WickError('ARG', 'the name is taken') });
    await assert.rejects(
      taken.adapters.add({ bytes: Uint8Array.of(1) }, { name: 'b' }),
      refused('the name is taken'),
    );
    assert.deepEqual(taken.asked, [['addAdapter', ['b']]], 'the existing adapter is not removed');
  });

  test('an abort while an adapter is added frees its name', async () => {
    const stop = new AbortController();
    const connection = new Connection();
    const { asked } = connection;
    connection.call = async (name, args) => {
      asked.push([name, args]);
      stop.abort();
    };
    const adapters = new Adapters(any(connection));
    const call = adapters.add({ bytes: Uint8Array.of(1) }, { name: 'b', signal: stop.signal });
    await assert.rejects(call, { name: 'AbortError' });
    assert.deepEqual(asked, [
      ['addAdapter', ['b']],
      ['removeAdapter', ['b']],
    ]);
    asked.splice(0);
    await adapters.remove('c');
    assert.deepEqual(asked, [['removeAdapter', ['c']]]);
  });

  test('invalid adapters are rejected before any request', async () => {
    const { adapters, asked } = adaptersWith();
    const bytes = Uint8Array.of(1);
    for (const options of [undefined, {}, { name: '' }, { name: 5 }, { name: 'a', scale: 1 }]) {
      await assert.rejects(adapters.add({ bytes }, any(options)), { code: 'ARG' });
    }
    for (const from of [undefined, {}, { bytes, file: 'a' }, { bytes, name: 'a' }]) {
      await assert.rejects(adapters.add(any(from), { name: 'a' }), { code: 'ARG' });
    }
    for (const name of ['', undefined, 5])
      await assert.rejects(adapters.remove(any(name)), { code: 'ARG' });
    assert.deepEqual(asked, []);
  });
});

describe('sessions', () => {
  test('are created, saved, loaded and closed by these calls', async () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const { engine, connection, asked } = engineOf({
      ...{ createSession: 4, forkSession: 5, saveState: bytes, sessionTokens: [1] },
      loadState: { session: 9, entries: 2 },
    });
    const session = await engine.createSession();
    const fork = await session.fork();
    await session.truncate(3);
    await session.drop(2, 2);
    assert.deepEqual(await fork.tokens(), [1]);
    assert.equal(await session.save(), bytes);
    assert.equal(await engine.saveState(any(undefined)), bytes);
    assert.deepEqual(asked.splice(0), [
      ['createSession', ['']],
      ['forkSession', [4]],
      ['truncateSession', [4, 3]],
      ['dropFromSession', [4, 2, 2]],
      ['sessionTokens', [5]],
      ['saveState', [4, undefined]],
      ['saveState', [0, undefined]],
    ]);
    const path = join(folder, 'state');
    assert.equal(await session.save(path), bytes);
    assert.deepEqual(new Uint8Array(readFileSync(path)), bytes);
    assert.deepEqual(readdirSync(folder), ['state']);
    asked.length = 0;
    const wide = Uint8Array.of(0, 1, 2, 3);
    for (const from of [path, new Blob([bytes]), bytes.buffer, bytes, wide.subarray(1)]) {
      const { session: loaded, entries } = await engine.loadState(any(from));
      assert.deepEqual([loaded instanceof Session, entries], [true, 2]);
      assert.deepEqual(asked.splice(0), ['check', ['loadState', [bytes]]]);
      await loaded?.close();
      assert.deepEqual(asked.splice(0), [['closeSession', [9]]]);
    }
    connection.answers.loadState = { session: 0, entries: 7 };
    assert.deepEqual(await engine.loadState(bytes), { session: undefined, entries: 7 });
    const other = refused('state must be a name, a Blob or bytes');
    await assert.rejects(engine.loadState(any({})), other);
    await assert.rejects(engine.loadState(any([1])), other);
    const named = refused('state: needs a name');
    for (const name of ['', 5, null]) await assert.rejects(engine.saveState(any(name)), named);
    asked.length = 0;
    await session[Symbol.asyncDispose]();
    await session.close();
    assert.deepEqual(asked.splice(0), [['closeSession', [4]]]);
    connection.isEnded = true;
    await fork.close();
    assert.deepEqual(asked, []);
  });

  test('closing can be retried after an error, and succeeds if the engine has ended', async () => {
    const { engine, connection, asked } = engineOf({ createSession: 1 });
    const session = await engine.createSession();
    connection.answers.closeSession = new WickError('BUSY', 'later');
    await assert.rejects(session.close(), { code: 'BUSY' });
    await assert.rejects(session.close(), { code: 'BUSY' });
    connection.answers.closeSession = new WickError('LEADER_GONE', 'gone');
    await session.close();
    await session.close();
    assert.equal(asked.filter((one) => one[0] === 'closeSession').length, 3);
    const other = await engine.createSession();
    connection.answers.closeSession = new Error('odd');
    await assert.rejects(other.close(), { message: 'odd' });
  });

  test('a session created after an abort is closed; an abort before the call creates none', async () => {
    const { engine, connection, asked } = engineOf();
    const aborted = AbortSignal.abort(new Error('before'));
    await assert.rejects(engine.createSession({ signal: aborted }), { message: 'before' });
    assert.deepEqual(asked, []);
    /** @type {(id: number) => void} */
    let make = () => {};
    connection.answers.createSession = new Promise((settle) => {
      make = settle;
    });
    const abort = new AbortController();
    const made = assert.rejects(engine.createSession({ signal: abort.signal }), {
      message: 'mine',
    });
    abort.abort(new Error('mine'));
    await made;
    make(6);
    await turn();
    assert.deepEqual(asked.at(-1), ['closeSession', [6]]);
  });

  test('append and prompt send the session’s number', async () => {
    const { engine, connection, asked } = engineOf({ createSession: 4 });
    const session = await engine.createSession();
    asked.length = 0;
    const reads = async (/** @type {Promise<any>} */ reading) => {
      await turn();
      connection.waiters[0].onOutput({ texts: [], tokens: [], done });
      return reading;
    };
    const message = (/** @type {any} */ prompt, /** @type {any} */ more) => {
      const { seed, ...settings } = asked[0][1].settings;
      const { seed: _, ...usual } = settingsOf({ seed: 1 });
      assert.equal(typeof seed, 'bigint');
      assert.deepEqual(settings, { ...usual, session: 4, ...more });
      assert.deepEqual([asked[0][1].input, asked[0][2]], [{ prompt }, 1]);
      return asked.splice(0)[0][1].wantsTokens;
    };
    assert.deepEqual(await reads(session.append('a')), { tokens: 30, cachedTokens: 10 });
    assert.equal(message('a', { prefillOnly: true, drop: undefined }), false);
    await reads(session.append([]));
    message('', { prefillOnly: true, drop: undefined });
    await reads(session.drop(1, 3));
    message('', { prefillOnly: true, drop: [1, 3] });
    void session.prompt([7])[Symbol.asyncIterator]().next();
    assert.equal(message([7], {}), false);
    void session
      .prompt('', { onToken() {} })
      [Symbol.asyncIterator]()
      .next();
    assert.equal(message('', {}), true);
    assert.throws(
      () => session.prompt('a', { salt: 'x' }),
      refused(/^salt: is set by createSession/),
    );
    session.prompt('a', any({ salt: null }));
    await assert.rejects(session.append('a', any({ salt: 'x' })), refused('salt is not an option'));
    await assert.rejects(session.truncate(-1), refused(/^tokens must be/));
    await assert.rejects(session.drop(-1, 2), refused(/^first must be/));
    await assert.rejects(session.drop(1, 2.5), refused(/^last must be/));
  });
});

describe('model sources', () => {
  /** @param {any} options */
  const described = async (options) => {
    const { description, source } = sourceOf(options);
    if (!source) return description;
    const made = await source();
    const { files, canSeek } = made;
    assert.deepEqual({ kind: 'page', files, canSeek }, description);
    return [description, made.constructor.name];
  };
  const how = { headers: {}, retries: 5, stallMs: 30_000 };
  const split = (/** @type {string} */ number) =>
    `http://a.example/m-0000${number}-of-00002.gguf?x`;

  test('URLs, files, blobs and streams', async () => {
    const file = join(folder, 'é b.gguf');
    const onPage = { kind: 'page', files: 1, canSeek: false };
    const stream = new ReadableStream();
    const url = (/** @type {string[]} */ ...urls) => ({ kind: 'url', urls, ...how });
    const path = (/** @type {string[]} */ ...paths) => ({ kind: 'path', paths });
    const large = 'http://a.example/m.gguf';
    /** @type {[any, any][]} */
    const cases = [
      [{ url: large }, url(large)],
      [{ url: new URL(large), file: null, blob: undefined }, url(large)],
      [{ url: split('2') }, url(split('1'), split('2'))],
      [{ url: [split('2'), split('1')] }, url(split('2'), split('1'))],
      [{ url: [split('2')] }, url(split('1'), split('2'))],
      [{ url: pathToFileURL(file) }, path(file)],
      [{ url: [pathToFileURL(file).href, `file:${folder}/x`] }, path(file, `${folder}/x`)],
      [{ url: [pathToFileURL(file).href, large] }, url(pathToFileURL(file).href, large)],
      [{ url: large, fetch: () => {} }, [{ ...onPage, canSeek: true }, 'HttpSource']],
      [{ file }, path(file)],
      [{ file: [file, pathToFileURL(file), pathToFileURL(file).href] }, path(file, file, file)],
      [{ file: 'm-00002-of-00002.gguf' }, path('m-00001-of-00002.gguf', 'm-00002-of-00002.gguf')],
      [{ file: new Blob(['a']) }, [{ ...onPage, canSeek: true }, 'BlobSource']],
      [
        { blob: [new Blob(['a']), new Blob(['b'])] },
        [{ ...onPage, canSeek: true, files: 2 }, 'BlobSource'],
      ],
      [{ stream }, [onPage, 'StreamSource']],
      [{ stream: (async function* () {})() }, [onPage, 'StreamSource']],
    ];
    for (const [options, wanted] of cases) assert.deepEqual(await described(options), wanted);
    const settings = { headers: { 'X-A': 'b' }, retries: 0, stallMs: 2 ** 31 - 1 };
    assert.deepEqual(await described({ url: large, ...settings }), {
      ...{ ...url(large), ...settings },
      headers: { 'x-a': 'b' },
    });
  });

  test('File objects are read in the order of their names, by the worker if it can', async (t) => {
    const named = (/** @type {string} */ name) => new File([name], name);
    const files = ['b', 'a', 'c'].map(named);
    const source = await sourceOf({ file: files }).source?.();
    const read = async (/** @type {number} */ index) =>
      Buffer.from(any(await (await source?.open(index, 0))?.read())).toString();
    assert.deepEqual([await read(0), await read(1), await read(2)], ['a', 'b', 'c']);
    assert.deepEqual(
      files.map(({ name }) => name),
      ['b', 'a', 'c'],
    ); // the caller's array is unchanged
    t.after(() => delete any(globalThis).Worker);
    any(globalThis).Worker = function Worker() {};
    const blobs = [new Blob(['x']), new Blob(['y'])];
    assert.deepEqual(await described({ blob: blobs }), { kind: 'blob', blobs });
    const { structuredClone } = globalThis;
    t.after(() => {
      globalThis.structuredClone = structuredClone;
    });
    for (const clone of [() => ({}), () => assert.fail('no')]) {
      globalThis.structuredClone = any(clone);
      assert.equal(any(await described({ blob: blobs }))[1], 'BlobSource');
    }
  });

  test('URLs are relative to the page', async (t) => {
    t.after(() => {
      delete any(globalThis).document;
      delete any(globalThis).location;
    });
    any(globalThis).location = { href: 'http://a.example/x/', origin: 'http://a.example' };
    assert.deepEqual(any(await described({ url: 'm.gguf' })).urls, ['http://a.example/x/m.gguf']);
    any(globalThis).document = { baseURI: 'http://b.example/y/' };
    assert.deepEqual(any(await described({ url: 'm.gguf' })).urls, ['http://b.example/y/m.gguf']);
  });

  test('invalid sources are rejected with the reason', () => {
    const need = 'createEngine needs one of url, file, blob, bytes and stream:';
    const kinds = 'must be a Blob, a File or a path, or an array of them';
    const locked = new ReadableStream();
    locked.getReader();
    const url = 'http://a.example/m';
    const header = 'headers must be an object of strings';
    /** @type {[any, string | RegExp][]} */
    const wrong = [
      [{}, `${need} none was given`],
      [{ url, file: 'a' }, `${need} url and file were given`],
      [{ blob: new Blob([]), stream: [] }, `${need} blob and stream were given`],
      [{ file: 5 }, `file ${kinds}`],
      [{ file: ['a', new Blob([])] }, `file ${kinds}`],
      [{ blob: 'a' }, 'blob must be a Blob or a File, or an array of them'],
      [{ stream: locked }, 'stream is locked by another reader'],
      [{ stream: [1] }, 'stream must be a ReadableStream or an async iterable of bytes'],
      [{ url: 'm' }, 'url: m is not a URL'],
      [
        { url: './m' },
        "url: ./m is not a URL: pass a path on disk as file: './m', or a File in a page",
      ],
      [{ url: 'C:\\m' }, /^url: C:\\m is not a URL: pass a path/],
      [{ url, fetch: 5 }, 'fetch must be a function'],
      [{ url, retries: -1 }, 'retries must be a whole number of at least 0, not -1'],
      [
        { url, stallMs: 2 ** 31 },
        `stallMs must be a whole number from 0 to ${2 ** 31 - 1}, not ${2 ** 31}`,
      ],
      [{ url, headers: 5 }, `${header}, not 5`],
      [{ url, headers: { a: 5 } }, 'headers: a must be a string, not 5'],
      [{ url, headers: [['a']] }, 'headers: a must be a string, not undefined'],
      [{ url, headers: [['a', 'b', 'c']] }, `${header}, Headers, or pairs of strings`],
      [{ url, headers: ['ab'] }, `${header}, Headers, or pairs of strings`],
      [{ url, headers: { 'a b': 'c' } }, /^headers: "a b" cannot be sent: TypeError/],
    ];
    for (const [options, message] of wrong)
      assert.throws(() => sourceOf(options), refused(message));
  });
});

describe('option names', () => {
  /** Levenshtein distance, straight from its definition. @param {string} a @param {string} b @returns {number} */
  const distance = (a, b) => {
    if (a === '' || b === '') return a.length + b.length;
    const [shortA, shortB] = [a.slice(1), b.slice(1)];
    if (a[0] === b[0]) return distance(shortA, shortB);
    return 1 + Math.min(distance(shortA, b), distance(a, shortB), distance(shortA, shortB));
  };

  test('the nearest name is suggested if at most a third of the letters differ', () => {
    const known = ['topK', 'topP', 'seed', 'stop', 'minP', 'maxTokens'];
    const bare = (/** @type {string} */ name) => name.toLowerCase().replace(/[^a-z\d]/g, '');
    const tried = [
      ...['topk', 'top_k', 'topQ', 'tpK', 'sed', 'sseed', 'seeed', 'se', 'deed', 'dees', 'xx', 'x'],
      ...['max_tokens', 'maxToken', 'maxTokns', 'mxTokn', 'tokens', 'maxTok', 'MAXTOKENSx', 'sto'],
      ...['ostp', 'tops', 'pots', 'mniP', 'minpp', 'miinP', 'aseed', 'top', 'maxTkoens', 'naxTo'],
      ...['axTokens', 'axtoken', 'axtoke', 'mmmaxTokens', 'mmaxTokenss', 'm_a_x_Tokens'],
    ];
    for (const name of tried) {
      const ranked = known.map((one) => ({ one, steps: distance(bare(name), bare(one)) }));
      ranked.sort((a, b) => a.steps - b.steps);
      const [{ one, steps }] = ranked;
      const hint = steps <= name.length / 3 ? `; did you mean ${one}?` : '';
      assert.throws(
        () => checkNames(any({ seed: 1, [name]: 1 }), any(known)),
        refused(`${name} is not an option${hint}`),
      );
    }
    const options = { seed: 1, silent: 2, unset: undefined };
    assert.equal(checkNames(options, ['seed'], ['silent']), options);
    assert.throws(
      () => checkNames(any({ silen: 1 }), [], ['silent']),
      refused('silen is not an option'),
    );
    for (const none of [null, 5, 'a', undefined]) {
      assert.throws(() => checkNames(any(none), []), refused('options must be an object'));
    }
  });
});

describe('createEngine', () => {
  const wasm = (/** @type {string} */ build) =>
    pathToFileURL(join(root, `dist/wasm/wick-${build}.wasm`)).href;
  const [single, threaded] = ['single', 'threads'].map((kind) => wasm(`${detectSimd()}-${kind}`));

  /** A web worker whose responses to `init` are controlled by the test. */
  class PretendedWorker {
    /** @type {any[]} */
    posted = [];
    isEnded = false;
    /** @type {Record<string, (event: any) => void>} */
    #listeners = {};

    /** @param {(message: any, worker: PretendedWorker) => void} act */
    constructor(act) {
      this.act = act;
    }

    /** @param {string} name @param {(event: any) => void} listener */
    addEventListener(name, listener) {
      this.#listeners[name] = listener;
    }

    /** @param {any} data */
    say(data) {
      this.#listeners.message({ data });
    }

    /** @param {any} message */
    postMessage(message) {
      this.posted.push(message);
      setImmediate(() => this.act(message, this));
    }

    terminate() {
      this.isEnded = true;
    }
  }

  const ready = { type: 'ready', info: { name: 'fox', load: {} } };
  const file = 'm.gguf';

  /** @param {any} options @param {(message: any, worker: PretendedWorker) => void} [act] */
  async function open(
    options,
    act = (message, worker) => {
      if (message.type === 'init') worker.say(ready);
    },
  ) {
    /** @type {PretendedWorker[]} */
    const workers = [];
    const worker = () => {
      workers.push(new PretendedWorker(act));
      return any(workers.at(-1));
    };
    const engine = createEngine({ file, worker, wasm: single, threads: 1, ...options });
    return {
      workers,
      ended: engine.then(
        (made) => made,
        (error) => error,
      ),
    };
  }

  test('options are sent to the worker', async () => {
    const module = await WebAssembly.compile(readFileSync(new URL(single)));
    const grammar = single.replace(/\.wasm$/, '-grammar.wasm');
    const extras = single.replace(/\.wasm$/, '-extras.wasm');
    const parts = { grammar, extras };
    /** @type {[any, any][]} */
    const cases = [
      [{}, { ...parts }],
      [{ eager: true }, { isEager: true, ...parts }],
      [{ chatTemplate: 'chatml' }, { chatTemplate: 'chatml', ...parts }],
      [{ draft: { file: 'd.gguf' } }, { draft: { kind: 'path', paths: ['d.gguf'] }, ...parts }],
      [{ wasm: module }, { module, grammar: undefined, extras: undefined }],
      [{ wasm: `${new URL('.', single)}` }, { ...parts }],
      [{ wasm: new URL('.', single) }, { ...parts }],
      [{ wasm: new URL(single) }, { ...parts }],
      [
        { contextSize: 77, threads: undefined, wasm: module },
        { grammar: undefined, extras: undefined },
      ],
    ];
    for (const [options, wanted] of cases) {
      const { workers, ended } = await open(options);
      const engine = await ended;
      assert.ok(engine instanceof Engine, `${any(engine).message}`);
      assert.equal(workers.length, 1);
      const [{ module: sent, config, sent: _, wide, ...init }] = workers[0].posted;
      assert.ok(sent instanceof WebAssembly.Module);
      assert.equal(typeof wide, options.wasm === module ? 'undefined' : 'string');
      if (wanted.module) assert.equal(sent, module);
      assert.deepEqual([config.threads, config.contextSize], [1, options.contextSize ?? 0]);
      const { module: __, ...rest } = wanted;
      assert.deepEqual(init, {
        ...{ type: 'init', source: { kind: 'path', paths: [file] }, draft: undefined },
        ...{ chatTemplate: undefined, isEager: false, helpers: [], ...rest },
      });
      await engine.close();
      assert.equal(workers[0].isEnded, true);
    }
  });

  test('the option, the host, the module and the worker limit the number of threads', async (t) => {
    if (!hasSharedMemory()) return t.skip('no shared memory');
    const most = Math.max(8, 2 * availableParallelism());
    const warn = t.mock.method(console, 'warn', () => {});
    /** @type {[any, number][]} */
    const cases = [
      [{ threads: 2, wasm: threaded }, 2],
      [{ threads: undefined, wasm: threaded }, defaultThreads()],
      [{ threads: most, wasm: threaded }, most],
      [{ threads: 1, wasm: threaded }, 1],
      [{ threads: 3, wasm: single }, 1], // known only once the module is compiled
      [{ threads: 3, wasm: await WebAssembly.compile(readFileSync(new URL(single))) }, 1],
      [{ threads: 3, wasm: await WebAssembly.compile(readFileSync(new URL(threaded))) }, 3],
    ];
    const helper = (/** @type {any} */ message, /** @type {PretendedWorker} */ worker) => {
      if (message.type === 'init') worker.say(ready);
      if (message.type === 'close') worker.say({ type: 'closed' });
    };
    for (const [options, count] of cases) {
      const { workers, ended } = await open(options, helper);
      const engine = await ended;
      const [init] = workers[0].posted;
      assert.deepEqual([init.config.threads, init.helpers.length], [count, count - 1]);
      await engine.close();
      for (const port of init.helpers) port.close();
      assert.ok(workers.every(({ isEnded }) => isEnded));
    }
    assert.equal(warn.mock.callCount(), 0);
    const { workers, ended } = await open(
      { threads: Math.min(64, most + 1), wasm: threaded },
      helper,
    );
    await (await ended).close();
    if (most < 64) {
      assert.equal(workers[0].posted[0].config.threads, most);
      const words = `wick-llm: ${most + 1} threads are too many for this machine's processors; using ${most}`;
      assert.deepEqual(
        warn.mock.calls.map(({ arguments: args }) => args),
        [[words]],
      );
    }
    for (const port of workers[0].posted[0].helpers) port.close();
    const one = new PretendedWorker(helper);
    const own = await createEngine({ file, worker: any(one), wasm: threaded, threads: 4 });
    assert.equal(one.posted[0].config.threads, 1); // a single worker has no helpers
    await own.close();
  });

  test('on a host without shared memory, the engine is started again with one thread', async (t) => {
    if (!hasSharedMemory()) return t.skip('no shared memory');
    for (const [code, tries] of /** @type {[string, number][]} */ ([
      ['NO_SHARED_MEMORY', 2],
      ['NOMEM', 1],
    ])) {
      const { workers, ended } = await open({ threads: 3, wasm: threaded }, (message, worker) => {
        if (message.type !== 'init') return worker.say({ type: 'closed' });
        for (const port of message.helpers) port.close();
        if (worker.posted.length > 1) worker.say(ready);
        else worker.say({ type: 'failed', error: { code, message: 'none' } });
      });
      const result = await ended;
      const inits = workers[0].posted.filter(({ type }) => type === 'init');
      assert.deepEqual(
        inits.map(({ config }) => config.threads),
        [3, 1].slice(0, tries),
      );
      if (tries === 2) await result.close();
      else assert.equal(result.code, 'NOMEM');
      assert.equal(workers[0].isEnded, true);
    }
  });

  test('progress is reported until the caller aborts; an exception in the callback rejects the call', async () => {
    const progress = { loaded: 1, total: 2, phase: 'loading' };
    const report = (/** @type {any} */ message, /** @type {PretendedWorker} */ worker) => {
      if (message.type !== 'init') return;
      worker.say({ type: 'progress', progress });
      worker.say({ type: 'progress', progress });
    };
    /** @type {any[]} */
    const reported = [];
    const abort = new AbortController();
    const onProgress = (/** @type {any} */ one) => {
      reported.push(one);
      abort.abort(new Error('enough'));
    };
    const first = await open({ onProgress, signal: abort.signal }, report);
    assert.equal((await first.ended).message, 'enough');
    assert.deepEqual(reported, [progress]);
    await turn();
    assert.equal(first.workers[0].isEnded, true);
    const second = await open({ onProgress: () => assert.fail('mine') }, report);
    assert.equal((await second.ended).message, 'mine');
    assert.equal(second.workers[0].isEnded, true);
    const plain = new AbortController();
    const third = await open({ signal: plain.signal }, () => plain.abort());
    assert.equal((await third.ended).name, 'AbortError');
  });

  test('no listener remains on the caller’s signal', async () => {
    const abort = new AbortController();
    const { signal } = abort;
    const log = logListeners(signal);
    const { ended } = await open({ signal });
    const engine = await ended;
    const count = (/** @type {string} */ name) => log.filter((one) => one === name).length;
    assert.ok(count('addEventListener') > 0);
    assert.equal(count('removeEventListener'), count('addEventListener'));
    await engine.close();
  });

  test('invalid options are rejected before a worker starts', async () => {
    /** @type {[any, string | RegExp][]} */
    const wrong = [
      [null, 'createEngine needs an options object'],
      [5, 'createEngine needs an options object'],
      [{ file, filed: 1 }, 'filed is not an option; did you mean file?'],
      [{ file, onProgress: 5 }, 'onProgress must be a function'],
      [{ file, onLead: 5 }, 'onLead must be a function'],
      [{ file, eager: 1 }, 'eager must be true or false, not 1'],
      [{ file, threads: 0 }, 'threads must be a whole number from 1 to 64, not 0'],
      [{ file, threads: 65 }, 'threads must be a whole number from 1 to 64, not 65'],
      [{ file, contextSize: -1 }, /^contextSize must be/],
      [{ file, chatTemplate: 5 }, "chatTemplate must be Jinja text or 'chatml'"],
      [{ file, worker: 5 }, 'worker must be a URL, a Worker or a function that starts one'],
      [{ file, shared: '' }, 'shared must be a name'],
      [{ file, preTokenizer: '' }, "preTokenizer must be a name such as 'qwen2'"],
      [{ file, retries: 0.5 }, /^retries must be/],
      [{ file, signal: {} }, 'signal must be an AbortSignal'],
    ];
    const worker = () => assert.fail('a worker was started');
    for (const [options, message] of wrong) {
      const given = options?.file ? { worker, ...options } : options;
      await assert.rejects(createEngine(given), refused(message));
    }
    const signal = AbortSignal.abort(new Error('before'));
    await assert.rejects(createEngine(any({ file, worker, signal })), { message: 'before' });
  });
});

test('the stream helper reports each chunk with the completion so far, and the complete one at the end', async () => {
  const head = { id: 'c', created: 1, model: 'm' };
  const chunk = (/** @type {any} */ delta, finish_reason = null) => ({
    ...{ ...head, object: 'chat.completion.chunk' },
    choices: [{ index: 0, delta, finish_reason }],
  });
  const usage = { completion_tokens: 2 };
  const chunks = [
    ...[
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
    ],
    ...[chunk({}, any('length')), { ...head, choices: [], usage }],
  ];
  const helper = new CompletionStream(async () => any(chunks), null);
  /** @type {any[]} */
  const reported = [];
  helper
    .on('chunk', (one, whole) => reported.push(['chunk', one, whole.choices[0].message.content]))
    .on('content', (delta, content) => reported.push(['content', delta, content]))
    .on('finalChatCompletion', (whole) => reported.push(['final', whole]))
    .on('end', () => reported.push(['end']));
  const choice = {
    ...{ index: 0, message: { role: 'assistant', content: 'ab', refusal: null } },
    ...{ logprobs: null, finish_reason: 'length' },
  };
  const whole = { object: 'chat.completion', choices: [choice], ...head, usage };
  assert.deepEqual(await helper.finalChatCompletion(), whole);
  assert.deepEqual(reported, [
    ...[
      ['chunk', chunks[0], ''],
      ['chunk', chunks[1], 'a'],
      ['content', 'a', 'a'],
      ['chunk', chunks[2], 'ab'],
      ['content', 'b', 'ab'],
      ['chunk', chunks[3], 'ab'],
      ['chunk', chunks[4], 'ab'],
      ['final', whole],
      ['end'],
    ],
  ]);
  assert.equal(await helper.totalUsage(), usage);
  assert.deepEqual(
    [await helper.finalMessage(), await helper.finalContent()],
    [choice.message, 'ab'],
  );
});
