// What the README shows is run as it stands there: the page of ten lines in Chromium, the commands. Every
// target of make that a document names exists, and every file and heading that it links to.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { native, smallHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { documentsIn, locate, root } from '../support/locate.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const chromium = locate('chromium');
const wasmtime = smallHosts.find(({ runtime }) => runtime === 'wasmtime');
if (!wasmtime) throw new Error('process.mjs knows no wasmtime');

/** @param {string} text @param {string} language @returns {string[]} the code blocks of a document */
const codeBlocks = (text, language) =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code);

/** @param {string} command @returns {string[]} its words; quotes hold together, as in a shell */
const wordsOf = (command) =>
  [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);

/** @param {string} block @returns {string[]} a quoted word may go over several lines */
const commandsOf = (block) => block.split(/\n(?=(?:[^"]*"[^"]*")*[^"]*$)/);

/** @param {RegExp} pattern @returns {string} the one of the README's commands that fits */
function commandLike(pattern) {
  const found = codeBlocks(readme, 'sh')
    .flatMap(commandsOf)
    .filter((command) => pattern.test(command));
  assert.equal(found.length, 1, `commands like ${pattern}`);
  return found[0];
}

test('the page of ten lines runs as it stands', { skip: chromium.skip }, async (t) => {
  const pages = codeBlocks(readme, 'html');
  assert.equal(pages.length, 1);
  const script = /<script type="module">\n(.*?)<\/script>/s.exec(pages[0])?.[1] ?? '';
  assert.ok(script.trim().split('\n').length <= 10, 'it says ten lines');
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'page'));
  writeFileSync(join(folder, 'page/index.html'), pages[0]);
  writeFileSync(join(folder, 'page/model.gguf'), readFileSync(model));
  const server = await serve({
    root: { '/': join(folder, 'page'), '/wick-llm/': join(root, 'dist') },
  });
  t.after(() => server.close());
  const browser = await launchChromium();
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  const [progress] = await Promise.all([
    page.waitForEvent('console', { predicate: (m) => m.type() === 'log' }),
    page.goto(server.url),
  ]);
  assert.match(progress.text(), /^\d+ /);
  const answered = "document.querySelector('#out').textContent.split(' ').length > 3";
  await page.waitForFunction(answered);
  assert.deepEqual(problems, []);
});

test('the native command runs as it stands', async () => {
  const [program, ...args] = wordsOf(commandLike(/^build\/native\/wick /));
  assert.equal(program, `build/${native.program}`);
  const { code, stdout, stderr } = await wick(native, args);
  assert.equal(code, 0, stderr);
  assert.match(stdout.toString(), /^(Once upon a time there was|There was once) .*fox/);
});

test('the piped command runs at the edge', { skip: wasmtime.skip }, async () => {
  const [before, after] = commandLike(/^cat /).split(' | ');
  assert.equal(before, 'cat model.gguf');
  const words = wordsOf(after);
  const module = words.indexOf(`build/${wasmtime.program}`);
  assert.deepEqual(words.slice(0, module), ['wasmtime', 'run', '--dir', '.']);
  // with an end, and a choice that repeats itself
  const args = [...words.slice(module + 1), '-n', '8'];
  const { code, stdout, stderr } = await wick(wasmtime, args, { input: readFileSync(model) });
  assert.equal(code, 0, stderr);
  assert.ok(stdout.length > 0);
});

const documents = [
  ...['README.md', 'CONTRIBUTING.md', 'examples/README.md'],
  ...documentsIn('docs', 'docs/guide', 'docs/lab'),
];

/** @param {string} file Markdown @returns {string[]} the anchors that GitHub gives its headings */
const anchorsOf = (file) =>
  [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );

for (const name of documents) {
  const text = readFileSync(join(root, name), 'utf8');

  test(`${name}: what it links to is there`, () => {
    for (const [, target, anchor] of text.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const file = target === '' ? join(root, name) : join(root, dirname(name), target);
      assert.ok(existsSync(file), target);
      if (anchor) assert.ok(anchorsOf(file).includes(anchor), `${target}#${anchor}`);
    }
  });

  test(`${name}: its commands of make and node are there`, () => {
    const makefiles = ['Makefile', 'library/library.mk', 'component/component.mk']
      .map((file) => readFileSync(join(root, file), 'utf8'))
      .join('\n');
    const targets = [...makefiles.matchAll(/^([a-z-]+):/gm)].map(([, target]) => target);
    for (const [, target] of text.matchAll(/(?:`|^)make ([a-z][a-z-]*)(?!\S*\/)/gm)) {
      assert.ok(targets.includes(target), `make ${target}`);
    }
    for (const [, file] of text.matchAll(/(?:`|^)node ((?:tools|examples|tests)\/\S+?\.m?js)/gm)) {
      assert.ok(existsSync(join(root, file)), file);
    }
  });
}
