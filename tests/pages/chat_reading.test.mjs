// Elements around the chat page's answers: the model's reasoning, collapsed and with its duration; its
// current activity; the theme; the list of keyboard shortcuts. In Chromium, with an engine whose output the
// test controls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knowsNothing } from '../../examples/chat/unknown_answers.js';
import { useChat } from '../support/chat_page.mjs';
import { ask, talk, untilKept } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, openPage } = useChat('chat-reading');

test('reasoning is folded, with its time, and kept with the answer', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await ask(page, 'How many?');
  await page.evaluate("think('First I count.'); think(' Then I add.')");
  const summary = page.locator('.reasoning summary');
  await page.getByText('Thinking …').waitFor();
  await page.locator('#live', { hasText: 'Thinking: 2 tokens' }).waitFor();
  await page.evaluate("say('Four.'); end()");
  await page.locator('.message.assistant footer').waitFor();
  assert.match(await summary.innerText(), /^Thought for \d+\.\d s$/);
  assert.equal(await page.getByText('First I count. Then I add.').isVisible(), false);
  await summary.click();
  assert.equal(await page.getByText('First I count. Then I add.').isVisible(), true);
  assert.equal(await page.isHidden('#live'), true);
  await takePicture(page, 'chat-reasoning');
  const { turns } = await untilKept(page, ({ turns: all }) => all.at(-1)?.state === 'whole');
  const answer = turns.find(({ role }) => role === 'assistant');
  assert.deepEqual([answer.content, answer.reasoning], ['Four.', 'First I count. Then I add.']);
  const words = await summary.innerText();
  await page.reload();
  await page.locator('.reasoning summary', { hasText: words }).waitFor();
  await page.waitForSelector('#send:not([disabled])');
  await talk(page, 'Sure?', 'Yes.');
  const body = await page.evaluate('bodies.at(-1)');
  assert.deepEqual(
    body.messages.map((/** @type {any} */ one) => one.content),
    ['How many?', 'Four.', 'Sure?'],
    'reasoning is not sent again',
  );
});

test('the activity line shows reading, then writing with its speed', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await ask(page, 'A long text');
  const live = page.locator('#live');
  await untilTrue(page, 'globalThis.prefill !== undefined');
  await page.evaluate('prefill({ done: 128, total: 2048 })');
  // on a slow machine, the text already contains the remaining time
  await live.getByText(/^Reading 128 of 2,048 tokens(, about \d+ s left)?$/).waitFor();
  await untilTrue(page, 'performance.now() > 1500');
  await page.waitForTimeout(800);
  await page.evaluate('prefill({ done: 1024, total: 2048 })');
  await live.getByText(/^Reading 1,024 of 2,048 tokens, about \d+ s left$/).waitFor();
  await page.evaluate("say('One')");
  await live.getByText('Writing: 1 token', { exact: true }).waitFor();
  await page.waitForTimeout(800);
  await page.evaluate("say(' two')");
  await live.getByText(/^Writing: 2 tokens, \d\.\d tokens\/s$/).waitFor();
  await page.evaluate('end()');
  await live.waitFor({ state: 'hidden' });
});

test('during an answer, Escape in an edited question closes only the editor, and versions stay', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  const edit = page.getByRole('button', { name: 'Edit', exact: true });
  await talk(page, 'First', 'One.');
  await edit.click();
  await page.fill('.edit textarea', 'Anew');
  await page.keyboard.press('Enter');
  await page.evaluate("say('Two.'); end()");
  await page.locator('#log[aria-busy=false] .message.assistant footer').waitFor();
  await edit.click();
  await ask(page, 'Second');
  await page.locator('.edit textarea').press('Escape');
  const arrows = page.getByRole('button', { name: 'Previous version' });
  await arrows.first().waitFor();
  assert.equal(await arrows.first().isDisabled(), true);
  await page.evaluate("say('Three.'); end()");
  await page.locator('.message.assistant .body', { hasText: 'Three.' }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  assert.equal(await arrows.first().isDisabled(), false);
  assert.equal(await page.getByRole('button', { name: 'Continue' }).count(), 0);
});

test('a damaged conversation file can be chosen again; a drawer that becomes a list is open', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options: { viewport: { width: 500, height: 700 } } });
  const buffer = Buffer.from('{');
  await page.setInputFiles('#import-file', { name: 'a.json', mimeType: 'text/plain', buffer });
  await page
    .locator('#problem-text', { hasText: 'a.json is not a file that this page exported' })
    .waitFor();
  assert.equal(await page.inputValue('#import-file'), '');
  await page.click('#open-list');
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.locator('body.with-list').waitFor();
  await page.evaluate('new Promise((settle) => setTimeout(settle, 100))'); // the element's events arrive later
  assert.equal(await page.getAttribute('#open-list', 'aria-expanded'), 'true');
});

test('the theme follows the system or the user’s choice, which is kept', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  const colour = 'getComputedStyle(document.body).backgroundColor';
  const back = () => page.evaluate(colour);
  const light = await back();
  await page.click('#open-settings');
  await page.selectOption('#theme', 'dark');
  await page.click('#settings-form [value=save]');
  await untilTrue(page, `${colour} !== '${light}'`); // the theme is stored before it is shown
  const dark = await back();
  await page.reload();
  assert.equal(await back(), dark);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.click('#open-settings');
  await page.selectOption('#theme', 'light');
  await page.click('#settings-form [value=save]');
  await untilTrue(page, `${colour} === '${light}'`);
});

test('the list of keyboard shortcuts opens with ?, but not in a text field', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  const dialog = page.locator('#shortcuts-dialog');
  await page.fill('#prompt', 'What');
  await page.press('#prompt', '?');
  assert.equal(await page.inputValue('#prompt'), 'What?');
  assert.equal(await dialog.isVisible(), false);
  await page.focus('#new-chat');
  await page.keyboard.press('?');
  await dialog.getByText('search all conversations').waitFor();
  await takePicture(page, 'chat-keys');
  await page.keyboard.press('Escape');
  assert.equal(await dialog.isVisible(), false);
});

test('a larger model is offered once, after the first answer that says it does not know', {
  skip: skip || !isFull,
}, async (t) => {
  for (const text of ['I do not know that.', 'I don’t know.', "I can't tell.", 'I am not sure.'])
    assert.ok(knowsNothing(text), text);
  for (const text of ['You do not need it.', 'Knowing is good.', 'It cannot rain here.'])
    assert.ok(!knowsNothing(text), text);
  const page = await openPage(t);
  await talk(page, 'What is Wick?', 'An engine.');
  assert.equal(await page.isHidden('#notice'), true);
  await page.evaluate(`
    localStorage.setItem('wick-chat-speeds', '[{"bytes": 4.5e6, "tokensPerSecond": 700}]')`);
  await talk(page, 'Who was king in 1703?', 'I do not know that.');
  const costs =
    /Q8_0 knows more: 384 MB to download \(about \d+.*s\), 563 MB of memory, about 8 tokens\/s on this machine\.$/;
  await page.locator('#notice-text', { hasText: costs }).waitFor();
  await takePicture(page, 'chat-offer');
  await page.getByRole('button', { name: 'Choose a model', exact: true }).click();
  assert.equal(await page.isChecked('[value="smollm2-360m"]'), true);
  await page.keyboard.press('Escape');
  await talk(page, 'And in 1704?', 'I do not know that, either.');
  assert.equal(await page.isHidden('#notice'), true);
});

test('suggestions never cover the end of the answer, even on a low screen', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options: { viewport: { width: 640, height: 400 } } });
  await talk(page, 'Who was king in 1703?', 'I do not know that.');
  await page.locator('#notice').waitFor();
  await untilTrue(page, 'log.scrollHeight - log.scrollTop - log.clientHeight < 2');
  await takePicture(page, 'chat-offer-low');
});

test('an answer is announced while it streams, in whole sentences, each once', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.evaluate(`
    globalThis.heard = [];
    new MutationObserver((all) => {
      for (const { addedNodes } of all) for (const one of addedNodes) heard.push(one.textContent.trim());
    }).observe(document.getElementById('announcer'), { childList: true });`);
  await ask(page, 'A question');
  await page.evaluate("say('One **sentence** is here. A sec'); say('ond one')");
  const heard = () => page.evaluate('heard');
  await untilTrue(page, 'heard.length === 2');
  assert.deepEqual(await heard(), ['The model answers:', 'One  sentence  is here.']);
  await page.evaluate("say(' comes. And'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
  assert.equal((await heard()).slice(2).join(' '), 'A second one comes. And End of the answer.');
});

test('only the system prompt of the open conversation is shown', { skip }, async (t) => {
  const page = await openPage(t);
  await talk(page, 'Without', 'One.');
  assert.equal(await page.isHidden('#told'), true);
  await page.click('#new-chat');
  await page.click('#open-settings');
  await page.fill('#system', 'You are <b>brief</b>.');
  await page.click('#settings-form [value=save]');
  await talk(page, 'With', 'Two.');
  await page.click('#told summary');
  assert.equal(await page.innerText('#told-text'), 'You are <b>brief</b>.');
  await page.reload();
  await page.locator('#told').waitFor();
  await takePicture(page, 'chat-system');
  if (!(await page.isVisible('#conversations'))) await page.click('#open-list');
  await page.getByRole('link', { name: 'Without' }).click();
  await page.locator('.body', { hasText: 'One.' }).waitFor();
  assert.equal(await page.isHidden('#told'), true);
});
