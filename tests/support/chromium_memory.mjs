// Measures the memory of a page in Chromium, in KB, after garbage collection in all its threads.

import { readFileSync } from 'node:fs';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').CDPSession} CDPSession */

/**
 * Collects garbage in the page and in its worker.
 * @param {CDPSession} session of the page
 * @returns {Promise<number>} used bytes of both heaps
 */
async function collectIn(session) {
  /** @type {Promise<number>} */
  const ofWorker = new Promise((settle) => {
    session.on('Target.attachedToTarget', ({ sessionId }) => {
      for (const [id, method] of [
        'HeapProfiler.collectGarbage',
        'Runtime.getHeapUsage',
      ].entries()) {
        const message = JSON.stringify({ id, method });
        session.send('Target.sendMessageToTarget', { sessionId, message });
      }
    });
    session.on('Target.receivedMessageFromTarget', ({ message }) => {
      const { result } = JSON.parse(message);
      if (result?.usedSize) settle(result.usedSize);
    });
  });
  const attach = { waitForDebuggerOnStart: false, flatten: false };
  await session.send('Target.setAutoAttach', { ...attach, autoAttach: true });
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize + (await ofWorker);
}

/**
 * @param {import('playwright-core').Browser} browser
 * @returns {Promise<number>} the memory of the largest renderer process; the others are empty
 */
async function rendererPrivateKb(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const sizes = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => {
      const rollup = readFileSync(`/proc/${id}/smaps_rollup`, 'utf8');
      return Number(/^Private_Dirty:\s+(\d+)/m.exec(rollup)?.[1]);
    });
  return Math.max(...sizes);
}

/**
 * @param {import('playwright-core').Browser} browser
 * @param {Page} page with one worker
 * @returns {Promise<{privateKb: number, usedKb: number}>} private memory of its renderer, and used memory of its heaps
 */
export async function memoryAfterCollections(browser, page) {
  let usedBytes = 0;
  for (let times = 0; times < 3; times++) {
    const session = await page.context().newCDPSession(page);
    usedBytes = await collectIn(session);
    await session.detach();
    await page.waitForTimeout(100);
  }
  return { privateKb: await rendererPrivateKb(browser), usedKb: Math.round(usedBytes / 1024) };
}
