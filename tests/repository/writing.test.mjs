// The rules of plain English that `make check` enforces: what they find, and what they leave alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  errorsOf,
  helpOf,
  isVerbPhrase,
  namelessSentences,
  namesSubject,
  proseOf,
  wordRules,
} from '../../tools/build/writing_rules.mjs';

/** @param {string} text @returns {string[]} the names of the rules that it breaks */
const broken = (text) =>
  wordRules.filter(({ pattern }) => pattern.test(text)).map(({ name }) => name);

test('words to replace are found, in any case and form', () => {
  /** @type {[string, string][]} */
  const bad = [
    ['That is no field', 'is no'],
    ['a mark behind the text', 'behind'],
    ['the console is told', 'told'],
    ['it has room for so many', 'so many'],
    ['dtype and the like', 'the like'],
    ['the download goes on', 'goes on'],
    ['it begins anew', 'anew'],
    ['keeps both apart', 'apart'],
    ['a file beside the page', 'beside'],
    ['a worker of its own', 'of its own'],
    ['the file lies there', 'stands, lies, hangs'],
    ['it ends by itself', 'by itself'],
    ['the option wants a value', 'wants, wishes'],
    ['close() gives the memory back', 'gives back'],
    ['is held to a schema', 'held to'],
    ['they run in turns', 'in turns'],
    ['likewise here', 'likewise'],
  ];
  for (const [text, rule] of bad) {
    assert.ok(broken(text).includes(rule), text);
  }
  for (const text of ['it is no longer kept', 'apart from that', 'it is not a field', 'the rest'])
    assert.deepEqual(broken(text), [], text);
});

test('sentences without a named subject are found, questions and clauses are not', () => {
  assert.deepEqual(namelessSentences('It ends. What it throws ends its request.'), [
    'What it throws ends its request',
  ]);
  assert.equal(namelessSentences('Whoever reads it. Those of models too.').length, 2);
  assert.deepEqual(
    namelessSentences('What is Wick? Those files are read, as told what to do.'),
    [],
  );
});

test('prose is without code, headings and addresses; a paragraph is one text', () => {
  const text =
    '# What it is\n\nOne `behind`\ntwo [three](behind.md).\n\n```js\nbehind\n```\n- item\n  more\n';
  assert.deepEqual(proseOf(text), [
    { line: 3, text: 'One code two [three].' },
    { line: 9, text: 'item more' },
  ]);
});

test('messages of errors are found, and begin with their subject', () => {
  const source = [
    "throw new WickError('ARG', `model: $" + '{name} is gone`);',
    "throw new Exit(\n  EXIT_FILE,\n  'no file',\n);",
  ].join('\n');
  assert.deepEqual(errorsOf(source), [
    { line: 1, text: 'model: VALUE is gone' },
    { line: 2, text: 'no file' },
  ]);
  assert.deepEqual(
    errorsOf(source).map((one) => namesSubject(one.text)),
    [true, false],
  );
});

test('lines of --help are verb phrases', () => {
  const help = helpOf(
    'usage\n  --top-k K   sample from the K most likely\n  --key KEY  what clients send\n',
  );
  assert.deepEqual(
    help.map(({ line, text }) => [line, isVerbPhrase(text)]),
    [
      [2, true],
      [3, false],
    ],
  );
});
