// Tests the chat page in Firefox and WebKitGTK: builds the page in a separate folder with the test's
// script, starts a server, and adds a test for each of the two browsers. Their drivers cannot run a
// script before those of a page, so the built page contains it as its first script.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { serve } from '../../tools/serve.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from './browsers.mjs';
import { copyChat } from './built_pages.mjs';
import { capturing } from './chat_real.mjs';
import { begin, prelude } from './chat_steps.mjs';
import { stubEngine, stubModels } from './chat_stub.mjs';
import { locate, root } from './locate.mjs';

/** Reopens a page, runs the body of an async function in it, and returns its JSON result. @typedef {(url: string, script: string) => Promise<any>} Visit */

/**
 * If a page in WebKitGTK is closed while it stores data, the next page may be unable to open the
 * database.
 */
const STORING_MS = 1000;

/** @param {import('puppeteer-core').Browser} firefox @returns {Visit} */
export const visitsOfFirefox = (firefox) => async (url, script) => {
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  const found = await page.evaluate(`(async () => { ${script} })()`);
  await page.close();
  return found;
};

/**
 * Returns a function that visits URLs. The same page with a different hash would not be reloaded. A page that
 * navigates to another origin while it stores data is suspended with its database open, and no other page of its
 * origin can open it.
 * @param {import('./browsers.mjs').WebKitPage} page
 * @returns {Visit}
 */
export function visitsOfWebKit(page) {
  let visits = 0;
  return async (url, script) => {
    const address = new URL(url);
    address.searchParams.set('visit', String(++visits));
    await page.goto(address.href);
    const found = await page.evaluate(script);
    await wait(STORING_MS);
    return found;
  };
}

/**
 * Adds a test for each of the two browsers, each with one profile.
 * @param {string} title
 * @param {(visit: Visit, t: import('node:test').TestContext) => Promise<unknown>} pass
 */
export function testInBoth(title, pass) {
  test(`Firefox: ${title}`, { skip: locate('firefox').skip }, async (t) => {
    const firefox = await launchFirefox();
    t.after(() => firefox.close());
    await pass(visitsOfFirefox(firefox), t);
  });
  test(`WebKitGTK: ${title}`, { skip: locate('webkitDriver').skip }, async (t) => {
    const page = await launchWebKit();
    t.after(() => page.close());
    await pass(visitsOfWebKit(page), t);
  });
}

/**
 * Builds the chat page in a separate folder, and starts a server for it.
 * @param {string} name of the folder in build/
 * @param {(site: string) => unknown} change
 */
function useSite(name, change) {
  const site = resolve(root, 'build', name);
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  before(async () => {
    await copyChat(site);
    await change(site);
    server = await serve({ root: site });
  });
  after(() => server.close());
  return { site, url: () => server.url };
}

/**
 * Makes the page run a script before its modules, regardless of their order.
 * @param {string} site
 * @param {string} script
 */
export function runFirst(site, script) {
  const page = resolve(site, 'index.html');
  const html = readFileSync(page, 'utf8');
  assert.ok(html.includes('<head>'));
  writeFileSync(page, html.replace('<head>', '<head><script src="first.js"></script>'));
  writeFileSync(resolve(site, 'first.js'), `{ ${script} }`);
}

/** Tests with a fake engine. @param {string} name @param {string} [script] runs before the engine's script */
export const useStub = (name, script = '') =>
  useSite(name, (site) => {
    runFirst(site, prelude);
    writeFileSync(resolve(site, 'wick-llm/index.js'), script + stubEngine);
    writeFileSync(resolve(site, 'wick-llm/models.js'), stubModels);
  });

/**
 * Tests with the package's real engine, which is `engine` in the page.
 * @param {string} name
 * @param {string} [script] runs before the engine's script
 */
export const useReal = (name, script = '') =>
  useSite(name, (site) => {
    const entry = resolve(site, 'wick-llm/index.js');
    copyFileSync(entry, resolve(site, 'wick-llm/own.js'));
    runFirst(site, prelude);
    writeFileSync(entry, script + capturing('./own.js'));
  });

/**
 * Runs scripts in sequence, each in a reopened page; compares their results, and fails on any error.
 * @param {Visit} visit
 * @param {string} url
 * @param {[name: string, script: string, wanted: object][]} passes
 */
export async function runPasses(visit, url, passes) {
  for (const [name, script, wanted] of passes) {
    const found = await visit(
      url,
      `${begin}\nconst found = await (async () => { ${script} })(); return { ...found, wrong };`,
    );
    assert.deepEqual(found, { ...wanted, wrong: [] }, name);
  }
}
