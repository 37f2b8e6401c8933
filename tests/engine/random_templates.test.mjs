// Random programs in the chat template language: each renders the same text as Python's jinja2, or fails if
// jinja2 fails.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { byteVocabulary } from '../support/byte_vocabulary.mjs';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

/** @typedef {ReturnType<typeof randomFrom>} Random */

const python = locate('tokenizers');
const folder = temporaryFolder();
const vocabulary = join(folder, 'bytes.gguf');
writeFileSync(vocabulary, byteVocabulary([]));

const variables = {
  n: 3,
  s: 'Hello  World',
  t: ' a,b,é ',
  l: [3, 1, 2],
  words: ['b', 'A', 'c'],
  d: { a: 1, b: { c: 'x' }, k: [1, 2] },
  z: null,
  yes: true,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi\n' },
    { role: 'assistant', content: '', tool_calls: [{ name: 'f', arguments: { x: 1 } }] },
  ],
};

/** Kinds of expressions, so that most operations are meaningful. */
const kinds = /** @type {const} */ (['number', 'text', 'list', 'dict', 'truth', 'any']);
/** @typedef {(typeof kinds)[number]} Kind */

/** @type {Record<Kind, string[]>} */
const leaves = {
  number: ['0', '1', '7', '-2', '2.5', 'n', 'l[0]', 'd.a', 'loop.index', 'i'],
  text: ["''", "'a'", '"it\'s"', "'x-y'", 's', 't', 'messages[0].role', "d['b']['c']", "d.b['c']"],
  list: [
    '[]',
    'l',
    'words',
    "[1, 'a', none]",
    '(1, 2)',
    'd.k',
    'range(4)',
    'range(5, 0, -2)',
    'messages',
  ],
  dict: ['{}', 'd', "{'a': 1, 'b': [2]}", 'messages[1]', 'd.b'],
  truth: ['true', 'false', 'yes', 'n > 2'],
  any: ['none', 'z', 'u', 'd.nothing', 'l[9]', 'messages[2].tool_calls', 'v'],
};

/** Operations that combine kinds; A, B and C are expressions. @type {Record<Kind, [string, ...Kind[]][]>} */
const forms = {
  number: [
    ['A + B', 'number', 'number'],
    ['A - B', 'number', 'number'],
    ['A * B', 'number', 'number'],
    ['A // B', 'number', 'number'],
    ['A % B', 'number', 'number'],
    ['A / B', 'number', 'number'],
    ['-A', 'number'],
    ['A | length', 'list'],
    ['A | length', 'text'],
    ['A | abs', 'number'],
    ['A | int', 'any'],
    ['A | int', 'text'],
    ['A | float', 'any'],
    ['A | float', 'number'],
    ['A | round', 'number'],
    ['A | sum', 'list'],
    ['A | max', 'list'],
    ['A.count(B)', 'text', 'text'],
    ['A.find(B)', 'text', 'text'],
  ],
  text: [
    ['A ~ B', 'any', 'any'],
    ['A + B', 'text', 'text'],
    ['A * B', 'text', 'number'],
    ['A | upper', 'text'],
    ['A | trim', 'text'],
    ['A | capitalize', 'text'],
    ['A | title', 'text'],
    ['A | string', 'any'],
    ['A | tojson', 'any'],
    ['A | join(B)', 'list', 'text'],
    ['A | replace(B, C)', 'text', 'text', 'text'],
    ['A | default(B)', 'any', 'text'],
    ['A | default(B, true)', 'text', 'text'],
    ['A.strip()', 'text'],
    ['A.strip(B)', 'text', 'text'],
    ['A.rstrip()', 'text'],
    ['A.lower()', 'text'],
    ['A.replace(B, C)', 'text', 'text', 'text'],
    ['A[B]', 'text', 'number'],
    ['A[B:]', 'text', 'number'],
    ['A[:B]', 'text', 'number'],
    ['A[::-1]', 'text'],
    ['A[B:C]', 'text', 'number', 'number'],
    ["'%s:%s' % (A, B)", 'any', 'any'],
    ["'{}-{}'.format(A, B)", 'number', 'text'],
    ['A if B else C', 'text', 'truth', 'text'],
  ],
  list: [
    ['A + B', 'list', 'list'],
    ['[A, B]', 'any', 'any'],
    ['A[B:]', 'list', 'number'],
    ['A[:B]', 'list', 'number'],
    ['A[::B]', 'list', 'number'],
    ['A | list', 'list'],
    ['A | list', 'text'],
    ['A | reverse | list', 'list'],
    ["A | map('string') | sort", 'list'],
    ['A | unique | list', 'list'],
    ['A | sort', 'list'],
    ["A | sort(attribute='role')", 'list'],
    ["A | sort(attribute='role,content', reverse=true)", 'list'],
    ["A | map('string') | list", 'list'],
    ["A | map(attribute='role') | list", 'list'],
    ["A | select('defined') | list", 'list'],
    ["A | selectattr('role', 'equalto', B) | list", 'list', 'text'],
    ["A | rejectattr('role') | list", 'list'],
    ["A | select('in', B) | list", 'list', 'list'],
    ['A | batch(2) | list', 'list'],
    ['A | items | list', 'dict'],
    ['A | dictsort', 'dict'],
    ['A.items() | list', 'dict'],
    ['A.keys() | list', 'dict'],
    ['A.split()', 'text'],
    ['A.split(B)', 'text', 'text'],
    ['A.split(B, 1)', 'text', 'text'],
    ['A if B else C', 'list', 'truth', 'list'],
  ],
  dict: [
    ["{'k': A, B: C}", 'any', 'text', 'any'],
    ['dict(A, q=B)', 'dict', 'any'],
    ['A if B else C', 'dict', 'truth', 'dict'],
  ],
  truth: [
    ['A == B', 'any', 'any'],
    ['A != B', 'any', 'any'],
    ['A < B', 'number', 'number'],
    ['A <= B', 'text', 'text'],
    ['A < B < C', 'number', 'number', 'number'],
    ['A in B', 'any', 'list'],
    ['A not in B', 'text', 'text'],
    ['A in B', 'text', 'dict'],
    ['not A', 'any'],
    ['A and B', 'truth', 'truth'],
    ['A or B', 'truth', 'truth'],
    ['A is defined', 'any'],
    ['A is none', 'any'],
    ['A is string', 'any'],
    ['A is mapping', 'any'],
    ['A is iterable', 'any'],
    ['A is number', 'any'],
    ['A is not sequence', 'any'],
    ['A is odd', 'number'],
    ['A is divisibleby(B)', 'number', 'number'],
    ['A.startswith(B)', 'text', 'text'],
    ['A.endswith(B)', 'text', 'text'],
    ['A.isdigit()', 'text'],
  ],
  any: [
    ['A', 'number'],
    ['A', 'text'],
    ['A', 'list'],
    ['A', 'dict'],
    ['A', 'truth'],
    ['A or B', 'any', 'any'],
    ['A and B', 'any', 'any'],
    ['A[B]', 'list', 'number'],
    ['A[B]', 'dict', 'text'],
    ['A.get(B)', 'dict', 'text'],
    ['A.get(B, C)', 'dict', 'text', 'any'],
    ['A | first', 'list'],
    ['A | last', 'list'],
    ['A.role', 'dict'],
    ['A | default(B)', 'any', 'any'],
  ],
};

/** @param {Random} random @param {Kind} kind @param {number} depth @returns {string} */
function expression(random, kind, depth) {
  if (random.chance(0.04)) kind = random.pick(kinds);
  if (depth === 0 || random.chance(0.25)) return random.pick(leaves[kind]);
  const [form, ...parts] = random.pick(forms[kind]);
  const inside = parts.map((part) => {
    const made = expression(random, part, depth - 1);
    return /^\w+$/.test(made) ? made : `(${made})`;
  });
  return form.replace(/\b[ABC]\b/g, (name) => inside['ABC'.indexOf(name)]);
}

/** @param {Random} random @param {number} depth @returns {string} */
function block(random, depth) {
  return Array.from({ length: 1 + random.below(3) }, () => statement(random, depth)).join(
    random.pick(['', ' ', '\n', '|']),
  );
}

/** @param {Random} random @param {number} depth @returns {string} */
function statement(random, depth) {
  const of = (/** @type {Kind} */ kind) => expression(random, kind, 2);
  const [open, close] = random.pick([
    ['{%', '%}'],
    ['{%', '%}'],
    ['{%-', '-%}'],
    ['{%-', '%}'],
  ]);
  const tag = (/** @type {string} */ inside) => `${open} ${inside} ${close}`;
  if (depth === 0 || random.chance(0.4))
    return `{{ ${expression(random, random.pick(kinds), 3)} }}`;
  const inside = () => block(random, depth - 1);
  switch (random.below(9)) {
    case 0:
      return `${tag(`if ${of('truth')}`)}${inside()}${tag(`elif ${of('any')}`)}${inside()}${tag('else')}${inside()}${tag('endif')}`;
    case 1:
      return `${tag(`for i in (${of('list')})`)}${inside()}{{ loop.index0 }}{{ loop.last }}${tag('endfor')}`;
    case 2:
      return `${tag(`for i in (${of('list')}) if i is ${random.pick(['number', 'string', 'defined'])}`)}{{ i }}${tag('else')}${inside()}${tag('endfor')}`;
    case 3:
      return `${tag(`for a, b in (${of('dict')}).items()`)}{{ a }}={{ b }}${tag('endfor')}`;
    case 4:
      return `${tag(`set v = ${of('any')}`)}${inside()}`;
    case 5:
      return `${tag('set v')}${inside()}${tag('endset')}{{ v | ${random.pick(['length', 'upper', 'trim'])} }}`;
    case 6:
      return `${tag(`macro m(x, y=${of('any')})`)}${inside()}{{ x }}{{ y }}${tag('endmacro')}{{ m(${of('any')}) }}`;
    case 7:
      return `${tag('set ns = namespace(c=0)')}${tag(`for i in (${of('list')})`)}${tag(`set ns.c = ns.c + 1`)}${tag('endfor')}{{ ns.c }}`;
    default:
      return `${tag(`filter ${random.pick(['upper', 'trim', 'title', 'length'])}`)}${inside()}${tag('endfilter')}`;
  }
}

/** Operations that only Python rejects, because of its types. */
const refusedThere = /is not subscriptable|concatenate list/;
/** Operations that only Wick rejects, to show the author a mistake; jinja2 gives undefined or treats it as a key. */
const refusedHere = /a dict's key is neither a string nor a number|an index of a slice is not/;

test('a random program renders as in jinja2', { skip: python.skip }, async () => {
  const count = soakCount(4000);
  const paths = Array.from({ length: count }, (_, index) => {
    const path = join(folder, `${index}.jinja`);
    writeFileSync(path, block(randomFrom(soakSeed * 1e6 + index), 3));
    return path;
  });
  const { code, stdout, stderr } = await run(python.path, [join(root, 'tools/text/templates.py')], {
    input: paths.map((path) => JSON.stringify([path, [variables]])).join('\n'),
  });
  assert.equal(code, 0, stderr.toString());
  const wanted = stdout.toString().trimEnd().split('\n');
  const counts = { same: 0, failed: 0 };
  for (const [index, path] of paths.entries()) {
    const [expected] = JSON.parse(wanted[index]);
    const given = ['template', vocabulary, '--template', path, '-p', JSON.stringify(variables)];
    const found = await wick(native, [...given, '--keep-arguments']);
    const label = `${index}: ${block(randomFrom(soakSeed * 1e6 + index), 3)}`;
    assert.equal(found.signal, null, label);
    if (typeof expected === 'string') {
      if (refusedHere.test(found.stderr.toString())) continue;
      assert.equal(found.code, 0, `${label}: ${found.stderr}, not ${expected}`);
      assert.equal(found.stdout.toString(), expected, label);
      counts.same++;
    } else if (!refusedThere.test(expected.error)) {
      assert.notEqual(found.code, 0, `${label}: ${found.stdout}, but ${expected.error}`);
      counts.failed++;
    }
  }
  assert.ok(counts.same > count / 4, `${counts.same} texts are the same`);
  assert.ok(counts.failed < count * 0.75, `${counts.failed} programs fail`);
});
