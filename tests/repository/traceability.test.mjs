// tests/c/conformance/README.md lists where each part of the seed systems is implemented and tested.
// These tests look up its files and names, so that the page stays in sync with the code. If the
// shared folder exists, they also check that no part or test in the specification's table is missing.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { locate, root } from '../support/locate.mjs';

const shared = locate('shared');
const read = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8');
const page = read('tests/c/conformance/README.md');

/** The number of cases of each kind in the specification. */
const cases = { PX: 10, KQ: 12, PK: 31, SC: 6, FL: 3, DM: 4, TN: 7, BN: 7 };
const ids = Object.entries(cases).flatMap(([kind, count]) =>
  Array.from({ length: count }, (_, i) => `${kind}-${String(i + 1).padStart(2, '0')}`),
);

/** Returns all ids in a text, with ranges ("PX-01 to PX-10") expanded. @param {string} text */
function namedIds(text) {
  const ranges = [...text.matchAll(/([A-Z]{2}-\d\d) to ([A-Z]{2}-\d\d)/g)].flatMap(
    ([, first, last]) => ids.slice(ids.indexOf(first), ids.indexOf(last) + 1),
  );
  return [...(text.match(/\b[A-Z]{2}-\d\d\b/g) ?? []), ...ranges];
}

/** @param {string} line */
const cells = (line) => line.split('|').slice(1, -1);

/** The rows of the tables of parts: seed | purpose | in Wick | tested by | spec | use. */
const parts = page.split('\n').filter((line) => /^\| .*`(?:src|include)\//.test(line));

/** Returns the names in backticks in a cell. @param {string} text */
const quoted = (text) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);

/** Files without comments. @type {Map<string, string>} */
const sources = new Map();
/** @param {string} path */
function source(path) {
  if (!sources.has(path)) sources.set(path, read(path).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''));
  return /** @type {string} */ (sources.get(path));
}

/**
 * Returns whether a file defines a function (with its body, in a .c file), a type, a constant or a member.
 * @param {string} path @param {string} name
 */
function defines(path, name) {
  const patterns = path.endsWith('.c')
    ? [`^\\w[^;{}()]*\\b${name}\\([^;{}]*\\) \\{`, `^const [^;(]*\\b${name}\\b[^;(]* = `]
    : [
        `^\\} ${name};`,
        `^typedef [^;{}]*\\b${name};`,
        `^#define ${name}\\b`,
        `\\benum\\b[^{;]*\\{[^}]*\\b${name}\\b[^}]*\\}`,
        `^typedef struct \\w+ \\{[^}]*[ *]${name}[,;]`,
        `^typedef struct \\w+ \\{[^}]*, ${name}[,;]`,
      ];
  return patterns.some((pattern) => new RegExp(pattern, 'm').test(source(path)));
}

describe('the page on the seed systems', () => {
  test('every name is defined in the file listed before it', () => {
    let names = 0;
    for (const line of parts) {
      let path = '';
      for (const name of quoted(cells(line)[2])) {
        if (/^(src|include)\//.test(name)) {
          path = name;
          assert.ok(existsSync(join(root, path)), `no ${path}: ${line}`);
        } else {
          assert.ok(defines(path, name), `${path} does not define ${name}`);
          names++;
        }
      }
    }
    assert.ok(names > 150, `${names} names`);
  });

  test('every file that it mentions exists', () => {
    const files = page.match(/\b(?:include|src|tests)\/[\w./]+\.\w+/g) ?? [];
    for (const file of files) assert.ok(existsSync(join(root, file)), `no ${file}`);
    assert.ok(files.length > 150, `${files.length} files`);
  });

  test('every part is covered by a case or a test', () => {
    for (const line of parts) {
      const held = cells(line)[3];
      assert.ok(namedIds(held).length > 0 || held.includes('`tests/'), line);
    }
  });

  test('functions for tests are not called outside src/reference/', () => {
    const folders = ['include', 'src', 'wasi', 'web'];
    const all = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.[ch]$/.test(file))
        .map((file) => `${folder}/${file}`),
    );
    const isForTests = (/** @type {string} */ file) => file.startsWith('src/reference/');
    let names = 0;
    for (const line of parts) {
      const use = cells(line)[5].trim();
      assert.match(use, /^(engine|programs|tests)(; tests: `.+`)?$/, line);
      for (const name of quoted(use === 'tests' ? cells(line)[2] : use)) {
        const home = all.find((file) => file.endsWith('.c') && defines(file, name));
        if (home === undefined) continue; // not a function
        assert.ok(isForTests(home), `${name} is only for tests, but in ${home}`);
        names++;
        for (const file of all) {
          if (isForTests(file) || file.endsWith('.h')) continue; // declarations
          assert.ok(!new RegExp(`\\b${name}\\b`).test(source(file)), `${file} uses ${name}`);
        }
      }
    }
    assert.ok(names > 50, `${names} names`);
  });

  test('exactly the 80 cases are listed', () => {
    assert.equal(ids.length, 80);
    const named = new Set(namedIds(page));
    assert.deepEqual([...named].sort(), [...ids].sort());
  });

  test('every case has a test in its file', () => {
    for (const line of page.split('\n').filter((row) => /^\| [A-Z]{2}-01 to /.test(row))) {
      const text = quoted(cells(line)[2]).map(read).join('');
      for (const id of namedIds(cells(line)[0])) {
        const begin = `\nTEST(${id.toLowerCase().replace('-', '_')}_`;
        assert.ok(text.includes(begin), `no ${begin.trim()}...) in ${cells(line)[2]}`);
      }
    }
  });

  test('a name from the specification is listed only if ours is different', () => {
    for (const line of parts) {
      const [, , here, , spec] = cells(line);
      for (const name of quoted(spec)) assert.ok(!quoted(here).includes(name), line);
    }
  });
});

test('every part and test of the specification is on the page', { skip: shared.skip }, () => {
  const text = readFileSync(join(shared.path, 'docs/seed-systems.md'), 'utf8');
  const table = text.slice(text.indexOf('\n## 8.')).split('\n');
  const known = new Set(page.split('\n').flatMap((line) => quoted(line)));
  let found = 0;
  for (const line of table.filter((row) => row.startsWith('| ') && !row.startsWith('| seed'))) {
    const columns = cells(line);
    for (const item of [columns[0], columns.length === 4 ? columns[2] : ''].flatMap(quoted)) {
      const name = item.replace(/^…::/, '');
      assert.ok(known.has(name), `${name} is not on the page`);
      found++;
    }
  }
  assert.ok(found > 150, `${found} items`);
});
