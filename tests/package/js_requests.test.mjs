// Unit tests of the page's handling of one request: settings, readers of pieces, best-of and beam
// search, with fake connections and engines.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WickError } from '../../js/base/errors.js';
import { beamSearch } from '../../js/page/beam_search.js';
import { readAll } from '../../js/page/best_of.js';
import { ChatCompletions } from '../../js/page/chat_completions.js';
import { Engine } from '../../js/page/engine.js';
import { Generation, timingsOf } from '../../js/page/generation.js';
import {
  checkCallback,
  checkCompletions,
  checkCount,
  checkNumber,
  shown,
} from '../../js/page/option_checks.js';
import { leavable, readerOf, readersOf } from '../../js/page/piece_reader.js';
import { promptOf, saltOf, settingsOf, tokensOf } from '../../js/page/request_options.js';
import { samplersOf } from '../../js/page/sampler_options.js';
import { Session } from '../../js/page/session.js';

const isArg = { code: 'ARG' };
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

describe('settings', () => {
  const usual = {
    maxTokens: 0,
    ...samplersOf({}),
    seed: 7n,
    logitBias: [],
    logprob: false,
    logprobs: 0,
    logprobsAfter: false,
    stop: [],
    healing: false,
    thinkingBudgetTokens: -1,
    asksHost: false,
    ignoreEnd: false,
    printSpecial: false,
    priority: 0,
    speculation: true,
    salt: '',
    adapters: undefined,
    grammar: undefined,
    forced: [],
  };

  test('a constraint is one of four options, converted to the engine’s format', () => {
    const grammarOf = (/** @type {unknown} */ options) => settingsOf(any(options)).grammar;
    const schema = { type: 'object', properties: { b: {}, a: true } };
    for (const [options, kind, text] of /** @type {[object, number, string][]} */ ([
      [{ grammar: 'root ::= "a"' }, 1, 'root ::= "a"'],
      [{ jsonSchema: schema }, 2, '{"type":"object","properties":{"b":{},"a":true}}'],
      [{ jsonSchema: '{"type": "null"}' }, 2, '{"type": "null"}'],
      [{ jsonSchema: false, regex: undefined }, 2, 'false'],
      [{ regex: '[ab]+' }, 3, '[ab]+'],
      [{ regex: /^\d\/$/dguy }, 3, '^\\d\\/$'],
      [{ choices: ['é', '"', ''], grammar: null }, 4, '["é","\\"",""]'],
    ])) {
      assert.deepEqual(grammarOf(options), { kind, text });
    }
    assert.throws(() => grammarOf({ regex: /a/s }), { code: 'UNSUPPORTED', message: /flag s/ });
    for (const wrong of [
      { grammar: 5 },
      { jsonSchema: [] },
      { jsonSchema: 5 },
      { regex: {} },
      { choices: 'a' },
      { choices: [] },
      { choices: [5] },
      { regex: 'a', grammar: 'root ::= "a"' },
    ]) {
      assert.throws(() => grammarOf(wrong), isArg);
    }
  });

  test('omitted and null options have the defaults', () => {
    assert.deepEqual(settingsOf({ seed: 7 }), usual);
    const names = Object.keys(usual).filter(
      (name) => !/^(seed|logprob|forced|asksHost)$/.test(name),
    );
    const nulls = Object.fromEntries(names.map((name) => [name, null]));
    assert.deepEqual(settingsOf(any({ ...nulls, seed: 7 })), usual);
  });

  const u32 = 2 ** 32 - 1;
  const most = 3.4e38;
  /** @type {[string, number, number, boolean][]} name, minimum, maximum, whole */
  const ranges = [
    ['maxTokens', 1, u32, true],
    ['temperature', 0, most, false],
    ['topK', -1, u32, true],
    ['topP', 0, 1, false],
    ['minP', 0, 1, false],
    ['repeatPenalty', 1.4e-45, most, false],
    ['frequencyPenalty', -100, 100, false],
    ['presencePenalty', -100, 100, false],
    ['penaltyLast', -1, 2 ** 20, true],
    ['logprobs', 0, 20, true],
    ['priority', -100, 100, true],
  ];
  for (const [name, least, greatest, whole] of ranges) {
    test(`${name} is a number within its range`, () => {
      const taken = (/** @type {number} */ value) => any(settingsOf(any({ [name]: value })))[name];
      const middle = whole ? least + 1 : least + 0.5;
      for (const value of [least, middle, greatest]) assert.equal(taken(value), value);
      const within = `from ${least} to ${greatest}`;
      const open = name === 'repeatPenalty' ? 'above 0' : `of at least ${least}`;
      const range = greatest === most ? open : within;
      const wrong = [least - 1, Number.NaN, '1', true, {}, Number.POSITIVE_INFINITY];
      if (greatest !== most) wrong.push(greatest + 1);
      if (whole) wrong.push(least + 0.5);
      for (const value of wrong) {
        const isAbove = typeof value === 'number' && value > greatest;
        const words = typeof value === 'string' ? 'the string "1"' : '';
        const message = `${name} must be a ${whole ? 'whole ' : ''}number ${isAbove ? within : range}, not ${words}`;
        assert.throws(
          () => taken(any(value)),
          (error) => any(error).code === 'ARG' && any(error).message.startsWith(message),
        );
      }
    });
  }

  test('logprobs of 0 request only the chosen tokens', () => {
    const { logprob, logprobs } = settingsOf({ logprobs: 0 });
    assert.deepEqual([logprob, logprobs], [true, 0]);
    assert.equal(settingsOf({ logprobs: 3 }).logprob, true);
    assert.equal(settingsOf(any({ logprobs: undefined })).logprob, false);
  });

  test('seeds have 64 bits, and are random by default', () => {
    const seedOf = (/** @type {any} */ seed) => settingsOf({ seed }).seed;
    assert.equal(seedOf(5), 5n);
    assert.equal(seedOf(-2), 2n ** 64n - 2n);
    assert.equal(seedOf(-1n), 2n ** 64n - 1n);
    assert.equal(seedOf(2n ** 64n + 3n), 3n);
    assert.equal(seedOf(2n ** 63n), 2n ** 63n);
    assert.equal(seedOf(2 ** 53 - 1), 2n ** 53n - 1n);
    for (const wrong of [2 ** 53, 1.5, Number.NaN, '1', {}, true])
      assert.throws(() => seedOf(wrong), isArg);
    assert.throws(() => seedOf(2 ** 53), /represented exactly: pass it as a bigint/);
    assert.throws(() => seedOf(1.5), /whole number, not 1.5/);
    for (const none of [undefined, null, -1]) {
      const drawn = Array.from({ length: 20 }, () => BigInt(seedOf(none)));
      assert.equal(new Set(drawn.map((one) => one >> 32n)).size, 20);
      assert.equal(new Set(drawn.map((one) => one & 0xffffffffn)).size, 20);
      assert.ok(drawn.every((one) => one >= 0n && one < 2n ** 64n));
    }
  });

  test('logit biases are pairs of a token and a number', () => {
    const biasOf = (/** @type {any} */ logitBias) => settingsOf({ logitBias }).logitBias;
    assert.deepEqual(biasOf({ 3: 1.5, 0: -100 }), [
      [0, -100],
      [3, 1.5],
    ]);
    assert.deepEqual(biasOf(new Map([[5, Number.NEGATIVE_INFINITY]])), [
      [5, Number.NEGATIVE_INFINITY],
    ]);
    assert.deepEqual(biasOf({ [u32]: 0 }), [[u32, 0]]);
    const wrong = [
      5,
      'a',
      { a: 1 },
      { 1.5: 1 },
      { '-1': 1 },
      { 1: '2' },
      { 1: Number.NaN },
      { [u32 + 1]: 1 },
    ];
    for (const one of wrong) assert.throws(() => biasOf(one), isArg);
  });

  test('stop strings, flags, speculation, salts and forced tokens are checked', () => {
    const of = (/** @type {any} */ options) => settingsOf(options);
    assert.deepEqual(of({ stop: 'a' }).stop, ['a']);
    assert.deepEqual(of({ stop: ['a', 'b'] }).stop, ['a', 'b']);
    assert.deepEqual(of({ stop: [] }).stop, []);
    for (const stop of [5, ['a', 1], {}, [null]]) assert.throws(() => of({ stop }), isArg);
    for (const name of /** @type {const} */ (['healing', 'ignoreEnd', 'printSpecial'])) {
      assert.equal(of({ [name]: true })[name], true);
      for (const value of [1, 'x', 0]) assert.throws(() => of({ [name]: value }), isArg);
    }
    for (const speculation of [true, false, 'always'])
      assert.equal(of({ speculation }).speculation, speculation);
    for (const speculation of ['never', 1, {}]) assert.throws(() => of({ speculation }), isArg);
    assert.deepEqual(of({ forced: [1, 2] }).forced, [1, 2]);
    assert.throws(() => of({ forced: 'a' }), isArg);
    assert.throws(() => of({ nope: 1 }), isArg);
    assert.equal(saltOf('x \u{1f98a}'), 'x \u{1f98a}');
    assert.deepEqual([saltOf(undefined), saltOf(null)], ['', '']);
    for (const salt of ['', 5, '\ud800', 'a\udc00b', {}]) assert.throws(() => saltOf(salt), isArg);
  });

  test('prompts and tokens are checked', () => {
    assert.equal(promptOf('a'), 'a');
    assert.equal(promptOf(''), '');
    assert.deepEqual(promptOf([1, 2]), [1, 2]);
    assert.deepEqual(promptOf(Int32Array.of(3, -4)), [3, -4]);
    assert.throws(() => promptOf([]), isArg);
    assert.equal(promptOf([], true), '');
    assert.throws(() => promptOf(undefined, true), isArg);
    assert.deepEqual(tokensOf([]), []);
    assert.deepEqual(tokensOf([2 ** 31 - 1, -(2 ** 31)]), [2 ** 31 - 1, -(2 ** 31)]);
    for (const wrong of [
      [1.5],
      ['1'],
      [2 ** 31],
      [-(2 ** 31) - 1],
      {},
      'a',
      null,
      [1, undefined],
    ]) {
      assert.throws(() => tokensOf(wrong), isArg);
      if (wrong !== 'a') assert.throws(() => promptOf(wrong), isArg);
    }
  });

  test('single values are checked', () => {
    assert.equal(checkNumber('x', 3, { min: 3, max: 3 }), 3);
    assert.throws(
      () => checkNumber('x', 2, { min: 3 }),
      /^WickError: x must be a number of at least 3, not 2$/,
    );
    assert.equal(checkNumber('x', 3.4e38, { min: 3 }), 3.4e38);
    assert.throws(
      () => checkNumber('x', 3.5e38, { min: 3 }),
      /^WickError: x must be a number from 3 to 3.4e\+38, not 3.5e\+38$/,
    );
    assert.throws(() => checkNumber('x', 2 ** 53, { min: 3, whole: true }), isArg);
    assert.deepEqual(
      [
        checkCount('x', 0),
        checkCount('x', u32),
        checkCompletions('n', 1),
        checkCompletions('n', 16),
      ],
      [0, u32, 1, 16],
    );
    for (const wrong of [-1, u32 + 1, 0.5]) assert.throws(() => checkCount('x', wrong), isArg);
    for (const wrong of [0, 17, 1.5]) assert.throws(() => checkCompletions('n', wrong), isArg);
    for (const fine of [undefined, null, () => 1]) checkCallback('x', fine);
    for (const wrong of [5, {}, 'x', false])
      assert.throws(() => checkCallback('x', wrong), /x must be a function/);
    assert.deepEqual([shown('2'), shown(2)], ['the string "2"', '2']);
  });
});

/** A connection that records messages and the calls to its requests. */
class Connection {
  /** @type {any[]} */
  messages = [];
  /** @type {any[]} */
  waiters = [];
  /** @type {string[]} */
  log = [];

  /** @param {any} message @param {any[]} waiters */
  generate(message, waiters) {
    this.messages.push(message);
    this.waiters.push(...waiters);
    return waiters.map((_, i) => ({
      cancel: () => this.log.push(`cancel ${i}`),
      forget: () => this.log.push(`forget ${i}`),
      acknowledge: (/** @type {number} */ count) => this.log.push(`read ${count} of ${i}`),
    }));
  }

  /** @param {number} index @param {string[]} texts @param {any} [more] */
  give(index, texts, more = {}) {
    const tokens = texts.map((text, i) => ({ token: i, text, logprob: -1, top: [] }));
    this.waiters[index].onOutput({ texts, tokens, ...more });
  }
}

const done = {
  finish: 'stop',
  promptTokens: 30,
  cachedTokens: 10,
  completionTokens: 5,
  queueMs: 1,
  prefillMs: 40,
  decodeMs: 8,
  ttftMs: 41,
};
const turn = () => new Promise((settle) => setImmediate(settle));
const open = (/** @type {any} */ options = {}, completions = 1) => {
  const connection = new Connection();
  const readers = readersOf(any(connection), any({ id: 1 }), options, completions);
  return { connection, readers, reader: readers[0] };
};

describe('a reader of pieces', () => {
  test('starts with the first read, returns each piece once, and ends', async () => {
    const { connection, reader } = open();
    assert.equal(connection.messages.length, 0);
    const first = reader.next();
    assert.deepEqual(connection.messages, [{ id: 1 }]);
    connection.give(0, ['a', 'b']);
    assert.deepEqual(await first, {
      text: 'a',
      token: { token: 0, text: 'a', logprob: -1, top: [] },
    });
    assert.equal((await reader.next())?.text, 'b');
    assert.equal(reader.isOver, false);
    const last = reader.next();
    connection.give(0, ['c'], { done });
    assert.equal((await last)?.text, 'c');
    assert.equal(await reader.next(), undefined);
    assert.equal(await reader.next(), undefined);
    assert.deepEqual([reader.isOver, reader.done, reader.left], [true, done, undefined]);
    assert.deepEqual([connection.messages.length, connection.log], [1, ['forget 0']]);
    reader.cancel();
    assert.deepEqual(connection.log, ['forget 0']);
  });

  test('acknowledges every 32 pieces', async () => {
    const { connection, reader } = open();
    reader.start();
    reader.start();
    assert.equal(connection.messages.length, 1);
    connection.give(
      0,
      Array.from({ length: 70 }, (_, i) => `${i}`),
    );
    for (let i = 0; i < 31; i++) await reader.next();
    assert.deepEqual(connection.log, []);
    await reader.next();
    assert.deepEqual(connection.log, ['read 32 of 0']);
    for (let i = 0; i < 38; i++) await reader.next();
    assert.deepEqual(connection.log, ['read 32 of 0', 'read 32 of 0']);
  });

  test('a request is cancelled once, and the received part is dropped', async () => {
    const { connection, reader } = open();
    reader.start();
    connection.give(0, ['a'], { prefill: { done: 3, total: 9 } });
    reader.cancel();
    reader.cancel();
    await assert.rejects(reader.next(), { name: 'AbortError' });
    assert.deepEqual(connection.log, ['cancel 0']);
    assert.deepEqual([reader.isOver, reader.done], [true, undefined]);
    assert.deepEqual(reader.left, {
      ...{ finish: 'abort', queueMs: 0, prefillMs: 0, decodeMs: 0, ttftMs: 0 },
      ...{ promptTokens: 9, cachedTokens: 0, completionTokens: 1 },
    });
    connection.give(0, ['b'], { done });
    assert.equal(reader.done, undefined);
  });

  test('cancelled before its start: no request is sent', async () => {
    const { connection, reader } = open();
    reader.cancel();
    await assert.rejects(reader.next(), { name: 'AbortError' });
    assert.equal(connection.messages.length, 0);
  });

  test('an error ends the reader, and is not reported as an abort', async () => {
    const { connection, reader } = open();
    const next = reader.next();
    connection.give(0, ['a'], { error: { code: 'NOMEM', message: 'no memory' } });
    await assert.rejects(next, { code: 'NOMEM' });
    assert.deepEqual([reader.left, connection.log], [undefined, ['forget 0']]);
    connection.waiters[0].fail(new Error('later'));
    await assert.rejects(reader.next(), { code: 'NOMEM' });
  });

  test('callbacks are called, and their exceptions end the request', async () => {
    /** @type {any[]} */
    const reported = [];
    const { connection, reader } = open({
      onPrefill: (/** @type {any} */ progress) => reported.push(progress),
      onToken: (/** @type {any} */ token) => reported.push(token.text),
    });
    reader.start();
    connection.give(0, ['a'], { prefill: { done: 1, total: 2 } });
    connection.waiters[0].onOutput({ texts: ['held back'], tokens: [{ token: -1, text: 'x' }] });
    assert.deepEqual(reported, [{ done: 1, total: 2 }, 'a']);
    const wrong = open({ onToken: () => assert.fail('mine') });
    const next = wrong.reader.next();
    wrong.connection.give(0, ['a']);
    await assert.rejects(next, { message: 'mine' });
    assert.deepEqual(wrong.connection.log, ['cancel 0']);
    const leaves = new AbortController();
    /** @type {string[]} */
    const heard = [];
    const onToken = (/** @type {any} */ { text }) => {
      heard.push(text);
      leaves.abort();
    };
    const left = open({ signal: leaves.signal, onToken });
    left.reader.start();
    left.connection.give(0, ['a', 'b']);
    left.connection.give(0, ['c']);
    assert.deepEqual(heard, ['a'], 'no callback after the abort');
    for (const options of [{ onToken: 5 }, { onPrefill: 'x' }, { logitsHook: 5 }, { signal: {} }])
      assert.throws(() => open(options), isArg);
  });

  test('a signal aborts all completions, and has no listener after they have ended', async () => {
    const abort = new AbortController();
    let listening = 0;
    const { addEventListener, removeEventListener } = abort.signal;
    abort.signal.addEventListener = any((/** @type {any[]} */ ...args) => {
      listening++;
      addEventListener.apply(abort.signal, any(args));
    });
    abort.signal.removeEventListener = any((/** @type {any[]} */ ...args) => {
      listening--;
      removeEventListener.apply(abort.signal, any(args));
    });
    const { connection, readers } = open({ signal: abort.signal }, 2);
    readers[1].start();
    assert.deepEqual([connection.waiters.length, listening], [2, 1]);
    connection.give(0, ['a'], { done });
    assert.equal(listening, 1);
    connection.give(1, ['a'], { done });
    assert.equal(listening, 0);
    const other = open({ signal: abort.signal }, 2);
    const next = other.readers.map((reader) => reader.next());
    abort.abort(new Error('enough'));
    for (const one of next) await assert.rejects(one, { message: 'enough' });
    assert.deepEqual(other.connection.log, ['cancel 0', 'cancel 1']);
    const late = open({ signal: abort.signal });
    await assert.rejects(late.reader.next(), { message: 'enough' });
    assert.equal(late.connection.messages.length, 0);
    assert.equal(late.reader.left?.finish, 'abort');
  });
});

describe('a generation', () => {
  test('can be read once, skips empty pieces, and reports its result', async () => {
    const connection = new Connection();
    const generation = new Generation(readerOf(any(connection), any({}), {}));
    assert.equal(generation.result, undefined);
    const text = generation.text();
    await turn();
    connection.give(0, ['a', '', 'b'], { done });
    assert.equal(await text, 'ab');
    assert.deepEqual(generation.result, {
      finishReason: 'stop',
      usage: { promptTokens: 30, completionTokens: 5, cachedTokens: 10 },
      timings: {
        ...{ queueMs: 1, prefillMs: 40, decodeMs: 8, ttftMs: 41 },
        ...{ prefillTokensPerSecond: 500, decodeTokensPerSecond: 500 },
      },
    });
    assert.throws(() => generation[Symbol.asyncIterator](), isArg);
    const empty = timingsOf(any({ ...done, completionTokens: 1, prefillMs: 0 }));
    assert.deepEqual([empty.prefillTokensPerSecond, empty.decodeTokensPerSecond], [0, 0]);
    assert.equal(timingsOf(any({ ...done, completionTokens: 2 })).decodeTokensPerSecond, 125);
    assert.equal(timingsOf(any({ ...done, cachedTokens: 30 })).prefillTokensPerSecond, 0);
  });

  test('a generation whose reader stops is cancelled, at any time', async () => {
    const connection = new Connection();
    const generation = new Generation(readerOf(any(connection), any({}), {}));
    const texts = generation[Symbol.asyncIterator]();
    const first = texts.next();
    await turn();
    await texts.return(undefined);
    assert.deepEqual(await first, { done: true, value: undefined });
    assert.deepEqual(connection.log, ['cancel 0']);
    assert.equal(generation.result?.finishReason, 'abort');
    const unread = new Connection();
    const other = new Generation(readerOf(any(unread), any({}), {}))[Symbol.asyncIterator]();
    assert.deepEqual(await other.return(undefined), { done: true, value: undefined });
    assert.deepEqual(
      [unread.messages.length, await other.next()],
      [0, { done: true, value: undefined }],
    );
  });

  test('return, throw and disposal cancel a generation; other errors are passed on', async () => {
    /** @type {string[]} */
    const log = [];
    const make = () =>
      leavable(
        (async function* () {
          try {
            yield 'a';
            yield 'b';
          } finally {
            log.push('closed');
          }
        })(),
        () => log.push('cancelled'),
      );
    const thrown = make();
    assert.equal(thrown[Symbol.asyncIterator](), thrown);
    assert.equal((await thrown.next()).value, 'a');
    await assert.rejects(thrown.throw(new Error('mine')), { message: 'mine' });
    assert.deepEqual(log.splice(0), ['cancelled', 'closed']);
    const disposed = make();
    await disposed.next();
    await disposed[Symbol.asyncDispose]();
    assert.deepEqual(log.splice(0), ['cancelled', 'closed']);
    assert.deepEqual(await disposed.next(), { done: true, value: undefined });
    const failing = leavable(
      (async function* () {
        yield* /** @type {string[]} */ ([]);
        throw new Error('theirs');
      })(),
      () => {},
    );
    await assert.rejects(failing.next(), { message: 'theirs' });
  });
});

test('best-of: the mean logprob decides; held-back text adds text but no logprob', async () => {
  const { connection, readers } = open({}, 3);
  const found = readAll(readers);
  await turn();
  const token = (/** @type {number} */ id, /** @type {number} */ logprob) => ({
    token: id,
    logprob,
  });
  connection.waiters[0].onOutput({ texts: ['x', 'y'], tokens: [token(1, -2), token(2, -2)], done });
  connection.waiters[1].onOutput({
    texts: ['p', 'q', 'r', 's'],
    tokens: [token(0, -1.5), token(4, -1.5), token(5, -1.5), token(-1, 0)],
    done: { ...done, finish: 'length' },
  });
  connection.waiters[2].onOutput({
    texts: ['z'],
    tokens: [token(6, -2.5)],
    done: { ...done, finish: 'abort' },
  });
  assert.deepEqual(await found, [
    { text: 'pqrs', tokens: [0, 4, 5], logprob: -4.5, finishReason: 'length' },
    { text: 'xy', tokens: [1, 2], logprob: -4, finishReason: 'stop' },
    { text: 'z', tokens: [6], logprob: -2.5, finishReason: 'stop' },
  ]);
  const { connection: usual, readers: four } = open({}, 4);
  const failing = readAll(four);
  await turn();
  assert.equal(usual.waiters.length, 4);
  usual.give(1, [], { error: { code: 'NOMEM', message: 'x' } });
  await assert.rejects(failing, { code: 'NOMEM' });
  assert.deepEqual(usual.log.toSorted(), ['cancel 0', 'cancel 2', 'cancel 3', 'forget 1']);
});

/** An engine whose next token depends on the last one; token 0 is the end token. Counts its sessions. */
class MarkovEngine {
  /** @type {number[][]} */
  logprobs;
  open = 0;
  most = Number.POSITIVE_INFINITY;
  /** @type {any[]} */
  asked = [];

  /** @param {number} vocabulary @param {() => number} random */
  constructor(vocabulary, random) {
    this.logprobs = Array.from({ length: vocabulary }, () => {
      const weights = Array.from({ length: vocabulary }, () => random() + 0.01);
      const sum = weights.reduce((a, b) => a + b);
      return weights.map((weight) => Math.log(weight / sum));
    });
  }

  info = async () => ({ tokenizer: { ends: [0] } });
  detokenize = async (/** @type {number[]} */ tokens) => tokens.join('-');
  createSession = async () => this.#session([]);

  /** @param {number[]} held @returns {any} */
  #session(held) {
    this.open++;
    let isClosed = false;
    return {
      tokens: async () => held,
      truncate: async (/** @type {number} */ count) => void held.splice(count),
      fork: async () => this.#session([...held]),
      close: async () => {
        assert.ok(!isClosed, 'closed twice');
        isClosed = true;
        this.open--;
      },
      prompt: (/** @type {number[]} */ tokens, /** @type {any} */ options) => ({
        text: async () => {
          assert.ok(!isClosed);
          this.asked.push(options);
          if (held.length + tokens.length > this.most)
            throw Object.assign(new Error('full'), { code: 'PROMPT_TOO_LONG' });
          held.push(...tokens);
          const row = this.logprobs[held[held.length - 1]].map((logprob, token) => ({
            token,
            bytes: [token],
            logprob,
          }));
          row.sort((a, b) => b.logprob - a.logprob);
          held.push(row[0].token);
          options.onToken({ ...row[0], top: row.slice(0, options.logprobs) });
        },
      }),
    };
  }

  /** Beam search, straight from its definition. @param {number} first @param {{width: number, maxTokens: number, lengthPenalty: number}} options */
  best(first, { width, maxTokens, lengthPenalty }) {
    let live = [{ tokens: /** @type {number[]} */ ([]), logprob: 0 }];
    /** @type {{tokens: number[], logprob: number, finishReason: string}[]} */
    const ended = [];
    for (let step = 0; step < maxTokens && live.length > 0 && ended.length < width; step++) {
      const all = live.flatMap(({ tokens, logprob }) =>
        this.logprobs[tokens.at(-1) ?? first].map((one, token) => ({
          tokens: [...tokens, token],
          logprob: logprob + one,
        })),
      );
      const chosen = all.sort((a, b) => b.logprob - a.logprob).slice(0, width);
      for (const { tokens, logprob } of chosen.filter((one) => one.tokens.at(-1) === 0)) {
        ended.push({ tokens: tokens.slice(0, -1), logprob, finishReason: 'stop' });
      }
      live = chosen.filter((one) => one.tokens.at(-1) !== 0);
    }
    const cut =
      ended.length >= width ? [] : live.map((one) => ({ ...one, finishReason: 'length' }));
    const score = (/** @type {any} */ { tokens, logprob }) =>
      logprob / Math.max(1, tokens.length) ** lengthPenalty;
    return [...ended, ...cut].sort((a, b) => score(b) - score(a)).slice(0, width);
  }
}

describe('beam search', () => {
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 48271) >>> 0) % 2147483647;
    return state / 2147483647;
  };

  test('beam search finds the same outputs as its definition, and closes every session', async () => {
    for (let round = 0; round < 40; round++) {
      const engine = new MarkovEngine(3 + (round % 5), random);
      const options = {
        width: 1 + (round % 4),
        maxTokens: 1 + (round % 7),
        lengthPenalty: (round % 3) / 2,
      };
      const found = await beamSearch(any(engine), [1], options);
      const wanted = engine.best(1, options);
      assert.deepEqual(
        found.map(({ tokens, finishReason }) => ({ tokens, finishReason })),
        wanted.map(({ tokens, finishReason }) => ({ tokens, finishReason })),
      );
      for (const [i, { text, tokens, logprob }] of found.entries()) {
        assert.equal(text, tokens.join('-'));
        assert.ok(Math.abs(logprob - wanted[i].logprob) < 1e-9);
      }
      assert.equal(engine.open, 0);
    }
  });

  test('a full context ends the search, any other error is thrown; no session remains open', async () => {
    const engine = new MarkovEngine(6, random);
    engine.logprobs = engine.logprobs.map(() => [-9, -1, -2, -3, -4, -5]);
    engine.most = 3;
    const found = await beamSearch(any(engine), [1], { width: 2, maxTokens: 9 });
    assert.deepEqual(
      [found.map(({ tokens }) => tokens), engine.open],
      [
        [
          [1, 1, 1],
          [1, 1, 2],
        ],
        0,
      ],
    );
    engine.most = 0;
    await assert.rejects(beamSearch(any(engine), [1], { width: 2 }), { code: 'PROMPT_TOO_LONG' });
    assert.equal(engine.open, 0);
  });

  test('options have defaults and limits, and determine the requests', async () => {
    const engine = new MarkovEngine(30, random);
    assert.equal((await beamSearch(any(engine), [1], { maxTokens: 2 })).length, 4);
    const { logprobs, temperature, maxTokens, ignoreEnd, speculation, signal, priority } =
      engine.asked[0];
    assert.deepEqual(
      [logprobs, temperature, maxTokens, ignoreEnd, speculation, signal, priority],
      [8, 0, 1, true, false, null, 0],
    );
    await beamSearch(any(engine), [1], { width: 16, maxTokens: 1, priority: 3 });
    assert.deepEqual([engine.asked.at(-1).logprobs, engine.asked.at(-1).priority], [20, 3]);
    for (const wrong of [
      { width: 0 },
      { width: 17 },
      { width: 1.5 },
      { maxTokens: 0 },
      { maxTokens: -1 },
      { lengthPenalty: 'a' },
      { lengthPenalty: Number.NaN },
      { nope: 1 },
    ]) {
      await assert.rejects(beamSearch(any(engine), [1], any(wrong)), isArg);
    }
    engine.asked = [];
    engine.logprobs = engine.logprobs.map((row) => row.map((_, i) => (i === 0 ? -99 : -i)));
    assert.equal((await beamSearch(any(engine), [1], { width: 1 }))[0].tokens.length, 64);
  });
});

describe('calls of an engine', () => {
  /** @param {any} [answer] */
  const make = (answer) => {
    /** @type {any[]} */
    const asked = [];
    const connection = Object.assign(new Connection(), {
      call: async (
        /** @type {string} */ name,
        /** @type {any[]} */ args,
        /** @type {any} */ signal,
      ) => {
        asked.push([name, args, signal]);
        return answer;
      },
      close: async () => void asked.push('closed'),
      check: () => {},
    });
    return { asked, connection, engine: new Engine(any(connection), any({ name: 'm' })) };
  };

  test('pass given and default arguments', async () => {
    const { signal } = new AbortController();
    const { asked, engine } = make([5, 6, 7]);
    await engine.tokenize('a');
    await engine.tokenize('b', { addSpecial: false });
    await engine.tokenize('c', { parseSpecial: false, signal });
    await engine.tokenize('', { addSpecial: false, parseSpecial: false });
    assert.deepEqual(asked.splice(0), [
      ['tokenize', ['a', 3], undefined],
      ['tokenize', ['b', 2], undefined],
      ['tokenize', ['c', 1], signal],
      ['tokenize', ['', 0], undefined],
    ]);
    assert.equal(await engine.countTokens('a', { addSpecial: false }), 3);
    assert.deepEqual(asked.splice(0), [['tokenize', ['a', 2], undefined]]);
    await engine.detokenize([1, 2]);
    await engine.detokenize(Int32Array.of(3), { special: true, signal });
    assert.deepEqual(asked.splice(0), [
      ['detokenize', [[1, 2], false], undefined],
      ['detokenize', [[3], true], signal],
    ]);
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ];
    await engine.applyTemplate(messages);
    await engine.applyTemplate(messages, {
      addGenerationPrompt: false,
      variables: { x: 1 },
      signal,
    });
    // the engine joins the parts
    assert.deepEqual(asked.splice(0), [
      ['applyTemplate', [messages, { add_generation_prompt: true }], undefined],
      ['applyTemplate', [messages, { x: 1, add_generation_prompt: false }], signal],
    ]);
    await engine.inspect();
    await engine.metrics();
    await engine.metrics({ format: 'prometheus', reset: true, signal });
    assert.deepEqual(asked.splice(0), [
      ['inspect', [], undefined],
      ['metrics', ['json', false], undefined],
      ['metrics', ['prometheus', true], signal],
    ]);
    await engine.close();
    await engine[Symbol.asyncDispose]();
    assert.deepEqual(asked.splice(0), ['closed', 'closed']);
  });

  test('with arguments of the wrong type are rejected before they are sent', async () => {
    const { asked, engine } = make();
    const wrong = [
      () => engine.tokenize(any(5)),
      () => engine.tokenize('a', any({ special: true })),
      () => engine.detokenize(any('a')),
      () => engine.detokenize([1], any({ addSpecial: true })),
      () => engine.applyTemplate([]),
      () => engine.applyTemplate([{ content: 'a' }]),
      () => engine.applyTemplate([{ role: 'user', content: 5 }]),
      () => engine.applyTemplate([{ role: 'user' }], any({ nope: 1 })),
      () => engine.metrics(any({ map: true })),
      () => engine.kvStats(any({ reset: true })),
      () => engine.stats(any({ format: 'xml' })),
      () => engine.stats(any({ reset: true })),
      () => engine.createSession(any({ nope: 1 })),
    ];
    for (const one of wrong) await assert.rejects(one(), isArg);
    const image = [{ role: 'user', content: [{ type: 'video' }] }];
    await assert.rejects(engine.applyTemplate(image), { code: 'UNSUPPORTED' });
    assert.deepEqual(asked, []);
    assert.throws(() => engine.generate([]), isArg);
    assert.throws(() => engine.generateMany('a', { n: 0 }), isArg);
  });

  test('generate one or several completions for a prompt', async () => {
    const { connection, engine } = make();
    void engine.generate('a', { seed: 1, maxTokens: 3 }).text();
    void engine.generate([1], { seed: 1, onToken: () => {} }).text();
    await turn();
    const [first, second] = connection.messages;
    assert.deepEqual(
      [first.input, first.settings.maxTokens, first.wantsTokens],
      [{ prompt: 'a' }, 3, false],
    );
    assert.deepEqual([second.input, second.wantsTokens], [{ prompt: [1] }, true]);
    const many = engine.generateMany('b', { n: 3, seed: 1 });
    assert.deepEqual(
      [many.length, engine.generateMany('b').length, connection.waiters.length],
      [3, 2, 2],
    );
    const text = many[1].text();
    await turn();
    assert.equal(connection.waiters.length, 5);
    connection.give(3, ['x'], { done });
    assert.equal(await text, 'x');
  });
});

describe('chat completions', () => {
  const open = () => {
    const connection = Object.assign(new Connection(), { check: () => {} });
    return { connection, completions: new ChatCompletions(any(connection), 'm') };
  };
  const messages = /** @type {any} */ ([{ role: 'user', content: 'a' }]);
  const details = [
    {
      token: 4,
      text: 'x',
      bytes: [120],
      logprob: -1,
      top: [
        { token: 4, text: 'x', bytes: [120], logprob: -1 },
        { token: 5, text: 'y', bytes: [121], logprob: -2 },
        { token: 6, text: 'z', bytes: [122], logprob: -3 },
      ],
    },
    { token: -1, text: '', logprob: 0, top: [] },
  ];
  const shaped = {
    token: 'x',
    logprob: -1,
    bytes: [120],
    top_logprobs: [
      { token: 'x', logprob: -1, bytes: [120] },
      { token: 'y', logprob: -2, bytes: [121] },
    ],
  };
  const usage = {
    prompt_tokens: 30,
    completion_tokens: 9,
    total_tokens: 39,
    prompt_tokens_details: { cached_tokens: 10 },
  };

  test('two choices with logprobs are not streamed', async () => {
    const { connection, completions } = open();
    const before = Math.floor(Date.now() / 1000);
    const made = completions.create({ messages, n: 2, logprobs: true, top_logprobs: 2, seed: 1 });
    await turn();
    connection.waiters[0].onOutput({ texts: ['x', ' rest'], tokens: details, done });
    connection.waiters[1].onOutput({
      texts: ['q'],
      tokens: [undefined],
      done: { ...done, finish: 'length', completionTokens: 4 },
    });
    const { id, created, timings, ...answer } = await made;
    assert.match(id, /^chatcmpl-[a-z0-9]{8,}$/);
    assert.ok(created >= before && created <= Date.now() / 1000);
    assert.equal(timings.decodeTokensPerSecond, 500);
    assert.deepEqual(answer, {
      object: 'chat.completion',
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'x rest', refusal: null },
          logprobs: { content: [shaped], refusal: null },
          finish_reason: 'stop',
        },
        {
          index: 1,
          message: { role: 'assistant', content: 'q', refusal: null },
          logprobs: { content: [], refusal: null },
          finish_reason: 'length',
        },
      ],
      usage,
    });
    const [{ input, wantsTokens, settings }] = connection.messages;
    assert.deepEqual(
      [input, wantsTokens, settings.logprobs],
      [
        { messages, variables: {}, parseSpecial: false, prefix: undefined, tools: undefined },
        true,
        2,
      ],
    );
  });

  test('a stream has roles first, then pieces as they arrive, ends with timings, and usage last', async () => {
    const { connection, completions } = open();
    const stream = await completions.create({
      messages,
      n: 2,
      stream: true,
      stream_options: { include_usage: true },
      seed: 1,
    });
    assert.equal(connection.waiters.length, 2); // the requests have started
    /** @type {any[]} */
    const chunks = [];
    const read = (async () => {
      for await (const chunk of stream) chunks.push(chunk);
    })();
    await turn();
    connection.give(1, ['b']);
    await turn();
    connection.give(0, ['a']);
    await turn();
    connection.give(1, [], { done: { ...done, finish: 'length', completionTokens: 4 } });
    await turn();
    connection.give(0, [], { done });
    await read;
    assert.ok(
      chunks.every(
        ({ id, object, model }) =>
          id === chunks[0].id && object === 'chat.completion.chunk' && model === 'm',
      ),
    );
    const choice = (/** @type {number} */ index, /** @type {any} */ more) => ({
      index,
      delta: {},
      logprobs: null,
      finish_reason: null,
      ...more,
    });
    const role = { role: 'assistant', content: '' };
    assert.deepEqual(
      chunks.map(({ choices }) => choices[0]),
      [
        choice(0, { delta: role }),
        choice(1, { delta: role }),
        choice(1, { delta: { content: 'b' } }),
        choice(0, { delta: { content: 'a' } }),
        choice(1, { finish_reason: 'length' }),
        choice(0, { finish_reason: 'stop' }),
        undefined,
      ],
    );
    assert.deepEqual([chunks[6].choices, chunks[6].usage], [[], usage]);
    assert.deepEqual(
      [chunks[5].timings.decodeTokensPerSecond, chunks[3].timings],
      [500, undefined],
    );
    assert.throws(() => stream[Symbol.asyncIterator](), isArg);
    // the stream has ended, so no request is cancelled
    assert.deepEqual(connection.log.toSorted(), ['forget 0', 'forget 1']);
  });

  test('a stream with logprobs and without usage can be abandoned or aborted', async () => {
    const { connection, completions } = open();
    const stream = await completions.create({
      messages,
      stream: true,
      logprobs: true,
      top_logprobs: 2,
      seed: 1,
    });
    const chunks = stream[Symbol.asyncIterator]();
    await chunks.next();
    const piece = chunks.next();
    connection.waiters[0].onOutput({ texts: ['x', ' rest'], tokens: details });
    assert.deepEqual((await piece).value.choices[0].logprobs, { content: [shaped], refusal: null });
    assert.deepEqual((await chunks.next()).value.choices[0].logprobs, {
      content: [],
      refusal: null,
    });
    await chunks.return();
    assert.deepEqual(connection.log.splice(0), ['cancel 0']);
    const other = open();
    const aborted = await other.completions.create({ messages, stream: true, n: 2 });
    assert.equal(aborted.controller, aborted.controller);
    const texts = aborted[Symbol.asyncIterator]();
    await texts.next();
    aborted.controller.abort();
    await assert.rejects(
      (async () => {
        for (;;) if ((await texts.next()).done) return;
      })(),
      { name: 'AbortError' },
    );
    assert.deepEqual(other.connection.log, ['cancel 0', 'cancel 1']);
    const ended = open();
    const plain = await ended.completions.create({ messages, stream: true });
    ended.connection.give(0, ['a'], { done });
    /** @type {any[]} */
    const all = [];
    for await (const chunk of plain) all.push(chunk);
    assert.deepEqual([all.length, all.some(({ usage: one }) => one)], [3, false]);
  });

  test('an error in one choice cancels the others', async () => {
    const { connection, completions } = open();
    const made = completions.create({ messages, n: 3 });
    await turn();
    connection.give(1, [], { error: { code: 'NOMEM', message: 'x' } });
    await assert.rejects(made, { code: 'NOMEM' });
    assert.deepEqual(connection.log.toSorted(), ['cancel 0', 'cancel 2', 'forget 1']);
  });

  test('invalid fields are rejected', async () => {
    const { connection, completions } = open();
    const wrong = [
      null,
      5,
      { messages: [] },
      { messages, stream: 'true' },
      { messages, n: 0 },
      { messages, parseSpecial: 1 },
      { messages, tool_choice: [] },
      { messages, tool_choice: 'required' },
      { messages, parallel_tool_calls: 1 },
      { messages, top_logprobs: 2 },
      { messages, maxTokens: 5 },
      { messages, signal: 5 },
    ];
    for (const body of wrong) await assert.rejects(completions.create(any(body)), isArg);
    for (const name of [
      'functions',
      'function_call',
      'audio',
      'modalities',
      'web_search_options',
    ]) {
      await assert.rejects(completions.create(any({ messages, [name]: [] })), {
        code: 'UNSUPPORTED',
      });
    }
    await assert.rejects(completions.create(any({ messages, response_format: { type: 'xml' } })), {
      code: 'UNSUPPORTED',
    });
    await assert.rejects(completions.create({ messages }, any({ nope: 1 })), isArg);
    assert.equal(connection.messages.length, 0);
    const fine = {
      tools: null,
      model: 'x',
      user: 'u',
      store: true,
      response_format: { type: 'text' },
      prompt_cache_key: 'k',
      stream: null,
      n: null,
      logprobs: false,
    };
    void completions
      .create(
        any({ messages, ...fine, max_completion_tokens: 5, max_tokens: 6 }),
        any({ headers: {}, maxRetries: 2 }),
      )
      .catch(() => {});
    void completions
      .create(any({ messages, max_tokens: 6, parseSpecial: true, chat_template_kwargs: { a: 1 } }))
      .catch(() => {});
    await turn();
    const [first, second] = connection.messages;
    assert.deepEqual(
      [first.settings.maxTokens, first.wantsTokens, first.settings.logprob],
      [5, false, false],
    );
    assert.deepEqual(
      [second.settings.maxTokens, second.input.parseSpecial, second.input.variables],
      [6, true, { a: 1 }],
    );
  });
});

describe('sessions', () => {
  /** @param {Record<string, any>} [answers] by the names of calls; a function is called */
  const open = async (answers = {}) => {
    /** @type {any[]} */
    const asked = [];
    const connection = Object.assign(new Connection(), {
      isEnded: false,
      check: () => {},
      call: async (/** @type {string} */ name, /** @type {any[]} */ args) => {
        asked.push([name, ...args]);
        const answer = { createSession: 7, forkSession: 8, ...answers }[name];
        return typeof answer === 'function' ? any(answer)() : answer;
      },
    });
    const session = await Session.create(any(connection), {});
    asked.splice(0);
    return { asked, connection, session };
  };

  test('prompts and appended text include the session’s number', async () => {
    const { connection, session } = await open();
    const text = session.prompt('a', { seed: 1 }).text();
    await turn();
    connection.give(0, ['x'], { done });
    assert.equal(await text, 'x');
    const appended = session.append([1, 2]);
    await turn();
    connection.give(1, [], { done });
    assert.deepEqual(await appended, { tokens: 30, cachedTokens: 10 });
    const [first, second] = connection.messages;
    assert.deepEqual(
      [first.input.prompt, first.settings.session, first.settings.prefillOnly],
      ['a', 7, undefined],
    );
    assert.deepEqual(
      [
        second.input.prompt,
        second.settings.session,
        second.settings.prefillOnly,
        second.settings.drop,
        second.wantsTokens,
      ],
      [[1, 2], 7, true, undefined, false],
    );
    void session.prompt([], { seed: 1, onToken: () => {} }).text();
    await turn();
    assert.deepEqual(
      [connection.messages[2].input.prompt, connection.messages[2].wantsTokens],
      ['', true],
    );
    assert.throws(() => session.prompt('a', { salt: 'x' }), isArg);
    await assert.rejects(session.append('a', any({ seed: 1 })), isArg);
    await assert.rejects(session.append(any(5)), isArg);
  });

  test('fork, truncate, drop and tokens are sent to the engine', async () => {
    const { asked, connection, session } = await open({ sessionTokens: [1, 2] });
    const fork = await session.fork();
    assert.deepEqual(await fork.tokens(), [1, 2]);
    await session.truncate(3);
    await session.truncate(0);
    await session.drop(5, 5);
    await session.drop(6, 5);
    assert.deepEqual(asked.splice(0), [
      ['forkSession', 7],
      ['sessionTokens', 8],
      ['truncateSession', 7, 3],
      ['truncateSession', 7, 0],
      ['dropFromSession', 7, 5, 5],
      ['dropFromSession', 7, 6, 5],
    ]);
    const dropped = session.drop(5, 6);
    await turn();
    connection.give(0, [], { done });
    await dropped;
    assert.deepEqual(
      [connection.messages[0].settings.drop, connection.messages[0].input.prompt, asked],
      [[5, 6], '', []],
    );
    for (const wrong of [-1, 1.5, 'a']) {
      await assert.rejects(session.truncate(any(wrong)), isArg);
      await assert.rejects(session.drop(any(wrong), 3), isArg);
      await assert.rejects(session.drop(0, any(wrong)), isArg);
    }
  });

  test('are closed once, again after an error, and not after the engine has ended', async () => {
    let error = /** @type {any} */ (new WickError('IO', 'x'));
    const closing = () => {
      if (error) throw error;
    };
    const { asked, session } = await open({ closeSession: closing });
    await assert.rejects(session.close(), { code: 'IO' });
    error = undefined;
    await Promise.all([session.close(), session.close()]);
    await session[Symbol.asyncDispose]();
    assert.deepEqual(asked, [
      ['closeSession', 7],
      ['closeSession', 7],
    ]);
    const gone = await open({
      closeSession: () => Promise.reject(new WickError('LEADER_GONE', 'x')),
    });
    await gone.session.close();
    const ended = await open({ closeSession: () => assert.fail('the engine has ended') });
    ended.connection.isEnded = true;
    await ended.session.close();
    assert.deepEqual(ended.asked, []);
    const other = await open({
      closeSession: () => {
        other.connection.isEnded = true;
        throw new WickError('IO', 'closed meanwhile');
      },
    });
    await other.session.close();
    assert.deepEqual(other.asked.length, 1);
  });
});
