// js/worker/waiting_requests.js — requests that the engine has no place for yet, in the order of its own
// scheduler (src/schedule/admission.c): first those that have waited for long, by arrival; then by priority, and
// equals by arrival.

import { PASSES_WAITED_MAX } from '../wasm/layout.js';

/**
 * Where a request stands: its priority, the number of its arrival, and the passes that the engine had begun then.
 * @typedef {{priority: number, arrival: number, passesBefore: number}} Place
 */

/** @param {Place} a @param {Place} b @param {number} passes begun by now @returns {boolean} */
export function precedes(a, b, passes) {
  const isLongA = passes - a.passesBefore >= PASSES_WAITED_MAX;
  const isLongB = passes - b.passesBefore >= PASSES_WAITED_MAX;
  if (isLongA !== isLongB) return isLongA;
  if (!isLongA && a.priority !== b.priority) return a.priority > b.priority;
  return a.arrival < b.arrival;
}

/**
 * The completions of one request wait, and leave, together.
 * @template {Place & {id: number, isCancelled: boolean}} Entry
 */
export class WaitingRequests {
  /** A line for each priority, in the order of arrival. @type {Map<number, Entry[][]>} */
  #lines = new Map();
  /** Completions that wait. */
  count = 0;

  /** @param {Entry[]} entries the last to arrive */
  add(entries) {
    const { priority } = entries[0];
    const line = this.#lines.get(priority);
    if (line) line.push(entries);
    else this.#lines.set(priority, [entries]);
    this.count += entries.length;
  }

  /** @param {number} passes begun by now @returns {Entry[] | undefined} who is next */
  first(passes) {
    /** @type {Entry[] | undefined} */
    let found;
    for (const [entries] of this.#lines.values()) {
      if (!found || precedes(entries[0], found[0], passes)) found = entries;
    }
    return found;
  }

  /** @param {Entry[]} entries that `first` gave */
  take(entries) {
    const { priority } = entries[0];
    const line = /** @type {Entry[][]} */ (this.#lines.get(priority));
    if (line.length > 1) line.splice(line.indexOf(entries), 1);
    else this.#lines.delete(priority);
    this.count -= entries.length;
  }

  /** @param {number} id @returns {Entry | undefined} */
  find(id) {
    return this.#requestOf(id)?.find((entry) => entry.id === id);
  }

  /** Takes the request of this completion out if nobody waits for any of its completions. @param {number} id */
  leave(id) {
    const entries = this.#requestOf(id);
    if (entries?.every((entry) => entry.isCancelled)) this.take(entries);
  }

  /** @param {number} id @returns {Entry[] | undefined} */
  #requestOf(id) {
    for (const line of this.#lines.values()) {
      for (const entries of line) {
        if (id >= entries[0].id && id < entries[0].id + entries.length) return entries;
      }
    }
    return undefined;
  }
}
