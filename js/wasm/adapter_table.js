// js/wasm/adapter_table.js — an engine's adapters by name; web/exports.c identifies them by numbers.

import { WickError } from '../base/errors.js';
import {
  ADAPTER_BYTES,
  ADAPTER_ID,
  ADAPTER_IS_COMPLETE,
  ADAPTER_RANK,
  ADAPTER_TENSORS,
  ADAPTER_USE_ADAPTER,
  ADAPTER_USE_FIELDS,
  ADAPTER_USE_KINDS,
  ADAPTER_USE_SCALE_FLOAT,
  ADAPTER_USERS,
} from './layout.js';

/** The size of the pieces that are copied into the module. */
const PIECE_BYTES = 262144;

/** @typedef {{name: string, scale: number}} AdapterUse */
/**
 * The parts of the engine that the table needs: its functions, whose first argument is the handle;
 * memory for one call; and a status that is thrown as an error.
 * @typedef {object} Engine
 * @property {(name: string, ...args: number[]) => number} run
 * @property {(use: (passed: import('./heap.js').Passed) => void) => void} pass
 * @property {(place: number) => number} number returns the result at an index
 * @property {(status: number) => void} check
 * @property {() => boolean} wantsExtras
 */

export class AdapterTable {
  #engine;
  /** @type {Map<string, number>} */
  #numbers = new Map();

  /** @param {Engine} engine */
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
      const number = this.#engine.number;
      if (number(ADAPTER_ID) === 0) return found;
      if (number(ADAPTER_IS_COMPLETE) === 0) continue;
      found.push({
        name: names.get(number(ADAPTER_ID)) ?? '',
        tensors: number(ADAPTER_TENSORS),
        rank: number(ADAPTER_RANK),
        alpha: alpha === 0 ? null : alpha,
        users: number(ADAPTER_USERS),
        bytes: number(ADAPTER_BYTES),
      });
    }
  }

  /** @param {AdapterUse[]} uses @param {import('./heap.js').Passed} passed @returns {number} the address of an array of wick_adapter_use */
  pass(uses, passed) {
    const words = new Float64Array(uses.length * ADAPTER_USE_FIELDS);
    for (const [index, { name, scale }] of uses.entries()) {
      words[index * ADAPTER_USE_FIELDS + ADAPTER_USE_ADAPTER] = this.#numberOf(name);
      words[index * ADAPTER_USE_FIELDS + ADAPTER_USE_SCALE_FLOAT] = scale;
    }
    return passed.record(words, ADAPTER_USE_KINDS);
  }
}
