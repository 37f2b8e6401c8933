// Checks the imports under js/: a folder may import only from itself and the folders listed for it
// here, including types. docs/architecture.md describes the purpose of each folder.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** The folders that each folder may import from. @type {Record<string, string[]>} */
const folders = {
  base: [],
  bytes: ['base'],
  storage: ['base'],
  models: ['base', 'bytes', 'storage'],
  wasm: ['base', 'storage'],
  connection: ['base', 'bytes', 'wasm'],
  tabs: ['base', 'connection'],
  worker: ['base', 'bytes', 'storage', 'wasm', 'connection'],
  page: ['base', 'bytes', 'storage', 'wasm', 'connection', 'tabs'],
  edge: ['base', 'bytes', 'wasm', 'connection', 'worker', 'page'],
  handler: ['base'],
  node: [],
  cli: ['base', 'node'],
  chat: [],
  ai_sdk: [],
  prompt_api: [],
  pipeline: [],
  isolate: [],
};
/** Folders that use the package like its users: they may import `wick-llm` and `wick-llm/models`. */
const users = ['chat', 'ai_sdk', 'prompt_api', 'pipeline'];
const usersImport = ['js/index.js', 'js/models.js'];
/** Files directly in js/, and the folders that they may import from. @type {Record<string, string[]>} */
const entries = {
  'js/index.js': ['base', 'page'],
  'js/index.d.ts': [],
  'js/ai-sdk.js': ['ai_sdk'],
  'js/ai-sdk.d.ts': [],
  'js/chat.js': ['chat'],
  'js/tasks.js': ['page'],
  'js/tabs.js': ['tabs'],
  'js/sources.js': ['bytes'],
  'js/pipeline.js': ['pipeline'],
  'js/pipeline.d.ts': [],
  'js/isolate.js': ['isolate'],
  'js/isolate.d.ts': [],
  'js/isolate-worker.js': ['isolate'],
  'js/prompt-api.js': ['prompt_api'],
  'js/prompt-api.d.ts': [],
  'js/chat.d.ts': [],
  'js/edge.js': ['base', 'edge'],
  'js/edge.d.ts': [],
  'js/openai.js': ['handler'],
  'js/openai.d.ts': [],
  'js/node.js': ['node'],
  'js/node.d.ts': [],
  'js/models.js': ['models'],
  'js/models.d.ts': [],
  'js/cli.js': ['base', 'cli'],
};
/** Files with the types of the public interface, which every folder may use. */
const publicTypes = [
  'js/index.js',
  'js/openai.js',
  'js/node.js',
  'js/edge.js',
  'js/models.js',
  'js/ai-sdk.js',
  'js/prompt-api.js',
  'js/pipeline.js',
  'js/isolate.js',
];
/** Packages from which a folder or an entry may import only types. */
const typeLibraries = /** @type {Record<string, string[]>} */ ({
  ai_sdk: ['@ai-sdk/provider'],
  'js/ai-sdk.d.ts': ['@ai-sdk/provider'],
});
/** The modules that the page loads on first use. */
const loadedLater = ['js/chat.js', 'js/models.js', 'js/sources.js', 'js/tabs.js', 'js/tasks.js'];
/** Libraries that only the given folder may import. */
const libraries = /** @type {Record<string, string[]>} */ ({ worker: ['@huggingface/jinja'] });

/**
 * @param {string} file its path relative to the root
 * @param {string} target the imported file
 * @param {boolean} isType
 * @returns {string | undefined} the fault
 */
function faultOf(file, target, isType) {
  const [, folder, inside] = file.split('/');
  const own = inside === undefined ? undefined : folder;
  if (own !== undefined && !folders[own]) return `js/${own} is not listed in docs/architecture.md`;
  if (own === undefined && !entries[file]) return `${file} is not in a known folder`;
  if (!target.startsWith('.')) {
    const runsInNode = own === 'cli' || file === 'js/cli.js';
    const isNode = target.startsWith('node:') && (isType || runsInNode);
    if (typeLibraries[own ?? file]?.includes(target) && (isType || /\.d\.ts$/.test(file)))
      return undefined;
    if (isNode || (own && libraries[own]?.includes(target))) return undefined;
    return `'${target}' is neither a file of js/ nor a library of this folder`;
  }
  const found = relative(root, resolve(root, dirname(file), target));
  const [, to, below] = found.split('/');
  if (below === undefined) {
    if (own !== undefined && users.includes(own) && usersImport.includes(found)) return undefined;
    if (own === 'page' && loadedLater.includes(found)) return undefined;
    return isType && publicTypes.includes(found) ? undefined : `folders may not import ${found}`;
  }
  const allowed = own === undefined ? entries[file] : [own, ...folders[own]];
  if (allowed.includes(to)) return undefined;
  return `${own === undefined ? file : `folder ${own}`} may not import from folder ${to}`;
}

/** Matches types imported in comments first, then the modules from which code imports or exports. */
const imports = [
  { pattern: /(?<!await )\bimport\('([^']+)'\)/g, isType: true },
  { pattern: /@import \{[^}]*\} from '([^']+)'/g, isType: true },
  { pattern: /^(?:import|export)\b[^;]*?from '([^']+)'/gm, isType: false },
  { pattern: /^import '([^']+)'/gm, isType: false },
  { pattern: /\bawait import\('([^']+)'\)/g, isType: false },
];

let faults = 0;
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8').split('\n## ')[2];
const shown = [...page.matchAll(/^- `(\w+)`:/gm)].map(([, folder]) => folder);
for (const folder of Object.keys(folders).filter((one) => !shown.includes(one))) {
  console.error(`docs/architecture.md: folder js/${folder} is missing`);
  faults++;
}
for (const name of readdirSync(join(root, 'js'), { recursive: true, encoding: 'utf8' })) {
  if (!/\.(js|d\.ts)$/.test(name)) continue;
  const file = `js/${name.replaceAll('\\', '/')}`;
  const text = readFileSync(join(root, file), 'utf8');
  for (const { pattern, isType } of imports) {
    for (const found of text.matchAll(pattern)) {
      const fault = faultOf(file, found[1], isType);
      if (!fault) continue;
      const line = text.slice(0, found.index).split('\n').length;
      console.error(`${file}:${line}: ${fault}`);
      faults++;
    }
  }
}
// A clean clone is checked before dist/ exists: types come from js/, and tests import built files by URL.
for (const folder of ['tests', 'tools']) {
  for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!/\.m?js$/.test(name) || /node_modules/.test(name)) continue;
    const text = readFileSync(join(root, folder, name), 'utf8');
    const found = /^(?:import|export)\b[^;]*?from '(?:\.\.\/)+dist\//m.exec(text);
    if (!found) continue;
    const line = text.slice(0, found.index).split('\n').length;
    console.error(
      `${folder}/${name}:${line}: do not import from dist/, which a clean clone does not have`,
    );
    faults++;
  }
}
if (faults > 0) process.exit(1);
