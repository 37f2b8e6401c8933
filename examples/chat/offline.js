// examples/chat/offline.js — use without a network: a service worker keeps its files. Models are
// in the store (kept_models.js).

/**
 * Once the page works: it does not compete with the model for the network.
 * @param {string | URL} [worker] the service worker's address
 */
export async function keepPage(worker = 'service_worker.js') {
  // there is none in pages that are not served over HTTPS or from localhost
  const found = await navigator.serviceWorker?.register(worker).catch(() => {});
  if (!found) return;
  const update = () => void found.update().catch(() => {});
  // browsers check for a new one at times of their choice; iOS does not when an installed page is shown again
  update();
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') update();
  });
}
