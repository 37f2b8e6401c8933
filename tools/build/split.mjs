// Splits a linked module in two: what every engine runs, and what only requests with a grammar or with tools run. The
// second shares memory, table and functions of the first (binaryen's wasm-split). Each is a whole module to a host.
//
//   node tools/build/split.mjs --linked FILE --map FILE --sources FILE,... --main FILE --part FILE [--wasm-split PROGRAM]
//
// The linker's map says which object a function comes from; functions of `sources` (without .c) go to the part. Exports for
// the part are named after the module's bytes, so that a part of another build does not link. Without wasm-split the
// first module is the linked one, and the second is empty.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const IMPORT_SECTION = 2;
const FUNCTION_SECTION = 3;
const EMPTY_MODULE = [0, 97, 115, 109, 1, 0, 0, 0];
const FEATURES = [
  ...['simd', 'relaxed-simd', 'threads', 'bulk-memory', 'nontrapping-float-to-int'],
  ...['sign-ext', 'mutable-globals', 'reference-types'],
].map((name) => `--enable-${name}`);

/** @param {number} value @returns {number[]} */
const leb = (value) =>
  value < 128 ? [value] : [(value & 127) | 128, ...leb(Math.floor(value / 128))];

/** @param {string} text */
const nameBytes = (text) =>
  Buffer.concat([Buffer.from(leb(Buffer.byteLength(text))), Buffer.from(text)]);

class Reader {
  /** @param {Buffer} bytes @param {number} at */
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  skipName() {
    const size = this.number();
    this.at += size;
  }

  skipLimits() {
    const hasMost = (this.number() & 1) !== 0;
    this.number();
    if (hasMost) this.number();
  }

  /** @returns {boolean} whether the import is a function */
  skipImport() {
    this.skipName();
    this.skipName();
    const kind = this.bytes[this.at++];
    if (kind === 0) this.number();
    else if (kind === 3) this.at += 2;
    else {
      if (kind === 1) this.at++;
      this.skipLimits();
    }
    return kind === 0;
  }
}

/**
 * @param {Buffer} bytes a module
 * @returns {{sections: Buffer[], imported: number, defined: number}} all but custom sections, and numbers of functions
 */
function readModule(bytes) {
  /** @type {Buffer[]} */
  const sections = [];
  let [imported, defined, at] = [0, 0, 8];
  while (at < bytes.length) {
    const reader = new Reader(bytes, at + 1);
    const size = reader.number();
    const end = reader.at + size;
    if (bytes[at] !== 0) sections.push(bytes.subarray(at, end));
    if (bytes[at] === FUNCTION_SECTION) defined = reader.number();
    if (bytes[at] === IMPORT_SECTION) {
      for (let left = reader.number(); left > 0; left--) imported += Number(reader.skipImport());
    }
    at = end;
  }
  return { sections, imported, defined };
}

/** @param {string} map the linker's @returns {string[]} the object of each defined function, in order */
function objectsOf(map) {
  const lines = map.split('\n');
  const first = lines.findIndex((line) => / CODE$/.test(line)) + 1;
  const last = lines.findIndex((line) => / DATA$/.test(line));
  return lines.slice(first, last).flatMap((line) => /\s(\S+):\(.*\)$/.exec(line)?.[1] ?? []);
}

/**
 * @param {Buffer} linked
 * @param {string[]} names of the defined functions
 * @returns {Buffer} the module with these names, and with no other custom section
 */
function named(linked, names) {
  const { sections, imported, defined } = readModule(linked);
  if (defined !== names.length) throw new Error(`${defined} functions, ${names.length} in the map`);
  const list = names.flatMap((name, index) => [
    Buffer.from(leb(imported + index)),
    nameBytes(name),
  ]);
  const functions = Buffer.concat([Buffer.from(leb(names.length)), ...list]);
  const body = [nameBytes('name'), Buffer.from([1, ...leb(functions.length)]), functions];
  const size = body.reduce((sum, { length }) => sum + length, 0);
  return Buffer.concat([
    linked.subarray(0, 8),
    ...sections,
    Buffer.from([0, ...leb(size)]),
    ...body,
  ]);
}

const { values } = parseArgs({
  options: Object.fromEntries(
    ['linked', 'map', 'sources', 'main', 'part', 'wasm-split'].map((name) => [
      name,
      { type: /** @type {const} */ ('string') },
    ]),
  ),
});
const { linked, map, sources, main, part } = /** @type {Record<string, string>} */ (values);

function split() {
  const objects = objectsOf(readFileSync(map, 'utf8'));
  const wanted = sources.split(',');
  const isOfPart = objects.map((file) => wanted.some((source) => file.endsWith(`/${source}.o`)));
  const lost = wanted.filter((source) => !objects.some((file) => file.endsWith(`/${source}.o`)));
  if (lost.length > 0) throw new Error(`the module has nothing of ${lost.join(' ')}`);
  const bytes = readFileSync(linked);
  const names = isOfPart.map((is, index) => `${is ? 'part' : 'main'}${index}`);
  const [whole, list] = [`${linked}.named`, `${linked}.list`];
  writeFileSync(whole, named(bytes, names));
  writeFileSync(list, names.filter((_, index) => isOfPart[index]).join('\n'));
  const build = createHash('sha256').update(bytes).digest('hex').slice(0, 4);
  const { status, stderr } = spawnSync(/** @type {string} */ (values['wasm-split']), [
    ...[whole, `--split-funcs=@${list}`, `-o1=${main}`, `-o2=${part}`, ...FEATURES],
    ...['--no-placeholders', '--import-namespace=main', `--export-prefix=%${build}`],
  ]);
  if (status !== 0) throw new Error(`wasm-split: ${stderr}`);
  for (const file of [whole, list]) rmSync(file);
}

if (values['wasm-split']) split();
else {
  copyFileSync(linked, main);
  writeFileSync(part, Buffer.from(EMPTY_MODULE));
}
