// PDFs in the chat page: their text is attached with page numbers, and unreadable files are reported with the
// reason. The library is loaded with the first PDF. In Chromium, with a fake engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { untilKept } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { pdfOf } from '../support/pdf.mjs';
import { takePicture } from '../support/pictures.mjs';

/** @type {string[]} */
const asked = [];
const { skip, openPage } = useChat('chat-pdf', { onRequest: (path) => asked.push(path) });
/** @typedef {import('playwright-core').Page} Page */

const key = `<${'5a'.repeat(32)}>`;
const locked = `/Encrypt<</Filter/Standard/V 1/R 2/O${key}/U${key}/P -44>>`;

/** @param {Page} page @param {Record<string, string>} files their bytes by name */
const drop = (page, files) =>
  page.evaluate(`(() => {
    const dataTransfer = new DataTransfer();
    for (const [name, text] of Object.entries(${JSON.stringify(files)}))
      dataTransfer.items.add(new File([text], name));
    dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
  })()`);

const chip = (/** @type {Page} */ page) => page.locator('.media.attached .chip');

/** @param {Page} page @param {string} name */
async function textOf(page, name) {
  await chip(page).locator('summary', { hasText: name }).click();
  const text = chip(page).locator('pre:not(:empty)');
  await text.waitFor();
  return text.textContent();
}

test('the text of a PDF is attached, page by page; the library is loaded when needed', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.fill('#prompt', 'What is it about?');
  const before = asked.filter((path) => /pdf/.test(path));
  assert.deepEqual(before, []);
  await drop(page, { 'odd “name”\n#.pdf': pdfOf(['The fox is red.', '', 'The end.']) });
  assert.equal(await textOf(page, 'odd “name”'), '[Page 1]\nThe fox is red.\n\n[Page 3]\nThe end.');
  assert.equal(await page.inputValue('#prompt'), 'What is it about?');
  assert.ok(asked.some((path) => /pdfs-.*\.js/.test(path)));
  await takePicture(page, 'chat-pdf');
  await untilKept(page, ({ drafts }) => drafts.some(({ media }) => media?.length === 1));
  await page.press('#prompt', 'Enter');
  await untilTrue(page, 'globalThis.asked.length === 1');
  const said = await page.evaluate('asked[0]');
  assert.match(said, /^odd “name” #\.pdf:\n```pdf\n\[Page 1\]\n.*```\nWhat is it about\?$/s);
});

test('unreadable files are reported with the reason, and input stays', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.fill('#prompt', 'A question');
  /** @type {[name: string, text: string, says: RegExp][]} */
  const cases = [
    ['locked.pdf', pdfOf(['Secret'], locked), /^locked\.pdf: it is encrypted/],
    ['scan.pdf', pdfOf(['', '']), /^scan\.pdf: it has no text/],
    ['empty.pdf', pdfOf([]), /^empty\.pdf: it has no pages/],
    ['bad.pdf', '%PDF-1.4\nnothing of a PDF', /^bad\.pdf: it is damaged/],
    ['bytes.bin', 'a\0b', /^bytes\.bin: not a model, a PDF, an image, a recording or a text/],
  ];
  for (const [name, text, says] of cases) {
    await drop(page, { [name]: text });
    await page.locator('#notice-text', { hasText: name }).waitFor();
    assert.match(await page.innerText('#notice-text'), says);
    assert.equal(await page.inputValue('#prompt'), 'A question');
  }
  await drop(page, { 'scan.pdf': pdfOf(['']), 'good.pdf': pdfOf(['Some text']) });
  assert.equal(await textOf(page, 'good.pdf'), '[Page 1]\nSome text');
  assert.match(await page.innerText('#notice-text'), /^scan\.pdf: it has no text/);
});

/** Runs in the page: a slow device, on which each page of a PDF is reported. */
const slowly = `const now = performance.now.bind(performance);
  performance.now = () => 5000 * now();`;

/**
 * Returns a script for the page that calls its global function `cancel` once, while a page of a PDF is being read.
 * @param {string} note the selector of the element that reports the page
 * @param {string} [first] runs before it
 */
const cancelling = (note, first = '') => `${slowly}
  globalThis.cancel = undefined;
  addEventListener('DOMContentLoaded', () => {
    const look = () => {
      const note = document.querySelector('${note}');
      if (!cancel || !note?.textContent.includes('reading page 20')) return;
      ${first}
      cancel(note);
      cancel = undefined;
    };
    new MutationObserver(look).observe(document.body, { childList: true, characterData: true, subtree: true });
  });`;
const long = pdfOf(Array.from({ length: 60 }, (_, index) => `Line ${index}`));

test('progress in pages is shown for a PDF that takes a while to read', { skip }, async (t) => {
  const script = `${slowly}
    globalThis.notes = [];
    addEventListener('DOMContentLoaded', () => {
      const look = () => notes.push(document.querySelector('.attached-note')?.textContent);
      new MutationObserver(look).observe(document.body, { childList: true, characterData: true, subtree: true });
    });`;
  const page = await openPage(t, { script });
  const lines = Array.from({ length: 40 }, (_, index) => `Line ${index}`);
  await drop(page, { 'long.pdf': pdfOf(lines) });
  await chip(page).waitFor();
  const notes = /** @type {string[]} */ (await page.evaluate('notes'));
  assert.ok(notes.includes('long.pdf: reading page 20 of 40Cancel'), notes.join());
  await untilTrue(page, "document.querySelector('.attached-note').textContent === ''");
});

test('Cancel and Escape end the reading of a PDF, and a message that waits for it is not sent', {
  skip,
}, async (t) => {
  const send = "document.getElementById('composer').requestSubmit();";
  const page = await openPage(t, { script: cancelling('.attached-note', send) });
  await page.fill('#prompt', 'What is it about?');
  for (const cancel of [
    "(note) => note.querySelector('button').click()",
    "() => dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))",
  ]) {
    await page.evaluate(`void (cancel = ${cancel})`);
    await drop(page, { 'long.pdf': long });
    await untilTrue(page, "!cancel && document.querySelector('.attached-note').textContent === ''");
  }
  assert.equal(await chip(page).count(), 0);
  assert.equal(await page.inputValue('#prompt'), 'What is it about?');
  assert.equal(await page.evaluate('asked.length'), 0);
  await drop(page, { 'short.pdf': pdfOf(['Some text']) });
  await chip(page).waitFor();
  await page.press('#prompt', 'Enter');
  await untilTrue(page, 'asked.length === 1');
  assert.match(await page.evaluate('asked[0]'), /^short\.pdf:/);
});

test('Cancel and Escape end the reading of a PDF for the shelf, which stays open', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: cancelling('#books-note') });
  await page.click('#open-more');
  await page.click('#open-books');
  const fileOf = (/** @type {string} */ name, /** @type {string} */ text) => ({
    ...{ name, mimeType: 'application/pdf', buffer: Buffer.from(text, 'latin1') },
  });
  for (const cancel of [
    "() => document.querySelector('#books-undo').click()",
    "() => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }))",
  ]) {
    await page.evaluate(`void (cancel = ${cancel})`);
    await page.setInputFiles('#book-file', [fileOf('long.pdf', long), fileOf('b.pdf', long)]);
    await untilTrue(page, "!cancel && document.querySelector('#books-undo').hidden");
    await page.locator('#books-note', { hasText: 'No books yet.' }).waitFor();
  }
  assert.equal(await page.locator('#books li').count(), 0);
  await page.setInputFiles('#book-file', fileOf('short.pdf', pdfOf(['Some text'])));
  await page.locator('#books li', { hasText: 'short.pdf' }).waitFor();
  assert.equal(await page.locator('#books-undo').isVisible(), false);
});
