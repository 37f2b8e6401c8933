// js/wasm/heap.js — the only file that reads and writes the module's memory. Addresses are
// unsigned, because a heap may extend beyond 2 GiB, and are represented as numbers even if they
// have 64 bits (wide_calls.js). Views are created again after the memory has grown. Other files get
// copies of bytes, because TextDecoder rejects shared memory.

import * as layout from './layout.js';

/**
 * The names in a list of layout.js.
 * @template {string} List
 * @typedef {List extends `${infer First} ${infer More}` ? NamesOf<First> | NamesOf<More>
 *   : List extends `${infer Name}:${number}` ? Name : List} NamesOf
 */
/**
 * The results of a call by name. Those whose names begin with `is` are booleans.
 * @template {string} List
 * @typedef {{[Name in NamesOf<List>]: Name extends `is${string}` ? boolean : number}} Results
 */

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * @param {number} value an address or a size, which modules with 32-bit addresses may return as
 * negative numbers
 * @returns {number}
 */
export const unsigned = (value) => (value < 0 ? value + 2 ** 32 : value);

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
    this.#numbersAddress = unsigned(exports.numbers_address());
    this.#errorAddress = unsigned(exports.error_address());
  }

  /** @returns {number} the current size of the linear memory */
  get sizeBytes() {
    return this.#memory.buffer.byteLength;
  }

  /** Whether addresses and sizes in records have 64 bits. */
  get isWide() {
    return this.#exports.isWide === true;
  }

  #refresh() {
    if (this.#bytes.buffer === this.#memory.buffer) return;
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }

  /** @param {number} sizeBytes @returns {number} an address, or 0 if memory is full */
  alloc(sizeBytes) {
    return unsigned(this.#exports.alloc(sizeBytes));
  }

  /** @param {number} address @param {number} sizeBytes */
  free(address, sizeBytes) {
    this.#exports.free(address, sizeBytes);
  }

  /** @param {number} address @param {Uint8Array} bytes */
  write(address, bytes) {
    this.#refresh();
    this.#bytes.set(bytes, unsigned(address));
  }

  /** @param {number} address @param {number} sizeBytes @returns {Uint8Array<ArrayBuffer>} a copy */
  read(address, sizeBytes) {
    this.#refresh();
    const copy = new Uint8Array(sizeBytes);
    const begin = unsigned(address);
    copy.set(this.#bytes.subarray(begin, begin + sizeBytes));
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

  /**
   * @template {string} List
   * @param {List} list one of the lists of layout.js
   * @returns {Results<List>} the results of the last call
   */
  results(list) {
    const found = list.split(' ').map((name, index) => {
      const value = this.number(index);
      return [name, name.startsWith('is') ? value !== 0 : value];
    });
    return /** @type {any} */ (Object.fromEntries(found));
  }

  /** @returns {[address: number, count: number]} the array that the last call has returned */
  get array() {
    const { address, count } = this.results(layout.ARRAY);
    return [address, count];
  }

  /** @param {number} address */
  #u64(address) {
    return this.#view.getUint32(address, true) + this.#view.getUint32(address + 4, true) * 2 ** 32;
  }

  /**
   * Returns the last wick_error.
   * @returns {{status: number, subject: number, offset: number | undefined, numbers: number[],
   *   message: string}}
   */
  lastError() {
    this.#refresh();
    const address = this.#errorAddress;
    const offset = address + layout.ERROR_OFFSET_BYTES_AT;
    const noOffset = this.#view.getUint32(offset + 4, true) === 0xffffffff;
    const text = this.read(address + layout.ERROR_MESSAGE_AT, layout.ERROR_MESSAGE_BYTES);
    return {
      status: this.#view.getUint32(address + layout.ERROR_STATUS_AT, true),
      subject: this.#view.getUint32(address + layout.ERROR_SUBJECT_AT, true),
      offset: noOffset ? undefined : this.#u64(offset),
      numbers: [0, 8, 16].map((at) => this.#u64(address + layout.ERROR_NUMBERS_AT + at)),
      message: decoder.decode(text.subarray(0, text.indexOf(0))),
    };
  }
}

/** @param {number} at */
const alignEight = (at) => Math.ceil(at / 8) * 8;

/**
 * The strings, arrays and records that a call passes to the module. Their memory is freed when the call has ended.
 */
export class Passed {
  #heap;
  /** @type {{address: number, sizeBytes: number}[]} */
  #blocks = [];

  /** @param {Heap} heap */
  constructor(heap) {
    this.#heap = heap;
  }

  /** @param {number} sizeBytes @returns {number} an address; throws if memory is full */
  room(sizeBytes) {
    const address = this.#heap.alloc(sizeBytes);
    if (address === 0) throw new RangeError(`linear memory: cannot allocate ${sizeBytes} bytes`);
    this.#blocks.push({ address, sizeBytes });
    return address;
  }

  /** @param {Uint8Array} bytes @returns {number} */
  bytes(bytes) {
    const address = this.room(bytes.byteLength);
    this.#heap.write(address, bytes);
    return address;
  }

  /**
   * @param {string | Uint8Array} [text]
   * @returns {[address: number, sizeBytes: number]} UTF-8 with a terminating zero, which the size does not count
   */
  text(text = '') {
    const bytes =
      typeof text === 'string' ? encoder.encode(`${text}\0`) : Uint8Array.from([...text, 0]);
    return [this.bytes(bytes), bytes.byteLength - 1];
  }

  /** @param {ArrayLike<number>} ints @returns {number} */
  ints(ints) {
    return this.bytes(new Uint8Array(Int32Array.from(ints).buffer));
  }

  /**
   * Writes a record, or an array of them.
   * @param {ArrayLike<number>} values of the 32-bit fields; an address or a size may exceed 32 bits
   * @param {string} kinds of a record's fields (layout.js)
   * @returns {number}
   */
  record(values, kinds) {
    const { isWide } = this.#heap;
    const view = new DataView(new ArrayBuffer(values.length * (isWide ? 8 : 4)));
    let at = 0;
    for (let index = 0; index < values.length; index++) {
      const kind = kinds[index % kinds.length];
      const value = values[index];
      if (isWide && kind === 'a') {
        at = alignEight(at);
        view.setUint32(at, value, true); // stored modulo 2^32
        view.setUint32(at + 4, value / 2 ** 32, true);
        at += 4;
      } else if (kind === 'f') view.setFloat32(at, value, true);
      else view.setUint32(at, value, true);
      at += 4;
      if (isWide && (index + 1) % kinds.length === 0) at = alignEight(at);
    }
    return this.bytes(new Uint8Array(view.buffer, 0, at));
  }

  free() {
    for (const { address, sizeBytes } of this.#blocks) this.#heap.free(address, sizeBytes);
    this.#blocks = [];
  }
}
