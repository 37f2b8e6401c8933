// examples/chat/models.js — the models that the page offers: the built-in one, those on its server, and those in
// good_models.json, whose `bytes` is the size of their weights (tools/build/model_bytes.mjs).
// Their hashes are fetched from the hub with the first download.

import { BUILT_IN_URL } from './built_in.js';
import { roundBytes } from './dom.js';
import good from './good_models.json' with { type: 'json' };
import { DEFAULT_HUB, decoded, parseUrl } from './hub.js';

/**
 * `mmproj`: whether its repository also contains its encoders. `bytes` is approximately the file's
 * size, `needBytes` the memory that it needs with the default context, `temperature` the value
 * recommended by its authors.
 * @typedef {{id: string, name: string, note: string, url: string, bytes: number, needBytes?: number, temperature?: number,
 *   isBuiltIn?: boolean, mmproj?: true}} ModelChoice
 */
/** `url` is relative to the page. @typedef {Pick<ModelChoice, 'id' | 'name' | 'url' | 'bytes' | 'needBytes' | 'temperature'> & {use: string}} ServedModel */

/** The models on the page's own server, filled in by build.mjs. @type {ServedModel[]} */
// @ts-expect-error set by the build
const listed = globalThis.SERVED_MODELS ?? [];

/** @type {ModelChoice[]} */
const served = listed.map(({ use, url, ...model }) => ({
  ...model,
  note: `${roundBytes(model.bytes)}: ${use}`,
  url: new URL(url, globalThis.location?.href).href,
}));

/** @type {ModelChoice[]} */
const ofHub = good.map(({ id, name, use, repo, file, type, mmproj, ...known }) => {
  const url = `${DEFAULT_HUB}/${repo}/resolve/main/${file}`;
  const note = `${roundBytes(known.bytes)}: ${use}`;
  const encoders = mmproj && { mmproj: /** @type {const} */ (true) };
  return { id, name: `${name}, ${type}`, note, url, ...known, ...encoders };
});

/** @type {ModelChoice[]} */
export const models = [
  {
    id: 'wick',
    name: 'Wick 4.2M',
    note: '4.5 MB, comes with the page: a tiny demo model',
    url: BUILT_IN_URL,
    bytes: 4.5e6,
    temperature: 0,
    isBuiltIn: true,
  },
  ...served,
  ...ofHub.filter(({ id }) => !served.some((one) => one.id === id)),
];

/**
 * The model to offer if the built-in one does not know an answer: a model on the page's server,
 * which takes one click, or the model on the hub that knows most for its size.
 */
export const largerModel = /** @type {ModelChoice} */ (
  served[0] ?? models.find(({ id }) => id === 'smollm2-360m')
);
export const isServed = (/** @type {ModelChoice} */ model) => served.includes(model);

/** @param {string} url @returns {string} the file's name, for display */
export function nameOfUrl(url) {
  const path = parseUrl(url, globalThis.location?.href)?.pathname ?? '';
  return decoded(path.slice(path.lastIndexOf('/') + 1)) || url;
}
