// examples/chat/rich_text.js — highlights code and typesets formulas. The libraries for this are not part of the page's first
// scripts: each is loaded with the first answer that needs it; until then the plain text is shown.

import { make } from './dom.js';
import { later } from './lazy_modules.js';

/** Longer code stays plain, because it would block the page. */
const CODE_MAX = 50_000;
const FORMULA_MAX = 2_000;
/** The output is cached, because each new piece of an answer would render it again. */
const KEPT_MAX = 200;

const colouring = later(() => import('highlight.js/lib/common'));
const typesetting = later(() => import('temml'));

/** @type {Map<string, DocumentFragment | undefined>} */
const made = new Map();

/**
 * @param {string} key
 * @param {() => DocumentFragment | undefined} make
 * @returns {Node | undefined}
 */
function once(key, make) {
  if (!made.has(key)) {
    if (made.size >= KEPT_MAX) made.clear();
    made.set(key, make());
  }
  return made.get(key)?.cloneNode(true);
}

/** @param {Element} code */
function colour(code) {
  const [, language = ''] = /language-(\S+)/.exec(code.className) ?? [];
  const text = code.textContent ?? '';
  const library = colouring.here()?.default;
  if (!library?.getLanguage(language) || text.length > CODE_MAX) return;
  const colours = once(`${language}\n${text}`, () => {
    const template = document.createElement('template');
    template.innerHTML = library.highlight(text, { language, ignoreIllegals: true }).value;
    return template.content.textContent === text ? template.content : undefined;
  });
  if (colours) code.replaceChildren(colours);
}

/** @param {Element} code */
function typeset(code) {
  const tex = code.textContent ?? '';
  const isBlock = code.classList.contains('block');
  const library = typesetting.here()?.default;
  if (!library || tex.length > FORMULA_MAX) return;
  const formula = once(`${isBlock} math\n${tex}`, () => {
    const holder = make('span', { className: isBlock ? 'formula block' : 'formula' });
    if (isBlock) holder.tabIndex = 0; // so that it can be scrolled if it is wider than the page
    library.render(tex, holder, {
      displayMode: isBlock,
      annotate: true, // so that TeX is copied
      maxSize: [20, 20],
      maxExpand: 200,
      trust: false,
    });
    const fragment = document.createDocumentFragment();
    fragment.append(holder);
    return fragment;
  });
  if (formula) code.replaceWith(formula);
}

/**
 * @param {Element[]} all
 * @param {{here: () => unknown, come: () => Promise<unknown>}} library
 * @param {(one: Element) => void} improve
 */
function improveAll(all, library, improve) {
  if (all.length === 0) return;
  if (library.here()) {
    for (const one of all) improve(one);
    return;
  }
  library.come().then(() => {
    for (const one of all) if (one.isConnected) improve(one);
  });
}

/**
 * @param {HTMLElement} element an answer that markdown.js has rendered
 * @param {boolean} isWhole if false, its last block of code is still growing and would be parsed
 * again with each piece
 */
export function enrich(element, isWhole) {
  const blocks = [...element.querySelectorAll('pre > code[class^=language-]')];
  const growing = isWhole ? undefined : element.querySelector(':scope > pre:last-child > code');
  improveAll(
    blocks.filter((one) => one !== growing),
    colouring,
    colour,
  );
  improveAll([...element.querySelectorAll('code.math')], typesetting, typeset);
}
