// examples/shared/bundle.mjs — bundles the scripts and styles of an example page. The package stays beside
// them as it is.

import { build } from 'esbuild';

/**
 * The package is not bundled: it finds its worker and its WebAssembly by its own address.
 * @type {import('esbuild').Plugin}
 */
const besidePackage = {
  name: 'package',
  setup: (own) =>
    own.onResolve({ filter: /^wick-llm(\/model)?$/ }, ({ path }) => ({
      path: path === 'wick-llm' ? './wick-llm/index.js' : './wick-llm/model.js',
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
    minify: true,
    format: 'esm',
    target: ['es2022'],
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [besidePackage],
  });
