// examples/chat/build.mjs — builds the page in build/chat: a folder that any static server
// can serve unchanged.

import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transformSync } from 'esbuild';
import { bundlePage, copyPackages, preloadsOf } from '../shared/bundle.mjs';
import { addLinks, allowInline } from '../shared/pages.mjs';
import { writeIcons } from './icons.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/chat');

const copied = ['icon.svg', 'manifest.webmanifest'];

/**
 * Returns the package files that a page needs offline.
 * @param {string[]} scripts in addition to those on every page
 * @param {string[]} parts WebAssembly modules in addition to the main one: '-grammar', '-extras'
 */
export const packageFiles = (scripts, parts) => [
  ...['index.js', 'sources.js', 'tabs.js', 'worker.js', ...scripts].map(
    (name) => `wick-llm/${name}`,
  ),
  ...['simd128', 'relaxed'].flatMap((kernels) =>
    ['single', 'threads'].flatMap((kind) =>
      ['', ...parts].map((part) => `wick-llm/wasm/wick-${kernels}-${kind}${part}.wasm`),
    ),
  ),
];

/** The built-in model, and the module with its URL. */
export const modelFiles = ['index.js', 'wick-4.2m-q8_0.gguf'].map(
  (name) => `wick-llm-demo-model/${name}`,
);

/** Files of the page, in addition to its bundles and icons, that it also needs offline. */
const files = [
  'index.html',
  ...copied,
  ...packageFiles(['models.js', 'tasks.js'], ['-grammar', '-extras', '-media']),
  'wick-llm-demo-model/wick-4.2m-q8_0.gguf',
  'wick-llm-demo-model/wick-4.2m-words.txt',
];

/** @param {string} folder @returns {string[]} scripts, styles and images of the page itself */
const madeIn = (folder) =>
  readdirSync(folder).filter(
    (name) => /\.(css|js|png)$/.test(name) && name !== 'service_worker.js',
  );

/**
 * Writes the build's name into the pages, and builds the service worker that caches them.
 * @param {string} folder
 * @param {string[]} [own] files in addition to scripts, styles and icons; those that end in .html
 * are pages
 */
export async function addServiceWorker(folder, own = files) {
  const all = [...new Set([...madeIn(folder), ...own])];
  const hash = createHash('sha256');
  for (const name of all) hash.update(readFileSync(resolve(folder, name)));
  hash.update(readFileSync(resolve(here, 'service_worker.js')));
  const version = hash.digest('hex').slice(0, 16);
  for (const name of all.filter((one) => one.endsWith('.html'))) {
    const page = resolve(folder, name);
    const html = readFileSync(page, 'utf8');
    writeFileSync(page, html.replace(/(?<=name="version" content=")\w*/, version));
  }
  await build({
    entryPoints: [resolve(here, 'service_worker.js')],
    outfile: resolve(folder, 'service_worker.js'),
    bundle: true,
    format: 'iife',
    minify: true,
    target: ['es2022'],
    alias: { 'wick-llm/isolate': resolve(root, 'dist/isolate.js') },
    define: { 'globalThis.BUILD': JSON.stringify({ version, files: ['./', ...all] }) },
    logLevel: 'warning',
  });
}

/**
 * Puts the script that runs before the first paint into the page, which saves a request.
 * @param {string} html
 */
function withFirstScript(html) {
  const source = readFileSync(resolve(here, 'first_paint.js'), 'utf8');
  const script = transformSync(source, { minify: true, format: 'iife' }).code.trim();
  const inline = () => `<script>${script}</script>`;
  return allowInline(html, script).replace('<script src="first_paint.js"></script>', inline);
}

/**
 * @param {string} [folder]
 * @param {string} [place] its folder in the site
 * @param {import('./models.js').ServedModel[]} [servedModels] models on the page's own server, in
 * addition to the built-in one
 */
export async function buildChat(folder = site, place = undefined, servedModels = []) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of copied) copyFileSync(resolve(here, name), resolve(folder, name));
  await writeIcons(folder);
  copyPackages(folder);
  const entries = ['page.js', 'engine_start.js', 'style.css'].map((name) => resolve(here, name));
  const built = await bundlePage(entries, folder, {
    'globalThis.SERVED_MODELS': JSON.stringify(servedModels),
  });
  const html = readFileSync(resolve(here, 'index.html'), 'utf8').replace(
    '<!-- preloads -->',
    preloadsOf(built, folder),
  );
  writeFileSync(resolve(folder, 'index.html'), addLinks(withFirstScript(html), place));
  await addServiceWorker(folder);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildChat();
