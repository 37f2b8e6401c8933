// js/wasm/module_part.js — a secondary module of a build, which only some engines or requests need,
// so it is loaded for the first of these. It uses the main module's memory, table and functions.

import { WickError } from '../base/errors.js';

export class ModulePart {
  #exports;
  #source;
  #name;
  /** @type {Promise<void> | undefined} */
  #loading;
  /**
   * The secondary module, for other instances of the main module.
   * @type {WebAssembly.Module | undefined}
   */
  module;

  /**
   * @param {import('./wasm_module.js').Exports} exports of the first module
   * @param {WebAssembly.Module | (() => Promise<WebAssembly.Module>) | null | undefined} source the
   * secondary module, or a function that loads it; null if it is not available
   * @param {'grammar' | 'extras' | 'media'} name
   */
  constructor(exports, source, name) {
    this.#exports = exports;
    this.#source = source;
    this.#name = name;
    // tools/build/split.mjs puts this prefix before the names of the part's exports
    this.isReady = !Object.keys(exports).some((one) => one.startsWith(`${name[0]}%`));
  }

  /**
   * @returns {boolean} whether it must be loaded first; an already compiled module is joined here
   */
  isLacking() {
    if (this.isReady) return false;
    if (!this.#source)
      throw this.#fail(`pass ${this.#name}Wasm from the same build as wasm to createEngine`);
    if (this.#source instanceof WebAssembly.Module) this.#join(this.#source);
    return !this.isReady;
  }

  /**
   * Several callers may wait for the same load. After a failure, the next call tries again.
   * @returns {Promise<void>}
   */
  async load() {
    if (this.isReady) return;
    const load = /** @type {() => Promise<WebAssembly.Module>} */ (this.#source);
    this.#loading ??= load()
      .catch((error) => {
        throw this.#fail(error.message, error);
      })
      .then((module) => this.#join(module))
      .finally(() => {
        this.#loading = undefined;
      });
    await this.#loading;
  }

  /** @param {WebAssembly.Module} module */
  #join(module) {
    try {
      joinPart(this.#exports, module);
    } catch (error) {
      throw this.#fail(`it is from a different build or version: ${error}`, error);
    }
    this.module = module;
    this.isReady = true;
  }

  /** @param {string} words @param {unknown} [cause] */
  #fail(words, cause) {
    return new WickError('WASM', `The ${this.#name} module is required: ${words}`, cause);
  }
}

/**
 * Adds its functions to this instance's table: every thread has a separate table.
 * @param {import('./wasm_module.js').Exports} exports of the first module
 * @param {WebAssembly.Module} module
 */
export function joinPart(exports, module) {
  new WebAssembly.Instance(module, { main: /** @type {any} */ (exports) });
}
