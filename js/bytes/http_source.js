// js/bytes/http_source.js — models over HTTP. Handles a missing length, a compressed body, redirects, a server that ignores
// Range or returns a different range, headers that a page may not read, a broken connection, and a web page in place of the
// file.

import { WickError, wordsOf } from '../base/errors.js';
import {
  BusyServer,
  explainFailure,
  httpError,
  Interrupted,
  isCompressed,
  isSameOrigin,
  lengthOf,
  pageInsteadOfModel,
  partOf,
  REFUSAL_BYTES,
  refusalOf,
  startOfText,
  validatorOf,
  withTimeout,
} from './http_answer.js';
import { nameOfFile } from './split_files.js';

const BACKOFF_MS = [250, 500, 1000, 2000, 4000];
const BACKOFF_MS_MAX = 8000;
/**
 * The number of delivered bytes that are kept. If the headers of a range cannot be read, the
 * request starts with these bytes, so that they can be compared.
 */
const TAIL_BYTES = 4096;
/** The size of the buffer that one read of a body fills. */
const PIECE_BYTES = 1 << 20;

/**
 * @typedef {object} HttpOptions
 * @property {string[]} urls absolute URLs
 * @property {Record<string, string>} headers
 * @property {number} retries the number of consecutive attempts to resume a broken download
 * @property {number} stallMs a connection that delivers no byte for this long counts as broken; 0: never
 * @property {(attempt: number, waitMs: number) => void} [onRetry]
 * @property {typeof globalThis.fetch} [fetch]
 * @property {KnownVersion} [known] the required version of the file; a different one is rejected
 * (CHANGED). Such a stream begins and resumes at its offset, even if the server ignored the range
 * before and sent the earlier bytes
 */

/**
 * The known properties of a file's version. `tail` reads the bytes before the stream's offset.
 * @typedef {{validator: string | null, size: number | null, tail?: () => Promise<Uint8Array | undefined>}} KnownVersion
 */

/** @typedef {{start: number, end: number | undefined, size: number | undefined}} AnswerPart */

/** Files over HTTP. A stream is one request from its offset to the end of the file. */
export class HttpSource {
  canSeek = true;
  #urls;
  #options;
  /** Streams that have not been cancelled. @type {Set<HttpStream>} */
  #streams = new Set();

  /** @param {HttpOptions} options */
  constructor({ urls, fetch, ...options }) {
    this.files = urls.length;
    this.#urls = urls;
    this.#options = { ...options, fetch: fetch ?? globalThis.fetch.bind(globalThis) };
  }

  /** @param {number} file @param {number} offset @returns {Promise<HttpStream>} */
  async open(file, offset) {
    const onCancel = () => this.#streams.delete(stream);
    const options = { ...this.#options, onCancel };
    const stream = new HttpStream(nameOfFile(this.#urls, file), offset, options);
    this.#streams.add(stream);
    await stream.start();
    if (!stream.takesRanges) this.canSeek = false;
    return stream;
  }

  close() {
    for (const stream of this.#streams) stream.cancel();
  }
}

/**
 * Reads a body into one buffer, if the stream supports that (in Safari it does not). Allocating
 * a new buffer for each chunk would touch as much new memory as the size of the model, and the
 * system would have to zero all of it. The bytes of a read are valid until the next read.
 */
class PieceReader {
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

class HttpStream {
  /** @type {number | undefined} */
  size;
  /**
   * The size from the Content-Length of another origin, where compression of the body cannot be
   * detected.
   * @type {number | undefined}
   */
  promisedBytes;
  /** True until the server ignores a range. */
  takesRanges = true;
  #url;
  #options;
  #attempts = 0;
  #controller = new AbortController();
  /** Aborts when the rest is not needed: pending reads end, and requests are not retried. */
  #cancelled = new AbortController();
  /** @type {PieceReader | undefined} */
  #reader;
  /** Bytes to skip, because the response began before `position`. */
  #ignored = 0;
  /** @type {string | null} the ETag or date of this version of the file */
  validator;
  #isCompressed = false;
  #hasBytes = false;
  /** Whether bytes of this version have arrived, in this stream or an earlier one. */
  #isKnown;
  /**
   * 1 if the last byte is requested again: a server may reject a range that begins at the end of
   * the file.
   */
  #overlap = 0;
  /** The bytes before `position`, at most TAIL_BYTES. @type {Uint8Array | undefined} */
  #tail;
  /** Ranges begin with the tail, because their headers cannot be read. */
  #comparesTail = false;
  /** 'once': the next request has no range, 'always': the server's ranges are unusable. @type {'once' | 'always' | undefined} */
  #withoutRange;
  /** The current request: whether it has a range, was answered, and delivered new bytes. */
  #request = { isRange: false, isAnswered: false, hasBrought: false };
  /**
   * Set if the response is a part of the file. `end` is known if its headers could be read.
   * @type {{end: number | undefined} | undefined}
   */
  #part;
  /** Set after a part has arrived completely: the next request shows whether more follows. */
  #asksForMore = false;

  /**
   * @param {string} url
   * @param {number} position the offset of the first requested byte
   * @param {Omit<HttpOptions, 'urls'> & {fetch: typeof globalThis.fetch, onCancel: () => void}} options
   */
  constructor(url, position, options) {
    this.#url = url;
    this.position = position;
    this.#options = options;
    this.validator = options.known?.validator ?? null;
    this.size = options.known?.size ?? undefined;
    this.#isKnown = this.validator !== null || this.size !== undefined;
  }

  async start() {
    await this.#withRetries(() => this.#connect());
    if (this.#options.known) return;
    // A server that ignores ranges sends the bytes before `position` as well. The loader skips them.
    this.position -= this.#ignored;
    this.#ignored = 0;
  }

  /** @returns {Promise<Uint8Array | null>} */
  async read() {
    return this.#withRetries(async () => {
      for (;;) {
        if (!this.#reader && !(await this.#connect())) return null;
        const reader = /** @type {PieceReader} */ (this.#reader);
        const { stallMs } = this.#options;
        const bytes = await withTimeout(reader.read(), stallMs, this.#cancelled.signal);
        if (bytes === null && !this.#continues()) return null;
        const used = bytes && this.#skipKnown(bytes);
        if (!used?.byteLength) continue;
        this.position += used.byteLength;
        if (this.size !== undefined && this.position > this.size) throw this.#changed();
        this.#keepTail(used);
        this.#request.hasBrought = true;
        this.#hasBytes = true;
        this.#isKnown = true;
        this.#attempts = 0;
        return used;
      }
    });
  }

  /**
   * Returns the new bytes, and checks that those delivered before are the same.
   * @param {Uint8Array} bytes
   */
  #skipKnown(bytes) {
    const first = this.position - this.#ignored;
    const skipped = Math.min(this.#ignored, bytes.byteLength);
    const tail = this.#tail ?? new Uint8Array(0);
    const tailAt = this.position - tail.byteLength;
    for (let at = Math.max(first, tailAt); at < first + skipped; at++) {
      if (bytes[at - first] === tail[at - tailAt]) continue;
      if (this.#part && this.#part.end === undefined) {
        throw new UnusableRange('the range begins at a different offset');
      }
      const start = new TextDecoder().decode(bytes.subarray(0, REFUSAL_BYTES));
      throw (first === 0 && refusalOf(this.#url, start)) || this.#changed();
    }
    this.#ignored -= skipped;
    return bytes.subarray(skipped);
  }

  /** @param {Uint8Array} bytes that were delivered last */
  #keepTail(bytes) {
    const tail = this.#tail ?? new Uint8Array(0);
    const kept = Math.min(tail.byteLength, Math.max(0, TAIL_BYTES - bytes.byteLength));
    const fresh = bytes.subarray(Math.max(0, bytes.byteLength - TAIL_BYTES));
    this.#tail = new Uint8Array(kept + fresh.byteLength);
    this.#tail.set(tail.subarray(tail.byteLength - kept));
    this.#tail.set(fresh, kept);
  }

  /**
   * Returns whether to request more after the end of a response. The server may have sent only a part of
   * the rest.
   */
  #continues() {
    const { hasBrought } = this.#request;
    const isMissing = this.size !== undefined && this.position < this.size;
    if (isMissing && !(hasBrought && this.#part?.end === this.position)) {
      throw new Interrupted(`it ended after ${this.position} of ${this.size} bytes`);
    }
    const isUnsure = this.size === undefined && this.#part !== undefined;
    if (!isMissing && !(isUnsure && hasBrought && this.position !== this.promisedBytes))
      return false;
    this.#asksForMore = !isMissing;
    this.#hangUp();
    return true;
  }

  cancel() {
    this.#cancelled.abort();
    this.#hangUp();
    this.#options.onCancel();
  }

  #hangUp() {
    this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
    this.#controller.abort();
  }

  /** @returns {Promise<number>} the offset where the next request begins */
  async #firstByte() {
    // Ranges of a compressed body count compressed bytes, so such a download is restarted.
    if (this.position === 0 || this.#isCompressed || this.#withoutRange) return 0;
    if (!this.#comparesTail) return this.position - this.#overlap;
    this.#tail ??= await this.#options.known?.tail?.();
    const overlap = Math.min(this.#tail?.byteLength ?? 0, TAIL_BYTES);
    return this.position - Math.max(this.#overlap, overlap);
  }

  /** @returns {Promise<boolean>} false: the file ends at `position` */
  async #connect() {
    if (this.#cancelled.signal.aborted) throw new Interrupted('it was cancelled');
    this.#controller = new AbortController();
    const headers = new Headers(this.#options.headers);
    const first = await this.#firstByte();
    if (this.#withoutRange === 'once') this.#withoutRange = undefined;
    this.#request = { isRange: first > 0, isAnswered: false, hasBrought: false };
    if (first > 0) headers.set('Range', `bytes=${first}-`);
    // On another origin If-Range would need a CORS preflight. There the response's validator is compared
    // afterwards.
    if (first > 0 && this.validator && isSameOrigin(this.#url)) {
      headers.set('If-Range', this.validator);
    }
    const init = { headers, signal: this.#controller.signal };
    const response = await this.#fetchOrExplain(init);
    if (!(await this.#accept(response, first))) return false;
    if (!response.body) throw new WickError('HTTP', `${this.#url}: response has no body`);
    this.#reader = new PieceReader(response.body);
    return true;
  }

  /** @param {RequestInit} init */
  async #fetchOrExplain(init) {
    const { fetch, stallMs } = this.#options;
    const asked = (async () => fetch(this.#url, init))();
    try {
      return await withTimeout(asked, stallMs, this.#cancelled.signal);
    } catch (error) {
      // a late response would keep its connection open
      asked.then((response) => response.body?.cancel()).catch(() => {});
      const isAgain = error instanceof Interrupted || this.#hasBytes;
      if (isAgain) throw new Interrupted(wordsOf(error), error);
      throw await explainFailure(this.#url, error);
    }
  }

  /**
   * @param {Response} response whose status and headers are read
   * @param {number} first the offset that was requested
   * @returns {Promise<boolean>} false: the file ends at `position`
   */
  async #accept(response, first) {
    const { status } = response ?? {};
    if (typeof status !== 'number') throw new WickError('ARG', 'fetch: did not return a Response');
    const wanted = this.position;
    if (status === 416 && this.#asksForMore) return false;
    if (status === 416) {
      this.#overlap = Number(this.#hasBytes);
      throw new NoSuchRange(`${this.#url} has no byte ${wanted}: the file is shorter (416)`);
    }
    this.#overlap = 0;
    if (!response.ok) throw httpError(this.#url, response);
    const type = response.headers.get('Content-Type') ?? '';
    if (type.startsWith('text/html')) throw await pageInsteadOfModel(this.#url, response);
    this.#request.isAnswered = true;
    const isPart = status === 206;
    if (first > 0 && !isPart) this.takesRanges = false;
    const part = isPart ? this.#partOf(response, first) : undefined;
    this.#part = part && { end: part.end };
    this.#ignored = wanted - (part?.start ?? 0);
    if (this.#ignored > 0) this.#tail ??= await this.#options.known?.tail?.();
    this.#isCompressed = isCompressed(response);
    try {
      this.#checkValidator(response);
      this.size = this.#sizeOf(response, part);
    } catch (error) {
      // a proxy's error page with status 200 is not a new version, so the stored part is kept
      throw (isPart ? undefined : refusalOf(this.#url, await startOfText(response))) ?? error;
    }
    return true;
  }

  /**
   * @param {Response} response that is a part of the file
   * @param {number} first the offset that was requested
   * @returns {AnswerPart} it does not begin after `position`
   */
  #partOf(response, first) {
    const part = partOf(response);
    if (part === 'hidden') {
      const isChecked = this.#comparesTail || !(this.#tail ?? this.#options.known?.tail);
      this.#comparesTail = true;
      if (!isChecked && first > 0)
        throw new UnusableRange('the response has no readable Content-Range header', 'compare');
      return { start: first, end: undefined, size: undefined };
    }
    if (part?.size !== undefined) this.#checkSize(response, part.size);
    if (part?.isSane && part.start <= this.position) return part;
    const words = part?.isSane
      ? `${this.#url} returned bytes from ${part.start}, not from ${this.position}`
      : `${this.#url} returned a part of the file with contradictory headers`;
    throw first > 0 ? new UnusableRange(words) : new WickError('HTTP', words);
  }

  /** @param {Response} response */
  #checkValidator(response) {
    const validator = validatorOf(response);
    if (this.#isKnown && this.validator && validator && validator !== this.validator) {
      throw this.#changed();
    }
    this.validator ??= validator;
  }

  #changed() {
    return new WickError('CHANGED', `${this.#url} was changed while it was being downloaded`);
  }

  /**
   * Returns the file's size if it is known for certain. The length of a compressed body is a different number, and a
   * server of another origin may hide that its body is compressed.
   * @param {Response} response
   * @param {AnswerPart | undefined} part
   */
  #sizeOf(response, part) {
    if (this.#isCompressed) return this.size;
    const length = lengthOf(response);
    const start = part?.start ?? 0;
    if (response.type === 'cors') {
      if (length) this.promisedBytes ??= start + length;
      return this.size;
    }
    // the part may be less than the rest: some servers limit the size of a part
    const isUnsaid = part?.end !== undefined || length === undefined;
    const size = part?.size ?? (isUnsaid ? undefined : start + length);
    if (size === undefined) return this.size;
    this.#checkSize(response, size);
    return size;
  }

  /** @param {Response} response @param {number} size of the file, by its headers */
  #checkSize({ type }, size) {
    if (type === 'cors' || !this.#isKnown || this.size === undefined || size === this.size) return;
    throw this.#changed();
  }

  /**
   * @template T
   * @param {() => Promise<T>} attempt
   * @returns {Promise<T>}
   */
  async #withRetries(attempt) {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const isUnusable = error instanceof UnusableRange;
        const waitMs = isUnusable ? 0 : this.#msToWait(error);
        this.#hangUp();
        if (waitMs === undefined) throw this.#wordsFor(error);
        this.#withoutRange ??= this.#asksWithoutRange(error);
        if (isUnusable) continue; // the request is repeated with a different range or without one
        this.#attempts++;
        this.#options.onRetry?.(this.#attempts, waitMs);
        await sleep(waitMs, this.#cancelled.signal);
        if (this.#cancelled.signal.aborted) throw this.#wordsFor(error);
      }
    }
  }

  /** Chromium cannot read a range that the server has compressed. @param {unknown} error @returns {'once' | 'always' | undefined} */
  #asksWithoutRange(error) {
    if (error instanceof UnusableRange) {
      if (error.remedy === 'compare') return undefined;
      this.takesRanges = false;
      return 'always';
    }
    const { isRange, isAnswered, hasBrought } = this.#request;
    if (!isRange || hasBrought || error instanceof WickError) return undefined;
    const isLast = this.#attempts + 1 === this.#options.retries;
    return isAnswered || isLast ? 'once' : undefined;
  }

  /**
   * @param {unknown} error
   * @returns {number | undefined} undefined if another attempt would not help
   */
  #msToWait(error) {
    if (this.#cancelled.signal.aborted || this.#attempts >= this.#options.retries) return undefined;
    const backoff = BACKOFF_MS[this.#attempts] ?? BACKOFF_MS_MAX;
    if (error instanceof BusyServer) return Math.max(backoff, error.waitMs);
    if (error instanceof NoSuchRange && this.#hasBytes) return backoff;
    if (error instanceof WickError) return undefined;
    return this.#hasBytes || error instanceof Interrupted ? backoff : undefined;
  }

  /** @param {unknown} error */
  #wordsFor(error) {
    if (error instanceof WickError) return error;
    const tries = this.#attempts > 0 ? ` (resumed ${this.#attempts} times)` : '';
    const words = `The download of ${this.#url} was interrupted after ${this.position} bytes${tries}`;
    return new WickError(
      'NETWORK',
      `${words}: ${error instanceof Error ? error.message : wordsOf(error)}`,
      error,
    );
  }
}

/**
 * A response to a range request that may contain the wrong bytes. `remedy`: whether to repeat the
 * request without a range, or with the tail.
 */
class UnusableRange extends Error {
  /** @param {string} message @param {'whole' | 'compare'} [remedy] */
  constructor(message, remedy = 'whole') {
    super(message);
    this.name = 'UnusableRange';
    this.remedy = remedy;
  }
}

/** 416: after a broken connection the server may count bytes differently, or may recover. */
class NoSuchRange extends WickError {
  /** @param {string} message */
  constructor(message) {
    super('TRUNCATED', message);
  }
}

/** @param {number} ms more than 0 @param {AbortSignal} cancelled also ends the wait */
const sleep = (ms, cancelled) => withTimeout(new Promise(() => {}), ms, cancelled).catch(() => {});
