// examples/chat/code_colours.js — code in colours, by highlight.js, which is loaded with the first block of code
// (rich_text.js).

import highlighter from 'highlight.js/lib/common';

/**
 * @param {string} code
 * @param {string} language as it was named before the code
 * @returns {string | undefined} HTML that has only the code and spans of classes `hljs-…`;
 * undefined if the language is unknown
 */
export function coloured(code, language) {
  if (!highlighter.getLanguage(language)) return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
