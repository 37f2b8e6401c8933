// PDFs and tools in the chat page in Firefox and WebKitGTK, with a fake engine that replaces the package's files.
// Books in these browsers: tests/pages/chat_books.test.mjs.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { stubEngine, stubModels } from '../support/chat_stub.mjs';
import { locate, root } from '../support/locate.mjs';
import { pdfOf } from '../support/pdf.mjs';
import { runFirst } from '../support/two_browsers.mjs';

const site = resolve(root, 'build/chat-browsers');
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

/** Prevents answers before Enter, and passes errors to the test. */
const prelude = `
  globalThis.wrong = [];
  addEventListener('error', ({ message }) => wrong.push(message));
  addEventListener('unhandledrejection', ({ reason }) => wrong.push(String(reason)));
  for (const kind of ['error', 'warn']) {
    const own = console[kind];
    console[kind] = (...words) => { if (kind === 'error') wrong.push(words.join(' ')); own.apply(console, words); };
  }
  localStorage.setItem('wick-chat-settings', '{"ahead":false}');`;

before(async () => {
  await copyChat(site);
  runFirst(site, prelude);
  writeFileSync(resolve(site, 'wick-llm/index.js'), stubEngine);
  writeFileSync(resolve(site, 'wick-llm/models.js'), stubModels);
  server = await serve({ root: site });
});

after(() => server.close());

const locked = `/Encrypt<</Filter/Standard/V 1/R 2/O<${'5a'.repeat(32)}>/U<${'5a'.repeat(32)}>/P -44>>`;
const files = {
  'good.pdf': pdfOf(['The fox is red.', '', 'The end.']),
  'locked.pdf': pdfOf(['Secret'], locked),
  'bad.pdf': '%PDF-1.4\nnothing of a PDF',
};

/** Runs in the page. */
const begin = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
    throw new Error('not so: ' + what + ': ' + wrong + document.body.innerText);
  };
  const one = (selector) => document.querySelector(selector);
  await until('ready', () => !one('#send').disabled);
  `;

const pdfPass = `${begin}
  const files = ${JSON.stringify(files)};
  const drop = (name) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([files[name]], name));
    dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
  };
  const refusals = [];
  for (const name of ['locked.pdf', 'bad.pdf']) {
    drop(name);
    await until(name, () => one('#notice-text').textContent.startsWith(name));
    refusals.push(one('#notice-text').textContent);
  }
  drop('good.pdf');
  const chip = await until('chip', () => one('.media.attached .chip'));
  chip.open = true;
  const text = await until('text', () => chip.querySelector('pre').textContent);
  return { refusals, text, wrong };`;

/** @param {{refusals: string[], text: string, wrong: string[]}} found */
function assertRead({ refusals, text, wrong }) {
  assert.equal(text, '[Page 1]\nThe fox is red.\n\n[Page 3]\nThe end.');
  assert.match(refusals[0], /^locked\.pdf: it is encrypted/);
  assert.match(refusals[1], /^bad\.pdf: it is damaged/);
  assert.deepEqual(wrong, []);
}

const toolPass = `${begin}
  one('#new-chat').click();
  one('#prompt').value = '';
  one('#open-settings').click();
  one('[name=tools]').checked = true;
  const closed = new Promise((settle) => one('#settings-dialog').addEventListener('close', settle));
  one('#settings-form [value=save]').click();
  await closed;
  one('#prompt').value = 'What is 17 * 23, and the time?';
  one('#prompt').dispatchEvent(new Event('input'));
  one('#composer').requestSubmit();
  const calls = [
    ['calculator', '{"expression":"17 * 23"}'],
    ['calculator', '{"expression":"2^0.5"}'],
    ['clock', '{"timeZone":"Asia/Tokyo"}'],
    ['clock', '{}'],
    ['clock', '{"timeZone":"Mars/Olympus"}'],
  ];
  for (const [index, [name, json]] of calls.entries()) {
    await until('asked ' + index, () => asked.length === index + 1);
    call(name, json, 'c' + index);
    end('tool_calls');
  }
  await until('asked', () => asked.length === calls.length + 1);
  say('It is 391.');
  end();
  await until('answered', () => one('#log').getAttribute('aria-busy') === 'false' &&
    one('.message.assistant footer'));
  const results = [...document.querySelectorAll('.call-result')].map((result) => result.textContent);
  const told = bodies.at(-1).messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  return { results, told, answer: one('.message.assistant .body').textContent.trim(), wrong, address: location.hash };`;

/** Runs after a reload. */
const keptPass = `${begin}
  await until('shown', () => document.querySelectorAll('.call-result').length === 5);
  return [...document.querySelectorAll('.call-result')].map((result) => result.textContent);`;

/** @param {{results: string[], told: string[], answer: string, wrong: string[]}} found @param {string[]} kept */
function assertCalled({ results, told, answer, wrong }, kept) {
  assert.deepEqual(wrong, []);
  assert.equal(answer, 'It is 391.');
  assert.deepEqual(told, results);
  assert.deepEqual(kept, results);
  const [product, root2, tokyo, here, mars] = results;
  assert.equal(product, '391');
  assert.match(root2, /1\.41421356/);
  assert.match(tokyo, /\d{4}.*(GMT\+9|JST)/);
  assert.match(here, /\d{4}/);
  assert.match(mars, /^Error: .*Mars/);
}

test('Firefox reads PDFs and runs tools', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  /** @param {string} script @param {string} [hash] @returns {Promise<any>} */
  const run = async (script, hash = '') => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url + hash);
    const found = await page.evaluate(`(async () => { ${script} })()`);
    await page.close();
    return found;
  };
  assertRead(await run(pdfPass));
  const found = await run(toolPass);
  assertCalled(found, await run(keptPass, found.address));
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  let visits = 0;
  /** @param {string} script @param {string} [hash] */
  const run = async (script, hash = '') => {
    // the same page with another hash would not be loaded again
    await page.goto(`${server.url}?visit=${++visits}${hash}`);
    return page.evaluate(script);
  };
  assertRead(await run(pdfPass));
  const found = await run(toolPass);
  assertCalled(found, await run(keptPass, found.address));
});
