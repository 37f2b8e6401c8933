// The chat page's models, storage and context, in Chromium: the current engine stays in use until the next one is ready, a
// conversation's model is loaded with the conversation, a full disk is reported and no data is lost, and a full context
// never leads to an error.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { launchProfile, PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { openReal } from '../support/chat_real.mjs';
import {
  ask,
  chooseRow,
  onBattery,
  openStub,
  shown,
  talk,
  untilKept,
} from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, browser, url: siteUrl } = useChat('chat-context');
/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t */
async function newContext(t) {
  const context = await browser().newContext({
    viewport: { width: 1280, height: 800 },
    serviceWorkers: 'block', // a service worker would serve the package's own engine
  });
  /** @type {string[]} */
  const problems = [];
  t.after(() => context.close());
  t.after(() => assert.deepEqual(problems, []));
  return {
    open: (/** @type {{script?: string, url?: string}} */ { url = siteUrl(), script } = {}) =>
      openStub(context, url, { problems, script }),
  };
}

/** @param {Page} page @param {string} name of a file next to the page */
async function choose(page, name) {
  await page.click('#choose-model');
  await page.fill('#model-url', `${siteUrl()}${name}`);
  await page.click('#load-model');
}

/** @param {Page} page @param {string} name */
const untilModel = (page, name) => page.locator('#model-name', { hasText: name }).waitFor();

/** Delays the loading of \`other.gguf\` until \`release\` or \`refuse\` is called. */
const held = `globalThis.holdLoading = (options) => {
  if (!String(options.url).includes('other.gguf')) return;
  return new Promise((settle, fail) => {
    globalThis.release = settle;
    globalThis.refuse = () => fail(new Error('This is not a model'));
  });
};`;

test('the old engine stays in use until the new one is ready, and an invalid file does not unload it', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open({ script: held });
  await choose(page, 'other.gguf');
  await untilTrue(page, 'globalThis.refuse !== undefined');
  await talk(page, 'While it loads', 'I am here.');
  await page.evaluate('refuse()');
  await page
    .locator('#problem-text', { hasText: /not a model.* Wick 4\.2M is still loaded\.$/ })
    .waitFor();
  await talk(page, 'And now?', 'Still here.');
  assert.deepEqual(await page.evaluate('closedEngines'), []);
  await choose(page, 'other.gguf');
  await untilTrue(page, 'loaded.length === 3');
  await ask(page, 'What I answer');
  await page.evaluate("say('I begin'); release()");
  await page.locator('.body', { hasText: 'I begin' }).waitFor();
  assert.equal(await page.innerText('#model-name'), 'Wick 4.2M');
  await page.evaluate("say(' and end.'); end()");
  await untilModel(page, 'other.gguf');
  assert.equal((await shown(page)).at(-1), 'I begin and end.');
  await talk(page, 'Who are you?', 'The other one.');
  assert.deepEqual(await page.evaluate('closedEngines.length'), 1);
});

/** Each download waits until it is paused, or until `release` is called. */
const heldDownload = `globalThis.holdDownload = (_, { signal, onProgress }) => new Promise((settle, fail) => {
  onProgress({ loaded: 500, received: 500, total: 1000 });
  globalThis.release = settle;
  signal.addEventListener('abort', () => fail(signal.reason));
});`;

test('during a download and an answer, a conversation is edited, forgotten, deleted and restored; the download continues', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open({ script: heldDownload });
  await talk(page, 'First', 'One.');
  await choose(page, 'other.gguf');
  await untilTrue(page, 'globalThis.release !== undefined');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.fill('.edit textarea', 'Anew');
  await page.keyboard.press('Enter');
  await page.evaluate("say('Again one.'); end()");
  await page.locator('.message.assistant footer').waitFor();
  await chooseRow(page.locator('.message.user').first(), '.forget');
  await page.locator('.message.forgotten').first().waitFor();
  await page.click('#undo');
  await page.locator('.message.user .body', { hasText: 'Anew' }).waitFor();
  await ask(page, 'Second');
  await page.evaluate("say('I begin')");
  await page.locator('.body', { hasText: 'I begin' }).waitFor();
  await page.locator('.more').first().click();
  await page.locator('.delete').first().click();
  await page.locator('#notice-text', { hasText: 'deleted' }).waitFor();
  assert.deepEqual(await shown(page), []);
  await page.click('#undo');
  await page
    .locator('#notice-text', { hasText: 'other.gguf is being downloaded in the background.' })
    .waitFor();
  assert.deepEqual(await shown(page), ['Anew', 'Again one.', 'Second', 'I begin']);
  await page.evaluate('release()');
  await page.locator('#notice-text', { hasText: 'other.gguf has been downloaded.' }).waitFor();
  await talk(page, 'Third', 'Three.');
});

test('the model of a conversation is loaded with it', { skip }, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'To the first', 'One.');
  await page.click('#new-chat');
  await choose(page, 'other.gguf');
  await untilModel(page, 'other.gguf');
  await talk(page, 'To the other', 'Two.');
  await page.reload();
  await untilModel(page, 'other.gguf');
  assert.deepEqual(await page.evaluate('loaded'), [`${siteUrl()}other.gguf`]);
  await page.getByRole('link', { name: 'To the first' }).click();
  await untilModel(page, 'Wick 4.2M');
  await page.getByRole('link', { name: 'To the other' }).click();
  await untilModel(page, 'other.gguf');
  await page.click('#new-chat');
  await page.reload();
  await untilModel(page, 'other.gguf'); // the model that was used last
});

test('the browser is asked to keep the stored data once there is something to lose', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const script = `globalThis.asks = 0;
    StorageManager.prototype.persist = async () => { globalThis.asks++; return false; };`;
  const page = await open({ script });
  await talk(page, 'One', 'Yes.');
  await talk(page, 'Two', 'Yes.');
  assert.equal(await page.evaluate('asks'), 0);
  await talk(page, 'Three', 'Yes.');
  await untilTrue(page, 'asks === 1');
  await talk(page, 'Four', 'Yes.');
  assert.equal(await page.evaluate('asks'), 1);
});

/** Writes until the storage is full. */
const fillUp = `async () => {
  const db = await new Promise((settle, fail) => {
    const opening = indexedDB.open('filler');
    opening.onupgradeneeded = () => opening.result.createObjectStore('all');
    opening.onsuccess = () => settle(opening.result);
    opening.onerror = fail;
  });
  const write = () => new Promise((settle) => {
    const transaction = db.transaction('all', 'readwrite');
    transaction.objectStore('all').put('x'.repeat(5e4), Math.random());
    transaction.oncomplete = () => settle(false);
    transaction.onabort = () => settle(true);
  });
  while (!(await write())) await new Promise((settle) => setTimeout(settle, 500));
  db.close();
}`;

test('a full disk is reported; input is kept, and stored once there is space', {
  skip: skip || !isFull,
}, async (t) => {
  // DevTools can set the quota of a profile on disk, but not of one in memory
  const folder = mkdtempSync(join(tmpdir(), 'wick-profile-'));
  const context = await launchProfile(folder);
  t.after(async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const script = 'delete Navigator.prototype.serviceWorker';
  const { origin } = new URL(siteUrl());
  const devtools = await context.newCDPSession(context.pages()[0]);
  // before the first write: Chromium allocates space in advance
  await devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1e6 });
  const page = await openStub(context, siteUrl(), { script });
  if (await page.isHidden('#conversation-list')) await page.click('#open-list');
  await talk(page, 'Before', 'There is room.');
  await page.click('#new-chat');
  await talk(page, 'To be deleted', 'Yes.');
  await page.getByRole('button', { name: 'Actions for To be deleted' }).click();
  await page.locator('.actions .delete').click();
  await page.getByRole('link', { name: 'Before' }).click();
  await page.locator('.body', { hasText: 'There is room.' }).waitFor();
  await page.evaluate(`(${fillUp})()`);
  await page.fill('#prompt', `While it is full ${'x'.repeat(2e5)}`);
  await page.keyboard.press('Enter');
  await page.locator('.message').nth(3).waitFor();
  await page.evaluate("say('I answer.'); end()");
  await page.locator('#room-text', { hasText: /storage is full: your last changes/ }).waitFor();
  await page.locator('#room').getByText('Delete: a deleted conversation').waitFor();
  await takePicture(page, 'chat-full');
  await page.fill('#prompt', 'a draft, too');
  await page.locator('#log[aria-busy=false] .body', { hasText: 'I answer.' }).waitFor();
  const { turns } = await untilKept(page, () => true);
  assert.ok(
    !turns.some(({ content }) => content.startsWith('While it is full')),
    'the disk was full',
  );
  await devtools.send('Storage.overrideQuotaForOrigin', { origin });
  await page.locator('#room').getByText('Try again').click();
  await page.locator('#room').waitFor({ state: 'hidden' });
  await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text === 'a draft, too'));
  await page.reload();
  await page.locator('.message').nth(3).waitFor();
  assert.deepEqual(
    (await shown(page)).map((text) => text.slice(0, 16)),
    ['Before', 'There is room.', 'While it is full', 'I answer.'],
  );
  assert.equal(await page.inputValue('#prompt'), 'a draft, too');
});

test('without space for the rest of a model, the page does not download it again unless the user requests it', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const part = { id: 'part', name: 'other.gguf', urls: [`${siteUrl()}other.gguf`], isWhole: false };
  const script = `globalThis.parts = [${JSON.stringify({ ...part, size: 1000, storedBytes: 500 })}];`;
  const page = await open({ script });
  await page.evaluate(async () => {
    const entry = '/wick-llm/index.js';
    const { WickError } = await import(entry);
    Object.assign(globalThis, {
      holdDownload: () => {
        throw new WickError('STORAGE_FULL', 'There is no room');
      },
    });
  });
  await choose(page, 'other.gguf');
  await page.locator('#room-text', { hasText: 'no room for the rest of other.gguf' }).waitFor();
  await page.locator('#problem-text', { hasText: 'is still loaded' }).waitFor();
  assert.equal((await page.evaluate('loaded')).length, 1);
  await takePicture(page, 'chat-no-room-for-the-rest');
  await page.getByRole('button', { name: 'Load it without saving' }).click();
  await untilModel(page, 'other.gguf');
  assert.equal((await page.evaluate('loaded')).length, 2);
});

test('low storage is reported before it is full', { skip: skip || !isFull }, async (t) => {
  const { open } = await newContext(t);
  // Chromium does not report a quota set in DevTools to pages
  const script = `StorageManager.prototype.estimate = async () => ({ usage: 9e6, quota: 10e6 });`;
  const page = await open({ script });
  await talk(page, 'A question', 'An answer.');
  await page
    .locator('#room-text', { hasText: /nearly full: 1\.0 MB of 10\.0 MB are free/ })
    .waitFor();
});

test('if nothing can be stored, the page says so and works', { skip }, async (t) => {
  const { open } = await newContext(t);
  const script = `IDBFactory.prototype.open = () => { throw new DOMException('not here', 'SecurityError'); };`;
  const page = await open({ script });
  await page
    .locator('#problem-text', { hasText: 'because the browser cannot save them' })
    .waitFor();
  await talk(page, 'A question', 'An answer.');
  await page.click('#new-chat');
  await page.getByRole('link', { name: 'A question' }).click();
  await page.locator('.body', { hasText: 'An answer.' }).waitFor();
  await page
    .getByText('Conversations are lost when you close the page.', { exact: true })
    .waitFor();
});

test('if the storage never responds, the page reports it within half a minute and works', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const script = `
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.databases = () => new Promise(() => {});
    IDBFactory.prototype.open = function (...args) {
      const request = open.apply(this, args);
      request.addEventListener = () => {};
      return request;
    };
    const later = setTimeout;
    globalThis.setTimeout = (run, ms, ...rest) => later(run, ms === 30_000 ? 300 : ms, ...rest);`;
  const page = await open({ script });
  const told = { hasText: 'its storage has not responded for 30 seconds' };
  await page.locator('#problem-text', told).waitFor();
  await talk(page, 'A question', 'An answer.');
});

test('if the model store never responds, the page reports the reason and continues without it', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await choose(page, 'other.gguf');
  await untilModel(page, 'other.gguf');
  await talk(page, 'To the other', 'Two.');
  const why = 'IndexedDB has not answered for 30 seconds';
  await page.addInitScript(`globalThis.holdModels = async () => { throw new Error('${why}'); };`);
  await page.reload();
  await page
    .locator('#notice-text', { hasText: `used other.gguf, which could not be loaded: ${why}.` })
    .waitFor();
  assert.equal(await page.innerText('#model-name'), 'Wick 4.2M');
  await talk(page, 'And now?', 'Still here.');
  await page.getByRole('button', { name: 'Download it' }).click();
  await untilModel(page, 'other.gguf');
  assert.deepEqual(await page.evaluate('fetched'), [], 'the file is not stored');
  await page.click('#choose-model');
  await page.locator('#kept-room', { hasText: `${why}.` }).waitFor();
});

test('31 turns and a long paste in a small context cause no error', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open({ script: 'globalThis.contextSize = 64;' });
  const problem = page.locator('#problem');
  let offers = 0;
  for (let turn = 1; turn <= 31; turn++) {
    const text = `Question number ${turn} of all the many`;
    await page.fill('#prompt', text);
    await page.keyboard.press('Enter');
    const said = page.locator('.message.user .body', { hasText: text });
    const offer = page.locator('#make-room');
    await said.or(offer).first().waitFor();
    if (!(await said.isVisible())) {
      offers++;
      await page.keyboard.press('Enter'); // confirms the dialog
      await said.waitFor();
    }
    await page.evaluate(`say('Answer number ${turn}.'); end()`);
    await page.locator('.message.assistant .body', { hasText: `Answer number ${turn}.` }).waitFor();
    await page.locator('#log[aria-busy=false]').waitFor();
    assert.equal(await problem.isHidden(), true);
  }
  assert.ok(offers > 1, `${offers} offers`);
  assert.equal((await shown(page)).length, 62, 'the whole conversation is shown');
  const bodies = await page.evaluate('bodies');
  const words = (/** @type {any} */ body) =>
    body.messages
      .map((/** @type {any} */ one) => one.content)
      .join(' ')
      .split(' ').length;
  assert.ok(bodies.every((/** @type {any} */ body) => words(body) <= 64));
  await page.locator('#gauge-text', { hasText: /^\d+ of 64 tokens$/ }).waitFor();
  const long = 'word '.repeat(100).trim();
  await page.fill('#prompt', long);
  await page.keyboard.press('Enter');
  await page
    .locator('#context-text', { hasText: /^This text is 44 tokens too long: it has 100/ })
    .waitFor();
  assert.equal(await page.inputValue('#prompt'), long);
  assert.equal(await problem.isHidden(), true);
  await page.fill('#prompt', '');
  const starts = await page.locator('.message.start').count();
  assert.ok(starts > 0);
  await page.reload();
  await page.locator('.message').nth(61).waitFor();
  assert.equal(await page.locator('.message.start').count(), starts);
  const again = page.getByRole('button', { name: 'Read all again' });
  while ((await again.count()) > 0) await again.first().click();
  await page.locator('#gauge-text', { hasText: /^2\d\d of 64|^3\d\d of 64/ }).waitFor();
});

test('Send does not move when the first tokens have been counted', { skip }, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  const before = await page.locator('#send').boundingBox();
  await page.fill('#prompt', 'A question');
  await page.locator('#context:not(.unused)').waitFor({ state: 'attached' });
  assert.deepEqual(await page.locator('#send').boundingBox(), before);
});

test('in a conversation of 1,000 turns, the number to remove is found quickly', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open({ script: 'globalThis.contextSize = 640;' });
  const turns = Array.from({ length: 1000 }, (_, index) => ({
    ...{ id: `${index}`, parent: index > 0 ? `${index - 1}` : '', content: `Turn ${index}` },
    role: index % 2 === 0 ? 'user' : 'assistant',
  }));
  const file = { format: 'wick-chat', version: 1, conversations: [{ conversation: {}, turns }] };
  const buffer = Buffer.from(JSON.stringify(file));
  await page.setInputFiles('#import-file', { name: 'long.json', mimeType: '', buffer });
  await page.locator('.message').nth(999).waitFor();
  await page.locator('#context-note:not([hidden])').waitFor();
  await page.evaluate('globalThis.counts = 0');
  await page.fill('#prompt', 'And now?');
  await page.keyboard.press('Enter');
  // 70% of the context, 448 tokens, are full then
  await page.locator('#make-room', { hasText: 'Leave out the oldest 778 messages' }).waitFor();
  const counts = Number(await page.evaluate('counts'));
  assert.ok(counts < 60, `counted ${counts} times`);
});

test('the oldest turns are replaced by a summary, which is sent, shown, stored and forgotten with them', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const script = "globalThis.contextSize = 60; globalThis.summary = 'They spoke of foxes.';";
  const page = await open({ script });
  const words = 'The fox and the lamp went to the river and came back';
  for (const turn of [1, 2]) await talk(page, `${turn} ${words}`, `Answer ${turn}. ${words}`);
  await page.fill('#prompt', 'And now?');
  await page.keyboard.press('Enter');
  await page.locator('#context-text', { hasText: 'With this question' }).waitFor();
  await page.click('#fold-room');
  await page.locator('.message.user .body', { hasText: 'And now?' }).waitFor();
  await page.evaluate("say('Now.'); end()");
  await page.locator('.message.assistant .body', { hasText: 'Now.' }).waitFor();
  const [summary, body] = (await page.evaluate('bodies')).slice(-2);
  assert.match(summary.messages.at(-1).content, /^Summarise/);
  const told = body.messages[0];
  assert.deepEqual(
    [told.role, told.content],
    ['system', 'What was said before, in short: They spoke of foxes.'],
  );
  assert.ok(!JSON.stringify(body.messages).includes('Answer 1.'));
  await page.reload();
  await page.locator('.fold', { hasText: 'They spoke of foxes.' }).waitFor();
  await takePicture(page, 'chat-folded');
  await chooseRow(page.locator('.message.user').first(), '.forget');
  await page.locator('.fold').waitFor({ state: 'detached' });
  await untilKept(page, ({ turns }) => !JSON.stringify(turns).includes('foxes'));
});

test('while the page measures whether a question fits, it makes no other offer', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open({ script: 'globalThis.contextSize = 60;' });
  const words = 'The fox and the lamp went to the river and came back';
  for (const turn of [1, 2]) await talk(page, `${turn} ${words}`, `Answer ${turn}. ${words}`);
  await page.locator('#context-note:not([hidden])').waitFor(); // all that is shown has been counted
  await page.fill('#prompt', `And now? ${words}`);
  await untilTrue(page, 'document.getElementById("context-note").hidden');
  const counted = await page.evaluate(`
    globalThis.untilCounted = new Promise((settle) => { globalThis.release = settle; });
    document.getElementById('composer').requestSubmit();
    counts`);
  await untilTrue(page, `counts > ${counted}`);
  const gauge = await page.textContent('#gauge-text');
  await page.evaluate('untilCounted = undefined');
  await page.locator('#gauge-text', { hasNotText: String(gauge) }).waitFor({ state: 'attached' });
  await page.waitForTimeout(100);
  assert.equal(await page.isVisible('#context-note'), false);
  await page.evaluate('release()');
  await page.locator('#context-text', { hasText: 'With this question' }).waitFor();
  await page.click('#make-room');
  await page.locator('.message.user .body', { hasText: 'And now?' }).waitFor();
  await page.evaluate("say('Now.'); end()");
  await page.locator('.message.assistant .body', { hasText: 'Now.' }).waitFor();
});

test('removed turns are dropped from the session, and the rest is not recomputed', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await browser().newContext({ serviceWorkers: 'block' });
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(siteUrl());
  await page.waitForSelector('#send:not([disabled])');
  await page.click('#open-settings');
  // The kept turns do not depend on the length of an answer, and no answer reaches an invented word.
  await page.fill('[name=maxTokens]', '8');
  await page.click('#settings-form [value=save]');
  await openDeveloper(page);
  const fact = (/** @type {string} */ name) => page.locator(`[data-fact="${name}"]`).innerText();
  for (let turn = 1; turn <= 2; turn++) {
    await page.fill('#prompt', `${turn}. ${'The fox and the lamp went to the river. '.repeat(95)}`);
    await page.keyboard.press('Enter');
    await page
      .locator('#log[aria-busy=false] .message.assistant footer')
      .nth(turn - 1)
      .waitFor();
  }
  await page.fill('#prompt', `And now? ${'The fox and the lamp went to the river. '.repeat(95)}`);
  await page.keyboard.press('Enter');
  await page.click('#make-room');
  await page.locator('#log[aria-busy=false] .message.assistant footer').nth(2).waitFor();
  assert.equal(await page.locator('#problem').isHidden(), true);
  const [, kept] = /^(\d+) tokens after/.exec(await fact('Left out')) ?? [];
  const [, all, before] = /^(\d+) tokens, (\d+) of/.exec(await fact('Last prompt')) ?? [];
  t.diagnostic(`${kept} tokens stayed; ${before} of the next prompt's ${all} tokens were cached`);
  assert.ok(Number(kept) > 800, `${kept} stayed`);
  assert.ok(Number(before) >= Number(kept), `${before} of ${all}`);
});

test('a question is answered by the next engine if its own is closed while the fit is measured', {
  skip,
}, async (t) => {
  const page = await openReal(browser(), siteUrl(), { script: onBattery });
  t.after(() => page.context().close());
  await page.evaluate(`globalThis.measured = [];
    engine.info = () => new Promise((_, fail) => measured.push(fail));`);
  /** @type {() => void} */
  let release = () => {};
  const released = new Promise((settle) => {
    release = () => settle(undefined);
  });
  await page.route('**/wick-llm/worker.js', async (route) => {
    await released;
    await route.continue();
  });
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await untilTrue(page, 'measured.length > 0');
  await page.click('#choose-model');
  await page.locator('#model-list [value=wick]').check();
  await page.click('#load-model');
  await untilTrue(
    page,
    "document.getElementById('facts').textContent !== '' && document.getElementById('loading').hidden === false",
  );
  await page.evaluate("for (const fail of measured) fail(new Error('closed'))");
  await page.locator('#notice-text', { hasText: 'when the model is ready' }).waitFor();
  assert.equal(await page.isVisible('#dismiss-notice'), false);
  release();
  await page.locator('.message.assistant footer').waitFor();
  assert.equal(await page.locator('.message.user').count(), 1);
  assert.equal(await page.inputValue('#prompt'), '');
});
