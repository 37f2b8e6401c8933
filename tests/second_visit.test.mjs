// A second visit to the chat page: the conversation is there, and its beginning is not read again, though
// the browser was closed meanwhile. What is damaged, or of another model, is refused by name, and the
// page goes on.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { buildChat } from '../examples/chat/build.mjs';
import { serve } from '../tools/serve.mjs';
import {
  launchChromium,
  launchFirefox,
  launchProfile,
  launchWebKit,
  PATIENCE_MS,
} from './support/browsers.mjs';
import { locate, root } from './support/locate.mjs';

const { skip } = locate('chromium');
const answered = '.message.assistant footer';
const PAGE_TOKENS = 16;

/** Not the one of tests/page.test.mjs, which may be running. */
const site = resolve(root, 'build/chat-visits');

/** Some hundred tokens. */
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
  await buildChat(site);
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

/** @param {TestContext} t @returns {Promise<BrowserContext>} the same in memory, while the test runs */
async function newContext(t) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  return context;
}

/**
 * @template T
 * @param {string | BrowserContext} profile a folder: a browser of its own
 * @param {(page: Page) => Promise<T>} use with a page that is ready, its panel open
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
    await page.click('#developer summary');
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
 * Asks, and waits until what was read is kept.
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
  const [, ms] = /first after (\d+) ms/.exec(await page.locator(answered).last().innerText()) ?? [];
  const answer = await page.locator('.message.assistant .body').last().innerText();
  return { answer, tokens: Number(tokens), kept: Number(kept), ttftMs: Number(ms) };
}

/** @param {Page} page @param {string} text */
async function setSystem(page, text) {
  await page.click('#open-settings');
  await page.fill('#system', text);
  await page.click('#settings-form [value=save]');
}

/** The code of the error that the package gives for what is kept. @param {Page} page */
const refusal = (page) =>
  page.evaluate(async () => {
    const entry = '/wick-llm/index.js';
    /** @type {typeof import('../js/index.js')} */
    const { createEngine, WickError } = await import(entry);
    const engine = await createEngine({
      url: '/wick-llm-demo-model/wick-2.6m-q8_0.gguf',
      threads: 1,
    });
    const error = await engine.loadState('chat-page').catch((reason) => reason);
    const { prefix } = await engine.kvStats();
    await engine.close();
    return { code: error instanceof WickError ? error.code : undefined, left: prefix?.entries };
  });

test('a second visit goes on with the conversation, and reads only what is new', {
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
    assert.match(await fact(page, 'Last visit'), /^[1-9]\d* entries of the prefix cache taken up$/);
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
  // a new conversation under the same system prompt: its question alone is read
  const question = third.tokens - third.kept;
  assert.ok(third.kept > 20 * PAGE_TOKENS && question <= 2 * PAGE_TOKENS, `${question} read`);
  t.diagnostic(
    `time to the first token: first visit ${first.ttftMs} ms (${first.tokens} tokens read), ` +
      `second ${third.ttftMs} ms (${question} read)`,
  );
});

test('what is damaged is refused by name, and the next visit has a new state', {
  skip,
}, async (t) => {
  const profile = await newContext(t);
  const first = await visit(profile, async (page) => {
    const asked = await ask(page, 'What is Wick?');
    await page.evaluate(async () => {
      const folder = await navigator.storage.getDirectory();
      const file = await (await folder.getDirectoryHandle('wick-llm')).getFileHandle('chat-page');
      const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
      bytes[bytes.length >> 1] ^= 1;
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
    });
    return asked;
  });
  await visit(profile, async (page) => {
    assert.match(await fact(page, 'Last visit'), /^CORRUPT: /);
    assert.deepEqual(await refusal(page), { code: 'CORRUPT', left: 0 });
    assert.equal(await page.locator('#problem').isHidden(), true);
    await page.click('#new-chat');
    const again = await ask(page, 'What is Wick?');
    assert.deepEqual([again.answer, again.kept], [first.answer, 0]);
  });
  await visit(profile, async (page) => {
    await page.click('#new-chat');
    const again = await ask(page, 'What is Wick?');
    assert.equal(again.answer, first.answer);
    assert.ok(again.kept >= again.tokens - PAGE_TOKENS, `${again.kept} of ${again.tokens}`);
  });
});

test('the state of another model is refused by name, and replaced', { skip }, async (t) => {
  const profile = await newContext(t);
  await visit(profile, (page) => ask(page, 'What is Wick?'));
  const other = { address: `${server.url}?model=other.gguf` };
  await visit(
    profile,
    async (page) => {
      assert.match(await fact(page, 'Last visit'), /^MISMATCH: /);
      assert.equal((await ask(page, 'What is a fork?')).kept, 0);
      assert.deepEqual(await refusal(page), { code: 'MISMATCH', left: 0 });
    },
    other,
  );
  await visit(
    profile,
    async (page) => assert.match(await fact(page, 'Last visit'), /^[1-9]\d* entries/),
    other,
  );
});

test('the worker keeps what the page itself cannot write', { skip }, async (t) => {
  const profile = await newContext(t);
  // as Safari has it before 26; workers have another prototype
  const script = 'delete FileSystemFileHandle.prototype.createWritable';
  const first = await visit(profile, (page) => ask(page, 'What is Wick?'), { script });
  const again = await visit(
    profile,
    async (page) => {
      await page.click('#new-chat');
      await ask(page, 'What is a fork?'); // written over the longer or shorter one before
      await page.click('#new-chat');
      return ask(page, 'What is Wick?');
    },
    { script },
  );
  assert.equal(again.answer, first.answer);
  assert.ok(again.kept >= again.tokens - PAGE_TOKENS, `${again.kept} of ${again.tokens}`);
  await visit(profile, async (page) =>
    assert.match(await fact(page, 'Last visit'), /^[1-9]\d* entries/),
  );
});

test('who does not want to be remembered is not', { skip }, async (t) => {
  const profile = await newContext(t);
  await visit(profile, async (page) => {
    await ask(page, 'What is Wick?');
    await page.click('#open-settings');
    await page.uncheck('[name=remember]');
    await page.click('#settings-form [value=save]');
    await page.getByText('nothing is kept').waitFor();
    await page.fill('#prompt', 'What is a fork?');
    await page.keyboard.press('Enter');
    await page.locator(answered).nth(1).waitFor();
  });
  await visit(profile, async (page) => {
    assert.equal(await fact(page, 'Last visit'), 'not remembered');
    assert.equal(await page.locator('.message').count(), 0);
    assert.equal((await refusal(page)).code, 'NOT_FOUND');
  });
});

// ---- the other browsers: a page of the same profile, driven by scripts ----

/** Runs in the page: opens the panel, asks, and tells what the panel says when all is done. */
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
    assert.match(second.facts.join(' | '), /^\d+ entries .* \| \d+ tokens, [1-9]\d* of .* kept in/);
  } finally {
    await firefox.close();
  }
});

test('WebKitGTK keeps no files for a page: it says so, and every visit answers', {
  skip: locate('webkitDriver').skip,
}, async () => {
  const page = await launchWebKit();
  try {
    for (const shown of [0, 2]) {
      await page.goto(server.url);
      const found = await page.evaluate(askScript);
      assert.equal(found.shown, shown);
      assert.match(found.facts.join(' | '), /^NO_STORAGE: .* tokens, 0 of .* NO_STORAGE: /);
    }
  } finally {
    await page.close();
  }
});
