// examples/chat/markdown.js — renders a model's answer with libraries that are loaded after the page is usable. Until then, the
// text is shown unrendered.

import { make } from './dom.js';
import { later } from './lazy_modules.js';

const rendering = later(() => import('./rendering.js'));

/** Answers that are shown as text. @type {Map<HTMLElement, {text: string, isWhole: boolean}>} */
const plain = new Map();

/** Loads the libraries. */
export async function prepareMarkdown() {
  const library = await rendering.come();
  if (!library) return;
  for (const [element, { text, isWhole }] of plain)
    if (element.textContent === text) library.render(element, text, isWhole);
  plain.clear();
}

/** @param {HTMLElement} element @param {string} text @param {boolean} [isWhole] whether it is complete */
export function renderMarkdown(element, text, isWhole = true) {
  const library = rendering.here();
  if (library) return library.render(element, text, isWhole);
  element.replaceChildren(make('p', { className: 'plain' }, text));
  plain.set(element, { text, isWhole });
  prepareMarkdown();
}
