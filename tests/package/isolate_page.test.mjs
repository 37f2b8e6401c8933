// wick-llm/isolate in Chromium: a page whose server sends no headers becomes cross-origin isolated after one reload, and is not
// reloaded where that would not help.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate } from '../support/locate.mjs';
import { dist, modelFolder, temporaryFolder, waitUntil } from '../support/package.mjs';

const html = `<!doctype html><meta charset="utf-8"><title>x</title><script type="module">
  import { isolate } from '/wick-llm/isolate.js';
  globalThis.found = isolate({ worker: '/isolate-worker.js' });
</script>`;

const folder = temporaryFolder();

describe('isolate', { skip: locate('chromium').skip }, () => {
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  /** The pages that the server was asked for. @type {string[]} */
  let asked;
  before(async () => {
    mkdirSync(join(folder, 'frame'));
    writeFileSync(join(folder, 'index.html'), html);
    writeFileSync(join(folder, 'frame/index.html'), '<!doctype html><iframe src="/"></iframe>');
    writeFileSync(join(folder, 'broken-worker.js'), 'throw new Error("broken")');
    copyFileSync(join(dist, 'isolate-worker.js'), join(folder, 'isolate-worker.js'));
    server = await serve({
      root: { '/': folder, '/wick-llm/': dist, '/models/': modelFolder },
      isolated: false,
      onRequest: (path) => void (/\/$/.test(path) && asked.push(path)),
    });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /** A page of a new profile. @param {import('node:test').TestContext} t @param {string} [script] that runs before its own */
  async function openPage(t, script = '') {
    asked = [];
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.addInitScript(script);
    return page;
  }

  /** @param {import('playwright-core').Page} page @returns {Promise<boolean>} the result of `isolate` in the page that stays */
  async function resultOf(page) {
    /** @type {boolean | undefined} */
    let found;
    const look = () => page.evaluate('found').catch(() => undefined); // the page reloads
    await waitUntil(async () => {
      found = /** @type {any} */ (await look());
      return found !== undefined;
    }, 'isolate has an answer');
    return /** @type {boolean} */ (found);
  }

  test('a page is isolated after one reload, and stays so', async (t) => {
    const page = await openPage(t);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    assert.deepEqual(asked, ['/', '/']);
    assert.equal(await page.evaluate('crossOriginIsolated'), true);
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    await page.reload();
    assert.equal(await resultOf(page), true);
    assert.deepEqual(asked, ['/', '/', '/']);
  });

  test('an engine there has two threads', async (t) => {
    const page = await openPage(t);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    const threads = await page.evaluate(async () => {
      const entry = '/wick-llm/index.js';
      /** @type {typeof import('../../js/index.js')} */
      const { createEngine } = await import(entry);
      const engine = await createEngine({ url: '/models/wick-2.6m-q8_0.gguf', threads: 2 });
      while ((await engine.info()).threads < 2) {
        await new Promise((settle) => setTimeout(settle, 20));
      }
      return (await engine.info()).threads;
    });
    assert.equal(threads, 2);
  });

  /** Pages that cannot be isolated. @type {[name: string, script: string, reloads: number][]} */
  const hopeless = [
    ['without service workers', 'delete Navigator.prototype.serviceWorker', 0],
    [
      'with a registration that is refused, as in private windows',
      "ServiceWorkerContainer.prototype.register = async () => { throw new DOMException('', 'SecurityError') }",
      0,
    ],
    [
      'with a worker that cannot start',
      `const { register } = ServiceWorkerContainer.prototype;
       ServiceWorkerContainer.prototype.register = function () { return register.call(this, '/broken-worker.js') }`,
      0,
    ],
    [
      'without storage for the tab',
      "Object.defineProperty(globalThis, 'sessionStorage', { get() { throw new DOMException('', 'SecurityError') } })",
      0,
    ],
    [
      'in a browser that ignores the worker',
      "Object.defineProperty(globalThis, 'crossOriginIsolated', { value: false })",
      1,
    ],
  ];
  for (const [name, script, reloads] of hopeless) {
    test(`a page ${name} is reloaded ${reloads === 0 ? 'never' : 'once'}`, async (t) => {
      const page = await openPage(t, script);
      await page.goto(server.url);
      assert.equal(await resultOf(page), false);
      await page.evaluate(() => new Promise((settle) => requestAnimationFrame(settle)));
      assert.deepEqual(asked, Array(1 + reloads).fill('/'));
    });
  }

  test('a frame is not reloaded', async (t) => {
    const page = await openPage(t);
    await page.goto(`${server.url}frame/`);
    const [, frame] = page.frames();
    await frame.waitForLoadState();
    assert.equal(await frame.evaluate('found'), false);
    assert.deepEqual(asked, ['/frame/', '/']);
  });
});
