// js/page/classify.js — engine.classify: the probabilities of labels for a text.

import { argumentError, WickError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { askModel } from './ask_model.js';
import { checkText, shown } from './option_checks.js';

const INSTRUCTIONS = 'Read the text and answer with the label that fits it, and nothing else.';
/**
 * The number of labels that are scored at a time. Their requests share the tokens that the first of
 * them has processed.
 */
const LABELS_AT_ONCE = 16;

/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { Input } from '../connection/messages.js' */
/**
 * `isWhole`: whether the grammar covers the whole reply, with its reasoning.
 * @typedef {(input: Input, options: import('../index.js').GenerateOptions, isWhole?: boolean) =>
 *   import('./piece_reader.js').PieceReader} Ask
 */

/** @param {unknown} labels @returns {string[]} */
function checkLabels(labels) {
  if (!Array.isArray(labels) || labels.length < 2) {
    throw argumentError(`labels must be an array of two strings or more, not ${shown(labels)}`);
  }
  for (const [index, label] of labels.entries()) {
    if (typeof label !== 'string' || label === '') {
      throw argumentError(`labels[${index}] must be a non-empty string, not ${shown(label)}`);
    }
    if (labels.indexOf(label) !== index) {
      throw argumentError(`labels[${index}] appears twice: ${shown(label)}`);
    }
  }
  return labels;
}

/**
 * @param {EngineConnection} connection
 * @param {Ask} ask
 * @param {string} text
 * @param {string[]} labels
 * @param {import('../index.js').ClassifyOptions} options
 * @returns {Promise<import('../index.js').Classification>} the labels with their probabilities, the
 * most probable first
 */
export async function classify(connection, ask, text, labels, options) {
  checkNames(options, ['instructions', 'salt', 'truncate', 'signal']);
  const { instructions = INSTRUCTIONS, salt, truncate = false, signal } = options;
  checkText('text', text);
  checkText('instructions', instructions);
  if (typeof truncate !== 'boolean') {
    throw argumentError(`truncate must be true or false, not ${shown(truncate)}`);
  }
  const names = checkLabels(labels);
  const settings = salt === undefined ? { signal } : { salt, signal };
  const content = `${instructions}\n\n${text}`;
  const logits =
    (await scoresOfHead(connection, text, names, truncate, signal)) ??
    (await likelihoods(ask, content, names, settings));
  const found = softmax(logits).map((score, index) => ({ label: names[index], score, index }));
  found.sort((a, b) => b.score - a.score || a.index - b.index);
  return found.map(({ label, score }) => ({ label, score }));
}

/** @param {number[]} logits */
function softmax(logits) {
  const most = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - most));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/**
 * Returns the scores of the model's head, one for each label, in the head's order.
 * @param {EngineConnection} connection
 * @param {string} text
 * @param {string[]} labels
 * @param {boolean} truncate
 * @param {AbortSignal | null | undefined} signal
 * @returns {Promise<number[] | undefined>} undefined if the model has no head
 */
async function scoresOfHead(connection, text, labels, truncate, signal) {
  const request = { texts: [text], pooling: 'rank', normalize: false, truncate, dimensions: 0 };
  /** @type {ArrayLike<number>} */
  let scores;
  try {
    [{ vector: scores }] = await connection.call('embed', [request], signal);
  } catch (error) {
    if (error instanceof WickError && error.code === 'UNSUPPORTED') return undefined;
    throw error;
  }
  if (scores.length === labels.length) return Array.from(scores);
  throw argumentError(
    `the model's head has ${scores.length} scores, but ${labels.length} labels were given: pass one label for each score, in the head's order`,
  );
}

/**
 * Returns the logarithm of the probability of each label as the model's whole answer.
 * @param {Ask} ask
 * @param {string} content
 * @param {string[]} labels
 * @param {{salt?: string, signal: AbortSignal | null | undefined}} settings
 * @returns {Promise<number[]>}
 */
async function likelihoods(ask, content, labels, settings) {
  const question = `${content}\n\nLabels: ${labels.join(', ')}`;
  return askModel(question, '\n\nLabel: ', async (input) => {
    const of = (/** @type {string} */ label) => likelihood(ask, input, label, settings);
    const found = [await of(labels[0])];
    while (found.length < labels.length) {
      const some = labels.slice(found.length, found.length + LABELS_AT_ONCE);
      found.push(...(await Promise.all(some.map(of))));
    }
    return found;
  });
}

/**
 * @param {Ask} ask
 * @param {Input} input
 * @param {string} label
 * @param {{salt?: string, signal: AbortSignal | null | undefined}} settings
 */
async function likelihood(ask, input, label, settings) {
  const given = { temperature: 0, logprobs: 0, ...settings, choices: [label] };
  const reader = ask(input, given, true); // reasoning is not part of the label
  let sum = 0;
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    sum += piece.token?.logprob ?? 0;
  }
  return sum;
}
