// js/bytes/given_sources.js — models whose bytes the caller has or can get: in memory, or in pieces by a function
// (object storage, a cache, a binding).

import { WickError, wordsOf } from '../base/errors.js';
import { fileIsMissing } from './split_files.js';

/** @typedef {import('./model_sources.js').ByteStream} ByteStream */
/** @typedef {import('../edge.js').ReadRange} ReadRange */

/** Pieces that are copied into the module one by one. */
const PIECE_BYTES = 1 << 20;
/** What is asked for at once: each question costs a round trip, and on some hosts money. */
const RANGE_BYTES = 4 << 20;

/**
 * A stream over bytes that can be had from any place.
 * @param {number} file
 * @param {number} offset
 * @param {number | undefined} size of the file, if it is known
 * @param {(position: number) => Uint8Array | Promise<Uint8Array>} take the bytes from there on, none at the end
 * @returns {ByteStream}
 */
function streamOf(file, offset, size, take) {
  if (file > 0) throw fileIsMissing(file, 1);
  /** @type {ByteStream} */
  const stream = {
    position: offset,
    size,
    async read() {
      const bytes = await take(stream.position);
      stream.position += bytes.byteLength;
      return bytes.byteLength > 0 ? bytes : null;
    },
    cancel() {},
  };
  return stream;
}

/** A model in memory. */
export class BytesSource {
  canSeek = true;
  files = 1;
  #bytes;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  /** @param {number} file @param {number} offset @returns {Promise<ByteStream>} */
  async open(file, offset) {
    const bytes = this.#bytes;
    return streamOf(file, offset, bytes.byteLength, (at) => bytes.subarray(at, at + PIECE_BYTES));
  }
}

/** A model that the caller's function reads. */
export class RangeSource {
  canSeek = true;
  files = 1;
  #range;

  /** @param {ReadRange} range */
  constructor(range) {
    this.#range = range;
  }

  /** @param {number} file @param {number} offset @returns {Promise<ByteStream>} */
  async open(file, offset) {
    return streamOf(file, offset, undefined, (at) => readRange(this.#range, at));
  }
}

/** @param {ReadRange} range @param {number} offset @returns {Promise<Uint8Array>} none at the end of the file */
async function readRange(range, offset) {
  const bytes = await bytesOf(range, offset);
  if (bytes.byteLength <= RANGE_BYTES) return bytes;
  const words = `range gave ${bytes.byteLength} bytes where ${RANGE_BYTES} were asked for`;
  throw new WickError('ARG', `${words}: it must give those from the offset on, and no more`);
}

/** @param {ReadRange} range @param {number} offset */
async function bytesOf(range, offset) {
  /** @type {any} */
  let found;
  try {
    found = await range(offset, RANGE_BYTES);
    if (typeof found?.arrayBuffer === 'function') {
      if (found.ok === false) throw new Error(`it has status ${found.status}`);
      found = await found.arrayBuffer();
    }
  } catch (error) {
    throw new WickError('IO', `range(${offset}) failed: ${wordsOf(error)}`, error);
  }
  if (found instanceof ArrayBuffer) return new Uint8Array(found);
  if (found instanceof Uint8Array) return found;
  throw new WickError('ARG', 'range must give bytes, or what has them as arrayBuffer()');
}
