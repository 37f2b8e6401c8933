// Errors in the chat page: they cover the start of the conversation and move nothing, a model URL that the page cannot load is
// named, and without web workers the page says what to do. In Chromium; only the workers need the package's engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible } from '../support/accessible.mjs';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { ask, talk, untilKept } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, openPage, browser, url } = useChat('chat-errors');

/** @type {[name: string, options: import('playwright-core').BrowserContextOptions][]} */
const windows = [
  ['light', { viewport: { width: 1200, height: 700 } }],
  ['dark', { viewport: { width: 1200, height: 700 }, colorScheme: 'dark' }],
  ['phone', { viewport: { width: 360, height: 640 } }],
];

test('an error moves nothing, does not cover the message field, and is an alert', {
  skip,
}, async (t) => {
  for (const [name, options] of windows) {
    const page = await openPage(t, { options });
    for (const one of ['First', 'Second', 'Third'])
      await talk(page, one, `${one} answer.\n\n`.repeat(9));
    const places = () =>
      page.evaluate(() => {
        const all = document.querySelectorAll('.message, #composer, #log');
        const scrolled = document.getElementById('log')?.scrollTop ?? 0;
        return [scrolled, ...[...all].map((one) => one.getBoundingClientRect().top)];
      });
    await page.locator('#log').evaluate((log) => log.scrollTo({ top: 100, behavior: 'instant' }));
    const before = await places();
    const words = `${'A long reason of an error. '.repeat(40)}`;
    await page.evaluate((detail) => {
      const event = new CustomEvent('problem', { detail: new Error(detail) });
      document.getElementById('log')?.dispatchEvent(event);
    }, words);
    const alert = page.getByRole('alert').filter({ hasText: 'A long reason' });
    await alert.waitFor();
    assert.deepEqual(await places(), before);
    const { top, bottom, header, composer } = await alert.evaluate((box) => {
      const edge = (/** @type {string} */ one, /** @type {'top' | 'bottom'} */ side) =>
        document.querySelector(one)?.getBoundingClientRect()[side] ?? Number.NaN;
      const { top, bottom } = box.getBoundingClientRect();
      return { top, bottom, header: edge('header', 'bottom'), composer: edge('#composer', 'top') };
    });
    const dismiss = page.getByRole('button', { name: 'Dismiss this message' });
    const box = await dismiss.boundingBox();
    assert.ok(box && box.y > top && box.y + box.height <= bottom, 'the button is visible');
    assert.ok(
      top >= header && bottom < composer,
      JSON.stringify({ top, bottom, header, composer }),
    );
    await takePicture(page, `error-${name}`);
    await assertAccessible(page);
    await dismiss.click();
    assert.equal(await alert.count(), 0);
    assert.deepEqual(await places(), before);
  }
});

test('an error about a short conversation covers none of its buttons', { skip }, async (t) => {
  for (const [name, options] of windows) {
    const page = await openPage(t, { options });
    await page.fill('#prompt', 'Question');
    await page.press('#prompt', 'Enter');
    await page.evaluate("say('I was'); fail('PAGES')");
    await page.locator('#problem:visible').waitFor();
    await takePicture(page, `error-short-${name}`);
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Continue' }).click({ timeout: 10_000 });
    assert.equal(await page.isVisible('#problem'), true);
    await page.fill('#prompt', 'typed'); // and it does not cover the message field
    await page.click('#dismiss-problem');
  }
});

test('a model URL that the page cannot load is named, with what is allowed', {
  skip,
}, async (t) => {
  for (const model of [
    ...['ftp://example.org/m.gguf', 'http://example.org/m.gguf', 'file:///m.gguf', 'https://['],
    ...['javascript:alert(1)', `data:${'x'.repeat(300)}`],
  ]) {
    const page = await openPage(t, { path: `?model=${encodeURIComponent(model)}` });
    const said = await page.locator('#problem-text').innerText();
    const shown = model.length > 100 ? `${model.slice(0, 100)}…` : model;
    assert.equal(
      said,
      `“${shown}” is not a model URL, which must begin with https:// (http:// only for this page's server, localhost and 127.0.0.1).`,
    );
    assert.equal(await page.innerText('#model-name'), 'Wick 4.2M');
    assert.equal(await page.evaluate('loaded.length'), 1, 'nothing else was loaded');
    if (model.startsWith('ftp')) await takePicture(page, 'error-model-url');
  }
  const page = await openPage(t, { path: `?model=models/own.gguf` });
  await untilTrue(page, "document.getElementById('model-name').textContent === 'own.gguf'");
  assert.equal(await page.isHidden('#problem'), true);
});

test('without web workers the page says why no model runs, and what to do', {
  skip,
}, async (t) => {
  /** @type {[why: string, says: RegExp][]} */
  const cases = [
    ['missing', /could not be loaded: this browser offers no web workers.*use a current Chrome/],
    ['blocked', /could not be loaded: a Content Security Policy blocks the web worker.*worker-src/],
  ];
  for (const [why, says] of cases) {
    for (const [name, options] of windows) {
      const context = await browser().newContext({ serviceWorkers: 'block', ...options });
      context.setDefaultTimeout(PATIENCE_MS);
      t.after(() => context.close());
      const page = await context.newPage();
      if (why === 'missing') await page.addInitScript('delete globalThis.Worker;');
      else
        await page.route(url(), async (route) => {
          const response = await route.fetch();
          const headers = { ...response.headers(), 'content-security-policy': "worker-src 'none'" };
          await route.fulfill({ response, headers });
        });
      await page.goto(url());
      await page.locator('#problem-text', { hasText: 'could not be loaded' }).waitFor();
      const said = await page.locator('#problem-text').innerText();
      assert.match(said, says);
      assert.equal(await page.innerText('#model-name'), 'No model');
      assert.equal(await page.isVisible('#retry-loading'), true);
      await page.fill('#prompt', 'Hello');
      await page.keyboard.press('Enter');
      await page.locator('#notice', { hasText: 'No model is loaded.' }).waitFor();
      assert.equal(await page.inputValue('#prompt'), 'Hello');
      await takePicture(page, `no-worker-${why}-${name}`);
      await assertAccessible(page);
    }
  }
});

test('a browser that denies channels between tabs runs the page', { skip }, async (t) => {
  const script = `globalThis.BroadcastChannel = class {
    constructor() { throw new DOMException('It is denied', 'SecurityError'); }
  };`;
  const page = await openPage(t, { script });
  await talk(page, 'First', 'One.');
  await page.click('#open-more');
  await page.click('#open-books');
  await page.locator('#books-note', { hasText: 'No books yet.' }).waitFor();
});

test('long names of files and long formulas scroll or wrap, and the page does not become wider', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: { viewport: { width: 360, height: 640 } } });
  const long = 'Donaudampfschifffahrt'.repeat(20);
  await ask(page, 'A formula');
  await page.evaluate(`say(${JSON.stringify(`So $${long}$ follows.`)}); end()`);
  await page.locator('.message math').waitFor();
  await page.setInputFiles('#attach-file', {
    ...{ name: `${long}.png`, mimeType: 'image/png' },
    buffer: await page.screenshot(),
  });
  await page.locator('.attached .thumbnail').waitFor();
  await page.evaluate((name) => {
    const note = document.querySelector('.attached-note');
    if (note) note.textContent = `Reading ${name} …`;
  }, long);
  const widths = await page.evaluate(() => {
    const log = document.getElementById('log');
    return [document.documentElement.scrollWidth, log?.scrollWidth];
  });
  assert.deepEqual(widths, [360, 360]);
});

test('a file of the page that cannot be loaded is reported, and the page can be loaded again', {
  skip,
}, async (t) => {
  for (const missing of ['page.js', 'wick-llm/index.js']) {
    const context = await browser().newContext({ serviceWorkers: 'block' });
    t.after(() => context.close());
    const page = await context.newPage();
    const path = `**/${missing}`;
    await page.route(path, (route) => route.fulfill({ status: 404, body: 'gone' }));
    await page.goto(url());
    const alert = page.getByRole('alert').filter({ hasText: 'A file of this page' });
    await alert.waitFor({ timeout: PATIENCE_MS });
    assert.equal(await page.isVisible('#loading'), false);
    await page.fill('#prompt', 'Typed early');
    await alert.getByRole('button', { name: 'Try again' }).click(); // the file is still missing
    await alert.waitFor({ timeout: PATIENCE_MS });
    await page.unroute(path);
    await alert.getByRole('button', { name: 'Try again' }).click();
    await page.waitForSelector('#send:not([disabled])');
    assert.equal(await alert.isVisible(), false);
    assert.equal(await page.inputValue('#prompt'), 'Typed early');
    await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text === 'Typed early'));
    await page.fill('#prompt', '');
    await page.reload();
    await page.waitForSelector('#send:not([disabled])');
    assert.equal(await page.inputValue('#prompt'), '', 'the text is restored once');
  }
});

test('Enter sends a message that was typed before the scripts of the page have arrived', {
  skip,
}, async (t) => {
  const context = await browser().newContext({ serviceWorkers: 'block' });
  t.after(() => context.close());
  const page = await context.newPage();
  /** @type {(value?: unknown) => void} */
  let release = () => {};
  const held = new Promise((settle) => {
    release = settle;
  });
  await page.route('**/page.js', async (route) => {
    await held;
    await route.continue();
  });
  const going = page.goto(url());
  await page.fill('#prompt', 'Who are you?');
  await page.press('#prompt', 'Shift+Enter');
  await page.keyboard.type('Tell me.');
  await page.press('#prompt', 'Enter');
  assert.equal(await page.inputValue('#prompt'), 'Who are you?\nTell me.');
  assert.equal(await page.isVisible('#export-all'), false, 'the list is not known yet');
  release();
  await going;
  await page.locator('.message.assistant footer').waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator('.message.user .body').innerText(), 'Who are you?\nTell me.');
  assert.equal(await page.inputValue('#prompt'), '');
});
