// examples/fork/build.mjs — builds the page in build/fork-page: a folder that any static server
// can serve as it is. Nothing is bundled: the page finds the package by its import map.

import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/fork-page');

export function buildFork() {
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site, { recursive: true });
  for (const name of ['index.html', 'icon.svg', 'page.css', 'page.js', 'kv_map.css', 'kv_map.js']) {
    copyFileSync(resolve(here, name), resolve(site, name));
  }
  copyFileSync(resolve(here, '../shared/look.css'), resolve(site, 'look.css'));
  cpSync(resolve(root, 'dist'), resolve(site, 'wick-llm'), { recursive: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildFork();
