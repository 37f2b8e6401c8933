// js/base/sampler_fields.js — llama.cpp's samplers beyond the usual ones: the options of this package, the fields of
// llama.cpp's server that mean the same, their defaults and ranges.

/**
 * @typedef {object} SamplerNumbers settings of wick_sampling that are numbers
 * @property {number} typicalP
 * @property {number} topNSigma
 * @property {number} xtcProbability
 * @property {number} xtcThreshold
 * @property {number} dynatempRange
 * @property {number} dynatempExponent
 * @property {number} dryMultiplier
 * @property {number} dryBase
 * @property {number} dryAllowedLength
 * @property {number} dryPenaltyLast
 * @property {number} mirostat
 * @property {number} mirostatTau
 * @property {number} mirostatEta
 * @property {number} adaptiveTarget
 * @property {number} adaptiveDecay
 */

/** The engine's numbers have 32 bits. */
export const FLOAT_MAX = 3.4e38;
const most = FLOAT_MAX;
const count = { min: -1, max: 2 ** 20, whole: true };

/**
 * The settings that most clients have. The defaults are those of llama.cpp, which most GGUF models are tested with.
 * @type {Record<'temperature' | 'topK' | 'topP' | 'minP' | 'repeatPenalty' | 'frequencyPenalty' | 'presencePenalty' |
 *   'thinkingBudgetTokens', {field: string, byDefault: number, min: number, max?: number, whole?: boolean}>}
 */
export const usualNumbers = {
  temperature: { field: 'temperature', byDefault: 0.8, min: 0 },
  // 0 and -1 switch it off: other servers have the one or the other
  topK: { field: 'top_k', byDefault: 40, min: -1, max: 2 ** 32 - 1, whole: true },
  topP: { field: 'top_p', byDefault: 0.95, min: 0, max: 1 },
  minP: { field: 'min_p', byDefault: 0.05, min: 0, max: 1 },
  repeatPenalty: { field: 'repeat_penalty', byDefault: 1, min: 0 },
  frequencyPenalty: { field: 'frequency_penalty', byDefault: 0, min: -100, max: 100 },
  presencePenalty: { field: 'presence_penalty', byDefault: 0, min: -100, max: 100 },
  thinkingBudgetTokens: {
    ...{ field: 'thinking_budget_tokens', byDefault: -1, min: -1, max: 2 ** 32 - 1, whole: true },
  },
};

/**
 * The numbers beyond those: their fields, defaults and ranges.
 * @type {Record<keyof SamplerNumbers, {field: string, byDefault: number, min: number, max: number, whole?: boolean}>}
 */
export const samplerNumbers = {
  typicalP: { field: 'typical_p', byDefault: 1, min: 0, max: 1 },
  topNSigma: { field: 'top_n_sigma', byDefault: -1, min: -1, max: most },
  xtcProbability: { field: 'xtc_probability', byDefault: 0, min: 0, max: 1 },
  xtcThreshold: { field: 'xtc_threshold', byDefault: 0.1, min: 0, max: 1 },
  dynatempRange: { field: 'dynatemp_range', byDefault: 0, min: 0, max: most },
  dynatempExponent: { field: 'dynatemp_exponent', byDefault: 1, min: 0, max: most },
  dryMultiplier: { field: 'dry_multiplier', byDefault: 0, min: 0, max: most },
  dryBase: { field: 'dry_base', byDefault: 1.75, min: 1, max: most },
  dryAllowedLength: { field: 'dry_allowed_length', byDefault: 2, ...count, min: 0 },
  dryPenaltyLast: { field: 'dry_penalty_last_n', byDefault: -1, ...count },
  mirostat: { field: 'mirostat', byDefault: 0, min: 0, max: 2, whole: true },
  mirostatTau: { field: 'mirostat_tau', byDefault: 5, min: 0, max: most },
  mirostatEta: { field: 'mirostat_eta', byDefault: 0.1, min: 0, max: most },
  adaptiveTarget: { field: 'adaptive_target', byDefault: -1, min: -1, max: 1 },
  adaptiveDecay: { field: 'adaptive_decay', byDefault: 0.9, min: 0, max: 0.99 },
};

/** The letters of wick_sampling.samplers, by llama.cpp's names. @type {Record<string, string>} */
export const samplerLetters = {
  penalties: 'e',
  dry: 'd',
  top_n_sigma: 's',
  top_k: 'k',
  typ_p: 'y',
  top_p: 'p',
  min_p: 'm',
  xtc: 'x',
  temperature: 't',
  adaptive_p: 'a',
};

export const SAMPLERS_MAX = 16;

/** @param {unknown} value @returns {value is string[]} */
export const areSamplers = (value) =>
  Array.isArray(value) &&
  value.length <= SAMPLERS_MAX &&
  value.every((name) => typeof name === 'string' && Object.hasOwn(samplerLetters, name));

/** @param {unknown} value @returns {value is string[]} */
export const areTexts = (value) =>
  Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== '');

/** The options by their fields, which are llama.cpp's and OpenAI's. @type {[field: string, option: string][]} */
export const samplerOptions = [
  ...Object.entries({ ...usualNumbers, ...samplerNumbers }).map(
    ([option, { field }]) => /** @type {[string, string]} */ ([field, option]),
  ),
  ['repeat_last_n', 'penaltyLast'],
  ['dry_sequence_breakers', 'drySequenceBreakers'],
  ['samplers', 'samplers'],
  ['post_sampling_probs', 'logprobsAfter'],
];
