// examples/chat/build.mjs — puts the page together in build/chat: a folder that any static server
// can serve as it is.

import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/chat');

/** @param {string} [folder] */
export async function buildChat(folder = site) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ['index.html', 'style.css', 'icon.svg']) {
    copyFileSync(resolve(here, name), resolve(folder, name));
  }
  copyFileSync(resolve(here, '../fork/kv_map.css'), resolve(folder, 'kv_map.css'));
  cpSync(resolve(root, 'dist'), resolve(folder, 'wick-llm'), { recursive: true });
  await build({
    entryPoints: [resolve(here, 'page.js')],
    outfile: resolve(folder, 'page.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['es2022'],
    legalComments: 'none',
    logLevel: 'warning',
    // The package stays beside the page: it finds its worker and its WebAssembly by its own address.
    plugins: [
      {
        name: 'package',
        setup: (own) =>
          own.onResolve({ filter: /^wick-llm$/ }, () => ({
            path: './wick-llm/index.js',
            external: true,
          })),
      },
    ],
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildChat();
