// js/pipeline/tensor.js — a tensor class like that of transformers.js.

import { WickError } from '../index.js';

export class Tensor {
  /** @param {'float32'} type @param {Float32Array} data @param {number[]} dims whose product is the data's length */
  constructor(type, data, dims) {
    this.type = type;
    this.data = data;
    this.dims = dims;
  }

  get size() {
    return this.data.length;
  }

  /** @returns {any[]} nested arrays of numbers */
  tolist() {
    const nested = (/** @type {number} */ at, /** @type {number[]} */ [count, ...inner]) => {
      if (inner.length === 0) return Array.from(this.data.subarray(at, at + count));
      const step = inner.reduce((product, one) => product * one, 1);
      /** @type {any[]} */
      const list = [];
      for (let i = 0; i < count; i++) list.push(nested(at + i * step, inner));
      return list;
    };
    return nested(0, this.dims);
  }

  /** Yields the tensors along the first dimension. */
  *[Symbol.iterator]() {
    const [count, ...inner] = this.dims;
    const step = this.data.length / count;
    for (let i = 0; i < count; i++) {
      yield new Tensor(this.type, this.data.subarray(i * step, (i + 1) * step), inner);
    }
  }
}

/**
 * Returns the vectors of texts, or of their tokens, as a tensor. Shorter texts are padded with
 * zeros.
 * @param {Float32Array[]} rows one for each text
 * @param {number[]} counts tokens of each text; if empty, each text has one vector
 * @returns {Tensor} [texts, width] or [texts, tokens, width]
 */
export function tensorOf(rows, counts) {
  const most = Math.max(1, ...counts);
  const width = rows.length === 0 ? 0 : rows[0].length / (counts[0] ?? 1);
  const data = new Float32Array(rows.length * most * width);
  for (const [index, row] of rows.entries()) data.set(row, index * most * width);
  const dims = counts.length === 0 ? [rows.length, width] : [rows.length, most, width];
  return new Tensor('float32', data, dims);
}

/**
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number} the cosine of the angle between them
 */
export function cos_sim(a, b) {
  if (a.length !== b.length) throw new WickError('ARG', 'cos_sim needs vectors of equal length');
  let [product, squareA, squareB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    product += a[i] * b[i];
    squareA += a[i] * a[i];
    squareB += b[i] * b[i];
  }
  return product / Math.sqrt(squareA * squareB);
}
