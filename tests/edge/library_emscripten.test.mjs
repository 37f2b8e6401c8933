// The C library in Emscripten programs, with plain and relaxed SIMD, with and without pthreads: the example runs in Node
// and in Chromium, each built with its own CMakeLists.txt.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { temporaryFolder } from '../support/cli.mjs';
import {
  cmake,
  emscripten,
  exampleFolder,
  missing,
  model,
  pkgConfig,
  questions,
  strangerSource,
  succeed,
  wantedChat,
} from '../support/library.mjs';
import { locate, locateRelaxedNode } from '../support/locate.mjs';

const skip = missing();
const chromium = locate('chromium');
const relaxedNode = locateRelaxedNode();
const folder = temporaryFolder();

/** @param {string} simd @returns {string} the path of a Node that supports it */
const nodeFor = (simd) => (simd === 'relaxed' ? relaxedNode.path : process.execPath);

/** @type {Awaited<ReturnType<typeof launchChromium>> | undefined} */
let browser;
before(async () => {
  if (!skip && !chromium.skip) browser = await launchChromium();
});
after(() => browser?.close());

/** @param {string} build a folder with page.html @returns {Promise<string>} the final text of the page */
async function shownBy(build) {
  copyFileSync(join(exampleFolder, 'page.html'), join(build, 'index.html'));
  copyFileSync(model, join(build, 'model.gguf'));
  const server = await serve({ root: build });
  try {
    const page = await /** @type {NonNullable<typeof browser>} */ (browser).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    /** @type {string[]} */
    const problems = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => problems.push(message.text()));
    await page.goto(server.url);
    await page.waitForSelector('body[data-code]');
    assert.equal(await page.getAttribute('body', 'data-code'), '0', problems.join('\n'));
    const shown = await page.locator('#out').textContent();
    await page.close();
    return shown ?? '';
  } finally {
    await server.close();
  }
}

for (const variant of ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads']) {
  const [simd, kind] = variant.split('-');
  describe(`Emscripten, ${variant}`, {
    skip: skip || (simd === 'relaxed' && relaxedNode.skip),
  }, () => {
    /** @type {Promise<string> | undefined} */
    let building;
    const build = () => {
      const choice = [
        `-DWICK_RELAXED=${simd === 'relaxed'}`,
        `-DWICK_THREADS=${kind === 'threads'}`,
      ];
      building ??= cmake(exampleFolder, 'emscripten', choice, emscripten('emcmake'));
      return building;
    };

    test('the example runs in Node', async () => {
      const args = [join(exampleFolder, 'node.mjs'), join(await build(), 'chat.mjs'), model];
      const said = await succeed(nodeFor(simd), [...args, ...questions]);
      assert.equal(said, await wantedChat());
    });

    test('the example runs in a page', { skip: chromium.skip }, async () => {
      assert.equal(await shownBy(await build()), await wantedChat());
    });
  });
}

test('a program in C++20 links it', { skip }, async () => {
  const [source, program] = [join(folder, 'stranger.cc'), join(folder, 'stranger-cc.js')];
  copyFileSync(strangerSource, source);
  const flags = await pkgConfig('wick-emscripten-simd128-single');
  const own = ['-std=c++20', '-Wall', '-Wextra', '-Werror', '-sNODERAWFS', '-sEXIT_RUNTIME'];
  await succeed(emscripten('em++'), [...own, source, ...flags, '-o', program]);
  const said = await succeed(process.execPath, [program, model, '1', '8', 'Once upon a time']);
  assert.match(said, /^threads 1:./);
});

test('a program with pthreads uses helper threads', { skip }, async () => {
  const program = join(folder, 'stranger.js');
  const flags = await pkgConfig('wick-emscripten-simd128-threads');
  const own = ['-std=c17', '-Wall', '-Wextra', '-Werror', '-sNODERAWFS', '-sEXIT_RUNTIME'];
  await succeed(emscripten('emcc'), [...own, strangerSource, ...flags, '-o', program]);
  const said = await succeed(process.execPath, [program, model, '3', '8', 'Once upon a time']);
  assert.match(said, /^threads 3:./);
});
