// examples/chat/local_storage.js — small values in the browser's local storage, which may be forbidden, full, or hold something else.

/** @param {string} key @returns {string | undefined} nothing: there is none, or no storage here */
export function readValue(key) {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} key @returns {any} nothing: there is none, no storage here, or unknown content */
export function readJson(key) {
  try {
    return JSON.parse(readValue(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} key @returns {any[]} empty, too, if it is not a list */
export function readList(key) {
  const found = readJson(key);
  return Array.isArray(found) ? found : [];
}

/** A page that cannot store it works without it. @param {string} key @param {string | undefined} text nothing: removes it */
export function keepValue(key, text) {
  try {
    if (text === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    // no storage here, or no room
  }
}

/** @param {string} key @param {unknown} value */
export const keepJson = (key, value) => keepValue(key, JSON.stringify(value));
