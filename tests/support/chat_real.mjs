// The chat page with the package's real engine and the demo model. In the page, the variable
// `engine` is the engine.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { PATIENCE_MS } from './browsers.mjs';
import { keepNotices } from './chat_steps.mjs';
import { root } from './locate.mjs';
import { untilTrue } from './package.mjs';

/** @typedef {import('playwright-core').Page} Page */

/** Replaces the package's entry point. @param {string} entry the URL of the real one */
export const capturing = (entry) => `
  import * as own from '${entry}';
  export * from '${entry}';
  Object.assign(globalThis, { engines: [], created: [] });
  export const createEngine = async (options) => {
    const made = await own.createEngine({ ...options, ...globalThis.engineOptions });
    globalThis.created.push({ ...options, signal: undefined, onProgress: undefined });
    if (options.directoryOnly) return made;
    globalThis.engine = made;
    globalThis.engines.push(made);
    return made;
  };`;

/**
 * Runs in the page: makes the engine answer streamed requests with this text. Other requests reach the
 * engine; those with a grammar are also recorded in `again`.
 * @param {string} said an expression
 */
export const saying = (said) => `
  globalThis.again = [];
  const timer = setInterval(() => {
    if (!globalThis.engine) return;
    clearInterval(timer);
    const words = ${said};
    const { completions } = engine.chat;
    const own = completions.create.bind(completions);
    completions.create = async (body) => {
      if (!body.stream) { if (body.grammar) again.push(body); return own(body); }
      return (async function* () {
        for (let index = 0; index < (body.n ?? 1); index++)
          for (const content of words.match(/.{1,3}/gs))
            yield { choices: [{ index, delta: { content }, finish_reason: null }] };
        for (let index = 0; index < (body.n ?? 1); index++)
          yield { choices: [{ index, delta: {}, finish_reason: 'stop' }] };
      })();
    };
    globalThis.isSaying = true;
  }, 5);`;

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @param {{script?: string, options?: import('playwright-core').BrowserContextOptions, problems?: string[]}} [how] `script` runs before the
 *   page's scripts
 */
export async function openReal(browser, url, { script = '', options = {}, problems = [] } = {}) {
  const context = await browser.newContext({ ...options, serviceWorkers: 'block' });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
  await page.addInitScript(keepNotices);
  await page.addInitScript(script);
  await page.route(
    (address) => address.pathname.endsWith('/wick-llm/index.js') && address.search === '',
    (route) => route.fulfill({ contentType: 'text/javascript', body: capturing('./index.js?own') }),
  );
  await page.goto(url);
  await page.waitForSelector('#send:not([disabled])');
  return page;
}

/** @param {Page} page @param {string} text */
export async function askReal(page, text) {
  const answers = page.locator('.message.assistant footer');
  const before = await answers.count();
  await page.fill('#prompt', text);
  await page.keyboard.press('Enter');
  await answers.nth(before).waitFor();
  return (await page.locator('.message.assistant .body').last().innerText()).trim();
}

/** @param {Page} page @param {number} temperature */
export async function setTemperature(page, temperature) {
  await page.click('#open-settings');
  await page.fill('[name=temperature]', String(temperature));
  await page.click('#settings-form [value=save]');
}

/** Waits until all of the engine's pages can be evicted. @param {Page} page */
export const untilAllReturned = (page) =>
  untilTrue(
    page,
    `engine.kvStats().then(({ sessions, pages, requests }) => sessions === 0 && requests.running === 0
      && requests.waiting === 0 && pages.free + pages.cached === pages.all)`,
  );

/**
 * An expression to evaluate in a page: settles once the page has probably loaded the list of known words. The page does not
 * report this, so the same file is loaded again, which also takes longer on a busy machine.
 */
export const areWordsRead = `(async () => {
  const loaded = (end) => performance.getEntriesByType('resource').map(({ name, responseEnd }) => responseEnd > 0 && name)
    .filter((name) => name && end.test(name));
  const [[list], code] = [loaded(/-words\\.txt$/), loaded(/\\/words-\\w+\\.js$/)];
  if (!list || code.length === 0) return false;
  const text = fetch(list).then((reply) => reply.text());
  await Promise.all([text, ...code.map((name) => import(name))]);
  return true;
})()`;

/**
 * Waits for a value in the developer panel.
 * @param {Page} page
 * @param {string} name
 * @param {RegExp} text
 */
export const untilFact = (page, name, text) =>
  page.locator(`#kv-facts dd[data-fact="${name}"]`, { hasText: text }).waitFor();

/** Writes the demo model without its template. @param {string} path */
export function writePlainModel(path) {
  const model = readFileSync(resolve(root, 'examples/models/wick-2.6m-q8_0.gguf'));
  const at = model.indexOf('tokenizer.chat_template');
  assert.ok(at > 0);
  model.write('tokenizer.chat_templatX', at);
  writeFileSync(path, model);
}
