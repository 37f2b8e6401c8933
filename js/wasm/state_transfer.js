// js/wasm/state_transfer.js — copies a saved state between the engine, which writes and reads it in pieces, and one
// array.

/** @import { Heap } from './heap.js' */

const none = new Uint8Array(0);

export class StateBytes {
  #heap;
  /** @type {Uint8Array<ArrayBuffer>} */
  #bytes = none;
  #done = 0;

  /** @param {() => Heap} heap */
  constructor(heap) {
    this.#heap = heap;
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes filled by `take`, or read by `give` */
  begin(bytes) {
    this.#bytes = bytes;
    this.#done = 0;
  }

  /** @returns {Uint8Array<ArrayBuffer>} the bytes that were written */
  end() {
    const bytes = this.#bytes.subarray(0, this.#done);
    this.#bytes = none;
    return bytes;
  }

  /** @param {number} address @param {number} size @returns {boolean} false if the array is full */
  take(address, size) {
    if (this.#bytes.byteLength - this.#done < size >>> 0) return false;
    this.#bytes.set(this.#heap().read(address, size >>> 0), this.#done);
    this.#done += size >>> 0;
    return true;
  }

  /**
   * @param {number} address
   * @param {number} size
   * @returns {boolean} false if fewer bytes are left
   */
  give(address, size) {
    const end = this.#done + (size >>> 0);
    if (end > this.#bytes.byteLength) return false;
    this.#heap().write(address, this.#bytes.subarray(this.#done, end));
    this.#done = end;
    return true;
  }
}
