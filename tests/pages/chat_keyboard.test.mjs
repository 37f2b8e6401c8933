// A whole conversation with only the keyboard, and the names of controls in the order of a screen reader. In Chromium, with a fake
// engine whose output the test controls.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { shown, untilKept } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';

const { skip, openPage } = useChat('chat-keyboard');
/** @typedef {import('playwright-core').Page} Page */

const options = { viewport: { width: 1280, height: 800 } };

/** Returns the name of the focused element. @param {Page} page @returns {Promise<string>} */
const focused = (page) =>
  page.evaluate(`(() => {
    const { activeElement: one } = document;
    return one.getAttribute('aria-label') ?? one.innerText.trim().split('\\n')[0];
  })()`);

/** @param {Page} page @param {string} key @param {number} times @returns {Promise<string[]>} the names of the focused controls */
async function walk(page, key, times) {
  const names = [];
  for (let index = 0; index < times; index++) {
    await page.keyboard.press(key);
    names.push(await focused(page));
  }
  return names;
}

/** @param {Page} page @param {string} name @param {string} [key] */
async function goTo(page, name, key = 'Shift+Tab') {
  const passed = [];
  while (passed.at(-1) !== name) {
    passed.push(...(await walk(page, key, 1)));
    assert.ok(passed.length < 40, `${name} is not among ${passed}`);
  }
}

/** Makes the model answer the message that was sent. @param {Page} page @param {number} count of questions so far @param {string} text */
async function answer(page, count, text) {
  await untilTrue(page, `asked.length === ${count}`);
  await page.evaluate(`say(${JSON.stringify(text)}); end()`);
  await page.locator('.message.assistant .body', { hasText: text }).last().waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
}

test('asking, editing, regenerating, searching and settings need no pointer', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  const { keyboard } = page;
  await keyboard.type('First question');
  await keyboard.press('Enter');
  await answer(page, 1, 'One.');
  assert.equal(await focused(page), 'Your message');
  assert.deepEqual(await walk(page, 'Shift+Tab', 13), [
    ...['Attach a file', 'More', 'Regenerate', 'Copy', 'More', 'Edit', 'Copy', 'Conversation'],
    ...['More', 'Settings', 'New chat', 'Wick 4.2M', 'Conversations'],
  ]);
  await goTo(page, 'Edit', 'Tab');
  await keyboard.press('Enter');
  assert.equal(await focused(page), 'Your edited message');
  await keyboard.press('End');
  await keyboard.type(' again');
  await keyboard.press('Enter');
  await answer(page, 2, 'Two.');
  await goTo(page, 'Previous version', 'Tab');
  await keyboard.press('Enter');
  assert.deepEqual(await shown(page), ['First question', 'One.']);
  await goTo(page, 'Regenerate', 'Tab');
  await keyboard.press('Enter');
  await answer(page, 3, 'Three.');
  await keyboard.press('Control+Shift+O');
  assert.equal(await focused(page), 'Your message');
  await keyboard.type('Second conversation');
  await keyboard.press('Enter');
  await answer(page, 4, 'Four.');
  await keyboard.press('Control+k');
  await keyboard.type('first');
  await untilTrue(page, "document.getElementById('list-note').textContent === '1 found'");
  await keyboard.press('ArrowDown');
  await keyboard.press('Enter');
  await page.locator('.message.user .body', { hasText: 'First question' }).waitFor();
  await page.locator('#prompt').focus(); // the skip link leads there, too
  await goTo(page, 'Settings');
  await keyboard.press('Enter');
  await page.locator('#settings-dialog[open]').waitFor();
  await keyboard.press('Escape');
  await page.locator('#settings-dialog').waitFor({ state: 'hidden' });
  assert.equal(await focused(page), 'Settings');
  await keyboard.press('?');
  await page.locator('#shortcuts-dialog[open]').waitFor();
});

test('a screen reader has a name for each control, in the order of the page', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.keyboard.type('A question');
  await page.keyboard.press('Enter');
  await answer(page, 1, 'An answer.');
  const tree = await page.locator('body').ariaSnapshot();
  const wanted = [
    ...['link "Skip to the message field"', 'banner', 'button "Conversations"', 'heading "Wick"'],
    ...['button "Wick 4.2M', 'button "New chat"', 'button "Settings"', 'button "More"'],
    ...['log "Conversation"', 'heading "You"', 'A question', 'heading "Model"', 'An answer.'],
    ...['button "Copy"', 'button "Regenerate"', 'button "Attach a file"'],
    ...['textbox "Your message"', 'button "Send"', 'dialog "Conversations"', 'searchbox "Search'],
  ];
  let from = 0;
  for (const name of wanted) {
    const at = tree.indexOf(name, from);
    assert.ok(at >= 0, `${name} is not in the expected order in\n${tree}`);
    from = at + name.length;
  }
  const nameless = /^\s*- (button|link|textbox|searchbox|combobox|checkbox|meter)(?! ").*$/m;
  assert.doesNotMatch(tree, nameless);
});

test('while an answer is generated, its question does not offer a second one', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.keyboard.type('A question');
  await page.keyboard.press('Enter');
  await untilTrue(page, 'asked.length === 1');
  await page.evaluate("say('Half an')");
  await page.locator('.message.assistant .body', { hasText: 'Half an' }).waitFor();
  assert.equal(await page.locator('.again').isVisible(), false);
  await page.evaluate("fail('INTERNAL')");
  await page.locator('#problem:not([hidden])').waitFor();
});

test('shortcuts: the last answer is copied, the message field gets the focus, Up edits the last question', {
  skip,
}, async (t) => {
  const page = await openPage(t, {
    options: { ...options, permissions: ['clipboard-read', 'clipboard-write'] },
  });
  await page.keyboard.type('First');
  await page.keyboard.press('Enter');
  await answer(page, 1, 'One.');
  await page.locator('#open-settings').focus();
  await page.keyboard.press('Control+Shift+C');
  await page.locator('#notice', { hasText: 'The last answer was copied.' }).waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'One.');
  await page.keyboard.press('Shift+Escape');
  assert.equal(await focused(page), 'Your message');
  await page.keyboard.type('typed');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.locator('.edit').count(), 0);
  await page.fill('#prompt', '');
  await page.keyboard.press('ArrowUp');
  assert.equal(await focused(page), 'Your edited message');
  assert.equal(await page.locator('.edit textarea').inputValue(), 'First');
});

test('Escape closes the menu of an answer, the search and a composition, and does not stop the answer that is generated', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.keyboard.type('First');
  await page.keyboard.press('Enter');
  await answer(page, 1, 'One.');
  await page.keyboard.type('Second');
  await page.keyboard.press('Enter');
  await untilTrue(page, 'asked.length === 2');
  await page.locator('.message.assistant .open-menu').focus();
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant .menu:visible').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.message.assistant .menu:visible').count(), 0);
  await page.fill('#search', 'first');
  await page.press('#search', 'Escape');
  await page.locator('#prompt').evaluate((field) => {
    const init = { key: 'Escape', isComposing: true, bubbles: true };
    field.dispatchEvent(new KeyboardEvent('keydown', init));
  });
  await page.evaluate("say('Two.')");
  await page.locator('.message.assistant .body', { hasText: 'Two.' }).waitFor();
  assert.equal(await page.locator('#log').getAttribute('aria-busy'), 'true');
  await page.locator('.message.assistant .open-menu').focus();
  await page.keyboard.press('Escape');
  await page.locator('#log[aria-busy=false]').waitFor();
});

test('Shift+Escape does not open the browser’s task list; Up returns to a question that is being edited', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.keyboard.type('First');
  await page.keyboard.press('Enter');
  await answer(page, 1, 'One.');
  const isLeft = await page.evaluate(() => {
    const init = { key: 'Escape', shiftKey: true, bubbles: true, cancelable: true };
    return document.body.dispatchEvent(new KeyboardEvent('keydown', init));
  });
  assert.equal(isLeft, false);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.type(' edited');
  await page.focus('#prompt');
  await page.keyboard.press('ArrowUp');
  assert.equal(await focused(page), 'Your edited message');
});

test('while no model is ready, Regenerate and an edited question say so, and the text stays', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.keyboard.type('First');
  await page.keyboard.press('Enter');
  await answer(page, 1, 'One.');
  await untilKept(page, ({ turns }) => turns.at(-1)?.state === 'whole');
  await page.addInitScript('globalThis.holdLoading = () => new Promise(() => {});');
  await page.reload();
  const says = page.locator('#notice', { hasText: 'No model is ready yet.' });
  await page.locator('.regenerate').click();
  await says.waitFor();
  await page.click('#dismiss-notice');
  await page.locator('.message.user .open-edit').click();
  await page.keyboard.type(' edited');
  await page.keyboard.press('Enter');
  await says.waitFor();
  assert.match(await page.inputValue('.edit textarea'), /edited/);
});
