// js/worker/node_jinja.js — replaces @huggingface/jinja in Node's worker. The library is more than half of the worker's
// code, so in Node it is a separate file that is read with the first template.

/** @typedef {typeof import('@huggingface/jinja')} Library */

/** @type {Library | undefined} */
let library;

/** @returns {Library} */
function read() {
  const { workerData } = process.getBuiltinModule('node:worker_threads');
  const text = process.getBuiltinModule('node:fs').readFileSync(workerData.jinja, 'utf8');
  return process.getBuiltinModule('node:vm').runInThisContext(text, workerData.jinja);
}

export class Template {
  #template;

  /** @param {string} source */
  constructor(source) {
    library ??= read();
    this.#template = new library.Template(source);
  }

  /** @param {Record<string, unknown>} context @returns {string} */
  render(context) {
    return this.#template.render(context);
  }
}
