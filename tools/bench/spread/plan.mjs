// Plans and calculations for tools/bench/spread.mjs: the matrices of a shape, the helpers' shares, and the
// estimated times with more workers than the machine has cores.

/**
 * @typedef {import('./instance.js').Matrix} Matrix
 * @typedef {{hidden: number, ffn: number, heads: number, kvHeads: number, headDim: number, layers: number, vocab: number}} Shape
 * @typedef {{share: number, bytes: number, us: number, count: number}} Kind of product: the share
 * of each helper, the mean payload of a message, the time on one thread, and the number of times it
 * occurs in a pass
 */

/** @type {Record<string, Shape>} from src/lab/synth_shape.c, and Qwen3-4B's published configuration */
export const shapes = {
  'SmolLM2-135M': {
    ...{ hidden: 576, ffn: 1536, heads: 9, kvHeads: 3, headDim: 64, layers: 30, vocab: 49_152 },
  },
  'Qwen2.5-0.5B': {
    ...{ hidden: 896, ffn: 4864, heads: 14, kvHeads: 2, headDim: 64, layers: 24, vocab: 151_936 },
  },
  'Qwen3-1.7B': {
    ...{ hidden: 2048, ffn: 6144, heads: 16, kvHeads: 8, headDim: 128, layers: 28, vocab: 151_936 },
  },
  'Qwen3-4B': {
    ...{ hidden: 2560, ffn: 9728, heads: 32, kvHeads: 8, headDim: 128, layers: 36, vocab: 151_936 },
  },
};

/** GGML's number of each type, and its values and bytes per block. */
const types = {
  q4_0: { number: 2, values: 32, bytes: 18 },
  q5_0: { number: 6, values: 32, bytes: 22 },
  q8_0: { number: 8, values: 32, bytes: 34 },
  q4_k: { number: 12, values: 256, bytes: 144 },
  q6_k: { number: 14, values: 256, bytes: 210 },
};
/** @typedef {keyof typeof types} Type */

/**
 * Returns the type that llama-quantize uses for rows that are not a multiple of the block size.
 * @param {Type} type
 * @param {number} cols
 * @returns {Type}
 */
function fittingType(type, cols) {
  if (cols % types[type].values === 0) return type;
  return type === 'q6_k' ? 'q8_0' : 'q5_0';
}

/** Returns whether v and down are Q6_K in Q4_K_M. @param {number} layer @param {number} layers */
function usesMoreBits(layer, layers) {
  const eighth = Math.floor(layers / 8);
  return layer < eighth || layer >= 7 * eighth || (layer - eighth) % 3 === 2;
}

/** If all layers together need more bytes than this, fewer layers are built and reused. */
const LAYERS_BYTES = 256 << 20;

/**
 * Returns the products of `slots` layers (q, k and v; attention's output; gate and up; down), then the output.
 * @param {Shape} shape
 * @param {'q4_0' | 'q4_k_m'} mix
 * @returns {{products: Matrix[][], slots: number}}
 */
export function planMatrices({ hidden, ffn, heads, kvHeads, headDim, layers, vocab }, mix) {
  const [q, kv] = [heads * headDim, kvHeads * headDim];
  let seed = 1;
  let bytes = 0;
  const matrix = (
    /** @type {Type} */ wanted,
    /** @type {number} */ rows,
    /** @type {number} */ cols,
  ) => {
    const type = types[fittingType(wanted, cols)];
    bytes += ((rows * cols) / type.values) * type.bytes;
    return { seed: seed++, type: type.number, cols, rows };
  };
  /** @type {Type} */
  const usual = mix === 'q4_0' ? 'q4_0' : 'q4_k';
  const products = [];
  let slots = 0;
  while (slots < layers && bytes < LAYERS_BYTES) {
    const more = mix === 'q4_k_m' && usesMoreBits(slots, layers) ? 'q6_k' : usual;
    products.push(
      [matrix(usual, q, hidden), matrix(usual, kv, hidden), matrix(more, kv, hidden)],
      [matrix(usual, hidden, q)],
      [matrix(usual, ffn, hidden), matrix(usual, ffn, hidden)],
      [matrix(more, hidden, ffn)],
    );
    slots++;
  }
  products.push([matrix('q6_k', vocab, hidden)]);
  return { products, slots };
}

/** The minimum share of a product's time that splitting it must save. */
const LEAST_SAVING = 0.05;

/**
 * Returns the share per helper for which helpers and main finish at the same time; 0 if an exchange
 * costs more than it saves.
 * @param {number} us time of the product on one thread
 * @param {number} exchangeUs time of an exchange without work
 * @param {number} helpers
 * @returns {number}
 */
export function fitShare(us, exchangeUs, helpers) {
  const share = (1 - exchangeUs / us) / (helpers + 1);
  return share * helpers < LEAST_SAVING ? 0 : share;
}

const GROUP = 8;

/**
 * @param {number} rows of a matrix, a multiple of 8
 * @param {number} share of each helper
 * @param {number} helpers
 * @returns {number[]} the end of main's rows, then the ends of each helper's rows
 */
export function splitRows(rows, share, helpers) {
  const each = Math.round((rows / GROUP) * share) * GROUP;
  return Array.from({ length: helpers + 1 }, (_, i) => rows - each * (helpers - i));
}

/**
 * @param {Kind[]} kinds
 * @param {number} restUs time per pass outside matrix products
 * @param {number} helpers
 * @param {(bytes: number) => number} exchangeUs
 * @returns {number} microseconds of a pass
 */
export function passTime(kinds, restUs, helpers, exchangeUs) {
  const timeOf = (/** @type {Kind} */ { share, bytes, us }) =>
    share === 0 ? us : Math.max(us * (1 - helpers * share), us * share + exchangeUs(bytes));
  return kinds.reduce((sum, kind) => sum + kind.count * timeOf(kind), restUs);
}

/** Interpolates linearly between measured points, and is constant beyond the first and the last. @param {[number, number][]} points */
export function interpolate(points) {
  return (/** @type {number} */ x) => {
    const next = Math.min(
      Math.max(1, points.findIndex(([at]) => at >= x) >>> 0),
      points.length - 1,
    );
    const [[x0, y0], [x1, y1]] = [points[next - 1], points[next]];
    return x <= x0 ? y0 : y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
  };
}
