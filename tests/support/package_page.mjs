// The package in an empty page in Chromium, for the duration of a suite.

import { join } from 'node:path';
import { after, before } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from './browsers.mjs';
import { root } from './locate.mjs';
import { dist } from './package.mjs';

/**
 * When called in a suite, starts a browser before the suite's tests and closes it after them. The package is served at
 * /wick-llm/, the models folder at /models/.
 * @param {string} models
 */
export function openPackagePage(models) {
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  before(async () => {
    const folders = {
      '/': join(root, 'tests/support/empty_page'),
      '/wick-llm/': dist,
      '/models/': models,
    };
    server = await serve({ root: folders });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });
  return {
    /**
     * Runs a function in a new page.
     * @template Given, Found
     * @param {(given: Given) => Promise<Found>} run
     * @param {Given} given
     * @returns {Promise<Found>}
     */
    async evaluate(run, given) {
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(server.url);
      const found = await page.evaluate(/** @type {any} */ (run), given);
      await page.close();
      return found;
    },
  };
}
