// Checks that a room under src/ includes only from itself and from the rooms above it, and that
// engine code includes of the C library only what the freestanding web build has.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

const rooms = [
  ...['base', 'platform', 'metrics', 'thread', 'format', 'kernels', 'tensor', 'kv', 'store'],
  ...['text', 'model', 'sample', 'load', 'schedule', 'api', 'bench', 'cli'],
];
const engineHeaders = ['stdarg', 'stdint', 'stddef', 'stdbool', 'limits', 'stdatomic', 'string'];
// SIMD intrinsics, and their emulation in the sanitizer builds
const kernelHeaders = ['wasm_simd128.h', 'simde/'];

/** @param {string} folder @returns {string[]} */
function sourcesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourcesBelow(path);
    return /\.[ch]$/.test(entry.name) ? [path] : [];
  });
}

/**
 * @param {string} file a path from the root
 * @param {string} header
 * @returns {string | undefined} what is wrong with including it
 */
function faultOfSystemHeader(file, header) {
  const isEngine = !file.startsWith('src/cli/') && file !== 'src/platform/posix.c';
  if (!isEngine || engineHeaders.includes(header.replace(/\.h$/, ''))) return undefined;
  if (file.startsWith('src/kernels/') && kernelHeaders.some((h) => header.startsWith(h)))
    return undefined;
  return `<${header}> is not there in the web build`;
}

/** @param {string} file @param {string} header @returns {string | undefined} */
function faultOfOwnHeader(file, header) {
  const [, room, below] = file.split('/');
  if (!existsSync(join(root, 'src', header))) return `"${header}" is not a path from src/`;
  const target = header.includes('/') ? header.split('/')[0] : undefined;
  if (below === undefined) return undefined; // wick.h
  if (!rooms.includes(room)) return `src/${room} is not a room of docs/architecture.md`;
  if (target === undefined) {
    const sees = ['api', 'bench', 'cli'].includes(room); // the interface, wick.h
    return sees ? undefined : `"${header}" lies below every room`;
  }
  if (rooms.indexOf(target) > rooms.indexOf(room)) return `room ${target} lies below room ${room}`;
  return undefined;
}

let faults = 0;
for (const path of existsSync(join(root, 'src')) ? sourcesBelow(join(root, 'src')) : []) {
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
if (faults > 0) process.exit(1);
