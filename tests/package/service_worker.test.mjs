// The engine inside a service worker in Chromium (wick-llm/edge), which serves OpenAI's API to its page without workers,
// eval, import() or shared memory.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { readEvents } from '../support/example_servers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, openEngine } from '../support/package.mjs';

const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const greedy = { messages, temperature: 0, max_tokens: 60 };
/** Suppresses the end token. */
const endless = { ...greedy, max_tokens: 3000, logit_bias: { 0: -100, 2: -100 }, stream: true };

describe('in Chromium', { skip: locate('chromium').skip }, () => {
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  /** @type {import('playwright-core').Page} */
  let page;
  /** @type {string[]} */
  const asked = [];
  before(async () => {
    const folders = {
      '/': join(root, 'tests/support/service_worker'),
      '/wick-llm/': dist,
      '/models/': join(root, 'examples/models'),
    };
    const onRequest = (/** @type {string} */ path) => void asked.push(path);
    server = await serve({ root: folders, isolated: false, onRequest });
    browser = await launchChromium();
    page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await page.evaluate(async () => {
      const { serviceWorker } = navigator;
      await serviceWorker.register('./worker.js', { type: 'module' });
      await serviceWorker.ready;
      while (!serviceWorker.controller) await new Promise((settle) => setTimeout(settle, 5));
    });
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /** @param {object} body @returns {Promise<{status: number, text: string, pieces: number}>} */
  const ask = (body) =>
    page.evaluate(async (given) => {
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(given) };
      const response = await fetch('/v1/chat/completions', init);
      const decoder = new TextDecoder();
      let [text, pieces] = ['', 0];
      const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return { status: response.status, text, pieces };
        text += decoder.decode(value, { stream: true });
        pieces++;
      }
    }, body);

  test('answers equal those in Node, streamed or not, and concurrently', async (t) => {
    const engine = await openEngine(t);
    const answer = await engine.chat.completions.create(/** @type {any} */ (greedy));
    const { choices } = /** @type {any} */ (answer);
    const wanted = choices[0].message.content;
    const [whole, ...streams] = await Promise.all([
      ask(greedy),
      ...[1, 2, 3].map(() => ask({ ...greedy, stream: true })),
    ]);
    assert.equal(whole.status, 200);
    assert.equal(JSON.parse(whole.text).choices[0].message.content, wanted);
    for (const { text, pieces } of streams) {
      assert.ok(pieces > 1, `${pieces} pieces`);
      assert.deepEqual(
        { ...readEvents(text), chunks: [] },
        { text: wanted, isWhole: true, chunks: [] },
      );
    }
    const models = asked.filter((path) => path.includes('.gguf'));
    assert.equal(models.length, 1, models.join(' '));
    assert.ok(!asked.some((path) => path.startsWith('/v1')), 'the server was asked');
  });

  test('closing a page cancels its request', async () => {
    const found = await page.evaluate(async (body) => {
      const headers = { 'content-type': 'application/json' };
      const controller = new AbortController();
      const { signal } = controller;
      const init = { method: 'POST', headers, body: JSON.stringify(body), signal };
      const response = await fetch('/v1/chat/completions', init);
      await response.body?.getReader().read();
      controller.abort();
      for (;;) {
        const text = await (await fetch('/metrics')).text();
        if (/^wick_http_generations 0$/m.test(text)) return text;
        await new Promise((settle) => setTimeout(settle, 5));
      }
    }, endless);
    assert.match(found, /^wick_requests_finished_total\{reason="abort"\} 1$/m);
  });
});
