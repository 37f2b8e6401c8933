// examples/chat/load_mark.js — a mark in the browser's storage while a model loads. Phones end a page that takes too much
// memory without an error; a mark that no open page holds says that the page died while it loaded that model.

import { keyOf, modelOf, wishOf } from './wishes.js';

/** @typedef {import('./wishes.js').Wish} Wish */

const MARK = 'wick-chat-load';

/** Held for as long as this page loads: the browser releases it when the page dies. @param {string} key */
const lockOf = (key) => `${MARK}:${key}`;

/** @returns {{key: string, model: any} | undefined} */
function readMark() {
  try {
    const found = JSON.parse(localStorage.getItem(MARK) ?? 'null');
    return typeof found?.key === 'string' ? found : undefined;
  } catch {
    return undefined; // no storage here, or unknown content
  }
}

/** The load has ended, well or not: the page is alive. */
export function clearLoadMark() {
  try {
    localStorage.removeItem(MARK);
  } catch {
    // no storage here
  }
}

/**
 * @param {Wish} wish whose load begins
 * @returns {() => void} to be called when it has ended
 */
export function markLoad(wish) {
  const key = keyOf(wish);
  if (wish.isBuiltIn || key === '') return () => {};
  try {
    localStorage.setItem(MARK, JSON.stringify({ key, model: modelOf(wish) }));
  } catch {
    return () => {}; // no storage here
  }
  /** @type {() => void} */
  let release = () => {};
  const held = new Promise((settle) => {
    release = () => settle(undefined);
  });
  navigator.locks?.request(lockOf(key), { mode: 'shared' }, () => held).catch(() => {});
  const end = () => {
    removeEventListener('pagehide', end);
    release();
    if (readMark()?.key === key) clearLoadMark();
  };
  // a page that is closed or reloaded was not killed
  addEventListener('pagehide', end);
  return end;
}

/** @returns {Promise<Wish | undefined>} the model that an earlier page was loading when it died */
export async function findDeadLoad() {
  const mark = readMark();
  if (!mark) return undefined;
  const { held = [] } = (await navigator.locks?.query().catch(() => undefined)) ?? {};
  if (held.some(({ name }) => name === lockOf(mark.key))) return undefined; // another tab loads it
  return wishOf(mark.model);
}
