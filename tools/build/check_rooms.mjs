// Checks includes: that a room under src/ includes only itself and the rooms above it, that engine
// code uses only those parts of the C library that the freestanding web build has, that
// include/wick.h compiles alone, that programs (the command line, the web's exports) use the engine
// through it, and that the list and the picture of docs/architecture.md show these rooms in this
// order.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

const rooms = (
  'base platform metrics thread format kernels tensor kv store quantize text template model ' +
  'media sample grammar reply load schedule api bench reference cli lab'
).split(' ');
const engineHeaders = ['stdarg', 'stdint', 'stddef', 'stdbool', 'limits', 'stdatomic', 'string'];
// SIMD intrinsics, and their emulation in the sanitizer builds
const kernelHeaders = ['wasm_simd128.h', 'simde/'];

/**
 * The headers that programs outside of the engine may include in addition to include/wick.h and
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
  // its heap is that of the web builds
  [/^wasi\//, /^\.\.\/web\/web_heap\.h$|^base\/|^platform\/platform\.h$/],
  [/^library\//, /^(?:base\/|api\/insides\.h$)/], // a dialog has a flag in the engine
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
    return publicHeaders.includes(header) ? undefined : `<${header}>: wick.h reads alone`;
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
  if (!isFound) return `"${header}" is not a path from src/`;
  const [, allowed] = outside.find(([files]) => files.test(file)) ?? [];
  if (allowed && !allowed.test(header)) return `"${header}": take include/wick.h instead`;
  return file.startsWith('src/') ? faultOfRoom(file.split('/')[1], header) : undefined;
}

/** @param {string} room @param {string} header @returns {string | undefined} */
function faultOfRoom(room, header) {
  const [target] = header.split('/');
  if (!rooms.includes(room)) return `src/${room} is not a room of docs/architecture.md`;
  if (target === 'reference' && room !== 'reference') return 'room reference is only for tests';
  if (rooms.indexOf(target) > rooms.indexOf(room)) return `room ${target} is below room ${room}`;
  return undefined;
}

let faults = 0;
const folders = ['include', 'src', 'wasi', 'web', 'emscripten', 'library', 'component'].map(
  (folder) => join(root, folder),
);
for (const path of folders.flatMap((folder) => sourcesBelow(folder))) {
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
 * @param {RegExp} row the pattern of a row that names a room
 */
function checkShown(file, text, row) {
  const shown = [...text.matchAll(row)].map(([, name]) => name);
  if (String(shown) === String(rooms)) return;
  console.error(`${file}: shows the rooms ${shown.join(' ')}, but they are ${rooms.join(' ')}`);
  faults++;
}

const read = (/** @type {string} */ file) => readFileSync(join(root, file), 'utf8');
const page = 'docs/architecture.md';
const picture = 'docs/architecture.svg';
checkShown(page, read(page).split('\n## ')[1], /^- `(\w+)`:/gm);
checkShown(picture, read(picture), /class="room".*?class="name"[^>]*>(\w+)</g);
if (faults > 0) process.exit(1);
