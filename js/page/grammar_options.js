// js/page/grammar_options.js — maps the options that constrain the output to the engine's grammar. The engine compiles it,
// and reports unsupported features by name.

import { argumentError, WickError } from '../base/errors.js';
import * as layout from '../wasm/layout.js';
import { checkObject, checkText, shown } from './option_checks.js';

/** @import { GrammarOptions } from '../index.js' */
/** @typedef {{kind: number, text: string, begun?: string | Uint8Array, isWhole?: boolean}} Grammar wick_grammar */

/**
 * The options. The type ensures that no option is missing.
 * @type {Record<keyof GrammarOptions, null>}
 */
export const grammarNames = { grammar: null, jsonSchema: null, regex: null, choices: null };

/**
 * @param {GrammarOptions & {begun?: string | Uint8Array | null | undefined}} options
 * @returns {Grammar | undefined}
 */
export function grammarOf(options) {
  const found = wantedOf(options);
  const { begun } = options;
  if ((begun ?? undefined) === undefined) return found;
  if (typeof begun !== 'string' && !(begun instanceof Uint8Array)) {
    throw argumentError(`begun must be a string or its bytes, not ${shown(begun)}`);
  }
  if (found) found.begun = begun;
  else throw argumentError(`begun needs one of ${Object.keys(grammarNames).join(', ')}`);
  return found;
}

/** @param {GrammarOptions} options @returns {Grammar | undefined} */
function wantedOf(options) {
  const names = /** @type {(keyof GrammarOptions)[]} */ (Object.keys(grammarNames));
  const [name, other] = names.filter((one) => (options[one] ?? undefined) !== undefined);
  if (other) throw argumentError(`${name} and ${other} cannot be used together`);
  return name && readers[name](options[name]);
}

/** @param {unknown} schema @returns {string} its JSON */
function schemaText(schema) {
  try {
    return JSON.stringify(schema);
  } catch (error) {
    if (error instanceof RangeError) {
      const message = 'jsonSchema is nested too deeply or is too long';
      throw new WickError('GRAMMAR_TOO_LARGE', message, { option: 'grammar' });
    }
    throw argumentError(`jsonSchema must be JSON: ${/** @type {any} */ (error)?.message}`);
  }
}

/** @type {Record<keyof GrammarOptions, (value: any) => Grammar>} */
const readers = {
  grammar(text) {
    if (typeof text === 'string') return { kind: layout.GRAMMAR_GBNF, text };
    throw argumentError(`grammar must be a GBNF string, not ${shown(text)}`);
  },
  jsonSchema(schema) {
    if (typeof schema === 'string') return { kind: layout.GRAMMAR_JSON_SCHEMA, text: schema };
    const isSchema =
      typeof schema === 'boolean' || (typeof schema === 'object' && !Array.isArray(schema));
    if (isSchema) return { kind: layout.GRAMMAR_JSON_SCHEMA, text: schemaText(schema) };
    throw argumentError(`jsonSchema must be a schema or its JSON, not ${shown(schema)}`);
  },
  regex(pattern) {
    if (typeof pattern === 'string') return { kind: layout.GRAMMAR_REGEX, text: pattern };
    if (!(pattern instanceof RegExp)) {
      throw argumentError(
        `regex must be a regular expression or its source, not ${shown(pattern)}`,
      );
    }
    const flag = /[^dguvy]/.exec(pattern.flags)?.[0];
    if (flag) throw new WickError('UNSUPPORTED', `regex: the flag ${flag} is not supported`);
    return { kind: layout.GRAMMAR_REGEX, text: pattern.source };
  },
  choices(texts) {
    if (Array.isArray(texts) && texts.length > 0 && texts.every((one) => typeof one === 'string'))
      return { kind: layout.GRAMMAR_CHOICE, text: JSON.stringify(texts) };
    throw argumentError('choices must be an array of at least one string');
  },
};

/**
 * @param {any} format response_format of chat completions
 * @returns {GrammarOptions}
 */
export function optionsOfFormat(format) {
  checkObject('response_format', format);
  if ((format ?? undefined) === undefined) return {};
  const { type } = format;
  if (!Object.hasOwn(formats, type)) {
    throw new WickError(
      'UNSUPPORTED',
      `response_format is of type ${shown(type)}: text, json_object and json_schema are supported`,
    );
  }
  return formats[type](format);
}

/** @param {string} place @param {Record<string, any>} value @param {string[]} known */
function checkMembers(place, value, known) {
  const other = Object.keys(value).find((name) => !known.includes(name));
  if (other)
    throw argumentError(`${place}: unknown member ${other}. Known members: ${known.join(', ')}`);
}

/** @type {Record<string, (format: any) => GrammarOptions>} */
const formats = {
  text(format) {
    checkMembers('response_format', format, ['type']);
    return {};
  },
  json_object(format) {
    // llama.cpp's clients send the schema here
    checkMembers('response_format', format, ['type', 'schema']);
    checkObject('response_format.schema', format.schema);
    return { jsonSchema: format.schema ?? { type: 'object' } };
  },
  json_schema(format) {
    checkMembers('response_format', format, ['type', 'json_schema']);
    const asked = format.json_schema;
    const schema = asked?.schema;
    if (typeof schema !== 'object' || schema === null) {
      throw argumentError('response_format.json_schema.schema must be an object');
    }
    const place = 'response_format.json_schema';
    checkMembers(place, asked, ['name', 'schema', 'strict', 'description']);
    checkText(`${place}.name`, asked.name ?? '');
    return { jsonSchema: schema };
  },
};
