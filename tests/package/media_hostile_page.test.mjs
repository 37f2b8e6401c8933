// Hostile image files in Chromium: rotated, animated, 16-bit, truncated, huge and very long images. Each is decoded or rejected
// with an error code, and the engine answers the next question.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { skip, typeOf } from '../support/media_files.mjs';
import { temporaryFolder } from '../support/package.mjs';
import { pngOf, pngOfRows } from '../support/png.mjs';

const chromium = locate('chromium');
const of64 = (/** @type {string} */ text) => Buffer.from(text, 'base64');

/** 8 x 4 pixels, red on the left and blue on the right. */
const jpeg = of64(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDAsKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAEAAgDAREAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABgQAAIDAAAAAAAAAAAAAAAAAAAIRYTD/8QAFAEBAAAAAAAAAAAAAAAAAAAACP/EABgRAAIDAAAAAAAAAAAAAAAAAAAJRoTE/9oADAMBAAIRAxEAPwA0WqgbWIqFlyujsGowyM3ch//Z',
);
/** The same pixels in CMYK. */
const cmyk = of64(
  '/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoKCgYICwwLCgwJCgoK/8AAFAgABAAIBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAIJCv/EABgQAAIDAAAAAAAAAAAAAAAAAAAKSIbF/9oADgRDAE0AWQBLAAA/AC85F27YBn/CjHKKk75fw//Z',
);
/** The same pixels, followed by a green frame. */
const gif = of64(
  'R0lGODdhCAAEAIEAAP8AAAAA/wAAAAAAACwAAAAACAAEAAAIEgABCAQQoGCAgQQNIjR4cCDDgAAh+QQBAAABACwAAAAACAAEAIEA/wAAAAAAAAAAAAAIDAABCBxIsKDBgwQDAgA7',
);
const webp = of64(
  'UklGRoYAAABXRUJQVlA4WAoAAAACAAAABwAAAwAAQU5JTQYAAAAAAAAAAABBTk1GKgAAAAAAAAAAAAcAAAMAAGQAAAJWUDhMEgAAAC8HwAAADxDzv//zHw76ENH/AEFOTUYoAAAAAAAAAAAABwAAAwAAZAAAAFZQOEwPAAAALwfAAAAH0P+I/gciov8BAA==',
);

/** The same pixels with an EXIF orientation: rotated clockwise by 90 degrees. */
const turned = Buffer.concat([
  jpeg.subarray(0, 2),
  Buffer.from([0xff, 0xe1, 0, 34]),
  Buffer.from('Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0', 'latin1'),
  jpeg.subarray(2),
]);

/** Makes a PNG file of one colour. @param {number} width @param {number} height */
function flat(width, height) {
  return pngOf({ width, height, data: new Uint8Array(width * height * 3).fill(200) });
}

/** 2 x 1 pixels with 16 bits per channel. */
const deep = pngOfRows(
  { width: 2, height: 1, bits: 16, colour: 2 },
  Buffer.from([0, 0xff, 0, 0, 0, 0, 0, 0x80, 0, 0x40, 0, 0x20, 0]),
);
const SIDE = 20_000;
const bomb = pngOfRows(
  { width: SIDE, height: SIDE, bits: 1, colour: 0 },
  Buffer.alloc((SIDE / 8 + 1) * SIDE),
);

/** @type {Record<string, Buffer>} */
const files = {
  jpeg,
  ...{ cmyk, gif, webp, turned, deep, bomb },
  long: flat(1, 32_767),
  wide: flat(32_767, 1),
  'too long': flat(1, 100_000),
  'cut.png': flat(300, 300).subarray(0, 60),
  'cut.jpeg': jpeg.subarray(0, jpeg.length - 40),
  'header.jpeg': jpeg.subarray(0, 150),
  empty: Buffer.alloc(0),
  svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
};

/** Runs in the page. */
const script = `
  const { createEngine } = await import('/wick-llm/index.js');
  const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const engine = await createEngine({ url: '/model.gguf', mmproj: '/mmproj.gguf', chatTemplate, contextSize: 512, threads: 1 });
  const found = {};
  for (const name of names) {
    const image = await (await fetch('/' + name)).blob();
    try {
      const { width, height, data } = (await engine.decodeMedia({ type: 'image', image })).image;
      found[name] = { width, height, first: [...data.slice(0, 3)], last: [...data.slice(-3)] };
    } catch (error) {
      found[name] = { code: error.code, message: error.message };
    }
  }
  const image = await (await fetch('/jpeg')).blob();
  const content = [{ type: 'image', image }, { type: 'text', text: 'What?' }];
  const { choices } = await engine.chat.completions.create({ messages: [{ role: 'user', content }], max_tokens: 4 });
  return { found, text: choices[0].message.content };`;

test('hostile image files are decoded or rejected', { skip: skip || chromium.skip }, async (t) => {
  const folder = join(temporaryFolder(), 'page');
  mkdirSync(folder);
  const { model, mmproj } = typeOf('gemma3');
  copyFileSync(model, join(folder, 'model.gguf'));
  copyFileSync(mmproj, join(folder, 'mmproj.gguf'));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Files</title>');
  const server = await serve({ root: { '/': folder, '/wick-llm/': join(root, 'dist') } });
  t.after(() => server.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  const names = JSON.stringify(Object.keys(files));
  const { found, text } = /** @type {any} */ (
    await page.evaluate(`(async () => { const names = ${names}; ${script} })()`)
  );
  assert.equal(typeof text, 'string');
  const isNear = (/** @type {number[]} */ pixel, /** @type {number[]} */ wanted) =>
    pixel.every((value, at) => Math.abs(value - wanted[at]) < 40);
  const [red, blue] = [
    [255, 0, 0],
    [0, 0, 255],
  ];
  for (const name of ['jpeg', 'cmyk', 'gif', 'webp']) {
    const { width, height, first, last } = found[name];
    assert.deepEqual([width, height], [8, 4], name);
    assert.ok(isNear(first, red) && isNear(last, blue), `${name}: ${first} ${last}`);
  }
  const { turned: rotated } = found;
  assert.deepEqual([rotated.width, rotated.height], [4, 8]);
  assert.ok(isNear(rotated.first, red) && isNear(rotated.last, blue));
  assert.deepEqual(found.deep, { width: 2, height: 1, first: [255, 0, 0], last: [128, 64, 32] });
  for (const [name, width, height] of /** @type {[string, number, number][]} */ ([
    ['long', 1, 32_767],
    ['wide', 32_767, 1],
  ])) {
    const grey = [200, 200, 200];
    assert.deepEqual(found[name], { width, height, first: grey, last: grey });
  }
  for (const name of ['too long', 'cut.png', 'header.jpeg', 'empty', 'svg', 'bomb']) {
    assert.ok(
      ['UNSUPPORTED', 'ARG'].includes(found[name].code),
      `${name}: ${JSON.stringify(found[name])}`,
    );
    assert.match(found[name].message, /^part: /);
  }
  const { code, width } = found['cut.jpeg'];
  assert.ok(code === 'UNSUPPORTED' || width === 8);
});
