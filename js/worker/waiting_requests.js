// js/worker/waiting_requests.js — requests that have not been submitted yet, in the order of the engine's scheduler
// (src/schedule/admission.c): requests that have waited for 512 passes come first, in order of arrival; then requests
// with higher priorities; equal ones in order of arrival.

import { PASSES_WAITED_MAX } from '../base/option_table.js';

/**
 * The order depends on the priority, the position in the order of arrival, and the number of passes
 * that had begun at that time.
 * @typedef {{priority: number, arrival: number, passesBefore: number}} Place
 */

/**
 * @param {Place} a
 * @param {Place} b
 * @param {number} passes the number of passes begun so far
 * @returns {boolean} whether `a` precedes `b`
 */
export function precedes(a, b, passes) {
  const isLongA = passes - a.passesBefore >= PASSES_WAITED_MAX;
  const isLongB = passes - b.passesBefore >= PASSES_WAITED_MAX;
  if (isLongA !== isLongB) return isLongA;
  if (!isLongA && a.priority !== b.priority) return a.priority > b.priority;
  return a.arrival < b.arrival;
}

/**
 * The completions of one request wait together and are submitted together.
 * @template {Place} Entry
 */
export class WaitingRequests {
  /** The requests of each priority, in order of arrival. @type {Map<number, Entry[][]>} */
  #lines = new Map();
  /** The number of waiting completions. */
  count = 0;

  /** @param {Entry[]} entries the completions of a request */
  add(entries) {
    const { priority, arrival } = entries[0];
    const line = this.#lines.get(priority) ?? [];
    let at = line.length;
    while (at > 0 && line[at - 1][0].arrival > arrival) at--;
    line.splice(at, 0, entries);
    this.#lines.set(priority, line);
    this.count += entries.length;
  }

  /**
   * @param {number} passes the number of passes begun so far
   * @returns {Entry[] | undefined} the next request
   */
  first(passes) {
    /** @type {Entry[] | undefined} */
    let found;
    for (const [entries] of this.#lines.values()) {
      if (!found || precedes(entries[0], found[0], passes)) found = entries;
    }
    return found;
  }

  /** @param {Entry[]} entries that `first` returned */
  take(entries) {
    const { priority } = entries[0];
    const line = /** @type {Entry[][]} */ (this.#lines.get(priority));
    if (line.length > 1) line.splice(line.indexOf(entries), 1);
    else this.#lines.delete(priority);
    this.count -= entries.length;
  }
}
