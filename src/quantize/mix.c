// quantize/mix.c — the rules by tensor name. A medium mix uses its `more` type for the value
// projection and the feed-forward's down projection of some layers, and Q6_K for the output.
#include "quantize/mix.h"

#include <string.h>

enum {
  FILE_F32 = 0,
  FILE_F16 = 1,
  FILE_Q4_0 = 2,
  FILE_Q8_0 = 7,
  FILE_Q5_0 = 8,
  FILE_Q4_K_S = 14,
  FILE_Q4_K_M = 15,
  FILE_Q5_K_S = 16,
  FILE_Q5_K_M = 17,
  FILE_Q6_K = 18,
  FILE_BF16 = 32
};

static const quantize_mix MIXES[] = {
    {"f32", FILE_F32, GGML_TYPE_F32, GGML_TYPE_F32},
    {"f16", FILE_F16, GGML_TYPE_F16, GGML_TYPE_F16},
    {"bf16", FILE_BF16, GGML_TYPE_BF16, GGML_TYPE_BF16},
    {"q8_0", FILE_Q8_0, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0},
    {"q6_k", FILE_Q6_K, GGML_TYPE_Q6_K, GGML_TYPE_Q6_K},
    {"q5_k_m", FILE_Q5_K_M, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K},
    {"q5_k_s", FILE_Q5_K_S, GGML_TYPE_Q5_K, GGML_TYPE_Q5_K},
    {"q5_0", FILE_Q5_0, GGML_TYPE_Q5_0, GGML_TYPE_Q5_0},
    {"q4_k_m", FILE_Q4_K_M, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K},
    {"q4_k_s", FILE_Q4_K_S, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K},
    {"q4_0", FILE_Q4_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_0},
};
enum { MIX_COUNT = sizeof MIXES / sizeof MIXES[0] };

const quantize_mix *quantize_mix_at(uint32_t index) {
  return index < MIX_COUNT ? &MIXES[index] : NULL;
}

static bool equals_in_any_case(const char *name, const char *given) {
  for (; *name != 0; name++, given++) {
    const char small = *given >= 'A' && *given <= 'Z' ? (char)(*given + 'a' - 'A') : *given;
    if (small != *name) return false;
  }
  return *given == 0;
}

const quantize_mix *quantize_find_mix(const char *name) {
  for (uint32_t i = 0; i < MIX_COUNT; i++) {
    if (equals_in_any_case(MIXES[i].name, name)) return &MIXES[i];
  }
  return NULL;
}

// ---- Kinds of tensors ----

typedef enum tensor_kind {
  KIND_OUTPUT,
  KIND_EMBEDDING,
  KIND_QKV,
  KIND_VALUES,
  KIND_KEYS,
  KIND_ATTENTION_OUTPUT,
  KIND_DOWN,
  KIND_OTHER
} tensor_kind;

static bool contains(gguf_string name, const char *part) {
  const size_t length = strlen(part);
  for (uint64_t i = 0; i + length <= name.size_bytes; i++) {
    if (memcmp(name.bytes + i, part, length) == 0) return true;
  }
  return false;
}

static tensor_kind kind_of(gguf_string name) {
  if (gguf_string_equals(name, "output.weight")) return KIND_OUTPUT;
  if (gguf_string_equals(name, "token_embd.weight") ||
      gguf_string_equals(name, "per_layer_token_embd.weight")) {
    return KIND_EMBEDDING;
  }
  if (contains(name, "attn_qkv.weight")) return KIND_QKV;
  if (contains(name, "attn_kv_b.weight") || contains(name, "attn_v.weight")) return KIND_VALUES;
  if (contains(name, "attn_k.weight")) return KIND_KEYS;
  if (contains(name, "attn_output.weight")) return KIND_ATTENTION_OUTPUT;
  return contains(name, "ffn_down") ? KIND_DOWN : KIND_OTHER;
}

static bool holds_values(tensor_kind kind) { return kind == KIND_VALUES || kind == KIND_QKV; }

// Returns the layer in a name such as "blk.12.attn_v.weight", or 0 for a tensor outside the layers.
static uint32_t layer_of(gguf_string name) {
  static const char prefix[] = "blk.";
  const size_t length = sizeof prefix - 1;
  if (name.size_bytes <= length || memcmp(name.bytes, prefix, length) != 0) return 0;
  uint32_t layer = 0;
  for (uint64_t i = length; i < name.size_bytes && layer < QUANTIZE_LAYERS_MAX; i++) {
    const char c = name.bytes[i];
    if (c < '0' || c > '9') break;
    layer = 10 * layer + (uint32_t)(c - '0');
  }
  return layer < QUANTIZE_LAYERS_MAX ? layer : QUANTIZE_LAYERS_MAX - 1;
}

static bool is_quantised(gguf_string name, const gguf_tensor *tensor) {
  static const char end[] = "weight";
  static const char *const kept[] = {"_norm.weight",
                                     "ffn_gate_inp.weight",
                                     "ffn_gate_tid2eid.weight",
                                     "altup",
                                     "laurel",
                                     "per_layer_model_proj",
                                     "ssm_conv1d",
                                     "shortconv.conv.weight",
                                     "indexer.k_proj.weight",
                                     "indexer.q_proj.weight",
                                     "time_mix_first.weight",
                                     "time_mix_w0.weight",
                                     "time_mix_w1.weight",
                                     "time_mix_w2.weight",
                                     "time_mix_v0.weight",
                                     "time_mix_v1.weight",
                                     "time_mix_v2.weight",
                                     "time_mix_a0.weight",
                                     "time_mix_a1.weight",
                                     "time_mix_a2.weight",
                                     "time_mix_g1.weight",
                                     "time_mix_g2.weight",
                                     "time_mix_decay_w1.weight",
                                     "time_mix_decay_w2.weight",
                                     "time_mix_lerp_fused.weight",
                                     "attn_rel_b.weight",
                                     "position_embd",
                                     "token_types.weight",
                                     "pos_embd",
                                     "rel_pos",
                                     "patch_embd",
                                     "patch_merger"};
  if (tensor->dims[1] == 1 && tensor->dims[2] == 1 && tensor->dims[3] == 1) return false;
  const size_t length = sizeof end - 1;
  if (name.size_bytes < length || memcmp(name.bytes + name.size_bytes - length, end, length) != 0) {
    return false;
  }
  for (uint32_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
    if (contains(name, kept[i])) return false;
  }
  return true;
}

// ---- Properties of the file ----

static wick_status read_optional(const gguf_directory *directory, gguf_string architecture,
                                 const char *key, uint32_t *out, wick_error *error) {
  char name[GGUF_QUOTE_BYTES + 64];
  const size_t prefix = (size_t)architecture.size_bytes, rest = strlen(key);
  if (prefix + rest + 1 > sizeof name) return WICK_OK;  // an unknown architecture
  memcpy(name, architecture.bytes, prefix);
  memcpy(name + prefix, key, rest + 1);
  const wick_status status = gguf_get_u32(directory, name, out, error);
  return status == WICK_E_NODATA ? WICK_OK : status;
}

static void count_projections(const gguf_directory *directory, quantize_facts *facts) {
  for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
    const gguf_string name = gguf_tensor_at(directory, i)->name;
    const tensor_kind kind = kind_of(name);
    facts->values_before[layer_of(name) + 1] += holds_values(kind);
    facts->downs_before[layer_of(name) + 1] += kind == KIND_DOWN;
    facts->has_output |= kind == KIND_OUTPUT;
  }
  for (uint32_t layer = 0; layer < QUANTIZE_LAYERS_MAX; layer++) {
    facts->values_before[layer + 1] += facts->values_before[layer];
    facts->downs_before[layer + 1] += facts->downs_before[layer];
  }
}

wick_status quantize_facts_read(const gguf_directory *directory, quantize_facts *facts,
                                wick_error *error) {
  *facts = (quantize_facts){0};
  gguf_string architecture = {"", 0};
  wick_status status = gguf_get_string(directory, "general.architecture", &architecture, error);
  if (status != WICK_OK && status != WICK_E_NODATA) return status;
  uint32_t heads = 0, kv_heads = 0;
  status = read_optional(directory, architecture, ".block_count", &facts->layers, error);
  if (status == WICK_OK) {
    status = read_optional(directory, architecture, ".expert_count", &facts->experts, error);
  }
  if (status != WICK_OK) return status;
  facts->is_falcon = gguf_string_equals(architecture, "falcon");
  const bool has_70b =
      gguf_string_equals(architecture, "llama") || gguf_string_equals(architecture, "qwen2");
  if (has_70b && facts->layers == 80) {
    status = read_optional(directory, architecture, ".attention.head_count", &heads, error);
    kv_heads = heads;
    if (status == WICK_OK) {
      status = read_optional(directory, architecture, ".attention.head_count_kv", &kv_heads, error);
    }
    facts->is_70b = heads != kv_heads;
  }
  if (status == WICK_OK) count_projections(directory, facts);
  return status;
}

// ---- The rules ----

// Returns whether a layer is in the first or last eighth of the layers, or is every third layer
// between them.
static bool takes_more(uint32_t index, uint32_t count) {
  const uint32_t eighth = count / 8;
  return index < eighth || index >= 7 * count / 8 || (index - eighth) % 3 == 2;
}

static ggml_type choose_values(const quantize_mix *mix, const quantize_facts *facts,
                               uint32_t rank) {
  ggml_type type = mix->type;
  const bool is_medium = mix->file_type == FILE_Q4_K_M || mix->file_type == FILE_Q5_K_M;
  if (is_medium && takes_more(rank, facts->values_before[QUANTIZE_LAYERS_MAX])) type = mix->more;
  if (mix->file_type == FILE_Q4_K_S && rank < 4) type = mix->more;
  if (facts->is_70b && type == GGML_TYPE_Q4_K) type = GGML_TYPE_Q5_K;
  return facts->experts == 8 ? GGML_TYPE_Q8_0 : type;
}

static ggml_type choose_down(const quantize_mix *mix, const quantize_facts *facts, uint32_t index) {
  const bool is_more = takes_more(index, facts->layers);
  switch (mix->file_type) {
    case FILE_Q4_K_M:
      if (!facts->is_falcon) return is_more ? GGML_TYPE_Q6_K : mix->type;
      if (index < facts->layers / 16) return GGML_TYPE_Q6_K;
      return is_more ? GGML_TYPE_Q5_K : mix->type;
    case FILE_Q5_K_M:
      return is_more ? mix->more : mix->type;
    case FILE_Q4_K_S:
      return !facts->is_falcon && index < facts->layers / 8 ? mix->more : mix->type;
    default:
      return mix->type;
  }
}

static ggml_type choose_by_kind(const quantize_mix *mix, const quantize_facts *facts,
                                const gguf_tensor *tensor) {
  const tensor_kind kind = kind_of(tensor->name);
  const uint32_t layer = layer_of(tensor->name);
  const bool has_8_experts = facts->experts == 8;
  const bool is_q4_k = mix->type == GGML_TYPE_Q4_K;
  if (kind == KIND_OUTPUT || (kind == KIND_EMBEDDING && !facts->has_output)) {
    const bool has_blocks = tensor->dims[0] % type_facts(mix->type)->block_values == 0;
    if (facts->is_falcon || !has_blocks || mix->type == GGML_TYPE_Q8_0) return GGML_TYPE_Q8_0;
    return GGML_TYPE_Q6_K;
  }
  switch (kind) {
    case KIND_QKV:
    case KIND_VALUES:
      return choose_values(mix, facts, facts->values_before[layer]);
    case KIND_KEYS:
      return has_8_experts ? GGML_TYPE_Q8_0 : mix->type;
    case KIND_DOWN:
      return choose_down(mix, facts, facts->experts > 1 ? layer : facts->downs_before[layer]);
    case KIND_ATTENTION_OUTPUT:
      return has_8_experts && is_q4_k && !facts->is_falcon ? GGML_TYPE_Q5_K : mix->type;
    default:
      return mix->type;
  }
}

static ggml_type fall_back(ggml_type type, uint64_t cols) {
  if (cols % type_facts(type)->block_values == 0) return type;
  ggml_type other = GGML_TYPE_F16;
  if (type == GGML_TYPE_Q4_K) other = GGML_TYPE_Q5_0;
  if (type == GGML_TYPE_Q5_K) other = GGML_TYPE_Q5_1;
  if (type == GGML_TYPE_Q6_K) other = GGML_TYPE_Q8_0;
  return cols % type_facts(other)->block_values == 0 ? other : GGML_TYPE_F16;
}

ggml_type quantize_choose(const quantize_mix *mix, const quantize_facts *facts,
                          const gguf_tensor *tensor) {
  if (!is_quantised(tensor->name, tensor)) return (ggml_type)tensor->type;
  if (type_facts(mix->type)->block_values == 1) return mix->type;
  return fall_back(choose_by_kind(mix, facts, tensor), tensor->dims[0]);
}
