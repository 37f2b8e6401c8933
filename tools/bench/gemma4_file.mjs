// Writes GGUF files with random weights and the architecture of Gemma 4 with per-layer embeddings.
// The number of layers and the vocabulary size can be reduced. `e2b` has the dimensions of Gemma 4
// E2B as far as they affect speed, except that all feed-forward layers have the same width.

import { closeSync, openSync, writeSync } from 'node:fs';
import { f32, pair, string, types, u32, u64 } from '../../tests/support/gguf_bytes.mjs';

/**
 * @typedef {{layers: number, hidden: number, ffn: number, heads: number, kvHeads: number, headDim: number,
 *   windowHeadDim: number, window: number, perLayer: number, vocab: number, context: number}} Shape
 */

/** @type {Shape} */
export const e2b = {
  ...{
    layers: 35,
    hidden: 1536,
    ffn: 6144,
    heads: 8,
    kvHeads: 1,
    headDim: 512,
    windowHeadDim: 256,
  },
  ...{ window: 512, perLayer: 256, vocab: 262144, context: 4096 },
};

/** Maps each type to GGML's number for it, the values and bytes per block, and the standard deviation of the codes. */
const blocks = {
  F32: { id: 0, values: 1, bytes: 4, deviation: 1 },
  Q4_0: { id: 2, values: 32, bytes: 18, deviation: 4.61 },
  Q8_0: { id: 8, values: 32, bytes: 34, deviation: 73.6 },
};
/** @typedef {keyof typeof blocks} Type */
/** @typedef {{name: string, type: Type, dims: number[], fill: number}} Tensor */

const STRIP_BYTES = 18 * 34 * 1024;
const BOOL = 7;
const I32 = 5;

/** @param {number} value from 2^-14 to 1 @returns {number} its bits as a half float */
function halfOf(value) {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | Math.min(1023, Math.round((value / 2 ** exponent - 1) * 1024));
}

/** Returns a generator of 32-bit random numbers (xorshift). @param {number} seed */
function randomBits(seed) {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  };
}

/** Makes random blocks whose values have the given standard deviation. @param {Type} type @param {number} deviation */
function strip(type, deviation) {
  const { bytes, deviation: unit } = blocks[type];
  const out = Buffer.alloc(STRIP_BYTES);
  const next = randomBits(bytes * 7919);
  for (let at = 0; at < STRIP_BYTES; at += 4) out.writeInt32LE(next(), at);
  const scale = deviation / unit;
  for (let at = 0; at < STRIP_BYTES; at += bytes) {
    out.writeUInt16LE(halfOf(scale * (0.75 + 0.5 * ((out[at] & 255) / 255))), at);
  }
  return out;
}

/**
 * @param {Shape} shape
 * @param {Type} type of the matrices
 * @param {Type} tables
 * @returns {Tensor[]}
 */
function listTensors(shape, type, tables) {
  const { layers, hidden, ffn, heads, kvHeads, perLayer, vocab } = shape;
  const all = layers * perLayer;
  /** @param {string} name @param {number} cols @param {number} rows @param {Type} [of] @returns {Tensor} */
  const matrix = (name, cols, rows, of = type) => ({
    ...{ name, type: of, dims: [cols, rows], fill: 1 / Math.sqrt(cols) },
  });
  /** @param {string} name @param {number} count @returns {Tensor} */
  const vector = (name, count) => ({ name, type: 'F32', dims: [count], fill: 1 });
  const tensors = [
    matrix('token_embd.weight', hidden, vocab, tables),
    vector('output_norm.weight', hidden),
    vector('rope_freqs.weight', shape.headDim / 2),
    matrix('per_layer_token_embd.weight', all, vocab, tables),
    matrix('per_layer_model_proj.weight', hidden, all),
    vector('per_layer_proj_norm.weight', perLayer),
  ];
  for (let layer = 0; layer < layers; layer++) {
    const dim = isWide(layer) ? shape.headDim : shape.windowHeadDim;
    const name = (/** @type {string} */ own) => `blk.${layer}.${own}.weight`;
    const ownKeys = [
      matrix(name('attn_k'), hidden, kvHeads * dim),
      vector(name('attn_k_norm'), dim),
      matrix(name('attn_v'), hidden, kvHeads * dim),
    ];
    tensors.push(
      vector(name('attn_norm'), hidden),
      matrix(name('attn_q'), hidden, heads * dim),
      vector(name('attn_q_norm'), dim),
      ...ownKeys,
      matrix(name('attn_output'), heads * dim, hidden),
      vector(name('post_attention_norm'), hidden),
      vector(name('ffn_norm'), hidden),
      matrix(name('ffn_gate'), hidden, ffn),
      matrix(name('ffn_up'), hidden, ffn),
      matrix(name('ffn_down'), ffn, hidden),
      vector(name('post_ffw_norm'), hidden),
      vector(name('layer_output_scale'), 1),
      matrix(name('inp_gate'), hidden, perLayer),
      matrix(name('proj'), perLayer, hidden),
      vector(name('post_norm'), hidden),
    );
  }
  return tensors;
}

/** Returns whether a layer attends to all tokens: every fifth one does. @param {number} layer */
const isWide = (layer) => layer % 5 === 4;

/** @param {Shape} shape */
function metadataOf(shape) {
  const { layers, vocab } = shape;
  const names = ['<pad>', '<eos>', '<bos>', '<unk>'];
  const tokens = Array.from({ length: vocab }, (_, i) => {
    if (i < 4) return names[i];
    if (i < 260) return `<0x${(i - 4).toString(16).toUpperCase().padStart(2, '0')}>`;
    return `t${i.toString(36)}`;
  });
  const kinds = tokens.map((_, i) => (i < 3 ? 3 : i === 3 ? 2 : i < 260 ? 6 : 1));
  const text = (/** @type {string} */ key, /** @type {string} */ value) =>
    pair(key, types.string, string(value));
  const whole = (/** @type {string} */ key, /** @type {number} */ value) =>
    pair(key, types.u32, u32(value));
  const real = (/** @type {string} */ key, /** @type {number} */ value) =>
    pair(key, types.f32, f32(value));
  /** @param {string} key @param {number} type @param {Buffer[]} items */
  const list = (key, type, items) =>
    pair(key, types.array, u32(type), u64(items.length), Buffer.concat(items));
  const pattern = Array.from({ length: layers }, (_, i) => Buffer.from([isWide(i) ? 0 : 1]));
  return [
    text('general.architecture', 'gemma4'),
    text('general.name', 'random weights in the shape of Gemma 4'),
    whole('gemma4.context_length', shape.context),
    whole('gemma4.embedding_length', shape.hidden),
    whole('gemma4.block_count', layers),
    whole('gemma4.feed_forward_length', shape.ffn),
    whole('gemma4.attention.head_count', shape.heads),
    whole('gemma4.attention.head_count_kv', shape.kvHeads),
    real('gemma4.attention.layer_norm_rms_epsilon', 1e-6),
    whole('gemma4.attention.key_length', shape.headDim),
    whole('gemma4.attention.value_length', shape.headDim),
    whole('gemma4.rope.dimension_count', shape.headDim),
    real('gemma4.rope.freq_base', 1e6),
    whole('gemma4.attention.key_length_swa', shape.windowHeadDim),
    whole('gemma4.attention.value_length_swa', shape.windowHeadDim),
    whole('gemma4.rope.dimension_count_swa', shape.windowHeadDim),
    real('gemma4.rope.freq_base_swa', 1e4),
    whole('gemma4.attention.sliding_window', shape.window),
    list('gemma4.attention.sliding_window_pattern', BOOL, pattern),
    whole('gemma4.attention.shared_kv_layers', 0),
    real('gemma4.final_logit_softcapping', 30),
    whole('gemma4.embedding_length_per_layer_input', shape.perLayer),
    text('tokenizer.ggml.model', 'llama'),
    list('tokenizer.ggml.tokens', types.string, tokens.map(string)),
    list(
      'tokenizer.ggml.scores',
      types.f32,
      tokens.map((_, i) => f32(-i)),
    ),
    list('tokenizer.ggml.token_type', I32, kinds.map(u32)),
    whole('tokenizer.ggml.bos_token_id', 2),
    whole('tokenizer.ggml.eos_token_id', 1),
    whole('tokenizer.ggml.unknown_token_id', 3),
  ];
}

/** @param {Tensor} tensor */
const bytesOf = ({ type, dims }) =>
  (dims.reduce((a, b) => a * b, 1) / blocks[type].values) * blocks[type].bytes;
const padded = (/** @type {number} */ bytes) => Math.ceil(bytes / 32) * 32;

/**
 * @param {string} path
 * @param {Shape} shape
 * @param {{type?: Type, tables?: Type}} [of] types of the layers' matrices and of the two tables
 */
export function writeGemma4(path, shape, { type = 'Q4_0', tables = 'Q8_0' } = {}) {
  const tensors = listTensors(shape, type, tables);
  const metadata = metadataOf(shape);
  let offset = 0;
  const entries = tensors.map((tensor) => {
    const { name, dims } = tensor;
    const at = offset;
    offset += padded(bytesOf(tensor));
    const own = [string(name), u32(dims.length), ...dims.map(u64)];
    return Buffer.concat([...own, u32(blocks[tensor.type].id), u64(at)]);
  });
  const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length)];
  const directory = Buffer.concat([...head, ...metadata, ...entries]);
  const file = openSync(path, 'w');
  writeSync(file, directory);
  writeSync(file, Buffer.alloc(padded(directory.length) - directory.length));
  for (const tensor of tensors) writeTensor(file, tensor);
  closeSync(file);
}

/** @param {number} file @param {Tensor} tensor */
function writeTensor(file, tensor) {
  const size = bytesOf(tensor);
  const filled =
    tensor.type === 'F32'
      ? Buffer.concat(Array.from({ length: tensor.dims[0] }, () => f32(tensor.fill)))
      : strip(tensor.type, tensor.fill);
  for (let done = 0; done < size; done += filled.length) {
    writeSync(file, filled, 0, Math.min(filled.length, size - done));
  }
  writeSync(file, Buffer.alloc(padded(size) - size));
}
