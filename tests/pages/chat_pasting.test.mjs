// Long text pasted into the message field appears immediately at the caret, is stored as a draft, and can be turned into a book. If
// the text is too long for a message, the page reports this and keeps the typed text. With the keyboard in Chromium; for Firefox and WebKitGTK,
// tests/pages/chat_three_browsers.test.mjs dispatches the event.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { launchOwnChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { shown, talk, untilKept } from '../support/chat_stub.mjs';

const { skip, openPage, url } = useChat('chat-pasting', { launch: () => launchOwnChromium() });

const line = `${'word '.repeat(16)}\n`;

/** @param {import('playwright-core').Page} page @param {string} text @param {string} [box] */
const untilBoxHas = (page, text, box = '#prompt') =>
  page.waitForFunction(
    ([wanted, selector]) => /** @type {any} */ (document.querySelector(selector)).value === wanted,
    [text, box],
    { timeout: PATIENCE_MS },
  );

/** @param {import('playwright-core').Page} page @param {string} text */
async function paste(page, text) {
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
  await page.keyboard.press('Control+v');
}

test('1 MB of lines is pasted at the caret, and can be kept as a book', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url() });
  await page.fill('#prompt', 'Before. Behind.');
  await page.evaluate("document.querySelector('#prompt').setSelectionRange(8, 8)");
  const text = line.repeat(12_000);
  await paste(page, text);
  const box = page.locator('#prompt');
  await untilBoxHas(page, `Before. ${text}Behind.`);
  const caret = await box.evaluate((field) => /** @type {any} */ (field).selectionStart);
  assert.equal(caret, 8 + text.length);
  await page
    .locator('#notice', { hasText: 'This text is long. The model reads a book only once.' })
    .waitFor();
  await page.getByRole('button', { name: 'Keep as a book' }).waitFor();
  await page.fill('#prompt', '');
});

test('text of ordinary length is pasted by the browser; text over 1 MB is rejected with a message', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url() });
  const box = page.locator('#prompt');
  await box.focus();
  await paste(page, 'a short one');
  await untilBoxHas(page, 'a short one');
  assert.ok(await page.locator('#notice').isHidden());
  await page.keyboard.press('Control+z');
  assert.equal(await box.inputValue(), '', 'the browser undoes it');
  await page.fill('#prompt', 'What was typed');
  await paste(page, line.repeat(12_500));
  const notice = page.locator('#notice', { hasText: 'too long for a message' });
  await notice.waitFor();
  assert.equal(await box.inputValue(), 'What was typed');
  const offer = page.getByRole('button', { name: 'Keep as a book' });
  assert.ok(await offer.isHidden(), 'a book is no longer offered, either');
});

test('long text with Windows newlines replaces the selection, the caret is after it, and Ctrl+Z undoes it', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url() });
  await page.locator('#prompt').focus();
  await page.keyboard.type('Before. This Behind.');
  await page.evaluate("document.querySelector('#prompt').setSelectionRange(8, 12)");
  const text = 'a line of words\n'.repeat(4000);
  await paste(page, text.replaceAll('\n', '\r\n'));
  await untilBoxHas(page, `Before. ${text} Behind.`);
  await page.keyboard.type('X');
  await untilBoxHas(page, `Before. ${text}X Behind.`);
  await page.keyboard.press('Control+z');
  await untilBoxHas(page, `Before. ${text} Behind.`);
  await page.keyboard.press('Control+z');
  await untilBoxHas(page, 'Before. This Behind.');
  const caret = await page
    .locator('#prompt')
    .evaluate((/** @type {any} */ box) => [box.selectionStart, box.selectionEnd]);
  assert.deepEqual(caret, [8, 12], 'the replaced text is selected again');
  assert.ok(await page.locator('#notice').isHidden());
  await untilKept(page, ({ drafts }) => drafts[0]?.text === 'Before. This Behind.');
  await page.keyboard.type('That');
  await page.keyboard.press('Control+z');
  await untilBoxHas(page, 'Before. This Behind.');
});

test('1 MB of lines is pasted into an edited question, is kept there, and can be undone', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url() });
  await talk(page, 'First', 'One.');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const box = '.edit textarea';
  await page.locator(box).press('End');
  const text = line.repeat(12_000);
  await paste(page, text);
  await untilBoxHas(page, `First${text}`, box);
  await untilKept(page, ({ drafts }) => drafts.some((one) => one.text === `First${text}`));
  await page.keyboard.press('Control+z');
  await untilBoxHas(page, 'First', box);
  await paste(page, line.repeat(12_500));
  await page.locator('#notice', { hasText: 'too long for a message' }).waitFor();
  assert.equal(await page.locator(box).inputValue(), 'First');
  await page.keyboard.press('Escape');
  assert.deepEqual(await shown(page), ['First', 'One.']);
});
