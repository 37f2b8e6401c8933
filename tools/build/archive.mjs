// Builds libwick.a from compiled objects, with symbols that cannot collide with a user's: symbols
// that the objects define and wick.h does not are called wick__NAME in the archive. The objects
// stay unchanged, so an archive has the same code that ships in programs and modules.
//
//   node tools/build/archive.mjs ARCHIVE OBJECT...
//
// $NM, $AR and $OBJCOPY select the LLVM tools.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isWasm, renameSymbols } from './wasm_symbols.mjs';

const { NM = 'llvm-nm', AR = 'llvm-ar', OBJCOPY = 'llvm-objcopy' } = process.env;
const [archive, ...objects] = process.argv.slice(2);

/** @param {string} tool @param {string[]} args @returns {string} its output */
const run = (tool, args) => execFileSync(tool, args, { encoding: 'utf8', maxBuffer: 1 << 26 });

const defined = run(NM, [
  '--extern-only',
  '--defined-only',
  '--just-symbol-name',
  '--quiet',
  ...objects,
]);
const names = defined.split('\n').filter((line) => line !== '' && !line.endsWith(':'));
const renamed = new Map(
  names.filter((name) => !name.startsWith('wick_')).map((name) => [name, `wick__${name}`]),
);

// The objects' copies keep their own names, because members of an archive are named after their files.
const work = `${archive}.objects`;
rmSync(work, { recursive: true, force: true });
const copies = objects.map((object) => join(work, relative('build/obj', object)));
const pairs = join(work, 'names');
for (const [index, object] of objects.entries()) {
  mkdirSync(dirname(copies[index]), { recursive: true });
  const bytes = readFileSync(object);
  if (isWasm(bytes)) writeFileSync(copies[index], renameSymbols(bytes, renamed));
  else copyFileSync(object, copies[index]);
}
rmSync(archive, { force: true });
run(AR, ['rcsD', archive, ...copies]);
if (!isWasm(readFileSync(objects[0]))) {
  writeFileSync(pairs, [...renamed].map((pair) => `${pair.join(' ')}\n`).join(''));
  run(OBJCOPY, [`--redefine-syms=${pairs}`, archive]);
}
rmSync(work, { recursive: true });
