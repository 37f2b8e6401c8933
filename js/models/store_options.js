// js/models/store_options.js — checks the options of the store's calls before anything is fetched
// or written.

import { argumentError, wordsOf } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';

/** @import { GetOptions, ImportOptions, StoreOptions } from '../models.js' */

const CONNECTIONS_MAX = 64;
/** The longest delay of a timer. */
const STALL_MS_MAX = 2 ** 31 - 1;

/** @param {unknown} value */
const shown = (value) => (typeof value === 'string' ? JSON.stringify(value) : wordsOf(value));

/** @param {string} name @param {unknown} value @param {number} min @param {number} [max] */
function checkWhole(name, value, min, max = Number.MAX_SAFE_INTEGER) {
  if (value === undefined) return;
  const number = /** @type {number} */ (value);
  if (Number.isSafeInteger(value) && number >= min && number <= max) return;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw argumentError(`${name} must be a whole number ${range}, not ${shown(value)}`);
}

/** @param {string} name @param {unknown} value @param {'function' | 'object' | 'string' | 'boolean'} type */
function checkType(name, value, type) {
  if (value === undefined || (typeof value === type && value !== null)) return;
  throw argumentError(`${name} must be a ${type}, not ${shown(value)}`);
}

/** @param {HeadersInit | undefined} headers */
export function checkHeaders(headers) {
  try {
    new Headers(headers);
  } catch (error) {
    throw argumentError(`headers: ${wordsOf(error)}`);
  }
}

/** @param {StoreOptions} options @returns {StoreOptions} */
export function storeOptionsOf(options) {
  const { folder, evict } = checkNames(options, ['folder', 'evict']);
  if (folder !== undefined && (typeof folder !== 'string' || folder === '')) {
    throw argumentError(`folder must be a path, not ${shown(folder)}`);
  }
  checkType('evict', evict, 'boolean');
  return { folder, evict };
}

/**
 * @param {GetOptions['sha256'] | null} sha256
 * @returns {string | undefined} in lower case, as the store writes it
 */
function sha256Of(sha256) {
  if (sha256 === undefined || sha256 === null) return undefined;
  if (/^[\da-f]{64}$/i.test(wordsOf(sha256))) return wordsOf(sha256).toLowerCase();
  throw argumentError(`sha256 must be 64 hexadecimal digits, not ${shown(sha256)}`);
}

/** @type {(keyof GetOptions)[]} */
const getNames = [
  .../** @type {const} */ ([
    'signal',
    'onProgress',
    'sha256',
    'size',
    'hub',
    'headers',
    'fetch',
    'retries',
    'stallMs',
  ]),
  'connections',
];

/** @param {GetOptions} options @returns {GetOptions} */
export function getOptionsOf(options) {
  const { onProgress, fetch, hub, headers, ...numbers } = checkNames(options, getNames);
  checkType('onProgress', onProgress, 'function');
  checkType('fetch', fetch, 'function');
  checkType('hub', hub, 'object');
  checkHeaders(headers);
  const { size, retries, stallMs, connections } = numbers;
  checkWhole('size', size, 1);
  checkWhole('retries', retries, 0);
  checkWhole('stallMs', stallMs, 0, STALL_MS_MAX);
  checkWhole('connections', connections, 1, CONNECTIONS_MAX);
  return { ...options, sha256: sha256Of(options.sha256) };
}

/** @param {ImportOptions} options */
export function checkImportOptions(options) {
  const { name, url, onProgress } = checkNames(options, ['name', 'url', 'signal', 'onProgress']);
  checkType('onProgress', onProgress, 'function');
  checkType('name', name, 'string');
  if (!(url instanceof URL)) checkType('url', url, 'string');
  if (name === '' || url === '') throw argumentError(`${name === '' ? 'name' : 'url'} is empty`);
}
