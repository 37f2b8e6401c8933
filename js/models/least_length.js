// js/models/least_length.js — the minimum length of a GGUF file, computed from its directory. A
// shorter download is not complete, regardless of what its server reports.

import { WickError } from '../base/errors.js';

/**
 * The number of values per block and the block's size in bytes, by type number
 * (src/format/types.c).
 * @type {Record<number, [number, number]>}
 */
const BLOCKS = {
  0: [1, 4],
  1: [1, 2],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  8: [32, 34],
  9: [32, 36],
  10: [256, 84],
  11: [256, 110],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
  15: [256, 292],
  16: [256, 66],
  17: [256, 74],
  18: [256, 98],
  19: [256, 50],
  20: [32, 18],
  21: [256, 110],
  22: [256, 82],
  23: [256, 136],
  24: [1, 1],
  25: [1, 2],
  26: [1, 4],
  27: [1, 8],
  28: [1, 8],
  29: [256, 56],
  30: [1, 2],
  34: [256, 54],
  35: [256, 66],
  39: [32, 17],
  40: [64, 36],
  41: [128, 18],
};
/** Sizes of metadata values in bytes, by type; strings and arrays have no fixed size. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const [U32, STRING, ARRAY] = [4, 8, 9];
/** Limits of the directories that the engine accepts (src/format/gguf.h). */
const COUNT_MAX = 65536;
const DIRECTORY_BYTES_MAX = 512 << 20;
const DIMS_MAX = 4;
const ALIGNMENT = 32;
const ALIGNMENT_MAX = 1 << 20;

/** Thrown if the directory cannot be parsed here. The engine reports its errors. */
class Unreadable extends Error {}

/** Reads a file sequentially from its first byte. */
class Reader {
  position = 0;
  #chunk;
  #chunkBytes;
  /** Bytes from offset `#start`. */
  #view = new DataView(new ArrayBuffer(0));
  #start = 0;
  #next = 0;

  /** @param {(index: number) => Promise<Uint8Array | undefined>} chunk @param {number} chunkBytes */
  constructor(chunk, chunkBytes) {
    this.#chunk = chunk;
    this.#chunkBytes = chunkBytes;
  }

  /** @param {number} size @returns {Promise<number>} the offset of its bytes in the view */
  async #take(size) {
    const at = this.position;
    this.position += size;
    if (this.position > DIRECTORY_BYTES_MAX) throw new Unreadable();
    while (this.position > this.#start + this.#view.byteLength) await this.#load(at);
    return at - this.#start;
  }

  /** @param {number} from the offset before which no bytes are needed */
  async #load(from) {
    const kept = Math.max(0, this.#start + this.#view.byteLength - from);
    if (kept === 0) this.#next = Math.floor(from / this.#chunkBytes);
    const bytes = await this.#chunk(this.#next);
    if (!bytes || this.#next * this.#chunkBytes + bytes.byteLength <= from) throw new Ended();
    const whole = new Uint8Array(kept + bytes.byteLength);
    whole.set(new Uint8Array(this.#view.buffer).subarray(this.#view.byteLength - kept));
    whole.set(bytes, kept);
    this.#start = this.#next * this.#chunkBytes - kept;
    this.#view = new DataView(whole.buffer);
    this.#next++;
  }

  async u32() {
    const at = await this.#take(4);
    return this.#view.getUint32(at, true);
  }

  async u64() {
    const at = await this.#take(8);
    const value = this.#view.getBigUint64(at, true);
    if (value > Number.MAX_SAFE_INTEGER) throw new Unreadable();
    return Number(value);
  }

  /** @param {number} size */
  skip(size) {
    this.position += size;
    if (this.position > DIRECTORY_BYTES_MAX) throw new Unreadable();
  }

  async string() {
    const size = await this.u64();
    if (size > COUNT_MAX) throw new Unreadable();
    const at = await this.#take(size);
    return new TextDecoder().decode(new Uint8Array(this.#view.buffer, at, size));
  }

  async skipString() {
    this.skip(await this.u64());
  }
}

/** Thrown if the file ends within its directory. */
class Ended extends Error {}

/** @param {Reader} reader @param {number} type @param {number} depth of arrays */
async function skipValue(reader, type, depth = 0) {
  if (type === STRING) return reader.skipString();
  if (type !== ARRAY) {
    if (!(type in VALUE_BYTES)) throw new Unreadable();
    return reader.skip(VALUE_BYTES[type]);
  }
  if (depth > 1) throw new Unreadable();
  const of = await reader.u32();
  const count = await reader.u64();
  if (of !== STRING && of !== ARRAY && of in VALUE_BYTES)
    return reader.skip(count * VALUE_BYTES[of]);
  for (let index = 0; index < count; index++) await skipValue(reader, of, depth + 1);
}

/** @param {Reader} reader @param {number} values @returns {Promise<number>} the alignment of the tensors */
async function skipValues(reader, values) {
  let alignment = ALIGNMENT;
  for (let index = 0; index < values; index++) {
    const key = await reader.string();
    const type = await reader.u32();
    if (key === 'general.alignment' && type === U32) alignment = await reader.u32();
    else await skipValue(reader, type);
  }
  if (alignment === 0 || alignment > ALIGNMENT_MAX) throw new Unreadable();
  return alignment;
}

/**
 * @param {Reader} reader
 * @returns {Promise<number>} the end of a tensor, relative to the beginning of the first one
 */
async function endOfTensor(reader) {
  await reader.skipString();
  const dims = await reader.u32();
  if (dims > DIMS_MAX) throw new Unreadable();
  let count = 1;
  for (let dim = 0; dim < dims; dim++) count *= await reader.u64();
  const [values, bytes] = BLOCKS[await reader.u32()] ?? [count + 1, 0];
  return (await reader.u64()) + Math.floor(count / values) * bytes;
}

/** @param {Reader} reader */
async function lengthOf(reader) {
  const magic = await reader.u32();
  const version = await reader.u32();
  if (magic !== 0x46554747 || (version !== 2 && version !== 3)) throw new Unreadable();
  const tensors = await reader.u64();
  const values = await reader.u64();
  if (tensors > COUNT_MAX || values > COUNT_MAX) throw new Unreadable();
  const alignment = await skipValues(reader, values);
  let end = 0;
  for (let index = 0; index < tensors; index++) end = Math.max(end, await endOfTensor(reader));
  const first = Math.ceil(reader.position / alignment) * alignment;
  if (!Number.isSafeInteger(first + end)) throw new Unreadable();
  return end === 0 ? reader.position : first + end;
}

/**
 * @param {(index: number) => Promise<Uint8Array | undefined>} chunk returns undefined after the
 * file's end
 * @param {number} chunkBytes size of all chunks except the last
 * @returns {Promise<number>} 0 if the directory cannot be read
 */
export async function leastLength(chunk, chunkBytes) {
  const reader = new Reader(chunk, chunkBytes);
  try {
    return await lengthOf(reader);
  } catch (error) {
    if (error instanceof Ended) return reader.position;
    if (error instanceof Unreadable) return 0;
    throw error;
  }
}

/**
 * Rejects a file that is shorter than its directory requires (TRUNCATED).
 * @param {{name: string, size: number}} file
 * @param {Parameters<typeof leastLength>[0]} chunk
 * @param {number} chunkBytes
 */
export async function refuseTruncated({ name, size }, chunk, chunkBytes) {
  const least = await leastLength(chunk, chunkBytes);
  if (size >= least) return;
  throw new WickError(
    'TRUNCATED',
    `${name}: file ends after ${size} bytes, but its directory requires ${least}. Download the file again`,
    { size, least },
  );
}
