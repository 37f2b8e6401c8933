// js/handler/handler_options.js — the options of createHandler, checked and completed.

/** @typedef {import('../openai.js').HandlerOptions} HandlerOptions */

const QUEUE_LIMIT = 256;
const BODY_BYTES_MAX = 1 << 20;
const BODY_TIMEOUT_MS = 60_000;
const ITEMS_MAX = 2048; // OpenAI's limit of texts

const names = [
  ...['keys', 'metricsKey', 'queueLimit', 'bodyBytesMax', 'bodyTimeout', 'itemsMax', 'cors'],
  ...['model', 'adapters', 'instance', 'onError', 'onRequest'],
];

/** The characters that a header can hold after `Bearer`. */
const isKey = /^[\x21-\x7e]+$/;

/** @param {unknown} value @param {string} name @returns {string[]} none where nothing was given */
function textsOf(value, name) {
  if (value === undefined) return [];
  const texts = [value].flat();
  // an empty list of keys must not mean that no key is needed
  if (texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')) {
    return /** @type {string[]} */ (texts);
  }
  throw new TypeError(`createHandler: ${name} must be a text or an array of at least one`);
}

/** @param {unknown} value @param {string} name @returns {string[]} */
function keysOf(value, name) {
  const keys = textsOf(value, name);
  if (keys.every((key) => isKey.test(key))) return keys;
  throw new TypeError(`createHandler: ${name} must be visible ASCII characters without spaces`);
}

/** @param {unknown} value @param {string} name @returns {number} */
function countOf(value, name) {
  if (Number.isSafeInteger(value) && Number(value) >= 1) return Number(value);
  throw new TypeError(`createHandler: ${name} must be a whole number of at least 1`);
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
    queueLimit: countOf(options.queueLimit ?? QUEUE_LIMIT, 'queueLimit'),
    bodyBytesMax: countOf(options.bodyBytesMax ?? BODY_BYTES_MAX, 'bodyBytesMax'),
    bodyTimeout: countOf(options.bodyTimeout ?? BODY_TIMEOUT_MS, 'bodyTimeout'),
    itemsMax: countOf(options.itemsMax ?? ITEMS_MAX, 'itemsMax'),
    origins: textsOf(options.cors, 'cors'),
    adapters: adaptersOf(options.adapters),
    model: textsOf(options.model, 'model')[0],
    instance: textsOf(options.instance, 'instance')[0],
    onError,
    onRequest,
  };
}
