// A first visitor of the chat page asks 40 questions and uses the visible controls: after each one, the page has answered, shows
// no error, and accepts another question. With the package's engine and the built-in model, in Chromium.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GOALS, visitOnce } from '../../tools/bench/first_visit.mjs';
import { useChat } from '../support/chat_page.mjs';
import { openReal } from '../support/chat_real.mjs';
import { chooseRow, lastAnswer } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue } from '../support/package.mjs';

const { skip, browser, url } = useChat('chat-visitor');
/** @typedef {import('playwright-core').Page} Page */

const questions = [
  'hi',
  'who made you?',
  'is this gpt-5?',
  'wait this runs in my browser??',
  'do you save my chats?',
  'works on iphone?',
  'can i use this in my app',
  'tell me a story about a dragon who hates fire',
  'another one',
  'roses are red',
  'whats 8+5',
  'what is thirty plus twelve',
  'capital of mongolia',
  'how far away is the moon',
  'bitcoin price',
  'write a cover letter for a barista job',
  'how do you say thank you in japanese',
  'html button that shows an alert',
  'this sucks',
  'i got the job!!!',
  'hola que tal, hablas español?',
  'तुम क्या कर सकते हो?',
  "asdfghjkl;'",
  'test 123',
  'tell me a joke and then a fun fact',
  'what can you do?',
  'is pineapple on pizza ok?',
  '?',
  '<b>bold</b> & "quotes"',
  '**what** is `markdown`?',
  '| a | b |',
  'summarise: the meeting moved to Thursday',
  'what is a fork?',
  'how fast are you',
  'which model is this',
  'can you see images?',
  'how do I add a file?',
  'what did I ask first?',
  'thanks',
  'bye',
];

/** Checks that the answer has ended without errors and that the next question can be typed. @param {Page} page @param {string} at */
async function assertAlive(page, at) {
  await untilTrue(page, "document.getElementById('log').ariaBusy !== 'true'"); // a reloaded page does not announce anything
  const state = await page.evaluate(() => ({
    answers: [...document.querySelectorAll('.message.assistant:not(.forgotten) .body')].map((one) =>
      one.textContent?.trim(),
    ),
    problem: document.querySelector('#problem:not([hidden])')?.textContent ?? '',
    isReady: !(/** @type {HTMLButtonElement} */ (document.querySelector('#send')).disabled),
    isShown: /** @type {HTMLElement} */ (document.querySelector('#send')).checkVisibility(),
    typed: /** @type {HTMLTextAreaElement} */ (document.querySelector('#prompt')).value,
  }));
  assert.ok(state.answers.at(-1), `an answer to ${at}`);
  assert.deepEqual(
    { ...state, answers: [] },
    { answers: [], problem: '', isReady: true, isShown: true, typed: '' },
    at,
  );
}

/** @param {Page} page @param {string} text */
async function ask(page, text) {
  const asked = page.locator('.message.user .body');
  const before = await asked.count();
  await page.fill('#prompt', text);
  await page.click('#send');
  await asked.nth(before).waitFor();
  await assertAlive(page, text);
}

/** The visitor's detours, each with the number of the question that it follows. @type {Record<number, (page: Page) => Promise<unknown>>} */
const detours = {
  3: (page) => lastAnswer(page).locator('.regenerate').click(),
  6: async (page) => {
    await chooseRow(lastAnswer(page), '.compare');
    await page.locator('.choose').nth(1).click();
  },
  9: async (page) => {
    await page.reload();
    await page.waitForSelector('#send:not([disabled])');
  },
  12: async (page) => {
    await page.locator('.message.user').last().getByRole('button', { name: 'Edit' }).click();
    await page.fill('.edit textarea', 'capital of france');
    await page.keyboard.press('Enter');
    await page.locator('.edit').waitFor({ state: 'detached' });
  },
  18: (page) => chooseRow(page.locator('.message.user').first(), '.forget'),
  24: async (page) => {
    await page.keyboard.press('Control+Shift+O');
    await untilTrue(page, "document.querySelectorAll('.message').length === 0");
    await ask(page, 'What is Wick?');
  },
  30: async (page) => {
    const before = await page.locator('.message.assistant').count();
    await page.fill('#prompt', 'tell me a long story about the sea');
    await page.keyboard.press('Enter');
    const answer = page.locator('.message.assistant').nth(before);
    await answer.locator('.body', { hasText: /\w/ }).waitFor();
    await page.keyboard.press('Escape');
  },
  36: async (page) => {
    await page.click('#open-settings');
    await page.locator('#settings-dialog [name=tools]').check();
    await page.getByRole('button', { name: 'Done' }).click();
  },
};

test('a visitor asks 40 questions, and each leaves the page usable', { skip }, async (t) => {
  /** @type {string[]} */
  const problems = [];
  const page = await openReal(browser(), url(), { problems });
  t.after(() => page.context().close());
  assert.equal(questions.length, 40);
  for (const [index, text] of questions.entries()) {
    if (!isFull && index % 2 === 1 && !detours[index]) continue;
    t.diagnostic(`${index}: ${text}`);
    await ask(page, text);
    if (!detours[index]) continue;
    await detours[index](page);
    await assertAlive(page, `the detour after question ${index}`);
  }
  assert.deepEqual(problems, []);
});

test('a first visit has no visible layout shift, on a desktop and on a phone', {
  skip,
}, async () => {
  const viewport = { width: 1280, height: 800 };
  const localStorage = [{ name: 'wick-chat-list', value: 'closed' }];
  const origins = [{ origin: new URL(url()).origin, localStorage }];
  for (const [name, options] of Object.entries({
    desktop: { viewport },
    'a list that was closed': { viewport, storageState: { cookies: [], origins } },
    phone: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
  })) {
    const { shift, moved } = await visitOnce(browser(), url(), options);
    assert.ok(shift < GOALS.shift, `${name}: ${shift}, ${moved}`);
  }
});
