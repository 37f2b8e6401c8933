// js/page/caching_source.js — the bytes of a model with a URL: from its stored part, and from its
// server, whose bytes are stored as they arrive.

import { argumentError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { downloadOf, mmprojOf, sourceNames } from './model_options.js';
import { checkText, shown } from './option_checks.js';

/** @import { EngineOptions } from '../index.js' */
/** @import { ModelLocation } from './model_options.js' */

/** @param {{cache?: unknown}} options @returns {boolean | 'only' | undefined} */
export function cacheOf({ cache }) {
  const given = cache ?? undefined;
  if (given === undefined || typeof given === 'boolean' || given === 'only') return given;
  throw argumentError(`cache must be true, false or 'only', not ${shown(cache)}`);
}

/**
 * Returns the source of a model with a name. Its URL is known only once it is loaded.
 * @param {EngineOptions} options
 * @returns {ModelLocation}
 */
export function namedSource(options) {
  const { model, hub, fetch } = options;
  checkText('model', model);
  checkNames(hub ?? {}, ['endpoint', 'token']);
  const other = sourceNames.find((name) => (options[name] ?? undefined) !== undefined);
  if (other)
    throw argumentError(`createEngine needs either model or ${other}, but both were given`);
  const download = { ...downloadOf(options), urls: [], model, hub, fetch };
  return { description: { kind: 'page', files: 0, canSeek: false }, source: undefined, download };
}

/**
 * Returns the source of the mmproj file: the file in the model's repository on the hub (`true`), a name on the hub, or any
 * other form that a model may have.
 * @param {EngineOptions} options that include `mmproj`
 * @returns {ModelLocation}
 */
export function mmprojSource(options) {
  const { mmproj, model, hub, headers, fetch, retries, stallMs } = options;
  const how = { hub, headers, fetch, retries, stallMs };
  if (typeof mmproj === 'string' && /^hf:/i.test(mmproj)) {
    return namedSource(/** @type {any} */ ({ ...how, model: mmproj }));
  }
  if (mmproj !== true) return mmprojOf(mmproj, options);
  if (typeof model !== 'string') {
    throw argumentError('mmproj: true needs the option model with a name on a hub');
  }
  const from = namedSource(/** @type {any} */ ({ ...how, model }));
  return { ...from, download: /** @type {any} */ ({ ...from.download, part: 'mmproj' }) };
}

/**
 * Returns the source of a model that may be stored. In pages, models are stored unless the caller
 * fetches them or needs no weights; models with a name are stored on every host. A store that
 * cannot be used does not prevent a model from being loaded.
 * @param {EngineOptions} options
 * @param {ModelLocation} from
 * @param {{onRetry: (attempt: number, waitMs: number) => void, onWaiting: () => void}} reports
 * @returns {Promise<ModelLocation>}
 */
export async function keptSource(options, from, reports) {
  const { download } = from;
  const { fetch, directoryOnly, signal } = options;
  const model = download?.model;
  const isPage = globalThis.document !== undefined;
  const cache = cacheOf(options) ?? (model !== undefined || (isPage && !fetch && !directoryOnly));
  const isHttp = download?.urls.every((url) => /^https?:/.test(url));
  if (!isHttp || (cache === false && model === undefined)) return from;
  try {
    const { openKept } = /** @type {any} */ (await import('../models.js')); // openKept is not part of the public types
    const how = { ...download, cache, signal, ...reports };
    const { description, source, invalidate } = await openKept(how);
    return { description, source: source && (async () => source), invalidate };
  } catch (error) {
    if (cache === 'only' || model !== undefined) throw error;
    console.warn(`wick-llm: the model is not cached: ${error}`);
    return from;
  }
}
