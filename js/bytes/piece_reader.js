// js/bytes/piece_reader.js — reads the body of a response.

/** The size of the buffer that one read fills. */
const PIECE_BYTES = 1 << 20;

/**
 * Reads a body into one buffer, if the stream supports that (in Safari it does not). Allocating
 * a new buffer for each chunk would touch as much new memory as the size of the model, and the
 * system would have to zero all of it. The bytes of a read are valid until the next read.
 */
export class PieceReader {
  /** @type {ReadableStreamBYOBReader | undefined} */
  #filler;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
  #reader;
  #buffer = new ArrayBuffer(0);

  /** @param {ReadableStream<Uint8Array<ArrayBuffer>>} body */
  constructor(body) {
    try {
      this.#filler = body.getReader({ mode: 'byob' });
    } catch {
      this.#reader = body.getReader();
    }
  }

  /** @returns {Promise<Uint8Array | null>} null at the end */
  async read() {
    if (this.#reader) {
      const { done, value } = await this.#reader.read();
      return done ? null : value;
    }
    const filler = /** @type {ReadableStreamBYOBReader} */ (this.#filler);
    const isThere = this.#buffer.byteLength > 0;
    const room = new Uint8Array(isThere ? this.#buffer : new ArrayBuffer(PIECE_BYTES));
    const { done, value } = await filler.read(room);
    this.#buffer = value?.buffer ?? new ArrayBuffer(0);
    return done ? null : value;
  }

  async cancel() {
    await (this.#filler ?? this.#reader)?.cancel();
  }
}
