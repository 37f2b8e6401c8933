// The published story in Chromium, by every browser build, to the letter: what users' tabs compute is
// what the native build computes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from './support/browsers.mjs';
import { locate, root } from './support/locate.mjs';

const shared = locate('shared');
const chromium = locate('chromium');
const stories = join(shared.path, 'vectors/stories260K');
const builds = ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'];

/**
 * Runs in the page: the story and what told it.
 * @param {{build: string, threads: number}} options
 */
async function tellStory({ build, threads }) {
  const entry = '/wick-llm/index.js';
  /** @type {typeof import('../js/index.js')} */
  const { createEngine } = await import(entry);
  const engine = await createEngine({
    url: '/models/stories260K-f32.gguf',
    wasm: `/wick-llm/wasm/wick-${build}.wasm`,
    kvType: 'f32',
    threads,
  });
  // a helper is there when its worker has started
  while ((await engine.info()).threads < threads) {
    await new Promise((settle) => setTimeout(settle, 50));
  }
  const text = await engine.generate('', { temperature: 0, maxTokens: 256 }).text();
  const { kernels, threads: running } = await engine.info();
  await engine.close();
  return { text, kernels, running };
}

describe('golden, Chromium', { skip: shared.skip || chromium.skip }, () => {
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  before(async () => {
    const folders = {
      '/': join(root, 'tests/support/empty_page'),
      '/wick-llm/': join(root, 'dist'),
      '/models/': stories,
    };
    server = await serve({ root: folders });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  for (const build of builds) {
    test(`stories260K tells the published story: ${build}`, async () => {
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(server.url);
      const threads = build.endsWith('threads') ? 2 : 1;
      const { text, kernels, running } = await page.evaluate(tellStory, { build, threads });
      await page.close();
      assert.ok(kernels.startsWith(build.split('-')[0]), kernels);
      assert.equal(running, threads);
      assert.equal(`${text}\n`, readFileSync(join(stories, 'greedy-256.txt'), 'utf8'));
    });
  }
});
