// js/bytes/range_source.js — the source of a model that the caller's function reads in pieces (object storage, a
// cache, a binding).

import { WickError, wordsOf } from '../base/errors.js';
import { SeekableSource } from './seekable_source.js';

/** @import { ReadRange } from '../edge.js' */
/** @import { ByteStream } from './model_sources.js' */

/** The size of a request in bytes. Each request costs a round trip, and on some hosts money. */
const RANGE_BYTES = 4 << 20;
/**
 * The size of the pieces in which a response is read. The same memory is reused, because hosts also count memory
 * that the garbage collector has not freed yet.
 */
const READ_BYTES = 1 << 18;

/** The source of a model that is read with the caller's function. */
export class RangeSource extends SeekableSource {
  /** @param {ReadRange} range */
  constructor(range) {
    super(1, (_, offset) => new RangeStream(range, offset));
  }
}

/** @implements {ByteStream} */
class RangeStream {
  size = undefined;
  position;
  #range;
  /** The reader of the current range. @type {ReadableStreamBYOBReader | undefined} */
  #reader;
  /** The number of bytes that it has returned. */
  #given = 0;
  /** @type {ArrayBuffer | undefined} */
  #memory;

  /** @param {ReadRange} range @param {number} offset */
  constructor(range, offset) {
    this.#range = range;
    this.position = offset;
  }

  /**
   * @returns {Promise<Uint8Array | null>} bytes that are valid until the next call; null at the end
   * of the file
   */
  async read() {
    for (;;) {
      const bytes = this.#reader ? await this.#readOn(this.#reader) : await this.#ask();
      if (!bytes) continue;
      this.#given += bytes.byteLength;
      if (this.#given > RANGE_BYTES) {
        this.cancel();
        const words = `range returned ${this.#given} bytes where ${RANGE_BYTES} were requested`;
        throw new WickError(
          'ARG',
          `${words}: it must return the bytes from the offset, and no more`,
        );
      }
      this.position += bytes.byteLength;
      return bytes.byteLength > 0 ? bytes : null;
    }
  }

  /**
   * @returns {Promise<Uint8Array | undefined>} all bytes of the next range, or undefined if it is
   * read by a reader
   */
  async #ask() {
    this.#given = 0;
    const found = await this.#guard(() => this.#range(this.position, RANGE_BYTES));
    if (found instanceof ArrayBuffer) return new Uint8Array(found);
    if (found instanceof Uint8Array) return found;
    if (typeof found?.arrayBuffer !== 'function') {
      throw new WickError('ARG', 'range must return bytes, or an object with arrayBuffer()');
    }
    return this.#guard(async () => {
      const { ok, status, body } = /** @type {Response} */ (found);
      if (ok === false) throw new Error(`it has status ${status}`);
      this.#reader = byteReaderOf(body);
      return this.#reader ? undefined : new Uint8Array(await found.arrayBuffer());
    });
  }

  /**
   * @param {ReadableStreamBYOBReader} reader
   * @returns {Promise<Uint8Array | undefined>} undefined at its end
   */
  async #readOn(reader) {
    const memory = this.#memory ?? new ArrayBuffer(READ_BYTES);
    const { done, value } = await this.#guard(() => reader.read(new Uint8Array(memory)));
    this.#memory = /** @type {ArrayBuffer | undefined} */ (value?.buffer);
    if (!done) return value;
    this.#reader = undefined;
    return this.#given === 0 ? new Uint8Array() : undefined;
  }

  /** @template T @param {() => T | Promise<T>} action @returns {Promise<T>} */
  async #guard(action) {
    try {
      return await action();
    } catch (error) {
      throw new WickError('IO', `range(${this.position}) failed: ${wordsOf(error)}`, error);
    }
  }

  cancel() {
    this.#reader?.cancel().catch(() => {}); // the stream has already ended
    this.#reader = undefined;
  }
}

/** @param {ReadableStream | null | undefined} body @returns {ReadableStreamBYOBReader | undefined} */
function byteReaderOf(body) {
  try {
    return body?.getReader?.({ mode: 'byob' });
  } catch {
    return undefined; // a stream of something other than bytes, or a host without such readers
  }
}
