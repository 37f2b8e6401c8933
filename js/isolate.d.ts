// Threads in a page whose server does not set the headers of cross-origin isolation.

/** Options of `isolate`. */
export interface IsolateOptions {
  /**
   * The address of the service worker: a copy of the package's `isolate-worker.js` in the page's folder or above.
   * `isolate-worker.js` in the page's folder by default.
   */
  worker?: string | URL;
}

/**
 * Makes the page cross-origin isolated: registers a service worker that adds `Cross-Origin-Opener-Policy: same-origin` and
 * `Cross-Origin-Embedder-Policy: require-corp` to the site's pages and workers, and reloads the page once. Call it before the
 * page has state to lose. Resolves to true in an isolated page. Resolves to false where it cannot be isolated, without a
 * further reload: no service workers (private windows, HTTP), a frame, a worker file of a folder that the page is not in.
 * Does not settle while the page reloads.
 */
export function isolate(options?: IsolateOptions): Promise<boolean>;

/**
 * For a site with its own service worker: the response with the two headers.
 * `event.respondWith(fetch(event.request).then(isolated))`
 */
export function isolated(response: Response): Response;
