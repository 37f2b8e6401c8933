// examples/chat/offline.js — makes the page work offline: a service worker caches its files. Models
// are in the store (kept_models.js).

/**
 * Called once the page is usable, so that it does not compete with the model for the network.
 * @param {string | URL} [worker] the service worker's URL
 */
export async function keepPage(worker = 'service_worker.js') {
  // absent in pages that are not served over HTTPS or from localhost
  const found = await navigator.serviceWorker?.register(worker).catch(() => {});
  if (!found) return;
  const update = () => void found.update().catch(() => {});
  // browsers decide when to check for a new one; iOS does not check when an installed page is shown
  // again
  update();
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') update();
  });
}
