// js/page/engine_modules.js — which WebAssembly an engine runs: a build of the package for this host, or what the caller gives.
// A build is two modules; the second one, of grammars, is loaded by the worker when a request needs it.

import { detectSimd } from '../base/host_features.js';
import { compileModule } from '../wasm/wasm_module.js';

/** @typedef {import('../index.js').EngineOptions} EngineOptions */
/** @typedef {{module: WebAssembly.Module, grammar: WebAssembly.Module | string | undefined}} Modules */

/** Bundlers search for exactly these expressions. @type {Record<string, () => URL>} */
const moduleUrls = {
  'simd128-single': () => new URL('./wasm/wick-simd128-single.wasm', import.meta.url),
  'simd128-threads': () => new URL('./wasm/wick-simd128-threads.wasm', import.meta.url),
  'relaxed-single': () => new URL('./wasm/wick-relaxed-single.wasm', import.meta.url),
  'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads.wasm', import.meta.url),
};
/** @type {Record<string, () => URL>} */
const grammarUrls = {
  'simd128-single': () => new URL('./wasm/wick-simd128-single-grammar.wasm', import.meta.url),
  'simd128-threads': () => new URL('./wasm/wick-simd128-threads-grammar.wasm', import.meta.url),
  'relaxed-single': () => new URL('./wasm/wick-relaxed-single-grammar.wasm', import.meta.url),
  'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads-grammar.wasm', import.meta.url),
};

/** Compiled modules of the package, which further engines use again. */
const compiled = /** @type {Map<string, Promise<WebAssembly.Module>>} */ (new Map());

/** @param {string} build */
function ownModule(build) {
  const found = compiled.get(build);
  if (found) return found;
  const module = compileModule(moduleUrls[build]());
  compiled.set(build, module);
  module.catch(() => compiled.delete(build));
  return module;
}

/** @param {unknown} option @returns {option is string | URL} */
const isAddress = (option) => typeof option === 'string' || option instanceof URL;

/** @param {string | URL} address @returns {string} with all that it lacks: the worker's file may lie elsewhere */
const wholeAddress = (address) => new URL(address, globalThis.location?.href).href;

/**
 * @param {string} folder
 * @param {string} build
 * @returns {{wasm: string, grammarWasm: string}}
 */
const inFolder = (folder, build) => ({
  wasm: `${folder}wick-${build}.wasm`,
  grammarWasm: `${folder}wick-${build}-grammar.wasm`,
});

/**
 * The second module of what the caller gives: what is given, else it lies beside the first.
 * @param {Pick<EngineOptions, 'wasm' | 'grammarWasm'>} options
 * @returns {Promise<Modules['grammar']>}
 */
async function findGrammar({ wasm, grammarWasm }) {
  if (isAddress(grammarWasm)) return wholeAddress(grammarWasm);
  if (grammarWasm) return compileModule(grammarWasm);
  if (!isAddress(wasm)) return undefined;
  return wholeAddress(String(wasm).replace(/\.wasm(?=$|[?#])/, '-grammar.wasm'));
}

/**
 * @param {Pick<EngineOptions, 'wasm' | 'grammarWasm'>} options
 * @param {number} threads
 * @returns {Promise<Modules>}
 */
export async function findModules({ wasm, grammarWasm }, threads) {
  const build = `${detectSimd()}-${threads > 1 ? 'threads' : 'single'}`;
  if (wasm === undefined || wasm === null) {
    return { module: await ownModule(build), grammar: grammarUrls[build]().href };
  }
  const isFolder = isAddress(wasm) && String(wasm).endsWith('/');
  const given = isFolder ? inFolder(String(wasm), build) : { wasm, grammarWasm };
  return { module: await compileModule(given.wasm), grammar: await findGrammar(given) };
}
