// js/bytes/given_sources.js — sources for models whose bytes the caller has in memory.

import { fileIsMissing } from './split_files.js';

/** @typedef {import('./model_sources.js').ByteStream} ByteStream */

/** The size of the pieces that are copied into the module. */
const PIECE_BYTES = 1 << 20;

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
    if (file > 0) throw fileIsMissing(file, 1);
    const all = this.#bytes;
    /** @type {ByteStream} */
    const stream = {
      position: offset,
      size: all.byteLength,
      async read() {
        const bytes = all.subarray(stream.position, stream.position + PIECE_BYTES);
        stream.position += bytes.byteLength;
        return bytes.byteLength > 0 ? bytes : null;
      },
      cancel() {},
    };
    return stream;
  }
}
