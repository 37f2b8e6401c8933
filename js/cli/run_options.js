// js/cli/run_options.js — the options of `wick run` and `wick chat` as settings of the package's engine.

import {
  commandBigInts,
  commandOptions,
  commandTexts,
  plainSampling,
  requestFlags,
  samplerLetters,
} from '../base/option_table.js';
import { EXIT_USAGE, Exit, readText } from './exit.js';

/** @import { GenerateOptions } from '../index.js' */

/**
 * The command-line options that set numeric options of generate().
 * @type {Record<string, string>}
 */
const settings = { ...commandOptions, '-n': 'maxTokens' };

/** The command-line options that may be repeated. */
const listNames = [...Object.keys(commandTexts), '--dry-sequence-breaker', '--lora', '--choice'];

/**
 * @param {Map<string, string | undefined>} last
 * @param {string[]} breakers
 * @returns {GenerateOptions} the sampler options that are not numbers
 */
function readSamplers(last, breakers) {
  /** @type {GenerateOptions} */
  const options = {};
  const names = last.get('--samplers');
  const letters = last.get('--sampling-seq');
  if (names !== undefined) {
    options.samplers = /** @type {any} */ (names.split(';').filter((name) => name !== ''));
  }
  if (letters !== undefined) {
    const all = Object.entries(samplerLetters);
    const found = [...letters].map((letter) => all.find(([, one]) => one === letter)?.[0]);
    options.samplers = /** @type {any} */ (found);
  }
  if (breakers.length > 0) options.drySequenceBreakers = breakers.includes('none') ? [] : breakers;
  return options;
}

/**
 * @param {Map<string, string | undefined>} last
 * @param {string[]} choices
 * @returns {GenerateOptions} the constraints on the output
 */
function readGrammar(last, choices) {
  const [grammar, jsonSchema] = ['--grammar', '--json-schema'].map((name) => last.get(name));
  const regex = last.get('--regex');
  return {
    ...(grammar !== undefined && { grammar: readText(grammar) }),
    ...(jsonSchema !== undefined && { jsonSchema: readText(jsonSchema) }),
    ...(regex !== undefined && { regex }),
    ...(choices.length > 0 && { choices }),
  };
}

/** @param {import('./exit.js').Argument[]} found options of run or chat that the WASI build has checked */
export function readOptions(found) {
  /** @type {Map<string, string | undefined>} */
  const last = new Map();
  /** @type {Record<string, string[]>} */
  const lists = Object.fromEntries(listNames.map((name) => [name, []]));
  /** @type {string[]} */
  const positionals = [];
  for (const one of found) {
    if ('positional' in one) positionals.push(one.positional);
    else if (Object.hasOwn(lists, one.option)) lists[one.option].push(String(one.value));
    else last.set(one.option, one.value);
  }
  /** @type {GenerateOptions} */
  const generation = {
    ...plainSampling,
    ...readSamplers(last, lists['--dry-sequence-breaker']),
    ...readGrammar(last, lists['--choice']),
  };
  for (const [option, name] of Object.entries(commandTexts)) {
    Object.assign(generation, { [name]: lists[option] });
  }
  for (const [option, name] of Object.entries(settings)) {
    const value = last.get(option);
    if (value !== undefined) Object.assign(generation, { [name]: Number(value) });
  }
  for (const [name, flag] of Object.entries(requestFlags)) {
    if ('cli' in flag && last.has(flag.cli)) Object.assign(generation, { [name]: true });
  }
  if (last.has('--no-speculation')) generation.speculation = false;
  for (const [option, name] of Object.entries(commandBigInts)) {
    const value = last.get(option);
    if (value !== undefined) Object.assign(generation, { [name]: BigInt(value) });
  }
  return { last, generation, lora: lists['--lora'], positionals };
}

/**
 * @param {string[]} positionals
 * @param {string} usage
 * @returns {string} the model, which must be the only argument
 */
export function onlyModel([model, more], usage) {
  if (model !== undefined && more === undefined) return model;
  const problem = model === undefined ? 'MODEL is missing' : `unexpected argument '${more}'`;
  throw new Exit(EXIT_USAGE, `${problem} (usage: ${usage})`);
}

/** @param {Map<string, string | undefined>} last @returns {Record<string, any>} the options of createEngine, without the model */
export function engineOptionsOf(last) {
  const numberOf = (/** @type {string} */ name) => {
    const text = last.get(name);
    return text === undefined ? undefined : Number(text);
  };
  const [k, v = k] = last.get('--kv')?.split(':') ?? [];
  return {
    contextSize: numberOf('--ctx'),
    threads: numberOf('--threads'),
    kvType: k === undefined ? undefined : { k, v },
    tables: last.get('--tables'),
    preTokenizer: last.get('--pre-tokenizer'),
    predictor: last.has('--no-predictor') ? false : undefined,
  };
}
