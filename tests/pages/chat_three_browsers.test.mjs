// The promises of the chat page, in Firefox and WebKitGTK, with a fake engine: saved data, versions, the list, a full
// context, models, parts of an answer, a full disk. More thorough tests in Chromium: tests/pages/conversations.test.mjs and
// tests/pages/chat_*.test.mjs. A full disk is simulated in Firefox by a preference, in WebKitGTK by storage that fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findViolations } from '../support/accessible.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { begin } from '../support/chat_steps.mjs';
import { locate } from '../support/locate.mjs';
import { runPasses, useStub, visitsOfFirefox, visitsOfWebKit } from '../support/two_browsers.mjs';

const { url } = useStub('chat-three-browsers');

/** Scripts that run in separate pages with the same profile, and their expected results. @type {[name: string, script: string, wanted: object][]} */
const passes = [
  [
    'versions, Stop, Continue, a system prompt, requesting persistent storage',
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
    const isAsked = await until('asked for', () => persists === Number(Boolean(navigator.storage)));
    return { elsewhere, back, last: shown().at(-1), told, temperatures, isAsked };`,
    {
      ...{ elsewhere: 'You: Second', back: ['First', 'One.', 'Second', 'Two.'] },
      ...{ last: 'Half of it.', told: 'Be brief.', temperatures: [0], isAsked: true },
    },
  ],
  [
    'parts of an answer, announcements, themes and keyboard shortcuts',
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
    const keys = await until('keys', () => one('#shortcuts-dialog').open);
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
    'the list: rename, pin, search, delete, undo, export and import',
    `one('#new-chat').click();
    await talk('About foxes', 'They are red.');
    one('#new-chat').click();
    await talk('About rivers', 'They are long.');
    openList();
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
    const saved = saving();
    await act('Red foxes', 'Save as Markdown');
    const markdown = await (await until('file', () => saved.file)).text();
    await act('Red foxes', 'Delete');
    await until('deleted', () => !titles().includes('Red foxes'));
    one('#undo').click();
    await until('undone', () => titles().includes('Red foxes'));
    const count = titles().length;
    takeIn('foxes.md', markdown);
    await until('taken in', () => titles().length === count + 1);
    return { markdown, shown: shown() };`,
    {
      markdown: '# Red foxes\n\n## You\n\nAbout foxes\n\n## Model\n\nThey are red.\n',
      shown: ['About foxes', 'They are red.'],
    },
  ],
  [
    'Back and Forward switch between the conversations that were open',
    `one('#new-chat').click();
    await talk('First question', 'One.');
    const [first] = [location.hash];
    one('#new-chat').click();
    await talk('Second question', 'Two.');
    one('#new-chat').click();
    const empty = location.hash;
    const { length } = history;
    one('#new-chat').click(); // switches from one empty conversation to another
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
    openList();
    await click('Actions for Third question');
    await click('Delete');
    await until('gone', () => shown().length === 0);
    await leads('back', 'Second question,Two.');
    return { isSame, isFirst, isEmpty };`,
    { isSame: true, isFirst: true, isEmpty: true },
  ],
  [
    'dropped items: a text file is added, another file is rejected with a reason, a link is not opened',
    `one('#new-chat').click();
    const drop = (name, ...parts) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(parts, name));
      dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
    };
    type('What does it print?');
    drop('a.py', 'print(1)');
    await until('text', () => one('.media.attached .chip'));
    drop('picture.png', new Uint8Array([0x89, 0x50, 0xff, 0]));
    const refused = await until('refused', () => one('#notice-text').textContent.includes('not a model') &&
      one('#notice-text').textContent.split(':')[0]);
    one('#composer').requestSubmit();
    await until('asked', () => asked.length === 1);
    await answer('One.');
    const dataTransfer = new DataTransfer();
    dataTransfer.setData('text/uri-list', 'https://example.org/');
    const left = Object.fromEntries(['prompt', 'search', 'log'].map((id) => [id, ['dragover', 'drop'].map((kind) =>
      one('#' + id).dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })))]));
    return { refused, asked, left };`,
    {
      ...{ refused: 'picture.png', asked: ['a.py:\n```py\nprint(1)\n```\nWhat does it print?'] },
      // these events are left to the browser, which inserts text and opens links
      left: { prompt: [true, true], search: [true, true], log: [false, false] },
    },
  ],
  [
    'pasted items: long text appears immediately at the caret; text that is too long is reported',
    `one('#new-chat').click();
    const field = one('#prompt');
    const line = 'word '.repeat(16) + '\\n';
    const told = (words) => until(words, () => !one('#notice').hidden && one('#notice-text').textContent.includes(words));
    const paste = (text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData('text/plain', text);
      const event = Object.defineProperty(new Event('paste', { cancelable: true }), 'clipboardData', { value: clipboardData });
      return field.dispatchEvent(event);
    };
    type('Before. Behind.');
    field.setSelectionRange(8, 8);
    const isLeft = [paste('a short one'), paste(line.repeat(1000))];
    await told('The model reads a book only once');
    const isThere = field.value === 'Before. ' + line.repeat(1000) + 'Behind.';
    const caret = field.selectionStart;
    type('What was typed');
    isLeft.push(paste(line.repeat(12_500)));
    await told('too long for a message');
    const stays = field.value;
    type('');
    await until('stored', async () => !(await readAll()).drafts.some(({ text }) => text.includes('typed')));
    return { isLeft, isThere, caret, stays };`,
    // short text is left to the browser, which inserts it
    { isLeft: [true, false, false], isThere: true, caret: 81_008, stays: 'What was typed' },
  ],
  [
    'a full context: text that is too long is reported, the oldest turns are replaced by a summary',
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
        'This text is 47 tokens too long: it has 100, and the context of the model has 60 tokens, of which 7 are reserved for the answer.',
      told: 'What was said before, in short: They spoke of foxes.',
      fold: 'Summary of the earlier messages: They spoke of foxes.',
    },
  ],
  [
    'a larger model is offered',
    `one('#new-chat').click();
    localStorage.removeItem('wick-chat-offered');
    await talk('Who was king?', 'I do not know that.');
    const offer = await until('offer', () => !one('#notice').hidden && one('#notice-text').textContent);
    return { isOffered: /knows more: 384 MB/.test(offer) };`,
    { isOffered: true },
  ],
  [
    'a model is rated, downloads in the background, pauses, resumes and is used; the previous one is used in the meantime',
    `one('#new-chat').click();
    let release;
    globalThis.holdDownload = (url, { signal, onProgress }) => new Promise((settle, fail) => {
      release = settle;
      signal.addEventListener('abort', () => fail(signal.reason));
      onProgress({ loaded: 500, received: 500, total: 1000 });
    });
    await choose('https://example.org/other.gguf');
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
    await untilModel('other.gguf');
    await talk('And now', 'I am another.');
    return { before, fetched: fetched.length, shown: shown() };`,
    {
      ...{ before: 1, fetched: 2 },
      shown: ['Meanwhile', 'I am here.', 'And now', 'I am another.'],
    },
  ],
  [
    'JSON is exported and imported; another file is rejected with a reason',
    `one('#new-chat').click();
    await talk('Say it', 'The first.');
    one('.regenerate').click();
    await until('asked again', () => asked.length === 2);
    await answer('The second.');
    openList();
    const saved = saving();
    await act('Say it', 'Save as JSON');
    const text = await (await until('file', () => saved.file)).text();
    const { length } = titles();
    one('#new-chat').click();
    takeIn('said.json', text);
    await until('taken in', () => titles().length === length + 1 && shown().length === 2);
    takeIn('bad.json', '{');
    const refused = await until('refused', () => !one('#problem').hidden && one('#problem-text').textContent);
    return { shown: shown(), versions: one('.message.assistant .versions > span').textContent, refused: refused.slice(0, 22) };`,
    {
      ...{ shown: ['Say it', 'The second.'], versions: '2 / 2' },
      refused: 'bad.json is not a file',
    },
  ],
  [
    'reading progress is shown, an answer at the length limit is continued, low storage is reported',
    `one('#new-chat').click();
    if (navigator.storage) Object.getPrototypeOf(navigator.storage).estimate = async () => ({ usage: 9e6, quota: 10e6 });
    submit('A long text');
    await until('asked', () => asked.length === 1);
    const told = async (text) => await until(text, () => one('#live').textContent === text);
    prefill({ done: 128, total: 2048 });
    await told('Reading 128 of 2,048 tokens');
    await new Promise((settle) => setTimeout(settle, 1600));
    prefill({ done: 1024, total: 2048 });
    await until('time', () => /^Reading 1,024 of 2,048 tokens, about \\d+ s left$/.test(one('#live').textContent));
    say('One');
    await told('Writing: 1 token');
    end('length');
    await until('not finished', () => one('.message.assistant').textContent.includes('the answer reached the length limit'));
    await click('Continue');
    await until('asked', () => asked.length === 2);
    await answer(' and two.');
    const isLittle = () => one('#room-text').textContent.includes('nearly full: 1.0 MB of 10.0 MB are free');
    if (navigator.storage) await until('told', isLittle);
    return { shown: shown(), prefix: bodies[1].messages.at(-1) };`,
    {
      shown: ['A long text', 'One and two.'],
      prefix: { role: 'assistant', content: 'One', prefix: true },
    },
  ],
  [
    'the model of a conversation is loaded with it; a download is kept when models are switched',
    `one('#new-chat').click();
    const first = one('#model-name').textContent;
    await talk('To the first', 'One.');
    one('#new-chat').click();
    await choose('https://example.org/second.gguf');
    await untilModel('second.gguf');
    await talk('To the second', 'Two.');
    openList();
    const open = async (title) => (await until(title, () => all('#conversation-list a')
      .find((link) => link.textContent === title))).click();
    await open('To the first');
    await untilModel(first);
    let release;
    globalThis.holdDownload = (url, { onProgress }) => new Promise((settle) => {
      release = settle;
      onProgress({ loaded: 500, received: 500, total: 1000 });
    });
    await choose('https://example.org/third.gguf');
    await until('loading', () => release && !one('#loading').hidden);
    await open('To the second');
    await untilModel('second.gguf');
    await talk('And then', 'I am here.');
    const { length } = fetched;
    release();
    await until('here', () => one('#notice-text').textContent.includes('third.gguf has been downloaded.'));
    return { name: one('#model-name').textContent, isOnce: fetched.length === length, shown: shown() };`,
    {
      ...{ name: 'second.gguf', isOnce: true },
      shown: ['To the second', 'Two.', 'And then', 'I am here.'],
    },
  ],
  [
    'the model of the last visit is loaded',
    `return { name: one('#model-name').textContent, loaded: loaded.length };`,
    { name: 'second.gguf', loaded: 1 },
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
    'both are restored at the next visit, and the answer continues',
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

/** Runs after a script that fills the storage and sets \`empty\`, a function that empties it again. @param {string} fill */
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

/** Limits Firefox's storage so much that pages fill it. */
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

/** @param {import('../support/two_browsers.mjs').Visit} visit @param {string} fill */
const keepsPromises = (visit, fill) =>
  runPasses(visit, url(), [...passes, ['a full disk', fullPass(fill), {}]]);

/** The tested window sizes: a phone, a phone in landscape, a desktop at 200%. */
const sizes = { landscape: [844, 390], zoomed: [640, 400], phone: [390, 780] };
const wide = "'A long line of code that does not fit. '.repeat(9)";
const said = `'Some \`code\`, $x^2$:\\n\\n\`\`\`js\\n' + ${wide} + '\\n\`\`\`\\n\\n| a | b |\\n|---|---|\\n| ' + ${wide} + ' | 2 |'`;

/** The states of the page that are checked in every size, and with axe in the last one. @type {Record<string, string>} */
const states = {
  conversation: `one('#new-chat').click();
    submit('A question');
    await until('asked', () => asked.length > 0);
    say(${said});
    end();
    await until('typeset', () => one('.formula math') && one('.body td'));
    await atRest();`,
  'half an answer':
    "submit('Another'); await until('asked', () => asked.at(-1) === 'Another'); say('Half an');",
  picker: "end(); await atRest(); one('#choose-model').click();",
  settings: "one('#model-dialog').close(); one('#open-settings').click();",
  shelf:
    "one('#settings-dialog').close(); one('#open-books').click(); await until('shelf', () => one('#books-dialog[open]'));",
};

/** Finds elements wider than the window, and tests whether the message field is visible. */
const findOutside = `
  const problems = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) problems.push('wide: ' + root.scrollWidth + ' of ' + innerWidth);
  const { bottom, top } = one('#send').getBoundingClientRect();
  if (bottom > innerHeight || top < 0) problems.push('the box is outside');
  return { problems, width: innerWidth, height: innerHeight };`;

/**
 * @param {(script: string) => Promise<any>} run in the page
 * @param {(width: number, height: number) => Promise<unknown>} resize
 */
async function looksRight(run, resize) {
  for (const [state, enter] of Object.entries(states)) {
    await run(`${begin}\n${enter}`);
    for (const [size, [width, height]] of Object.entries(sizes)) {
      await resize(width, height);
      const found = await run(`${begin}\n${findOutside}`);
      assert.deepEqual(found.problems, [], `${state}, ${size}`);
      const isSo = found.height === height && found.width >= width && found.width < width + 80;
      assert.ok(isSo, `${size}: ${found.width} x ${found.height}`); // windows in WebKitGTK are at least 447 pixels wide
    }
    assert.deepEqual(await run(`${begin}\n${findViolations}`), [], state);
  }
}

test('Firefox keeps the page’s promises', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox(little);
  t.after(() => firefox.close());
  await keepsPromises(visitsOfFirefox(firefox), filling);
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url());
  await looksRight(
    (script) => page.evaluate(`(async () => { ${script} })()`),
    (width, height) => page.setViewport({ width, height }),
  );
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await keepsPromises(visitsOfWebKit(page), failing);
  await page.goto(`${url()}?visit=last`);
  await looksRight(
    (script) => page.evaluate(script),
    (width, height) => resizeInside(page, width, height),
  );
});

/** Resizes the window so that its content area has this size. @param {import('../support/browsers.mjs').WebKitPage} page @param {number} width @param {number} height */
async function resizeInside(page, width, height) {
  for (let tries = 0; tries < 5; tries++) {
    const [innerWidth, innerHeight] = await page.evaluate('return [innerWidth, innerHeight]');
    if (innerHeight === height && Math.abs(innerWidth - width) < 80) return;
    const around = await page.command('GET', '/window/rect');
    await page.command('POST', '/window/rect', {
      ...{ width: around.width + width - innerWidth, height: around.height + height - innerHeight },
    });
    await new Promise((settle) => setTimeout(settle, 200));
  }
}

/** Two tabs ask alternately; afterwards both show all messages. */
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

/**
 * Returns the actions of a tab while the other one performs the same ones, first in one
 * conversation.
 * @param {number} tab
 * @param {number} part
 */
const steps = (tab, part) => `
  globalThis.answersByItself = 'Yes, it is.';
  const texts = [];
  openList();
  const ask = async () => {
    const text = 'Tab ${tab} asks ' + ${part} + '.' + texts.length;
    submit(text);
    await until(text, () => shown().includes(text));
    texts.push(text);
  };
  await atRest();
  await ask();
  if (${part} === 1) await atRest();
  if (${part} === 1) one('#new-chat').click();
  await atRest();
  await ask();
  const links = await until('list', () => titles().length > 0 && all('#conversation-list a'));
  if (${part} === 2) links[${tab} % links.length].click();
  await atRest();
  await ask();
  await atRest();
  return texts;`;

/** Returns all questions, and which of them are stored and shown in the list. */
const kept = `
  openList();
  const { turns, conversations } = await readAll();
  await until('list', () => titles().length === conversations.length);
  const ids = new Set(turns.map(({ id }) => id));
  return { isOnce: ids.size === turns.length, hasParents: turns.every(({ parent }) => parent === '' || ids.has(parent)),
    texts: turns.filter(({ role }) => role === 'user').map(({ content }) => content), wrong };`;

/** @param {(tab: number, script: string) => Promise<any>} run in one of two tabs @param {(hash: string) => Promise<unknown>} openSecond */
async function showsBoth(run, openSecond) {
  const script = (/** @type {string} */ own) => `${begin}\n${own}`;
  await openSecond(await run(0, script(turns.first)));
  const said = ['Here', 'First.', 'There', 'Second.'];
  assert.deepEqual(await run(1, script(turns.second)), said);
  assert.deepEqual(await run(0, script(turns.both)), said);
  const asked = ['Here', 'There'];
  for (const part of [0, 1, 2])
    for (const texts of await Promise.all([0, 1].map((tab) => run(tab, script(steps(tab, part))))))
      asked.push(...texts);
  for (const tab of [0, 1]) {
    const { texts, ...rest } = await run(tab, script(kept));
    assert.deepEqual(rest, { isOnce: true, hasParents: true, wrong: [] });
    assert.deepEqual(texts.sort(), asked.toSorted());
  }
}

test('two tabs of Firefox show each other’s messages, and lose none that are sent at the same time', {
  skip: locate('firefox').skip,
}, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const pages = [await firefox.newPage(), await firefox.newPage()];
  for (const page of pages) page.setDefaultTimeout(PATIENCE_MS);
  await pages[0].goto(url());
  await showsBoth(
    (tab, script) => pages[tab].evaluate(`(async () => { ${script} })()`),
    (hash) => pages[1].goto(url() + hash),
  );
});

test('so do two tabs of WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await page.goto(url());
  const handles = [await page.command('GET', '/window')];
  const show = (/** @type {number} */ tab) =>
    page.command('POST', '/window', { handle: handles[tab] });
  let last = Promise.resolve();
  await showsBoth(
    (tab, script) => {
      // one after the other: the driver has one window at a time
      const found = last.then(() => show(tab)).then(() => page.evaluate(script));
      last = found.catch(() => {});
      return found;
    },
    async (hash) => {
      handles.push((await page.command('POST', '/window/new', { type: 'tab' })).handle);
      await show(1);
      await page.goto(url() + hash);
    },
  );
});
