// The chat template language, part by part: each filter, test, method, operator and statement gives the same results as
// in Python's jinja2 for values of every kind, including errors. The output of jinja2 is recorded, so that the test runs
// without Python. tests/engine/templates.test.mjs compares complete templates of models.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { byteVocabulary } from '../support/byte_vocabulary.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { groups } from '../support/template_snippets.mjs';

const python = locate('tokenizers');
const wick = built('native/wick');
const folder = mkdtempSync(join(tmpdir(), 'wick-language-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const vocabulary = join(folder, 'bytes.gguf');
writeFileSync(vocabulary, byteVocabulary(['<s>']));

/** By group: the text of each snippet, or null if jinja2 fails. WICK_RECORD=1 writes it. */
const recordPath = join(root, 'tests/engine/template_language.json');
/** @type {Record<string, (string | null)[]>} */
const record = JSON.parse(readFileSync(recordPath, 'utf8'));

/** By group: the error and message of each snippet that fails. WICK_RECORD=1 writes it. */
const messagesPath = join(root, 'tests/engine/template_messages.json');
/** @type {Record<string, Record<string, string>>} */
const messages = JSON.parse(readFileSync(messagesPath, 'utf8'));

/** The common prefix of all messages. */
const REFUSED = /^the chat template (rejects these messages: )?line /;

/** @typedef {{path: string, lines: {at: number}[]}} Batch a template with a variable that selects the snippet */

/** @param {string} name @param {string[]} snippets @returns {Batch[]} */
function batchesOf(name, snippets) {
  const size = 80;
  return Array.from({ length: Math.ceil(snippets.length / size) }, (_, index) => {
    const some = snippets.slice(index * size, (index + 1) * size);
    const branches = some.map((one, at) => `{%- if at == ${at} +%}${one}{%- endif +%}`);
    const path = join(folder, `${name.replaceAll(' ', '-')}-${index}.jinja`);
    writeFileSync(path, branches.join(''));
    return { path, lines: some.map((_, at) => ({ at })) };
  });
}

/** @param {Buffer} stdout @returns {any[]} */
const linesOf = (stdout) =>
  stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** @param {Batch} batch @returns {Promise<{text?: string, error?: string, message?: string}[]>} */
async function render({ path, lines }) {
  const file = `${path}.lines`;
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n'));
  const args = ['template', vocabulary, '--template', path, '--lines', '-f', file];
  const { code, stdout, stderr } = await run(wick, args);
  assert.equal(code, 0, stderr.toString());
  return linesOf(stdout);
}

/** @param {Batch[]} batches @returns {Promise<(string | null)[]>} */
async function renderInPython(batches) {
  const script = join(root, 'tools/text/templates.py');
  const input = batches.map(({ path, lines }) => JSON.stringify([path, lines])).join('\n');
  const { code, stdout, stderr } = await run(python.path, [script, '--mutable'], { input });
  assert.equal(code, 0, stderr.toString());
  const texts = linesOf(stdout).flat();
  return texts.map((text) => (typeof text === 'string' ? text : null));
}

test('the record matches the output of jinja2', { skip: python.skip }, async () => {
  /** @type {typeof record} */
  const texts = {};
  for (const [name, snippets] of Object.entries(groups)) {
    texts[name] = await renderInPython(batchesOf(name, snippets));
  }
  if (process.env.WICK_RECORD === '1') {
    writeFileSync(recordPath, `${JSON.stringify(texts, null, 1)}\n`);
  }
  assert.deepEqual(texts, JSON.parse(readFileSync(recordPath, 'utf8')));
});

describe('as in jinja2', () => {
  for (const [name, snippets] of Object.entries(groups)) {
    test(name, async () => {
      assert.equal(record[name].length, snippets.length);
      const found = (await Promise.all(batchesOf(name, snippets).map(render))).flat();
      /** @type {Record<string, string>} */
      const said = {};
      for (const [index, snippet] of snippets.entries()) {
        const { text = null, error, message } = found[index];
        assert.equal(text, record[name][index], `${snippet}: ${message}`);
        if (error === undefined) continue;
        assert.match(message ?? '', REFUSED, snippet);
        said[snippet] = `${error}: ${message?.replace(REFUSED, '')}`;
      }
      if (process.env.WICK_RECORD === '1') {
        messages[name] = said;
        writeFileSync(messagesPath, `${JSON.stringify(messages, null, 1)}\n`);
      }
      assert.deepEqual(said, messages[name]);
    });
  }
});
