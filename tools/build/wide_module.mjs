// Adds to a module with 64-bit addresses the section that js/wasm/wide_calls.js reads: it lists the 64-bit parameters and
// results of each imported and exported function. All of them are addresses and sizes, because other large numbers are passed
// as doubles (web/exports.c).
//
//   node tools/build/wide_module.mjs IN OUT

import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { leb, nameBytes, Reader, sectionsOf } from './wasm_bytes.mjs';

const [TYPES, IMPORTS, FUNCTIONS, EXPORTS] = [1, 2, 3, 7];
const I64 = 0x7e;

/**
 * @param {Buffer} bytes
 * @param {number} wanted
 * @returns {Reader} a reader positioned at the section's item count
 */
function readSection(bytes, wanted) {
  const found = sectionsOf(bytes).find(({ id }) => id === wanted);
  if (!found) throw new Error(`the module has no section ${wanted}`);
  return new Reader(bytes, found.body);
}

/** @param {Reader} reader @returns {string} one letter per value */
const kinds = (reader) =>
  Array.from({ length: reader.number() }, () =>
    reader.bytes[reader.at++] === I64 ? 'a' : '.',
  ).join('');

/** @param {Buffer} bytes @returns {{params: string, result: string}[]} */
function typesOf(bytes) {
  const reader = readSection(bytes, TYPES);
  return Array.from({ length: reader.number() }, () => {
    reader.at++; // a function
    return { params: kinds(reader), result: kinds(reader) };
  });
}

/** @param {Buffer} bytes @returns {[name: string, type: number][]} the imported functions */
function importsOf(bytes) {
  const reader = readSection(bytes, IMPORTS);
  return Array.from({ length: reader.number() }, () => {
    const { at } = reader;
    if (!reader.skipImport()) return undefined;
    const again = new Reader(bytes, at);
    again.skipName();
    const name = again.name();
    again.at++;
    return /** @type {[string, number]} */ ([name, again.number()]);
  }).filter((one) => one !== undefined);
}

/** @param {Buffer} bytes @param {number} imported @returns {[name: string, type: number][]} the exported functions */
function exportsOf(bytes, imported) {
  const functions = readSection(bytes, FUNCTIONS);
  const types = Array.from({ length: functions.number() }, () => functions.number());
  const reader = readSection(bytes, EXPORTS);
  return Array.from({ length: reader.number() }, () => {
    const name = reader.name();
    const kind = reader.bytes[reader.at++];
    const index = reader.number();
    return /** @type {[string, number]} */ ([name, kind === 0 ? types[index - imported] : -1]);
  }).filter(([, type]) => type >= 0);
}

const [from, to] = process.argv.slice(2);
const bytes = readFileSync(from);
const types = typesOf(bytes);
const imports = importsOf(bytes);
const found = [...imports, ...exportsOf(bytes, imports.length)];
const names = new Set(found.map(([name]) => name));
if (names.size < found.length)
  throw new Error('an imported and an exported function have the same name');
const calls = found
  .map(([name, type]) => /** @type {const} */ ([name, types[type]]))
  .filter(([, { params, result }]) => `${params}${result}`.includes('a'));
const text = Buffer.from(JSON.stringify(Object.fromEntries(calls)));
const body = Buffer.concat([nameBytes('wick.wide'), text]);
writeFileSync(to, Buffer.concat([bytes, Buffer.from([0, ...leb(body.length)]), body]));
