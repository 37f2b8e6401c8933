// The chat page with a fake engine, whose output and timing the test controls.

import assert from 'node:assert/strict';
import { PATIENCE_MS } from './browsers.mjs';
import { keepNotices } from './chat_steps.mjs';

/**
 * Replaces the package. Tests use `say`, `call`, `end` and `fail` to produce answers; `asked`,
 * `bodies`, `counts` and `loaded` record the page's requests. Tokens are counted after the promise
 * `untilCounted`. With `summary`, requests that are not streamed get that answer immediately. With
 * `answersByItself`, words arrive automatically one by one, after the calls in `callsByItself` if
 * the request has tools. A token is a word.
 */
export const stubEngine = `
  export class WickError extends Error {
    constructor(code, message) { super(message); this.code = code; }
  }
  let wake = () => {};
  const events = [];
  const happen = (event) => { events.push(event); wake(); };
  Object.assign(globalThis, { asked: [], bodies: [], loaded: [], closedEngines: [], dropped: [] });
  globalThis.contextSize ??= 4096;
  globalThis.say = (content) => happen({ content });
  globalThis.think = (reasoning) => happen({ reasoning });
  globalThis.call = (name, json, id = 'c1', index = 0) => happen({ tool_calls:
    [{ index, id, type: 'function', function: { name, arguments: json } }] });
  globalThis.end = (reason = 'stop') => happen({ reason });
  globalThis.fail = (code) => happen({ error: new WickError(code, 'The test requires it') });
  const countWords = (text) => text.split(/\\s+/).filter(Boolean).length;
  const count = (input) => typeof input === 'string' ? countWords(input)
    : input.reduce((sum, { content }) => sum + countWords(content), 0);
  async function* answer(signal, tokens, { tools, messages }) {
    signal?.throwIfAborted();
    const aborted = new Promise((_, fail) =>
      signal?.addEventListener('abort', () => fail(signal.reason)));
    aborted.catch(() => {});
    const mayCall = globalThis.callsByItself && tools && messages.at(-1).role !== 'tool';
    const own = mayCall ? callsOf(globalThis.callsByItself)
      : globalThis.answersByItself ? wordsOf(globalThis.answersByItself) : events;
    for (let rest = Infinity; ; rest--) {
      while (own.length === 0) await Promise.race([aborted, new Promise((settle) => { wake = settle; })]);
      if (own !== events) await Promise.race([aborted, new Promise((settle) => setTimeout(settle, 15))]);
      const { content, reasoning, tool_calls, reason, error } = own.shift();
      if (error) throw error;
      yield { choices: [{ index: 0, delta: { content, reasoning_content: reasoning, tool_calls }, finish_reason: reason ?? null }] };
      if (reason) return;
    }
  }
  const wordsOf = (text) => [...text.split(/(?= )/).map((content) => ({ content })), { reason: 'stop' }];
  const callsOf = (calls) => [{ content: 'I compute. ' }, ...calls.map(([name, json], index) => ({ tool_calls:
    [{ index, id: 'c' + index, type: 'function', function: { name, arguments: json } }] })), { reason: 'tool_calls' }];
  const none = async () => { throw new WickError('NOT_FOUND', 'none'); };
  let sessions = 0;
  const makeSession = () => {
    let tokens = [];
    return {
      id: ++sessions, tokens: async () => tokens, append: async () => {}, close: async () => {},
      drop: async (from, to) => { dropped.push([from, to]); },
    };
  };
  export const createEngine = async (options) => {
    if (options.directoryOnly) return { info: async () => ({}), inspect: none, close: async () => {} };
    loaded.push(options.url ?? options.model ?? options.file?.[0]?.name);
    await globalThis.holdLoading?.(options);
    return {
      info: async () => ({ shape: null, contextSize: globalThis.contextSize, threads: 1, kernels: '', sharing: 'none' }),
      kvStats: none, loadState: none, inspect: none, saveState: none,
      countTokens: async (input) => {
        globalThis.counts = (globalThis.counts ?? 0) + 1;
        await globalThis.untilCounted;
        return count(input);
      },
      tokenize: async (input) => Array.from({ length: count(input) }, (_, index) => index),
      applyTemplate: async (messages) => messages.map(({ content }) => content).join(' '),
      createSession: async () => makeSession(),
      generate: () => ({ text: async () => 'Hello' }),
      close: async () => { closedEngines.push(options.url ?? options.model ?? options.file?.[0]?.name); },
      chat: { completions: { create: async (body) => {
        globalThis.prefill = body.onPrefill;
        asked.push(body.messages.at(-1).content);
        bodies.push({ ...body, signal: undefined, onPrefill: undefined, session: body.session?.id });
        const tokens = count(body.messages);
        if (tokens >= globalThis.contextSize) {
          throw new WickError('PROMPT_TOO_LONG', 'The prompt has ' + tokens + ' tokens, the context ' + globalThis.contextSize + ' (option contextSize)');
        }
        if (!body.stream && globalThis.summary !== undefined && body.max_tokens > 1)
          return { choices: [{ message: { content: globalThis.summary } }] };
        return answer(body.signal, tokens, body);
      } } },
    };
  };`;

/**
 * Replaces the model store: models are available immediately, unless \`holdDownload\` waits.
 * \`fetched\` lists downloaded models, \`parts\` contains the entries of partially stored ones.
 */
export const stubModels = `
  globalThis.fetched = [];
  const kept = () => JSON.parse(localStorage.getItem('stub-kept') ?? '[]');
  const nameOf = (url) => url.split('/').at(-1);
  const entryOf = (url) => ({ id: url, name: nameOf(url), urls: [url], size: 1000, storedBytes: 1000, isWhole: true, fingerprint: url });
  class Store extends EventTarget {
    kind = 'memory';
    has = async (name) => kept().includes(new URL(name, document.baseURI).href);
    list = async () => [...kept().map(entryOf), ...(globalThis.parts ?? [])];
    get = async (url, options) => {
      fetched.push(url);
      await globalThis.holdDownload?.(url, options);
      localStorage.setItem('stub-kept', JSON.stringify([...kept(), url]));
      return entryOf(url);
    };
    import = async (file) => entryOf(file.name);
    delete = async (url) => {
      localStorage.setItem('stub-kept', JSON.stringify(kept().filter((one) => one !== url)));
      return true;
    };
    estimate = async () => ({ usedBytes: 0, freeBytes: 1e9, isPersisted: false });
  }
  export const openModels = async () => {
    await globalThis.holdModels?.();
    return new Store();
  };`;

/** Runs in the page: simulates a device on battery power. */
export const onBattery = `Navigator.prototype.getBattery = async () =>
  Object.assign(new EventTarget(), { charging: false });`;

/** Runs in the page: its databases open half a second later. */
export const opensLate = `{
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (...args) {
    const request = open.apply(this, args);
    const add = request.addEventListener;
    request.addEventListener = (type, listen, ...more) => {
      const late = (event) => setTimeout(listen, 500, event);
      add.call(request, type, type === 'success' ? late : listen, ...more);
    };
    return request;
  };
}`;

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').BrowserContext} BrowserContext */

/**
 * @param {BrowserContext} context
 * @param {string} url
 * @param {{script?: string, isReady?: boolean, problems?: string[]}} [options] `script` runs before the page's scripts
 */
export async function openStub(context, url, { script = '', isReady = true, problems = [] } = {}) {
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
  await page.addInitScript(keepNotices);
  await page.addInitScript(onBattery); // no answer begins before Enter
  await page.addInitScript(script);
  await page.route('**/wick-llm/index.js', (route) =>
    route.fulfill({ contentType: 'text/javascript', body: stubEngine }),
  );
  await page.route('**/wick-llm/models.js', (route) =>
    route.fulfill({ contentType: 'text/javascript', body: stubModels }),
  );
  await page.goto(url);
  if (isReady) await page.waitForSelector('#send:not([disabled])');
  return page;
}

/** Loads the page's code that offers a larger model after an answer, and its imports. @param {string} url */
export const isLateCode = (url) => /\/(model_offer|rendering|chunk)-\w+\.js$/.test(url);

/** @param {Page} page @param {string} text */
export async function ask(page, text) {
  await page.fill('#prompt', text);
  await page.click('#send');
  await page.locator('.message.user .body', { hasText: text }).last().waitFor();
}

/** @param {Page} page @param {string} question @param {string} answer */
export async function talk(page, question, answer) {
  await ask(page, question);
  await page.evaluate(`say(${JSON.stringify(answer)}); end()`);
  await page.locator('.message.assistant .body', { hasText: answer }).last().waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
}

/** @param {Page} page @returns {Promise<string[]>} */
export const shown = (page) => page.locator('.message .body').allInnerTexts();

/**
 * Waits until all records are stored.
 * @param {Page} page
 * @param {(kept: {conversations: any[], turns: any[], drafts: any[]}) => boolean} condition
 */
export async function untilKept(page, condition) {
  let pauseMs = 20;
  for (const end = Date.now() + PATIENCE_MS; ; pauseMs = Math.min(200, pauseMs * 1.5)) {
    const kept = await readAll(page);
    if (condition(kept)) return kept;
    assert.ok(Date.now() < end, `stored records are ${JSON.stringify(kept)}`);
    await new Promise((settle) => setTimeout(settle, pauseMs));
  }
}

/**
 * @param {Page} page
 * @param {string} database
 * @param {string[]} names names of object stores
 * @returns {Promise<any[][]>} the rows of each
 */
export const readStores = (page, database, names) =>
  page.evaluate(
    async ([name, stores]) => {
      /** @type {IDBDatabase} */
      const db = await new Promise((settle, fail) => {
        const opening = indexedDB.open(name);
        opening.onsuccess = () => settle(opening.result);
        opening.onerror = fail;
      });
      const read = (/** @type {string} */ store) =>
        new Promise((settle, fail) => {
          const reading = db.transaction(store).objectStore(store).getAll();
          reading.onsuccess = () => settle(reading.result);
          reading.onerror = fail;
        });
      const found = /** @type {any[][]} */ (await Promise.all(stores.map(read)));
      db.close();
      return found;
    },
    /** @type {const} */ ([database, names]),
  );

/**
 * Selects an item in a message's menu.
 * @param {import('playwright-core').Locator} message
 * @param {'.compare' | '.forget' | '.open-words'} row
 */
export async function chooseRow(message, row) {
  await message.locator('.open-menu').click();
  await message.locator(row).click();
}

/** Locates the last answer. @param {Page} page */
export const lastAnswer = (page) => page.locator('.message.assistant:has(.open-menu)').last();

/** Reads the page's database. @param {Page} page @returns {Promise<{conversations: any[], turns: any[], drafts: any[]}>} */
export async function readAll(page) {
  const names = ['conversations', 'turns', 'drafts'];
  const [conversations, turns, drafts] = await readStores(page, 'wick-chat', names);
  return { conversations, turns, drafts };
}

/** Runs in the page: records the lowest value of the progress bars shown for books. */
export const watchBars = `
  globalThis.leastBar = Infinity;
  new MutationObserver(() => {
    for (const bar of document.querySelectorAll('#books progress'))
      if (bar.max > 1) leastBar = Math.min(leastBar, bar.value);
  }).observe(document, { childList: true, subtree: true, attributes: true });`;
