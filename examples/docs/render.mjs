// examples/docs/render.mjs — a document as HTML: its headings have the names that links of a repository use, its links lead to
// pages of the site, and its code is coloured.

import highlighter from 'highlight.js/lib/common';
import { Marked } from 'marked';
import { addressIn, pageOf, pictureOf, targetOf } from './outline.mjs';

/** @typedef {{title: string, hash: string, text: string}} Section */
/** @typedef {NonNullable<ReturnType<typeof targetOf>>} Target */
/** @typedef {{title: string, html: string, sections: Section[], targets: Target[], broken: string[]}} Rendered */

/** @param {string} text */
export const escaped = (text) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** @param {string} html */
const plainOf = (html) =>
  html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** @param {string} title @returns {string} the name of a heading, as repositories on the web make it */
const slugOf = (title) =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

/** @param {string} code @param {string} [language] */
export function codeBlock(code, language = '') {
  const known = highlighter.getLanguage(language);
  const html = known
    ? highlighter.highlight(code, { language, ignoreIllegals: true }).value
    : escaped(code);
  return `<pre tabindex="0"><code>${html}</code></pre>\n`;
}

/**
 * @param {string} path of the document in the repository
 * @param {string} markdown
 * @returns {Rendered}
 */
export function render(path, markdown) {
  /** @type {Rendered} */
  const found = { title: '', html: '', sections: [], targets: [], broken: [] };
  /** @type {Map<string, number>} */
  const slugs = new Map();
  const page = pageOf(path);

  /** @param {string} href @returns {string} */
  function addressOf(href) {
    const target = targetOf(path, href);
    if (!target) {
      if (!/^https?:/.test(href)) found.broken.push(href);
      return href;
    }
    found.targets.push(target);
    const to = target.kind === 'picture' ? pictureOf(target.path) : pageOf(target.path);
    const hash = target.hash && `#${target.hash}`;
    return target.path === path && hash ? hash : addressIn(page, to) + hash;
  }

  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const title = plainOf(html);
        const slug = slugOf(title);
        const count = slugs.get(slug) ?? 0;
        slugs.set(slug, count + 1);
        const hash = count ? `${slug}-${count}` : slug;
        found.title ||= title;
        found.sections.push({ title, hash, text: '' });
        return `<h${depth} id="${escaped(hash)}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        return `<a href="${escaped(addressOf(href))}">${this.parser.parseInline(tokens)}</a>`;
      },
      image({ href, text }) {
        return `<img src="${escaped(addressOf(href))}" alt="${escaped(text)}" loading="lazy">`;
      },
      code({ text, lang }) {
        return codeBlock(text, lang?.split(/\s/)[0]);
      },
      table(token) {
        const cell = (/** @type {any} */ one, /** @type {string} */ tag) =>
          `<${tag}>${this.parser.parseInline(one.tokens)}</${tag}>`;
        const row = (/** @type {any[]} */ cells, /** @type {string} */ tag) =>
          `<tr>${cells.map((one) => cell(one, tag)).join('')}</tr>\n`;
        const isNamed = token.header.some(({ text }) => text !== '');
        const head = isNamed ? `<thead>${row(token.header, 'th')}</thead>` : '';
        const body = token.rows.map((cells) => row(cells, 'td')).join('');
        return `<div class="wide" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
      html: ({ text }) => (text.startsWith('<!--') ? '' : escaped(text)), // only Markdown
    },
  });
  // A section's text is the text between its heading and the next one.
  const tokens = marked.lexer(markdown);
  const between = /** @type {string[]} */ ([]);
  for (const token of tokens) {
    if (token.type === 'heading') between.push('');
    else if (between.length > 0) between[between.length - 1] += plainOf(token.raw);
  }
  found.html = marked.parser(tokens);
  const top = found.sections.filter((_, index) => index < between.length);
  for (const [index, section] of top.entries()) section.text = between[index];
  found.title ||= path;
  return found;
}
