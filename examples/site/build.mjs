// examples/site/build.mjs — builds all example pages in one folder, build/site, which any static host
// can serve, even under a path: `make site`. Hosts that support a headers file make the pages
// cross-origin isolated; elsewhere the chat's service worker does so, starting with the second visit.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildBench } from '../bench/build.mjs';
import { buildChat } from '../chat/build.mjs';
import { buildDesign } from '../design/build.mjs';
import { buildDocs } from '../docs/build.mjs';
import { buildFork } from '../fork/build.mjs';
import { buildNotes } from '../notes/build.mjs';
import { buildPlayground } from '../playground/build.mjs';
import { copyStyles } from '../shared/bundle.mjs';
import { pages } from '../shared/pages.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const site = resolve(root, 'build/site');

const headers = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/** Writes the files in which hosts look for headers. @param {string} folder */
function writeHeaders(folder) {
  const all = Object.entries(headers);
  const write = (/** @type {string} */ name, /** @type {string} */ text) =>
    writeFileSync(resolve(folder, name), text);
  // Netlify, Cloudflare Pages
  write('_headers', `/*\n${all.map(([name, value]) => `  ${name}: ${value}\n`).join('')}`);
  // Vercel
  const rules = [{ source: '/(.*)', headers: all.map(([key, value]) => ({ key, value })) }];
  write('vercel.json', `${JSON.stringify({ headers: rules }, null, 2)}\n`);
  // Azure Static Web Apps
  write('staticwebapp.config.json', `${JSON.stringify({ globalHeaders: headers }, null, 2)}\n`);
  // Apache
  const lines = all.map(([name, value]) => `  Header set ${name} "${value}"\n`).join('');
  write(
    '.htaccess',
    `<IfModule mod_headers.c>\n${lines}</IfModule>\nAddType application/wasm .wasm\n`,
  );
  // GitHub Pages serves all files unchanged
  write('.nojekyll', '');
}

/** @type {Record<string, (folder: string, place: string) => Promise<void> | void>} */
const builders = {
  bench: buildBench,
  chat: buildChat,
  docs: buildDocs,
  fork: buildFork,
  notes: buildNotes,
  playground: buildPlayground,
};

/** Lists the pages and their purposes. */
function listHtml() {
  const others = pages.filter(({ folder }) => folder !== '');
  const items = others.map(
    ({ folder, name, text }) => `<li><a href="${folder}/">${name}</a> <span>${text}</span></li>`,
  );
  return `<ul>\n      ${items.join('\n      ')}\n    </ul>`;
}

/** @param {string} [folder] */
export async function buildSite(folder = site) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { folder: name } of pages) await builders[name]?.(resolve(folder, name), name);
  const html = readFileSync(resolve(here, 'index.html'), 'utf8');
  writeFileSync(resolve(folder, 'index.html'), html.replace('<!-- pages -->', listHtml()));
  copyFileSync(resolve(here, 'site.css'), resolve(folder, 'site.css'));
  copyStyles(folder);
  buildDesign(resolve(folder, 'design'), 'design');
  copyFileSync(resolve(here, '../chat/icon.svg'), resolve(folder, 'icon.svg'));
  writeHeaders(folder);
  return folder;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(`Built a folder for any static host: ${await buildSite()}`);
}
