// Runs a WASI module under node:wasi, in Node, Deno and Bun:
//   node run_wasi.mjs '{"/guest": "/host"}' module.wasm [argument ...]
// The module receives this process's environment and standard streams.

import { readFileSync } from 'node:fs';
import process from 'node:process';
import { WASI } from 'node:wasi';
import { followMemory } from '../../js/cli/wasi_memory.js';

const [folders, file, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: [file, ...args],
  env: process.env,
  preopens: JSON.parse(folders),
  returnOnExit: true,
});
const setMemory = followMemory(wasi);
const module = await WebAssembly.compile(readFileSync(file));
// Bun lacks getImportObject
const imports = /** @type {WebAssembly.Imports} */ (
  wasi.getImportObject?.() ?? { wasi_snapshot_preview1: wasi.wasiImport }
);
const instance = await WebAssembly.instantiate(module, imports);
setMemory(/** @type {WebAssembly.Memory} */ (instance.exports.memory));
process.exitCode = wasi.start(instance);
