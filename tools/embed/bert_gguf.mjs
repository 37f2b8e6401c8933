// Converts a sentence-transformers embedder with BERT's architecture (MiniLM, bge, e5, arctic) to GGUF
// in F32, with the names that llama.cpp's converter uses. `wick quantize` converts it to other types.
//   node tools/embed/bert_gguf.mjs FOLDER OUT.gguf
// FOLDER contains config.json, model.safetensors, vocab.txt and, for its pooling, 1_Pooling/config.json.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GgufWriter } from './gguf_writer.mjs';
import { readSafetensors } from './safetensors.mjs';

const poolings = { mean: 1, cls: 2 };
const tokenTypes = { normal: 1, unknown: 2, control: 3 };

/** The special tokens: their keys in the file, and their entries in the vocabulary. */
const specials = {
  bos: '[CLS]',
  eos: '[SEP]',
  unknown: '[UNK]',
  seperator: '[SEP]', // llama.cpp's spelling
  padding: '[PAD]',
  cls: '[CLS]',
  mask: '[MASK]',
};

/** The GGUF names of a layer's tensors, by their names in sentence-transformers. */
const layerNames = {
  'attention.self.query': 'attn_q',
  'attention.self.key': 'attn_k',
  'attention.self.value': 'attn_v',
  'attention.output.dense': 'attn_output',
  'attention.output.LayerNorm': 'attn_output_norm',
  'intermediate.dense': 'ffn_up',
  'output.dense': 'ffn_down',
  'output.LayerNorm': 'layer_output_norm',
};

/** Lists [GGUF name, sentence-transformers name] of all tensors. @param {number} layers @returns {[string, string][]} */
function tensorNames(layers) {
  const of = (/** @type {number} */ layer) =>
    Object.entries(layerNames).flatMap(([theirs, ours]) =>
      ['weight', 'bias'].map((part) => [
        `blk.${layer}.${ours}.${part}`,
        `encoder.layer.${layer}.${theirs}.${part}`,
      ]),
    );
  return /** @type {[string, string][]} */ ([
    ['token_embd.weight', 'embeddings.word_embeddings.weight'],
    ['position_embd.weight', 'embeddings.position_embeddings.weight'],
    ['token_types.weight', 'embeddings.token_type_embeddings.weight'],
    ['token_embd_norm.weight', 'embeddings.LayerNorm.weight'],
    ['token_embd_norm.bias', 'embeddings.LayerNorm.bias'],
    ...Array.from({ length: layers }, (_, layer) => of(layer)).flat(),
  ]);
}

/** @param {string} folder */
function readPooling(folder) {
  const path = join(folder, '1_Pooling/config.json');
  if (!existsSync(path)) return poolings.mean;
  const found = JSON.parse(readFileSync(path, 'utf8'));
  if (found.pooling_mode_mean_tokens) return poolings.mean;
  if (found.pooling_mode_cls_token) return poolings.cls;
  throw new Error(`${path}: pooling must be by mean or by the first token`);
}

/** WordPiece marks tokens that continue a word (##ing); GGUF marks tokens that begin one (▁walk). @param {string} piece */
function spell(piece) {
  if (/^\[.+\]$/.test(piece)) return piece;
  return piece.startsWith('##') ? piece.slice(2) : `\u2581${piece}`;
}

/** @param {string} piece */
function tokenType(piece) {
  if (piece === specials.unknown) return tokenTypes.unknown;
  return Object.values(specials).includes(piece) ? tokenTypes.control : tokenTypes.normal;
}

/**
 * @param {GgufWriter} file
 * @param {string[]} pieces
 * @param {number} types the number of segment types
 */
function writeTokenizer(file, pieces, types) {
  file.set('tokenizer.ggml.model', 'string', 'bert');
  file.set('tokenizer.ggml.pre', 'string', 'default');
  file.setList('tokenizer.ggml.tokens', 'string', pieces.map(spell));
  file.setList('tokenizer.ggml.token_type', 'i32', pieces.map(tokenType));
  for (const [name, piece] of Object.entries(specials)) {
    const id = pieces.indexOf(piece);
    if (id < 0) throw new Error(`vocab.txt: ${piece} is missing`);
    file.set(`tokenizer.ggml.${name}_token_id`, 'u32', id);
  }
  file.set('tokenizer.ggml.token_type_count', 'u32', types);
}

/** @param {GgufWriter} file @param {any} config @param {string} name @param {number} pooling */
function writeShape(file, config, name, pooling) {
  file.set('general.architecture', 'string', 'bert');
  file.set('general.name', 'string', name);
  file.set('general.file_type', 'u32', 0);
  file.set('bert.context_length', 'u32', config.max_position_embeddings);
  file.set('bert.embedding_length', 'u32', config.hidden_size);
  file.set('bert.feed_forward_length', 'u32', config.intermediate_size);
  file.set('bert.block_count', 'u32', config.num_hidden_layers);
  file.set('bert.attention.head_count', 'u32', config.num_attention_heads);
  file.set('bert.attention.layer_norm_epsilon', 'f32', config.layer_norm_eps);
  file.set('bert.attention.causal', 'bool', false);
  file.set('bert.pooling_type', 'u32', pooling);
}

/** @param {string} folder @returns {Uint8Array} the GGUF file */
export function convertBert(folder) {
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  if (config.model_type !== 'bert' || !['gelu', 'gelu_new'].includes(config.hidden_act)) {
    throw new Error(
      `${folder}: ${config.model_type} with ${config.hidden_act} is not a BERT model with GELU`,
    );
  }
  const pieces = readFileSync(join(folder, 'vocab.txt'), 'utf8').replace(/\n$/, '').split('\n');
  if (pieces.length !== config.vocab_size) {
    throw new Error(
      `${folder}: vocab.txt has ${pieces.length} tokens, config.json has ${config.vocab_size}`,
    );
  }
  const file = new GgufWriter();
  writeShape(file, config, basename(config._name_or_path ?? folder), readPooling(folder));
  writeTokenizer(file, pieces, config.type_vocab_size);
  const tensors = readSafetensors(readFileSync(join(folder, 'model.safetensors')));
  for (const [name, source] of tensorNames(config.num_hidden_layers)) {
    const tensor = tensors.get(source) ?? tensors.get(`bert.${source}`);
    if (tensor?.type !== 'F32')
      throw new Error(`${source}: type is ${tensor?.type ?? 'missing'}, must be F32`);
    file.add({ name, shape: tensor.shape, bytes: tensor.bytes });
  }
  return file.finish();
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [folder, out] = process.argv.slice(2);
  if (!out) {
    console.error('usage: node tools/embed/bert_gguf.mjs FOLDER OUT.gguf');
    process.exit(2);
  }
  writeFileSync(out, convertBert(folder));
}
