// The chat page on phones, reproduced from public reports: pages that the system ends while a model loads, unstable networks,
// lost database connections, on-screen keyboards, input methods, file pickers, and applications on a home screen. In
// Chromium, which simulates Safari for reports about Safari.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { judge } from '../../examples/chat/model_verdict.js';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { openStub, opensLate, shown, talk } from '../support/chat_stub.mjs';
import { root } from '../support/locate.mjs';
import { serveModel } from '../support/model_server.mjs';
import { untilTrue } from '../support/package.mjs';
import { chooseInMenu } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, openPage, browser, url: siteUrl } = useChat('phones');

/** An iPhone's touch screen. */
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t @param {string} [script] runs before the page's own */
async function realPage(t, script = '') {
  const context = await browser().newContext({ serviceWorkers: 'block' });
  context.setDefaultTimeout(PATIENCE_MS);
  t.after(() => context.close());
  await context.addInitScript(script);
  const open = async (address = siteUrl()) => {
    const page = await context.newPage();
    await page.goto(address);
    return page;
  };
  return { context, open };
}

/** @param {import('node:test').TestContext} t @param {number} chunks @param {number} holdAt bytes */
async function heldModel(t, chunks, holdAt) {
  const small = readFileSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'));
  const model = await serveModel(Buffer.concat([small, Buffer.alloc(chunks * CHUNK_BYTES)]));
  t.after(() => model.close());
  model.state.holdAt = holdAt;
  const address = `${model.url.replace(/\/[^/]*$/, '')}/slow.gguf`;
  return {
    address,
    state: model.state,
    drop: model.drop,
    url: `${siteUrl()}?model=${encodeURIComponent(address)}`,
  };
}

/** @param {Page} page @param {string} text */
const untilShown = (page, text) =>
  untilTrue(page, `document.body.innerText.includes(${JSON.stringify(text)})`);

test('a model that killed the page while it loaded is not loaded at the next visits', {
  skip,
}, async (t) => {
  const model = 'https://models.example/large.gguf';
  const held = `globalThis.holdLoading = ({ url, model }) =>
    (url ?? model ?? '').includes('large') ? new Promise(() => {}) : undefined;
    localStorage.setItem('stub-kept', JSON.stringify(['${model}']));`;
  const first = await openPage(t, { script: held, path: `?model=${model}`, isReady: false });
  const context = first.context();
  await untilTrue(first, "localStorage.getItem('wick-chat-load') !== null");
  await Promise.race([
    first.waitForEvent('crash'),
    first.goto('chrome://crash').catch(() => new Promise(() => {})),
  ]);
  for (const visit of ['second', 'third']) {
    const page = await openStub(context, `${siteUrl()}?model=${model}`, { script: held });
    await untilShown(page, 'The browser closed this page while large.gguf was loading');
    assert.deepEqual(
      await page.evaluate('loaded.some((one) => one.includes("large"))'),
      false,
      visit,
    );
    await page.close();
  }
  const last = await openStub(context, `${siteUrl()}?model=${model}`, { script: held });
  await last.click('#retry-loading');
  await untilTrue(last, 'loaded.some((one) => one.includes("large"))');
});

test('a page that crashes twice while loading a chosen model starts with the built-in one and reports why', {
  skip,
}, async (t) => {
  const { context } = await realPage(t);
  const { address } = await heldModel(t, 0, Infinity);
  const marked = "localStorage.getItem('wick-chat-load') !== null";
  let isHeld = false;
  // its worker does not start, so the model loads until the page ends
  await context.route('**/wick-llm/worker.js', async (route) => {
    const isMarked = await route.request().frame().evaluate(marked);
    if (!isHeld || !isMarked) await route.continue();
  });
  const open = async () => {
    const page = await context.newPage();
    await page.goto(siteUrl());
    await page.waitForSelector('#send:not([disabled])');
    return page;
  };
  /** @param {Page} page */
  const crash = async (page) => {
    await untilTrue(page, marked);
    const crashed = page.waitForEvent('crash');
    const session = await context.newCDPSession(page);
    session.send('Page.crash').catch(() => {}); // never responds
    await crashed;
    isHeld = false;
  };
  const first = await open();
  await first.fill('#prompt', 'Hello');
  await first.click('#send');
  await first.locator('.message.assistant footer').waitFor();
  const said = await shown(first);
  isHeld = true;
  await first.click('#choose-model');
  await first.fill('#model-url', address);
  await first.click('#load-model');
  await crash(first);
  for (const visit of ['second', 'third']) {
    const page = await open();
    await untilShown(page, 'The browser closed this page while slow.gguf was loading');
    assert.notEqual(await page.textContent('#model-name'), 'slow.gguf', visit);
    assert.deepEqual(await shown(page), said, visit);
    isHeld = true;
    await page.click('#retry-loading');
    await crash(page);
  }
  const last = await open();
  await untilShown(last, 'The browser closed this page while slow.gguf was loading');
  await last.click('#retry-loading');
  await untilTrue(last, "document.getElementById('model-name').textContent === 'slow.gguf'");
});

for (const [kind, script] of Object.entries({
  forbidden: `Object.defineProperty(window, 'localStorage', {
    get() { throw new DOMException('no', 'SecurityError'); } });`,
  full: `Storage.prototype.setItem = () => { throw new DOMException('no', 'QuotaExceededError'); };`,
})) {
  test(`a model is loaded and answers if the local storage is ${kind}`, { skip }, async (t) => {
    const { open } = await realPage(t, script);
    const { url } = await heldModel(t, 0, Infinity);
    const page = await open('about:blank');
    /** @type {string[]} */
    const problems = [];
    page.on('pageerror', ({ message }) => problems.push(message));
    await page.goto(url);
    await untilTrue(page, "document.getElementById('model-name').textContent === 'slow.gguf'");
    await page.fill('#prompt', 'Hello');
    await page.click('#send:not([disabled])');
    await page.locator('.message.assistant footer').waitFor();
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))");
    assert.deepEqual(problems, []);
  });
}

test('a reload while a model loads does not count as a crash', { skip }, async (t) => {
  const model = 'https://models.example/large.gguf';
  const held = `globalThis.holdLoading = ({ url, model }) =>
    (url ?? model ?? '').includes('large') ? new Promise(() => {}) : undefined;
    localStorage.setItem('stub-kept', JSON.stringify(['${model}']));`;
  const page = await openPage(t, { script: held, path: `?model=${model}`, isReady: false });
  await untilTrue(page, "localStorage.getItem('wick-chat-load') !== null");
  await page.reload();
  await untilTrue(page, 'globalThis.loaded?.some((one) => one.includes("large"))');
});

test('the mark of a load survives the start of another tab, an earlier load, and a pause of its page', {
  skip,
}, async (t) => {
  const model = 'https://models.example/large.gguf';
  const held = `globalThis.finish = [];
    globalThis.holdLoading = ({ url, model }) => (url ?? model ?? '').includes('large')
      ? new Promise((settle) => finish.push(settle)) : undefined;
    localStorage.setItem('stub-kept', JSON.stringify(['${model}']));`;
  const marked = "localStorage.getItem('wick-chat-load') !== null";
  const page = await openPage(t, { script: held, path: `?model=${model}`, isReady: false });
  await untilTrue(page, 'finish.length === 1');
  const other = await openStub(page.context(), siteUrl(), { script: held });
  assert.equal(await other.locator('#problem').isHidden(), true);
  assert.equal(await other.evaluate(marked), true);
  await other.close();
  const turn = (/** @type {string} */ name) =>
    page.evaluate(`dispatchEvent(new PageTransitionEvent('${name}', { persisted: true }))`);
  await turn('pagehide');
  assert.equal(await page.evaluate(marked), false);
  await turn('pageshow');
  assert.equal(await page.evaluate(marked), true);
  await page.click('#choose-model');
  await page.fill('#model-url', model);
  await page.click('#load-model');
  await untilTrue(page, 'finish.length === 2');
  await page.evaluate('finish[0]()');
  await untilTrue(page, `closedEngines.length > 0`);
  assert.equal(await page.evaluate(marked), true);
  await page.evaluate('finish[1]()');
  await untilTrue(page, `!(${marked})`);
});

test('a download continues after a loss of the network', { skip }, async (t) => {
  const { context, open } = await realPage(t);
  const { state, drop, url } = await heldModel(t, 3, 5 << 20);
  const page = await open(url);
  await untilTrue(page, "/MB of/.test(document.getElementById('loading-facts').textContent)");
  await context.setOffline(true);
  drop();
  await untilShown(page, 'Waiting for the network');
  state.holdAt = Infinity;
  await context.setOffline(false);
  await untilTrue(page, "document.getElementById('model-name').textContent === 'slow.gguf'");
});

test('a download that waits for the network continues after a reload', { skip }, async (t) => {
  const { context, open } = await realPage(t);
  const { state, drop, url } = await heldModel(t, 3, 5 << 20);
  const page = await open(url);
  await untilTrue(page, "/MB of/.test(document.getElementById('loading-facts').textContent)");
  await context.setOffline(true);
  drop();
  await untilShown(page, 'Waiting for the network');
  const list = await page.evaluate("JSON.parse(localStorage.getItem('wick-chat-downloads'))");
  assert.deepEqual(
    list.map((/** @type {any} */ one) => one.isPaused),
    [false],
  );
  await context.setOffline(false);
  await page.goto(siteUrl());
  state.holdAt = Infinity; // only now, so that the download does not end before the reload
  drop();
  await untilTrue(page, "document.getElementById('model-name').textContent === 'slow.gguf'");
});

test('on a phone with unknown memory, a model that would crash the page does not fit', () => {
  const facts = { architecture: 'llama', name: 'x', types: {}, hasTemplate: true };
  const on = (/** @type {boolean} */ isPhone, /** @type {number} */ needBytes) =>
    judge({ ...facts, needBytes }, { limitBytes: 4.3e9, isPhone }, []).fits;
  assert.deepEqual([on(true, 1e9), on(true, 2.5e9), on(true, 3.5e9)], ['yes', 'tight', 'no']);
  assert.deepEqual([on(false, 2.5e9), on(false, 3.5e9)], ['yes', 'yes']);
});

test('an iPhone, an iPad and an Android phone are phones, a Mac is not', { skip }, async (t) => {
  const mac =
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/26.0 Safari/605.1.15';
  const iphone =
    'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 Version/26.0 Mobile/15E148 Safari/604.1';
  const android = 'Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0';
  const outcome = await build({
    entryPoints: [resolve(root, 'examples/chat/host.js')],
    ...{ bundle: true, format: 'iife', globalName: 'host', write: false },
  });
  const page = await openPage(t, { isReady: false });
  const kinds = await page.evaluate(
    ([code, agents]) =>
      agents.map(([userAgent, maxTouchPoints]) =>
        new Function('navigator', `${code}; return [host.isPhone(), host.isSafari()]`)({
          userAgent,
          maxTouchPoints,
        }),
      ),
    /** @type {const} */ ([
      outcome.outputFiles[0].text,
      [
        [iphone, 5],
        [mac, 5],
        [android, 5],
        [mac, 0],
      ],
    ]),
  );
  assert.deepEqual(kinds, [
    [true, true],
    [true, true],
    [true, false],
    [false, true],
  ]);
});

test('input after a lost database connection is stored with a new one', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    script: `{
      const { transaction } = IDBDatabase.prototype;
      const dead = new WeakSet();
      globalThis.killConnections = () => { globalThis.isKilled = true; };
      const alive = new WeakSet();
      IDBDatabase.prototype.transaction = function (...args) {
        if (globalThis.isKilled && !alive.has(this) && globalThis.known?.has(this))
          throw new DOMException('The database connection is closing.', 'InvalidStateError');
        (globalThis.known ??= new WeakSet()).add(this);
        if (globalThis.isKilled) alive.add(this);
        return transaction.apply(this, args);
      };
    }`,
  });
  await page.fill('#prompt', 'before');
  await untilTrue(page, 'globalThis.known !== undefined');
  await page.evaluate('killConnections()');
  await page.fill('#prompt', 'after the background');
  await page.waitForTimeout(0);
  const stored = `new Promise((settle) => {
    const request = indexedDB.open('wick-chat');
    request.onsuccess = () => {
      const all = request.result.transaction('drafts').objectStore('drafts').getAll();
      all.onsuccess = () => { request.result.close(); settle(all.result.some(({ text }) => text === 'after the background')); };
    };
  })`;
  await untilTrue(page, stored);
  assert.equal(await page.locator('#room').isHidden(), true);
});

test('the Enter that ends a composition in Safari sends nothing and saves no title', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const confirm = (/** @type {string} */ selector) =>
    page.locator(selector).evaluate((field) => {
      field.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
      field.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true }));
      const event = new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true });
      Object.defineProperty(event, 'keyCode', { value: 229 });
      field.dispatchEvent(event);
    });
  await page.fill('#prompt', 'にほん');
  await confirm('#prompt');
  assert.deepEqual(await page.evaluate('asked'), []);
  await page.keyboard.press('Enter');
  await untilTrue(page, 'asked.length === 1');
});

test('Enter starts a new line on touch screens, and sends with a mouse', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: phone });
  await page.fill('#prompt', 'one');
  await page.press('#prompt', 'Enter');
  assert.equal(await page.inputValue('#prompt'), 'one\n');
  assert.notEqual(await page.getAttribute('#prompt', 'enterkeyhint'), 'send');
  await page.click('#send');
  await untilTrue(page, 'asked.length === 1');
});

test('the message field stays above a screen keyboard that covers the page', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    options: phone,
    script: `const view = Object.assign(new EventTarget(), { height: 780, scale: 1 });
      Object.defineProperty(window, 'visualViewport', { value: view });`,
  });
  const bottom = () =>
    page.evaluate("document.getElementById('composer').getBoundingClientRect().bottom");
  await page.evaluate(
    'visualViewport.height = 400; visualViewport.dispatchEvent(new Event("resize"))',
  );
  assert.ok((await bottom()) <= 400, `${await bottom()}`);
  assert.ok(await page.locator('header').isVisible());
  await page.evaluate(
    'visualViewport.height = 780; visualViewport.dispatchEvent(new Event("resize"))',
  );
  assert.ok((await bottom()) > 400);
  const meta = await page.getAttribute('meta[name=viewport]', 'content');
  assert.match(meta ?? '', /interactive-widget=resizes-content/);
});

for (const [width, height, keyboard] of [
  [360, 640, 310],
  [390, 780, 350],
]) {
  test(`a keyboard at ${width} px leaves the end of the answer, and all of a dialog`, {
    skip,
  }, async (t) => {
    const page = await openPage(t, {
      options: { ...phone, viewport: { width, height } },
      script: `const view = Object.assign(new EventTarget(), { height: ${height}, scale: 1 });
        Object.defineProperty(window, 'visualViewport', { value: view });
        globalThis.cover = (height) => {
          view.height = height;
          view.dispatchEvent(new Event('resize'));
        };`,
    });
    const seen = height - keyboard;
    const box = (/** @type {string} */ selector) =>
      page.locator(selector).evaluate((one) => one.getBoundingClientRect().toJSON());
    /** Takes a screenshot of the part above the keyboard. @param {string} what */
    const take = async (what) => {
      for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
        await page.emulateMedia({ colorScheme });
        const clip = { x: 0, y: 0, width, height: seen };
        await takePicture(page, `phone-${width}-${what}-${colorScheme}`, { clip });
      }
    };
    await page.fill('#prompt', 'Hello');
    await page.click('#send');
    await page.evaluate(`say('word '.repeat(300) + '\\n\\nthe last line'); end()`);
    await page.locator('.message.assistant footer').waitFor();
    await page.evaluate(
      "document.getElementById('log').scrollTo({ top: 1e6, behavior: 'instant' })",
    );
    await page.focus('#prompt');
    await page.evaluate(`cover(${seen})`);
    await untilTrue(
      page,
      `document.querySelector('.message.assistant .body > :last-child').getBoundingClientRect().bottom <
        document.getElementById('composer').getBoundingClientRect().top`,
    );
    assert.ok((await box('#log')).height > 100, 'no room for the answer');
    assert.ok((await box('#composer')).bottom <= seen);
    await take('keyboard');
    await page.evaluate(`cover(${height})`);
    await page.click('#open-settings');
    await page.evaluate(`cover(${seen})`);
    assert.ok((await box('dialog[open]')).bottom <= seen, 'the keyboard covers the dialog');
    await take('settings');
  });
}

test('the end of an answer stays visible when the line below it disappears', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: phone });
  for (const turn of [1, 2, 3, 4, 5, 6]) await talk(page, `Question ${turn}`, `Answer ${turn}.`);
  for (const isHidden of [false, true]) {
    await page.evaluate(`live.textContent = 'Writing'; live.hidden = ${isHidden};`);
    await page.waitForTimeout(300); // wait for the layout
  }
  const hidden = await page.evaluate('log.scrollHeight - log.scrollTop - log.clientHeight');
  assert.ok(Number(hidden) < 2, `${hidden} px are hidden`);
});

test('no field makes iOS zoom in, and pulling down does not reload the page', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: phone });
  const { small, adjust, overscroll } = await page.evaluate(() => {
    for (const dialog of document.querySelectorAll('dialog')) dialog.show();
    const fields = [...document.querySelectorAll('input, select, textarea')];
    const sizeOf = (/** @type {Element} */ field) =>
      Number.parseFloat(getComputedStyle(field).fontSize);
    const styles = getComputedStyle(document.documentElement);
    return {
      small: fields.filter((field) => sizeOf(field) < 16).map(({ outerHTML }) => outerHTML),
      adjust: styles.getPropertyValue('text-size-adjust'),
      overscroll: [document.documentElement, document.getElementById('log')].map(
        (one) => getComputedStyle(/** @type {Element} */ (one)).overscrollBehaviorY,
      ),
    };
  });
  assert.deepEqual(small, []);
  assert.equal(adjust, '100%');
  assert.deepEqual(overscroll, ['contain', 'contain']);
});

test('files are identified by their bytes: pickers show all files, and text files and PDFs have a button', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: phone });
  const accepts = await page.evaluate(() =>
    [...document.querySelectorAll('input[type=file]')].map((one) => one.getAttribute('accept')),
  );
  assert.deepEqual([...new Set(accepts)], [null]);
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.click('#attach')]);
  await chooser.setFiles([
    { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('some notes') },
  ]);
  await page.locator('.media.attached .chip', { hasText: 'a.txt' }).waitFor();
  await page.click('#choose-model');
  await page.setInputFiles('#model-file', [
    { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('no model') },
  ]);
  await page.click('#load-model');
  await untilShown(page, 'b.txt is not a GGUF file');
});

test('an application on the home screen shares files instead of downloading them', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    options: { viewport: { width: 600, height: 800 } },
    script: `navigator.standalone = true; globalThis.shared = [];
      navigator.canShare = () => true;
      navigator.share = async ({ files }) => {
        if (globalThis.refuse-- > 0) throw new DOMException('too late', 'NotAllowedError');
        shared.push(files.map(({ name }) => name));
      };`,
  });
  await page.fill('#prompt', 'Hello');
  await page.keyboard.press('Enter');
  await page.evaluate("say('Hi'); end()");
  await page.locator('.message.assistant footer').waitFor();
  await page.click('#open-list');
  await page.click('#export-all');
  await untilTrue(page, 'shared.length === 1');
  assert.deepEqual(await page.evaluate('shared'), [['conversations.json']]);
  await page.evaluate('globalThis.refuse = 1');
  await page.click('#export-all');
  await page.click('#close-list');
  await page.getByRole('button', { name: 'Save it' }).click();
  await untilTrue(page, 'shared.length === 2');
});

test('the screen stays on during an answer, also after the page was hidden', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    script: `globalThis.locks = { taken: 0, held: 0 };
      Object.defineProperty(navigator, 'wakeLock', { value: { request: async () => {
        locks.taken++; locks.held++;
        const one = new EventTarget();
        one.release = async () => { if (one.isReleased) return; one.isReleased = true; locks.held--; one.dispatchEvent(new Event('release')); };
        globalThis.hide = () => one.release();
        return one;
      } } });`,
  });
  await page.fill('#prompt', 'Hello');
  await page.keyboard.press('Enter');
  await untilTrue(page, 'locks.held === 1');
  await page.evaluate("hide().then(() => document.dispatchEvent(new Event('visibilitychange')))");
  await untilTrue(page, 'locks.taken === 2 && locks.held === 1');
  await page.evaluate("say('Hi'); end()");
  await untilTrue(page, 'locks.held === 0');
});

test('a browser that denied persistence to a page is asked again after the page is installed', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    script: `${opensLate} globalThis.asks = 0; localStorage.setItem('wick-chat-persist', 'page');
      StorageManager.prototype.persisted = async () => false;
      StorageManager.prototype.persist = async () => { asks++; return false; };`,
  });
  await page.evaluate("dispatchEvent(new Event('appinstalled'))");
  await untilTrue(page, 'asks === 1');
});

const heldLoading =
  'globalThis.holdLoading = () => new Promise((settle) => { globalThis.finish = settle; });';

for (const [keys, options] of Object.entries({ Enter: {}, Send: phone }))
  test(`a message sent with ${keys} while the model loads is answered when it is ready`, {
    skip,
  }, async (t) => {
    const page = await openPage(t, { isReady: false, script: heldLoading, options });
    await untilTrue(page, 'globalThis.finish !== undefined');
    await page.fill('#prompt', 'Hello');
    if (keys === 'Send') await page.tap('#send');
    else await page.press('#prompt', 'Enter');
    await untilShown(page, 'Your message will be answered when the model is ready.');
    assert.equal(await page.evaluate('log.scrollTop'), 0, 'the welcome begins with its heading');
    await page.evaluate('finish()');
    await untilTrue(page, 'asked.includes("Hello")');
  });

test('the message field has the focus at load, except on a touch screen', { skip }, async (t) => {
  const focused = (/** @type {Page} */ page) => page.evaluate('document.activeElement.id');
  const page = await openPage(t);
  assert.equal(await focused(page), 'prompt');
  await talk(page, 'Asked by a click on Send', 'One.');
  assert.equal(await focused(page), 'prompt');
  assert.equal(await focused(await openPage(t, { options: phone })), '');
});

test('on a touch screen, no dialog opens the keyboard', { skip }, async (t) => {
  const page = await openPage(t, { options: phone });
  for (const opener of ['#open-settings', '#choose-model']) {
    await page.click(opener);
    await page.locator('dialog:modal').waitFor();
    assert.equal(await page.locator('dialog:modal:focus').count(), 1);
    await page.keyboard.press('Escape');
  }
});

test('without any model a message stays in its field, and the page says what to do', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    isReady: false,
    script: "globalThis.holdLoading = () => { throw new Error('not here'); };",
  });
  await untilShown(page, 'could not be loaded: not here');
  assert.equal(await page.isVisible('#suggestions'), false);
  await page.fill('#prompt', 'Hello');
  await page.press('#prompt', 'Enter');
  await untilShown(page, 'No model is loaded.');
  assert.equal(await page.inputValue('#prompt'), 'Hello');
  await page.getByRole('button', { name: 'Choose a model', exact: true }).click();
  await page.locator('#model-dialog[open]').waitFor();
});

test('without a network, the model search reports it', { skip }, async (t) => {
  const page = await openPage(t, { expected: /ERR_INTERNET_DISCONNECTED|Failed to load/ });
  await page.context().setOffline(true);
  await page.click('#choose-model');
  await page.fill('#model-url', 'qwen3');
  await page.locator('#found', { hasText: 'Check the network connection.' }).waitFor();
});

test('the page uses only features of Safari 16', async () => {
  const outcome = await build({
    entryPoints: [resolve(site, 'page.js')],
    ...{ bundle: false, write: false, format: 'esm', target: 'safari16' },
    logLevel: 'silent',
  });
  const code = outcome.outputFiles[0].text;
  assert.doesNotMatch(code, /URL\.canParse|URL\.parse\(/);
  assert.doesNotMatch(code, /\(\?<[!=]/, 'a look-behind');
});

test('on a touch screen the list of shortcuts does not say that Enter sends', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: phone });
  await chooseInMenu(page, '#open-shortcuts');
  await page.locator('#shortcuts-dialog[open]').waitFor();
  assert.match(await page.locator('#shortcuts').innerText(), /Ctrl\+K/);
  assert.doesNotMatch(await page.locator('#shortcuts').innerText(), /Enter/);
});
