// examples/chat/storage_quota.js — the browser's storage: asks it not to evict the page's data, and
// reports if there is little space or none, with the data that could be deleted.

import { byId, formatBytes, makeButton } from './dom.js';
import { isInstalled, isSafari } from './host.js';
import { keptModels, listKept } from './kept_models.js';
import { sizeOfStates } from './kv_states.js';
import { current } from './loader.js';
import { keepValue } from './local_storage.js';
import { showNotice } from './notice.js';
import { keyOf } from './requested_model.js';
import { forget } from './saved_visits.js';
import { keeper } from './write_queue.js';

/** The user is warned if fewer bytes are free. */
const FREE_BYTES_MIN = 20e6;
const FREE_SHARE_MIN = 0.03;
const QUESTIONS_BEFORE_ASKING = 3;
/** The number of models offered for deletion; the model list contains all of them. */
const MODELS_MAX = 3;
const BOOKS_MAX = 3;
/** The key that records whether the request was made as a page or as an installed application. */
const ASKED = 'wick-chat-persist';

const box = byId('room');

// ---- asking the browser to keep it ----

let questions = 0;

/**
 * Requests persistence when there is something to lose: after some questions, or immediately.
 * @param {boolean} [isPrecious]
 */
export async function askToPersist(isPrecious = false) {
  questions++;
  if (!isPrecious && questions < QUESTIONS_BEFORE_ASKING) return;
  try {
    await keeper.untilIdle(); // the store may not be open yet
    if (keeper.store.kind === 'memory') return;
    const as = isInstalled() ? 'installed' : 'page';
    if (localStorage.getItem(ASKED) === as) return;
    localStorage.setItem(ASKED, as); // once as a page and once as an application, because some browsers prompt the user
    if ((await navigator.storage.persisted()) || (await navigator.storage.persist())) return;
    if (isSafari() && !isInstalled()) showNotice(UNKEPT);
  } catch {
    // the browser does not support the request
  }
}

const UNKEPT =
  'Safari deletes conversations and models after 7 days without a visit. Add this page to the home screen to keep them, or export them.';

// a browser that denied persistence to a page may grant it to an application
addEventListener('appinstalled', () => {
  keepValue(ASKED, undefined);
  askToPersist(true);
});

// ---- data that can be deleted ----

/** Something to delete, and its size in bytes, or 0. @typedef {[what: string, bytes: number, free: () => Promise<unknown>]} Way */

/** @returns {Promise<Way[]>} */
async function savedStates() {
  const bytes = await sizeOfStates();
  return bytes === 0 ? [] : [['the saved states of conversations', bytes, forget]];
}

/** @returns {Promise<Way[]>} */
async function deletedConversations() {
  const deleted = (await keeper.store.list()).filter((one) => one.deleted > 0);
  if (deleted.length === 0) return [];
  const ids = deleted.map(({ id }) => id);
  const what = ids.length === 1 ? 'a deleted conversation' : `${ids.length} deleted conversations`;
  return [[what, 0, () => keeper.store.remove(ids)]];
}

/** Lists deleted books, and saved states of the others, the largest first. @returns {Promise<Way[]>} */
async function unneededBooks() {
  const store = await import('./book_store.js');
  const { books, readings } = await store.listBooks();
  const known = new Map(books.map((book) => [book.id, book]));
  const isGone = (/** @type {string} */ id) => known.get(id)?.deleted !== 0;
  const gone = books.filter(({ id }) => isGone(id)).map(({ id }) => id);
  const bytes = readings.reduce((sum, one) => sum + (isGone(one.book) ? one.size : 0), 0);
  const what = gone.length === 1 ? 'a deleted book' : `${gone.length} deleted books`;
  const states = readings.filter(({ book }) => !isGone(book)).sort((a, b) => b.size - a.size);
  /** @type {Way[]} */
  const others = states
    .slice(0, BOOKS_MAX)
    .map(({ key, book, size }) => [
      `the saved state of “${known.get(book)?.title}”`,
      size,
      () => store.removeReading(key),
    ]);
  return gone.length > 0 ? [[what, bytes, () => store.removeBooks(gone)], ...others] : others;
}

/** Lists the models that are not in use, the least recently used first. @returns {Promise<Way[]>} */
async function unusedModels() {
  const store = await keptModels();
  const inUse = current().loaded;
  const key = inUse ? keyOf(inUse) : '';
  const others = (await listKept()).filter(
    ({ urls, fingerprint }) => ![...urls, fingerprint].includes(key),
  );
  return others
    .reverse()
    .slice(0, MODELS_MAX)
    .map(({ id, name, storedBytes }) => [name, storedBytes, async () => store?.delete(id)]);
}

/** @param {Way} way */
function freeing([what, bytes, free]) {
  const text = `Delete: ${what}${bytes > 0 ? ` (${formatBytes(bytes)})` : ''}`;
  const button = makeButton(text, async () => {
    button.disabled = true;
    await free().catch(() => {});
    button.remove();
    keeper.retry();
  });
  return button;
}

/**
 * Deletes data that can be recomputed.
 * @returns {Promise<boolean>} whether anything was deleted
 */
export async function makeRoom() {
  const bytes = await sizeOfStates().catch(() => 0);
  if (bytes > 0) await forget();
  return bytes > 0;
}

/** @param {unknown} error @returns {boolean} whether the storage is full */
export const isFull = (error) => /** @type {Error} */ (error)?.name === 'QuotaExceededError';

/**
 * Stores something. If storage is full, data that can be recomputed is deleted first.
 * @param {() => Promise<void>} keep
 */
export const withRoom = (keep) =>
  keep().catch(async (error) => {
    if (!isFull(error) || !(await makeRoom())) throw error;
    await keep();
  });

/** @param {string} text describes the data that does not fit @param {HTMLElement[]} [ways] buttons that free space */
export async function offerRoom(text, ways = []) {
  const all = [deletedConversations, unusedModels, savedStates, unneededBooks];
  const found = await Promise.allSettled(all.map((find) => find()));
  const buttons = found.flatMap((one) =>
    one.status === 'fulfilled' ? one.value.map(freeing) : [],
  );
  const again = makeButton('Try again', () => keeper.retry());
  const list = makeButton('Conversations', () => byId('open-list').click());
  byId('room-text').textContent = text;
  byId('room-actions').replaceChildren(...ways, ...buttons, list, again);
  box.hidden = false;
}

/** The reason why this tab's writes are not stored. @type {string | undefined} */
let trouble;

/** @param {unknown} error */
async function onTrouble(error) {
  const name = error === undefined ? undefined : /** @type {Error} */ (error).name;
  if (name === trouble) return;
  trouble = name;
  if (!name) {
    box.hidden = true;
    return;
  }
  if (isFull(error) && (await makeRoom())) {
    trouble = undefined;
    keeper.retry();
    return;
  }
  const why = isFull(error)
    ? "This browser's storage is full"
    : `This browser could not store it (${error})`;
  offerRoom(
    `${why}: your last changes exist only in this page, until you close it. Delete something, or export what you need.`,
  );
}

/** Called after an answer: checks whether there is room for further answers. */
export async function checkRoom() {
  if (trouble || !navigator.storage?.estimate) return;
  const { usage = 0, quota = 0 } = await navigator.storage.estimate();
  const free = quota - usage;
  const isLittle = quota > 0 && (free < FREE_BYTES_MIN || free < quota * FREE_SHARE_MIN);
  if (isLittle) {
    await offerRoom(
      `Storage is nearly full: ${formatBytes(free)} of ${formatBytes(quota)} are free.`,
    );
  } else {
    box.hidden = true;
  }
}

keeper.onTrouble(onTrouble);
