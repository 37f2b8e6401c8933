// The properties of a test file that the runner uses: its group, its queue and whether `make test`
// runs it. A new file needs no entry here: its group is its folder, its queue follows from its
// imports, and `make test` runs it unless its name or an import restricts it to `make test-all`.

import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const tests = dirname(fileURLToPath(import.meta.url));
export const root = dirname(tests);

/** Test groups: each is a folder in tests/, which `make test-GROUP` runs. */
export const groups = ['engine', 'package', 'interfaces', 'pages', 'edge', 'repository'];

/** Files that only `make test-all` runs. The remaining files may skip parts (support/level.mjs). */
export const onlyInAll = [
  // killed browsers, and three browsers at once
  /_kills\.test/,
  /\/pages\/chat_three_/,
  // pages beyond their main use
  /\/pages\/chat_(accessible|ahead|browsers|context_size|dragging|installed|known_words|pasting|pdf|templates)\.test/,
  /\/pages\/(csp|second_visit|site_offline)\.test/,
  /\/package\/(js_high|js_integrity|js_leak|js_policy|web_golden)\.test/,
  // random inputs and corrupt files, which take minutes
  /_fuzz\.test/,
  /\/engine\/(arm|c_units_\w+|fuzz|random_\w+|corrupt|hostile_grammars|llama_keys)\.test/,
  // more hosts and runtimes, in addition to the one of each kind that `make test` runs
  /\/edge\/(component_(equal|llm|url)|deploy|edge_hosts|embed_component|emcc|fleet|library_emscripten|wasi|wasi_sdk|wasi_small)\.test/,
  /\/package\/(bundlers|extension|hosts|models_hosts)\.test/,
  /\/interfaces\/(openai_clients|client_tools|lm_eval)\.test/,
  // releases, and builds for measurements
  /\/repository\/(bench|release|mutants)\.test/,
];

/** Files that measure time or memory run alone, after the others. */
export const alone = [
  /\/package\/js_leak\.test/,
  /\/pages\/chat_ahead\.test/,
  /\/edge\/fleet\.test/,
  /\/repository\/bench\.test/,
];

/** A file that imports one of these, directly or indirectly, mostly waits for a browser. */
const browserHelpers = /(^|\/)browsers\.mjs$/;

/**
 * The files that take the longest, for a clean clone, which has no measured times yet and starts with them.
 */
export const longest = [
  'engine/c_units',
  'engine/fuzz',
  'engine/arm',
  'engine/c_units_wasi',
  'engine/c_units_relaxed',
  'engine/golden',
  'pages/chat_books',
  'pages/offline',
  'pages/chat_three_browsers',
  'pages/chat_kills',
  'pages/conversations',
  'pages/notes_page',
  'pages/chat_context',
  'pages/chat_accessible',
  'pages/chat_templates',
  'pages/phones',
  'pages/chat_three_models',
  'pages/playground_page',
  'pages/chat_three_site',
  'pages/page',
  'package/models_page',
  'package/bundlers',
  'package/models_engine',
];

/** The test groups affected by a change in a folder; the longest path counts. Other changes affect all groups. */
export const concerned = new Map(
  Object.entries({
    'CHANGELOG.md': [],
    'CONTRIBUTING.md': ['repository'],
    'README.md': ['repository', 'engine'],
    '.gitignore': [],
    'component/': ['edge'],
    'docs/': ['repository', 'engine'],
    'docs/guide/': ['repository', 'package', 'interfaces'],
    'emscripten/': ['edge'],
    'examples/': ['repository', 'pages'],
    'examples/c/': ['edge'],
    ...Object.fromEntries(
      ['batch', 'bun', 'component', 'deno', 'deploy', 'fleet', 'node-server', 'workers'].map(
        (name) => [`examples/${name}/`, ['edge']],
      ),
    ),
    'examples/wasi/': ['engine', 'edge'],
    'include/': ['engine', 'edge'],
    'js/README.md': ['repository'],
    'js/': ['package', 'interfaces', 'pages'],
    'js/cli/': ['package', 'interfaces', 'edge'],
    'library/': ['edge'],
    'src/': ['engine'],
    'src/bench/': ['engine', 'repository'],
    'src/cli/': ['engine', 'edge'],
    'src/platform/': ['engine', 'package', 'edge'],
    'tests/c/': ['engine'],
    'tests/fuzz/': ['engine'],
    'tests/library/': ['edge'],
    'tools/bench/': ['repository'],
    'tools/coverage/': ['repository'],
    'tools/deploy/': ['edge'],
    'tools/mutants/': ['repository'],
    'tools/run_tests.mjs': ['repository'],
    'tools/train/': ['repository'],
    'wasi/': ['engine', 'edge'],
    'web/': ['engine', 'package'],
    ...Object.fromEntries(groups.map((group) => [`tests/${group}/`, [group]])),
  }),
);

/** Matches imports in statements at the start of a line and in `await import`, but not inside strings. */
const importedPath = /(?:^(?:import\b|export\b|\})[^;'"]*|\bawait import\()['"](\.[^'"]+)['"]/gm;

/** @type {Map<string, string[]>} */
const importsOf = new Map();

/** @param {string} file @returns {string[]} its imports with relative paths */
function directImports(file) {
  const known = importsOf.get(file);
  if (known) return known;
  /** @type {string[]} */
  const found = [];
  importsOf.set(file, found);
  let source = '';
  try {
    source = readFileSync(file, 'utf8');
  } catch {
    return found; // a missing file fails when it runs
  }
  for (const [, name] of source.matchAll(importedPath)) found.push(resolve(dirname(file), name));
  return found;
}

/** @param {string} file @returns {Set<string>} the file and its direct and indirect imports */
function allImports(file) {
  const seen = new Set([file]);
  for (const one of seen)
    if (one === file || one.startsWith(join(tests, 'support')))
      for (const imported of directImports(one)) seen.add(imported);
  return seen;
}

/** @typedef {'browser' | 'cpu' | 'alone'} Queue */

/**
 * @param {string} file an absolute path
 * @returns {{group: string, queue: Queue, isMain: boolean, rank: number,
 *   usesBrowser: boolean}} `rank` orders files without a measured time
 */
export function planOf(file) {
  const group = basename(dirname(file));
  const rank = longest.indexOf(`${group}/${basename(file, '.test.mjs')}`);
  const needsBrowser = [...allImports(file)].some((one) => browserHelpers.test(one));
  return {
    group,
    queue: alone.some((one) => one.test(file)) ? 'alone' : needsBrowser ? 'browser' : 'cpu',
    usesBrowser: needsBrowser,
    isMain: !onlyInAll.some((one) => one.test(file)),
    rank: rank < 0 ? longest.length : rank,
  };
}

/**
 * Returns the groups affected by a change of these files.
 * @param {string[]} changed paths from the root
 * @param {string[]} testFiles absolute paths of tests, whose imports are their helpers
 * @returns {string[]}
 */
export function groupsOf(changed, testFiles) {
  const found = new Set(changed.flatMap((path) => groupsOfOne(path, testFiles)));
  return groups.filter((group) => found.has(group));
}

/** @param {string} path @param {string[]} testFiles @returns {string[]} */
function groupsOfOne(path, testFiles) {
  if (path.startsWith('tests/support/') && path.endsWith('.mjs')) {
    const users = testFiles.filter((file) => allImports(file).has(resolve(root, path)));
    return users.length > 0 ? users.map((file) => planOf(file).group) : groups;
  }
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 2) + 1) {
    const known = concerned.get(path.slice(0, end));
    if (known) return known;
  }
  return groups;
}

/** @param {string} file */
export const nameOf = (file) => relative(root, file);
