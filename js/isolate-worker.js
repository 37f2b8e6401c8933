// js/isolate-worker.js — `wick-llm/isolate-worker`: a service worker that only isolates pages. Only pages, frames and
// workers need the headers, so other requests, such as model downloads, bypass it.

import { isolated } from './isolate/isolation_headers.js';

const needed = ['document', 'frame', 'iframe', 'worker', 'sharedworker'];
/** The part of ServiceWorkerGlobalScope that is used. */
const scope = /** @type {any} */ (globalThis);

/**
 * `isolate-worker.js?credentialless`: files from other origins load without a special header, but
 * without cookies.
 */
const embedder = scope.location.search === '?credentialless' ? 'credentialless' : 'require-corp';

scope.addEventListener('install', () => scope.skipWaiting());
scope.addEventListener('activate', (/** @type {any} */ event) => {
  event.waitUntil(scope.clients.claim());
});
scope.addEventListener('fetch', (/** @type {any} */ event) => {
  const { request } = event;
  const isOwn = new URL(request.url).origin === scope.location.origin;
  if (request.method !== 'GET' || !isOwn || !needed.includes(request.destination)) return;
  event.respondWith(fetch(request).then((response) => isolated(response, embedder)));
});
