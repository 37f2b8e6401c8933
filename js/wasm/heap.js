// js/wasm/heap.js — the only file that reads and writes the module's memory. Addresses are unsigned, because a
// heap may reach above 2 GiB. Views are made again after the memory has grown. Other files get copies of bytes, because
// TextDecoder refuses shared memory.

import {
  ERROR_MESSAGE_AT,
  ERROR_MESSAGE_BYTES,
  ERROR_NUMBERS_AT,
  ERROR_OFFSET_BYTES_AT,
  ERROR_STATUS_AT,
  ERROR_SUBJECT_AT,
} from './layout.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** The module's memory as bytes, words and text. */
export class Heap {
  #memory;
  #exports;
  #bytes;
  #view;
  #numbersAddress;
  #errorAddress;

  /** @param {WebAssembly.Memory} memory @param {import('./wasm_module.js').Exports} exports */
  constructor(memory, exports) {
    this.#memory = memory;
    this.#exports = exports;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#view = new DataView(memory.buffer);
    this.#numbersAddress = exports.numbers_address() >>> 0;
    this.#errorAddress = exports.error_address() >>> 0;
  }

  /** @returns {number} the linear memory's size now */
  get sizeBytes() {
    return this.#memory.buffer.byteLength;
  }

  #refresh() {
    if (this.#bytes.buffer === this.#memory.buffer) return;
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }

  /** @param {number} sizeBytes @returns {number} an address, 0 when there is no room */
  alloc(sizeBytes) {
    return this.#exports.alloc(sizeBytes) >>> 0;
  }

  /** @param {number} address @param {number} sizeBytes */
  free(address, sizeBytes) {
    this.#exports.free(address, sizeBytes);
  }

  /** @param {number} address @param {Uint8Array} bytes */
  write(address, bytes) {
    this.#refresh();
    this.#bytes.set(bytes, address >>> 0);
  }

  /** @param {number} address @param {number} sizeBytes @returns {Uint8Array<ArrayBuffer>} a copy */
  read(address, sizeBytes) {
    this.#refresh();
    const copy = new Uint8Array(sizeBytes);
    copy.set(this.#bytes.subarray(address >>> 0, (address >>> 0) + sizeBytes));
    return copy;
  }

  /** @param {number} address @param {number} sizeBytes @returns {string} */
  readText(address, sizeBytes) {
    return decoder.decode(this.read(address, sizeBytes));
  }

  /** @param {number} address @param {number} count @returns {Int32Array} a copy */
  readInts(address, count) {
    return new Int32Array(this.read(address, count * 4).buffer);
  }

  /** @param {number} index @returns {number} item `index` of web/exports.c's `numbers` */
  number(index) {
    this.#refresh();
    return this.#u64(this.#numbersAddress + index * 8);
  }

  /** @param {number} address */
  #u64(address) {
    return this.#view.getUint32(address, true) + this.#view.getUint32(address + 4, true) * 2 ** 32;
  }

  /**
   * The last wick_error.
   * @returns {{status: number, subject: number, offset: number | undefined, numbers: number[],
   *   message: string}}
   */
  lastError() {
    this.#refresh();
    const address = this.#errorAddress;
    const offset = address + ERROR_OFFSET_BYTES_AT;
    const noOffset = this.#view.getUint32(offset + 4, true) === 0xffffffff;
    const text = this.read(address + ERROR_MESSAGE_AT, ERROR_MESSAGE_BYTES);
    return {
      status: this.#view.getUint32(address + ERROR_STATUS_AT, true),
      subject: this.#view.getUint32(address + ERROR_SUBJECT_AT, true),
      offset: noOffset ? undefined : this.#u64(offset),
      numbers: [0, 8, 16].map((at) => this.#u64(address + ERROR_NUMBERS_AT + at)),
      message: decoder.decode(text.subarray(0, text.indexOf(0))),
    };
  }
}

/**
 * The texts, arrays and records that one call passes to the module. Their memory is freed when the call has ended.
 */
export class Passed {
  #heap;
  /** @type {{address: number, sizeBytes: number}[]} */
  #blocks = [];

  /** @param {Heap} heap */
  constructor(heap) {
    this.#heap = heap;
  }

  /** @param {number} sizeBytes @returns {number} an address; throws when there is no room */
  room(sizeBytes) {
    const address = this.#heap.alloc(sizeBytes);
    if (address === 0) throw new RangeError(`no room for ${sizeBytes} bytes in linear memory`);
    this.#blocks.push({ address, sizeBytes });
    return address;
  }

  /** @param {Uint8Array} bytes @returns {number} */
  bytes(bytes) {
    const address = this.room(bytes.byteLength);
    this.#heap.write(address, bytes);
    return address;
  }

  /** @param {string | Uint8Array} text @returns {{address: number, sizeBytes: number}} UTF-8, terminated */
  text(text) {
    const bytes =
      typeof text === 'string' ? encoder.encode(`${text}\0`) : Uint8Array.from([...text, 0]);
    return { address: this.bytes(bytes), sizeBytes: bytes.byteLength - 1 };
  }

  /** @param {ArrayLike<number>} ints @returns {number} */
  ints(ints) {
    return this.bytes(new Uint8Array(Int32Array.from(ints).buffer));
  }

  /**
   * 32-bit fields, or an array of such records. Every host of WebAssembly is little-endian, as modules are.
   * @param {Uint32Array<ArrayBuffer>} words
   * @returns {number}
   */
  words(words) {
    return this.bytes(new Uint8Array(words.buffer));
  }

  free() {
    for (const { address, sizeBytes } of this.#blocks) this.#heap.free(address, sizeBytes);
    this.#blocks = [];
  }
}
