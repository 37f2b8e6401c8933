// make layout: makes web/layout.h and js/wasm/layout.js of the list in web/layout.mjs, and what option_files.mjs names
// of include/options.mjs. With --check it changes nothing, and fails when one of them is of another list.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, filled, own, read, results } from '../../web/layout.mjs';
import { optionFiles, optionParts, webTables } from './option_files.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const cTypes = {
  ...{ u32: 'uint32_t', i32: 'int32_t', f32: 'float', u64: 'uint64_t', bool: 'bool' },
  size: 'uintptr_t',
};

/** @param {string} name */
const upper = (name) => name.toUpperCase();
/** @param {string} name of C @returns {string} the one of JavaScript */
const bare = (name) => name.replace(/^(WICK|WEB)_/, '');

/** @param {string} record @param {string} field @param {number | string} at @param {number | string} sizeBytes */
const assertField = (record, field, at, sizeBytes) =>
  `_Static_assert(offsetof(${record}, ${field}) == ${at} && ` +
  `sizeof(((${record} *)0)->${field}) == ${sizeBytes}, "${record}.${field}");`;

/** @param {string} record @param {number | string} sizeBytes */
const assertSize = (record, sizeBytes) =>
  `_Static_assert(sizeof(${record}) == ${sizeBytes}, "${record}");`;

/** @typedef {Record<string, keyof typeof cTypes>} Fields */

/** @param {Fields} fields @returns {{name: string, type: keyof typeof cTypes, at: number}[]} with their words */
function placesOf(fields) {
  let next = 0;
  return Object.entries(fields).map(([name, type]) => {
    const at = next;
    next += type === 'u64' ? 2 : 1;
    return { name, type, at };
  });
}

/** @param {Fields} fields @returns {number} words of the record, a multiple of its alignment */
function wordsOf(fields) {
  const types = Object.values(fields);
  const words = types.reduce((sum, type) => sum + (type === 'u64' ? 2 : 1), 0);
  return types.includes('u64') ? words + (words % 2) : words;
}

const sizes = { u32: 4, i32: 4, f32: 4, u64: 8, bool: 1, size: 4 };

/**
 * @param {Fields} fields
 * @returns {{at: Record<string, number>, sizeBytes: number}} where they begin if addresses have 64 bits: js/wasm/heap.js, Passed.record
 */
function wideOf(fields) {
  /** @type {Record<string, number>} */
  const at = {};
  let next = 0;
  for (const [name, type] of Object.entries(fields)) {
    if (type === 'size') next = alignEight(next);
    at[name] = next;
    next += type === 'size' || type === 'u64' ? 8 : 4;
  }
  const isAligned = Object.values(fields).some((type) => type === 'size' || type === 'u64');
  return { at, sizeBytes: isAligned ? alignEight(next) : next };
}

/** @param {number} bytes */
const alignEight = (bytes) => Math.ceil(bytes / 8) * 8;

/** @param {number} narrow bytes @param {number} wide bytes if addresses have 64 bits */
const byWidth = (narrow, wide) => (narrow === wide ? narrow : `WEB_WIDTH(${narrow}, ${wide})`);

/** @param {Fields} fields @returns {string} of each 32-bit field a letter: f a float, a an address or a size, u others */
const kindsOf = (fields) =>
  Object.values(fields)
    .map((type) => ({ f32: 'f', size: 'a', u64: 'uu' })[/** @type {string} */ (type)] ?? 'u')
    .join('')
    .padEnd(wordsOf(fields), 'u');

/** @param {string} record @param {Fields} fields @returns {string[]} */
const declare = (record, fields) => [
  `typedef struct ${record} {`,
  ...Object.entries(fields).map(([field, type]) => `  ${cTypes[type]} ${field};`),
  `} ${record};`,
];

/** @returns {string[]} */
function linesOfC() {
  return [
    '// web/layout.h — the memory layout that C and JavaScript of a browser build share.',
    '// `make layout` makes it of web/layout.mjs: changes go there.',
    '// clang-format off',
    '// NOLINTBEGIN(bugprone-sizeof-expression): of pointers, whose size is what is checked',
    '#ifndef WICK_WEB_LAYOUT_H',
    '#define WICK_WEB_LAYOUT_H',
    '',
    '#include <stddef.h>',
    '#include <stdint.h>',
    '',
    '#include "thread_web.h"',
    '#include "wick.h"',
    '',
    '#define WEB_WIDTH(of_32_bits, of_64_bits) (sizeof(void *) == 4 ? (of_32_bits) : (of_64_bits))',
    ...Object.entries(filled).flatMap(([record, fields]) => [
      '',
      ...(record.startsWith('web_') ? declare(record, fields) : []),
      ...placesOf(fields).map(({ name, type, at }) =>
        assertField(
          record,
          name,
          byWidth(at * 4, wideOf(fields).at[name]),
          type === 'size' ? 'WEB_WIDTH(4, 8)' : sizes[type],
        ),
      ),
      assertSize(record, byWidth(wordsOf(fields) * 4, wideOf(fields).sizeBytes)),
    ]),
    ...Object.entries(read).flatMap(([record, { sizeBytes, fields }]) => [
      '',
      ...Object.entries(fields).map(([field, place]) => assertField(record, field, ...place)),
      assertSize(record, sizeBytes),
    ]),
    ...webTables(),
    '',
    '// Places in `numbers` of web/exports.c',
    ...Object.entries(results).map(([group, names]) => {
      const places = names.map((name, index) => `WEB_${upper(group)}_${upper(name)} = ${index}`);
      return `enum { ${places.join(', ')} };`;
    }),
    '',
    ...Object.entries(own).map(([name, value]) => `enum { ${name} = ${value} };`),
    '',
    ...Object.entries(constants).map(
      ([name, value]) => `_Static_assert((int64_t)${name} == ${value}, "${name}");`,
    ),
    '',
    '#endif',
    '// NOLINTEND(bugprone-sizeof-expression)',
  ];
}

/** Nothing but constants: the bundler puts them where their names are. @returns {string[]} */
function linesOfJs() {
  /** @param {string} name @param {number} value */
  const constant = (name, value) => `export const ${name} = ${value};`;
  return [
    '// js/wasm/layout.js — the memory layout that C and JavaScript of a browser build share.',
    '// `make layout` makes it of web/layout.mjs: changes go there.',
    '',
    '// Records that are filled here: how many 32-bit fields they have; of each a letter (f a float, a an address or a size, u',
    '// others), and its place.',
    ...Object.entries(filled).flatMap(([record, fields]) => [
      constant(`${bare(upper(record))}_FIELDS`, wordsOf(fields)),
      `export const ${bare(upper(record))}_KINDS = '${kindsOf(fields)}';`,
      ...placesOf(fields).map(({ name, type, at }) =>
        constant(`${bare(upper(record))}_${upper(name)}${type === 'f32' ? '_FLOAT' : ''}`, at),
      ),
    ]),
    '',
    '// Records that are read here: their sizes, and where fields begin.',
    ...Object.values(read).flatMap(({ as, sizeBytes, fields }) => [
      constant(`${upper(as)}_BYTES`, sizeBytes),
      ...Object.entries(fields).map(([name, [at]]) =>
        constant(`${upper(as)}_${upper(name)}_AT`, at),
      ),
    ]),
    constant('ERROR_MESSAGE_BYTES', read.wick_error.fields.message[1]),
    '',
    '// Places of results.',
    ...Object.entries(results).flatMap(([group, names]) =>
      names.map((name, index) => constant(`${upper(group)}_${upper(name)}`, index)),
    ),
    '',
    '// Numbers.',
    ...Object.entries({ ...constants, ...own }).map(([name, value]) => constant(bare(name), value)),
  ];
}

const isCheck = process.argv.includes('--check');

/** @param {string} file @param {string} made */
function put(file, made) {
  const path = join(root, file);
  const found = existsSync(path) ? readFileSync(path, 'utf8') : '';
  if (found === made) return;
  if (!isCheck) return writeFileSync(path, made);
  console.error(`${file} is not what web/layout.mjs and include/options.mjs say: run make layout`);
  process.exitCode = 1;
}

/** @param {string} file @param {string} part between the lines that name it @param {string[]} made */
function putPart(file, part, made) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const begin = lines.findIndex((line) => line.includes(` begin of ${part}: `)) + 1;
  const end = lines.findIndex((line) => line.includes(` end of ${part}`));
  if (begin === 0 || end < begin) throw new Error(`${file} has no part ${part}`);
  put(file, lines.toSpliced(begin, end - begin, ...made).join('\n'));
}

/** @type {[string, string[]][]} */
const files = [
  ['web/layout.h', linesOfC()],
  ['js/wasm/layout.js', linesOfJs()],
];
for (const [file, lines] of [...files, ...optionFiles()]) put(file, `${lines.join('\n')}\n`);
for (const [file, part, lines] of optionParts()) putPart(file, part, lines);
