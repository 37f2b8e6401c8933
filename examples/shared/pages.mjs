// examples/shared/pages.mjs — the pages of the site, and the links from each page to the others. A
// page that is served separately has no links.

import { createHash } from 'node:crypto';

/**
 * The pages in the order in which they are shown. The folder of the first page is the site's folder.
 */
export const pages = [
  { folder: '', name: 'Wick', text: 'The first page' },
  {
    folder: 'chat',
    name: 'Chat',
    text: 'A chat with any model; it stores every conversation and works offline',
  },
  {
    folder: 'playground',
    name: 'Playground',
    text: 'Convert text to JSON that matches your schema, or to output that matches your grammar',
  },
  {
    folder: 'notes',
    name: 'Notes',
    text: 'Search a folder of Markdown notes by meaning; the notes stay on this machine',
  },
  {
    folder: 'fork',
    name: 'Forks',
    text: 'Several stories from one beginning, which share its memory',
  },
  { folder: 'bench', name: 'Benchmark', text: 'How fast models are on this machine' },
  {
    folder: 'docs',
    name: 'Documentation',
    text: 'How to use the engine and its package',
  },
];

/**
 * Allows an inline script or import map by its hash; a page's policy allows no other.
 * @param {string} html
 * @param {string} script its text
 * @returns {string}
 */
export function allowInline(html, script) {
  const hash = createHash('sha256').update(script).digest('base64');
  return html.replace("script-src 'self'", `$& 'sha256-${hash}'`);
}

/**
 * @param {string} html with a comment where the links are inserted
 * @param {string} [folder] of the page in the site; undefined if the page is served separately
 */
export function addLinks(html, folder) {
  const links = pages.map((page) =>
    page.folder === folder
      ? `<a href="./" aria-current="page">${page.name}</a>`
      : `<a href="../${page.folder && `${page.folder}/`}">${page.name}</a>`,
  );
  const nav = `<nav class="pages" aria-label="Pages">${links.join(' ')}</nav>`;
  return html.replace('<!-- pages -->', folder === undefined ? '' : nav);
}
