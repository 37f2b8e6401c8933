// examples/shared/bundle.mjs — bundles the scripts and styles of an example page. The package stays
// next to them, unbundled.

import { cpSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, buildSync } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/**
 * The package and the model's, without the small model that benchmarks use.
 * @param {string} site the page's folder @param {boolean} [hasModel]
 */
export function copyPackages(site, hasModel = true) {
  cpSync(resolve(root, 'dist'), resolve(site, 'wick-llm'), { recursive: true });
  if (!hasModel) return;
  const model = resolve(root, 'examples/models');
  const filter = (/** @type {string} */ path) => !basename(path).startsWith('wick-2.6m');
  cpSync(model, resolve(site, 'wick-llm-demo-model'), { recursive: true, filter });
}

/** The design system's styles, for a page that is not bundled. @param {string} site the page's folder */
export function copyStyles(site) {
  const entryPoints = [resolve(root, 'examples/shared/plain_page.css')];
  buildSync({ entryPoints, outdir: site, bundle: true, logLevel: 'warning' });
}

/**
 * The package is not bundled: it finds its worker and its WebAssembly by its own address.
 * @type {import('esbuild').Plugin}
 */
const besidePackage = {
  name: 'package',
  setup: (own) =>
    own.onResolve({ filter: /^wick-llm(-demo-model|\/models)?$/ }, ({ path }) => ({
      path: path.endsWith('/models') ? `./${path}.js` : `./${path}/index.js`,
      external: true,
    })),
};

/**
 * @param {string[]} entryPoints a script and a stylesheet
 * @param {string} outdir the page's folder
 * @param {Record<string, string>} [define]
 */
export const bundlePage = (entryPoints, outdir, define = {}) =>
  build({
    define,
    entryPoints,
    outdir,
    bundle: true,
    splitting: true, // code that is needed later (import()) is a separate file
    chunkNames: '[name]-[hash]',
    minify: true,
    format: 'esm',
    target: ['es2022'],
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [besidePackage],
  });
