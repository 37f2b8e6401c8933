// examples/docs/page.js — a documentation page: its search, its theme, and the list of pages on
// phones.

import { keepPage } from '../chat/offline.js';
import { firstWords } from '../shared/query.js';
import { searchOptions } from './search_options.js';

const RESULTS_MAX = 12;
const THEME = 'wick-docs-theme';

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** The documentation's folder, which contains this script. */
const base = new URL('.', import.meta.url);

// ---- search ----

/** @type {Promise<(text: string) => any[]> | undefined} */
let opening;

async function openIndex() {
  const [{ default: MiniSearch }, response] = await Promise.all([
    import('minisearch'),
    fetch(new URL('search.json', base)),
  ]);
  if (!response.ok) throw new Error(`the server responded with ${response.status}`);
  const index = MiniSearch.loadJSON(await response.text(), searchOptions);
  return (/** @type {string} */ text) => index.search(text);
}

/** Loads the index when the first letter is typed, or earlier. */
const searcher = () => {
  opening ??= openIndex();
  opening.catch(() => {
    opening = undefined; // retried at the next keystroke
  });
  return opening;
};

/** @param {any} found */
function resultItem({ title, page, url, excerpt }) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = new URL(url, base).href;
  link.textContent = title === page ? title : `${title} — ${page}`;
  const text = document.createElement('p');
  text.textContent = excerpt;
  item.append(link, text);
  return item;
}

async function search() {
  const text = byId('search').value.trim();
  const list = byId('results');
  if (text === '') {
    list.replaceChildren();
    byId('search-state').textContent = '';
    return;
  }
  try {
    const find = await searcher();
    if (text !== byId('search').value.trim()) return;
    const found = find(firstWords(text)).slice(0, RESULTS_MAX);
    list.replaceChildren(...found.map(resultItem));
    byId('search-state').textContent =
      found.length === 0
        ? 'Nothing found'
        : `${found.length} section${found.length === 1 ? '' : 's'}`;
  } catch (error) {
    byId('search-state').textContent = `The search cannot be used: ${error}`;
  }
}

byId('search').addEventListener('focus', () => searcher().catch(() => {}));
byId('search').addEventListener('input', search);
byId('search').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
  if (event.key === 'Enter') byId('results').querySelector('a')?.click();
  if (event.key !== 'Escape') return;
  byId('search').value = '';
  search();
});
document.addEventListener('keydown', (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? '');
  if (event.key !== '/' || isTyping) return;
  event.preventDefault();
  byId('search').focus();
});

// ---- colours ----

/** @param {string} theme */
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

try {
  byId('theme').value = localStorage.getItem(THEME) ?? '';
  setTheme(byId('theme').value);
} catch {
  // no storage here
}
byId('theme').addEventListener('change', () => {
  setTheme(byId('theme').value);
  try {
    localStorage.setItem(THEME, byId('theme').value);
  } catch {
    // the choice lasts until the page is closed
  }
});

// ---- the list ----

const list = byId('list');
const isNarrow = matchMedia('(max-width: 52rem)');
const foldList = () => {
  list.open = !isNarrow.matches;
};
foldList();
isNarrow.addEventListener('change', foldList);

keepPage(new URL('service_worker.js', base));
