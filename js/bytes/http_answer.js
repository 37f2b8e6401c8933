// js/bytes/http_answer.js — a server's response: its headers (the version of the file, the part of it
// that the body contains, the time after which a busy server may be tried again), and the errors that
// explain a response which is missing or is not the file.

import { onAbort } from '../base/abort_signals.js';
import { WickError } from '../base/errors.js';

/** The longest pause that a server may request; a longer one is reported to the caller at once. */
export const RETRY_AFTER_MS_MAX = 120_000;
/** The number of bytes that an error quotes from a response that is not a model. */
export const REFUSAL_BYTES = 40;
/** The time limit for reading the title of a web page, which only improves an error message. */
const TITLE_MS = 30_000;

/** @param {Response} response @returns {string | null} the version of the file: a strong tag, or its date */
export function validatorOf({ headers }) {
  const tag = headers.get('ETag');
  return (tag?.startsWith('W/') ? null : tag) ?? headers.get('Last-Modified');
}

/** @param {Response} response @returns {boolean} */
export const isCompressed = ({ headers }) =>
  /^(gzip|br|deflate|zstd|compress)/i.test(headers.get('Content-Encoding') ?? '');

/** @param {Response} response @returns {number | undefined} */
export function lengthOf({ headers }) {
  const length = Number(headers.get('Content-Length') ?? Number.NaN);
  return Number.isSafeInteger(length) && length >= 0 ? length : undefined;
}

/**
 * The part of the file that a response with status 206 contains. `end` is the offset after its last
 * byte, and `size` is the size of the file. `isSane` is false if its headers contradict each other.
 * @typedef {{start: number, end: number, size: number | undefined, isSane: boolean}} Part
 */

/**
 * @param {Response} response with status 206
 * @returns {Part | 'hidden' | undefined} 'hidden' if the header is missing, or this page may not
 * read it; undefined if the body is not a plain part of the file
 */
export function partOf(response) {
  const { headers } = response;
  const isMultipart = /^multipart\//i.test(headers.get('Content-Type') ?? '');
  if (isMultipart || isCompressed(response)) return undefined;
  const range = headers.get('Content-Range');
  if (range === null) return 'hidden';
  const found = /^bytes (\d+)-(\d+)\/(\d+|\*)$/i.exec(range.trim());
  if (!found) return undefined;
  const [start, end] = [Number(found[1]), Number(found[2]) + 1];
  const size = found[3] === '*' ? undefined : Number(found[3]);
  const length = lengthOf(response);
  const isWithin = end > start && (size === undefined || end <= size);
  // a page may not read Content-Encoding from another origin, where the length may be that of compressed bytes
  const isOther = response.type !== 'cors' && length !== undefined && length !== end - start;
  return { start, end, size, isSane: isWithin && !isOther };
}

/**
 * @param {Response} response
 * @returns {number} the pause that its server requests; 0 if it requests none
 */
export function retryAfterMs({ headers }) {
  const text = headers.get('Retry-After')?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - Date.now());
}

/** 429 and 5xx: another attempt may succeed after a while. */
export class BusyServer extends WickError {
  /** @param {string} message @param {object} cause @param {number} waitMs */
  constructor(message, cause, waitMs) {
    super('HTTP', message, cause);
    this.waitMs = waitMs;
  }
}

/** @param {string} url @param {Response} response that has an error status */
export function httpError(url, response) {
  const { status, statusText } = response;
  const message = `${url} answered ${status}${statusText ? ` ${statusText}` : ''}`;
  const cause = { status, statusText, url: response.url };
  if (response.headers.get('X-Error-Code') === 'GatedRepo') {
    const hint = 'accept its terms on its page, and send a token';
    return new WickError('GATED', `${message}: the model is gated; ${hint}`, cause);
  }
  if (status !== 429 && status < 500) return new WickError('HTTP', message, cause);
  const waitMs = retryAfterMs(response);
  if (waitMs <= RETRY_AFTER_MS_MAX) return new BusyServer(message, cause, waitMs);
  const seconds = Math.ceil(waitMs / 1000);
  const limit = RETRY_AFTER_MS_MAX / 1000;
  const words = `${message}: it requests a pause of ${seconds} s (limit ${limit} s). Try again later`;
  return new WickError('HTTP', words, { ...cause, retryAfterSeconds: seconds });
}

// ---- waiting ----

/** A broken connection: another attempt may succeed. */
export class Interrupted extends Error {
  /** @param {string} message @param {unknown} [cause] */
  constructor(message, cause) {
    super(message, { cause });
    this.name = 'Interrupted';
  }
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {number} limitMs 0: no limit
 * @param {AbortSignal} [cancelled] also ends the wait
 * @returns {Promise<T>}
 */
export async function withTimeout(promise, limitMs, cancelled) {
  let stop = () => {};
  const ended = new Promise((_, fail) => {
    const message = `no byte arrived for ${limitMs / 1000} s`;
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

// ---- responses that are not the file ----

/** @param {string} url @returns {boolean} */
export function isSameOrigin(url) {
  const here = globalThis.location?.origin;
  return here === undefined || here === 'null' || new URL(url).origin === here;
}

/**
 * @param {string} url
 * @param {string} start the start of the response body
 * @returns {WickError | undefined} undefined: it begins like a GGUF file
 */
export function refusalOf(url, start) {
  if (start.startsWith('GGUF')) return undefined;
  const begins =
    start === '' ? 'is empty' : `begins with «${start.slice(0, REFUSAL_BYTES).trim()}»`;
  return new WickError('NOT_GGUF', `${url}: not a GGUF file, because it ${begins}`);
}

/** @param {string} url @param {Response} response */
export async function pageInsteadOfModel(url, response) {
  const title = /<title[^>]*>\s*([^<]{0,100})/i.exec(await startOfText(response))?.[1]?.trim();
  const named = title ? ` («${title}»)` : '';
  return new WickError(
    'NOT_GGUF',
    `${url} is a web page${named}, not a GGUF file. On a model hub, use the URL of the ` +
      'download, not that of the page that shows the file',
    { contentType: response.headers.get('Content-Type'), url: response.url },
  );
}

/** @param {Response} response @returns {Promise<string>} */
export async function startOfText(response) {
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
 * Describes a fetch that failed without a response. Browsers do not report the reason. A second request in no-cors
 * mode shows whether the server rejects this page or cannot be reached.
 * @param {string} url
 * @param {unknown} error
 */
export async function explainFailure(url, error) {
  const { host } = new URL(url);
  const cause = error instanceof Error ? error.cause : undefined; // where Node stores the reason
  const reason = cause instanceof Error && cause.message ? `: ${cause.message}` : '';
  if (!isSameOrigin(url) && globalThis.location !== undefined) {
    try {
      await withTimeout(fetch(url, { method: 'HEAD', mode: 'no-cors' }), 5000);
      return new WickError(
        'CORS',
        `${host} does not let this page (${globalThis.location.origin}) read the file: its response has no ` +
          'Access-Control-Allow-Origin header. Serve the model from the page’s own origin, or allow ' +
          'it on that server',
        error,
      );
    } catch {
      // the server cannot be reached
    }
  }
  // An isolated page may not send such a request, so it cannot distinguish the two cases.
  const isUnclear = globalThis.crossOriginIsolated === true && !isSameOrigin(url);
  const or = isUnclear
    ? ', or does not let this page read it (no Access-Control-Allow-Origin)'
    : '';
  return new WickError('NETWORK', `${host} could not be reached${reason}${or}`, error);
}
