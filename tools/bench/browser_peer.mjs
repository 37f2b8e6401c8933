// Opens Wick and wllama as sides of a comparison: pages in one Chromium, each in a separate context.

/**
 * One side of a comparison.
 * @typedef {object} Peer
 * @property {(method: string, argument: object) => Promise<any>} call
 * @property {() => Promise<void>} close
 */

const MINUTES_10 = 600_000;

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url of page.html, with ?peer=
 * @returns {Promise<Peer>}
 */
export async function openPage(browser, url) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(MINUTES_10);
  await page.goto(url);
  await page.waitForFunction('globalThis.peer !== undefined');
  return {
    call: (method, argument) =>
      page.evaluate(
        ([name, value]) => /** @type {any} */ (globalThis).peer[name](value),
        /** @type {[string, object]} */ ([method, argument]),
      ),
    close: () => page.context().close(),
  };
}

/**
 * Measures the time from the navigation to the first token, in a new browser context without cache
 * or compiled code.
 * @param {import('playwright-core').Browser} browser
 * @param {string} url of cold.html, with all parameters
 * @returns {Promise<number>} milliseconds
 */
export async function measureCold(browser, url) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(MINUTES_10);
    const session = await context.newCDPSession(page);
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    await page.goto(url);
    const handle = await page.waitForFunction('globalThis.cold');
    const { firstTokenMs, error } = await handle.jsonValue();
    if (error) throw new Error(error);
    return firstTokenMs;
  } finally {
    await context.close();
  }
}
