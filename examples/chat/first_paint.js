// examples/chat/first_paint.js — the inline script of the page, which runs before the first paint: sets the chosen theme, and
// whether the list is closed. Starts the engine's worker, which takes as long to start as the page's modules take to load
// (engine_start.js). Until those modules run, it notes that Enter was pressed, reports a file that cannot be loaded, and keeps
// the typed text when the page is loaded again.

try {
  const { dataset } = document.documentElement;
  const { theme } = JSON.parse(localStorage.getItem('wick-chat-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') dataset.theme = theme;
  if (localStorage.getItem('wick-chat-list') === 'closed') dataset.list = 'closed';
} catch {
  // no storage, or invalid content
}

/** Values that are passed to engine_start.js and page.js. @type {{firstWorker?: Worker, isEngineStarted?: boolean, isSentEarly?: boolean}} */
const handed = /** @type {any} */ (globalThis);
try {
  if (!handed.isEngineStarted) {
    handed.firstWorker = new Worker('wick-llm/worker.js', { type: 'module' });
    handed.firstWorker.onerror = () => delete handed.firstWorker; // the package reports why none can be started
  }
} catch {
  // no workers
}

addEventListener('keydown', (event) => {
  const { key, target, shiftKey, isComposing, keyCode, defaultPrevented } = event;
  const isField = target instanceof HTMLTextAreaElement && target.id === 'prompt';
  const isEnter = key === 'Enter' && !shiftKey && !isComposing && keyCode !== 229; // see isEnter in dom.js
  if (!isField || !isEnter || defaultPrevented || matchMedia('(pointer: coarse)').matches) return;
  event.preventDefault();
  handed.isSentEarly = target.value.trim() !== '';
});

/** @param {string} id */
const find = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const promptField = () => /** @type {HTMLTextAreaElement} */ (find('prompt'));
document.addEventListener(
  'readystatechange', // before the modules run
  () => {
    const { typed, ...rest } = history.state ?? {};
    if (!typed) return;
    promptField().value = typed;
    history.replaceState(rest, '');
  },
  { once: true },
);
addEventListener(
  'error',
  ({ target }) => {
    // also reported if a module that it imports cannot be loaded
    if (!(target instanceof HTMLScriptElement && target.src.endsWith('/page.js'))) return;
    find('problem-text').textContent =
      'A file of this page could not be loaded. Check the network connection, then try again.';
    find('retry-loading').onclick = () => {
      history.replaceState({ ...history.state, typed: promptField().value }, '');
      location.reload();
    };
    for (const id of ['problem', 'retry-loading']) find(id).hidden = false;
    for (const id of ['loading', 'dismiss-problem']) find(id).hidden = true;
  },
  true,
);
