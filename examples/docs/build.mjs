// examples/docs/build.mjs — builds the documentation pages from README.md (the first page), docs/
// and every file that they link to. The links determine which files become pages.
//   node examples/docs/build.mjs     builds build/docs-pages

import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import MiniSearch from 'minisearch';
import { addServiceWorker } from '../chat/build.mjs';
import { bundlePage } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';
import {
  addressIn,
  groups,
  pageOf,
  pictureOf,
  rankOf,
  readText,
  referencePaths,
  root,
} from './outline.mjs';
import { referenceText } from './reference.mjs';
import { codeBlock, escaped, render } from './render.mjs';
import { searchOptions } from './search_options.js';
import { pageHtml } from './template.mjs';

const here = dirname(fileURLToPath(import.meta.url));
export const site = resolve(root, 'build/docs-pages');

/** The languages of files by extension. @type {Record<string, string>} */
const languages = {
  c: 'c',
  h: 'c',
  mjs: 'javascript',
  js: 'javascript',
  ts: 'typescript',
  json: 'json',
  jsonc: 'json',
  py: 'python',
  html: 'xml',
  css: 'css',
  toml: 'ini',
  yaml: 'yaml',
  sh: 'bash',
};

/** @typedef {import('./render.mjs').Rendered} Rendered */
/** @typedef {Map<string, Rendered>} Documents by their paths in the repository */

/** @param {string} path of a file that is shown unchanged @returns {Rendered} */
function renderSource(path) {
  const language = languages[path.split('.').at(-1) ?? ''];
  const html = `<h1>${escaped(path)}</h1>\n${codeBlock(readText(path), language)}`;
  return { title: path, html, sections: [], targets: [], broken: [] };
}

/** @param {string} path of a folder without a README @returns {Rendered} */
function renderFolder(path) {
  const entries = readdirSync(join(root, path), { withFileTypes: true });
  const names = entries.filter((one) => one.isFile()).map(({ name }) => name);
  const texts = names.filter((name) =>
    /\.(m?js|html|css|jsonc?|c|wit|ts|toml|yaml|txt)$/.test(name),
  );
  const targets = texts.map((name) => ({
    path: `${path}/${name}`,
    hash: '',
    kind: /** @type {const} */ ('source'),
  }));
  const items = targets.map(
    (one, index) =>
      `<li><a href="${addressIn(pageOf(path), pageOf(one.path))}">${escaped(texts[index])}</a></li>`,
  );
  const html = `<h1>${escaped(path)}</h1>\n<ul>\n${items.sort().join('\n')}\n</ul>\n`;
  return { title: path, html, sections: [], targets, broken: [] };
}

/**
 * Reads all documents that can be reached from the first ones.
 * @returns {{documents: Documents, pictures: Set<string>}}
 */
export function readAll() {
  /** @type {Documents} */
  const documents = new Map();
  /** @type {Set<string>} */
  const pictures = new Set();
  /** @type {{path: string, kind: string}[]} */
  const waiting = groups().flatMap(([, paths]) =>
    paths.map((path) => ({ path, kind: 'document' })),
  );
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const { path, kind } = next;
    if (documents.has(path)) continue;
    if (kind === 'picture') {
      pictures.add(path);
      continue;
    }
    const found =
      kind === 'document'
        ? render(path, referencePaths.includes(path) ? referenceText(path) : readText(path))
        : kind === 'folder'
          ? renderFolder(path)
          : renderSource(path);
    documents.set(path, found);
    waiting.push(...found.targets);
  }
  return { documents, pictures };
}

const EXCERPT_MAX = 150;

/** @param {string} markdown of a section @returns {string} its first words as plain text */
export function excerptOf(markdown) {
  const plain = markdown
    .replace(/^(```|~~~).*?^\1/gms, ' ')
    .replace(/^\|[\s|:-]*$/gm, ' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(?:[-*]|\d+\.) /gm, '')
    .replace(/[`|]|\*\*/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  if (plain.length <= EXCERPT_MAX) return plain;
  return `${plain.slice(0, EXCERPT_MAX).replace(/\s+\S*$/, '')} …`;
}

/** @param {Documents} documents @returns {MiniSearch} the index of all sections */
export function searchIndex(documents) {
  const index = new MiniSearch(searchOptions);
  let id = 0;
  for (const [path, { title: page, sections }] of documents) {
    const rank = rankOf(path);
    for (const { title, hash, text } of sections) {
      const excerpt = excerptOf(text);
      index.add({ id: id++, title, page, text, url: `${pageOf(path)}#${hash}`, excerpt, rank });
    }
  }
  return index;
}

/** @param {Documents} documents @returns {import('./template.mjs').List} */
function listOf(documents) {
  const entry = (/** @type {string} */ path) => ({
    title: path === 'README.md' ? 'Wick' : (documents.get(path)?.title ?? path),
    page: pageOf(path),
  });
  const listed = groups().map(([name, paths]) => ({ name, pages: paths.map(entry) }));
  const known = new Set(groups().flatMap(([, paths]) => paths));
  const others = [...documents.keys()].filter((path) => path.endsWith('.md') && !known.has(path));
  return others.length > 0
    ? [...listed, { name: 'Examples', pages: others.sort().map(entry) }]
    : listed;
}

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildDocs(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  const { documents, pictures } = readAll();
  const list = listOf(documents);
  const links = addLinks('<!-- pages -->', place);
  const write = (/** @type {string} */ name, /** @type {string} */ text) => {
    mkdirSync(dirname(resolve(folder, name)), { recursive: true });
    writeFileSync(resolve(folder, name), text);
  };
  for (const [path, { title, html, broken }] of documents) {
    if (broken.length > 0) throw new Error(`${path} has broken links: ${broken}`);
    write(pageOf(path), pageHtml({ title, page: pageOf(path), html, list, links }));
  }
  write('search.json', JSON.stringify(searchIndex(documents)));
  for (const path of pictures) {
    mkdirSync(dirname(resolve(folder, pictureOf(path))), { recursive: true });
    copyFileSync(join(root, path), resolve(folder, pictureOf(path)));
  }
  copyFileSync(resolve(here, '../chat/icon.svg'), resolve(folder, 'icon.svg'));
  await bundlePage(
    ['page.js', 'page.css'].map((name) => resolve(here, name)),
    folder,
  );
  await addServiceWorker(folder, [
    ...[...documents.keys()].map(pageOf),
    ...[...pictures].map(pictureOf),
    'icon.svg',
    'search.json',
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDocs();
