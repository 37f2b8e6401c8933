// examples/notes/folders.js — identifies folders, so that two folders with the same name are kept separate. Handles can be
// compared; a file list is recognized by its notes.

import { readSetting, readSizes, writeSetting } from './database.js';

/** @typedef {import('./folder.js').Listing} Listing */
/** `id` is the key of its notes and is shown: the name, with a number if there are several. @typedef {{id: string, name: string, handle?: any}} Folder */

const FOLDERS_MAX = 200;
/** The share of common paths in the smaller of two lists. */
const SHARE_MIN = 0.5;
/** The number of common paths that cannot be a coincidence, unlike a single README.md. */
const PATHS_SURE = 3;

/** @returns {Promise<Folder[]>} the folders, the most recently used first */
async function readFolders() {
  const all = (await readSetting('folders')) ?? [];
  const last = await readSetting('folder'); // everything that earlier versions of the page stored
  if (!last || all.some((/** @type {Folder} */ { id }) => id === last.name)) return all;
  return [{ id: last.name, ...last }, ...all];
}

/** @param {Folder} one @param {any} handle */
const isEntry = (one, handle) => one.handle?.isSameEntry?.(handle).catch(() => false) ?? false;

/**
 * @param {Folder} one
 * @param {Listing} listing of a folder with the same name
 * @returns {Promise<number>} 0 if it is a different folder, otherwise the share of common paths
 */
async function likeness({ id }, { found }) {
  const kept = await readSizes(id);
  if (kept.size === 0 || found.length === 0) return 1; // an empty folder may be a disk that is not connected
  const common = found.filter(({ path }) => kept.has(path));
  const share = common.length / Math.min(kept.size, found.length);
  if (share < SHARE_MIN) return 0;
  if (common.length >= PATHS_SURE) return share;
  for (const { path, file } of common) {
    if (kept.get(path) === (await file()).size) return share; // a copy has the same size, but a different time
  }
  return 0;
}

/**
 * @param {Folder[]} same the folders with the listing's name
 * @param {Listing} listing
 * @param {any} handle
 * @returns {Promise<Folder | undefined>}
 */
async function findSame(same, listing, handle) {
  for (const one of handle ? same : []) if (await isEntry(one, handle)) return one;
  /** @type {Folder | undefined} */
  let best;
  let most = 0;
  for (const one of same) {
    if (handle && one.handle) continue; // the browser has reported that it is another folder
    const share = await likeness(one, listing);
    if (share > most) [best, most] = [one, share];
  }
  return best;
}

/** @param {string} name @param {Folder[]} all @returns {string} an id that no other folder has */
function newId(name, all) {
  const ids = new Set(all.map(({ id }) => id));
  let id = name;
  for (let count = 2; ids.has(id); count++) id = `${name} (${count})`;
  return id;
}

/**
 * @param {Listing} listing
 * @param {any} [handle] of the folder, if the browser has one
 * @returns {Promise<string>} the key of its notes
 */
export async function idOfFolder(listing, handle) {
  const all = await readFolders();
  const same = all.filter(({ name }) => name === listing.name);
  const found = await findSame(same, listing, handle);
  const id = found?.id ?? newId(listing.name, all);
  const own = {
    id,
    name: listing.name,
    ...((handle ?? found?.handle) && { handle: handle ?? found?.handle }),
  };
  const others = all.filter((one) => one.id !== id);
  await writeSetting('folders', [own, ...others].slice(0, FOLDERS_MAX)).catch(() => {}); // the disk may be full
  return id;
}
