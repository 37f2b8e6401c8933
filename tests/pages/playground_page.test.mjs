// The playground: output for a schema, a grammar, an expression and a list of choices; errors at their positions; links that contain
// a task; broken or oversized input. In Chromium; the main functions also in Firefox and WebKitGTK. Screenshots (light, dark, phone)
// are written to build/screenshots.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { buildPlayground } from '../../examples/playground/build.mjs';
import { packFragment } from '../../examples/shared/fragment.js';
import { serve } from '../../tools/serve.mjs';
import { violations } from '../support/accessible.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip } = locate('chromium');
const site = resolve(root, 'build/playground-test');
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  await buildPlayground(site);
  server = await serve({ root: site });
  if (!skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @typedef {import('playwright-core').Page} Page */

/**
 * @param {import('node:test').TestContext} t
 * @param {{hash?: string, options?: import('playwright-core').BrowserContextOptions}} [how]
 */
async function openPage(t, { hash = '', options = {} } = {}) {
  const context = await browser.newContext({
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  await page.goto(`${server.url}${hash && `#${hash}`}`);
  await page.waitForSelector('#run[aria-disabled="false"]');
  return page;
}

/** @param {Page} page @returns {Promise<string>} the output, when the run has ended */
async function run(page) {
  await page.click('#run');
  await untilTrue(
    page,
    `document.getElementById('run').getAttribute('aria-disabled') === 'false' &&
      (document.getElementById('facts').textContent.includes('written') ||
        !document.getElementById('problem').hidden || !document.getElementById('rule-problem').hidden)`,
  );
  return page.locator('#output').innerText();
}

test('a schema: its record, token by token, its figures and its code', { skip }, async (t) => {
  const page = await openPage(t);
  const record = JSON.parse(await run(page));
  assert.deepEqual(Object.keys(record), ['city', 'people', 'breakfast']);
  assert.ok(['Oslo', 'Lima', 'Kyoto'].includes(record.city));
  assert.ok((await page.locator('#output span').count()) > 5);
  assert.match((await page.locator('#output span').first().getAttribute('title')) ?? '', / %$/);
  assert.match(await page.locator('#facts').innerText(), /\d+ tokens prefilled in .*; \d+ written/);
  assert.match((await page.locator('#code').textContent()) ?? '', /engine\.extract\("Three of us/);
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, colorScheme), [], colorScheme);
    await takePicture(page, `playground-${colorScheme}`, { fullPage: true });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await takePicture(page, 'playground-phone', { fullPage: true });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
  await page.uncheck('#tokens');
  assert.deepEqual(JSON.parse(await run(page)), record);
  assert.equal(await page.locator('#output span').count(), 0);
});

test('a grammar, an expression and choices', { skip }, async (t) => {
  const page = await openPage(t);
  await page.check('input[value="grammar"]');
  assert.match(await run(page), /^(- [a-zA-Z]+( [a-zA-Z]+)*\n){1,3}- /);
  await page.check('input[value="regex"]');
  assert.match(await run(page), /^\d{4}-\d\d-\d\d$/);
  await page.check('input[value="choices"]');
  assert.ok(['glad', 'angry', 'neither'].includes(await run(page)));
});

/** Unsupported rules: the kind, the rule, the position of the error mark, and the message. @type {[string, string, string | null, RegExp][]} */
const broken = [
  ['schema', '{\n  "type": "object",\n  "required": 7\n}', '7', /Line 3, column 15: .*required/],
  ['schema', '{ "properties": { "a": { "type": "nothing" } } }', '"nothing"', /type/],
  ['schema', '{ "type": ', null, /Line 1/],
  ['schema', '{ "§": "é", "$ref": "#/$defs/none" }', '"#/$defs/none"', /\$ref/],
  ['schema', '', null, /JSON/i],
  ['grammar', 'root ::= item\n', null, /item/],
  ['regex', 'a(b', null, /Line 1/],
  ['choices', '\n\n', null, /choices/],
];

const digit = '{ "type": "integer", "maximum": 9, "minimum": 1 }';

/** Enters a rule in a page without errors, and checks the reported error. @param {Page} page @param {typeof broken[number]} one */
async function assertReported(page, [kind, rule, mark, words]) {
  await page.check(`input[value="${kind}"]`);
  await page.fill('#rule', rule);
  await page.locator('#rule-problem-text', { hasText: words }).waitFor();
  if (mark === null) return;
  assert.equal(await page.locator('#rule-marks mark').textContent(), mark);
  await page.click('#rule-go');
  assert.equal(await page.evaluate('getSelection().toString()'), mark);
  if (rule === broken[0][1]) {
    assert.deepEqual(await violations(page), []);
    await takePicture(page, 'playground-error');
  }
  assert.equal(await run(page), '');
  await page.fill('#rule', digit);
  assert.match(await run(page), /^\d$/);
}

test('an invalid or unsupported rule is reported with its position, until it is corrected', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  for (const one of broken) {
    await t.test(`${one[0]} ${JSON.stringify(one[1])}`, () => assertReported(page, one));
    await page.check('input[value="schema"]');
    await page.fill('#rule', digit);
    await page.locator('#rule-problem').waitFor({ state: 'hidden' });
  }
});

test('a schema that is too large is rejected, and the page still works', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  const names = Array.from({ length: 120_000 }, (_, index) => `name ${index} ${'x'.repeat(20)}`);
  await page.fill('#rule', JSON.stringify({ enum: names }));
  await page.locator('#rule-problem:not([hidden])').waitFor();
  assert.match(await page.locator('#rule-problem-text').innerText(), /too large|more than/);
  await page.fill('#rule', '{ "type": "boolean" }');
  assert.match(await run(page), /^(true|false)$/);
});

test('a link contains the task; an invalid link is reported and has no other effect', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await page.check('input[value="choices"]');
  await page.fill('#rule', 'rød\n<b>blå</b>');
  await page.fill('#text', 'Which "colour" – 🦊?');
  await page.click('#share');
  await page.locator('#state:text("Copied")').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await openPage(t, { hash: new URL(link).hash.slice(1) });
  assert.equal(await other.inputValue('#rule'), 'rød\n<b>blå</b>');
  assert.equal(await other.inputValue('#text'), 'Which "colour" – 🦊?');
  assert.ok(['rød', '<b>blå</b>'].includes(await run(other)));
  const bomb = await packFragment('a'.repeat(1_000_000)); // as large as a link may be
  for (const hash of ['%%%', 'AAAA', bomb, await packFragment({ kind: '__proto__' })]) {
    const wrong = await openPage(t, { hash });
    assert.match(await wrong.locator('#problem').innerText(), /^The link cannot be read/);
    assert.match(await wrong.inputValue('#rule'), /"city"/);
  }
});

test('a run is stopped, and its results stay', { skip: skip || !isFull }, async (t) => {
  const page = await openPage(t);
  await page.fill('#rule', '{ "type": "array", "minItems": 900, "items": { "type": "integer" } }');
  // clicks in the page at the eleventh token, because on a busy machine the run would end before a click from here arrives
  const state = await page.evaluate(() => {
    const [output, run, stop] = ['#output', '#run', '#stop'].map(
      (name) => /** @type {HTMLElement} */ (document.querySelector(name)),
    );
    run.click();
    return new Promise((settle) => {
      new MutationObserver((_, observer) => {
        if (output.querySelectorAll('span').length < 11) return;
        observer.disconnect();
        settle(document.querySelector('#state')?.textContent);
        stop.click();
      }).observe(output, { childList: true });
    });
  });
  assert.equal(state, 'Writing …');
  await page.locator('#state:text("Stopped")').waitFor();
  assert.match(await page.locator('#output').innerText(), /^\[\s*-?\d/);
});

test('a model that cannot be loaded is reported, and the previous one continues', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await page.selectOption('#model', 'file');
  await page.setInputFiles('#model-file', {
    name: 'no-model.gguf',
    mimeType: 'application/octet-stream',
    buffer: Buffer.from('no model at all'),
  });
  await page.click('#model-load');
  await page.locator('#model-problem:not([hidden])').waitFor();
  assert.match(
    await page.locator('#model-problem').innerText(),
    /not a GGUF file.* is still loaded\.$/,
  );
  assert.match(await run(page), /"city"/);
  await page.setInputFiles('#model-file', resolve(root, 'examples/models/wick-4.2m-q4_0.gguf'));
  await page.click('#model-load');
  await page.locator('#model-state', { hasText: 'wick-4.2m-q4_0.gguf is ready' }).waitFor();
  assert.match(await run(page), /"city"/);
});

/** The steps as a script, for browsers that are driven by scripts. */
const steps = `
  const until = async (condition) => { while (!condition()) await new Promise((settle) => setTimeout(settle, 50)); };
  const byId = (id) => document.getElementById(id);
  await until(() => byId('run').getAttribute('aria-disabled') === 'false');
  byId('run').click();
  await until(() => byId('facts').textContent.includes('written'));
  const record = byId('output').textContent;
  byId('rule').value = '{ "type": 7 }';
  byId('rule').dispatchEvent(new Event('input'));
  await until(() => !byId('rule-problem').hidden);
  const fault = byId('rule-problem-text').textContent;
  byId('share').click();
  await until(() => location.hash.length > 10);
  return { record, fault, hash: location.hash.slice(1) };`;

/** @param {{record: string, fault: string, hash: string}} found */
async function assertWorks({ record, fault, hash }) {
  assert.deepEqual(Object.keys(JSON.parse(record)), ['city', 'people', 'breakfast']);
  assert.match(fault, /^Line 1, column \d+: /);
  const { unpackFragment } = await import('../../examples/shared/fragment.js');
  assert.equal((await unpackFragment(hash)).rule, '{ "type": 7 }');
}

test('Firefox: a record, an error at its position, a link', {
  skip: locate('firefox').skip,
}, async () => {
  const firefox = await launchFirefox();
  try {
    const page = await firefox.newPage();
    await page.goto(server.url);
    await assertWorks(/** @type {any} */ (await page.evaluate(`(async () => { ${steps} })()`)));
  } finally {
    await firefox.close();
  }
});

test('WebKitGTK: a record, an error at its position, a link', {
  skip: locate('webkitDriver').skip,
}, async () => {
  const page = await launchWebKit();
  try {
    await page.goto(server.url);
    await assertWorks(await page.evaluate(steps));
  } finally {
    await page.close();
  }
});
