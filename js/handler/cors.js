// js/handler/cors.js — decides which origins' pages may read the responses (Fetch standard, "CORS
// protocol").

/** The response headers that pages may read, in addition to those that are always readable. */
const EXPOSED = 'Retry-After, X-Request-Id, X-Wick-Ignored';
const PREFLIGHT_SECONDS = '600';

export class Cors {
  #origins;

  /** @param {string[]} origins '*' allows any origin */
  constructor(origins) {
    this.#origins = new Set(origins);
  }

  /** @param {Request} request @param {Headers} headers of its response */
  addTo(request, headers) {
    if (this.#origins.size === 0) return;
    const isAny = this.#origins.has('*');
    if (!isAny) headers.append('Vary', 'Origin');
    const origin = request.headers.get('origin');
    if (origin === null || !(isAny || this.#origins.has(origin))) return;
    headers.set('Access-Control-Allow-Origin', isAny ? '*' : origin);
    headers.set('Access-Control-Expose-Headers', EXPOSED);
    if (request.method !== 'OPTIONS') return;
    // OpenAI's clients send additional headers
    const asked = request.headers.get('access-control-request-headers');
    if (asked !== null) headers.set('Access-Control-Allow-Headers', asked);
    headers.set('Access-Control-Allow-Methods', headers.get('Allow') ?? '');
    headers.set('Access-Control-Max-Age', PREFLIGHT_SECONDS);
  }
}
