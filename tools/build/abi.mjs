// Compares the interface of include/wick.h with the recorded interface of the same libwick.so ABI version
// (library/abi), with abidiff from Debian's abigail-tools. Both are built as libraries of empty functions
// with debugging information.
//
//   node tools/build/abi.mjs            exits with 1, and shows why, if programs that link the earlier library would break
//   node tools/build/abi.mjs --record   records this interface: before the first release of an ABI version (docs/releasing.md)

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const HEADER = join(root, 'include/wick.h');
const RULES = join(root, 'library/abi/changes.ini');
/** abidiff's exit code has these bits. */
const [FAILED, CHANGED] = [1 | 2, 4 | 8];

/** @param {string} header @returns {string} the suffix of libwick.so, as in tools/build/shared_library.mjs */
export function abiOf(header) {
  const [major, minor] = ['MAJOR', 'MINOR'].map(
    (part) => new RegExp(`define WICK_VERSION_${part} (\\d+)`).exec(header)?.[1] ?? '',
  );
  return major === '0' ? `0.${minor}` : major;
}

/** @param {string} header @returns {string} the header without comments */
export const bare = (header) => header.replace(/ *\/\/.*$/gm, '').replace(/^\s*\n/gm, '');

/** @param {string} program @param {string[]} args */
function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (error) throw new Error(`${program}: ${error.message}. tools/setup.sh library installs it`);
  return { status: status ?? 1, said: `${stdout}${stderr}` };
}

/**
 * @param {string} code of a header
 * @returns {string} the code, with empty bodies of its functions
 */
const withFunctions = (code) =>
  code.replace(/^(WICK_API [^;{]*\));$/gm, '$1 { __builtin_trap(); }');

/**
 * @param {string} code of a header
 * @returns {string} the code, with a function for each type whose parameter has the type's size
 */
const withSizes = (code) =>
  [...code.matchAll(/^\} (wick_\w+);$/gm)].reduce(
    (all, [, name]) => `${all}void size_of_${name}(char (*bytes)[sizeof(${name})]) {}\n`,
    code,
  );

/**
 * @param {string} old
 * @param {string} fresh codes of headers
 * @returns {string} `fresh` without the fields that use reserved space
 */
function withoutUsedRoom(old, fresh) {
  const structs = /^typedef struct (\w+) \{\n([^}]*) {2}uint64_t reserved\[\d+\];\n\} \1;$/gm;
  let code = fresh;
  for (const [whole, name, fields] of old.matchAll(structs)) {
    const begin = code.indexOf(`typedef struct ${name} {\n${fields}`);
    const end = `\n} ${name};`;
    if (begin >= 0)
      code = code.slice(0, begin) + whole + code.slice(code.indexOf(end, begin) + end.length);
  }
  return code;
}

/** @param {string[]} sources of libraries @param {string} folder @returns {string} the report of abidiff */
function differ(sources, folder) {
  const files = sources.map((source, index) => {
    const file = join(folder, `${index}.so`);
    writeFileSync(`${file}.c`, source);
    const flags = ['-g', '-shared', '-fPIC', '-Wl,-soname,libwick.so', '-w'];
    const { status, said } = run('cc', [...flags, `${file}.c`, '-o', file]);
    if (status !== 0) throw new Error(said);
    return file;
  });
  const { status, said } = run('abidiff', ['--no-added-syms', '--suppressions', RULES, ...files]);
  if ((status & FAILED) !== 0) throw new Error(`abidiff: ${said}`);
  return (status & CHANGED) === 0 ? '' : said;
}

/**
 * @param {string} old a header
 * @param {string} fresh the header to compare with it
 * @returns {string} how `fresh` breaks programs built with `old`; '' if it does not
 */
export function breaksOf(old, fresh) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-abi-'));
  const [from, to] = [bare(old), bare(fresh)];
  try {
    const sizes = differ([withSizes(from), withSizes(to)], folder);
    const types = [from, withoutUsedRoom(from, to)].map(withFunctions);
    return sizes + differ(types, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const header = readFileSync(HEADER, 'utf8');
  const abi = abiOf(header);
  const kept = join(root, `library/abi/${abi}.h`);
  if (process.argv[2] === '--record') {
    const title = `// library/abi/${abi}.h — the interface of libwick.so.${abi}, written by tools/build/abi.mjs --record.`;
    writeFileSync(kept, `${title}\n${bare(header)}`);
  } else {
    const breaks = breaksOf(readFileSync(kept, 'utf8'), header);
    if (breaks) {
      console.error(`${breaks}
wick.h: programs that link libwick.so.${abi} would break. Raise WICK_VERSION_MINOR, or, if no version with this name has
been released, run node tools/build/abi.mjs --record.`);
      process.exit(1);
    }
  }
}
