// The fork example in Chromium: one prompt continued three times at once, a fork from the middle of a
// story, the map of pages. Screenshots (light, dark, phone) are written to build/screenshots.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildFork, site } from '../../examples/fork/build.mjs';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip } = locate('chromium');

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  await buildFork();
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {string} id of a button that keeps the focus while it is off */
const isOn = (id) => `#${id}:not([disabled]):not([aria-disabled="true"])`;

/** @param {import('playwright-core').Page} page */
const focusOf = (page) => page.evaluate('document.activeElement.id');

test('a prompt forks into stories, and a story forks again', { skip }, async () => {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(server.url);
  await page.waitForSelector(isOn('begin'));
  const reported = await page.inputValue('#beginning');
  await page.fill('#beginning', '');
  await page.click('#begin'); // the browser reports that the field is empty
  assert.equal(await focusOf(page), 'beginning');
  assert.equal(await page.locator('article').count(), 0);
  await page.fill('#beginning', reported);
  await page.focus('#begin');
  await page.keyboard.press('Enter');
  await page.waitForSelector('article:nth-child(3) button:enabled');
  await page.waitForSelector(isOn('begin'));
  assert.equal(await focusOf(page), 'begin');
  const stories = await page.locator('article .new').allTextContents();
  assert.equal(stories.length, 3);
  for (const story of stories) assert.ok(story.length > 20, story);
  assert.match(await page.locator('#facts').innerText(), /^[1-9]\d* pages shared, 3 forks, /);
  assert.ok((await page.locator('#pages .shared').count()) > 0);
  await page.click('article:first-child button');
  await page.waitForSelector('article:nth-child(4) button:enabled');
  const kept = await page.locator('article:nth-child(4) .kept').innerText();
  assert.ok(kept.length > 3 && stories[0].startsWith(kept.trimEnd()), `${kept} | ${stories[0]}`);
  assert.match(await page.locator('#facts').innerText(), / 4 forks, /);
  await takePicture(page, 'fork-light', { fullPage: true });
  await page.emulateMedia({ colorScheme: 'dark' });
  await takePicture(page, 'fork-dark', { fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await takePicture(page, 'fork-phone', { fullPage: true });
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
  );
  assert.equal(overflow, false, 'nothing is wider than a phone');
  assert.deepEqual(problems, []);
  assert.equal(await page.locator('#problem').isHidden(), true);
  await context.close();
});

test('stopping keeps the focus and the text, which can be forked', {
  skip: skip || !isFull,
}, async () => {
  const page = await /** @type {import('playwright-core').Browser} */ (browser).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(server.url);
  await page.evaluate("document.getElementById('begin').click()"); // no engine yet
  await page.waitForSelector(isOn('begin'));
  assert.equal(await page.locator('article').count(), 0);
  // in the page, because generating the stories may take less time than a command
  await page.evaluate(`new Promise((settle) => {
    const [begin, stop] = ['begin', 'stop'].map((id) => document.getElementById(id));
    new MutationObserver((_, observer) => {
      if (stop.getAttribute('aria-disabled') === 'true') return;
      observer.disconnect();
     begin.click(); // ignored while the stories are generated
      stop.focus();
      settle();
    }).observe(stop, { attributes: true });
    begin.click();
  })`);
  await page.locator('article:first-child .new:not(:empty)').waitFor();
  await page.keyboard.press('Enter');
  await page.waitForSelector(isOn('begin'));
  assert.equal(await focusOf(page), 'stop');
  await page.keyboard.press('Enter'); // no story is being generated
  assert.equal(await page.locator('article').count(), 3);
  await page.locator('article:first-child button:enabled').click();
  await page.waitForSelector('article:nth-child(4) button:enabled');
  const reported = await page.locator('article:nth-child(4) .new').innerText();
  assert.ok(reported.length > 0);
  assert.equal(await page.locator('#problem').isHidden(), true);
  await page.close();
});
