// Tabs that share an engine: one download for all of them, the same output as without sharing, and a
// leading tab that is closed. Runs in Chromium, and in a shorter version in Firefox.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, hasCode, openEngine, waitUntil } from '../support/package.mjs';

const { skip } = locate('chromium');
const model = '/dist/models/wick-2.6m-q4_0.gguf';
const modelPath = resolve(root, 'examples/models/wick-2.6m-q4_0.gguf');
const story = { temperature: 0, maxTokens: 40, ignoreEnd: true };
/** More tokens than are buffered for a reader, so a request still runs until it is read. */
const long = { temperature: 1, seed: 7, maxTokens: 1900, ignoreEnd: true, speculation: false };

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;
/** @type {string[]} */
const requested = [];

before(async () => {
  server = await serve({
    root: {
      '/': resolve(root, 'tests/support/empty_page'),
      '/dist/': dist,
      '/dist/models/': resolve(root, 'examples/models'),
    },
    onRequest: (path) => requested.push(path),
  });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @typedef {{evaluate: (body: any, argument?: any) => Promise<any>, close: () => Promise<void>}} Tab */

/** Runs in a tab: functions for the tests, and an engine. @param {{model: string, shared?: string}} wanted */
async function open({ model, shared }) {
  const path = '/dist/index.js';
  const { createEngine } = await import(path);
  const tab = /** @type {any} */ (globalThis);
  const engine = await createEngine({ url: model, shared, threads: 1, cache: false });
  tab.engine = engine;
  tab.say = (/** @type {string} */ prompt, /** @type {any} */ options) =>
    engine.generate(prompt, options).text();
  // reads the beginning of a generation; tab.rest() reads the rest
  tab.begin = async (/** @type {any} */ generation) => {
    const pieces = generation[Symbol.asyncIterator]();
    let text = (await pieces.next()).value;
    tab.rest = async () => {
      for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
        text += next.value;
      }
      return text;
    };
  };
  return (await engine.info()).sharing;
}

/** @param {string} prompt @param {object} options @returns {string} code */
const saying = (prompt, options) => `say(${JSON.stringify(prompt)}, ${JSON.stringify(options)})`;

/** @param {string} call code @returns {string} the same, but returns an error's code instead of throwing */
const tried = (call) => `${call}.then((text) => text, (error) => error.code ?? String(error))`;

/** @param {import('node:test').TestContext} t @returns {Promise<() => Promise<Tab>>} opens tabs in one browser */
async function newBrowser(t) {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext();
  t.after(() => context.close());
  return async () => {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    return page;
  };
}

/** Waits until cancelled requests and the sessions of a closed tab are released. @param {Tab} tab */
async function waitUntilEmpty(tab) {
  await waitUntil(async () => {
    const { requests, kv } = await tab.evaluate('engine.stats()');
    return requests.running + requests.waiting + kv.sessions === 0;
  }, 'an engine without requests and sessions');
}

const downloads = () => requested.filter((path) => path === model).length;

test('two tabs load one model, and give the same output at the same time as alone', {
  skip,
}, async (t) => {
  const newTab = await newBrowser(t);
  const prompts = ['Once upon a time', 'The little fox'];
  const alone = await newTab();
  assert.equal(await alone.evaluate(open, { model }), 'none');
  const texts = [];
  for (const prompt of prompts) texts.push(await alone.evaluate(saying(prompt, story)));
  const tabs = [await newTab(), await newTab()];
  const before = downloads();
  const roles = await Promise.all(tabs.map((tab) => tab.evaluate(open, { model, shared: 'two' })));
  // each tab starts a worker while the tabs agree; the follower's is ended
  assert.deepEqual(
    tabs.map((tab) => /** @type {import('playwright-core').Page} */ (tab).workers().length),
    roles.map((role) => (role === 'leader' ? 1 : 0)),
  );
  assert.deepEqual(roles.sort(), ['follower', 'leader']);
  assert.equal(downloads() - before, 1);
  const said = await Promise.all(
    tabs.map((tab, index) => tab.evaluate(saying(prompts[index], story))),
  );
  assert.deepEqual(said, texts);
  // the same results for completions, chat, saved states and errors
  const other = await tabs[0].evaluate(`(async () => {
    const many = engine.generateMany('One day', { n: 2, maxTokens: 8, seed: 1 });
    const texts = await Promise.all(many.map((one) => one.text()));
    const session = await engine.createSession();
    await session.append('A boat');
    const { session: again } = await engine.loadState(await session.save());
    const same = String(await again.tokens()) === String(await session.tokens());
    const going = again.prompt('', ${JSON.stringify(long)})[Symbol.asyncIterator]();
    await going.next();
    const busy = await again.close().catch((error) => error.code);
    await going.return();
    await again.close();
    const closed = await again.tokens().catch((error) => error.code);
    const prompt = 'word '.repeat(9999);
    return { texts, same, busy, closed, refused: await ${tried('say(prompt)')} };
  })()`);
  assert.equal(new Set(other.texts).size, 2);
  assert.deepEqual(
    { ...other, texts: 0 },
    {
      texts: 0,
      same: true,
      busy: 'BUSY',
      closed: 'SEQ',
      refused: 'PROMPT_TOO_LONG',
    },
  );
});

test('a different name or a different model is a different engine', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const other = '/dist/models/wick-2.6m-q8_0.gguf';
  for (const wanted of [
    { model, shared: 'one' },
    { model, shared: 'other' },
    { model: other, shared: 'one' },
  ]) {
    assert.equal(await (await newTab()).evaluate(open, wanted), 'leader');
  }
});

test('a closed tab leaves no requests and sessions', { skip: skip || !isFull }, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = [await newTab(), await newTab()];
  await first.evaluate(open, { model, shared: 'closed' });
  await second.evaluate(open, { model, shared: 'closed' });
  await second.evaluate(`(async () => {
    const session = await engine.createSession();
    await session.append('Once upon a time');
    await session.fork();
    await begin(engine.generate('A', ${JSON.stringify(long)}));
    await begin(session.prompt(' there', ${JSON.stringify(long)}));
  })()`);
  const { requests, kv } = await first.evaluate('engine.stats()');
  assert.deepEqual([requests.running, kv.sessions], [2, 2]);
  await second.close();
  await waitUntilEmpty(first);
});

test('when the leader is closed another tab takes over', { skip }, async (t) => {
  const newTab = await newBrowser(t);
  const alone = await newTab();
  await alone.evaluate(open, { model });
  const text = await alone.evaluate(saying('Once upon a time', long));
  const short = await alone.evaluate(saying('The little fox', story));
  const tabs = [await newTab(), await newTab(), await newTab()];
  for (const tab of tabs) await tab.evaluate(open, { model, shared: 'over' });
  const [leader, heir, third] = tabs;
  // one tab has a request that can be restarted, the other one a request on a session, which cannot
  await heir.evaluate(`begin(engine.generate('Once upon a time', ${JSON.stringify(long)}))`);
  await third.evaluate(`(async () => {
    globalThis.session = await engine.createSession();
    await begin(session.prompt('Once upon a time', ${JSON.stringify(long)}));
  })()`);
  const before = downloads();
  await leader.close();
  assert.equal(await heir.evaluate('rest()'), text);
  assert.equal(await third.evaluate(tried('rest()')), 'LEADER_GONE');
  assert.equal(await third.evaluate(tried('session.tokens()')), 'LEADER_GONE');
  const closed = "session.close().then(() => 'closed')"; // its pages were lost with the leader
  for (let i = 0; i < 2; i++) assert.equal(await third.evaluate(tried(closed)), 'closed');
  for (const tab of [third, heir]) {
    assert.equal(await tab.evaluate(saying('The little fox', story)), short);
  }
  assert.equal(downloads() - before, 1);
  const roles = await Promise.all(
    [heir, third].map((tab) => tab.evaluate('engine.info().then((info) => info.sharing)')),
  );
  assert.deepEqual(roles, ['leader', 'follower']);
  await waitUntilEmpty(third);
});

test('a new leader restores the state that the page saved', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = [await newTab(), await newTab()];
  await first.evaluate(open, { model, shared: 'kept' });
  await second.evaluate(`(async () => {
    const { createEngine } = await import('/dist/index.js');
    globalThis.led = [];
    globalThis.engine = await createEngine({
      ...{ url: '${model}', shared: 'kept', threads: 1 },
      onLead: () => led.push(engine.loadState('chat')),
    });
    const messages = [{ role: 'user', content: 'Tell me a long story about a fox. '.repeat(8) }];
    globalThis.turn = async () => {
      const { choices, usage } = await engine.chat.completions.create({
        ...{ messages, temperature: 0, max_tokens: 24 },
      });
      messages.push(choices[0].message, { role: 'user', content: 'And then?' });
      return [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens];
    };
  })()`);
  const [read] = await second.evaluate('turn()');
  await second.evaluate("engine.saveState('chat').then(() => {})");
  assert.equal(await second.evaluate('led.length'), 0);
  await first.close();
  await second.evaluate('engine.info()');
  const states = await second.evaluate('Promise.all(led)');
  assert.equal(states.length, 1);
  assert.ok(states[0].entries > 0);
  // all of the first turn except for its last, incomplete page
  const [all, cached] = await second.evaluate('turn()');
  assert.ok(all > cached && cached >= read - 16, `${cached} of ${all}, ${read} before`);
});

test('a closed engine is handed over, even if its tab stays open', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = [await newTab(), await newTab()];
  await first.evaluate(open, { model, shared: 'handed' });
  await second.evaluate(open, { model, shared: 'handed' });
  const expected = await second.evaluate(saying('A', story));
  await first.evaluate('engine.close()');
  assert.equal(await second.evaluate(saying('A', story)), expected);
  assert.equal(await first.evaluate(tried("say('A')")), 'CLOSED');
  assert.equal(await first.evaluate(open, { model, shared: 'handed' }), 'follower');
});

test('a leader that is closed while it loads the model is followed by the next', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = [await newTab(), await newTab()];
  // the model's server never responds
  await first.evaluate(`(async () => {
    const { createEngine } = await import('/dist/index.js');
    const fetch = () => new Promise(() => { globalThis.isLoading = true; });
    createEngine({ url: '${model}', shared: 'loading', threads: 1, fetch });
    while (!globalThis.isLoading) await new Promise((settle) => setTimeout(settle, 20));
  })()`);
  const opening = second.evaluate(`(async () => {
    const { createEngine } = await import('/dist/index.js');
    const fetch = (...request) => globalThis.fetch(...request);
    const made = createEngine({ url: '${model}', shared: 'loading', threads: 1, fetch });
    return (await (await made).info()).sharing;
  })()`);
  await first.close();
  assert.equal(await opening, 'leader');
});

test('an engine that crashes fails for all tabs and starts again', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = [await newTab(), await newTab()];
  await first.evaluate(`(async () => {
    const { createEngine } = await import('/dist/index.js');
    globalThis.worker = new Worker('/dist/worker.js', { type: 'module' });
    globalThis.engine = await createEngine({ url: '${model}', shared: 'crash', worker });
  })()`);
  await second.evaluate(open, { model, shared: 'crash' });
  // makes the leader's worker crash during the next request
  await first.evaluate(`(() => {
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (message, transfer) => {
      if (message.type !== 'generate') return post(message, transfer);
      setTimeout(() => worker.dispatchEvent(new ErrorEvent('error', { message: 'gone' })));
    };
  })()`);
  assert.equal(await second.evaluate(tried("say('A')")), 'WORKER_CRASHED');
  for (const tab of [first, second]) {
    assert.equal(await tab.evaluate(tried('engine.tokenize("A")')), 'WORKER_CRASHED');
  }
  assert.equal(await second.evaluate(open, { model, shared: 'crash' }), 'leader');
  assert.equal(await first.evaluate(open, { model, shared: 'crash' }), 'follower');
});

test('a model that cannot be loaded is reported in each tab', {
  skip: skip || !isFull,
}, async (t) => {
  const newTab = await newBrowser(t);
  const tabs = [await newTab(), await newTab()];
  const code = `(wanted) => (${open})(wanted).then(() => 'loaded', (error) => error.code)`;
  const wanted = { model: '/dist/models/none.gguf', shared: 'none' };
  const codes = await Promise.all(
    tabs.map((tab) => tab.evaluate(`(${code})(${JSON.stringify(wanted)})`)),
  );
  assert.deepEqual(codes, ['HTTP', 'HTTP']);
});

/**
 * Sends malformed messages to every channel of the other tabs.
 * @param {string[]} names
 */
async function talkNonsense(names) {
  const values = [
    ...[
      undefined,
      null,
      0,
      Number.NaN,
      1n,
      '',
      'x',
      true,
      [],
      [[]],
      {},
      new Map(),
      new Uint8Array(4),
    ],
    ...['join', 'lead', 'leader', 'message'].flatMap((key) =>
      [null, 7, '', {}, []].map((value) => ({ [key]: value })),
    ),
  ];
  const inner = [
    'ready',
    'failed',
    'closed',
    'crashed',
    'progress',
    'step',
    'result',
    'error',
    'ask',
  ]
    .concat([
      'generate',
      'call',
      'ack',
      'cancel',
      'close',
      'init',
      'helper',
      'toString',
      '__proto__',
    ])
    .flatMap((type) => [
      { type },
      ...[
        null,
        -1,
        1.5,
        'x',
        [],
        {},
        [null],
        [{}],
        [{ id: 1 }],
        [{ id: 1, texts: [1], tokens: [] }],
      ]
        .map((value) => ({
          ...{ type, id: value, info: value, error: value, outputs: value, progress: value },
          ...{ completions: value, input: value, settings: value, method: value, args: value },
          ...{ count: value, message: value },
        }))
        .flatMap((message) => [message, { ...message, id: 1 }]),
    ]);
  // these messages look like calls: they are rejected, and other tabs are not affected
  const args = [undefined, null, 'x', 1e99, {}, [null], new Uint8Array(8)];
  const methods = ['tokenize', 'detokenize', 'applyTemplate', 'saveState', 'loadState', 'nothing'];
  const calls = methods.flatMap((method) =>
    args.map((arg, index) => ({ type: 'call', id: 2 ** 40 + index, method, args: [arg, arg] })),
  );
  const asked = [{}, { prompt: null }, { prompt: {} }, { messages: 1 }, { prompt: 'A' }].flatMap(
    (input) =>
      [{}, { stop: 5 }, { logitBias: 'x' }, { seed: {} }].map((settings, index) => ({
        ...{ type: 'generate', id: 2 ** 41 + 20 * index, completions: 1, input, settings },
      })),
  );
  for (const name of names) {
    const channel = new BroadcastChannel(name);
    for (const value of values) channel.postMessage(value);
    for (const message of [...values, ...inner, ...calls, ...asked]) {
      channel.postMessage({ message });
      channel.postMessage({ leader: 'x', message: values.includes(message) ? message : null });
      channel.postMessage({ leader: null, message });
    }
    for (let id = 1; id < 20; id++) {
      const outputs = [{ id, texts: ['not by the leader'], tokens: [] }];
      channel.postMessage({ leader: 'somebody', message: { type: 'step', outputs } });
    }
    for (const message of inner) {
      const isWhole = message.type === 'failed' || message.type === 'ready';
      if (!isWhole) channel.postMessage({ leader: 'somebody', message });
    }
    channel.close();
  }
}

test('foreign messages are ignored', { skip: skip || !isFull }, async (t) => {
  const newTab = await newBrowser(t);
  const tabs = [await newTab(), await newTab()];
  for (const tab of tabs) {
    await tab.evaluate(() => {
      const page = /** @type {any} */ (globalThis);
      page.names = [];
      page.failures = [];
      addEventListener('error', ({ message }) => page.failures.push(message));
      addEventListener('unhandledrejection', ({ reason }) => page.failures.push(String(reason)));
      page.BroadcastChannel = class extends BroadcastChannel {
        /** @param {string} name */
        constructor(name) {
          super(name);
          page.names.push(name);
        }
      };
    });
    await tab.evaluate(open, { model, shared: 'nonsense' });
  }
  const expected = await tabs[0].evaluate(saying('A', story));
  await tabs[1].evaluate(`begin(engine.generate('Once upon a time', ${JSON.stringify(long)}))`);
  const names = new Set((await Promise.all(tabs.map((tab) => tab.evaluate('names')))).flat());
  const stranger = await newTab();
  await stranger.evaluate(talkNonsense, [...names]);
  for (const tab of tabs) {
    assert.equal(await tab.evaluate(saying('A', story)), expected);
    assert.deepEqual(await tab.evaluate('failures'), []);
  }
  const rest = await tabs[1].evaluate('rest()');
  assert.ok(rest.length > 600 && !rest.includes('not by the leader'));
  const roles = await Promise.all(
    tabs.map((tab) => tab.evaluate('engine.info().then((info) => info.sharing)')),
  );
  assert.deepEqual(roles, ['leader', 'follower']);
});

test('outside of pages an engine is not shared, and an invalid name is rejected', async (t) => {
  const engine = await openEngine(t, { file: modelPath, shared: 'node' });
  assert.equal((await engine.info()).sharing, 'none');
  await assert.rejects(openEngine(t, { file: modelPath, shared: '' }), hasCode('ARG'));
});

test('a page without storage and locks has a separate engine', {
  skip: skip || !isFull,
}, async (t) => {
  const tab = await (await newBrowser(t))();
  await tab.evaluate(`LockManager.prototype.request = async () => {
    throw new DOMException('Access to the Locks API is denied in this context.', 'SecurityError');
  }`);
  assert.equal(await tab.evaluate(open, { model, shared: 'denied' }), 'none');
});

test('tabs of Firefox share an engine', { skip: locate('firefox').skip }, async () => {
  const firefox = await launchFirefox();
  try {
    const tabs = [];
    for (let i = 0; i < 2; i++) {
      const page = await firefox.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(server.url);
      tabs.push(page);
    }
    const roles = [];
    for (const tab of tabs) roles.push(await tab.evaluate(open, { model, shared: 'firefox' }));
    assert.deepEqual(roles, ['leader', 'follower']);
    const call = saying('Once upon a time', story);
    const expected = await tabs[1].evaluate(call);
    assert.ok(String(expected).length > 40);
    await tabs[0].close();
    assert.equal(await tabs[1].evaluate(call), expected);
  } finally {
    await firefox.close();
  }
});

test('a frozen leader is reported and replaced, and becomes a follower when it resumes', {
  skip,
}, async (t) => {
  const newTab = await newBrowser(t);
  const [first, second] = /** @type {import('playwright-core').Page[]} */ (
    /** @type {unknown[]} */ ([await newTab(), await newTab()])
  );
  assert.equal(await first.evaluate(open, { model, shared: 'frozen' }), 'leader');
  assert.equal(await second.evaluate(open, { model, shared: 'frozen' }), 'follower');
  const say = saying('Once upon a time', story);
  const text = await first.evaluate(say);
  /** @type {string[]} */
  const warned = [];
  second.on('console', (message) => warned.push(message.text()));
  const frozen = await first.context().newCDPSession(first);
  await frozen.send('Debugger.enable');
  await frozen.send('Debugger.pause'); // its page runs no code, like a frozen tab
  assert.equal(await second.evaluate(say), text);
  assert.ok(
    warned.some((line) => /does not respond; this one takes over/.test(line)),
    String(warned),
  );
  const role = 'engine.info().then(({ sharing }) => sharing)';
  assert.equal(await second.evaluate(role), 'leader');
  await frozen.send('Debugger.disable');
  assert.equal(await first.evaluate(say), text);
  await waitUntil(async () => (await first.evaluate(role)) === 'follower', 'the new role');
  assert.equal(await second.evaluate(say), text);
});
