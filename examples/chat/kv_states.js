// examples/chat/kv_states.js — stores the KV caches of conversations in IndexedDB: a record for
// each, with a limit on their total size. The least recently used state is deleted first.

import { Connection } from './open_in_time.js';

const NAME = 'wick-chat-states';
const ALL_BYTES_MAX = 256e6;

/**
 * Information about a state without reading it. `fingerprint` is that of the model, `messages` are
 * those that it has read.
 * @typedef {{id: string, fingerprint: string, messages: import('wick-llm').ChatMessage[], size: number, used: number}} Facts
 */

const connection = new Connection(NAME, 1, (db) => {
  db.createObjectStore('facts', { keyPath: 'id' });
  db.createObjectStore('bytes');
});
const open = () => connection.open();

/** Returns whether a state of this size is worth storing. @param {number} size */
export const fits = (size) => size <= ALL_BYTES_MAX / 2;

/** @param {Facts} facts @param {Uint8Array<ArrayBuffer>} bytes */
export async function keepBytes(facts, bytes) {
  const db = await open();
  const transaction = db.transaction(['facts', 'bytes'], 'readwrite');
  const [known, kept] = [transaction.objectStore('facts'), transaction.objectStore('bytes')];
  const others = (await known.getAll()).filter(({ id }) => id !== facts.id);
  let room = ALL_BYTES_MAX - facts.size;
  for (const { id, size } of others.sort((a, b) => b.used - a.used)) {
    room -= size;
    if (room >= 0) continue;
    known.delete(id);
    kept.delete(id);
  }
  known.put(facts);
  kept.put(bytes, facts.id);
  await transaction.done;
}

/** @param {string} id @returns {Promise<{facts: Facts, bytes: Uint8Array} | undefined>} */
export async function readState(id) {
  const db = await open();
  const facts = await db.get('facts', id);
  const bytes = facts && (await db.get('bytes', id));
  if (!bytes) return undefined;
  await db.put('facts', { ...facts, used: Date.now() }).catch(() => {}); // the disk may be full
  return { facts, bytes };
}

/** @param {string} id */
export async function removeState(id) {
  const db = await open();
  await Promise.all([db.delete('facts', id), db.delete('bytes', id)]);
}

export async function removeStates() {
  const db = await open();
  await Promise.all([db.clear('facts'), db.clear('bytes')]);
}

/** @returns {Promise<{count: number, bytes: number}>} */
export async function sizeOfStates() {
  const all = await (await open()).getAll('facts');
  return { count: all.length, bytes: all.reduce((sum, { size }) => sum + size, 0) };
}
