// Reads and writes the parts of the WebAssembly binary format that split.mjs and part_data.mjs need.

const IMPORT_SECTION = 2;
const FUNCTION_SECTION = 3;
const HEADER_BYTES = 8;

/** @param {number} value @returns {number[]} */
export const leb = (value) =>
  value < 128 ? [value] : [(value & 127) | 128, ...leb(Math.floor(value / 128))];

/** @param {string} text */
export const nameBytes = (text) =>
  Buffer.concat([Buffer.from(leb(Buffer.byteLength(text))), Buffer.from(text)]);

export class Reader {
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

  /** @returns {number} a signed LEB128 number of at most 32 bits */
  signed() {
    let [value, shift, byte] = [0, 0, 0];
    do {
      byte = this.bytes[this.at++];
      value |= (byte & 127) << shift;
      shift += 7;
    } while (byte >= 128);
    return shift < 32 && (byte & 64) !== 0 ? value | (-1 << shift) : value;
  }

  name() {
    const size = this.number();
    this.at += size;
    return this.bytes.toString('utf8', this.at - size, this.at);
  }

  skipName() {
    this.name();
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

/** @typedef {{id: number, begin: number, body: number, end: number}} Section `body`: the offset after its size */

/** @param {Buffer} bytes a module @returns {Section[]} */
export function sectionsOf(bytes) {
  /** @type {Section[]} */
  const sections = [];
  for (let at = HEADER_BYTES; at < bytes.length; ) {
    const reader = new Reader(bytes, at + 1);
    const size = reader.number();
    sections.push({ id: bytes[at], begin: at, body: reader.at, end: reader.at + size });
    at = reader.at + size;
  }
  return sections;
}

/**
 * @param {Buffer} bytes a module
 * @returns {{sections: Buffer[], imported: number, defined: number}} all sections except custom
 * ones, and the numbers of functions
 */
export function readModule(bytes) {
  /** @type {Buffer[]} */
  const sections = [];
  let [imported, defined] = [0, 0];
  for (const { id, begin, body, end } of sectionsOf(bytes)) {
    const reader = new Reader(bytes, body);
    if (id !== 0) sections.push(bytes.subarray(begin, end));
    if (id === FUNCTION_SECTION) defined = reader.number();
    if (id === IMPORT_SECTION) {
      for (let left = reader.number(); left > 0; left--) imported += Number(reader.skipImport());
    }
  }
  return { sections, imported, defined };
}
