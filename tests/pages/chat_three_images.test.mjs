// Images in the chat page in Firefox and WebKitGTK, with the package's engine and a tiny model in vectors/vision. More thorough
// tests in Chromium: tests/pages/chat_images.test.mjs.

import { copyFileSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, test } from 'node:test';
import { locate } from '../support/locate.mjs';
import { runPasses, testInBoth, useReal } from '../support/two_browsers.mjs';

const shared = locate('shared');
const { site, url } = useReal('chat-three-images');

before(() => {
  if (shared.skip) return;
  const folder = join(shared.path, 'vectors', 'vision');
  const { types } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const type = types.find((/** @type {any} */ { id }) => id === 'gemma4');
  copyFileSync(join(folder, type.text_model), resolve(site, 'text.gguf'));
  copyFileSync(join(folder, type.mmproj), resolve(site, 'encoders.gguf'));
});

const asking = `
  one('#new-chat').click();
  const drop = (...files) => {
    const dataTransfer = new DataTransfer();
    for (const file of files) dataTransfer.items.add(file);
    dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
  };
  const canvas = Object.assign(document.createElement('canvas'), { width: 96, height: 64 });
  const pen = canvas.getContext('2d');
  pen.fillStyle = '#a04010';
  pen.fillRect(8, 8, 40, 30);
  const blob = await new Promise((settle) => canvas.toBlob(settle, 'image/png'));
  const image = new File([blob], 'drawn.png', { type: 'image/png' });
  drop(image);
  await until('unread', () => one('.attached-note')?.textContent.includes('cannot read images'));
  const models = await Promise.all(['text.gguf', 'encoders.gguf'].map(async (name) =>
    new File([await (await fetch(name)).blob()], name)));
  drop(...models);
  await untilModel('text.gguf');
  await until('read', () => one('.attached-note').textContent === '');
  await until('kept', () => one('#notice-text').textContent.includes('is saved in this browser'));
  await setting('maxTokens', '8');
  await setting('temperature', '0');
  await askReal('What is it?');
  const shown = await until('image', () => one('.message.user .media img'));
  await shown.decode();
  return { width: shown.naturalWidth, name: shown.alt, left: all('.media.attached li').length };`;

const again = `
  await untilModel('text.gguf');
  const image = await until('image', () => one('.message.user .media img'));
  await image.decode();
  await askReal('And now?');
  // an answer is stored after it is shown
  const { turns } = await until('stored', async () => {
    const all = await readAll();
    return all.turns.length === 4 && all;
  });
  return { width: image.naturalWidth, turns: turns.length, media: turns.flatMap(({ media = [] }) => media).length };`;

if (shared.skip) test('images in two browsers', { skip: shared.skip }, () => {});
else
  testInBoth(
    'an image is attached, asked about, and available at the next visit',
    async (visit) => {
      await runPasses(visit, url(), [
        ['asked', asking, { width: 96, name: 'drawn.png', left: 0 }],
        ['at the next visit', again, { width: 96, turns: 4, media: 1 }],
      ]);
    },
  );
