// The chat page is killed at random moments while a book is read: by a reload, a closed tab, a crash, or the loss of the network or
// the server. No text is lost, and no stored part is read twice. In Chromium, with the package's engine and the built-in model.
// `make soak` kills the page 200 times; a normal test run, a twentieth as often.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { onBattery, readStores, watchBars } from '../support/chat_stub.mjs';
import { chooseInMenu } from '../support/page_menu.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const { skip, url, browser } = useChat('chat-book-kills');

/** @typedef {import('playwright-core').Page} Page */

/** Speeds up the clock: the interval of ten seconds at which a page stores its progress takes a quarter of a second. */
const hastily = `const now = performance.now.bind(performance); performance.now = () => now() * 40;`;

/** Reads everything that is stored about books. @param {Page} page @returns {Promise<{texts: string[], tokens: number, total: number}>} `tokens`: those of the only book that are processed */
async function stored(page) {
  const [texts, readings] = await readStores(page, 'wick-chat-books', ['texts', 'readings']);
  const { tokens = 0, total = 0 } = readings[0] ?? {};
  return { texts, tokens, total };
}

/** @param {Page} page */
const crash = (page) =>
  Promise.race([
    page.waitForEvent('crash'),
    page.goto('chrome://crash').catch(() => new Promise(() => {})),
  ]);

/** @param {number} round texts of different rounds share no prefix */
const textOf = (round) =>
  Array.from(
    { length: 120 },
    (_, line) => `Fox ${line} of book ${round} lives in a small house by the river.\n`,
  ).join('');

test('killed while a book is read: its text is kept, and no stored part is read twice', {
  skip,
}, async (t) => {
  const context = await browser().newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  t.after(() => context.close());
  const random = randomOf(soakSeed + 4);
  const pause = () => new Promise((settle) => setTimeout(settle, random() * 700));
  for (const script of [onBattery, hastily, watchBars]) await context.addInitScript(script);

  /** @param {Page} [opened] */
  const open = async (opened) => {
    const page = opened ?? (await context.newPage());
    if (!opened) await page.goto(url());
    await page.waitForSelector('#send:not([disabled])');
    await chooseInMenu(page, '#open-books');
    await page.locator('#books-dialog[open]').waitFor();
    return page;
  };
  let page = await open();
  // the first visit has cached the files for offline use
  await page.evaluate('navigator.serviceWorker.ready.then(() => {})');

  /** Each interrupts the current work; the page is reopened afterwards. @type {Record<string, () => Promise<unknown>>} */
  const kills = {
    reload: () => page.reload({ waitUntil: 'commit' }),
    close: () => page.close(),
    crash: () => crash(page),
    offline: async () => {
      await context.setOffline(true); // reading continues
      await pause();
      await page.reload({ waitUntil: 'commit' });
      await pause();
      await context.setOffline(false);
    },
    cut: async () => {
      await context.route('**/*', (route) => route.abort());
      await page.reload({ waitUntil: 'commit' }).catch(() => {});
      await pause();
      await context.unroute('**/*');
    },
  };

  const kinds = Object.keys(kills);
  const rounds = soakCount(200);
  let [books, within] = [0, 0];
  let text = '';
  for (let round = 0; round < rounds; round++) {
    if (text === '') {
      text = textOf(round);
      const file = { name: `book ${round}.txt`, mimeType: 'text/plain', buffer: Buffer.from(text) };
      await page.locator('#book-file').setInputFiles(file);
      await page.locator('#books li').waitFor();
      books++;
    }
    await pause();
    const kind = kinds[round < kinds.length ? round : Math.floor(random() * kinds.length)];
    const what = `seed ${soakSeed}, round ${round}, ${kind}`;
    const before = await stored(page);
    await kills[kind]();
    if (kind !== 'reload' && !page.isClosed()) await page.close();
    page = await open(kind === 'reload' ? page : undefined);
    // reading resumes automatically, unless it has already finished
    const done = page.locator('#books li button', { hasText: /^Ask$/ });
    const going = page.locator('#books li button', { hasText: /^Pause$/ });
    await done.or(going).first().waitFor();
    const after = await stored(page);
    assert.deepEqual(after.texts, [text], what);
    assert.ok(after.tokens >= before.tokens, `${what}: ${after.tokens} of ${before.tokens}`);
    const least = Number(await page.evaluate('leastBar'));
    assert.ok(least >= before.tokens, `${what}: read from ${least}, stored were ${before.tokens}`);
    if (before.tokens > 0 && before.tokens < before.total) within++;
    if (!(await done.isVisible())) continue;
    // the book is complete, so the next one begins
    await page.getByRole('button', { name: /^Delete: / }).click();
    await page.locator('#books-dialog summary', { hasText: 'Deleted' }).click();
    await page.getByRole('button', { name: 'Delete permanently' }).click();
    await page.locator('#books li').waitFor({ state: 'detached' });
    text = '';
  }
  assert.ok(within > 0, 'some were killed after a stored part');
  t.diagnostic(`${rounds} kills, ${within} after a stored part, ${books} books`);
});
