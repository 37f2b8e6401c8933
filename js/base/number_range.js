// js/base/number_range.js — the range of an option that is a number.

/** The engine's numbers have 32 bits. */
export const FLOAT_MAX = 3.4e38;

/**
 * The numbers that `min` and `max` allow, in words.
 * @param {{min: number, max?: number, whole?: boolean}} range
 * @returns {string}
 */
export function rangeWords({ min, max, whole = false }) {
  const kind = whole ? 'a whole number' : 'a number';
  if (max !== undefined) return `${kind} from ${min} to ${max}`;
  return min > 0 && min < 1e-40 ? `${kind} above 0` : `${kind} of at least ${min}`;
}
