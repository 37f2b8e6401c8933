// js/base/number_range.js — describes the range of a numeric option.

/** The largest number that an option accepts: the engine uses 32-bit floats. */
export const FLOAT_MAX = 3.4e38;

/**
 * Describes the numbers that `min` and `max` allow, for errors.
 * @param {{min: number, max?: number, whole?: boolean}} range
 * @returns {string}
 */
export function rangeWords({ min, max, whole = false }) {
  const kind = whole ? 'a whole number' : 'a number';
  if (max !== undefined) return `${kind} from ${min} to ${max}`;
  return min > 0 && min < 1e-40 ? `${kind} above 0` : `${kind} of at least ${min}`;
}
