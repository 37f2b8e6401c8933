// examples/chat/hub.js — the URLs of the hub, or of a mirror, and of its files. The package
// (wick-llm/models) downloads the files.

import { readValue } from './local_storage.js';

export const DEFAULT_HUB = 'https://huggingface.co';
/** The localStorage key for the URL of a mirror. */
export const ADDRESS_KEY = 'wick-chat-hub';

/** Returns whether the page's Content Security Policy allows requests to a URL. @param {URL} url */
export const canBeAsked = ({ protocol, hostname }) =>
  protocol === 'https:' ||
  (protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1'));

/**
 * Does the same as URL.parse, which Safari has supported only since version 18.
 * @param {string} text
 * @param {string} [base]
 * @returns {URL | undefined}
 */
export function parseUrl(text, base) {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/**
 * @param {string} typed the URL of a hub
 * @returns {string} the URL in its stored form, without a trailing slash
 * @throws {Error} that explains the mistake
 */
export function readAddress(typed) {
  const text = typed.trim();
  const url = parseUrl(text);
  if (!url || !canBeAsked(url))
    throw new Error('The URL must begin with https:// or http://localhost.');
  if (url.username || url.password || url.search || url.hash)
    throw new Error('The URL must not contain a login, ? or #.');
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

/** @returns {string} the URL of the hub or of a mirror */
export function hubAddress() {
  try {
    const own = readValue(ADDRESS_KEY) ?? '';
    return own === '' ? DEFAULT_HUB : readAddress(own);
  } catch {
    return DEFAULT_HUB; // the stored URL is invalid
  }
}

/**
 * @param {string} path
 * @returns {string} the decoded text, or the text unchanged if its escapes are invalid
 */
export function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * Returns the package's name for a file on the hub. With that name, the package looks up the file's size and hash in the
 * listing before it downloads the file.
 * @param {string} url
 * @returns {string | undefined} undefined if it is not a file on the hub
 */
export function hubNameOf(url) {
  const hub = [hubAddress(), DEFAULT_HUB].find((one) => url.startsWith(`${one}/`));
  if (!hub) return undefined;
  const found = /^\/([\w.-]+\/[\w.-]+)\/resolve\/([\w.-]+)\/(.+\.gguf)$/i.exec(
    url.slice(hub.length),
  );
  if (!found) return undefined;
  const [, name, revision, path] = found;
  return `hf:${name}${revision === 'main' ? '' : `@${revision}`}/${decoded(path)}`;
}

/**
 * @param {string | undefined} name of a model on the hub
 * @returns {string} the name for the encoders in its repository; empty if it is not on the hub
 */
export const encodersNameOf = (name) => name?.replace(/^(hf:[^/]+\/[^/]+).*$/, '$1:MMPROJ') ?? '';

/**
 * @param {string} url
 * @returns {string} the URL from which the file is fetched: on the mirror, if there is one
 */
export const mirrored = (url) =>
  url.startsWith(`${DEFAULT_HUB}/`) ? hubAddress() + url.slice(DEFAULT_HUB.length) : url;
