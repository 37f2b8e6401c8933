// Tests that code quoted in the docs matches the sources: the check itself on small inputs, and
// docs/extending.md, which consists of such quotes.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkQuotes } from '../../tools/build/quoted_code.mjs';
import { root } from '../support/locate.mjs';

const source = 'int a;\n\nint b(void) {\n  return 1;\n}\nint c;\n';
const quote = (/** @type {string} */ code) =>
  `Here is \`src/x.c\`:\n\n\`\`\`c\n${code}\`\`\`\nmore\n`;
const check = (/** @type {string} */ code) =>
  checkQuotes(quote(code), (path) => (path === 'src/x.c' ? source : undefined));

test('a quote contains lines of the file in order; "..." matches omitted lines', () => {
  assert.deepEqual(check('int a;\n...\nint c;\n'), { quotes: 1, faults: [] });
  assert.deepEqual(check('int b(void) {\n  return 1;\n}\n'), { quotes: 1, faults: [] });
});

test('a line that is missing, different or out of order is a fault', () => {
  for (const code of [
    'int d;\n',
    '  int a;\n',
    'int a\n',
    'int c;\nint a;\n',
    'int a;\nint a;\n',
  ]) {
    const { faults } = check(code);
    assert.equal(faults.length, 1, code);
    assert.match(faults[0], /a line that src\/x\.c does not contain: /);
  }
});

test('a quote from a file that does not exist is a fault', () => {
  const { faults } = checkQuotes(quote('int a;\n'), () => undefined);
  assert.deepEqual(faults, ['quotes src/x.c, which does not exist']);
});

test('a block without a file before it is not a quote', () => {
  assert.deepEqual(
    checkQuotes('Run\n\n```sh\nmake\n```\n', () => undefined),
    {
      quotes: 0,
      faults: [],
    },
  );
});

test('docs/extending.md quotes its example, and each line is in the code', () => {
  const page = readFileSync(join(root, 'docs/extending.md'), 'utf8');
  const read = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8');
  const { quotes, faults } = checkQuotes(page, read);
  assert.deepEqual(faults, []);
  assert.ok(quotes >= 5, `${quotes} quotes`);
  assert.equal(quotes, (page.match(/^```(?:c|js)$/gm) ?? []).length, 'a block has no file name');
});

test('files and names mentioned on the architecture pages exist', () => {
  const pages = ['architecture', 'requests', 'extending'].map((name) =>
    readFileSync(join(root, `docs/${name}.md`), 'utf8'),
  );
  const mentioned = [...pages.join('\n').matchAll(/`([^`\n]+)`/g)].map(([, text]) => text);
  const files = mentioned.filter((text) =>
    /^(src|js|web|wasi|tests|tools|include)\/[\w./]+\.\w+$/.test(text),
  );
  assert.ok(files.length > 60, `${files.length} files`);
  for (const file of files) {
    if (!/NAME/.test(file)) assert.ok(existsSync(join(root, file)), `no ${file}`);
  }
  const sources = ['src', 'web', 'include', 'js', 'tests/c/support'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.([ch]|js)$/.test(file))
      .map((file) => readFileSync(join(root, folder, file), 'utf8')),
  );
  const words = new Set(sources.join('\n').match(/\w+/g));
  const names = mentioned.filter((text) => /^[a-z]+(_[a-z0-9]+)+$/.test(text));
  assert.ok(names.length > 50, `${names.length} names`);
  for (const name of names) assert.ok(words.has(name), `no ${name}`);
});
