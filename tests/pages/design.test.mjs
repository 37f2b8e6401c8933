// The design system: its contrasts, the two ways to select the dark theme, and the sizes, which the pages' styles take from it. The
// page that documents it is tested in site.test.mjs.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contrast, pairs, readTokens } from '../../examples/design/tokens.mjs';
import { root } from '../support/locate.mjs';

/** @param {string} extension @returns {string[]} files of all pages */
const filesWith = (extension) =>
  readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith(extension),
  );

const { light, dark, system, scales } = readTokens();

test('the contrast function matches the examples of WCAG 2.2', () => {
  assert.equal(contrast('#000000', '#ffffff'), 21);
  assert.equal(contrast('#777777', '#ffffff').toFixed(2), '4.48');
});

test('text has a contrast of at least 4.5 in the light and dark themes', () => {
  for (const theme of [light, dark])
    for (const [front, back] of pairs) {
      const ratio = contrast(theme[front], theme[back]);
      assert.ok(ratio >= 4.5, `${front} on ${back}: ${ratio}`);
    }
});

test('the system’s dark theme equals the chosen one and has every colour of the light one', () => {
  assert.deepEqual(system, dark);
  assert.deepEqual(Object.keys(dark), Object.keys(light));
});

test('font sizes, spaces and corner radii are tokens', () => {
  const names = new Set([...scales.map(([name]) => name), ...Object.keys(light)]);
  const files = filesWith('.css');
  assert.ok(files.length > 12, `${files.length} files`);
  for (const file of files) {
    const css = readFileSync(join(root, 'examples', file), 'utf8');
    const own = [...css.matchAll(/--([\w-]+):/g)].map(([, name]) => name);
    for (const [, name] of css.matchAll(/var\(--((?:text|space|radius|motion)[\w-]*)\)/g))
      assert.ok(names.has(name) || own.includes(name), `${file}: --${name}`);
    for (const [rule] of css.matchAll(/\b(font-size|border-radius|gap): [^;]*\drem\b[^;]*;/g)) {
      const isKnown = rule === 'font-size: max(1rem, 16px);';
      assert.ok(isKnown, `${file}: ${rule}`);
    }
  }
});

test('the page shows each icon that the pages use', () => {
  const read = (/** @type {string} */ file) => readFileSync(join(root, 'examples', file), 'utf8');
  const namesIn = (/** @type {string} */ text) =>
    [...text.matchAll(/import \{([^}]+)\} from 'lucide'/g)]
      .flatMap(([, names]) => names.split(','))
      .map((name) => name.trim())
      .filter((name) => name !== '' && name !== 'createElement');
  const used = new Set(filesWith('.js').flatMap((file) => namesIn(read(file))));
  assert.deepEqual([...used].sort(), namesIn(read('design/build.mjs')).sort());
});
