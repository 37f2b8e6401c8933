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
 * For a service worker: adds the headers to the response for a page or one of its workers. Applies to every status,
 * because a host without URL rewriting serves the URLs of a single-page application with its error page.
 * @param {Response} response
 * @param {'require-corp' | 'credentialless'} [embedder] the policy, unless the server's own policy
 * isolates
 * @returns {Response} the same response with the headers, or unchanged if it has them or cannot be
 * read
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
