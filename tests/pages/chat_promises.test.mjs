// The table of the chat page's promises names tests that are there.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/locate.mjs';

/** @param {string} file of any group of tests @returns {string} its text */
function readTest(file) {
  const groups = ['pages', 'package', 'interfaces', 'edge', 'engine', 'repository'];
  const paths = groups.map((group) => join(root, 'tests', group, file));
  return readFileSync(paths.find((path) => existsSync(path)) ?? paths[0], 'utf8');
}

/**
 * @param {string} table
 * @param {(path: string) => string} read
 * @returns {{tests: number, missing: string[]}}
 */
function checkNames(table, read) {
  const named = [...table.matchAll(/`(\w+)`: “([^|]+?)”(?=;| \|)/g)];
  const missing = named.filter(([, file, title]) => !read(`${file}.test.mjs`).includes(title));
  return { tests: named.length, missing: missing.map(([words]) => words) };
}

test('a title that is not in its file is missing', () => {
  const table = '| A | C | `one`: “here”; `one`: “not here” |\n';
  const found = checkNames(table, () => "test('here it is'");
  assert.deepEqual(found, { tests: 2, missing: ['`one`: “not here”'] });
});

test('each test that the table of promises names is there', () => {
  const table = readFileSync(join(root, 'docs/chat-promises.md'), 'utf8');
  const { tests, missing } = checkNames(table, readTest);
  assert.deepEqual(missing, []);
  const rows = table.split('\n').filter((line) => /^\| .* \| (C|F|W|node)/.test(line));
  assert.ok(rows.every((row) => row.includes('`: “')) && tests > rows.length, `${tests} tests`);
});
