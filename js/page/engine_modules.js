// js/page/engine_modules.js — chooses an engine's WebAssembly modules: a build of the package for this host, or the
// caller's. A build consists of four modules. The worker loads the grammar module when a request needs it, the extras
// module when a model does, and the media module with an mmproj file. For models that need more than 4 GiB, there is a
// single module with 64-bit addresses, for any number of threads.

import { detectSimd, hasWideMemory } from '../base/host_features.js';
import { ownFile } from '../base/own_files.js';
import { compileModule } from '../wasm/wasm_module.js';

/** @import { EngineOptions } from '../index.js' */
/** @typedef {WebAssembly.Module | string | undefined} Part */
/** @typedef {{module: WebAssembly.Module, grammar: Part, extras: Part, media: Part, wide: string | undefined}} Modules */
/** @typedef {Pick<EngineOptions, 'wasm' | 'grammarWasm' | 'extrasWasm' | 'mediaWasm'>} Given */

/** The modules by part and build. Bundlers search for exactly these expressions. @type {Record<string, Record<string, () => URL>>} */
const moduleUrls = {
  main: {
    'simd128-single': () => new URL('./wasm/wick-simd128-single.wasm', import.meta.url),
    'simd128-threads': () => new URL('./wasm/wick-simd128-threads.wasm', import.meta.url),
    'relaxed-single': () => new URL('./wasm/wick-relaxed-single.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads.wasm', import.meta.url),
  },
  grammar: {
    'simd128-single': () => new URL('./wasm/wick-simd128-single-grammar.wasm', import.meta.url),
    'simd128-threads': () => new URL('./wasm/wick-simd128-threads-grammar.wasm', import.meta.url),
    'relaxed-single': () => new URL('./wasm/wick-relaxed-single-grammar.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads-grammar.wasm', import.meta.url),
  },
  extras: {
    'simd128-single': () => new URL('./wasm/wick-simd128-single-extras.wasm', import.meta.url),
    'simd128-threads': () => new URL('./wasm/wick-simd128-threads-extras.wasm', import.meta.url),
    'relaxed-single': () => new URL('./wasm/wick-relaxed-single-extras.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads-extras.wasm', import.meta.url),
  },
  media: {
    'simd128-single': () => new URL('./wasm/wick-simd128-single-media.wasm', import.meta.url),
    'simd128-threads': () => new URL('./wasm/wick-simd128-threads-media.wasm', import.meta.url),
    'relaxed-single': () => new URL('./wasm/wick-relaxed-single-media.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./wasm/wick-relaxed-threads-media.wasm', import.meta.url),
  },
  wide: {
    simd128: () => new URL('./wasm/wick-simd128-wide.wasm', import.meta.url),
    relaxed: () => new URL('./wasm/wick-relaxed-wide.wasm', import.meta.url),
  },
};

/** Compiled modules of the package, which later engines reuse. */
const compiled = /** @type {Map<string, Promise<WebAssembly.Module>>} */ (new Map());

/** @param {string} build */
function ownModule(build) {
  const found = compiled.get(build);
  if (found) return found;
  const module = compileModule(ownFile(moduleUrls.main[build]));
  compiled.set(build, module);
  module.catch(() => compiled.delete(build));
  return module;
}

/** @param {unknown} option @returns {option is string | URL} */
export const isAddress = (option) => typeof option === 'string' || option instanceof URL;

/**
 * @param {string | URL} address
 * @returns {string} an absolute URL, because the worker's file may be in a different location
 */
const wholeAddress = (address) => new URL(address, globalThis.location?.href).href;

/** @param {string | URL} wasm the URL of the first module @param {string} name */
const partAddress = (wasm, name) =>
  wholeAddress(String(wasm).replace(/\.wasm(?=$|[?#])/, `-${name}.wasm`));

/** @param {EngineOptions['wasm']} wasm @returns {string | undefined} '' if the host has no 64-bit memory */
function wideOf(wasm) {
  if (!isAddress(wasm)) return undefined;
  // the builds with and without threads share this module
  const address = String(wasm).replace(/-(?:single|threads)(?=\.wasm(?:$|[?#]))/, '');
  return hasWideMemory() ? partAddress(address, 'wide') : '';
}

/**
 * Finds a secondary module: the caller's if there is one, otherwise the file next to the first
 * module.
 * @param {EngineOptions['wasm']} wasm
 * @param {EngineOptions['wasm']} given
 * @param {string} name
 * @returns {Promise<Part>}
 */
async function findPart(wasm, given, name) {
  if (isAddress(given)) return wholeAddress(given);
  if (given) return compileModule(given);
  if (!isAddress(wasm)) return undefined;
  return partAddress(wasm, name);
}

/**
 * @param {Given} options
 * @param {number} threads
 * @returns {Promise<Modules>}
 */
export async function findModules({ wasm, grammarWasm, extrasWasm, mediaWasm }, threads) {
  const build = `${detectSimd()}-${threads > 1 ? 'threads' : 'single'}`;
  if (wasm === undefined || wasm === null) {
    const [grammar, extras, media] = ['grammar', 'extras', 'media'].map(
      (part) => ownFile(moduleUrls[part][build]).href,
    );
    const wide = hasWideMemory() ? ownFile(moduleUrls.wide[detectSimd()]).href : '';
    return { module: await ownModule(build), grammar, extras, media, wide };
  }
  const isFolder = isAddress(wasm) && String(wasm).endsWith('/');
  /** @type {Given} */
  const given = isFolder
    ? { wasm: `${wasm}wick-${build}.wasm` } // the other parts are next to it
    : { wasm, grammarWasm, extrasWasm, mediaWasm };
  return {
    module: await compileModule(given.wasm ?? ''),
    grammar: await findPart(given.wasm, given.grammarWasm, 'grammar'),
    extras: await findPart(given.wasm, given.extrasWasm, 'extras'),
    media: await findPart(given.wasm, given.mediaWasm, 'media'),
    wide: wideOf(given.wasm),
  };
}
