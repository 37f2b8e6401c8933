// Answers with code, formulas, tables and images in the chat page: libraries are loaded on demand, content is formatted, and no part
// of an answer loads anything or runs. In Chromium, with an engine whose output the test controls.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Marked } from 'marked';
import { formulas } from '../../examples/chat/formulas.js';
import { useChat } from '../support/chat_page.mjs';
import { ask, isLateCode } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, openPage } = useChat('chat-rich');

describe('formulas are found', () => {
  /** @type {[text: string, found: string[]][]} */
  const cases = [
    ['It is $x^2$.', ['x^2']],
    ['It costs $5 and $6.', []],
    ['$a$ and $b$', ['a', 'b']],
    ['\\(a+b\\) then \\[c\\]', ['a+b', 'c']],
    ['$$\nx = 1\n$$', ['x = 1']],
    ['Text\n\n\\[\ny\n\\]\n\nmore', ['y']],
    ['see $$z$$ here', ['z']],
    ['`$x$` is code', []],
    ['```\n$$x$$\n```', []],
    ['$x', []],
    ['\\$x\\$', []],
    ['$$$$', []],
    ['$HOME and $PATH', []],
  ];
  for (const [text, wanted] of cases) {
    test(JSON.stringify(text), () => {
      /** @type {string[]} */
      const found = [];
      const renderer = (/** @type {any} */ token) => {
        found.push(token.text);
        return '';
      };
      const own = new Marked({ extensions: formulas.map((one) => ({ ...one, renderer })) });
      own.parse(text);
      assert.deepEqual(found, wanted);
    });
  }
  test('many unterminated formulas are quickly shown as text', () => {
    const own = new Marked({ extensions: formulas.map((one) => ({ ...one, renderer: () => '' })) });
    for (const text of ['$a ', '\\(a ', '$$a ', '\\[a\n'].map((one) => one.repeat(3000))) {
      assert.ok(String(own.parse(text)).includes('a'));
    }
  });
});

/** Answers a question with Markdown. @param {import('playwright-core').Page} page @param {string} question @param {string} text */
async function talk(page, question, text) {
  await ask(page, question);
  await page.evaluate(`say(${JSON.stringify(text)}); end()`);
  await page.locator('.message.assistant').last().locator('footer').waitFor();
  return page.locator('.message.assistant .body').last();
}

const code = "```js\nconst a = 'b'; // c\n```";
const answer = [
  'The square is $x^2$, and the sum:',
  '$$\\sum_{i=1}^n i = \\frac{n(n+1)}{2}$$',
  code,
  '| name | size |\n|---|---:|\n| one | 1 |',
  '![a cat on a mat](https://example.org/cat.png)',
].join('\n\n');

test('code is highlighted, formulas are typeset, images are shown as their alt text; the libraries are loaded then', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  /** @type {string[]} */
  const brought = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (!isLateCode(pathname)) brought.push(pathname);
  });
  await talk(page, 'Plain?', 'Plain **words**.');
  assert.deepEqual(brought, []);
  const body = await talk(page, 'All of it?', answer);
  await body.locator('.hljs-string', { hasText: "'b'" }).waitFor();
  await body.locator('.formula math').first().waitFor();
  assert.equal(await body.locator('.formula').count(), 2);
  assert.equal(await body.locator('.formula.block math[display=block]').count(), 1);
  assert.deepEqual(brought.length, 2, brought.join(' '));
  const picture = body.getByRole('link', { name: 'Picture: a cat on a mat' });
  assert.equal(await picture.getAttribute('href'), 'https://example.org/cat.png');
  assert.equal(await body.locator('pre code').innerText(), "const a = 'b'; // c\n");
  const colours = await body.evaluate((element) =>
    ['.hljs-keyword', '.hljs-string', 'pre code'].map((selector) => {
      const one = /** @type {Element} */ (element.querySelector(selector));
      return getComputedStyle(one).color;
    }),
  );
  assert.equal(new Set(colours).size, 3);
  await takePicture(page, 'chat-rich-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await takePicture(page, 'chat-rich-dark');
  await page.setViewportSize({ width: 390, height: 780 });
  await takePicture(page, 'chat-rich-phone');
});

test('during an answer, complete code blocks are highlighted, the unfinished one is not', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await talk(page, 'First?', code);
  await page.locator('.hljs-string').waitFor();
  await ask(page, 'Two?');
  await page.evaluate(`say(${JSON.stringify(`${code}\n\n\`\`\`js\nlet x = '1';\n`)})`);
  const body = page.locator('.message.assistant .body').last();
  await body.locator('pre').nth(1).waitFor();
  assert.equal(await body.locator('pre').nth(0).locator('.hljs-string').count(), 1);
  assert.equal(await body.locator('pre').nth(1).locator('.hljs-string').count(), 0);
  await page.evaluate("say('```'); end()");
  await body.locator('pre').nth(1).locator('.hljs-string').waitFor();
});

test('no part of an answer loads, runs or looks like the page', { skip }, async (t) => {
  const page = await openPage(t, { expected: /^Executing inline event handler/ }); // the browser reports and blocks the handler while the answer is sanitised
  /** @type {string[]} */
  const asked = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(page.url()).origin)) asked.push(request.url());
  });
  const evil = [
    '<img src="https://evil.example/x.png" alt="words" onerror="globalThis.ran = 1" class="primary">',
    '<code class="problem">a</code> <p class="primary" id="send">b</p>',
    '![x" onclick="globalThis.ran=1](https://evil.example/y.png)',
    '$\\href{javascript:globalThis.ran=1}{x} \\includegraphics{https://evil.example/z.png}$',
    '$\\class{primary}{x}\\htmlId{send}{y}$ $\\rule{9999em}{9999em}$ $\\def\\a{\\a\\a}\\a$',
    "```js\nconst a = '<img src=x onerror=globalThis.ran=1>';\n```",
    '```js" onclick="globalThis.ran=1\nx\n```',
  ].join('\n\n');
  await talk(page, 'Evil?', 'First $x$.');
  await page.locator('.formula math').waitFor();
  const body = await talk(page, 'More?', evil);
  await body.locator('.hljs-string', { hasText: '<img' }).waitFor();
  assert.match(await body.innerText(), /Picture: words/);
  assert.equal(
    await body.locator('img, .problem, .primary, #send, [onclick], [onerror]').count(),
    0,
  );
  assert.equal(await page.evaluate('globalThis.ran'), undefined);
  for (const link of await body.locator('a').all())
    assert.match(String(await link.getAttribute('href')), /^https:/);
  const tallest = await body.evaluate((element) =>
    Math.max(
      ...[...element.querySelectorAll('*')].map((one) => one.getBoundingClientRect().height),
    ),
  );
  assert.ok(tallest < 2000, `${tallest} pixels`);
  assert.deepEqual(asked, []);
});

test('without its library, a formula is shown as TeX', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await page.route(
    '**/temml-*.js',
    (route) =>
      route.fulfill({
        status: 200,
        contentType: 'text/javascript',
        body: 'throw new Error("gone")',
      }),
    { times: 1 },
  );
  await talk(page, 'One?', 'It is $x^2$.');
  await page.locator('code.math', { hasText: 'x^2' }).waitFor();
  assert.equal(await page.locator('.formula').count(), 0);
});

test('an answer that arrives before its libraries is shown as text, and rendered when they are loaded', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  let release = () => {};
  const released = new Promise((settle) => {
    release = () => settle(undefined);
  });
  await page.route('**/rendering-*.js', async (route) => {
    await released;
    await route.continue();
  });
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  const body = await talk(page, 'One?', `It is **bold**,\nthen code:\n\n${code}`);
  assert.match(await body.locator('.plain').innerText(), /^It is \*\*bold\*\*,\nthen code:/);
  release();
  await body.locator('strong', { hasText: 'bold' }).waitFor();
  assert.equal(await body.locator('pre .copy-code').count(), 1);
  assert.equal(await body.locator('.plain').count(), 0);
});

test('the libraries are among the files that the page caches for offline use', () => {
  const names = readdirSync(site);
  for (const part of ['common', 'rendering', 'temml']) {
    const own = names.filter((name) => name.startsWith(part));
    assert.equal(own.length, 1, names.join(' '));
  }
});

test('an answer that is a number with a dot is shown as text, not as a list', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  const body = await talk(page, 'Test 123', '123.');
  assert.equal(await body.innerText(), '123.');
  assert.equal(await body.locator('ol').count(), 0);
});
