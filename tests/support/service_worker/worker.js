// A service worker that contains the engine and responds to its page's requests for /v1/, /health and /metrics. A browser
// may end it when it is idle, and start it again.

// @ts-expect-error: the server serves the package next to this file
import { openOnce } from './wick-llm/edge.js';
// @ts-expect-error
import { createHandler } from './wick-llm/openai.js';

/** @type {any} */
const scope = globalThis;
/** @type {((model: import('../../../js/edge.js').EdgeModel) => Promise<any>) | undefined} */
let open;
/** @type {((request: Request) => Promise<Response>) | undefined} */
let handle;
/** @type {unknown} */
let engine;

/** @param {Request} request */
async function answer(request) {
  if (!open) {
    const response = fetch('./wick-llm/wasm/wick-simd128-single.wasm');
    const wasm = await WebAssembly.compileStreaming(response);
    open ??= openOnce({ wasm });
  }
  const opened = await /** @type {NonNullable<typeof open>} */ (open)({
    url: './models/wick-2.6m-q8_0.gguf',
  });
  if (opened !== engine) handle = createHandler(opened);
  engine = opened;
  return /** @type {NonNullable<typeof handle>} */ (handle)(request);
}

scope.addEventListener('install', () => scope.skipWaiting());
scope.addEventListener('activate', (/** @type {any} */ event) =>
  event.waitUntil(scope.clients.claim()),
);
scope.addEventListener('fetch', (/** @type {any} */ event) => {
  const { pathname } = new URL(event.request.url);
  if (/^\/(v1\/|health$|metrics$)/.test(pathname)) event.respondWith(answer(event.request));
});
