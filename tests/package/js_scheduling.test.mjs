// Concurrent requests from JavaScript: priorities, page exhaustion, slow readers, speculation, queue limits, and the
// statistics for all of these.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import {
  dist,
  hasCode,
  modelPath,
  openEngine as open,
  openHeldEngine,
  sleep,
  synthesize,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';

const execute = promisify(execFile);

/**
 * @param {import('node:test').TestContext} t
 * @param {import('../../js/index.js').EngineSettings & import('../../js/index.js').ModelSource} [options]
 */
const openEngine = (t, options = {}) => open(t, { file: modelPath, ...options });

const prompt = 'Once upon a time there was a little girl who';
const greedy = { temperature: 0, maxTokens: 40 };

/** Runs in a page: starts eight generations with enough KV pages for two. @param {string} prompt */
async function swapInPage(prompt) {
  const path = '/dist/index.js';
  const { createEngine } = await import(path);
  const [url, plain] = ['/dist/models/wick-2.6m-q8_0.gguf', { threads: 1, prefixCache: false }];
  const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
  let release = () => {};
  // all requests are queued when the first pass starts, as with openHeldEngine
  async function* stream() {
    yield bytes.slice(0, bytes.length >> 1);
    await new Promise((settle) => {
      release = () => settle(undefined);
    });
    yield bytes.slice(bytes.length >> 1);
  }
  const tight = { ...plain, kvTokens: 2 * 96, swap: { always: true } };
  const engine = await createEngine({ ...tight, stream: stream(), eager: true });
  const options = { temperature: 0, maxTokens: 40, ignoreEnd: true };
  const prompts = Array.from({ length: 8 }, (_, i) => `${i} ${prompt}`);
  const asked = prompts.map((one) => engine.generate(one, options).text());
  release();
  const texts = await Promise.all(asked);
  const { requests } = await engine.stats();
  await engine.close();
  const storage = await navigator.storage.getDirectory();
  const folder = /** @type {any} */ (await storage.getDirectoryHandle('wick-llm-swap'));
  const left = [];
  for await (const name of folder.keys()) left.push(name);
  const other = await createEngine({ ...plain, url });
  const alone = [];
  for (const one of prompts) alone.push(await other.generate(one, options).text());
  return { texts, alone, requests, left };
}

describe('priorities and KV pages', () => {
  test('more urgent requests are served first', async (t) => {
    const { engine, release } = await openHeldEngine(t, { kvTokens: 128, prefixCache: false });
    /** @type {string[]} */
    const ended = [];
    /** @param {string} name @param {number} priority */
    const ask = async (name, priority) => {
      const text = await engine
        .generate(`${name} ${prompt}`, { ...greedy, maxTokens: 60, ignoreEnd: true, priority })
        .text();
      ended.push(name);
      return text;
    };
    const asked = [ask('Low', -1), ask('Usual', 0), ask('High', 5)];
    release();
    const texts = await Promise.all(asked);
    assert.deepEqual(ended, ['High', 'Usual', 'Low']);
    const roomy = await openEngine(t);
    for (const [index, name] of ['Low', 'Usual', 'High'].entries()) {
      const options = { ...greedy, maxTokens: 60, ignoreEnd: true };
      assert.equal(await roomy.generate(`${name} ${prompt}`, options).text(), texts[index]);
    }
  });

  test('16 chats with pages for 4 give the same output as when run alone', async (t) => {
    const options = { maxTokens: 48, ignoreEnd: true, temperature: 0.8 };
    const { engine, release } = await openHeldEngine(t, { kvTokens: 4 * 96, prefixCache: false });
    const prompts = Array.from({ length: 16 }, (_, i) => `Story ${i}: ${prompt}`);
    const asked = prompts.map((text, seed) => engine.generate(text, { ...options, seed }).text());
    release();
    const together = await Promise.all(asked);
    const stats = await engine.stats();
    assert.ok(stats.requests.preempted > 0, 'pages must run out');
    assert.equal(stats.kv.pages.free, stats.kv.pages.all);
    const roomy = await openEngine(t);
    for (const [seed, text] of prompts.entries()) {
      assert.equal(await roomy.generate(text, { ...options, seed }).text(), together[seed]);
    }
  });

  for (const [name, more] of [
    ['two in sessions', '--sessions 2'],
    ['all in sessions', '--sessions 16'],
    ['all in sessions, with a file', '--sessions 16 --swap'],
  ]) {
    test(`multi-turn chats, ${name}, give the same answers as when run alone`, {
      skip: !isFull && !more.includes('--swap'),
    }, async () => {
      const options = `--kv-mb 1 --ask 20 --answer 24 --json ${more}`.split(' ');
      const script = resolve(root, 'tools/bench/chats.mjs');
      const run = await execute(process.execPath, [script, '--model', modelPath, ...options]);
      const { wantedTokens, kvTokens, same, requests, pages, sequences } = JSON.parse(run.stdout);
      assert.ok(wantedTokens > 4 * kvTokens);
      assert.equal(same, 16);
      assert.equal(requests.length, 48);
      assert.ok(requests.preempted > 0, 'pages must run out');
      assert.equal(requests.swappedIn > 0, more.includes('--swap'));
      assert.equal(requests.swapFailed, 0);
      assert.equal(pages.free + pages.cached, pages.all);
      assert.equal(sequences, 0);
    });
  }

  test('pages written to a file are read back, and no file remains', async (t) => {
    const folder = temporaryFolder();
    const options = { maxTokens: 48, ignoreEnd: true, temperature: 0.8 };
    const { engine, release } = await openHeldEngine(t, {
      kvTokens: 4 * 96,
      prefixCache: false,
      swap: { folder, always: true },
    });
    const prompts = Array.from({ length: 16 }, (_, i) => `Story ${i}: ${prompt}`);
    const asked = prompts.map((text, seed) => engine.generate(text, { ...options, seed }).text());
    release();
    const together = await Promise.all(asked);
    const { requests, kv } = await engine.stats();
    assert.ok(requests.swappedIn > 0, 'pages must be read back');
    assert.equal(requests.swappedIn, requests.swappedOut);
    assert.equal(requests.swapFailed, 0);
    assert.equal(kv.pages.free, kv.pages.all);
    assert.match(
      await engine.stats({ format: 'prometheus' }),
      new RegExp(`wick_swaps_total{kind="in"} ${requests.swappedIn}\n`),
    );
    await engine.close();
    assert.deepEqual(readdirSync(folder), []);
    const roomy = await openEngine(t);
    for (const [seed, text] of prompts.entries()) {
      assert.equal(await roomy.generate(text, { ...options, seed }).text(), together[seed]);
    }
  });

  test('Chromium swaps to a file in the origin private file system', {
    skip: locate('chromium').skip || !isFull,
  }, async (t) => {
    const server = await serve({
      root: {
        '/': resolve(root, 'tests/support/empty_page'),
        '/dist/': dist,
        '/dist/models/': resolve(root, 'examples/models'),
      },
    });
    t.after(() => server.close());
    const browser = await launchChromium();
    t.after(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    const { texts, alone, requests, left } = await page.evaluate(swapInPage, prompt);
    assert.ok(requests.swappedIn > 0, 'pages must be read back');
    assert.equal(requests.swapFailed, 0);
    assert.deepEqual(left, []);
    assert.deepEqual(texts, alone);
  });

  test('without a swap file, evicted pages are recomputed', async (t) => {
    const swap = { folder: join(temporaryFolder(), 'missing'), always: true };
    const tight = { kvTokens: 2 * 96, prefixCache: false, swap };
    const { engine, release } = await openHeldEngine(t, tight);
    const options = { ...greedy, ignoreEnd: true };
    const ask = (/** @type {number} */ i) => engine.generate(`${i} ${prompt}`, options).text();
    const asked = [0, 1, 2, 3, 4, 5].map(ask);
    release();
    const texts = await Promise.all(asked);
    assert.deepEqual(texts.slice(0, 2), [await ask(0), await ask(1)]);
    const { requests } = await engine.stats();
    assert.ok(requests.preempted > 0, 'pages must run out');
    assert.equal(requests.swappedOut + requests.swapFailed, 0);
    const folder = /** @type {any} */ (5);
    await assert.rejects(openEngine(t, { swap: { folder } }), hasCode('ARG'));
  });
});

describe('slow readers', () => {
  test('a reader that stops pauses its request and does not delay others', async (t) => {
    const engine = await openEngine(t);
    const slow = engine.generate(prompt, { temperature: 0, maxTokens: 600, ignoreEnd: true });
    const reading = slow[Symbol.asyncIterator]();
    let text = (await reading.next()).value ?? '';
    for (let i = 0; i < 40; i++) {
      await engine.generate(`${i} ${prompt}`, { ...greedy, ignoreEnd: true }).text();
    }
    const stats = await engine.stats();
    assert.equal(stats.requests.paused, 1);
    assert.equal(stats.requests.running, 1);
    for (let next = await reading.next(); !next.done; next = await reading.next()) {
      text += next.value;
    }
    const again = engine.generate(prompt, { temperature: 0, maxTokens: 600, ignoreEnd: true });
    assert.equal(text, await again.text());
    assert.equal((await engine.stats()).requests.paused, 0);
  });
});

describe('unread streams', () => {
  const long = { temperature: 0, ignoreEnd: true, maxTokens: 600 };
  const isOver = async (/** @type {import('../../js/index.js').Engine} */ engine) => {
    const { requests, kv } = await engine.stats();
    return requests.running + requests.waiting + kv.sequences === 0;
  };

  test('are freed when their loop exits early', async (t) => {
    const engine = await openEngine(t, { prefixCache: false });
    for (const one of engine.generateMany(prompt, { n: 3, ...long })) {
      for await (const _ of one) break;
    }
    await waitUntil(() => isOver(engine), 'the pages to be freed');
    const { requests, kv } = await engine.stats();
    assert.equal(requests.aborted, 3);
    assert.equal(kv.pages.free, kv.pages.all);
  });

  test('are freed when they are garbage-collected', async (t) => {
    setFlagsFromString('--expose-gc');
    /** @type {() => void} */
    const collect = runInNewContext('gc');
    const engine = await openEngine(t, { prefixCache: false });
    const forget = async () => {
      const [first] = engine.generateMany(prompt, { n: 3, ...long });
      await first[Symbol.asyncIterator]().next();
      const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }];
      await engine.chat.completions.create({ messages, stream: true, max_tokens: 600 });
    };
    const kept = engine.generate(prompt, long);
    const text = kept.text();
    await forget();
    await waitUntil(async () => {
      collect();
      const { requests } = await engine.stats();
      return requests.running + requests.waiting === 0;
    }, 'the streams to be collected');
    assert.ok((await text).length > 600);
    assert.equal(kept.result?.finishReason, 'length');
    const { requests, kv } = await engine.stats();
    // the chat may have ended on its own
    assert.ok(requests.aborted >= 3 && requests.aborted <= 4);
    assert.equal(requests.length + requests.stopped + requests.aborted, 5);
    assert.equal(kv.pages.free, kv.pages.all);
  });

  test('can be garbage-collected after being abandoned, along with their errors', async (t) => {
    setFlagsFromString('--expose-gc');
    /** @type {() => void} */
    const collect = runInNewContext('gc');
    const engine = await openEngine(t, { prefixCache: false });
    const leave = async () => {
      const generation = engine.generate(prompt, long);
      const pieces = generation[Symbol.asyncIterator]();
      await pieces.next();
      await pieces.return();
      const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }];
      const stream = await engine.chat.completions.create({ messages, stream: true });
      for await (const _ of stream) break;
      return [generation, pieces, stream].map((one) => new WeakRef(one));
    };
    const left = (await Promise.all(Array.from({ length: 4 }, leave))).flat();
    const kept = () => {
      collect();
      return left.filter((one) => one.deref() !== undefined).length;
    };
    // the last message's data is released in a later task
    for (let i = 0; i < 200 && kept() > 0; i++) await sleep(50);
    assert.equal(kept(), 0, 'no abandoned generation is kept');
  });
});

describe('speculation', () => {
  const list = Array.from({ length: 6 }, (_, i) => `{"name": "Anna", "age": ${i}}`).join('\n');
  for (const temperature of [0, 0.8]) {
    test(`does not change the output, temperature ${temperature}`, async (t) => {
      const engine = await openEngine(t);
      /** @type {import('../../js/index.js').GenerateOptions} */
      const options = { temperature, seed: 5, maxTokens: 120, ignoreEnd: true };
      const plain = await engine.generate(list, { ...options, speculation: false }).text();
      assert.equal((await engine.stats()).tokens.proposed, 0);
      assert.equal(
        await engine.generate(list, { ...options, speculation: 'always' }).text(),
        plain,
      );
      const { tokens } = await engine.stats();
      assert.ok(tokens.proposed > 0, 'tokens must be proposed');
      assert.ok(tokens.accepted <= tokens.proposed);
      if (temperature === 0) assert.ok(tokens.accepted > 0, 'tokens must be accepted');
    });
  }
});

describe('a draft model', () => {
  const draft = { file: modelPath.replace('q8_0', 'q4_0') };

  for (const temperature of [0, 0.7]) {
    test(`proposes tokens without changing the output, temperature ${temperature}`, async (t) => {
      const plain = await openEngine(t, { draft: undefined });
      const engine = await openEngine(t, { draft });
      /** @type {import('../../js/index.js').GenerateOptions} */
      const options = {
        temperature,
        seed: 11,
        maxTokens: 100,
        ignoreEnd: true,
        speculation: 'always',
      };
      const prompts = ['Tell me a story about a boat.', prompt, 'What is 12 + 7?'];
      for (const text of prompts) {
        const said = await plain.generate(text, { ...options, speculation: false }).text();
        assert.equal(await engine.generate(text, options).text(), said);
      }
      const together = await Promise.all(
        prompts.map((text) => engine.generate(text, options).text()),
      );
      const alone = [];
      for (const text of prompts) alone.push(await plain.generate(text, options).text());
      assert.deepEqual(together, alone);
      const { tokens, draftFailed } = await engine.stats();
      assert.ok(tokens.proposed > 100 && tokens.accepted > 100, `${tokens.accepted}`);
      assert.equal(draftFailed, 0);
    });
  }

  test('an unusable draft model is rejected', async (t) => {
    const other = join(temporaryFolder(), 'tiny.gguf');
    await synthesize('tiny', 'q8_0', other);
    await assert.rejects(openEngine(t, { draft: { file: other } }), hasCode('MISMATCH'));
    await assert.rejects(openEngine(t, { draft: /** @type {any} */ ({}) }), hasCode('ARG'));
    const missing = openEngine(t, { draft: { file: `${modelPath}.missing` } });
    await assert.rejects(missing, hasCode('IO'));
    await assert.rejects(openEngine(t, { draft, memoryLimit: 13e6 }), hasCode('NOMEM'));
  });
});

describe('more requests than the engine accepts', () => {
  const short = { temperature: 0, maxTokens: 2, ignoreEnd: true };

  test('the most urgent of 201 requests starts first, and requests of equal priority start in call order', async (t) => {
    // pages for only one request at a time, so requests finish in the order they start
    const { engine, release } = await openHeldEngine(t, { kvTokens: 32, prefixCache: false });
    /** @type {string[]} */
    const ended = [];
    const ask = async (/** @type {string} */ name, priority = 0) => {
      await engine.generate(`${name} ${prompt}`, { ...short, priority }).text();
      ended.push(name);
    };
    const asked = Array.from({ length: 199 }, (_, i) => ask(`Usual ${i}`));
    asked.push(ask('Later', -5), ask('Urgent', 100));
    const { requests } = await engine.stats();
    assert.equal(requests.running + requests.waiting, 201);
    release();
    await Promise.all(asked);
    const usual = ended.filter((name) => name.startsWith('Usual'));
    assert.deepEqual(ended, ['Urgent', ...usual, 'Later']);
    assert.deepEqual(
      usual,
      Array.from({ length: 199 }, (_, i) => `Usual ${i}`),
    );
  });

  test('if some waiting requests are aborted, the others complete, and no listener remains', async (t) => {
    const { engine, release } = await openHeldEngine(t);
    let listening = 0;
    const controllers = Array.from({ length: 150 }, () => {
      const controller = new AbortController();
      const { signal } = controller;
      const { addEventListener, removeEventListener } = signal;
      signal.addEventListener = (/** @type {[any, any]} */ ...args) => {
        listening++;
        addEventListener.apply(signal, args);
      };
      signal.removeEventListener = (/** @type {[any, any]} */ ...args) => {
        listening--;
        removeEventListener.apply(signal, args);
      };
      return controller;
    });
    const asked = controllers.map(({ signal }, i) =>
      engine.generate(`${i} ${prompt}`, { ...short, signal, priority: i % 3 }).text(),
    );
    const settled = Promise.allSettled(asked);
    const before = (await engine.stats()).requests;
    assert.equal(before.running + before.waiting, 150);
    assert.equal(listening, 150);
    for (const [i, controller] of controllers.entries()) if (i % 2 === 1) controller.abort();
    release();
    for (const [i, one] of (await settled).entries()) {
      assert.equal(one.status, i % 2 === 1 ? 'rejected' : 'fulfilled', `${i}`);
      if (one.status === 'rejected') assert.equal(one.reason.name, 'AbortError');
    }
    assert.equal(listening, 0);
    const { requests } = await engine.stats();
    assert.equal(requests.running + requests.waiting, 0);
  });
});

describe('a queue with a limit', () => {
  test('a request over the limit is rejected immediately, and accepted once there is space', async (t) => {
    const { engine, release } = await openHeldEngine(t, { queueLimit: 3 });
    const two = engine.generateMany(prompt, { n: 2, ...greedy }).map((one) => one.text());
    const many = engine.generateMany(prompt, { n: 2, ...greedy });
    for (const one of many) await assert.rejects(one.text(), hasCode('QUEUE_FULL'));
    const third = engine.generate(prompt, greedy).text();
    await assert.rejects(engine.generate(prompt, greedy).text(), hasCode('QUEUE_FULL'));
    assert.equal((await engine.stats()).requests.refused, 3);
    release();
    const texts = await Promise.all([...two, third]);
    assert.equal(await engine.generate(prompt, greedy).text(), texts[0]);
    await assert.rejects(openEngine(t, { queueLimit: 0 }), hasCode('ARG'));
  });

  test('requests that wait in the worker count as waiting', async (t) => {
    const { engine, release } = await openHeldEngine(t);
    const asked = Array.from({ length: 100 }, () =>
      engine.generate(prompt, { maxTokens: 1 }).text(),
    );
    const { requests } = await engine.stats();
    assert.equal(requests.running + requests.waiting, 100);
    // some requests may already be running
    assert.ok(requests.waitingMax >= requests.waiting && requests.waitingMax <= 100);
    release();
    await Promise.all(asked);
    assert.equal((await engine.stats()).requests.waiting, 0);
  });
});

describe('statistics', () => {
  test('stats count requests and tokens, in JSON and for Prometheus', async (t) => {
    const engine = await openEngine(t);
    const { result } = await generateAll(engine);
    const stats = await engine.stats();
    assert.equal(stats.requests.submitted, 1);
    assert.equal(stats.requests.stopped + stats.requests.length, 1);
    assert.equal(stats.tokens.prompt, result?.usage.promptTokens);
    assert.equal(stats.tokens.out, result?.usage.completionTokens);
    assert.ok(stats.passes > 0 && stats.rows >= stats.tokens.prompt);
    const text = await engine.stats({ format: 'prometheus' });
    assert.match(
      text,
      /^# TYPE wick_requests_submitted_total counter\nwick_requests_submitted_total 1$/m,
    );
    assert.match(text, new RegExp(`^wick_tokens_total{kind="out"} ${stats.tokens.out}$`, 'm'));
    for (const line of text.trimEnd().split('\n')) {
      assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="\w+"\})? \d+)$/);
    }
    await assert.rejects(engine.stats(/** @type {any} */ ({ format: 'xml' })), hasCode('ARG'));
  });
});

/** @param {import('../../js/index.js').Engine} engine */
async function generateAll(engine) {
  const generation = engine.generate(prompt, greedy);
  await generation.text();
  return generation;
}
