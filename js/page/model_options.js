// js/page/model_options.js — the options of createEngine that locate the model: URLs, files on
// disk, blobs or a stream.

import { argumentError, WickError, wordsOf } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { splitNames } from '../bytes/split_files.js';
import { loadSources } from './later.js';
import { checkCallback, checkNumber, shown } from './option_checks.js';

/** @typedef {import('../index.js').EngineSettings & import('../index.js').ModelSource} EngineOptions */
/** @import { Source, SourceDescription } from '../bytes/model_sources.js' */

/**
 * @typedef {object} ModelLocation
 * @property {SourceDescription} description
 * @property {(() => Promise<Source>) | undefined} source the source that the page reads itself
 * @property {(code: string, canRemove: boolean) => Promise<void>} [invalidate] for a cached model that the engine
 * rejected
 * @property {ReturnType<typeof downloadOf> & {urls: string[], model?: string, part?: 'mmproj', hub?: object,
 *   fetch?: typeof globalThis.fetch}} [download] the options for downloading a model that has URLs
 *   or a name; `part`: the options of the file next to it
 */

export const sourceNames = /** @type {const} */ (['url', 'file', 'blob', 'bytes', 'stream']);
export const downloadNames = /** @type {const} */ (['headers', 'fetch', 'retries', 'stallMs']);

const RETRIES = 5;
const STALL_MS = 30_000;
/** The longest delay of a timer. */
const STALL_MS_MAX = 2 ** 31 - 1;

/**
 * Returns the download options. They are checked for every source before any byte is fetched.
 * @param {EngineOptions} options
 */
export function downloadOf(options) {
  const { headers, retries, stallMs } = options;
  checkCallback('fetch', options.fetch);
  return {
    headers: headersOf(headers ?? {}),
    retries: checkNumber('retries', retries ?? RETRIES, { min: 0, whole: true }),
    stallMs: checkNumber('stallMs', stallMs ?? STALL_MS, {
      min: 0,
      max: STALL_MS_MAX,
      whole: true,
    }),
  };
}

/**
 * @template {string} Name
 * @param {Record<string, any>} options
 * @param {readonly Name[]} names of options of which exactly one must be set
 * @returns {Name} that option
 */
export function onlySourceOf(options, names) {
  const given = names.filter((name) => (options[name] ?? null) !== null);
  if (given.length === 1) return given[0];
  const found = given.length === 0 ? 'none was given' : `${given.join(' and ')} were given`;
  const known = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  throw argumentError(`createEngine needs one of ${known}: ${found}`);
}

/**
 * Returns the model's source. `description` is sent to the worker. `source`, if set, stays in the page, and the
 * worker reads it through messages.
 * @param {EngineOptions} options
 * @returns {ModelLocation}
 */
export function sourceOf(options) {
  const given = onlySourceOf(options, sourceNames);
  if (given === 'url') return urlSource(options);
  if (given === 'bytes') return blobSource([blobOf(options.bytes)]);
  if (given === 'stream') {
    const stream = checkStream(/** @type {any} */ (options.stream));
    return onPage(1, false, async () => new (await loadSources()).StreamSource(stream));
  }
  const files = [options.file ?? options.blob].flat();
  const arePaths = files.every((file) => typeof file === 'string' || file instanceof URL);
  if (arePaths && given === 'file') {
    return pathSource(/** @type {(string | URL)[]} */ (files));
  }
  if (files.every((file) => file instanceof Blob)) return blobSource(files);
  const kinds = given === 'file' ? 'a Blob, a File or a path' : 'a Blob or a File';
  throw argumentError(`${given} must be ${kinds}, or an array of them`);
}

/** @param {NonNullable<EngineOptions['draft']>} draft @returns {import('../connection/messages.js').OwnSource} */
export function draftOf(draft) {
  if (typeof draft !== 'object' || draft === null) {
    throw argumentError('draft must be an object with a url, a file or a blob');
  }
  checkNames(draft, ['url', 'file', 'blob'], ['bytes', 'stream', ...downloadNames]);
  const { description } = sourceOf(draft);
  if (description.kind !== 'page') return description;
  throw argumentError('draft must be a url, a file or a blob that the worker can read');
}

/**
 * @param {unknown} mmproj
 * @param {EngineOptions} options the download options are used
 * @returns {ModelLocation}
 */
export function mmprojOf(mmproj, { headers, fetch, retries, stallMs }) {
  const isFile = mmproj instanceof Blob;
  const isBytes = mmproj instanceof ArrayBuffer || ArrayBuffer.isView(mmproj);
  const isAddress = typeof mmproj === 'string' || mmproj instanceof URL;
  if (!isFile && !isBytes && !isAddress) {
    throw argumentError(`mmproj must be a URL, a path, a Blob or bytes, not ${shown(mmproj)}`);
  }
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  const isPath = isAddress && base === undefined && !/^(https?|data):/i.test(String(mmproj));
  const from = isFile
    ? { blob: mmproj }
    : isBytes
      ? { blob: blobOf(mmproj) }
      : isPath
        ? { file: /** @type {any} */ (mmproj) }
        : { url: /** @type {any} */ (mmproj) };
  return sourceOf(/** @type {any} */ ({ ...from, headers, fetch, retries, stallMs }));
}

/** @param {unknown} bytes @returns {Blob} */
function blobOf(bytes) {
  const isBytes = bytes instanceof ArrayBuffer || ArrayBuffer.isView(bytes);
  if (isBytes) return new Blob([/** @type {ArrayBuffer} */ (bytes)]);
  throw argumentError(`bytes must be an ArrayBuffer or a view of one, not ${shown(bytes)}`);
}

/** @param {Response} response @returns {ReadableStream<Uint8Array>} */
function bodyOf({ ok, status, url, body, bodyUsed }) {
  if (!ok) throw new WickError('HTTP', `${url || 'The server'} answered ${status}`, { status });
  if (body && !bodyUsed) return body;
  throw argumentError('stream: the Response has no body, or its body has already been read');
}

/** @param {NonNullable<EngineOptions['stream']>} stream @returns {Exclude<typeof stream, Response>} */
function checkStream(stream) {
  if (stream instanceof Response) return checkStream(bodyOf(stream));
  const given = /** @type {any} */ (stream);
  if (given.locked) throw argumentError('stream is locked by another reader');
  const isStream = typeof given.getReader === 'function';
  if (isStream || typeof given[Symbol.asyncIterator] === 'function') return stream;
  throw argumentError('stream must be a ReadableStream or an async iterable of bytes');
}

/**
 * @param {number} files
 * @param {boolean} canSeek
 * @param {() => Promise<Source>} source
 * @returns {ModelLocation}
 */
const onPage = (files, canSeek, source) => ({
  description: { kind: 'page', files, canSeek },
  source,
});

/** @param {EngineOptions} options */
function urlSource(options) {
  const urls = namesOf(
    [options.url].flat().map((url) => absoluteUrl(/** @type {any} */ (url)).href),
  );
  if (urls.every((url) => url.startsWith('file:'))) return pathSource(urls);
  const how = downloadOf(options);
  const { fetch } = options;
  const download = { urls, ...how, fetch };
  if (fetch) {
    const open = async () => new (await loadSources()).HttpSource({ urls, fetch, ...how });
    return { ...onPage(urls.length, true, open), download };
  }
  const description = /** @type {const} */ ({ kind: 'url', urls, ...how });
  return { description, source: undefined, download };
}

/**
 * Headers would convert any value to text, even undefined, so the values are checked.
 * @param {unknown} headers
 * @returns {Record<string, string>}
 */
function headersOf(headers) {
  if (typeof headers !== 'object' || headers === null) {
    throw argumentError(`headers must be an object of strings, not ${shown(headers)}`);
  }
  const isIterable = typeof (/** @type {any} */ (headers)[Symbol.iterator]) === 'function';
  const pairs = isIterable
    ? [.../** @type {Iterable<unknown>} */ (headers)]
    : Object.entries(headers);
  // The first use of the name Headers makes Node load fetch, which takes 20 ms and is not needed
  // for a model in a file.
  if (pairs.length === 0) return {};
  return Object.fromEntries(new Headers(pairs.map(headerOf)));
}

/** @param {unknown} pair a name and a value @returns {[string, string]} */
function headerOf(pair) {
  const [name, value, more] = Array.isArray(pair) ? pair : [];
  if (typeof name !== 'string' || more !== undefined) {
    throw argumentError('headers must be an object of strings, Headers, or pairs of strings');
  }
  if (typeof value !== 'string') {
    throw argumentError(`headers: ${name} must be a string, not ${wordsOf(value)}`);
  }
  try {
    new Headers([[name, value]]);
  } catch (error) {
    throw argumentError(`headers: ${JSON.stringify(name)} cannot be sent: ${wordsOf(error)}`);
  }
  return [name, value];
}

/** @param {string | URL} url */
function absoluteUrl(url) {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  const text = wordsOf(url);
  // URL would mistake a drive letter for a scheme
  if (!/^[a-z]:[\\/]/i.test(text) && URL.canParse(text, base)) return new URL(text, base);
  const isPath = typeof url === 'string' && /[\\/.~]/.test(text);
  const hint = isPath ? `: pass a path on disk as file: '${text}', or a File in a page` : '';
  throw argumentError(`url: ${text} is not a URL${hint}`);
}

/** @param {string[]} names all names of a split model's files, or one of them */
function namesOf(names) {
  return names.length === 1 ? splitNames(names[0]) : names;
}

/** @param {(string | URL)[]} files */
function pathSource(files) {
  const url = globalThis.process?.getBuiltinModule?.('node:url');
  const paths = files.map((file) => {
    const isUrl = file instanceof URL || file.startsWith('file:');
    return isUrl && url ? url.fileURLToPath(file) : String(file);
  });
  return {
    description: /** @type {const} */ ({ kind: 'path', paths: namesOf(paths) }),
    source: undefined,
  };
}

/** @param {Blob[]} files @returns {ReturnType<typeof sourceOf>} */
function blobSource(files) {
  const blobs = [...files].sort((a, b) => nameOfBlob(a).localeCompare(nameOfBlob(b)));
  if (!canSend(blobs[0])) {
    return onPage(blobs.length, true, async () => new (await loadSources()).BlobSource(blobs));
  }
  return { description: { kind: 'blob', blobs }, source: undefined };
}

/** @param {Blob} blob */
export const nameOfBlob = (blob) => ('name' in blob ? String(blob.name) : '');

/**
 * Returns whether the worker can read it without the page. It cannot in Node, which does not support
 * cloning a File; Node 20 even crashes if a worker reads a Blob of a file.
 * @param {Blob} blob
 */
function canSend(blob) {
  if (typeof Worker !== 'function') return false;
  try {
    return structuredClone(blob) instanceof Blob;
  } catch {
    return false;
  }
}
