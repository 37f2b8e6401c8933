// examples/chat/media_store.js — the text of attached files, and the bytes of images and recordings, in a separate database: each
// is stored once, regardless of the number of messages that contain it.

import { attachedMedia, held, USED } from './attachments.js';
import { connectionTo } from './connection.js';
import { keepValue } from './local_storage.js';
import { settings } from './settings.js';

/** @import { Medium } from './attachments.js' */
/**
 * The bytes are not a Blob, because Safari does not store these in private windows.
 * @typedef {Medium & {bytes: ArrayBuffer, added: number}} Kept
 */

const NAME = 'wick-chat-media';
const STORE = 'media';
/** An unused medium is kept for this time, because another tab may be about to send it. */
const UNUSED_MS = 24 * 3600e3;
const AGAIN_MS = 5000;

const { open } = connectionTo(NAME, 1, (db) => {
  db.createObjectStore(STORE, { keyPath: 'id' });
});

/** The ids of media that could not be stored. @type {Set<string>} */
const unstored = new Set();

/** Tries again to store a medium, for example until storage has been freed. @param {Medium} medium */
function keepLater(medium) {
  if (unstored.has(medium.id)) return;
  unstored.add(medium.id);
  setTimeout(() => {
    unstored.delete(medium.id);
    const content = held.get(medium.id);
    if (content !== undefined) keepMedium(medium, content).catch(() => {});
  }, AGAIN_MS);
}

/**
 * Stores a medium; if that fails, it is tried again later.
 * @param {Medium} medium
 * @param {Blob | string} content
 */
export async function keepMedium(medium, content) {
  if (!settings.remember) return;
  const { id, kind, name, type } = medium;
  try {
    const db = await open();
    const bytes = await new Blob([content]).arrayBuffer();
    await db.put(STORE, { id, kind, name, type, bytes, added: Date.now() });
    keepValue(USED, '1');
  } catch (error) {
    keepLater(medium);
    throw error;
  }
}

/** @param {string} id @returns {Promise<ArrayBuffer | undefined>} */
export const readMedium = async (id) => (await (await open()).get(STORE, id))?.bytes;

/** @param {Medium} medium @param {ArrayBuffer} bytes @returns {Blob | string} its content, as in `held` */
export const contentIn = ({ kind, type }, bytes) =>
  kind === 'text' ? new TextDecoder().decode(bytes) : new Blob([bytes], { type });

/** @param {Medium[]} media whose content is not loaded yet */
export async function hold(media) {
  await Promise.all(
    media.map(async (one) => {
      const bytes = held.has(one.id) ? undefined : await readMedium(one.id).catch(() => undefined);
      if (bytes) held.set(one.id, contentIn(one, bytes));
    }),
  );
}

/** @param {{turns: {media?: Medium[]}[], drafts: {media?: Medium[]}[]}} all @returns {Set<string>} */
const usedIn = ({ turns, drafts }) =>
  new Set([...turns, ...drafts].flatMap(({ media = [] }) => media.map(({ id }) => id)));

/**
 * Removes media that no message contains.
 * @param {import('./store.js').Store} store
 * @param {number} [unusedMs] the age at which unused media are removed
 */
export async function tidy(store, unusedMs = UNUSED_MS) {
  const used = usedIn(await store.everything());
  for (const { id } of attachedMedia()) used.add(id);
  const db = await open();
  for (const { id, added } of /** @type {Kept[]} */ (await db.getAll(STORE))) {
    if (used.has(id) || Date.now() - added < unusedMs) continue;
    await db.delete(STORE, id);
    held.delete(id);
  }
}

/**
 * Called when the user has changed whether data is stored.
 * @param {import('./store.js').Store} store the new store
 * @param {Awaited<ReturnType<import('./store.js').Store['everything']>>} left the records that stay
 * in the old store
 */
export async function followSetting(store, left) {
  const { turns, drafts } = await store.everything();
  const all = [...turns, ...drafts, { media: attachedMedia() }];
  const media = all.flatMap((one) => one.media ?? []);
  if (settings.remember) {
    for (const one of media) {
      const content = held.get(one.id);
      if (content !== undefined) await keepMedium(one, content);
    }
    return;
  }
  await hold(media);
  const used = usedIn(left);
  const db = await open();
  for (const id of await db.getAllKeys(STORE))
    if (!used.has(String(id))) await db.delete(STORE, id);
}
