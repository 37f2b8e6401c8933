// js/wasm/adapter_table.js — an engine's adapters by name; web/exports.c identifies them by numbers.

import { WickError } from '../base/errors.js';
import * as layout from './layout.js';

/** The size of the pieces that are copied into the module. */
const PIECE_BYTES = 262144;

/** @typedef {{name: string, scale: number}} AdapterUse */

export class AdapterTable {
  #engine;
  /** @type {Map<string, number>} */
  #numbers = new Map();

  /** @param {import('./native_engine.js').Tools} engine */
  constructor(engine) {
    this.#engine = engine;
  }

  /** Begins loading an adapter, whose file is fed next. @param {string} name must be unique */
  add(name) {
    if (this.#numbers.has(name)) {
      throw new WickError('ARG', `adapter ${name}: name is already used`, { option: 'name' });
    }
    const number = this.#engine.run('adapter_create');
    if (number === 0) this.#engine.check(-1);
    this.#numbers.set(name, number);
  }

  /** @param {string} name @returns {number} */
  #numberOf(name) {
    const number = this.#numbers.get(name);
    if (number !== undefined) return number;
    throw new WickError('ARG', `Unknown adapter ${name}`, { option: 'adapters' });
  }

  /**
   * Removes the adapter from the table after a failure, when the engine has freed it completely.
   * @param {string} name
   * @param {number} status
   */
  #checkLoading(name, status) {
    if (status !== 0) this.#numbers.delete(name);
    this.#engine.check(status);
  }

  /**
   * @param {string} name
   * @param {number} offset
   * @param {Uint8Array} bytes from that offset
   * @returns {boolean} whether the adapter needs the extras module, in which case these bytes must
   * be fed again
   */
  feed(name, offset, bytes) {
    const number = this.#numberOf(name);
    for (let done = 0; done < bytes.byteLength; done += PIECE_BYTES) {
      this.#engine.pass((passed) => {
        const piece = bytes.subarray(done, done + PIECE_BYTES);
        const address = passed.bytes(piece);
        const at = [offset + done, address, piece.byteLength];
        this.#checkLoading(name, this.#engine.run('adapter_feed', number, ...at));
      });
    }
    return this.#engine.wantsExtras();
  }

  /** @param {string} name @param {number} sizeBytes the size of its file */
  end(name, sizeBytes) {
    const status = this.#engine.run('adapter_end', this.#numberOf(name), sizeBytes);
    this.#checkLoading(name, status);
  }

  /** @param {string} name */
  remove(name) {
    this.#engine.check(this.#engine.run('adapter_remove', this.#numberOf(name)));
    this.#numbers.delete(name);
  }

  /** @returns {import('../index.js').AdapterInfo[]} the adapters that requests can select */
  list() {
    const names = new Map(Array.from(this.#numbers, ([name, number]) => [number, name]));
    const found = [];
    for (let index = 0; ; index++) {
      const alpha = this.#engine.run('adapter_get', index);
      const { id, tensors, rank, users, bytes, isComplete } = this.#engine.heap.results(
        layout.ADAPTER,
      );
      if (id === 0) return found;
      if (!isComplete) continue;
      const name = names.get(id) ?? '';
      found.push({ name, tensors, rank, alpha: alpha === 0 ? null : alpha, users, bytes });
    }
  }

  /** @param {AdapterUse[]} uses @param {import('./heap.js').Passed} passed @returns {number} the address of an array of wick_adapter_use */
  pass(uses, passed) {
    const words = uses.flatMap(({ name, scale }) => [this.#numberOf(name), scale]);
    return passed.record(words, layout.ADAPTER_USE_KINDS);
  }
}
