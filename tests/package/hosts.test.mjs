// The constraints of apps that are built from web pages (docs/hosts.md), each in a separate Chromium page:
// a scheme that is not a secure context, responses without Range, Content-Length and ETag, no
// cross-origin isolation, a strict content security policy, Node's objects in the page, a frame
// with an opaque origin.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { launchOwnChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { locate } from '../support/locate.mjs';
import { dist, modelFolder, openEngine, untilTrue } from '../support/package.mjs';

const { skip } = locate('chromium');
const smallModel = join(modelFolder, 'wick-2.6m-q4_0.gguf');
const ask = { temperature: 0, maxTokens: 6 };
/** @type {Record<string, string>} */
const types = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };

/** Runs the engine, then a cached model, and reports properties of the page. */
const script = `
  const found = { isSecure: isSecureContext, isIsolated: crossOriginIsolated, origin: location.origin };
  globalThis.say = (more) => {
    Object.assign(found, more);
    (parent === globalThis ? globalThis : parent).postMessage(found, '*');
  };
  try {
    const { createEngine } = await import(ORIGIN + '/wick-llm/index.js');
    const engine = await createEngine({ url: ORIGIN + '/model.gguf' });
    found.text = await engine.generate('Once', ${JSON.stringify(ask)}).text();
    found.threads = (await engine.info()).threads;
    await engine.close();
  } catch (error) {
    say({ error: error.name + ' ' + error.code + ': ' + error.message });
  }
  try {
    const { openModels } = await import(ORIGIN + '/wick-llm/models.js');
    const models = await openModels();
    const kept = await models.get(ORIGIN + '/model.gguf');
    const { createEngine } = await import(ORIGIN + '/wick-llm/index.js');
    const again = await createEngine({ model: ORIGIN + '/model.gguf', cache: 'only' });
    found.kept = await again.generate('Once', ${JSON.stringify(ask)}).text();
    await again.close();
    await models.clear();
  } catch (error) {
    found.refused = error.name + ' ' + error.code + ': ' + error.message;
  }
  say({ isDone: true });
`;
const listen = `addEventListener('message', ({ data }) => { globalThis.found = data; });`;

/** Node's objects, as in an Electron page with node integration. */
const node = `
  globalThis.global = globalThis;
  globalThis.process = {
    type: 'renderer', platform: 'linux', arch: 'x64', pid: 1, env: {}, argv: [], execArgv: [],
    version: 'v22.0.0', versions: { node: '22.0.0', electron: '37.0.0', chrome: '138.0.0.0' },
    hrtime: Object.assign(() => [Math.floor(performance.now() / 1e3), 0], {
      bigint: () => BigInt(Math.round(performance.now() * 1e6)) }),
    getBuiltinModule: (name) => { throw new Error('a page asked for ' + name); },
    on() {}, emitWarning() {},
  };
  globalThis.Buffer = class Buffer extends Uint8Array {};
  globalThis.require = (name) => { throw new Error('a page asked for ' + name); };
  globalThis.module = { exports: {} };
`;

/** @type {Record<string, {head?: string, code?: string, policy?: string}>} */
const pages = {
  '/plain.html': {},
  '/node.html': { code: node },
  '/policy.html': {
    policy:
      "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'",
  },
};

/** @param {string} url @param {string} origin */
function pageOf(url, origin) {
  if (url === '/frame.html') {
    const inner = `<script type="module">${script.replaceAll('ORIGIN', JSON.stringify(origin))}</script>`;
    const escaped = inner.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    return `<script>${listen}</script><iframe sandbox="allow-scripts" srcdoc="${escaped}"></iframe>`;
  }
  return `<script src="/before.js?${url}"></script><script type="module" src="/page.js"></script>`;
}

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
function answer({ url = '/', headers: { host } }, response) {
  const origin = `http://${host}`;
  const headers = { 'Access-Control-Allow-Origin': '*' };
  const page = pages[url];
  if (page || url === '/frame.html') {
    const policy = page?.policy ? { 'Content-Security-Policy': page.policy } : {};
    response.writeHead(200, { 'Content-Type': 'text/html', ...headers, ...policy });
    return response.end(
      `<!doctype html><meta charset="utf-8"><title>x</title>${pageOf(url, origin)}`,
    );
  }
  const [path, query] = url.split('?');
  if (path === '/favicon.ico') return response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': types[extname(path)] ?? '', ...headers });
  if (path === '/before.js') return response.end(`${pages[query].code ?? ''}\n${listen}`);
  if (path === '/page.js') return response.end(script.replaceAll('ORIGIN', JSON.stringify(origin)));
  const bytes = readFileSync(path === '/model.gguf' ? smallModel : join(dist, path.slice(10)));
  // in chunks, so that no Content-Length is sent
  for (let at = 0; at < bytes.length; at += 300_000)
    response.write(bytes.subarray(at, at + 300_000));
  response.end();
}

const server = createServer(answer);
/** @type {import('playwright-core').Browser} */
let browser;
let port = 0;
before(async () => {
  if (skip) return;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  ({ port } = /** @type {import('node:net').AddressInfo} */ (server.address()));
  browser = await launchOwnChromium(['--host-resolver-rules=MAP app.test 127.0.0.1']);
});
after(async () => {
  await browser?.close();
  server.close();
  server.closeAllConnections();
});

/** @param {import('node:test').TestContext} t @param {string} address @returns {Promise<any>} the page's findings */
async function visit(t, address) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(address);
  await untilTrue(
    page,
    'globalThis.found?.isDone === true || globalThis.found?.error !== undefined',
  );
  assert.deepEqual(problems, []);
  return page.evaluate('globalThis.found');
}

/** @param {import('node:test').TestContext} t @param {any} found */
async function assertAnswered(t, found) {
  const engine = await openEngine(t, { file: smallModel });
  assert.equal(found.error, undefined);
  assert.equal(found.text, await engine.generate('Once', ask).text());
  assert.equal(found.isIsolated, false);
  assert.equal(found.threads, 1);
}

test('a scheme without a secure context, and streams without a length', { skip }, async (t) => {
  const found = await visit(t, `http://app.test:${port}/plain.html`);
  assert.equal(found.isSecure, false);
  await assertAnswered(t, found);
  assert.equal(found.kept, found.text, found.refused);
});

test('a strict content security policy', { skip }, async (t) => {
  const found = await visit(t, `http://127.0.0.1:${port}/policy.html`);
  await assertAnswered(t, found);
  assert.equal(found.kept, found.text, found.refused);
});

test('Node’s objects in the page', { skip }, async (t) => {
  const found = await visit(t, `http://127.0.0.1:${port}/node.html`);
  await assertAnswered(t, found);
  assert.equal(found.kept, found.text, found.refused);
});

test('a frame with an opaque origin, such as a sandboxed extension page', { skip }, async (t) => {
  const found = await visit(t, `http://127.0.0.1:${port}/frame.html`);
  assert.equal(found.origin, 'null');
  await assertAnswered(t, found);
  assert.match(found.refused, /^WickError NO_STORAGE: .*does not store data for this page/);
});
