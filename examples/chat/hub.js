// examples/chat/hub.js — the address of the hub, or of a mirror, and of its files. The package
// (wick-llm/models) does the downloading.

import { readValue } from './local_storage.js';

export const DEFAULT_HUB = 'https://huggingface.co';
/** The key in localStorage for the address of a mirror. */
export const ADDRESS_KEY = 'wick-chat-hub';

/** Whether the page's Content Security Policy allows requests to an address. @param {URL} url */
const canBeAsked = ({ protocol, hostname }) =>
  protocol === 'https:' ||
  (protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1'));

/**
 * The same as URL.parse, which Safari has had since version 18.
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
 * @param {string} typed the address of a hub
 * @returns {string} the address in its stored form, without a slash at the end
 * @throws {Error} that explains the mistake
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
 * The package's name for a file of the hub: the package then knows the file's size and hash from the listing before it
 * downloads.
 * @param {string} url
 * @returns {string | undefined} undefined if it is not a file of the hub
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
 * @returns {string} the name of the encoders in its repository; empty if it is not on the hub
 */
export const encodersNameOf = (name) => name?.replace(/^(hf:[^/]+\/[^/]+).*$/, '$1:MMPROJ') ?? '';

/**
 * @param {string} url
 * @returns {string} the address from which the file of the hub is fetched: the mirror's, if there
 * is one
 */
export const mirrored = (url) =>
  url.startsWith(`${DEFAULT_HUB}/`) ? hubAddress() + url.slice(DEFAULT_HUB.length) : url;
