// examples/chat/models.js — the models that the page offers: the one that comes with it, those of its server, and those of
// good_models.json, whose sizes follow from their shapes: `shape` of a dense transformer, `weightsBytes` of others as `wick synth SYNTH TYPE -` writes them.
// Their hashes are learnt from the hub at the first download.

import good from './good_models.json' with { type: 'json' };

/**
 * `bytes` is about the file's size, `temperature` the one that the model's makers advise.
 * @typedef {{id: string, name: string, note: string, url: string, bytes: number, temperature?: number, isBuiltIn?: boolean}} ModelChoice
 */
/** `url` is relative to the page. @typedef {Pick<ModelChoice, 'id' | 'name' | 'url' | 'bytes' | 'temperature'> & {use: string}} ServedModel */
/** @typedef {{layers: number, hidden: number, ffn: number, heads: number, kvHeads: number, headDim: number, vocab: number, isTied: boolean, outputType?: string}} Shape */

const hub = 'https://huggingface.co';

/** Bytes of a block of 32 weights. @type {Record<string, number>} */
const blockBytes = { F16: 64, Q8_0: 34, Q4_0: 18, Q1_0: 4.5 };

/**
 * @param {Shape} shape of a dense transformer
 * @param {string} type of its matrices; embeddings that are the output matrix, too, are at least Q6_K
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

/** @param {number} bytes */
const roundly = (bytes) =>
  bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;

/** The models of the page's own server, filled in by build.mjs. @type {ServedModel[]} */
// @ts-expect-error not known before
const listed = globalThis.SERVED_MODELS ?? [];

/** @type {ModelChoice[]} */
const served = listed.map(({ use, url, ...model }) => ({
  ...model,
  note: `${roundly(model.bytes)}: ${use}`,
  url: new URL(url, globalThis.location?.href).href,
}));

/** @type {ModelChoice[]} */
const ofHub = good.map(({ id, name, use, repo, file, type, shape, weightsBytes, temperature }) => {
  const bytes = weightsBytes ?? bytesOfShape(/** @type {Shape} */ (shape), type);
  const url = `${hub}/${repo}/resolve/main/${file}`;
  const note = `${roundly(bytes)}: ${use}`;
  return { id, name: `${name}, ${type}`, note, url, bytes, temperature };
});

/** @type {ModelChoice[]} */
export const models = [
  {
    id: 'wick',
    name: 'Wick 4.2M',
    note: '4.5 MB, comes with the page: a toy that shows how it works',
    url: 'wick-llm-demo-model/wick-4.2m-q8_0.gguf',
    bytes: 4.5e6,
    temperature: 0,
    isBuiltIn: true,
  },
  ...served,
  ...ofHub.filter(({ id }) => !served.some((one) => one.id === id)),
];

/**
 * The model to offer when the built-in one does not know: a model of the page's server, which takes one click, or
 * the one on the hub that answers most at its size.
 */
export const largerModel = /** @type {ModelChoice} */ (
  served[0] ?? models.find(({ id }) => id === 'smollm2-360m')
);
export const isServed = (/** @type {ModelChoice} */ model) => served.includes(model);

/** @param {string} url @returns {string} the file's name, to show */
export function nameOfUrl(url) {
  try {
    const path = new URL(url, globalThis.location?.href).pathname;
    return decodeURIComponent(path.slice(path.lastIndexOf('/') + 1)) || url;
  } catch {
    return url;
  }
}
