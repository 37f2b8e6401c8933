// js/wasm/grammar_part.js — the second module of a build: grammars, and the tools that they hold calls to. Few requests need
// it, so it is loaded for the first one. It works in the memory, the table and with the functions of the first.

import { WickError } from '../base/errors.js';

/** What tools/build/split.mjs begins the names of exports with that are for the second module. */
const OWN_EXPORT = '%';

export class GrammarPart {
  #exports;
  #source;
  #isReady;
  /** @type {Promise<void> | undefined} */
  #loading;

  /**
   * @param {import('./wasm_module.js').Exports} exports of the first module
   * @param {WebAssembly.Module | (() => Promise<WebAssembly.Module>) | undefined} source the second one, or what loads it;
   *   undefined: nobody has it
   */
  constructor(exports, source) {
    this.#exports = exports;
    this.#source = source;
    this.#isReady = !Object.keys(exports).some((name) => name.startsWith(OWN_EXPORT));
  }

  /** @returns {boolean} whether it must be loaded first; a compiled module is there from now on */
  isLacking() {
    if (this.#isReady) return false;
    if (this.#source === undefined) throw unknown();
    if (this.#source instanceof WebAssembly.Module) this.#join(this.#source);
    return !this.#isReady;
  }

  /** Several requests may wait for one. After a failure the next one tries again. @returns {Promise<void>} */
  load() {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load() {
    try {
      this.#join(await /** @type {() => Promise<WebAssembly.Module>} */ (this.#source)());
    } catch (error) {
      const reason = error instanceof WickError ? error.message : String(error);
      throw new WickError(
        'WASM',
        `Grammars, tools and healing need a second module: ${reason}`,
        error,
      );
    }
  }

  /** @param {WebAssembly.Module} module */
  #join(module) {
    try {
      new WebAssembly.Instance(module, { main: /** @type {any} */ (this.#exports) });
    } catch (error) {
      const words = 'The module of grammars is of another build or version than wasm';
      throw new WickError('WASM', `${words}: ${error}`, error);
    }
    this.#isReady = true;
  }
}

function unknown() {
  const words = 'Grammars, tools and healing need the second module of the build that wasm is';
  return new WickError('WASM', `${words}: give createEngine grammarWasm, too`);
}
