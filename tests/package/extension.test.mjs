// The package in a browser extension page (Manifest V3), in Chromium with the extension loaded. The content security
// policy of such pages forbids eval, and also WebAssembly unless it contains 'wasm-unsafe-eval'.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { locate } from '../support/locate.mjs';
import { dist, modelPath, openEngine, temporaryFolder } from '../support/package.mjs';

const { path, skip } = locate('chromium');
const ask = { temperature: 0, maxTokens: 8 };

const script = `
import { createEngine } from './wick-llm/index.js';

const found = {};
try {
  found.made = new Function('return 1')();
} catch (error) {
  found.refused = error.name;
}
try {
  const engine = await createEngine({ url: './model.gguf', threads: 1 });
  found.text = await engine.generate('Once', ${JSON.stringify(ask)}).text();
  await engine.close();
} catch (error) {
  found.code = error.code;
  found.isPolicy = /Content Security Policy/.test(error.message);
}
const output = document.createElement('output');
output.textContent = JSON.stringify(found);
document.body.append(output);
`;

/** @param {string} folder @param {string} policy */
function writeExtension(folder, policy) {
  const manifest = {
    ...{ manifest_version: 3, name: 'Wick', version: '1' },
    background: { service_worker: 'background.js' },
    content_security_policy: { extension_pages: policy },
  };
  mkdirSync(folder, { recursive: true });
  cpSync(dist, join(folder, 'wick-llm'), { recursive: true });
  cpSync(modelPath, join(folder, 'model.gguf'));
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'background.js'), '');
  writeFileSync(join(folder, 'page.js'), script);
  const head = '<!doctype html><meta charset="utf-8"><title>Wick</title>';
  writeFileSync(join(folder, 'page.html'), `${head}<script type="module" src="page.js"></script>`);
}

/** @param {import('node:test').TestContext} t @param {string} policy @returns {Promise<any>} the page's findings */
async function visit(t, policy) {
  const folder = join(temporaryFolder(), 'extension');
  writeExtension(folder, policy);
  const context = await chromium.launchPersistentContext(join(folder, '..', 'profile'), {
    executablePath: path,
    headless: false, // turns off Playwright's headless mode: only the browser's own headless mode loads extensions
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [
      ...['--headless=new', '--no-sandbox', '--disable-gpu'],
      ...[`--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
    ],
    timeout: PATIENCE_MS,
  });
  t.after(() => context.close());
  const [worker = await context.waitForEvent('serviceworker', { timeout: PATIENCE_MS })] =
    context.serviceWorkers();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(new URL('page.html', worker.url()).href);
  return JSON.parse((await page.locator('output').textContent()) ?? '');
}

test('an extension page generates text', { skip }, async (t) => {
  const found = await visit(t, "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'");
  const engine = await openEngine(t);
  assert.deepEqual(found, {
    refused: 'EvalError',
    text: await engine.generate('Once', ask).text(),
  });
});

test('without wasm-unsafe-eval the error states the reason', { skip }, async (t) => {
  const found = await visit(t, "script-src 'self'; object-src 'self'");
  assert.deepEqual(found, { refused: 'EvalError', code: 'WASM', isPolicy: true });
});
