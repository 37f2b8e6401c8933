// examples/chat/markdown.js — a model's answer as HTML. Libraries render and sanitise it; it is never
// trusted. Links open in a new tab, and code has a button that copies it.

import DOMPurify from 'dompurify';
import { marked } from 'marked';
import { makeCopyButtons } from './dom.js';

marked.setOptions({ gfm: true, breaks: true });

/**
 * The elements that Markdown makes. Nothing may load, look like a part of the page (class, id, style) or
 * take input.
 */
const allowed = {
  ALLOWED_TAGS: [
    ...['a', 'b', 'blockquote', 'br', 'code', 'del', 'details', 'em', 'hr', 'i', 'kbd', 'mark'],
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'pre', 's', 'strong', 'sub', 'summary', 'sup'],
    ...['dd', 'dl', 'dt', 'li', 'ol', 'ul', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'input'],
  ],
  ALLOWED_ATTR: ['align', 'checked', 'colspan', 'disabled', 'href', 'rowspan', 'start', 'type'],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
};

/** @param {HTMLElement} element @param {string} text */
export function renderMarkdown(element, text) {
  const html = /** @type {string} */ (marked.parse(text, { async: false }));
  element.innerHTML = DOMPurify.sanitize(html, allowed);
  for (const link of element.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
  }
  for (const box of element.querySelectorAll('input')) {
    if (box.type !== 'checkbox' || !box.disabled) box.remove(); // task lists have disabled checkboxes only
  }
}

/** Adds a button to each block of code. @param {HTMLElement} element */
export function addCopyButtons(element) {
  for (const block of element.querySelectorAll('pre')) {
    const text = () => block.querySelector('code')?.textContent ?? '';
    block.append(...makeCopyButtons('copy-code', text));
  }
}
