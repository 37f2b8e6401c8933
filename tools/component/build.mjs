// Builds a component from a linked module: node tools/component/build.mjs MODULE WIT WORLD
// COMPONENT. The module's imports and exports get the types of the world; jco's adapter implements
// the functions of WASI 0.1 that wasi-libc uses on top of 0.2.

import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const packages = fileURLToPath(
  new URL('../../.toolchain/component/node_modules/@bytecodealliance/', import.meta.url),
);
const tools = resolve(packages, 'jco-transpile/dist/wasm-tools.js');
const adapter = resolve(packages, 'jco/lib/wasi_snapshot_preview1.reactor.wasm');

const [module, wit, world, component] = process.argv.slice(2);
const { componentEmbed, componentNew } = await import(pathToFileURL(tools).href);
const typed = await componentEmbed({
  binary: readFileSync(module),
  witSource: readFileSync(wit, 'utf8'),
  world,
  stringEncoding: 'utf8',
  features: { tag: 'all' },
});
writeFileSync(
  component,
  await componentNew(typed, [['wasi_snapshot_preview1', readFileSync(adapter)]]),
);
