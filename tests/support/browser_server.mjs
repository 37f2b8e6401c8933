// Started once by the test runner for all files that open pages: one Chromium, in which each file has separate contexts,
// and a folder for the pages that they build (built_pages.mjs). A file that is run alone has its own Chromium and folder.

import { rmSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { chromiumOptions } from './browsers.mjs';
import { makePagesFolder } from './built_pages.mjs';
import { locate } from './locate.mjs';

/** @returns {Promise<{env: Record<string, string>, close: () => Promise<void>}>} `env`: environment variables for the test files */
export async function startBrowserServers() {
  const pages = makePagesFolder();
  const server = locate('chromium').skip
    ? undefined
    : await chromium.launchServer(chromiumOptions());
  return {
    env: { WICK_PAGES: pages, ...(server && { WICK_CHROMIUM_SERVER: server.wsEndpoint() }) },
    close: async () => {
      await server?.close();
      rmSync(pages, { recursive: true, force: true });
    },
  };
}
