// js/handler/fields.js — the fields of a request's body. A field that is unknown or requests a missing feature
// is rejected with an error that names it, because ignoring it would change the output.

import { FLOAT_MAX, rangeWords } from '../base/number_range.js';
import { fieldAliases, fieldKinds, samplerLetters } from '../base/option_table.js';
import { areSamplers, areTexts, flagFields, optionNumbers } from '../base/sampler_fields.js';
import { HttpError, invalidField } from './http_errors.js';

/**
 * Throws if the value (never null) is not valid. Limits that depend on the engine are checked
 * there.
 * @typedef {(value: any, name: string) => void} Check
 */

const SHOWN_CHARACTERS_MAX = 60;

/** @param {unknown} value of JSON @returns {string} */
function shown(value) {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
}

/** @param {(value: any) => boolean} fits @param {string} wanted @returns {Check} */
export const must = (fits, wanted) => (value, name) => {
  if (!fits(value)) throw invalidField(name, `${name} must be ${wanted}, not ${shown(value)}`);
};

/** @param {unknown} value @returns {boolean} */
export const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {unknown} value @returns {boolean} */
export const isText = (value) => typeof value === 'string';

export const text = must(isText, 'a string');
export const boolean = must((value) => typeof value === 'boolean', 'true or false');
export const object = must(isObject, 'an object');

/** @param {{min: number, max?: number, whole?: boolean}} range @returns {Check} */
const numberIn = ({ min, max, whole: isWhole }) =>
  must(
    (value) =>
      typeof value === 'number' &&
      (!isWhole || Number.isSafeInteger(value)) &&
      value >= min &&
      value <= (max ?? FLOAT_MAX),
    rangeWords({ min, max, whole: isWhole }),
  );

/** @param {number} min @param {number} [max] @returns {Check} */
export const number = (min, max) => numberIn({ min, max });

/** @param {number} min @param {number} [max] @returns {Check} */
export const whole = (min, max) => numberIn({ min, max, whole: true });

const stops = must(
  (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  'a string or an array of strings',
);

const bias = must(
  (value) =>
    isObject(value) &&
    Object.entries(value).every(([id, one]) => /^\d+$/.test(id) && typeof one === 'number'),
  'an object of token ids and numbers',
);

/** @type {Check} */
function streamOptions(value, name) {
  object(value, name);
  checkFields(value, { include_usage: boolean, include_obfuscation: boolean }, `${name}.`);
}

/** For fields that concern only OpenAI's service: any value is accepted. @type {Check} */
export const ignored = () => {};

/**
 * For fields of missing features: only neutral values are accepted.
 * @param {(value: any) => boolean} [isIdle]
 * @returns {Check}
 */
export const missing =
  (isIdle = () => false) =>
  (value, name) => {
    if (isIdle(value)) return;
    const message = `${name}: ${shown(value)} is not supported`;
    throw new HttpError(400, 'unsupported_parameter', message, { param: name });
  };

/**
 * OpenAI's fields and those of llama.cpp's server, with the ranges of the package's options.
 * @type {Record<string, Check>}
 */
const samplerFields = {
  ...Object.fromEntries(Object.values(optionNumbers).map((one) => [one.field, numberIn(one)])),
  dry_sequence_breakers: must(areTexts, 'an array of non-empty strings'),
  samplers: must(
    areSamplers,
    `an array of at most 16 of ${Object.keys(samplerLetters).join(', ')}`,
  ),
};

/** -1 means no limit, as with llama.cpp's server. */
export const tokensLimit = must(
  (value) => Number.isSafeInteger(value) && (value >= 1 || value === -1) && value < 2 ** 32,
  'a whole number of at least 1, or -1 for no limit',
);

const schema = must((value) => isObject(value) || isText(value), 'a JSON schema or its text');

/** @type {Record<string, Check>} */
const kinds = { text, boolean, object, tokens: tokensLimit, schema, ignored };

/** @param {string} list of fieldKinds @returns {Record<string, Check>} */
export const fieldsOf = (list) =>
  Object.fromEntries(
    list.split(' ').map((one) => {
      const [name, kind] = one.split('=');
      const accepted = kind.split('|');
      return [name, kinds[kind] ?? missing((value) => accepted.includes(JSON.stringify(value)))];
    }),
  );

const choices = must(
  (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
  'an array of at least one string',
);

/**
 * The fields that correspond to the members of vLLM's structured_outputs.
 * @type {Record<string, string>}
 */
const structuredNames = {
  json: 'json_schema',
  regex: 'regex',
  choice: 'choices',
  grammar: 'grammar',
};

/** @type {Check} */
function structuredOutputs(value, name) {
  object(value, name);
  const known = { json: schema, regex: text, choice: choices, grammar: text, json_object: boolean };
  checkFields(value, known, `${name}.`);
  if (Object.values(value).filter((one) => (one ?? false) !== false).length <= 1) return;
  throw invalidField(name, `${name}: must have exactly one of ${Object.keys(known).join(', ')}`);
}

/** The fields that chat completions and completions share. @type {Record<string, Check>} */
export const commonFields = {
  ...fieldsOf(fieldKinds.text),
  stream_options: streamOptions,
  n: whole(1),
  stop: stops,
  seed: must(Number.isSafeInteger, 'a whole number'),
  logit_bias: bias,
  choices,
  structured_outputs: structuredOutputs,
  salt: must((value) => isText(value) && value !== '', 'a non-empty string'),
  ...samplerFields,
  ...Object.fromEntries(flagFields.map(([field]) => [field, boolean])),
};
/** @param {any} value @returns {boolean} */
export const isEmptyObject = (value) => isObject(value) && Object.keys(value).length === 0;
/** @param {...unknown} values @returns {(value: unknown) => boolean} */
export const isOneOf =
  (...values) =>
  (value) =>
    values.includes(value);

/** The fields that all routes accept and ignore. */
export const idleFields = fieldsOf(fieldKinds.every);

/** Copies the defined values. @param {Record<string, unknown>} to @param {Record<string, unknown>} from */
export function assignGiven(to, from) {
  for (const [name, value] of Object.entries(from)) {
    if ((value ?? undefined) !== undefined) to[name] = value;
  }
}

/**
 * @param {Record<string, unknown>} body
 * @param {Record<string, Check>} fields
 * @param {string} [prefix] prepended to field names in errors
 */
export function checkFields(body, fields, prefix = '') {
  for (const [name, value] of Object.entries(body)) {
    const full = `${prefix}${name}`;
    if (!Object.hasOwn(fields, name)) {
      const message = `unknown field ${shown(full)}`;
      throw new HttpError(400, 'unknown_parameter', message, { param: full });
    }
    if (value !== null) fields[name](value, full);
  }
}

/**
 * @param {Record<string, Check>} fields
 * @returns {Record<string, Check>} these fields, and the same checks under the names that other
 * servers use
 */
export const withAliases = (fields) => ({
  ...fields,
  ...Object.fromEntries(
    Object.entries(fieldAliases)
      .filter(([, own]) => Object.hasOwn(fields, own))
      .map(([alias, own]) => [alias, fields[own]]),
  ),
});

/** @param {Record<string, any>} body @param {string} from @param {string} to @param {unknown} value */
function rename(body, from, to, value) {
  if ((value ?? undefined) === undefined) return;
  if ((body[to] ?? undefined) !== undefined) {
    throw invalidField(from, `${from} and ${to} are the same field: send one`);
  }
  body[to] = value;
}

/**
 * Checks the fields of a body, and renames those that have another server's name.
 * @param {Record<string, any>} body
 * @param {Record<string, Check>} fields returned by withAliases
 */
export function checkBody(body, fields) {
  checkFields(body, fields);
  for (const [alias, own] of Object.entries(fieldAliases)) rename(body, alias, own, body[alias]);
  const { structured_outputs: wanted } = body;
  for (const [name, own] of Object.entries(structuredNames)) {
    rename(body, 'structured_outputs', own, wanted?.[name]);
  }
  if (wanted?.json_object) {
    rename(body, 'structured_outputs', 'json_schema', { type: 'object' });
  }
  delete body.structured_outputs;
}

/**
 * @param {Record<string, unknown>} body
 * @param {Record<string, Check>} fields
 * @returns {Record<string, unknown>} the body's fields that are in `fields` and are not null
 */
export function pickFields(body, fields) {
  const picked = Object.entries(body).filter(
    ([name, value]) => value !== null && Object.hasOwn(fields, name),
  );
  return Object.fromEntries(picked);
}

/** @param {Record<string, any>} body @param {string} needed the name of a field */
export function checkTogether(body, needed) {
  if ((body[needed] ?? undefined) === undefined) {
    throw new HttpError(400, 'missing_required_parameter', `${needed} is missing`, {
      param: needed,
    });
  }
  if (isObject(body.stream_options) && !body.stream) {
    throw invalidField('stream_options', 'stream_options needs stream: true');
  }
}
