// js/handler/handler_options.js — checks the options of createHandler and fills in the defaults.

import { handlerCounts, handlerTexts } from '../base/option_table.js';

/** @typedef {import('../openai.js').HandlerOptions} HandlerOptions */

const names = [
  ...[...Object.keys(handlerCounts), ...handlerTexts],
  ...['adapters', 'onError', 'onRequest'],
];

/** The characters that a header can contain after `Bearer`. */
const isKey = /^[\x21-\x7e]+$/;

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string[]} an empty list if the option is missing
 */
function textsOf(value, name) {
  if (value === undefined) return [];
  const texts = [value].flat();
  // an empty list of keys must not mean that no key is needed
  if (texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')) {
    return /** @type {string[]} */ (texts);
  }
  throw new TypeError(
    `createHandler: ${name} must be a non-empty string or a non-empty array of them`,
  );
}

/** @param {unknown} value @param {string} name @returns {string[]} */
function keysOf(value, name) {
  const keys = textsOf(value, name);
  if (keys.every((key) => isKey.test(key))) return keys;
  throw new TypeError(`createHandler: ${name} must be visible ASCII characters without spaces`);
}

/** @param {HandlerOptions} options @returns {typeof handlerCounts} */
function countsOf(options) {
  const counts = { ...handlerCounts };
  for (const name of /** @type {(keyof typeof counts)[]} */ (Object.keys(counts))) {
    const value = options[name] ?? counts[name];
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new TypeError(`createHandler: ${name} must be a whole number of at least 1`);
    }
    counts[name] = value;
  }
  return counts;
}

/** @param {unknown} uses @returns {import('../index.js').AdapterUse[] | undefined} */
function adaptersOf(uses) {
  if (uses === undefined) return undefined;
  const isUse = (/** @type {any} */ use) =>
    typeof use?.name === 'string' && Number.isFinite(use.scale ?? 1);
  if (Array.isArray(uses) && uses.every(isUse)) return uses;
  throw new TypeError('createHandler: adapters must be an array of {name, scale}');
}

/** @param {HandlerOptions} options */
export function handlerOptionsOf(options) {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new TypeError(`createHandler: ${unknown} is not an option`);
  const { onError = () => {}, onRequest, metricsKey } = options;
  for (const [name, hear] of Object.entries({ onError, onRequest: onRequest ?? onError })) {
    if (typeof hear === 'function') continue;
    throw new TypeError(`createHandler: ${name} must be a function`);
  }
  const keys = keysOf(options.keys, 'keys');
  return {
    keys,
    metricsKeys: keysOf(metricsKey, 'metricsKey'),
    ...countsOf(options),
    origins: textsOf(options.cors, 'cors'),
    adapters: adaptersOf(options.adapters),
    model: textsOf(options.model, 'model')[0],
    instance: textsOf(options.instance, 'instance')[0],
    onError,
    onRequest,
  };
}
