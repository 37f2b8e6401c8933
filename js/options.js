// js/options.js — what callers pass in, checked and completed: a wrong type is said by name here, what
// depends on the model is said by the engine.

import { WickError, wordsOf } from './errors.js';
import { HttpSource } from './fetch.js';
import { checkNames } from './known.js';
import { splitNames } from './names.js';
import { VERSION } from './protocol.js';
import { randomWord } from './random.js';
import { BlobSource, StreamSource } from './source.js';

/** @typedef {import('./index.js').EngineOptions} EngineOptions */
/** @typedef {import('./index.js').GenerateOptions} GenerateOptions */
/** @typedef {import('./protocol.js').Settings} Settings */
/** @typedef {import('./source.js').Source} Source */
/** @typedef {import('./source.js').SourceDescription} SourceDescription */

/** @param {string} message */
export const argumentError = (message) => new WickError('ARG', message);

/** @param {unknown} value @returns {string} so that '2' is not taken for 2 */
export const shown = (value) =>
  typeof value === 'string' ? `the string ${JSON.stringify(value)}` : wordsOf(value);

/**
 * @param {string} name
 * @param {unknown} value
 * @param {{min: number, max?: number, whole?: boolean}} range
 * @returns {number}
 */
function checkNumber(name, value, { min, max = Number.MAX_SAFE_INTEGER, whole = false }) {
  const number = /** @type {number} */ (value);
  const fits = typeof value === 'number' && number >= min && number <= max;
  if (fits && (!whole || Number.isInteger(number))) return number;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw argumentError(
    `${name} must be a ${whole ? 'whole ' : ''}number ${range}, not ${shown(value)}`,
  );
}

const U32_MAX = 2 ** 32 - 1;

/** llama.cpp's defaults, which GGUF models are made and tried with. */
const defaults = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 };

/** All of them: a new one is missed by the types here. @type {Record<keyof GenerateOptions, true>} */
const generateNames = {
  maxTokens: true,
  temperature: true,
  topK: true,
  topP: true,
  minP: true,
  repeatPenalty: true,
  frequencyPenalty: true,
  presencePenalty: true,
  penaltyLast: true,
  seed: true,
  logitBias: true,
  logprobs: true,
  stop: true,
  ignoreEnd: true,
  printSpecial: true,
  priority: true,
  speculation: true,
  salt: true,
  forced: true,
  signal: true,
  onPrefill: true,
  onToken: true,
};

/** @param {GenerateOptions} options @returns {Settings} */
export function settingsOf(options) {
  checkNames(options, /** @type {(keyof GenerateOptions)[]} */ (Object.keys(generateNames)));
  /** @param {keyof GenerateOptions} name @param {number} byDefault @param {Parameters<typeof checkNumber>[2]} range */
  const number = (name, byDefault, range) => checkNumber(name, options[name] ?? byDefault, range);
  const count = { min: 0, max: U32_MAX, whole: true };
  const some = { ...count, min: 1 };
  return {
    // 0 is the engine's word for none given
    maxTokens: (options.maxTokens ?? undefined) === undefined ? 0 : number('maxTokens', 0, some),
    temperature: number('temperature', defaults.temperature, { min: 0 }),
    topK: number('topK', defaults.topK, count),
    topP: number('topP', defaults.topP, { min: 0, max: 1 }),
    minP: number('minP', defaults.minP, { min: 0, max: 1 }),
    repeatPenalty: number('repeatPenalty', 1, { min: 0 }),
    frequencyPenalty: number('frequencyPenalty', 0, { min: -100, max: 100 }),
    presencePenalty: number('presencePenalty', 0, { min: -100, max: 100 }),
    penaltyLast: number('penaltyLast', 0, count),
    seed: seedOf(options.seed),
    logitBias: biasOf(options.logitBias),
    logprob: (options.logprobs ?? undefined) !== undefined,
    logprobs: number('logprobs', 0, { min: 0, max: 20, whole: true }),
    stop: stopsOf(options.stop),
    ignoreEnd: options.ignoreEnd === true,
    printSpecial: options.printSpecial === true,
    priority: number('priority', 0, { min: -100, max: 100, whole: true }),
    speculation: speculationOf(options.speculation ?? true),
    salt: saltOf(options.salt),
    forced: options.forced === undefined ? [] : tokensOf(options.forced),
  };
}

/**
 * Text that is no text (half of a surrogate pair) would become the same bytes as another.
 * @param {unknown} salt
 * @returns {string} '' when there is none
 */
export function saltOf(salt) {
  if (salt === undefined || salt === null) return '';
  if (typeof salt !== 'string') throw argumentError('salt must be a string');
  if (salt === '') throw argumentError("salt must not be empty: '' would be everybody's");
  if (/\p{Surrogate}/u.test(salt)) throw argumentError('salt must be well-formed text');
  return salt;
}

/** @param {unknown} speculation @returns {boolean | 'always'} */
function speculationOf(speculation) {
  if (typeof speculation === 'boolean' || speculation === 'always') return speculation;
  throw argumentError(`speculation must be true, false or 'always', not ${shown(speculation)}`);
}

/** @param {number | bigint | null | undefined} seed @returns {bigint} */
function seedOf(seed) {
  if (seed === undefined || seed === null)
    return (BigInt(randomWord()) << 32n) | BigInt(randomWord());
  if (typeof seed === 'bigint') return BigInt.asUintN(64, seed);
  if (Number.isSafeInteger(seed)) return BigInt.asUintN(64, BigInt(seed));
  if (Number.isInteger(seed)) {
    throw argumentError(
      `seed ${seed} is greater than a number can hold exactly: give it as a bigint`,
    );
  }
  throw argumentError(`seed must be a whole number, not ${shown(seed)}`);
}

/** @param {GenerateOptions['logitBias']} bias @returns {[number, number][]} */
function biasOf(bias) {
  if (typeof (bias ?? {}) !== 'object') {
    throw argumentError('logitBias must be an object or a Map of token ids and numbers');
  }
  const pairs = bias instanceof Map ? [...bias] : Object.entries(bias ?? {});
  return pairs.map(([key, value]) => {
    const token = checkNumber('a token of logitBias', Number(key), {
      min: 0,
      max: U32_MAX,
      whole: true,
    });
    if (typeof value !== 'number' || Number.isNaN(value)) {
      throw argumentError(`logitBias of token ${key} must be a number, not ${shown(value)}`);
    }
    return [token, value];
  });
}

/** @param {unknown} stop @returns {string[]} */
function stopsOf(stop) {
  const stops = stop === undefined || stop === null ? [] : typeof stop === 'string' ? [stop] : stop;
  if (Array.isArray(stops) && stops.every((item) => typeof item === 'string')) return stops;
  throw argumentError('stop must be a string or an array of strings');
}

/** @param {string} name @param {unknown} value @returns {number} */
export const checkCount = (name, value) =>
  checkNumber(name, value, { min: 0, max: U32_MAX, whole: true });

/** @param {string} name @param {unknown} value @returns {number} */
export const checkCompletions = (name, value) =>
  checkNumber(name, value, { min: 1, max: 16, whole: true });

/** @param {string} name @param {unknown} value */
export function checkCallback(name, value) {
  if ((value ?? undefined) === undefined || typeof value === 'function') return;
  throw argumentError(`${name} must be a function`);
}

/** @param {unknown} tokens @returns {number[] | undefined} nothing if they are no list of token ids */
function idsOf(tokens) {
  if (!Array.isArray(tokens) && !ArrayBuffer.isView(tokens)) return undefined;
  const ids = Array.from(/** @type {any} */ (tokens));
  // as int32 they are passed on: what is no such number would be another token there
  return ids.every((token) => Number.isInteger(token) && (token | 0) === token) ? ids : undefined;
}

/** @param {unknown} tokens @returns {number[]} */
export function tokensOf(tokens) {
  const ids = idsOf(tokens);
  if (ids) return ids;
  throw argumentError('The tokens must be an array of token ids');
}

/**
 * @param {unknown} prompt
 * @param {boolean} [mayBeEmpty] an empty array is no prompt by itself
 * @returns {string | number[]}
 */
export function promptOf(prompt, mayBeEmpty = false) {
  if (typeof prompt === 'string') return prompt;
  const tokens = idsOf(prompt);
  if (tokens && tokens.length > 0) return tokens;
  if (tokens && mayBeEmpty) return '';
  throw argumentError('The prompt must be a string or an array of token ids');
}

// ---- the engine's own ----

/** Of the model's source. @type {Record<keyof import('./index.js').ModelSource, true>} */
const sourceNames = { url: true, file: true, blob: true, stream: true };

/** All of them, too. @type {Record<keyof EngineOptions, true>} */
const engineNames = {
  ...sourceNames,
  headers: true,
  fetch: true,
  retries: true,
  stallMs: true,
  signal: true,
  onProgress: true,
  threads: true,
  contextSize: true,
  batchSize: true,
  kvType: true,
  kvTokens: true,
  queueLimit: true,
  draft: true,
  prefixCache: true,
  swap: true,
  memoryLimit: true,
  eager: true,
  shared: true,
  onLead: true,
  metrics: true,
  directoryOnly: true,
  chatTemplate: true,
  worker: true,
  wasm: true,
};

/** @param {EngineOptions} options */
export function checkEngineNames(options) {
  if (typeof options !== 'object' || options === null) {
    throw argumentError('createEngine wants an object of options');
  }
  checkNames(options, /** @type {(keyof EngineOptions)[]} */ (Object.keys(engineNames)));
  const { chatTemplate, worker } = options;
  if (typeof (chatTemplate ?? '') !== 'string') {
    throw argumentError("chatTemplate must be Jinja text or 'chatml'");
  }
  if (!['string', 'object', 'function'].includes(typeof (worker ?? ''))) {
    throw argumentError('worker must be an address, a Worker or a function that starts one');
  }
  downloadOf(options);
}

/** How fine performance.now() is (High Resolution Time): browsers coarsen it. */
function timerGrainUs() {
  if (globalThis.process?.versions?.node) return 1;
  return globalThis.crossOriginIsolated ? 5 : 100;
}

/** @type {readonly unknown[]} */
const kvTypes = ['f32', 'f16', 'q8', 'q4'];

/** @param {string} name @param {unknown} type @returns {import('./index.js').KvType} */
function kvTypeOf(name, type) {
  if (kvTypes.includes(type)) return /** @type {any} */ (type);
  throw argumentError(`${name} must be 'f32', 'f16', 'q8' or 'q4', not ${shown(type)}`);
}

/** @param {EngineOptions['kvType'] | null} kvType */
function kvTypesOf(kvType) {
  if (typeof kvType !== 'object' || kvType === null) {
    const type = kvTypeOf('kvType', kvType ?? 'f16');
    return { kType: type, vType: type };
  }
  const stranger = Object.keys(kvType).find((name) => name !== 'k' && name !== 'v');
  if (stranger !== undefined) throw argumentError(`kvType has k and v, not ${stranger}`);
  const { k, v } = kvType;
  return { kType: kvTypeOf('kvType.k', k ?? 'f16'), vType: kvTypeOf('kvType.v', v ?? 'f16') };
}

/** @param {EngineOptions['swap'] | null} swap */
function swapOf(swap) {
  if (typeof swap === 'string') return { swap: 1, swapFolder: swap };
  if (typeof swap !== 'object' || swap === null) return { swap: swap ? 1 : 0 };
  const { folder, always = false } = swap;
  if (folder === undefined || typeof folder === 'string') {
    return { swap: always ? 2 : 1, swapFolder: folder };
  }
  throw argumentError(`swap.folder must be a path, not ${shown(folder)}`);
}

/** @param {number | null | undefined} limit @returns {number | undefined} */
function queueLimitOf(limit) {
  if (limit === undefined || limit === null) return undefined;
  return checkNumber('queueLimit', limit, { min: 1, max: U32_MAX, whole: true });
}

/**
 * @param {EngineOptions} options
 * @param {number} threads
 * @returns {import('./records.js').NativeConfig}
 */
export function configOf(options, threads) {
  const { contextSize = 0, batchSize = 0, memoryLimit = 0 } = options;
  const { kvTokens = 0, prefixCache = true } = options;
  return {
    threads,
    contextSize: checkNumber('contextSize', contextSize, { min: 0, max: U32_MAX, whole: true }),
    batchSize: checkNumber('batchSize', batchSize, { min: 0, max: 512, whole: true }),
    ...kvTypesOf(options.kvType),
    kvTokens: checkCount('kvTokens', kvTokens),
    queueLimit: queueLimitOf(options.queueLimit),
    noPrefixCache: prefixCache === false,
    ...swapOf(options.swap),
    memoryLimit: checkNumber('memoryLimit', memoryLimit, { min: 0, whole: true }),
    directoryOnly: options.directoryOnly === true,
    metrics: options.metrics === true,
    timerGrainUs: timerGrainUs(),
    chooseThreads: options.threads === undefined,
  };
}

const THREADS_MAX = 64;

/** @param {unknown} threads */
export function checkThreads(threads) {
  return checkNumber('threads', threads, { min: 1, max: THREADS_MAX, whole: true });
}

/**
 * The name of a shared engine among all of the origin: with what makes answers differ, so that tabs
 * which want different ones do not meet, nor tabs whose versions know other messages.
 * @param {EngineOptions} options
 * @param {import('./records.js').NativeConfig} config
 * @param {SourceDescription} description
 * @returns {string | undefined}
 */
export function sharedNameOf({ shared, chatTemplate, ...from }, config, description) {
  if (shared === undefined || shared === null) return undefined;
  if (typeof shared !== 'string' || shared === '') throw argumentError('shared must be a name');
  const { threads, chooseThreads, timerGrainUs, ...wanted } = config;
  const given = /** @type {any[]} */ ([from.url ?? from.file ?? from.blob ?? []].flat());
  const model =
    'urls' in description
      ? description.urls
      : given.map((one) => (one instanceof Blob ? [nameOf(one), one.size] : String(one)));
  return `wick-llm ${VERSION} ${JSON.stringify([shared, model, wanted, chatTemplate])}`;
}

const RETRIES = 5;
const STALL_MS = 30_000;
/** What a timer can wait. */
const STALL_MS_MAX = 2 ** 31 - 1;

/**
 * How a download is done. Checked for any source: what is wrong is told before a byte is fetched.
 * @param {EngineOptions} options
 */
function downloadOf(options) {
  const { headers, retries, stallMs } = options;
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
 * Where the model comes from: `description` travels to the worker, `source` (if any) stays here and
 * is read through messages.
 * @param {EngineOptions} options
 * @returns {{description: SourceDescription, source: Source | undefined}}
 */
export function sourceOf(options) {
  const given = /** @type {const} */ (['url', 'file', 'blob', 'stream']).filter(
    (name) => options[name] !== undefined && options[name] !== null,
  );
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none was given' : `${given.join(' and ')} were given`;
    throw argumentError(`createEngine wants one of url, file, blob and stream: ${found}`);
  }
  if (given[0] === 'url') return urlSource(options);
  if (given[0] === 'stream') {
    return onPage(new StreamSource(checkStream(/** @type {any} */ (options.stream))));
  }
  const files = [options.file ?? options.blob].flat();
  const arePaths = files.every((file) => typeof file === 'string' || file instanceof URL);
  if (arePaths && given[0] === 'file') {
    return pathSource(/** @type {(string | URL)[]} */ (files));
  }
  if (files.every((file) => file instanceof Blob)) return blobSource(files);
  const kinds = given[0] === 'file' ? 'a Blob, a File or a path' : 'a Blob or a File';
  throw argumentError(`${given[0]} must be ${kinds}, or an array of them`);
}

/** @param {NonNullable<EngineOptions['draft']>} draft @returns {import('./protocol.js').OwnSource} */
export function draftOf(draft) {
  if (typeof draft !== 'object' || draft === null) {
    throw argumentError('draft must be an object with a url, a file or a blob');
  }
  checkNames(draft, ['url', 'file', 'blob'], ['stream', 'headers', 'fetch', 'retries', 'stallMs']);
  const { description } = sourceOf(draft);
  if (description.kind !== 'page') return description;
  throw argumentError('draft must be a url, a file or a blob that the worker can read by itself');
}

/** @param {NonNullable<EngineOptions['stream']>} stream */
function checkStream(stream) {
  const given = /** @type {any} */ (stream);
  if (given.locked) throw argumentError('stream is locked: somebody else reads it');
  const isStream = typeof given.getReader === 'function';
  if (isStream || typeof given[Symbol.asyncIterator] === 'function') return stream;
  throw argumentError('stream must be a ReadableStream or an async iterable of bytes');
}

/** @param {Source} source @returns {ReturnType<typeof sourceOf>} */
function onPage(source) {
  const { files, canSeek } = source;
  return { description: { kind: 'page', files, canSeek }, source };
}

/** @param {EngineOptions} options */
function urlSource(options) {
  const urls = namesOf(
    [options.url].flat().map((url) => absoluteUrl(/** @type {any} */ (url)).href),
  );
  if (urls.every((url) => url.startsWith('file:'))) return pathSource(urls);
  checkCallback('fetch', options.fetch);
  const how = downloadOf(options);
  const { fetch } = options;
  if (fetch) return onPage(new HttpSource({ urls, fetch, ...how }));
  return { description: /** @type {const} */ ({ kind: 'url', urls, ...how }), source: undefined };
}

/**
 * Headers would make a text of anything: of undefined, too.
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
  return Object.fromEntries(new Headers(pairs.map(headerOf)));
}

/** @param {unknown} pair of a name and a value @returns {[string, string]} */
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
  // a drive's letter would be taken for a scheme
  if (!/^[a-z]:[\\/]/i.test(text) && URL.canParse(text, base)) return new URL(text, base);
  const isPath = typeof url === 'string' && /[\\/.~]/.test(text);
  const hint = isPath
    ? `: a path of the disk is given as file: '${text}', in a page as a File`
    : '';
  throw argumentError(`url: ${text} is not an address${hint}`);
}

/** @param {string[]} names all of a split model's, or one of them */
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
  const blobs = [...files].sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  if (!canSend(blobs[0])) return onPage(new BlobSource(blobs));
  return { description: { kind: 'blob', blobs }, source: undefined };
}

/** @param {Blob} blob */
const nameOf = (blob) => ('name' in blob ? String(blob.name) : '');

/**
 * Whether the worker can read it by itself. Not so in Node: it clones no File, and Node 20 crashes when
 * a worker reads a Blob of a file.
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
