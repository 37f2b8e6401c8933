// examples/chat/local_storage.js — small values in the browser's local storage, which may be
// forbidden or full, or contain unexpected values.

/**
 * @param {string} key
 * @returns {string | undefined} undefined if the value or the storage is missing
 */
export function readValue(key) {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} key
 * @returns {any} undefined if the value or the storage is missing, or the content is invalid
 */
export function readJson(key) {
  try {
    return JSON.parse(readValue(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} key @returns {any[]} the list, which is empty if the content is not a list */
export function readList(key) {
  const found = readJson(key);
  return Array.isArray(found) ? found : [];
}

/**
 * Stores a value, if possible. The page also works without it.
 * @param {string} key
 * @param {string | undefined} text undefined removes it
 * @returns {boolean} false if the storage is missing or full
 */
export function keepValue(key, text) {
  try {
    if (text === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} key @param {unknown} value */
export const keepJson = (key, value) => keepValue(key, JSON.stringify(value));
