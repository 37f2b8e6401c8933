// js/bytes/http_answer.js — reads the headers of a response: the version of the file, the part of
// it that the body contains, and the time after which a busy server may be tried again.

import { WickError } from '../base/errors.js';

/** The longest pause that a server may request; a longer one is reported to the caller at once. */
export const RETRY_AFTER_MS_MAX = 120_000;

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
