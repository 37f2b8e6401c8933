// Runs Wick's WASI module under Node (or Deno: deno run -A run.mjs, or Bun: bun run.mjs):
//
//   node run.mjs wick.wasm model.gguf "Once upon a time"
//
// The module can access only the model's folder.

import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import process from 'node:process';
import { WASI } from 'node:wasi';

const [modulePath, modelPath, prompt] = process.argv.slice(2);
if (prompt === undefined) {
  console.error('usage: node run.mjs wick.wasm model.gguf "Once upon a time"');
  process.exit(2);
}
const model = `/models/${basename(modelPath)}`;
const wasi = new WASI({
  version: 'preview1',
  args: ['wick', 'run', model, '-p', prompt, '-n', '64'],
  preopens: { '/models': dirname(resolve(modelPath)) },
  returnOnExit: true,
});
// node:wasi keeps the memory's first buffer. After the memory has grown, it has a different buffer
// (nodejs/node#51303), so the memory is passed to node:wasi again before each call.
const setMemory = Object.getOwnPropertySymbols(wasi).find((s) => s.description === 'kSetMemory');
/** @type {WebAssembly.Memory | undefined} */
let memory;
/** @type {ArrayBuffer | undefined} */
let buffer;
for (const [name, call] of Object.entries(wasi.wasiImport)) {
  wasi.wasiImport[name] = (/** @type {unknown[]} */ ...values) => {
    if (setMemory && memory && memory.buffer !== buffer) {
      buffer = memory.buffer;
      /** @type {any} */ (wasi)[setMemory](memory);
    }
    return call(...values);
  };
}
const bytes = await readFile(modulePath);
if (!WebAssembly.validate(bytes)) {
  console.error(`run.mjs: ${modulePath} does not run here; wick-relaxed.wasm needs relaxed SIMD`);
  console.error('run.mjs: (Node 24, Deno, Bun, wasmtime), wick.wasm runs everywhere');
  process.exit(3);
}
const module = await WebAssembly.compile(bytes);
// Bun has no getImportObject
const imports = /** @type {WebAssembly.Imports} */ (
  wasi.getImportObject?.() ?? { wasi_snapshot_preview1: wasi.wasiImport }
);
const instance = await WebAssembly.instantiate(module, imports);
memory = /** @type {WebAssembly.Memory} */ (instance.exports.memory);
process.exitCode = wasi.start(instance);
