// examples/shared/pages.mjs — the pages of the site, and the links that each has to all others. If
// a page is served alone, it has none.

/**
 * In the order in which they are shown. The folder of the first page is that of the site itself.
 */
export const pages = [
  { folder: '', name: 'Wick', text: 'The first page' },
  {
    folder: 'chat',
    name: 'Chat',
    text: 'A chat with any model that keeps every conversation and works offline',
  },
  {
    folder: 'playground',
    name: 'Playground',
    text: 'Turn a text into JSON of your schema, or into a text of your grammar',
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
    text: 'What the engine and its package can do, and how',
  },
];

/**
 * @param {string} html with the comment where the links come
 * @param {string} [folder] of the page in the site; without: the page is alone
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
