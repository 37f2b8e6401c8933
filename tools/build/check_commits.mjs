// Checks the subjects of commits: imperative, at most 72 characters, no full stop. Commits up to
// BASE are older than the rule, and merges have generated subjects. A shallow clone without BASE,
// or a folder without Git, is not checked.
//   node tools/build/check_commits.mjs [BASE]

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const BASE = 'a732fd8622f56ac14c2ee59073bb4d83beb4c69b';
const CHARACTERS_MAX = 72;
/** Imperative verbs that end like inflected forms. */
const verbs = new Set('bring feed embed exceed need proceed seed shed speed spread'.split(' '));

/** @param {string} subject @returns {string | undefined} its fault */
export function subjectFault(subject) {
  const length = [...subject].length;
  if (length > CHARACTERS_MAX)
    return `subject has ${length} characters, limit is ${CHARACTERS_MAX}. Move details into the body`;
  if (subject.endsWith('.')) return 'subject ends with a full stop. Remove it';
  const [, first = ''] = /^(?:[^ :]+: )?([\p{L}-]+)/u.exec(subject) ?? [];
  const word = first.toLowerCase();
  if (word === '') return 'subject does not begin with a word. Begin with a verb, such as "Add"';
  const isOther = /(ing|ed)$|[^aisu]s$/.test(word) && !verbs.has(word);
  return isOther
    ? `subject begins with "${first}". Use the imperative, such as "Add" for "Adds" or "Added"`
    : undefined;
}

/** @param {string} folder @param {string} base @returns {string[]} a line for each subject that breaks the rule */
export function commitFaults(folder, base) {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  try {
    git('rev-parse', '--verify', '--quiet', `${base}^{commit}`);
  } catch {
    return [];
  }
  const listed = git('log', '--no-merges', '--format=%h %s', `${base}..HEAD`);
  return listed.split('\n').flatMap((line) => {
    const [hash, ...words] = line.split(' ');
    const fault = hash && subjectFault(words.join(' '));
    return fault ? [`${hash}: ${fault}: ${words.join(' ')}`] : [];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
  const faults = commitFaults(root, process.argv[2] ?? BASE);
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
