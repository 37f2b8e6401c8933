// examples/notes/build.mjs — builds the page in build/notes-page: a folder that any static server can serve unchanged.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addServiceWorker, packageFiles } from '../chat/build.mjs';
import { bundlePage, copyPackages } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/notes-page');

/** Files that the page needs offline, in addition to its scripts and styles. */
const files = [
  ...['index.html', 'icon.svg', 'guide.json'],
  ...packageFiles(['models.js', 'tasks.js'], ['-extras']),
];

/** Reads the pages of the guide, which serve as a folder of notes that is always available. */
function guideNotes() {
  const guide = resolve(root, 'docs/guide');
  const names = readdirSync(guide).filter((name) => name.endsWith('.md'));
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(resolve(guide, name), 'utf8')]),
  );
}

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildNotes(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), addLinks(html, place));
  copyFileSync(resolve(here, '../chat/icon.svg'), resolve(folder, 'icon.svg'));
  writeFileSync(resolve(folder, 'guide.json'), JSON.stringify(guideNotes()));
  copyPackages(folder, false);
  await bundlePage(
    ['page.js', 'page.css'].map((name) => resolve(here, name)),
    folder,
  );
  await addServiceWorker(folder, files);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildNotes();
