// Determines the test groups that have changed since the last full run: tests/full_run.txt contains
// the commit at which `make test-all` last passed.

import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { groups, groupsOf, root } from '../tests/plan.mjs';

const RECORD = 'tests/full_run.txt';

/** @param {string} folder @param {string[]} args @returns {Promise<string>} git's output */
async function git(folder, ...args) {
  const { stdout } = await promisify(execFile)('git', args, { cwd: folder, maxBuffer: 1 << 26 });
  return stdout.trim();
}

/** @returns {Promise<string[]>} the absolute paths of all test files */
export async function findTestFiles() {
  const found = await Promise.all(
    groups.map(async (group) => {
      const folder = path.join(root, 'tests', group);
      const names = await readdir(folder);
      return names
        .filter((name) => name.endsWith('.test.mjs'))
        .map((name) => path.join(folder, name));
    }),
  );
  return found.flat().sort();
}

/**
 * @param {string} [folder] the repository
 * @returns {Promise<string[]>} the changed groups, or all groups if they are unknown: without a
 *   record or a repository, or in a clone that does not contain the recorded commit
 */
export async function changedGroups(folder = root) {
  let changed;
  try {
    const commit = (await readFile(path.join(folder, RECORD), 'utf8')).trim();
    const others = ['--', `:!${RECORD}`];
    const tracked = await git(folder, 'diff', '--name-only', '--no-renames', commit, ...others);
    const untracked = await git(folder, 'ls-files', '--others', '--exclude-standard', ...others);
    changed = `${tracked}\n${untracked}`.split('\n').filter((name) => name !== '');
  } catch {
    return groups;
  }
  return groupsOf(changed, await findTestFiles());
}

/** Records that all tests have passed at this commit, unless files have changed since. */
export async function recordFullRun(folder = root) {
  try {
    if (await git(folder, 'status', '--porcelain', '--', `:!${RECORD}`)) return;
    await writeFile(path.join(folder, RECORD), `${await git(folder, 'rev-parse', 'HEAD')}\n`);
  } catch {} // without a repository, later runs have no commit to compare with
}
