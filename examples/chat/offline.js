// examples/chat/offline.js — use without a network: a service worker keeps its files. Models are
// in the store (kept_models.js).

/**
 * Called once the page works, so that it does not compete with the model for the network.
 * @param {string | URL} [worker] the service worker's address
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
