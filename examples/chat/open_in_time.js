// examples/chat/open_in_time.js — opens a browser database, or reports that the browser's storage
// does not respond. A connection reopens the database after losing it.

import { openDB } from 'idb';

/**
 * A browser that has not responded within this time never will, for example WebKitGTK after a page
 * was closed while it stored something.
 */
const OPEN_MS = 30_000;

/**
 * @param {string} name
 * @param {number} version
 * @param {import('idb').OpenDBCallbacks<any>} callbacks
 * @returns {Promise<import('idb').IDBPDatabase<any>>} the same as `openDB` from idb, but it rejects
 * if the database does not respond within half a minute
 */
async function openInTime(name, version, callbacks) {
  const opening = openDB(name, version, callbacks);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<never>} */
  const late = new Promise((_, fail) => {
    const error = new Error(`its storage has not responded for ${OPEN_MS / 1000} seconds`);
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

/**
 * A connection to a database, opened when needed. It closes for a page of a newer version.
 */
export class Connection {
  /** @type {Promise<import('idb').IDBPDatabase<any>> | undefined} */
  #opening;
  #name;
  #version;
  #upgrade;

  /** @param {string} name @param {number} version @param {NonNullable<import('idb').OpenDBCallbacks<any>['upgrade']>} upgrade */
  constructor(name, version, upgrade) {
    this.#name = name;
    this.#version = version;
    this.#upgrade = upgrade;
  }

  open() {
    this.#opening ??= openInTime(this.#name, this.#version, {
      upgrade: this.#upgrade,
      blocking: (_, __, event) => {
        this.forget();
        /** @type {IDBDatabase} */ (event.target).close();
      },
      terminated: () => this.forget(),
    });
    this.#opening.catch(() => this.forget());
    return this.#opening;
  }

  /** @returns {Promise<import('idb').IDBPDatabase<any> | undefined>} the database, if it is open */
  async current() {
    return this.#opening?.catch(() => undefined);
  }

  /** Forgets the connection, so that the next call of open opens the database again. */
  forget() {
    this.#opening = undefined;
  }
}
