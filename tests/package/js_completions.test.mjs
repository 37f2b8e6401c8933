// Several outputs for one prompt, from JavaScript: completions, best-of-n, beam search.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasCode, modelPath, openEngine as open, waitUntil } from '../support/package.mjs';

/**
 * @param {import('node:test').TestContext} t
 * @param {import('../../js/index.js').EngineSettings & import('../../js/index.js').ModelSource} [options]
 */
const openEngine = (t, options = {}) => open(t, { file: modelPath, ...options });

const prompt = 'Once upon a time there was a little girl who';
const greedy = { temperature: 0, maxTokens: 40 };

/** @param {AsyncIterable<any>} chunks */
async function readChoices(chunks) {
  /** @type {string[]} */
  const texts = [];
  /** @type {string[]} */
  const ends = [];
  for await (const { choices } of chunks) {
    for (const { index, delta, finish_reason } of choices) {
      texts[index] = (texts[index] ?? '') + (delta.content ?? '');
      if (finish_reason) ends[index] = finish_reason;
    }
  }
  return { texts, ends };
}

describe('completions of one prompt', () => {
  test('completions equal those of separate requests, and the prompt is processed once', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const alone = [];
    for (let i = 0; i < 4; i++) {
      alone.push(await engine.generate(prompt, { maxTokens: 30, seed: 7 + i }).text());
    }
    const before = await engine.stats();
    const many = engine.generateMany(prompt, { n: 4, maxTokens: 30, seed: 7 });
    assert.deepEqual(await Promise.all(many.map((one) => one.text())), alone);
    assert.ok(new Set(alone).size > 1, 'the seeds differ');
    const after = await engine.stats();
    const promptTokens = await engine.countTokens(prompt);
    assert.equal(after.tokens.prompt - before.tokens.prompt, promptTokens);
    assert.ok(after.kv.forks - before.kv.forks >= 3);
    assert.equal(after.kv.pages.free, after.kv.pages.all);
  });

  test('abandoning one completion does not end the others', async (t) => {
    const engine = await openEngine(t);
    // longer than the buffer, so that it cannot end on its own
    const long = { temperature: 0, ignoreEnd: true, maxTokens: 400 };
    const [first, second] = engine.generateMany(prompt, { n: 2, ...long });
    for await (const _ of first) break;
    assert.equal(await second.text(), await engine.generate(prompt, long).text());
    const stats = await engine.stats();
    assert.equal(stats.requests.aborted, 1);
    assert.equal(stats.requests.running, 0);
  });

  test('abandoning a stream of choices frees everything', async (t) => {
    const engine = await openEngine(t);
    /** @type {unknown[]} */
    const unhandled = [];
    const note = (/** @type {unknown} */ reason) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    t.after(() => process.off('unhandledRejection', note));
    for (const n of [1, 2]) {
      const stream = await engine.chat.completions.create({
        messages: [{ role: 'user', content: 'Tell me a story.' }],
        stream: true,
        n,
      });
      let chunks = 0;
      for await (const _ of stream) if (++chunks === 6) break;
    }
    await waitUntil(async () => {
      const { requests } = await engine.stats();
      return requests.running + requests.waiting === 0;
    }, 'the requests to be released');
    assert.deepEqual(unhandled, []);
  });

  test('a request whose reader stopped ends when it is cancelled', async (t) => {
    const engine = await openEngine(t);
    const controller = new AbortController();
    const slow = engine.generate(prompt, {
      maxTokens: 900,
      ignoreEnd: true,
      signal: controller.signal,
    });
    await slow[Symbol.asyncIterator]().next();
    await waitUntil(
      async () => (await engine.stats()).requests.paused === 1,
      'the request to pause',
    );
    controller.abort();
    await waitUntil(
      async () => (await engine.stats()).requests.aborted === 1,
      'the request to end',
    );
    assert.equal((await engine.stats()).requests.running, 0);
  });

  test('chat completions have n choices, streamed and not', async (t) => {
    const engine = await openEngine(t);
    const body = {
      messages: [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }],
      max_tokens: 24,
      seed: 3,
      n: 3,
    };
    const whole = await engine.chat.completions.create(body);
    const texts = whole.choices.map(({ message }) => message.content);
    assert.deepEqual(
      whole.choices.map(({ index }) => index),
      [0, 1, 2],
    );
    assert.equal(new Set(texts).size, 3);
    const stream = await engine.chat.completions.create({ ...body, stream: true });
    const streamed = await readChoices(stream);
    assert.deepEqual(streamed.texts, texts);
    assert.equal(streamed.ends.length, 3);
    assert.equal(whole.usage.completion_tokens > 3, true);
    await assert.rejects(async () => engine.generateMany(prompt, { n: 17 }), hasCode('ARG'));
  });
});

describe('best-of', () => {
  test('bestOf returns all completions, most likely first, and processes the prompt once', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const options = { n: 4, maxTokens: 20, seed: 11, temperature: 1.5 };
    const many = engine.generateMany(prompt, options);
    const texts = await Promise.all(many.map((one) => one.text()));
    const before = await engine.stats();
    const best = await engine.bestOf(prompt, options);
    assert.deepEqual(best.map(({ text }) => text).sort(), texts.sort());
    assert.equal(new Set(texts).size, 4);
    const means = best.map(({ logprob, tokens }) => logprob / tokens.length);
    assert.deepEqual(
      means,
      [...means].sort((a, b) => b - a),
    );
    assert.ok(means[0] > means[3] && means[0] < 0);
    const after = await engine.stats();
    assert.equal(after.tokens.prompt - before.tokens.prompt, await engine.countTokens(prompt));
    assert.equal(best[0].text, await engine.detokenize(best[0].tokens));
    const again = await engine.bestOf(prompt, { ...options, logprobs: undefined });
    assert.deepEqual(again, best);
    await assert.rejects(engine.bestOf(prompt, { n: 0 }), hasCode('ARG'));
  });
});

describe('beam search', () => {
  test('one beam is greedy; more beams find an output that is at least as likely', async (t) => {
    const engine = await openEngine(t);
    const [one] = await engine.beamSearch(prompt, { width: 1, maxTokens: 12 });
    assert.equal(one.text, await engine.generate(prompt, { ...greedy, maxTokens: 12 }).text());
    const four = await engine.beamSearch(prompt, { width: 4, maxTokens: 12, lengthPenalty: 0 });
    assert.equal(four.length, 4);
    assert.equal(new Set(four.map(({ text }) => text)).size, 4);
    assert.ok(four[0].logprob >= one.logprob - 1e-4);
    for (let i = 1; i < 4; i++) assert.ok(four[i].logprob <= four[i - 1].logprob);
    const { sessions, pages } = await engine.kvStats();
    assert.equal(sessions, 0);
    assert.equal(pages.free + pages.cached, pages.all);
    await assert.rejects(engine.beamSearch(prompt, { width: 0 }), hasCode('ARG'));
  });

  test('beams end when the context is full', async (t) => {
    const engine = await openEngine(t, { contextSize: 32 });
    const tokens = (await engine.tokenize(prompt)).slice(0, 24);
    const beams = await engine.beamSearch(tokens, { width: 2, maxTokens: 64 });
    const longest = beams.find(({ finishReason }) => finishReason === 'length');
    assert.equal(longest?.tokens.length, 33 - tokens.length);
    await assert.rejects(
      engine.beamSearch(
        Array.from({ length: 40 }, () => 300),
        { width: 2 },
      ),
      hasCode('PROMPT_TOO_LONG'),
    );
    assert.equal((await engine.kvStats()).sessions, 0);
  });

  test('beams follow the grammar; probabilities are normalized over the allowed tokens', async (t) => {
    const engine = await openEngine(t);
    const two = await engine.beamSearch(prompt, { width: 4, choices: ['a', 'b'], maxTokens: 4 });
    assert.deepEqual(two.map(({ text }) => text).sort(), ['a', 'b']);
    assert.ok(two.every(({ finishReason }) => finishReason === 'stop'));
    const sum = two.reduce((all, { logprob }) => all + Math.exp(logprob), 0);
    assert.ok(Math.abs(sum - 1) < 1e-5, `${sum}`);
    // characters that take several tokens
    const regex = /[日本é]{2,3}\./u;
    const beams = await engine.beamSearch(prompt, { width: 6, regex, maxTokens: 32 });
    assert.ok(beams.length > 1);
    for (const { text, finishReason } of beams) {
      assert.equal(finishReason, 'stop');
      assert.match(text, /^[日本é]{2,3}\.$/u);
    }
    const [one] = await engine.beamSearch(prompt, { width: 1, regex, maxTokens: 32 });
    assert.equal(
      one.text,
      await engine.generate(prompt, { ...greedy, regex, maxTokens: 32 }).text(),
    );
    const jsonSchema = { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] };
    const records = await engine.beamSearch(prompt, { width: 2, jsonSchema });
    assert.deepEqual(records.map(({ text }) => text).sort(), ['{"a": false}', '{"a": true}']);
    await assert.rejects(engine.beamSearch(prompt, { choices: ['a'], regex: 'a' }), hasCode('ARG'));
    await assert.rejects(engine.beamSearch(prompt, { regex: '(' }), hasCode('ARG'));
    assert.equal((await engine.kvStats()).sessions, 0);
  });

  test('a beam ends with an end token or at maxTokens', async (t) => {
    const engine = await openEngine(t);
    const ends = new Set();
    for (const width of [2, 4]) {
      for (const text of ['What is 12 + 7?', 'Hello', prompt]) {
        for (const beam of await engine.beamSearch(text, { width, maxTokens: 24 })) {
          ends.add(beam.finishReason);
          assert.equal(beam.tokens.length === 24, beam.finishReason === 'length');
        }
      }
    }
    assert.deepEqual([...ends].sort(), ['length', 'stop']);
  });
});
