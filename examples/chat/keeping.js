// examples/chat/keeping.js — opens the store of conversations: on the disk, or in this page's memory alone where the
// user wants that, or the browser keeps nothing.

import { openDatabase, openMemory } from './database.js';
import { takeUp } from './journal.js';
import { keeper } from './keeper.js';
import { settings } from './settings.js';
import { Store } from './store.js';
import { tell, tellHere } from './tabs.js';

const NAME = 'wick-chat';

/** @returns {Storage | undefined} nothing, where the browser keeps nothing */
function localStore() {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

const TIDIED = 'wick-chat-tidied';
const DAY_MS = 24 * 60 * 60 * 1000;

/** It reads all turns, and what is removed is a month old: once a day is enough. @param {Store} store */
async function removeOld(store) {
  const last = Number(localStore()?.getItem(TIDIED) ?? 0);
  if (Math.abs(Date.now() - last) < DAY_MS) return;
  await store.removeOld();
  localStore()?.setItem(TIDIED, String(Date.now()));
}

/** A browser that has answered nothing by then will not: WebKitGTK, where a page was left while it stored something. */
const OPEN_MS = 30_000;

const openDisk = async () => new Store(await openDatabase(NAME), tell);

/** @returns {Promise<Store>} rejects when the browser's storage does not answer */
async function openDiskInTime() {
  const opening = openDisk();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, fail) => {
    const error = new Error(`its storage has not answered for ${OPEN_MS / 1000} seconds`);
    timer = setTimeout(() => fail(error), OPEN_MS);
  });
  try {
    return await /** @type {Promise<Store>} */ (Promise.race([opening, late]));
  } catch (error) {
    opening.then((store) => store.close()).catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * @returns {Promise<{problem?: unknown, taken?: string}>} why nothing is kept, though it should be; the conversation that was
 *   taken over from an earlier page
 */
export async function openStore() {
  if (!settings.remember) {
    keeper.use(new Store(openMemory(), tellHere));
    return {};
  }
  try {
    const store = await openDiskInTime();
    await takeUp(store).catch(() => {}); // there is no room: it stays where it is
    keeper.use(store);
    removeOld(store).catch(() => {});
    // where there is no room for it, it is tried again at the next visit
    return { taken: await store.takeOver(localStore()).catch(() => undefined) };
  } catch (problem) {
    keeper.use(new Store(openMemory(), tellHere));
    return { problem };
  }
}

/**
 * Follows the setting. What was begun in memory is kept from now on; a conversation that is open is no longer.
 * @param {string} open the conversation
 */
export async function followSetting(open) {
  const { store } = keeper;
  if (settings.remember === (store.kind === 'indexeddb')) return;
  await keeper.untilIdle();
  const whole = await store.open(open);
  if (settings.remember) {
    const disk = await openDisk();
    const { conversations, turns } = await store.everything();
    for (const conversation of conversations) {
      const own = turns.filter((turn) => turn.conversation === conversation.id);
      await disk.takeIn({ conversation, turns: own });
    }
    keeper.use(disk);
    return;
  }
  const memory = new Store(openMemory(), tellHere);
  if (whole) await memory.takeIn(whole);
  await store.remove([open]);
  await store.close();
  keeper.use(memory);
}
