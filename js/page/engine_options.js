// js/page/engine_options.js — checks the options of createEngine and fills in the defaults.

import { argumentError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { engineFlags, engineNumbers } from '../base/option_table.js';
import { VERSION } from '../base/version.js';
import { cacheOf } from './caching_source.js';
import { downloadOf, draftOf, nameOfBlob } from './model_options.js';
import { checkCallback, checkFlag, checkNumber, shown, U32_MAX } from './option_checks.js';

/** @import { SourceDescription } from '../bytes/model_sources.js' */
/** @import { EngineOptions } from '../index.js' */

/**
 * The options that specify the model's source.
 * @type {Record<keyof import('../index.js').ModelSource, null>}
 */
const sourceNames = { url: null, file: null, blob: null, bytes: null, stream: null };

/**
 * All options. The type ensures that no option is missing.
 * @type {Record<keyof EngineOptions, unknown>}
 */
const engineNames = {
  ...sourceNames,
  ...engineNumbers,
  ...engineFlags,
  headers: null,
  fetch: null,
  retries: null,
  stallMs: null,
  model: null,
  cache: null,
  hub: null,
  signal: null,
  onProgress: null,
  threads: null,
  kvType: null,
  queueLimit: null,
  draft: null,
  mmproj: null,
  decodeImage: null,
  mediaLike: null,
  swap: null,
  memoryLimit: null,
  eager: null,
  shared: null,
  onLead: null,
  preTokenizer: null,
  tables: null,
  chatTemplate: null,
  worker: null,
  wasm: null,
  grammarWasm: null,
  extrasWasm: null,
  mediaWasm: null,
};

export const allNames = Object.keys(engineNames);

/**
 * Checks the options that engines with and without workers have.
 * @param {any} options
 * @param {string[]} names
 */
export function checkCommon(options, names) {
  if (typeof options !== 'object' || options === null) {
    throw argumentError('createEngine needs an options object');
  }
  checkNames(options, names);
  if (typeof (options.chatTemplate ?? '') !== 'string') {
    throw argumentError("chatTemplate must be Jinja text or 'chatml'");
  }
  checkCallback('onProgress', options.onProgress);
  checkCallback('decodeImage', options.decodeImage);
  downloadOf(options);
}

/** @param {EngineOptions} options */
export function checkEngineNames(options) {
  checkCommon(options, allNames);
  const { worker, draft } = options;
  checkFlag('eager', options.eager);
  cacheOf(options);
  if ((draft ?? undefined) !== undefined) draftOf(/** @type {any} */ (draft));
  if (!['string', 'object', 'function'].includes(typeof (worker ?? ''))) {
    throw argumentError('worker must be a URL, a Worker or a function that starts one');
  }
}

/** Returns the resolution of performance.now(), which browsers coarsen (W3C High Resolution Time). */
function timerGrainUs() {
  if (globalThis.process?.versions?.node) return 1;
  return globalThis.crossOriginIsolated ? 5 : 100;
}

/** @type {readonly unknown[]} */
const kvTypes = ['f32', 'f16', 'q8', 'q4'];

/** @param {string} name @param {unknown} type @returns {import('../index.js').KvType} */
function kvTypeOf(name, type) {
  if (kvTypes.includes(type)) return /** @type {any} */ (type);
  throw argumentError(`${name} must be 'f32', 'f16', 'q8' or 'q4', not ${shown(type)}`);
}

/** @param {EngineOptions['kvType'] | null} kvType */
export function kvTypesOf(kvType) {
  if (typeof kvType !== 'object' || kvType === null) {
    const type = kvTypeOf('kvType', kvType ?? 'f16');
    return { kType: type, vType: type };
  }
  const stranger = Object.keys(kvType).find((name) => name !== 'k' && name !== 'v');
  if (stranger !== undefined)
    throw argumentError(`kvType: unknown member ${stranger}, only k and v are supported`);
  const { k, v } = kvType;
  return { kType: kvTypeOf('kvType.k', k ?? 'f16'), vType: kvTypeOf('kvType.v', v ?? 'f16') };
}

/** @param {EngineOptions['swap'] | null} swap */
function swapOf(swap) {
  if (typeof swap === 'string') return { swap: 1, swapFolder: swap };
  if (typeof swap !== 'object' || swap === null || Array.isArray(swap)) {
    return { swap: checkFlag('swap', swap) ? 1 : 0 };
  }
  const { folder } = checkNames(swap, ['always', 'folder']);
  const always = checkFlag('swap.always', swap.always);
  if (folder === undefined || typeof folder === 'string') {
    return { swap: always ? 2 : 1, swapFolder: folder };
  }
  throw argumentError(`swap.folder must be a path, not ${shown(folder)}`);
}

/** @param {EngineOptions} options @returns {import('../wasm/engine_records.js').TableConfig} */
function tableConfigOf(options) {
  const numbers = Object.entries(engineNumbers).map(([key, { byDefault, ...range }]) => {
    const name = /** @type {keyof typeof engineNumbers} */ (key);
    return [
      name,
      (options[name] ?? null) === null ? byDefault : checkNumber(name, options[name], range),
    ];
  });
  const flags = Object.entries(engineFlags).map(([key, opposite]) => {
    const name = /** @type {keyof typeof engineFlags} */ (key);
    const flag = checkFlag(name, options[name], opposite !== '');
    return opposite === '' ? [name, flag] : [opposite, !flag];
  });
  return Object.fromEntries([...numbers, ...flags]);
}

/** @param {EngineOptions} options @returns {number | undefined} */
function queueLimitOf({ queueLimit: limit }) {
  if (limit === undefined || limit === null) return undefined;
  return checkNumber('queueLimit', limit, { min: 1, max: U32_MAX, whole: true });
}

/** @param {unknown} place @returns {import('../index.js').TablesPlace} */
function tablesOf(place) {
  if (place === undefined || place === null) return 'auto';
  if (place === 'auto' || place === 'inside' || place === 'outside') return place;
  throw argumentError(`tables must be 'auto', 'inside' or 'outside', not ${shown(place)}`);
}

/** @param {unknown} name @returns {string | undefined} */
function preTokenizerOf(name) {
  if (name === undefined || name === null) return undefined;
  if (typeof name === 'string' && name !== '') return name;
  throw argumentError("preTokenizer must be a name such as 'qwen2'");
}

/** @param {EngineOptions} options */
function isLikeLlamaCpp({ mediaLike = 'published' }) {
  if (mediaLike === 'published' || mediaLike === 'llama.cpp') return mediaLike === 'llama.cpp';
  throw argumentError(`mediaLike must be 'published' or 'llama.cpp', not ${shown(mediaLike)}`);
}

/** The batch size with media, because some models must process an image in one pass. */
const MEDIA_BATCH = 512;

/**
 * @param {EngineOptions} options
 * @param {number} threads
 * @returns {import('../wasm/engine_records.js').NativeConfig}
 */
export function configOf(options, threads) {
  const { memoryLimit = 0 } = options;
  const config = tableConfigOf(options);
  return {
    ...config,
    threads,
    batchSize: config.batchSize || (options.mmproj ? MEDIA_BATCH : 0),
    ...kvTypesOf(options.kvType),
    queueLimit: queueLimitOf(options),
    mediaLikeLlamaCpp: isLikeLlamaCpp(options),
    ...swapOf(options.swap),
    memoryLimit: checkNumber('memoryLimit', memoryLimit, { min: 0, whole: true }),
    preTokenizer: preTokenizerOf(options.preTokenizer),
    tables: tablesOf(options.tables),
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
 * Returns the name of a shared engine within the origin. It contains the model, the options that change answers and the
 * version of the package, so that only tabs for which all of these are equal share an engine.
 * @param {EngineOptions} options
 * @param {import('../wasm/engine_records.js').NativeConfig} config
 * @param {SourceDescription} description
 * @returns {string | undefined}
 */
export function sharedNameOf({ shared, chatTemplate, mmproj, ...from }, config, description) {
  if (shared === undefined || shared === null) return undefined;
  if (typeof shared !== 'string' || shared === '') throw argumentError('shared must be a name');
  const { threads, chooseThreads, timerGrainUs, ...wanted } = config;
  const given = /** @type {any[]} */ (
    [from.model ?? from.url ?? from.file ?? from.blob ?? []].flat()
  );
  const nameOf = (/** @type {any} */ one) =>
    one instanceof Blob ? [nameOfBlob(one), one.size] : [String(one), one.byteLength];
  const model = 'urls' in description ? description.urls : given.map(nameOf);
  const encoders = (mmproj ?? undefined) === undefined ? [] : [nameOf(mmproj)];
  const parts = [shared, model, wanted, chatTemplate, ...encoders];
  return `wick-llm ${VERSION} ${JSON.stringify(parts)}`;
}
