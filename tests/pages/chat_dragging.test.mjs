// Dragged text is inserted if it is dropped into the message field; elsewhere, the page stays open, even if the text is a link. With
// the mouse in Chromium. The drivers of Firefox and WebKitGTK cannot finish a drag: tests/pages/chat_three_browsers.test.mjs checks which events
// the page leaves to these browsers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { talk } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';

const { skip, openPage, url: siteUrl } = useChat('chat-dragging');

/** Runs in the page: selects a word of the answer, and returns the centres of the word, the message field and the conversation. @type {string} */
const select = `(() => {
  const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
  const middleOf = (id) => middle(document.getElementById(id).getBoundingClientRect());
  const [text] = document.querySelector('.message.assistant .body p').childNodes;
  const range = document.createRange();
  range.setStart(text, text.data.indexOf('crimson'));
  range.setEnd(text, text.data.indexOf('crimson') + 'crimson'.length);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  return { word: middle(range.getBoundingClientRect()), box: middleOf('prompt'), log: middleOf('log') };
})()`;

/** @param {import('playwright-core').Page} page */
async function dragWord(page) {
  const { word, box } = await page.evaluate(select);
  await page.mouse.move(word[0], word[1]);
  await page.mouse.down();
  await page.mouse.move(word[0] + 10, word[1], { steps: 3 });
  await page.mouse.move(box[0], box[1], { steps: 3 });
  await page.mouse.up();
}

test('text selected in an answer is dragged into the box; a link that is dropped elsewhere is not opened', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'A question', 'The fox is crimson today.');
  // a busy browser may interpret the moves as a selection; then the word is dragged again
  const isEmpty = "document.getElementById('prompt').value === ''";
  for (let tries = 0; tries < 5 && (await page.evaluate(isEmpty)); tries++) {
    await dragWord(page);
    await page.waitForFunction(`!(${isEmpty})`, undefined, { timeout: 10_000 }).catch(() => {});
  }
  await untilTrue(page, "document.getElementById('prompt').value === 'crimson'");
  const devtools = await page.context().newCDPSession(page);
  const [x, y] = (await page.evaluate(select)).log;
  const link = `${siteUrl()}page.js`;
  const items = ['text/uri-list', 'text/plain'].map((mimeType) => ({ mimeType, data: link }));
  const before = page.url();
  await page.evaluate("addEventListener('dragover', () => { globalThis.isOver = true; })");
  for (const type of /** @type {const} */ (['dragEnter', 'dragOver', 'drop'])) {
    const data = { items, dragOperationsMask: 1 };
    await devtools.send('Input.dispatchDragEvent', { type, x, y, data });
  }
  await untilTrue(page, 'globalThis.isOver');
  await talk(page, 'And now?', 'I am here.');
  assert.equal(page.url(), before);
  assert.equal(page.context().pages().length, 1);
});
