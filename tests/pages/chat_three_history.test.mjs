// The browser's history, a duplicated tab and the page's start in Firefox and WebKitGTK, with a fake engine. More thorough
// tests in Chromium: tests/pages/chat_history.test.mjs.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { before } from 'node:test';
import { runPasses, testInBoth, useStub } from '../support/two_browsers.mjs';

/** Delays the package until the test releases it, so that the page's scripts do not run earlier. */
const holding = `
  if (location.search.includes('held')) await new Promise((settle) => { globalThis.release = settle; });`;

const { site, url } = useStub('chat-three-history', holding);

// a page from which others are opened
before(() => writeFileSync(resolve(site, 'empty.html'), '<!doctype html><title>Empty</title>'));

/** Runs in the page. */
const helpers = `
  const about = (name) => 'About ' + name + ',It is about ' + name + '.';
  const talkAbout = async (...names) => {
    for (const name of names) {
      one('#new-chat').click();
      await talk('About ' + name, 'It is about ' + name + '.');
    }
  };
  const untilAbout = (name) => until(name, () => shown().join() === about(name));
  const box = (text) => until('typed: ' + text, () => one('#prompt').value === text);
  const notice = (text) => until(text, () => !one('#notice').hidden && one('#notice-text').textContent.includes(text));`;

/** @type {[name: string, script: string, wanted: object][]} */
const passes = [
  [
    'pressing Back again before a conversation has opened keeps the Forward history',
    `${helpers}
    await talkAbout('foxes', 'rivers', 'lamps');
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
    history.back();
    await untilAbout('foxes');
    history.forward();
    await untilAbout('rivers');
    history.forward();
    await untilAbout('lamps');
    history.back();
    await new Promise((settle) => addEventListener('hashchange', settle, { once: true }));
    one('#new-chat').click();
    type('Something else');
    await until('kept', async () => (await readAll()).drafts.some(({ text }) => text === 'Something else'));
    return { shown: shown(), box: one('#prompt').value };`,
    { shown: [], box: 'Something else' },
  ],
  [
    'Back to a deleted conversation reports it and offers to restore it',
    `${helpers}
    await talkAbout('owls', 'trees');
    openList();
    await act('About owls', 'Delete');
    await notice('was deleted');
    one('#dismiss-notice').click();
    history.back();
    await notice('“About owls” is deleted.');
    const stays = shown().join() === about('trees');
    one('#undo').click();
    await untilAbout('owls');
    await until('in the list', () => titles().includes('About owls'));
    location.hash = 'of-another-browser';
    await notice('is not in this browser');
    return { stays };`,
    { stays: true },
  ],
  [
    'unsent input has an entry in the history',
    `${helpers}
    await talkAbout('lakes');
    one('#new-chat').click();
    type('Half a thought');
    one('#new-chat').click();
    type('Another one');
    history.back();
    await box('Half a thought');
    history.back();
    await untilAbout('lakes');
    for (const text of ['Half a thought', 'Another one']) {
      history.forward();
      await box(text);
    }
    return { shown: shown() };`,
    { shown: [] },
  ],
];

testInBoth(
  'Back in quick succession, to a deleted conversation, and with an unsent draft',
  (visit) => runPasses(visit, url(), passes),
);

/** Runs in a page of the same origin, whose scripts can access the tabs that it opens. */
const twins = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 20));
    }
    throw new Error('not so: ' + what);
  };
  const open = (from) => from.open('./index.html' + from.location.hash) ?? Promise.reject(new Error('no tab is opened'));
  const tab = await open(window);
  const one = (selector, of = tab) => of.document.querySelector(selector);
  const type = (text) => {
    one('#prompt').value = text;
    one('#prompt').dispatchEvent(new tab.Event('input'));
  };
  const isReady = (of) => one('#log[data-conversation]', of) && !one('#send', of).disabled;
  await until('the tab', () => isReady(tab));
  type('Tell me more');
  one('#composer').requestSubmit();
  await until('asked', () => tab.asked.length === 1);
  tab.say('Half ');
  await until('half', () => one('.message.assistant .body')?.textContent.includes('Half'));
  type('A draft');
  const rows = (store) => new Promise((settle, fail) => {
    const opening = indexedDB.open('wick-chat');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const reading = opening.result.transaction(store).objectStore(store).getAll();
      reading.onsuccess = () => { opening.result.close(); settle(reading.result); };
    };
  });
  await until('kept', async () => {
    tab.say('and '); // a new piece causes the earlier ones to be stored
    return (await rows('drafts')).some(({ text }) => text === 'A draft') &&
      (await rows('turns')).some(({ content }) => content.startsWith('Half'));
  });
  const twin = await open(tab); // the new tab has a copy of the session storage, like a duplicated one
  await until('the twin', () => isReady(twin));
  await until('told', () => one('.message.assistant footer', twin)?.textContent.includes('in another tab'));
  const found = { box: one('#prompt', twin).value, goesOn: Boolean(one('.continue', twin)) };
  tab.say('the rest.');
  tab.end();
  await until('the rest', () => one('.message.assistant .body', twin).textContent.includes('and the rest.'));
  const { wrong } = twin;
  twin.close();
  const { document } = tab;
  tab.location.reload();
  await until('reloaded', () => tab.document !== document && isReady(tab));
  await until('its own draft', () => one('#prompt').value === 'A draft');
  return { ...found, wrong: [...wrong, ...tab.wrong] };`;

/** Runs in a page whose scripts wait: returns the text that a visitor sees, and then the message about the URL. */
const starting = `
  const one = (selector) => document.querySelector(selector);
  const until = async (condition) => {
    while (!condition()) await new Promise((settle) => setTimeout(settle, 20));
  };
  await until(() => globalThis.release);
  const isSeen = (selector) => one(selector).checkVisibility();
  const before = [one('#loading').innerText, isSeen('#loading'), isSeen('#cancel-loading'), one('#send').disabled];
  release();
  await until(() => !one('#send').disabled && one('#loading').hidden);
  return { before, problem: one('#problem-text').textContent, wrong };`;

testInBoth(
  'a duplicated tab keeps its draft; a visitor sees that the page is starting',
  async (visit) => {
    assert.deepEqual(await visit(`${url()}empty.html`, twins), {
      box: '',
      goesOn: false,
      wrong: [],
    });
    const found = await visit(`${url()}?held&model=https%3A%2F%2F%5B`, starting);
    assert.deepEqual(found.before.slice(1), [true, false, true]);
    assert.match(found.before[0], /The page is starting/);
    assert.match(found.problem, /^“https:\/\/\[” is not a model URL, which must begin with https/);
    assert.deepEqual(found.wrong, []);
  },
);
