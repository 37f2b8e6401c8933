// js/page/sampler_options.js — checks the options of llama.cpp's samplers.

import { argumentError } from '../base/errors.js';
import { SAMPLERS_MAX, samplerLetters, samplingNumbers } from '../base/option_table.js';
import { areSamplers, areTexts } from '../base/sampler_fields.js';
import { checkNumber, shown } from './option_checks.js';

/** @import { SamplerOptions } from '../index.js' */
/** @typedef {keyof typeof samplingNumbers} NumberName */

const numbers = Object.entries(samplingNumbers);

/**
 * The options. The type ensures that no option is missing.
 * @type {Record<keyof SamplerOptions, unknown>}
 */
export const samplerNames = { ...samplingNumbers, samplers: null, drySequenceBreakers: null };

/** @param {unknown} samplers names of samplers @returns {string | undefined} their letters */
function orderOf(samplers) {
  if (samplers === undefined || samplers === null) return undefined;
  if (areSamplers(samplers)) return samplers.map((name) => samplerLetters[name]).join('');
  const names = Object.keys(samplerLetters).join(', ');
  throw argumentError(
    `samplers must be an array of at most ${SAMPLERS_MAX} of ${names}, not ${shown(samplers)}`,
  );
}

/** @param {unknown} breakers @returns {string[] | undefined} */
function breakersOf(breakers) {
  if (breakers === undefined || breakers === null) return undefined;
  if (areTexts(breakers)) return breakers;
  throw argumentError('drySequenceBreakers must be an array of non-empty strings');
}

/** @param {SamplerOptions} options */
export function samplersOf(options) {
  const checked = numbers.map(([name, { byDefault, ...range }]) => {
    const value = options[/** @type {NumberName} */ (name)];
    return [name, checkNumber(name, value ?? byDefault, range)];
  });
  return {
    .../** @type {Record<NumberName, number>} */ (Object.fromEntries(checked)),
    samplers: orderOf(options.samplers),
    drySequenceBreakers: breakersOf(options.drySequenceBreakers),
  };
}
