// The rules for plain English that `make check` enforces: phrases that they find, and phrases that they accept.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commentsOf, sentencesOf } from '../../tools/build/comments.mjs';
import {
  errorsOf,
  helpOf,
  isVerbPhrase,
  literalsOf,
  namelessSentences,
  namesSubject,
  proseOf,
  titlesOf,
  wordRules,
} from '../../tools/build/writing_rules.mjs';

/** @param {string} text @returns {string[]} names of the broken rules */
const broken = (text) =>
  wordRules.filter(({ pattern }) => pattern.test(text)).map(({ name }) => name);

test('words to replace are found in any case and form', () => {
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
    ['the engine asks for a range', 'asks for'],
    ['close() gives the memory back', 'gives back'],
    ['is held to a schema', 'held to'],
    ['they run in turns', 'in turns'],
    ['Where there is no room, it ends', 'Where'],
    ['what is left is read', 'what is left'],
    ['it is taken up again', 'taken up'],
    ['time and again', 'in earnest'],
    ['likewise here', 'likewise'],
    ['when all bytes are there', 'is there'],
    ['a file that is not there', 'is there'],
    ['keys that are none', 'that is none'],
    ['nothing of it is lost', 'nothing of'],
    ['a full disk is said', 'what is said'],
    ['what came before is kept', 'what comes'],
    ['all but for the last', 'but for'],
    ['the same text in any company', 'in any company'],
    ['the text stays as it is', 'as it is'],
    ['a grammar as llama.cpp has it', 'as X has it'],
    ['equal to the bit', 'to the bit'],
    ['what becomes of requests', 'becomes of'],
    ['the answer has come', 'has come'],
    ['bytes from another place than requested', 'another than'],
    ['it takes part in no pass', 'in no'],
    ['Supported are tools', 'predicate first'],
    ['an invalid mirror is refused in words', 'in words'],
    ['the cache has what was read before', 'what is read'],
    ['templates want an id', 'wants, wishes'],
    ['the stacks lie between them', 'stands, lies, hangs'],
    ['jobs that come meanwhile', 'comes'],
    ['its text as it comes', 'comes'],
    ['other tabs hear of it', 'hears'],
    ['models have the one or the other name', 'one or the other'],
    ['weights that do not sum 1', 'sum 1'],
    ['room for one item more', 'one X more'],
    ['a vocabulary that is without it', 'is without'],
    ['---- All of it ----', 'all'],
    ['Answers where the match ends', 'answers where'],
  ];
  for (const [text, rule] of bad) {
    assert.ok(broken(text).includes(rule), text);
  }
  for (const text of [
    'it is no longer kept',
    'apart from that',
    'it is not a field',
    'the rest',
    'is there room?',
    'what went wrong',
    'no one else any more',
    'if you want to',
    'a name that stands for two',
  ])
    assert.deepEqual(broken(text), [], text);
});

test('sentences without a named subject are found, questions and clauses are not', () => {
  assert.deepEqual(namelessSentences('It ends. What it throws ends its request.'), [
    'What it throws ends its request',
  ]);
  assert.equal(namelessSentences('Whoever reads it. Those of models too.').length, 2);
  assert.equal(namelessSentences('who waits is called').length, 1);
  assert.equal(namelessSentences('what waits is called').length, 1);
  assert.equal(namelessSentences('Of the last drawing.').length, 1);
  assert.deepEqual(namelessSentences('Of these, two remain.'), []);
  assert.deepEqual(
    namelessSentences('What is Wick? Those files are read, as told what to do.'),
    [],
  );
});

test('prose excludes code, headings and URLs; a paragraph is one string', () => {
  const text =
    '# What it is\n\nOne `behind`\ntwo [three](behind.md).\n\n```js\nbehind\n```\n- item\n  more\n';
  assert.deepEqual(proseOf(text), [
    { line: 3, text: 'One code two [three].' },
    { line: 9, text: 'item more' },
  ]);
});

test('strings of three words are found in JavaScript, with their line', () => {
  const source = `say('one two');\nsay(\`no room for \${size} bytes\`);\n`;
  assert.deepEqual(literalsOf(source), [{ line: 2, text: 'no room for VALUE bytes' }]);
});

test('test and group titles are found', () => {
  const source = `describe('chats', () => {\n  test(\`\${name}: runs\`, () => test.skip("ends"));\n});`;
  assert.deepEqual(titlesOf(source), [
    { line: 1, text: 'chats' },
    { line: 2, text: 'VALUE: runs' },
    { line: 2, text: 'ends' },
  ]);
});

test('error messages are found and must begin with their subject', () => {
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

test('a message may begin with the name of an option, a field or a URL', () => {
  for (const text of [
    'topK must be a number, not VALUE',
    'messages[VALUE].content must be a string',
    'VALUE answered 404',
    'unknown option VALUE',
  ])
    assert.ok(namesSubject(text), text);
  for (const text of ['The store is closed', 'no file', 'It must end', 'A stream was read'])
    assert.ok(!namesSubject(text), text);
});

test('lines of --help must be verb phrases', () => {
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

test('comments are extracted by paragraph, without delimiters, code and tags', () => {
  const script = [
    '// One line',
    '// and `code` more.',
    "const a = '// no comment'; // after code",
    '/** Does it. @param {string} name of a file */',
    '/*',
    ' * - an item',
    ' */',
  ].join('\n');
  assert.deepEqual(commentsOf('a.js', script), [
    { line: 1, text: 'One line and code more.' },
    { line: 3, text: 'after code' },
    { line: 4, text: 'Does it.' },
    { line: 4, text: 'of a file' },
    { line: 6, text: '- an item' },
  ]);
  assert.deepEqual(commentsOf('a.sh', '#!/bin/sh\n# A comment\necho "# none"\n'), [
    { line: 2, text: 'A comment' },
  ]);
  assert.deepEqual(commentsOf('a.txt', '// nothing'), []);
});

test('string literals in C are extracted, with adjacent ones joined', () => {
  const source =
    'f("two words", /* "in a comment here" */ "a string in two "\n  "halves");\ng("three words here");';
  assert.deepEqual(sentencesOf(source), [
    { line: 1, text: 'a string in two halves' },
    { line: 3, text: 'three words here' },
  ]);
});
