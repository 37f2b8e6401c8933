// examples/chat/offline.js — what the page needs where there is no network: its own files are kept by a
// service worker, and here the model that was loaded last. A model is compared with its server's and
// loaded anew when that has another one. What arrives has a cache of its own, and what was kept before
// stays until the engine has all of the new model and has said a word with it.

import { inTime } from './network.js';

/** One for each model. A browser's room is not ours to fill: as soon as one is whole, the others go. */
const PREFIX = 'wick-chat-model ';
/** Of pages before there were several: it may hold half a model no more than those with a mark. */
const FORMER = 'wick-chat-models';
/** What a cache holds as soon as its model is known to be whole. */
const MARK = `${location.origin}/wick-chat-whole-model`;
/** Who has read all of a model leaves at once: its last bytes are still being kept. */
const LAST_MS = 1000;

/** Once the page works: it does not compete with the model for the network. */
export async function keepPage() {
  // there is none in pages that are not served over HTTPS or from localhost
  const found = await navigator.serviceWorker?.register('service_worker.js').catch(() => {});
  await found?.update().catch(() => {}); // browsers look for a new one when they find the time
}

/** @param {Response} before @param {Response} now */
function areSame(before, now) {
  const [marks, others] = [before, now].map(({ headers }) =>
    ['ETag', 'Last-Modified', 'Content-Length'].map((name) => headers.get(name)),
  );
  return (marks[0] ?? marks[1]) !== null && String(marks) === String(others);
}

/** @param {Response} response @returns {Promise<Response | undefined>} nothing: it is no GGUF file */
async function asModel(response) {
  if (!response.ok) return undefined;
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.clone().body).getReader();
  let start = '';
  while (start.length < 4) {
    const { value, done } = await reader.read();
    if (done) break;
    start += String.fromCharCode(...value.subarray(0, 4));
  }
  reader.cancel().catch(() => {});
  return start.startsWith('GGUF') ? response : undefined;
}

// ---- what is kept ----

/** @param {string} name */
const isWhole = async (name) =>
  name === FORMER || (await caches.match(MARK, { cacheName: name })) !== undefined;

/** @returns {Promise<string[]>} the names of the caches of models, whole or not */
const namesOfModels = async () =>
  (await caches.keys()).filter((name) => name.startsWith(PREFIX) || name === FORMER);

/** @param {string} url @returns {Promise<Response | undefined>} of a whole model */
async function findKept(url) {
  for (const cacheName of await namesOfModels()) {
    const found = await caches.match(url, { cacheName });
    if (found && (await isWhole(cacheName))) return found;
  }
  return undefined;
}

/** What no tab is loading any more. @param {string} own @param {boolean} wholeOnes of these, too */
async function forgetOthers(own, wholeOnes) {
  for (const name of await namesOfModels()) {
    if (name === own || (!wholeOnes && (await isWhole(name)))) continue;
    await navigator.locks.request(name, { ifAvailable: true }, (lock) =>
      lock ? caches.delete(name) : false,
    );
  }
}

/** One model on its way to the engine, and into a cache that counts when the model is whole. */
export class Arrival {
  /** A kept copy was passed by for what the server has now. */
  hasPassedBy = false;
  #name = `${PREFIX}${crypto.randomUUID()}`;
  #isFromKept;
  /** @type {Promise<Cache> | undefined} */
  #cache;
  /** @type {Promise<void>[]} */
  #puts = [];
  /** Files of the model that were kept before. @type {Set<string>} */
  #used = new Set();
  #isSettled = false;
  #end = new AbortController();
  /** Gives the cache's lock on. @type {() => void} */
  #settle = () => {};

  /** @param {{isFromKept?: boolean}} [options] `isFromKept`: the server is not asked for what is kept */
  constructor({ isFromKept = false } = {}) {
    this.#isFromKept = isFromKept;
  }

  /** @returns {boolean} whether something came that was not kept before */
  get isNew() {
    return this.#puts.length > 0;
  }

  /**
   * fetch, for createEngine.
   * @param {string | URL | Request} input
   * @param {RequestInit} [init]
   * @returns {Promise<Response>}
   */
  fetch = async (input, init) => {
    const isPart = new Headers(init?.headers).has('Range');
    if (isPart || !globalThis.caches) return fetch(input, init);
    const url = String(input);
    const before = await findKept(url).catch(() => undefined);
    if (before) this.#used.add(url);
    if (before && this.#isFromKept) return before;
    const lasting = new AbortController();
    init?.signal?.addEventListener('abort', () => setTimeout(() => lasting.abort(), LAST_MS));
    this.#end.signal.addEventListener('abort', () => lasting.abort());
    const answer = fetch(input, { ...init, signal: lasting.signal });
    const now = before ? await inTime(answer.then(asModel)) : await answer;
    if (before && (!now || areSame(before, now))) {
      answer.then(({ body }) => body?.cancel()).catch(() => {});
      return before;
    }
    const fresh = now ?? (await answer);
    this.hasPassedBy = before !== undefined;
    this.#used.delete(url);
    if (fresh.ok && !this.#isSettled) this.#puts.push(this.#put(url, fresh.clone()));
    return fresh;
  };

  /** @param {string} url @param {Response} response */
  async #put(url, response) {
    this.#cache ??= this.#open();
    const put = this.#cache.then((cache) => cache.put(url, response));
    put.catch(() => {}); // heard of in the end
    return put;
  }

  async #open() {
    await new Promise((begin) => {
      const held = new Promise((settle) => {
        this.#settle = () => settle(undefined);
      });
      navigator.locks.request(this.#name, () => {
        begin(undefined);
        return held;
      });
    });
    await forgetOthers(this.#name, false);
    return caches.open(this.#name);
  }

  /** The model is whole: from now on it is the one that is kept, if there was room for all of it. */
  async keep() {
    this.#isSettled = true;
    try {
      await Promise.all(this.#puts);
      const cache = await this.#cache;
      if (!cache) return; // nothing came
      for (const url of this.#used) {
        const before = await findKept(url);
        if (before) await cache.put(url, before);
      }
      await cache.put(MARK, new Response());
      await forgetOthers(this.#name, true);
    } catch {
      await this.drop(); // what was kept before is what there is
    } finally {
      this.#settle();
    }
  }

  /** It is not, or nobody wants it any more: what still comes does not come. */
  async drop() {
    this.#isSettled = true;
    this.#end.abort();
    await Promise.allSettled(this.#puts);
    if (this.#cache) await caches.delete(this.#name);
    this.#settle();
  }
}
