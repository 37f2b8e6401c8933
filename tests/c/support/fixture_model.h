// A tiny llama model written in memory, for engine tests that need no file. It has random weights
// and a byte-level tokenizer with 262 tokens.
#ifndef WICK_TESTS_FIXTURE_MODEL_H
#define WICK_TESTS_FIXTURE_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/math.h"
#include "base/text.h"
#include "check.h"
#include "format/gguf_writer.h"
#include "platform/platform.h"
#include "random.h"

typedef struct fixture_shape {
  ggml_type type;  // of the matrices: F32, F16 or Q8_0
  uint32_t hidden, ffn, heads, kv_heads, layers, context;
  bool has_biases;
  float poison;  // replaces one weight if not 0 (NaN, Inf)
} fixture_shape;

// Makes the model a mixture of experts; the shape's ffn is the width of an expert.
typedef struct fixture_experts {
  const char *architecture;  // "llama" or "qwen2moe"
  uint32_t count, used;
  uint32_t shared_ffn;   // qwen2moe: width of the shared expert
  bool is_apart;         // one tensor per expert, as in older files
  const char *poisoned;  // the tensor that gets the shape's poison
} fixture_experts;

// Makes the even layers recurrent: short convolutions (LFM2), delta nets (Qwen3.5), Mamba (Jamba)
// or Mamba 2 (Granite 4). The numbers are written to the file's keys; the tensors always have the
// shapes of FIXTURE_LFM2, FIXTURE_QWEN35, FIXTURE_JAMBA and FIXTURE_GRANITE.
typedef struct fixture_hybrid {
  const char *architecture;       // "lfm2", "qwen35", "gemma3", "gemma3n", "jamba", "granitehybrid"
  uint32_t taps;                  // of the convolution
  uint32_t state, key_heads;      // key_heads: groups of Mamba 2
  uint32_t value_heads;           // jamba: the rank of dt
  uint32_t interval, predictors;  // qwen35
  uint32_t kv_heads,
      kv_count;          // not qwen35: KV heads of odd layers; number of layers in the file's list
  const char *left_out;  // the tensor to leave out
  const char *poisoned;  // the tensor that gets the shape's poison
  uint32_t window;       // gemma3, gemma3n: the attention window of even layers
  uint32_t inner;        // jamba, granitehybrid: channels
} fixture_hybrid;

static const fixture_hybrid FIXTURE_LFM2 = {"lfm2", 3, 0, 0, 0, 0, 0, 1, 3, NULL, NULL, 0, 0};
static const fixture_hybrid FIXTURE_QWEN35 = {"qwen35", 4, 12, 1, 3, 2, 0, 1, 3, NULL, NULL, 0, 0};
static const fixture_hybrid FIXTURE_JAMBA = {
    .architecture = "jamba",
    .taps = 4,
    .state = 12,
    .value_heads = 3,
    .kv_heads = 1,
    .kv_count = 3,
    .inner = 42,
};
static const fixture_hybrid FIXTURE_GRANITE = {
    .architecture = "granitehybrid",
    .taps = 4,
    .state = 9,
    .key_heads = 2,
    .value_heads = 6,
    .kv_heads = 1,
    .kv_count = 3,
    .inner = 42,
};
static const fixture_hybrid FIXTURE_GEMMA3 = {
    .architecture = "gemma3", .kv_heads = 1, .interval = 2, .window = 21};
static const fixture_hybrid FIXTURE_GEMMA3N = {
    .architecture = "gemma3n", .kv_heads = 1, .interval = 2, .window = 21};

enum { FIXTURE_VOCAB = 262, FIXTURE_END = 257 };

// A shape for hybrids in which no width is a multiple of 8.
static const fixture_shape FIXTURE_ODD = {GGML_TYPE_F32, 36, 44, 3, 1, 3, 2048, false, 0};
static const fixture_shape FIXTURE_DEFAULT = {GGML_TYPE_F32, 64, 96, 4, 2, 3, 256, false, 0};

typedef struct fixture_file {
  uint8_t *bytes;
  size_t size_bytes, capacity_bytes;
} fixture_file;

// Returns the values of an F32 tensor in a file in memory; sets *out to its entry (may be NULL).
static inline float *fixture_floats(const fixture_file *file, const char *name, gguf_tensor *out) {
  memory_gate memory;
  gguf_directory *directory = NULL;
  size_t used;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(gguf_directory_create(&memory, &directory, NULL), WICK_OK);
  CHECK_EQ_INT(gguf_directory_feed(directory, file->bytes, file->size_bytes, &used, NULL), WICK_OK);
  const gguf_tensor *tensor = gguf_find_tensor(directory, name);
  float *found = NULL;
  if (CHECK(tensor != NULL) && CHECK_EQ_INT(tensor->type, GGML_TYPE_F32)) {
    if (out != NULL) *out = *tensor;
    found = (float *)(void *)(file->bytes + tensor->offset_bytes);
  }
  gguf_directory_destroy(directory);
  return found;
}

static inline bool fixture_write(void *context, const void *bytes, size_t size_bytes) {
  fixture_file *file = context;
  if (file->size_bytes + size_bytes > file->capacity_bytes) {
    file->capacity_bytes = 2 * (file->size_bytes + size_bytes);
    file->bytes = realloc(file->bytes, file->capacity_bytes);
  }
  memcpy(file->bytes + file->size_bytes, bytes, size_bytes);
  file->size_bytes += size_bytes;
  return true;
}

// Returns an approximately normal random number with mean 0 and standard deviation 1.
static inline float fixture_normal(uint64_t *state) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += (float)(random_u64(state) >> 40) / 16777216.0f;
  return (sum - 2.0f) * 1.7320508f;
}

// Writes the printable character for a byte in GPT-2's byte-level alphabet, as UTF-8.
static inline size_t fixture_byte_text(unsigned byte, char *out) {
  uint32_t point = byte;
  if (byte < 33) {
    point = 256 + byte;
  } else if (byte >= 127 && byte < 161) {
    point = 256 + 33 + byte - 127;
  } else if (byte == 173) {
    point = 256 + 33 + 34;
  }
  return utf8_encode(point, (uint8_t *)out);
}

static inline void fixture_number(gguf_writer *w, const char *architecture, const char *name,
                                  uint32_t value) {
  char key[96];
  text_format(key, sizeof key, "%s.%s", architecture, name);
  gguf_writer_add_u32(w, key, value);
}

// Adds the keys that every architecture has: its name and the dimensions of its layers.
static inline void fixture_shape_numbers(gguf_writer *w, const char *architecture,
                                         const fixture_shape *shape) {
  char key[96];
  gguf_writer_add_string(w, "general.architecture", architecture, strlen(architecture));
  gguf_writer_add_string(w, "general.name", "fixture", 7);
  fixture_number(w, architecture, "block_count", shape->layers);
  fixture_number(w, architecture, "context_length", shape->context);
  fixture_number(w, architecture, "embedding_length", shape->hidden);
  fixture_number(w, architecture, "feed_forward_length", shape->ffn);
  fixture_number(w, architecture, "attention.head_count", shape->heads);
  text_format(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
  gguf_writer_add_f32(w, key, 1e-5f);
}

static inline void fixture_numbers(gguf_writer *w, const fixture_shape *shape,
                                   const fixture_experts *experts) {
  const char *architecture = experts == NULL ? "llama" : experts->architecture;
  fixture_shape_numbers(w, architecture, shape);
  fixture_number(w, architecture, "attention.head_count_kv", shape->kv_heads);
  if (experts == NULL) return;
  fixture_number(w, architecture, "expert_count", experts->count);
  fixture_number(w, architecture, "expert_used_count", experts->used);
  fixture_number(w, architecture, "expert_feed_forward_length", shape->ffn);
  fixture_number(w, architecture, "expert_shared_feed_forward_length", experts->shared_ffn);
}

static inline void fixture_hybrid_numbers(gguf_writer *w, const fixture_shape *shape,
                                          const fixture_hybrid *hybrid) {
  const char *architecture = hybrid->architecture;
  fixture_shape_numbers(w, architecture, shape);
  const bool is_lfm2 = strcmp(architecture, "lfm2") == 0;
  if (is_lfm2 || hybrid->inner != 0) {
    uint32_t kv_heads[8] = {0};
    for (uint32_t i = 1; i < 8; i += 2) kv_heads[i] = hybrid->kv_heads;
    char key[96];
    text_format(key, sizeof key, "%s.attention.head_count_kv", architecture);
    gguf_writer_add_array(w, key, GGUF_U32, kv_heads, hybrid->kv_count);
    fixture_number(w, architecture, is_lfm2 ? "shortconv.l_cache" : "ssm.inner_size",
                   is_lfm2 ? hybrid->taps : hybrid->inner);
    if (is_lfm2) return;
  } else {
    fixture_number(w, architecture, "attention.head_count_kv", hybrid->kv_heads);
  }
  if (hybrid->window != 0) {
    fixture_number(w, architecture, "attention.sliding_window", hybrid->window);
    fixture_number(w, architecture, "attention.sliding_window_pattern", hybrid->interval);
    return;
  }
  fixture_number(w, architecture, "ssm.conv_kernel", hybrid->taps);
  fixture_number(w, architecture, "ssm.state_size", hybrid->state);
  fixture_number(w, architecture, "ssm.group_count", hybrid->key_heads);
  fixture_number(w, architecture, "ssm.time_step_rank", hybrid->value_heads);
  fixture_number(w, architecture, "full_attention_interval", hybrid->interval);
  fixture_number(w, architecture, "nextn_predict_layers", hybrid->predictors);
}

static inline void fixture_vocabulary(gguf_writer *w) {
  gguf_writer_add_string(w, "tokenizer.ggml.model", "gpt2", 4);
  gguf_writer_add_string(w, "tokenizer.ggml.pre", "gpt-2", 5);
  static const char *const SPECIALS[] = {"<|endoftext|>", "<|end|>", "th", "he", "in", "er"};
  gguf_writer_add_strings(w, "tokenizer.ggml.tokens", FIXTURE_VOCAB);
  for (unsigned byte = 0; byte < 256; byte++) {
    char text[4];
    gguf_writer_add_item(w, text, fixture_byte_text(byte, text));
  }
  int32_t types[FIXTURE_VOCAB];
  for (int i = 0; i < FIXTURE_VOCAB; i++) types[i] = i == 256 || i == 257 ? 3 : 1;
  for (int i = 0; i < 6; i++) gguf_writer_add_item(w, SPECIALS[i], strlen(SPECIALS[i]));
  gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_I32, types, FIXTURE_VOCAB);
  static const char *const MERGES[] = {"t h", "h e", "i n", "e r"};
  gguf_writer_add_strings(w, "tokenizer.ggml.merges", 4);
  for (int i = 0; i < 4; i++) gguf_writer_add_item(w, MERGES[i], 3);
  gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 256);
  gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", FIXTURE_END);
}

typedef struct fixture_tensor {
  char name[48];
  uint64_t dims[3];
  ggml_type type;
} fixture_tensor;

typedef struct fixture_tensors {
  fixture_tensor at[320];
  uint32_t count;
} fixture_tensors;

static inline void fixture_add(fixture_tensors *list, ggml_type type, uint64_t rows, uint64_t cols,
                               uint64_t matrices, uint32_t layer, const char *name) {
  fixture_tensor *tensor = &list->at[list->count++];
  *tensor = (fixture_tensor){.type = type, .dims = {cols, rows, matrices}};
  text_format(tensor->name, sizeof tensor->name, "blk.%u.%s", layer, name);
}

static inline void fixture_add_experts(fixture_tensors *list, const fixture_shape *s,
                                       const fixture_experts *experts, uint32_t i) {
  const uint64_t hidden = s->hidden, ffn = s->ffn, shared = experts->shared_ffn;
  fixture_add(list, GGML_TYPE_F32, experts->count, hidden, 1, i, "ffn_gate_inp.weight");
  for (uint32_t e = 0; experts->is_apart && e < experts->count; e++) {
    char name[32];
    text_format(name, sizeof name, "ffn_gate.%u.weight", e);
    fixture_add(list, s->type, ffn, hidden, 1, i, name);
  }
  if (!experts->is_apart) {
    fixture_add(list, s->type, ffn, hidden, experts->count, i, "ffn_gate_exps.weight");
    fixture_add(list, s->type, ffn, hidden, experts->count, i, "ffn_up_exps.weight");
    fixture_add(list, s->type, hidden, ffn, experts->count, i, "ffn_down_exps.weight");
  }
  if (shared == 0) return;
  fixture_add(list, s->type, shared, hidden, 1, i, "ffn_gate_shexp.weight");
  fixture_add(list, s->type, shared, hidden, 1, i, "ffn_up_shexp.weight");
  fixture_add(list, s->type, hidden, shared, 1, i, "ffn_down_shexp.weight");
  fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "ffn_gate_inp_shexp.weight");
}

static inline void fixture_list(const fixture_shape *s, const fixture_experts *experts,
                                fixture_tensors *list) {
  const uint64_t hidden = s->hidden, ffn = s->ffn, dim = hidden / s->heads, kv = dim * s->kv_heads;
  list->count = 1;
  list->at[0] = (fixture_tensor){"token_embd.weight", {hidden, FIXTURE_VOCAB, 1}, s->type};
  for (uint32_t i = 0; i < s->layers; i++) {
    fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "attn_norm.weight");
    fixture_add(list, s->type, hidden, hidden, 1, i, "attn_q.weight");
    fixture_add(list, s->type, kv, hidden, 1, i, "attn_k.weight");
    fixture_add(list, s->type, kv, hidden, 1, i, "attn_v.weight");
    if (s->has_biases) fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "attn_q.bias");
    fixture_add(list, s->type, hidden, hidden, 1, i, "attn_output.weight");
    fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "ffn_norm.weight");
    if (experts != NULL) {
      fixture_add_experts(list, s, experts, i);
      continue;
    }
    fixture_add(list, s->type, ffn, hidden, 1, i, "ffn_gate.weight");
    fixture_add(list, s->type, ffn, hidden, 1, i, "ffn_up.weight");
    fixture_add(list, s->type, hidden, ffn, 1, i, "ffn_down.weight");
  }
  list->at[list->count++] = (fixture_tensor){"output_norm.weight", {hidden, 1, 1}, GGML_TYPE_F32};
}

static inline void fixture_add_conv(fixture_tensors *list, const fixture_shape *s, uint32_t i) {
  const uint64_t hidden = s->hidden;
  fixture_add(list, s->type, 3 * hidden, hidden, 1, i, "shortconv.in_proj.weight");
  fixture_add(list, GGML_TYPE_F32, hidden, FIXTURE_LFM2.taps, 1, i, "shortconv.conv.weight");
  fixture_add(list, s->type, hidden, hidden, 1, i, "shortconv.out_proj.weight");
}

static inline void fixture_add_delta(fixture_tensors *list, const fixture_shape *s, uint32_t i) {
  const fixture_hybrid *h = &FIXTURE_QWEN35;
  const uint64_t hidden = s->hidden, values = (uint64_t)h->value_heads * h->state;
  const uint64_t channels = 2ull * h->key_heads * h->state + values;
  fixture_add(list, s->type, channels, hidden, 1, i, "attn_qkv.weight");
  fixture_add(list, s->type, values, hidden, 1, i, "attn_gate.weight");
  fixture_add(list, s->type, h->value_heads, hidden, 1, i, "ssm_beta.weight");
  fixture_add(list, s->type, h->value_heads, hidden, 1, i, "ssm_alpha.weight");
  fixture_add(list, GGML_TYPE_F32, channels, h->taps, 1, i, "ssm_conv1d.weight");
  fixture_add(list, GGML_TYPE_F32, 1, h->value_heads, 1, i, "ssm_dt.bias");
  fixture_add(list, GGML_TYPE_F32, 1, h->value_heads, 1, i, "ssm_a");
  fixture_add(list, GGML_TYPE_F32, 1, h->state, 1, i, "ssm_norm.weight");
  fixture_add(list, s->type, hidden, values, 1, i, "ssm_out.weight");
}

static inline void fixture_add_scan(fixture_tensors *list, const fixture_shape *s, uint32_t i) {
  const fixture_hybrid *h = &FIXTURE_JAMBA;
  const uint64_t inner = h->inner, rank = h->value_heads;
  fixture_add(list, s->type, 2 * inner, s->hidden, 1, i, "ssm_in.weight");
  fixture_add(list, GGML_TYPE_F32, inner, h->taps, 1, i, "ssm_conv1d.weight");
  fixture_add(list, GGML_TYPE_F32, 1, inner, 1, i, "ssm_conv1d.bias");
  fixture_add(list, s->type, rank + 2ull * h->state, inner, 1, i, "ssm_x.weight");
  fixture_add(list, GGML_TYPE_F32, inner, rank, 1, i, "ssm_dt.weight");
  fixture_add(list, GGML_TYPE_F32, 1, inner, 1, i, "ssm_dt.bias");
  fixture_add(list, GGML_TYPE_F32, inner, h->state, 1, i, "ssm_a");
  fixture_add(list, GGML_TYPE_F32, 1, inner, 1, i, "ssm_d");
  fixture_add(list, GGML_TYPE_F32, 1, rank, 1, i, "ssm_dt_norm.weight");
  fixture_add(list, GGML_TYPE_F32, 1, h->state, 1, i, "ssm_b_norm.weight");
  fixture_add(list, GGML_TYPE_F32, 1, h->state, 1, i, "ssm_c_norm.weight");
  fixture_add(list, s->type, s->hidden, inner, 1, i, "ssm_out.weight");
}

static inline void fixture_add_scan_2(fixture_tensors *list, const fixture_shape *s, uint32_t i) {
  const fixture_hybrid *h = &FIXTURE_GRANITE;
  const uint64_t inner = h->inner, heads = h->value_heads, groups = h->key_heads;
  const uint64_t channels = inner + 2 * groups * h->state;
  fixture_add(list, s->type, inner + channels + heads, s->hidden, 1, i, "ssm_in.weight");
  fixture_add(list, GGML_TYPE_F32, channels, h->taps, 1, i, "ssm_conv1d.weight");
  fixture_add(list, GGML_TYPE_F32, 1, channels, 1, i, "ssm_conv1d.bias");
  fixture_add(list, GGML_TYPE_F32, 1, heads, 1, i, "ssm_dt.bias");
  fixture_add(list, GGML_TYPE_F32, heads, 1, 1, i, "ssm_a");
  fixture_add(list, GGML_TYPE_F32, heads, 1, 1, i, "ssm_d");
  fixture_add(list, GGML_TYPE_F32, groups, inner / groups, 1, i, "ssm_norm.weight");
  fixture_add(list, s->type, s->hidden, inner, 1, i, "ssm_out.weight");
}

static inline void fixture_add_odd(fixture_tensors *list, const fixture_shape *s, bool is_gated,
                                   uint32_t i) {
  const uint64_t hidden = s->hidden, dim = hidden / s->heads, kv = dim * s->kv_heads;
  fixture_add(list, s->type, is_gated ? 2 * hidden : hidden, hidden, 1, i, "attn_q.weight");
  fixture_add(list, s->type, kv, hidden, 1, i, "attn_k.weight");
  fixture_add(list, s->type, kv, hidden, 1, i, "attn_v.weight");
  fixture_add(list, GGML_TYPE_F32, 1, dim, 1, i, "attn_q_norm.weight");
  fixture_add(list, GGML_TYPE_F32, 1, dim, 1, i, "attn_k_norm.weight");
  fixture_add(list, s->type, hidden, hidden, 1, i, "attn_output.weight");
}

static inline void fixture_add_outer(fixture_tensors *list, ggml_type type, uint64_t rows,
                                     uint64_t cols, uint64_t matrices, const char *name) {
  fixture_tensor *tensor = &list->at[list->count++];
  *tensor = (fixture_tensor){.type = type, .dims = {cols, rows, matrices}};
  text_format(tensor->name, sizeof tensor->name, "%s", name);
}

// Dimensions of Gemma 3n that are not stored in its files. They apply to the tensors outside its
// layers and to the tensors that its layers have in addition to those of Gemma 3.
enum { FIXTURE_INPUTS = 256, FIXTURE_RANK = 64, FIXTURE_STREAMS = 4 };

static inline void fixture_add_altup_ends(fixture_tensors *list, const fixture_shape *s) {
  const uint64_t all = (uint64_t)FIXTURE_INPUTS * s->layers, others = FIXTURE_STREAMS - 1;
  fixture_add_outer(list, s->type, FIXTURE_VOCAB, all, 1, "per_layer_token_embd.weight");
  fixture_add_outer(list, s->type, all, s->hidden, 1, "per_layer_model_proj.weight");
  fixture_add_outer(list, GGML_TYPE_F32, 1, FIXTURE_INPUTS, 1, "per_layer_proj_norm.weight");
  fixture_add_outer(list, s->type, s->hidden, s->hidden, others, "altup_proj.weight");
  fixture_add_outer(list, s->type, s->hidden, s->hidden, others, "altup_unembd_proj.weight");
}

static inline void fixture_add_altup(fixture_tensors *list, const fixture_shape *s, uint32_t i) {
  const uint64_t hidden = s->hidden, streams = FIXTURE_STREAMS;
  fixture_add(list, s->type, FIXTURE_INPUTS, hidden, 1, i, "inp_gate.weight");
  fixture_add(list, s->type, hidden, FIXTURE_INPUTS, 1, i, "proj.weight");
  fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "post_norm.weight");
  fixture_add(list, s->type, FIXTURE_RANK, hidden, 1, i, "laurel_l.weight");
  fixture_add(list, s->type, hidden, FIXTURE_RANK, 1, i, "laurel_r.weight");
  fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "laurel_post_norm.weight");
  fixture_add(list, s->type, streams, hidden, 1, i, "altup_router.weight");
  fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "altup_router_norm.weight");
  fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "altup_correct_scale.weight");
  fixture_add(list, s->type, streams * streams, streams, 1, i, "altup_predict_coef.weight");
  fixture_add(list, s->type, streams, streams, 1, i, "altup_correct_coef.weight");
}

// Adds the tensors of Qwen3.5's multi-token prediction layer.
static inline void fixture_add_predictor(fixture_tensors *list, const fixture_shape *s,
                                         uint32_t i) {
  fixture_add(list, GGML_TYPE_F32, 1, s->hidden, 1, i, "nextn.enorm.weight");
  fixture_add(list, GGML_TYPE_F32, 1, s->hidden, 1, i, "nextn.hnorm.weight");
  fixture_add(list, s->type, s->hidden, 2ull * s->hidden, 1, i, "nextn.eh_proj.weight");
  fixture_add(list, GGML_TYPE_F32, 1, s->hidden, 1, i, "nextn.shared_head_norm.weight");
}

// Removes the tensor that the hybrid leaves out.
static inline void fixture_leave_out(fixture_tensors *list, const char *name) {
  for (uint32_t i = 0; name != NULL && i < list->count; i++) {
    if (strcmp(list->at[i].name, name) != 0) continue;
    list->at[i] = list->at[--list->count];
    return;
  }
}

static inline void fixture_hybrid_list(const fixture_shape *s, const fixture_hybrid *hybrid,
                                       fixture_tensors *list) {
  const bool is_lfm2 = strcmp(hybrid->architecture, "lfm2") == 0, is_gemma = hybrid->window != 0;
  const bool is_jamba = strcmp(hybrid->architecture, "jamba") == 0;
  const bool is_qwen = strcmp(hybrid->architecture, "qwen35") == 0;
  const bool is_gemma3n = strcmp(hybrid->architecture, "gemma3n") == 0;
  const uint64_t hidden = s->hidden, ffn = s->ffn;
  list->count = 1;
  list->at[0] = (fixture_tensor){"token_embd.weight", {hidden, FIXTURE_VOCAB, 1}, s->type};
  for (uint32_t i = 0; i < s->layers; i++) {
    fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "attn_norm.weight");
    if (i % 2 == 1 || is_gemma) fixture_add_odd(list, s, is_qwen, i);
    if (i % 2 == 0 && is_lfm2) fixture_add_conv(list, s, i);
    if (i % 2 == 0 && is_qwen) fixture_add_delta(list, s, i);
    if (i % 2 == 0 && is_jamba) fixture_add_scan(list, s, i);
    if (i % 2 == 0 && hybrid->inner != 0 && !is_jamba) fixture_add_scan_2(list, s, i);
    if (is_gemma) fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "post_ffw_norm.weight");
    if (is_gemma) fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i, "ffn_norm.weight");
    fixture_add(list, GGML_TYPE_F32, 1, hidden, 1, i,
                is_qwen || is_gemma ? "post_attention_norm.weight" : "ffn_norm.weight");
    fixture_add(list, s->type, ffn, hidden, 1, i, "ffn_gate.weight");
    fixture_add(list, s->type, ffn, hidden, 1, i, "ffn_up.weight");
    fixture_add(list, s->type, hidden, ffn, 1, i, "ffn_down.weight");
    if (is_gemma3n) fixture_add_altup(list, s, i);
    if (is_qwen && hybrid->predictors == 1 && i + 1 == s->layers) fixture_add_predictor(list, s, i);
  }
  if (is_gemma3n) fixture_add_altup_ends(list, s);
  list->at[list->count] = (fixture_tensor){"output_norm.weight", {hidden, 1, 1}, GGML_TYPE_F32};
  if (is_lfm2) memcpy(list->at[list->count].name, "token_embd_norm.weight", 23);
  list->count++;
  fixture_leave_out(list, hybrid->left_out);
}

static inline void fixture_row(gguf_writer *w, const fixture_tensor *t, uint64_t *state,
                               float poison) {
  const bool is_norm = t->dims[1] == 1;
  uint8_t row[4096];
  uint16_t half = 0;
  for (uint64_t c = 0; c < t->dims[0]; c++) {
    float value = fixture_normal(state) * (is_norm ? 0.1f : 0.18f) + (is_norm ? 1.0f : 0.0f);
    // decay rates must be negative
    if (strcmp(t->name + strlen(t->name) - 6, ".ssm_a") == 0)
      value = is_norm ? -0.1f * value : -__builtin_fabsf(value);
    if (poison != 0 && c == 0) value = poison;
    if (t->type == GGML_TYPE_F32) memcpy(row + 4 * c, &value, 4);
    if (t->type == GGML_TYPE_F16) {
      half = f16_of_f32(value);
      memcpy(row + 2 * c, &half, 2);
    }
    if (t->type == GGML_TYPE_Q8_0) {
      half = f16_of_f32(poison != 0 ? poison : 0.0045f);
      memcpy(row + c / 32 * 34, &half, 2);
      row[c / 32 * 34 + 2 + c % 32] = poison != 0 ? 1 : (uint8_t)(int8_t)(value * 190.0f);
    }
  }
  uint64_t bytes;
  type_row_bytes(t->type, t->dims[0], &bytes);
  wick_error error;
  CHECK_EQ_INT(gguf_writer_write_data(w, row, (size_t)bytes, &error), WICK_OK);
}

static inline bool fixture_is_poisoned(const fixture_experts *experts, const fixture_hybrid *hybrid,
                                       const fixture_tensor *tensor) {
  const char *name = "blk.0.attn_output.weight";
  if (experts != NULL && experts->poisoned != NULL) name = experts->poisoned;
  if (hybrid != NULL && hybrid->poisoned != NULL) name = hybrid->poisoned;
  return strcmp(tensor->name, name) == 0;
}

// Makes the file of a mixture of experts or a hybrid if one is given, otherwise of a plain model.
// The caller frees file.bytes.
static inline fixture_file fixture_make_any(const fixture_shape *shape,
                                            const fixture_experts *experts,
                                            const fixture_hybrid *hybrid) {
  fixture_file file = {0};
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_writer *w;
  wick_error error;
  CHECK_EQ_INT(gguf_writer_create(&memory, fixture_write, &file, 32, &w, &error), WICK_OK);
  if (hybrid == NULL) fixture_numbers(w, shape, experts);
  if (hybrid != NULL) fixture_hybrid_numbers(w, shape, hybrid);
  fixture_vocabulary(w);
  static fixture_tensors list;
  if (hybrid == NULL) fixture_list(shape, experts, &list);
  if (hybrid != NULL) fixture_hybrid_list(shape, hybrid, &list);
  for (uint32_t i = 0; i < list.count; i++) {
    const fixture_tensor *tensor = &list.at[i];
    const uint32_t dims = tensor->dims[2] != 1 ? 3 : tensor->dims[1] != 1 ? 2 : 1;
    gguf_writer_add_tensor(w, tensor->name, tensor->type, tensor->dims, dims);
  }
  CHECK_EQ_INT(gguf_writer_write_header(w, &error), WICK_OK);
  uint64_t state = 42;
  for (uint32_t i = 0; i < list.count; i++) {
    const bool is_poisoned = fixture_is_poisoned(experts, hybrid, &list.at[i]);
    const uint64_t rows = list.at[i].dims[1] * list.at[i].dims[2], poisoned_row = rows < 4 ? 0 : 3;
    for (uint64_t row = 0; row < rows; row++) {
      fixture_row(w, &list.at[i], &state, is_poisoned && row == poisoned_row ? shape->poison : 0);
    }
  }
  CHECK_EQ_INT(gguf_writer_finish(w, &error), WICK_OK);
  gguf_writer_destroy(w);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return file;
}

static inline fixture_file fixture_make_experts(const fixture_shape *shape,
                                                const fixture_experts *experts) {
  return fixture_make_any(shape, experts, NULL);
}

static inline fixture_file fixture_make_hybrid(const fixture_shape *shape,
                                               const fixture_hybrid *hybrid) {
  return fixture_make_any(shape, NULL, hybrid);
}

static inline fixture_file fixture_make(const fixture_shape *shape) {
  return fixture_make_any(shape, NULL, NULL);
}

// Feeds the ranges that the engine requests, at most `piece_bytes` at a time (0: no limit).
static inline wick_status fixture_load(wick_engine *engine, const fixture_file *file,
                                       size_t piece_bytes, wick_error *error) {
  for (;;) {
    uint32_t index;
    uint64_t offset, length;
    wick_load_next_range(engine, &index, &offset, &length);
    if (length == 0) return WICK_OK;
    if (offset >= file->size_bytes) return wick_load_end(engine, index, file->size_bytes, error);
    uint64_t take = file->size_bytes - offset;
    if (take > length) take = length;
    if (piece_bytes != 0 && take > piece_bytes) take = piece_bytes;
    const wick_status status =
        wick_load_feed(engine, index, offset, file->bytes + offset, (size_t)take, error);
    if (status != WICK_OK) return status;
  }
}

// ---- requests ----

// Returns a request for `max_tokens` tokens after `tokens`, ignoring end tokens.
static inline wick_request fixture_request(const int32_t *tokens, size_t count,
                                           uint32_t max_tokens) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = tokens;
  request.token_count = count;
  request.max_tokens = max_tokens;
  request.ignore_end = true;
  return request;
}

// Receives an event. `after` points to the alternatives and the text that follow the event.
typedef void fixture_take(void *context, const wick_event *event, const uint8_t *after);

// Passes each waiting event to `take`.
static inline void fixture_take_all(wick_engine *engine, fixture_take *take, void *context) {
  size_t bytes;
  const uint8_t *at = wick_events_take(engine, &bytes);
  for (size_t used = 0; used < bytes;) {
    wick_event event;
    memcpy(&event, at + used, sizeof event);
    take(context, &event, at + used + sizeof event);
    used += event.size_bytes;
  }
}

// Steps until the engine is idle, and passes each event to `take`.
static inline void fixture_run(wick_engine *engine, fixture_take *take, void *context) {
  while (wick_step(engine, 0) != WICK_STEP_IDLE) fixture_take_all(engine, take, context);
}

#endif
