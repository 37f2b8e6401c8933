// examples/chat/markdown.js — a model's answer as HTML: rendered and sanitised by libraries, never
// trusted. Links open elsewhere, code has a button that copies it.

import DOMPurify from 'dompurify';
import { marked } from 'marked';

marked.setOptions({ gfm: true, breaks: true });

/** @param {HTMLElement} element @param {string} text */
export function renderMarkdown(element, text) {
  const html = /** @type {string} */ (marked.parse(text, { async: false }));
  element.innerHTML = DOMPurify.sanitize(html, {
    FORBID_TAGS: ['img', 'video', 'audio', 'iframe', 'form', 'style'],
    FORBID_ATTR: ['style'],
  });
  for (const link of element.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
  }
}

/** Adds a button to each block of code. @param {HTMLElement} element */
export function addCopyButtons(element) {
  for (const block of element.querySelectorAll('pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy-code';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '');
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 1500);
    });
    block.append(button);
  }
}
