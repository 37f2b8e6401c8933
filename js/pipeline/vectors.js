// js/pipeline/vectors.js — the feature-extraction and text-classification pipelines.

import { WickError } from '../index.js';
import { tensorOf } from './tensor.js';

/** @import { Engine } from '../index.js' */

/**
 * The engine's names for the poolings of transformers.js.
 * @type {Record<string, 'none' | 'mean' | 'cls' | 'last'>}
 */
const poolings = {
  ...{
    none: 'none',
    mean: 'mean',
    cls: 'cls',
    first_token: 'cls',
    last_token: 'last',
    eos: 'last',
  },
};

/** @param {string} task @param {unknown} input @returns {string[]} */
function textsOf(task, input) {
  const texts = [input].flat();
  if (texts.every((one) => typeof one === 'string')) return /** @type {string[]} */ (texts);
  throw new WickError('ARG', `${task} needs a string or an array of strings`);
}

/** @param {Engine} engine */
export function featureExtraction(engine) {
  /** @param {unknown} input @param {import('../pipeline.js').ExtractionOptions} [options] */
  return async (input, options = {}) => {
    const { pooling = 'none', normalize = false, quantize = false, signal = null } = options;
    if (quantize) throw new WickError('UNSUPPORTED', 'quantize is not supported');
    const kind = Object.hasOwn(poolings, pooling) ? poolings[pooling] : undefined;
    if (!kind)
      throw new WickError(
        'ARG',
        `pooling must be one of ${Object.keys(poolings).join(', ')}, not ${pooling}`,
      );
    const texts = textsOf('feature-extraction', input);
    const rows = await engine.embed(texts, { pooling: kind, normalize, truncate: true, signal });
    if (kind !== 'none') return tensorOf(rows, []);
    const { shape } = await engine.info();
    return tensorOf(
      rows,
      rows.map((row) => row.length / (shape?.hidden ?? row.length)),
    );
  };
}

/** @param {ArrayLike<number>} logits */
function softmax(logits) {
  const most = Math.max(...Array.from(logits));
  const powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, one) => total + one, 0);
  return powers.map((one) => one / sum);
}

/**
 * Returns the names of the head's outputs, and whether these are already probabilities, as in
 * causal models.
 * @param {Engine} engine
 */
async function headOf(engine) {
  const { metadata } = await engine.inspect();
  const find = (/** @type {string} */ end) => metadata.find(({ key }) => key.endsWith(end));
  const names = find('.classifier.output_labels');
  const causal = find('.attention.causal');
  return {
    labels: names && 'first' in names && names.first.length === names.count ? names.first : [],
    isProbability: !(causal && 'value' in causal && causal.value === false),
  };
}

/** @param {Engine} engine */
export function textClassification(engine) {
  /** @type {ReturnType<typeof headOf> | undefined} */
  let head;
  /** @param {unknown} input @param {import('../pipeline.js').ClassificationOptions} [options] */
  return async (input, { top_k: most = 1, signal = null } = {}) => {
    if (most !== null && !(Number.isInteger(most) && most > 0)) {
      throw new WickError('ARG', 'top_k must be a whole number of at least 1, or null');
    }
    const texts = textsOf('text-classification', input);
    const rows = await engine.embed(texts, { pooling: 'rank', truncate: true, signal });
    head ??= headOf(engine);
    const { labels, isProbability } = await head;
    const all = rows.map((row) => {
      // a single output is the logit of "yes" versus "no"
      const single = row.length === 1 ? [1 / (1 + Math.exp(-row[0]))] : softmax(row);
      const scores = isProbability ? Array.from(row) : single;
      return scores
        .map((score, index) => ({ label: String(labels[index] ?? `LABEL_${index}`), score }))
        .sort((a, b) => b.score - a.score)
        .slice(0, most ?? undefined);
    });
    if (most === 1) return all.flat();
    return Array.isArray(input) ? all : all[0];
  };
}
