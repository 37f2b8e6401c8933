// examples/chat/tabs.js — the open tabs of this page, and the messages between them.

import { newId } from './records.js';

/**
 * Describes a stored record.
 * @typedef {{kind: 'conversation' | 'turn' | 'gone', conversation: string, id?: string}} News
 */

const LOCK = 'wick-chat-tab ';
const FORMER = 'wick-chat-tab';

/** The id of this tab. */
export const tab = newId();

function leaveName() {
  try {
    sessionStorage.setItem(FORMER, tab);
  } catch {
    // the storage is full
  }
}

/**
 * Returns the previous page in this tab, whose lock may not have been released yet after a reload. A
 * page records its id when it is closed, so a duplicated tab, which starts with a copy of the session
 * storage, does not find it.
 * @returns {string | null}
 */
function takeFormer() {
  try {
    const former = sessionStorage.getItem(FORMER);
    sessionStorage.removeItem(FORMER);
    addEventListener('pagehide', leaveName);
    addEventListener('pageshow', () => sessionStorage.removeItem(FORMER)); // the page was restored from the back/forward cache
    return former;
  } catch {
    return null; // no storage
  }
}

const former = takeFormer();

/** Held until the tab is closed, reloaded or crashes. */
const held = new Promise((settle) => {
  if (!navigator.locks) return settle(undefined); // a page that is not served over HTTPS or from localhost
  navigator.locks
    .request(LOCK + tab, () => {
      settle(undefined);
      return new Promise(() => {});
    })
    .catch(() => settle(undefined));
});

/** @param {string} one @returns {Promise<boolean>} whether it is another open tab */
export async function isOpenElsewhere(one) {
  if (one === tab || one === former || !navigator.locks) return false;
  await held;
  const { held: locks = [] } = await navigator.locks.query();
  return locks.some(({ name }) => name === LOCK + one);
}

/** @param {string} one @returns {Promise<void>} a promise that settles when that tab is closed */
export async function untilGone(one) {
  if (await isOpenElsewhere(one)) await navigator.locks.request(LOCK + one, () => {});
}

/** @param {string} name @returns {BroadcastChannel | undefined} undefined if the browser has none, or denies it with its storage */
export function openChannel(name) {
  try {
    return new BroadcastChannel(name);
  } catch {
    return undefined;
  }
}

const channel = openChannel('wick-chat-news');

/** @type {((news: News) => void)[]} */
const listeners = [];

/** Reports events that only this tab can know. @param {News} news */
export function tellHere(news) {
  for (const listener of listeners) listener(news);
}

/** @param {News} news */
export function tell(news) {
  channel?.postMessage(news);
  tellHere(news);
}

/** @param {(news: News) => void} listener of records that other tabs have stored */
export function listen(listener) {
  channel?.addEventListener('message', ({ data }) => listener(data));
}

/** @param {(news: News) => void} listener of records that any tab has stored, including this one */
export function listenToAll(listener) {
  listeners.push(listener);
  listen(listener);
}
