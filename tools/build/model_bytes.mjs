// Computes the size of the weights of the chat page's recommended models from their shapes. For a
// dense transformer the size is calculated; for other models it is the size of the output of
// `wick synth SYNTH TYPE -`.

import { readFileSync } from 'node:fs';

/** @typedef {{layers: number, hidden: number, ffn: number, heads: number, kvHeads: number, headDim: number, vocab: number, isTied: boolean, outputType?: string}} Shape */

/** The shapes by their ids in examples/chat/good_models.json. @type {Record<string, Shape | {synth: string}>} */
export const shapes = JSON.parse(
  readFileSync(new URL('model_shapes.json', import.meta.url), 'utf8'),
);

/** Bytes per block of 32 weights. @type {Record<string, number>} */
const blockBytes = { F16: 64, Q8_0: 34, Q4_0: 18, Q1_0: 4.5 };

/**
 * @param {Shape} shape of a dense transformer
 * @param {string} type of its matrices; embeddings that are also the output matrix are at least Q6_K
 * @returns {number} bytes of all weights
 */
export function bytesOfShape(shape, type) {
  const { layers, hidden, ffn, heads, kvHeads, headDim, vocab, isTied, outputType } = shape;
  const attention = 2 * hidden * headDim * (heads + kvHeads);
  const matrices = layers * (attention + 3 * hidden * ffn);
  const each = blockBytes[type] / 32;
  const output = outputType ? blockBytes[outputType] / 32 : Math.max(each, 210 / 256);
  const outputs = isTied ? output : each + output;
  return Math.round(matrices * each + hidden * vocab * outputs);
}
