// Text files in the chat page: each becomes a chip above the message field, whose text is sent before the question. They are kept
// with the draft and the conversation, exported, found by the search, and reachable by keyboard. In Chromium, with a fake engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asBlock, textOf } from '../../examples/chat/blocks.js';
import { assertAccessible } from '../support/accessible.mjs';
import { bytesOf, useChat } from '../support/chat_page.mjs';
import { readStores, talk, untilKept } from '../support/chat_stub.mjs';
import { untilTrue, waitUntil } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, openPage } = useChat('chat-files');
/** @typedef {import('playwright-core').Page} Page */

/** @param {string} name @param {string | Buffer} text */
const file = (name, text) => ({ name, mimeType: '', buffer: Buffer.from(text) });

/** @param {Page} page */
const chips = (page) => page.locator('.media.attached .chip');

/** @param {Page} page @param {...ReturnType<typeof file>} files */
async function attach(page, ...files) {
  const count = await chips(page).count();
  await page.setInputFiles('#attach-file', files);
  await chips(page)
    .nth(count + files.length - 1)
    .waitFor();
}

/** @param {Page} page @param {string} kind @returns {Promise<string>} the exported file */
async function exported(page, kind) {
  const own = page.locator('#conversation-list li', { has: page.locator('[aria-current]') });
  if (!(await own.getByRole('button', { name: kind }).isVisible()))
    await own.locator('.more').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    own.getByRole('button', { name: kind }).click(),
  ]);
  return (await bytesOf(download)).toString();
}

const wide = { viewport: { width: 1200, height: 800 } };

test('text becomes a block that it cannot close; other content is rejected', async () => {
  assert.equal(asBlock('a.py', 'print(1)'), 'a.py:\n```py\nprint(1)\n```');
  assert.equal(asBlock('notes', 'x\n```\ny\n'), 'notes:\n````\nx\n```\ny\n````');
  const many = asBlock('many', '```` '.repeat(200_000)); // more than a call can have arguments
  assert.ok(many.startsWith('many:\n`````\n````'));
  assert.equal(asBlock('a\nb.md', ''), 'a b.md:\n```md\n\n```');
  assert.equal(await textOf(new Blob(['höher'])), 'höher');
  assert.equal(await textOf(new Blob([new Uint8Array([0xff, 0xfe])])), undefined);
  assert.equal(await textOf(new Blob(['a\0b'])), undefined);
  assert.equal(await textOf(new Blob(['x'.repeat(1e6 + 1)])), undefined);
});

test('a dropped text file is attached and sent before the question; other kinds of files are rejected', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const drop = (/** @type {string} */ name, /** @type {number[]} */ bytes) =>
    page.evaluate(
      ([dropped, body]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(/** @type {number[]} */ (body))], String(dropped)));
        dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
      },
      [name, bytes],
    );
  await page.fill('#prompt', 'What does it print?');
  await drop('a.py', [...Buffer.from('print(1)')]);
  await chips(page).waitFor();
  assert.equal(await page.inputValue('#prompt'), 'What does it print?');
  await drop('picture.png', [0x89, 0x50, 0xff, 0]);
  await page
    .locator('#notice-text', {
      hasText: 'picture.png: not a model, a PDF, an image, a recording or a text',
    })
    .waitFor();
  await page.press('#prompt', 'Enter');
  await untilTrue(page, 'asked.length === 1');
  const asked = 'a.py:\n```py\nprint(1)\n```\nWhat does it print?';
  assert.equal(await page.evaluate('asked[0]'), asked);
  assert.deepEqual(await page.evaluate('loaded.length'), 1, 'no model was loaded');
  assert.equal(await chips(page).count(), 0);
});

test('a file is kept with its draft, its conversation and its exported files', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: wide });
  await attach(page, file('fox.txt', 'The fox is red.'), file('empty.txt', ''));
  await page.fill('#prompt', 'Which colour?');
  await untilKept(page, ({ drafts }) => drafts.some(({ media }) => media?.length === 2));
  await page.reload();
  await chips(page).nth(1).waitFor();
  assert.equal(await page.inputValue('#prompt'), 'Which colour?');
  await page.getByRole('button', { name: 'Remove empty.txt' }).click();
  await untilTrue(page, "document.querySelectorAll('.media.attached li').length === 1");
  await page.waitForSelector('#send:not([disabled])');
  await page.press('#prompt', 'Enter');
  await page.evaluate("say('Red.'); end()");
  await page.locator('.message.assistant footer').waitFor();
  await untilKept(page, ({ turns }) => turns.at(-1)?.state === 'whole');

  await page.reload();
  const chip = page.locator('.message.user .chip');
  await chip.locator('summary').click();
  await page.getByText('The fox is red.', { exact: true }).waitFor();
  await page.waitForSelector('#send:not([disabled])');
  await page.fill('#prompt', 'And the end?');
  await page.press('#prompt', 'Enter');
  await untilTrue(page, 'bodies.length === 1');
  const [first] = (await page.evaluate('bodies[0]')).messages;
  assert.equal(first.content, 'fox.txt:\n```txt\nThe fox is red.\n```\nWhich colour?');
  await page.evaluate("say('None.'); end()");
  await page.locator('.message.assistant footer').nth(1).waitFor();

  await page.fill('#search', 'fox red');
  await page.locator('#conversation-list .found', { hasText: 'fox is red' }).waitFor();
  await page.fill('#search', '');
  const text = await exported(page, 'Save as Markdown');
  assert.ok(text.includes('## You\n\nfox.txt:\n```txt\nThe fox is red.\n```\nWhich colour?'), text);
  const json = await exported(page, 'Save as JSON');

  const other = await openPage(t, { options: wide });
  await other.setInputFiles('#import-file', file('c.json', json));
  await other.locator('.message.user .chip summary').click();
  await other.getByText('The fox is red.', { exact: true }).waitFor();
  await other.setInputFiles('#import-file', file('c.md', text));
  await other.locator('.message.user .body', { hasText: 'The fox is red.' }).waitFor();
});

test('a draft keeps its files if a question is being edited, too', { skip }, async (t) => {
  const page = await openPage(t);
  await talk(page, 'First', 'One.');
  await page.locator('.message.user').getByRole('button', { name: 'Edit', exact: true }).click();
  await page.fill('.edit textarea', 'First, edited');
  await untilKept(page, ({ drafts }) => drafts.length === 1);
  await attach(page, file('a.txt', 'one'));
  await page.fill('#prompt', 'What is it?');
  await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text === 'What is it?'));
  await page.reload();
  await page.locator('.edit textarea').waitFor();
  await chips(page).waitFor({ timeout: 10_000 });
  await page.fill('#prompt', 'What is it now?');
  const { drafts } = await untilKept(page, (kept) =>
    kept.drafts.some(({ text }) => text === 'What is it now?'),
  );
  assert.equal(drafts.find(({ field }) => field === '').media.length, 1);
});

test('files of other conversations stay when nothing more is saved; a draft’s file is saved afterwards', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options: wide });
  const save = async (/** @type {boolean} */ isOn) => {
    await page.click('#open-settings');
    await page.setChecked('[name=remember]', isOn);
    await page.locator('#settings-form button.primary').click();
  };
  for (const name of ['first', 'second']) {
    await page.click('#new-chat');
    await attach(page, file(`${name}.txt`, `Text of the ${name}`));
    await talk(page, `About the ${name}`, 'It is a text.');
  }
  await untilKept(page, ({ turns }) => turns.length === 4);
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await page.locator('.message.user .chip', { hasText: 'second.txt' }).waitFor();
  await save(false);
  await untilKept(page, ({ turns }) => turns.length === 2);
  await attach(page, file('draft.txt', 'Text of the draft'));
  await save(true);
  await untilKept(page, ({ turns }) => turns.length === 4);
  await page.fill('#prompt', 'A draft');
  await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text === 'A draft'));
  await page.reload();
  for (const [chip, text] of [
    ['.media.attached .chip', 'Text of the draft'],
    ['.message.user .chip', 'Text of the second'],
  ]) {
    await page.locator(`${chip} summary`).click({ timeout: 20_000 });
    await page.locator(`${chip} pre`, { hasText: text }).waitFor();
  }
  await page.getByRole('link', { name: 'About the first' }).click();
  await page
    .locator('.message.user .chip summary', { hasText: 'first.txt' })
    .click({ timeout: 20_000 });
  await page.locator('.message.user pre', { hasText: 'Text of the first' }).waitFor();
});

test('a file without a question is summarised, also if it is attached while the model loads', {
  skip,
}, async (t) => {
  const script = 'globalThis.holdLoading = () => new Promise((settle) => { release = settle; });';
  const page = await openPage(t, { script, isReady: false });
  await untilTrue(page, "typeof release === 'function'");
  await attach(page, file('a.txt', 'one'), file('b.txt', 'two'));
  await page.click('#send');
  await page.evaluate('release()');
  await untilTrue(page, 'asked.length === 1');
  const blocks = 'a.txt:\n```txt\none\n```\nb.txt:\n```txt\ntwo\n```\n';
  assert.equal(await page.evaluate('asked[0]'), `${blocks}Summarise these files.`);
});

/** Runs in the page: the content of a.txt is read once `isQuick` is true. */
const slowReading = `const read = Blob.prototype.arrayBuffer;
  globalThis.isQuick = false;
  Blob.prototype.arrayBuffer = async function () {
    while (this.name === 'a.txt' && !isQuick) await new Promise((settle) => setTimeout(settle, 20));
    return read.call(this);
  };`;

/** @param {Page} page */
async function attachSlow(page) {
  await page.setInputFiles('#attach-file', file('a.txt', 'slow file'));
  await page.locator('.attached-note', { hasText: 'Reading a.txt' }).waitFor();
}

test('a message waits for a file that is still being read', { skip }, async (t) => {
  const page = await openPage(t, { script: slowReading });
  await page.fill('#prompt', 'What is it?');
  await attachSlow(page);
  await page.press('#prompt', 'Enter');
  await page.evaluate('isQuick = true');
  await untilTrue(page, 'asked.length === 1');
  assert.equal(await page.evaluate('asked[0]'), 'a.txt:\n```txt\nslow file\n```\nWhat is it?');
});

test('a message waits for a file whose kind is still being checked', { skip }, async (t) => {
  const slowSlices = `const { slice } = Blob.prototype;
    Blob.prototype.slice = function (...range) {
      return Object.assign(slice.apply(this, range), { name: this.name });
    };`;
  const page = await openPage(t, { script: slowSlices + slowReading });
  await page.fill('#prompt', 'What is it?');
  await page.setInputFiles('#attach-file', file('a.txt', 'slow file'));
  await page.press('#prompt', 'Enter');
  await page.click('#new-chat');
  await page.fill('#prompt', 'Another');
  await page.evaluate('isQuick = true');
  const { drafts } = await untilKept(page, (kept) => kept.drafts.some(({ media }) => media));
  assert.deepEqual(drafts.map(({ text, media }) => [text, media?.length]).sort(), [
    ['Another', undefined],
    ['What is it?', 1],
  ]);
  assert.equal(await page.evaluate('asked.length'), 0);
});

test('a message that waits for the model also waits for a file that is attached meanwhile', {
  skip,
}, async (t) => {
  const holds = 'globalThis.holdLoading = () => new Promise((settle) => { release = settle; });';
  const page = await openPage(t, { script: slowReading + holds, isReady: false });
  await untilTrue(page, 'globalThis.release !== undefined');
  await page.fill('#prompt', 'What is it?');
  await page.press('#prompt', 'Enter');
  await page.locator('#notice-text', { hasText: 'will be answered' }).waitFor();
  await attachSlow(page);
  await page.evaluate('release()');
  await page.locator('#loading').waitFor({ state: 'hidden' });
  await page.evaluate('isQuick = true');
  await untilTrue(page, 'asked.length === 1');
  assert.equal(await page.evaluate('asked[0]'), 'a.txt:\n```txt\nslow file\n```\nWhat is it?');
});

test('a long file that becomes a book leaves the message, whose other files stay', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await attach(page, file('short.txt', 'one'), file('long.txt', 'The fox is red.\n'.repeat(400)));
  await page.getByRole('button', { name: 'Keep as a book' }).click();
  await page.locator('#books .name, #books li', { hasText: 'long' }).first().waitFor();
  await untilTrue(page, "document.querySelectorAll('.media.attached li').length === 1");
  await untilKept(page, ({ drafts }) => drafts.some(({ media }) => media?.length === 1));
  await page.click('#close-books');
  assert.match((await chips(page).textContent()) ?? '', /short\.txt/);
});

test('a file that is being read while another conversation is opened stays with its own, and sends nothing there', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: slowReading, options: wide });
  await talk(page, 'First', 'One.');
  await page.fill('#prompt', 'A draft');
  await page.click('#new-chat');
  await page.fill('#prompt', 'What is it?');
  await untilKept(page, ({ drafts }) => drafts.length === 2);
  await attachSlow(page);
  await page.press('#prompt', 'Enter');
  await page.getByRole('link', { name: 'First' }).click();
  await untilTrue(page, "document.getElementById('prompt').value === 'A draft'");
  await page.evaluate('isQuick = true');
  const { drafts } = await untilKept(page, (kept) => kept.drafts.some(({ media }) => media));
  assert.deepEqual(drafts.map(({ text, media }) => [text, media?.length]).sort(), [
    ['A draft', undefined],
    ['What is it?', 1],
  ]);
  assert.equal(await chips(page).count(), 0);
  assert.equal(await page.evaluate('asked.length'), 1);
  await page.getByRole('link', { name: 'What is it?' }).click();
  await chips(page).waitFor();
  await page.press('#prompt', 'Enter');
  await untilTrue(page, 'asked.length === 2');
  assert.equal(await page.evaluate('asked[1]'), 'a.txt:\n```txt\nslow file\n```\nWhat is it?');
});

test('a draft from a closed tab keeps its text if a file is being read while another conversation is opened', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: slowReading, options: wide });
  await page.fill('#prompt', 'What is it?');
  await untilKept(page, ({ drafts }) => drafts.length === 1);
  await page.reload();
  await untilTrue(page, "document.getElementById('prompt').value === 'What is it?'");
  await attachSlow(page);
  await page.click('#new-chat');
  await page.evaluate('isQuick = true');
  const { drafts } = await untilKept(page, (kept) => kept.drafts.some(({ media }) => media));
  assert.deepEqual(
    drafts.map(({ text }) => text),
    ['What is it?'],
  );
});

test('the message field gets the focus when a file has been read, unless another field has it', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: slowReading });
  await talk(page, 'First', 'One.');
  await attachSlow(page);
  await page.locator('.message.user .open-edit').click();
  await page.evaluate('isQuick = true');
  await chips(page).waitFor();
  await attach(page, file('b.txt', 'two'));
  await page.keyboard.type('Edited: ');
  assert.match(await page.inputValue('.edit textarea'), /Edited: /);
  assert.equal(await page.inputValue('#prompt'), '');
});

test('a file that cannot be read is reported, and the others are attached', { skip }, async (t) => {
  const script = `const read = Blob.prototype.arrayBuffer;
    const slice = Blob.prototype.slice;
    const fail = async () => { throw new DOMException('It is gone', 'NotReadableError'); };
    Blob.prototype.arrayBuffer = function () { return this.name === 'gone.txt' ? fail() : read.call(this); };
    Blob.prototype.slice = function (...range) {
      return Object.assign(slice.apply(this, range), this.name === 'gone.txt' && { arrayBuffer: fail });
    };`;
  const page = await openPage(t, { script });
  await page.setInputFiles('#attach-file', [
    ...[file('a.txt', 'one'), file('gone.txt', 'gone'), file('b.txt', 'two')],
  ]);
  await page.locator('#notice-text', { hasText: 'gone.txt: it could not be read.' }).waitFor();
  assert.equal(await chips(page).count(), 2);
  assert.equal(await page.locator('.attached-note').innerText(), '');
});

test('the note about a file that is being read stays when another one has been attached', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: slowReading });
  await attachSlow(page);
  await attach(page, file('b.txt', 'two'));
  await page.getByRole('button', { name: 'Remove b.txt' }).click();
  await untilTrue(page, "document.querySelectorAll('.media.attached li').length === 0");
  await page.setInputFiles('#attach-file', [file('c.txt', 'three'), file('a.txt', 'slow file')]);
  await chips(page).waitFor();
  assert.match(await page.locator('.attached-note').innerText(), /^Reading a\.txt …\s*Cancel$/);
});

test('the file of a question is stored once there is space for it', { skip }, async (t) => {
  const script = `const { put } = IDBObjectStore.prototype;
    globalThis.isFull = true;
    IDBObjectStore.prototype.put = function (...record) {
      if (isFull && this.name === 'media') throw new DOMException('It is full', 'QuotaExceededError');
      return put.apply(this, record);
    };`;
  const page = await openPage(t, { script });
  await attach(page, file('a.txt', 'one'));
  await page.locator('#notice-text', { hasText: 'could not store a.txt' }).waitFor();
  await talk(page, 'What is it?', 'A number.');
  await page.evaluate('isFull = false');
  const isStored = async () => (await readStores(page, 'wick-chat-media', ['media']))[0].length > 0;
  await waitUntil(isStored, 'the file to be stored');
  await page.reload();
  await page.locator('.message .chip', { hasText: 'a.txt' }).waitFor();
});

test('text that the browser takes for a video or a recording is attached as text', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await attach(
    page,
    { ...file('a.mts', 'const a: number = 1;'), mimeType: 'video/mp2t' },
    { ...file('a.m3u', 'one.ogg'), mimeType: 'audio/x-mpegurl' },
  );
  const video = { ...file('a.mp4', Buffer.from([0, 255])), mimeType: 'video/mp4' };
  await page.setInputFiles('#attach-file', video);
  await page.locator('#notice', { hasText: 'a.mp4: videos are not supported' }).waitFor();
});

test('a conversation is imported if its files cannot be saved, or are damaged', {
  skip,
}, async (t) => {
  const script = `const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function (name, ...more) {
      if (name === 'wick-chat-media') throw new DOMException('It is denied', 'SecurityError');
      return open.call(this, name, ...more);
    };`;
  const page = await openPage(t, { script, options: wide });
  const media = ['aGVsbG8=', '!'].map((data, index) => ({
    ...{ id: `m${index}`, kind: 'text', name: `${index}.txt`, type: 'text/plain', data },
  }));
  const turns = [{ id: 'q', parent: '', role: 'user', content: 'What is it?', media }];
  const conversations = [{ conversation: { title: 'Imported' }, turns }];
  const json = JSON.stringify({ format: 'wick-chat', version: 1, conversations });
  await page.setInputFiles('#import-file', file('c.json', json));
  await page.locator('#notice', { hasText: 'Its files could not be saved' }).waitFor();
  assert.deepEqual(await page.locator('.message .media li').allInnerTexts(), [
    ...['0.txt\n1 kB', '1.txt is not in this browser.'],
  ]);
});

test('text that is typed, but not sent with a suggestion, stays a draft', { skip }, async (t) => {
  const page = await openPage(t);
  await page.fill('#prompt', 'A draft');
  await untilKept(page, ({ drafts }) => drafts.length === 1);
  await page.locator('#suggestions button').first().click();
  await untilTrue(page, 'asked.length === 1');
  await page.evaluate("say('One.'); end()");
  await untilKept(page, ({ turns }) => turns.at(-1)?.state === 'whole');
  await page.reload();
  await page.locator('.message.assistant').waitFor();
  await untilTrue(page, "document.getElementById('prompt').value === 'A draft'");
});

test('chips are named, reached, unfolded and removed by keyboard, and fit a phone', {
  skip,
}, async (t) => {
  for (const [name, options] of /** @type {const} */ ([
    ['light', wide],
    ['dark', { ...wide, colorScheme: 'dark' }],
    ['phone', { viewport: { width: 360, height: 740 } }],
  ])) {
    const page = await openPage(t, { options });
    const long = `${'A long name of a file '.repeat(4)}.md`;
    await attach(page, file('fox.txt', 'The fox is red.\n'.repeat(400)), file(long, '# Notes\n'));
    await page.locator('#notice', { hasText: 'This text is long' }).waitFor();
    await page.click('#dismiss-notice');
    assert.equal(await page.locator('#announcer').textContent(), `${long} is attached.`);
    await takePicture(page, `files-attached-${name}`);
    await page.focus('#prompt');
    const focused = () =>
      page.evaluate(() => {
        const own = document.activeElement;
        return own?.getAttribute('aria-label') ?? own?.textContent?.trim();
      });
    const back = [];
    for (let count = 0; count < 5; count++) {
      await page.keyboard.press('Shift+Tab');
      back.push(await focused());
    }
    assert.deepEqual(back, [
      'Attach a file',
      `Remove ${long}`,
      `${long} 1 kB`,
      'Remove fox.txt',
      'fox.txt 6 kB',
    ]);
    await page.keyboard.press('Enter');
    await page.locator('.chip[open] pre:not(:empty)').waitFor();
    await takePicture(page, `files-unfolded-${name}`);
    await assertAccessible(page);
    const isWide = 'document.documentElement.scrollWidth > innerWidth';
    assert.equal(await page.evaluate(isWide), false, 'nothing is wider than the window');
    await page.getByRole('button', { name: `Remove ${long}` }).focus();
    await page.keyboard.press('Enter');
    await untilTrue(page, "document.activeElement.ariaLabel === 'Remove fox.txt'");
    await page.fill('#prompt', 'Which colour?');
    await page.press('#prompt', 'Enter');
    await page.evaluate("say('Red.'); end()");
    await page.locator('.message.assistant footer').waitFor();
    await takePicture(page, `files-sent-${name}`);
    await page.locator('.message.user .chip summary').press('Enter');
    await page.locator('.message.user .chip pre:not(:empty)').waitFor();
    await takePicture(page, `files-sent-unfolded-${name}`);
    await assertAccessible(page);
  }
});

test('a pasted file is attached; a message has at most 20', { skip }, async (t) => {
  const page = await openPage(t);
  await page.evaluate(() => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(['pasted'], 'p.txt', { type: 'text/plain' }));
    const init = { clipboardData, bubbles: true, cancelable: true };
    document.getElementById('prompt')?.dispatchEvent(new ClipboardEvent('paste', init));
  });
  await chips(page).waitFor();
  const many = Array.from({ length: 20 }, (_, index) => file(`${index}.txt`, `${index}`));
  await page.setInputFiles('#attach-file', many);
  await page.locator('#notice', { hasText: 'A message has at most 20 attachments.' }).waitFor();
  assert.equal(await chips(page).count(), 20);
});
