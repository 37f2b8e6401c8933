// Threads in a page whose server does not set the headers of cross-origin isolation.

/** Options of `isolate`. */
export interface IsolateOptions {
  /**
   * The address of the service worker: a copy of the package's `isolate-worker.js` in the page's folder or above.
   * `isolate-worker.js` in the page's folder by default. `isolate-worker.js?credentialless`
   * isolates with `Cross-Origin-Embedder-Policy: credentialless`, so that images and scripts of
   * other origins still load, without cookies. Safari does not have this policy, so the page is not
   * isolated there.
   */
  worker?: string | URL;
}

/**
 * Makes the page cross-origin isolated: registers a service worker that adds `Cross-Origin-Opener-Policy: same-origin` and
 * `Cross-Origin-Embedder-Policy: require-corp` to the site's pages and workers, and reloads the page once. Call it before the
 * page has state to lose. Resolves to true in an isolated page. Resolves to false, without another
 * reload, if the page cannot be isolated: no service workers (private windows, HTTP), a frame, a
 * worker file in a folder that does not contain the page, or the site's own service worker, which
 * would be replaced unless its address is passed (see `isolated`). Does not settle while the page
 * reloads.
 *
 * @example
 * if (!(await isolate())) console.log('This page uses one thread.');
 */
export function isolate(options?: IsolateOptions): Promise<boolean>;

/**
 * For a site with its own service worker, whose address it passes to `isolate`: the response with
 * the two headers.
 * `event.respondWith(fetch(event.request).then(isolated))`
 * `embedder` is the policy that is used if the server's own does not isolate; `require-corp` by
 * default.
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
