// js/bytes/blob_stream.js — streams the bytes of a Blob from an offset.

import { bytesOfBlob } from '../base/blob_bytes.js';
import { WickError } from '../base/errors.js';

const PIECE_BYTES = 1 << 20;

/** Reads in pieces, so that a whole model is never in JavaScript's memory. */
export class BlobStream {
  #blob;

  /** @param {Blob} blob @param {number} position */
  constructor(blob, position) {
    this.#blob = blob;
    this.position = position;
    this.size = blob.size;
  }

  async read() {
    if (this.position >= this.size) return null;
    const piece = this.#blob.slice(this.position, this.position + PIECE_BYTES);
    const bytes = new Uint8Array(await readBlob(piece));
    this.position += bytes.byteLength;
    return bytes;
  }

  cancel() {}
}

/** @param {Blob} blob */
export async function readBlob(blob) {
  try {
    return await bytesOfBlob(blob);
  } catch (error) {
    // the file of a File was changed or removed after the user chose it
    throw new WickError('IO', `The file could not be read: ${error}`, error);
  }
}
