// examples/chat/kept_models.js — the page's model store (wick-llm/models), which is opened on first
// use, and missing if the browser does not store anything.

import { hubNameOf } from './hub.js';

/** @import { ModelEntry, ModelStore } from 'wick-llm/models' */

/** @type {Promise<ModelStore | undefined> | undefined} */
let opening;
/** @type {Error | undefined} */
let problem;

/**
 * @returns {Promise<ModelStore | undefined>} undefined if this browser cannot store models or read
 * them
 */
export function keptModels() {
  opening ??= import('wick-llm/models')
    .then(({ openModels }) => openModels())
    .catch((error) => {
      problem = error;
      return undefined;
    });
  return opening;
}

/** Returns the reason why nothing is stored. */
export const problemOfKept = () => problem;

/** @returns {Promise<ModelEntry[]>} complete and partial models, the most recently used first */
export const listKept = async () => (await (await keptModels())?.list().catch(() => [])) ?? [];

/**
 * @param {string} name a URL, or the fingerprint of a file
 * @returns {Promise<string | undefined>} the name under which it is stored completely: its own, or
 * the one on the hub
 */
async function storedName(name) {
  const store = await keptModels();
  for (const one of [name, hubNameOf(name)])
    if (one && (await store?.has(one).catch(() => false))) return one;
  return undefined;
}

/** @param {string} name @returns {Promise<boolean>} whether it is stored completely */
export const isKept = async (name) => (await storedName(name)) !== undefined;

/** @param {string} url @returns {Promise<string>} the name in the store, where it may be incomplete or missing */
export const storeNameOf = async (url) => (await storedName(url)) ?? hubNameOf(url) ?? url;
