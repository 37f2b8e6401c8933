// Pages whose Content Security Policy blocks the engine's worker, in Chromium: the error names the directive,
// and the fix that the error proposes works.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate } from '../support/locate.mjs';
import { dist, modelFolder } from '../support/package.mjs';

const { skip } = locate('chromium');
/** @type {Record<string, string>} */
const types = { '.js': 'text/javascript', '.wasm': 'application/wasm' };

/** @type {import('playwright-core').Browser} */
let browser;
/** The page's own origin and a different one. @type {string[]} */
let origins;
let policy = '';

/** @param {string} url @returns {string} the path of a package file, or of the demo model */
const fileOf = (url) => {
  const [, folder, ...rest] = url.split('/');
  return join(folder === 'models' ? modelFolder : dist, ...rest);
};

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
function answer({ url = '/' }, response) {
  if (!/^\/(dist|models)\//.test(url)) {
    const headers = { 'Content-Type': 'text/html', 'Content-Security-Policy': policy };
    response.writeHead(200, headers).end('<!doctype html><title>x</title>');
    return;
  }
  const type = types[extname(url)] ?? 'application/octet-stream';
  const headers = { 'Content-Type': type, 'Access-Control-Allow-Origin': '*' };
  response.writeHead(200, headers).end(readFileSync(fileOf(url)));
}

const servers = [createServer(answer), createServer(answer)];

before(async () => {
  if (skip) return;
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
  origins = servers.map((server) => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    return `http://127.0.0.1:${port}`;
  });
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/**
 * Runs in the page.
 * @param {{origin: string, isTrusted: boolean}} from
 * @returns {Promise<string>} generated text, or the error's name, code and message
 */
async function speak({ origin, isTrusted }) {
  const { createEngine } = await import(`${origin}/dist/index.js`);
  const url = `${origin}/models/wick-2.6m-q4_0.gguf`;
  const makeWorker = () => {
    const { trustedTypes } = /** @type {any} */ (globalThis);
    const own = trustedTypes.createPolicy('own', {
      createScriptURL: (/** @type {any} */ one) => one,
    });
    return new Worker(own.createScriptURL(`${origin}/dist/worker.js`));
  };
  const worker = isTrusted ? makeWorker : undefined;
  try {
    const engine = await createEngine({ url, threads: 1, worker });
    const text = await engine.generate('Hello', { temperature: 0, maxTokens: 3 }).text();
    await engine.close();
    return text;
  } catch (error) {
    const { name, code, message } = /** @type {any} */ (error);
    return `${name} ${code}: ${message}`;
  }
}

/** @param {string} under the policy @param {number} [from] the origin of index.js @param {boolean} [isTrusted] */
async function tried(under, from = 0, isTrusted = false) {
  policy = under;
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  try {
    await page.goto(origins[0]);
    return await page.evaluate(speak, { origin: origins[from], isTrusted });
  } finally {
    await page.close();
  }
}

test('worker-src: the error names the source that has to be allowed', { skip }, async () => {
  const words =
    /^WickError CSP: .*Content Security Policy.* worker-src directive must allow 'self'$/;
  for (const one of ["worker-src 'none'", 'worker-src blob:'])
    assert.match(await tried(one), words);
  const elsewhere = `worker-src directive must allow blob: and ${origins[1]}`;
  assert.ok((await tried("worker-src 'self'", 1)).endsWith(elsewhere));
  const unsaid = `worker-src of the Content Security Policy does not allow ${origins[1]}`;
  assert.ok((await tried('worker-src blob:', 1)).endsWith(unsaid), 'only the worker is notified');
  assert.doesNotMatch(await tried("worker-src 'self'"), /Error/);
  assert.doesNotMatch(await tried(`worker-src blob: ${origins[1]}`, 1), /Error/);
});

test("require-trusted-types-for 'script': the page’s own policy can create the worker", {
  skip,
}, async () => {
  const under = "require-trusted-types-for 'script'; trusted-types own";
  const words =
    /^WickError CSP: .*require-trusted-types-for 'script'.*createScriptURL.*trusted-types/;
  for (const from of [0, 1]) assert.match(await tried(under, from), words);
  assert.doesNotMatch(await tried(under, 0, true), /Error/);
});

test("script-src without 'wasm-unsafe-eval': the browser’s message is passed on", {
  skip,
}, async () => {
  assert.match(await tried("script-src 'self'"), /^WickError WASM: .*script-src 'self'/);
  assert.doesNotMatch(await tried("script-src 'self' 'wasm-unsafe-eval'"), /Error/);
});
