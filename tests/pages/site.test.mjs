// `make site` creates a folder that works under any path, on hosts that support a headers file and on hosts that set no headers. Every
// link in it works. Screenshots of the documentation (light, dark, phone) are written to build/screenshots.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { modules, pageOf, referenceOf } from '../../examples/docs/outline.mjs';
import { declarationsOf, referenceText } from '../../examples/docs/reference.mjs';
import { pages } from '../../examples/shared/pages.mjs';
import { serve } from '../../tools/serve.mjs';
import { violations } from '../support/accessible.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { builtPage } from '../support/built_pages.mjs';
import { isFull } from '../support/level.mjs';
import { documentsIn, locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip } = locate('chromium');
let folder = '';

/** A host that sets no headers, and serves the site under a path. @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  folder = await builtPage('site');
  server = await serve({ root: { '/some/path/': folder }, isolated: false });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @param {import('node:test').TestContext} t */
async function openPage(t) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  return page;
}

test('hosts find the isolation headers in their configuration files', () => {
  const read = (/** @type {string} */ name) => readFileSync(join(folder, name), 'utf8');
  for (const name of ['_headers', 'vercel.json', 'staticwebapp.config.json', '.htaccess']) {
    const text = read(name);
    assert.match(text, /Cross-Origin-Opener-Policy\W.*same-origin/s, name);
    assert.match(text, /Cross-Origin-Embedder-Policy\W.*require-corp/s, name);
  }
  assert.equal(JSON.parse(read('vercel.json')).headers[0].headers.length, 2);
});

test('below a path, the first page links to the others, and each is ready without an error', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const ready = {
    Chat: "!document.getElementById('send').disabled",
    Forks: "document.getElementById('begin').getAttribute('aria-disabled') !== 'true'",
    Benchmark: "document.getElementById('run') !== null",
    Playground: "document.getElementById('run').getAttribute('aria-disabled') === 'false'",
    Notes: "document.getElementById('model').options.length > 3",
    Documentation: "document.querySelector('main h1') !== null",
  };
  for (const [name, condition] of Object.entries(ready)) {
    await page.goto(`${server.url}some/path/`);
    await page.getByRole('main').getByRole('link', { name }).click();
    await page.waitForURL(/\/some\/path\/\w+\//);
    await untilTrue(page, condition);
    if (name === 'Chat') await page.click('#open-more'); // the chat page's links are in the menu
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    assert.equal(await links.count(), pages.length, name);
    const shown = await page.evaluate(() =>
      [...document.querySelectorAll('[hidden]')]
        .filter((one) => getComputedStyle(one).display !== 'none')
        .map(({ id, className }) => id || className),
    );
    assert.deepEqual(shown, [], `${name}: a style shows what is hidden`);
  }
});

test('if the host sets no headers, the service worker isolates the chat starting with the second visit', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await page.goto(`${server.url}some/path/chat/`);
  assert.equal(await page.evaluate('crossOriginIsolated'), false);
  await untilTrue(page, 'navigator.serviceWorker.controller !== null');
  await page.reload();
  assert.equal(await page.evaluate('crossOriginIsolated'), true);
  await page.waitForSelector('#send:not([disabled])');
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').waitFor();
  assert.match(await page.locator('.message.assistant .body').innerText(), /\w+ \w+/);
});

/** @returns {string[]} the paths of the site's pages, without those in the packages */
const allPages = () =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && one.name.endsWith('.html'))
    .map((one) => relative(folder, join(one.parentPath, one.name)));

test('every link on every page leads to an existing file and anchor of the site', () => {
  const all = allPages();
  assert.ok(all.length > 60, `${all.length} pages`);
  /** @type {Map<string, string>} */
  const texts = new Map(all.map((page) => [page, readFileSync(join(folder, page), 'utf8')]));
  let count = 0;
  const wrong = [];
  for (const [page, html] of texts) {
    for (const [, name] of html.matchAll(
      /<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"]*)"/g,
    )) {
      const url = new URL(name.replaceAll('&amp;', '&'), `http://site/a/path/${page}`);
      if (url.origin !== 'http://site') continue;
      count++;
      const path = decodeURIComponent(url.pathname).replace(/^\/a\/path\//, '');
      const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
      const place = decodeURIComponent(url.hash.slice(1));
      const isThere = !file.startsWith('/') && existsSync(join(folder, file));
      const hasPlace = !place || texts.get(file)?.includes(` id="${place}"`);
      if (!isThere || !hasPlace) wrong.push(`${page}: ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(count > 2000, `${count} links`);
});

test('every document of the repository is a page of the documentation', () => {
  const pagesThere = new Set(allPages());
  for (const name of documentsIn('docs', 'docs/guide', 'docs/lab')) {
    const page = name.replace(/README\.md$/, 'index.html').replace(/md$/, 'html');
    assert.ok(pagesThere.has(page), name);
  }
});

test('the reference has every declaration of the package, each member once, with examples', () => {
  for (const [name, types] of Object.entries(modules)) {
    const text = readFileSync(join(root, types), 'utf8');
    const head = /^export (?:declare )?(?:interface|class|type|function|const) (\w+)/gm;
    const exported = new Set([...text.matchAll(head)].map(([, found]) => found));
    const declared = declarationsOf(text).map((one) => one.name);
    assert.deepEqual(new Set(declared), exported, name);
    const html = readFileSync(join(folder, 'docs', pageOf(referenceOf(name))), 'utf8');
    for (const one of exported) assert.ok(html.includes(` id="${one.toLowerCase()}"`), one);
  }
  const engine = declarationsOf(readFileSync(join(root, 'js/index.d.ts'), 'utf8')).find(
    (one) => one.name === 'Engine',
  );
  const names = engine?.members.map((one) => one.name) ?? [];
  for (const name of ['generate', 'embeddings.create', 'saveState', 'close'])
    assert.ok(names.includes(name), name);
  const text = referenceText(referenceOf('wick-llm'));
  assert.match(
    text,
    /\| `classify\(.*Guide: \[Structured output\]\(\.\.\/guide\/structured-output\.md\)/,
  );
  assert.match(text, /\| `requests\.running: number`/);
});

test('the design system: readable in both themes, on a phone and on a wide screen', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await page.goto(`${server.url}some/path/design/`);
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, colorScheme), [], colorScheme);
    await takePicture(page, `design-${colorScheme}`);
  }
  const colour = (/** @type {string} */ theme) =>
    page
      .locator(`[data-theme=${theme}] .text-on-back`)
      .evaluate((element) => getComputedStyle(element).backgroundColor);
  assert.deepEqual(
    [await colour('light'), await colour('dark')],
    ['rgb(250, 249, 247)', 'rgb(22, 21, 19)'],
  );
  for (const width of [360, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    const scroll = await page.evaluate('document.documentElement.scrollWidth');
    assert.ok(Number(scroll) <= width, `${scroll} of ${width}`);
  }
  await page.setViewportSize({ width: 360, height: 800 });
  await takePicture(page, 'design-phone');
});

test('the documentation works in both themes and on a phone, can be searched, and keeps its theme', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  for (const name of [
    '',
    'js-api.html',
    'lab/attention.html',
    'source/examples/chat/build.mjs.html',
  ]) {
    await page.goto(`${server.url}some/path/docs/${name}`);
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page, colorScheme), [], `${name} ${colorScheme}`);
      if (name === '' || name === 'js-api.html') {
        await takePicture(page, `docs-${name || 'first'}-${colorScheme}`);
      }
    }
  }
  await page.goto(`${server.url}some/path/docs/lab/attention.html`);
  await page.keyboard.press('/');
  await page.keyboard.type('saltt'); // a typing error
  const found = page.locator('#results li', { hasText: 'Tenants: salt' }).first();
  assert.match(await found.locator('p').innerText(), /^In a shared prefix cache, cachedTokens/);
  await found.locator('a').click();
  await page.waitForURL(/\/some\/path\/docs\/guide\/sessions\.html#tenants-salt$/);
  await page.fill('#search', 'model '.repeat(3000));
  await page.locator('#search-state:text("12 sections")').waitFor();
  await page.fill('#search', 'speculative decoding');
  await page.locator('#results li', { hasText: 'Many requests at once' }).first().waitFor();
  const pages = await page.locator('#results a').allInnerTexts();
  const [guide, lab] = ['Many requests at once', 'Speculation'].map((name) =>
    pages.findIndex((text) => text.endsWith(name)),
  );
  assert.ok(lab < 0 || guide < lab, `${pages}`);
  await page.fill('#search', 'zebrafish');
  await page.locator('#search-state:text("Nothing found")').waitFor();
  await page.selectOption('#theme', 'dark');
  await page.goto(`${server.url}some/path/docs/models.html`);
  assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}some/path/docs/js-api.html`);
  assert.equal(await page.locator('#list').getAttribute('open'), null);
  assert.ok(
    /** @type {number} */ (await page.evaluate('document.documentElement.scrollWidth')) <= 390,
  );
  await takePicture(page, 'docs-phone');
});
