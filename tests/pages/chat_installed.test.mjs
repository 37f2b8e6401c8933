// The chat page as an installed application: the browsers' installation requirements, the button, and the data that the
// system passes to the page. In Chromium, with a fake engine.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { shown, talk, untilKept } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, url: siteUrl, openPage } = useChat('chat-installed');
/** @typedef {import('playwright-core').Page} Page */

/** The text in the message field. Evaluated in the page. */
const field = "document.querySelector('#prompt').value";

/** @returns {any} */
const manifest = () => JSON.parse(readFileSync(resolve(site, 'manifest.webmanifest'), 'utf8'));

test('each icon in the manifest is a file of the given size', () => {
  const { icons, shortcuts } = manifest();
  const all = [...icons, ...shortcuts.flatMap((/** @type {any} */ one) => one.icons)];
  const drawn = all.filter(({ type }) => type === 'image/png');
  assert.deepEqual(new Set(drawn.map(({ sizes }) => sizes)), new Set(['192x192', '512x512']));
  assert.equal(drawn.filter(({ purpose }) => purpose === 'maskable').length, 2);
  for (const { src, sizes } of drawn) {
    const bytes = readFileSync(resolve(site, src));
    assert.equal(bytes.toString('latin1', 1, 4), 'PNG', src);
    assert.equal(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, sizes, src);
  }
});

test('the manifest, its icons and its start URL are cached for offline use', () => {
  const worker = readFileSync(resolve(site, 'service_worker.js'), 'utf8');
  const { icons, start_url: start } = manifest();
  const files = ['manifest.webmanifest', start, ...icons.map((/** @type {any} */ one) => one.src)];
  for (const file of files) assert.ok(worker.includes(JSON.stringify(file)), file);
});

test('Chromium finds no reason why the page cannot be installed', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const session = await page.context().newCDPSession(page);
  const { url, errors } = await session.send('Page.getAppManifest');
  assert.equal(url, `${siteUrl()}manifest.webmanifest`);
  assert.deepEqual(errors, []);
  const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
  const ids = installabilityErrors.map(({ errorId }) => errorId);
  assert.deepEqual(
    ids.filter((id) => id !== 'in-incognito'), // all profiles in tests are incognito
    [],
  );
  await page.setViewportSize({ width: 512, height: 512 });
  await page.goto(`${siteUrl()}icon-maskable-512.png`);
  await takePicture(page, 'chat-icon-maskable');
});

/** Runs in the page: simulates a browser that offers to install it. */
const offer = `
  globalThis.prompted = 0;
  dispatchEvent(Object.assign(new Event('beforeinstallprompt', { cancelable: true }), {
    prompt: async () => { prompted++; },
  }))`;

test('Install is in the settings if the browser supports it, and prompts once', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const install = page.getByRole('button', { name: 'Install' });
  await page.click('#open-settings');
  assert.equal(await install.count(), 0);
  assert.equal(await page.evaluate(offer), false, 'the browser does not prompt itself');
  await install.waitFor();
  await takePicture(page, 'chat-install');
  await install.click();
  await install.waitFor({ state: 'hidden' });
  assert.equal(await page.evaluate('prompted'), 1);
  await page.evaluate(offer);
  await install.waitFor();
  await page.evaluate("dispatchEvent(new Event('appinstalled'))");
  await install.waitFor({ state: 'hidden' });
});

test('shared text is put into the field of a new conversation once, and is not sent', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'Before', 'An answer.');
  await untilKept(page, ({ turns }) => turns.length === 2);
  const text = 'A <b>text</b> & “more”';
  const query = new URLSearchParams({ title: 'A page', text, link: 'https://example.org/?a=b' });
  await page.goto(`${siteUrl()}?${query}`);
  await page.waitForSelector('#send:not([disabled])');
  const wanted = `A page\n${text}\nhttps://example.org/?a=b`;
  assert.equal(await page.inputValue('#prompt'), wanted);
  assert.deepEqual(await shown(page), []);
  assert.equal(new URL(page.url()).search, '');
  await untilKept(page, ({ drafts }) => drafts.some((one) => one.text === wanted));
  await page.reload();
  await untilTrue(page, `${field} !== ''`);
  assert.equal(await page.inputValue('#prompt'), wanted);
  const { conversations, turns } = await untilKept(page, ({ drafts }) => drafts.length === 1);
  assert.deepEqual([conversations.length, turns.length], [2, 2]);
  assert.deepEqual(await page.evaluate('asked'), []);
});

test('the shortcut starts a new conversation; other query parameters are kept', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'Before', 'An answer.');
  await page.goto(`${siteUrl()}?new&other=1`);
  await page.waitForSelector('#send:not([disabled])');
  assert.deepEqual(await shown(page), []);
  assert.equal(new URL(page.url()).search, '?other=1');
  assert.equal(await page.inputValue('#prompt'), '');
});

/** Replaces the system's launch queue: it keeps opened files until the page takes them. */
const queue = `Object.defineProperty(globalThis, 'launchQueue', { value: { setConsumer: (consumer) => consumer({
  files: [{ getFile: async () => new File(['Some notes'], 'notes.md') }],
}) } })`;

test('a file opened with the page is attached', {
  skip,
}, async (t) => {
  const page = await openPage(t, { script: queue });
  await page.locator('.media.attached .chip summary', { hasText: 'notes.md' }).click();
  await page.locator('.chip pre', { hasText: 'Some notes' }).waitFor();
});

test('the window has the colours that the user chose', { skip }, async (t) => {
  const page = await openPage(t, { options: { colorScheme: 'light' } });
  const colour = `[...document.querySelectorAll('meta[name=theme-color]')]
    .filter(({ media }) => matchMedia(media).matches).map(({ content }) => content).join()`;
  const dark = '#161513';
  for (const [theme, wanted] of [
    ['', '#faf9f7'],
    ['dark', dark],
    ['light', '#faf9f7'],
  ]) {
    await page.click('#open-settings');
    await page.selectOption('#theme', theme);
    await page.getByRole('button', { name: 'Done' }).click();
    await untilTrue(page, `${colour} === '${wanted}'`); // the colour is stored before it is shown
  }
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.equal(await page.evaluate(colour), '#faf9f7', 'the user chose light');
});
