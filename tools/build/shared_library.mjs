// Builds libwick.so from libwick.a: it has the same objects, and exports the symbols declared in
// wick.h with a version.
//
//   node tools/build/shared_library.mjs FOLDER/libwick.so ARCHIVE VERSION LINK_FLAG...
//
// Writes libwick.so.VERSION, and the links libwick.so.ABI and libwick.so. While the major version
// is 0, minor versions may break programs, so ABI has both numbers. $NM, $OBJCOPY and $CC select
// the tools.

import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

const { NM = 'llvm-nm', OBJCOPY = 'llvm-objcopy', CC = 'clang' } = process.env;
const [out, archive, version, ...flags] = process.argv.slice(2);
const [major, minor] = version.split('.');
const abi = major === '0' ? `0.${minor}` : major;

/** @param {string} tool @param {string[]} args @returns {string} its output */
const run = (tool, args) => execFileSync(tool, args, { encoding: 'utf8', maxBuffer: 1 << 26 });

const listed = run(NM, [
  ...['--extern-only', '--defined-only', '--just-symbol-name', '--quiet', archive],
]);
const names = [...new Set(listed.match(/^wick_(?!_)\w+$/gm))].sort();

const [exported, script, copy] = ['names', 'map', 'a'].map((end) => `${out}.${end}`);
writeFileSync(exported, `${names.join('\n')}\n`);
writeFileSync(
  script,
  `WICK_${abi} { global: ${names.map((name) => `${name}; `).join('')}local: *; };\n`,
);
run(OBJCOPY, [`--set-symbols-visibility=${exported}=default`, archive, copy]); // the archive's symbols are all hidden
run(CC, [
  ...['-shared', `-Wl,-soname,libwick.so.${abi}`, `-Wl,--version-script=${script}`],
  ...['-Wl,-Bsymbolic', '-Wl,-z,defs', '-Wl,--whole-archive', copy, '-Wl,--no-whole-archive'],
  ...[...flags, '-o', `${out}.${version}`],
]);
for (const file of [exported, script, copy]) rmSync(file);
for (const [link, target] of [
  [`${out}.${abi}`, `${out}.${version}`],
  [out, `${out}.${abi}`],
]) {
  rmSync(link, { force: true });
  symlinkSync(basename(target), link);
}
