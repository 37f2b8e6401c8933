// Changes keys of reference models, one at a time: a missing key has its default (as in llama.cpp), the error
// for a missing required key contains its name, and values out of range are rejected.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { f32, pair, string, types, u32, u64 } from '../support/gguf_bytes.mjs';
import { readPieces, writePieces } from '../support/gguf_pieces.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const vectors = join(shared.path, 'vectors');
const temporary = temporaryFolder();
const BOOL = 7;

// ---- a file with a changed key ----

/** @typedef {{u32?: number, f32?: number, flag?: boolean, text?: string, list?: number[]} | undefined} Value undefined: the key is missing */

/** @param {string} key @param {NonNullable<Value>} value */
function keyBytes(key, value) {
  if (value.f32 !== undefined) return pair(key, types.f32, f32(value.f32));
  if (value.flag !== undefined) return pair(key, BOOL, Buffer.from([value.flag ? 1 : 0]));
  if (value.list !== undefined) {
    const head = [u32(types.f32), u64(value.list.length)];
    return pair(key, types.array, ...head, ...value.list.map(f32));
  }
  if (value.text !== undefined) return pair(key, types.string, string(value.text));
  return pair(key, types.u32, u32(value.u32 ?? 0));
}

let written = 0;

/**
 * @param {string} id of the model
 * @param {string} name of the key, without its architecture; Apertus' activation keys have none
 * @param {Value} value
 * @returns {string} the path of the changed file
 */
function withKey(id, name, value) {
  const path = join(vectors, more.has(id) ? 'reference-more' : 'reference', 'models', `${id}.gguf`);
  const pieces = readPieces(path);
  const architecture = pieces.keys.get('general.architecture')?.toString('utf8', 8 + 20 + 4 + 8);
  const key = name.startsWith('xielu.') ? name : `${architecture}.${name}`;
  pieces.keys.delete(key);
  if (value !== undefined) pieces.keys.set(key, keyBytes(key, value));
  const out = join(temporary, `${written++}.gguf`);
  writeFileSync(out, writePieces(pieces));
  return out;
}

const more = new Set([
  'minicpm',
  'dots1',
  'glm4moe-mtp',
  'ernie4_5-moe',
  'phimoe',
  'lfm2moe',
  'qwen35moe',
  'hunyuan-moe',
  'rwkv7',
  'deepseek2-v3',
  'minicpm3',
  'gemma3n',
  'gemma3n-shared',
  'nemotron_h_moe',
  'granitehybrid',
  'hunyuan-dense',
  'smallthinker',
  'apertus',
]);

/** @param {string} id @param {string} name @param {Value} value */
async function logitsOf(id, name, value) {
  const tokens = Array.from({ length: 12 }, (_, i) => 5 + ((i * 7) % 40)).join(',');
  const args = ['logits', withKey(id, name, value), '--tokens', tokens, '--out', '-'];
  const { code, stdout, stderr } = await wick(native, args);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** @param {string} id @param {string} name @param {Value} value @param {RegExp} says */
async function assertRefused(id, name, value, says) {
  const path = withKey(id, name, value);
  const { code, stderr } = await wick(native, ['logits', path, '--tokens', '1', '--out', '-']);
  assert.equal(code, 3, stderr);
  assert.match(stderr, says);
}

// ---- defaults ----

/** A model, a key, its default, and a different value. @type {[string, string, Value, Value][]} */
const defaults = [
  ['llama', 'rope.freq_base', { f32: 10000 }, { f32: 10100 }],
  ['llama-rope-linear', 'rope.scaling.type', { text: 'linear' }, { text: 'none' }],
  ['llama-rope-yarn', 'rope.scaling.type', { text: 'linear' }, { text: 'yarn' }],
  ['llama-rope-linear', 'rope.scaling.factor', { f32: 1 }, { f32: 2 }],
  ['llama-rope-yarn', 'rope.scaling.yarn_beta_fast', { f32: 32 }, { f32: 3 }],
  ['llama-rope-yarn', 'rope.scaling.yarn_beta_slow', { f32: 1 }, { f32: 3 }],
  ['llama-rope-yarn', 'rope.scaling.attn_factor', { f32: 1 }, { f32: 2 }],
  ['gemma2', 'final_logit_softcapping', { f32: 30 }, { f32: 31 }],
  ['gemma2', 'attn_logit_softcapping', { f32: 50 }, { f32: 51 }],
  ['gemma3', 'rope.freq_base_swa', { f32: 10000 }, { f32: 10100 }],
  // the file's "rope.freq_base"
  ['gemma2', 'rope.freq_base_swa', { f32: 10000 }, { f32: 10100 }],
  ['gpt-oss', 'rope.freq_base_swa', { f32: 150000 }, { f32: 10000 }],
  ['smallthinker', 'rope.freq_base_swa', { f32: 1500000 }, { f32: 10000 }],
  ['gemma3', 'attention.sliding_window_pattern', { u32: 6 }, { u32: 1 }],
  ['dots1', 'expert_weights_scale', { f32: 1 }, { f32: 2 }],
  ['dots1', 'expert_weights_scale', { f32: 0 }, { f32: 2 }], // older files use 0 for none
  ['dots1', 'expert_gating_func', { u32: 1 }, { u32: 2 }],
  ['dots1', 'expert_weights_norm', { flag: false }, { flag: true }],
  ['glm4moe-mtp', 'expert_weights_norm', { flag: true }, { flag: false }],
  ['gptneox', 'use_parallel_residual', { flag: true }, { flag: false }],
  ['command-r', 'logit_scale', { f32: 1 }, { f32: 2 }],
  ['cohere2', 'attention.sliding_window_pattern', { u32: 4 }, { u32: 2 }],
  ['cohere2', 'logit_scale', { f32: 1 }, { f32: 2 }],
  ['granite', 'residual_scale', { f32: 1 }, { f32: 2 }],
  ['granite', 'embedding_scale', { f32: 1 }, { f32: 2 }],
  ['granite', 'logit_scale', { f32: 1 }, { f32: 2 }],
  ['minicpm', 'embedding_scale', { f32: 12 }, { f32: 13 }],
  ['deepseek2', 'expert_gating_func', { u32: 1 }, { u32: 2 }],
  ['gemma4-ple', 'rope.freq_base_swa', { f32: 10000 }, { f32: 10100 }],
  ['gemma3n', 'rope.freq_base_swa', { f32: 10000 }, { f32: 10100 }],
  ['gemma3n-shared', 'attention.sliding_window_pattern', { u32: 5 }, { u32: 10 }],
  ['gemma4-dense', 'attention.shared_kv_layers', { u32: 0 }, { u32: 1 }],
  ['deepseek2', 'expert_weights_norm', { flag: false }, { flag: true }],
  ['deepseek2-v3', 'expert_group_count', { u32: 1 }, { u32: 4 }],
  ['nemotron_h_moe', 'expert_weights_norm', { flag: false }, { flag: true }],
  ['granitehybrid', 'rope.scaling.finetuned', { flag: true }, { flag: false }],
  ['mamba', 'ssm.dt_b_c_rms', { flag: false }, { flag: true }],
  ['mpt', 'attention.clamp_kqv', { f32: 0 }, { f32: 0.01 }],
  ['granite', 'attention.scale', { f32: 0 }, { f32: 3 }],
  ['llama', 'rope.scale_linear', { f32: 1 }, { f32: 2 }],
];

// ---- rejected values ----

/** @type {[string, string][]} required keys */
const needed = [
  ['llama', 'embedding_length'],
  ['llama', 'block_count'],
  ['llama', 'context_length'],
  ['llama', 'attention.head_count'],
  ['llama', 'attention.layer_norm_rms_epsilon'],
  ['llama', 'feed_forward_length'],
  ['gemma3', 'attention.sliding_window'],
  ['gpt-oss', 'attention.sliding_window'],
  ['cohere2', 'attention.sliding_window'],
  ['lfm2', 'shortconv.l_cache'],
  ['qwen35', 'ssm.state_size'],
  ['qwen35', 'ssm.conv_kernel'],
  ['rwkv7', 'wkv.head_size'],
  ['rwkv7', 'attention.decay_lora_rank'],
  ['rwkv7', 'attention.iclr_lora_rank'],
  ['rwkv7', 'attention.value_residual_mix_lora_rank'],
  ['rwkv7', 'attention.gate_lora_rank'],
  ['rwkv7', 'feed_forward_length'],
  ['deepseek2', 'attention.kv_lora_rank'],
  ['deepseek2', 'attention.value_length_mla'],
  ['deepseek2', 'rope.dimension_count'],
  ['deepseek2-v3', 'expert_group_used_count'],
  ['gemma4-ple', 'attention.sliding_window'],
  ['gemma4-ple', 'attention.sliding_window_pattern'],
  ['gemma3n', 'attention.sliding_window'],
  ['gemma4-ple', 'attention.key_length_swa'],
  ['gemma4-ple', 'attention.value_length_swa'],
  ['gemma4-ple', 'feed_forward_length'],
  ['minicpm3', 'attention.key_length'],
  ['minicpm3', 'attention.value_length'],
  ['llama-rope-yarn', 'rope.scaling.original_context_length'],
];
const withExperts = [
  'qwen3moe',
  'qwen2moe',
  'olmoe',
  'phimoe',
  'gpt-oss',
  'dots1',
  'ernie4_5-moe',
  'glm4moe-mtp',
  'lfm2moe',
  'qwen35moe',
  'hunyuan-moe',
];
for (const id of withExperts) {
  needed.push([id, 'expert_count'], [id, 'expert_used_count']);
}
for (const id of ['qwen3moe', 'qwen2moe', 'gpt-oss', 'dots1', 'glm4moe-mtp', 'lfm2moe']) {
  needed.push([id, 'expert_feed_forward_length']);
}

/** @type {[string, string, Value, RegExp][]} */
const outOfBounds = [
  ['llama', 'block_count', { u32: 5000 }, /block_count/],
  ['llama', 'attention.head_count', { u32: 0 }, /is 0, which is not between 1 and/],
  ['llama', 'attention.head_count_kv', { u32: 0 }, /is 0, which is not between 1 and/],
  ['llama', 'rope.freq_base', { f32: -1 }, /must be a number above 0/],
  ['llama', 'rope.dimension_count', { u32: 7 }, /must be even/],
  ['llama', 'rope.freq_base', { u32: 0 }, /must be a number above 0/],
  ['lfm2', 'shortconv.l_cache', { u32: 1 }, /is 1, which is not between 2 and 8/],
  ['lfm2', 'shortconv.l_cache', { u32: 9 }, /is 9, which is not between 2 and 8/],
  ['qwen35', 'ssm.conv_kernel', { u32: 9 }, /is 9, which is not between 2 and 8/],
  ['qwen35', 'ssm.conv_kernel', { u32: 1 }, /is 1, which is not between 2 and 8/],
  ['qwen3moe', 'expert_used_count', { u32: 0 }, /is 0, which is not between 1 and/],
  ['qwen3moe', 'expert_used_count', { u32: 1000 }, /is 1000, which is not between 1 and/],
  ['rwkv7', 'wkv.head_size', { u32: 0 }, /is 0, which is not between 1 and/],
  ['rwkv7', 'wkv.head_size', { u32: 65536 }, /is 65536, which is not between 1 and/],
  [
    'rwkv7',
    'wkv.head_size',
    { u32: 24 },
    /embedding_length 64 is not a multiple of wkv\.head_size 24/,
  ],
  ['rwkv7', 'token_shift_count', { u32: 1 }, /is 1, which is not between 2 and 2/],
  ['rwkv7', 'attention.decay_lora_rank', { u32: 0 }, /is 0, which is not between 1 and/],
  ['rwkv7', 'attention.gate_lora_rank', { u32: 0x80000000 }, /is 2147483648, which is not between/],
  ['rwkv7', 'attention.iclr_lora_rank', { u32: 9 }, /time_mix_a1\.weight/],
  ['deepseek2', 'attention.kv_lora_rank', { u32: 0 }, /is 0, which is not between 1 and/],
  ['deepseek2', 'attention.kv_lora_rank', { u32: 2000 }, /keys of 2008 values is not supported/],
  ['deepseek2', 'attention.kv_lora_rank', { u32: 12 }, /attn_kv_a_mqa\.weight/],
  [
    'deepseek2',
    'attention.key_length_mla',
    { u32: 0xffffffff },
    /is 4294967295, which is not between/,
  ],
  [
    'deepseek2',
    'attention.key_length_mla',
    { u32: 8 },
    /dimension_count 8 must be less than the keys' 8/,
  ],
  ['deepseek2', 'attention.value_length_mla', { u32: 0 }, /is 0, which is not between 1 and/],
  ['deepseek2', 'attention.value_length_mla', { u32: 12 }, /attn_v_b\.weight/],
  ['deepseek2', 'attention.q_lora_rank', { u32: 70000 }, /is 70000, which is not between 0 and/],
  ['deepseek2', 'attention.q_lora_rank', { u32: 0 }, /attn_q\.weight/],
  ['deepseek2', 'rope.dimension_count', { u32: 7 }, /must be even/],
  ['deepseek2', 'rope.dimension_count', { u32: 0 }, /is 0, which is not between 2 and/],
  ['deepseek2', 'leading_dense_block_count', { u32: 4 }, /is 4, which is not between 0 and 3/],
  ['deepseek2', 'attention.temperature_scale', { f32: 0.1 }, /temperature_scale' is not supported/],
  ['deepseek2-v3', 'expert_group_count', { u32: 3 }, /3 of 8 experts cannot be chosen from 2 of 3/],
  ['deepseek2-v3', 'expert_group_count', { u32: 9 }, /is 9, which is not between 0 and 8/],
  ['deepseek2-v3', 'expert_group_used_count', { u32: 0 }, /is 0, which is not between 1 and 4/],
  [
    'deepseek2-v3',
    'expert_group_used_count',
    { u32: 1 },
    /3 of 8 experts cannot be chosen from 1 of 4/,
  ],
  ['gemma4-ple', 'embedding_length_per_layer_input', { u32: 9 }, /per_layer_token_embd\.weight/],
  [
    'gemma4-ple',
    'embedding_length_per_layer_input',
    { u32: 70000 },
    /is 70000, which is not between/,
  ],
  ['gemma4-ple', 'attention.shared_kv_layers', { u32: 6 }, /is 6, which is not between 0 and 5/],
  ['gemma4-ple', 'attention.shared_kv_layers', { u32: 5 }, /layer 1 cannot share/],
  ['gemma4-ple', 'attention.shared_kv_layers', { u32: 4 }, /layer 2 cannot share/],
  ['gemma4-ple', 'attention.shared_kv_layers', { u32: 2 }, /layer 4 cannot share/],
  ['gemma4-ple', 'attention.shared_kv_layers', { u32: 0 }, /blk\.3\.attn_k\.weight/],
  [
    'gemma4-ple',
    'attention.sliding_window_pattern',
    { u32: 2 },
    /is 2, which is not between 0 and 1/,
  ],
  ['gemma3n', 'attention.sliding_window_pattern', { u32: 0 }, /is 0, which is not between 1 and/],
  ['gemma3n-shared', 'attention.sliding_window_pattern', { u32: 3 }, /layer 20 cannot share/],
  ['gemma4-ple', 'attention.sliding_window', { u32: 0 }, /is 0, which is not between 1 and/],
  ['gemma4-ple', 'attention.key_length_swa', { u32: 0 }, /is 0, which is not between 1 and/],
  ['gemma4-ple', 'attention.key_length_swa', { u32: 10 }, /heads of 10 keys and 8 values/],
  ['gemma4-ple', 'rope.dimension_count_swa', { u32: 16 }, /must be even and at most the head's 8/],
  ['gemma4-ple', 'expert_count', { u32: 4 }, /expert_used_count' is missing/],
  ['gemma4-ple', 'feed_forward_length', { u32: 0 }, /ffn_gate\.weight/],
  ['minicpm3', 'attention.key_length', { u32: 24 }, /attn_q_b\.weight/],
  ['minicpm3', 'attention.value_length', { u32: 1025 }, /is 1025, which is not between 1 and 1024/],
  [
    'llama',
    'rope.scaling.type',
    { text: 'ntk' },
    /RoPE scaling 'ntk' \('llama\.rope\.scaling\.type'\)/,
  ],
  [
    'llama',
    'rope.scaling.type',
    { text: 'a'.repeat(40) },
    new RegExp(`RoPE scaling '${'a'.repeat(32)}' \\('llama`),
  ],
  [
    'llama',
    'attention.head_count_kv',
    { u32: 3 },
    /head_count 4 is not a multiple of head_count_kv 3/,
  ],
  [
    'olmo2',
    'attention.sliding_window',
    { u32: 8 },
    /\('olmo2\.attention\.sliding_window' is 8\) are not/,
  ],
  [
    'gpt-oss',
    'attention.causal',
    { flag: false },
    /'gpt-oss\.attention\.causal' is false, which this/,
  ],
  [
    'gemma3n',
    'attention.causal',
    { flag: false },
    /'gemma3n\.attention\.causal' is false, which this/,
  ],
  ['hunyuan-dense', 'attention.causal', { flag: false }, /attention\.causal' is false, which this/],
  ['apertus', 'xielu.beta', undefined, /the key 'xielu\.beta' is missing/],
  ['apertus', 'xielu.eps', { text: 'a' }, /xielu\.eps/],
  ['dots1', 'expert_gating_func', { u32: 0 }, /is 0, which is not between 1 and 3/],
  ['dots1', 'expert_gating_func', { u32: 4 }, /is 4, which is not between 1 and 3/],
];

describe('keys of model files', { concurrency: 2, skip: shared.skip }, () => {
  for (const [id, name, usual, other] of defaults) {
    test(`${id}: without ${name} the default applies`, async () => {
      const without = await logitsOf(id, name, undefined);
      assert.deepEqual(await logitsOf(id, name, usual), without);
      assert.notDeepEqual(await logitsOf(id, name, other), without);
    });
  }
  for (const name of ['xielu.beta', 'xielu.eps']) {
    test(`apertus: ${name} may be one number per layer or one for all`, async () => {
      const own = name === 'xielu.beta' ? 0.5 : -1e-6;
      const listed = await logitsOf('apertus', name, { list: [own, own] });
      assert.deepEqual(await logitsOf('apertus', name, { f32: own }), listed);
      assert.notDeepEqual(await logitsOf('apertus', name, { f32: -2 }), listed);
    });
  }
  for (const [id, name] of needed) {
    test(`${id}: ${name} is required`, async () => {
      const path = name.replaceAll('.', '\\.');
      await assertRefused(id, name, undefined, new RegExp(`'[a-z0-9_-]+\\.${path}' is missing`));
    });
  }
  for (const [id, name, value, says] of outOfBounds) {
    test(`${id}: ${name} out of range is rejected`, () => assertRefused(id, name, value, says));
  }
});
