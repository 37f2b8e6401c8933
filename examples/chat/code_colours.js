// examples/chat/code_colours.js — syntax highlighting with highlight.js, which is loaded with the first code block
// (rich_text.js).

import highlighter from 'highlight.js/lib/common';

/**
 * @param {string} code
 * @param {string} language as given in the code fence
 * @returns {string | undefined} HTML with only the code and spans of classes `hljs-…`;
 * undefined if the language is unknown
 */
export function coloured(code, language) {
  if (!highlighter.getLanguage(language)) return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
