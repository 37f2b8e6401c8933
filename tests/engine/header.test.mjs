// Checks parts of include/wick.h that other files repeat: constants in JavaScript, the example, and the
// version.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { codeOfStatus } from '../../js/base/errors.js';
import { subjects } from '../../js/base/option_table.js';

const header = readFileSync(new URL('../../include/wick.h', import.meta.url), 'utf8');

/** @param {string} prefix @returns {string[]} the names of an enum, by number */
function enumOf(prefix) {
  /** @type {string[]} */
  const names = [];
  for (const [, name, number] of header.matchAll(/^ {2}WICK_([A-Z_]+) = (\d+),?/gm)) {
    if (name.startsWith(prefix) && !name.endsWith('_COUNT')) names[Number(number)] = name;
  }
  return names.map((name) => name.slice(prefix.length));
}

test('JavaScript and the header have the same subjects', () => {
  const names = enumOf('SUBJECT_').map((name) => name.toLowerCase());
  assert.ok(names.length > 20);
  assert.deepEqual(
    subjects.map(([name]) => name),
    names,
  );
});

test("JavaScript's codes are the header's statuses", () => {
  const names = enumOf('E_');
  assert.ok(names.length > 15);
  for (const [status, name] of names.entries()) {
    if (name) assert.equal(codeOfStatus(status), name);
  }
});

test("the header's example is run by a test", () => {
  const program = readFileSync(new URL('../c/engine/header_test.c', import.meta.url), 'utf8');
  const ran = /void run_example\(.*?\) \{\n(.*?)\n\}/s.exec(program)?.[1] ?? '';
  const words = (/** @type {string} */ code) => code.split(/\s+/).filter((word) => word !== '');
  const example = header.slice(0, header.indexOf('#ifndef')).replace(/^\/\/ ?/gm, '');
  const wanted = words(ran.replace('written', 'stdout')).join(' ');
  assert.ok(wanted.length > 100);
  assert.ok(words(example).join(' ').includes(wanted), `the example differs from:\n${ran}`);
});

test('the header and the package have the same version', () => {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  const parts = ['MAJOR', 'MINOR', 'PATCH'].map(
    (part) => header.match(new RegExp(`#define WICK_VERSION_${part} (\\d+)`))?.[1],
  );
  assert.equal(parts.join('.'), version);
});
