// Sessions, forks, saved state, the prefix cache and parallel requests of the npm package,
// under Node.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  hasCode,
  isAbort,
  modelPath,
  openEngine as open,
  synthesize,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';

/** @typedef {import('../../js/index.js').Engine} Engine */

const folder = temporaryFolder();
const greedy = { temperature: 0, ignoreEnd: true, maxTokens: 24 };
/** Longer than a few pages of 16 tokens. */
const story =
  'Once upon a time there was a small boat that wanted to see the sea. Every morning it asked the ' +
  'river how far away the sea was, and every morning the river laughed and ran on. One day the rain ' +
  'came, and the boat was lifted from the sand and carried past the mill, the bridge and the town.';

/**
 * @param {import('node:test').TestContext} t
 * @param {import('../../js/index.js').EngineSettings & import('../../js/index.js').ModelSource} [options]
 */
const openEngine = (t, options = {}) => open(t, { file: modelPath, ...options });

/** @param {import('../../js/index.js').Generation} generation */
async function read(generation) {
  const text = await generation.text();
  const { result } = generation;
  if (!result) throw new Error('the generation has not ended');
  return { text, ...result.usage };
}

/** @param {Engine} engine @param {number[]} tokens */
async function fresh(engine, tokens) {
  return read(engine.generate(tokens, greedy));
}

describe('the prefix cache', () => {
  for (const kvType of /** @type {const} */ (['f32', 'f16', 'q8', 'q4'])) {
    test(`a prompt that was processed before is not recomputed, and its answer is the same (${kvType})`, async (t) => {
      const engine = await openEngine(t, { kvType });
      const cold = await read(engine.generate(story, greedy));
      const warm = await read(engine.generate(story, greedy));
      assert.equal(cold.cachedTokens, 0);
      assert.ok(warm.cachedTokens >= cold.promptTokens - 16, `${warm.cachedTokens}`);
      assert.equal(warm.text, cold.text);
      const { prefix } = await engine.kvStats();
      assert.equal(prefix?.hits, 1);
      assert.equal(prefix?.tokensSaved, warm.cachedTokens);
    });
  }

  test('the next turn of a chat processes only the new part', async (t) => {
    const engine = await openEngine(t);
    const messages = [
      { role: 'system', content: story },
      { role: 'user', content: 'What is Wick?' },
    ];
    const ask = { temperature: 0, max_tokens: 40 };
    const first = await engine.chat.completions.create({ ...ask, messages });
    messages.push({ role: 'assistant', content: first.choices[0].message.content });
    messages.push({ role: 'user', content: 'Thank you.' });
    const second = await engine.chat.completions.create({ ...ask, messages });
    const cached = second.usage.prompt_tokens_details.cached_tokens;
    assert.ok(cached >= first.usage.prompt_tokens - 16, `${cached}`);
  });

  test('a system prompt shared by many requests is processed once', async (t) => {
    const engine = await openEngine(t);
    const questions = ['One', 'Two', 'Three', 'Four', 'Five'].map((word) => `${story} ${word}`);
    const alone = await openEngine(t, { prefixCache: false });
    const wanted = [];
    for (const question of questions) wanted.push(await read(alone.generate(question, greedy)));
    const found = await Promise.all(questions.map((text) => read(engine.generate(text, greedy))));
    assert.deepEqual(
      found.map(({ text }) => text),
      wanted.map(({ text }) => text),
    );
    const [first, ...others] = found;
    assert.equal(first.cachedTokens, 0);
    for (const { cachedTokens, promptTokens } of others) {
      assert.ok(cachedTokens >= promptTokens - 32, `${cachedTokens} of ${promptTokens}`);
    }
    assert.equal((await alone.kvStats()).prefix, null);
  });

  test('with a saved cache, the next engine recomputes nothing, also with a session', async (t) => {
    const one = await openEngine(t);
    const cold = await read(one.generate(story, greedy));
    const path = join(folder, 'cache.wick');
    await one.saveState(path);
    const two = await openEngine(t);
    const { session, entries } = await two.loadState(path);
    assert.equal(session, undefined);
    assert.ok(entries >= Math.floor(cold.promptTokens / 16));
    const warm = await read(two.generate(story, greedy));
    assert.ok(warm.cachedTokens >= cold.promptTokens - 16);
    assert.equal(warm.text, cold.text);
  });
});

describe('KV types', () => {
  const types = /** @type {const} */ (['f32', 'f16', 'q8', 'q4']);
  const pairs = types.flatMap((k) => types.filter((v) => v !== k).map((v) => ({ k, v })));

  test('each pair has its own page size, and forks and cache hits give the same text as fresh prompts', async (t) => {
    /** @type {Map<string, number>} */
    const pageBytes = new Map();
    for (const kvType of pairs) {
      const engine = await openEngine(t, { kvType, contextSize: 256 });
      const { kType, vType, pageBytes: bytes } = await engine.kvStats();
      assert.deepEqual({ k: kType, v: vType }, kvType);
      const info = await engine.info();
      assert.deepEqual({ k: info.kType, v: info.vType }, kvType);
      pageBytes.set(`${kType} ${vType}`, bytes);
      const cold = await read(engine.generate(story, greedy));
      const warm = await read(engine.generate(story, greedy));
      assert.ok(warm.cachedTokens > 0, `${kType} ${vType}`);
      assert.equal(warm.text, cold.text, `${kType} ${vType}`);
      const session = await engine.createSession();
      await session.append(story);
      const fork = await session.fork();
      assert.equal((await read(fork.prompt('', greedy))).text, cold.text, `${kType} ${vType}`);
      await engine.close();
    }
    // keys and values have the same number of elements; a key takes half a bit more than a value in q8 and q4
    const sizeOf = (/** @type {string} */ pair) => pageBytes.get(pair) ?? 0;
    const values = sizeOf('f32 f16') / 6;
    const bits = (/** @type {string} */ type) => (type.startsWith('q') ? 0.5 : 0);
    for (const { k, v } of pairs) {
      const more = sizeOf(`${k} ${v}`) - sizeOf(`${v} ${k}`);
      assert.equal(more, (values * (bits(k) - bits(v))) / 8, `${k} ${v}`);
    }
    const sizes = ['f32 f16', 'f16 q8', 'q8 q4'].map(sizeOf);
    assert.ok(sizes[0] > sizes[1] && sizes[1] > sizes[2], sizes.join(' '));
  });

  test('an omitted type is f16', async (t) => {
    const engine = await openEngine(t, { kvType: { k: 'q8' } });
    const { kType, vType } = await engine.kvStats();
    assert.deepEqual([kType, vType], ['q8', 'f16']);
    const plain = await openEngine(t, { kvType: {} });
    assert.deepEqual((await plain.info()).kType, 'f16');
  });

  test('a state with different types is rejected', async (t) => {
    const one = await openEngine(t, { kvType: { k: 'q8', v: 'f16' } });
    await read(one.generate(story, greedy));
    const bytes = await one.saveState();
    for (const kvType of /** @type {const} */ ([{ k: 'f16', v: 'q8' }, 'q8', 'f16'])) {
      const other = await openEngine(t, { kvType });
      await assert.rejects(other.loadState(bytes), hasCode('MISMATCH'));
    }
  });

  test('an unknown type is rejected', async (t) => {
    for (const kvType of [{ k: 'f8' }, { v: 8 }, { keys: 'q8' }, ['q8'], 'f8', 8, true]) {
      await assert.rejects(openEngine(t, { kvType: /** @type {any} */ (kvType) }), hasCode('ARG'));
    }
    const wrong = /** @type {any} */ ({ k: 'q8', v: 'f8' });
    await assert.rejects(
      openEngine(t, { kvType: wrong }),
      /kvType\.v must be .*, not the string "f8"/,
    );
  });
});

describe('concurrent requests', () => {
  test('each request gives the same text as when run alone', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const prompts = ['Once upon a time', 'Hello', story, 'The capital of', story.slice(5)];
    const wanted = [];
    for (const prompt of prompts) wanted.push(await engine.generate(prompt, greedy).text());
    const found = await Promise.all(
      prompts.map((prompt) => engine.generate(prompt, greedy).text()),
    );
    assert.deepEqual(found, wanted);
  });

  test('no request waits for another one to finish', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const wanted = await engine.generate('Hello', greedy).text();
    // more tokens than are buffered before a request is paused: it cannot end without a reader
    const long = engine.generate('Once upon a time', { ...greedy, maxTokens: 400 });
    const pieces = long[Symbol.asyncIterator]();
    await pieces.next();
    assert.equal(await engine.generate('Hello', greedy).text(), wanted);
    assert.ok(Object.is(long.result, undefined), 'the first request has not ended');
    while (!(await pieces.next()).done);
    assert.equal(long.result?.usage.completionTokens, 400);
  });

  test('requests without pages wait, and no output is lost', async (t) => {
    const engine = await openEngine(t, { contextSize: 128, kvTokens: 128, prefixCache: false });
    const ask = () => read(engine.generate('Once upon a time', { ...greedy, maxTokens: 60 }));
    const all = await Promise.all(Array.from({ length: 6 }, ask));
    assert.equal(new Set(all.map(({ text }) => text)).size, 1);
    assert.equal(all[0].completionTokens, 60);
    const { pages, sequences, requests } = await engine.kvStats();
    assert.equal(pages.free, pages.all);
    assert.equal(sequences, 0);
    assert.deepEqual(requests, { running: 0, waiting: 0 });
  });

  test('cancelling one request does not affect the others', async (t) => {
    const engine = await openEngine(t);
    const wanted = await engine.generate('Hello', greedy).text();
    const controller = new AbortController();
    // more tokens than are buffered, so that it cannot end first
    const doomed = engine.generate(story, { ...greedy, maxTokens: 400, signal: controller.signal });
    const pieces = doomed[Symbol.asyncIterator]();
    const begun = pieces.next();
    const going = engine.generate('Hello', greedy).text();
    await begun;
    controller.abort();
    await assert.rejects(pieces.next(), { name: 'AbortError' });
    assert.equal(await going, wanted);
  });
});

describe('sessions', () => {
  test('continue after the tokens processed before', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const session = await engine.createSession();
    const appended = await session.append(story);
    assert.equal(appended.cachedTokens, 0);
    const before = await session.tokens();
    assert.equal(before.length, appended.tokens);
    const first = await read(session.prompt(' Then', greedy));
    const between = await session.tokens();
    assert.equal(between.length, first.promptTokens + 24);
    assert.deepEqual(between.slice(0, before.length), before);
    const second = await read(session.prompt(' And', greedy));
    // all but the last sampled token, which no pass has processed
    assert.equal(second.cachedTokens, between.length - 1);
    const all = await session.tokens();
    assert.equal((await fresh(engine, all.slice(0, first.promptTokens))).text, first.text);
    assert.equal((await fresh(engine, all.slice(0, second.promptTokens))).text, second.text);
    await session.close();
    await assert.rejects(session.tokens(), hasCode('SEQ'));
  });

  test('an empty prompt continues the existing text', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    await assert.rejects(session.prompt([], { temperature: 0 }).text(), hasCode('ARG'));
    await session.append(story);
    const tokens = await session.tokens();
    const { text } = await read(session.prompt('', greedy));
    assert.equal(text, (await fresh(engine, tokens)).text);
  });

  for (const kvType of /** @type {const} */ (['f32', 'f16', 'q8', 'q4'])) {
    test(`forks share pages and diverge (${kvType})`, async (t) => {
      const engine = await openEngine(t, { kvType, prefixCache: false });
      const trunk = await engine.createSession();
      await trunk.append(story);
      const tokens = await trunk.tokens();
      const idle = await engine.kvStats();
      const branches = await Promise.all([trunk.fork(), trunk.fork(), trunk.fork()]);
      const forked = await engine.kvStats({ map: true });
      assert.equal(forked.forks, 3);
      assert.equal(forked.pages.all - forked.pages.free, idle.pages.all - idle.pages.free);
      assert.equal(forked.pages.shared, Math.ceil(tokens.length / 16));
      assert.equal(forked.map?.length, forked.pages.all);
      assert.equal(forked.cowCopies, 0);
      const words = [' First', ' Second', ' Third'];
      const texts = await Promise.all(
        branches.map((branch, index) => read(branch.prompt(words[index], greedy))),
      );
      // the last page is not full, so each branch copies it
      if (tokens.length % 16 !== 0) assert.equal((await engine.kvStats()).cowCopies, 3);
      for (const [index, branch] of branches.entries()) {
        const all = await branch.tokens();
        const wanted = await fresh(engine, all.slice(0, texts[index].promptTokens));
        assert.equal(texts[index].text, wanted.text);
      }
      assert.deepEqual(await trunk.tokens(), tokens);
      for (const session of [trunk, ...branches]) await session.close();
      const { pages, sessions } = await engine.kvStats();
      assert.equal(sessions, 0);
      assert.equal(pages.free, pages.all);
    });
  }

  test('findPages reports which pages of a conversation are cached', async (t) => {
    const engine = await openEngine(t);
    const first = { role: 'user', content: `Tell me a story. ${story}` };
    const unread = await engine.findPages([first]);
    assert.deepEqual(unread.pages, []);
    assert.equal(unread.tokens, await engine.countTokens([first]));
    const { choices } = await engine.chat.completions.create({
      ...{ messages: [first], max_tokens: 40, temperature: 0 },
    });
    const { tokens, pages } = await engine.findPages([first]);
    assert.equal(pages.length, Math.floor(tokens / 16));
    const { map = '' } = await engine.kvStats({ map: true });
    assert.ok(pages.every((place) => 'cs'.includes(map[place])));
    // a longer conversation uses these pages and additional ones
    const answer = { role: 'assistant', content: String(choices[0].message.content) };
    const more = await engine.findPages([first, answer]);
    assert.deepEqual(more.pages.slice(0, pages.length), pages);
    assert.ok(more.pages.length > pages.length);
    const before = await engine.kvStats();
    await engine.findPages([{ role: 'user', content: 'Nobody has asked this.' }]);
    assert.deepEqual(
      (await engine.kvStats()).prefix,
      before.prefix,
      'findPages does not count as a lookup',
    );
  });

  test('truncate and drop', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    const session = await engine.createSession();
    await session.append(story);
    const tokens = await session.tokens();
    await session.truncate(40);
    assert.deepEqual(await session.tokens(), tokens.slice(0, 40));
    const { text } = await read(session.prompt('', greedy));
    assert.equal(text, (await fresh(engine, tokens.slice(0, 40))).text);
    await session.truncate(40);
    await session.drop(8, 24);
    assert.deepEqual(await session.tokens(), [...tokens.slice(0, 8), ...tokens.slice(24, 40)]);
    const { promptTokens, cachedTokens } = await read(session.prompt(' So', greedy));
    assert.ok(cachedTokens === 24 && promptTokens > 24);
    await assert.rejects(session.truncate(4000), hasCode('RANGE'));
    await assert.rejects(session.drop(9, 4000), hasCode('RANGE'));
    await assert.rejects(session.truncate(-1), hasCode('ARG'));
  });

  test('after a drop, the remaining tokens were computed with the dropped ones, including the newest token', async (t) => {
    const engine = await openEngine(t);
    const [said, read] = [await engine.createSession(), await engine.createSession()];
    await said.prompt('Once upon a time', { ...greedy, maxTokens: 8 }).text();
    await read.append(await said.tokens());
    const logprobs = [];
    for (const session of [said, read]) {
      await session.drop(2, 9);
      /** @type {unknown[]} */
      const own = [];
      const onToken = (/** @type {{logprob?: number}} */ { logprob }) => void own.push(logprob);
      await session.prompt(' and', { ...greedy, maxTokens: 4, logprobs: 0, onToken }).text();
      logprobs.push(own);
    }
    assert.deepEqual(logprobs[0], logprobs[1]);
  });

  test('a full context continues after a drop, also when saved and loaded', async (t) => {
    const engine = await openEngine(t, { contextSize: 64 });
    const session = await engine.createSession();
    await session.prompt('Once upon a time', { ...greedy, maxTokens: 80, ignoreEnd: true }).text();
    const tokens = await session.tokens();
    assert.equal(tokens.length, 65);
    const loaded = (await engine.loadState(await session.save())).session;
    if (!loaded) throw new Error('no session was loaded');
    assert.deepEqual(await loaded.tokens(), tokens);
    const texts = [];
    for (const one of [session, loaded]) {
      await one.drop(4, 40);
      assert.deepEqual(await one.tokens(), [...tokens.slice(0, 4), ...tokens.slice(40)]);
      texts.push((await read(one.prompt(' and', greedy))).text);
    }
    assert.ok(texts[0].length > 0);
    assert.equal(texts[1], texts[0]);
  });

  test('runs one request at a time; an abandoned request ends immediately', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    const running = session.prompt('Once upon a time', { ...greedy, maxTokens: 300 });
    const prompt = await engine.countTokens('Once upon a time');
    let pieces = 0;
    for await (const _ of running) {
      if (++pieces < 8) continue;
      await assert.rejects(session.append('x'), hasCode('BUSY'));
      await assert.rejects(session.fork(), hasCode('BUSY'));
      await assert.rejects(session.save(), hasCode('BUSY'));
      break;
    }
    const count = (await session.tokens()).length;
    // all but the last sampled token, which no pass may have processed
    assert.ok(count >= prompt + pieces - 1, 'the text up to then is kept');
    const child = await session.fork();
    assert.equal((await read(child.prompt(' and', greedy))).completionTokens, 24);
    assert.equal((await session.tokens()).length, count);
  });

  test('a session whose creation was aborted is closed; sessions can be closed at any time', async (t) => {
    const engine = await openEngine(t);
    const controller = new AbortController();
    const { signal } = controller;
    const given = [engine.createSession({ signal }), engine.beamSearch('Once', { signal })];
    controller.abort();
    for (const one of given) await assert.rejects(one, isAbort);
    await waitUntil(
      async () => (await engine.kvStats()).sessions === 0,
      'the session to be closed',
    );
    const [twice, late] = [await engine.createSession(), await engine.createSession()];
    await twice.close();
    await twice.close();
    const running = late.prompt('Once', { ...greedy, maxTokens: 300 })[Symbol.asyncIterator]();
    await running.next();
    await assert.rejects(late.close(), hasCode('BUSY'));
    await engine.close();
    await late.close();
    await assert.rejects(late.tokens(), hasCode('CLOSED'));
  });

  test('a prompt longer than the context is rejected, and the session continues', async (t) => {
    const engine = await openEngine(t, { contextSize: 64 });
    const session = await engine.createSession();
    await assert.rejects(session.append(story + story), hasCode('PROMPT_TOO_LONG'));
    assert.deepEqual(await session.tokens(), []);
    assert.equal((await read(session.prompt('Hello', greedy))).completionTokens, 24);
  });
});

describe('saved sessions', () => {
  const path = join(folder, 'session.wick');

  for (const kvType of /** @type {const} */ (['f32', 'f16', 'q8', 'q4'])) {
    test(`a different engine continues with a saved session (${kvType})`, async (t) => {
      const one = await openEngine(t, { kvType });
      const session = await one.createSession();
      await read(session.prompt(story, greedy));
      const bytes = await session.save(path);
      assert.deepEqual(new Uint8Array(readFileSync(path)), bytes);
      const two = await openEngine(t, { kvType, prefixCache: false });
      const loaded = (await two.loadState(path)).session;
      if (!loaded) throw new Error('no session was loaded');
      assert.deepEqual(await loaded.tokens(), await session.tokens());
      const wanted = await read(session.prompt(' And', greedy));
      assert.deepEqual(await read(loaded.prompt(' And', greedy)), wanted);
      const blob = await two.loadState(new Blob([bytes]));
      assert.equal(
        (await blob.session?.tokens())?.length,
        (await session.tokens()).length - wanted.completionTokens - 1,
      );
    });
  }

  test('a session saved with a smaller KV type continues in an engine with the original type', async (t) => {
    const one = await openEngine(t);
    const session = await one.createSession();
    await session.append(story);
    const whole = await session.save();
    const two = await openEngine(t);
    await two.generate(story, greedy).text(); // fills its prefix cache
    // the keys of an incomplete page stay in F16
    for (const [kvType, share] of /** @type {const} */ ([
      ['q8', 0.7],
      ['q4', 0.45],
    ])) {
      const bytes = await session.save({ to: path, kvType });
      assert.deepEqual(new Uint8Array(readFileSync(path)), bytes);
      assert.ok(bytes.length < whole.length * share, `${bytes.length} of ${whole.length}`);
      const { session: loaded } = await two.loadState(path);
      if (!loaded) throw new Error('no session was loaded');
      assert.deepEqual(await loaded.tokens(), await session.tokens());
      const forks = [await loaded.fork(), await loaded.fork()];
      const [reported, again] = await Promise.all(
        forks.map((fork) => read(fork.prompt(' And', greedy))),
      );
      assert.equal(again.text, reported.text);
      // only its last token is recomputed, and the question is processed
      assert.ok(reported.promptTokens - reported.cachedTokens <= 2, JSON.stringify(reported));
      const coarse = await openEngine(t, { kvType });
      await assert.rejects(coarse.loadState(bytes), hasCode('MISMATCH'));
      for (const one of [loaded, ...forks]) await one.close();
    }
    // packed pages are not found by other requests
    const fresh = await openEngine(t);
    const { session: packed } = await fresh.loadState(path);
    await packed?.prompt(' And', greedy).text();
    const reported = await read(fresh.generate(`${story} And`, greedy));
    assert.equal(reported.cachedTokens, 0);
    await assert.rejects(session.save(/** @type {any} */ ({ kvType: 'q2' })), hasCode('ARG'));
    await assert.rejects(session.save(/** @type {any} */ ({ type: 'q8' })), hasCode('ARG'));
  });

  test('a different model or KV type, damaged data and missing files are rejected', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    await session.append(story);
    const bytes = await session.save();
    const other = join(folder, 'other.gguf');
    await synthesize('100mb', 'q8_0', other);
    const strange = await openEngine(t, { file: other });
    await assert.rejects(strange.loadState(bytes), hasCode('MISMATCH'));
    const coarse = await openEngine(t, { kvType: 'q8' });
    await assert.rejects(coarse.loadState(bytes), hasCode('MISMATCH'));
    for (const at of [20, 60, 200, bytes.length >> 1, bytes.length - 3]) {
      const damaged = bytes.slice();
      damaged[at] ^= 0x20;
      await assert.rejects(engine.loadState(damaged), (error) =>
        ['CORRUPT', 'FORMAT', 'MISMATCH', 'TRUNCATED', 'FULL'].includes(
          /** @type {any} */ (error).code,
        ),
      );
    }
    for (const length of [0, 7, 30, 100, bytes.length - 1]) {
      await assert.rejects(engine.loadState(bytes.slice(0, length)), hasCode('TRUNCATED'));
    }
    await assert.rejects(engine.loadState(new Uint8Array(500)), hasCode('FORMAT'));
    await assert.rejects(engine.loadState(join(folder, 'absent')), hasCode('NOT_FOUND'));
    await assert.rejects(engine.saveState(join(folder, 'absent', 'x')), hasCode('NOT_FOUND'));
    await assert.rejects(engine.loadState(/** @type {any} */ (7)), hasCode('ARG'));
    // no session or sequence remains, and the engine continues
    const { sessions, sequences } = await engine.kvStats();
    assert.deepEqual({ sessions, sequences }, { sessions: 1, sequences: 1 });
    assert.ok((await engine.loadState(bytes)).session);
  });

  test('the previous state is kept if saving fails', async (t) => {
    const engine = await openEngine(t);
    const kept = join(folder, 'kept.wick');
    writeFileSync(kept, 'before');
    const session = await engine.createSession();
    await session.close();
    await assert.rejects(session.save(kept), hasCode('SEQ'));
    assert.equal(readFileSync(kept, 'utf8'), 'before');
    assert.ok(!existsSync(`${kept}.tmp`));
  });
});

describe('salts', () => {
  /** @param {import('node:test').TestContext} t @param {object} [options] @param {Engine} [engine] */
  const asker = async (t, options = {}, engine = undefined) => {
    const asked = engine ?? (await openEngine(t, options));
    return {
      engine: asked,
      /** @param {string | null} [salt] */
      cached: async (salt) =>
        (await read(asked.generate(story, { ...greedy, maxTokens: 2, salt: salt ?? null })))
          .cachedTokens,
    };
  };

  test('cached text with one salt is not found with a different salt or without one', async (t) => {
    const { cached } = await asker(t);
    // é composed and decomposed, and two long names that differ at the end
    const long = 'x'.repeat(5000);
    const salts = [null, 'a', 'a ', 'A', '\u00e9', 'e\u0301', `${long}1`, `${long}2`];
    for (const salt of salts) {
      assert.equal(await cached(salt), 0, `${salt}`.slice(0, 9));
      assert.ok((await cached(salt)) >= 32, `${salt}`.slice(0, 9));
    }
  });

  test('chat, several completions, beam search and best-of use the salt', async (t) => {
    const { engine } = await asker(t);
    const messages = [{ role: 'user', content: story }];
    /** @param {string} [salt] */
    const chat = async (salt) => {
      const body = { messages, max_tokens: 2, temperature: 0, ...(salt && { salt }) };
      const { usage } = await engine.chat.completions.create(body);
      return usage.prompt_tokens_details.cached_tokens;
    };
    assert.equal(await chat('a'), 0);
    assert.equal(await chat('b'), 0);
    assert.equal(await chat(), 0);
    assert.ok((await chat('a')) > 0);
    /** @param {() => Promise<any>} ask @returns {Promise<number>} number of prompt tokens that were processed */
    const newlyRead = async (ask) => {
      const before = (await engine.stats()).tokens.prompt;
      await ask();
      return (await engine.stats()).tokens.prompt - before;
    };
    const count = await engine.countTokens(story);
    const some = { maxTokens: 2, temperature: 0, ignoreEnd: true };
    const ways = /** @type {((salt: string) => Promise<any>)[]} */ ([
      (salt) => Promise.all(engine.generateMany(story, { ...some, salt }).map((one) => one.text())),
      (salt) => engine.bestOf(story, { ...some, salt }),
      (salt) => engine.beamSearch(story, { maxTokens: 2, width: 2, salt }),
    ]);
    for (const [index, way] of ways.entries()) {
      const name = `way ${index}`;
      assert.ok((await newlyRead(() => way(name))) >= count, name);
      assert.ok((await newlyRead(() => way(name))) < count, name);
      assert.ok((await newlyRead(() => way(`${name}!`))) >= count, name);
    }
  });

  test('a session keeps its salt, and so do its forks and saved states', async (t) => {
    const { engine, cached } = await asker(t);
    const session = await engine.createSession({ salt: 'a' });
    const fork = await session.fork();
    const bytes = await fork.save();
    assert.equal((await fork.append(story)).cachedTokens, 0);
    assert.equal(await cached('b'), 0);
    assert.equal(await cached(), 0);
    assert.ok((await session.append(story)).cachedTokens >= 32);
    assert.throws(() => session.prompt('', /** @type {any} */ ({ salt: 'b' })), hasCode('ARG'));

    const other = await asker(t);
    const { session: again } = await other.engine.loadState(bytes);
    assert.equal(await other.cached('a'), 0);
    assert.ok(((await again?.append(story))?.cachedTokens ?? 0) >= 32);
    const cache = await other.engine.saveState();
    const third = await asker(t);
    assert.ok((await third.engine.loadState(cache)).entries > 0);
    assert.equal(await third.cached('b'), 0);
    assert.equal(await third.cached(), 0);
    assert.ok((await third.cached('a')) >= 32);
  });

  test('invalid salts are rejected: empty strings, other types, lone surrogates', async (t) => {
    const { engine } = await asker(t);
    for (const salt of /** @type {any[]} */ (['', 17, '\ud800', 'a\udc00', {}])) {
      assert.throws(() => engine.generate('a', { salt }), hasCode('ARG'));
      await assert.rejects(engine.createSession({ salt }), hasCode('ARG'));
    }
    await engine.generate('a', { ...greedy, salt: '😀' }).text();
  });
});
