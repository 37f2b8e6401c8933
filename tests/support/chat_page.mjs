// Setup and teardown for tests of the chat page: the page is built in a separate folder, with a
// server, Chromium, and a page with a fake engine. Errors in the page fail the test.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium } from './browsers.mjs';
import { copyChat } from './built_pages.mjs';
import { openStub } from './chat_stub.mjs';
import { locate, root } from './locate.mjs';

/**
 * Reads a file that the page saved, which the shared Chromium stores in its own folder.
 * @param {import('playwright-core').Download} download
 */
export async function bytesOf(download) {
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * @param {string} name the name of the test and of its folder in build/
 * @param {{onRequest?: (path: string) => void, launch?: () => Promise<import('playwright-core').Browser>}} [how] `launch`: opens
 *   the browser, by default the shared Chromium; some tests need a separate one, for example because all pages share a clipboard
 */
export function useChat(name, { launch = launchChromium, ...serving } = {}) {
  const { skip } = locate('chromium');
  const site = resolve(root, 'build', name);
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;

  before(async () => {
    await copyChat(site);
    server = await serve({ root: site, ...serving });
    if (!skip) browser = await launch();
  });

  after(async () => {
    await browser?.close();
    await server.close();
  });

  /**
   * Opens a page in an empty profile. An error in the page or in its console fails the test unless it
   * is `expected`.
   * @param {import('node:test').TestContext} t
   * @param {{script?: string, isReady?: boolean, path?: string, expected?: RegExp,
   *   options?: import('playwright-core').BrowserContextOptions}} [how]
   */
  async function openPage(t, { script, isReady, path = '', expected, options = {} } = {}) {
    const context = await browser.newContext({ serviceWorkers: 'block', ...options });
    /** @type {string[]} */
    const problems = [];
    t.after(() => context.close());
    t.after(() => assert.deepEqual(problems, []));
    context.on('console', (message) => {
      if (message.type() === 'error' && !expected?.test(message.text()))
        problems.push(message.text());
    });
    return openStub(context, server.url + path, { script, isReady, problems });
  }

  return { skip, site, openPage, browser: () => browser, url: () => server.url };
}
