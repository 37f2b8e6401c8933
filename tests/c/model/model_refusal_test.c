// Models that are rejected during planning: tensors that are missing or have the wrong shape, and
// experts in architectures that have none.
#include <stdio.h>

#include "api/insides.h"
#include "base/text.h"
#include "fixture_model.h"
#include "model_builder.h"

enum { LAYERS = 2 };

static wick_status load_built(const model_builder *model, wick_error *error) {
  const memory_file written = builder_write(model);
  const fixture_file file = {written.bytes, written.size_bytes, written.size_bytes};
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  memset(error, 0, sizeof *error);
  wick_status status = wick_engine_create(&config, &engine, error);
  if (CHECK_EQ_INT(status, WICK_OK)) status = fixture_load(engine, &file, 0, error);
  wick_engine_destroy(engine);
  free(written.bytes);
  return status;
}

static void check_refusal(const model_builder *model, wick_status wanted, const char *expected) {
  wick_error error;
  const wick_status status = load_built(model, &error);
  if (!CHECK_EQ_INT(status, wanted) || !CHECK(strstr(error.message, expected) != NULL)) {
    printf("#   %s: %s\n", expected, error.message);
  }
}

TEST(vectors_may_have_any_float_type) {
  static const ggml_type TYPES[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                    GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1};
  for (int family = 0; family < BUILT_FAMILIES; family++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, (built_family)family, GGML_TYPE_F32, LAYERS, 64};
    wick_error error;
    builder_init(&model, &choice);
    built_tensor *tensor = model.tensors;
    while (strcmp(tensor->name, "output_norm.weight") != 0 &&
           strcmp(tensor->name, "token_embd_norm.weight") != 0) {
      tensor++;
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
      tensor->type = TYPES[i];
      if (i < 3) {
        CHECK_EQ_INT(load_built(&model, &error), WICK_OK);
      } else {
        check_refusal(&model, WICK_E_UNSUPPORTED, "which is not supported for a vector");
      }
    }
    builder_free(&model);
  }
}

// If this tensor is missing, the embedding is used.
static bool is_optional(const char *name) {
  return strcmp(name, "output.weight") == 0 || strstr(name, ".bias") != NULL;
}

TEST(missing_and_misshapen_tensors_are_reported_by_name) {
  for (int family = 0; family < BUILT_FAMILIES; family++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, (built_family)family, GGML_TYPE_F32, LAYERS, 64};
    wick_error error;
    builder_init(&model, &choice);
    CHECK_EQ_INT(load_built(&model, &error), WICK_OK);
    for (size_t i = 0; i < model.tensor_count; i++) {
      built_tensor *tensor = &model.tensors[i];
      const built_tensor was = *tensor;
      if (!is_optional(was.name)) {
        tensor->name[0] = 'x';
        check_refusal(&model, WICK_E_FORMAT, was.name);
        *tensor = was;
      }
      tensor->dims[0] += tensor->dims[0] > 1 ? 1 : 2;
      check_refusal(&model, WICK_E_SHAPE, was.name);
      // in any order
      *tensor = model.tensors[0];
      model.tensors[0] = was;
      CHECK_EQ_INT(load_built(&model, &error), WICK_OK);
      model.tensors[0] = *tensor;
      *tensor = was;
    }
    CHECK_EQ_INT(load_built(&model, &error), WICK_OK);
    builder_free(&model);
  }
}

// Otherwise the model would run without its last layers.
TEST(layers_beyond_the_block_count_are_rejected) {
  static model_builder model;
  const built_choice choice = {BUILT_SPM, BUILT_QWEN2, GGML_TYPE_F32, LAYERS, 64};
  builder_init(&model, &choice);
  builder_put_u32(&model, "qwen2.block_count", LAYERS - 1);
  check_refusal(&model, WICK_E_FORMAT, "qwen2.block_count is 1, but the file has blk.1.");
  builder_free(&model);
}

// The error says which kind of file it is, instead of reporting missing keys or tensors.
TEST(adapters_and_projectors_are_rejected_as_models) {
  static const struct {
    const char *key, *value, *expected;
    wick_status status;
  } KINDS[] = {
      {"general.type", "adapter", "an adapter: load it with its model (--lora)",
       WICK_E_UNSUPPORTED},
      {"general.type", "mmproj", "an image or audio projector", WICK_E_UNSUPPORTED},
      {"general.architecture", "clip", "an image or audio projector", WICK_E_UNSUPPORTED},
      {"general.type", "model", "", WICK_OK},
      {"general.type", "vocab", "", WICK_OK},
  };
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, BUILT_QWEN2, GGML_TYPE_F32, LAYERS, 64};
    builder_init(&model, &choice);
    builder_put_text(&model, KINDS[i].key, KINDS[i].value);
    check_refusal(&model, KINDS[i].status, KINDS[i].expected);
    builder_free(&model);
  }
}

// A file of a dense architecture that claims to have experts is mislabelled.
TEST(experts_are_rejected_in_dense_architectures) {
  static const char *const NAMES[] = {"qwen2",     "qwen3",    "granite", "minicpm", "mistral3",
                                      "internlm2", "xverse",   "exaone",  "orion",   "qwen",
                                      "arcee",     "ernie4_5", "seed_oss"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, BUILT_QWEN2, GGML_TYPE_F32, LAYERS, 64};
    char expected[96];
    builder_init(&model, &choice);
    for (size_t k = 0; k < model.value_count; k++) {
      char *key = model.values[k].key;
      char rest[BUILT_KEY_BYTES];
      if (strncmp(key, "qwen2.", 6) != 0) continue;
      text_format(rest, sizeof rest, "%s", key + 6);
      text_format(key, BUILT_KEY_BYTES, "%s.%s", NAMES[i], rest);
    }
    builder_put_text(&model, "general.architecture", NAMES[i]);
    text_format(expected, sizeof expected, "%s.attention.layer_norm_epsilon", NAMES[i]);
    builder_put_f32(&model, expected, 1e-5f);  // Orion's norms subtract the mean
    text_format(expected, sizeof expected, "%s.expert_count", NAMES[i]);
    builder_put_u32(&model, expected, 4);
    text_format(expected, sizeof expected,
                "mixtures of experts ('%s.expert_count' is 4) are not supported", NAMES[i]);
    check_refusal(&model, WICK_E_UNSUPPORTED, expected);
    builder_free(&model);
  }
}

// ---- keys ----

static void begin_lfm2(model_builder *model) {
  const built_choice choice = {BUILT_SPM, BUILT_LFM2, GGML_TYPE_F32, LAYERS, 64};
  builder_init(model, &choice);
}

TEST(invalid_per_layer_values_are_rejected_by_key) {
  static const char KEY[] = "lfm2.attention.head_count_kv";
  static model_builder model;
  begin_lfm2(&model);
  value_resize(builder_find(&model, KEY), LAYERS - 1);
  check_refusal(&model, WICK_E_FORMAT,
                "'lfm2.attention.head_count_kv' has 1 items, but the model has 2");
  value_resize(builder_find(&model, KEY), LAYERS);
  value_set_i32(builder_find(&model, KEY), 1, 1 << 24);
  check_refusal(&model, WICK_E_FORMAT, KEY);
  value_set_i32(builder_find(&model, KEY), 1, -1);
  check_refusal(&model, WICK_E_FORMAT, KEY);
  value_resize(builder_find(&model, KEY), 0);
  builder_find(&model, KEY)->item_type = GGUF_STRING;
  value_resize(builder_find(&model, KEY), LAYERS);
  check_refusal(&model, WICK_E_FORMAT, "'lfm2.attention.head_count_kv' is not an array of numbers");
  builder_put_text(&model, KEY, "2");
  check_refusal(&model, WICK_E_FORMAT, KEY);
  builder_free(&model);
}

// Keys that their architecture ignores.
static bool is_ignored(const char *key) {
  return strcmp(key, "jamba.ssm.group_count") == 0 ||
         strcmp(key, "qwen3moe.feed_forward_length") == 0 ||
         strcmp(key, "llama.expert_feed_forward_length") == 0;
}

static void check_key(model_builder *model, const char *key, uint32_t number) {
  char expected[BUILT_KEY_BYTES + 64];
  wick_error error;
  builder_put_u32(model, key, number);
  text_format(expected, sizeof expected, "'%s' is %u, which is not between", key, number);
  const bool is_context = strstr(key, ".context_length") != NULL;
  if (is_ignored(key) || (is_context && number != 0)) {
    CHECK_EQ_INT(load_built(model, &error), WICK_OK);
  } else if (strcmp(key, "llama.expert_count") == 0 && number == 0) {
    check_refusal(model, WICK_E_FORMAT, "'blk.0.ffn_gate.weight'");  // a tensor of a dense model
  } else {
    check_refusal(model, WICK_E_FORMAT, expected);
  }
}

TEST(out_of_range_values_are_rejected_by_key) {
  uint32_t checked = 0;
  for (int family = 0; family < BUILT_FAMILIES; family++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, (built_family)family, GGML_TYPE_F32, LAYERS, 64};
    builder_init(&model, &choice);
    for (size_t i = 0; i < model.value_count; i++) {
      const built_value *value = &model.values[i];
      uint32_t was;
      if (value->type != GGUF_U32 || strncmp(value->key, "tokenizer.", 10) == 0 ||
          strncmp(value->key, "general.", 8) == 0) {
        continue;
      }
      memcpy(&was, value->data.bytes, sizeof was);
      check_key(&model, value->key, UINT32_MAX);
      check_key(&model, value->key, 0);
      builder_put_u32(&model, value->key, was);
      checked++;
    }
    wick_error error;
    CHECK_EQ_INT(load_built(&model, &error), WICK_OK);
    builder_free(&model);
  }
  CHECK(checked > 50);
}
