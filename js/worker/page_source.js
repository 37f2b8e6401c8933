// js/worker/page_source.js — bytes that only the page can read (its blobs, streams and handles). The worker requests
// them, and js/connection/engine_connection.js answers.

/** @import { Source } from '../bytes/model_sources.js' */
/** @import { FromWorker } from '../connection/messages.js' */

export class PageBytes {
  #post;
  /** @type {Map<number, {settle: (value: unknown) => void, fail: (error: unknown) => void}>} */
  #asks = new Map();
  #asked = 0;

  /** @param {(message: FromWorker) => void} post */
  constructor(post) {
    this.#post = post;
  }

  /**
   * @param {{files: number, canSeek: boolean}} description
   * @param {number} [which] 1: the mmproj file
   * @returns {Source}
   */
  source({ files, canSeek }, which = 0) {
    /** @type {Source} */
    const source = {
      files,
      canSeek,
      open: async (file, offset) => {
        const opened = /** @type {OpenedStream} */ (await this.#ask('open', [file, offset, which]));
        source.canSeek = opened.canSeek;
        return new PageStream(opened, (method, args) => this.#ask(method, args));
      },
    };
    return source;
  }

  /**
   * @param {number} id of a request to the page
   * @param {unknown} value
   * @param {number} [end] the offset in the file where the bytes end
   */
  answer(id, value, end) {
    this.#take(id)?.settle(value instanceof Uint8Array ? { bytes: value, end } : value);
  }

  /** @param {number} id of a request to the page @param {unknown} error */
  refuse(id, error) {
    this.#take(id)?.fail(error);
  }

  /** @param {string} method @param {number[]} args @returns {Promise<unknown>} */
  #ask(method, args) {
    const id = ++this.#asked;
    return new Promise((settle, fail) => {
      this.#asks.set(id, { settle, fail });
      this.#post({ type: 'ask', id, method, args });
    });
  }

  /** @param {number} id */
  #take(id) {
    const ask = this.#asks.get(id);
    this.#asks.delete(id);
    return ask;
  }
}

/**
 * @typedef {{id: number, position: number, size: number | undefined,
 *   canSeek: boolean}} OpenedStream
 */

/** A stream that the page reads. The next piece is requested while the current one is processed. */
class PageStream {
  #id;
  #ask;
  /** @type {Promise<{bytes: Uint8Array, end: number | undefined} | null>} */
  #next;

  /**
   * @param {OpenedStream} opened
   * @param {(method: string, args: number[]) => Promise<unknown>} ask
   */
  constructor({ id, position, size }, ask) {
    this.#id = id;
    this.#ask = ask;
    this.position = position;
    this.size = size;
    this.#next = this.#readAhead();
  }

  #readAhead() {
    const next = /** @type {Promise<{bytes: Uint8Array, end: number | undefined} | null>} */ (
      this.#ask('read', [this.#id])
    );
    next.catch(() => {}); // `read` throws this error
    return next;
  }

  async read() {
    const next = await this.#next;
    if (next === null) return null;
    this.#next = this.#readAhead();
    this.position = next.end ?? this.position + next.bytes.byteLength;
    return next.bytes;
  }

  cancel() {
    this.#ask('cancel', [this.#id]).catch(() => {});
  }
}
