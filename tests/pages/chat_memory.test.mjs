// The chat page's memory: forgetting and restoring a question and its answer, with a fake engine; the alternative words of
// an answer, and the tree above the map of pages, with the package's engine and the built-in model.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible } from '../support/accessible.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { bytesOf, useChat } from '../support/chat_page.mjs';
import { askReal, openReal, setTemperature, untilFact } from '../support/chat_real.mjs';
import {
  ask,
  chooseRow,
  lastAnswer,
  onBattery,
  readAll,
  talk,
  untilKept,
} from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { chooseInMenu, openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, openPage, browser, url: siteUrl } = useChat('chat-memory');
/** @typedef {import('playwright-core').Page} Page */

const line = 'A question and its answer were forgotten.';

/** @param {Page} page @param {number} index of the question */
const forget = (page, index) => chooseRow(page.locator('.message.user').nth(index), '.forget');

/** @param {Page} page @param {string[]} texts the expected messages */
const untilShown = (page, texts) =>
  untilTrue(
    page,
    `JSON.stringify([...document.querySelectorAll('.message:not([hidden]) .body')]
      .map((one) => one.innerText.trim())) === ${JSON.stringify(JSON.stringify(texts))}`,
  );

/** The script that forgets a question, which the page loads on the first click. */
const code = '**/forgotten_turns-*.js';

/** @param {Page} page @param {string} question @returns {Promise<string[][]>} the prompts of all requests with this question */
const toldFor = (page, question) =>
  page.evaluate(`bodies.map(({ messages }) => messages.map(({ content }) => content))
    .filter((reported) => reported.at(-1) === ${JSON.stringify(question)})`);

/** @param {Page} page @returns {Promise<string[]>} the model's last prompt */
const reported = (page) => page.evaluate('bodies.at(-1).messages.map(({ content }) => content)');

test('turns forgotten a month ago are looked for once a day, not at each start', {
  skip: skip || !isFull,
}, async (t) => {
  const script = `globalThis.reads = [];
    const getAll = IDBObjectStore.prototype.getAll;
    IDBObjectStore.prototype.getAll = function (...how) {
      if (how[0] === undefined) reads.push(this.name);
      return getAll.apply(this, how);
    };`;
  const page = await openPage(t, { script });
  await talk(page, 'First', 'One.');
  await untilTrue(page, "localStorage.getItem('wick-chat-tidied') !== null");
  assert.ok(/** @type {any} */ (await page.evaluate('reads')).includes('turns'));
  await page.reload();
  await page.locator('.message.user').waitFor();
  await page.waitForSelector('#send:not([disabled])');
  assert.ok(!(/** @type {any} */ (await page.evaluate('reads')).includes('turns')));
  await page.evaluate("localStorage.setItem('wick-chat-tidied', Date.now() - 2 * 86400e3)");
  await page.reload();
  await untilTrue(page, "Number(localStorage.getItem('wick-chat-tidied')) > Date.now() - 86400e3");
  assert.ok(/** @type {any} */ (await page.evaluate('reads')).includes('turns'));
});

test('words after the 4,000th are shown, with a note that they cannot be chosen', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { script: 'globalThis.contextSize = 20_000;' });
  await talk(page, 'Much', `${'word '.repeat(4000)}and the end`);
  await chooseRow(lastAnswer(page), '.open-words');
  await page.locator('.words .hint').waitFor();
  assert.equal(await lastAnswer(page).locator('.menu').isVisible(), false);
  assert.match(
    await page.locator('.words').innerText(),
    /and the end\s+Only the first 4,000 words/,
  );
  assert.equal(await page.locator('.words-text span').count(), 4000);
  await talk(page, 'Little', 'word '.repeat(4000));
  await chooseRow(lastAnswer(page), '.open-words');
  await page.locator('.words-text').last().waitFor();
  assert.equal(await page.locator('.words .hint').count(), 1);
});

/** @param {Page} page */
async function threeTurns(page) {
  await talk(page, 'First', 'One.');
  await talk(page, 'Second', 'Two.');
  await talk(page, 'Third', 'Three.');
}

/** Runs in the page: delays writes of conversation states until `releaseStates` is called. */
const holdStates = `new Promise((settle, fail) => {
  const opening = indexedDB.open('wick-chat-states', 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore('facts', { keyPath: 'id' });
    opening.result.createObjectStore('bytes');
  };
  opening.onerror = fail;
  opening.onsuccess = () => {
    let isHeld = true;
    globalThis.releaseStates = () => { isHeld = false; };
    const transaction = opening.result.transaction(['facts', 'bytes'], 'readwrite');
    const hold = () => { if (isHeld) transaction.objectStore('facts').count().onsuccess = hold; };
    transaction.oncomplete = () => opening.result.close();
    hold();
    settle();
  };
})`;

/** Runs in the page: settles after the pending writes. */
const afterStates = `new Promise((settle, fail) => {
  const opening = indexedDB.open('wick-chat-states', 1);
  opening.onerror = fail;
  opening.onsuccess = () => {
    const transaction = opening.result.transaction(['facts', 'bytes'], 'readwrite');
    transaction.objectStore('facts').delete('none');
    transaction.oncomplete = () => {
      opening.result.close();
      setTimeout(settle, 100);
    };
  };
})`;

test('forgotten messages are no longer sent to the model; the rest is recomputed with low priority', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await threeTurns(page);
  const before = await page.evaluate('bodies.length');
  await forget(page, 1);
  await untilShown(page, ['First', 'One.', line, 'Third', 'Three.']);
  await untilTrue(page, `bodies.length > ${before}`);
  assert.deepEqual(await reported(page), ['First', 'One.', 'Third', 'Three.']);
  const { priority, max_tokens } = await page.evaluate('bodies.at(-1)');
  assert.ok(priority < 0 && max_tokens === 1);
  await talk(page, 'Fourth', 'Four.');
  assert.deepEqual(await toldFor(page, 'Fourth'), [['First', 'One.', 'Third', 'Three.', 'Fourth']]);
  await takePicture(page, 'light-forgotten');
});

test('a question asked before the rest is recomputed: the rest is computed after the answer, not alongside it', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await threeTurns(page);
  await page.evaluate(holdStates);
  const asked = () => page.evaluate('bodies.map(({ messages }) => messages.at(-1).content)');
  const before = (await asked()).length;
  await forget(page, 0);
  await untilShown(page, [line, 'Second', 'Two.', 'Third', 'Three.']);
  await ask(page, 'Fourth');
  await page.evaluate("say('Half')");
  await page.getByText('Half', { exact: true }).waitFor();
  await page.evaluate('releaseStates()');
  await page.evaluate(afterStates);
  assert.deepEqual((await asked()).slice(before), ['Fourth']);
  await page.evaluate("say(' and whole.'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
  await untilTrue(page, `bodies.length > ${before + 1}`);
  assert.deepEqual(await reported(page), [
    ...['Second', 'Two.', 'Third', 'Three.', 'Fourth', 'Half and whole.'],
  ]);
});

test('dropping turns is undone immediately, or from its line after a reload', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await threeTurns(page);
  const all = ['First', 'One.', 'Second', 'Two.', 'Third', 'Three.'];
  await forget(page, 0);
  await untilShown(page, [line, ...all.slice(2)]);
  await page.click('#undo');
  await untilShown(page, all);
  await forget(page, 2);
  await page.reload(); // immediately
  await page.waitForSelector('#log[data-conversation] .message');
  await untilShown(page, [...all.slice(0, 4), line]);
  await page.getByRole('button', { name: 'Bring back' }).click();
  await untilShown(page, all);
  await untilKept(page, ({ turns }) => turns.every(({ forgotten }) => !forgotten));
});

test('a reload right after the click loses nothing, even before the code is loaded', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'First', 'One.');
  await talk(page, 'Second', 'Two.');
  /** @param {() => Promise<void>} click @param {string[]} texts */
  const reloadAfter = async (click, texts) => {
    await page.route(code, () => {}); // the script never arrives
    await click();
    await page.unroute(code);
    await page.reload();
    await untilShown(page, texts);
  };
  const press = (/** @type {string} */ name) => () =>
    page.getByRole('button', { name, exact: true }).click();
  await reloadAfter(() => forget(page, 1), ['First', 'One.', line]);
  await reloadAfter(press('Bring back'), ['First', 'One.', 'Second', 'Two.']);
  await reloadAfter(() => forget(page, 1), ['First', 'One.', line]);
  await press('Forget permanently')();
  await reloadAfter(press('Really?'), ['First', 'One.', line]);
  assert.equal(await page.getByRole('button', { name: 'Bring back' }).count(), 0);
  const { turns } = await readAll(page);
  assert.deepEqual(turns.map(({ content }) => content).sort(), ['', '', 'First', 'One.']);
  assert.deepEqual(
    await page.evaluate('Object.keys(localStorage).filter((key) => /typed forget/.test(key))'),
    [],
  );
});

test('if the code cannot be loaded, nothing is forgotten, even later', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { expected: /ERR_FAILED/ });
  await talk(page, 'First', 'One.');
  await page.route(code, (route) => route.abort());
  await forget(page, 0);
  await page.locator('#problem:not([hidden])').waitFor();
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await untilShown(page, ['First', 'One.']);
});

test('forgetting the only question removes the title, and the next question starts over', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'My secret name', 'Noted.');
  await forget(page, 0);
  await untilKept(page, ({ conversations }) => conversations[0].title === '');
  await talk(page, 'Hello', 'Hi.');
  assert.deepEqual(await toldFor(page, 'Hello'), [['Hello']]);
  await untilKept(page, ({ conversations }) => conversations[0].title === 'Hello');
  await page.keyboard.press('Control+k');
  await page.fill('#search', 'secret');
  await page.getByText('No conversations found.').waitFor();
});

test('a question without an answer can be dropped, and later messages stay', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'First', 'One.');
  await ask(page, 'Lost');
  await page.evaluate("fail('OUT_OF_MEMORY')");
  await page.locator('#problem:not([hidden])').waitFor();
  await forget(page, 1);
  await talk(page, 'Second', 'Two.');
  await untilShown(page, ['First', 'One.', 'Second', 'Two.']);
  const { turns } = await readAll(page);
  assert.ok(turns.some(({ content, forgotten }) => content === 'Lost' && forgotten > 0));
});

test('tool calls and all versions are forgotten with their question', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await page.click('#open-settings');
  await page.locator('[name=tools]').check();
  await page.click('#settings-form [value=save]');
  await ask(page, 'How much?');
  await page.evaluate(`call('calculator', '{"expression":"1 + 1"}'); end('tool_calls')`);
  await page.locator('.call-result', { hasText: '2' }).waitFor();
  await page.evaluate("say('Two.'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
  await page.locator('.regenerate').click();
  await page.evaluate("say('Zwei.'); end()");
  await page.getByText('Zwei.', { exact: true }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  await forget(page, 0);
  await untilShown(page, [line]);
  assert.equal(await page.locator('.calls').count(), 0);
  await talk(page, 'Next', 'Yes.');
  assert.deepEqual(await toldFor(page, 'Next'), [['Next']]);
  await page.getByRole('button', { name: 'Bring back' }).click();
  await untilShown(page, ['How much?', 'Zwei.', 'Next', 'Yes.']);
});

test('a permanently forgotten turn is neither stored nor exported', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await threeTurns(page);
  await forget(page, 1);
  const erase = page.getByRole('button', { name: 'Forget permanently' });
  await erase.dblclick(); // the second click is not a confirmation
  await page.getByRole('button', { name: 'Bring back' }).waitFor();
  await page.getByRole('button', { name: 'Really?' }).click();
  await untilKept(page, ({ turns }) => !/Second|Two/.test(JSON.stringify(turns)));
  await untilShown(page, ['First', 'One.', line, 'Third', 'Three.']);
  assert.equal(await page.getByRole('button', { name: 'Bring back' }).count(), 0);
  await page.reload();
  await page.waitForSelector('#log[data-conversation] .message');
  await untilShown(page, ['First', 'One.', line, 'Third', 'Three.']);
});

test('Undo after other conversations were opened: the model sees the messages again, and the title is restored', {
  skip: skip || !isFull,
}, async (t) => {
  const options = { viewport: { width: 1280, height: 800 } };
  const page = await openPage(t, { options });
  const open = async (/** @type {string} */ name, /** @type {string} */ text) => {
    await page.getByRole('link', { name, exact: true }).click();
    await page.locator('.message .body', { hasText: text }).waitFor();
  };
  await talk(page, 'Other', 'Zero.');
  await page.click('#new-chat');
  await talk(page, 'First', 'One.');
  await talk(page, 'Second', 'Two.');
  await forget(page, 0);
  await untilShown(page, [line, 'Second', 'Two.']);
  await open('Other', 'Zero.');
  await open('Second', 'Two.');
  await page.click('#undo');
  await untilShown(page, ['First', 'One.', 'Second', 'Two.']);
  await talk(page, 'Third', 'Three.');
  assert.deepEqual(await toldFor(page, 'Third'), [['First', 'One.', 'Second', 'Two.', 'Third']]);
  await forget(page, 0);
  await page.getByRole('link', { name: 'Second', exact: true }).waitFor();
  await open('Other', 'Zero.');
  await page.click('#undo');
  await open('First', 'Three.');
});

test('exported files contain no forgotten turns, and are imported completely', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options: { acceptDownloads: true } });
  await threeTurns(page);
  await forget(page, 1);
  await untilKept(page, ({ turns }) => turns.some(({ forgotten }) => forgotten > 0));
  if (!(await page.locator('#conversations').isVisible())) await page.click('#open-list');
  for (const kind of ['Markdown', 'JSON']) {
    const actions = page.getByRole('button', { name: 'Actions for First' });
    if ((await page.locator('.actions').count()) === 0) await actions.click();
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Save as ${kind}` }).click(),
    ]);
    const text = String(await bytesOf(saved));
    assert.match(text, /Third/);
    assert.doesNotMatch(text, /Second|Two/);
    if (kind !== 'JSON') continue;
    await page.setInputFiles('#import-file', {
      ...{ name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(text) },
    });
    await page.getByText('The conversation was imported.').waitFor();
    await untilShown(page, ['First', 'One.', line, 'Third', 'Three.']);
  }
});

test('another tab forgets during an answer: the answer is completed, and the next one respects the change', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'First', 'One.');
  await ask(page, 'Second');
  await page.evaluate("say('Half')");
  await page.getByText('Half', { exact: true }).waitFor();
  await untilTrue(page, "setTimeout(() => say(' and'), 300) && true"); // the answer is stored in the meantime
  await page.getByText('Half and', { exact: true }).waitFor();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.waitForSelector('#log[data-conversation] .message');
  await other.getByText('being written in another tab').waitFor();
  assert.equal(
    await other.locator('.message.user').nth(1).locator('.forget').count(),
    0,
    'the question that is being answered stays',
  );
  await forget(other, 0);
  await page.locator('.message.forgotten:not([hidden])').waitFor();
  await page.evaluate("say(' whole'); end()");
  await page.getByText('Half and whole', { exact: true }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  await talk(page, 'Third', 'Three.');
  assert.deepEqual(await toldFor(page, 'Third'), [['Second', 'Half and whole', 'Third']]);
  await untilKept(page, ({ turns }) => turns.length === 6);
});

// ---- the package's own engine ----

/** @param {import('node:test').TestContext} t @param {string} [script] @returns {Promise<Page>} a page without questions */
async function open(t, script = onBattery) {
  /** @type {string[]} */
  const problems = [];
  const page = await openReal(browser(), siteUrl(), { problems, script });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  await setTemperature(page, 0);
  return page;
}

test('after Forget, the rest is cached for the next question', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await open(t);
  await openDeveloper(page);
  await askReal(page, 'What is a fork?');
  await askReal(page, 'Tell me a story about a fox.');
  await forget(page, 0);
  await untilFact(page, 'Forgotten', /^[1-9]\d* of \d+ tokens were recomputed/);
  const [again] = await factOf(page, 'Forgotten');
  await askReal(page, 'What is Wick?');
  const [all, before] = await factOf(page, 'Last prompt');
  assert.ok(again > 100 && before > again - 32, `${before} of ${all} were cached`);
  assert.ok(all - before < 64, 'only the question and the rest of a page are new');
});

/** @param {Page} page @param {string} name @returns {Promise<number[]>} the numbers in it */
async function factOf(page, name) {
  const text = await page.locator(`#kv-facts dd[data-fact="${name}"]`).innerText();
  return (text.match(/\d+/g) ?? []).map(Number);
}

/** @param {Page} page @param {number} count @returns {Promise<string>} the answer's first words, with white space */
const textOfWords = (page, count) =>
  page.locator('.words-text').evaluate((field, most) => {
    const parts = [...field.childNodes].slice(0, 2 * most); // the white space before each word is a node, too
    return parts.map((one) => one.textContent).join('');
  }, count);

test('another word is chosen: the answer continues from it, and the old one stays visible', {
  skip,
}, async (t) => {
  const page = await open(t);
  const old = await askReal(page, 'Tell me a story about a fox.');
  await chooseRow(lastAnswer(page), '.open-words');
  const words = page.locator('.words-text span');
  await words.first().waitFor();
  assert.equal((await page.locator('.words-text').innerText()).trim(), old);
  await words.first().focus();
  for (let step = 0; step < 8; step++) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.locator('.words li').nth(7).waitFor();
  const shares = await page
    .locator('.words meter')
    .evaluateAll((all) => all.map((one) => /** @type {HTMLMeterElement} */ (one).value));
  assert.ok(shares.every((one, index) => index === 0 || one <= shares[index - 1]));
  assert.ok(shares[0] > 0 && shares.reduce((sum, one) => sum + one, 0) <= 1.0001);
  await takePicture(page, 'light-words');
  const start = await textOfWords(page, 8);
  const other = page.locator('.words li button:enabled').nth(1);
  const piece = await other.locator('bdi').innerText();
  await other.click();
  await page.locator('.fork').waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  const body = page.locator('.message.assistant .body');
  assert.ok(
    (await body.innerText()).startsWith(start + piece),
    `it does not begin with ${start}${piece}`,
  );
  assert.match(await page.locator('.fork').innerText(), /^Version 1 continues here: “/);
  await takePicture(page, 'light-fork');
  await page.locator('.fork button').click();
  assert.equal((await body.innerText()).trim(), old);
  await page.reload();
  await page.locator('.versions', { hasText: '1 / 2' }).waitFor();
});

test('an answer can end at a word', { skip: skip || !isFull }, async (t) => {
  const page = await open(t);
  await askReal(page, 'Tell me a story about a fox.');
  await chooseRow(lastAnswer(page), '.open-words');
  const words = page.locator('.words-text span');
  await words.first().waitFor();
  const all = await words.allInnerTexts();
  const behind = all.indexOf('.'); // a story may end without a full stop
  assert.ok(behind > 1);
  const said = await textOfWords(page, behind);
  await words.nth(behind).click();
  const end = page.locator('.words li button', { hasText: 'end here' });
  await end.waitFor();
  await end.click();
  await page.locator('.fork').waitFor();
  const body = page.locator('.message.assistant .body');
  assert.equal((await body.innerText()).trim(), said.trim());
  assert.equal(await page.locator('.continue').count(), 0, 'it has ended');
});

test('the tree of a conversation shows the pages that its branches share', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await open(t);
  await askReal(page, 'Tell me a story about a fox and a very old lantern that nobody had seen.');
  // A different word always changes the text; sampling again may produce the same text.
  await chooseRow(lastAnswer(page), '.open-words');
  await page.locator('.words-text span').nth(8).click();
  await page.locator('.words li button:enabled').nth(1).click();
  await page.locator('.versions', { hasText: '2 / 2' }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  await chooseInMenu(page, '#open-memory');
  const items = page.locator('.memory-tree [role=treeitem]');
  await items.nth(2).waitFor();
  const facts = await page.locator('.memory-tree small').allInnerTexts();
  assert.match(facts[0], /^[1-9]\d* pages?: [1-9]\d* shared$/);
  assert.match(facts[1], /\d+ own|\d pages?$/);
  assert.match(facts[2], /\d+ own|\d pages?$/);
  // the page shows the engine's KV pages: both branches begin with the same ones, then diverge
  const [one, two] = /** @type {{pages: number[]}[]} */ (
    await page.evaluate(`(async () => {
      const question = { role: 'user', content: document.querySelector('.message.user .body').innerText };
      const answers = [];
      const request = indexedDB.open('wick-chat');
      const db = await new Promise((settle) => { request.onsuccess = () => settle(request.result); });
      const all = db.transaction('turns').objectStore('turns').getAll();
      await new Promise((settle) => { all.onsuccess = settle; });
      for (const { role, content } of all.result) if (role === 'assistant') answers.push(content);
      return Promise.all(answers.map((content) =>
        engine.findPages([question, { role: 'assistant', content }])));
    })()`)
  );
  const both = one.pages.filter((place) => two.pages.includes(place)).length;
  assert.ok(both > 0 && one.pages.length > both && two.pages.length > both);
  assert.match(
    await page.locator('.memory-sum').innerText(),
    new RegExp(`, of which ${both} are shared by variants`),
  );
  await page.locator('.memory-tree [tabindex="0"]').focus();
  await page.keyboard.press('Home');
  assert.equal(await page.locator('.memory-pages .here').count(), Number.parseInt(facts[0], 10));
  await takePicture(page, 'light-memory');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('.versions', { hasText: '1 / 2' }).waitFor();
  assert.equal(await page.locator('#memory-dialog').isVisible(), false);
});

/** The window sizes of a phone, and of a desktop at 200%. */
const sizes = {
  desktop: [1280, 800],
  phone: [390, 780],
  landscape: [780, 390],
  double: [640, 400],
};

test('axe finds no violations in the words and in the tree, in any window', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await open(t);
  await askReal(page, 'Tell me a story about a fox.');
  await chooseRow(lastAnswer(page), '.open-words');
  await page.locator('.words-text span').nth(5).click();
  await page.locator('.words li').first().waitFor();
  const look = async (/** @type {string} */ name) => {
    for (const [size, [width, height]] of Object.entries(sizes)) {
      await page.setViewportSize({ width, height });
      await assertAccessible(page);
      const isWide = 'document.documentElement.scrollWidth > innerWidth';
      assert.equal(await page.evaluate(isWide), false, `${name} ${size}`);
      for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
        await page.emulateMedia({ colorScheme });
        await takePicture(page, `${colorScheme}-${name}-${size}`);
      }
    }
  };
  await look('words');
  await page.locator('.words li button:enabled').first().click();
  await page.locator('.fork').waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  await chooseRow(page.locator('.message.user').first(), '.forget');
  await page.locator('.message.forgotten').first().waitFor();
  await page.click('#dismiss-notice');
  await page.getByRole('button', { name: 'Bring back' }).click();
  await chooseInMenu(page, '#open-memory');
  await page.locator('.memory-tree li').nth(2).waitFor();
  await look('memory');
});

// ---- the other browsers ----

/** Runs in the page: forgets, restores, requests a word, and opens the tree. */
const wholePass = `
  const until = async (condition) => {
    for (;;) {
      const value = condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
  };
  const one = (selector) => document.querySelector(selector);
  const named = (text) => [...document.querySelectorAll('button')].find((button) => button.textContent === text);
  await until(() => !one('#send').disabled);
  one('#prompt').value = 'What is Wick?';
  one('#composer').requestSubmit();
  await until(() => one('.open-words') && one('#log').getAttribute('aria-busy') === 'false');
  one('.open-words').click();
  (await until(() => one('.words-text span'))).click();
  await until(() => one('.words li'));
  const alternatives = document.querySelectorAll('.words li').length;
  one('#open-memory').click();
  await until(() => one('.memory-tree [role=treeitem]'));
  const lines = [...document.querySelectorAll('.memory-tree small')].map((small) => small.textContent);
  one('#memory-dialog form button').click();
  one('.forget').click();
  await until(() => one('.message.forgotten'));
  const gone = one('.message .body').textContent;
  named('Bring back').click();
  await until(() => !one('.message.forgotten'));
  return { alternatives, lines, gone, back: one('.message .body').textContent };`;

/** @param {{alternatives: number, lines: string[], gone: string, back: string}} found */
function assertPassed({ alternatives, lines, gone, back }) {
  assert.equal(alternatives, 8);
  assert.ok(lines.length >= 2); // includes answers that were started before Enter
  assert.match(lines.join(), /pages?/);
  assert.deepEqual([gone, back], [line, 'What is Wick?']);
}

test('Firefox forgets, shows alternative words and draws the tree', {
  skip: locate('firefox').skip,
}, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(siteUrl());
  assertPassed(/** @type {any} */ (await page.evaluate(`(async () => { ${wholePass} })()`)));
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await page.goto(siteUrl());
  assertPassed(await page.evaluate(wholePass));
  await takePicture(page, 'webkit-memory');
});
