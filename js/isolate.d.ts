// Enables threads in a page whose server does not set the cross-origin isolation headers.

/** Options of `isolate`. */
export interface IsolateOptions {
  /**
   * The URL of the service worker: a copy of the package's `isolate-worker.js` in the page's folder or above it.
   * By default `isolate-worker.js` in the page's folder. `isolate-worker.js?credentialless` isolates with
   * `Cross-Origin-Embedder-Policy: credentialless`, so that images and scripts from other origins still
   * load, without cookies. Safari does not support this policy, so the page is not isolated there.
   */
  worker?: string | URL;
}

/**
 * Makes the page cross-origin isolated: registers a service worker that adds `Cross-Origin-Opener-Policy: same-origin` and
 * `Cross-Origin-Embedder-Policy: require-corp` to the site's pages and workers, and reloads the page once. Call it before
 * the page has state that a reload would lose. Resolves to true in an isolated page. Resolves to false, without another
 * reload, if the page cannot be isolated: no service workers (private windows, HTTP), a frame, a worker file in a folder
 * that does not contain the page, or the site's own service worker, which would be replaced unless its URL is passed (see
 * `isolated`). Does not settle while the page reloads.
 *
 * @example
 * if (!(await isolate())) console.log('This page uses one thread.');
 */
export function isolate(options?: IsolateOptions): Promise<boolean>;

/**
 * For a site that passes its own service worker to `isolate`: returns the response with the two
 * headers, for example `event.respondWith(fetch(event.request).then(isolated))`. `embedder` is the
 * policy to use if the server's own policy does not isolate the page; `require-corp` by default.
 *
 * @example
 * const response = isolated(new Response('A page'));
 * console.log(response.headers.get('Cross-Origin-Opener-Policy'));
 * console.log(response.headers.get('Cross-Origin-Embedder-Policy'));
 * //=> same-origin
 * //=> require-corp
 */
export function isolated(
  response: Response,
  embedder?: 'require-corp' | 'credentialless',
): Response;
