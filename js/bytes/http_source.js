// js/bytes/http_source.js — models over HTTP. It copes with a missing length, a compressed body, redirects, a server that
// ignores Range, a connection that breaks, and a web page in place of the file.

import { onAbort } from '../base/abort_signals.js';
import { WickError, wordsOf } from '../base/errors.js';
import { nameOfFile } from './split_files.js';

const BACKOFF_MS = [250, 500, 1000, 2000, 4000];
const BACKOFF_MS_MAX = 8000;
/** The size of the buffer that one read fills. */
const PIECE_BYTES = 1 << 20;
/** How long the title of a web page may take. It only improves the text of an error. */
const TITLE_MS = 30_000;

/**
 * @typedef {object} HttpOptions
 * @property {string[]} urls absolute
 * @property {Record<string, string>} headers
 * @property {number} retries how often in a row a broken download is resumed
 * @property {number} stallMs a connection that brings no byte for this long counts as broken; 0: never
 * @property {(attempt: number) => void} [onRetry]
 * @property {typeof globalThis.fetch} [fetch]
 * @property {KnownVersion} [known] the version of the file that must come; another one is refused (CHANGED). Such a
 *   stream begins at its offset, and is taken up again there, also when the server has sent the bytes before it once
 */

/** @typedef {{validator: string | null, size: number | null}} KnownVersion of a file, as far as it is known */

/** @param {Response} response @returns {string | null} what names the version of the file: a strong tag, or its date */
export function validatorOf({ headers }) {
  const tag = headers.get('ETag');
  return (tag?.startsWith('W/') ? null : tag) ?? headers.get('Last-Modified');
}

/** Files over HTTP. A stream is one request from its offset to the end of the file. */
export class HttpSource {
  canSeek = true;
  #urls;
  #headers;
  #retries;
  #stallMs;
  #onRetry;
  #fetch;
  #known;
  /** Streams that are not cancelled. @type {Set<HttpStream>} */
  #streams = new Set();

  /** @param {HttpOptions} options */
  constructor({ urls, headers, retries, stallMs, onRetry, fetch, known }) {
    this.files = urls.length;
    this.#urls = urls;
    this.#headers = headers;
    this.#retries = retries;
    this.#stallMs = stallMs;
    this.#onRetry = onRetry ?? (() => {});
    this.#fetch = fetch ?? globalThis.fetch.bind(globalThis);
    this.#known = known;
  }

  /** @param {number} file @param {number} offset @returns {Promise<HttpStream>} */
  async open(file, offset) {
    const stream = new HttpStream(nameOfFile(this.#urls, file), offset, {
      headers: this.#headers,
      retries: this.#retries,
      stallMs: this.#stallMs,
      onRetry: this.#onRetry,
      fetch: this.#fetch,
      known: this.#known ?? null,
      onCancel: () => this.#streams.delete(stream),
    });
    this.#streams.add(stream);
    await stream.start();
    if (!stream.takesRanges) this.canSeek = false;
    return stream;
  }

  close() {
    for (const stream of this.#streams) stream.cancel();
  }
}

class HttpStream {
  /** @type {number | undefined} */
  size;
  /** The size by the Content-Length of another origin, whose body may be compressed without a word of it. @type {number | undefined} */
  promisedBytes;
  /** True until the server has ignored a range. */
  takesRanges = true;
  #url;
  #options;
  #attempts = 0;
  #controller = new AbortController();
  /** Aborts when the rest is not needed: pending reads end, and nothing is tried again. */
  #cancelled = new AbortController();
  /** @type {PieceReader | undefined} */
  #reader;
  /** Bytes to skip, because the response began before `position`. */
  #ignored = 0;
  /** @type {string | null} the ETag or date of this version of the file */
  validator;
  #isCompressed = false;
  #hasBytes = false;
  /** Bytes of this version came before, in this stream or an earlier one. */
  #isKnown;
  /** 1 when the last byte is requested again: a server may refuse a range that begins behind the last byte. */
  #overlap = 0;

  /**
   * @param {string} url
   * @param {number} position the offset of the first byte that is wanted
   * @param {Required<Omit<HttpOptions, 'urls' | 'known'>> & {known: KnownVersion | null, onCancel: () => void}} options
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
    await this.#withRetries(() => this.#request());
    if (this.#options.known) return;
    // A server that ignores ranges sends the bytes before `position` as well. The loader skips them.
    this.position -= this.#ignored;
    this.#ignored = 0;
  }

  /** @returns {Promise<Uint8Array | null>} */
  async read() {
    return this.#withRetries(async () => {
      if (!this.#reader) await this.#request();
      for (;;) {
        const bytes = await this.#readPiece();
        if (bytes === null) return null;
        const used = bytes.subarray(Math.min(this.#ignored, bytes.byteLength));
        this.#ignored -= bytes.byteLength - used.byteLength;
        if (used.byteLength === 0) continue;
        this.position += used.byteLength;
        this.#hasBytes = true;
        this.#isKnown = true;
        this.#attempts = 0;
        return used;
      }
    });
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

  /** @returns {Promise<Uint8Array | null>} the next bytes of the connection */
  async #readPiece() {
    const reader = /** @type {PieceReader} */ (this.#reader);
    const bytes = await withTimeout(reader.read(), this.#options.stallMs, this.#cancelled.signal);
    if (bytes !== null) return bytes;
    if (this.size !== undefined && this.position < this.size) {
      throw new Interrupted(`it ended after ${this.position} of ${this.size} bytes`);
    }
    return null;
  }

  async #request() {
    if (this.#cancelled.signal.aborted) throw new Interrupted('it was cancelled');
    this.#controller = new AbortController();
    const headers = new Headers(this.#options.headers);
    // A range of a compressed body counts compressed bytes, so such a download starts again.
    const isRange = this.position > 0 && !this.#isCompressed;
    if (isRange) headers.set('Range', `bytes=${this.position - this.#overlap}-`);
    // On another origin If-Range would need a CORS preflight. There the response's validator is compared
    // afterwards.
    if (isRange && this.validator && isSameOrigin(this.#url)) {
      headers.set('If-Range', this.validator);
    }
    const init = { headers, signal: this.#controller.signal };
    const response = await this.#fetchOrExplain(init);
    await this.#accept(response);
    if (!response.body) throw new WickError('HTTP', `${this.#url} answered without a body`);
    this.#reader = new PieceReader(response.body);
  }

  /** @param {RequestInit} init */
  async #fetchOrExplain(init) {
    const { fetch, stallMs } = this.#options;
    const asked = (async () => fetch(this.#url, init))();
    try {
      return await withTimeout(asked, stallMs, this.#cancelled.signal);
    } catch (error) {
      // a response that comes too late would keep its connection open
      asked.then((response) => response.body?.cancel()).catch(() => {});
      const isAgain = error instanceof Interrupted || this.#hasBytes;
      if (isAgain) throw new Interrupted(wordsOf(error), error);
      throw await explainFailure(this.#url, error);
    }
  }

  /** @param {Response} response whose status and headers are read */
  async #accept(response) {
    const { status } = response ?? {};
    if (typeof status !== 'number') throw new WickError('ARG', 'fetch gave no Response');
    const wanted = this.position;
    if (status === 416) {
      this.#overlap = Number(this.#hasBytes);
      throw new NoSuchRange(`${this.#url} has no byte ${wanted}: it ends before (416)`);
    }
    this.#overlap = 0;
    if (!response.ok) throw httpError(this.#url, response);
    const type = response.headers.get('Content-Type') ?? '';
    if (type.startsWith('text/html')) throw await pageInsteadOfModel(this.#url, response);
    const isPart = status === 206;
    if (wanted > 0 && !isPart) this.takesRanges = false;
    this.#ignored = wanted - (isPart ? startOfPart(response, wanted) : 0);
    this.#isCompressed = /^(gzip|br|deflate|zstd|compress)/i.test(
      response.headers.get('Content-Encoding') ?? '',
    );
    this.#checkValidator(response);
    this.size = this.#sizeOf(response, wanted - this.#ignored);
  }

  /** @param {Response} response */
  #checkValidator(response) {
    const validator = validatorOf(response);
    if (this.#isKnown && this.validator && validator && validator !== this.validator) {
      throw new WickError('CHANGED', `${this.#url} was changed while it was being downloaded`);
    }
    this.validator ??= validator;
  }

  /**
   * The file's size if it is known for certain. The length of a compressed body is a different number, and a server of
   * another origin may hide that its body is compressed.
   * @param {Response} response
   * @param {number} start the offset of the response's first byte
   */
  #sizeOf(response, start) {
    if (this.#isCompressed) return this.size;
    const length = Number(response.headers.get('Content-Length') ?? Number.NaN);
    const isHidden = response.type === 'cors';
    if (isHidden) {
      if (length > 0 && Number.isSafeInteger(length)) this.promisedBytes ??= start + length;
      return this.size;
    }
    // the part may be less than the rest: some servers limit the size of a part
    const whole = /\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '');
    const size = whole && response.status === 206 ? Number(whole[1]) : start + length;
    if (!Number.isSafeInteger(size)) return this.size;
    if (this.#isKnown && this.size !== undefined && size !== this.size) {
      throw new WickError('CHANGED', `${this.#url} was changed while it was being downloaded`);
    }
    return size;
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
        const waitMs = this.#msToWait(error);
        this.#hangUp();
        if (waitMs === undefined) throw this.#wordsFor(error);
        this.#attempts++;
        this.#options.onRetry(this.#attempts);
        await sleep(waitMs, this.#cancelled.signal);
        if (this.#cancelled.signal.aborted) throw this.#wordsFor(error);
      }
    }
  }

  /** @param {unknown} error @returns {number | undefined} undefined if another try would not help */
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
    const tries = this.#attempts > 0 ? ` (taken up ${this.#attempts} times)` : '';
    const words = `The download of ${this.#url} broke off after ${this.position} bytes${tries}`;
    return new WickError(
      'NETWORK',
      `${words}: ${error instanceof Error ? error.message : wordsOf(error)}`,
      error,
    );
  }
}

/**
 * Reads a body into one buffer, where the stream supports that (Safari does not). A new buffer for each piece would
 * take as much fresh memory as the model has bytes, and the system has to clear fresh memory. The bytes of a read are
 * valid until the next one.
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

/** A broken connection: another try may succeed. */
class Interrupted extends Error {
  /** @param {string} message @param {unknown} [cause] */
  constructor(message, cause) {
    super(message, { cause });
    this.name = 'Interrupted';
  }
}

/** 429 and 5xx: another try may succeed after a while. */
class BusyServer extends WickError {
  /** @param {string} message @param {object} cause @param {number} waitMs */
  constructor(message, cause, waitMs) {
    super('HTTP', message, cause);
    this.waitMs = waitMs;
  }
}

/** 416: after a broken connection the server may count bytes differently, or may recover. */
class NoSuchRange extends WickError {
  /** @param {string} message */
  constructor(message) {
    super('TRUNCATED', message);
  }
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {number} limitMs 0: none
 * @param {AbortSignal} [cancelled] ends the waiting as well
 * @returns {Promise<T>}
 */
async function withTimeout(promise, limitMs, cancelled) {
  let stop = () => {};
  const ended = new Promise((_, fail) => {
    const message = `no byte came for ${limitMs / 1000} s`;
    const timer = limitMs && setTimeout(() => fail(new Interrupted(message)), limitMs);
    const unlisten = onAbort(cancelled, () => fail(new Interrupted('it was cancelled')));
    stop = () => {
      clearTimeout(timer || undefined);
      unlisten();
    };
  });
  try {
    return await Promise.race([promise, /** @type {Promise<never>} */ (ended)]);
  } finally {
    stop();
  }
}

/** @param {number} ms @param {AbortSignal} cancelled ends the waiting as well @returns {Promise<void>} */
function sleep(ms, cancelled) {
  return new Promise((settle) => {
    const timer = setTimeout(() => end(), ms);
    const stop = onAbort(cancelled, () => end());
    const end = () => {
      clearTimeout(timer);
      stop();
      settle();
    };
  });
}

/** @param {string} url @returns {boolean} */
function isSameOrigin(url) {
  const here = globalThis.location?.origin;
  return here === undefined || here === 'null' || new URL(url).origin === here;
}

/** @param {Response} response @param {number} wanted @returns {number} */
function startOfPart(response, wanted) {
  const told = /^bytes (\d+)-/.exec(response.headers.get('Content-Range') ?? '');
  const start = told ? Number(told[1]) : wanted;
  if (start > wanted) {
    throw new WickError('HTTP', `${response.url} answered bytes from ${start}, not from ${wanted}`);
  }
  return start;
}

/** @param {string} url @param {Response} response */
function httpError(url, response) {
  const { status, statusText } = response;
  const message = `${url} answered ${status}${statusText ? ` ${statusText}` : ''}`;
  const cause = { status, statusText, url: response.url };
  if (response.headers.get('X-Error-Code') === 'GatedRepo') {
    const hint = 'accept its terms on its page, and send a token';
    return new WickError('GATED', `${message}: the model is gated; ${hint}`, cause);
  }
  if (status !== 429 && status < 500) return new WickError('HTTP', message, cause);
  const seconds = Number(response.headers.get('Retry-After') ?? 0);
  return new BusyServer(message, cause, Math.min(BACKOFF_MS_MAX, (seconds || 0) * 1000));
}

/** @param {string} url @param {Response} response */
async function pageInsteadOfModel(url, response) {
  const title = /<title[^>]*>\s*([^<]{0,100})/i.exec(await startOfText(response))?.[1]?.trim();
  const named = title ? ` («${title}»)` : '';
  return new WickError(
    'NOT_GGUF',
    `${url} is a web page${named}, not a GGUF file. On a model hub, take the address of the ` +
      'download, not of the page that shows the file',
    { contentType: response.headers.get('Content-Type'), url: response.url },
  );
}

/** @param {Response} response @returns {Promise<string>} */
async function startOfText(response) {
  try {
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const { value } = await withTimeout(reader.read(), TITLE_MS);
    reader.cancel().catch(() => {});
    return new TextDecoder().decode(value);
  } catch {
    return '';
  }
}

/**
 * A fetch that failed without an answer. Browsers do not say why. A second request in the mode no-cors shows whether
 * the server refuses this page or cannot be reached.
 * @param {string} url
 * @param {unknown} error
 */
async function explainFailure(url, error) {
  const { host } = new URL(url);
  const reason = causeOf(error);
  if (!isSameOrigin(url) && globalThis.location !== undefined) {
    try {
      await withTimeout(fetch(url, { method: 'HEAD', mode: 'no-cors' }), 5000);
      return new WickError(
        'CORS',
        `${host} does not let this page (${globalThis.location.origin}) read the file: its answer has no ` +
          'Access-Control-Allow-Origin header. Serve the model from the page’s own origin, or allow ' +
          'it on that server',
        error,
      );
    } catch {
      // the server cannot be reached
    }
  }
  // An isolated page may not send such a request, so it cannot tell the two cases apart.
  const isUnclear = globalThis.crossOriginIsolated === true && !isSameOrigin(url);
  const or = isUnclear ? ', or does not let this page read (no Access-Control-Allow-Origin)' : '';
  return new WickError('NETWORK', `${host} could not be reached${reason}${or}`, error);
}

/** @param {unknown} error @returns {string} Node has the reason in the cause */
function causeOf(error) {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message ? `: ${cause.message}` : '';
}
