// The chat page's conversations are trees: edited questions, answers side by side, switching between
// branches without recomputing shared tokens. In Chromium; screenshots are written to build/screenshots.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  add,
  allAfter,
  find,
  fromTurns,
  insert,
  newTree,
  saidUntil,
  shownAfter,
  toTurn,
} from '../../examples/chat/tree.js';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { chooseRow, lastAnswer } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const PAGE_TOKENS = 16;

/** @type {string[]} */
const requested = [];
const {
  skip,
  browser,
  url: siteUrl,
} = useChat('chat-tree', { onRequest: (path) => requested.push(path) });

// ---- the tree without the page ----

test('a tree is built from turns in any order, and shows the chosen branch', () => {
  let time = 0;
  /** @param {string} content @param {'user' | 'assistant'} [role] */
  const said = (content, role = 'user') => ({
    ...{ id: `id of ${content}`, role, content, created: ++time },
    state: /** @type {const} */ ('whole'),
  });
  const tree = newTree();
  const first = add(tree, { ...said('one'), system: 'Be short.' });
  const answer = add(first, said('an answer', 'assistant'));
  add(first, said('another', 'assistant'));
  add(answer, said('and then?'));
  add(tree, said('two'));
  tree.shown = first.id;
  first.shown = answer.id;
  const texts = (/** @type {import('../../examples/chat/tree.js').Place} */ place) =>
    shownAfter(place).map(({ content }) => content);
  assert.deepEqual(texts(tree), ['one', 'an answer', 'and then?']);
  const turns = allAfter(tree).map((one) => toTurn(one, 'here', 1));
  const again = fromTurns(JSON.parse(JSON.stringify(turns.reverse())), tree.shown);
  assert.deepEqual(texts(again), texts(tree));
  assert.deepEqual(
    allAfter(again).map((one) => toTurn(one, 'here', 1)),
    allAfter(tree).map((one) => toTurn(one, 'here', 1)),
  );
  assert.equal(again.children[0].system, 'Be short.');
  again.shown = undefined;
  assert.deepEqual(texts(again), ['two'], 'the newest one, because none was chosen');
  const last = shownAfter(tree)[2];
  assert.deepEqual(
    saidUntil(last).map(({ content }) => content),
    texts(tree),
  );
  assert.equal(find(again, 'id of and then?')?.content, 'and then?');
  insert(first, said('from elsewhere', 'assistant'));
  assert.deepEqual(texts(tree), ['one', 'an answer', 'and then?'], 'it is not shown');
});

// ---- the page ----

/** @typedef {import('playwright-core').Page} Page */

/**
 * @param {import('node:test').TestContext} t
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function openPage(t, options = {}) {
  const context = await browser().newContext(options);
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(siteUrl());
  await page.waitForSelector('#send:not([disabled])');
  return { page, problems };
}

/** Waits until nothing is being written. @param {Page} page */
const untilWritten = (page) => page.locator('#log[aria-busy=false] .message').last().waitFor();

/**
 * Waits for the answer. A busy page shows the question before it begins the answer, so `untilWritten` alone may find
 * the earlier one.
 * @param {Page} page @param {string} text of the question
 */
async function untilAnswered(page, text) {
  const question = page.locator('.message.user', { hasText: text }).last();
  await question.locator('xpath=following-sibling::*//footer').first().waitFor();
  await untilWritten(page);
}

/** @param {Page} page @param {string} text */
async function ask(page, text) {
  await page.fill('#prompt', text);
  await page.click('#send');
  await untilAnswered(page, text);
}

/** @param {Page} page */
const shown = (page) => page.locator('.message .body').allInnerTexts();

/** @param {Page} page @returns {Promise<{all: number, read: number}>} the tokens of the last prompt */
async function lastPrompt(page) {
  const text = await page.locator('[data-fact="Last prompt"]').innerText();
  const [, all, kept] = /^(\d+) tokens, (\d+) of/.exec(text) ?? [];
  return { all: Number(all), read: Number(all) - Number(kept) };
}

test('an edited question is a branch, and the arrows lead back', { skip }, async (t) => {
  const { page, problems } = await openPage(t);
  await openDeveloper(page);
  await ask(page, 'Tell me a story about a fox.');
  await ask(page, 'What is Wick?');
  const before = await shown(page);
  assert.equal(before.length, 4);
  // by keyboard: presses Edit, changes the text, presses Enter
  await page.locator('.message.user').nth(1).getByRole('button', { name: 'Edit' }).focus();
  await page.keyboard.press('Enter');
  const field = page.getByLabel('Your edited message');
  assert.equal(await field.inputValue(), 'What is Wick?');
  await page.keyboard.press('Escape');
  assert.deepEqual(await shown(page), before, 'Escape leaves all unchanged');
  await page.keyboard.press('Enter');
  await field.fill('What is a fork?');
  await page.keyboard.press('Enter');
  await field.waitFor({ state: 'detached' });
  await untilAnswered(page, 'What is a fork?');
  const branch = await shown(page);
  assert.deepEqual(branch.slice(0, 3), [...before.slice(0, 2), 'What is a fork?']);
  const { all, read } = await lastPrompt(page);
  assert.ok(all > 2 * PAGE_TOKENS && read <= 2 * PAGE_TOKENS, `${read} of ${all} were read`);
  const versions = page.getByRole('navigation', { name: 'Versions of this message' });
  assert.match(await versions.innerText(), /\b2 \/ 2\b/);
  await page.getByRole('button', { name: 'Previous version' }).click();
  assert.deepEqual(await shown(page), before);
  assert.equal(await page.innerText('#announcer'), 'Version 1 of 2');
  const focused = await page.evaluate('document.activeElement.textContent');
  assert.equal(focused, 'Previous version', 'the focus stays on the arrow');
  // the answer continues from the old branch, which is not recomputed
  await ask(page, 'And then?');
  assert.deepEqual((await shown(page)).slice(0, 4), before);
  const later = await lastPrompt(page);
  assert.ok(later.all > all && later.read <= 2 * PAGE_TOKENS, `${later.read} of ${later.all}`);
  const kept = await shown(page);
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  assert.deepEqual(await shown(page), kept);
  await page.getByRole('button', { name: 'Next version' }).click();
  assert.deepEqual(await shown(page), branch);
  assert.deepEqual(problems, []);
});

for (const [name, options] of Object.entries({
  light: { viewport: { width: 1000, height: 760 }, colorScheme: /** @type {const} */ ('light') },
  dark: { viewport: { width: 1000, height: 760 }, colorScheme: /** @type {const} */ ('dark') },
  phone: { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true },
})) {
  test(`answers are generated side by side, and one is chosen (${name})`, {
    skip: skip || (name !== 'light' && !isFull),
  }, async (t) => {
    const { page, problems } = await openPage(t, options);
    // with random seeds, one run in fifty would produce two equal stories
    await page.click('#open-settings');
    await page.fill('[name=seed]', '1');
    await page.keyboard.press('Enter');
    await openDeveloper(page);
    await ask(page, 'Tell me a story.');
    const [, first] = await shown(page);
    await chooseRow(lastAnswer(page), '.compare');
    await page.locator('.variant .choose').nth(2).waitFor();
    // the answers ran in one batch: two of them are forks of the first one's prompt
    await page.getByText(/ in use, 2 forks, /).waitFor();
    const { all, read } = await lastPrompt(page);
    assert.ok(read < all && read <= PAGE_TOKENS, `${read} of ${all} were read`);
    assert.equal(await page.locator('.variant footer').first().innerText(), 'Use this answer');
    const variants = await page.locator('.variant .body').allInnerTexts();
    assert.equal(new Set(variants).size, 3, 'they differ');
    await takePicture(page, `tree-${name}-variants`);
    const sideways = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(sideways, 0, 'the page does not scroll sideways');
    await page.getByRole('region', { name: 'Variant 2 of 3' }).getByRole('button').click();
    assert.equal((await shown(page))[1], variants[1]);
    assert.match(await page.locator('.versions').innerText(), /3 \/ 4/);
    await page.getByRole('button', { name: 'Next version' }).click();
    assert.equal((await shown(page))[1], variants[2]);
    await page.getByRole('button', { name: 'Next version' }).click();
    assert.equal((await shown(page))[1], first, 'the first follows the last');
    await takePicture(page, `tree-${name}-versions`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await takePicture(page, `tree-${name}-edit`);
    assert.deepEqual(problems, []);
  });
}

test('without a choice the first answer is used, and stopping keeps all', {
  skip: skip || !isFull,
}, async (t) => {
  const { page, problems } = await openPage(t);
  await ask(page, 'Tell me a story about a fox.');
  await chooseRow(lastAnswer(page), '.compare');
  await page.locator('.variant .choose').nth(2).waitFor();
  const [chosen] = await page.locator('.variant .body').allInnerTexts();
  await ask(page, 'What is Wick?');
  assert.equal((await shown(page))[1], chosen);
  assert.equal(await page.locator('.variant').count(), 0);
  await chooseRow(lastAnswer(page), '.compare');
  await page.locator('.variant .body:not(:empty)').first().waitFor();
  await page.evaluate("document.getElementById('stop').click()"); // unless the answers have already ended
  await page.locator('.variant .choose').nth(2).waitFor();
  await page.click('#new-chat');
  assert.equal(await page.locator('.message').count(), 0);
  await ask(page, 'What is Wick?');
  assert.equal((await shown(page)).length, 2);
  assert.deepEqual(problems, []);
});

test('two tabs of the page share one model, and the remaining tab can still answer', {
  skip: skip || !isFull,
}, async (t) => {
  // the page downloads the model again to store it
  const { page, problems } = await openPage(t, { serviceWorkers: 'block' });
  const downloads = () => requested.filter((path) => path.endsWith('.gguf')).length;
  const before = downloads();
  const other = await page.context().newPage();
  await other.goto(siteUrl());
  await other.waitForSelector('#send:not([disabled])');
  await untilTrue(other, "document.getElementById('facts').innerText.includes('in another tab')");
  assert.equal(downloads(), before);
  await Promise.all([ask(page, 'Tell me a story about a fox.'), ask(other, 'What is Wick?')]);
  assert.match((await shown(page))[1], /fox/);
  const [, answer] = await shown(other);
  assert.deepEqual(problems, []);
  await page.close();
  await other.click('#new-chat');
  await ask(other, 'What is Wick?');
  assert.equal((await shown(other))[1], answer);
  assert.equal(downloads(), before + 1);
});
