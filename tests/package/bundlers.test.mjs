// The package with bundlers: each builds a page as documented in docs/bundlers.md. The output contains the worker and each
// WebAssembly build only once, and runs in Chromium. The pages include the components of docs/react.md and docs/svelte.md.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { openWorkshop } from '../support/bundlers.mjs';
import { locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath } from '../support/package.mjs';

const skip = ['chromium', 'bundlers', 'node24'].map((one) => locate(one).skip).find(Boolean);
const question = 'What is Wick?';

/** @param {string} folder @param {RegExp} pattern @returns {string[]} the contents of the matching files */
const textsBelow = (folder, pattern) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => readFileSync(join(folder, name), 'latin1'));

/** @returns {string} a string that occurs only in the worker and in no other file of the package */
function markOfWorker() {
  const worker = readFileSync(join(dist, 'worker.js'), 'latin1');
  const others = readdirSync(dist)
    .filter((name) => name.endsWith('.js') && name !== 'worker.js' && name !== 'edge.js')
    .map((name) => readFileSync(join(dist, name), 'latin1'));
  const texts = [...worker.matchAll(/"([A-Za-z ]{16,})"/g)].map(([, text]) => text);
  const found = texts.find((text) => !others.some((other) => other.includes(text)));
  if (!found) throw new Error('the worker has no unique string');
  return found;
}

/** @param {string} site the output folder of a bundler */
function assertOneOfEach(site) {
  const mark = markOfWorker();
  const workers = textsBelow(site, /\.js$/).filter((text) => text.includes(mark));
  assert.equal(workers.length, 1, 'workers');
  // bundlers emit identical files only once
  const [found, built] = [site, join(dist, 'wasm')].map((folder) =>
    [...new Set(textsBelow(folder, /\.wasm$/))].toSorted(),
  );
  assert.ok(found.length === built.length && found.every((text, index) => text === built[index]));
}

describe('bundlers', { skip: skip ?? false }, () => {
  /** @type {ReturnType<typeof openWorkshop>} */
  let workshop;
  /** @type {import('playwright-core').Browser} */
  let browser;
  let answer = '';

  before(async () => {
    workshop = openWorkshop();
    browser = await launchChromium();
    const engine = await createEngine({ file: modelPath, threads: 1 });
    const chat = await engine.createChat({ temperature: 0 });
    answer = await chat.send(question).text();
    await engine.close();
  });
  after(async () => {
    await browser?.close();
    workshop?.close();
  });

  /** @param {string} url @param {(page: import('playwright-core').Page) => Promise<void>} use */
  async function visit(url, use) {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const failed = new Promise((_, fail) => page.once('pageerror', fail));
    await page.goto(url);
    await Promise.race([use(page), failed]);
    await context.close();
  }

  /** Checks a page with a single script. @param {import('playwright-core').Page} page */
  async function assertTells(page) {
    const reported = (await page.locator('output').textContent()) ?? '';
    assert.deepEqual(JSON.parse(reported), { text: answer, best: 2 });
  }

  /** Checks that the chat component answers. @param {import('playwright-core').Page} page */
  async function assertAnswers(page) {
    const input = page.getByLabel('Question');
    await input.fill(question);
    await input.press('Enter');
    await page.getByText(answer, { exact: true }).waitFor();
    const shown = await page.locator('form p').allTextContents();
    assert.deepEqual(shown, [question, answer]);
  }

  /** Checks that a question asked during an answer is not lost, and that the answer can be stopped. @param {import('playwright-core').Page} page */
  async function assertStops(page) {
    await assertAnswers(page);
    const input = page.getByLabel('Question');
    await page.getByRole('button', { name: 'Ask' }).isEnabled();
    await input.fill('Tell me a story.');
    await input.press('Enter');
    await input.fill('And now?');
    await input.press('Enter');
    // both in one call in the page, because the answer may end at any time
    const kept = await page.evaluate(() => {
      const stop = [...document.querySelectorAll('button')].find(
        (one) => one.textContent === 'Stop',
      );
      if (stop && !stop.disabled) stop.click();
      return document.querySelector('input')?.value;
    });
    if (kept === '') await page.getByText('And now?', { exact: true }).waitFor();
    else assert.equal(kept, 'And now?');
    await page.getByText('Tell me a story.', { exact: true }).waitFor();
  }

  for (const name of ['webpack', 'rollup', 'parcel', 'esbuild']) {
    test(name, async (t) => {
      const site = await workshop.builders[name]();
      assertOneOfEach(site);
      const server = await serve({ root: site });
      t.after(() => server.close());
      await visit(server.url, assertTells);
    });
  }

  test('Vite: a page, React and Svelte', async (t) => {
    const site = await workshop.builders.vite();
    assertOneOfEach(site);
    const server = await serve({ root: site });
    t.after(() => server.close());
    await visit(server.url, assertTells);
    await visit(`${server.url}react.html`, assertStops);
    await visit(`${server.url}svelte.html`, assertAnswers);
  });

  test('Next with Turbopack: React', async (t) => {
    const site = await workshop.builders.next();
    assertOneOfEach(site);
    const server = await serve({ root: site });
    t.after(() => server.close());
    await visit(server.url, assertAnswers);
  });

  test('the Vite dev server, which does not bundle', async (t) => {
    const server = await workshop.serveVite();
    t.after(() => server.close());
    await visit(server.url, assertTells);
  });
});
