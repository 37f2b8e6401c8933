// Checks includes: a folder under src/ includes only itself and the folders above it, engine code
// uses only the parts of the C library that the freestanding web build has, include/wick.h compiles
// without other headers, and programs (the `wick` command, the web's exports) use the engine through
// it. The list and the diagram in docs/architecture.md must show these folders in this order.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

const folders = (
  'base platform metrics thread format kernels tensor kv store quantize text template model ' +
  'media sample grammar reply load schedule api bench reference cli lab'
).split(' ');
const engineHeaders = ['stdarg', 'stdint', 'stddef', 'stdbool', 'limits', 'stdatomic', 'string'];
// SIMD intrinsics, and their emulation in the sanitizer builds.
const kernelHeaders = ['wasm_simd128.h', 'simde/'];

/**
 * The headers that programs outside the engine may include in addition to include/wick.h and
 * their own files: base and platform for the host; format, quantize and media for commands that read,
 * write or encode files without an engine.
 * @type {[file: RegExp, headers: RegExp][]}
 */
const outside = [
  [/^src\/lab\/synth/, /^(lab|cli|base|format)\/|^platform\/platform\.h$|^text\/tokenizer\.h$/],
  [
    /^src\/lab\/media/,
    /^(lab|cli|base|format)\/|^media\/(media|encode)\.h$|^platform\/platform\.h$/,
  ],
  [/^src\/lab\//, /^(lab|cli|bench|base)\/|^platform\/platform\.h$|^sample\/rng\.h$/],
  [
    /^src\/cli\/media/,
    /^(cli|base|media)\/|^api\/parts\.h$|^format\/gguf\.h$|^grammar\/document\.h$|^platform\/platform\.h$/,
  ],
  [/^src\/cli\/quantize/, /^(cli|base|quantize)\/|^platform\/platform\.h$/],
  [/^src\/cli\//, /^(cli|bench|base)\/|^platform\/platform\.h$/],
  [/^web\/exports\.c$/, /^(layout|thread_web|web_heap)\.h$|^api\/media_strips\.h$/],
  // the WASI build uses the heap of the web builds
  [/^wasi\//, /^\.\.\/web\/web_heap\.h$|^base\/|^platform\/platform\.h$/],
  [/^library\//, /^(?:base\/|api\/insides\.h$)/], // a dialog sets a flag in the engine
  [
    /^component\//,
    /^base\/|^grammar\/(document|work)\.h$|^media\/formats\.h$|^platform\/platform\.h$|^[a-z0-9_]+\.h$/,
  ],
  [/^emscripten\//, /^base\/|^platform\/platform\.h$/],
  [/^web\//, /^(thread_web|web_heap)\.h$|^base\/|^platform\/platform\.h$|^thread\/pool\.h$/],
];
const publicHeaders = ['stdbool.h', 'stddef.h', 'stdint.h'];

/** @param {string} folder @returns {string[]} */
function sourcesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourcesBelow(path);
    return /\.[ch]$/.test(entry.name) ? [path] : [];
  });
}

/**
 * @param {string} file its path relative to the root
 * @param {string} header
 * @returns {string | undefined} the fault
 */
function faultOfSystemHeader(file, header) {
  if (file.startsWith('include/')) {
    return publicHeaders.includes(header)
      ? undefined
      : `<${header}>: wick.h may include only ${publicHeaders.join(', ')}`;
  }
  if (!file.startsWith('src/')) return undefined;
  const isEngine = !/^src\/((cli|lab)\/|platform\/(posix|pthreads|getentropy)\.c)/.test(file);
  if (!isEngine || engineHeaders.includes(header.replace(/\.h$/, ''))) return undefined;
  if (file.startsWith('src/kernels/') && kernelHeaders.some((h) => header.startsWith(h)))
    return undefined;
  return `<${header}> does not exist in the web build`;
}

/** @param {string} file @param {string} header @returns {string | undefined} */
function faultOfOwnHeader(file, header) {
  if (file.startsWith('include/'))
    return `"${header}": public headers must not include headers of src/`;
  if (header === 'wick.h') return undefined;
  const isFound = ['src', dirname(file)].some((at) => existsSync(join(root, at, header)));
  if (!isFound) return `"${header}" is not a path relative to src/`;
  const [, allowed] = outside.find(([files]) => files.test(file)) ?? [];
  if (allowed && !allowed.test(header)) return `"${header}": include wick.h instead`;
  return file.startsWith('src/') ? faultOfFolder(file.split('/')[1], header) : undefined;
}

/** @param {string} folder @param {string} header @returns {string | undefined} */
function faultOfFolder(folder, header) {
  const [target] = header.split('/');
  if (!folders.includes(folder)) return `src/${folder} is not listed in docs/architecture.md`;
  if (target === 'reference' && folder !== 'reference') return 'folder reference is only for tests';
  if (folders.indexOf(target) > folders.indexOf(folder))
    return `folder ${target} is below folder ${folder}`;
  return undefined;
}

let faults = 0;
const roots = ['include', 'src', 'wasi', 'web', 'emscripten', 'library', 'component'].map((name) =>
  join(root, name),
);
for (const path of roots.flatMap((folder) => sourcesBelow(folder))) {
  const file = relative(root, path);
  for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    const found = /^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)/.exec(line);
    if (!found) continue;
    const fault = found[1] ? faultOfOwnHeader(file, found[1]) : faultOfSystemHeader(file, found[2]);
    if (!fault) continue;
    console.error(`${file}:${index + 1}: ${fault}`);
    faults++;
  }
}
/**
 * @param {string} file
 * @param {string} text its content
 * @param {RegExp} row matches an entry and captures the folder's name
 */
function checkShown(file, text, row) {
  const shown = [...text.matchAll(row)].map(([, name]) => name);
  if (String(shown) === String(folders)) return;
  console.error(`${file}: shows the folders ${shown.join(' ')}, expected ${folders.join(' ')}`);
  faults++;
}

const read = (/** @type {string} */ file) => readFileSync(join(root, file), 'utf8');
const page = 'docs/architecture.md';
const diagram = 'docs/architecture.svg';
checkShown(page, read(page).split('\n## ')[1], /^- `(\w+)`:/gm);
checkShown(diagram, read(diagram), /class="room".*?class="name"[^>]*>(\w+)</g);
if (faults > 0) process.exit(1);
