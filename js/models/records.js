// js/models/records.js — the store's record of a model: the journal of its chunks during a download, and its metadata
// when it is complete. A record is JSON and is replaced as a whole.

import { WickError } from '../base/errors.js';
import { randomName } from '../base/random.js';
import { hashText } from './sha256.js';

/**
 * The version of the format of records and chunks. A record with a different version is ignored.
 */
export const VERSION = 1;
/** Every chunk has this size, except for the last one of a file. */
export const CHUNK_BYTES = 4 << 20;

/**
 * @typedef {object} ModelRecord
 * @property {number} version
 * @property {string} id the name of its folder or record in the store
 * @property {string} stamp changes whenever the download starts over
 * @property {string} name of the file
 * @property {string[]} urls the URLs that it came from
 * @property {number | null} size in bytes, once it is known
 * @property {string | null} tag the ETag or date of the version that is being downloaded
 * @property {string | null} sha256 of the whole file: known beforehand, or computed
 * @property {(string | null)[]} sums checksums of the chunks that are stored
 * @property {{size: number, state: number[]} | null} hash SHA-256 of the first chunks
 * @property {string | null} fingerprint of the content; only complete models have one
 * @property {number} createdMs Unix time
 * @property {number} usedMs Unix time
 */

/** @import { ModelEntry } from '../models.js' */
/**
 * @typedef {{name: string, urls?: string[], size?: number | null, sha256?: string | null}} Known
 * the properties that are known before the download
 */

/** @param {string} url @returns {string} the id under which the model of a URL is stored */
export const idOf = (url) => hashText(url).slice(0, 32);

/**
 * @param {string} id
 * @param {Known} known
 * @returns {ModelRecord}
 */
export function newRecord(id, { name, urls = [], size, sha256 }) {
  const now = Date.now();
  return {
    version: VERSION,
    id,
    stamp: randomName(),
    name,
    urls: [...urls],
    size: size ?? null,
    tag: null,
    sha256: sha256 ?? null,
    sums: [],
    hash: null,
    fingerprint: null,
    createdMs: now,
    usedMs: now,
  };
}

/** @param {unknown} found the parsed file @returns {ModelRecord | undefined} */
export function checkRecord(found) {
  const record = /** @type {any} */ (found);
  if (record?.version !== VERSION || !Array.isArray(record.sums)) return undefined;
  return Array.isArray(record.urls) && typeof record.id === 'string' ? record : undefined;
}

/** @param {string} text @returns {ModelRecord | undefined} */
export function parseRecord(text) {
  try {
    return checkRecord(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** @param {number} size @returns {number} */
export const chunkCount = (size) => Math.ceil(size / CHUNK_BYTES);

/**
 * @param {ModelRecord} record
 * @param {number} index
 * @returns {number} the chunk's size, or the maximum if the file's size is not known
 */
export function chunkSize({ size }, index) {
  return size === null ? CHUNK_BYTES : Math.min(CHUNK_BYTES, size - index * CHUNK_BYTES);
}

/**
 * @param {ModelRecord} record of a complete model
 * @param {number} index
 * @param {import('./backends.js').Backend} backend
 */
export async function readWhole(record, index, backend) {
  const bytes = await backend.readChunk(record.id, index, chunkSize(record, index));
  if (bytes) return bytes;
  throw new WickError('CORRUPT', `${record.name}: chunk ${index} is missing`);
}

/**
 * @param {import('./sha256.js').Sha256} sha the hash of the preceding chunks
 * @param {ModelRecord} record whose size is known
 * @param {(index: number) => Promise<Uint8Array>} read returns a chunk
 * @returns {Promise<string>} the SHA-256 of the file
 */
export async function sumOf(sha, record, read) {
  const size = /** @type {number} */ (record.size);
  while (sha.size < size) sha.update(await read(sha.size / CHUNK_BYTES));
  return sha.hex();
}

/** @param {ModelRecord} record @returns {boolean} whether all chunks are stored */
export function hasAllChunks({ size, sums }) {
  if (size === null || size === 0) return false;
  return Array.from({ length: chunkCount(size) }, (_, index) => sums[index]).every(Boolean);
}

/** @param {ModelRecord} record @returns {number} bytes */
export function storedBytes(record) {
  return record.sums.reduce((sum, one, index) => sum + (one ? chunkSize(record, index) : 0), 0);
}

/**
 * @param {ModelRecord} record with all chunks
 * @returns {string} the fingerprint of the content: equal bytes have equal fingerprints
 */
export const fingerprintOf = ({ size, sums }) => hashText([size, ...sums].join(' '));

/** @param {ModelRecord} record @returns {ModelEntry} */
export function entryOf(record) {
  const { id, name, urls, size, sha256, fingerprint, createdMs, usedMs } = record;
  return {
    id,
    name,
    urls: [...urls],
    size: size ?? undefined,
    storedBytes: storedBytes(record),
    isWhole: fingerprint !== null,
    fingerprint: fingerprint ?? undefined,
    sha256: sha256 ?? undefined,
    created: new Date(createdMs),
    used: new Date(usedMs),
    version: record.version,
  };
}
