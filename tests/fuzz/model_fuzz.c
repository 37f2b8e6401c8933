// Fuzzes the public interface from a GGUF file to generated text. Input: bytes that choose a small
// valid model (tests/c/support/model_builder.h), the number of changes to its values, lists,
// tensors and bytes, these changes, the configuration and loading, then interface calls until the
// input ends (engine_calls.h lists the assertions).
#include <stdlib.h>
#include <string.h>

#include "../c/support/model_builder.h"
#include "engine_calls.h"

enum { INPUT_MAX = 512, CHANGES_MAX = 12, CONTEXT = 64 };

// ---- changes to the model ----

static built_value *choose_value(model_builder *model, input *in) {
  return &model->values[next_u8(in) % model->value_count];
}

static built_value *choose_list(model_builder *model, input *in) {
  static const char *const LISTS[] = {"tokens", "token_type", "scores", "merges"};
  char key[BUILT_KEY_BYTES] = "tokenizer.ggml.";
  const char *name = LISTS[next_u8(in) % 4];
  memcpy(key + strlen(key), name, strlen(name) + 1);
  built_value *value = builder_find(model, key);
  return value != NULL ? value : choose_value(model, in);
}

static void put_optional(model_builder *model, input *in) {
  static const char *const KEYS[] = {"llama.rope.scaling.type",
                                     "llama.rope.scaling.factor",
                                     "llama.rope.scale_linear",
                                     "llama.rope.dimension_count",
                                     "llama.attention.key_length",
                                     "llama.attention.value_length",
                                     "llama.expert_count",
                                     "llama.expert_used_count",
                                     "llama.expert_weights_scale",
                                     "qwen3moe.expert_count",
                                     "lfm2.shortconv.l_cache",
                                     "lfm2.attention.head_count_kv",
                                     "qwen35.ssm.group_count",
                                     "qwen35.full_attention_interval",
                                     "qwen35.nextn_predict_layers",
                                     "jamba.expert_count",
                                     "jamba.ssm.inner_size",
                                     "jamba.ssm.state_size",
                                     "jamba.ssm.time_step_rank",
                                     "granitehybrid.expert_count",
                                     "granitehybrid.ssm.inner_size",
                                     "granitehybrid.ssm.group_count",
                                     "granitehybrid.ssm.time_step_rank",
                                     "llama.vocab_size",
                                     "general.alignment",
                                     "split.count",
                                     "split.no",
                                     "split.tensors.count",
                                     "tokenizer.ggml.add_bos_token",
                                     "tokenizer.ggml.add_eos_token",
                                     "tokenizer.ggml.add_space_prefix",
                                     "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.fim_pad_token_id",
                                     "tokenizer.ggml.seperator_token_id",
                                     "tokenizer.ggml.pre",
                                     "tokenizer.ggml.normalizer.lowercase"};
  static const char *const TEXTS[] = {"none",  "linear", "yarn",        "llama-bpe",
                                      "qwen2", "tekken", "deepseek-v3", "gpt-4o"};
  const char *key = KEYS[next_u8(in) % (sizeof KEYS / sizeof *KEYS)];
  const uint32_t type = next_u8(in) % (GGUF_F64 + 1);
  if (type == GGUF_STRING) {
    builder_put_text(model, key, TEXTS[next_u8(in) % 8]);
    return;
  }
  built_value *value = builder_put(model, key, type);
  const uint64_t number = choose_number(in);
  static const uint8_t BYTES[GGUF_F64 + 1] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (value != NULL) value_set_data(value, &number, BYTES[type]);
}

// Changes one item to a long run of a letter, a different item, two of them, or bytes of the input.
static void change_item(model_builder *model, input *in) {
  built_value *list = choose_list(model, in);
  const uint32_t index = next_u16(in) % 300, how = next_u8(in) % 5, other = next_u16(in);
  if (list->item_type != GGUF_STRING) {
    value_set_i32(list, index, (int32_t)choose_number(in));
    return;
  }
  const memory_file *from = list->item_count == 0 ? NULL : &list->items[other % list->item_count];
  uint8_t text[4096] = {0};
  size_t size = 0;
  if (how == 0) {
    size = other % sizeof text;
    memset(text, (int)('a' + other % 3), size);
  } else if (how < 3 && from != NULL) {
    for (uint32_t i = 0; i < how && size + from->size_bytes < sizeof text; i++) {
      if (from->size_bytes != 0) memcpy(text + size, from->bytes, from->size_bytes);
      size += from->size_bytes;
    }
  } else {
    size = next_u8(in) % 16;
    for (size_t i = 0; i < size; i++) text[i] = (uint8_t)next_u8(in);
  }
  value_set_item(list, index, text, size);
}

// Adds special tokens that are prefixes of each other.
static void nest_specials(model_builder *model, input *in) {
  built_value *tokens = builder_find(model, "tokenizer.ggml.tokens");
  built_value *kinds = builder_find(model, "tokenizer.ggml.token_type");
  if (tokens == NULL || kinds == NULL) return;
  const uint32_t first = next_u16(in) % 280, count = next_u8(in) % 64, by = 1 + next_u8(in) % 20;
  const int32_t kind = TOKEN_UNKNOWN + (int32_t)(next_u8(in) % 3);
  char text[64 * 20];
  memset(text, 'a', sizeof text);
  for (uint32_t i = 0; i < count; i++) {
    value_set_item(tokens, first + i, text, (size_t)(i + 1) * by);
    value_set_i32(kinds, first + i, kind);
  }
}

static void change_tensor(model_builder *model, input *in) {
  if (model->tensor_count == 0) return;
  built_tensor *tensor = &model->tensors[next_u8(in) % model->tensor_count];
  const uint64_t number = choose_number(in);
  switch (next_u8(in) % 7) {
    case 0:
      tensor->type = (uint32_t)number % 48;
      break;
    case 1:
      tensor->dim_count = (uint32_t)number % 6;
      break;
    case 2:
    case 3:
      tensor->dims[next_u8(in) % 2] = number;
      break;
    case 4:
      tensor->shift_bytes = number;
      break;
    case 5:
      tensor->name[next_u8(in) % 20] ^= 1;
      break;
    default:
      *tensor = model->tensors[--model->tensor_count];
  }
}

static void change_model(model_builder *model, input *in) {
  built_value *value;
  uint64_t number;
  uint32_t bits;
  switch (next_u8(in) % 12) {
    case 0:  // a number
      value = choose_value(model, in);
      number = choose_number(in);
      if (value->type != GGUF_ARRAY) value_set_data(value, &number, value->data.size_bytes % 9);
      break;
    case 1:  // a float from its bits
      value = choose_value(model, in);
      bits = next_u32(in);
      if (value->type == GGUF_F32) value_set_data(value, &bits, sizeof bits);
      break;
    case 2:
      value = choose_value(model, in);
      value->type = next_u8(in) % 14;
      break;
    case 3:
      value = choose_value(model, in);
      builder_remove(model, value->key);
      break;
    case 4:
      value = choose_value(model, in);
      value->key[next_u8(in) % strlen(value->key)] ^= 1;
      break;
    case 5:
      value_resize(choose_list(model, in), next_u16(in) % 700);
      break;
    case 6:  // a wrong count
      choose_list(model, in)->count = choose_number(in);
      break;
    case 7:
      change_item(model, in);
      break;
    case 8:
      nest_specials(model, in);
      break;
    case 9:
      change_tensor(model, in);
      break;
    case 10:
      put_optional(model, in);
      break;
    default: {
      static const float POISON[] = {1e30f, -1e30f, 1e-40f, __builtin_inff(), __builtin_nanf("")};
      model->poison = POISON[next_u8(in) % 5];
    }
  }
}

static void damage_file(memory_file *file, input *in) {
  const uint32_t how = next_u8(in);
  for (uint32_t i = 0; i < how % 4; i++) {
    file->bytes[next_u32(in) % file->size_bytes] ^= (uint8_t)(1 + next_u8(in) % 255);
  }
  if (how >= 224) file->size_bytes = next_u32(in) % file->size_bytes;
}

static memory_file make_file(input *in) {
  static const ggml_type TYPES[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_Q8_0,
                                    GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_MXFP4,
                                    GGML_TYPE_BF16, GGML_TYPE_Q4_K};
  // selected by the two highest bits and bit 4
  static const built_family FAMILIES[4][2] = {{BUILT_LLAMA, BUILT_QWEN2},
                                              {BUILT_LLAMA_EXPERTS, BUILT_QWEN3MOE},
                                              {BUILT_LFM2, BUILT_QWEN35},
                                              {BUILT_JAMBA, BUILT_GRANITEHYBRID}};
  const uint32_t choice = next_u8(in);
  const built_choice chosen = {.vocabulary = (built_vocabulary)(choice % BUILT_VOCABULARIES),
                               .family = FAMILIES[choice >> 6][choice >> 4 & 1],
                               .type = TYPES[next_u8(in) % 8],
                               .layers = 1 + (choice >> 5 & 1),
                               .context = CONTEXT};
  static model_builder model;
  builder_init(&model, &chosen);
  const uint32_t changes = next_u8(in) % (CHANGES_MAX + 1);
  for (uint32_t i = 0; i < changes && model.value_count != 0; i++) change_model(&model, in);
  memory_file file = builder_write(&model);
  damage_file(&file, in);
  builder_free(&model);
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes > INPUT_MAX) return 0;
  input in = {data, size_bytes};
  memory_file file = make_file(&in);
  engine_calls_run(&in, file, (memory_file){0});
  file_free(&file);
  return 0;
}
