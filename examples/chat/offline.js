// examples/chat/offline.js — what the page needs where there is no network: its own files are kept by a
// service worker, and here the model that was loaded last. A model is compared with its server's and
// loaded anew when that has another one.

import { inTime } from './network.js';

/** Of one model: a browser's room is not ours to fill. */
const MODELS = 'wick-chat-models';
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

/** @param {string} url @returns {string} the same for all files of a split model */
const modelOf = (url) => url.replace(/-\d{5}-of-\d{5}/, '');

/** @param {Cache} cache @param {string} url @param {Response} response */
async function keepModel(cache, url, response) {
  await cache.put(url, response);
  for (const { url: other } of await cache.keys()) {
    if (modelOf(other) !== modelOf(url)) await cache.delete(other);
  }
}

/**
 * fetch, for createEngine: what came whole at once is kept.
 * @param {string | URL | Request} input
 * @param {RequestInit} [init]
 * @returns {Promise<Response>}
 */
export async function fetchModel(input, init) {
  const isPart = new Headers(init?.headers).has('Range');
  const cache = isPart ? undefined : await globalThis.caches?.open(MODELS).catch(() => undefined);
  if (!cache) return fetch(input, init);
  const url = String(input);
  const before = await cache.match(url);
  const lasting = new AbortController();
  init?.signal?.addEventListener('abort', () => setTimeout(() => lasting.abort(), LAST_MS));
  const answer = fetch(input, { ...init, signal: lasting.signal });
  const now = before ? await inTime(answer) : await answer;
  if (before && (!now?.ok || areSame(before, now))) {
    answer.then(({ body }) => body?.cancel()).catch(() => {});
    return before;
  }
  const fresh = now ?? (await answer);
  // where there is no room, or the download breaks off, it is not kept
  if (fresh.ok) keepModel(cache, url, fresh.clone()).catch(() => {});
  return fresh;
}
