// js/base/option_names.js — checks the names of options. An unknown name is an error that suggests the nearest known one:
// if a misspelt option were ignored, users might not notice.

import { WickError } from './errors.js';

/**
 * Returns the number of letters to insert, remove or replace to turn one word into the other
 * (Levenshtein distance).
 * @param {string} from
 * @param {string} to
 */
function distanceOf(from, to) {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let at = 1; at <= from.length; at++) {
    const next = [at];
    for (let index = 1; index <= to.length; index++) {
      const replaced = row[index - 1] + Number(from[at - 1] !== to[index - 1]);
      next.push(Math.min(replaced, row[index] + 1, next[index - 1] + 1));
    }
    row = next;
  }
  return row[to.length];
}

/**
 * Returns the letters and digits of a name in lower case, so that max_tokens and maxTokens are equal.
 * @param {string} name
 */
const bare = (name) => name.toLowerCase().replace(/[^a-z\d]/g, '');

/** Option names of other engines, each with our names for that option; the first one in the caller's list is suggested. @type {Record<string, string>} */
const elsewhere = {
  nctx: 'contextSize',
  maxseqlen: 'contextSize',
  nthreads: 'threads',
  nbatch: 'batchSize',
  modelpath: 'file',
  path: 'file',
  model: 'url',
  maxnewtokens: 'maxTokens max_tokens',
  maxoutputtokens: 'maxTokens max_tokens',
  npredict: 'maxTokens max_tokens',
  abortsignal: 'signal',
  progresscallback: 'onProgress',
  initprogresscallback: 'onProgress',
  stopsequences: 'stop',
  ...Object.fromEntries(
    ['reasoningbudget', 'reasoningbudgettokens', 'thinkingtokenbudget', 'maxreasoningtokens'].map(
      (name) => [name, 'thinkingBudgetTokens thinking_budget_tokens'],
    ),
  ),
};

/** @param {string} name @param {string[]} known @returns {string | undefined} the name that was probably meant */
function nearestOf(name, known) {
  const own = (elsewhere[bare(name)] ?? '').split(' ').find((one) => known.includes(one));
  if (own) return own;
  const ranked = known
    .map((one) => ({ one, distance: distanceOf(bare(name), bare(one)) }))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.distance <= name.length / 3 ? ranked[0].one : undefined;
}

/**
 * Returns `options`. Throws if it is not an object or has an unknown name. undefined counts as
 * missing.
 * @template {object} T
 * @param {T} options
 * @param {(keyof T & string)[]} names
 * @param {string[]} [silent] other known names, which are never suggested
 * @returns {T}
 */
export function checkNames(options, names, silent = []) {
  /** @type {string[]} */
  const known = names;
  if (typeof options !== 'object' || options === null) {
    throw new WickError('ARG', 'options must be an object');
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.includes(name) || silent.includes(name)) continue;
    const nearest = nearestOf(name, known);
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
    throw new WickError('ARG', `${name} is not an option${hint}`);
  }
  return options;
}
