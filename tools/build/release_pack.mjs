// Prepares a package for npm: copies its files to a separate folder, with a package.json without
// the fields that only a clone needs.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @typedef {{name: string, version: string, file: string, size: number, integrity: string}} Pack */

/** Fields that users of the package do not need. */
const ofClones = ['devDependencies', 'workspaces', 'scripts'];

/** @param {string} cwd @param {string[]} args @returns {any} the output of `npm pack --json` for one package */
function npmPack(cwd, ...args) {
  const text = execFileSync('npm', ['pack', '--json', '--offline', '--ignore-scripts', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return JSON.parse(text)[0];
}

/**
 * Returns the README for the pack. It comes from a folder below the root, so its links lose one
 * `../`.
 * @param {string} path
 */
const packedReadme = (path) => readFileSync(path, 'utf8').replaceAll('](../', '](');

/**
 * @param {{root: string, source: string, folder: string, repository: string | undefined}} wanted
 * `source`: the folder of the package, relative to the root
 * @returns {string} the folder with its files
 */
export function stagePackage({ root, source, folder, repository }) {
  const from = join(root, source);
  const { name, files } = npmPack(from, '--dry-run');
  const staged = join(folder, name);
  for (const { path } of files) {
    mkdirSync(dirname(join(staged, path)), { recursive: true });
    cpSync(join(from, path), join(staged, path));
  }
  const readme = join(from, 'js/README.md');
  if (existsSync(readme)) writeFileSync(join(staged, 'README.md'), packedReadme(readme));
  const told = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  for (const key of ofClones) delete told[key];
  if (repository) {
    const directory = source === '.' ? undefined : source;
    told.repository = { type: 'git', url: `git+${repository}`, directory };
    told.bugs = `${repository.replace(/\.git$/, '')}/issues`;
  }
  writeFileSync(join(staged, 'package.json'), `${JSON.stringify(told, null, 2)}\n`);
  return staged;
}

/** @param {string} staged @param {string} folder @returns {Pack} */
export function packPackage(staged, folder) {
  const { name, version, filename, size, integrity } = npmPack(
    staged,
    '--pack-destination',
    folder,
  );
  return { name, version, file: join(folder, filename), size, integrity };
}
