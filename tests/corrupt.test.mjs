// The table of refusals, tests/corrupt/expected.tsv, against the reference set's own expectations:
// every file is in it, what must be accepted is, what must be refused is, and each refusal is told
// with a status. That the engine does what the table says is checked by tests/c/refusals_test.c.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { locate, root } from './support/locate.mjs';

const shared = locate('shared');
const stages = ['accepted', 'directory', 'data', 'model', 'tokenizer'];

const rows = readFileSync(join(root, 'tests/corrupt/expected.tsv'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [file, stage, status, named, offset, ...rest] = line.split('\t');
    assert.deepEqual(rest, [], `too many columns: ${line}`);
    return { file, stage, status, named, offset };
  });

describe('the table of refusals', () => {
  test('is well formed', () => {
    assert.equal(new Set(rows.map((row) => row.file)).size, rows.length, 'a file is there twice');
    for (const { file, stage, status, named, offset } of rows) {
      assert.ok(stages.includes(stage), `${file}: stage ${stage}`);
      const pattern = stage === 'accepted' ? /^-$/ : /^(WICK_E_[A-Z]+|\?)$/;
      assert.match(status, pattern, file);
      assert.ok(named.length > 0, file);
      assert.match(offset, stage === 'accepted' ? /^-$/ : /^(\d+|-|\?)$/, file);
    }
  });

  test('agrees with the reference set', { skip: shared.skip }, () => {
    const path = join(shared.path, 'vectors/reference/manifest.json');
    /** @type {{corrupt: {file: string, bytes: number, expect: string}[]}} */
    const manifest = JSON.parse(readFileSync(path, 'utf8').replace(/:\s*NaN\b/g, ':null'));
    const files = manifest.corrupt.map(({ file }) => basename(file));
    assert.equal(files.length, 115);
    assert.deepEqual(rows.map((row) => row.file).sort(), files.sort());
    for (const { file, bytes, expect } of manifest.corrupt) {
      const row = rows.find((candidate) => candidate.file === basename(file));
      assert.ok(row);
      assert.ok(['accept', 'reject', 'either'].includes(expect), `${file}: ${expect}`);
      if (expect === 'accept') assert.equal(row.stage, 'accepted', file);
      if (expect === 'reject') assert.notEqual(row.stage, 'accepted', file);
      if (/^\d+$/.test(row.offset)) assert.ok(Number(row.offset) <= bytes, `${file}: offset`);
    }
  });
});
