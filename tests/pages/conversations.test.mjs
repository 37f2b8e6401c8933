// The chat page saves everything: the list of conversations, drafts, interrupted answers, and changes from other tabs.
// In Chromium, with a fake engine; once in Firefox and WebKitGTK, with the package's engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHAT_PAGE, chatPageBytes, sizeFault } from '../../tools/build/sizes.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { bytesOf, useChat } from '../support/chat_page.mjs';
import { ask, openStub, opensLate, shown, talk, untilKept } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';
import { waitForPage } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, browser, url: siteUrl } = useChat('chat-conversations');
/** @typedef {import('playwright-core').Page} Page */

/**
 * @param {import('node:test').TestContext} t
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function newContext(t, options = { viewport: { width: 1280, height: 800 } }) {
  // a service worker would serve the package's own engine
  const context = await browser().newContext({ ...options, serviceWorkers: 'block' });
  /** @type {string[]} */
  const problems = [];
  t.after(() => context.close());
  t.after(() => assert.deepEqual(problems, []));
  return {
    context,
    open: (/** @type {{script?: string, url?: string}} */ { url = siteUrl(), script } = {}) =>
      openStub(context, url, { problems, script }),
  };
}

/** @param {Page} page */
const titles = (page) => page.locator('#conversation-list a').allInnerTexts();

/** @param {Page} page @param {string[]} wanted */
async function untilListed(page, wanted) {
  const list = JSON.stringify(wanted);
  await waitForPage(async () => JSON.stringify(await titles(page)) === list, list);
}

/** @param {Page} page @param {string} title @param {string} action */
async function act(page, title, action) {
  const more = page.getByRole('button', { name: `Actions for ${title}` });
  if ((await more.getAttribute('aria-expanded')) !== 'true') await more.click();
  await page.locator('.actions').getByRole('button', { name: action, exact: true }).click();
}

test('the empty list explains itself, also if storage opens late', { skip }, async (t) => {
  const page = await (await newContext(t)).open({ script: opensLate });
  const words = 'Conversations are listed here as soon as you type.';
  await page.locator('#list-note', { hasText: words }).waitFor({ timeout: 20_000 });
});

test('many conversations: New chat deletes nothing; pin, rename, delete and undo', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'About foxes', 'They are red.');
  await page.click('#new-chat');
  assert.deepEqual(await shown(page), []);
  await talk(page, 'About rivers', 'They are long.');
  await page.click('#new-chat');
  await talk(page, 'About lamps', 'They are bright.');
  await untilListed(page, ['About lamps', 'About rivers', 'About foxes']);
  await page.getByRole('link', { name: 'About foxes' }).click();
  await page.getByText('They are red.', { exact: true }).waitFor();
  await page.locator('[aria-current=page]', { hasText: 'About foxes' }).waitFor();
  await act(page, 'About rivers', 'Pin');
  await untilListed(page, ['About rivers', 'About lamps', 'About foxes']);
  await act(page, 'About lamps', 'Rename');
  await page.getByLabel('Title').fill('Light');
  await page.keyboard.press('Enter');
  await untilListed(page, ['About rivers', 'Light', 'About foxes']);
  await act(page, 'About foxes', 'Delete');
  await untilListed(page, ['About rivers', 'Light']);
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Light');
  assert.deepEqual(await shown(page), []);
  await page.click('#undo');
  await untilListed(page, ['About rivers', 'Light', 'About foxes']);
  assert.deepEqual(await shown(page), ['About foxes', 'They are red.']);
  await page.click('#delete-all');
  await untilListed(page, []);
  await page.click('#deleted summary');
  await page.locator('#deleted-list li', { hasText: 'Light' }).getByText('Restore').click();
  await untilListed(page, ['Light']);
  const foxes = page.locator('#deleted-list li', { hasText: 'foxes' });
  await foxes.getByText('Delete permanently').click();
  await foxes.getByText('Really?').click();
  await untilKept(
    page,
    ({ turns, conversations }) => conversations.length === 2 && turns.length === 4,
  );
  await page.reload();
  await untilListed(page, ['Light']);
});

test('an answer continues in a copy of the conversation, and the first one stays', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'About foxes', 'They are red.');
  await talk(page, 'And hares?', 'They are brown.');
  const first = page.locator('.message.assistant').first();
  await first.hover();
  await first.locator('.open-menu').click();
  await takePicture(page, 'chat-answer-menu');
  await first.getByRole('button', { name: /^New chat from here/ }).click();
  await untilListed(page, ['Copy of About foxes', 'About foxes']);
  assert.deepEqual(await shown(page), ['About foxes', 'They are red.']);
  await talk(page, 'And deer?', 'They are large.');
  await page.getByRole('link', { name: 'About foxes', exact: true }).click();
  await page.locator('.body', { hasText: 'They are brown.' }).waitFor();
  assert.equal((await shown(page)).length, 4);
  const { turns } = await untilKept(page, (kept) => kept.turns.length === 8);
  assert.equal(new Set(turns.map(({ id }) => id)).size, 8);
});

test('on a phone, a deletion is undone in the drawer, and the focus stays in it', {
  skip,
}, async (t) => {
  const { open } = await newContext(t, { viewport: { width: 360, height: 740 }, hasTouch: true });
  const page = await open();
  await talk(page, 'About foxes', 'They are red.');
  await page.click('#new-chat');
  await talk(page, 'About rivers', 'They are long.');
  await page.click('#open-list');
  await act(page, 'About rivers', 'Delete');
  await untilListed(page, ['About foxes']);
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'About foxes');
  await page.click('#conversations #undo');
  await untilListed(page, ['About rivers', 'About foxes']);
  await page.click('#close-list');
  assert.equal(await page.locator('body > #notice').count(), 1);
});

test('search finds questions, answers, titles and drafts, by keyboard', { skip }, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'Which animal is red?', 'Surely the fox is vulpine.');
  await page.click('#new-chat');
  await talk(page, 'Which river is long?', 'The Nile.');
  await page.click('#new-chat');
  await page.fill('#prompt', 'Something about zebras');
  await untilKept(page, ({ drafts }) => drafts.some(({ text }) => text.includes('zebras')));
  await page.keyboard.press('Control+k');
  for (const [query, title] of [
    ['vulpin', 'Which animal is red?'],
    ['nile', 'Which river is long?'],
    ['animal', 'Which animal is red?'],
    ['zebra', 'Something about zebras'],
    ['vulpyne', 'Which animal is red?'],
  ]) {
    await page.fill('#search', query);
    await untilListed(page, [title]);
  }
  assert.match(await page.locator('.found').innerText(), /vulpine/);
  assert.equal(await page.locator('.found mark').innerText(), 'vulpine');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('.body', { hasText: 'Surely the fox' }).waitFor();
  await page.fill('#search', 'nothing like that');
  await page.getByText('No conversations found.').waitFor();
  await page.keyboard.press('Control+Shift+O');
  assert.deepEqual(await shown(page), []);
  assert.equal(await page.evaluate('document.activeElement.id'), 'prompt');
});

test('on a phone the list is a drawer, which Escape closes', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t, {
    viewport: { width: 390, height: 780 },
    isMobile: true,
    hasTouch: true,
  });
  const page = await open();
  await talk(page, 'A question', 'An answer.');
  assert.equal(await page.isVisible('#conversation-list'), false);
  await page.click('#open-list');
  await untilListed(page, ['A question']);
  await takePicture(page, 'conversations-phone');
  await page.keyboard.press('Escape');
  await page.locator('#conversation-list').waitFor({ state: 'hidden' });
  await page.waitForSelector('#open-list[aria-expanded=false]'); // the attribute changes after the drawer has closed
  await page.click('#open-list');
  await page.getByRole('link', { name: 'A question' }).click();
  await page.locator('#conversation-list').waitFor({ state: 'hidden' });
});

test('a click in the list counts even if the list is redrawn while the button is down', {
  skip,
}, async (t) => {
  const { open } = await newContext(t, { viewport: { width: 390, height: 780 } });
  const page = await open();
  await talk(page, 'First', 'An answer.');
  await page.click('#new-chat');
  await talk(page, 'Second', 'An answer.');
  await page.click('#open-list');
  await untilListed(page, ['Second', 'First']);
  await page.getByRole('link', { name: 'First' }).hover();
  await page.mouse.down();
  await page.locator('#search').dispatchEvent('input');
  await page.waitForTimeout(300); // waits until the list is redrawn
  await page.mouse.up();
  await page.locator('#conversation-list').waitFor({ state: 'hidden' });
  await page.locator('.message.user', { hasText: 'First' }).waitFor();
});

test('a conversation is exported as JSON and Markdown, and imported next to the first', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  const answer = '# Heading\n\n```\n## You\n```\n\nEnd';
  await talk(page, 'Say it', 'The first.');
  await page.click('.regenerate');
  await page.evaluate(`say(${JSON.stringify(answer)}); end()`);
  await page.getByText('End', { exact: true }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  /** @type {Record<string, Buffer>} */
  const files = {};
  for (const kind of ['JSON', 'Markdown']) {
    const downloading = page.waitForEvent('download');
    await act(page, 'Say it', `Save as ${kind}`);
    files[kind] = await bytesOf(await downloading);
  }
  const markdown = String(files.Markdown);
  assert.equal(
    markdown,
    `# Say it\n\n## You\n\nSay it\n\n## Model\n\n${answer.replace('# H', '\\# H').replace('## Y', '\\## Y')}\n`,
  );
  const before = await shown(page);
  await page.setInputFiles('#import-file', {
    name: 'said.md',
    mimeType: 'text/markdown',
    buffer: files.Markdown,
  });
  await untilListed(page, ['Say it', 'Say it']);
  assert.deepEqual(await shown(page), before);
  assert.equal(await page.locator('.versions').count(), 0);
  await page.setInputFiles('#import-file', {
    name: 'said.json',
    mimeType: 'application/json',
    buffer: files.JSON,
  });
  await untilListed(page, ['Say it', 'Say it', 'Say it']);
  assert.deepEqual(await shown(page), before);
  assert.match(await page.locator('.versions').innerText(), /2 \/ 2/);
  for (const [text, said] of [
    ['Dear reader', /said.json is not a file that this page/],
    ['{"format":"wick-chat","version":2,"conversations":[]}', /newer page \(version 2\)/],
    ['{"format":"wick-chat","version":1,"conversations":[{}]}', /conversation 1 is damaged/],
  ]) {
    await page.setInputFiles('#import-file', {
      name: 'said.json',
      mimeType: 'text/plain',
      buffer: Buffer.from(String(text)),
    });
    await page.locator('#problem-text', { hasText: /** @type {RegExp} */ (said) }).waitFor();
  }
  assert.equal((await titles(page)).length, 3);
});

test('the browser’s Back button returns to the conversation before a new one, and Forward continues', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'About foxes', 'They are red.');
  await page.click('#new-chat');
  await talk(page, 'About rivers', 'They are long.');
  await page.goBack();
  await page.locator('.message .body', { hasText: 'About foxes' }).waitFor();
  assert.deepEqual(await shown(page), ['About foxes', 'They are red.']);
  await page.goForward();
  await page.locator('.message .body', { hasText: 'About rivers' }).waitFor();
  assert.deepEqual(await shown(page), ['About rivers', 'They are long.']);
});

test('settings of an imported file are within their limits, or the defaults', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  const settings = {
    temperature: 1e308,
    maxTokens: -5,
    topK: 0.5,
    topP: 0.5,
    seed: -1,
    minP: null,
  };
  const turns = [{ id: 'a', parent: '', role: 'user', content: 'Imported' }];
  const file = {
    format: 'wick-chat',
    version: 1,
    conversations: [{ conversation: { settings }, turns }],
  };
  await page.setInputFiles('#import-file', {
    name: 'bad.json',
    mimeType: 'application/json',
    buffer: Buffer.from(JSON.stringify(file)),
  });
  await page.locator('.body', { hasText: 'Imported' }).waitFor();
  await talk(page, 'And now?', 'Yes.');
  const body = (await page.evaluate('bodies')).at(-1);
  const { temperature, max_tokens, top_k, top_p, min_p, seed } = body;
  assert.deepEqual([temperature, max_tokens, top_k, top_p, min_p], [0, 1024, 40, 0.5, 0.05]);
  assert.ok(seed >= 0, `${seed}`);
});

test('input is kept after a reload, and after its tab was closed', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'A question', 'An answer.');
  await page.fill('#prompt', 'half a');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Your edited message').fill('A better question');
  await untilKept(page, ({ drafts }) => drafts.length === 2);
  await page.reload();
  await page.waitForSelector('.edit');
  assert.equal(await page.inputValue('#prompt'), 'half a');
  assert.equal(await page.inputValue('.edit textarea'), 'A better question');
  // an open tab does not share its draft
  const other = await open({ url: page.url() });
  await other.locator('.message').nth(1).waitFor();
  assert.equal(await other.inputValue('#prompt'), '');
  await other.fill('#prompt', 'of the other tab');
  await untilKept(page, ({ drafts }) => drafts.length === 3);
  await other.close();
  await page.close();
  const third = await open();
  await third.waitForSelector('.edit');
  const [first] = [await third.inputValue('#prompt')];
  assert.equal(first, 'of the other tab');
  await talk(third, first, 'Yes.');
  await third.reload();
  await third.locator('.message').nth(3).waitFor();
  assert.equal(await third.inputValue('#prompt'), 'half a', 'the other draft follows');
  await third.getByRole('button', { name: 'Cancel' }).click();
  await third.fill('#prompt', '');
  await untilKept(third, ({ drafts }) => drafts.length === 0);
});

test('after the page was closed, a question and a partial answer are kept, and the answer continues', {
  skip,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await ask(page, 'Nobody answers');
  await untilKept(page, ({ turns }) => turns.length === 1);
  await page.close();
  const second = await open();
  await second.getByText('Answer again').click();
  await second.evaluate("say('Once upon')");
  await second.locator('.message.assistant .body', { hasText: 'Once upon' }).waitFor();
  await second.evaluate('new Promise((settle) => setTimeout(settle, 300))');
  await second.evaluate("say(' a time')");
  await untilKept(
    second,
    ({ turns }) =>
      turns[1]?.content.startsWith('Once upon') || turns[0]?.content.startsWith('Once upon'),
  );
  await second.close();
  const third = await open();
  await third.getByRole('button', { name: 'Continue' }).click();
  const [, begun] = await shown(third);
  assert.match(begun, /^Once upon/);
  await third.evaluate("say(' there was'); end('length')");
  await third.getByText('the answer reached the length limit').waitFor();
  // clicks twice, before the page knows whether there is space
  await third.getByRole('button', { name: 'Continue' }).evaluate((/** @type {any} */ button) => {
    button.click();
    button.click();
  });
  await third.evaluate("say(' a fox.'); end()");
  await third.getByRole('button', { name: 'Continue' }).waitFor({ state: 'detached' });
  assert.deepEqual(await shown(third), ['Nobody answers', `${begun} there was a fox.`]);
  const bodies = await third.evaluate('bodies');
  assert.equal(bodies.length, 2);
  assert.deepEqual(bodies[1].messages.at(-1), {
    role: 'assistant',
    content: `${begun} there was`,
    prefix: true,
  });
  await third.reload();
  await third.locator('.message').nth(1).waitFor();
  assert.deepEqual(await shown(third), ['Nobody answers', `${begun} there was a fox.`]);
});

test('two tabs see each other: questions, answers while they stream, and the end of a tab', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await talk(page, 'First', 'One.');
  const other = await open({ url: page.url() });
  await other.locator('.message').nth(1).waitFor();
  await ask(page, 'Second');
  await page.evaluate("say('Half')");
  await page.locator('.message.assistant .body', { hasText: 'Half' }).waitFor();
  await page.evaluate('new Promise((settle) => setTimeout(settle, 300))');
  await page.evaluate("say(' and')");
  await other.locator('.message.assistant .body', { hasText: 'Half' }).waitFor();
  await other.getByText('being written in another tab').waitFor();
  await page.close();
  await other.getByRole('button', { name: 'Continue' }).click();
  await other.evaluate("say(' whole.'); end()");
  await other.locator('.message.assistant .body', { hasText: 'whole.' }).waitFor();
  const third = await open({ url: other.url() });
  await third.locator('.message').nth(3).waitFor();
  await act(third, 'First', 'Rename');
  await third.getByLabel('Title').fill('Renamed');
  await third.keyboard.press('Enter');
  await untilListed(other, ['Renamed']);
  // both tabs ask a question after the same message, which creates two versions
  await Promise.all([ask(other, 'From the one'), ask(third, 'From the other')]);
  for (const tab of [other, third]) await tab.evaluate("say('Answer'); end()");
  await untilKept(
    other,
    ({ turns }) => turns.filter(({ content }) => content === 'Answer').length === 2,
  );
  await third.reload();
  await third.locator('.versions', { hasText: '/ 2' }).waitFor();
});

test('further answers: temperature 0 stays 0, and turns after the first answer stay visible', {
  skip: skip || !isFull,
}, async (t) => {
  const { open } = await newContext(t);
  const page = await open();
  await page.click('#open-settings');
  await page.fill('[name=temperature]', '0');
  await page.click('#settings-form [value=save]');
  await talk(page, 'First', 'One.');
  await talk(page, 'Second', 'Two.');
  await page.locator('.regenerate').first().click();
  await page.evaluate("say('Another one.'); end()");
  await page.getByText('Another one.', { exact: true }).waitFor();
  const later = page.getByRole('region', { name: '2 messages follow version 1' });
  assert.match(await later.innerText(), /You: Second\s+Model: Two\./);
  assert.deepEqual(await page.evaluate('bodies.map(({ temperature }) => temperature)'), [0, 0, 0]);
  await later.getByRole('button').click();
  assert.deepEqual(await shown(page), ['First', 'One.', 'Second', 'Two.']);
  assert.equal(await later.count(), 0);
});

test('the page is small: all its own scripts, and the package scripts that load with it', () => {
  assert.equal(sizeFault(CHAT_PAGE, chatPageBytes(site)), undefined);
});

// ---- the other browsers, with the package's own engine ----

/** Runs in the page: asks a question, and starts to type another one. */
const firstVisit = `
  const until = async (condition) => {
    for (;;) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
  };
  const byId = (id) => document.getElementById(id);
  const type = (text) => {
    byId('prompt').value = text;
    byId('prompt').dispatchEvent(new Event('input'));
  };
  const readDrafts = () => new Promise((settle, fail) => {
    const opening = indexedDB.open('wick-chat');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const reading = opening.result.transaction('drafts').objectStore('drafts').getAll();
      reading.onsuccess = () => {
        opening.result.close();
        settle(reading.result.map(({ text }) => text));
      };
    };
  });
  await until(() => !byId('send').disabled);
  type('What is Wick?');
  byId('composer').requestSubmit();
  await until(() => document.querySelector('.message.assistant footer'));
  type('half a question');
  await until(async () => (await readDrafts()).includes('half a question'));
  return document.querySelector('.message.assistant .body').textContent.trim();`;

const secondVisit = `
  for (;;) {
    const said = [...document.querySelectorAll('.message .body')].map((one) => one.textContent.trim());
    const { value } = document.getElementById('prompt');
    if (said.length === 2 && value !== '') return { said, value };
    await new Promise((settle) => setTimeout(settle, 50));
  }`;

/** @param {(script: string) => Promise<any>} visit opens a new page with the same profile */
async function forgetsNothing(visit) {
  const answer = await visit(firstVisit);
  assert.match(answer, /\w+ \w+/);
  const { said, value } = await visit(secondVisit);
  assert.deepEqual(said, ['What is Wick?', answer]);
  assert.equal(value, 'half a question');
}

test('Firefox keeps everything, too', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  await forgetsNothing(async (script) => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(siteUrl());
    const found = await page.evaluate(`(async () => { ${script} })()`);
    await page.close();
    return found;
  });
});

test('WebKitGTK keeps everything, too', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await forgetsNothing(async (script) => {
    await page.goto(siteUrl());
    return page.evaluate(script);
  });
});
