// Runs the C tests in build/test/coverage/ and reads their source-based coverage (clang).

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run } from '../../tests/support/process.mjs';
import { root } from '../mutants/trial.mjs';

export const programs = join(root, 'build/test/coverage');
const llvm = process.env.LLVM ?? '19';

/**
 * Runs a test, which writes its counts to a separate file.
 * @param {string} name
 * @param {string[]} words the test cases to run; all if empty
 * @param {string} folder for the counts and the temporary files
 */
export const runCounted = (name, words, folder) =>
  run(join(programs, name), words, {
    env: {
      WICK_ROOT: root,
      WICK_TMP: folder,
      WICK_SHARED: process.env.WICK_SHARED ?? resolve(root, '../shared'),
      LLVM_PROFILE_FILE: join(folder, `${name}-%p.profraw`),
    },
  });

/**
 * @param {string} folder with the counts
 * @param {string[]} names of the tests
 * @param {string} form the format of `llvm-cov export`, e.g. "-format=lcov"
 * @returns {string | undefined} its output; undefined if no test has written counts
 */
export function exportCounts(folder, names, form) {
  const raw = readdirSync(folder).filter((name) => name.endsWith('.profraw'));
  if (raw.length === 0) return undefined;
  const merged = join(folder, 'merged.profdata');
  const paths = raw.map((name) => join(folder, name));
  execFileSync(`llvm-profdata-${llvm}`, ['merge', '-sparse', ...paths, '-o', merged]);
  const objects = names.flatMap((name) => ['-object', join(programs, name)]).slice(1);
  const args = ['export', form, `-instr-profile=${merged}`, ...objects];
  return execFileSync(`llvm-cov-${llvm}`, args, { maxBuffer: 1 << 28, encoding: 'utf8' });
}
