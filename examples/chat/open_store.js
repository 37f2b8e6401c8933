// examples/chat/open_store.js — opens the conversation store: on disk, or in this page's memory
// if the user chooses that or the browser does not store anything.

import { loadMedia, wasUsed } from './attachments.js';
import { openDatabase, openMemory } from './database.js';
import { enteredKeys, takeUp } from './journal.js';
import { keepValue, readValue } from './local_storage.js';
import { settings } from './settings.js';
import { Store } from './store.js';
import { tell, tellHere } from './tabs.js';
import { keeper } from './write_queue.js';

const NAME = 'wick-chat';

const TIDIED = 'wick-chat-tidied';
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Removes data that was deleted or forgotten a month ago. This reads all turns, so it is done at most once a day.
 * @param {Store} store
 */
async function removeOld(store) {
  const last = Number(readValue(TIDIED) ?? 0);
  if (Math.abs(Date.now() - last) < DAY_MS) return;
  await store.removeOld();
  if (wasUsed()) await (await loadMedia()).tidy(store);
  keepValue(TIDIED, String(Date.now()));
}

const openMemoryStore = () => new Store(openMemory(), tellHere);

/** Opens the store that the user has chosen. */
const openChosen = async () =>
  settings.remember ? new Store(await openDatabase(NAME), tell) : openMemoryStore();

/**
 * Returns whether this browser has no data of the page yet. A first visit does not wait until its database has been created.
 */
export async function isNothingStored() {
  try {
    if (location.hash !== '' || enteredKeys().length > 0) return false;
    const databases = settings.remember ? await indexedDB.databases() : [];
    return databases.every(({ name }) => name !== NAME);
  } catch {
    return false; // openStore reports the reason
  }
}

/** @returns {Promise<{problem?: unknown}>} the reason why nothing is stored, although it should be */
export async function openStore() {
  if (!settings.remember) {
    keeper.use(openMemoryStore());
    return {};
  }
  try {
    const store = await openChosen();
    await takeUp(store).catch(() => {}); // if storage is full, the input stays in the journal
    keeper.use(store);
    removeOld(store).catch(() => {}); // if the storage is full, the next visit tries again
    return {};
  } catch (problem) {
    keeper.use(openMemoryStore());
    return { problem };
  }
}

/**
 * Applies the setting: all conversations are moved from memory to disk, or only the open one from
 * disk to memory.
 * @param {string} open its id
 */
export async function followSetting(open) {
  const { store } = keeper;
  if (settings.remember === (store.kind === 'indexeddb')) return;
  await keeper.untilIdle();
  const { conversations, turns } = await store.everything();
  const next = await openChosen();
  for (const conversation of conversations) {
    if (!settings.remember && conversation.id !== open) continue;
    const own = turns.filter((one) => one.conversation === conversation.id);
    await next.takeIn({ conversation, turns: own });
  }
  if (!settings.remember) await store.remove([open]);
  const left = await store.everything();
  await store.close();
  keeper.use(next);
  if (wasUsed()) await (await loadMedia()).followSetting(next, left);
}
