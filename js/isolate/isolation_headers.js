// js/isolate/isolation_headers.js — the headers that enable shared memory, and therefore threads,
// in a page whose server does not set them.

const EMBEDDER = 'Cross-Origin-Embedder-Policy';
const OPENER = 'Cross-Origin-Opener-Policy';

/**
 * @param {Headers} headers
 * @param {string} name
 * @param {string[]} values
 * @returns {boolean} whether the header has one of these values, with or without parameters
 */
const hasOne = (headers, name, values) =>
  values.includes((headers.get(name) ?? '').split(';')[0].trim());

/**
 * Applies to every status, because a host without URL rewriting serves the URLs of a single-page application with its error
 * page. A response that has the headers, or cannot be read, is returned unchanged.
 * @type {typeof import('../isolate.js').isolated}
 */
export function isolated(response, embedder = 'require-corp') {
  const { status, statusText, headers } = response;
  const hasEmbedder = hasOne(headers, EMBEDDER, ['require-corp', 'credentialless']);
  const hasOpener = hasOne(headers, OPENER, ['same-origin']);
  if (status === 0 || (hasEmbedder && hasOpener)) return response;
  const own = new Headers(headers);
  if (!hasEmbedder) own.set(EMBEDDER, embedder);
  own.set(OPENER, 'same-origin');
  return new Response(response.body, { status, statusText, headers: own });
}
