// The page of docs/guide/images.md in Chromium, unchanged: a question about an image from a selected PNG file.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, openEngine, temporaryFolder } from '../support/package.mjs';
import { pngOf } from '../support/png.mjs';

const shared = locate('shared');
const chromium = locate('chromium');
const vision = join(shared.path, 'vectors', 'vision');
const QUESTION = 'What is this?';

test('the ten-line page answers a question about an image', {
  skip: shared.skip || chromium.skip,
}, async (t) => {
  const guide = readFileSync(join(root, 'docs/guide/images.md'), 'utf8');
  const html = /^```html\n(.*?)^```$/ms.exec(guide)?.[1] ?? '';
  const script = /<script type="module">\n(.*?)<\/script>/s.exec(html)?.[1] ?? '';
  assert.ok(script.trim().split('\n').length <= 10, 'the script has at most ten lines');
  const { types } = JSON.parse(readFileSync(join(vision, 'manifest.json'), 'utf8'));
  const [type] = types;
  const part = type.cases[0].parts.find((/** @type {any} */ one) => one.image);
  const data = new Uint8Array(readFileSync(join(vision, part.image)));
  const pixels = { width: part.width, height: part.height, data };
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'page'));
  // the test vectors' models have random weights, no template and no end token
  const given = "mmproj: '/mmproj.gguf', chatTemplate, contextSize: 256 });";
  const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const line = "mmproj: '/mmproj.gguf' });";
  assert.ok(html.includes(line));
  const greedy = html.replace(`{ messages: [`, '{ temperature: 0, messages: [');
  writeFileSync(
    join(folder, 'page/index.html'),
    `<script>const chatTemplate = '${chatTemplate}';</script>${greedy.replace(line, given)}`,
  );
  copyFileSync(join(vision, type.text_model), join(folder, 'page/model.gguf'));
  copyFileSync(join(vision, type.mmproj), join(folder, 'page/mmproj.gguf'));
  const engine = await openEngine(t, {
    ...{ file: join(vision, type.text_model), mmproj: join(vision, type.mmproj) },
    ...{ chatTemplate, contextSize: 256 },
  });
  const content = [
    { type: /** @type {const} */ ('image'), image: pixels },
    { type: /** @type {const} */ ('text'), text: QUESTION },
  ];
  const { choices } = await engine.chat.completions.create({
    messages: [{ role: 'user', content }],
    temperature: 0,
  });
  const server = await serve({
    root: { '/': join(folder, 'page'), '/wick-llm/': dist },
  });
  t.after(() => server.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(server.url);
  await page.waitForFunction("document.querySelector('input').onchange !== null");
  await page.setInputFiles('input', {
    ...{ name: 'image.png', mimeType: 'image/png', buffer: pngOf(pixels) },
  });
  const wanted = JSON.stringify(choices[0].message.content);
  await page
    .waitForFunction(`document.querySelector('output').textContent === ${wanted}`)
    .catch(async (error) => {
      const shown = await page.evaluate("document.querySelector('output').textContent");
      throw new Error(`the page shows ${shown}, not ${wanted} (${problems.join()})`, {
        cause: error,
      });
    });
  assert.deepEqual(problems, []);
});
