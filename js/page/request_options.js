// js/page/request_options.js — checks the options of a request and fills in the defaults. Wrong
// types are rejected here; the engine checks everything that depends on the model.

import { argumentError, wordsOf } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { PRIORITY_MAX, PRIORITY_MIN, requestFlags, requestNumbers } from '../base/option_table.js';
import { randomWord } from '../base/random.js';
import { adaptersOf } from './adapters.js';
import { grammarNames, grammarOf } from './grammar_options.js';
import { checkCount, checkFlag, checkNumber, shown, U32_MAX } from './option_checks.js';
import { samplerNames, samplersOf } from './sampler_options.js';

/** @import { Settings } from '../connection/messages.js' */
/** @import { GenerateOptions } from '../index.js' */

/**
 * All options. The type ensures that no option is missing.
 * @type {Record<keyof GenerateOptions, unknown>}
 */
const generateNames = {
  maxTokens: null,
  seed: null,
  logitBias: null,
  stop: null,
  logitsHook: null,
  ...requestNumbers,
  ...requestFlags,
  priority: null,
  speculation: null,
  salt: null,
  adapters: null,
  forced: null,
  ...grammarNames,
  begun: null,
  ...samplerNames,
  signal: null,
  timeout: null,
  onPrefill: null,
  onToken: null,
};

/** @param {GenerateOptions} options @returns {Settings} */
export function settingsOf(options) {
  checkNames(options, /** @type {(keyof GenerateOptions)[]} */ (Object.keys(generateNames)));
  /** @param {keyof GenerateOptions} name @param {number} byDefault @param {Parameters<typeof checkNumber>[2]} range */
  const number = (name, byDefault, range) => checkNumber(name, options[name] ?? byDefault, range);
  /** @param {keyof typeof requestNumbers} name */
  const numberOf = (name) => number(name, requestNumbers[name].byDefault, requestNumbers[name]);
  return {
    maxTokens: tokensMaxOf(options.maxTokens),
    seed: seedOf(options.seed),
    logitBias: biasOf(options.logitBias),
    logprob: (options.logprobs ?? undefined) !== undefined,
    ...samplersOf(options),
    stop: stopsOf(options.stop),
    thinkingBudgetTokens: numberOf('thinkingBudgetTokens'),
    logprobs: numberOf('logprobs'),
    asksHost: (options.logitsHook ?? undefined) !== undefined,
    ...flagsOf(options),
    priority: number('priority', 0, { min: PRIORITY_MIN, max: PRIORITY_MAX, whole: true }),
    speculation: speculationOf(options.speculation ?? true),
    salt: saltOf(options.salt),
    adapters: adaptersOf(options.adapters),
    grammar: grammarOf(options),
    forced: options.forced === undefined ? [] : tokensOf(options.forced),
  };
}

/** @typedef {keyof typeof requestFlags} FlagName */

/** @param {GenerateOptions} options @returns {Record<FlagName, boolean>} */
function flagsOf(options) {
  const names = /** @type {FlagName[]} */ (Object.keys(requestFlags));
  return /** @type {any} */ (
    Object.fromEntries(names.map((name) => [name, checkFlag(name, options[name])]))
  );
}

/** @param {number | null | undefined} count -1: no limit @returns {number} 0 means no limit in the engine */
function tokensMaxOf(count) {
  if ((count ?? -1) === -1) return 0;
  return checkNumber('maxTokens', count, { min: 1, max: U32_MAX, whole: true });
}

/**
 * Checks the salt. It must be well-formed, because all lone surrogates would be encoded as the same bytes.
 * @param {unknown} salt
 * @returns {string} '' for no salt
 */
export function saltOf(salt) {
  if (salt === undefined || salt === null) return '';
  if (typeof salt !== 'string') throw argumentError('salt must be a string');
  if (salt === '') throw argumentError("salt must not be empty: '' would not separate tenants");
  if (/\p{Surrogate}/u.test(salt)) throw argumentError('salt must be well-formed text');
  return salt;
}

/** @param {unknown} speculation @returns {boolean | 'always'} */
function speculationOf(speculation) {
  if (typeof speculation === 'boolean' || speculation === 'always') return speculation;
  throw argumentError(`speculation must be true, false or 'always', not ${shown(speculation)}`);
}

/** @param {number | bigint | null | undefined} seed @returns {bigint} */
function seedOf(seed) {
  // -1 means a random seed, as in llama.cpp
  if (seed === undefined || seed === null || seed === -1)
    return (BigInt(randomWord()) << 32n) | BigInt(randomWord());
  if (typeof seed === 'bigint') return BigInt.asUintN(64, seed);
  if (Number.isSafeInteger(seed)) return BigInt.asUintN(64, BigInt(seed));
  if (Number.isInteger(seed)) {
    throw argumentError(`seed ${seed} is too large to be represented exactly: pass it as a bigint`);
  }
  throw argumentError(`seed must be a whole number, not ${shown(seed)}`);
}

/** @param {GenerateOptions['logitBias']} bias @returns {[number, number][]} */
function biasOf(bias) {
  if (typeof (bias ?? {}) !== 'object' || Array.isArray(bias)) {
    throw argumentError('logitBias must be an object or a Map of token ids and numbers');
  }
  const pairs = bias instanceof Map ? [...bias] : Object.entries(bias ?? {});
  return pairs.map(([key, value]) => {
    const id = wordsOf(key);
    const token = checkCount('a token of logitBias', /^\d+$/.test(id) ? Number(id) : key);
    if (typeof value !== 'number' || Number.isNaN(value)) {
      throw argumentError(`logitBias of token ${id} must be a number, not ${shown(value)}`);
    }
    return [token, value];
  });
}

/** @param {unknown} stop @returns {string[]} */
function stopsOf(stop) {
  const stops = stop === undefined || stop === null ? [] : typeof stop === 'string' ? [stop] : stop;
  if (Array.isArray(stops) && stops.every((item) => typeof item === 'string')) return stops;
  throw argumentError('stop must be a string or an array of strings');
}

/** @param {unknown} tokens @returns {number[] | undefined} undefined if they are not a list of token ids */
function idsOf(tokens) {
  if (!Array.isArray(tokens) && !ArrayBuffer.isView(tokens)) return undefined;
  const ids = Array.from(/** @type {any} */ (tokens));
  // they are passed as int32, so any other number would become a different token
  return ids.every((token) => Number.isInteger(token) && (token | 0) === token) ? ids : undefined;
}

/** @param {unknown} tokens @returns {number[]} */
export function tokensOf(tokens) {
  const ids = idsOf(tokens);
  if (ids) return ids;
  throw argumentError('The tokens must be an array of token ids');
}

/**
 * @param {unknown} prompt
 * @param {boolean} [mayBeEmpty] whether an empty array is allowed
 * @returns {string | number[]}
 */
export function promptOf(prompt, mayBeEmpty = false) {
  if (typeof prompt === 'string') return prompt;
  const tokens = idsOf(prompt);
  if (tokens && tokens.length > 0) return tokens;
  if (tokens && mayBeEmpty) return '';
  throw argumentError('The prompt must be a string or an array of token ids');
}
