// examples/chat/hub_search.js — searches the hub for models, and lists the files of a repository.
// This file is loaded at the first search.

import { ADDRESS_KEY, DEFAULT_HUB, hubAddress, readAddress } from './hub.js';

/** @typedef {{name: string, downloads: number, isGated: boolean}} Found */
/** @typedef {{path: string, bytes: number, url: string}} HubFile */

const RESULTS_MAX = 12;
const PAGES_MAX = 10;

/**
 * Sets the hub for searching and downloading models.
 * @param {string} typed a URL; empty for the default hub
 * @throws {Error} with the reason why it cannot be used
 */
export async function useHub(typed) {
  const address = typed.trim() === '' ? DEFAULT_HUB : readAddress(typed);
  if (address === DEFAULT_HUB) return void localStorage.removeItem(ADDRESS_KEY);
  try {
    const { isList } = await ask(`${address}/api/models?limit=1`);
    if (!isList) throw new Error('its response is not a list of models');
  } catch (error) {
    throw new Error(`No hub was found at ${address}: ${/** @type {Error} */ (error).message}.`);
  }
  localStorage.setItem(ADDRESS_KEY, address);
}

/** @param {string} url @param {AbortSignal} [signal] @returns {Promise<{rows: any[], isList: boolean, next?: string}>} */
async function ask(url, signal) {
  const response = await fetch(url, { signal }).catch((error) => {
    if (signal?.aborted) throw error;
    throw new Error(`${new URL(url).host} could not be reached`); // browsers only report that it failed
  });
  if (!response.ok) {
    const why =
      response.headers.get('X-Error-Message') ?? `the hub responded with ${response.status}`;
    throw new Error(why);
  }
  const rows = await response.json();
  const next = /<([^>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get('Link') ?? '')?.[1];
  const isList = Array.isArray(rows);
  return { rows: isList ? rows : [], isList, next };
}

/**
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Found[]>} repositories with GGUF files, the most downloaded first
 */
export async function searchHub(text, signal) {
  const query = new URLSearchParams({
    search: text,
    filter: 'gguf',
    sort: 'downloads',
    limit: String(RESULTS_MAX),
  });
  const { rows } = await ask(`${hubAddress()}/api/models?${query}`, signal);
  return rows
    .filter(({ id }) => typeof id === 'string' && id.includes('/'))
    .slice(0, RESULTS_MAX)
    .map(({ id, downloads, gated }) => ({
      name: id,
      downloads: Number(downloads) || 0,
      isGated: Boolean(gated),
    }));
}

/**
 * @param {string} name of a repository
 * @param {string} revision
 * @param {AbortSignal} [signal]
 * @returns {Promise<HubFile[]>} its models, the smallest first; for a split model, the first file
 * with the total size
 */
export async function listHubFiles(name, revision, signal) {
  /** @type {Map<string, HubFile>} */
  const files = new Map();
  const hub = hubAddress();
  for await (const { path, bytes: own } of ggufFiles(name, revision, signal)) {
    if (ENCODERS.test(path)) continue;
    const first = path.replace(/-\d{5}(-of-\d{5}\.gguf)$/i, '-00001$1');
    const bytes = (files.get(first)?.bytes ?? 0) + own;
    const address = first.split('/').map(encodeURIComponent).join('/');
    const url = `${hub}/${name}/resolve/${revision}/${address}`;
    files.set(first, { path: first, bytes, url });
  }
  return [...files.values()].sort((a, b) => a.bytes - b.bytes);
}

/**
 * @param {string} name of a repository
 * @param {string} revision
 * @param {AbortSignal} [signal]
 * @returns {Promise<number>} the size of the smallest file with encoders of images or audio; 0 if
 * there is none
 */
export async function encoderBytes(name, revision, signal) {
  const sizes = [];
  for await (const { path, bytes } of ggufFiles(name, revision, signal)) {
    if (ENCODERS.test(path)) sizes.push(bytes);
  }
  return sizes.length === 0 ? 0 : Math.min(...sizes);
}

/** Matches the names of files with encoders. */
const ENCODERS = /(^|[-_./])mmproj/i;

/** @param {string} name @param {string} revision @param {AbortSignal} [signal] */
async function* ggufFiles(name, revision, signal) {
  const hub = hubAddress();
  /** @type {string | undefined} */
  let url = `${hub}/api/models/${name}/tree/${encodeURIComponent(revision)}?recursive=true`;
  for (let page = 0; url && page < PAGES_MAX; page++) {
    const { rows, next } = await ask(url, signal);
    for (const { type, path, size, lfs } of rows) {
      if (type !== 'file' || !/\.gguf$/i.test(path)) continue;
      yield { path: String(path), bytes: Number(lfs?.size ?? size ?? 0) };
    }
    url = next && new URL(next, hub).origin === new URL(hub).origin ? next : undefined;
  }
}
