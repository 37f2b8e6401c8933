// examples/chat/kv_states.js — stores the KV caches of conversations in IndexedDB: a record for
// each, with a limit on their total size. The least recently used state is deleted first.

import { connectionTo } from './connection.js';

const NAME = 'wick-chat-states';
const ALL_BYTES_MAX = 256e6;

/**
 * Information about a state without reading it. `fingerprint` is that of the model, `messages` are
 * those that it has read.
 * @typedef {{id: string, fingerprint: string, messages: import('wick-llm').ChatMessage[], size: number, used: number}} Facts
 */

const connection = connectionTo(NAME, 1, (db) => {
  db.createObjectStore('facts', { keyPath: 'id' });
  db.createObjectStore('bytes');
});
const stores = ['facts', 'bytes'];

/** Returns whether a state of this size is worth storing. @param {number} size */
export const fits = (size) => size <= ALL_BYTES_MAX / 2;

/** @param {Facts} facts @param {Uint8Array<ArrayBuffer>} bytes */
export const keepBytes = (facts, bytes) =>
  connection.run(stores, 'readwrite', async (store) => {
    const others = (await store('facts').getAll()).filter(({ id }) => id !== facts.id);
    let room = ALL_BYTES_MAX - facts.size;
    for (const { id, size } of others.sort((a, b) => b.used - a.used)) {
      room -= size;
      if (room < 0) for (const name of stores) await store(name).delete(id);
    }
    await store('facts').put(facts);
    await store('bytes').put(bytes, facts.id);
  });

/** @param {string} id @returns {Promise<{facts: Facts, bytes: Uint8Array} | undefined>} */
export async function readState(id) {
  const db = await connection.open();
  const facts = await db.get('facts', id);
  const bytes = facts && (await db.get('bytes', id));
  if (!bytes) return undefined;
  await db.put('facts', { ...facts, used: Date.now() }).catch(() => {}); // the disk may be full
  return { facts, bytes };
}

/** @param {string} [id] all by default */
export const removeStates = (id) =>
  connection.run(stores, 'readwrite', async (store) => {
    for (const name of stores)
      await (id === undefined ? store(name).clear() : store(name).delete(id));
  });

/** @returns {Promise<number>} in bytes */
export const sizeOfStates = async () =>
  (await (await connection.open()).getAll('facts')).reduce((sum, { size }) => sum + size, 0);
