// Measures first visits to the chat page on this machine, each in an empty profile: the times until
// it paints, until its message field accepts text, until its model is ready, and until the first
// words of an answer, in milliseconds since the navigation began. Also measures the layout shift.
// Several folders are visited alternately.
//   node tools/bench/first_visit.mjs [--visits 5] [--folder build/chat]… [--phone]

import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { launchUnobserved } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';

/** Goals for the first visit: the time to the answer in milliseconds, and Chromium's layout shift score. */
export const GOALS = { answer: 350, shift: 0.05 };

/**
 * Runs in the page: asks a question as soon as the page accepts one, and keeps the times in
 * `visit`.
 * @param {string} question
 */
function watchVisit(question) {
  const visit = {
    paint: 0,
    field: 0,
    ready: 0,
    answer: 0,
    shift: 0,
    moved: /** @type {string[]} */ ([]),
  };
  Object.assign(globalThis, { visit });
  new PerformanceObserver((list) => {
    for (const entry of /** @type {any[]} */ (list.getEntries())) {
      if (entry.hadRecentInput) continue;
      visit.shift += entry.value;
      for (const { node } of entry.sources ?? [])
        visit.moved.push(node?.id ? `#${node.id}` : String(node?.className || node?.nodeName));
    }
  }).observe({ type: 'layout-shift', buffered: true });
  const look = () => {
    const field = /** @type {HTMLTextAreaElement | null} */ (document.querySelector('#prompt'));
    const send = /** @type {HTMLButtonElement | null} */ (document.querySelector('#send'));
    visit.paint ||= performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0;
    if (field && document.querySelector('#open-more svg') && !visit.field) {
      visit.field = performance.now();
      field.value = question;
      field.dispatchEvent(new Event('input'));
      field.form?.requestSubmit();
    }
    if (visit.field && document.querySelector('#model-name')?.textContent?.startsWith('Wick'))
      visit.ready ||= performance.now();
    if (send && document.querySelector('.message.assistant .body')?.textContent)
      visit.answer ||= performance.now();
    if (!visit.answer) setTimeout(look, 1);
  };
  look();
}

/**
 * Visits a page in a browser of the tests, which takes longer than run() measures.
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @param {import('playwright-core').BrowserContextOptions} [options]
 * @returns {Promise<{paint: number, field: number, ready: number, answer: number, shift: number, moved: string[]}>}
 */
export async function visitOnce(browser, url, options = {}) {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    await page.addInitScript(`(${watchVisit})('What is Wick?')`);
    await page.goto(url);
    await page.locator('.message.assistant footer').waitFor();
    await page.waitForTimeout(500); // later layout shifts count, too
    return await page.evaluate('visit');
  } finally {
    await context.close();
  }
}

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** The time between two looks at a page, which would otherwise slow its start. */
const LOOK_MS = 1000;

/**
 * Visits a page without following its requests, messages and contexts as test tools do: that takes the browser and the page
 * about 90 ms until the first answer on two cores.
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {boolean} isPhone
 * @returns {ReturnType<typeof visitOnce>}
 */
async function visitUnobserved(browser, url, isPhone) {
  const session = await browser.target().createCDPSession();
  const { browserContextId } = await session.send('Target.createBrowserContext');
  const size = isPhone ? { width: 360, height: 740 } : { width: 1280, height: 800 };
  const blank = `about:blank#${browserContextId}`;
  await session.send('Target.createTarget', { url: blank, browserContextId, ...size });
  const target = await browser.waitForTarget((one) => one.url() === blank);
  const page = await target.createCDPSession();
  if (isPhone) {
    const metrics = { ...size, deviceScaleFactor: 1, mobile: true };
    await page.send('Emulation.setDeviceMetricsOverride', metrics);
    await page.send('Emulation.setTouchEmulationEnabled', { enabled: true });
  }
  await page.send('Page.enable');
  const source = `(${watchVisit})('What is Wick?')`;
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source });
  await page.send('Page.navigate', { url });
  for (;;) {
    await sleep(LOOK_MS);
    const { result } = await page.send('Runtime.evaluate', {
      expression: 'visit',
      returnByValue: true,
    });
    if (!result.value.answer) continue;
    await session.send('Target.disposeBrowserContext', { browserContextId });
    await session.detach();
    return result.value;
  }
}

async function run() {
  const { values } = parseArgs({
    options: {
      visits: { type: 'string', default: '5' },
      folder: { type: 'string', default: ['build/chat'], multiple: true },
      phone: { type: 'boolean', default: false },
    },
  });
  const browser = await launchUnobserved();
  const builds = await Promise.all(
    values.folder.map(async (folder) => ({
      ...{ folder, visits: /** @type {Awaited<ReturnType<typeof visitOnce>>[]} */ ([]) },
      server: await serve({ root: resolve(root, folder) }),
    })),
  );
  for (let index = 0; index < Number(values.visits); index++)
    for (const { server, visits } of builds)
      visits.push(await visitUnobserved(browser, server.url, values.phone));
  for (const { folder, visits, server } of builds) {
    if (builds.length > 1) console.log(folder);
    report(visits);
    await server.close();
  }
  await browser.close();
}

/** @param {Awaited<ReturnType<typeof visitOnce>>[]} visits */
function report(visits) {
  for (const name of /** @type {const} */ (['paint', 'field', 'ready', 'answer', 'shift'])) {
    const digits = name === 'shift' ? 3 : 0;
    const all = visits.map((one) => one[name]);
    const shown = all.map((value) => value.toFixed(digits)).join(' ');
    console.log(name.padEnd(8), shown, `median ${median(all).toFixed(digits)}`);
  }
  console.log('moved   ', [...new Set(visits.flatMap(({ moved }) => moved))].join(' '));
}

if (process.argv[1] === import.meta.filename) await run();
