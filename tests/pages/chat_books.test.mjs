// Books in the chat page, with the package's engine and the built-in model: a document is read once, every question is a
// fork of the session that has read it, and no failure loses text or leads to a state from someone else being accepted. In
// Chromium, with one test in Firefox and WebKitGTK.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { bytesOf } from '../support/chat_page.mjs';
import { chooseRow, lastAnswer, onBattery, watchBars } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { sleep, untilTrue } from '../support/package.mjs';
import { chooseInMenu, openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').BrowserContext} BrowserContext */
/** @typedef {import('node:test').TestContext} TestContext */

const site = resolve(root, 'build/chat-books');
const { skip } = locate('chromium');
/** The time limit of one step in Chromium. */
const ACTION_MS = 100_000;
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

/** @param {number} letters @param {string} [who] */
function textOf(letters, who = 'fox') {
  const lines = Array.from(
    { length: Math.ceil(letters / 60) },
    (_, index) => `The ${who} number ${index} lives in a small house by the river.\n`,
  );
  return lines.join('').slice(0, letters);
}

before(async () => {
  await copyChat(site);
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {TestContext} t @param {import('playwright-core').BrowserContextOptions} [options] */
async function newContext(t, options = {}) {
  const context = await browser.newContext({
    ...{ serviceWorkers: 'block', acceptDownloads: true, viewport: { width: 1280, height: 800 } },
    ...options,
  });
  context.setDefaultTimeout(ACTION_MS);
  /** @type {string[]} */
  const problems = [];
  context.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  context.on('weberror', (error) => problems.push(error.error().message));
  t.after(() => context.close());
  t.after(() => assert.deepEqual(problems, []));
  return context;
}

/** @param {BrowserContext} context @param {string} [script] runs before the page's own */
async function openPage(context, script = '') {
  const page = await context.newPage();
  await page.addInitScript(onBattery); // no answer is started before Enter
  await page.addInitScript(script);
  await page.goto(server.url);
  await page.waitForSelector('#send:not([disabled])');
  return page;
}

/** @param {Page} page */
async function openShelf(page) {
  await chooseInMenu(page, '#open-books');
  await page.locator('#books-dialog[open]').waitFor();
}

/** @param {string} name @param {string | Buffer} content */
const fileOf = (name, content) => ({
  ...{ name, mimeType: 'text/plain' },
  buffer: Buffer.from(/** @type {string} */ (content)),
});

/** @param {Page} page @param {string} name @param {string | Buffer} content */
async function add(page, name, content) {
  await page.locator('#book-file').setInputFiles(fileOf(name, content));
}

/** @param {Page} page @param {string} label @param {string} title */
const button = (page, label, title) =>
  page.getByRole('button', { name: `${label}: ${title}`, exact: true });

/** @param {Page} page @param {string} title */
const row = (page, title) =>
  page.locator('#books li', { has: page.locator('.name', { hasText: title }) });

/** @param {Page} page @param {string} title @returns {Promise<{tokens: number}>} */
async function untilRead(page, title) {
  await button(page, 'Ask', title).waitFor();
  const facts = await row(page, title).innerText();
  return { tokens: Number(/([\d,]+) tokens/.exec(facts)?.[1].replaceAll(',', '')) };
}

/** @param {string} facts @returns {string[]} the match, with the prompt's size and its cached tokens */
const lastPrompt = (facts) => /Last prompt\s+(\d+) tokens, (\d+) of them/.exec(facts) ?? [];

/** @param {Page} page @param {string} question @returns {Promise<{prompt: number, cached: number, ms: number}>} how much of it was cached */
async function ask(page, question) {
  if (
    !(await page
      .locator('#developer')
      .getAttribute('open')
      .then((one) => one !== null))
  )
    await openDeveloper(page);
  const count = await page.locator('.message.assistant footer').count();
  await page.fill('#prompt', question);
  await page.keyboard.press('Enter');
  const footer = page.locator('.message.assistant footer').nth(count);
  await footer.waitFor();
  await page.locator('#kv-facts', { hasText: 'Last prompt' }).waitFor(); // it is drawn later than the footer
  const facts = await page.locator('#kv-facts').innerText();
  const [, prompt, cached] = lastPrompt(facts);
  const [, ms] = /first token after (\d+) ms/.exec((await footer.textContent()) ?? '') ?? [];
  return { prompt: Number(prompt), cached: Number(cached), ms: Number(ms) };
}

/** Runs in the page: returns a promise of a request's result. */
const withDatabase = `
  globalThis.ofBooks = (store, mode, act) => new Promise((settle, fail) => {
    const opening = indexedDB.open('wick-chat-books');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const transaction = opening.result.transaction(store, mode);
      const request = act(transaction.objectStore(store));
      transaction.oncomplete = () => { opening.result.close(); settle(request.result); };
    };
  });`;

test('a book without questions is reopened by Back, and after a reload', {
  skip,
}, async (t) => {
  const context = await newContext(t);
  const page = await openPage(context);
  await ask(page, 'Hello');
  await openShelf(page);
  await add(page, 'foxes.txt', textOf(600));
  await untilRead(page, 'foxes.txt');
  await button(page, 'Ask', 'foxes.txt').click();
  const about = page.getByText('About “foxes.txt”');
  await about.waitFor();
  await page.locator('#conversation-list').getByRole('link', { name: 'Hello' }).click();
  await about.waitFor({ state: 'hidden' });
  await page.goBack();
  await about.waitFor();
  await page.reload();
  await about.waitFor();
});

test('a document is read once; questions, their variants and the next visit do not read it again', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await newContext(t);
  const page = await openPage(context);
  await openShelf(page);
  await page.getByText('No books yet.').waitFor();
  await add(page, 'foxes.txt', textOf(5000));
  const { tokens } = await untilRead(page, 'foxes.txt');
  assert.ok(tokens > 1000, `${tokens}`);
  await takePicture(page, 'books-light');
  await button(page, 'Ask', 'foxes.txt').click();
  await page.getByText('About “foxes.txt”').waitFor();
  const first = await ask(page, 'Where does the fox live?');
  assert.ok(first.cached >= tokens, JSON.stringify({ first, tokens }));
  const second = await ask(page, 'Why?');
  assert.ok(second.cached > first.prompt, JSON.stringify({ first, second }));
  await takePicture(page, 'books-talk');
  await page.locator('.regenerate').last().click();
  await page.getByText('2 / 2').waitFor();
  await chooseRow(lastAnswer(page), '.compare');
  await page.locator('.choose').nth(2).waitFor();
  const facts = await page.locator('#kv-facts').innerText();
  const [, prompt, cached] = lastPrompt(facts);
  assert.ok(Number(prompt) - Number(cached) < 60, facts);
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await page.getByText('About “foxes.txt”').waitFor();
  const again = await ask(page, 'And then?');
  assert.ok(again.cached >= tokens, JSON.stringify({ again, tokens }));
  await openShelf(page);
  await row(page, 'foxes.txt').getByText(/saved/).waitFor();
  t.diagnostic(
    `${tokens} tokens: first word ${first.ms} ms after Enter, ${again.ms} ms after a reload`,
  );
});

test('forgetting and choosing words in a conversation about a book do not read the book again', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await openShelf(page);
  await add(page, 'foxes.txt', textOf(3000));
  const { tokens } = await untilRead(page, 'foxes.txt');
  await button(page, 'Ask', 'foxes.txt').click();
  await page.getByText('About “foxes.txt”').waitFor();
  await ask(page, 'Where does the fox live?');
  await ask(page, 'Tell me a story about a fox.');
  const forgotten = page.locator('#kv-facts dd[data-fact="Forgotten"]', { hasText: /recomputed$/ });
  await chooseRow(page.locator('.message.user').first(), '.forget');
  await forgotten.waitFor();
  const [, again, all] = /(\d+) of (\d+) tokens/.exec(await forgotten.innerText()) ?? [];
  assert.ok(Number(all) > tokens && Number(again) <= Number(all) - tokens, `${again} of ${all}`);
  const next = await ask(page, 'Why?');
  assert.ok(next.prompt - next.cached < 60, JSON.stringify({ next, tokens }));
  await page.getByRole('button', { name: 'Bring back' }).click();
  await page.locator('.message.forgotten').first().waitFor({ state: 'detached' });
  await forgotten.waitFor();
  const whole = await ask(page, 'And then?');
  assert.ok(whole.prompt > next.prompt && whole.cached >= tokens, JSON.stringify({ whole, next }));
  await chooseRow(lastAnswer(page), '.open-words');
  await page.locator('.words-text span').first().click();
  // to end the answer at a word needs no request
  const others = page.locator('.words li button:enabled', { hasNotText: /^end here/ });
  await others.first().click();
  await page.locator('.fork').waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  const facts = await page.locator('#kv-facts').innerText();
  const [, , cached] = lastPrompt(facts);
  assert.ok(Number(cached) >= tokens, facts);
  const last = await ask(page, 'Why?');
  assert.ok(last.prompt - last.cached < 60, JSON.stringify({ last, tokens }));
  await page.locator('.regenerate').last().click();
  await page
    .locator('#log[aria-busy=false] .message.assistant footer', { hasText: '2 / 2' })
    .last()
    .waitFor();
  const [, prompt, known] = lastPrompt(await page.locator('#kv-facts').innerText());
  assert.ok(Number(prompt) - Number(known) < 60, `${known} of ${prompt}, ${tokens} of the book`);
});

test('opening a book does not read it, while the same text in a question is read completely', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await newContext(t);
  const page = await openPage(context);
  await openShelf(page);
  await add(page, 'long.txt', textOf(3000));
  const { tokens } = await untilRead(page, 'long.txt');
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await openShelf(page);
  await button(page, 'Ask', 'long.txt').click();
  const opened = await ask(page, 'Why?');
  assert.ok(opened.cached >= tokens, JSON.stringify({ opened, tokens }));
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await page.click('#new-chat');
  const anew = await ask(page, `${textOf(3000)}\n\nWhy?`);
  assert.ok(anew.prompt - anew.cached > tokens * 0.9, JSON.stringify({ anew, tokens }));
});

/** Makes reading wait after `stepsLeft` steps have begun. Runs before the page's own scripts. @param {number} count */
const holdSteps = (count) => `
  globalThis.stepsLeft = ${count};
  const held = [];
  globalThis.releaseStep = () => held.shift()();
  globalThis.releaseSteps = () => {
    stepsLeft = Infinity;
    for (const send of held.splice(0)) send();
  };
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (...message) {
    const send = () => postMessage.apply(this, message);
    if (message[0].settings?.prefillOnly && stepsLeft-- <= 0) held.push(send);
    else send();
  };`;

test('reading is paused, and continues after a reload and in another tab without reading anything twice', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await newContext(t);
  const page = await openPage(context, `${watchBars} ${holdSteps(1)}`);
  await openShelf(page);
  await add(page, 'paused.txt', textOf(5000));
  await untilTrue(page, "document.querySelector('#books progress')?.value >= 512");
  await button(page, 'Pause', 'paused.txt').click();
  await button(page, 'Continue', 'paused.txt').waitFor();
  const facts = await row(page, 'paused.txt').innerText();
  assert.match(facts, /512 of [\d,]+ tokens read/);
  await page.close();
  const going = await openPage(context, `${watchBars} ${holdSteps(0)}`);
  await openShelf(going);
  await button(going, 'Continue', 'paused.txt').click();
  await untilTrue(going, "document.querySelector('#books progress')?.max > 1");
  await going.close(); // the book is still being read
  const next = await openPage(context, `${watchBars} ${holdSteps(0)}`);
  await next.getByText('“paused.txt” is being read.').waitFor(); // another notice replaces this one when the book has been read
  await openShelf(next);
  await next.evaluate('releaseSteps()');
  await untilRead(next, 'paused.txt');
  assert.ok(Number(await next.evaluate('leastBar')) >= 512);
});

test('a click on Pause counts if progress is drawn while the button is down', {
  skip,
}, async (t) => {
  const page = await openPage(await newContext(t), holdSteps(0));
  await openShelf(page);
  await add(page, 'clicked.txt', textOf(5000));
  await untilTrue(page, "document.querySelector('#books progress')?.max > 1");
  await button(page, 'Pause', 'clicked.txt').hover();
  await page.mouse.down();
  await page.evaluate('releaseStep()');
  await untilTrue(page, "document.querySelector('#books progress').value >= 512");
  await page.mouse.up();
  await button(page, 'Continue', 'clicked.txt').waitFor();
});

test('a pause at the end of a step keeps the step', { skip: skip || !isFull }, async (t) => {
  const context = await newContext(t);
  // the page is blocked until the second step has ended, and is notified only after the pause
  await context.route('**/late', async (route) => {
    await sleep(12_000);
    await route.fulfill({ body: '' });
  });
  const late = `addEventListener('click', ({ target }) => {
    if (target.textContent !== 'Pause') return;
    const request = new XMLHttpRequest();
    request.open('GET', 'late', false);
    request.send();
  }, true);`;
  const page = await openPage(context, `${holdSteps(2)} ${late}`);
  await openShelf(page);
  await add(page, 'late.txt', textOf(6000));
  await untilTrue(page, "document.querySelector('#books progress')?.value >= 512");
  await button(page, 'Pause', 'late.txt').click();
  await row(page, 'late.txt')
    .getByText(/1,024 of [\d,]+ tokens read/)
    .waitFor();
  await page.close();
  const next = await openPage(context, watchBars);
  await openShelf(next);
  await button(next, 'Continue', 'late.txt').click();
  await untilRead(next, 'late.txt');
  assert.ok(Number(await next.evaluate('leastBar')) >= 1024);
});

test('two tabs read a book only once; when one is closed, the other continues', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await newContext(t);
  const page = await openPage(context, holdSteps(1));
  const other = await openPage(context, watchBars);
  await openShelf(page);
  await openShelf(other);
  await add(page, 'both.txt', textOf(3000));
  await untilTrue(page, "document.querySelector('#books progress')?.value >= 512");
  await button(other, 'Read', 'both.txt').click();
  await row(other, 'both.txt').getByText('Another tab is reading it.').waitFor();
  await page.close();
  await untilRead(other, 'both.txt');
  const last = await openPage(context);
  await openShelf(last);
  await untilRead(last, 'both.txt');
  await button(other, 'Delete', 'both.txt').click();
  await last.locator('#books-dialog summary', { hasText: 'Deleted' }).waitFor();
  assert.equal(await row(last, 'both.txt').count(), 0);
});

test('for a text that is too long, the excess is reported, and it is read in parts', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await openShelf(page);
  const text = textOf(20_000);
  await add(page, 'long.txt', text);
  const asked = row(page, 'long.txt').locator('small');
  await asked.getByText(/tokens too long/).waitFor();
  const [, has, size, free, tooLong] =
    /It has ([\d,]+) tokens, and the context of this model has ([\d,]+) tokens, of which ([\d,]+) are reserved for questions: it is ([\d,]+) tokens too long/
      .exec(await asked.innerText())
      ?.map((digits) => Number(digits.replaceAll(',', ''))) ?? [];
  assert.equal(has - (size - free), tooLong);
  await takePicture(page, 'books-too-long');
  await button(page, 'Read it in parts', 'long.txt').click();
  await untilRead(page, 'long.txt (part 1 of 3)');
  await page.evaluate(withDatabase);
  const texts = /** @type {string[]} */ (
    await page.evaluate("ofBooks('texts', 'readonly', (store) => store.getAll())")
  );
  const books = /** @type {any[]} */ (
    await page.evaluate("ofBooks('books', 'readonly', (store) => store.getAll())")
  );
  const keys = /** @type {string[]} */ (
    await page.evaluate("ofBooks('texts', 'readonly', (store) => store.getAllKeys())")
  );
  const parts = books
    .filter(({ title }) => /part/.test(title))
    .sort((a, b) => b.created - a.created)
    .map(({ id }) => texts[keys.indexOf(id)]);
  assert.equal(parts.length, 3);
  assert.equal(parts.join(''), text);
  // only the first part of the book is read
  await button(page, 'Read', 'long.txt').click();
  await button(page, 'Read the part that fits', 'long.txt').click();
  await untilRead(page, 'long.txt (the beginning)');
});

/** While `isFull` is set, model states cannot be stored. */
const canBeFull = `const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (value, ...rest) {
    if (globalThis.isFull && this.name === 'pieces') throw new DOMException('full', 'QuotaExceededError');
    return put.call(this, value, ...rest);
  };`;

test('a full disk is reported, nothing is lost, and nothing is recomputed once there is space', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t), canBeFull);
  await openShelf(page);
  for (const name of ['gone.txt', 'read.txt']) {
    await add(page, name, textOf(300));
    await untilRead(page, name);
  }
  await button(page, 'Delete', 'gone.txt').click();
  await page.evaluate('globalThis.isFull = true');
  await add(page, 'full.txt', textOf(3000));
  await row(page, 'full.txt')
    .getByText(/storage is full/)
    .waitFor();
  await page
    .getByText(/The text and the part that was stored before are kept/)
    .first()
    .waitFor();
  // the page lists what can be deleted; the shelf covers the list
  for (const name of [
    /^Delete: a deleted book \(\d+ kB\)$/,
    /^Delete: the saved state of “read\.txt” \(/,
  ])
    await page
      .locator('#room button', { hasText: name })
      .evaluate((/** @type {any} */ one) => one.click());
  await button(page, 'Read', 'read.txt').waitFor();
  await untilTrue(page, "document.querySelector('#books-dialog details').hidden");
  await page.evaluate(`isFull = false; ${watchBars}`);
  await button(page, 'Continue', 'full.txt').click();
  const { tokens } = await untilRead(page, 'full.txt');
  const least = Number(await page.evaluate('leastBar'));
  assert.ok(least >= tokens, `${least} of ${tokens}`); // no part was read again
});

test('insufficient storage is reported before anything is read', {
  skip: skip || !isFull,
}, async (t) => {
  const script = 'StorageManager.prototype.estimate = async () => ({ usage: 9e6, quota: 9.1e6 });';
  const page = await openPage(await newContext(t), script);
  await openShelf(page);
  await add(page, 'large.txt', textOf(5000));
  await row(page, 'large.txt')
    .getByText(/It takes about .* MB, and this browser has 100 kB free/)
    .waitFor();
  await button(page, 'Read it anyway', 'large.txt').click();
  await untilRead(page, 'large.txt');
});

test('a state that is damaged or belongs to a different text is removed, and the book is read again', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await page.evaluate(withDatabase);
  await openShelf(page);
  for (const change of [
    `ofBooks('pieces', 'readwrite', (store) => {
       const cursor = store.openCursor();
       cursor.onsuccess = () => { const { value } = cursor.result; value[value.length >> 1] ^= 1; cursor.result.update(value); };
       return cursor;
     })`,
    `ofBooks('texts', 'readwrite', (store) => {
       const cursor = store.openCursor();
       cursor.onsuccess = () => cursor.result.update(cursor.result.value.replace('fox', 'hen'));
       return cursor;
     })`,
    "ofBooks('pieces', 'readwrite', (store) => store.clear())",
  ]) {
    if ((await row(page, 'bad.txt').count()) === 0) await add(page, 'bad.txt', textOf(2000));
    else await button(page, 'Read', 'bad.txt').click();
    await untilRead(page, 'bad.txt');
    await page.evaluate(change);
    await button(page, 'Ask', 'bad.txt').click();
    await page.getByText('“bad.txt” must be read again for this model.').waitFor();
    const told = await ask(page, 'Why?'); // it is answered anyway
    assert.ok(told.prompt > 500, JSON.stringify(told));
    await openShelf(page);
    await button(page, 'Read', 'bad.txt').waitFor();
  }
});

test('with another model, the page says that the book must be read again', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await openShelf(page);
  await add(page, 'models.txt', textOf(2000));
  await untilRead(page, 'models.txt');
  await button(page, 'Ask', 'models.txt').click();
  await ask(page, 'Why?');
  await page.click('#choose-model');
  await page
    .locator('#model-file')
    .setInputFiles(resolve(root, 'examples/models/wick-2.6m-q8_0.gguf'));
  await page.click('#load-model');
  // a notice with the same message is soon replaced by one that says that the model's file is kept
  await page.locator('#about-book', { hasText: 'this model must read it again' }).waitFor();
  await openShelf(page);
  await row(page, 'models.txt')
    .getByText(/must be read again\./)
    .waitFor();
  await button(page, 'Read', 'models.txt').click();
  await untilRead(page, 'models.txt');
});

test('a deleted book is restored with its saved state', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await openShelf(page);
  await add(page, 'gone.txt', textOf(1500));
  await untilRead(page, 'gone.txt');
  const rowsWhenSaid = page.evaluate(
    () =>
      new Promise((settle) => {
        const note = /** @type {Element} */ (document.querySelector('#books-note'));
        const look = () => {
          if (!note.textContent?.includes('was deleted')) return;
          observer.disconnect();
          settle(document.querySelectorAll('#books > li').length);
        };
        const observer = new MutationObserver(look);
        observer.observe(note, { childList: true });
      }),
  );
  await button(page, 'Delete', 'gone.txt').click();
  assert.equal(await rowsWhenSaid, 0);
  await page.getByRole('button', { name: 'Undo' }).last().click();
  await untilRead(page, 'gone.txt');
  await button(page, 'Delete', 'gone.txt').click();
  await page.locator('#books-dialog summary', { hasText: 'Deleted' }).click();
  await page.getByRole('button', { name: 'Restore' }).click();
  await untilRead(page, 'gone.txt');
  await button(page, 'Delete', 'gone.txt').click();
  await page.locator('#books-dialog summary', { hasText: 'Deleted' }).waitFor();
  await page.getByRole('button', { name: 'Delete permanently' }).click();
  await page.evaluate(withDatabase);
  for (const store of ['pieces', 'texts'])
    await untilTrue(
      page,
      `ofBooks('${store}', 'readonly', (all) => all.count()).then((n) => n === 0)`,
    );
});

/** @param {Page} page @param {() => Promise<unknown>} act @returns {Promise<Buffer>} */
async function downloaded(page, act) {
  const [download] = await Promise.all([page.waitForEvent('download'), act()]);
  return bytesOf(download);
}

test('an imported book is read again, unless it was signed with a key of this user', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await newContext(t));
  await openShelf(page);
  await add(page, 'mine.txt', textOf(2500));
  await untilRead(page, 'mine.txt');
  const book = await downloaded(page, () => button(page, 'Export', 'mine.txt').click());
  await page.locator('#books-dialog summary', { hasText: 'Your key' }).click();
  const key = await downloaded(page, () =>
    page.getByRole('button', { name: 'Export the key' }).click(),
  );
  await page.getByText(/anyone who has it can sign books in your name/).waitFor();

  const other = await openPage(await newContext(t), canBeFull);
  await openShelf(other);
  await add(other, 'mine.wickbook', book);
  await other.getByText(/is read again from its text: its saved state is not signed/).waitFor();
  await untilRead(other, 'mine.txt');
  await button(other, 'Delete', 'mine.txt').click();
  await other.getByText('“mine.txt” was deleted.').waitFor(); // so that this notice does not replace later ones
  await other.locator('#book-key-file').setInputFiles(fileOf('no.json', '{"a": 1}'));
  await other.getByText('no.json: it is not a key from this page.').waitFor();
  await other.locator('#book-key-file').setInputFiles(fileOf('key.json', key));
  await other.getByText(/This is now your key/).waitFor();
  await other.evaluate('globalThis.isFull = true');
  await add(other, 'mine.wickbook', book);
  await other.getByText(/Only the text of “mine\.txt” was imported: .* no room/).waitFor();
  await button(other, 'Read', 'mine.txt').waitFor();
  await button(other, 'Delete', 'mine.txt').click();
  await other.getByText('“mine.txt” was deleted.').waitFor(); // so that this notice does not replace later ones
  await other.evaluate('isFull = false');
  await add(other, 'mine.wickbook', book);
  await other.getByText(/is signed with your key, so .* does not read it again/).waitFor();
  const { tokens } = await untilRead(other, 'mine.txt');
  await button(other, 'Ask', 'mine.txt').click();
  const told = await ask(other, 'Why?');
  assert.ok(told.cached >= tokens, JSON.stringify({ told, tokens }));

  // changed KV data, with the original signature
  const forged = Buffer.from(book);
  forged[forged.length - 100] ^= 1;
  await openShelf(other);
  await add(other, 'forged.wickbook', forged);
  await other.getByText(/its saved state does not match the signature of your key/).waitFor();
  await add(other, 'cut.wickbook', book.subarray(0, book.length - 1));
  await other.getByText(/cut\.wickbook: it is damaged, or not a book from this page/).waitFor();
});

describe('on a phone and with the dark theme', () => {
  const looks = /** @type {const} */ ({
    'books-phone': { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
    'books-dark': { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
  });
  for (const [name, options] of Object.entries(looks)) {
    test(`${name}: the shelf fits`, { skip: skip || !isFull }, async (t) => {
      const page = await openPage(await newContext(t, options));
      await openShelf(page);
      await add(
        page,
        'a document with a rather long name, of which a phone shows all.txt',
        textOf(1500),
      );
      await untilRead(page, 'a document with a rather long name, of which a phone shows all.txt');
      await takePicture(page, `${name}`);
      const wide = await page.evaluate(
        "[...document.querySelectorAll('#books-dialog, #books-dialog *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).length",
      );
      assert.equal(wide, 0);
    });
  }
});

// ---- the other browsers ----

/** Runs in the page: reads a book and asks about it, then does so again as on the next visit. */
const visit = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
    throw new Error('not so: ' + what + ': ' + document.querySelector('#books-dialog')?.textContent);
  };
  const byId = (id) => document.getElementById(id);
  const buttonOf = (name) => document.querySelector('[aria-label="' + name + '"]');
  await until('ready', () => !byId('send').disabled);
  byId('open-books').click();
  await until('shelf', () => document.querySelector('#books-dialog[open]'));
  await until('drawn', () => document.querySelector('#books li') ||
    byId('books-note').textContent === 'No books yet.');
  if (!buttonOf('Ask: other.txt')) {
    const transfer = new DataTransfer();
    transfer.items.add(new File([TEXT], 'other.txt', { type: 'text/plain' }));
    byId('book-file').files = transfer.files;
    byId('book-file').dispatchEvent(new Event('change'));
  }
  (await until('read', () => buttonOf('Ask: other.txt'))).click();
  await until('opened', () => byId('about-book'));
  byId('developer').open = true;
  byId('prompt').value = 'Why?';
  byId('prompt').dispatchEvent(new Event('input'));
  byId('composer').requestSubmit();
  await until('answered', () => document.querySelector('.message.assistant footer'));
  return await until('facts', () => /Last prompt\\s*(\\d+) tokens, (\\d+) of them/.exec(byId('kv-facts').textContent)?.slice(1).map(Number).concat(byId('kv-facts').textContent));`;

const script = visit.replace('TEXT', JSON.stringify(textOf(2500)));

/** @param {(script: string) => Promise<any>} run runs a script in a new page with the same profile */
async function readsOnce(run) {
  for (const which of ['first', 'second']) {
    const [prompt, cached, facts] = await run(script);
    assert.ok(prompt > 800 && prompt - cached < 60, `${which}: ${facts}`);
  }
}

test('Firefox reads once, too', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await readsOnce(async (source) => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    const found = await page.evaluate(`(async () => { ${source} })()`);
    await page.close();
    return found;
  });
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await readsOnce(async (source) => {
    await page.goto(server.url);
    return page.evaluate(source);
  });
});
