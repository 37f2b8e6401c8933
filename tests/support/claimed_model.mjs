// Writes the directory of a GGUF file (metadata and tensor list) for a Llama model of any size, without
// weights. If a model is too large, a host reads only the directory.

import { f32, pair, string, types, u32, u64 } from './gguf_bytes.mjs';

const F16 = 1;
/** @param {string} key @param {string[]} items */
const strings = (key, items) =>
  pair(key, types.array, u32(types.string), u64(items.length), ...items.map(string));

/** Returns the characters that represent bytes in GPT-2's vocabulary. */
function byteTokens() {
  let other = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(isPrintable ? byte : other++);
  });
}

/**
 * @param {{layers: number, hidden?: number, ffn?: number, context?: number}} shape heads have 64 values; there is one KV head
 * @returns {{bytes: Buffer, weightsBytes: number}} the directory, and the claimed size of the weights after it
 */
export function claimModel({ layers, hidden = 2048, ffn = 8192, context = 256 }) {
  const tokens = [...byteTokens(), 'th', 'he'];
  const metadata = [
    pair('general.architecture', types.string, string('llama')),
    pair('llama.block_count', types.u32, u32(layers)),
    pair('llama.context_length', types.u32, u32(context)),
    pair('llama.embedding_length', types.u32, u32(hidden)),
    pair('llama.feed_forward_length', types.u32, u32(ffn)),
    pair('llama.attention.head_count', types.u32, u32(hidden / 64)),
    pair('llama.attention.head_count_kv', types.u32, u32(1)),
    pair('llama.attention.layer_norm_rms_epsilon', types.f32, f32(1e-5)),
    pair('tokenizer.ggml.model', types.string, string('gpt2')),
    pair('tokenizer.ggml.pre', types.string, string('gpt-2')),
    strings('tokenizer.ggml.tokens', tokens),
    strings('tokenizer.ggml.merges', ['t h', 'h e']),
    pair('tokenizer.ggml.eos_token_id', types.u32, u32(0)),
  ];
  /** @type {[string, number[]][]} */
  const tensors = [
    ['token_embd.weight', [hidden, tokens.length]],
    ['output_norm.weight', [hidden]],
  ];
  for (let layer = 0; layer < layers; layer++) {
    /** @type {Record<string, number[]>} */
    const own = {
      attn_norm: [hidden],
      attn_q: [hidden, hidden],
      attn_k: [hidden, 64],
      attn_v: [hidden, 64],
      attn_output: [hidden, hidden],
      ffn_norm: [hidden],
      ffn_gate: [hidden, ffn],
      ffn_up: [hidden, ffn],
      ffn_down: [ffn, hidden],
    };
    for (const [name, dims] of Object.entries(own))
      tensors.push([`blk.${layer}.${name}.weight`, dims]);
  }
  let offset = 0;
  const list = tensors.map(([name, dims]) => {
    const type = dims.length === 1 ? 0 : F16;
    const info = Buffer.concat([
      ...[string(name), u32(dims.length), ...dims.map(u64), u32(type), u64(offset)],
    ]);
    const size = dims.reduce((all, dim) => all * dim, 1) * (type === F16 ? 2 : 4);
    offset += Math.ceil(size / 32) * 32;
    return info;
  });
  const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length)];
  const bytes = Buffer.concat([...head, ...metadata, ...list]);
  const padding = Buffer.alloc((32 - (bytes.length % 32)) % 32);
  return { bytes: Buffer.concat([bytes, padding]), weightsBytes: offset };
}
