// Renames the symbols of a WebAssembly object file, in the symbol table (custom section "linking" of
// the tool conventions) and in the import section, where undefined functions are listed by name.
// (llvm-objcopy renames only symbols of ELF files.)
// https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md

const CUSTOM_SECTION = 0;
const IMPORT_SECTION = 2;
const SYMBOL_TABLE = 8;
const SYMBOL_DATA = 1;
const SYMBOL_SECTION = 3;
const FLAG_UNDEFINED = 0x10;
const FLAG_EXPLICIT_NAME = 0x40;
const HEADER_BYTES = 8;

/** @param {Uint8Array} bytes @returns {boolean} */
export const isWasm = (bytes) => Buffer.from(bytes.subarray(0, 4)).toString('latin1') === '\0asm';

class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get isAtEnd() {
    return this.at >= this.bytes.length;
  }

  /** @returns {number} an unsigned LEB128 number */
  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.isAtEnd) throw new Error('the object file is truncated');
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** @param {number} size @returns {Uint8Array} the given number of bytes */
  take(size) {
    if (this.at + size > this.bytes.length) throw new Error('the object file is truncated');
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  /** @returns {string} */
  name() {
    return Buffer.from(this.take(this.number())).toString('utf8');
  }
}

/** @param {number} value @returns {number[]} */
function leb(value) {
  return value < 128 ? [value] : [(value % 128) | 128, ...leb(Math.floor(value / 128))];
}

/** @param {string} text @returns {Buffer} */
const nameBytes = (text) =>
  Buffer.concat([Buffer.from(leb(Buffer.byteLength(text))), Buffer.from(text)]);

/** @param {number} id @param {Uint8Array} payload @returns {Buffer} a section or subsection */
const part = (id, payload) => Buffer.concat([Buffer.from([id, ...leb(payload.length)]), payload]);

/** Skips the limits of a table or a memory. @param {Reader} reader */
function skipLimits(reader) {
  const flags = reader.number();
  reader.number();
  if (flags & 1) reader.number();
}

/**
 * Skips the bytes after the kind of an import: a function, table, memory, global or tag.
 * @param {Reader} reader
 */
function skipImportType(reader) {
  const kind = reader.number();
  if (kind === 0) reader.number();
  else if (kind === 1) {
    reader.number();
    skipLimits(reader);
  } else if (kind === 2) skipLimits(reader);
  else if (kind === 3 || kind === 4) reader.take(2);
  else throw new Error(`unknown kind of import: ${kind}`);
}

/** @typedef {(name: string) => string} Rename */

/** @param {Uint8Array} payload @param {Rename} rename @returns {Buffer} */
function renameImports(payload, rename) {
  const reader = new Reader(payload);
  const count = reader.number();
  /** @type {Uint8Array[]} */
  const out = [Buffer.from(leb(count))];
  for (let i = 0; i < count; i++) {
    out.push(nameBytes(reader.name()), nameBytes(rename(reader.name())));
    const begin = reader.at;
    skipImportType(reader);
    out.push(Buffer.from(payload.subarray(begin, reader.at)));
  }
  return Buffer.concat(out);
}

/** @param {Reader} reader @param {Rename} rename @returns {Buffer} an entry of the symbol table */
function renameSymbol(reader, rename) {
  const [kind] = reader.take(1);
  const flags = reader.number();
  const head = Buffer.from([kind, ...leb(flags)]);
  const isUndefined = (flags & FLAG_UNDEFINED) !== 0;
  if (kind === SYMBOL_SECTION) return Buffer.concat([head, Buffer.from(leb(reader.number()))]);
  if (kind === SYMBOL_DATA) {
    const name = nameBytes(rename(reader.name()));
    const place = isUndefined ? [] : [reader.number(), reader.number(), reader.number()];
    return Buffer.concat([head, name, Buffer.from(place.flatMap(leb))]);
  }
  const index = Buffer.from(leb(reader.number()));
  if (isUndefined && !(flags & FLAG_EXPLICIT_NAME)) return Buffer.concat([head, index]);
  return Buffer.concat([head, index, nameBytes(rename(reader.name()))]);
}

/** @param {Uint8Array} payload of the section "linking" @param {Rename} rename @returns {Buffer} */
function renameLinking(payload, rename) {
  const reader = new Reader(payload);
  /** @type {Uint8Array[]} */
  const out = [nameBytes(reader.name()), Buffer.from(leb(reader.number()))];
  while (!reader.isAtEnd) {
    const [kind] = reader.take(1);
    const body = reader.take(reader.number());
    if (kind !== SYMBOL_TABLE) {
      out.push(part(kind, body));
      continue;
    }
    const symbols = new Reader(body);
    const count = symbols.number();
    /** @type {Uint8Array[]} */
    const table = [Buffer.from(leb(count))];
    for (let i = 0; i < count; i++) table.push(renameSymbol(symbols, rename));
    out.push(part(kind, Buffer.concat(table)));
  }
  return Buffer.concat(out);
}

/**
 * @param {Uint8Array} object
 * @param {Map<string, string>} names the new names of symbols, defined or undefined
 * @returns {Buffer}
 */
export function renameSymbols(object, names) {
  const rename = (/** @type {string} */ name) => names.get(name) ?? name;
  const reader = new Reader(object);
  /** @type {Uint8Array[]} */
  const out = [Buffer.from(reader.take(HEADER_BYTES))];
  while (!reader.isAtEnd) {
    const [id] = reader.take(1);
    const payload = reader.take(reader.number());
    const isLinking = id === CUSTOM_SECTION && new Reader(payload).name() === 'linking';
    if (isLinking) out.push(part(id, renameLinking(payload, rename)));
    else if (id === IMPORT_SECTION) out.push(part(id, renameImports(payload, rename)));
    else out.push(part(id, payload));
  }
  return Buffer.concat(out);
}
