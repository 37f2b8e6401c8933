// The browser's history in the chat page: Back and Forward switch between conversations, even in quick succession and to
// deleted or unknown ones, and no input is lost in the meantime. In Chromium, with a fake engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useChat } from '../support/chat_page.mjs';
import { ask, openStub, readAll, shown, talk, untilKept } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue, waitForPage } from '../support/package.mjs';

const { skip, openPage, url } = useChat('chat-history');
/** @typedef {import('playwright-core').Page} Page */

const options = { viewport: { width: 1280, height: 800 } };

/** @param {Page} page @param {string[]} names */
async function talkAbout(page, names) {
  for (const [index, name] of names.entries()) {
    if (index > 0) await page.click('#new-chat');
    await talk(page, `About ${name}`, `It is about ${name}.`);
  }
}

/** @param {Page} page @param {string} name */
async function untilAbout(page, name) {
  await page.locator('.message .body', { hasText: `It is about ${name}.` }).waitFor();
  assert.deepEqual(await shown(page), [`About ${name}`, `It is about ${name}.`]);
}

/** @param {Page} page @param {string} name */
async function remove(page, name) {
  await page.getByRole('button', { name: `Actions for About ${name}` }).click();
  await page.locator('.actions .delete').click();
  await page.locator('#notice-text', { hasText: 'was deleted' }).waitFor();
  await page.click('#dismiss-notice');
}

/** Delays the creation of databases until \`openStores\` is called. */
const heldStores = `{
  const opened = new Promise((settle) => { globalThis.openStores = settle; });
  IDBOpenDBRequest.prototype.addEventListener = function (type, listener, ...rest) {
    const late = type === 'success' ? (event) => opened.then(() => listener(event)) : listener;
    EventTarget.prototype.addEventListener.call(this, type, late, ...rest);
  };
}`;

test('the first question is answered before the database has been created, and stored then', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options, script: heldStores });
  await talk(page, 'About foxes', 'It is about foxes.');
  await page.evaluate('openStores()');
  await untilKept(page, ({ turns }) => turns.filter(({ state }) => state === 'whole').length === 2);
  assert.deepEqual(await page.evaluate('closedEngines'), [], 'the model is loaded once');
  await page.reload();
  await page.evaluate('openStores()');
  await untilAbout(page, 'foxes');
});

test('pressing Back again before a conversation has opened keeps the Forward history', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes', 'rivers', 'lamps']);
  await page.evaluate(async () => {
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
    history.back();
  });
  await untilAbout(page, 'foxes');
  await page.goForward();
  await untilAbout(page, 'rivers');
  await page.goForward();
  await untilAbout(page, 'lamps');
});

test('Back, Back and Forward at once: earlier navigation has no effect', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes', 'rivers', 'lamps']);
  await page.evaluate(async () => {
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
    const rivers = location.hash;
    history.back();
    const log = /** @type {HTMLElement} */ (document.getElementById('log'));
    await new Promise((settle) => {
      new MutationObserver((_, observer) => {
        if (!log.textContent?.includes('It is about foxes.')) return;
        observer.disconnect();
        location.hash = rivers; // by now, the first press of Back is superseded
        settle(undefined);
      }).observe(log, { childList: true, subtree: true });
    });
  });
  await untilAbout(page, 'rivers');
  assert.equal(await page.isVisible('#notice'), false, 'nothing is deleted');
});

test('New chat during Back stays open', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes', 'rivers']);
  await page.evaluate(async () => {
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
    document.getElementById('new-chat')?.click();
  });
  await page.fill('#prompt', 'Something else');
  await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text === 'Something else'));
  assert.deepEqual(await shown(page), []);
  assert.equal(await page.inputValue('#prompt'), 'Something else');
});

test('Back to a deleted conversation reports it and offers to restore it', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes', 'rivers']);
  await remove(page, 'foxes');
  await page.goBack();
  await page.locator('#notice-text', { hasText: '“About foxes” is deleted.' }).waitFor();
  await untilAbout(page, 'rivers');
  await page.click('#undo');
  await untilAbout(page, 'foxes');
  await page.getByRole('link', { name: 'About foxes' }).waitFor();
});

test('a URL of a deleted or unknown conversation is reported', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes', 'rivers']);
  const { conversations } = await readAll(page);
  const { id } = conversations.find(({ title }) => title === 'About foxes');
  await remove(page, 'foxes');
  await page.goto('about:blank');
  await page.goto(`${url()}#${id}`);
  await page.locator('#notice-text', { hasText: '“About foxes” is deleted.' }).waitFor();
  assert.deepEqual(await shown(page), []);
  await page.waitForSelector('#send:not([disabled])');
  await page.evaluate(() => {
    location.hash = 'of-another-browser';
  });
  await page.locator('#notice-text', { hasText: 'is not in this browser' }).waitFor();
  await page.click('#dismiss-notice');
  await page.locator('.skip').focus();
  await page.keyboard.press('Enter'); // the hash refers to the message field, not to a conversation
  await untilTrue(page, `document.activeElement.id === 'prompt'`);
  assert.equal(await page.isVisible('#notice'), false);
});

test('unsent input has an entry in the history', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes']);
  await page.click('#new-chat');
  await page.fill('#prompt', 'Half a thought');
  await page.click('#new-chat');
  await page.fill('#prompt', 'Another one');
  await page.goBack();
  await waitForPage(
    async () => (await page.inputValue('#prompt')) === 'Half a thought',
    'the first',
  );
  await page.goBack();
  await untilAbout(page, 'foxes');
  for (const text of ['Half a thought', 'Another one']) {
    await page.goForward();
    await waitForPage(async () => (await page.inputValue('#prompt')) === text, text);
  }
});

/** Runs in the page: delays the list of open tabs until the test releases it. */
const holdLocks = `
  const query = globalThis.LockManager?.prototype.query;
  globalThis.asking = 0;
  globalThis.hold = globalThis.name === 'hold' && Promise.withResolvers();
  if (query) LockManager.prototype.query = async function () {
    asking++;
    await globalThis.hold?.promise;
    return query.call(this);
  };`;

test('text typed while a conversation opens is kept, after its draft', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options, script: holdLocks });
  await talkAbout(page, ['foxes']);
  await page.click('#new-chat');
  await page.fill('#prompt', 'Of another one');
  const other = await openStub(page.context(), url());
  await other.getByRole('link', { name: 'About foxes' }).click();
  await untilAbout(other, 'foxes');
  await other.fill('#prompt', 'An old draft');
  await untilKept(page, ({ drafts }) => drafts.length === 2);
  await other.close(); // its draft no longer belongs to a tab
  await page.evaluate('asking = 0; hold = Promise.withResolvers(); 0');
  await page.getByRole('link', { name: 'About foxes' }).click();
  await untilTrue(page, 'asking > 0');
  assert.equal(await page.inputValue('#prompt'), '', 'text that was typed elsewhere stays there');
  await page.locator('#prompt').pressSequentially('typed meanwhile');
  await page.evaluate('hold.resolve()');
  const both = 'An old draft\ntyped meanwhile';
  await waitForPage(async () => (await page.inputValue('#prompt')) === both, both);
  await untilKept(page, ({ drafts }) => {
    const texts = drafts.map(({ text }) => text).sort();
    return JSON.stringify(texts) === JSON.stringify([both, 'Of another one']);
  });
});

test('a file that is attached while a conversation opens is kept, after those of its draft', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options, script: holdLocks });
  const file = (/** @type {string} */ name) => ({
    ...{ name, mimeType: 'text/plain', buffer: Buffer.from(name) },
  });
  await talkAbout(page, ['foxes']);
  await page.click('#new-chat');
  await page.fill('#prompt', 'Of another one');
  const other = await openStub(page.context(), url());
  await other.getByRole('link', { name: 'About foxes' }).click();
  await untilAbout(other, 'foxes');
  await other.fill('#prompt', 'An old draft');
  await other.setInputFiles('#attach-file', file('old.txt'));
  await untilKept(page, ({ drafts }) => drafts.some(({ media }) => media));
  await other.close(); // its draft no longer belongs to a tab
  await page.evaluate('asking = 0; hold = Promise.withResolvers(); 0');
  await page.getByRole('link', { name: 'About foxes' }).click();
  await untilTrue(page, 'asking > 0');
  await page.setInputFiles('#attach-file', file('new.txt'));
  await page.locator('.attached .chip', { hasText: 'new.txt' }).waitFor();
  await page.evaluate('hold.resolve()');
  const names = ['old.txt', 'new.txt'];
  await untilKept(page, ({ drafts }) =>
    drafts.some(
      ({ text, media = [] }) =>
        text === 'An old draft' &&
        JSON.stringify(media.map((/** @type {any} */ { name }) => name)) === JSON.stringify(names),
    ),
  );
  assert.equal(await page.locator('.attached .chip').count(), 2);
});

/** @param {number} count @returns {{name: string, mimeType: string, buffer: Buffer}} an exported conversation */
function longChat(count) {
  const turns = Array.from({ length: count }, (_, index) => ({
    ...{ id: String(index), parent: index === 0 ? '' : String(index - 1) },
    ...{ role: index % 2 === 0 ? 'user' : 'assistant', content: `Text ${index}.` },
  }));
  const json = JSON.stringify({ format: 'wick-chat', version: 1, conversations: [{ turns }] });
  return { name: 'c.json', mimeType: '', buffer: Buffer.from(json) };
}

test('old messages are laid out only near the view, and are scrolled to and printed like the others', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.setInputFiles('#import-file', longChat(120));
  await page.locator('.message').nth(119).waitFor();
  const isLaidOut = (/** @type {number} */ index) =>
    page
      .locator('.message.assistant p')
      .nth(index)
      .evaluate((text) => text.checkVisibility({ contentVisibilityAuto: true }));
  const isAtEnd = `(() => {
    const log = document.getElementById('log');
    return log.scrollHeight - log.scrollTop - log.clientHeight < 2;
  })()`;
  await untilTrue(page, isAtEnd);
  assert.deepEqual([await isLaidOut(0), await isLaidOut(59)], [false, true]);
  const old = page.locator('.message.assistant p').nth(3);
  await old.evaluate((text) => text.scrollIntoView({ block: 'center', behavior: 'instant' }));
  await untilTrue(
    page,
    `(() => {
      const text = document.querySelectorAll('.message.assistant p')[3];
      const { top, bottom } = text.getBoundingClientRect();
      return text.textContent === 'Text 7.' && top > 0 && bottom < innerHeight;
    })()`,
  );
  assert.deepEqual([await isLaidOut(3), await isLaidOut(30)], [true, false]);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await isLaidOut(30), true);
});

test('an answer in a long conversation does not style the messages before it again', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options, script: 'globalThis.contextSize = 1e8;' });
  await page.setInputFiles('#import-file', longChat(1000));
  await page.locator('.message').nth(999).waitFor();
  const client = await page.context().newCDPSession(page);
  await client.send('Performance.enable');
  const styleSeconds = async () => {
    const { metrics } = await client.send('Performance.getMetrics');
    return Number(metrics.find(({ name }) => name === 'RecalcStyleDuration')?.value);
  };
  await ask(page, 'What is it?');
  const before = await styleSeconds();
  for (let count = 0; count < 40; count++)
    await page.evaluate("say('word '); new Promise(requestAnimationFrame)");
  const spent = (await styleSeconds()) - before;
  assert.ok(spent < 0.8, `${spent} seconds`); // 0.02 instead of 1.5
});

test('opening a long conversation does not search all messages for each of them', {
  skip,
}, async (t) => {
  const page = await openPage(t, { options });
  await page.evaluate(() => {
    const { querySelector } = Element.prototype;
    Object.assign(globalThis, { searches: 0 });
    Element.prototype.querySelector = function (/** @type {string} */ selector) {
      if (this.id === 'log') /** @type {any} */ (globalThis).searches++;
      return querySelector.call(this, selector);
    };
  });
  await page.setInputFiles('#import-file', longChat(60));
  await page.locator('.message').nth(59).waitFor();
  const searches = await page.evaluate('searches');
  assert.ok(searches < 20, `${searches} searches`);
});

test('text typed before the conversations are open is a draft of only one', { skip }, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes']);
  await untilKept(page, ({ turns }) => turns.length === 2);
  await page.addInitScript(`globalThis.goOn = [];
    const { addEventListener } = EventTarget.prototype;
    IDBOpenDBRequest.prototype.addEventListener = function (type, listener, ...more) {
      const late = (event) => (goOn ? goOn.push(() => listener.call(this, event)) : listener.call(this, event));
      addEventListener.call(this, type, type === 'success' ? late : listener, ...more);
    };`);
  await page.reload();
  await untilTrue(page, 'goOn?.length > 0');
  await page.fill('#prompt', 'typed early');
  await page.evaluate('for (const one of goOn.splice(0)) one(); goOn = undefined;');
  await untilAbout(page, 'foxes');
  const isOne = (/** @type {any} */ { conversations, drafts }) =>
    conversations.length === 1 && drafts.length === 1;
  const { drafts } = await untilKept(page, isOne);
  assert.equal(drafts[0].text, 'typed early');
  assert.equal(await page.inputValue('#prompt'), 'typed early');
});

test('Back while the page starts is not an error', { skip: skip || !isFull }, async (t) => {
  const page = await openPage(t, { options, script: holdLocks });
  await talkAbout(page, ['foxes', 'rivers']);
  await page.evaluate(() => {
    const { about } = { about: { id: 'x', version: 1, title: '', created: 0, changed: 0 } };
    const draft = { id: 'd', version: 1, conversation: 'x', field: '', text: 'typed', changed: 0 };
    const entry = { tab: 'gone', about: { ...about, isPinned: false, deleted: 0 }, draft };
    localStorage.setItem('wick-chat-typed d', JSON.stringify(entry));
    window.name = 'hold';
  });
  await page.reload();
  await untilTrue(page, 'asking > 0');
  await page.evaluate(async () => {
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
  });
  await page.evaluate('hold.resolve()');
  await untilAbout(page, 'foxes');
  assert.equal(await page.isVisible('#problem'), false);
});

test('a visitor sees that the page is starting before its scripts have arrived', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  /** @type {(value?: unknown) => void} */
  let release = () => {};
  const held = new Promise((settle) => {
    release = settle;
  });
  await page.route('**/page.js', async (route) => {
    await held;
    await route.continue();
  });
  const going = page.goto(`${url()}?model=https%3A%2F%2F%5B`);
  await page.getByText('The page is starting').waitFor();
  assert.equal(await page.isVisible('#cancel-loading'), false, 'there is nothing to pause yet');
  release();
  await going;
  await page.waitForSelector('#send:not([disabled])');
  await page.locator('#loading').waitFor({ state: 'hidden' });
  const said = await page.innerText('#problem-text'); // the URL did not contain a model
  assert.match(said, /^“https:\/\/\[” is not a model URL, which must begin with https/);
});

test('a duplicated tab does not share its draft and its answer', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options });
  await talkAbout(page, ['foxes']);
  await page.fill('#prompt', 'Tell me more');
  await page.keyboard.press('Enter');
  await page.evaluate(`say('Half ')`);
  await page.locator('.body', { hasText: 'Half' }).waitFor();
  await page.fill('#prompt', 'A draft');
  for (;;) {
    const { drafts, turns } = await readAll(page);
    if (drafts.length === 1 && turns.length === 4) break;
    await page.evaluate(`say('and ')`); // a new piece causes the earlier ones to be stored
  }
  const [twin] = await Promise.all([
    page.waitForEvent('popup'), // the new tab has a copy of the session storage, like a duplicated one
    page.evaluate(() => void window.open(location.href)),
  ]);
  await twin.locator('#log[data-conversation]').waitFor();
  await twin.locator('.message.assistant footer', { hasText: 'in another tab' }).waitFor();
  assert.equal(await twin.inputValue('#prompt'), '');
  assert.equal(await twin.locator('.continue').count(), 0);
  await page.evaluate(`say('and the rest.'); end()`);
  await twin.locator('.body', { hasText: 'and the rest.' }).waitFor();
  await twin.close();
  await page.reload(); // the tab restores its own draft immediately
  await waitForPage(async () => (await page.inputValue('#prompt')) === 'A draft', 'the draft');
});
