// A second visit to the chat page: the conversation is shown, and its beginning is not recomputed, even though
// the browser was closed. State that is damaged or belongs to another model is rejected with an error, and
// the page still works.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import {
  launchChromium,
  launchFirefox,
  launchProfile,
  launchWebKit,
  PATIENCE_MS,
} from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { locate, root } from '../support/locate.mjs';
import { waitForPage } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';

const { skip } = locate('chromium');
const answered = '.message.assistant footer';
const PAGE_TOKENS = 16;

/** Differs from the port of tests/pages/page.test.mjs, which may be running. */
const site = resolve(root, 'build/chat-visits');

/** A prompt of a few hundred tokens. */
const system = Array.from(
  { length: 24 },
  (_, index) =>
    `Rule ${index + 1}: say what is so, in plain words, and no more than was asked for.`,
).join(' ');

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  await copyChat(site);
  cpSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'), join(site, 'other.gguf'));
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').BrowserContext} BrowserContext */
/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @returns {string} the folder of an empty profile */
function newProfile(t) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-profile-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** @param {TestContext} t @returns {Promise<BrowserContext>} a profile in memory, which exists while the test runs */
async function newContext(t) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  return context;
}

/**
 * @template T
 * @param {string | BrowserContext} profile a folder: a separate browser
 * @param {(page: Page) => Promise<T>} use receives a page that is ready, with its panel open
 * @param {{address?: string, script?: string}} [options] `script` runs before the page's own
 * @returns {Promise<T>}
 */
async function visit(profile, use, { address = server.url, script = '' } = {}) {
  const isFolder = typeof profile === 'string';
  const context = isFolder ? await launchProfile(profile) : profile;
  const page = await context.newPage();
  try {
    await page.addInitScript(script);
    page.setDefaultTimeout(PATIENCE_MS);
    /** @type {string[]} */
    const problems = [];
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(address);
    await openDeveloper(page);
    await page.waitForSelector('#send:not([disabled])');
    const found = await use(page);
    assert.deepEqual(problems, []);
    return found;
  } finally {
    await (isFolder ? context : page).close();
  }
}

/** @param {Page} page @param {string} name */
const fact = (page, name) => page.locator(`[data-fact="${name}"]`).innerText();

/**
 * Asks, and waits until the session is saved.
 * @param {Page} page
 * @param {string} text
 */
async function ask(page, text) {
  const count = await page.locator(answered).count();
  await page.fill('#prompt', text);
  await page.keyboard.press('Enter');
  await page.locator(answered).nth(count).waitFor();
  await page.getByText('kept in this browser').waitFor();
  const [, tokens, kept] = /^(\d+) tokens, (\d+) of/.exec(await fact(page, 'Last prompt')) ?? [];
  const [, ms] =
    /first token after (\d+) ms/.exec((await page.locator(answered).last().textContent()) ?? '') ??
    [];
  const answer = await page.locator('.message.assistant .body').last().innerText();
  return { answer, tokens: Number(tokens), kept: Number(kept), ttftMs: Number(ms) };
}

/** @param {Page} page @param {string} text */
async function setSystem(page, text) {
  await page.click('#open-settings');
  await page.fill('#system', text);
  await page.click('#settings-form [value=save]');
}

/** Returns the saved states: the ids of their conversations, and their sizes. @param {Page} page */
const statesKept = (page) =>
  page.evaluate(async () => {
    /** @type {IDBDatabase} */
    const db = await new Promise((settle, fail) => {
      const opening = indexedDB.open('wick-chat-states');
      opening.onsuccess = () => settle(opening.result);
      opening.onerror = fail;
    });
    /** @type {any[]} */
    const all = await new Promise((settle, fail) => {
      const reading = db.transaction('facts').objectStore('facts').getAll();
      reading.onsuccess = () => settle(reading.result);
      reading.onerror = fail;
    });
    db.close();
    return all.map(({ id, size }) => ({ id, size }));
  });

test('a second visit continues with the conversation, and reads only the new part', {
  skip,
}, async (t) => {
  const profile = newProfile(t);
  const first = await visit(profile, async (page) => {
    assert.equal(await fact(page, 'Last visit'), 'none');
    await setSystem(page, system);
    return ask(page, 'What is Wick?');
  });
  assert.equal(first.kept, 0);
  assert.ok(first.tokens > 20 * PAGE_TOKENS, `${first.tokens}`);
  const second = await visit(profile, async (page) => {
    await page
      .locator('[data-fact="Last visit"]', { hasText: /^[1-9]\d* of \d+ tokens/ })
      .waitFor();
    const said = await page.locator('.message .body').allInnerTexts();
    assert.deepEqual(said, ['What is Wick?', first.answer]);
    return ask(page, 'What is a fork?');
  });
  assert.ok(second.kept >= first.tokens, `${second.kept} of ${first.tokens} and the answer`);
  const third = await visit(profile, async (page) => {
    assert.equal(await page.locator('.message').count(), 4);
    await page.click('#new-chat');
    return ask(page, 'What is a page?');
  });
  // a new conversation under the same system prompt: only its question is read
  const question = third.tokens - third.kept;
  assert.ok(third.kept > 20 * PAGE_TOKENS && question <= 2 * PAGE_TOKENS, `${question} read`);
  t.diagnostic(
    `time to the first token: first visit ${first.ttftMs} ms (${first.tokens} tokens read), ` +
      `second ${third.ttftMs} ms (${question} read)`,
  );
});

test('each conversation has a separate state, which is removed with it', { skip }, async (t) => {
  const profile = await newContext(t);
  await visit(profile, async (page) => {
    await ask(page, 'What is Wick?');
    await page.click('#new-chat');
    await ask(page, 'What is a fork?');
    await waitForPage(async () => (await statesKept(page)).length === 2, 'two states');
    if (await page.isHidden('#conversation-list')) await page.click('#open-list');
    await page.getByRole('button', { name: 'Actions for What is a fork?' }).click();
    await page.locator('.actions .delete').click();
    await page.locator('#deleted summary').click();
    const really = page.locator('#deleted-list button', { hasText: /permanently|Really/ });
    await really.click();
    await really.click();
    await page.locator('#deleted').waitFor({ state: 'hidden' });
    await waitForPage(async () => (await statesKept(page)).length === 1, 'one state');
  });
  await visit(profile, async (page) => {
    const again = await ask(page, 'What is a fork?');
    assert.ok(again.kept >= 2 * PAGE_TOKENS, `${again.kept} of ${again.tokens}`);
  });
});

test('a damaged state is rejected with an error, and the next visit has a new one', {
  skip,
}, async (t) => {
  const profile = await newContext(t);
  await visit(profile, async (page) => {
    await ask(page, 'What is Wick?');
    await page.evaluate(async () => {
      /** @type {IDBDatabase} */
      const db = await new Promise((settle, fail) => {
        const opening = indexedDB.open('wick-chat-states');
        opening.onsuccess = () => settle(opening.result);
        opening.onerror = fail;
      });
      const store = db.transaction('bytes', 'readwrite').objectStore('bytes');
      await new Promise((settle) => {
        store.openCursor().onsuccess = (event) => {
          const cursor = /** @type {any} */ (event.target).result;
          cursor.value[cursor.value.length >> 1] ^= 1;
          cursor.update(cursor.value).onsuccess = settle;
        };
      });
      db.close();
    });
  });
  await visit(profile, async (page) => {
    await page.locator('[data-fact="Last visit"]', { hasText: /^CORRUPT: / }).waitFor();
    assert.equal(await page.locator('#problem').isHidden(), true);
    const next = await ask(page, 'What is a fork?');
    assert.equal(next.kept, 0);
  });
  await visit(profile, async (page) => {
    await page.locator('[data-fact="Last visit"]', { hasText: /^[1-9]\d* of/ }).waitFor();
    const third = await ask(page, 'What is a page?');
    assert.ok(third.kept > 2 * PAGE_TOKENS, `${third.kept} of ${third.tokens}`);
  });
});

test('the state of another model is not used, and is replaced', {
  skip,
}, async (t) => {
  const profile = await newContext(t);
  await visit(profile, (page) => ask(page, 'What is Wick?'));
  const other = { address: `${server.url}?model=other.gguf` };
  const untilOther = (/** @type {Page} */ page) =>
    page.locator('#model-name', { hasText: 'other.gguf' }).waitFor();
  await visit(
    profile,
    async (page) => {
      await untilOther(page);
      await page.locator('[data-fact="Last visit"]', { hasText: /^MISMATCH: / }).waitFor();
      assert.equal((await ask(page, 'What is a fork?')).kept, 0);
    },
    other,
  );
  await visit(profile, async (page) => {
    await untilOther(page);
    await page.locator('[data-fact="Last visit"]', { hasText: /^[1-9]\d* of/ }).waitFor();
  });
});

test('nothing is remembered if the user opted out', { skip }, async (t) => {
  const profile = await newContext(t);
  await visit(profile, async (page) => {
    await ask(page, 'What is Wick?');
    await page.click('#open-settings');
    await page.uncheck('[name=remember]');
    await page.click('#settings-form [value=save]');
    await page.getByText('nothing is saved').waitFor();
    await page.fill('#prompt', 'What is a fork?');
    await page.keyboard.press('Enter');
    await page.locator(answered).nth(1).waitFor();
  });
  await visit(profile, async (page) => {
    assert.equal(await fact(page, 'Last visit'), 'not saved');
    assert.equal(await page.locator('.message').count(), 0);
    assert.deepEqual(await statesKept(page), []);
  });
});

// ---- the other browsers: a page of the same profile, driven by scripts ----

/** Runs in the page: opens the panel, asks, and returns the panel's text at the end. */
const askScript = `
  const until = async (condition) => {
    for (;;) {
      const value = condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
  };
  const fact = (name) => document.querySelector('[data-fact="' + name + '"]')?.textContent;
  document.getElementById('developer').open = true;
  await until(() => !document.getElementById('send').disabled);
  const shown = document.querySelectorAll('.message').length;
  document.getElementById('prompt').value = 'What is Wick?';
  document.getElementById('composer').requestSubmit();
  await until(() => fact('Next visit'));
  await until(() => fact('Last prompt'));
  await until(() => fact('Last visit'));
  const names = ['Last visit', 'Last prompt', 'Next visit'];
  return { shown, facts: names.map((name) => fact(name)) };`;

test('Firefox remembers, too', { skip: locate('firefox').skip }, async () => {
  const firefox = await launchFirefox();
  const visitOnce = async () => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    const found = /** @type {{shown: number, facts: string[]}} */ (
      await page.evaluate(`(async () => { ${askScript} })()`)
    );
    await page.close();
    return found;
  };
  try {
    const first = await visitOnce();
    assert.equal(first.shown, 0);
    assert.match(first.facts.join(' | '), /^none \| \d+ tokens, 0 of .* kept in this browser$/);
    const second = await visitOnce();
    assert.equal(second.shown, 2);
    assert.match(
      second.facts.join(' | '),
      /^\d+ of .* restored \| \d+ tokens, [1-9]\d* of .* kept in/,
    );
  } finally {
    await firefox.close();
  }
});

test('so does WebKitGTK, which has no file storage for pages', {
  skip: locate('webkitDriver').skip,
}, async () => {
  const page = await launchWebKit();
  try {
    await page.goto(server.url);
    const first = await page.evaluate(askScript);
    assert.equal(first.shown, 0);
    assert.match(first.facts.join(' | '), /^none \| \d+ tokens, 0 of .* kept in this browser$/);
    await page.goto(server.url);
    const second = await page.evaluate(askScript);
    assert.equal(second.shown, 2);
    assert.match(second.facts.join(' | '), /^\d+ of .* restored \| \d+ tokens, [1-9]\d* of/);
  } finally {
    await page.close();
  }
});
