// examples/chat/build.mjs — puts the page together in build/chat: a folder that any static server
// can serve as it is.

import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
export const site = resolve(root, 'build/chat');

export async function buildChat() {
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site, { recursive: true });
  for (const name of ['index.html', 'style.css', 'icon.svg']) {
    copyFileSync(resolve(here, name), resolve(site, name));
  }
  copyFileSync(resolve(here, '../fork/kv_map.css'), resolve(site, 'kv_map.css'));
  cpSync(resolve(root, 'dist'), resolve(site, 'wick-llm'), { recursive: true });
  await build({
    entryPoints: [resolve(here, 'page.js')],
    outfile: resolve(site, 'page.js'),
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
