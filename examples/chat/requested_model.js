// examples/chat/requested_model.js — the requested model, which has a URL, is a user's file, or is in the store. The model that
// was used last is remembered.

import { keepJson, readJson } from './local_storage.js';
import { models } from './models.js';
import { settings } from './settings.js';

/** @typedef {import('./models.js').ModelChoice} ModelChoice */
/** @typedef {import('./records.js').ModelName} ModelName */
/**
 * `kept` is the fingerprint of an imported file in the store. `mmproj` is the file with its encoders,
 * or true if they are in the repository of its URL.
 * @typedef {{url: string, mmproj?: true | File} | {file: File[], mmproj?: File} | {kept: string, mmproj?: string | File}} Source
 * @typedef {{name: string, source: Source, isBuiltIn?: boolean}} Wish
 */

const LAST_MODEL = 'wick-chat-model';

/** @param {ModelChoice} model @returns {Wish} */
export const wishFor = ({ name, url, mmproj, isBuiltIn }) => ({
  name,
  source: { url, ...(mmproj && { mmproj }) },
  isBuiltIn,
});

export const builtIn = wishFor(/** @type {ModelChoice} */ (models.find((one) => one.isBuiltIn)));

/** @param {Wish} [wish] @returns {number} the recommended temperature of its model */
export const temperatureOf = (wish) =>
  models.find(({ url }) => wish && keyOf(wish) === url)?.temperature ?? 0.7;

/**
 * Returns whether it names encoders that can be loaded again after a reload, unlike a user's file.
 * @param {unknown} mmproj
 * @returns {mmproj is string | true}
 */
const namesMmproj = (mmproj) => mmproj === true || typeof mmproj === 'string';

/** @param {Wish} wish @returns {ModelName} the name to store with a conversation */
export const modelOf = ({ name, source }) => ({
  name,
  ...('url' in source && { url: source.url }),
  ...('kept' in source && { kept: source.kept }),
  ...(!('file' in source) && namesMmproj(source.mmproj) && { mmproj: source.mmproj }),
});

/**
 * @param {ModelName | undefined} model
 * @returns {Wish | undefined} undefined for a file, which is lost on reload
 */
export function wishOf({ name, url, kept, mmproj } = { name: '' }) {
  if (!name) return undefined;
  if (kept) return { name, source: { kept, ...(typeof mmproj === 'string' && { mmproj }) } };
  if (!url) return undefined;
  const choice = models.find((one) => one.url === url);
  return choice ? wishFor(choice) : { name, source: { url, ...(mmproj === true && { mmproj }) } };
}

/**
 * @param {Wish} wish
 * @returns {string} its name in the store; empty for a file that is not in the store
 */
export function keyOf({ source }) {
  if ('kept' in source) return source.kept;
  return 'url' in source ? source.url : '';
}

/** @param {Wish} a @param {Wish} b */
export const isSame = (a, b) => a === b || (keyOf(a) !== '' && keyOf(a) === keyOf(b));

/** @returns {ModelName | undefined} the model that was used last in this browser */
export const lastModel = () => readJson(LAST_MODEL);

/** @param {Wish} wish */
export function rememberModel(wish) {
  if (settings.remember) keepJson(LAST_MODEL, modelOf(wish));
}
