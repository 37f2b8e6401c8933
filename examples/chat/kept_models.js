// examples/chat/kept_models.js — the store of models (wick-llm/models) as the page uses it: opened at first use, and missing if
// the browser keeps nothing.

import { hubNameOf } from './hub.js';

/** @typedef {import('wick-llm/models').ModelStore} ModelStore */
/** @typedef {import('wick-llm/models').ModelEntry} ModelEntry */

/** @type {Promise<ModelStore | undefined> | undefined} */
let opening;
/** @type {Error | undefined} */
let problem;

/** @returns {Promise<ModelStore | undefined>} nothing: this browser keeps no models, or does not give them */
export function keptModels() {
  opening ??= import('wick-llm/models')
    .then(({ openModels }) => openModels())
    .catch((error) => {
      problem = error;
      return undefined;
    });
  return opening;
}

/** Why nothing is kept. */
export const problemOfKept = () => problem;

/** @returns {Promise<ModelEntry[]>} whole ones and parts, the last used ones first */
export const listKept = async () => (await (await keptModels())?.list().catch(() => [])) ?? [];

/** @param {string} name an address, or the fingerprint of a file @returns {Promise<boolean>} whether it is here as a whole */
export async function isKept(name) {
  const store = await keptModels();
  const names = [name, hubNameOf(name)].filter((one) => one !== undefined);
  for (const one of names) if (await store?.has(one).catch(() => false)) return true;
  return false;
}

/** @param {string} url @returns {Promise<string>} the name in the store: an address that it has, else the name on the hub */
export async function storeNameOf(url) {
  const hubName = hubNameOf(url);
  if (!hubName || (await (await keptModels())?.has(url).catch(() => false))) return url;
  return hubName;
}
