// Commit subjects: which ones are rejected, and which commits are checked.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { commitFaults, subjectFault } from '../../tools/build/check_commits.mjs';

test('subjects are imperative and at most 72 characters long', () => {
  const long = `Add ${'x'.repeat(68)}`;
  for (const subject of [
    'Add a test',
    'Chat: show sizes',
    'Pass ids on',
    'Embed texts',
    'Bring back',
    long,
  ])
    assert.equal(subjectFault(subject), undefined, subject);
  for (const [subject, words] of /** @type {const} */ ([
    [`${long}x`, /73 characters, limit is 72/],
    ['Add a test.', /full stop/],
    ['Adds a test', /begins with "Adds"/],
    ['Added a test', /imperative/],
    ['Chat: adding a test', /begins with "adding"/],
    ['', /does not begin with a word/],
  ]))
    assert.match(subjectFault(subject) ?? '', words);
});

test('commits after the base are checked, except merges; without a base none are checked', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wick-commits-'));
  after(() => rmSync(folder, { recursive: true }));
  const origin = join(folder, 'origin');
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
      cwd: args[0] === 'init' || args[0] === 'clone' ? folder : origin,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  const commit = (/** @type {string} */ subject) => {
    git('commit', '-q', '--allow-empty', '-m', subject);
    return git('rev-parse', 'HEAD');
  };
  git('init', '-q', '-b', 'main', origin);
  commit('Older commits are not looked at.');
  const base = commit('Record the base');
  git('checkout', '-q', '-b', 'side');
  commit('Add a side');
  git('checkout', '-q', 'main');
  commit('Fixed something');
  git('merge', '-q', '--no-ff', '-m', 'Merged, in whatever words', 'side');
  const faults = commitFaults(origin, base);
  assert.equal(faults.length, 1);
  assert.match(faults[0], /^[\da-f]+: subject begins with "Fixed"\. .*: Fixed something$/);
  const shallow = join(folder, 'shallow');
  git('clone', '-q', '--depth', '1', pathToFileURL(origin).href, shallow);
  assert.deepEqual(commitFaults(shallow, base), []);
  assert.deepEqual(commitFaults(tmpdir(), base), []);
});
