// Takes screenshots of the chat page's states for review: each state with the light theme, with the
// dark theme and on a phone, side by side in one file.
//   node tools/chat_states.mjs [--folder build/chat] [--to build/screenshots/states] [STATE ...]

import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchOwnChromium } from '../tests/support/browsers.mjs';
import { openReal } from '../tests/support/chat_real.mjs';
import { ask, chooseRow, lastAnswer, openStub, talk } from '../tests/support/chat_stub.mjs';
import { root } from '../tests/support/locate.mjs';
import { chooseInMenu, openDeveloper } from '../tests/support/page_menu.mjs';
import { serve } from './serve.mjs';

/** @typedef {import('playwright-core').Page} Page */
/**
 * `isReal`: with the built-in model instead of a fake engine; `script` runs before the page's scripts.
 * @typedef {{show?: (page: Page) => Promise<unknown>, isReal?: boolean, isReady?: boolean, script?:
 * string}} State
 */

const wide = { viewport: { width: 1180, height: 800 } };
/** @type {Record<string, import('playwright-core').BrowserContextOptions>} */
const looks = {
  light: { ...wide, colorScheme: 'light' },
  dark: { ...wide, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
};

const rich = `Here is a **table**, some code and a formula.

| Animal | Legs |
|---|---|
| Fox | 4 |
| Bird | 2 |

\`\`\`js
const sum = (a, b) => a + b; // as usual
\`\`\`

$$\\\\int_0^1 x^2 \\\\, dx = \\\\frac13$$

> A quotation, and a list:

1. One
2. Two`;

/** Prevents loading from ending. */
const holds = 'globalThis.holdLoading = () => new Promise(() => {});';
const loads = `globalThis.holdLoading = ({ onProgress }) => new Promise(() => {
  setInterval(onProgress, 100, { loaded: 1.2e6, total: 4.5e6, bytesPerSecond: 2e6, secondsLeft: 1.7, phase: 'loading' });
});`;
const fails = `globalThis.holdLoading = async () => {
  throw new Error("The engine's worker could not be started");
};`;
const noStorage = `for (const name of ['localStorage', 'indexedDB', 'caches'])
  Object.defineProperty(globalThis, name, { get: () => { throw new DOMException('denied', 'SecurityError'); } });`;

/** Sends with the button, because Enter starts a new line on touch screens. @param {Page} page @param {string} text */
async function askReal(page, text) {
  const answers = page.locator('.message.assistant footer');
  const before = await answers.count();
  await page.fill('#prompt', text);
  await page.click('#send');
  await answers.nth(before).waitFor();
}

/** @param {Page} page @param {string} name of a button */
const press = (page, name) => page.getByRole('button', { name, exact: true }).click();

/** @type {Record<string, State>} */
const states = {
  welcome: { isReal: true },
  answer: { isReal: true, show: (page) => askReal(page, 'What is Wick?') },
  'answer-menu': {
    isReal: true,
    async show(page) {
      await askReal(page, 'What is Wick?');
      await askReal(page, 'Tell me a story about a fox.');
      await lastAnswer(page).locator('.open-menu').click();
    },
  },
  variants: {
    isReal: true,
    async show(page) {
      await askReal(page, 'Tell me a story about a fox.');
      await chooseRow(lastAnswer(page), '.compare');
      await page.getByText('Use this answer').nth(2).waitFor();
    },
  },
  words: {
    isReal: true,
    async show(page) {
      await askReal(page, 'Tell me a story about a fox.');
      await chooseRow(lastAnswer(page), '.open-words');
      await page.waitForTimeout(1500);
    },
  },
  memory: {
    isReal: true,
    async show(page) {
      await askReal(page, 'Tell me a story about a fox.');
      await chooseInMenu(page, '#open-memory');
      await page.waitForTimeout(500);
    },
  },
  developer: {
    isReal: true,
    async show(page) {
      await askReal(page, 'What is Wick?');
      await openDeveloper(page);
      await page.waitForTimeout(500);
    },
  },
  menu: { show: (page) => page.click('#open-more') },
  settings: { isReal: true, show: (page) => page.click('#open-settings') },
  'settings-end': {
    isReal: true,
    async show(page) {
      await page.click('#open-settings');
      await page.locator('#facts').scrollIntoViewIfNeeded();
    },
  },
  models: { show: (page) => page.click('#choose-model') },
  keyboard: { show: (page) => chooseInMenu(page, '#open-shortcuts') },
  books: {
    isReal: true,
    async show(page) {
      await chooseInMenu(page, '#open-books');
      const buffer = Buffer.from('The fox lives in a small house by the river.\n'.repeat(40));
      const file = { name: 'foxes.txt', mimeType: 'text/plain', buffer };
      await page.locator('#book-file').setInputFiles(file);
      await page.getByRole('button', { name: 'Ask: foxes.txt' }).waitFor();
    },
  },
  starting: { isReady: false, script: holds },
  loading: { isReady: false, script: loads },
  queued: {
    ...{ isReady: false, script: loads },
    async show(page) {
      await page.locator('#open-more svg').waitFor();
      await page.fill('#prompt', 'What is a fork?');
      await page.click('#send');
      await page.locator('#notice:not([hidden])').waitFor();
    },
  },
  streaming: {
    async show(page) {
      await ask(page, 'Tell me about foxes.');
      await page.evaluate(
        `for (const word of 'Foxes are small and clever'.split(' ')) say(word + ' ')`,
      );
      await page.getByText('clever').waitFor();
    },
  },
  reasoning: {
    async show(page) {
      await ask(page, 'How many legs have two foxes?');
      await page.evaluate(
        `think('A fox has four legs. Two foxes have eight.'); say('Eight.'); end()`,
      );
      await page.locator('#log[aria-busy=false]').waitFor();
    },
  },
  tools: {
    async show(page) {
      await page.click('#open-settings');
      await page.getByLabel('Let the model use a clock and a calculator').check();
      await press(page, 'Done');
      await ask(page, 'What is 17 * 23?');
      await page.evaluate(`call('calculator', '{"expression":"17 * 23"}'); end('tool_calls')`);
      await page.locator('.call-result', { hasText: '391' }).waitFor();
      await page.evaluate(`say('It is 391.'); end()`);
      await page.locator('#log[aria-busy=false]').waitFor();
    },
  },
  rich: {
    async show(page) {
      await ask(page, 'Show me what you can draw.');
      await page.evaluate(`say(${JSON.stringify(rich.replaceAll('\\\\', '\\'))}); end()`);
      await page.locator('#log[aria-busy=false]').waitFor();
      await page.waitForTimeout(1500);
    },
  },
  offer: { show: (page) => talk(page, 'Who was king in 1703?', 'I do not know that.') },
  failed: {
    async show(page) {
      await ask(page, 'Hello');
      await page.evaluate(`fail('WORKER_CRASHED')`);
      await page.locator('#problem:not([hidden])').waitFor();
    },
  },
  'no-storage': { script: noStorage },
  'no-model': {
    ...{ isReady: false, script: fails },
    show: (page) => page.locator('#problem:not([hidden])').waitFor(),
  },
  edit: {
    async show(page) {
      await talk(page, 'What is a fox?', 'A small animal with a bushy tail.');
      await page.locator('.message.user').hover();
      await page.locator('.message.user').getByRole('button', { name: 'Edit' }).click();
    },
  },
  list: {
    async show(page) {
      for (const [question, answer] of [
        ['What is a fox?', 'A small animal with a bushy tail.'],
        ['Write a letter to my landlord about the broken heating in the kitchen', 'Dear Sir'],
        ['Hello', 'Good day.'],
      ]) {
        await talk(page, question, answer);
        await page.click('#new-chat');
      }
      if (!(await page.locator('#conversation-list').isVisible())) await page.click('#open-list');
      await page.getByRole('button', { name: 'Actions for Hello' }).click();
    },
  },
  full: {
    script: 'globalThis.contextSize = 60;',
    async show(page) {
      const words = 'The fox and the lamp went to the river and came back';
      await talk(page, `First: ${words}`, `${words}.`);
      await talk(page, `Second: ${words}`, `${words}.`);
      await page.fill('#prompt', `Third: ${words}`);
      await page.click('#send');
      await page.locator('#context-note:not([hidden])').waitFor();
    },
  },
};

/** @param {import('playwright-core').Browser} browser @param {string} url @param {State} state @param {string} look */
async function takeOne(browser, url, { show, isReal, isReady = true, script = '' }, look) {
  const context = isReal
    ? (await openReal(browser, url, { script, options: looks[look] })).context()
    : await browser.newContext({ ...looks[look], serviceWorkers: 'block' });
  try {
    const [page = await openStub(context, url, { script, isReady })] = context.pages();
    context.setDefaultTimeout(30_000);
    await show?.(page);
    await page.waitForTimeout(400);
    return await page.screenshot();
  } finally {
    await context.close();
  }
}

/** @param {import('playwright-core').Browser} browser @param {Buffer[]} pictures @param {string} path */
async function join(browser, pictures, path) {
  const page = await browser.newPage({ viewport: { width: 2790, height: 800 } });
  const images = pictures.map(
    (one) => `<img src="data:image/png;base64,${one.toString('base64')}">`,
  );
  await page.setContent(`<body style="margin: 0; display: flex; gap: 20px">${images.join('')}`);
  await page.screenshot({ path });
  await page.close();
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string', default: 'build/chat' },
    to: { type: 'string', default: 'build/screenshots/states' },
  },
});
const folder = resolve(root, values.to);
mkdirSync(folder, { recursive: true });
const server = await serve({ root: resolve(root, values.folder) });
const browser = await launchOwnChromium();
for (const [name, state] of Object.entries(states)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  try {
    const pictures = [];
    for (const look of Object.keys(looks))
      pictures.push(await takeOne(browser, server.url, state, look));
    await join(browser, pictures, resolve(folder, `${name}.png`));
    console.log(name);
  } catch (error) {
    console.error(`${name}: ${error}`);
    process.exitCode = 1;
  }
}
await browser.close();
await server.close();
