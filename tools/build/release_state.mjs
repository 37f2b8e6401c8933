// Checks the state of a clone before a release: everything is committed, the version is the same
// everywhere, and the changelog describes it.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @param {string} root @param {string[]} args @returns {string} */
const git = (root, ...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** @param {string} root @returns {string[]} files that a fresh clone would not have */
export function checkTree(root) {
  const changed = git(root, 'status', '--porcelain');
  return changed === '' ? [] : changed.split('\n').map((line) => `not committed: ${line.trim()}`);
}

/** @param {string} root @param {string} name @param {RegExp} pattern @returns {string} its match, or '' */
function find(root, name, pattern) {
  return (
    pattern
      .exec(readFileSync(join(root, name), 'utf8'))
      ?.slice(1)
      .join('.') ?? ''
  );
}

/** @param {string} root @param {string} version @returns {string[]} */
function checkChangelog(root, version) {
  const heading = find(root, 'CHANGELOG.md', /^## (.*)$/m);
  const [, newest, date] = /^(\S+), (\d{4}-\d{2}-\d{2})$/.exec(heading) ?? [];
  if (newest === version && !Number.isNaN(Date.parse(date))) return [];
  return [`CHANGELOG.md begins with "## ${heading}", not with "## ${version}, YEAR-MONTH-DAY"`];
}

/** @param {string} root @param {string} version @returns {string[]} */
function checkTag(root, version) {
  const tag = git(root, 'tag', '--list', `v${version}`);
  if (tag === '') return [];
  const isHere = git(root, 'rev-parse', `${tag}^{commit}`) === git(root, 'rev-parse', 'HEAD');
  return isHere ? [] : [`${tag} points to a different commit: a version can be released only once`];
}

/** @param {string} root @returns {string[]} files whose version differs from package.json */
export function checkVersions(root) {
  const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
  const { version } = read('package.json');
  const { packages } = read('package-lock.json');
  const header = /VERSION_MAJOR (\d+)[\s\S]*VERSION_MINOR (\d+)[\s\S]*VERSION_PATCH (\d+)/;
  /** @type {Record<string, string>} */
  const told = {
    'package-lock.json': packages[''].version,
    'js/base/version.js': find(root, 'js/base/version.js', /VERSION = '(.*)'/),
    'include/wick.h': find(root, 'include/wick.h', header),
  };
  const others = Object.entries(told).filter(([, one]) => one !== version);
  const model = read('examples/models/package.json').version;
  const locked = packages['examples/models'].version;
  return [
    ...others.map(([name, one]) => `${name} has version ${one}, but package.json has ${version}`),
    ...(model === locked ? [] : [`package-lock.json has the demo model ${locked}, not ${model}`]),
    ...checkChangelog(root, version),
    ...checkTag(root, version),
  ];
}
