// Checks that no file of the repository has an address of a package registry (lock files included) or
// an absolute path of a machine, and that every C or JavaScript source has a first line that says
// what the file is for.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

// Written in two halves, so that this file passes its own check.
const registries = ['registry.' + 'npmjs', 'registry.' + 'yarnpkg', 'files.' + 'pythonhosted'];
registries.push('pypi' + '.org', 'static.' + 'crates', 'proxy.' + 'golang', 'deb.' + 'debian.org');
const machinePaths = /(^|[\s"'`(=:])(\/home\/|\/root\/|\/Users\/|\/wo[r]k\/|\/tmp\/[a-z])/;

const listed = execFileSync('git', ['ls-files', '-z', '--cached'], { cwd: root, encoding: 'utf8' });
const files = listed.split('\0').filter((file) => file && existsSync(join(root, file)));

/** @param {string} file @param {string[]} lines @returns {string[]} */
function faultsOf(file, lines) {
  const found = [];
  const isSource = /\.(c|h|m?js)$/.test(file);
  for (const [index, line] of lines.entries()) {
    const at = `${file}:${index + 1}`;
    const host = registries.find((name) => line.includes(name));
    if (host) found.push(`${at}: names the registry host ${host}`);
    if (machinePaths.test(line)) found.push(`${at}: an absolute path of one machine`);
  }
  const first = lines[0].startsWith('#!') ? lines[1] : lines[0];
  if (isSource && !/^(\/\/|\/\*)/.test(first ?? '')) {
    found.push(`${file}:1: the first line does not say what the file is for`);
  }
  return found;
}

const faults = files.flatMap((file) => {
  const bytes = readFileSync(join(root, file));
  if (bytes.subarray(0, 8000).includes(0)) return []; // not text
  return faultsOf(file, bytes.toString('utf8').split('\n'));
});
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exit(1);
