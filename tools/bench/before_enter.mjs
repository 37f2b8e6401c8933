// Measures the chat page: the time from Enter to the first word of the answer, both if the answer was
// started at a pause in typing and if it was not (as on battery). The two cases alternate in one Chromium.
// Each question is worded differently and starts a new conversation; the prompt has about
// `--tokens` tokens.
//   node tools/bench/before_enter.mjs [--runs 15] [--tokens 400]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildChat } from '../../examples/chat/build.mjs';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { openReal, untilFact } from '../../tests/support/chat_real.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '15' },
    tokens: { type: 'string', default: '400' },
  },
});

const site = resolve(root, 'build/before-enter');
await buildChat(site);
const server = await serve({ root: site });
const browser = await launchChromium();

/** @param {boolean} charging */
async function open(charging) {
  const script = `Navigator.prototype.getBattery = async () =>
    Object.assign(new EventTarget(), { charging: ${charging} });`;
  const page = await openReal(browser, server.url, { script });
  await page.click('#developer summary');
  return page;
}

/** @typedef {import('playwright-core').Page} Page */

/**
 * @param {Page} page
 * @param {number} run
 * @param {boolean} isBegun whether to press Enter only after the answer has been started
 * @returns {Promise<number>} ms from Enter to the first word
 */
async function measure(page, run, isBegun) {
  await page.click('#new-chat');
  const words = Math.ceil(Number(options.tokens) / 6);
  const text = Array.from({ length: words }, (_, index) => `fox ${run} ${index}`).join(', ');
  await page.fill('#prompt', `${text}. What is Wick? ${run}`);
  if (isBegun) await untilFact(page, 'Before Enter', new RegExp(`^\\d+ pieces.* ${run}”`));
  const found = await page.evaluate(
    () =>
      new Promise((settle) => {
        const log = /** @type {HTMLElement} */ (document.getElementById('log'));
        const begin = performance.now();
        const watcher = new MutationObserver(() => {
          if (!log.querySelector('.message.assistant .body')?.textContent) return;
          watcher.disconnect();
          settle(performance.now() - begin);
        });
        watcher.observe(log, { childList: true, subtree: true, characterData: true });
        /** @type {HTMLFormElement} */ (document.getElementById('composer')).requestSubmit();
      }),
  );
  await page.locator('#log[aria-busy=false] .message.assistant footer').waitFor();
  return /** @type {number} */ (found);
}

const pages = { begun: await open(true), 'not begun': await open(false) };
/** @type {Record<string, number[]>} */
const all = { begun: [], 'not begun': [] };
const runs = Number(options.runs);
for (let run = 0; run <= runs; run++) {
  for (const [name, page] of Object.entries(pages)) {
    const ms = await measure(page, run, name === 'begun');
    if (run > 0) all[name].push(ms); // the first run is a warm-up
  }
}
console.log(environmentLine(describeEnvironment()));
for (const [name, list] of Object.entries(all)) {
  const [least, most] = [Math.min(...list), Math.max(...list)].map((one) => one.toFixed(1));
  console.log(
    `${name}: ${median(list).toFixed(1)} ms from Enter to the first word, median of ${runs} (${least} to ${most})`,
  );
}
await browser.close();
await server.close();
