// js/bytes/seekable_source.js — a source whose files can be opened at any offset.

import { fileIsMissing } from './split_files.js';

/** @import { ByteStream } from './model_sources.js' */

export class SeekableSource {
  canSeek = true;
  #open;

  /** @param {number} files @param {(file: number, offset: number) => ByteStream | Promise<ByteStream>} open */
  constructor(files, open) {
    this.files = files;
    this.#open = open;
  }

  /** @param {number} file @param {number} offset @returns {Promise<ByteStream>} */
  async open(file, offset) {
    if (file >= this.files) throw fileIsMissing(file, this.files);
    return this.#open(file, offset);
  }
}
