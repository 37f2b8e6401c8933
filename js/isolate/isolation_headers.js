// js/isolate/isolation_headers.js — the headers that give a page shared memory, and so threads, where its server sets none.

const EMBEDDER = 'Cross-Origin-Embedder-Policy';

/**
 * For a service worker: what a page, or a worker of it, is answered with.
 * @param {Response} response
 * @returns {Response} the same with the headers; unchanged if it has them, if it is a failure, and if it cannot be read
 */
export function isolated(response) {
  const { status, statusText, headers, type } = response;
  if (headers.has(EMBEDDER) || status !== 200 || type === 'opaque') return response;
  const own = new Headers(headers);
  own.set(EMBEDDER, 'require-corp');
  own.set('Cross-Origin-Opener-Policy', 'same-origin');
  return new Response(response.body, { status, statusText, headers: own });
}
