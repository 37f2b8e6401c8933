// Moves constant data (strings and tables) that only the functions of one part read into that
// part's module. The linker's relocations (--emit-relocs) and symbols show which function reads
// which data, and which data points to other data.
// https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md

import { leb, Reader, sectionsOf } from './wasm_bytes.mjs';

const CODE_SECTION = 10;
const DATA_SECTION = 11;
const SYMBOL_TABLE = 8;
const SYMBOL_DATA = 1;
const SYMBOL_SECTION = 3;
const FLAG_UNDEFINED = 0x10;
const FLAG_EXPLICIT_NAME = 0x40;
/** Relocation types with an addend, and relocation types that refer to addresses of data. */
const WITH_ADDEND = [3, 4, 5, 8, 9, 11];
const OF_MEMORY = [3, 4, 5, 11];
/**
 * Pieces with a smaller gap between them are merged, because a separate segment costs more. The
 * bytes of the gap are constant, too.
 */
const GAP_BYTES = 8;
const I32_CONST = 0x41;
const END = 0x0b;
const MAIN = 128;

/** @typedef {{begin: number, end: number}} Range a range of bytes in the file */
/** @typedef {{address: number, bytes: Buffer}} Piece */

/**
 * @param {Buffer} bytes
 * @param {string} wanted
 * @returns {Reader} a reader positioned after the name of the custom section
 */
function customSection(bytes, wanted) {
  for (const { id, body } of sectionsOf(bytes)) {
    const reader = new Reader(bytes, body);
    if (id === 0 && reader.name() === wanted) return reader;
  }
  throw new Error(`the linked module has no section ${wanted}`);
}

/** @param {Buffer} bytes @param {number} wanted @returns {import('./wasm_bytes.mjs').Section} */
function sectionOf(bytes, wanted) {
  const found = sectionsOf(bytes).find(({ id }) => id === wanted);
  if (!found) throw new Error(`the linked module has no section ${wanted}`);
  return found;
}

/** @param {Buffer} bytes @returns {Range[]} the bytes of each segment */
function segmentsOf(bytes) {
  const reader = new Reader(bytes, sectionOf(bytes, DATA_SECTION).body);
  return Array.from({ length: reader.number() }, () => {
    const flags = reader.number();
    if (flags === 2) reader.number();
    if (flags !== 1) {
      reader.at++; // i32.const
      reader.signed();
      reader.at++; // end
    }
    const size = reader.number();
    const begin = reader.at;
    reader.at += size;
    return { begin, end: reader.at };
  });
}

/**
 * @param {Buffer} bytes
 * @param {Range[]} segments
 * @returns {(Range | undefined)[]} the range of each data symbol
 */
function symbolsOf(bytes, segments) {
  const reader = customSection(bytes, 'linking');
  reader.number();
  while (reader.bytes[reader.at] !== SYMBOL_TABLE) {
    reader.at++;
    const size = reader.number();
    reader.at += size;
  }
  reader.at++;
  reader.number();
  return Array.from({ length: reader.number() }, () => {
    const kind = reader.bytes[reader.at++];
    const flags = reader.number();
    const isUndefined = (flags & FLAG_UNDEFINED) !== 0;
    if (kind === SYMBOL_DATA) {
      reader.skipName();
      if (isUndefined) return undefined;
      const { begin } = segments[reader.number()];
      const offset = reader.number();
      return { begin: begin + offset, end: begin + offset + reader.number() };
    }
    reader.number();
    if (kind !== SYMBOL_SECTION && (!isUndefined || (flags & FLAG_EXPLICIT_NAME) !== 0)) {
      reader.skipName();
    }
    return undefined;
  });
}

/** @param {Buffer} bytes @param {string} name @param {number} section @returns {{at: number, symbol: number}[]} the relocated addresses */
function addressesIn(bytes, name, section) {
  const { body } = sectionOf(bytes, section);
  const reader = customSection(bytes, name);
  reader.number();
  return Array.from({ length: reader.number() }, () => {
    const type = reader.bytes[reader.at++];
    const at = body + reader.number();
    const symbol = reader.number();
    if (WITH_ADDEND.includes(type)) reader.signed();
    return { at, symbol, isAddress: OF_MEMORY.includes(type) };
  }).filter(({ isAddress }) => isAddress);
}

/** @param {Buffer} bytes @returns {Range[]} the bodies of the defined functions */
function functionsOf(bytes) {
  const reader = new Reader(bytes, sectionOf(bytes, CODE_SECTION).body);
  return Array.from({ length: reader.number() }, () => {
    const size = reader.number();
    const begin = reader.at;
    reader.at += size;
    return { begin, end: reader.at };
  });
}

/**
 * @param {Buffer} bytes the linked module
 * @param {number[]} owners
 * @returns {Uint8Array} the readers of each byte of the file's data: MAIN, and 1 << part
 */
function readersOf(bytes, owners) {
  const readers = new Uint8Array(bytes.length);
  const symbols = symbolsOf(bytes, segmentsOf(bytes));
  const seen = new Uint8Array(symbols.length);
  const inData = addressesIn(bytes, 'reloc.DATA', DATA_SECTION);
  /** @type {{symbol: number, bit: number}[]} */
  const found = [];
  const functions = functionsOf(bytes);
  let current = 0;
  for (const { at, symbol } of addressesIn(bytes, 'reloc.CODE', CODE_SECTION)) {
    while (at >= functions[current].end) current++;
    found.push({ symbol, bit: owners[current] < 0 ? MAIN : 1 << owners[current] });
  }
  for (let one = found.pop(); one; one = found.pop()) {
    const { symbol, bit } = one;
    const range = symbols[symbol];
    if (!range || (seen[symbol] & bit) !== 0) continue;
    seen[symbol] |= bit;
    for (let at = range.begin; at < range.end; at++) readers[at] |= bit;
    for (const { at, symbol: target } of inData) {
      if (at >= range.begin && at < range.end) found.push({ symbol: target, bit });
    }
  }
  return readers;
}

/**
 * Removes data that only one part reads from the constant data at the beginning of the linked data,
 * and leaves zeros in its place.
 * @param {Buffer} bytes the linked module, which is changed
 * @param {number[]} owners the part of each defined function, or -1
 * @param {number} parts the number of parts
 * @param {number} address of the constant data
 * @returns {Piece[][]} the data of each part
 */
export function takeData(bytes, owners, parts, address) {
  const readers = readersOf(bytes, owners);
  const [{ begin, end }] = segmentsOf(bytes);
  const original = Buffer.from(bytes.subarray(begin, end));
  return Array.from({ length: parts }, (_, part) => {
    /** @type {Range[]} */
    const ranges = [];
    for (let at = 0; at < original.length; at++) {
      if (readers[begin + at] !== 1 << part) continue;
      bytes[begin + at] = 0;
      const last = ranges.at(-1);
      if (last && at - last.end <= GAP_BYTES) last.end = at + 1;
      else ranges.push({ begin: at, end: at + 1 });
    }
    return ranges.map((range) => ({
      address: address + range.begin,
      bytes: original.subarray(range.begin, range.end),
    }));
  });
}

/** @param {number} value at least 0 @returns {number[]} a signed LEB128 number */
const signedLeb = (value) =>
  value < 64 ? [value] : [(value & 127) | 128, ...signedLeb(Math.floor(value / 128))];

/** @param {Buffer} bytes a part's module, without data @param {Piece[]} pieces @returns {Buffer} */
export function appendData(bytes, pieces) {
  if (sectionsOf(bytes).some(({ id }) => id === DATA_SECTION))
    throw new Error('the part already has data');
  if (pieces.length === 0) return bytes;
  const segments = pieces.map((piece) =>
    Buffer.concat([
      Buffer.from([0, I32_CONST, ...signedLeb(piece.address), END, ...leb(piece.bytes.length)]),
      piece.bytes,
    ]),
  );
  const body = Buffer.concat([Buffer.from(leb(pieces.length)), ...segments]);
  const sections = sectionsOf(bytes).filter(({ id }) => id !== 0);
  return Buffer.concat([
    bytes.subarray(0, sections[0].begin),
    ...sections.map(({ begin, end }) => bytes.subarray(begin, end)),
    Buffer.from([DATA_SECTION, ...leb(body.length)]),
    body,
  ]);
}
