// Detects whether a page works without a network.

/**
 * An expression to evaluate in a page: whether all files of its build are stored and the service worker that serves them is
 * active. The worker becomes active shortly after the files are stored; a page reloaded in between uses the network.
 */
export const isKept = `(async () => {
  const { installing, waiting, active } = (await navigator.serviceWorker.getRegistration()) ?? {};
  if (installing || waiting || active?.state !== 'activated') return false;
  const version = document.querySelector('meta[name=version]').content;
  const names = (await caches.keys()).filter((name) => name.endsWith(version));
  return names.length === 1 && (await caches.match(location.pathname, { cacheName: names[0] })) !== undefined;
})()`;
