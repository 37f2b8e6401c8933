// make layout: makes web/layout.h and js/wasm/layout.js of the list in web/layout.mjs. With --check it changes
// nothing, and fails when one of them is of another list.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, filled, own, read, results } from '../../web/layout.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const cTypes = { u32: 'uint32_t', i32: 'int32_t', f32: 'float' };

/** @param {string} name */
const upper = (name) => name.toUpperCase();
/** @param {string} name of C @returns {string} the one of JavaScript */
const bare = (name) => name.replace(/^(WICK|WEB)_/, '');

/** @param {string} record @param {string} field @param {number} at @param {number} sizeBytes */
const assertField = (record, field, at, sizeBytes) =>
  `_Static_assert(offsetof(${record}, ${field}) == ${at} && ` +
  `sizeof(((${record} *)0)->${field}) == ${sizeBytes}, "${record}.${field}");`;

/** @param {string} record @param {number} sizeBytes */
const assertSize = (record, sizeBytes) =>
  `_Static_assert(sizeof(${record}) == ${sizeBytes}, "${record}");`;

/** @param {string} record @param {Record<string, keyof typeof cTypes>} fields @returns {string[]} */
const declare = (record, fields) => [
  `typedef struct ${record} {`,
  ...Object.entries(fields).map(([field, type]) => `  ${cTypes[type]} ${field};`),
  `} ${record};`,
];

/** @returns {string[]} */
function linesOfC() {
  return [
    '// web/layout.h — what C and JavaScript of a browser build both know of memory.',
    '// `make layout` makes it of web/layout.mjs: changes go there.',
    '// clang-format off',
    '#ifndef WICK_WEB_LAYOUT_H',
    '#define WICK_WEB_LAYOUT_H',
    '',
    '#include <stddef.h>',
    '#include <stdint.h>',
    '',
    '#include "thread_web.h"',
    '#include "wick.h"',
    ...Object.entries(filled).flatMap(([record, fields]) => [
      '',
      ...(record.startsWith('web_') ? declare(record, fields) : []),
      ...Object.keys(fields).map((field, index) => assertField(record, field, index * 4, 4)),
      assertSize(record, Object.keys(fields).length * 4),
    ]),
    ...Object.entries(read).flatMap(([record, { sizeBytes, fields }]) => [
      '',
      ...Object.entries(fields).map(([field, place]) => assertField(record, field, ...place)),
      assertSize(record, sizeBytes),
    ]),
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
  ];
}

/** Nothing but constants: the bundler puts them where their names are. @returns {string[]} */
function linesOfJs() {
  /** @param {string} name @param {number} value */
  const constant = (name, value) => `export const ${name} = ${value};`;
  return [
    '// js/wasm/layout.js — what C and JavaScript of a browser build both know of memory.',
    '// `make layout` makes it of web/layout.mjs: changes go there.',
    '',
    '// Records that are filled here: how many 32-bit fields they have, and the place of each.',
    ...Object.entries(filled).flatMap(([record, fields]) => [
      constant(`${bare(upper(record))}_FIELDS`, Object.keys(fields).length),
      ...Object.entries(fields).map(([name, type], index) =>
        constant(`${bare(upper(record))}_${upper(name)}${type === 'f32' ? '_FLOAT' : ''}`, index),
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
for (const [file, lines] of /** @type {[string, string[]][]} */ ([
  ['web/layout.h', linesOfC()],
  ['js/wasm/layout.js', linesOfJs()],
])) {
  const text = `${lines.join('\n')}\n`;
  if (!isCheck) {
    writeFileSync(join(root, file), text);
  } else if (readFileSync(join(root, file), 'utf8') !== text) {
    console.error(`${file} is not what web/layout.mjs says: run make layout`);
    process.exitCode = 1;
  }
}
