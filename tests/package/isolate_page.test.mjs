// wick-llm/isolate in Chromium, Firefox and WebKitGTK: if the server sends no headers, the page becomes cross-origin
// isolated after one reload; it is not reloaded if that would not help.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelFolder, temporaryFolder, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/isolate.js')} */
const { isolated } = await import(pathToFileURL(join(dist, 'isolate.js')).href);

/** @param {string} worker */
const htmlWith = (
  worker,
) => `<!doctype html><meta charset="utf-8"><title>x</title><script type="module">
  import { isolate } from '/wick-llm/isolate.js';
  globalThis.found = isolate({ worker: '${worker}' });
  found.then((answer) => fetch(\`/answer?\${answer}\`));
</script>`;

const folder = temporaryFolder();
/** Paths of the pages requested from the server. @type {string[]} */
let asked = [];
/** Results of `isolate`, as reported by pages. @type {string[]} */
let answers = [];
const server = await serve({
  root: { '/': folder, '/wick-llm/': dist, '/models/': modelFolder },
  isolated: false,
  onRequest: (path) => {
    if (path.endsWith('/')) asked.push(path);
    if (path.startsWith('/answer')) answers.push(path);
  },
});
after(() => server.close());
for (const name of ['frame', 'plain', 'pictures', 'below']) mkdirSync(join(folder, name));
writeFileSync(join(folder, 'index.html'), htmlWith('/isolate-worker.js'));
writeFileSync(join(folder, 'pictures/index.html'), htmlWith('/isolate-worker.js?credentialless'));
writeFileSync(join(folder, 'below/index.html'), htmlWith('isolate-worker.js'));
writeFileSync(join(folder, 'plain/index.html'), '<!doctype html><title>x</title>');
writeFileSync(join(folder, 'frame/index.html'), '<!doctype html><iframe src="/"></iframe>');
writeFileSync(join(folder, 'broken-worker.js'), 'throw new Error("broken")');
writeFileSync(join(folder, 'own-worker.js'), "addEventListener('fetch', () => {})");
for (const place of ['', 'below']) {
  copyFileSync(join(dist, 'isolate-worker.js'), join(folder, place, 'isolate-worker.js'));
}

describe('isolated', () => {
  const both = {
    'cross-origin-embedder-policy': 'require-corp',
    'cross-origin-opener-policy': 'same-origin',
  };
  const headersOf = (/** @type {Response} */ { headers }) =>
    Object.fromEntries([...headers].filter(([name]) => name in both));

  /** @type {[name: string, given: Record<string, string>, wanted: Record<string, string>][]} */
  const cases = [
    ['none', {}, both],
    [
      'an opener policy of popups',
      { 'cross-origin-opener-policy': 'same-origin-allow-popups' },
      both,
    ],
    ['only an embedder policy', { 'cross-origin-embedder-policy': 'require-corp' }, both],
    [
      'an embedder policy that does not isolate',
      { 'cross-origin-embedder-policy': 'unsafe-none; report-to="x"' },
      both,
    ],
    [
      'credentialless with parameters',
      { 'cross-origin-embedder-policy': 'credentialless; report-to="x"' },
      { ...both, 'cross-origin-embedder-policy': 'credentialless; report-to="x"' },
    ],
  ];
  for (const [name, given, wanted] of cases) {
    test(`a page with ${name} gets the missing headers`, async () => {
      const response = new Response('text', { headers: given });
      const found = isolated(response);
      assert.deepEqual(headersOf(found), wanted);
      assert.equal(await found.text(), 'text');
    });
  }

  test('responses that are isolated already, or have no readable status, are unchanged', () => {
    const whole = new Response('text', { headers: both });
    assert.equal(isolated(whole), whole);
    const error = Response.error();
    assert.equal(isolated(error), error);
  });

  test('error pages get the headers as well', async () => {
    const lost = new Response('lost', { status: 404, statusText: 'Not Found' });
    const found = isolated(lost);
    assert.deepEqual(
      [found.status, found.statusText, await found.text()],
      [404, 'Not Found', 'lost'],
    );
    assert.deepEqual(headersOf(found), both);
    assert.deepEqual(headersOf(isolated(new Response(null, { status: 204 }))), both);
  });

  test('the policy may be credentialless', () => {
    const found = isolated(new Response('text'), 'credentialless');
    assert.equal(found.headers.get('cross-origin-embedder-policy'), 'credentialless');
  });
});

describe('isolate in Chromium', { skip: locate('chromium').skip }, () => {
  /** @type {import('playwright-core').Browser} */
  let browser;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser?.close());

  /** Opens a page in a new profile. @param {import('node:test').TestContext} t @param {string} [script] runs before the page's scripts */
  async function openPage(t, script = '') {
    asked = [];
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.addInitScript(script);
    return page;
  }

  /** @param {import('playwright-core').Page} page @returns {Promise<boolean>} the result of `isolate` after all reloads */
  async function resultOf(page) {
    /** @type {boolean | undefined} */
    let found;
    const look = () => page.evaluate('found').catch(() => undefined); // fails while the page reloads
    await waitUntil(async () => {
      found = /** @type {any} */ (await look());
      return found !== undefined;
    }, 'the result of isolate');
    return /** @type {boolean} */ (found);
  }

  test('a page is isolated after one reload and stays isolated', async (t) => {
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

  test('an engine in an isolated page has two threads', async (t) => {
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
      'whose registration is rejected, as in private windows',
      "ServiceWorkerContainer.prototype.register = async () => { throw new DOMException('', 'SecurityError') }",
      0,
    ],
    [
      'whose worker cannot start',
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

  /** @param {import('playwright-core').Page} page @returns {Promise<string[]>} the files of all service workers */
  const workersOf = (page) =>
    page.evaluate(async () => {
      const found = await navigator.serviceWorker.getRegistrations();
      return found.map(({ active }) => new URL(active?.scriptURL ?? '').pathname);
    });

  test("a site's own service worker is not replaced", async (t) => {
    const page = await openPage(t);
    await page.goto(`${server.url}plain/`);
    await page.evaluate(async () => {
      await navigator.serviceWorker.register('/own-worker.js');
      await navigator.serviceWorker.ready;
    });
    for (const path of ['', 'below/']) {
      asked = [];
      await page.goto(`${server.url}${path}`);
      assert.equal(await resultOf(page), false);
      assert.deepEqual(asked, [`/${path}`]);
      assert.deepEqual(await workersOf(page), ['/own-worker.js']);
    }
  });

  test('a page in a folder that contains the worker', async (t) => {
    const page = await openPage(t);
    await page.goto(`${server.url}below/`);
    assert.equal(await resultOf(page), true);
    assert.deepEqual(asked, ['/below/', '/below/']);
    await page.goto(`${server.url}plain/`);
    assert.equal(await page.evaluate('crossOriginIsolated'), false);
  });

  test('a second tab is isolated immediately, and the first one continues', async (t) => {
    const page = await openPage(t);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    const second = await page.context().newPage();
    asked = [];
    await second.goto(server.url);
    assert.equal(await resultOf(second), true);
    assert.deepEqual(asked, ['/']);
    assert.equal(await page.evaluate('crossOriginIsolated'), true);
  });

  test('after unregistering, other pages are not isolated, and the worker can be registered again', async (t) => {
    const page = await openPage(t);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    await page.evaluate(async () => {
      for (const one of await navigator.serviceWorker.getRegistrations()) await one.unregister();
    });
    await page.goto(`${server.url}plain/`);
    assert.equal(await page.evaluate('crossOriginIsolated'), false);
    await page.evaluate(() => {
      const hourAgo = Date.now() - 3_600_000;
      for (const name of Object.keys(sessionStorage)) sessionStorage.setItem(name, `${hourAgo}`);
    });
    asked = [];
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    assert.deepEqual(asked, ['/', '/']);
  });

  test('without a network a page fails to load as it does without the worker', async (t) => {
    const page = await openPage(t);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
    await page.context().setOffline(true);
    await assert.rejects(page.reload(), /ERR_INTERNET_DISCONNECTED|ERR_FAILED/);
    await page.context().setOffline(false);
    await page.goto(server.url);
    assert.equal(await resultOf(page), true);
  });

  test('images from other origins require the credentialless policy', async (t) => {
    const other = await serve({ root: join(root, 'examples/chat'), isolated: false });
    t.after(() => other.close());
    /** @param {string} path @returns {Promise<boolean>} whether the image loads in the isolated page */
    const loads = async (path) => {
      const page = await openPage(t);
      await page.goto(`${server.url}${path}`);
      assert.equal(await resultOf(page), true);
      assert.equal(await page.evaluate('crossOriginIsolated'), true);
      return page.evaluate(
        (address) =>
          new Promise((settle) => {
            const picture = new Image();
            picture.onload = () => settle(true);
            picture.onerror = () => settle(false);
            picture.src = address;
          }),
        `${other.url}chat.png`,
      );
    };
    assert.equal(await loads(''), false);
    assert.equal(await loads('pictures/'), true);
  });
});

test('isolate in Firefox', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await isolateOnce(
    (url) => page.goto(url),
    () => page.evaluate('crossOriginIsolated'),
  );
});

test('isolate in WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await isolateOnce(
    (url) => page.goto(url),
    () => page.evaluate('return crossOriginIsolated'),
  );
});

/**
 * Visits the page, which reports its result to the server, because a driver returns nothing for a script whose page
 * reloads.
 * @param {(url: string) => Promise<unknown>} visit
 * @param {() => Promise<unknown>} look whether the page is isolated
 */
async function isolateOnce(visit, look) {
  [asked, answers] = [[], []];
  for (const loads of [2, 3]) {
    await visit(server.url);
    await waitUntil(() => answers.length === loads - 1, 'the result of isolate');
    assert.deepEqual(answers, Array(loads - 1).fill('/answer?true'));
    assert.deepEqual(asked, Array(loads).fill('/'));
    assert.equal(await look(), true);
  }
}
