// Firefox is killed (SIGKILL) at random moments while a book is read, and restarted with the same profile. The book's text is kept, and
// no stored part is read twice. With the package's engine and the built-in model. `make soak` kills Firefox 60 times; a normal test
// run, a twentieth as often. For Chromium: tests/pages/chat_book_kills.test.mjs.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { killFirefox, launchFirefox, PATIENCE_MS } from '../support/browsers.mjs';
import { begin } from '../support/chat_steps.mjs';
import { watchBars } from '../support/chat_stub.mjs';
import { locate } from '../support/locate.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';
import { useReal } from '../support/two_browsers.mjs';

/** Speeds up the clock: the interval of ten seconds at which a page stores its progress takes a quarter of a second. */
const hastily =
  'const now = performance.now.bind(performance); performance.now = () => now() * 40;';

const { url } = useReal('chat-firefox-book-kills', hastily + watchBars);

const text = Array.from(
  { length: 160 },
  (_, line) => `Fox ${line} lives in a small house by the river.\n`,
).join('');

const look = `
  const stored = async () => {
    const db = await new Promise((settle, fail) => {
      const opening = indexedDB.open('wick-chat-books');
      opening.onsuccess = () => settle(opening.result);
      opening.onerror = fail;
    });
    const rows = (name) => new Promise((settle, fail) => {
      const reading = db.transaction(name).objectStore(name).getAll();
      reading.onsuccess = () => settle(reading.result);
      reading.onerror = fail;
    });
    const [texts, [{ tokens = 0, total = 0 } = {}]] = [await rows('texts'), await rows('readings')];
    db.close();
    return { texts, tokens, total };
  };
  one('#open-books').click();
  await until('shelf', () => one('#books-dialog[open]') && one('#book-file'));
  const isRead = () => button('Ask: foxes.txt');
 /** Continues reading, unless it continues automatically because Firefox had a few seconds to store the request. */
  const goOn = async () => {
    await until('drawn', () => isRead() || button('Pause: foxes.txt') || button('Continue: foxes.txt'));
    button('Continue: foxes.txt')?.click();
  };`;

/** Waits until more of the book is stored than before, and then for the given time. @param {number} ms */
const live = (ms) => `${begin}${look}
  const before = await stored();
  if (before.texts.length === 0) takeIn('foxes.txt', ${JSON.stringify(text)}, one('#book-file'));
  else await goOn();
  await until('more', async () => isRead() || (await stored()).tokens > before.tokens);
  await new Promise((settle) => setTimeout(settle, ${ms}));
  return { found: before, left: await stored(), least: leastBar };`;

const end = `${begin}${look}
  const found = await stored();
  await goOn();
  await until('read', isRead);
  return { found, left: await stored(), least: leastBar };`;

test('Firefox is killed while a book is read: its text is kept, and no stored part is read twice', {
  skip: locate('firefox').skip,
}, async (t) => {
  const profile = mkdtempSync(join(tmpdir(), 'wick-firefox-'));
  const random = randomOf(soakSeed + 6);
  /** @type {import('puppeteer-core').Browser | undefined} */
  let firefox;
  t.after(async () => {
    await firefox?.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const rounds = soakCount(60);
  let [before, within] = [0, 0];
  for (let round = 0; round <= rounds; round++) {
    firefox = await launchFirefox({}, profile);
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url());
    const script = round === rounds ? end : live(random() * 300);
    const result = await page.evaluate(`(async () => { ${script} })()`);
    const { found, left, least } = /** @type {any} */ (result);
    const what = `seed ${soakSeed}, round ${round}`;
    if (round > 0) {
      assert.deepEqual(found.texts, [text], what);
      assert.ok(found.tokens >= before, `${what}: ${found.tokens} of ${before}`);
      assert.ok((least ?? Infinity) >= before, `${what}: from ${least}, stored were ${before}`);
    }
    before = left.tokens;
    if (before > 0 && before < left.total) within++;
    if (round < rounds) await killFirefox(firefox, profile);
    else assert.equal(before, left.total, what);
  }
  assert.ok(within > 0, 'some were killed after a stored part');
  t.diagnostic(`${rounds} kills, ${within} after a stored part`);
});
