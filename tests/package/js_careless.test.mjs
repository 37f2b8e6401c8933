// Misuse of the npm package: callbacks that throw, streams that are abandoned before they are read,
// values that cannot be cloned, numbers that would be truncated. Each is an error of one call only:
// the engine, its other requests and its pages are not affected.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { createEngine, hasCode, modelPath, openEngine, waitUntil } from '../support/package.mjs';

const greedy = { temperature: 0, ignoreEnd: true };
/** @type {import('../../js/index.js').ChatMessage[]} */
const question = [{ role: 'user', content: 'Tell me a story.' }];

/** @typedef {import('../../js/index.js').Engine} Engine */

/** @param {Engine} engine */
async function assertAtRest(engine) {
  await waitUntil(async () => {
    const { running, waiting } = (await engine.stats()).requests;
    return running + waiting === 0;
  }, 'the requests to end');
  const { all, free, cached } = (await engine.kvStats()).pages;
  assert.equal(free + cached, all, 'every page was returned');
}

/** @param {Engine} engine whose requests were all abandoned before their end */
async function assertLeft(engine) {
  await assertAtRest(engine);
  const { stopped, length } = (await engine.stats()).requests;
  assert.equal(stopped + length, 0);
}

/** @returns {never} */
function fail() {
  throw new Error('mine');
}

describe('callbacks that throw', () => {
  test('an exception in onToken or onPrefill fails only its own request', async (t) => {
    const engine = await openEngine(t);
    const options = { ...greedy, maxTokens: 40 };
    const wanted = await engine.generate('Hello', options).text();
    const [onToken, onPrefill, other] = await Promise.allSettled([
      engine.generate('Once', { ...options, onToken: fail }).text(),
      engine.generate('Twice', { ...options, onPrefill: fail }).text(),
      engine.generate('Hello', options).text(),
    ]);
    for (const one of [onToken, onPrefill]) {
      assert.equal(one.status === 'rejected' && one.reason.message, 'mine');
    }
    assert.equal(other.status === 'fulfilled' && other.value, wanted);
    await assertAtRest(engine);
  });

  test('an exception in onProgress ends loading', async () => {
    await assert.rejects(createEngine({ file: modelPath, onProgress: fail }), /^Error: mine$/);
  });
});

describe('streams that are abandoned', () => {
  /** @type {Record<string, (engine: Engine) => Promise<AsyncIterator<unknown>>>} */
  const streams = {
    'a chat stream': async (engine) => {
      // no end token, and longer than the buffer, so that it cannot end on its own
      const [end] = await engine.tokenize('<|im_end|>');
      const asked = { messages: question, max_tokens: 400, logit_bias: { [end]: -100 } };
      const stream = /** @type {const} */ (true);
      return (await engine.chat.completions.create({ ...asked, stream }))[Symbol.asyncIterator]();
    },
    'one of two completions': async (engine) => {
      const options = { ...greedy, n: 2, maxTokens: 400 };
      const [read, left] = engine.generateMany('Once upon a time', options);
      const pieces = read[Symbol.asyncIterator]();
      await pieces.next();
      await pieces.return();
      return left[Symbol.asyncIterator]();
    },
  };
  for (const [name, open] of Object.entries(streams)) {
    test(`${name}: return() and throw() before the first piece is read`, async (t) => {
      const engine = await openEngine(t);
      assert.deepEqual(await (await open(engine)).return?.(7), { done: true, value: 7 });
      await assertLeft(engine);
      await assert.rejects(async () => (await open(engine)).throw?.(new Error('mine')), /mine/);
      await assertLeft(engine);
    });
  }

  test('while waiting for the next piece: the request and the wait end immediately', async (t) => {
    const engine = await openEngine(t);
    const long = Array.from({ length: 3000 }, (_, index) => 300 + (index % 50));
    const pieces = engine.generate(long, { ...greedy, maxTokens: 9 })[Symbol.asyncIterator]();
    const next = pieces.next();
    await pieces.return();
    assert.deepEqual(await next, { done: true, value: undefined });
    await assertLeft(engine);
    assert.equal((await engine.stats()).tokens.out, 0, 'the request was cancelled during prefill');
  });
});

describe('values that cannot be cloned', () => {
  test('misuse is reported with typed errors and blocks no caller', async (t) => {
    const engine = await openEngine(t);
    const create = (/** @type {object} */ body) =>
      engine.chat.completions.create(/** @type {any} */ ({ messages: question, ...body }));
    const kwargs = { chat_template_kwargs: { now: () => 1 } };
    await assert.rejects(create(kwargs), hasCode('ARG'));
    await assert.rejects(create({ ...kwargs, n: 3 }), hasCode('ARG'));
    for (const stream of ['true', 1, {}]) await assert.rejects(create({ stream }), hasCode('ARG'));
    await assert.rejects(engine.applyTemplate(question, { variables: kwargs }), hasCode('ARG'));
    await assertAtRest(engine);
  });

  test('numbers that are not token ids are rejected', async (t) => {
    const engine = await openEngine(t);
    for (const token of [2 ** 32 + 5, 2 ** 31, -(2 ** 31) - 1]) {
      await assert.rejects(async () => engine.detokenize([token]), hasCode('ARG'));
      assert.throws(() => engine.generate([token]), hasCode('ARG'));
      assert.throws(() => engine.generate('a', { forced: [token] }), hasCode('ARG'));
    }
  });

  test('a locked stream is rejected; a stream may yield any kind of view', async (t) => {
    const bytes = new Uint8Array(readFileSync(modelPath));
    const taken = new Blob([bytes]).stream();
    taken.getReader();
    await assert.rejects(createEngine({ stream: taken }), hasCode('ARG'));
    async function* views() {
      yield new DataView(bytes.buffer, 0, 1000);
      yield new Uint16Array(bytes.slice(1000, 2000).buffer);
      yield bytes.subarray(2000);
    }
    const engine = await openEngine(t, { stream: /** @type {any} */ (views()) });
    assert.ok(await engine.generate('Hello', { ...greedy, maxTokens: 4 }).text());
  });

  test('a model can be bytes, a view or a Response; a Response that was read is rejected', async (t) => {
    const bytes = new Uint8Array(readFileSync(modelPath));
    const longer = new Uint8Array(bytes.length + 8);
    longer.set(bytes, 8);
    const texts = [];
    for (const source of [
      { bytes: bytes.buffer },
      { bytes: longer.subarray(8) },
      { stream: new Response(bytes) },
    ]) {
      const engine = await openEngine(t, source);
      texts.push(await engine.generate('Hello', { ...greedy, maxTokens: 4 }).text());
    }
    assert.equal(new Set(texts).size, 1);
    const read = new Response(bytes);
    await read.arrayBuffer();
    await assert.rejects(createEngine({ stream: read }), /body has already been read/);
    await assert.rejects(createEngine({ bytes: new Uint8Array(64) }), hasCode('FORMAT'));
  });
});

describe('one signal for many calls', () => {
  test('a call that has ended leaves no listener', async (t) => {
    const engine = await openEngine(t);
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (/** @type {any[]} */ ...args) => {
      listeners++;
      Reflect.apply(addEventListener, signal, args);
    };
    signal.removeEventListener = (/** @type {any[]} */ ...args) => {
      listeners--;
      Reflect.apply(removeEventListener, signal, args);
    };
    await engine.tokenize('Hello', { signal });
    await engine.generate('Hello', { ...greedy, maxTokens: 2, signal }).text();
    const many = engine.generateMany('Hello', { ...greedy, n: 12, maxTokens: 2, signal });
    const texts = many.map((one) => one.text());
    assert.equal(listeners, 1, 'one listener for all completions: Node warns about more than ten');
    const more = Array.from({ length: 11 }, () => engine.countTokens('Hello', { signal }));
    assert.equal(listeners, 1, '… and for any number of calls');
    await Promise.all([...texts, ...more]);
    await assert.rejects(
      async () => engine.generateMany('', { n: 12, signal })[0].text(),
      hasCode('ARG'),
    );
    assert.equal(listeners, 0);
  });
});

test('chat completions work without randomUUID, which pages without HTTPS lack', async (t) => {
  const engine = await openEngine(t);
  Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true });
  t.after(() => Reflect.deleteProperty(crypto, 'randomUUID'));
  const asked = { messages: question, max_tokens: 4 };
  const ids = [];
  for (let i = 0; i < 2; i++) ids.push((await engine.chat.completions.create(asked)).id);
  assert.match(ids[0], /^chatcmpl-\w{8,}$/);
  assert.notEqual(ids[0], ids[1]);
});
