// js/page/sampler_options.js — the options of llama.cpp's samplers beyond the usual ones, checked.

import { argumentError } from '../base/errors.js';
import { areSamplers, areTexts, samplerLetters, samplerNumbers } from '../base/sampler_fields.js';
import { checkNumber, shown } from './option_checks.js';

/** @typedef {import('../index.js').SamplerOptions} SamplerOptions */
/** @typedef {import('../base/sampler_fields.js').SamplerNumbers} SamplerNumbers */
/**
 * The contents of a web_samplers.
 * @typedef {SamplerNumbers & {order: string | undefined, breakers: string[] | undefined}} Samplers
 */

/** The options. The type makes sure that none is missing. @type {Record<keyof SamplerOptions, null>} */
export const samplerNames = {
  typicalP: null,
  topNSigma: null,
  xtcProbability: null,
  xtcThreshold: null,
  dynatempRange: null,
  dynatempExponent: null,
  dryMultiplier: null,
  dryBase: null,
  dryAllowedLength: null,
  dryPenaltyLast: null,
  drySequenceBreakers: null,
  mirostat: null,
  mirostatTau: null,
  mirostatEta: null,
  adaptiveTarget: null,
  adaptiveDecay: null,
  samplers: null,
};

/** @param {unknown} samplers names @returns {string | undefined} their letters */
function orderOf(samplers) {
  if (samplers === undefined || samplers === null) return undefined;
  if (areSamplers(samplers)) return samplers.map((name) => samplerLetters[name]).join('');
  const names = Object.keys(samplerLetters).join(', ');
  throw argumentError(
    `samplers must be an array of at most 16 of ${names}, not ${shown(samplers)}`,
  );
}

/** @param {unknown} breakers @returns {string[] | undefined} */
function breakersOf(breakers) {
  if (breakers === undefined || breakers === null) return undefined;
  if (areTexts(breakers)) return breakers;
  throw argumentError('drySequenceBreakers must be an array of strings that are not empty');
}

/** @param {SamplerOptions} options @returns {Samplers | undefined} undefined: none is given */
export function samplersOf(options) {
  const names = /** @type {(keyof SamplerOptions)[]} */ (Object.keys(samplerNames));
  if (names.every((name) => (options[name] ?? undefined) === undefined)) return undefined;
  /** @type {Record<string, number>} */
  const numbers = {};
  for (const [name, { byDefault, ...range }] of Object.entries(samplerNumbers)) {
    const value = options[/** @type {keyof SamplerNumbers} */ (name)];
    numbers[name] = checkNumber(name, value ?? byDefault, range);
  }
  return Object.assign(/** @type {SamplerNumbers} */ (/** @type {unknown} */ (numbers)), {
    order: orderOf(options.samplers),
    breakers: breakersOf(options.drySequenceBreakers),
  });
}
