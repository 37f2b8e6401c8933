// js/isolate/isolate_page.js — registers the service worker that isolates the page, and reloads the page once for it.

/** Set in the tab from the reload until the page is isolated: a second reload would not help. */
const RELOADED = 'wick-llm isolate';

/** @param {ServiceWorkerRegistration} registration @returns {Promise<boolean>} whether its worker can answer requests */
async function isActive({ installing, waiting, active }) {
  const worker = installing ?? waiting ?? active;
  if (!worker) return false;
  while (worker.state !== 'activated') {
    if (worker.state === 'redundant') return false;
    await new Promise((settle) => worker.addEventListener('statechange', settle, { once: true }));
  }
  return true;
}

/** @returns {boolean} whether this is the first reload; a tab that cannot remember it is not reloaded */
function remember() {
  try {
    if (sessionStorage.getItem(RELOADED) !== null) return false;
    sessionStorage.setItem(RELOADED, '1');
    return true;
  } catch {
    return false;
  }
}

function forget() {
  try {
    sessionStorage.removeItem(RELOADED);
  } catch {
    // nothing was remembered
  }
}

/**
 * Makes a page cross-origin isolated whose server does not set the headers.
 * @param {{worker?: string | URL}} [options]
 * @returns {Promise<boolean>} whether the page is isolated. While the page reloads, the promise does not settle.
 */
export async function isolate({ worker = 'isolate-worker.js' } = {}) {
  if (globalThis.crossOriginIsolated) {
    forget();
    return true;
  }
  const { document, navigator, location } = globalThis;
  // a frame is isolated only if the page around it is
  if (!document || !navigator.serviceWorker || window.top !== window) return false;
  try {
    const address = new URL(worker, document.baseURI);
    const registration = await navigator.serviceWorker.register(address);
    if (!location.href.startsWith(registration.scope)) return false;
    if (!(await isActive(registration)) || !remember()) return false;
  } catch {
    return false; // private windows, and pages that are not from HTTPS or localhost
  }
  location.reload();
  return new Promise(() => {});
}
