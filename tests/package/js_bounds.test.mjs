// Unit tests of the code that reads options: each default, each bound (the last accepted and the first rejected
// value), and every form in which an option may be passed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkNames } from '../../js/base/option_names.js';
import { cacheOf, keptSource, namedSource } from '../../js/page/caching_source.js';
import { ChatCompletions } from '../../js/page/chat_completions.js';
import {
  checkEngineNames,
  checkThreads,
  configOf,
  sharedNameOf,
} from '../../js/page/engine_options.js';
import { draftOf, sourceOf } from '../../js/page/model_options.js';
import { checkCompletions, checkCount } from '../../js/page/option_checks.js';
import { promptOf, settingsOf, tokensOf } from '../../js/page/request_options.js';

const U32_MAX = 4294967295;
const refused = { name: 'WickError', code: 'ARG' };

/**
 * @param {string} name
 * @param {(options: any) => any} read
 * @param {{taken: unknown[], not: unknown[], as?: string}} values
 */
function checkBounds(name, read, { taken, not, as = name }) {
  for (const value of taken) assert.equal(read({ [name]: value })[as], value, `${name}: ${value}`);
  for (const value of [...not, Number.NaN, '1', true]) {
    const words = new RegExp(`^${name} must be `);
    assert.throws(
      () => read({ [name]: value }),
      { ...refused, message: words },
      `${name}: ${value}`,
    );
  }
}

const plain = (/** @type {any} */ options) => settingsOf({ seed: 1, ...options });

describe('options of a request', () => {
  test('defaults', () => {
    const { seed, ...settings } = settingsOf({});
    assert.deepEqual(settings, {
      ...{ temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, repeatPenalty: 1 },
      ...{ frequencyPenalty: 0, presencePenalty: 0, penaltyLast: 64, typicalP: 1, topNSigma: -1 },
      ...{ xtcProbability: 0, xtcThreshold: 0.1, dynatempRange: 0, dynatempExponent: 1 },
      ...{ dryMultiplier: 0, dryBase: 1.75, dryAllowedLength: 2, dryPenaltyLast: -1, mirostat: 0 },
      ...{ mirostatTau: 5, mirostatEta: 0.1, adaptiveTarget: -1, adaptiveDecay: 0.9 },
      ...{ samplers: undefined, drySequenceBreakers: undefined },
      ...{ maxTokens: 0, logitBias: [], logprob: false },
      ...{
        logprobs: 0,
        stop: [],
        healing: false,
        thinkingBudgetTokens: -1,
        asksHost: false,
        ignoreEnd: false,
        printSpecial: false,
        priority: 0,
      },
      ...{ speculation: true, salt: '', forced: [], grammar: undefined },
      ...{ logprobsAfter: false, adapters: undefined },
    });
    assert.ok(seed >= 0n && seed < 1n << 64n);
    assert.notEqual(settingsOf({}).seed, seed);
    const nulls = Object.fromEntries(Object.keys(settings).map((name) => [name, null]));
    const { logprob, forced, grammar, asksHost, ...names } = nulls;
    assert.deepEqual({ ...settingsOf(/** @type {any} */ (names)), seed }, { ...settings, seed });
  });

  test('bounds', () => {
    checkBounds('maxTokens', plain, { taken: [1, U32_MAX], not: [0, -2, 1.5, U32_MAX + 1] });
    checkBounds('temperature', plain, { taken: [0, 1e9], not: [-1e-9] });
    checkBounds('topK', plain, { taken: [-1, 0, U32_MAX], not: [-2, 0.5, U32_MAX + 1] });
    checkBounds('penaltyLast', plain, { taken: [-1, 0, 2 ** 20], not: [-2, 0.5, 2 ** 20 + 1] });
    for (const name of ['topP', 'minP']) {
      checkBounds(name, plain, { taken: [0, 0.5, 1], not: [-0.01, 1.01] });
    }
    checkBounds('repeatPenalty', plain, { taken: [1e-40, 5], not: [0, -0.01] });
    for (const name of ['frequencyPenalty', 'presencePenalty']) {
      checkBounds(name, plain, { taken: [-100, 0.5, 100], not: [-100.1, 100.1] });
    }
    checkBounds('logprobs', plain, { taken: [0, 20], not: [-1, 21, 0.5] });
    checkBounds('thinkingBudgetTokens', plain, { taken: [-1, 0, U32_MAX], not: [-2, 0.5] });
    checkBounds('priority', plain, { taken: [-100, 100], not: [-101, 101, 0.5] });
  });

  test('other formats', () => {
    assert.equal(plain({ logprobs: 0 }).logprob, true);
    assert.equal(plain({ seed: -2 }).seed, (1n << 64n) - 2n);
    assert.equal(plain({ seed: (1n << 64n) + 5n }).seed, 5n);
    for (const seed of [2 ** 53, 0.5, '1'])
      assert.throws(() => plain({ seed }), /^WickError: seed /);
    assert.deepEqual(plain({ stop: 'a' }).stop, ['a']);
    assert.deepEqual(plain({ stop: ['a', 'b'] }).stop, ['a', 'b']);
    for (const stop of [5, ['a', 5], {}]) assert.throws(() => plain({ stop }), /^WickError: stop/);
    assert.deepEqual(plain({ logitBias: { 5: -1 } }).logitBias, [[5, -1]]);
    const map = new Map([[U32_MAX, Number.NEGATIVE_INFINITY]]);
    assert.deepEqual(plain({ logitBias: map }).logitBias, [[U32_MAX, Number.NEGATIVE_INFINITY]]);
    for (const logitBias of [5, { a: 1 }, { 1: Number.NaN }, { 1: '1' }, new Map([[-1, 1]])]) {
      assert.throws(() => plain({ logitBias }), refused);
    }
    assert.throws(() => plain({ logitBias: new Map([[U32_MAX + 1, 1]]) }), refused);
    for (const speculation of [true, false, 'always']) {
      assert.equal(plain({ speculation }).speculation, speculation);
    }
    assert.throws(() => plain({ speculation: 'never' }), /speculation must be/);
    const flags = plain({ healing: true, ignoreEnd: true, printSpecial: true });
    assert.deepEqual([flags.healing, flags.ignoreEnd, flags.printSpecial], [true, true, true]);
    assert.equal(plain({ salt: 'a' }).salt, 'a');
    for (const salt of ['', 5, '\ud800']) assert.throws(() => plain({ salt }), /^WickError: salt/);
    assert.deepEqual(plain({ forced: [1, 2] }).forced, [1, 2]);
  });

  test('tokens and prompts', () => {
    const most = [2 ** 31 - 1, -(2 ** 31)];
    assert.deepEqual(tokensOf(most), most);
    assert.deepEqual(tokensOf(new Int32Array([7])), [7]);
    for (const tokens of [[2 ** 31], [-(2 ** 31) - 1], [0.5], ['1'], 'a', 5, null, {}]) {
      assert.throws(() => tokensOf(tokens), { ...refused, message: /^The tokens must be/ });
    }
    assert.equal(promptOf(''), '');
    assert.deepEqual(promptOf([1]), [1]);
    assert.equal(promptOf([], true), '');
    assert.throws(() => promptOf([]), /The prompt must be/);
    for (const [prompt, mayBeEmpty] of [
      [[], false],
      [5, true],
      [null, true],
      [[0.5], true],
    ]) {
      assert.throws(() => promptOf(prompt, Boolean(mayBeEmpty)), /The prompt must be/);
    }
  });

  test('counts', () => {
    const count = (/** @type {any} */ { n }) => ({ n: checkCount('n', n) });
    checkBounds('n', count, { taken: [0, U32_MAX], not: [-1, U32_MAX + 1, 0.5] });
    const completions = (/** @type {any} */ { n }) => ({ n: checkCompletions('n', n) });
    checkBounds('n', completions, { taken: [1, 16], not: [0, 17, 1.5] });
    const threads = (/** @type {any} */ o) => ({ threads: checkThreads(o.threads) });
    checkBounds('threads', threads, { taken: [1, 64], not: [0, 65, 1.5] });
  });
});

describe('options of an engine', () => {
  const config = (/** @type {any} */ options) => /** @type {any} */ (configOf(options, 3));

  test('defaults', () => {
    assert.deepEqual(config({}), {
      ...{ threads: 3, contextSize: 0, batchSize: 0, kType: 'f16', vType: 'f16', kvTokens: 0 },
      ...{ queueLimit: undefined, noPrefixCache: false, swap: 0, memoryLimit: 0 },
      noPredictor: false,
      preTokenizer: undefined,
      ...{ directoryOnly: false, metrics: false, timerGrainUs: 1, chooseThreads: true },
      ...{ tables: 'auto', grammarMemory: 64 * 2 ** 20, grammarSteps: 30e6 },
      ...{ maxTiles: 0, maxImageTokens: 0, mediaLikeLlamaCpp: false },
    });
    assert.equal(config({ threads: 3 }).chooseThreads, false);
  });

  test('bounds', () => {
    for (const name of ['contextSize', 'kvTokens']) {
      checkBounds(name, config, { taken: [0, U32_MAX], not: [-1, U32_MAX + 1, 0.5] });
    }
    checkBounds('batchSize', config, { taken: [0, 512], not: [-1, 513, 0.5] });
    for (const name of ['maxTiles', 'maxImageTokens']) {
      checkBounds(name, config, { taken: [1, U32_MAX], not: [0, U32_MAX + 1, 1.5] });
    }
    checkBounds('queueLimit', config, { taken: [1, U32_MAX], not: [0, U32_MAX + 1, 1.5] });
    checkBounds('memoryLimit', config, {
      taken: [0, Number.MAX_SAFE_INTEGER],
      not: [-1, Number.MAX_SAFE_INTEGER + 1, 0.5],
    });
  });

  test('other formats', () => {
    const types = (/** @type {any} */ kvType) => {
      const { kType, vType } = config({ kvType });
      return [kType, vType];
    };
    for (const type of ['f32', 'f16', 'q8', 'q4']) assert.deepEqual(types(type), [type, type]);
    assert.deepEqual(types({ k: 'q8', v: 'q4' }), ['q8', 'q4']);
    assert.deepEqual(types({ v: 'q4' }), ['f16', 'q4']);
    assert.deepEqual(types({ k: 'q4' }), ['q4', 'f16']);
    assert.deepEqual(types(null), ['f16', 'f16']);
    assert.throws(() => types('q5'), /^WickError: kvType must be/);
    assert.throws(() => types({ k: 'q5' }), /^WickError: kvType\.k must be/);
    assert.throws(() => types({ v: 'q5' }), /^WickError: kvType\.v must be/);
    assert.throws(() => types({ K: 'q8' }), /kvType: unknown member K, only k and v are supported/);
    const swap = (/** @type {any} */ given) => {
      const { swap: kind, swapFolder } = config({ swap: given });
      return [kind, swapFolder];
    };
    assert.deepEqual([true, false, null, 'a'].map(swap), [
      ...[
        [1, undefined],
        [0, undefined],
        [0, undefined],
        [1, 'a'],
      ],
    ]);
    assert.deepEqual(swap({ folder: 'a', always: true }), [2, 'a']);
    assert.deepEqual(swap({}), [1, undefined]);
    assert.throws(() => swap({ folder: 5 }), /swap\.folder must be a path, not 5/);
    const flags = config({
      ...{ directoryOnly: true, metrics: true, prefixCache: false, predictor: false },
    });
    assert.deepEqual([flags.directoryOnly, flags.metrics, flags.noPrefixCache], [true, true, true]);
    assert.equal(flags.noPredictor, true);
  });

  test('the name of a shared engine includes exactly the options that affect its output', () => {
    const name = (/** @type {any} */ more = {}, /** @type {any} */ of = {}, urls = ['a']) =>
      sharedNameOf({ shared: 's', ...more }, config(of), /** @type {any} */ ({ urls }));
    assert.match(String(name()), /^wick-llm \d+\.\d+\.\d+ \["s",\["a"\],\{/);
    assert.equal(name({}, { threads: 1 }), name());
    for (const other of [
      ...[name({ shared: 't' }), name({ chatTemplate: 'x' }), name({}, {}, ['b'])],
      ...[name({}, { contextSize: 5 }), name({}, { kvType: 'q8' }), name({}, { kvTokens: 5 })],
      ...[name({ mmproj: true }), name({ mmproj: 'b' }), name({ mmproj: new Blob(['c']) })],
    ]) {
      assert.notEqual(other, name());
    }
    const kept = (/** @type {any} */ blob) =>
      sharedNameOf({ shared: 's', blob }, config({}), /** @type {any} */ ({ kind: 'page' }));
    const file = (/** @type {string} */ text, label = 'm') => new File([text], label);
    assert.equal(kept(file('ab')), kept(file('cd')));
    assert.notEqual(kept(file('ab')), kept(file('abc')));
    assert.notEqual(kept(file('ab')), kept(file('ab', 'n')));
    for (const shared of [undefined, null]) assert.equal(name({ shared }), undefined);
    for (const shared of ['', 5]) assert.throws(() => name({ shared }), /shared must be a name/);
  });

  test('the clock resolution depends on the host', (t) => {
    const { process: node } = globalThis;
    assert.equal(config({}).timerGrainUs, 1);
    t.after(() => {
      globalThis.process = node;
      Reflect.deleteProperty(globalThis, 'crossOriginIsolated');
    });
    for (const page of [undefined, {}, { versions: {} }]) {
      for (const [isIsolated, us] of /** @type {[any, number][]} */ ([
        [true, 5],
        [false, 100],
        [undefined, 100],
      ])) {
        Object.defineProperty(globalThis, 'crossOriginIsolated', {
          value: isIsolated,
          configurable: true,
        });
        globalThis.process = /** @type {any} */ (page);
        const { timerGrainUs } = config({});
        globalThis.process = node;
        assert.equal(timerGrainUs, us);
      }
    }
  });

  test('cache is true, false or "only"', () => {
    for (const cache of [undefined, true, false, /** @type {const} */ ('only')])
      assert.equal(cacheOf({ cache }), cache);
    assert.equal(cacheOf({}), undefined);
    assert.equal(cacheOf({ cache: null }), undefined);
    for (const cache of ['', 'yes', 'ONLY', 0, 1, {}, [], () => {}]) {
      assert.throws(() => cacheOf({ cache }), {
        ...refused,
        message: /^cache must be true, false or 'only', not /,
      });
    }
  });

  test('a model given by name cannot have another source', () => {
    const { description, source, download } = namedSource({ model: 'a/b' });
    assert.deepEqual(description, { kind: 'page', files: 0, canSeek: false });
    assert.equal(source, undefined);
    const { urls, model } = /** @type {any} */ (download);
    assert.deepEqual([urls, model], [[], 'a/b']);
    for (const name of ['url', 'file', 'blob', 'bytes', 'stream']) {
      const words = { ...refused, message: new RegExp(`either model or ${name}, but both`) };
      assert.throws(() => namedSource(/** @type {any} */ ({ model: 'a/b', [name]: 'x' })), words);
      for (const none of [undefined, null])
        namedSource(/** @type {any} */ ({ model: 'a/b', [name]: none }));
    }
    for (const wrong of [{ model: 5 }, { model: 'a/b', hub: { endpoints: 'x' } }]) {
      assert.throws(() => namedSource(/** @type {any} */ (wrong)), refused);
    }
    namedSource({ model: 'a/b', hub: { endpoint: 'http://a', token: 't' } });
  });

  test('files that are not cached are read from their source', async () => {
    const from = sourceOf({ url: 'http://a/b' });
    const kept = (/** @type {any} */ options, given = from) =>
      keptSource(options, given, { onRetry: () => {}, onWaiting: () => {} });
    assert.equal(await kept({}), from, 'a host without pages stores nothing by default');
    assert.equal(await kept({ cache: false }), from);
    for (const other of [sourceOf({ file: 'a' }), sourceOf({ url: ['http://a/b', 'blob:c'] })]) {
      assert.equal(await kept({ cache: true }, other), other, 'local sources are not stored');
    }
  });

  test('options of a download', () => {
    const how = (/** @type {any} */ options) => sourceOf({ url: 'http://a/b', ...options });
    const { description } = how({});
    assert.deepEqual(description, {
      ...{ kind: 'url', urls: ['http://a/b'], headers: {}, retries: 5, stallMs: 30_000 },
    });
    const plain = (/** @type {any} */ options) => /** @type {any} */ (how(options).description);
    checkBounds('retries', plain, { taken: [0, 1e6], not: [-1, 0.5] });
    checkBounds('stallMs', plain, { taken: [0, 2 ** 31 - 1], not: [-1, 2 ** 31, 0.5] });
    const headers = (/** @type {any} */ given) => plain({ headers: given }).headers;
    for (const given of [
      { A: 'b' },
      [['A', 'b']],
      new Headers({ A: 'b' }),
      new Map([['A', 'b']]),
    ]) {
      assert.deepEqual(headers(given), { a: 'b' });
    }
    for (const [given, words] of /** @type {[unknown, RegExp][]} */ ([
      ['A: b', /^headers must be an object of strings, not the string "A: b"$/],
      [5, /^headers must be an object of strings, not 5$/],
      [{ A: 5 }, /^headers: A must be a string, not 5$/],
      [{ A: undefined }, /^headers: A must be a string, not undefined$/],
      [{ 'a b': 'c' }, /^headers: "a b" cannot be sent: /],
      [{ a: 'b\nc' }, /^headers: "a" cannot be sent: /],
      [[['a']], /^headers: a must be a string, not undefined$/],
      [[['a', 'b', 'c']], /^headers must be .* pairs of strings$/],
      [[5], /^headers must be .* pairs of strings$/],
    ])) {
      assert.throws(() => headers(given), { ...refused, message: words });
    }
    for (const options of [{ retries: -1 }, { headers: { 'a b': 'c' } }, { stallMs: -1 }]) {
      const given = { file: 'a', ...options };
      assert.throws(() => checkEngineNames(given), refused, 'checked for every kind of source');
    }
  });

  test('a path passed as url is reported as not a URL', () => {
    const hint = /is not a URL: pass a path on disk as file/;
    for (const url of ['/srv/x/model.gguf', 'C:\\x.gguf', 'c:/x.gguf', './x.gguf', '~/x.gguf']) {
      assert.throws(() => sourceOf({ url }), { ...refused, message: hint }, url);
    }
    assert.throws(() => sourceOf({ url: ['/x'] }), { ...refused, message: /file: '\/x'/ });
    assert.throws(() => sourceOf({ url: 'x y' }), { ...refused, message: /is not a URL$/ });
    const urls = ['http://a/C:/x.gguf'];
    const { description } = sourceOf({ url: urls });
    assert.deepEqual('urls' in description && description.urls, urls);
  });

  test('a number in a string, or an inexact number, is rejected', () => {
    assert.throws(() => checkThreads('2'), { message: /number from 1 to 64, not the string "2"$/ });
    assert.throws(() => checkThreads(Symbol('x')), { message: /not Symbol\(x\)$/ });
    const seed = (/** @type {any} */ one) => plain({ seed: one }).seed;
    assert.equal(seed(2 ** 53 - 1), 2n ** 53n - 1n);
    assert.throws(() => seed(2 ** 53), {
      ...refused,
      message: /^seed 9007199254740992 .* bigint$/,
    });
    assert.throws(() => seed('1'), { ...refused, message: /whole number, not the string "1"$/ });
    assert.throws(() => seed(0.5), { ...refused, message: /whole number, not 0\.5$/ });
    assert.equal(seed(2n ** 53n), 2n ** 53n);
  });

  test('errors about values of the wrong type show the value', async () => {
    const chat = new ChatCompletions(/** @type {any} */ ({}), 'm');
    const body = { messages: [{ role: 'user', content: 'a' }] };
    for (const [stream, words] of [
      ['true', /^stream must be true or false, not the string "true"$/],
      [1, /^stream must be true or false, not 1$/],
      [Symbol('x'), /^stream must be true or false, not Symbol\(x\)$/],
    ]) {
      const given = /** @type {any} */ ({ ...body, stream });
      await assert.rejects(chat.create(given), { ...refused, message: words });
    }
    const own = (/** @type {any} */ options) => () => plain(options);
    assert.throws(own({ speculation: 'true' }), /'always', not the string "true"$/);
    assert.throws(own({ speculation: Symbol('x') }), { ...refused, message: /not Symbol\(x\)$/ });
    assert.throws(own({ logitBias: { 1: '2' } }), /must be a number, not the string "2"$/);
    assert.throws(own({ temperature: -1 }), /must be a number of at least 0, not -1$/);
    assert.throws(own({ temperature: 1e308 }), /number from 0 to 3\.4e\+38, not 1e\+308$/);
    assert.throws(() => config({ kvType: 'F16' }), /or 'q4', not the string "F16"$/);
    assert.throws(() => config({ kvType: Symbol('x') }), refused);
  });

  test('option names from other engines produce a suggestion', () => {
    const [engine, request] = [
      ['contextSize', 'threads', 'batchSize', 'file', 'url', 'signal', 'onProgress'],
      ['max_tokens', 'signal', 'stop'],
    ];
    const pairs = /** @type {const} */ ([
      ...[
        ['n_ctx', 'contextSize'],
        ['max_seq_len', 'contextSize'],
        ['n_threads', 'threads'],
      ],
      ...[
        ['n_batch', 'batchSize'],
        ['modelPath', 'file'],
        ['model', 'url'],
      ],
      ...[
        ['progress_callback', 'onProgress'],
        ['initProgressCallback', 'onProgress'],
      ],
    ]);
    const check = (/** @type {any} */ name, /** @type {any} */ names) => () =>
      checkNames(/** @type {any} */ ({ [name]: 1 }), names);
    for (const [name, own] of pairs) {
      assert.throws(check(name, engine), {
        message: `${name} is not an option; did you mean ${own}?`,
      });
    }
    for (const name of ['n_predict', 'maxOutputTokens', 'max_new_tokens']) {
      assert.throws(check(name, request), /did you mean max_tokens\?/);
      assert.throws(check(name, ['maxTokens']), /did you mean maxTokens\?/);
      assert.throws(check(name, ['seed']), { message: `${name} is not an option` });
    }
    assert.throws(check('stopSequences', request), /did you mean stop\?/);
    assert.throws(check('abortSignal', request), /did you mean signal\?/);
  });

  test('exactly one source is required', () => {
    const source = (/** @type {any} */ options) => sourceOf(options);
    assert.throws(() => source({}), /one of url, file, blob, bytes and stream: none was/);
    assert.throws(() => source({ url: 'a', blob: 'b' }), /url and blob were given/);
    assert.throws(() => source({ file: 5 }), /file must be a Blob, a File or a path, or an array/);
    assert.throws(() => source({ blob: 'a' }), /blob must be a Blob or a File, or an array/);
    assert.throws(() => source({ file: ['a', new Blob([])] }), /file must be/);
    assert.throws(() => source({ stream: {} }), /stream must be a ReadableStream or an async/);
    assert.throws(() => source({ stream: { locked: true } }), /stream is locked/);
    assert.throws(() => source({ bytes: [1] }), /bytes must be an ArrayBuffer or a view/);
    assert.throws(() => source({ bytes: new Uint8Array(2), blob: new Blob([]) }), /blob and bytes/);
    for (const response of [new Response(null, { status: 200 }), Response.error()]) {
      assert.throws(() => source({ stream: response }), /no body|answered 0/);
    }
    const missing = new Response('', { status: 404 });
    assert.throws(() => source({ stream: missing }), { code: 'HTTP', cause: { status: 404 } });
    async function* bytes() {}
    assert.equal(source({ stream: bytes() }).description.kind, 'page');
    assert.throws(() => draftOf(/** @type {any} */ (null)), /draft must be an object/);
    assert.throws(() => draftOf(/** @type {any} */ ({ fil: 'a' })), /did you mean file\?/);
    assert.throws(() => draftOf(/** @type {any} */ ({ stream: bytes() })), /draft must be a url/);
  });
});
