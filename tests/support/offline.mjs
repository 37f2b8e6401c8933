// tests/support/offline.mjs — waits until a page may lose its network.

/**
 * An expression of a page: whether all files of its build are kept, and the service worker that answers with them is
 * active. The files are stored a moment earlier, and a page that is reloaded then uses the network.
 */
export const isKept = `(async () => {
  const { installing, waiting, active } = (await navigator.serviceWorker.getRegistration()) ?? {};
  if (installing || waiting || active?.state !== 'activated') return false;
  const version = document.querySelector('meta[name=version]').content;
  const names = (await caches.keys()).filter((name) => name.endsWith(version));
  return names.length === 1 && (await caches.match(location.pathname, { cacheName: names[0] })) !== undefined;
})()`;
