// examples/chat/requested_model.js — the requested model, which has a URL, is a user's file, or is in the store. The model that
// was used last is remembered.

import { LAST_MODEL } from './built_in.js';
import { keepJson, readJson } from './local_storage.js';
import { models } from './models.js';
import { settings } from './settings.js';

/** @import { ModelChoice } from './models.js' */
/** @import { ModelName } from './records.js' */
/**
 * A model has a URL, is a user's file, or is in the store (`kept` is its fingerprint). `mmproj` is the file with its encoders,
 * its fingerprint, or true if they are in the repository of the URL.
 * @typedef {{name: string, url?: string, file?: File[], kept?: string, mmproj?: true | string | File, isBuiltIn?: boolean}} Wish
 */

/** @param {ModelChoice} model @returns {Wish} */
export const wishFor = ({ name, url, mmproj, isBuiltIn }) => ({ name, url, mmproj, isBuiltIn });

export const builtIn = wishFor(/** @type {ModelChoice} */ (models.find((one) => one.isBuiltIn)));

/** @param {Wish} [wish] @returns {number} the recommended temperature of its model */
export const temperatureOf = (wish) =>
  models.find(({ url }) => wish && keyOf(wish) === url)?.temperature ?? 0.7;

/** @param {Wish} wish @returns {ModelName} the name to store with a conversation; a user's file cannot be loaded again after a reload */
export const modelOf = ({ name, url, kept, mmproj }) => ({
  name,
  ...(url !== undefined && { url }),
  ...(kept !== undefined && { kept }),
  ...(mmproj && !(mmproj instanceof Blob) && { mmproj }),
});

/**
 * @param {ModelName | undefined} model
 * @returns {Wish | undefined} undefined for a file, which is lost on reload
 */
export function wishOf({ name, url, kept, mmproj } = { name: '' }) {
  if (!name || !(kept || url)) return undefined;
  const choice = kept ? undefined : models.find((one) => one.url === url);
  return choice ? wishFor(choice) : { name, ...(kept ? { kept } : { url }), mmproj };
}

/** @param {Wish} wish @returns {string} its name in the store; empty for a file that is not in the store */
export const keyOf = ({ kept, url }) => kept ?? url ?? '';

/** @param {Wish} a @param {Wish} b */
export const isSame = (a, b) => a === b || (keyOf(a) !== '' && keyOf(a) === keyOf(b));

/** @returns {ModelName | undefined} the model that was used last in this browser */
export const lastModel = () => readJson(LAST_MODEL);

/** @param {Wish} wish */
export function rememberModel(wish) {
  if (settings.remember) keepJson(LAST_MODEL, modelOf(wish));
}
