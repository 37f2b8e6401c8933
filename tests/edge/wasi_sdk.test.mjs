// Builds the project with the WASI SDK in $WASI_SDK_PATH, or with the equivalent layout that tools/setup.sh creates from
// clang and wasi-libc.

import assert from 'node:assert/strict';
import { readdirSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { root } from '../support/locate.mjs';
import { modelPath, temporaryFolder } from '../support/package.mjs';
import { run, runWasi } from '../support/process.mjs';

const sdk = process.env.WASI_SDK_PATH ?? resolve(root, '.toolchain/wasi-sdk');

test('make builds the WASI program with the SDK, and its output is the same', async (t) => {
  if (!process.env.WASI_SDK_PATH) t.diagnostic('the SDK layout consists of clang-19 and wasi-libc');
  const folder = temporaryFolder();
  for (const name of readdirSync(root)) {
    if (!['build', 'dist', '.git'].includes(name))
      symlinkSync(join(root, name), join(folder, name));
  }
  const built = await run('make', [
    '-C',
    folder,
    '-j2',
    `WASI_SDK_PATH=${sdk}`,
    'build/wasi/wick.wasm',
  ]);
  assert.equal(built.code, 0, `${built.stdout}${built.stderr}`);
  const question = ['-p', 'Once upon a time', '-n', '24'];
  const wanted = await wick(native, ['run', modelPath, ...question]);
  const folders = { '/models': dirname(modelPath) };
  const args = ['run', '/models/wick-2.6m-q8_0.gguf', ...question];
  const found = await runWasi('node', join(folder, 'build/wasi/wick.wasm'), args, { folders });
  assert.equal(found.code, 0, String(found.stderr));
  assert.equal(found.stdout.toString(), wanted.stdout.toString());
});
