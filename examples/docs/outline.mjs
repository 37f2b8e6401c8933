// examples/docs/outline.mjs — the files in the repository that become documentation pages, their
// URLs, and their order in the list and in the search.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/**
 * The modules of the package and their types, from which `reference.mjs` builds pages.
 * @type {Record<string, string>}
 */
export const modules = {
  'wick-llm': 'js/index.d.ts',
  'wick-llm/models': 'js/models.d.ts',
  'wick-llm/edge': 'js/edge.d.ts',
  'wick-llm/openai': 'js/openai.d.ts',
  'wick-llm/node': 'js/node.d.ts',
  'wick-llm/chat': 'js/chat.d.ts',
  'wick-llm/ai-sdk': 'js/ai-sdk.d.ts',
  'wick-llm/prompt-api': 'js/prompt-api.d.ts',
  'wick-llm/pipeline': 'js/pipeline.d.ts',
  'wick-llm/isolate': 'js/isolate.d.ts',
};

/**
 * @param {string} name of a module
 * @returns {string} the path of its page, in the form of a document's path
 */
export const referenceOf = (name) => `docs/reference/${name.replace('/', '-')}.md`;

export const referencePaths = Object.keys(modules).map(referenceOf);

/** @param {string} names of documents in docs/, separated by white space @returns {string[]} */
const inDocs = (names) =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => `docs/${name}.md`);

/** Documents by group. Other files of docs/ come last in Explanation. @type {[string, string[]][]} */
const order = [
  [
    'Guide',
    [
      'README.md',
      ...inDocs(`
        guide/README guide/getting-started guide/which-model models guide/chat guide/streaming guide/structured-output
        guide/tools guide/sampling guide/embeddings guide/sessions guide/many-requests guide/tabs guide/offline
        guide/adapters guide/memory guide/server edge components deploy guide/command-line guide/other-interfaces
        bundlers react svelte hosts migrating guide/troubleshooting`),
      'examples/README.md',
    ],
  ],
  [
    'Reference',
    [
      ...inDocs('js-api features'),
      ...referencePaths,
      ...inDocs('architectures tool-formats refusals c-library'),
      'CHANGELOG.md',
    ],
  ],
  [
    'Explanation',
    [
      ...inDocs('architecture requests extending benchmarks build testing releasing'),
      'CONTRIBUTING.md',
    ],
  ],
  ['Test records', inDocs('chat-promises outside sizes')],
];

/**
 * The weight of each group in the search, so that tasks are listed before internals.
 * @type {Record<string, number>}
 */
const ranks = { Guide: 2, Reference: 1, Explanation: 1, 'Lab notes': 0.6 };

/**
 * @param {string} path in the repository
 * @returns {number} the weight of its sections in the search
 */
export function rankOf(path) {
  if (path === 'CHANGELOG.md') return 0.5; // a long page that mentions nearly every word
  const [name = ''] = groups().find(([, paths]) => paths.includes(path)) ?? [];
  return ranks[name] ?? 0.5;
}

/** @param {string} folder @returns {string[]} its documents */
export const documentsIn = (folder) =>
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
          name === 'Explanation' ? [...paths, ...others] : paths,
        ]),
    ),
    ['Lab notes', documentsIn('docs/lab')],
  ];
}

/**
 * @param {string} path in the repository
 * @returns {string} the path of its page in the documentation's folder
 */
export function pageOf(path) {
  const own = path.replace(/^docs\//, '');
  if (/(^|\/)README\.md$/.test(own)) return own.replace(/README\.md$/, 'index.html');
  return own.endsWith('.md') ? own.replace(/\.md$/, '.html').toLowerCase() : `source/${path}.html`;
}

/** @param {string} path of an image in the repository */
export const pictureOf = (path) => `pictures/${path}`;

/** @param {string} from a page @param {string} to @returns {string} the URL of `to` relative to `from` */
export const addressIn = (from, to) =>
  posix.relative(posix.dirname(from), to).split('/').map(encodeURIComponent).join('/');

/**
 * Returns the target of a link in a document.
 * @param {string} document its path in the repository
 * @param {string} href
 * @returns {{path: string, hash: string, kind: 'document' | 'picture' | 'source' | 'folder'} |
 * undefined} undefined if it is external, or refers to a file that is not in the repository
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
