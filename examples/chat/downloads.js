// examples/chat/downloads.js — downloads into the model store. They continue while the page uses another model, after a loss
// of the network and after a reload, unless the user has paused them.

import { WickError } from 'wick-llm';
import { hubAddress } from './hub.js';
import { keptModels, storeNameOf } from './kept_models.js';
import { keepJson, readList } from './local_storage.js';
import { keepAwake } from './wake_lock.js';

/** @import { KeepProgress } from 'wick-llm/models' */
/**
 * `isWanted`: whether it will be used once it is stored, `mmproj`: the URL of its encoders.
 * @typedef {{url: string, name: string, mmproj?: true, isPaused: boolean, isWanted: boolean}}
 * Listed
 */
/**
 * `isWaiting`: whether it waits for the network.
 * @typedef {Listed & {progress: KeepProgress, bytesPerSecond: number, isWaiting: boolean,
 *   error?: unknown, done?: Promise<void>, control?: AbortController}} Download
 */

const LIST = 'wick-chat-downloads';
/** The speed is an average over about this time. */
const SPEED_MS = 3000;
const PULSE_MS = 1000;

/** @type {Map<string, Download>} by URL */
const downloads = new Map();
const news = new EventTarget();

/** @param {Listed} listed @returns {Download} */
const newDownload = (listed) => ({
  ...listed,
  progress: { loaded: 0, received: 0, total: undefined },
  bytesPerSecond: 0,
  isWaiting: false,
});

/** @returns {Listed[]} */
const readListed = () => readList(LIST).filter((one) => typeof one?.url === 'string');

function writeList() {
  const list = [...downloads.values()].map(({ url, name, mmproj, isPaused, isWanted }) => ({
    ...{ url, name, mmproj, isPaused, isWanted },
  }));
  keepJson(LIST, list);
}

/** @param {Download} one */
function tell(one) {
  news.dispatchEvent(new CustomEvent('change', { detail: one }));
}

/** @param {(download: Download) => void} listener */
export function onDownload(listener) {
  news.addEventListener('change', (event) => listener(/** @type {CustomEvent} */ (event).detail));
}

/** @returns {Download[]} */
export const listDownloads = () => [...downloads.values()];

/** @param {string} url */
export const findDownload = (url) => downloads.get(url);

/**
 * @param {Download} one
 * @returns {(progress?: KeepProgress) => void} a meter that also counts the time without progress
 */
function makeMeter(one) {
  /** @type {{at: number, received: number}[]} */
  let marks = [];
  return (progress) => {
    if (!progress && marks.length === 0) return; // the part that was already stored does not count
    progress ??= one.progress;
    one.progress = progress;
    const at = performance.now();
    marks = [
      ...marks.filter((mark) => at - mark.at < SPEED_MS),
      { at, received: progress.received },
    ];
    const first = marks[0];
    one.bytesPerSecond =
      at > first.at ? ((progress.received - first.received) / (at - first.at)) * 1000 : 0;
    tell(one);
  };
}

/** The download is retried after this time even without a network event. */
const AGAIN_MS = 30_000;

/**
 * Returns whether an error is a loss of the network, which does not end a download that has begun: its
 * bytes are stored.
 * @param {Download} one
 * @param {unknown} error
 */
function isNetworkLost(one, error) {
  if (!(error instanceof WickError) || error.code !== 'NETWORK') return false;
  return navigator.onLine === false || one.progress.received > 0;
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<unknown>} a promise that settles when another attempt may succeed
 */
function untilNetwork(signal) {
  const ended = new AbortController();
  const how = { signal: ended.signal };
  return new Promise((settle, fail) => {
    const onShown = () => document.visibilityState === 'visible' && settle(undefined);
    setTimeout(settle, AGAIN_MS);
    addEventListener('online', settle, how);
    document.addEventListener('visibilitychange', onShown, how);
    signal.addEventListener('abort', () => fail(signal.reason), how);
  }).finally(() => ended.abort());
}

/**
 * Downloads a model, with retries until it is complete.
 * @param {Download} one
 * @param {() => Promise<unknown>} get
 * @param {AbortSignal} signal
 */
async function getPersistently(one, get, signal) {
  for (;;) {
    try {
      await get();
      return;
    } catch (error) {
      if (signal.aborted || !isNetworkLost(one, error)) throw error;
    }
    one.isWaiting = true;
    tell(one);
    await untilNetwork(signal).finally(() => {
      one.isWaiting = false;
    });
    tell(one);
  }
}

/** @param {Download} one */
async function run(one) {
  const control = new AbortController();
  Object.assign(one, { control, isPaused: false, error: undefined });
  writeList();
  tell(one);
  const meter = makeMeter(one);
  const pulse = setInterval(meter, PULSE_MS); // updates the display even if no bytes arrive
  const release = keepAwake();
  try {
    const store = await keptModels();
    const { signal } = control;
    const hub = { endpoint: hubAddress() };
    const name = await storeNameOf(one.url);
    const get = async () => store?.get(name, { signal, hub, onProgress: meter });
    await getPersistently(one, get, signal);
    downloads.delete(one.url);
  } catch (error) {
    one.isPaused = true;
    if (!control.signal.aborted) one.error = error;
    throw error;
  } finally {
    clearInterval(pulse);
    release();
    one.done = undefined;
    one.bytesPerSecond = 0;
    const { loaded } = one.progress; // chunks in flight are lost
    one.progress = { ...one.progress, received: loaded };
    writeList();
    tell(one);
  }
}

/**
 * @param {{url: string, name: string, mmproj?: true}} wanted
 * @param {boolean} [isWanted] whether it will be used once it is stored, unless another model is
 * loaded in the meantime
 * @returns {Promise<void>} a promise that settles when it is stored, and rejects with an AbortError
 * if it is paused
 */
export function download({ url, name, mmproj }, isWanted = false) {
  const one = downloads.get(url) ?? newDownload({ url, name, mmproj, isPaused: false, isWanted });
  downloads.set(url, one);
  if (isWanted) want(url);
  one.done ??= run(one);
  one.done.catch(() => {}); // waiting callers get the error
  return one.done;
}

/** @param {string} [url] of the model that will be used once it is stored; undefined for none */
export function want(url) {
  for (const one of downloads.values()) one.isWanted = one.url === url;
  writeList();
}

/** Pauses a download. Its stored chunks are kept. @param {string} url */
export function pause(url) {
  downloads.get(url)?.control?.abort();
}

/**
 * Abandons a download, so that it is not resumed. The store keeps the received chunks.
 * @param {string} url
 */
export async function giveUp(url) {
  const one = downloads.get(url);
  pause(url);
  await one?.done?.catch(() => {});
  downloads.delete(url);
  writeList();
  if (one) tell(one);
}

/**
 * Resumes downloads that an earlier page did not finish, unless they were paused.
 * @returns {Download | undefined} the download whose model will be used
 */
export function takeUpDownloads() {
  for (const listed of readListed()) downloads.set(listed.url, newDownload(listed));
  for (const one of downloads.values()) if (!one.isPaused) download(one);
  return listDownloads().find(({ isWanted, isPaused }) => isWanted && !isPaused);
}
