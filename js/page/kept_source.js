// js/page/kept_source.js — where the bytes of a model with an address come from: from what is kept of it, and from its
// server, whose bytes are kept as they come.

import { argumentError } from '../base/errors.js';
import { shown } from './option_checks.js';

/** @typedef {import('../index.js').EngineOptions} EngineOptions */
/** @typedef {import('./model_options.js').ModelLocation} ModelLocation */

/** @param {{cache?: unknown}} options @returns {boolean | 'only' | undefined} */
export function cacheOf({ cache }) {
  const given = cache ?? undefined;
  if (given === undefined || typeof given === 'boolean' || given === 'only') return given;
  throw argumentError(`cache must be true, false or 'only', not ${shown(cache)}`);
}

/**
 * In pages models are kept, unless the caller fetches them or wants no weights. A store that cannot be used keeps no model from being loaded.
 * @param {EngineOptions} options
 * @param {ModelLocation} from
 * @param {() => void} onRetry
 * @returns {Promise<ModelLocation>}
 */
export async function keptSource(options, from, onRetry) {
  const { download } = from;
  const isPage = globalThis.document !== undefined;
  const cache = cacheOf(options) ?? (isPage && !options.fetch && !options.directoryOnly);
  if (cache === false || !download?.urls.every((url) => /^https?:/.test(url))) return from;
  try {
    const { openKept } = /** @type {any} */ (await import('../models.js')); // it is not for users
    return await openKept({ ...download, isOnly: cache === 'only', onRetry });
  } catch (error) {
    if (cache === 'only') throw error;
    console.warn(`wick-llm: the model is not kept: ${error}`);
    return from;
  }
}
