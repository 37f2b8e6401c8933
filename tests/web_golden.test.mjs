// The published story in Chromium, by every browser build, to the letter: what users' tabs compute is
// what the native build computes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { locate } from './support/locate.mjs';
import { openPackagePage } from './support/package_page.mjs';

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
  const page = openPackagePage(stories);

  for (const build of builds) {
    test(`stories260K tells the published story: ${build}`, async () => {
      const threads = build.endsWith('threads') ? 2 : 1;
      const { text, kernels, running } = await page.evaluate(tellStory, { build, threads });
      assert.ok(kernels.startsWith(build.split('-')[0]), kernels);
      assert.equal(running, threads);
      assert.equal(`${text}\n`, readFileSync(join(stories, 'greedy-256.txt'), 'utf8'));
    });
  }
});
