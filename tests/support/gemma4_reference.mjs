// Computes reference logits of Gemma 4 without per-layer embeddings, in double precision and one
// token at a time. The order of operations follows llama.cpp's graph (src/models/gemma4.cpp). If a reference
// file exists, results are compared with llama.cpp's.

import { keyValue, tensorValues } from './gguf_pieces.mjs';

/** @typedef {ArrayLike<number>} Row */
/** @typedef {number[]} Vector */

/** @param {Row} weights [rows, x.length] @param {Row} x @param {number} [from] row @param {number} [rows] */
function multiply(weights, x, from = 0, rows = weights.length / x.length - from) {
  return Array.from({ length: rows }, (_, r) => {
    const at = (from + r) * x.length;
    let sum = 0;
    for (let c = 0; c < x.length; c++) sum += weights[at + c] * x[c];
    return sum;
  });
}

/** @param {Vector} x @param {Vector} y */
const add = (x, y) => x.map((value, i) => value + y[i]);
/** @param {Vector} x @param {Row} y */
const times = (x, y) => x.map((value, i) => value * y[i]);

/** @param {Vector} x @param {number} epsilon @param {Row} [weight] */
function norm(x, epsilon, weight) {
  const scale = 1 / Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length + epsilon);
  return x.map((value, i) => value * scale * (weight === undefined ? 1 : weight[i]));
}

/** @param {number} x */
const gelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));

/** @param {Vector} x */
function softmax(x) {
  const most = Math.max(...x);
  const raised = x.map((value) => Math.exp(value - most));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((value) => value / sum);
}

/**
 * Rotates the halves of a head.
 * @param {Vector} head
 * @param {number} position
 * @param {number} base
 * @param {Row} [factors] frequency factors
 */
function rotate(head, position, base, factors) {
  const half = head.length / 2;
  const out = [...head];
  for (let i = 0; i < half; i++) {
    const angle = (position * base ** (-i / half)) / (factors === undefined ? 1 : factors[i]);
    out[i] = head[i] * Math.cos(angle) - head[i + half] * Math.sin(angle);
    out[i + half] = head[i] * Math.sin(angle) + head[i + half] * Math.cos(angle);
  }
  return out;
}

/** @param {Vector} x @param {number} size */
const heads = (x, size) =>
  Array.from({ length: x.length / size }, (_, h) => x.slice(h * size, (h + 1) * size));

/** @param {import('./gguf_pieces.mjs').Pieces} pieces */
function readModel(pieces) {
  /** @type {Map<string, Float32Array | undefined>} */
  const read = new Map();
  const find = (/** @type {string} */ name) => {
    if (!read.has(name)) read.set(name, tensorValues(pieces, name));
    return read.get(name);
  };
  const tensor = (/** @type {string} */ name) => {
    const values = find(name);
    if (values === undefined) throw new Error(`${name} is missing`);
    return values;
  };
  const key = (/** @type {string} */ name) => keyValue(pieces, `gemma4.${name}`);
  return { find, tensor, key, epsilon: key('attention.layer_norm_rms_epsilon') };
}

/** @typedef {ReturnType<typeof readModel>} Model */

/**
 * Returns x plus the normalized output of attention.
 * @param {Model} model
 * @param {number} layer
 * @param {Vector} x
 * @param {number} position
 * @param {{keys: Vector[][], values: Vector[][]}} seen keys and values of earlier tokens
 */
function attend({ find, tensor, key, epsilon }, layer, x, position, seen) {
  const own = (/** @type {string} */ name) => tensor(`blk.${layer}.${name}.weight`);
  const isWindow = key('attention.sliding_window_pattern')[layer];
  const suffix = isWindow ? '_swa' : '';
  const size = key(`attention.key_length${suffix}`);
  const base = key(`rope.freq_base${suffix}`);
  const factors = isWindow ? undefined : find('rope_freqs.weight');
  const input = norm(x, epsilon, own('attn_norm'));
  const turn = (/** @type {Vector} */ head, /** @type {Row} */ weight) =>
    rotate(norm(head, epsilon, weight), position, base, factors);
  const queries = heads(multiply(own('attn_q'), input), size).map((head) =>
    turn(head, own('attn_q_norm')),
  );
  const keys = multiply(own('attn_k'), input);
  const v = find(`blk.${layer}.attn_v.weight`);
  const values = v === undefined ? keys : multiply(v, input);
  seen.keys.push(heads(keys, size).map((head) => turn(head, own('attn_k_norm'))));
  seen.values.push(heads(values, size).map((head) => norm(head, epsilon)));
  const first = isWindow ? Math.max(0, position + 1 - key('attention.sliding_window')) : 0;
  const out = queries.flatMap((query, h) => {
    const kv = Math.floor((h * seen.keys[0].length) / queries.length);
    const scores = seen.keys.slice(first).map((of) => multiply(of[kv], query)[0]);
    return softmax(scores).reduce(
      (sum, weight, i) =>
        add(
          sum,
          seen.values[first + i][kv].map((value) => value * weight),
        ),
      query.map(() => 0),
    );
  });
  return norm(multiply(own('attn_output'), out), epsilon, own('post_attention_norm'));
}

/** @param {Row} gate @param {Row} up @param {Row} down @param {Vector} input */
function feedForward(gate, up, down, input) {
  const gated = multiply(gate, input).map(gelu);
  return multiply(down, times(gated, multiply(up, input)));
}

/**
 * Returns the combined output of a token's experts, before normalization.
 * @param {Model} model
 * @param {number} layer
 * @param {Vector} x
 */
function mixExperts({ find, tensor, key, epsilon }, layer, x) {
  const own = (/** @type {string} */ name) => tensor(`blk.${layer}.${name}`);
  const width = key('expert_feed_forward_length');
  const routed = times(norm(x, epsilon), own('ffn_gate_inp.scale')).map(
    (value) => value / Math.sqrt(x.length),
  );
  const weights = softmax(multiply(own('ffn_gate_inp.weight'), routed));
  const chosen = weights
    .map((weight, expert) => ({ weight, expert }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, key('expert_used_count'));
  const total = chosen.reduce((sum, { weight }) => sum + weight, 0);
  const input = norm(x, epsilon, own('pre_ffw_norm_2.weight'));
  const fused = find(`blk.${layer}.ffn_gate_up_exps.weight`);
  const scales = find(`blk.${layer}.ffn_down_exps.scale`);
  const part = (/** @type {Row} */ all, /** @type {number} */ first, /** @type {number} */ rows) =>
    Array.from({ length: rows * x.length }, (_, i) => all[first * x.length + i]);
  return chosen
    .map(({ weight, expert }) => {
      const gate = fused
        ? part(fused, 2 * expert * width, width)
        : part(own('ffn_gate_exps.weight'), expert * width, width);
      const up = fused
        ? part(fused, (2 * expert + 1) * width, width)
        : part(own('ffn_up_exps.weight'), expert * width, width);
      const down = part(own('ffn_down_exps.weight'), expert * width, width);
      const factor = ((scales?.[expert] ?? 1) * weight) / total;
      return feedForward(gate, up, down, input).map((value) => value * factor);
    })
    .reduce(add);
}

/** Returns the output of a layer's feed-forward network. @param {Model} model @param {number} layer @param {Vector} x */
function feed(model, layer, x) {
  const { find, tensor, epsilon } = model;
  const own = (/** @type {string} */ name) => tensor(`blk.${layer}.${name}.weight`);
  const input = norm(x, epsilon, own('ffn_norm'));
  let sum = feedForward(own('ffn_gate'), own('ffn_up'), own('ffn_down'), input);
  if (find(`blk.${layer}.ffn_gate_inp.weight`)) {
    sum = add(
      norm(sum, epsilon, own('post_ffw_norm_1')),
      norm(mixExperts(model, layer, x), epsilon, own('post_ffw_norm_2')),
    );
  }
  return norm(sum, epsilon, own('post_ffw_norm'));
}

/**
 * @param {import('./gguf_pieces.mjs').Pieces} pieces a file with F32 tensors
 * @param {number[]} tokens
 * @returns {Vector[]} logits after each token
 */
export function gemma4Logits(pieces, tokens) {
  const model = readModel(pieces);
  const { find, tensor, key, epsilon } = model;
  const hidden = key('embedding_length');
  const layers = key('block_count');
  const cap = key('final_logit_softcapping');
  const embedding = tensor('token_embd.weight');
  const seen = Array.from({ length: layers }, () => ({ keys: [], values: [] }));
  return tokens.map((token, position) => {
    let x = Array.from(embedding.subarray(token * hidden, (token + 1) * hidden));
    x = x.map((value) => value * Math.sqrt(hidden));
    for (let layer = 0; layer < layers; layer++) {
      x = add(x, attend(model, layer, x, position, seen[layer]));
      x = add(x, feed(model, layer, x));
      const scale = find(`blk.${layer}.layer_output_scale.weight`)?.[0] ?? 1;
      x = x.map((value) => value * scale);
    }
    const logits = multiply(
      find('output.weight') ?? embedding,
      norm(x, epsilon, tensor('output_norm.weight')),
    );
    return logits.map((value) => cap * Math.tanh(value / cap));
  });
}
