// Prints the raw and gzipped size of every program, module and JavaScript file that make built; with
// a folder as its argument, of the archives below that.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** @param {string} folder @returns {string[]} the files below it, as paths from the root */
function filesBelow(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) =>
      entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
    )
    .sort();
}

const [folder] = process.argv.slice(2);
const files = folder ? filesBelow(folder).filter((file) => file.endsWith('.a')) : programs();

/** @returns {string[]} */
function programs() {
  return [
    ...filesBelow('build/native'),
    ...filesBelow('build/wasi').filter((file) => file.endsWith('.wasm')),
    ...filesBelow('build/web').filter((file) => file.endsWith('.wasm')),
    ...filesBelow('dist').filter((file) => /\.(js|mjs|cjs|css|html)$/.test(file)),
  ];
}

const bytes = (/** @type {number} */ n) => n.toLocaleString('en').padStart(12);
const width = Math.max(0, ...files.map((file) => file.length));
console.log(`${'bytes'.padEnd(width)}${'raw'.padStart(12)}${'gzipped'.padStart(12)}`);
for (const file of files) {
  const path = join(root, file);
  const gzipped = gzipSync(readFileSync(path), { level: 9 }).length;
  console.log(`${file.padEnd(width)}${bytes(statSync(path).size)}${bytes(gzipped)}`);
}
