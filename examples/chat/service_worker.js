// examples/chat/service_worker.js — makes the page, or the pages in one folder, work offline: their
// files are cached, all from the same build. The page itself is fetched from the network if possible
// and contains the name of the newest build; other files are served from the cache if it has the
// same build. Responses are stored with their headers, so a cross-origin isolated page stays
// isolated and can use threads. If the server cannot isolate the page, the worker does.

import { isolated } from 'wick-llm/isolate';

/** Filled in by build.mjs. @type {{version: string, files: string[]}} */
// @ts-expect-error set by the build
const build = globalThis.BUILD;

/** The used part of ServiceWorkerGlobalScope. */
const scope = /** @type {any} */ (globalThis);

const PREFIX = `wick-chat ${scope.registration.scope} `;
const KEPT = PREFIX + build.version;
/**
 * The name of a cache that exists, empty, while the page that was served last belongs to a newer build.
 */
const NEWER = `${PREFIX}newer`;

/** @param {string | Request} request */
const kept = (request) => caches.match(request, { cacheName: KEPT });

/** A limit for requests whose response is also cached, because a request may neither succeed nor fail, for example on a train. */
const NETWORK_MS_MAX = 4000;

/**
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T | undefined>} undefined if the network is unavailable
 */
function inTime(answer) {
  const late = new Promise((settle) => setTimeout(settle, NETWORK_MS_MAX));
  return Promise.race([answer, /** @type {Promise<undefined>} */ (late)]).catch(() => undefined);
}

async function keep() {
  if (await kept('./')) return;
  const cache = await caches.open(KEPT);
  // from the server, not from the browser's cache; addAll stores all of them or none
  await cache.addAll(build.files.map((file) => new Request(file, { cache: 'no-cache' })));
}

async function forgetOthers() {
  const names = await caches.keys();
  const others = names.filter((name) => name.startsWith(PREFIX) && name !== KEPT);
  await Promise.all(others.map((name) => caches.delete(name)));
}

/**
 * @param {Response} response
 * @returns {Promise<string | undefined>} the version of the page's build
 */
async function versionOf(response) {
  return /name="version" content="(\w+)"/.exec(await response.text())?.[1];
}

/** @param {any} event a FetchEvent for a page */
async function answerPage(event) {
  const { origin, pathname } = new URL(event.request.url); // the query does not change a page
  const fresh = fetch(event.request);
  const response = await inTime(fresh);
  if (!response) {
    const page = await kept(origin + pathname);
    if (page) await caches.delete(NEWER);
    return page ?? fresh;
  }
  const version = await versionOf(response.clone());
  if (version === build.version) {
    await caches.delete(NEWER);
    event.waitUntil(keep()); // the browser may have evicted it
  } else if (version) {
    // The files that this page requests next belong to the newer build, too. Cached files are kept
    // until the worker of the newer build has all of its files and is activated.
    await caches.open(NEWER);
  }
  return response;
}

/** @param {Request} request for one of the other files */
async function answerFile(request) {
  if (await caches.has(NEWER)) return fetch(request);
  return (await kept(request)) ?? fetch(request);
}

const ours = new Set(build.files.map((file) => new URL(file, scope.registration.scope).href));

scope.addEventListener('install', (/** @type {any} */ event) => {
  scope.skipWaiting();
  event.waitUntil(keep());
});
scope.addEventListener('activate', (/** @type {any} */ event) => {
  // The claim is not awaited: Firefox resolves it when all workers of the page have started, and a worker that
  // starts in the meantime waits for this worker to be activated.
  event.waitUntil(forgetOthers().then(() => void scope.clients.claim()));
});
scope.addEventListener('fetch', (/** @type {any} */ event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || request.headers.has('Range')) return;
  if (!ours.has(origin + pathname)) return;
  const answer = request.mode === 'navigate' ? answerPage(event) : answerFile(request);
  event.respondWith(answer.then(isolated));
});
