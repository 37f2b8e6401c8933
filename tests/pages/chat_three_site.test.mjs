// The site in Firefox and WebKitGTK: served under a path on a host that sets no headers, isolated by the chat's service worker;
// also tests its documentation. More thorough tests in Chromium: tests/pages/site.test.mjs.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { pages } from '../../examples/shared/pages.mjs';
import { serve } from '../../tools/serve.mjs';
import { findViolations } from '../support/accessible.mjs';
import { builtPage } from '../support/built_pages.mjs';
import { testInBoth } from '../support/two_browsers.mjs';

let folder = '';
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

before(async () => {
  folder = await builtPage('site');
  server = await serve({ root: { '/some/path/': folder }, isolated: false });
});
after(() => server.close());

/** @param {string} [name] */
const at = (name = '') => `${server.url}some/path/${name}`;

/** The beginning of each script, which does not depend on the page. */
const begin = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 20));
    }
    throw new Error('not so: ' + what + ': ' + document.body.innerText);
  };
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];`;

/** The condition under which each page is ready. @type {Record<string, string>} */
const ready = {
  Forks: "one('#begin').getAttribute('aria-disabled') !== 'true'",
  Benchmark: "one('#run') !== null",
  Playground: "one('#run').getAttribute('aria-disabled') === 'false'",
  Notes: "one('#model').options.length > 3",
  Documentation: "one('main h1') !== null",
};

const leading = `${begin}
  return Object.fromEntries(all('main a').map(({ textContent, href }) => [textContent.trim(), href]));`;

/** @param {string} condition */
const working = (condition) => `${begin}
  await until('ready', () => ${condition});
  const hidden = all('[hidden]').filter((one) => getComputedStyle(one).display !== 'none').map(({ id }) => id);
  return { links: all('nav[aria-label=Pages] a').length, hidden };`;

const first = `${begin}
  await until('ready', () => !one('#send').disabled);
  const { crossOriginIsolated: before } = globalThis;
  await until('a service worker', () => navigator.serviceWorker.controller);
  const hidden = all('[hidden]').filter((one) => getComputedStyle(one).display !== 'none').map(({ id }) => id);
  return { before, links: all('nav[aria-label=Pages] a').length, hidden };`;

const second = `${begin}
  await until('ready', () => !one('#send').disabled);
  one('#prompt').value = 'What is Wick?';
  one('#composer').requestSubmit();
  await until('answered', () => one('.message.assistant footer'));
  return { isIsolated: crossOriginIsolated, isSaid: /\\w+ \\w+/.test(one('.message.assistant .body').textContent) };`;

testInBoth(
  'below a path, the first page links to the others; if the host sets no headers, the service worker isolates the chat',
  async (visit) => {
    const links = await visit(at(), leading);
    const expected = { links: pages.length, hidden: [] };
    for (const [name, condition] of Object.entries(ready)) {
      assert.match(links[name] ?? '', /\/some\/path\/\w+\/$/, name);
      assert.deepEqual(await visit(links[name], working(condition)), expected, name);
    }
    assert.deepEqual(await visit(links.Chat, first), { before: false, ...expected });
    const found = await visit(links.Chat, second);
    assert.deepEqual(found, { isIsolated: true, isSaid: true });
  },
);

const searching = `${begin}
  await until('focus', () => {
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true }));
    return document.activeElement === one('#search');
  });
  const type = (text) => {
    one('#search').value = text;
    one('#search').dispatchEvent(new Event('input', { bubbles: true }));
  };
  const says = (text) => until(text, () => one('#search-state').textContent.includes(text));
  type('saltt'); // a typing error
  const { href } = await until('found', () => all('#results a').find((one) => one.textContent.includes('Tenants: salt')));
  type('model '.repeat(3000));
  await says('12 sections');
  type('zebrafish');
  await says('Nothing found');
  one('#theme').value = 'dark';
  one('#theme').dispatchEvent(new Event('change', { bubbles: true }));
  return href;`;

testInBoth(
  'the documentation: axe finds no violations in both themes, the search works, and the theme is kept',
  async (visit) => {
    for (const name of ['', 'lab/attention.html'])
      assert.deepEqual(await visit(at(`docs/${name}`), findViolations), [], name);
    const href = await visit(at('docs/lab/attention.html'), searching);
    assert.equal(href, at('docs/guide/sessions.html#tenants-salt'));
    const isKept = 'return until("dark", () => document.documentElement.dataset.theme === "dark")';
    assert.ok(await visit(at('docs/models.html'), `${begin} ${isKept};`));
  },
);
