// Images and recordings in the chat page, in Chromium with the package's engine and the tiny models in vectors/vision: a model
// with its mmproj file is chosen, and images are attached, pasted, dropped, asked about, stored, exported, and available offline
// after a reload. If the model does not support them, the page reports this before anything is sent.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertAccessible } from '../support/accessible.mjs';
import { launchOwnChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { bytesOf, useChat } from '../support/chat_page.mjs';
import { startHub } from '../support/fake_hub.mjs';
import { locate } from '../support/locate.mjs';
import { isKept } from '../support/offline.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';
import { pngOf } from '../support/png.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
/** Simulates a microphone that beeps, without a permission prompt. */
const launch = () =>
  launchOwnChromium(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
const { skip: noChromium, browser, url } = useChat('chat-images', { launch });
const skip = noChromium || shared.skip;

/** A model for images and audio. */
const type = skip
  ? undefined
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')).types.find(
      (/** @type {any} */ { id }) => id === 'gemma4',
    );

/** @param {number} shade @param {number} [width] @param {number} [height] */
function png(shade, width = 96, height = 64) {
  const data = Uint8Array.from({ length: width * height * 3 }, (_, at) => (at * shade) & 255);
  return pngOf({ width, height, data });
}

/** @param {string} name @param {Buffer} buffer @param {string} [mimeType] */
const file = (name, buffer, mimeType = 'image/png') => ({ name, mimeType, buffer });

/** @param {import('node:test').TestContext} t @param {import('playwright-core').BrowserContextOptions} [options] */
async function openPage(t, options = {}) {
  const context = await browser().newContext({
    ...{ viewport: { width: 1100, height: 800 }, permissions: ['microphone'], ...options },
  });
  context.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(url());
  await page.waitForSelector('#send:not([disabled])');
  return page;
}

/** @typedef {import('playwright-core').Page} Page */

const named = (/** @type {string} */ name) =>
  `document.getElementById('model-name').textContent === '${name}' && !document.getElementById('send').disabled`;

/** Loads a model from the vectors with its encoders, and limits the length of answers. @param {Page} page */
async function loadModel(page) {
  await page.setInputFiles('#attach-file', [
    file('text.gguf', readFileSync(join(folder, type.text_model)), ''),
    file('encoders.gguf', readFileSync(join(folder, type.mmproj)), ''),
  ]);
  await untilTrue(page, named('text.gguf'));
  await untilTrue(
    page,
    "document.getElementById('notice-text').textContent.includes('saved in this browser')",
  );
  await setShort(page);
}

/** @param {Page} page */
async function setShort(page) {
  await page.click('#open-settings');
  await page.fill('[name="maxTokens"]', '8');
  await page.fill('[name="temperature"]', '0');
  await page.locator('#settings-form button.primary').click();
}

/** @param {Page} page @param {string} text */
async function ask(page, text) {
  const count = await page.locator('.message.assistant footer').count();
  await page.fill('#prompt', text);
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').nth(count).waitFor();
  return page.locator('.message.assistant .body').last().innerText();
}

const attached = (/** @type {Page} */ page) => page.locator('.media.attached li');

/** @param {Page} page @param {'paste' | 'drop'} how @param {Buffer} bytes */
const give = (page, how, bytes) =>
  page.evaluate(
    ([event, data]) => {
      const scope = /** @type {any} */ (globalThis);
      const raw = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const transfer = new scope.DataTransfer();
      transfer.items.add(new File([raw], `${event}.png`, { type: 'image/png' }));
      const init = { bubbles: true, cancelable: true };
      const made =
        event === 'paste'
          ? new scope.ClipboardEvent('paste', { ...init, clipboardData: transfer })
          : new scope.DragEvent('drop', { ...init, dataTransfer: transfer });
      scope.document.getElementById('prompt').dispatchEvent(made);
    },
    [how, bytes.toString('base64')],
  );

test('a question about an image is stored, exported, and available offline', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await loadModel(page);
  const plain = await ask(page, 'What is it?');
  await page.click('#new-chat');

  await page.setInputFiles('#attach-file', file('shot.png', png(3)));
  await attached(page).first().waitFor();
  await page.setInputFiles('#attach-file', file('other.png', png(7)));
  await attached(page).nth(1).waitFor();
  await page.getByRole('button', { name: 'Remove other.png' }).click();
  await untilTrue(page, "document.querySelectorAll('.media.attached li').length === 1");
  await page.fill('#prompt', 'What is it?');
  await takePicture(page, 'images-attached');
  await assertAccessible(page);
  const answer = await ask(page, 'What is it?');
  assert.equal(await attached(page).count(), 0);
  const image = page.locator('.message.user .media img');
  assert.equal(await image.getAttribute('alt'), 'shot.png');
  assert.notEqual(answer, plain, 'the model has read the image');
  await takePicture(page, 'images-answered');
  await assertAccessible(page);

  await image.click();
  const dialog = page.getByRole('dialog', { name: 'Image' });
  await dialog.waitFor();
  await takePicture(page, 'images-enlarged');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });

  const next = await ask(page, 'And now?');
  await untilTrue(page, isKept);
  await page.context().setOffline(true);
  await page.reload();
  await untilTrue(page, named('text.gguf'));
  await page.locator('.message.user .media img').waitFor();
  await page.locator('.message.user').nth(1).hover();
  await page
    .locator('.message.assistant')
    .last()
    .getByRole('button', { name: 'Regenerate' })
    .click();
  await page.locator('.versions', { hasText: '2 / 2' }).waitFor();
  await page.waitForSelector('#send:visible');
  assert.equal(await page.locator('.message.assistant .body').last().innerText(), next);

  // a draft keeps its image, too
  await give(page, 'paste', png(5));
  await attached(page).first().waitFor();
  await page.reload();
  await attached(page).first().waitFor();
  assert.equal(await attached(page).locator('img').getAttribute('alt'), 'paste.png');

  const own = page.locator('#conversation-list li', { has: page.locator('[aria-current]') });
  await own.locator('.more').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    own.getByRole('button', { name: 'Save as JSON' }).click(),
  ]);
  const exported = JSON.parse((await bytesOf(download)).toString());
  const [medium] = exported.conversations[0].turns[0].media;
  assert.deepEqual([medium.kind, medium.name, medium.type], ['image', 'shot.png', 'image/png']);
  assert.deepEqual(Buffer.from(medium.data, 'base64'), png(3));

  const other = await openPage(t);
  await other.setInputFiles(
    '#import-file',
    file('c.json', Buffer.from(JSON.stringify(exported)), ''),
  );
  await other.locator('.message.user .media img').waitFor();
  const shows = "document.querySelector('.message.user .media img').naturalWidth === 96";
  await untilTrue(other, shows);
});

test('a model from the hub is stored with the encoders in its repository, for offline use', {
  skip,
}, async (t) => {
  const read = (/** @type {string} */ path) => readFileSync(join(folder, path));
  const hub = await startHub({
    'o/vl-GGUF': { 'text.gguf': read(type.text_model), 'mmproj-text.gguf': read(type.mmproj) },
  });
  t.after(() => hub.close());
  const page = await openPage(t);
  await page.evaluate(`localStorage.setItem('wick-chat-hub', '${hub.url}')`);
  await page.click('#choose-model');
  await page.fill('#model-url', 'o/vl-GGUF/text.gguf');
  await page.locator('.verdict', { hasText: 'images or audio' }).waitFor();
  await takePicture(page, 'images-picker');
  await page.click('#load-model');
  await untilTrue(page, named('text.gguf'));
  await page.setInputFiles('#attach-file', file('shot.png', png(3)));
  await attached(page).first().waitFor();
  assert.equal(await page.locator('.attached-note').textContent(), '');
  await setShort(page);
  const answer = await ask(page, 'What is it?');
  await untilTrue(page, isKept);
  const { length } = hub.state.asked;
  await page.context().setOffline(true);
  await page.reload();
  await untilTrue(page, named('text.gguf'));
  await page.click('#new-chat');
  await give(page, 'paste', png(3));
  await attached(page).first().waitFor();
  assert.equal(await ask(page, 'What is it?'), answer);
  assert.equal(hub.state.asked.length, length);
});

test('images are pasted and dropped; other files are rejected; a large image is made smaller', {
  skip,
}, async (t) => {
  const page = await openPage(t, { viewport: { width: 360, height: 1000 }, colorScheme: 'dark' });
  await loadModel(page);
  await give(page, 'paste', png(5));
  await attached(page).first().waitFor();
  await give(page, 'drop', png(9));
  await attached(page).nth(1).waitFor();
  await page.setInputFiles('#attach-file', file('broken.png', png(2).subarray(0, 60)));
  await page.locator('#notice', { hasText: 'broken.png: this browser cannot read' }).waitFor();
  await page.setInputFiles(
    '#attach-file',
    file('film.mp4', Buffer.from('\0\0\0\x18ftypmp42'), 'video/mp4'),
  );
  await page.locator('#notice', { hasText: 'film.mp4: videos are not supported' }).waitFor();
  await page.setInputFiles('#attach-file', file('wide.png', png(1, 6000, 2000)));
  await attached(page).nth(2).waitFor();
  const large = attached(page).nth(2).locator('img');
  const pixels = await large.evaluate(async (/** @type {any} */ one) => {
    await one.decode();
    return one.naturalWidth * one.naturalHeight;
  });
  assert.ok(pixels > 2 ** 22 && pixels < 2 ** 23 + 10_000, `${pixels} pixels`);
  const isWide = 'document.documentElement.scrollWidth > innerWidth';
  assert.equal(await page.evaluate(isWide), false, 'nothing is wider than a phone');
  await takePicture(page, 'images-phone');
  await assertAccessible(page);
});

test('with a text-only model, the page reports it and sends nothing', { skip }, async (t) => {
  const page = await openPage(t);
  await page.setInputFiles('#attach-file', file('shot.png', png(3)));
  const note = page.locator('.attached-note');
  await page.locator('.attached-note', { hasText: 'Wick 4.2M cannot read images' }).waitFor();
  assert.match(await note.innerText(), /Choose SmolVLM from the list of models/);
  await takePicture(page, 'images-unread');
  await assertAccessible(page);
  await page.fill('#prompt', 'What is it?');
  await page.keyboard.press('Enter');
  await page.locator('#notice', { hasText: 'cannot read images' }).waitFor();
  assert.equal(await page.locator('.message').count(), 0);
  assert.equal(await page.inputValue('#prompt'), 'What is it?');
  await loadModel(page);
  await untilTrue(page, "document.querySelector('.attached-note').textContent === ''");
  await ask(page, 'What is it?');
  await page.locator('.message.user .media img').waitFor();
  assert.equal(await page.locator('#record').count(), 1, 'this model reads audio');
});

test('the microphone: a recording is attached, heard again and asked about', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  assert.equal(await page.locator('#record').count(), 0, 'the built-in model reads no audio');
  await loadModel(page);
  await page.getByRole('button', { name: 'Record speech' }).click();
  await page.locator('.attached-note', { hasText: 'Recording: 1 s' }).waitFor();
  await page.getByRole('button', { name: 'Stop recording' }).click();
  await attached(page).locator('audio').waitFor();
  await takePicture(page, 'images-recorded');
  await assertAccessible(page);
  await page.focus('#prompt');
  await page.keyboard.press('Enter'); // a recording can be sent without text
  await page.locator('.message.assistant footer').waitFor();
  assert.equal(await page.locator('.message.user .body').innerText(), 'Transcribe this recording.');
  await page.locator('.message.user audio').waitFor();
});
