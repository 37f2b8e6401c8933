// examples/chat/first_paint.js — the inline script of the page, which runs before the first paint: sets the chosen theme, and
// whether the list is closed. Starts the engine's worker, which takes as long to start as the page's modules take to load
// (engine_start.js).

try {
  const { dataset } = document.documentElement;
  const { theme } = JSON.parse(localStorage.getItem('wick-chat-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') dataset.theme = theme;
  if (localStorage.getItem('wick-chat-list') === 'closed') dataset.list = 'closed';
} catch {
  // no storage, or invalid content
}

/** Values that are passed between this file and engine_start.js. @type {{firstWorker?: Worker, isEngineStarted?: boolean}} */
const handed = /** @type {any} */ (globalThis);
try {
  if (!handed.isEngineStarted) {
    handed.firstWorker = new Worker('wick-llm/worker.js', { type: 'module' });
    handed.firstWorker.onerror = () => delete handed.firstWorker; // the package reports why none can be started
  }
} catch {
  // no workers
}
