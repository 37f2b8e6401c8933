// js/base/sampler_fields.js — checks samplers, and maps the fields of a request to the options with the same meaning.

import {
  requestFlags,
  requestNumbers,
  SAMPLERS_MAX,
  samplerLetters,
  samplingNumbers,
} from './option_table.js';

/** @typedef {Record<keyof typeof samplingNumbers, number>} SamplingNumbers numbers of wick_sampling */

/**
 * The numeric options that are fields of all text routes.
 * @type {Record<string, import('./option_table.js').NumberOption & {field: string}>}
 */
export const optionNumbers = {
  ...samplingNumbers,
  thinkingBudgetTokens: requestNumbers.thinkingBudgetTokens,
};

/** @param {unknown} value @returns {value is (keyof typeof samplerLetters)[]} */
export const areSamplers = (value) =>
  Array.isArray(value) &&
  value.length <= SAMPLERS_MAX &&
  value.every((name) => typeof name === 'string' && Object.hasOwn(samplerLetters, name));

/** @param {unknown} value @returns {value is string[]} */
export const areTexts = (value) =>
  Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== '');

/** @type {[field: string, option: string][]} */
export const flagFields = Object.entries(requestFlags).flatMap(([option, flag]) =>
  'field' in flag ? [/** @type {[string, string]} */ ([flag.field, option])] : [],
);

/** The options by field name (llama.cpp's and OpenAI's). @type {[field: string, option: string][]} */
export const samplerOptions = [
  ...Object.entries(optionNumbers).map(
    ([option, { field }]) => /** @type {[string, string]} */ ([field, option]),
  ),
  ['dry_sequence_breakers', 'drySequenceBreakers'],
  ['samplers', 'samplers'],
  ...flagFields,
];
