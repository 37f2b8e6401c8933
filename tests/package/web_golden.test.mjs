// Every browser build generates exactly the published story in Chromium, the same text as the native
// build.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { locate } from '../support/locate.mjs';
import { openPackagePage } from '../support/package_page.mjs';

const shared = locate('shared');
const chromium = locate('chromium');
const stories = join(shared.path, 'vectors/stories260K');
const builds = ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'];

/**
 * Runs in the page: generates the story.
 * @param {{build: string, threads: number}} options
 */
async function tellStory({ build, threads }) {
  const entry = '/wick-llm/index.js';
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(entry);
  const engine = await createEngine({
    url: '/models/stories260K-f32.gguf',
    wasm: `/wick-llm/wasm/wick-${build}.wasm`,
    kvType: 'f32',
    threads,
  });
  // a helper exists once its worker has started
  while ((await engine.info()).threads < threads) {
    await new Promise((settle) => setTimeout(settle, 50));
  }
  const text = await engine.generate('', { temperature: 0, maxTokens: 256 }).text();
  const { kernels, threads: running } = await engine.info();
  await engine.close();
  return { text, kernels, running };
}

/**
 * Runs in the page: generates greedy tokens with adapters.
 * @param {{build: string, threads: number, model: string, tokens: number[], maxTokens: number,
 *   adapters: {file: string, scale: number}[]}} options
 */
async function adaptedTokens({ build, threads, model, tokens, maxTokens, adapters }) {
  const entry = '/wick-llm/index.js';
  /** @type {typeof import('../../js/index.js')} */
  const { createEngine } = await import(entry);
  const engine = await createEngine({
    url: `/models/reference/${model}`,
    wasm: `/wick-llm/wasm/wick-${build}.wasm`,
    kvType: 'f32',
    threads,
  });
  for (const { file } of adapters) {
    await engine.adapters.add({ url: `/models/reference-more/${file}` }, { name: file });
  }
  const uses = adapters.map(({ file, scale }) => ({ name: file, scale }));
  /** @type {number[]} */
  const found = [];
  const onToken = (/** @type {{token: number}} */ { token }) => found.push(token);
  const options = { temperature: 0, maxTokens, ignoreEnd: true, adapters: uses, onToken };
  await engine.generate(tokens, options).text();
  await engine.close();
  return found;
}

describe('golden with adapters, Chromium', {
  skip: shared.skip || chromium.skip,
}, () => {
  const vectors = join(shared.path, 'vectors');
  const page = openPackagePage(vectors);
  const manifest = shared.skip
    ? ''
    : readFileSync(join(vectors, 'reference-more/manifest.json'), 'utf8');
  /** @type {any[]} */
  const cases = shared.skip ? [] : JSON.parse(manifest.replace(/:NaN\b/g, ':null')).lora;

  for (const build of builds) {
    for (const id of ['llama-A1B05E1', 'qwen3-E1', 'gemma3-A1B05']) {
      test(`${id}: ${build}`, async () => {
        const { base_model: model, adapters, cases: list } = cases.find((one) => one.id === id);
        const [{ tokens, greedy }] = list;
        const threads = build.endsWith('threads') ? 2 : 1;
        const options = { build, threads, model, tokens, maxTokens: greedy.length, adapters };
        assert.deepEqual(await page.evaluate(adaptedTokens, options), greedy);
      });
    }
  }
});

describe('golden, Chromium', { skip: shared.skip || chromium.skip }, () => {
  const page = openPackagePage(stories);

  for (const build of builds) {
    test(`stories260K generates the published story: ${build}`, async () => {
      const threads = build.endsWith('threads') ? 2 : 1;
      const { text, kernels, running } = await page.evaluate(tellStory, { build, threads });
      assert.ok(kernels.startsWith(build.split('-')[0]), kernels);
      assert.equal(running, threads);
      assert.equal(`${text}\n`, readFileSync(join(stories, 'greedy-256.txt'), 'utf8'));
    });
  }
});
