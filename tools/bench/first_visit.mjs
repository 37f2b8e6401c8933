// Measures first visits to the chat page on this machine, each in an empty profile: the times until
// it paints, until its message field accepts text, until its model is ready, and until the first
// words of an answer, in milliseconds since the navigation began. Also measures the layout shift.
//   node tools/bench/first_visit.mjs [--visits 5] [--folder build/chat] [--phone]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchOwnChromium } from '../../tests/support/browsers.mjs';
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

async function run() {
  const { values } = parseArgs({
    options: {
      visits: { type: 'string', default: '5' },
      folder: { type: 'string', default: 'build/chat' },
      phone: { type: 'boolean', default: false },
    },
  });
  const server = await serve({ root: resolve(root, values.folder) });
  const browser = await launchOwnChromium();
  const options = values.phone
    ? { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }
    : { viewport: { width: 1280, height: 800 } };
  const visits = [];
  for (let index = 0; index < Number(values.visits); index++)
    visits.push(await visitOnce(browser, server.url, options));
  for (const name of /** @type {const} */ (['paint', 'field', 'ready', 'answer', 'shift']))
    console.log(
      name.padEnd(8),
      visits.map((one) => one[name].toFixed(name === 'shift' ? 3 : 0)).join(' '),
      `median ${median(visits.map((one) => one[name])).toFixed(name === 'shift' ? 3 : 0)}`,
    );
  console.log('moved   ', [...new Set(visits.flatMap(({ moved }) => moved))].join(' '));
  await browser.close();
  await server.close();
}

if (process.argv[1] === import.meta.filename) await run();
