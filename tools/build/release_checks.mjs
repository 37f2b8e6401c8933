// Checks the requirements of a pack: its documents link only to files in the pack, its hashes match its
// files, it does not contain paths of the machine that built it, publint and arethetypeswrong report no
// errors, and the engine generates text in a project that installs it.

import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** @typedef {import('./release_pack.mjs').Pack & {staged: string}} Staged */

/** The largest size of a pack in bytes, by package. */
const bytesMost = { 'wick-llm': 4_850_000, 'wick-llm-demo-model': 7_500_000 };

/** @param {string} folder @returns {string[]} the files below it, as paths relative to it */
const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();

/**
 * @param {string} folder of an unpacked package
 * @returns {string[]} broken links in its documents
 */
export function checkLinks(folder) {
  return filesBelow(folder)
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map(([, target]) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !existsSync(join(folder, dirname(name), target)))
        .map((target) => `${name} links to ${target}, which is not in the pack`);
    });
}

/** @param {string} folder of an unpacked package @returns {string[]} */
export function checkIntegrity(folder) {
  const list = join(folder, 'dist/integrity.json');
  if (!existsSync(list)) return [];
  return Object.entries(JSON.parse(readFileSync(list, 'utf8')))
    .filter(([name, integrity]) => {
      const path = join(folder, 'dist', name);
      if (!existsSync(path)) return true;
      const hash = createHash('sha384').update(readFileSync(path)).digest('base64');
      return integrity !== `sha384-${hash}`;
    })
    .map(([name]) => `dist/integrity.json has the wrong hash for ${name}`);
}

/** @param {string} folder @param {string} path a path on this machine @returns {string[]} */
export function checkPaths(folder, path) {
  return filesBelow(folder)
    .filter((name) => readFileSync(join(folder, name)).includes(path))
    .map((name) => `${name} contains ${path}`);
}

/** @param {string} root @param {string} program @param {string[]} args @returns {string[]} */
function runCheck(root, program, args) {
  const path = join(root, 'node_modules/.bin', program);
  const { status, stdout, stderr } = spawnSync(path, args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? [] : [`${program}: ${stdout}${stderr}`.trim()];
}

/** @param {string} folder @returns {string[]} entries without types: programs, WebAssembly, JSON */
function entriesWithoutTypes(folder) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'string')
    .flatMap(([name, target]) =>
      name.includes('*')
        ? readdirSync(join(folder, dirname(target))).map((file) => join(dirname(name), file))
        : [name],
    );
}

/** @param {string} root @param {string} file the pack @returns {string[]} its faults */
export function checkPack(root, file) {
  const folder = join(dirname(file), 'unpacked', basename(file, '.tgz'));
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-xzf', file, '--strip-components=1', '-C', folder]);
  const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const most = bytesMost[/** @type {keyof typeof bytesMost} */ (name)];
  const { size } = statSync(file);
  const untyped = entriesWithoutTypes(folder);
  const exempt = untyped.length > 0 ? ['--exclude-entrypoints', ...untyped] : [];
  return [
    ...(size <= most ? [] : [`${name} is ${size} bytes packed, limit is ${most}`]),
    ...checkLinks(folder),
    ...checkIntegrity(folder),
    ...checkPaths(folder, root),
    ...runCheck(root, 'publint', ['--strict', folder]),
    ...runCheck(root, 'attw', [file, '--profile', 'esm-only', ...exempt]),
  ].map((fault) => `${basename(file)}: ${fault}`);
}

const question = `
import { createEngine } from 'wick-llm';
import { smallModelUrl } from 'wick-llm-demo-model';

const engine = await createEngine({ url: smallModelUrl, threads: 1 });
const text = await engine.generate('Once upon a time', { temperature: 0, maxTokens: 8 }).text();
await engine.close();
if (text.trim() === '') throw new Error('the engine generated no text');
`;

/** Installs the packs without a network. @param {string} folder @param {Staged[]} packs @returns {string[]} */
export function tryPacks(folder, packs) {
  const cwd = join(folder, 'installed');
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, 'package.json'), '{"private":true,"type":"module"}');
  writeFileSync(join(cwd, 'question.js'), question);
  const files = packs.map(({ file }) => file);
  for (const [program, ...args] of [
    ['npm', 'install', '--offline', '--ignore-scripts', '--omit=optional', ...files],
    [process.execPath, 'question.js'],
    [join(cwd, 'node_modules/.bin/wick'), '--version'],
  ]) {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
    if (status !== 0) return [`${basename(program)} ${args[0]}: ${stdout}${stderr}`.trim()];
  }
  return [];
}
