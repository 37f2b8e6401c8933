// Each promise of the chat page (docs/chat-promises.md) has tests: promises.tsv lists them, and they exist.

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

/** @typedef {{promise: string, file: string, title: string}} Shown a promise, and a test that shows it */

/** @param {string} table @returns {Shown[]} the rows of promises.tsv */
const rowsOf = (table) =>
  table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .map(([promise, file, title]) => ({ promise, file, title }));

/** @param {string} document @returns {string[]} its promises; text that begins with "…" continues the promise above it */
function promisesOf(document) {
  let whole = '';
  return [
    ...document
      .split('## What some')[0]
      .matchAll(/^- (.+?)(?: \((?:Chromium|Chromium, Firefox|Node)\))?$/gm),
  ].map(([, text]) => {
    if (text.startsWith('…')) return `${whole} ${text}`;
    whole = text;
    return text;
  });
}

/** @param {Shown[]} rows @param {(path: string) => string} read @returns {string[]} tests that do not exist */
const missingOf = (rows, read) =>
  rows
    .filter(({ file, title }) => !title || !read(`${file}.test.mjs`).includes(title))
    .map(({ file, title }) => `${file}: ${title}`);

test('a title that is not in its file is missing', () => {
  const rows = rowsOf('promise\tfile\ttitle\nA\tone\there\nA\tone\tnot here\n');
  assert.deepEqual(
    missingOf(rows, () => "test('here it is'"),
    ['one: not here'],
  );
});

test('each promise has tests, which exist', () => {
  const document = readFileSync(join(root, 'docs/chat-promises.md'), 'utf8');
  const rows = rowsOf(readFileSync(join(root, 'tests/pages/promises.tsv'), 'utf8'));
  assert.deepEqual(missingOf(rows, readTest), []);
  const promises = promisesOf(document);
  assert.ok(promises.length > 70, `${promises.length} promises`);
  assert.deepEqual([...new Set(rows.map(({ promise }) => promise))], promises);
});
