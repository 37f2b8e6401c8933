// js/worker/media_desk.js — images and recordings of requests: the encoders of the mmproj file, and encoding, which runs
// between the steps of requests. The media of one request are encoded at a time.

import { WickError } from '../base/errors.js';

/** @typedef {import('../wasm/native_engine.js').NativeEngine} NativeEngine */
/** @typedef {import('../wasm/media_table.js').Medium} Medium */
/** @typedef {import('../bytes/model_sources.js').Source} Source */

/** How long a step of an encoder may take, unless a layer takes longer: messages and requests wait for its end. */
const STEP_BUDGET_US = 4000;

/** The bytes of a file that have arrived, read from any offset: while the encoders are loaded. */
export class HeldFile {
  /** @type {Uint8Array[]} */
  #pieces = [];
  /** Where each piece ends. @type {number[]} */
  #ends = [];
  size = 0;
  /** The whole file's size, if it is known. */
  total = 0;

  /** @param {Uint8Array} piece */
  add(piece) {
    // a stream may use its buffer again
    this.#pieces.push(piece.slice());
    this.size += piece.byteLength;
    this.#ends.push(this.size);
  }

  /** @param {number} offset @param {number} size @returns {Uint8Array} at most `size` bytes, none at the end */
  read(offset, size) {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle] > offset) high = middle;
      else low = middle + 1;
    }
    if (low === this.#ends.length) return new Uint8Array(0);
    const piece = this.#pieces[low];
    const from = offset - (this.#ends[low] - piece.byteLength);
    return piece.subarray(from, from + size);
  }

  clear() {
    this.#pieces = [];
    this.#ends = [];
  }
}

/**
 * @param {HeldFile} file
 * @param {() => import('../wasm/heap.js').Heap} heap
 * @returns {Partial<import('../wasm/wasm_module.js').Host>}
 */
export const mediaHost = (file, heap) => ({
  read_media: (offset, address, size) => {
    const bytes = file.read(offset, size >>> 0);
    heap().write(address, bytes);
    return bytes.byteLength;
  },
});

/**
 * Reads an mmproj file and loads its encoders. The model's directory is complete.
 * @param {NativeEngine} native
 * @param {Source} source
 * @param {HeldFile} file
 * @param {{onBytes: () => void, isClosed: () => boolean}} host
 */
export async function loadMedia(native, source, file, { onBytes, isClosed }) {
  const stream = await source.open(0, 0);
  file.total = stream.size ?? 0;
  try {
    for (let bytes = await stream.read(); bytes; bytes = await stream.read()) {
      if (isClosed()) return;
      file.add(bytes);
      onBytes();
    }
    await native.withMedia(() => isClosed() || native.media.load());
  } catch (error) {
    if (!(error instanceof WickError)) throw error;
    throw new WickError(error.code, `mmproj: ${error.message}`, error.cause);
  } finally {
    stream.cancel();
    file.clear();
  }
}

export class MediaDesk {
  #native;
  #host;
  /** Settles when the earlier media are encoded. @type {Promise<unknown>} */
  #line = Promise.resolve();

  /** @param {NativeEngine} native @param {{takeTurn: () => Promise<void>, isClosed: () => boolean}} host */
  constructor(native, host) {
    this.#native = native;
    this.#host = host;
  }

  /** @param {Medium[]} media @returns {number[]} their numbers */
  add(media) {
    if (!this.#native.media.isLoaded) {
      throw new WickError(
        'UNSUPPORTED',
        `${media[0].kind === 'audio' ? 'Audio' : 'Images'} need the mmproj file of the model: createEngine takes mmproj`,
      );
    }
    /** @type {number[]} */
    const numbers = [];
    try {
      for (const medium of media) numbers.push(this.#native.media.add(medium));
    } catch (error) {
      this.remove(numbers);
      throw error;
    }
    return numbers;
  }

  /** @param {number[]} numbers */
  remove(numbers) {
    for (const number of numbers) this.#native.media.remove(number);
  }

  /**
   * @param {number[]} numbers
   * @param {() => boolean} isLeft whether the caller has stopped waiting
   */
  async encode(numbers, isLeft) {
    const before = this.#line;
    const own = (async () => {
      await before;
      for (const number of numbers) await this.#encodeOne(number, isLeft);
    })();
    this.#line = own.catch(() => {});
    await own;
  }

  /** @param {number} number @param {() => boolean} isLeft */
  async #encodeOne(number, isLeft) {
    for (;;) {
      await this.#host.takeTurn();
      if (this.#host.isClosed()) throw new WickError('CLOSED', 'engine: closed');
      if (isLeft() || this.#native.media.step(number, STEP_BUDGET_US)) return;
    }
  }
}
