// examples/playground/build.mjs — builds the page in build/playground-page: a folder that any static server can serve unchanged.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addServiceWorker, modelFiles, packageFiles } from '../chat/build.mjs';
import { bundlePage, copyPackages } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/playground-page');

/** Files that the page needs offline, in addition to its scripts and styles. */
const files = [
  'index.html',
  'icon.svg',
  ...packageFiles(['models.js'], ['-grammar', '-extras']),
  ...modelFiles,
];

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildPlayground(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), addLinks(html, place));
  copyFileSync(resolve(here, '../chat/icon.svg'), resolve(folder, 'icon.svg'));
  copyPackages(folder);
  await bundlePage(
    ['page.js', 'page.css'].map((name) => resolve(here, name)),
    folder,
  );
  await addServiceWorker(folder, files);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPlayground();
