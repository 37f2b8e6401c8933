// js/models/check_model.js — checks whether a stored model is the requested one, and whether its
// server still has it. The store is not changed.

import { argumentError, throwIfAborted, WickError, wordsOf } from '../base/errors.js';
import { validatorOf } from '../bytes/http_answer.js';
import { parseHubName, resolveHubModel } from './hub.js';
import { readWhole, sumOf } from './records.js';
import { Sha256 } from './sha256.js';
import { checkHeaders } from './store_options.js';

/** @import { CheckOptions } from '../models.js' */
/** @import { ModelRecord } from './records.js' */
/** @typedef {import('../models.js').ModelCheck['state']} State */

/** @param {unknown} kept @param {unknown} found @returns {State} */
const compared = (kept, found) => (kept === found ? 'same' : 'newer');

/** @param {ModelRecord} record @param {string} name on the hub @param {CheckOptions} options @returns {Promise<State>} */
async function askHub(record, name, { hub, fetch, signal }) {
  const wanted = parseHubName(name);
  if (!wanted) return 'unknown';
  const [{ sha256, size }] = await resolveHubModel(wanted, { ...hub, fetch, signal });
  return sha256 && record.sha256 ? compared(record.sha256, sha256) : sizesOf(record, size);
}

/**
 * Compares sizes: a file of the same size may still be a different one.
 * @param {ModelRecord} record
 * @param {number} size
 * @returns {State}
 */
const sizesOf = (record, size) =>
  record.size !== null && Number.isSafeInteger(size) && size !== record.size ? 'newer' : 'unknown';

/** @param {Response} response @returns {number} the size of the whole file, NaN if it is unknown */
function sizeTold({ status, headers }) {
  if (headers.has('Content-Encoding')) return Number.NaN;
  if (status !== 206) return Number(headers.get('Content-Length') ?? Number.NaN);
  return Number(/\/(\d+)$/.exec(headers.get('Content-Range') ?? '')?.[1] ?? Number.NaN);
}

/** One byte is requested, because servers support HEAD less reliably. @param {ModelRecord} record @param {string} url @param {CheckOptions} options */
async function askServer(record, url, { fetch = globalThis.fetch, headers, signal }) {
  const sent = new Headers(headers);
  sent.set('Range', 'bytes=0-0');
  const response = await fetch(url, { headers: sent, cache: 'no-store', signal: signal ?? null });
  response.body?.cancel().catch(() => {});
  const { status } = response;
  if (!response.ok) throw new WickError('HTTP', `${url} answered ${status}`, { status, url });
  const linked = /^"([0-9a-f]{64})"$/.exec(response.headers.get('X-Linked-ETag') ?? '')?.[1];
  if (linked && record.sha256) return compared(record.sha256, linked);
  const validator = validatorOf(response);
  const bySize = sizesOf(record, sizeTold(response));
  if (bySize === 'newer' || !validator || !record.tag) return bySize;
  return compared(record.tag, validator);
}

/**
 * Checks the arguments, so that invalid ones are not reported as a server error.
 * @param {CheckOptions} options
 */
function checkGiven({ fetch, headers }) {
  if (fetch !== undefined && typeof fetch !== 'function') {
    throw argumentError('fetch must be a function');
  }
  checkHeaders(headers);
}

/**
 * @param {ModelRecord} record of a complete model
 * @param {CheckOptions} options
 * @returns {Promise<{state: State, reason?: string}>} the state; an unreachable server is not a
 * failure
 */
export async function compareWithServer(record, options) {
  checkGiven(options);
  const name = record.urls.find((one) => parseHubName(one));
  const url = record.urls.find((one) => /^https?:/.test(one));
  try {
    const state = name
      ? await askHub(record, name, options)
      : url && (await askServer(record, url, options));
    if (state && state !== 'unknown') return { state };
    const reason = state ? 'the server does not report a version' : 'its URL is not known';
    return { state: 'unknown', reason };
  } catch (error) {
    if (options.signal?.aborted) throw error;
    return { state: 'unknown', reason: wordsOf(error) };
  }
}

/**
 * Rejects a model whose SHA-256 or size differs from the expected one (CORRUPT).
 * @param {{name: string, sha256?: string | null, size?: number | null}} found its SHA-256 may be
 * unknown
 * @param {import('../models.js').GetOptions} wanted
 * @param {string} where a phrase such as "is stored"
 */
export function refuseOther(found, wanted, where) {
  const refuse = (
    /** @type {string} */ what,
    /** @type {unknown} */ has,
    /** @type {unknown} */ asked,
  ) => {
    if (asked == null || has == null || has === asked) return;
    throw new WickError('CORRUPT', `${found.name}: ${where} with the ${what} ${has}, not ${asked}`);
  };
  refuse('size', found.size, wanted.size);
  refuse('SHA-256', found.sha256, wanted.sha256);
}

/**
 * Rejects a complete model that is not the expected one. Its SHA-256 is computed if it is not
 * known.
 * @param {ModelRecord} record
 * @param {import('../models.js').GetOptions} wanted
 * @param {import('./backends.js').Backend} backend
 */
export async function refuseOtherKept(record, wanted, backend) {
  const read = (/** @type {number} */ index) => {
    throwIfAborted(wanted.signal);
    return readWhole(record, index, backend);
  };
  if (wanted.sha256) record.sha256 ??= await sumOf(new Sha256(), record, read);
  refuseOther(record, wanted, 'is stored');
}
