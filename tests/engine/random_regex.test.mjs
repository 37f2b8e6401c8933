// Random regular expressions: each matches the same strings as RegExp with the `u` flag, both as a search (like
// "pattern" in a schema) and as a whole (like decoding).

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const folder = temporaryFolder();
const AT_ONCE = 2;
const LENGTH_MAX = 12;

/** Characters of the inputs, including those that classes and dots treat specially. */
const alphabet = [...'aabbcAZ019_- .\n\r\t]^$\\/é\u2028\u00a0ſ😀𝒳'];

/**
 * A part of a pattern, and a function that makes strings which may match it.
 * @typedef {{source: string, sample: () => string}} Part
 * @typedef {ReturnType<typeof randomFrom>} Random
 */

/** @param {Random} random @returns {Part} */
function character(random) {
  const char = random.pick(alphabet);
  const code = /** @type {number} */ (char.codePointAt(0));
  const hex = code.toString(16);
  const forms = [`\\u{${hex}}`];
  if (code < 256) forms.push(`\\x${hex.padStart(2, '0')}`);
  if (code < 65536) forms.push(`\\u${hex.padStart(4, '0')}`);
  if (code === 10) forms.push('\\n', '\\cJ');
  if (code === 9) forms.push('\\t', '\\cI');
  if (code === 13) forms.push('\\r');
  const plain = /[\^$\\.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
  return { source: random.chance(0.7) ? plain : random.pick(forms), sample: () => char };
}

/** @param {Random} random @returns {Part} */
function characterClass(random) {
  const parts = random.list(4, () => {
    if (random.chance(0.3)) return random.pick(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S']);
    const [low, high] = [random.pick(alphabet), random.pick(alphabet)].sort(
      (a, b) => Number(a.codePointAt(0)) - Number(b.codePointAt(0)),
    );
    const written = [low, high].map((char) => (/[\\\]^-]/.test(char) ? `\\${char}` : char));
    return random.chance(0.5) ? written[0] : `${written[0]}-${written[1]}`;
  });
  const source = `[${random.chance(0.3) ? '^' : ''}${parts.join('')}]`;
  return { source, sample: () => random.pick(alphabet) };
}

/** @param {Random} random @param {number} depth @returns {Part} */
function atom(random, depth) {
  const kind = random.below(depth > 0 ? 12 : 8);
  if (kind < 4) return character(random);
  if (kind < 6) return characterClass(random);
  if (kind === 6) return { source: '.', sample: () => random.pick(alphabet) };
  if (kind === 7) {
    const source = random.pick(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S']);
    return { source, sample: () => random.pick(alphabet) };
  }
  const inside = choice(random, depth - 1);
  if (kind === 11 && !/\^/.test(inside.source.replaceAll(/\\.|\[[^\]]*\]/gu, ''))) {
    return { source: `(${random.pick(['?=', '?!'])}${inside.source})`, sample: () => '' };
  }
  const opening = random.pick(['(', '(?:', '(?:']);
  return { source: `${opening}${inside.source})`, sample: inside.sample };
}

/** @param {Random} random @param {number} depth @returns {Part} */
function repeated(random, depth) {
  const inside = atom(random, depth);
  if (!random.chance(0.35) || /^\(\?[=!]/.test(inside.source)) return inside;
  const least = random.below(3);
  const most = least + random.below(3);
  const [mark, low, high] = /** @type {[string, number, number]} */ (
    random.pick([
      ['*', 0, 3],
      ['+', 1, 3],
      ['?', 0, 1],
      [`{${least}}`, least, least],
      [`{${least},}`, least, least + 2],
      [`{${least},${most}}`, least, most],
    ])
  );
  return {
    source: `${inside.source}${mark}${random.chance(0.2) ? '?' : ''}`,
    sample: () =>
      Array.from({ length: low + random.below(high - low + 1) }, inside.sample).join(''),
  };
}

/** @param {Random} random @param {number} depth @returns {Part} */
function sequence(random, depth) {
  const parts = random.list(3, () =>
    random.chance(0.06)
      ? { source: random.pick(['^', '$']), sample: () => '' }
      : repeated(random, depth),
  );
  return {
    source: parts.map((part) => part.source).join(''),
    sample: () => parts.map((part) => part.sample()).join(''),
  };
}

/** @param {Random} random @param {number} depth @returns {Part} */
function choice(random, depth) {
  const ways = [sequence(random, depth), ...random.list(2, () => sequence(random, depth))];
  return {
    source: ways.map((way) => way.source).join('|'),
    sample: () => random.pick(ways).sample(),
  };
}

/** @param {Random} random @param {Part} part @returns {string[]} */
function textsFor(random, part) {
  // longer strings make RegExp backtrack forever
  const samples = Array.from({ length: 12 }, () =>
    [...part.sample()].slice(0, LENGTH_MAX).join(''),
  );
  const changed = samples.slice(0, 6).map((text) => {
    const chars = [...text];
    chars.splice(random.below(chars.length + 1), random.below(2), random.pick(alphabet));
    return chars.join('');
  });
  const others = Array.from({ length: 6 }, () => random.list(5, () => random.pick(alphabet)));
  return ['', ...samples, ...changed, ...others.map((chars) => chars.join(''))];
}

/** @param {number} index @param {{wanted: number, refused: number, large: number, ahead: number}} counts */
async function compare(index, counts) {
  const random = randomFrom(soakSeed * 1e6 + index);
  const part = choice(random, 2);
  const texts = textsFor(random, part);
  const path = join(folder, `${index % 1000}.json`);
  writeFileSync(path, JSON.stringify(texts));
  for (const isWhole of [false, true]) {
    const expression = new RegExp(isWhole ? `^(?:${part.source})$` : part.source, 'u');
    const wanted = texts.map((text) => expression.test(text));
    const given = ['constrain', '--regex', part.source, '--check', path];
    const { code, stdout, stderr } = await wick(
      native,
      isWhole ? [...given, '--one-spelling'] : given,
    );
    const label = `${index}: ${JSON.stringify(part.source)}, ${isWhole ? 'whole' : 'search'}`;
    if (code === 2 && /\(WICK_E_FULL\)/.test(stderr.toString())) {
      counts.large++;
      continue;
    }
    if (code === 2 && /look-ahead/.test(stderr.toString())) {
      counts.ahead++;
      continue;
    }
    if (code === 2) {
      assert.match(stderr.toString(), /no text satisfies/, label);
      assert.ok(!wanted.includes(true), `${label}: ${stderr}`);
      counts.refused++;
      continue;
    }
    assert.equal(code, 0, `${label}: ${stderr}`);
    const found = JSON.parse(stdout.toString());
    for (const [at, text] of texts.entries()) {
      assert.equal(found[at], wanted[at], `${label}: ${JSON.stringify(text)}`);
    }
    counts.wanted += wanted.filter(Boolean).length;
  }
}

test('a pattern matches what RegExp matches', async () => {
  const count = soakCount(6000);
  const counts = { wanted: 0, refused: 0, large: 0, ahead: 0 };
  let index = 0;
  const one = async () => {
    while (index < count) await compare(index++, counts);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  assert.ok(counts.wanted > count * 5, `${counts.wanted} strings match`);
  assert.ok(counts.large < count / 50, `${counts.large} patterns are too large`);
  assert.ok(counts.refused < count, `${counts.refused} patterns match nothing`);
  assert.ok(counts.ahead < count / 5, `${counts.ahead} lookaheads are not supported`);
});

test('a pattern that RegExp rejects is rejected, with the position', async () => {
  const count = soakCount(4000);
  const path = join(folder, 'empty.json');
  writeFileSync(path, '[""]');
  let index = 0;
  let rejected = 0;
  const one = async () => {
    while (index < count) {
      const random = randomFrom(soakSeed * 1e6 + 5e5 + index++);
      const chars = [...choice(random, 1).source];
      const mark = random.pick([
        '{',
        '}',
        ']',
        '[',
        '(',
        ')',
        '*',
        '+',
        '?',
        '{2}',
        '{,3}',
        '{1,}',
      ]);
      chars.splice(random.below(chars.length + 1), 0, mark);
      const source = chars.join('');
      let isValid = true;
      let why = '';
      try {
        new RegExp(source, 'u');
      } catch (error) {
        isValid = false;
        why = String(error);
      }
      // unnecessary escapes of punctuation, and a hyphen next to a class, are accepted literally
      if (/Invalid escape|Invalid character class|Invalid unicode escape/i.test(why)) continue;
      const { code, stderr } = await wick(native, [
        'constrain',
        '--regex',
        source,
        '--check',
        path,
      ]);
      const label = `${JSON.stringify(source)}: ${why} ${stderr}`;
      const isRejected =
        code === 2 &&
        /byte \d+: (groups of this kind|.*\(WICK_E_ARG) ?.* at byte/.test(stderr.toString());
      assert.equal(isRejected, !isValid, label);
      if (isRejected) rejected++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  assert.ok(rejected > count / 10, `${rejected} patterns are rejected`);
});
