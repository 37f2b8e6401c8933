// examples/docs/template.mjs — the HTML page around a document.

import { addressIn } from './outline.mjs';
import { escaped } from './render.mjs';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

/** @typedef {{name: string, pages: {title: string, page: string}[]}[]} List */

/** @param {List} list @param {string} page @returns {string} */
const listHtml = (list, page) =>
  list
    .map(({ name, pages }) => {
      const items = pages.map((one) => {
        const mark = one.page === page ? ' aria-current="page"' : '';
        return `<li><a href="${addressIn(page, one.page)}"${mark}>${escaped(one.title)}</a></li>`;
      });
      return `<h2>${escaped(name)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
    })
    .join('\n');

/**
 * @param {{title: string, page: string, html: string, list: List, links: string}} of `page` is its path in the
 *   documentation's folder, `links` are the links to the site's other pages
 * @returns {string}
 */
export function pageHtml({ title, page, html, list, links }) {
  const at = (/** @type {string} */ name) => addressIn(page, name);
  const up = '../'.repeat(page.split('/').length - 1);
  const moved = links
    .replaceAll('href="../', `href="${up}../`)
    .replaceAll('href="./"', `href="${up || './'}"`);
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="color-scheme" content="light dark">
  <meta name="version" content="">
  <title>${escaped(title)} · Wick</title>
  <link rel="icon" href="${at('icon.svg')}" type="image/svg+xml">
  <link rel="stylesheet" href="${at('page.css')}">
  <script type="module" src="${at('page.js')}"></script>
</head>
<body>
  <a class="skip" href="#document">To the text</a>
  <header>
    ${moved}
    <div class="tools">
      <div role="search">
        <label for="search">Search the documentation</label>
        <input id="search" type="search" autocomplete="off" aria-controls="results">
        <span id="search-state" role="status"></span>
        <ul id="results"></ul>
      </div>
      <label>Theme
        <select id="theme"><option value="">system</option><option value="light">light</option><option value="dark">dark</option></select>
      </label>
    </div>
  </header>
  <div class="sides">
    <details id="list" open>
      <summary>Contents</summary>
      <nav aria-label="Documentation">
${listHtml(list, page)}
      </nav>
    </details>
    <main id="document" tabindex="-1">
${html}
    </main>
  </div>
</body>
</html>
`;
}
