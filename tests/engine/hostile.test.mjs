// Files that once broke the engine (../shared/vectors/hostile): the `wick` command generates text and
// exits, natively and in every WASI runtime. tests/c/format/hostile_files_test.c, which runs on the same
// hosts, counts the steps.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors/hostile');
const files = shared.skip ? [] : readdirSync(folder).filter((file) => file.endsWith('.gguf'));
/** Far longer than any of these files takes, so only a hang exceeds it. */
const timeoutMs = 120_000;

for (const host of [native, ...(isFull ? plainHosts : plainHosts.slice(0, 1))]) {
  describe(`hostile files, ${host.name}`, { skip: shared.skip || host.skip }, () => {
    test('all hostile files exist', () => assert.equal(files.length, 4));

    for (const file of files) {
      test(`${file} tokenizes and generates text`, async () => {
        const path = join(folder, file);
        const tokens = await wick(host, ['tokenize', path, '-p', 'Hello aaaa world'], {
          timeoutMs,
        });
        assert.equal(tokens.signal ?? tokens.code, 0, tokens.stderr);
        assert.match(tokens.stdout.toString(), /^\d+( \d+)*\s*$/);
        const args = ['run', path, '-p', 'Hello', '-n', '8', '--temp', '0'];
        const said = await wick(host, args, { timeoutMs });
        assert.equal(said.signal ?? said.code, 0, said.stderr);
      });
    }
  });
}
