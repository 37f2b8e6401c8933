// examples/chat/rendering.js — renders a model's answer as HTML. Libraries render and sanitise it; it is never trusted. Links
// open in a new tab, and code has a copy button. Loaded by markdown.js.

import DOMPurify from 'dompurify';
import { marked } from 'marked';
import { makeCopyButtons } from './dom.js';
import { formulas } from './formulas.js';
import { enrich } from './rich_text.js';

/** @param {string} text */
const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

marked.setOptions({ gfm: true, breaks: true });
marked.use({
  extensions: formulas.map((one) => ({
    ...one,
    renderer: ({ text, isBlock }) =>
      `<code class="math ${isBlock ? 'block' : 'inline'}">${escaped(text)}</code>`,
  })),
  renderer: {
    // images must not load, so only their description is shown, with a link
    image: ({ href, text }) => `<a href="${escaped(href)}">Picture: ${escaped(text || href)}</a>`,
  },
});

/**
 * The elements that Markdown produces. They must not load anything, look like a part of the page
 * (class, id, style) or accept input.
 */
const allowed = {
  ALLOWED_TAGS: [
    ...['a', 'b', 'blockquote', 'br', 'code', 'del', 'details', 'em', 'hr', 'i', 'img', 'kbd'],
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'mark', 'p', 'pre', 's', 'strong', 'sub', 'summary'],
    ...['dd', 'dl', 'dt', 'li', 'ol', 'sup', 'ul', 'table', 'tbody', 'td', 'th', 'thead', 'tr'],
    'input',
  ],
  ALLOWED_ATTR: [
    ...['align', 'alt', 'checked', 'class', 'colspan', 'disabled', 'href', 'rowspan', 'start'],
    'type',
  ],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
};

/** Classes of code: its language, or a formula. */
const CODE_CLASS = /^(language-[\w+#.-]{1,20}|math (inline|block))$/;

DOMPurify.addHook('uponSanitizeAttribute', (node, data) => {
  if (data.attrName === 'class')
    data.keepAttr = node.nodeName === 'CODE' && CODE_CLASS.test(data.attrValue);
});

/**
 * Shows the answer "123." as text, not as the beginning of an empty list.
 * @param {string} text
 */
const withoutEmptyList = (text) => text.replace(/^(\s*\d+)([.)]\s*)$/, '$1\\$2');

/**
 * @param {HTMLElement} element
 * @param {string} text
 * @param {boolean} isWhole whether nothing follows it
 */
export function render(element, text, isWhole) {
  const html = /** @type {string} */ (marked.parse(withoutEmptyList(text), { async: false }));
  element.innerHTML = DOMPurify.sanitize(html, allowed);
  for (const link of element.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
  }
  for (const box of element.querySelectorAll('input')) {
    if (box.type !== 'checkbox' || !box.disabled) box.remove(); // task lists have only disabled checkboxes
  }
  for (const image of element.querySelectorAll('img'))
    image.replaceWith(image.alt ? `Picture: ${image.alt}` : '');
  // wide content can also be scrolled with the keyboard
  for (const wide of element.querySelectorAll('pre > code, table'))
    wide.setAttribute('tabindex', '0');
  enrich(element, isWhole);
  if (isWhole) addHeads(element);
}

/** Adds the language and a button to each block of code. @param {HTMLElement} element */
function addHeads(element) {
  for (const block of element.querySelectorAll('pre')) {
    const text = () => block.querySelector('code')?.textContent ?? '';
    block.append(...makeCopyButtons('copy-code', text));
    const [, language] = /^language-(.+)/.exec(block.querySelector('code')?.className ?? '') ?? [];
    if (language) block.dataset.language = language;
  }
}
