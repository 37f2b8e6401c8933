// Kills the chat page at random moments, and performs random actions in two of its tabs: typed text must not be lost. Runs in
// Chromium, with an engine that answers automatically. `make soak` performs 200 kills and 200 actions; a normal test run, a twentieth.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { chooseRow, openStub, readAll, shown, untilKept } from '../support/chat_stub.mjs';
import { locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const { skip } = locate('chromium');
const site = resolve(root, 'build/chat-kills');

/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  await copyChat(site);
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @typedef {import('playwright-core').Page} Page */

/** Generates numbers from 0 to 1 (xorshift32). @param {number} seed */
function randomFrom(seed) {
  let state = (seed * 2654435761 + 88172645) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

const words = 'The answer has some words, which come one after the other until it ends.';
const script = `globalThis.answersByItself = ${JSON.stringify(words)};`;

/** @param {Page} page */
const crash = (page) =>
  Promise.race([
    page.waitForEvent('crash'),
    page.goto('chrome://crash').catch(() => new Promise(() => {})),
  ]);

/** @type {Record<string, (page: Page) => Promise<unknown>>} */
const kills = {
  reload: (page) => page.reload({ waitUntil: 'commit' }),
  close: (page) => page.close(),
  crash,
};

/**
 * Types a question letter by letter and perhaps sends it. Everything that the page has shown must
 * still exist later.
 * @param {Page} page
 * @param {string} text
 * @param {boolean} isSent
 */
async function type(page, text, isSent) {
  await page.fill('#prompt', '');
  await page.type('#prompt', text);
  if (isSent) await page.keyboard.press('Enter');
}

test('killed at random moments: no question, draft or visible answer is lost', {
  skip,
}, async (t) => {
  const context = await browser.newContext({ serviceWorkers: 'block' });
  t.after(() => context.close());
  const random = randomFrom(soakSeed);
  /** Questions that the page has shown as stored. @type {string[]} */
  const asked = [];
  let page = await openStub(context, server.url, { script });
  const rounds = soakCount(200);
  for (let round = 0; round < rounds; round++) {
    const isSent = random() < 0.7;
    const text = `Question ${round} of ${soakSeed}, typed by a hand`;
    await type(page, text, isSent);
    let seen = '';
    if (isSent) {
      await page.locator('.message.user .body', { hasText: text }).waitFor();
      asked.push(text);
      // sometimes the page is killed immediately, before the answer is stored
      if (random() < 0.7) {
        await new Promise((settle) => setTimeout(settle, random() * 500));
        const { turns } = await readAll(page);
        const question = turns.find(({ content }) => content === text);
        seen = turns.find(({ parent }) => parent === question?.id)?.content ?? '';
      }
    } else {
      const cut = text.slice(0, Math.ceil(random() * text.length));
      await page.fill('#prompt', cut);
      seen = cut;
    }
    const names = Object.keys(kills);
    const kill = names[Math.floor(random() * names.length)];
    await kills[kill](page);
    if (kill === 'reload') await page.waitForSelector('#send:not([disabled])');
    else page = await openStub(context, server.url, { script });
    const what = `seed ${soakSeed}, round ${round}, ${kill}`;
    const { turns } = await readAll(page);
    for (const one of asked) {
      assert.ok(
        turns.some(({ content }) => content === one),
        `${what}: ${one}`,
      );
    }
    if (isSent) {
      await page.locator('.message.user .body', { hasText: text }).waitFor();
      const answer = (await shown(page)).at(-1) ?? '';
      if (seen) assert.ok(answer.startsWith(seen.trim()), `${what}: "${seen}" became "${answer}"`);
      if (seen) assert.ok(words.startsWith(answer.trim()), `${what}: "${answer}"`);
    } else {
      assert.equal(await page.inputValue('#prompt'), seen, what);
    }
    if (page.isClosed()) break;
    if (random() < 0.3) await page.click('#new-chat');
  }
  t.diagnostic(`${rounds} kills, ${asked.length} questions, all kept`);
});

/** Returns the state of turns that were read from the database, by id. @param {any[]} turns */
const stateOf = (turns) =>
  new Map(
    turns.map(({ id, forgotten, rounds = [] }) => {
      const calls = rounds.flatMap((/** @type {any} */ round) => round.calls);
      const results = calls.filter((/** @type {any} */ { result }) => result !== undefined);
      return [id, { forgotten: Boolean(forgotten), calls: calls.length, results: results.length }];
    }),
  );

test('killed while tools run and questions are forgotten: the stored part of both is kept', {
  skip,
}, async (t) => {
  const context = await browser.newContext({ serviceWorkers: 'block' });
  t.after(() => context.close());
  const random = randomFrom(soakSeed + 2);
  const calls = [1, 2, 3].map((one) => ['calculator', `{"expression":"${one} + 391"}`]);
  const settings = JSON.stringify(JSON.stringify({ tools: true }));
  const withTools = `${script}
    globalThis.callsByItself = ${JSON.stringify(calls)};
    if (!localStorage.getItem('wick-chat-settings')) localStorage.setItem('wick-chat-settings', ${settings});`;
  let page = await openStub(context, server.url, { script: withTools });
  /** @type {string[]} */
  const asked = [];
  let [forgets, results] = [0, 0];
  const rounds = soakCount(200);
  for (let round = 0; round < rounds; round++) {
    const text = `Question ${round} of ${soakSeed}`;
    await type(page, text, true);
    await page.locator('.message.user .body', { hasText: text }).waitFor();
    asked.push(text);
    const questions = page.locator('.message.user:has(.forget)');
    const isForgetting = random() < 0.4;
    if (isForgetting) {
      await page.locator('#log[aria-busy=false]').waitFor();
      const count = await questions.count();
      await chooseRow(questions.nth(Math.floor(random() * count)), '.forget');
    }
    await new Promise((settle) => setTimeout(settle, random() * 500));
    const before = stateOf((await readAll(page)).turns);
    const names = Object.keys(kills);
    const kill = names[Math.floor(random() * names.length)];
    await kills[kill](page);
    if (kill === 'reload') await page.waitForSelector('#send:not([disabled])');
    else page = await openStub(context, server.url, { script: withTools });
    const what = `seed ${soakSeed}, round ${round}, ${kill}`;
    const { turns } = await readAll(page);
    for (const one of asked)
      assert.ok(
        turns.some(({ content }) => content === one),
        `${what}: ${one}`,
      );
    const after = stateOf(turns);
    for (const [id, was] of before) {
      const is = after.get(id);
      // the last click may be stored after this check
      const isSame = is?.forgotten === was.forgotten || (isForgetting && is?.forgotten);
      const isKept = is && isSame && is.calls >= was.calls && is.results >= was.results;
      assert.ok(isKept, `${what}: ${JSON.stringify(was)} became ${JSON.stringify(is)}`);
    }
    forgets = [...after.values()].filter(({ forgotten }) => forgotten).length;
    results = [...after.values()].reduce((sum, one) => sum + one.results, 0);
    if (random() < 0.3) await page.click('#new-chat');
  }
  assert.ok(results > 0, 'tools were run');
  t.diagnostic(`${rounds} kills, ${forgets} questions forgotten, ${results} results of tools`);
});

/** Opens a conversation in the list, if there is one. @param {Page} page @param {number} where from 0 to 1 */
async function openAny(page, where) {
  await page.evaluate((place) => {
    const links = [...document.querySelectorAll('#conversation-list a')];
    const link = /** @type {HTMLAnchorElement | undefined} */ (
      links[Math.floor(place * links.length)]
    );
    link?.click();
  }, where);
  // it may have been deleted; then the previous one stays open
  await untilTrue(
    page,
    "document.getElementById('log').dataset.conversation === location.hash.slice(1)",
  );
}

test('random input in two tabs: both inputs are kept, and both tabs show them', {
  skip,
}, async (t) => {
  const context = await browser.newContext({
    serviceWorkers: 'block',
    viewport: { width: 1280, height: 800 },
  });
  t.after(() => context.close());
  const random = randomFrom(soakSeed + 1);
  const tabs = [await openStub(context, server.url, { script })];
  tabs.push(await openStub(context, server.url, { script }));
  /** @type {string[]} */
  const asked = [];
  const steps = soakCount(200);
  for (let step = 0; step < steps; step++) {
    const page = tabs[Math.floor(random() * 2)];
    const choice = random();
    const isBusy = await page.locator('#stop').isVisible();
    if (choice < 0.5 && !isBusy) {
      const text = `Step ${step} of ${soakSeed}`;
      await page.fill('#prompt', text);
      await page.keyboard.press('Enter');
      await page.locator('.message.user .body', { hasText: text }).first().waitFor();
      asked.push(text);
    } else if (choice < 0.6) {
      await page.click('#new-chat');
    } else if (choice < 0.75) {
      await openAny(page, random());
    } else if (choice < 0.85 && isBusy) {
      await page.evaluate("document.getElementById('stop').click()");
    } else if (choice < 0.9 && !isBusy) {
      await page.evaluate("document.querySelector('.regenerate:enabled')?.click()");
    } else if (choice < 0.95) {
      await page.reload();
      await page.waitForSelector('#send:not([disabled])');
    }
  }
  const { turns } = await untilKept(tabs[0], (kept) =>
    asked.every((text) => kept.turns.some(({ content }) => content === text)),
  );
  assert.equal(new Set(turns.map(({ id }) => id)).size, turns.length);
  const ids = new Set(turns.map(({ id }) => id));
  assert.ok(
    turns.every(({ parent }) => parent === '' || ids.has(parent)),
    'every turn has a parent',
  );
  // the list of each tab shows the stored conversations
  for (const page of tabs) {
    const { conversations } = await readAll(page);
    await page.reload();
    await page
      .locator('#conversation-list li')
      .nth(conversations.length - 1)
      .waitFor();
    assert.equal(await page.locator('#conversation-list li').count(), conversations.length);
  }
  t.diagnostic(`${steps} steps, ${asked.length} questions, ${turns.length} turns`);
});

/**
 * Performs one mouse action that is currently possible.
 * @param {Page} page @param {string} kind @param {number} where from 0 to 1 @param {string} text
 * @returns {Promise<string | undefined>} the id of the conversation, or the text that was shown
 */
const act = (page, kind, where, text) =>
  page.evaluate(
    async ({ wanted, place, typed }) => {
      const wait = () => new Promise((settle) => setTimeout(settle, 20));
      const anyOf = (/** @type {string} */ selector) => {
        const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
        const seen = all.filter((one) => one.checkVisibility());
        return seen[Math.floor(Number(place) * seen.length)];
      };
      const until = async (/** @type {() => any} */ find) => {
        for (let tries = 0; tries < 50; tries++, await wait()) if (find()) return find();
      };
      /** Finds a button among a conversation's actions. @param {RegExp} name */
      const actionOf = async (name) => {
        const more = anyOf('#conversation-list .more');
        const id = more?.closest('li')?.dataset.id;
        if (!id) return {};
        const item = () => document.querySelector(`#conversation-list [data-id="${id}"]`);
        const find = () =>
          [...(item()?.querySelectorAll('.actions button') ?? [])].find((one) =>
            name.test(one.textContent ?? ''),
          );
        if (!find()) more.click();
        return { button: /** @type {HTMLElement | undefined} */ (await until(find)), id };
      };
      if (wanted === 'pin' || wanted === 'delete') {
        const { button, id } = await actionOf(wanted === 'pin' ? /^(Pin|Unpin)$/ : /^Delete$/);
        button?.click();
        return button && id;
      }
      if (wanted === 'rename') {
        const { button, id } = await actionOf(/^Rename$/);
        button?.click();
        const field = /** @type {HTMLInputElement | null} */ (
          document.querySelector('#conversation-list input')
        );
        if (!field) return undefined;
        field.value = String(typed);
        field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
        return id;
      }
      if (wanted === 'edit') {
        const buttons = [...document.querySelectorAll('#log button:enabled')];
        const edits = buttons.filter((one) => one.textContent === 'Edit');
        /** @type {HTMLElement | undefined} */ (
          edits[Math.floor(Number(place) * edits.length)]
        )?.click();
        const field = /** @type {HTMLTextAreaElement | null} */ (
          document.querySelector('#log .edit textarea')
        );
        if (!field) return undefined;
        field.value = String(typed);
        field.dispatchEvent(new Event('input', { bubbles: true }));
        field.form?.requestSubmit();
        return location.hash.slice(1);
      }
      if (wanted === 'forever') {
        document.querySelector('#deleted')?.setAttribute('open', '');
        const item = anyOf('#deleted-list li');
        const really = /** @type {HTMLElement | undefined} */ (item?.querySelectorAll('button')[1]);
        really?.click();
        really?.click();
        return item && 'done';
      }
      const named = new Map([
        ['restore', '#deleted-list li button:first-of-type'],
        ['undo', '#undo'],
      ]).get(wanted);
      const button = named
        ? anyOf(named)
        : [...document.querySelectorAll('#log button:enabled')].filter((one) =>
            new RegExp(wanted).test(one.textContent ?? ''),
          )[0];
      /** @type {HTMLElement | undefined} */ (button)?.click();
      return button ? 'done' : undefined;
    },
    { wanted: kind, place: where, typed: text },
  );

/** Returns the part of the list that a tab shows. @param {Page} page */
const listOf = (page) =>
  page.evaluate(() => {
    const rows = [...document.querySelectorAll('#conversation-list li')].map((one) =>
      [one.className, one.querySelector('a')?.textContent, one.querySelector('.draft')?.textContent]
        .filter(Boolean)
        .join(' | '),
    );
    const gone = [...document.querySelectorAll('#deleted-list span')].map((one) => one.textContent);
    return { rows, gone };
  });

test('two tabs delete, undo, rename, pin, edit and forget at random: both show the same at the end', {
  skip,
}, async (t) => {
  const context = await browser.newContext({
    serviceWorkers: 'block',
    viewport: { width: 1280, height: 800 },
  });
  t.after(() => context.close());
  const random = randomFrom(soakSeed + 5);
  /** @type {string[]} */
  const problems = [];
  const tabs = [];
  for (let tab = 0; tab < 2; tab++)
    tabs.push(await openStub(context, server.url, { script, problems }));
  /** The typed text, and its conversation. @type {Map<string, string>} */
  const asked = new Map();
  /** @type {Record<string, number>} */
  const done = {};
  const kinds = [
    ...Array(5).fill('ask'),
    'draft',
    'new',
    'open',
    'edit',
    'edit',
    'rename',
    'pin',
    'delete',
  ];
  kinds.push('undo', 'restore', 'forever', '^Forget$', '^Bring back$', '^Regenerate$', '^Stop$');
  const steps = Math.max(40, soakCount(200));
  for (let step = 0; step < steps; step++) {
    const page = tabs[Math.floor(random() * 2)];
    const kind = step < 3 ? 'ask' : kinds[Math.floor(random() * kinds.length)];
    const where = random();
    const text = `${kind} at step ${step} of ${soakSeed}`;
    const isBusy = await page.locator('#stop').isVisible();
    if (isBusy && ['ask', 'edit'].includes(kind))
      await page.evaluate("document.getElementById('stop').click()");
    if (kind === 'ask') {
      await page.locator('#log:not([aria-busy=true])').waitFor();
      await page.fill('#prompt', text);
      await page.keyboard.press('Enter');
      await page.locator('.message.user .body', { hasText: text }).waitFor();
      asked.set(text, await page.evaluate('location.hash.slice(1)'));
    } else if (kind === 'draft') {
      await page.fill('#prompt', text);
      asked.set(text, await page.evaluate('location.hash.slice(1)'));
    } else if (kind === 'new') {
      await page.click('#new-chat');
    } else if (kind === 'open') {
      await openAny(page, where);
    } else {
      if (kind === 'edit') await page.locator('#log:not([aria-busy=true])').waitFor();
      const found = await act(page, kind, where, text);
      if (found) done[kind] = (done[kind] ?? 0) + 1;
      if (kind === 'edit' && found) asked.set(text, found);
    }
  }
  for (const page of tabs) await page.locator('#log:not([aria-busy=true])').waitFor();
  await untilKept(tabs[0], ({ turns }) => turns.every(({ state }) => state !== 'writing'));
  const kept = await readAll(tabs[0]);
  const there = new Set(kept.conversations.map(({ id }) => id));
  const texts = [
    ...kept.turns.map(({ content }) => content),
    ...kept.drafts.map((one) => one.text),
  ];
  // a later draft replaces an earlier one of the same conversation and tab
  for (const [text, conversation] of asked) {
    if (text.startsWith('draft') || !there.has(conversation)) continue;
    assert.ok(texts.includes(text), `seed ${soakSeed}: "${text}" is lost`);
  }
  const ids = new Set(kept.turns.map(({ id }) => id));
  for (const { parent, conversation, content } of kept.turns) {
    assert.ok(there.has(conversation), `"${content}" belongs to no conversation`);
    assert.ok(parent === '' || ids.has(parent), `"${content}" has no parent`);
  }
  // both tabs show the same list without a reload
  const [first, second] = tabs;
  for (const end = Date.now() + 10_000; ; ) {
    const [one, other] = [await listOf(first), await listOf(second)];
    if (JSON.stringify(one) === JSON.stringify(other) && one.rows.length > 0) break;
    assert.ok(Date.now() < end, JSON.stringify({ one, other }, null, 1));
    await new Promise((settle) => setTimeout(settle, 50));
  }
  const list = await listOf(first);
  const alive = kept.conversations.filter(({ deleted }) => deleted === 0);
  assert.equal(list.rows.length, alive.length);
  assert.equal(list.gone.length, kept.conversations.length - alive.length);
  // a tab stays on its current branch; when reopened, both show the branch that was chosen last
  for (const page of tabs) await page.click('#new-chat');
  for (const { id } of alive) {
    for (const page of tabs) {
      await page.evaluate(`location.hash = ${JSON.stringify(id)}`);
      await untilTrue(page, `document.getElementById('log').dataset.conversation === '${id}'`);
      await untilTrue(page, `location.hash === '#${id}'`);
    }
    assert.deepEqual(await shown(second), await shown(first), `conversation ${id}`);
  }
  assert.deepEqual(problems, []);
  t.diagnostic(`${steps} steps, ${asked.size} texts, ${JSON.stringify(done)}`);
});

test('killed right after a file was attached or sent: its text is kept', { skip }, async (t) => {
  const context = await browser.newContext({ serviceWorkers: 'block' });
  t.after(() => context.close());
  const random = randomFrom(soakSeed + 3);
  const names = Object.keys(kills);
  let page = await openStub(context, server.url, { script });
  const rounds = soakCount(200);
  for (let round = 0; round < rounds; round++) {
    await page.click('#new-chat');
    const text = `File ${round} of ${soakSeed}`;
    const file = { name: `${round}.txt`, mimeType: 'text/plain', buffer: Buffer.from(text) };
    await page.setInputFiles('#attach-file', file);
    await page.locator('.media.attached .chip').waitFor();
    const chips = random() < 0.5 ? '.message.user .chip' : '.media.attached .chip';
    if (chips.startsWith('.message')) await page.press('#prompt', 'Enter');
    await page.locator(chips).waitFor();
    const kill = names[Math.floor(random() * names.length)];
    await kills[kill](page);
    if (kill === 'reload') await page.waitForSelector('#send:not([disabled])');
    else page = await openStub(context, server.url, { script });
    await page.locator(`${chips} summary`, { hasText: file.name }).click();
    await page.locator(`${chips} pre`, { hasText: text }).waitFor();
  }
  t.diagnostic(`${rounds} kills, all files kept`);
});
