// js/isolate/isolate_page.js — registers the service worker that isolates the page, and reloads the page once for it.

/**
 * The storage key for the time when the tab was reloaded. It is removed once the page is isolated,
 * but in Chromium, pages with other headers still see it, possibly after the worker was removed.
 */
const RELOADED = 'wick-llm isolate';
/**
 * If the worker does not control the page this long after a reload, the page can be reloaded again.
 */
const RELOAD_MS_MIN = 60_000;

/**
 * Registering a different file for the same pages would replace a site's own service worker, which would then replace this
 * one.
 * @param {ServiceWorkerContainer} serviceWorker
 * @param {URL} address the URL of the isolating worker; its query may have changed
 * @returns {Promise<boolean>} whether another service worker controls this page
 */
async function isTaken(serviceWorker, address) {
  const found = await serviceWorker.getRegistration();
  const worker = found?.installing ?? found?.waiting ?? found?.active;
  return worker ? new URL(worker.scriptURL).pathname !== address.pathname : false;
}

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

/**
 * @param {boolean} isControlled whether a service worker served this page
 * @returns {boolean} whether a reload may help; a tab that cannot store this is not reloaded
 */
function remember(isControlled) {
  try {
    const last = sessionStorage.getItem(RELOADED);
    if (last !== null && (isControlled || Math.abs(Date.now() - Number(last)) < RELOAD_MS_MIN))
      return false;
    sessionStorage.setItem(RELOADED, String(Date.now()));
    return true;
  } catch {
    return false;
  }
}

function forget() {
  try {
    sessionStorage.removeItem(RELOADED);
  } catch {
    // sessionStorage is not available, so nothing was stored
  }
}

/** @type {typeof import('../isolate.js').isolate} */
export async function isolate({ worker = 'isolate-worker.js' } = {}) {
  if (globalThis.crossOriginIsolated) {
    forget();
    return true;
  }
  const { document, navigator, location } = globalThis;
  // a frame can be isolated only if the page that contains it is isolated
  if (!document || !navigator.serviceWorker || window.top !== window) return false;
  const isControlled = navigator.serviceWorker.controller !== null;
  try {
    const address = new URL(worker, document.baseURI);
    if (await isTaken(navigator.serviceWorker, address)) return false;
    const registration = await navigator.serviceWorker.register(address);
    if (!location.href.startsWith(registration.scope)) return false;
    if (!(await isActive(registration)) || !remember(isControlled)) return false;
  } catch {
    return false; // private windows, and pages that are not served over HTTPS or from localhost
  }
  location.reload();
  return new Promise(() => {});
}
