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

/** @param {Record<string, Check>} members @returns {Check} for an object with these members only */
export const objectOf = (members) => (value, name) => {
  object(value, name);
  checkFields(value, members, `${name}.`);
};

/** @param {any} list @param {string} name */
export function checkArray(list, name) {
  if (!Array.isArray(list)) throw invalidField(name, `${name} must be an array`);
}

/**
 * @param {(tool: any) => boolean} isKnown whether a tool has a supported type; tools of other types
 * are left out, and so are members that are not in `members`
 * @param {Record<string, Check>} members
 * @param {string} wanted
 * @returns {Check}
 */
export const toolsOf = (isKnown, members, wanted) => (tools, name) => {
  checkArray(tools, name);
  for (const [index, tool] of tools.entries()) {
    const at = `${name}[${index}]`;
    if (isText(tool?.type) && !isKnown(tool)) continue;
    if (!isKnown(tool) || !isText(tool?.name) || tool.name === '') {
      throw invalidField(at, `${at} must be ${wanted}`);
    }
    checkKnown(tool, members, `${at}.`);
  }
};

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

const bias = must(
  (value) =>
    isObject(value) &&
    Object.entries(value).every(([id, one]) => /^\d+$/.test(id) && typeof one === 'number'),
  fieldWords.logit_bias,
);

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
const tokensLimit = must(
  (value) => Number.isSafeInteger(value) && (value >= 1 || value === -1) && value < 2 ** 32,
  fieldWords.tokens,
);

/** @param {any} value */
const areStrings = (value) => Array.isArray(value) && value.every(isText);

/** The amount of reasoning. */
export const effort = must(isOneOf(...effortNames), fieldWords.effort);

/** The kinds of include/options.mjs. @type {Record<string, Check>} */
const kinds = {
  ...{ text, boolean, object, ignored, effort, tokens: tokensLimit, checked: ignored },
  texts: must((value) => isText(value) || areStrings(value), fieldWords.texts),
  strings: must(areStrings, fieldWords.strings),
  choices: must((value) => areStrings(value) && value.length > 0, fieldWords.choices),
  schema: must((value) => isObject(value) || isText(value), fieldWords.schema),
  count: (value, name) => value === 0 || tokensLimit(value, name),
  whole: must(Number.isSafeInteger, fieldWords.whole),
};

/** @param {string} kind @returns {Check} */
function checkOf(kind) {
  const [, members] = /^\{(\w+)\}$/.exec(kind) ?? [];
  if (members) return objectOf(fieldsOf(/** @type {keyof typeof fieldKinds} */ (members)));
  const [, min, max] = /^(-?\d+)\.\.(\d*)$/.exec(kind) ?? [];
  if (min) return numberIn({ min: Number(min), whole: true, ...(max && { max: Number(max) }) });
  const accepted = kind.split('|');
  return kinds[kind] ?? missing((value) => accepted.includes(JSON.stringify(value)));
}

/**
 * @param {...keyof typeof fieldKinds} lists
 * @returns {Record<string, any>} the checks of their fields; those of later lists replace earlier
 * ones. An unknown field has none, so that it replaces one of a shared list.
 */
export function fieldsOf(...lists) {
  const rows = lists.flatMap((list) => fieldKinds[list].split(' ')).map((row) => row.split('='));
  return Object.fromEntries(
    rows.map(([name, kind]) => [name, kind === 'unknown' ? undefined : checkOf(kind)]),
  );
}

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

const structuredFields = fieldsOf('structured_outputs');

/** @type {Check} */
function structuredOutputs(value, name) {
  objectOf(structuredFields)(value, name);
  if (Object.values(value).filter((one) => (one ?? false) !== false).length <= 1) return;
  const known = Object.keys(structuredFields).join(', ');
  throw invalidField(name, `${name}: must have exactly one of ${known}`);
}

/** The fields that text routes share and whose checks are not in the table. @type {Record<string, Check>} */
const ownChecks = {
  logit_bias: bias,
  structured_outputs: structuredOutputs,
  salt: must((value) => isText(value) && value !== '', fieldWords.salt),
  ...samplerFields,
  ...Object.fromEntries(flagFields.map(([field]) => [field, boolean])),
};

/** The fields that text routes share. @type {Record<string, Check>} */
export const commonFields = { ...fieldsOf('text'), ...ownChecks };

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
 * @param {Record<string, Check | undefined>} fields
 * @returns {Record<string, Check>} those that have a check, and the same checks under the names that
 * other servers use
 */
export function withAliases(fields) {
  const aliased = Object.entries(fieldAliases).map(([alias, own]) => [alias, fields[own]]);
  return Object.fromEntries([...Object.entries(fields), ...aliased].filter(([, check]) => check));
}

/**
 * Checks the members of an object that are in `fields`. Others are left out.
 * @param {any} value
 * @param {Record<string, Check>} fields
 * @param {string} prefix prepended to names in errors
 */
export const checkKnown = (value, fields, prefix) =>
  checkFields(pickFields(value, fields), fields, prefix);

/**
 * @param {any} value an object of which all members in `fields` are required; others are left out
 * @param {Record<string, Check>} fields
 * @param {string} at the place of the object, for errors
 */
export function checkRequired(value, fields, at) {
  checkKnown(value, fields, `${at}.`);
  const name = Object.keys(fields).find((one) => (value[one] ?? undefined) === undefined);
  if (name) throw invalidField(`${at}.${name}`, `${at} has no ${name}`);
}

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
 * @param {object} fields
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
