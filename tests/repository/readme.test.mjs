// Runs the README's examples unchanged: the ten-line page in Chromium, and the commands. Every make
// target in a document exists, and so does every linked file and heading.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { documentsWithTable } from '../../tools/build/model_table.mjs';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { native, smallHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { startHub } from '../support/fake_hub.mjs';
import { documentsIn, locate, root } from '../support/locate.mjs';
import { openEngine } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
const chromium = locate('chromium');
const wasmtime = smallHosts.find(({ runtime }) => runtime === 'wasmtime');
if (!wasmtime) throw new Error('process.mjs has no entry for wasmtime');

/** @param {string} text @param {string} language @returns {string[]} the code blocks of a document */
const codeBlocks = (text, language) =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code);

/** @param {string} command @returns {string[]} its words; quoted words stay together, as in a shell */
const wordsOf = (command) =>
  [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);

/** @param {string} block @returns {string[]} the commands; a quoted word may span several lines */
const commandsOf = (block) => block.split(/\n(?=(?:[^"]*"[^"]*")*[^"]*$)/);

/** @param {RegExp} pattern @returns {string} the only command in the README that matches */
function commandLike(pattern) {
  const found = codeBlocks(readme, 'sh')
    .flatMap(commandsOf)
    .filter((command) => pattern.test(command));
  assert.equal(found.length, 1, `commands like ${pattern}`);
  return found[0];
}

test('the ten-line page runs unchanged', { skip: chromium.skip }, async (t) => {
  const pages = codeBlocks(readme, 'html');
  assert.equal(pages.length, 1);
  const script = /<script type="module">\n(.*?)<\/script>/s.exec(pages[0])?.[1] ?? '';
  assert.ok(script.trim().split('\n').length <= 10, 'at most ten lines, as the README states');
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

test('the native command runs unchanged', async () => {
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
  // with a limit on tokens, to end early
  const args = [...words.slice(module + 1), '-n', '8'];
  const { code, stdout, stderr } = await wick(wasmtime, args, { input: readFileSync(model) });
  assert.equal(code, 0, stderr);
  assert.ok(stdout.length > 0);
});

describe("the package's README", () => {
  const text = readFileSync(join(root, 'js/README.md'), 'utf8');
  const name = 'Qwen/Qwen3-0.6B-GGUF:Q8_0';

  test('its ten lines load a model by name and stream an answer', async (t) => {
    const [code] = codeBlocks(text, 'js');
    assert.ok(code.trim().split('\n').length <= 11, 'an import and ten lines');
    const hub = await startHub({
      'Qwen/Qwen3-0.6B-GGUF': { 'Qwen3-0.6B-Q8_0.gguf': readFileSync(model) },
    });
    t.after(() => hub.close());
    const file = join(root, 'build/package_readme.mjs');
    writeFileSync(file, code.replace(`'${name}',`, `'${name}', hub: { endpoint: '${hub.url}' },`));
    const env = { ...process.env, XDG_CACHE_HOME: temporaryFolder() };
    const result = await run(process.execPath, [file], { env });
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stdout.toString(), /loaded \d+ of \d+ bytes/);
    assert.ok(result.stdout.toString().split('\n').length > 8, 'the answer is streamed');
  });

  test('the table lists ten tasks, and the calls work', async (t) => {
    const rows = [...text.matchAll(/^\| \[[\w ]+\]\((\S+)\) \| `(.*)` \|$/gm)];
    assert.equal(rows.length, 10);
    const engine = await openEngine(t, { file: model, contextSize: 256 });
    const stop = new AbortController();
    const [messages, documents] = [[{ role: 'user', content: 'Hello' }], ['a fox', 'a hen']];
    const reranker = { rerank: async () => ({ results: [engine.rerank.name] }) };
    const createEngine = async (/** @type {any} */ { model: wanted }) => wanted;
    const given = { engine, stop, messages, documents, reranker, createEngine };
    const calls = rows.map(([, , code]) => code).filter((code) => /\bawait /.test(code));
    assert.equal(calls.length, 7);
    for (const code of calls) {
      const body = code.startsWith('const ') ? `${code}; return true;` : `return ${code}`;
      const call = new AsyncFunction(...Object.keys(given), body);
      assert.ok(await call(...Object.values(given)), code);
    }
  });

  test('both READMEs are short, and their model tables match the figures', () => {
    for (const one of [text, readme]) assert.ok(one.split('\n').length <= 90);
    for (const [document, now, wanted] of documentsWithTable()) {
      assert.equal(now, wanted, `${document}: node tools/build/model_table.mjs --write`);
    }
  });
});

const documents = [
  ...['README.md', 'js/README.md', 'CONTRIBUTING.md', 'examples/README.md'],
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

  test(`${name}: its links exist`, () => {
    for (const [, target, anchor] of text.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const file = target === '' ? join(root, name) : join(root, dirname(name), target);
      assert.ok(existsSync(file), target);
      if (anchor) assert.ok(anchorsOf(file).includes(anchor), `${target}#${anchor}`);
    }
  });

  test(`${name}: its make and node commands exist`, () => {
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
