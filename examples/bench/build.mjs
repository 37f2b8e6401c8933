// examples/bench/build.mjs — builds the page in build/bench-page, a folder for any static
// server. Threads need the headers COOP and COEP.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeEnvironment } from '../../tools/bench/environment.mjs';
import { addServiceWorker, modelFiles, packageFiles } from '../chat/build.mjs';
import { bundlePage, copyPackages } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/bench-page');

/** Files that the page needs offline, in addition to its scripts and styles. */
const files = ['index.html', 'icon.svg', ...packageFiles([], ['-extras']), ...modelFiles];

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildBench(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ['icon.svg', 'language.js']) {
    copyFileSync(resolve(here, name), resolve(folder, name));
  }
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), addLinks(html, place));
  copyPackages(folder);
  const { version } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'));
  const built = `${version}, commit ${describeEnvironment().commit}`;
  await bundlePage([resolve(here, 'page.js'), resolve(here, 'page.css')], folder, {
    'globalThis.WICK_VERSION': JSON.stringify(built),
  });
  await addServiceWorker(folder, files);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildBench();
