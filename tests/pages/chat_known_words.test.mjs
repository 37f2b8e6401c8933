// The chat page constrains the built-in model's answers to known words. Runs with the package's engine and the built-in model; tests
// that need an invented word replace the model's answer. Without the word list, answers are unchanged.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { areWordsRead, askReal, openReal, saying } from '../support/chat_real.mjs';
import { chooseRow, lastAnswer } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';

const { skip, browser, url } = useChat('chat-known-words');
const LIST = '**/wick-4.2m-words.txt';

/** @param {import('node:test').TestContext} t @param {string} said @param {(page: import('playwright-core').Page) => Promise<unknown>} [prepare] */
async function open(t, said, prepare) {
  /** @type {string[]} */
  const problems = [];
  const own = browser();
  const context = {
    newContext: async (/** @type {any} */ options) => {
      const made = await own.newContext(options);
      const newPage = made.newPage.bind(made);
      made.newPage = async () => {
        const page = await newPage();
        await prepare?.(page);
        return page;
      };
      return made;
    },
  };
  const page = await openReal(/** @type {any} */ (context), url(), {
    problems,
    script: saying(JSON.stringify(said)),
  });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  await untilTrue(page, 'globalThis.isSaying');
  return page;
}

/** @param {import('playwright-core').Page} page */
const untilListed = (page) => untilTrue(page, areWordsRead).then(() => page.waitForTimeout(200));

/** @param {import('playwright-core').Page} page @returns {Promise<string>} */
const footer = (page) => page.locator('.message.assistant footer').last().innerText();

test('an invented word is not shown: the page shows a refusal with the reason', {
  skip,
}, async (t) => {
  const page = await open(t, 'Hello! The capital of France is Zorble.');
  await untilListed(page);
  assert.equal(await askReal(page, 'the capital of France?'), 'Hello! I do not know that.');
  assert.match(await footer(page), /Instead of an invented word/);
  const [{ grammar, messages }] = await page.evaluate('again');
  assert.match(grammar, /^root ::=/);
  assert.equal(messages.at(-1).content, 'Hello!');
});

test('a made-up word typed by the user is copied', { skip }, async (t) => {
  const page = await open(t, 'Your name is Zorble.');
  await untilListed(page);
  assert.equal(await askReal(page, 'i am zorble'), 'Your name is Zorble.');
  assert.deepEqual(await page.evaluate('again'), []);
  await page.click('.regenerate');
  await untilTrue(page, `document.querySelectorAll('.message.assistant footer').length === 1`);
  await chooseRow(lastAnswer(page), '.compare');
  await page.locator('.choose').first().waitFor();
  const all = await page.locator('.message.assistant .body').allInnerTexts();
  assert.deepEqual(
    all.map((one) => one.trim()),
    Array(3).fill('Your name is Zorble.'),
  );
});

for (const [name, reply] of /** @type {[string, any][]} */ ([
  ['is missing', { status: 404, body: 'none' }],
  ['is a page instead', { status: 200, body: '<!doctype html><title>none</title>' }],
  ['is not all of it', { status: 200, body: '1435 words\na\nabort\n' }],
]))
  test(`the list ${name}: the model’s answers are unchanged`, { skip }, async (t) => {
    const page = await open(t, 'The capital is Zorble.', (one) =>
      one.route(LIST, (route) => route.fulfill(reply)),
    );
    await untilListed(page);
    assert.equal(await askReal(page, 'the capital of France?'), 'The capital is Zorble.');
    await openDeveloper(page);
    await page.locator('[data-fact="Known words"]', { hasText: 'word list' }).waitFor();
  });

test('answers do not wait for the word list', { skip }, async (t) => {
  const page = await open(t, 'The capital is Zorble.', (one) => one.route(LIST, () => {}));
  assert.equal(await askReal(page, 'the capital of France?'), 'The capital is Zorble.');
});

test('an answer without an invented word is the model’s own answer', {
  skip,
}, async (t) => {
  /** @type {string[]} */
  const problems = [];
  const page = await openReal(browser(), url(), { problems });
  t.after(() => page.context().close());
  await untilListed(page);
  const held = await askReal(page, 'hi');
  assert.match(held, /\w/);
  const own = `engine.chat.completions.create({ messages: [{ role: 'system', content: 'You are Wick, a small and friendly assistant.' },
    { role: 'user', content: 'hi' }], temperature: 0 }).then(({ choices }) => choices[0].message.content)`;
  assert.equal(held, await page.evaluate(own));
  assert.deepEqual(problems, []);
});
