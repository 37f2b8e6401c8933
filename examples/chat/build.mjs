// examples/chat/build.mjs — builds the page in build/chat: a folder that any static server
// can serve as it is.

import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundlePage, copyPackages } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';
import { writeIcons } from './icons.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/chat');

const copied = ['index.html', 'icon.svg', 'manifest.webmanifest'];

/** Files of the page beside what is bundled and its icons, which it needs without a network, too. */
const files = [
  ...copied,
  ...['index.js', 'models.js', 'sources.js', 'tabs.js', 'worker.js'].map(
    (name) => `wick-llm/${name}`,
  ),
  'wick-llm-demo-model/wick-4.2m-q8_0.gguf',
  ...['simd128', 'relaxed'].flatMap((kernels) =>
    ['single', 'threads'].flatMap((kind) =>
      ['', '-grammar', '-extras'].map(
        (part) => `wick-llm/wasm/wick-${kernels}-${kind}${part}.wasm`,
      ),
    ),
  ),
];

/**
 * Writes the build's name into the page, and makes the service worker that stores the page.
 * @param {string} folder
 * @param {string[]} [own] files beside scripts, styles and icons
 */
export async function addServiceWorker(folder, own = files) {
  const isMade = (/** @type {string} */ name) =>
    /\.(css|js|png)$/.test(name) && name !== 'service_worker.js';
  const all = [...readdirSync(folder).filter(isMade), ...own];
  const hash = createHash('sha256');
  for (const name of all) hash.update(readFileSync(resolve(folder, name)));
  hash.update(readFileSync(resolve(here, 'service_worker.js')));
  const version = hash.digest('hex').slice(0, 16);
  const page = resolve(folder, 'index.html');
  const html = readFileSync(page, 'utf8');
  writeFileSync(page, html.replace(/(?<=name="version" content=")\w*/, version));
  await build({
    entryPoints: [resolve(here, 'service_worker.js')],
    outfile: resolve(folder, 'service_worker.js'),
    bundle: true,
    format: 'iife',
    minify: true,
    target: ['es2022'],
    define: { 'globalThis.BUILD': JSON.stringify({ version, files: ['./', ...all] }) },
    logLevel: 'warning',
  });
}

/** @param {string} [folder] @param {string} [place] its folder in the site */
export async function buildChat(folder = site, place = undefined) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of copied) copyFileSync(resolve(here, name), resolve(folder, name));
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), addLinks(html, place));
  await writeIcons(folder);
  copyPackages(folder);
  const entries = ['page.js', 'style.css'].map((name) => resolve(here, name));
  await bundlePage(entries, folder);
  await addServiceWorker(folder);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildChat();
