// Runs a WASI module under node:wasi, in Node as in Deno:
//   node run_wasi.mjs '{"/guest": "/host"}' module.wasm [argument ...]
// The module gets this process's environment and standard streams.

import { readFileSync } from 'node:fs';
import process from 'node:process';
import { WASI } from 'node:wasi';

const [folders, file, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: [file, ...args],
  env: process.env,
  preopens: JSON.parse(folders),
  returnOnExit: true,
});
// node:wasi keeps the address of the memory that it saw at the start: after memory.grow it would
// write to freed memory (nodejs/node#51303). So it is told of each new buffer before the next call.
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
const module = await WebAssembly.compile(readFileSync(file));
const imports = /** @type {WebAssembly.Imports} */ (wasi.getImportObject());
const instance = await WebAssembly.instantiate(module, imports);
memory = /** @type {WebAssembly.Memory} */ (instance.exports.memory);
process.exitCode = wasi.start(instance);
