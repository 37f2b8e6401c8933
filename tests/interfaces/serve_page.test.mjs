// `wick serve` in Node, Deno and Bun: OpenAI's API with curl, and the page at /, operated like a user would.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { ask, readEvents, startPrinting } from '../support/example_servers.mjs';
import { locate } from '../support/locate.mjs';
import { dist, modelPath, openEngine } from '../support/package.mjs';

const cli = join(dist, 'cli.js');
const question = 'Tell me a story about a fox.';
const greedy = { messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 24 };
const key = 'secret-key';

/** @type {Record<string, {find: () => ReturnType<typeof locate>, flags: string[]}>} */
const runtimes = {
  Node: { find: () => ({ path: process.execPath, skip: false }), flags: [] },
  Deno: { find: () => locate('deno'), flags: ['run', '--quiet', '-A'] },
  Bun: { find: () => locate('bun'), flags: [] },
};

for (const [name, { find, flags }] of Object.entries(runtimes)) {
  const { path, skip } = find();
  test(`${name}: answers, streams, and clients that disconnect`, { skip }, async (t) => {
    const args = [...flags, cli, 'serve', modelPath, '--port', '0', '--threads', '2'];
    const server = await startPrinting(path, args);
    t.after(() => server.close());
    const engine = await openEngine(t);
    const answer = await engine.chat.completions.create(/** @type {any} */ (greedy));
    const wanted = /** @type {any} */ (answer).choices[0].message.content;
    const chat = '/v1/chat/completions';
    const whole = /** @type {any} */ (await (await ask(server.origin, chat, greedy)).json());
    assert.equal(whole.choices[0].message.content, wanted);
    const stream = await ask(server.origin, chat, { ...greedy, stream: true });
    const { text, isWhole } = readEvents(await stream.text());
    assert.deepEqual([text, isWhole], [wanted, true]);
    const controller = new AbortController();
    const endless = { ...greedy, max_tokens: 3000, logit_bias: { 0: -100, 2: -100 } };
    const { signal } = controller;
    const left = await ask(server.origin, chat, { ...endless, stream: true }, { signal });
    await left.body?.getReader().read();
    controller.abort();
    for (let page = ''; !/^wick_http_generations 0$/m.test(page); ) {
      page = await (await fetch(`${server.origin}/metrics`)).text();
    }
    const page = await fetch(server.origin);
    assert.match(String(page.headers.get('content-security-policy')), /^default-src 'none';/);
    assert.match(await page.text(), /<textarea/);
  });
}

describe('the page', { skip: locate('chromium').skip }, () => {
  /** @type {import('../support/example_servers.mjs').Started} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  before(async () => {
    const args = [cli, 'serve', modelPath, '--port', '0', '--threads', '1', '--key', key];
    server = await startPrinting(process.execPath, [...args, '--name', 'fox']);
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test('a key is entered, a question is answered, and an answer is stopped', async () => {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    /** @type {string[]} */
    const errors = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) errors.push(message.text());
    });
    await page.goto(server.origin);
    await page.getByLabel('Key').fill(key);
    await page.getByLabel('Key').press('Tab');
    await page.getByRole('heading', { name: 'fox' }).waitFor();
    const box = page.getByLabel('Message');
    await box.fill('What is Wick?');
    await box.press('Enter');
    await page.getByText(/\d+ tokens, \d+ per second/).waitFor();
    const answer = String(await page.locator('.assistant').first().textContent());
    assert.ok(answer.length > 20, answer);
    await page.route('**/v1/chat/completions', () => {}); // never answered
    await box.fill('And then?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Send' }).and(page.locator(':enabled')).waitFor();
    await page.unroute('**/v1/chat/completions');
    assert.equal(await page.locator('.error').count(), 0);
    await page.getByLabel('Key').fill('wrong');
    await box.fill('Hello?');
    await box.press('Enter');
    await page.locator('.error').waitFor();
    assert.match(String(await page.locator('.error').textContent()), /key/i);
    assert.deepEqual(errors, []);
    await page.close();
  });
});
