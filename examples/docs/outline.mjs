// examples/docs/outline.mjs — which files of the repository become pages of the documentation, under which address, and where
// they stand in its list.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Documents by group; other files of docs/ come last. @type {[string, string[]][]} */
const order = [
  ['Start', ['README.md', 'docs/features.md', 'examples/README.md', 'CHANGELOG.md']],
  [
    'Guide',
    [
      'README',
      'getting-started',
      'which-model',
      'chat',
      'streaming',
      'structured-output',
      'tools',
      'sampling',
      'embeddings',
      'sessions',
      'many-requests',
      'tabs',
      'offline',
      'adapters',
      'memory',
      'server',
      'command-line',
      'other-interfaces',
      'troubleshooting',
    ].map((name) => `docs/guide/${name}.md`),
  ],
  [
    'Use',
    [
      'js-api',
      'models',
      'hosts',
      'bundlers',
      'react',
      'svelte',
      'migrating',
      'edge',
      'deploy',
      'c-library',
    ].map((name) => `docs/${name}.md`),
  ],
  [
    'Inside',
    [
      ...['architecture', 'benchmarks', 'refusals', 'adding-a-family', 'build', 'releasing'].map(
        (name) => `docs/${name}.md`,
      ),
      'CONTRIBUTING.md',
    ],
  ],
];

/** @param {string} folder @returns {string[]} its documents */
const documentsIn = (folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `${folder}/${name}`);

/** @returns {[string, string[]][]} paths in the repository by group */
export function groups() {
  const listed = new Set(order.flatMap(([, paths]) => paths));
  const others = documentsIn('docs').filter((path) => !listed.has(path));
  return [
    ...order.map(
      ([name, paths]) =>
        /** @type {[string, string[]]} */ ([
          name,
          name === 'Inside' ? [...paths, ...others] : paths,
        ]),
    ),
    ['Lab', documentsIn('docs/lab')],
  ];
}

/** @param {string} path in the repository @returns {string} of its page, in the documentation's folder */
export function pageOf(path) {
  const own = path.replace(/^docs\//, '');
  if (/(^|\/)README\.md$/.test(own)) return own.replace(/README\.md$/, 'index.html');
  return own.endsWith('.md') ? own.replace(/\.md$/, '.html').toLowerCase() : `source/${path}.html`;
}

/** @param {string} path of a picture in the repository */
export const pictureOf = (path) => `pictures/${path}`;

/** @param {string} from a page @param {string} to @returns {string} the address of `to` in `from` */
export const addressIn = (from, to) =>
  posix.relative(posix.dirname(from), to).split('/').map(encodeURIComponent).join('/');

/**
 * The target of a document's link.
 * @param {string} document its path in the repository
 * @param {string} href
 * @returns {{path: string, hash: string, kind: 'document' | 'picture' | 'source' | 'folder'} | undefined} nothing: it leads
 *   elsewhere, or to what is not in the repository
 */
export function targetOf(document, href) {
  if (/^[a-z][\w+.-]*:|^\/\//i.test(href)) return undefined;
  const [name, hash = ''] = href.split('#');
  if (name === '') return { path: document, hash, kind: 'document' };
  const full = resolve(root, dirname(document), decodeURIComponent(name));
  const path = relative(root, full).split(sep).join('/');
  if (path.startsWith('..') || !existsSync(full)) return undefined;
  if (statSync(full).isDirectory()) {
    const isTold = existsSync(join(full, 'README.md'));
    return isTold
      ? { path: posix.join(path, 'README.md'), hash, kind: 'document' }
      : { path, hash, kind: 'folder' };
  }
  if (path.endsWith('.md')) return { path, hash, kind: 'document' };
  return { path, hash, kind: /\.(png|svg|jpg)$/.test(path) ? 'picture' : 'source' };
}

/** @param {string} path in the repository */
export const readText = (path) => readFileSync(join(root, path), 'utf8');
