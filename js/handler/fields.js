// js/handler/fields.js — the fields of a request's body. A field that is unknown or requests a missing feature
// is rejected with an error that names it, because ignoring it would change the output.

import { FLOAT_MAX, rangeWords } from '../base/number_range.js';
import { fieldAliases, fieldKinds, fieldWords } from '../base/option_table.js';
import { effortNames } from '../base/reasoning_effort.js';
import { areSamplers, areTexts, flagFields, optionNumbers } from '../base/sampler_fields.js';
import { HttpError, invalidField, missingField, refusal } from './http_errors.js';

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

/** @param {...unknown} values @returns {(value: unknown) => boolean} */
export const isOneOf =
  (...values) =>
  (value) =>
    values.includes(value);

/** @param {unknown} value @returns {boolean} */
export const isText = (value) => typeof value === 'string';

export const text = must(isText, fieldWords.text);
export const boolean = must((value) => typeof value === 'boolean', fieldWords.boolean);
export const object = must(isObject, fieldWords.object);

/** @param {{min: number, max?: number, whole?: boolean}} range @returns {Check} */
export const numberIn = ({ min, max, whole: isWhole }) =>
  must(
    (value) =>
      typeof value === 'number' &&
      (!isWhole || Number.isSafeInteger(value)) &&
      value >= min &&
      value <= (max ?? FLOAT_MAX),
    rangeWords({ min, max, whole: isWhole }),
  );

const texts = must(
  (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  fieldWords.texts,
);

const bias = must(
  (value) =>
    isObject(value) &&
    Object.entries(value).every(([id, one]) => /^\d+$/.test(id) && typeof one === 'number'),
  fieldWords.logit_bias,
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
  samplers: must(areSamplers, fieldWords.samplers),
};

/** -1 means no limit, as with llama.cpp's server. */
export const tokensLimit = must(
  (value) => Number.isSafeInteger(value) && (value >= 1 || value === -1) && value < 2 ** 32,
  fieldWords.tokens,
);

const schema = must((value) => isObject(value) || isText(value), fieldWords.schema);

/** The amount of reasoning. */
export const effort = must(isOneOf(...effortNames), fieldWords.effort);

/** The kinds of include/options.mjs. @type {Record<string, Check>} */
const kinds = {
  ...{ text, boolean, object, texts, schema, ignored, tokens: tokensLimit, checked: ignored },
  count: (value, name) => value === 0 || tokensLimit(value, name),
  whole: must(Number.isSafeInteger, fieldWords.whole),
  effort,
};

/** @param {string} kind @returns {Check} */
function checkOf(kind) {
  const [, min, max] = /^(-?\d+)\.\.(\d*)$/.exec(kind) ?? [];
  if (min) return numberIn({ min: Number(min), whole: true, ...(max && { max: Number(max) }) });
  const accepted = kind.split('|');
  return kinds[kind] ?? missing((value) => accepted.includes(JSON.stringify(value)));
}

/**
 * @param {...keyof typeof fieldKinds} lists
 * @returns {Record<string, Check>} their fields; those of later lists replace earlier ones
 */
export function fieldsOf(...lists) {
  const known = lists.flatMap((list) => fieldKinds[list].split(' '));
  const rows = Object.fromEntries(known.map((one) => one.split('=')));
  return Object.fromEntries(
    Object.entries(rows)
      .filter(([, kind]) => kind !== 'unknown')
      .map(([name, kind]) => [name, checkOf(kind)]),
  );
}

const choices = must(
  (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
  fieldWords.choices,
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

/** The fields that text routes share and whose checks are not in the table. @type {Record<string, Check>} */
const ownChecks = {
  stream_options: streamOptions,
  logit_bias: bias,
  choices,
  structured_outputs: structuredOutputs,
  salt: must((value) => isText(value) && value !== '', fieldWords.salt),
  ...samplerFields,
  ...Object.fromEntries(flagFields.map(([field]) => [field, boolean])),
};

/** The fields that text routes share. @type {Record<string, Check>} */
export const commonFields = { ...fieldsOf('text'), ...ownChecks };

/** @param {any} value @returns {boolean} */
export const isEmptyObject = (value) => isObject(value) && Object.keys(value).length === 0;

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
      throw refusal('unknown', [shown(full)], { param: full });
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
    throw refusal('same_field', [from, to], { param: from });
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
  if ((body[needed] ?? undefined) === undefined) throw missingField(needed);
  if (isObject(body.stream_options) && !body.stream) {
    throw refusal('no_stream', [], { param: 'stream_options' });
  }
}
