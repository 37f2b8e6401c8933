// The menu in the header of the chat page (examples/chat/page_menu.js): opening and closing it, and what its rows open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { openReal } from '../support/chat_real.mjs';
import { talk } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { chooseInMenu, openDeveloper } from '../support/page_menu.mjs';

const { skip, openPage, browser, url } = useChat('page-menu');

/** @param {import('node:test').TestContext} t */
async function open(t) {
  /** @type {string[]} */
  const problems = [];
  const page = await openReal(browser(), url(), { problems });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  return page;
}

test('Escape, a press elsewhere, the focus elsewhere and a choice close the menu', {
  skip,
}, async (t) => {
  const page = await open(t);
  const [opener, menu] = ['#open-more', '#more'].map((one) => page.locator(one));
  const expect = async (/** @type {boolean} */ isOpen) => {
    assert.equal(await menu.isVisible(), isOpen);
    assert.equal(await opener.getAttribute('aria-expanded'), String(isOpen));
  };
  await expect(false);
  await opener.click();
  await expect(true);
  await page.locator('#open-books').focus();
  await page.keyboard.press('Escape');
  await expect(false);
  assert.equal(await opener.evaluate((one) => one === document.activeElement), true);
  await opener.press('Enter');
  await expect(true);
  await opener.press('Enter');
  await expect(false);
  await opener.click();
  await page.mouse.click(500, 500);
  await expect(false);
  await opener.click();
  await page.locator('#prompt').focus();
  await expect(false);
  await chooseInMenu(page, '#open-shortcuts');
  await expect(false);
  await page.locator('#shortcuts-dialog[open]').waitFor();
});

test('the Escape that closes the menu does not stop an answer', {
  skip,
}, async (t) => {
  const page = await open(t);
  await page.evaluate("globalThis.heard = 0; addEventListener('keydown', () => void heard++);");
  await page.click('#open-more');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate('heard'), 0);
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate('heard'), 1);
});

test('each row opens its dialog or panel, and the panel disappears when it is closed', {
  skip,
}, async (t) => {
  const page = await open(t);
  for (const [row, dialog] of [
    ['#open-books', '#books-dialog'],
    ['#open-memory', '#memory-dialog'],
  ]) {
    await chooseInMenu(page, row);
    await page.locator(`${dialog}[open]`).waitFor();
    if (row === '#open-books') await page.getByText('No books yet.').waitFor(); // wait until the dialog is drawn
    await untilTrue(page, `document.querySelector('${dialog}').contains(document.activeElement)`);
    await page.keyboard.press('Escape');
    await page.locator(`${dialog}[open]`).waitFor({ state: 'hidden' });
  }
  const panel = page.locator('#developer');
  assert.equal(await panel.isVisible(), false);
  await chooseInMenu(page, '#open-developer');
  await panel.locator('[data-fact="Prefix cache"]').waitFor();
  await panel.locator('summary').click();
  await panel.waitFor({ state: 'hidden' });
  await chooseInMenu(page, '#open-developer');
  await panel.waitFor();
});

test('the menu of an answer is introduced once, also after a reload', {
  skip,
}, async (t) => {
  const page = await open(t);
  const notice = page.locator('#notice-text', { hasText: '“3 variants”' });
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  const regenerate = page.locator('.message.assistant .regenerate').last();
  await regenerate.click();
  await notice.waitFor();
  await page.click('#dismiss-notice');
  const versions = page.locator('.message.assistant footer .versions');
  await versions.filter({ hasText: '2 / 2' }).waitFor();
  await page.reload();
  await untilTrue(page, 'globalThis.engine !== undefined');
  await regenerate.click();
  await versions.filter({ hasText: '3 / 3' }).waitFor();
  await page.locator('.message.assistant footer .regenerate').waitFor();
  assert.equal(await notice.isVisible(), false);
});

test('Send does not move while the developer panel is filled', { skip }, async (t) => {
  const page = await openPage(t);
  await openDeveloper(page);
  const send = page.locator('#send');
  const before = await send.boundingBox();
  for (const name of ['One', 'Two', 'Three'])
    await page.evaluate(`document.getElementById('kv-facts').append(
      ...['dt', 'dd'].map((tag) => Object.assign(document.createElement(tag), { textContent: '${name}' })))`);
  assert.deepEqual(await send.boundingBox(), before);
  await talk(page, 'A question', 'An answer');
  await page.locator('[data-fact]').first().waitFor();
  assert.deepEqual(await send.boundingBox(), before);
});

test('the menu fits into a low window and is scrolled', { skip }, async (t) => {
  const page = await openPage(t, { options: { viewport: { width: 320, height: 256 } } });
  await page.click('#open-more');
  const bottom = await page.locator('#more').evaluate((one) => one.getBoundingClientRect().bottom);
  assert.ok(bottom <= 256, `${bottom}`);
  const last = page.locator('#open-shortcuts');
  await last.focus();
  const end = await last.evaluate((one) => one.getBoundingClientRect().bottom);
  assert.ok(end <= 256, `${end}`);
});
