// examples/chat/hub.js — the address of the hub, or of a mirror, and of its files. The package downloads (wick-llm/models).

import { readValue } from './local_storage.js';

export const DEFAULT_HUB = 'https://huggingface.co';
/** In localStorage, for a mirror. */
export const ADDRESS_KEY = 'wick-chat-hub';

/** A page's policy allows requests to these. @param {URL} url */
const canBeAsked = ({ protocol, hostname }) =>
  protocol === 'https:' ||
  (protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1'));

/**
 * As URL.parse, which Safari has since version 18.
 * @param {string} text @param {string} [base]
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
 * @param {string} typed the address of a hub
 * @returns {string} as it is kept, without a slash at the end
 * @throws {Error} that explains the mistake in it
 */
export function readAddress(typed) {
  const text = typed.trim();
  const url = parseUrl(text);
  if (!url || !canBeAsked(url))
    throw new Error('The address must begin with https:// or http://localhost.');
  if (url.username || url.password || url.search || url.hash)
    throw new Error('The address must not contain a login, ? or #.');
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

/** @returns {string} the hub's address, or that of a mirror */
export function hubAddress() {
  try {
    const own = readValue(ADDRESS_KEY) ?? '';
    return own === '' ? DEFAULT_HUB : readAddress(own);
  } catch {
    return DEFAULT_HUB; // unknown content
  }
}

/** @param {string} path @returns {string} unchanged, where its escapes are broken */
export function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * The package's name for a file of the hub: the package then knows the file's size and hash from the listing before it
 * downloads.
 * @param {string} url
 * @returns {string | undefined} nothing: it is not a file of the hub
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

/** @param {string | undefined} name of a model on the hub @returns {string} that of the encoders in its repository; empty: it is not on the hub */
export const encodersNameOf = (name) => name?.replace(/^(hf:[^/]+\/[^/]+).*$/, '$1:MMPROJ') ?? '';

/** @param {string} url @returns {string} where the file of the hub is fetched from: the mirror, if there is one */
export const mirrored = (url) =>
  url.startsWith(`${DEFAULT_HUB}/`) ? hubAddress() + url.slice(DEFAULT_HUB.length) : url;
