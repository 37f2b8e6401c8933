// examples/chat/open_in_time.js — opens a database of the browser's, or says that the browser's storage does not answer.

import { openDB } from 'idb';

/** A browser that has answered nothing by then will not: WebKitGTK, where a page was left while it stored something. */
const OPEN_MS = 30_000;

/**
 * @param {string} name
 * @param {number} version
 * @param {import('idb').OpenDBCallbacks<any>} callbacks
 * @returns {Promise<import('idb').IDBPDatabase<any>>} as `openDB` of idb, but it rejects when nothing has come for half a minute
 */
export async function openInTime(name, version, callbacks) {
  const opening = openDB(name, version, callbacks);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<never>} */
  const late = new Promise((_, fail) => {
    const error = new Error(`its storage has not answered for ${OPEN_MS / 1000} seconds`);
    timer = setTimeout(() => fail(error), OPEN_MS);
  });
  try {
    return await Promise.race([opening, late]);
  } catch (error) {
    opening.then((db) => db.close()).catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
