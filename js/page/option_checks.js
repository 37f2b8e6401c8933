// js/page/option_checks.js — checks for individual option values. Errors name the option.

import { argumentError, wordsOf } from '../base/errors.js';
import { FLOAT_MAX, rangeWords } from '../base/number_range.js';
import { COMPLETIONS_MAX } from '../base/option_table.js';

/** @param {unknown} value @returns {string} strings are quoted, so that '2' differs from 2 */
export const shown = (value) =>
  typeof value === 'string' ? `the string ${JSON.stringify(value)}` : wordsOf(value);

/**
 * @param {string} name
 * @param {unknown} value
 * @param {{min: number, max?: number, whole?: boolean}} range
 * @returns {number}
 */
export function checkNumber(name, value, { min, max, whole = false }) {
  const most = max ?? (whole ? Number.MAX_SAFE_INTEGER : FLOAT_MAX);
  const number = /** @type {number} */ (value);
  const fits = typeof value === 'number' && number >= min && number <= most;
  if (fits && (!whole || Number.isInteger(number))) return number;
  const isAbove = typeof value === 'number' && number > most;
  const words = rangeWords({ min, whole, ...((isAbove || max !== undefined) && { max: most }) });
  throw argumentError(`${name} must be ${words}, not ${shown(value)}`);
}

export const U32_MAX = 2 ** 32 - 1;

/** @param {string} name @param {unknown} value @returns {number} */
export const checkCount = (name, value) =>
  checkNumber(name, value, { min: 0, max: U32_MAX, whole: true });

/** @param {string} name @param {unknown} value @returns {number} */
export const checkCompletions = (name, value) =>
  checkNumber(name, value, { min: 1, max: COMPLETIONS_MAX, whole: true });

/**
 * @param {string} name
 * @param {unknown} value
 * @param {boolean} [otherwise] the default if the value is missing
 * @returns {boolean}
 */
export function checkFlag(name, value, otherwise = false) {
  const flag = value ?? otherwise;
  if (typeof flag === 'boolean') return flag;
  throw argumentError(`${name} must be true or false, not ${shown(value)}`);
}

/** @param {string} name @param {unknown} value @returns {string} */
export function checkText(name, value) {
  if (typeof value === 'string') return value;
  throw argumentError(`${name} must be a string, not ${shown(value)}`);
}

/** @param {string} name @param {unknown} value */
export function checkObject(name, value) {
  if ((value ?? undefined) === undefined) return;
  if (typeof value === 'object' && !Array.isArray(value)) return;
  throw argumentError(`${name} must be an object, not ${shown(value)}`);
}

/** @param {string} name @param {unknown} value */
export function checkCallback(name, value) {
  if ((value ?? undefined) === undefined || typeof value === 'function') return;
  throw argumentError(`${name} must be a function`);
}
