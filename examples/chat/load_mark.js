// examples/chat/load_mark.js — keeps a mark in the browser's storage while a model loads. Phones end a page that uses too
// much memory without an error; a mark without an open page shows that a page was ended while it was
// loading that model.

import { keepJson, keepValue, readJson } from './local_storage.js';
import { keyOf, modelOf, wishOf } from './requested_model.js';

/** @import { Wish } from './requested_model.js' */

const MARK = 'wick-chat-load';

/**
 * Returns the name of the lock that is held while this page loads a model. The browser releases it if
 * the page is ended.
 * @param {string} id
 */
const lockOf = (id) => `${MARK}:${id}`;

/** @returns {{id: string, model: any} | undefined} */
function readMark() {
  const found = readJson(MARK);
  return typeof found?.id === 'string' ? found : undefined;
}

/** Clears the mark after a load that has ended, successfully or not. */
export const clearLoadMark = () => keepValue(MARK, undefined);

/**
 * @param {Wish} wish the model to load
 * @returns {() => void} a function to call when it has ended
 */
export function markLoad(wish) {
  if (wish.isBuiltIn || keyOf(wish) === '') return () => {};
  const id = Math.random().toString(36).slice(2); // another tab, or a later load, may have the same model
  const ended = new AbortController();
  const { signal } = ended;
  const held = new Promise((settle) => signal.addEventListener('abort', settle));
  const begin = () => !signal.aborted && keepJson(MARK, { id, model: modelOf(wish) });
  const clear = () => readMark()?.id === id && clearLoadMark();
  // the lock comes first: a tab that is opened now must not find a mark without it
  const locked = navigator.locks?.request(lockOf(id), { signal }, () => {
    begin();
    return held;
  });
  if (locked) locked.catch(begin);
  else begin();
  // a page that is closed or reloaded was not killed; a restored one continues to load
  addEventListener('pagehide', clear, { signal });
  addEventListener('pageshow', ({ persisted }) => persisted && begin(), { signal });
  return () => {
    ended.abort();
    clear();
  };
}

/**
 * @returns {Promise<Wish | undefined>} the model that an earlier page was loading when it was ended
 */
export async function findDeadLoad() {
  const mark = readMark();
  if (!mark) return undefined;
  const { held = [] } = (await navigator.locks?.query().catch(() => undefined)) ?? {};
  if (held.some(({ name }) => name === lockOf(mark.id))) return undefined; // another tab is loading it
  return wishOf(mark.model);
}
