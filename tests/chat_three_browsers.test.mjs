// What the chat page promises, in Firefox and WebKitGTK, over an engine of the test's own: nothing is lost, versions, the list,
// a context that fills, models that come, what an answer can have, a full disk. The same in Chromium, each at length:
// tests/conversations.test.mjs and tests/chat_*.test.mjs. A full disk is forced in Firefox by a preference, in WebKitGTK by a
// storage that fails.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { buildChat } from '../examples/chat/build.mjs';
import { serve } from '../tools/serve.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from './support/browsers.mjs';
import { stubEngine, stubModels } from './support/chat_stub.mjs';
import { locate, root } from './support/locate.mjs';

const site = resolve(root, 'build/chat-three-browsers');
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

/** No answer begins before Enter; what goes wrong is the test's. */
const prelude = `
  Object.assign(globalThis, { wrong: [], persists: 0, isFull: false });
  addEventListener('error', ({ message }) => wrong.push(message));
  addEventListener('unhandledrejection', ({ reason }) => wrong.push(String(reason)));
  const consoleError = console.error;
  console.error = (...words) => { wrong.push(words.join(' ')); consoleError.apply(console, words); };
  if (navigator.storage) Object.assign(Object.getPrototypeOf(navigator.storage), {
    persisted: async () => false,
    persist: async () => { persists++; return false; },
  });
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...row) {
    if (isFull) throw new DOMException('The test wants it so', 'QuotaExceededError');
    return put.apply(this, row);
  };
  localStorage.setItem('wick-chat-settings', '{"ahead":false}');`;

before(async () => {
  await buildChat(site);
  writeFileSync(resolve(site, 'wick-llm/index.js'), prelude + stubEngine);
  writeFileSync(resolve(site, 'wick-llm/models.js'), stubModels);
  server = await serve({ root: site });
});

after(() => server.close());

/** Begins each script that runs in the page. */
const begin = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 20));
    }
    throw new Error('not so: ' + what + ': ' + wrong + document.body.innerText);
  };
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const button = (text) => all('button').find((element) =>
    [element.textContent, element.getAttribute('aria-label')].includes(text));
  const click = async (text) => (await until(text, () => button(text))).click();
  const type = (text, field = one('#prompt')) => {
    field.value = text;
    field.dispatchEvent(new Event('input'));
  };
  const submit = (text) => {
    type(text);
    one('#composer').requestSubmit();
  };
  const atRest = () => until('at rest', () => one('#log').getAttribute('aria-busy') === 'false');
  const shown = () => all('.message .body').map((body) => body.textContent.trim());
  const answer = async (text) => {
    say(text);
    end();
    await until(text, () => shown().some((body) => body.includes(text)));
    await atRest();
  };
  const talk = async (question, text) => {
    submit(question);
    await until('asked: ' + question, () => asked.at(-1) === question);
    await answer(text);
  };
  const readAll = async () => {
    const db = await new Promise((settle, fail) => {
      const opening = indexedDB.open('wick-chat');
      opening.onsuccess = () => settle(opening.result);
      opening.onerror = fail;
    });
    const rows = (name) => new Promise((settle, fail) => {
      const reading = db.transaction(name).objectStore(name).getAll();
      reading.onsuccess = () => settle(reading.result);
      reading.onerror = fail;
    });
    const [turns, drafts] = [await rows('turns'), await rows('drafts')];
    db.close();
    return { turns, drafts };
  };
  const setting = async (name, value) => {
    one('#open-settings').click();
    one('#settings-form [name=' + name + ']').value = value;
    const closed = new Promise((settle) => one('#settings-dialog').addEventListener('close', settle, { once: true }));
    one('#settings-form [value=save]').click();
    await closed;
  };
  await until('ready', () => !one('#send').disabled);
  `;

/** Each runs in a page of its own, of one profile; what it returns is compared. @type {[name: string, script: string, wanted: object][]} */
const passes = [
  [
    'versions, Stop, Continue, a system prompt, storage that is asked for',
    `one('#new-chat').click();
    await setting('temperature', '0');
    await setting('system', 'Be brief.');
    await talk('First', 'One.');
    await talk('Second', 'Two.');
    one('.regenerate').click();
    await until('asked again', () => asked.length === 3);
    await answer('Another.');
    const elsewhere = (await until('elsewhere', () => one('.elsewhere'))).querySelector('li').textContent;
    one('.elsewhere button').click();
    const back = shown();
    submit('Third');
    await until('asked', () => asked.length === 4);
    say('Half');
    await until('half', () => shown().includes('Half'));
    one('#stop').click();
    await click('Continue');
    await answer(' of it.');
    const told = one('#told').hidden ? '' : one('#told-text').textContent;
    const temperatures = [...new Set(bodies.map(({ temperature }) => temperature))];
    return { elsewhere, back, last: shown().at(-1), told, temperatures, isAsked: persists === Number(Boolean(navigator.storage)) };`,
    {
      ...{ elsewhere: 'You: Second', back: ['First', 'One.', 'Second', 'Two.'] },
      ...{ last: 'Half of it.', told: 'Be brief.', temperatures: [0], isAsked: true },
    },
  ],
  [
    'what an answer can have, announced; colours and keys',
    `one('#new-chat').click();
    const heard = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) heard.push(node.textContent.trim());
    }).observe(one('#announcer'), { childList: true });
    submit('All of it');
    await until('asked', () => asked.length === 1);
    think('Let me see.');
    say(['Some words.', '$x^2$', '\`\`\`js\\nconst a = "b";\\n\`\`\`', '| a | b |\\n|---|---|\\n| 1 | 2 |',
      '![a cat](https://example.org/cat.png)'].join('\\n\\n'));
    end();
    await atRest();
    await until('colours', () => one('.hljs-string'));
    await until('formula', () => one('.formula math'));
    const thought = one('.reasoning summary').textContent.replace(/[\\d.]+/, 'N');
    const picture = all('.body a').at(-1).textContent;
    await setting('theme', 'dark');
    const { theme } = document.documentElement.dataset;
    const dark = getComputedStyle(document.body).backgroundColor;
    await setting('theme', '');
    dispatchEvent(new KeyboardEvent('keydown', { key: '?' }));
    const keys = one('#shortcuts-dialog').open;
    one('#shortcuts-dialog .primary').click();
    const cells = all('.body td').length;
    return { thought, picture, theme, dark, keys, cells, heard: [heard[0], heard.at(-1)] };`,
    {
      ...{
        thought: 'Thought for N s',
        picture: 'Picture: a cat',
        theme: 'dark',
        keys: true,
        cells: 2,
      },
      ...{ dark: 'rgb(22, 21, 19)', heard: ['The model answers:', 'End of the answer.'] },
    },
  ],
  [
    'the list: rename, pin, search, delete, undo, out and in again',
    `one('#new-chat').click();
    await talk('About foxes', 'They are red.');
    one('#new-chat').click();
    await talk('About rivers', 'They are long.');
    if (!one('#conversations').open) one('#open-list').click();
    const titles = () => all('#conversation-list a').map((link) => link.textContent);
    const act = async (title, action) => {
      await click('Actions for ' + title);
      await until(action, () => one('.actions') && button(action));
      button(action).click();
    };
    await act('About foxes', 'Rename');
    const field = await until('field', () => one('#conversation-list input'));
    field.value = 'Red foxes';
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
    await until('renamed', () => titles().includes('Red foxes'));
    await act('Red foxes', 'Pin');
    await until('pinned', () => titles()[0] === 'Red foxes' && one('.pinned'));
    type('long', one('#search'));
    await until('found', () => titles().join() === 'About rivers' && one('mark'));
    type('', one('#search'));
    await until('all', () => titles().length > 1);
    let file;
    URL.createObjectURL = (blob) => { file = blob; return 'data:,'; };
    HTMLAnchorElement.prototype.click = () => {};
    await act('Red foxes', 'Save as Markdown');
    const markdown = await (await until('file', () => file)).text();
    await act('Red foxes', 'Delete');
    await until('deleted', () => !titles().includes('Red foxes'));
    one('#undo').click();
    await until('undone', () => titles().includes('Red foxes'));
    const count = titles().length;
    const transfer = new DataTransfer();
    transfer.items.add(new File([markdown], 'foxes.md'));
    one('#import-file').files = transfer.files;
    one('#import-file').dispatchEvent(new Event('change'));
    await until('taken in', () => titles().length === count + 1);
    return { markdown, shown: shown() };`,
    {
      markdown: '# Red foxes\n\n## You\n\nAbout foxes\n\n## Model\n\nThey are red.\n',
      shown: ['About foxes', 'They are red.'],
    },
  ],
  [
    'Back and Forward of the browser lead through the conversations that were open',
    `one('#new-chat').click();
    await talk('First question', 'One.');
    const [first] = [location.hash];
    one('#new-chat').click();
    await talk('Second question', 'Two.');
    one('#new-chat').click();
    const empty = location.hash;
    const { length } = history;
    one('#new-chat').click(); // from nothing to nothing
    const isSame = history.length === length;
    const last = location.hash;
    const leads = async (how, wanted) => {
      history[how]();
      await until(how + ' to ' + wanted, () => shown().join() === wanted);
      await until('drawn', () => one('#log').dataset.conversation === location.hash.slice(1));
    };
    await leads('back', 'Second question,Two.');
    await leads('back', 'First question,One.');
    const isFirst = location.hash === first;
    await leads('forward', 'Second question,Two.');
    await leads('forward', '');
    const isEmpty = location.hash === last && last !== empty;
    await talk('Third question', 'Three.');
    await leads('back', 'Second question,Two.');
    await leads('forward', 'Third question,Three.');
    if (!one('#conversations').open) one('#open-list').click();
    await click('Actions for Third question');
    await click('Delete');
    await until('gone', () => shown().length === 0);
    await leads('back', 'Second question,Two.');
    return { isSame, isFirst, isEmpty };`,
    { isSame: true, isFirst: true, isEmpty: true },
  ],
  [
    'what is dropped: a text is asked about, another file is refused in words',
    `one('#new-chat').click();
    const drop = (name, ...parts) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(parts, name));
      dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
    };
    type('What does it print?');
    drop('a.py', 'print(1)');
    await until('text', () => one('#prompt').value.includes('print(1)'));
    drop('picture.png', new Uint8Array([0x89, 0x50, 0xff, 0]));
    const refused = await until('refused', () => one('#notice-text').textContent.includes('neither a model') &&
      one('#notice-text').textContent.split(':')[0]);
    one('#composer').requestSubmit();
    await until('asked', () => asked.length === 1);
    await answer('One.');
    return { refused, asked };`,
    { refused: 'picture.png', asked: ['What does it print?\n\na.py:\n```py\nprint(1)\n```'] },
  ],
  [
    'a context that fills: what is too long is told, the oldest turns are folded',
    `one('#new-chat').click();
    Object.assign(globalThis, { contextSize: 60, summary: 'They spoke of foxes.' });
    const words = 'The fox and the lamp went to the river and came back';
    for (const turn of [1, 2]) await talk(turn + ' ' + words, 'Answer ' + turn + '. ' + words);
    submit('word '.repeat(100).trim());
    await until('too long', () => one('#context-text').textContent.includes('tokens too long'));
    const tooLong = one('#context-text').textContent;
    type('');
    submit('And now?');
    await until('offer', () => one('#context-text').textContent.startsWith('With this question'));
    one('#fold-room').click();
    await until('asked', () => asked.at(-1) === 'And now?');
    await answer('Now.');
    return { tooLong, told: bodies.at(-1).messages[0].content, fold: one('.fold').textContent };`,
    {
      tooLong:
        'This text is 47 tokens too long: it has 100, and the model reads 60 at once, of which 7 are for the answer.',
      told: 'What was said before, in short: They spoke of foxes.',
      fold: 'What came before, in short: They spoke of foxes.',
    },
  ],
  [
    'a larger model is offered',
    `one('#new-chat').click();
    localStorage.removeItem('wick-chat-offered');
    await talk('Who was king?', 'I do not know that.');
    const offer = await until('offer', () => !one('#notice').hidden && one('#notice-text').textContent);
    return { isOffered: /384 MB.*knows more/.test(offer) };`,
    { isOffered: true },
  ],
  [
    'a model is judged, comes in the background, is paused, goes on and answers; the one before answers meanwhile',
    `one('#new-chat').click();
    let release;
    globalThis.holdDownload = (url, { signal, onProgress }) => new Promise((settle, fail) => {
      release = settle;
      signal.addEventListener('abort', () => fail(signal.reason));
      onProgress({ loaded: 500, received: 500, total: 1000 });
    });
    one('#choose-model').click();
    type('https://example.org/other.gguf', one('#model-url'));
    await until('judged', () => one('#found .verdict'));
    one('#load-model').click();
    await until('loading', () => release && !one('#loading').hidden);
    await talk('Meanwhile', 'I am here.');
    one('#cancel-loading').click();
    await until('paused', () => one('#loading').hidden);
    one('#choose-model').click();
    const before = fetched.length;
    release = undefined;
    await click('Resume: other.gguf');
    await until('resumed', () => release);
    release();
    await click('Use: other.gguf');
    await until('there', () => one('#model-name').textContent === 'other.gguf');
    await talk('And now', 'I am another.');
    return { before, fetched: fetched.length, shown: shown() };`,
    {
      ...{ before: 1, fetched: 2 },
      shown: ['Meanwhile', 'I am here.', 'And now', 'I am another.'],
    },
  ],
  [
    'half an answer, and a draft',
    `one('#new-chat').click();
    submit('A question');
    await until('asked', () => asked.length === 1);
    say('Half an');
    await new Promise((settle) => setTimeout(settle, 250));
    say(' answer');
    type('and a draft');
    await until('kept', async () => {
      const { turns, drafts } = await readAll();
      return turns.some(({ content }) => content.startsWith('Half an')) && drafts.some(({ text }) => text === 'and a draft');
    });
    return { hash: location.hash.length > 1 };`,
    { hash: true },
  ],
  [
    'both are there at the next visit, and the answer goes on',
    `await until('shown', () => one('.continue'));
    const [question, begun] = shown();
    const draft = one('#prompt').value;
    await click('Continue');
    await until('asked', () => asked.length === 1);
    await answer(' that ended.');
    return { question, isBegun: begun.startsWith('Half an'), ends: shown()[1].endsWith(' that ended.'), draft };`,
    { question: 'A question', isBegun: true, ends: true, draft: 'and a draft' },
  ],
];

/** Behind a script that fills the storage and sets \`empty\`, which empties it again. @param {string} fill */
const fullPass = (fill) => `
  one('#new-chat').click();
  await talk('Before', 'There is room.');
  let empty;
  ${fill}
  submit('While it is full ' + 'x'.repeat(3e5));
  await until('asked', () => asked.length === 2);
  await answer('I answer.');
  await until('told', () => !one('#room').hidden && one('#room-text').textContent.includes('storage is full'));
  await empty();
  await click('Try again');
  await until('stored', () => one('#room').hidden);
  await until('kept', async () => (await readAll()).turns.some(({ content }) => content === 'I answer.'));
  return {};`;

const failing = 'isFull = true; empty = () => { isFull = false; };';

/** Firefox has so little room that pages reach its end. */
const little = { 'dom.quotaManager.temporaryStorage.fixedLimit': 20_480 };
const filling = `
  const db = await new Promise((settle, fail) => {
    const opening = indexedDB.open('filler');
    opening.onupgradeneeded = () => opening.result.createObjectStore('all');
    opening.onsuccess = () => settle(opening.result);
    opening.onerror = fail;
  });
  const letters = () => String.fromCharCode(...crypto.getRandomValues(new Uint16Array(2e4)).map((one) => 0x4e00 + (one % 0x5000)));
  const write = () => new Promise((settle) => {
    const transaction = db.transaction('all', 'readwrite');
    transaction.objectStore('all').put(letters(), Math.random());
    transaction.oncomplete = () => settle(true);
    transaction.onabort = () => settle(false);
  });
  let rows = 0;
  while (await write()) if (++rows > 2000) throw new Error('there is no end of room');
  db.close();
  empty = () => new Promise((settle) => { indexedDB.deleteDatabase('filler').onsuccess = settle; });`;

/** @param {(script: string) => Promise<any>} run in a new page of one profile @param {string} fill */
async function keepsPromises(run, fill) {
  for (const [name, script, wanted] of [...passes, ['a full disk', fullPass(fill), {}]]) {
    const found = await run(`${begin}\nconst found = await (async () => { ${script} })();
      return { ...found, wrong };`);
    assert.deepEqual(found, { .../** @type {object} */ (wanted), wrong: [] }, String(name));
  }
}

test('Firefox keeps the page’s promises', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox(little);
  t.after(() => firefox.close());
  await keepsPromises(async (script) => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    const found = await page.evaluate(`(async () => { ${script} })()`);
    await page.close();
    return found;
  }, filling);
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  let visits = 0;
  await keepsPromises(async (script) => {
    await page.goto(`${server.url}?visit=${++visits}`);
    return page.evaluate(script);
  }, failing);
});

/** Of two tabs: each asks, in turn; then both show all of it. */
const turns = {
  first: `one('#new-chat').click();
    await talk('Here', 'First.');
    return location.hash;`,
  second: `await until('shown', () => shown().join() === 'Here,First.');
    await talk('There', 'Second.');
    return shown();`,
  both: `await until('both', () => shown().length === 4);
    return shown();`,
};

/** @param {(tab: number, script: string) => Promise<any>} run in one of two tabs @param {(hash: string) => Promise<unknown>} openSecond */
async function showsBoth(run, openSecond) {
  const script = (/** @type {string} */ own) => `${begin}\n${own}`;
  await openSecond(await run(0, script(turns.first)));
  const said = ['Here', 'First.', 'There', 'Second.'];
  assert.deepEqual(await run(1, script(turns.second)), said);
  assert.deepEqual(await run(0, script(turns.both)), said);
}

test('two tabs of Firefox show what is said in the other one', {
  skip: locate('firefox').skip,
}, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const pages = [await firefox.newPage(), await firefox.newPage()];
  for (const page of pages) page.setDefaultTimeout(PATIENCE_MS);
  await pages[0].goto(server.url);
  await showsBoth(
    (tab, script) => pages[tab].evaluate(`(async () => { ${script} })()`),
    (hash) => pages[1].goto(server.url + hash),
  );
});

test('so do two tabs of WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await page.goto(server.url);
  const handles = [await page.command('GET', '/window')];
  const show = (/** @type {number} */ tab) =>
    page.command('POST', '/window', { handle: handles[tab] });
  await showsBoth(
    async (tab, script) => {
      await show(tab);
      return page.evaluate(script);
    },
    async (hash) => {
      handles.push((await page.command('POST', '/window/new', { type: 'tab' })).handle);
      await show(1);
      await page.goto(server.url + hash);
    },
  );
});
