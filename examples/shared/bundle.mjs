// examples/shared/bundle.mjs — bundles the scripts and styles of an example page. The package stays
// next to them, unbundled.

import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, buildSync } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/**
 * Copies the package and the model package, without the small model for benchmarks.
 * @param {string} site the page's folder
 * @param {boolean} [hasModel]
 */
export function copyPackages(site, hasModel = true) {
  cpSync(resolve(root, 'dist'), resolve(site, 'wick-llm'), { recursive: true });
  if (!hasModel) return;
  const model = resolve(root, 'examples/models');
  const filter = (/** @type {string} */ path) => !basename(path).startsWith('wick-2.6m');
  cpSync(model, resolve(site, 'wick-llm-demo-model'), { recursive: true, filter });
}

/**
 * Copies the design system's styles, for a page that is not bundled.
 * @param {string} site the page's folder
 */
export function copyStyles(site) {
  const entryPoints = [resolve(root, 'examples/shared/plain_page.css')];
  buildSync({ entryPoints, outdir: site, bundle: true, logLevel: 'warning' });
}

/**
 * Keeps the package unbundled, because it finds its worker and its WebAssembly relative to its own URL.
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
 * Combines everything that the page's script imports into one file. Modules that are loaded later
 * share parts of it; without this, each shared part would become a separate file.
 * @param {string} script of the page
 * @returns {import('esbuild').Plugin}
 */
function oneFile(script) {
  const folder = dirname(script);
  const textOf = (/** @type {string} */ name) => readFileSync(resolve(folder, name), 'utf8');
  const codeOf = (/** @type {string} */ name) => textOf(name).replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const imports = codeOf(basename(script)).match(/(?<= from )'\.\/.+?\.js'/g) ?? [];
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const later = new Set(
    scripts.flatMap((name) => codeOf(name).match(/(?<=import\('\.\/).+?(?='\))/g) ?? []),
  );
  const all = imports.map((one) => `import ${one};`).join('');
  return {
    name: 'one file',
    setup(own) {
      own.onResolve({ filter: /\.js$/ }, ({ path, kind }) =>
        kind === 'entry-point' ? { path, sideEffects: true } : undefined,
      );
      own.onResolve({ filter: /^\.\// }, ({ path, importer, resolveDir }) =>
        dirname(importer) === folder
          ? { path: resolve(resolveDir, path), sideEffects: true }
          : undefined,
      );
      own.onLoad({ filter: /\.js$/ }, ({ path }) =>
        dirname(path) === folder && later.has(basename(path))
          ? { contents: all + textOf(basename(path)) }
          : undefined,
      );
    },
  };
}

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
    metafile: true,
    splitting: true, // code that is needed later (import()) becomes a separate file
    chunkNames: '[name]-[hash]',
    minify: true,
    format: 'esm',
    target: ['es2022'],
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [besidePackage, oneFile(entryPoints[0])],
  });

/**
 * Lists the scripts that a page's script imports before it runs, so that the browser does not have to
 * load one to discover the next.
 * @param {import('esbuild').BuildResult<{metafile: true}>} built by bundlePage
 * @param {string} folder of the page
 * @returns {string} elements of its head
 */
export function preloadsOf({ metafile: { outputs } }, folder) {
  const nameOf = (/** @type {string} */ path) => relative(folder, resolve(path));
  const entry = Object.keys(outputs).find((path) => nameOf(path) === 'page.js') ?? '';
  const paths = new Set([entry]);
  for (const path of paths)
    for (const one of outputs[path].imports)
      if (one.kind === 'import-statement' && !one.external) paths.add(one.path);
  const own = [...paths].slice(1).sort((one, two) => outputs[one].bytes - outputs[two].bytes);
  return ['wick-llm/index.js', ...own.map(nameOf), 'wick-llm/tabs.js']
    .map((name) => `<link rel="modulepreload" href="${name}">`)
    .join('\n  ');
}
