// The site offline: after one visit and without the server, each page opens and works, isolated although the host sets no headers.
// In Chromium; tests/pages/offline.test.mjs also tests the chat in Firefox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { builtPage } from '../support/built_pages.mjs';
import { locate } from '../support/locate.mjs';
import { isKept } from '../support/offline.mjs';
import { untilTrue } from '../support/package.mjs';
import { pdfOf } from '../support/pdf.mjs';

const { skip } = locate('chromium');
let folder = '';

/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  folder = await builtPage('site');
  if (!skip) browser = await launchChromium();
});

after(() => browser?.close());

/** @typedef {import('playwright-core').Page} Page */

/**
 * Visits a page, closes the server and reloads it.
 * @param {import('node:test').TestContext} t
 * @param {string} place in the site
 * @param {string} isReady an expression that is true when the page is ready
 * @returns {Promise<Page>} the page when offline; an error in it fails the test
 */
async function visitOnce(t, place, isReady) {
  const server = await serve({ root: { '/some/path/': folder }, isolated: false });
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  await page.goto(`${server.url}some/path/${place}`);
  await untilTrue(page, isReady);
  await untilTrue(page, isKept);
  await server.close();
  await page.reload();
  await untilTrue(page, isReady);
  assert.equal(await page.evaluate('crossOriginIsolated'), true);
  return page;
}

const isOn = (/** @type {string} */ id) =>
  `document.getElementById('${id}').getAttribute('aria-disabled') === 'false'`;

test('playground: a record, and a rule that needs the grammar module', { skip }, async (t) => {
  const page = await visitOnce(t, 'playground/', isOn('run'));
  await page.click('#run');
  await page.locator('#state:text("Done"), #problem:not([hidden])').waitFor();
  assert.equal(await page.locator('#problem').innerText(), '');
  JSON.parse(await page.innerText('#output'));
});

test('forks: stories are generated', { skip }, async (t) => {
  const page = await visitOnce(t, 'fork/', isOn('begin'));
  await page.click('#begin');
  await page.waitForSelector('article:nth-child(3) button:enabled');
  const stories = await page.locator('article .new').allTextContents();
  assert.ok(
    stories.every((story) => story.length > 20),
    `${stories}`,
  );
});

test('benchmark: a run', { skip }, async (t) => {
  const page = await visitOnce(t, 'bench/', "document.getElementById('threads').value !== ''");
  for (const [id, value] of Object.entries({ prompts: '16', tokens: '24', repetitions: '1' }))
    await page.fill(`#${id}`, value);
  await page.click('#run');
  await page.locator('#results:not([hidden])').waitFor();
  assert.equal(await page.innerText('#state'), 'Done');
});

test('documentation: a page in a folder, the search, and a page that was not visited', {
  skip,
}, async (t) => {
  const ready = "document.querySelector('main h1') !== null";
  const page = await visitOnce(t, 'docs/lab/attention.html', ready);
  await page.fill('#search', 'salt tenants');
  await page.locator('#results a', { hasText: 'Tenants: salt' }).click();
  await page.waitForURL(/\/docs\/guide\/sessions\.html#tenants-salt$/);
  assert.equal(await page.locator('h1').count(), 1);
  await page.goto(new URL('../?from=a-link', page.url()).href);
  assert.match(await page.innerText('main h1'), /Wick/);
});

test('chat: a PDF is read with the library, which was not used before', { skip }, async (t) => {
  const page = await visitOnce(t, 'chat/', "!document.getElementById('send').disabled");
  await page.evaluate(
    (text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], 'fox.pdf'));
      dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
    },
    pdfOf(['The fox is red.']),
  );
  await page.locator('.media.attached .chip summary', { hasText: 'fox.pdf' }).click();
  await page.locator('.chip pre', { hasText: 'The fox is red.' }).waitFor();
});
