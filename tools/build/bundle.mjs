// Assembles the npm package in dist/: the bundles (for the page, the worker and each other
// entry), their source maps, types, the engine's WebAssembly and the `wick` command. Prints the
// sizes of the JavaScript files.
//
//   node tools/build/bundle.mjs [--web build/web] [--out dist]   modules to include, output folder

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import * as esbuild from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const { values: options } = parseArgs({
  options: {
    web: { type: 'string', default: 'build/web' },
    out: { type: 'string', default: 'dist' },
  },
});
// The package is built in another folder and then moved, so the old one is unavailable only for a moment.
const final = join(root, options.out);
const dist = join(root, 'build/bundle', basename(final));

/** @type {import('esbuild').BuildOptions} */
const common = {
  bundle: true,
  minify: true,
  target: ['es2022', 'chrome111', 'firefox111', 'safari16.4', 'node20'],
  legalComments: 'none',
  sourcemap: 'linked', // the maps contain the sources
  logLevel: 'warning',
};

/** Line lengths to try, in bytes. Lines are limited because Node prints the whole line of an uncaught error. */
const lineLimits = [1000, 1050, 1100, 1150, 1200, 1250, 1300];

/** URLs of files that bundlers must recognize: Vite needs `import.meta.url` on one line. */
const addresses = /new\s+URL\(\s*"[^"]*"\s*,\s*import\s*\.\s*meta\s*\.\s*url\s*\)/g;
const wholeAddresses = /new URL\("[^"\\\n]*", ?import\.meta\.url\)/g;

/** @param {import('esbuild').OutputFile} file */
const isBroken = ({ path, text }) =>
  path.endsWith('.js') &&
  (text.match(addresses)?.length ?? 0) !== (text.match(wholeAddresses)?.length ?? 0);

/**
 * Bundles with a line length that does not split the URL of a file.
 * @param {import('esbuild').BuildOptions} options
 */
async function build(options) {
  for (const lineLimit of lineLimits) {
    const { outputFiles } = await esbuild.build({ ...options, lineLimit, write: false });
    if (outputFiles.some(isBroken)) continue;
    for (const { path, contents } of outputFiles) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, contents);
    }
    return;
  }
  throw new Error(`line limits of ${lineLimits.join(', ')} bytes all split the URL of a file`);
}

/** Entries that are bundled separately. */
const entries = [
  ...['index.js', 'chat.js', 'ai-sdk.js', 'prompt-api.js', 'pipeline.js', 'openai.js'],
  ...['node.js', 'isolate.js'],
];
/**
 * Files that `wick-llm` loads on first use, built from its own folders; `chat.js` uses none of
 * them.
 */
const later = ['models.js', 'sources.js', 'tabs.js', 'tasks.js'];
/** Package files that other files import unchanged. */
const apart = ['index.js', 'chat.js', ...later];

/** @type {import('esbuild').Plugin} */
const importsApart = {
  name: 'keep package files separate',
  setup(within) {
    within.onResolve({ filter: /^\.\.\/\w+\.js$/ }, ({ path, resolveDir }) => {
      const name = path.slice('../'.length);
      const isApart = apart.includes(name) && resolve(resolveDir, '..') === join(root, 'js');
      return isApart ? { path: `./${name}`, external: true } : undefined;
    });
  },
};

/**
 * The edge bundle is one file, so it includes the parts that are separate elsewhere.
 * @type {import('esbuild').Plugin}
 */
const importsWithin = {
  name: 'combine package files',
  setup(within) {
    const errors = join(root, 'js/base/errors.js');
    within.onResolve({ filter: /^\.\.\/index\.js$/ }, () => ({ path: errors }));
    within.onLoad({ filter: /\/page\/later\.js$/ }, ({ path }) => {
      const pattern = /await import\('\.\.\/(\w+)\.js'\)\.catch\(.*\)/g;
      const source = readFileSync(path, 'utf8');
      const names = [...source.matchAll(pattern)].map(([, name]) => name);
      const first = names.map((name) => `import * as ${name} from '../${name}.js';\n`);
      return { contents: first.join('') + source.replaceAll(pattern, '$1') };
    });
  },
};

/**
 * These bundles include folders of the engine, but all errors must be instances of one class.
 * @type {import('esbuild').Plugin}
 */
const errorsApart = {
  name: 'use the error class of the package',
  setup(within) {
    const index = { path: './index.js', external: true };
    within.onResolve({ filter: /\/wick_error\.js$/ }, () => index);
  },
};

async function bundle() {
  await build({
    ...common,
    format: 'esm',
    entryPoints: entries.map((name) => join(root, 'js', name)),
    outdir: dist,
    plugins: [importsApart],
  });
  await build({
    ...common,
    format: 'esm',
    entryPoints: [join(root, 'js/edge.js')],
    outfile: join(dist, 'edge.js'),
    plugins: [importsWithin],
  });
  await build({
    ...common,
    format: 'esm',
    entryPoints: later.map((name) => join(root, 'js', name)),
    outdir: dist,
    plugins: [errorsApart],
  });
  // Classic scripts as well as modules: no import, no export, no import.meta.
  await build({
    ...common,
    format: 'iife',
    entryPoints: ['worker/worker.js', 'isolate-worker.js'].map((name) => join(root, 'js', name)),
    entryNames: '[name]',
    outdir: dist,
  });
  await build({
    ...common,
    minify: false,
    format: 'esm',
    platform: 'node',
    entryPoints: [join(root, 'js/cli.js')],
    outfile: join(dist, 'cli.js'),
  });
}

/** @param {string} from the source folder @param {string} to @param {RegExp} names */
function copyAll(from, to, names) {
  if (!existsSync(join(root, from))) return;
  mkdirSync(join(dist, to), { recursive: true });
  for (const name of readdirSync(join(root, from)).filter((file) => names.test(file))) {
    copyFileSync(join(root, from, name), join(dist, to, name));
  }
}

/** Makes the source paths in the maps relative to the package's final folder. */
function moveSources() {
  for (const name of readdirSync(dist).filter((file) => file.endsWith('.js.map'))) {
    const map = JSON.parse(readFileSync(join(dist, name), 'utf8'));
    map.sources = map.sources.map((/** @type {string} */ source) =>
      relative(final, resolve(dist, source)),
    );
    writeFileSync(join(dist, name), JSON.stringify(map));
  }
}

rmSync(dist, { recursive: true, force: true });
await bundle();
moveSources();
copyAll('js', '.', /\.d\.ts$/);
copyAll(options.web, 'wasm', /^wick-.*\.wasm$/);
copyAll('build/web', 'wasm', /-wide\.wasm$/); // always compiled by clang
copyAll('build/wasi', 'wasi', /^wick-full.*\.wasm$/);

/** Hashes of the files that a page loads, so that pages and proxies can reject modified files. */
const integrity = Object.fromEntries(
  readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(js|wasm)$/.test(name) && !/^(cli\.js|wasi)/.test(name))
    .sort()
    .map((name) => {
      const hash = createHash('sha384').update(readFileSync(join(dist, name)));
      return [name, `sha384-${hash.digest('base64')}`];
    }),
);
writeFileSync(join(dist, 'integrity.json'), `${JSON.stringify(integrity, null, 2)}\n`);

rmSync(final, { recursive: true, force: true });
renameSync(dist, final);

const kb = (/** @type {number} */ bytes) => `${(bytes / 1000).toFixed(1)} KB`;
let gzipped = 0;
for (const name of ['index.js', 'worker.js']) {
  const bytes = readFileSync(join(final, name));
  const small = gzipSync(bytes, { level: 9 }).byteLength;
  gzipped += small;
  console.log(
    `  ${options.out}/${name.padEnd(10)} ${kb(bytes.byteLength).padStart(9)}  ${kb(small)} gzipped`,
  );
}
console.log(`  JavaScript: ${kb(gzipped)} gzipped`);
