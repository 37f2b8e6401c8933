// The chat page with a fake engine, whose output and timing the test controls: hostile, slow and
// failing answers.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { isLateCode, onBattery, stubModels } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';

const { skip } = locate('chromium');
/** Differs from the port of tests/pages/page.test.mjs, which may be running. */
const site = resolve(root, 'build/chat-answers');

/** Replaces the package: the test calls `say`, `end` and `fail`, and reads `asked` and `loaded`. */
const script = `
  export class WickError extends Error {
    constructor(code, message) { super(message); this.code = code; }
  }
  let wake = () => {};
  const events = [];
  const happen = (event) => { events.push(event); wake(); };
  Object.assign(globalThis, { asked: [], loaded: [] });
  globalThis.say = (content) => happen({ content });
  globalThis.end = () => happen({ isEnd: true });
  globalThis.fail = (code) => happen({ error: new WickError(code, 'The test requires it') });
  async function* answer() {
    for (;;) {
      while (events.length === 0) await new Promise((settle) => { wake = settle; });
      const { content, isEnd, error } = events.shift();
      if (error) throw error;
      const choice = { index: 0, delta: { content }, finish_reason: isEnd ? 'stop' : null };
      yield { choices: [choice] };
      if (isEnd) return;
    }
  }
  const none = async () => { throw new WickError('NOT_FOUND', 'none'); };
  export const createEngine = async (options) => {
    if (options.directoryOnly) return { info: async () => ({}), inspect: none, close: async () => {} };
    loaded.push(options.url ?? options.model);
    return {
      info: async () => ({ shape: null, contextSize: 1, threads: 1, kernels: '', sharing: 'none' }),
      kvStats: none, loadState: none, saveState: none, inspect: none, close: async () => {},
      generate: () => ({ text: async () => 'Hello' }),
      chat: { completions: { create: async ({ messages }) => {
        asked.push(messages.at(-1).content);
        return answer();
      } } },
    };
  };`;

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  await copyChat(site);
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {import('node:test').TestContext} t */
async function openPage(t) {
  // a service worker would serve its own copies of the files replaced below
  const context = await browser.newContext({ serviceWorkers: 'block' });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(onBattery);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  t.after(() => assert.deepEqual(problems, []));
  await page.route('**/wick-llm/models.js', (route) =>
    route.fulfill({ contentType: 'text/javascript', body: stubModels }),
  );
  await page.route('**/wick-llm/index.js', (route) =>
    route.fulfill({ contentType: 'text/javascript', body: script }),
  );
  await page.goto(server.url);
  await page.waitForSelector('#send:not([disabled])');
  return page;
}

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page @param {string} text of the fake answer */
async function answerWith(page, text) {
  await page.fill('#prompt', 'Question');
  await page.keyboard.press('Enter');
  await page.evaluate(`say(${JSON.stringify(text)}); end()`);
  await page.locator('.message.assistant footer').last().waitFor();
  await page.locator('.body > .plain').waitFor({ state: 'detached' }); // until the renderer has loaded
  return page.locator('.message.assistant .body').last();
}

/** @param {Page} page */
const focused = (page) => page.evaluate('document.activeElement.id');

test('an answer cannot run code, load files or cover the page', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  /** @type {string[]} */
  const requests = [];
  page.on('request', (request) => {
    if (!isLateCode(request.url())) requests.push(request.url());
  });
  const elsewhere = `${server.url}tracker?`;
  const body = await answerWith(
    page,
    [
      '<img src=x onerror="hacked=1"><script>hacked=1</scr' + 'ipt>',
      `<svg><image href="${elsewhere}1"></image><a xlink:href="javascript:hacked=1">x</a></svg>`,
      `<table background="${elsewhere}2"><tr><td background="${elsewhere}3">cell</td></tr></table>`,
      `<video poster="${elsewhere}4"></video><input type="image" src="${elsewhere}5">`,
      `![picture](${elsewhere}6) <picture><source srcset="${elsewhere}7"></picture>`,
      '<b id="send" class="drop-hint" style="position:fixed" name="body">SEND</b>',
      '<input type="text" placeholder="password"><button>OK</button><dialog open>hi</dialog>',
      '[link](javascript:hacked=1) <a href="https://example.org/" target="_self">good</a>',
      '\n\n- [x] done\n- [ ] not done\n\n**bold** `code`',
    ].join('\n'),
  );
  assert.equal(await page.evaluate('window.hacked'), undefined);
  assert.deepEqual(requests, []);
  assert.equal(
    await body.locator('[id], [class], [style], [name], svg, button, dialog').count(),
    0,
  );
  assert.equal(await page.locator('[id=send]').count(), 1);
  assert.deepEqual(
    await body.locator('a[href]').evaluateAll((links) => links.map((one) => one.outerHTML)),
    ['<a href="https://example.org/" target="_blank" rel="noopener noreferrer">good</a>'],
  );
  assert.equal(await body.locator('input:not([type=checkbox])').count(), 0);
  assert.equal(await body.locator('input[type=checkbox]').count(), 2);
  assert.equal(await body.locator('strong').innerText(), 'bold');
});

test('code keeps its copy button while an answer streams', { skip: skip || !isFull }, async (t) => {
  const page = await openPage(t);
  const body = await answerWith(page, '```js\nconst one = 1;\n```');
  await page.evaluate('new Promise((settle) => requestAnimationFrame(() => setTimeout(settle)))');
  await body.locator('.copy-code').click();
  await body.getByText('Copied').waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'const one = 1;\n');
  await body.locator('.copy-code').click(); // the button still shows "Copied"
  await page.waitForTimeout(4000);
  await body.locator('.copy-code', { hasText: /^Copy$/ }).waitFor();
});

test('input during an answer stays; the focus moves from Send and Stop to the message field', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.fill('#prompt', 'First');
  await page.click('#send');
  await page.locator('#stop:visible').waitFor();
  assert.equal(await focused(page), 'prompt');
  await page.fill('#prompt', 'Second');
  await page.keyboard.press('Enter');
  assert.equal(await page.inputValue('#prompt'), 'Second');
  await page.focus('#stop');
  await page.evaluate("say('Yes.'); end()");
  await page.locator('#send:visible').waitFor();
  assert.equal(await focused(page), 'prompt');
  await page.keyboard.press('Enter');
  await untilTrue(page, 'asked.length === 2');
  assert.deepEqual(await page.evaluate('asked'), ['First', 'Second']);
  await page.evaluate("say('Yes.'); end()");
});

test('an answer that fails can be requested again, an engine that crashed is loaded again', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.fill('#prompt', 'Question');
  await page.keyboard.press('Enter');
  await page.evaluate("say('I was'); fail('PAGES')");
  await page.locator('#problem:visible').waitFor();
  assert.equal(await page.isVisible('#retry-loading'), false);
  // the written part is kept and can be continued
  assert.equal(await page.locator('.message.assistant .body').innerText(), 'I was');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.evaluate("say(' here.'); end()");
  await page.getByRole('button', { name: 'Continue' }).waitFor({ state: 'detached' });
  assert.equal(await page.locator('.message.assistant .body').innerText(), 'I was here.');
  await page.click('#new-chat');
  await page.fill('#prompt', 'Question');
  await page.keyboard.press('Enter');
  await page.evaluate("fail('PAGES')");
  await page.getByText('Answer again').click();
  await page.evaluate("fail('WORKER_CRASHED')");
  await page.locator('#retry-loading:visible').waitFor();
  await page.click('#retry-loading');
  await untilTrue(page, 'loaded.length === 2');
  await page.waitForSelector('#send:not([disabled])');
  await page.getByText('Answer again').click();
  await page.evaluate("say('Yes.'); end()");
  await page.locator('.message.assistant footer').waitFor();
  assert.equal(await page.locator('.message').count(), 2);
  assert.equal(await page.getByText('Answer again').count(), 0);
});

test('Enter in a dialog presses its main button', { skip: skip || !isFull }, async (t) => {
  const page = await openPage(t);
  await page.click('#open-settings');
  await page.fill('[name=topK]', '7');
  await page.keyboard.press('Enter');
  await page.click('#open-settings');
  assert.equal(await page.inputValue('[name=topK]'), '7');
  await page.click('#reset-settings');
  await page.click('#open-settings');
  assert.equal(await page.inputValue('[name=topK]'), '40');
  await page.keyboard.press('Escape');
  await page.click('#choose-model');
  await page.fill('#model-url', `${server.url}other.gguf`);
  await page.keyboard.press('Enter');
  await untilTrue(page, 'loaded.length === 2');
  assert.deepEqual(await page.evaluate('loaded.map((one) => one.split("/").at(-1))'), [
    'wick-4.2m-q8_0.gguf',
    'other.gguf',
  ]);
  await page.click('#choose-model');
  assert.equal(await page.inputValue('#model-url'), '', 'the next choice is a new one');
  await page.fill('#model-url', 'https://example.org/half-typed');
  await page.check('[value="smollm2-135m"]');
  await page.click('#load-model');
  await untilTrue(page, 'loaded.length === 3');
  assert.match(await page.evaluate('loaded[2]'), /SmolLM2-135M/);
});
