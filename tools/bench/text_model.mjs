// Writes a text model whose weights are zeros, for measuring image encoders: it is as wide as the encoder's
// rows, has few layers so that evaluating the rows takes little time, and has tokens for the markers
// that llama.cpp and Wick insert around images.

import { writeFileSync } from 'node:fs';
import { f32, pair, string, types, u32, u64 } from '../../tests/support/gguf_bytes.mjs';

const [F32, F16] = [0, 1];
const ALIGNMENT = 32;
const LAYERS = 3; // the number of layers to which encoders of Qwen3-VL add rows
const [HEADS, HEAD_DIM, FFN] = [2, 64, 256];
const [NORMAL, CONTROL] = [1, 3];

const places = Array.from({ length: 6 }, (_, row) =>
  Array.from({ length: 6 }, (_, column) => `row_${row + 1}_col_${column + 1}`),
).flat();
const marks = [
  ...['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
  ...['<fake_token_around_image>', '<global-img>', '<image>', ...places.map((at) => `<${at}>`)],
  ...['<|image_start|>', '<|image_end|>', '<|img_thumbnail|>'],
  ...places.map((at) => `<|img_${at}|>`),
  ...['<|vision_start|>', '<|vision_end|>', '<|image_pad|>', '<|image>', '<image|>'],
];

/** Tokens merged from two others; SmolVLM's prompt contains the last one, two line breaks. */
const merged = [
  ['t', 'h'],
  ['h', 'e'],
  ['Ċ', 'Ċ'],
];
const MARKS = 256 + merged.length; // the id of the first marker

/** Returns the characters that stand for bytes in GPT-2's vocabulary. */
function byteTokens() {
  let other = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(isPrintable ? byte : other++);
  });
}

/** @param {string} key @param {number} type @param {Buffer[]} items */
const list = (key, type, items) => pair(key, types.array, u32(type), u64(items.length), ...items);

/** @param {number} width @param {number} tokens @returns {[name: string, dims: number[]][]} */
function tensorsOf(width, tokens) {
  const layer = (/** @type {number} */ index) =>
    Object.entries({
      ...{ attn_norm: [width], attn_q_norm: [HEAD_DIM], attn_k_norm: [HEAD_DIM] },
      ...{ attn_q: [width, HEADS * HEAD_DIM], attn_k: [width, HEADS * HEAD_DIM] },
      ...{ attn_v: [width, HEADS * HEAD_DIM], attn_output: [HEADS * HEAD_DIM, width] },
      ...{ ffn_norm: [width], ffn_gate: [width, FFN], ffn_up: [width, FFN] },
      ffn_down: [FFN, width],
    }).map(
      ([name, dims]) => /** @type {[string, number[]]} */ ([`blk.${index}.${name}.weight`, dims]),
    );
  return [
    ['token_embd.weight', [width, tokens]],
    ['output_norm.weight', [width]],
    ...Array.from({ length: LAYERS }, (_, index) => layer(index)).flat(),
  ];
}

/** @param {number} width @param {number} deepstacks @param {string[]} tokens */
function metadataOf(width, deepstacks, tokens) {
  const number = (/** @type {string} */ key, /** @type {number} */ value) =>
    pair(`qwen3vl.${key}`, types.u32, u32(value));
  const kinds = tokens.map((_, index) => u32(index < MARKS ? NORMAL : CONTROL));
  const pairs = merged.map((two) => string(two.join(' ')));
  const merges = list('tokenizer.ggml.merges', types.string, pairs);
  const sections = [12, 10, 10, 0].map(u32);
  return [
    pair('general.architecture', types.string, string('qwen3vl')),
    number('block_count', LAYERS),
    number('context_length', 4096),
    number('embedding_length', width),
    number('feed_forward_length', FFN),
    number('attention.head_count', HEADS),
    number('attention.head_count_kv', HEADS),
    number('attention.key_length', HEAD_DIM),
    number('attention.value_length', HEAD_DIM),
    number('n_deepstack_layers', deepstacks),
    pair('qwen3vl.attention.layer_norm_rms_epsilon', types.f32, f32(1e-6)),
    list('qwen3vl.rope.dimension_sections', 5, sections),
    pair('tokenizer.ggml.model', types.string, string('gpt2')),
    pair('tokenizer.ggml.pre', types.string, string('qwen2')),
    list('tokenizer.ggml.tokens', types.string, tokens.map(string)),
    list('tokenizer.ggml.token_type', 5, kinds),
    merges,
    pair('tokenizer.ggml.bos_token_id', types.u32, u32(MARKS)),
    pair('tokenizer.ggml.eos_token_id', types.u32, u32(MARKS + 2)),
    pair('tokenizer.ggml.add_bos_token', 7, Buffer.from([0])),
    pair(
      'tokenizer.chat_template',
      types.string,
      string('{% for message in messages %}{{ message.content }}{% endfor %}'),
    ),
  ];
}

/**
 * Writes a model of the Qwen3-VL family.
 * @param {string} path
 * @param {number} width of the encoder's rows
 * @param {number} deepstacks number of first layers to which the encoder adds rows
 */
export function writeTextModel(path, width, deepstacks) {
  const tokens = [...byteTokens(), ...merged.map((two) => two.join('')), ...marks];
  const metadata = metadataOf(width, deepstacks, tokens);
  const tensors = tensorsOf(width, tokens.length);
  let end = 0;
  const entries = tensors.map(([name, dims]) => {
    const type = dims.length === 1 ? F32 : F16;
    const entry = [string(name), u32(dims.length), ...dims.map(u64), u32(type), u64(end)];
    end += dims.reduce((a, b) => a * b, type === F32 ? 4 : 2);
    end = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    return Buffer.concat(entry);
  });
  const head = Buffer.concat([
    ...[Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length)],
    ...metadata,
    ...entries,
  ]);
  const gap = Math.ceil(head.length / ALIGNMENT) * ALIGNMENT - head.length;
  writeFileSync(path, Buffer.concat([head, Buffer.alloc(gap + end)]));
}
