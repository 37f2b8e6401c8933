// Compares the table of expected errors, tests/engine/corrupt/expected.tsv, with the expectations in the
// reference set and with the `wick` command's errors for each file. tests/c/format/refusals_test.c checks
// the errors of the reader and the loader.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { locate, root } from '../support/locate.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors/reference');
const stages = ['accepted', 'directory', 'data', 'model', 'tokenizer', 'generation'];
const loads = ['accepted', 'generation'];

const rows = readFileSync(join(root, 'tests/engine/corrupt/expected.tsv'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [file, stage, status, named, offset, ...rest] = line.split('\t');
    assert.deepEqual(rest, [], `too many columns: ${line}`);
    return { file, stage, status, named, offset };
  });

/** The only error of the command-line program itself, which finds the parts of a model by their names. */
const ownWords = new Map([['split-count-2.gguf', 'the model is split into several files']]);

describe('the table of expected errors', () => {
  test('is well formed', () => {
    assert.equal(new Set(rows.map((row) => row.file)).size, rows.length, 'a file appears twice');
    for (const { file, stage, status, named, offset } of rows) {
      assert.ok(stages.includes(stage), `${file}: stage ${stage}`);
      assert.match(status, stage === 'accepted' ? /^-$/ : /^WICK_E_[A-Z]+$/, file);
      assert.ok(named.length > 0, file);
      assert.match(offset, stage === 'accepted' ? /^-$/ : /^(\d+|-)$/, file);
    }
  });

  test('the set matches the reference set', { skip: shared.skip }, () => {
    const text = readFileSync(join(folder, 'manifest.json'), 'utf8');
    /** @type {{corrupt: {file: string, bytes: number, expect: string}[]}} */
    const manifest = JSON.parse(text.replace(/:\s*NaN\b/g, ':null')); // JSON has no NaN
    const files = manifest.corrupt.map(({ file }) => basename(file));
    assert.equal(files.length, 115);
    assert.deepEqual(rows.map((row) => row.file).sort(), files.sort());
    for (const { file, bytes, expect } of manifest.corrupt) {
      const row = rows.find((candidate) => candidate.file === basename(file));
      assert.ok(row);
      assert.ok(['accept', 'reject', 'either'].includes(expect), `${file}: ${expect}`);
      if (expect === 'accept') assert.ok(loads.includes(row.stage), file);
      if (expect === 'reject') assert.ok(!loads.includes(row.stage), file);
      if (/^\d+$/.test(row.offset)) assert.ok(Number(row.offset) <= bytes, `${file}: offset`);
    }
  });

  test('the `wick` command reports the expected error', { skip: shared.skip }, async () => {
    for (const { file, stage, status, named, offset } of rows) {
      const path = join(folder, 'corrupt', file);
      const result = await wick(native, ['run', path, '-p', 'a', '-n', '2', '--temp', '0']);
      assert.equal(result.signal, null, `${file}: ${result.stderr}`);
      assert.equal(result.code, stage === 'accepted' ? 0 : 3, `${file}: ${result.stderr}`);
      if (stage === 'accepted') continue;
      const told = result.stderr.trim().split('\n').at(-1) ?? '';
      const words = ownWords.get(file);
      if (words !== undefined) {
        assert.ok(told.includes(words), `${file}: ${told}`);
        continue;
      }
      const end = offset === '-' ? `(${status})` : `(${status} at byte ${offset})`;
      assert.ok(told.endsWith(end), `${file}: ${told}, not ${end}`);
      if (named !== '-')
        assert.ok(told.includes(named), `${file}: ${told} does not contain ${named}`);
    }
  });
});
