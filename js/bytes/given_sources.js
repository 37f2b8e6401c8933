// js/bytes/given_sources.js — sources for models whose bytes the caller has in memory.

import { SeekableSource } from './seekable_source.js';

/** @import { ByteStream } from './model_sources.js' */

/** The size of the pieces that are copied into the module. */
const PIECE_BYTES = 1 << 20;

/** A model in memory. */
export class BytesSource extends SeekableSource {
  /** @param {Uint8Array} all */
  constructor(all) {
    super(1, (_, offset) => {
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
    });
  }
}
