// Context sizes above the default in the chat page: the offered sizes, their costs, and the choice that each
// conversation keeps. With the package's engine and the built-in model, whose file is changed to claim a larger trained
// context.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { reachableBytes, sizesOf } from '../../examples/chat/context_sizes.js';
import { assertAccessible } from '../support/accessible.mjs';
import { useChat } from '../support/chat_page.mjs';
import { askReal, openReal } from '../support/chat_real.mjs';
import { onBattery } from '../support/chat_stub.mjs';
import { root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, browser, url: siteUrl } = useChat('chat-context-size');
/** @typedef {import('playwright-core').Page} Page */

describe('sizes', () => {
  const model = { trained: 20_000, now: 4096, bytesPerToken: 1000, totalBytes: 1e7 };

  test('double up to the trained length, each with its cost', () => {
    assert.deepEqual(sizesOf(model, 1e9), [
      { tokens: 4096, moreBytes: 0, fits: true },
      { tokens: 8192, moreBytes: 4096e3, fits: true },
      { tokens: 16384, moreBytes: 12288e3, fits: true },
      { tokens: 20_000, moreBytes: 15904e3, fits: true },
    ]);
  });
  test('a model without enough memory does not fit; the one in use does', () => {
    const fitting = (/** @type {any} */ one, /** @type {number} */ limit) =>
      sizesOf(one, limit).map(({ fits }) => fits);
    assert.deepEqual(fitting(model, 15e6), [true, true, false, false]);
    assert.deepEqual(fitting({ ...model, now: 8192 }, 1), [true, true, false, false]);
  });
  test('memory with 64-bit addresses counts if the device is known to have it', () => {
    const memory = { limitBytes: 4.2e9, mostBytes: 16e9 };
    assert.equal(reachableBytes(memory, undefined), 4.2e9);
    assert.equal(reachableBytes(memory, 9e9), 9e9);
    assert.equal(reachableBytes(memory, 19e9), 16e9);
    assert.equal(reachableBytes({ ...memory, mostBytes: 4.2e9 }, 9e9), 4.2e9);
  });
  test('a model trained for a smaller context has one size', () => {
    assert.equal(sizesOf({ ...model, trained: 2048 }, 1e9).length, 1);
  });
});

const NAME = 'long.gguf';
const TRAINED = 16_384;

before(() => {
  const model = readFileSync(resolve(root, 'examples/models/wick-2.6m-q8_0.gguf'));
  const key = '.context_length';
  const at = model.indexOf(key) + key.length;
  assert.equal(model.readUInt32LE(at), 4, 'a number of 32 bits');
  model.writeUInt32LE(TRAINED, at + 4);
  writeFileSync(resolve(site, NAME), model);
});

/** @param {import('node:test').TestContext} t @returns {Promise<Page>} */
async function open(t) {
  /** @type {string[]} */
  const problems = [];
  const url = `${siteUrl()}?model=${siteUrl()}${NAME}`;
  const page = await openReal(browser(), url, { problems, script: onBattery });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  await page.locator('#model-name', { hasText: NAME }).waitFor();
  return page;
}

/** @param {Page} page @returns {Promise<string[]>} */
async function openSettings(page) {
  await page.click('#open-settings');
  await page.locator('[name=context] option').nth(1).waitFor({ state: 'attached' });
  return page.locator('[name=context] option').allInnerTexts();
}

/** @param {Page} page @param {number} tokens */
const untilContext = (page, tokens) =>
  untilTrue(
    page,
    `document.getElementById('facts').textContent.includes('${tokens.toLocaleString('en')} tokens')`,
  );

test('a size is chosen with its cost visible, kept with the conversation, and the gauge follows', {
  skip,
}, async (t) => {
  const page = await open(t);
  await untilContext(page, 4096);
  const offered = await openSettings(page);
  assert.equal(offered.length, 3);
  assert.equal(offered[0], '4,096 tokens (current)');
  assert.match(offered[1], /^8,192 tokens: about \d+(\.\d)? MB of memory more$/);
  assert.match(offered[2], /^16,384 tokens: about \d+(\.\d)? MB of memory more$/);
  assert.match(await page.innerText('#context-hint'), /trained with a context of 16,384 tokens/);
  await assertAccessible(page);
  await takePicture(page, 'chat-context');
  const before = await page.evaluate('engine.info().then(({ memory }) => memory.usedBytes)');
  await page.selectOption('[name=context]', String(TRAINED));
  await page.click('#settings-form [value=save]');
  await untilContext(page, TRAINED);
  const after = await page.evaluate('engine.info().then(({ memory }) => memory.usedBytes)');
  const [, said] = /about ([\d.]+) MB/.exec(offered[2]) ?? [];
  const grown = (after - before) / 1e6;
  assert.ok(grown < 1.5 * Number(said) + 1, `${grown} MB more, ${said} were told`);
  await askReal(page, 'What is Wick?');
  await page
    .locator('#gauge-text', { hasText: `of ${TRAINED.toLocaleString('en')} tokens` })
    .waitFor();
  // the model reads more than the default context
  const long = 'The fox is in the garden. '.repeat(900);
  const tokens = await page.evaluate(`engine.countTokens(${JSON.stringify(long)})`);
  assert.ok(tokens > 4096, `${tokens}`);
  await page.fill('#prompt', long);
  await untilTrue(
    page,
    `parseInt(document.getElementById('gauge-text').textContent.replace(',', '')) > ${tokens}`,
  );
  assert.equal(await page.locator('#context-note').isHidden(), true);
  await page.fill('#prompt', '');
  await page.reload();
  await untilContext(page, TRAINED);
  const [first] = await openSettings(page);
  assert.match(first, /^4,096 tokens: about .* less$/);
  await page.locator('[name=context]').selectOption('');
  await page.click('#settings-form [value=save]');
  await untilContext(page, 4096);
});

test('each conversation has its context size; if a model does not support it, the page says so', {
  skip,
}, async (t) => {
  const page = await open(t);
  await openSettings(page);
  await page.selectOption('[name=context]', '8192');
  await page.click('#settings-form [value=save]');
  await untilContext(page, 8192);
  await askReal(page, 'What is Wick?');
  const id = await page.evaluate('location.hash');
  await page.click('#new-chat');
  await openSettings(page);
  await page.selectOption('[name=context]', '');
  await page.click('#settings-form [value=save]');
  await untilContext(page, 4096);
  await askReal(page, 'Who are you?');
  await page.click(`#conversation-list a[href="${id}"]`);
  await untilContext(page, 8192);
  // the built-in model was trained for less
  await page.click('#choose-model');
  await page.check('input[name=model][value=wick]');
  await page.click('#load-model');
  await page.locator('#model-name', { hasText: 'Wick 4.2M' }).waitFor();
  assert.match(
    await page.innerText('#notice-text'),
    /^The context has [\d,]+ tokens instead of 8,192: /,
  );
});
