// See model_builder.h.
#include "model_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/text.h"
#include "random.h"

// A delta net has twice as many value heads as key heads; its values are as wide as the hidden
// rows, and so are the channels of a scan. RANK is the rank of Mamba's time steps.
enum { ALIGNMENT = 32, HEADS = 2, EXPERTS = 4, TAPS = 3, KEY_HEADS = 1, STATES = 4, RANK = 5 };

static const char *const ARCHITECTURES[BUILT_FAMILIES] = {
    "llama", "qwen2", "llama", "qwen3moe", "lfm2", "qwen35", "jamba", "granitehybrid"};

static const char *const SPECIALS[BUILT_SPECIALS] = {"<unk>", "<s>", "</s>", "<|im_start|>"};
static const int32_t SPECIAL_KINDS[BUILT_SPECIALS] = {TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_CONTROL,
                                                      TOKEN_USER_DEFINED};
// In SPM notation; BPE has no three-byte space marker.
static const char *const WORDS[] = {"▁",  "t",  "h",    "e",   "a", "th", "he",
                                    "▁t", "▁a", "▁the", "the", "o", "l",  "lo"};
static const char *const BYTE_WORDS[] = {"th", "he", "Ġt", "Ġa", "Ġthe", "the", "lo"};
static const char *const MERGES[] = {"t h", "h e", "th e", "Ġ t", "Ġ a", "Ġt he", "l o"};
static const char *const CHARACTER_MERGES[] = {"t h", "h e", "th e", "▁ t", "▁ a", "▁ the", "l o"};
#define LENGTH(list) (sizeof(list) / sizeof *(list))

// ---- values ----

static void clear_value(built_value *value) {
  for (size_t i = 0; i < value->item_count; i++) file_free(&value->items[i]);
  free(value->items);
  file_free(&value->data);
  value->items = NULL;
  value->count = 0;
  value->item_count = value->item_capacity = 0;
}

built_value *builder_find(model_builder *builder, const char *key) {
  for (size_t i = 0; i < builder->value_count; i++) {
    if (strcmp(builder->values[i].key, key) == 0) return &builder->values[i];
  }
  return NULL;
}

built_value *builder_put(model_builder *builder, const char *key, uint32_t type) {
  built_value *value = builder_find(builder, key);
  if (value == NULL) {
    if (builder->value_count == BUILT_VALUES_MAX) return NULL;
    value = &builder->values[builder->value_count++];
    *value = (built_value){0};
    text_format(value->key, sizeof value->key, "%s", key);
  }
  clear_value(value);
  value->type = type;
  return value;
}

void builder_remove(model_builder *builder, const char *key) {
  built_value *value = builder_find(builder, key);
  if (value == NULL) return;
  clear_value(value);
  *value = builder->values[--builder->value_count];
}

void value_set_data(built_value *value, const void *bytes, size_t size_bytes) {
  file_free(&value->data);
  file_write(&value->data, bytes, size_bytes);
}

static void put_data(model_builder *builder, const char *key, uint32_t type, const void *bytes,
                     size_t size_bytes) {
  built_value *value = builder_put(builder, key, type);
  if (value != NULL) value_set_data(value, bytes, size_bytes);
}

void builder_put_u32(model_builder *builder, const char *key, uint32_t number) {
  put_data(builder, key, GGUF_U32, &number, sizeof number);
}

void builder_put_f32(model_builder *builder, const char *key, float number) {
  put_data(builder, key, GGUF_F32, &number, sizeof number);
}

void builder_put_text(model_builder *builder, const char *key, const char *text) {
  put_data(builder, key, GGUF_STRING, text, strlen(text));
}

void value_resize(built_value *value, size_t count) {
  value->count = count;
  if (value->item_type != GGUF_STRING) {
    const uint32_t zero = 0;
    value->data.size_bytes =
        value->data.size_bytes < 4 * count ? value->data.size_bytes : 4 * count;
    while (value->data.size_bytes < 4 * count) file_write(&value->data, &zero, sizeof zero);
    return;
  }
  if (count > value->item_capacity) {
    value->item_capacity = 2 * count;
    value->items = realloc(value->items, value->item_capacity * sizeof *value->items);
    if (value->items == NULL) abort();
  }
  for (; value->item_count > count; value->item_count--) {
    file_free(&value->items[value->item_count - 1]);
  }
  for (; value->item_count < count; value->item_count++) {
    value->items[value->item_count] = (memory_file){0};
  }
}

void value_set_item(built_value *value, size_t index, const void *bytes, size_t size_bytes) {
  if (index >= value->item_count) value_resize(value, index + 1);
  memory_file made = {0};  // `bytes` may point into the item itself
  file_write(&made, bytes, size_bytes);
  file_free(&value->items[index]);
  value->items[index] = made;
}

void value_set_i32(built_value *value, size_t index, int32_t number) {
  if (4 * (index + 1) > value->data.size_bytes) value_resize(value, index + 1);
  memcpy(value->data.bytes + 4 * index, &number, sizeof number);
}

static built_value *put_array(model_builder *builder, const char *key, uint32_t item_type) {
  built_value *value = builder_put(builder, key, GGUF_ARRAY);
  if (value == NULL) abort();
  value->item_type = item_type;
  return value;
}

// ---- the model ----

static void put_strings(built_value *value, size_t first, const char *const *texts, size_t count) {
  for (size_t i = 0; i < count; i++) value_set_item(value, first + i, texts[i], strlen(texts[i]));
}

// Writes the token of a byte: in BPE's (GPT-2's) alphabet, or as "<0xHH>".
static size_t byte_text(unsigned byte, bool is_bpe, char out[8]) {
  if (!is_bpe) {
    static const char DIGITS[] = "0123456789ABCDEF";
    const char text[6] = {'<', '0', 'x', DIGITS[byte >> 4], DIGITS[byte & 15], '>'};
    memcpy(out, text, sizeof text);
    return sizeof text;
  }
  const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
  const unsigned other = byte <= 0x20 ? byte : byte == 0xad ? 67 : byte - 0x7f + 33;
  return utf8_encode(prints ? byte : 0x100 + other, (uint8_t *)out);
}

static size_t put_vocabulary(model_builder *builder) {
  static const char *const MODELS[BUILT_VOCABULARIES] = {"llama", "gpt2", "gemma4", "bert"};
  const built_vocabulary vocabulary = builder->choice.vocabulary;
  const bool is_bpe = vocabulary == BUILT_BPE;
  builder_put_text(builder, "tokenizer.ggml.model", MODELS[vocabulary]);
  if (is_bpe) builder_put_text(builder, "tokenizer.ggml.pre", "gpt-2");
  built_value *tokens = put_array(builder, "tokenizer.ggml.tokens", GGUF_STRING);
  put_strings(tokens, 0, SPECIALS, BUILT_SPECIALS);
  for (unsigned byte = 0; byte < 256; byte++) {
    char text[8];
    const size_t size = byte_text(byte, is_bpe, text);
    value_set_item(tokens, BUILT_SPECIALS + byte, text, size);
  }
  if (is_bpe) {
    put_strings(tokens, BUILT_WORDS_FIRST, BYTE_WORDS, LENGTH(BYTE_WORDS));
  } else {
    put_strings(tokens, BUILT_WORDS_FIRST, WORDS, LENGTH(WORDS));
  }
  const size_t count = tokens->item_count;
  built_value *kinds = put_array(builder, "tokenizer.ggml.token_type", GGUF_I32);
  built_value *scores = put_array(builder, "tokenizer.ggml.scores", GGUF_F32);
  for (size_t i = 0; i < count; i++) {
    const bool is_byte = i >= BUILT_SPECIALS && i < BUILT_WORDS_FIRST && !is_bpe;
    value_set_i32(kinds, i,
                  i < BUILT_SPECIALS ? SPECIAL_KINDS[i]
                  : is_byte          ? TOKEN_BYTE
                                     : TOKEN_NORMAL);
    value_set_i32(scores, i, (int32_t)bits_of_f32(-(float)(i % 7)));
  }
  if (is_bpe || vocabulary == BUILT_CHARACTERS) {
    built_value *merges = put_array(builder, "tokenizer.ggml.merges", GGUF_STRING);
    put_strings(merges, 0, is_bpe ? MERGES : CHARACTER_MERGES, LENGTH(MERGES));
  }
  builder_put_u32(builder, "tokenizer.ggml.unknown_token_id", 0);
  builder_put_u32(builder, "tokenizer.ggml.bos_token_id", 1);
  builder_put_u32(builder, "tokenizer.ggml.eos_token_id", 2);
  builder_put_text(builder, "tokenizer.chat_template",
                   "{% for m in messages %}{{ m.content }}{% endfor %}");
  return count;
}

static void put_number(model_builder *builder, const char *name, uint32_t number) {
  char key[BUILT_KEY_BYTES];
  text_format(key, sizeof key, "%s.%s", ARCHITECTURES[builder->choice.family], name);
  builder_put_u32(builder, key, number);
}

static void add_tensor(model_builder *builder, ggml_type type, uint64_t columns, uint64_t rows,
                       const char *name, uint32_t layer) {
  if (builder->tensor_count == BUILT_TENSORS_MAX) abort();
  built_tensor *tensor = &builder->tensors[builder->tensor_count++];
  *tensor =
      (built_tensor){.type = type, .dim_count = rows == 1 ? 1 : 2, .dims = {columns, rows, 1, 1}};
  if (layer == UINT32_MAX) {
    text_format(tensor->name, sizeof tensor->name, "%s", name);
  } else {
    text_format(tensor->name, sizeof tensor->name, "blk.%u.%s", layer, name);
  }
}

static void add_vector(model_builder *builder, uint64_t columns, const char *name, uint32_t layer) {
  add_tensor(builder, GGML_TYPE_F32, columns, 1, name, layer);
}

static void add_stack(model_builder *builder, uint64_t hidden, const char *name, uint32_t layer) {
  add_tensor(builder, builder->choice.type, hidden, hidden, name, layer);
  built_tensor *tensor = &builder->tensors[builder->tensor_count - 1];
  tensor->dims[2] = EXPERTS;
  tensor->dim_count = 3;
}

static void add_attention(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const built_family family = builder->choice.family;
  const ggml_type type = builder->choice.type;
  // in qwen35, each head's queries are followed by its gate
  const uint64_t q_rows = family == BUILT_QWEN35 ? 2 * hidden : hidden;
  add_tensor(builder, type, hidden, q_rows, "attn_q.weight", layer);
  add_tensor(builder, type, hidden, hidden, "attn_k.weight", layer);
  add_tensor(builder, type, hidden, hidden, "attn_v.weight", layer);
  add_tensor(builder, type, hidden, hidden, "attn_output.weight", layer);
  if (family == BUILT_QWEN2) {
    add_vector(builder, hidden, "attn_q.bias", layer);
    add_vector(builder, hidden, "attn_k.bias", layer);
    add_vector(builder, hidden, "attn_v.bias", layer);
  }
  if (family == BUILT_QWEN3MOE || family == BUILT_LFM2 || family == BUILT_QWEN35) {
    add_vector(builder, hidden / HEADS, "attn_q_norm.weight", layer);
    add_vector(builder, hidden / HEADS, "attn_k_norm.weight", layer);
  }
}

static void add_convolution(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const ggml_type type = builder->choice.type;
  add_tensor(builder, type, hidden, 3 * hidden, "shortconv.in_proj.weight", layer);
  add_tensor(builder, GGML_TYPE_F32, TAPS, hidden, "shortconv.conv.weight", layer);
  add_tensor(builder, type, hidden, hidden, "shortconv.out_proj.weight", layer);
}

static void add_delta_net(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const ggml_type type = builder->choice.type;
  const uint64_t head_dim = hidden / HEADS, channels = 2 * KEY_HEADS * head_dim + hidden;
  add_tensor(builder, type, hidden, channels, "attn_qkv.weight", layer);
  add_tensor(builder, type, hidden, hidden, "attn_gate.weight", layer);
  add_tensor(builder, type, hidden, HEADS, "ssm_beta.weight", layer);
  add_tensor(builder, type, hidden, HEADS, "ssm_alpha.weight", layer);
  add_tensor(builder, GGML_TYPE_F32, TAPS, channels, "ssm_conv1d.weight", layer);
  add_vector(builder, HEADS, "ssm_dt.bias", layer);
  add_vector(builder, HEADS, "ssm_a", layer);
  add_vector(builder, head_dim, "ssm_norm.weight", layer);
  add_tensor(builder, type, hidden, hidden, "ssm_out.weight", layer);
}

static void add_scan(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const ggml_type type = builder->choice.type;
  add_tensor(builder, type, hidden, 2 * hidden, "ssm_in.weight", layer);
  add_tensor(builder, GGML_TYPE_F32, TAPS, hidden, "ssm_conv1d.weight", layer);
  add_vector(builder, hidden, "ssm_conv1d.bias", layer);
  add_tensor(builder, type, hidden, RANK + 2 * STATES, "ssm_x.weight", layer);
  add_vector(builder, RANK, "ssm_dt_norm.weight", layer);
  add_vector(builder, STATES, "ssm_b_norm.weight", layer);
  add_vector(builder, STATES, "ssm_c_norm.weight", layer);
  add_tensor(builder, GGML_TYPE_F32, RANK, hidden, "ssm_dt.weight", layer);
  add_vector(builder, hidden, "ssm_dt.bias", layer);
  add_tensor(builder, GGML_TYPE_F32, STATES, hidden, "ssm_a", layer);
  add_vector(builder, hidden, "ssm_d", layer);
  add_tensor(builder, type, hidden, hidden, "ssm_out.weight", layer);
}

static void add_scan_2(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const ggml_type type = builder->choice.type;
  const uint64_t channels = hidden + 2 * KEY_HEADS * STATES;
  add_tensor(builder, type, hidden, hidden + channels + HEADS, "ssm_in.weight", layer);
  add_tensor(builder, GGML_TYPE_F32, TAPS, channels, "ssm_conv1d.weight", layer);
  add_vector(builder, channels, "ssm_conv1d.bias", layer);
  add_vector(builder, HEADS, "ssm_dt.bias", layer);
  add_tensor(builder, GGML_TYPE_F32, 1, HEADS, "ssm_a", layer);
  add_tensor(builder, GGML_TYPE_F32, 1, HEADS, "ssm_d", layer);
  add_vector(builder, hidden, "ssm_norm.weight", layer);
  add_tensor(builder, type, hidden, hidden, "ssm_out.weight", layer);
}

static void add_feed_forward(model_builder *builder, uint32_t layer, uint64_t hidden) {
  const built_family family = builder->choice.family;
  const ggml_type type = builder->choice.type;
  add_vector(builder, hidden,
             family == BUILT_QWEN35 ? "post_attention_norm.weight" : "ffn_norm.weight", layer);
  if (family == BUILT_LLAMA_EXPERTS || family == BUILT_QWEN3MOE) {
    add_tensor(builder, GGML_TYPE_F32, hidden, EXPERTS, "ffn_gate_inp.weight", layer);
    add_stack(builder, hidden, "ffn_gate_exps.weight", layer);
    add_stack(builder, hidden, "ffn_up_exps.weight", layer);
    add_stack(builder, hidden, "ffn_down_exps.weight", layer);
    return;
  }
  add_tensor(builder, type, hidden, hidden, "ffn_gate.weight", layer);
  add_tensor(builder, type, hidden, hidden, "ffn_up.weight", layer);
  add_tensor(builder, type, hidden, hidden, "ffn_down.weight", layer);
}

static void add_layer(model_builder *builder, uint32_t layer, uint64_t hidden) {
  add_vector(builder, hidden, "attn_norm.weight", layer);
  const bool is_recurrent = layer % 2 == 0;
  if (builder->choice.family == BUILT_LFM2 && is_recurrent) {
    add_convolution(builder, layer, hidden);
  } else if (builder->choice.family == BUILT_QWEN35 && is_recurrent) {
    add_delta_net(builder, layer, hidden);
  } else if (builder->choice.family == BUILT_JAMBA && is_recurrent) {
    add_scan(builder, layer, hidden);
  } else if (builder->choice.family == BUILT_GRANITEHYBRID && is_recurrent) {
    add_scan_2(builder, layer, hidden);
  } else {
    add_attention(builder, layer, hidden);
  }
  add_feed_forward(builder, layer, hidden);
}

static void put_family(model_builder *builder, uint32_t hidden) {
  const built_family family = builder->choice.family;
  char key[BUILT_KEY_BYTES];
  put_number(builder, "attention.head_count_kv", HEADS);
  if (family == BUILT_LLAMA_EXPERTS || family == BUILT_QWEN3MOE) {
    put_number(builder, "expert_count", EXPERTS);
    put_number(builder, "expert_used_count", 2);
    put_number(builder, "expert_feed_forward_length", hidden);
  }
  if (family == BUILT_LFM2 || family == BUILT_JAMBA || family == BUILT_GRANITEHYBRID) {
    text_format(key, sizeof key, "%s.attention.head_count_kv", ARCHITECTURES[family]);
    built_value *kv_heads = put_array(builder, key, GGUF_U32);
    for (uint32_t i = 0; i < builder->choice.layers; i++) {
      value_set_i32(kv_heads, i, i % 2 == 0 ? 0 : HEADS);
    }
  }
  if (family == BUILT_LFM2) put_number(builder, "shortconv.l_cache", TAPS);
  if (family == BUILT_JAMBA || family == BUILT_GRANITEHYBRID) {
    put_number(builder, "ssm.conv_kernel", TAPS);
    put_number(builder, "ssm.inner_size", hidden);
    put_number(builder, "ssm.state_size", STATES);
    put_number(builder, "ssm.group_count", KEY_HEADS);
    put_number(builder, "ssm.time_step_rank", family == BUILT_JAMBA ? RANK : HEADS);
  }
  if (family == BUILT_QWEN35) {
    put_number(builder, "ssm.conv_kernel", TAPS);
    put_number(builder, "ssm.state_size", hidden / HEADS);
    put_number(builder, "ssm.group_count", KEY_HEADS);
    put_number(builder, "ssm.time_step_rank", HEADS);
    put_number(builder, "full_attention_interval", 2);
  }
}

void builder_init(model_builder *builder, const built_choice *choice) {
  *builder = (model_builder){.choice = *choice};
  const ggml_type_facts *facts = type_facts(choice->type);
  const uint32_t hidden = facts->block_values > 32 ? facts->block_values : 32;
  const char *architecture = ARCHITECTURES[choice->family];
  builder_put_text(builder, "general.architecture", architecture);
  builder_put_text(builder, "general.name", "built");
  put_number(builder, "block_count", choice->layers);
  put_number(builder, "context_length", choice->context);
  put_number(builder, "embedding_length", hidden);
  put_number(builder, "feed_forward_length", hidden);
  put_number(builder, "attention.head_count", HEADS);
  put_family(builder, hidden);
  char key[BUILT_KEY_BYTES];
  text_format(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
  builder_put_f32(builder, key, 1e-5f);
  text_format(key, sizeof key, "%s.rope.freq_base", architecture);
  builder_put_f32(builder, key, 10000.0f);
  const size_t vocab = put_vocabulary(builder);
  add_tensor(builder, choice->type, hidden, vocab, "token_embd.weight", UINT32_MAX);
  for (uint32_t layer = 0; layer < choice->layers; layer++) add_layer(builder, layer, hidden);
  add_vector(builder, hidden,
             choice->family == BUILT_LFM2 ? "token_embd_norm.weight" : "output_norm.weight",
             UINT32_MAX);
}

void builder_free(model_builder *builder) {
  for (size_t i = 0; i < builder->value_count; i++) clear_value(&builder->values[i]);
  *builder = (model_builder){0};
}

// ---- writing ----

static void write_text(memory_file *file, const void *bytes, size_t size_bytes) {
  file_u64(file, size_bytes);
  file_write(file, bytes, size_bytes);
}

static void write_value(memory_file *file, const built_value *value) {
  file_string(file, value->key);
  file_u32(file, value->type);
  if (value->type == GGUF_ARRAY) {
    file_u32(file, value->item_type);
    file_u64(file, value->count);
  } else if (value->type == GGUF_STRING) {
    file_u64(file, value->data.size_bytes);
  }
  file_write(file, value->data.bytes, value->data.size_bytes);
  for (size_t i = 0; i < value->item_count; i++) {
    write_text(file, value->items[i].bytes, value->items[i].size_bytes);
  }
}

// Fills a quantized block with random codes and with scales that keep values small (scales are at
// the start or at the end).
static void fill_block(uint8_t *block, const ggml_type_facts *facts, uint32_t type,
                       uint64_t *state) {
  const uint16_t small = f16_of_f32(0.003f);
  for (uint32_t i = 0; i < facts->block_bytes; i++) block[i] = (uint8_t)random_u64(state);
  if (facts->block_bytes < sizeof small) return;  // I8
  memcpy(block, &small, sizeof small);
  if (facts->block_bytes > 4) memcpy(block + 2, &small, sizeof small);
  memcpy(block + facts->block_bytes - sizeof small, &small, sizeof small);
  if (type == GGML_TYPE_MXFP4) block[0] = 118;
}

// Returns a random weight near `middle`: norms are about 1, decays about -1.
static float any_weight(const model_builder *builder, uint64_t *state, float middle) {
  const uint64_t random = random_u64(state);
  if (builder->poison != 0 && random % 97 == 0) return builder->poison;
  return (float)(random >> 40) / 16777216.0f * 0.4f - 0.2f + middle;
}

static void write_row(const model_builder *builder, memory_file *file, uint32_t type,
                      uint64_t columns, float middle, uint64_t *state) {
  const ggml_type_facts *facts = type_facts(type);
  for (uint64_t at = 0; at < columns; at += facts->block_values) {
    uint8_t block[GGML_TYPE_BLOCK_BYTES_MAX];
    const float weight = any_weight(builder, state, middle);
    const uint16_t half = f16_of_f32(weight);
    const uint16_t brain = (uint16_t)(bits_of_f32(weight) >> 16);
    if (type == GGML_TYPE_F32) {
      memcpy(block, &weight, sizeof weight);
    } else if (type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) {
      memcpy(block, type == GGML_TYPE_F16 ? &half : &brain, sizeof half);
    } else {
      fill_block(block, facts, type, state);
    }
    file_write(file, block, facts->block_bytes);
  }
}

// Computes the row size of a tensor; returns false if its entry is implausible, to limit its data.
static bool has_data(const built_tensor *tensor, uint64_t *row_bytes) {
  enum { ROW_MOST = 4096, ROWS_MOST = 4096 };
  return tensor->dims[0] <= ROW_MOST && tensor->dims[1] <= ROWS_MOST && tensor->dims[1] > 0 &&
         tensor->dims[2] <= EXPERTS && type_row_bytes(tensor->type, tensor->dims[0], row_bytes);
}

static void write_alignment(memory_file *file, size_t from) {
  while ((file->size_bytes - from) % ALIGNMENT != 0) file_u8(file, 0);
}

memory_file builder_write(const model_builder *builder) {
  memory_file file = {0}, data = {0};
  uint64_t state = 7, offsets[BUILT_TENSORS_MAX], row_bytes;
  for (size_t i = 0; i < builder->tensor_count; i++) {
    const built_tensor *tensor = &builder->tensors[i];
    offsets[i] = data.size_bytes;
    if (!has_data(tensor, &row_bytes)) continue;
    const size_t length = strlen(tensor->name);
    const bool is_decay = length > 6 && strcmp(tensor->name + length - 6, ".ssm_a") == 0;
    const float middle = is_decay ? -1.0f : tensor->dims[1] == 1 ? 1.0f : 0.0f;
    for (uint64_t row = 0; row < tensor->dims[1] * tensor->dims[2]; row++) {
      write_row(builder, &data, tensor->type, tensor->dims[0], middle, &state);
    }
    write_alignment(&data, 0);
  }
  file_header(&file, builder->tensor_count, builder->value_count);
  for (size_t i = 0; i < builder->value_count; i++) write_value(&file, &builder->values[i]);
  for (size_t i = 0; i < builder->tensor_count; i++) {
    const built_tensor *tensor = &builder->tensors[i];
    file_string(&file, tensor->name);
    file_u32(&file, tensor->dim_count);
    for (uint32_t d = 0; d < tensor->dim_count && d < GGUF_DIMS_MAX; d++) {
      file_u64(&file, tensor->dims[d]);
    }
    file_u32(&file, tensor->type);
    file_u64(&file, offsets[i] + tensor->shift_bytes);
  }
  write_alignment(&file, 0);
  file_write(&file, data.bytes, data.size_bytes);
  file_free(&data);
  return file;
}
