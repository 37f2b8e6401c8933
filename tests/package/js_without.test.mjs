// An engine in restricted hosts: without shared memory, without storage, and closed automatically.

import assert from 'node:assert/strict';
import { promises, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { isThreaded } from '../../js/wasm/wasm_module.js';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import {
  assertSpeaks,
  dist,
  hasCode,
  modelPath,
  openEngine,
  openHeldEngine,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';

const prompt = 'Once upon a time there was a little girl who';
const greedy = { temperature: 0, maxTokens: 40, ignoreEnd: true };

describe('without shared memory the single-thread module is used', () => {
  /** @param {import('node:test').TestContext} t @param {object} [options] */
  async function speak(t, options) {
    /** @type {boolean[]} */
    const areThreaded = [];
    const worker = () => {
      const made = new Worker(join(dist, 'worker.js'));
      const { postMessage } = made;
      made.postMessage = (/** @type {any[]} */ ...args) => {
        if (args[0].module) areThreaded.push(isThreaded(args[0].module));
        Reflect.apply(postMessage, made, args);
      };
      return made;
    };
    const engine = await openEngine(t, { file: modelPath, threads: 2, worker, ...options });
    const text = await engine.generate(prompt, greedy).text();
    const { threads } = await engine.info();
    await engine.close();
    return { text, threads, areThreaded };
  }

  test('in Node', async (t) => {
    const { text, areThreaded } = await speak(t);
    assert.ok(areThreaded.length >= 1 && areThreaded.every((one) => one));
    const found = /** @type {PropertyDescriptor} */ (
      Object.getOwnPropertyDescriptor(globalThis, 'SharedArrayBuffer')
    );
    t.after(() => Object.defineProperty(globalThis, 'SharedArrayBuffer', found));
    for (const threads of [2, undefined]) {
      Reflect.deleteProperty(globalThis, 'SharedArrayBuffer');
      const without = await speak(t, { threads });
      Object.defineProperty(globalThis, 'SharedArrayBuffer', found);
      assert.deepEqual(without, { text, threads: 1, areThreaded: [false] });
    }
    const isolated = Object.getOwnPropertyDescriptor(globalThis, 'crossOriginIsolated');
    Object.defineProperty(globalThis, 'crossOriginIsolated', { value: false, configurable: true });
    t.after(() => {
      if (isolated) Object.defineProperty(globalThis, 'crossOriginIsolated', isolated);
      else Reflect.deleteProperty(globalThis, 'crossOriginIsolated');
    });
    assert.deepEqual(await speak(t), { text, threads: 1, areThreaded: [false] });
  });

  test('in Chromium, on a page that is not isolated', {
    skip: locate('chromium').skip,
  }, async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    /** Runs in the page. @param {{prompt: string, greedy: object}} asked */
    const speakThere = async ({ prompt, greedy }) => {
      const path = '/dist/index.js';
      const { createEngine } = await import(path);
      const url = '/dist/models/wick-2.6m-q8_0.gguf';
      const engine = await createEngine({ url, threads: 2 });
      const text = await engine.generate(prompt, greedy).text();
      await engine.close();
      return text;
    };
    const said = [];
    for (const isolated of [true, false]) {
      /** @type {string[]} */
      const modules = [];
      const server = await serve({
        ...{
          root: {
            '/': resolve(root, 'tests/support/empty_page'),
            '/dist/': dist,
            '/dist/models/': resolve(root, 'examples/models'),
          },
          isolated,
        },
        onRequest: (path) => path.endsWith('.wasm') && modules.push(path),
      });
      t.after(() => server.close());
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(server.url);
      said.push(await page.evaluate(speakThere, { prompt, greedy }));
      assert.equal(modules.length, 1);
      assert.match(modules[0], isolated ? /-threads\.wasm$/ : /-single\.wasm$/);
    }
    assert.ok(said[0].length > 40);
    assert.equal(said[0], said[1]);
  });
});

describe('storage full', () => {
  test('a state that cannot be saved: a typed error, and the previous state is kept', async (t) => {
    const engine = await openEngine(t);
    const folder = temporaryFolder();
    const kept = join(folder, 'kept.wick');
    writeFileSync(kept, 'before');
    const session = await engine.createSession();
    await session.append(prompt);
    for (const code of ['ENOSPC', 'EDQUOT']) {
      const full = t.mock.method(promises, 'writeFile', async (/** @type {string} */ name) => {
        writeFileSync(name, 'half of it');
        throw Object.assign(new Error('no space left on device'), { code });
      });
      await assert.rejects(session.save(kept), hasCode('STORAGE_FULL'));
      await assert.rejects(engine.saveState(join(folder, 'new')), hasCode('STORAGE_FULL'));
      assert.equal(full.mock.callCount(), 2);
      full.mock.restore();
    }
    assert.equal(readFileSync(kept, 'utf8'), 'before');
    assert.deepEqual(readdirSync(folder), ['kept.wick']);
    assert.ok((await session.prompt(' had', greedy).text()).length > 0);
    await session.save(kept);
    assert.ok((await engine.loadState(kept)).session);
  });

  test('pages that do not fit in the swap file are recomputed', async (t) => {
    const folder = temporaryFolder();
    // makes every write by the worker fail
    const full = `const from = process.getBuiltinModule, fs = from('node:fs');
      fs.writeSync = () => { throw Object.assign(new Error('full'), { code: 'ENOSPC' }); };
      const name = ${JSON.stringify(join(dist, 'worker.js'))};
      from('node:vm').runInThisContext(fs.readFileSync(name, 'utf8'), name);`;
    const { engine, release } = await openHeldEngine(t, {
      ...{ kvTokens: 2 * 96, prefixCache: false, swap: { folder, always: true } },
      worker: () => new Worker(full, { eval: true }),
    });
    const ask = (/** @type {number} */ i) => engine.generate(`${i} ${prompt}`, greedy).text();
    const asked = [0, 1, 2, 3, 4, 5].map(ask);
    release();
    const texts = await Promise.all(asked);
    const { requests, kv } = await engine.stats();
    assert.ok(
      requests.preempted > 0 && requests.swapFailed > 0,
      'preempted pages could not be written',
    );
    assert.equal(requests.swappedIn, 0);
    assert.equal(kv.pages.free, kv.pages.all);
    for (const [i, text] of texts.entries()) assert.equal(await ask(i), text);
    await engine.close();
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('await using', () => {
  // has the effect of `await using`, which Node 20 does not support
  const dispose = (/** @type {any} */ one) => one[Symbol.asyncDispose]();

  test('closes an engine and cancels its running requests', async (t) => {
    const engine = await openEngine(t);
    const pending = engine.generate(prompt, { ignoreEnd: true }).text();
    pending.catch(() => {});
    await dispose(engine);
    await assert.rejects(pending, hasCode('CLOSED'));
    await assert.rejects(engine.tokenize('a'), hasCode('CLOSED'));
    await dispose(engine);
  });

  test('frees the pages of a session', async (t) => {
    const engine = await openEngine(t);
    const session = await engine.createSession();
    await session.append(prompt);
    assert.equal((await engine.kvStats()).sessions, 1);
    await dispose(session);
    assert.equal((await engine.kvStats()).sessions, 0);
    await assert.rejects(session.tokens(), hasCode('SEQ'));
    await dispose(session);
    await assertSpeaks(engine);
  });

  test('cancels a generation and a chat stream', async (t) => {
    const engine = await openEngine(t);
    const [end] = await engine.tokenize('<|im_end|>');
    const stream = await engine.chat.completions.create({
      messages: [{ role: 'user', content: 'Hello' }],
      ...{ stream: /** @type {const} */ (true), max_tokens: 1000, logit_bias: { [end]: -100 } },
    });
    const text = engine.generate(prompt, { maxTokens: 1000, ignoreEnd: true });
    for (const one of [stream, text]) {
      const pieces = one[Symbol.asyncIterator]();
      assert.equal((await pieces.next()).done, false);
      await dispose(pieces);
      assert.deepEqual(await pieces.next(), { done: true, value: undefined });
    }
    assert.equal(text.result?.finishReason, 'abort');
    await waitUntil(async () => {
      const { running, waiting } = (await engine.stats()).requests;
      return running + waiting === 0;
    }, 'no request to be running');
    await assertSpeaks(engine);
  });
});
