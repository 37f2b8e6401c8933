// Splits a GGUF file and reassembles it with different keys and additional tensors.

import { readFileSync, writeFileSync } from 'node:fs';
import { pair, string, types, u32, u64 } from './gguf_bytes.mjs';

const ALIGNMENT = 32;
const F32 = 0;
/** Sizes in bytes of value types, except strings and arrays. */
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

/**
 * @param {Buffer} file
 * @param {number} at
 * @param {number} type
 * @returns {number} the offset where the value ends
 */
function valueEnd(file, at, type) {
  if (type === types.string) return at + 8 + Number(file.readBigUInt64LE(at));
  if (type !== types.array) return at + SIZES[type];
  const itemType = file.readUInt32LE(at);
  const count = Number(file.readBigUInt64LE(at + 4));
  let end = at + 12;
  for (let i = 0; i < count; i++) end = valueEnd(file, end, itemType);
  return end;
}

/**
 * Reads the pieces of a GGUF file of version 3: its keys with their values as bytes, the offset of its
 * tensor data, and the shapes (row length first), types and offsets of its tensors.
 * @param {string} path
 */
export function readPieces(path) {
  const file = readFileSync(path);
  const tensorCount = Number(file.readBigUInt64LE(8));
  const keyCount = Number(file.readBigUInt64LE(16));
  /** @type {Map<string, Buffer>} */
  const keys = new Map();
  let at = 24;
  for (let i = 0; i < keyCount; i++) {
    const nameEnd = valueEnd(file, at, types.string);
    const end = valueEnd(file, nameEnd + 4, file.readUInt32LE(nameEnd));
    keys.set(file.toString('utf8', at + 8, nameEnd), file.subarray(at, end));
    at = end;
  }
  /** @type {Map<string, {entry: Buffer, dims: number[], type: number, offset: number}>} */
  const tensors = new Map();
  for (let i = 0; i < tensorCount; i++) {
    const begin = at;
    at = valueEnd(file, at, types.string);
    const name = file.toString('utf8', begin + 8, at);
    const dims = Array.from({ length: file.readUInt32LE(at) }, (_, d) =>
      Number(file.readBigUInt64LE(at + 4 + 8 * d)),
    );
    at += 4 + 8 * dims.length + 4 + 8;
    const type = file.readUInt32LE(at - 12);
    const offset = Number(file.readBigUInt64LE(at - 8));
    tensors.set(name, { entry: file.subarray(begin, at), dims, type, offset });
  }
  return { keys, tensors, data: file.subarray(padded(at)) };
}

/** @typedef {ReturnType<typeof readPieces>} Pieces */

/** @param {number} size */
const padded = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** @param {Pieces} pieces @returns {Buffer} the file */
export function writePieces({ keys, tensors, data }) {
  const entries = [...tensors.values()].map(({ entry }) => entry);
  const head = [Buffer.from('GGUF'), u32(3), u64(tensors.size), u64(keys.size)];
  const begin = Buffer.concat([...head, ...keys.values(), ...entries]);
  return Buffer.concat([begin, Buffer.alloc(padded(begin.length) - begin.length), data]);
}

/**
 * Adds a tensor after the others.
 * @param {Pieces} pieces
 * @param {string} name
 * @param {number[]} dims row length first
 * @param {Float32Array} values
 */
export function addTensor(pieces, name, dims, values) {
  const offset = padded(pieces.data.length);
  const gap = Buffer.alloc(offset - pieces.data.length);
  const entry = [string(name), u32(dims.length), ...dims.map(u64), u32(F32), u64(offset)];
  pieces.tensors.set(name, { entry: Buffer.concat(entry), dims, type: F32, offset });
  pieces.data = Buffer.concat([pieces.data, gap, Buffer.from(values.buffer)]);
}

/** @param {Pieces} pieces @param {string} name @returns {Float32Array | undefined} values of an F32 tensor */
export function tensorValues({ tensors, data }, name) {
  const tensor = tensors.get(name);
  if (tensor === undefined) return undefined;
  if (tensor.type !== F32) throw new Error(`${name} is not F32`);
  const count = tensor.dims.reduce((a, b) => a * b, 1);
  return Float32Array.from({ length: count }, (_, i) => data.readFloatLE(tensor.offset + 4 * i));
}

/**
 * Reads a number, or an array of booleans.
 * @param {Pieces} pieces
 * @param {string} name
 * @returns {any} undefined if there is no such key
 */
export function keyValue({ keys }, name) {
  const bytes = keys.get(name);
  if (bytes === undefined) return undefined;
  const at = 8 + Buffer.byteLength(name);
  const type = bytes.readUInt32LE(at);
  if (type === types.u32) return bytes.readUInt32LE(at + 4);
  if (type === types.f32) return bytes.readFloatLE(at + 4);
  if (type !== types.array) throw new Error(`${name} is not a number`);
  return Array.from(bytes.subarray(at + 16), (byte) => byte !== 0);
}

/**
 * Writes a model with different chat templates: `tokenizer.chat_template.NAME`, or the default
 * template if the name is empty.
 * @param {string} from
 * @param {Record<string, string>} templates
 * @param {string} to
 */
export function writeTemplates(from, templates, to) {
  const pieces = readPieces(from);
  for (const [name, text] of Object.entries(templates)) {
    const key = `tokenizer.chat_template${name && `.${name}`}`;
    pieces.keys.set(key, pair(key, types.string, string(text)));
  }
  writeFileSync(to, writePieces(pieces));
}

/**
 * Writes a model with additional numeric or boolean keys, such as
 * `tokenizer.ggml.fim_pre_token_id`.
 * @param {string} from
 * @param {Record<string, number | boolean>} values
 * @param {string} to
 */
export function writeNumbers(from, values, to) {
  const pieces = readPieces(from);
  for (const [key, value] of Object.entries(values)) {
    const isFlag = typeof value === 'boolean';
    const bytes = isFlag ? Buffer.from([Number(value)]) : u32(value);
    pieces.keys.set(key, pair(key, isFlag ? types.bool : types.u32, bytes));
  }
  writeFileSync(to, writePieces(pieces));
}

/**
 * Writes a Q8_0 model in which inputs that contain the given token have non-finite vectors.
 * @param {string} from
 * @param {number} token
 * @param {string} to
 */
export function poisonToken(from, token, to) {
  const [blockRow, blockBytes, nanF16] = [32, 34, 0x7e00];
  const pieces = readPieces(from);
  const embedding = pieces.tensors.get('token_embd.weight');
  if (!embedding) throw new Error(`${from} has no token_embd.weight`);
  const data = Buffer.from(pieces.data);
  const rowBytes = (embedding.dims[0] / blockRow) * blockBytes;
  data.writeUInt16LE(nanF16, embedding.offset + token * rowBytes);
  writeFileSync(to, writePieces({ ...pieces, data }));
}
