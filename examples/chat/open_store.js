// examples/chat/open_store.js — opens the conversation store: on disk, or in this page's memory
// if the user chooses that or the browser does not store anything.

import { loadMedia, wasUsed } from './attachments.js';
import { openDatabase, openMemory } from './database.js';
import { enteredKeys } from './journal.js';
import { keepValue, readValue } from './local_storage.js';
import { settings } from './settings.js';
import { Store } from './store.js';
import { isOpenElsewhere, tell, tellHere } from './tabs.js';
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

/** @param {Store} store the store to which the journal's entries are written */
async function takeUp(store) {
  const keys = enteredKeys();
  if (keys.length > 0)
    await (await import('./orphaned_drafts.js')).takeUp(store, keys, isOpenElsewhere);
}

const openDisk = async () => new Store(await openDatabase(NAME), tell);

/** @returns {Promise<{problem?: unknown}>} the reason why nothing is stored, although it should be */
export async function openStore() {
  if (!settings.remember) {
    keeper.use(new Store(openMemory(), tellHere));
    return {};
  }
  try {
    const store = await openDisk();
    await takeUp(store).catch(() => {}); // if storage is full, the input stays in the journal
    keeper.use(store);
    removeOld(store).catch(() => {}); // if the storage is full, the next visit tries again
    return {};
  } catch (problem) {
    keeper.use(new Store(openMemory(), tellHere));
    return { problem };
  }
}

/** Applies the setting. @param {string} open the open conversation */
export async function followSetting(open) {
  const { store } = keeper;
  if (settings.remember === (store.kind === 'indexeddb')) return;
  const { moveToDisk, moveToMemory } = await import('./store_move.js');
  await keeper.untilIdle();
  const before = await store.everything();
  const next = settings.remember ? await openDisk() : new Store(openMemory(), tellHere);
  await (settings.remember ? moveToDisk(store, next) : moveToMemory(store, next, open));
  keeper.use(next);
  if (wasUsed()) await (await loadMedia()).followSetting(next, before);
}
