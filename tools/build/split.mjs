// Splits a linked module into the code that every engine runs and parts that are loaded when something needs them (PARTS in
// flags.mk). A part shares memory, table and functions with the first module (Binaryen's
// wasm-split). To a host, each is a complete module.
//
//   node tools/build/split.mjs --linked FILE --map FILE --out PREFIX --part NAME=SOURCE,... [--part ...] [--wasm-split PROGRAM]
//
// writes PREFIX.main and PREFIX.NAME for each part. The linker's map lists the object of each function; functions from the
// sources (without .c) are moved to the part. Exports for a part are named after it and a hash of the module, so a part of a
// different build does not link. Without wasm-split, the first module is the linked one, and the parts are empty.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { appendData, takeData } from './part_data.mjs';
import { leb, nameBytes, readModule } from './wasm_bytes.mjs';

const EMPTY_MODULE = [0, 97, 115, 109, 1, 0, 0, 0];
const FEATURES = [
  ...['simd', 'relaxed-simd', 'threads', 'bulk-memory', 'nontrapping-float-to-int'],
  ...['sign-ext', 'mutable-globals', 'reference-types'],
].map((name) => `--enable-${name}`);

/** @param {string} map of the linker @returns {string[]} the object of each defined function, by function index */
function objectsOf(map) {
  const lines = map.split('\n');
  const first = lines.findIndex((line) => / CODE$/.test(line)) + 1;
  const last = lines.findIndex((line) => / DATA$/.test(line));
  return lines.slice(first, last).flatMap((line) => /\s(\S+):\(.*\)$/.exec(line)?.[1] ?? []);
}

/** @param {string} map of the linker @returns {number} the address of the constant data */
function constantsIn(map) {
  const found = /^ +([0-9a-f]+) +\w+ +\w+ \.rodata$/m.exec(map);
  if (!found) throw new Error('the map does not list constant data');
  return Number.parseInt(found[1], 16);
}

/**
 * @param {Buffer} linked
 * @param {string[]} names of the defined functions
 * @returns {Buffer} the module with these names, without other custom sections
 */
function named(linked, names) {
  const { sections, imported, defined } = readModule(linked);
  if (defined !== names.length)
    throw new Error(`the module has ${defined} functions, the map lists ${names.length}`);
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
  options: {
    linked: { type: 'string' },
    map: { type: 'string' },
    out: { type: 'string' },
    part: { type: 'string', multiple: true },
    'wasm-split': { type: 'string' },
  },
});
const { linked = '', map = '', out = '' } = values;
const parts = (values.part ?? []).map((text) => {
  const [name, sources] = text.split('=');
  return { name, sources: sources.split(',') };
});
const MAIN = `${out}.main`;

/** @param {string[]} args */
function wasmSplit(args) {
  const program = /** @type {string} */ (values['wasm-split']);
  const { status, stderr } = spawnSync(program, [...args, ...FEATURES], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`wasm-split: ${stderr}`);
}

/**
 * @param {string[]} objects of the functions
 * @returns {string[]} a name for each function that begins with the name of its part
 */
function namesOf(objects) {
  for (const { sources } of parts) {
    const lost = sources.filter((source) => !objects.some((file) => file.endsWith(`/${source}.o`)));
    if (lost.length > 0) throw new Error(`the module has no functions from ${lost.join(' ')}`);
  }
  return objects.map((file, index) => {
    const part = parts.find(({ sources }) =>
      sources.some((source) => file.endsWith(`/${source}.o`)),
    );
    return `${part?.name ?? 'main'}${index}`;
  });
}

function split() {
  const bytes = readFileSync(linked);
  const names = namesOf(objectsOf(readFileSync(map, 'utf8')));
  const build = createHash('sha256').update(bytes).digest('hex').slice(0, 4);
  const [whole, list] = [`${linked}.named`, `${linked}.list`];
  const moved = takeData(
    bytes,
    names.map((one) => parts.findIndex(({ name }) => one.startsWith(name))),
    parts.length,
    constantsIn(readFileSync(map, 'utf8')),
  );
  writeFileSync(whole, named(bytes, names));
  for (const [number, { name }] of parts.entries()) {
    writeFileSync(list, names.filter((one) => one.startsWith(name)).join('\n'));
    wasmSplit([
      ...[
        whole,
        `--split-funcs=@${list}`,
        `-o1=${MAIN}`,
        `-o2=${out}.${name}`,
        '--no-placeholders',
      ],
      ...['--import-namespace=main', `--export-prefix=${name[0]}%${build}`],
      ...(number < parts.length - 1 ? ['-g'] : []),
    ]);
    copyFileSync(MAIN, whole);
  }
  for (const file of [whole, list]) rmSync(file);
  for (const [number, { name }] of parts.entries()) {
    const file = `${out}.${name}`;
    writeFileSync(file, appendData(readFileSync(file), moved[number]));
  }
}

if (values['wasm-split']) split();
else {
  copyFileSync(linked, MAIN);
  for (const { name } of parts) writeFileSync(`${out}.${name}`, Buffer.from(EMPTY_MODULE));
}
