// The package in Chromium with the limits of phones: file handles that cannot be sent to a worker, and little shared memory,
// which closed pages do not free.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelFolder, untilTrue } from '../support/package.mjs';

const { skip } = locate('chromium');
const MIB = 2 ** 20;

describe('the package on phones', { skip }, () => {
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  before(async () => {
    const folders = {
      '/': join(root, 'tests/support/empty_page'),
      '/wick-llm/': dist,
      '/models/': modelFolder,
    };
    server = await serve({ root: folders });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /** @param {import('node:test').TestContext} t @param {string} [script] runs before each page's scripts */
  async function openContext(t, script = '') {
    const context = await browser.newContext();
    context.setDefaultTimeout(PATIENCE_MS);
    t.after(() => context.close());
    await context.addInitScript(script);
    const open = async () => {
      const page = await context.newPage();
      await page.goto(server.url);
      return page;
    };
    return { context, open };
  }

  /**
   * Generates text once `expected` threads are running (by default all), however long that takes on a busy machine.
   * @param {{url: string, threads: number, expected?: number}} options
   */
  const ask = async ({ url, threads, expected = threads }) => {
    const { createEngine } = await import(/** @type {any} */ ('/wick-llm/index.js'));
    const engine = await createEngine({ url, threads });
    /** @type {any} */ (globalThis).engine = engine;
    const end = Date.now() + 100e3;
    while ((await engine.info()).threads < expected && Date.now() < end)
      await new Promise((settle) => setTimeout(settle, 10));
    const text = await engine.generate('Once', { temperature: 0, maxTokens: 8 }).text();
    return { text, threads: (await engine.info()).threads };
  };

  /**
   * Waits until the model is stored: its last chunk may be stored after the model has answered.
   * @param {import('playwright-core').Page} page
   * @param {string} url
   */
  const untilKept = (page, url) =>
    page.evaluate(async (name) => {
      const { openModels } = await import(/** @type {any} */ ('/wick-llm/models.js'));
      const store = await openModels();
      while (!(await store.has(name))) await new Promise((settle) => setTimeout(settle, 20));
    }, url);

  /**
   * Checks that a second page, without the server, generates the same text with the model stored by the first page.
   * @param {import('playwright-core').BrowserContext} context
   * @param {() => Promise<import('playwright-core').Page>} open
   * @param {() => Promise<unknown>} [change] applied before the second page
   */
  async function assertKept(context, open, change) {
    const kept = { url: '/models/wick-2.6m-q8_0.gguf', threads: 1 };
    const first = await open();
    const { text } = await first.evaluate(ask, kept);
    await untilKept(first, kept.url);
    await first.close();
    await context.route('**/models/**', (route) => route.abort());
    await change?.();
    const second = await open();
    assert.equal((await second.evaluate(ask, kept)).text, text);
  }

  test('a cached model is loaded if handles cannot be sent to workers', async (t) => {
    // like WebKit before July 2026
    const refuse = `{
      const refuse = (value, depth = 0) => {
        if (value instanceof FileSystemHandle)
          throw new DOMException('The object can not be cloned.', 'DataCloneError');
        if (depth < 5 && value && typeof value === 'object' && !ArrayBuffer.isView(value))
          for (const one of Object.values(value)) refuse(one, depth + 1);
      };
      for (const { prototype } of [Worker, MessagePort]) {
        const { postMessage } = prototype;
        prototype.postMessage = function (value, ...more) {
          refuse(value);
          return postMessage.call(this, value, ...more);
        };
      }
      const clone = structuredClone;
      globalThis.structuredClone = (value, ...more) => { refuse(value); return clone(value, ...more); };
    }`;
    const { context, open } = await openContext(t, refuse);
    await assertKept(context, open);
  });

  for (const [what, script] of Object.entries({
    'the folder': 'StorageManager.prototype.getDirectory = async () => { throw new Error(); };',
    'a file': 'FileSystemFileHandle.prototype.createSyncAccessHandle = undefined;',
  })) {
    test(`a cached model is read from blobs if a worker cannot open ${what}`, async (t) => {
      const { context, open } = await openContext(t);
      await assertKept(context, open, () =>
        context.route('**/wick-llm/worker.js', async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, body: `${script}\n${await response.text()}` });
        }),
      );
    });
  }

  /** Inserted before worker.js: the memory sent to a helper is lost in transit, or arrives empty. */
  const losing = (/** @type {boolean} */ isEmpty) => `{
    const notes = new BroadcastChannel('asks');
    const onmessage = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage');
    Object.defineProperty(MessagePort.prototype, 'onmessage', { set(listener) {
      onmessage.set.call(this, (event) => {
        if (!event.data?.memory) return listener.call(this, event);
        notes.postMessage('lost');
        if (${isEmpty}) return listener.call(this, { data: { ...event.data, memory: undefined } });
        this.onmessageerror?.(new MessageEvent('messageerror'));
      });
    } });
  }\n`;

  for (const isEmpty of [false, true]) {
    test(`one thread is used if shared memory arrives ${isEmpty ? 'empty' : 'not at all'} in a helper`, async (t) => {
      const { context, open } = await openContext(t);
      const given = { url: '/models/wick-2.6m-q8_0.gguf', threads: 2 };
      const wanted = await (await open()).evaluate(ask, { ...given, threads: 1 });
      await context.route('**/wick-llm/worker.js', async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: losing(isEmpty) + (await response.text()) });
      });
      const page = await open();
      /** @type {string[]} */
      const warned = [];
      page.on('console', (message) => warned.push(message.text()));
      await page.evaluate(() => {
        /** @type {any} */ (globalThis).losses = 0;
        new BroadcastChannel('asks').onmessage = () => /** @type {any} */ (globalThis).losses++;
      });
      assert.deepEqual(await page.evaluate(ask, { ...given, expected: 1 }), wanted);
      await untilTrue(page, 'losses >= 10');
      const again = "engine.generate('Once', { temperature: 0, maxTokens: 8 }).text()";
      assert.equal(await page.evaluate(again), wanted.text);
      assert.equal(await page.evaluate('engine.info().then(({ threads }) => threads)'), 1);
      assert.equal(await page.evaluate('losses'), 10, 'the helper must stop asking');
      assert.deepEqual(
        warned.map((text) => text.includes('cannot share memory with a helper')),
        [true],
      );
      await page.evaluate('engine.close()');
    });
  }

  test('models and states are stored correctly if a write ignores the bounds of its view', async (t) => {
    // like Safari 26 (WebKit bug 302733)
    const { context, open } = await openContext(
      t,
      `{
        const { write } = FileSystemWritableFileStream.prototype;
        FileSystemWritableFileStream.prototype.write = function (data) {
          return write.call(this, ArrayBuffer.isView(data) ? data.buffer : data);
        };
      }`,
    );
    const given = { url: '/models/wick-2.6m-q8_0.gguf', threads: 1 };
    const first = await open();
    const { text } = await first.evaluate(ask, given);
    const saved = await first.evaluate(async () => {
      const { engine } = /** @type {any} */ (globalThis);
      return [...(await engine.saveState('state'))];
    });
    await untilKept(first, given.url);
    await first.close();
    await context.route('**/models/**', (route) => route.abort());
    const second = await open();
    assert.equal((await second.evaluate(ask, given)).text, text);
    const stored = await second.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('wick-llm');
      const file = await (await folder.getFileHandle('state')).getFile();
      return [...new Uint8Array(await file.arrayBuffer())];
    });
    assert.deepEqual(stored, saved);
  });

  // workers have 500 KB of stack in Chromium and 512 KB in Safari
  test('the small stack of a worker suffices to answer or reject the most deeply nested requests', async (t) => {
    const { open } = await openContext(t);
    const page = await open();
    await page.evaluate(ask, { url: '/models/wick-2.6m-q8_0.gguf', threads: 1 });
    const found = await page.evaluate(async () => {
      const { engine } = /** @type {any} */ (globalThis);
      const nest = (
        /** @type {string} */ before,
        /** @type {string} */ middle,
        /** @type {string} */ end,
        /** @type {number} */ depth,
      ) => before.repeat(depth) + middle + end.repeat(depth);
      /** @type {Record<string, (depth: number) => object>} */
      const constraints = {
        schema: (depth) => ({ jsonSchema: JSON.parse(nest('{"items":', '{}', '}', depth)) }),
        regex: (depth) => ({ regex: nest('(', 'a', ')', depth) }),
        grammar: (depth) => ({ grammar: `root ::= ${nest('(', '"a"', ')', depth)}` }),
      };
      const parameters = (/** @type {number} */ depth) =>
        JSON.parse(nest('{"properties":{"a":', '{}', '}}', depth));
      const { createEngine } = await import(/** @type {any} */ ('/wick-llm/index.js'));
      const render = async (/** @type {number} */ depth) => {
        const chatTemplate = `{{ ${nest('[', '1', ']', depth)} | tojson }}`;
        const url = '/models/wick-2.6m-q8_0.gguf';
        const own = await createEngine({ url, chatTemplate, directoryOnly: true });
        const messages = [{ role: 'user', content: 'x' }];
        return own.applyTemplate(messages).finally(() => own.close());
      };
      /** @type {Record<string, string[]>} */
      const outcomes = {};
      const note = async (
        /** @type {string} */ name,
        /** @type {() => Promise<unknown>} */ action,
      ) => {
        const outcome = await action().then(
          () => 'answer',
          (error) => error.code ?? `${error}`,
        );
        outcomes[name] = [...(outcomes[name] ?? []), outcome];
      };
      for (const depth of [10, 96, 199, 1000, 3000]) {
        for (const [name, make] of Object.entries(constraints)) {
          const settings = { temperature: 0, maxTokens: 4, ...make(depth) };
          await note(name, () => engine.generate('Once', settings).text());
        }
        await note('tool', () =>
          engine.chat.completions.create({
            messages: [{ role: 'user', content: 'x' }],
            tools: [{ type: 'function', function: { name: 'f', parameters: parameters(depth) } }],
            max_tokens: 4,
          }),
        );
        await note('template', () => render(depth));
      }
      return outcomes;
    });
    for (const [name, [first, ...others]] of Object.entries(found)) {
      assert.equal(first, 'answer', name);
      for (const other of others)
        assert.match(other, /^(answer|ARG|TEMPLATE|GRAMMAR_TOO_LARGE)$/, name);
    }
  });

  /** Inserted before worker.js: each thread reports the memory it reserves, and the end of its work as a helper. */
  const limited = (/** @type {number} */ visit, /** @type {number} */ grantedBytes) => `{
    const notes = new BroadcastChannel('notes');
    const { Memory, Instance } = WebAssembly;
    WebAssembly.Memory = function (options) {
      const bytes = options.maximum * 65536;
      if (options.shared && bytes > ${grantedBytes}) throw new RangeError('Out of memory');
      const memory = new Memory(options);
      if (options.shared) notes.postMessage({ visit: ${visit}, bytes });
      return memory;
    };
    WebAssembly.Instance = function (...given) {
      const { exports } = new Instance(...given);
      const helper_main = (index) => {
        exports.helper_main(index);
        notes.postMessage({ visit: ${visit}, bytes: 0 });
      };
      return { exports: { ...exports, ...(exports.helper_main && { helper_main }) } };
    };
  }\n`;

  test('reloads leave no shared memory if a page is granted 384 MB, and all pages 2 GB', async (t) => {
    const { context, open } = await openContext(t);
    const observer = await open();
    await observer.evaluate(() => {
      /** @type {Record<number, number>} */
      const bytesOf = {};
      new BroadcastChannel('notes').onmessage = ({ data }) => {
        bytesOf[data.visit] = data.bytes;
      };
      /** @type {any} */ (globalThis).bytesOf = bytesOf;
    });
    let visit = 0;
    let lost = 0;
    /** Returns the memory of closed pages, which have 10 seconds to end their helpers, because the machine may be busy. */
    const taken = async () => {
      let bytes = 0;
      for (let i = 0; i < 200; i++) {
        const all = Object.entries(await observer.evaluate('bytesOf'));
        bytes = all.reduce((sum, [at, one]) => sum + (Number(at) < visit ? one : 0), 0);
        if (bytes <= lost) break;
        await new Promise((settle) => setTimeout(settle, 50));
      }
      lost = bytes; // the browser terminates a late worker, which then does not report its end
      return bytes;
    };
    await context.route('**/wick-llm/worker.js', async (route) => {
      const granted = Math.min(384 * MIB, 2048 * MIB - (await taken()));
      const response = await route.fetch();
      const body = limited(visit, granted) + (await response.text());
      await route.fulfill({ response, body });
    });
    const page = await open();
    const given = { url: '/models/wick-2.6m-q8_0.gguf', threads: 2 };
    /** @type {any[]} */
    const found = [];
    for (visit = 0; visit < 9; visit++) {
      if (visit > 0) await page.reload();
      found.push(await page.evaluate(ask, given));
    }
    assert.deepEqual(
      found,
      found.map(() => ({ text: found[0].text, threads: 2 })),
    );
  });
});
