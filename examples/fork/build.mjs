// examples/fork/build.mjs — builds the page in build/fork-page: a folder that any static server
// can serve unchanged. Nothing is bundled: the page finds the package by its import map.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addServiceWorker, modelFiles, packageFiles } from '../chat/build.mjs';
import { copyPackages, copyStyles } from '../shared/bundle.mjs';
import { addLinks, allowInline } from '../shared/pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/fork-page');

/** Files that the page needs offline, in addition to its scripts and styles. */
const files = ['index.html', 'icon.svg', ...packageFiles([], []), ...modelFiles];

/**
 * @param {string} html
 * @returns {string}
 */
function allowImportMap(html) {
  const map = /<script type="importmap">(.*?)<\/script>/s.exec(html)?.[1];
  if (map === undefined) throw new Error('the page has no import map');
  return allowInline(html, map);
}

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildFork(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), allowImportMap(addLinks(html, place)));
  for (const name of ['icon.svg', 'page.css', 'page.js', 'kv_map.css', 'kv_map.js']) {
    copyFileSync(resolve(here, name), resolve(folder, name));
  }
  copyStyles(folder);
  copyPackages(folder);
  await addServiceWorker(folder, files);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildFork();
