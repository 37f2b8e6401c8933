// The chat page's answers before Enter, with the package's engine and the built-in model: an early
// answer is shown at Enter and equals a normal one; unused answers free their pages; none are started
// on battery, or if the user has switched them off.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import {
  askReal,
  openReal,
  setTemperature,
  untilAllReturned,
  untilFact,
} from '../support/chat_real.mjs';
import { onBattery } from '../support/chat_stub.mjs';
import { locate } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const { skip, browser, url: siteUrl } = useChat('chat-ahead');
/** @typedef {import('playwright-core').Page} Page */

/** Hides the state of the battery, so that early answers may be started. */
const onMains = `Navigator.prototype.getBattery = async () =>
  Object.assign(new EventTarget(), { charging: true });`;

/** @param {import('node:test').TestContext} t @param {Parameters<typeof openReal>[2] & {url?: string}} [how] */
async function open(t, { url = siteUrl(), script = onMains, ...how } = {}) {
  /** @type {string[]} */
  const problems = [];
  const page = await openReal(browser(), url, { problems, script, ...how });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  await openDeveloper(page);
  return page;
}

/** @param {Page} page @param {string} text */
const untilBegun = (page, text) =>
  page
    .locator('#kv-facts dd[data-fact="Before Enter"]', {
      hasText: `answer to “${text.trim().slice(-30)}”`,
    })
    .waitFor();

/** @param {Page} page @param {string} text */
async function type(page, text) {
  await page.fill('#prompt', text);
  await untilBegun(page, text);
}

test('if the code for early answers cannot be loaded, none is started, and Enter answers', {
  skip,
}, async (t) => {
  const page = await open(t);
  let asked = 0;
  await page.route(/\/early_answers-\w+\.js$/, (route) => {
    asked++;
    return route.abort();
  });
  await page.fill('#prompt', 'What is Wick?');
  await untilFact(page, 'Before Enter', /^not started: .*early/);
  assert.ok(asked > 0);
  assert.match(await askReal(page, 'What is Wick?'), /\w/);
});

test('the early answer at Enter is the same as a normal one, and is marked as early', {
  skip,
}, async (t) => {
  const texts = ['Tell me a story about a fox.', 'What is Wick?'];
  const plain = await open(t, { script: onBattery });
  await setTemperature(plain, 0);
  const expected = [];
  for (const text of texts) expected.push(await askReal(plain, text));
  const page = await open(t);
  await setTemperature(page, 0);
  for (const [index, text] of texts.entries()) {
    await type(page, text.slice(0, -4)); // pauses before the end of the text, too
    await type(page, text);
    await page.keyboard.press('Enter');
    const footer = page.locator('.message.assistant footer').nth(index);
    const figures = /tokens\/s.*first token after 0 ms.*started before Enter/s;
    assert.match((await footer.textContent()) ?? '', figures);
  }
  const bodies = await page.locator('.message.assistant .body').allInnerTexts();
  assert.deepEqual(
    bodies.map((one) => one.trim()),
    expected,
  );
  await untilFact(page, 'Last prompt', /^\d+ tokens, [1-9]\d* of them cached/);
  await takePicture(page, 'light-ahead');
});

test('unused answers free their pages', { skip }, async (t) => {
  const page = await open(t);
  await type(page, 'Tell me a story about a fox.');
  const during = await page.evaluate('engine.kvStats()');
  assert.ok(during.sessions > 0 && during.pages.cached < during.pages.all - during.pages.free);
  await page.fill('#prompt', '');
  await untilFact(page, 'Before Enter', /^released/);
  await untilAllReturned(page);
  await type(page, 'What is a fork?');
  await page.click('#new-chat');
  await untilAllReturned(page);
});

test('early answers start only while the battery is charging', {
  skip,
}, async (t) => {
  const script = `const battery = Object.assign(new EventTarget(), { charging: false });
    Navigator.prototype.getBattery = async () => battery;
    globalThis.plug = (charging) => {
      battery.charging = charging;
      battery.dispatchEvent(new Event('chargingchange'));
    };`;
  const page = await open(t, { script });
  await untilFact(page, 'Before Enter', /^off: on battery/);
  const asked = () => page.evaluate('engine.stats().then(({ requests }) => requests.submitted)');
  const before = await asked();
  await page.fill('#prompt', 'What is Wick?');
  await page.evaluate('plug(true)');
  await untilBegun(page, 'What is Wick?');
  assert.equal(await asked(), before + 1);
  await page.evaluate('plug(false)');
  await untilFact(page, 'Before Enter', /^released/);
  await untilAllReturned(page);
  assert.match(await askReal(page, 'What is Wick?'), /\w+ \w+/);
  assert.equal(await page.locator('.follow-ups').count(), 0);
});

test('the switch is remembered', { skip }, async (t) => {
  const page = await open(t);
  await type(page, 'What is Wick?');
  await page.click('#open-settings');
  await page.locator('[name=ahead]').uncheck();
  await takePicture(page, 'light-ahead-switch');
  await page.click('#settings-form [value=save]');
  await untilAllReturned(page);
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await openDeveloper(page);
  await untilFact(page, 'Before Enter', /^off: switched off/);
  await page.click('#open-settings');
  await page.locator('[name=ahead]').check();
  await page.click('#settings-form [value=save]');
  await untilBegun(page, 'What is Wick?'); // the draft was restored
});

test('answers to suggested follow-up questions are started, too', { skip }, async (t) => {
  const page = await open(t);
  await askReal(page, 'What is Wick?');
  const chips = page.locator('.follow-ups button');
  await chips.nth(1).waitFor();
  await untilFact(page, 'Follow-ups', /^2 answers started/);
  await untilTrue(page, 'engine.kvStats().then(({ sessions }) => sessions >= 2)');
  await takePicture(page, 'light-follow-ups');
  const question = await chips.first().innerText();
  await untilTrue(page, 'engine.kvStats().then(({ pages }) => pages.shared > 0)');
  await chips.first().click();
  const footer = page.locator('.message.assistant footer').nth(1);
  assert.match((await footer.textContent()) ?? '', /started before Enter/);
  assert.equal(await page.locator('.message.user .body').nth(1).innerText(), question);
});

test('the built-in model has suggestions that follow from the conversation, or none', {
  skip,
}, async (t) => {
  const page = await open(t);
  const chips = page.locator('.follow-ups button');
  assert.equal(await page.locator('#suggestions h3').count(), 3);
  assert.equal(await page.locator('#suggestions button').count(), 6);
  await askReal(page, 'Tell me a story about a fox.');
  await chips.first().waitFor();
  assert.match(await chips.first().innerText(), /story/);
  await askReal(page, 'thanks, bye');
  await page.waitForTimeout(500); // unwanted suggestions would appear immediately
  assert.equal(await chips.count(), 0);
});

test('suggestions disappear when the conversation changes, even while they are generated', {
  skip,
}, async (t) => {
  const page = await open(t);
  const chips = page.locator('.follow-ups button');
  await askReal(page, 'Tell me a story about a fox.');
  await chips.first().waitFor();
  await page.click('#new-chat');
  assert.equal(await chips.count(), 0);
  await askReal(page, 'What is Wick?');
  await page.click('#new-chat');
  await untilAllReturned(page);
  assert.equal(await chips.count(), 0);
  // the earlier conversation, without suggestions of another one
  if (!(await page.evaluate('document.querySelector("#conversations").open')))
    await page.click('#open-list');
  await page.locator('#conversation-list a').last().click();
  await page.locator('.message.user', { hasText: 'fox' }).waitFor();
  assert.equal(await chips.count(), 0);
});

test('an unfinished answer has no follow-up questions', { skip }, async (t) => {
  const page = await open(t);
  await page.click('#open-settings');
  await page.fill('[name=maxTokens]', '4');
  await page.click('#settings-form [value=save]');
  await askReal(page, 'What is Wick?');
  await page.fill('#prompt', 'Tell me a story.');
  await untilBegun(page, 'Tell me a story.'); // it is started after the others
  assert.equal(await page.locator('.follow-ups').count(), 0);
});

test('a model without prepared questions generates them', { skip }, async (t) => {
  const url = `${siteUrl()}?model=${siteUrl()}wick-llm-demo-model/wick-4.2m-q4_0.gguf`;
  const page = await open(t, { url });
  await page.locator('#model-name', { hasText: 'q4_0' }).waitFor();
  await askReal(page, 'What is Wick?');
  const chips = page.locator('.follow-ups button');
  await chips.first().waitFor();
  for (const text of await chips.allInnerTexts()) assert.match(text, /^.{8,80}$/);
});

test('after random typing, deleting, asking and opening, all pages are freed', {
  skip,
}, async (t) => {
  const page = await open(t);
  let state = soakSeed + 1;
  const below = (/** @type {number} */ bound) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % bound;
  };
  const words = [
    'Tell me',
    ' a story',
    ' about',
    ' a fox',
    ' and',
    ' a lamp.',
    ' What',
    ' is Wick?',
  ];
  const steps = [
    () => page.fill('#prompt', ''),
    () => page.click('#new-chat'),
    () => page.keyboard.press('Escape'),
    () => page.locator('#prompt').press('Enter'),
    ...Array.from({ length: 4 }, () => async () => {
      await page.locator('#prompt').pressSequentially(words[below(words.length)]);
      if (below(2)) await page.locator('#log[aria-busy=false]').waitFor();
    }),
    async () => {
      const chip = page.locator('.follow-ups button').first();
      if (await chip.isVisible()) await chip.click({ timeout: 1000 }).catch(() => {}); // the suggestion may have disappeared
    },
  ];
  for (let step = soakCount(400); step > 0; step--) await steps[below(steps.length)]();
  await page.click('#new-chat');
  await untilAllReturned(page);
  assert.equal(await page.locator('#problem').isVisible(), false);
});

// ---- the other browsers ----

/** Runs in the page and returns the text below the answer. */
const elsewhere = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 20));
    }
    throw new Error('not so: ' + what + ': ' + document.body.innerText);
  };
  const byId = (id) => document.getElementById(id);
  await until('ready', () => !byId('send').disabled);
  byId('developer').open = true;
  byId('prompt').value = 'What is Wick?';
  byId('prompt').dispatchEvent(new Event('input'));
  await until('begun', () => document.querySelector('#kv-facts dd[data-fact="Before Enter"]')
    ?.textContent.includes('answer to “What is Wick?”'));
  byId('composer').requestSubmit();
  return await until('answered', () => document.querySelector('.message.assistant footer')?.textContent);`;

test('Firefox answers before Enter, too', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(siteUrl());
  const reported = await page.evaluate(`(async () => { ${elsewhere} })()`);
  assert.match(String(reported), /started before Enter/);
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await page.goto(siteUrl());
  assert.match(await page.evaluate(elsewhere), /started before Enter/);
});
