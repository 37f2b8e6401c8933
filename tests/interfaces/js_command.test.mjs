// The package's command (js/cli.js) by itself; what both builds say alike is cli.test.mjs's.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { dist } from '../support/package.mjs';
import { run } from '../support/process.mjs';

test('-h, --help and help say what there is', async () => {
  const told = [];
  for (const word of ['-h', '--help', 'help']) {
    const { code, stdout } = await run(process.execPath, [join(dist, 'cli.js'), word]);
    assert.equal(code, 0, word);
    told.push(String(stdout));
  }
  assert.match(told[0], /^wick runs GGUF language models/);
  assert.match(told[0], /'wick serve MODEL'/);
  assert.deepEqual(told, [told[0], told[0], told[0]]);
});

test('no line of a bundle is long: Node prints the one of an error that nobody catches', () => {
  for (const name of ['index.js', 'worker.js']) {
    const lines = readFileSync(join(dist, name), 'utf8').split('\n');
    assert.ok(Math.max(...lines.map((line) => line.length)) < 5000, name);
  }
});
