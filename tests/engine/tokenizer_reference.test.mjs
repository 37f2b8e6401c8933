// Compares token ids with `tokenizers` and `sentencepiece` (tools/text/reference.py): random text in many
// scripts with each kind of real vocabulary, and with the patterns of every pre-tokenizer. A soak compares
// 100,000 texts, a normal run a twentieth.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { createEngine } from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const shared = locate('shared');
const python = locate('tokenizers');
const skip = shared.skip || python.skip;

const vocabularies = [
  'gpt-2',
  'qwen2',
  'llama-bpe',
  'deepseek-llm',
  'falcon',
  'starcoder',
  'gemma-4',
  'llama-spm',
  'phi-3',
  'bert-bge',
  'nomic-bert-moe',
];
/** Of these, `make test` compares one of each kind; C tests have vectors of all. */
const kinds = ['qwen2', 'llama-bpe', 'gemma-4', 'llama-spm', 'bert-bge', 'nomic-bert-moe'];
const TEXTS_OF_VOCABULARY = 5000;
/** The number of texts for each of 50 groups of names. */
const TEXTS_OF_PATTERNS = 900;

const folder = join(shared.path, 'vectors/vocab');
const preTypes = join(folder, 'pre-types.json');
/** @param {string} name */
const fileOf = (name) => join(folder, `ggml-vocab-${name}.gguf`);

/**
 * @param {string} file
 * @param {number} count
 * @param {string[]} pres
 * @returns {Promise<[string, number[]][]>} texts and ids
 */
async function askReference(file, count, pres = []) {
  const program = join(root, 'tools/text/reference.py');
  const given = [program, preTypes, file, String(soakSeed), String(count), ...pres];
  const { code, stdout, stderr } = await run(python.path, given, { timeoutMs: 3600_000 });
  assert.equal(code, 0, stderr);
  return stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/**
 * Returns whether two unigram segmentations have equal scores. sentencepiece adds floats, whereas Wick adds doubles
 * like llama.cpp, so rounding may select a different order of the same tokens.
 * @param {number[]} ids
 * @param {number[]} others
 */
function isTie(ids, others) {
  const sorted = (/** @type {number[]} */ list) => [...list].sort((a, b) => a - b).join();
  return sorted(ids) === sorted(others);
}

/**
 * @param {Blob} blob
 * @param {[string, number[]][]} cases
 * @param {string} name
 */
async function compare(blob, cases, name) {
  const engine = await createEngine({ blob, directoryOnly: true });
  let ties = 0;
  for (const [text, wanted] of cases) {
    const ids = await engine.tokenize(text, { addSpecial: false, parseSpecial: false });
    if (name === 'nomic-bert-moe' && ids.join() !== wanted.join() && isTie(ids, wanted)) {
      ties++;
      continue;
    }
    assert.deepEqual(ids, wanted, `${name}: ${JSON.stringify(text)}`);
  }
  engine.close();
  assert.ok(ties <= 1 + cases.length / 100, `${ties} ties in ${cases.length} texts`);
}

/**
 * Returns the same vocabulary with a different tokenizer.ggml.pre.
 * @param {Buffer} bytes
 * @param {string} pre
 */
function withPre(bytes, pre) {
  const key = 'tokenizer.ggml.pre';
  const at = bytes.indexOf(key) + key.length + 4;
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(pre)));
  const rest = at + 8 + Number(bytes.readBigUInt64LE(at));
  const changed = Buffer.concat([
    bytes.subarray(0, at),
    length,
    Buffer.from(pre),
    bytes.subarray(rest),
  ]);
  return new Blob([new Uint8Array(changed)]);
}

describe('ids match tokenizers and sentencepiece', { skip, concurrency: 2 }, () => {
  for (const name of vocabularies) {
    test(name, { skip: !isFull && !kinds.includes(name) }, async () => {
      const count = soakCount(TEXTS_OF_VOCABULARY);
      const cases = await askReference(fileOf(name), count);
      assert.equal(cases.length, count);
      await compare(new Blob([readFileSync(fileOf(name))]), cases, name);
    });
  }

  test('every pre-tokenizer', async () => {
    const { groups } = JSON.parse(readFileSync(preTypes, 'utf8'));
    const characters = ['gemma4', 'sarvam-moe', 'whitespace']; // for other kinds of vocabularies
    /** @type {string[]} */
    const all = Object.values(groups)
      .map((group) => group.names[0])
      .filter((name) => !characters.includes(name));
    assert.ok(all.length >= 50);
    const names = all.filter((_, index) => isFull || index % 3 === 0);
    const count = soakCount(TEXTS_OF_PATTERNS);
    const cases = await askReference(fileOf('gpt-2'), count, names);
    const bytes = readFileSync(fileOf('gpt-2'));
    for (const [number, pre] of names.entries()) {
      const own = cases.slice(number * count, (number + 1) * count);
      assert.equal(own.length, count);
      await compare(withPre(bytes, pre), own, pre);
    }
  });
});
