// A program that omits parts of the engine (base/extras.h): which models and configurations it
// accepts, and that it rejects the others with an error that refers to the program that supports
// them.
#include <stdio.h>

#include "base/extras.h"
#include "fixture_model.h"
#include "model_builder.h"

#define LEFT " is not in this program; the whole one has all features"

static wick_error error;

static wick_engine *open_with(wick_status *status, const wick_config *config) {
  wick_engine *engine = NULL;
  error = (wick_error){0};
  *status = wick_engine_create(config, &engine, &error);
  return engine;
}

static wick_status try_config(wick_kv_type k_type, wick_kv_type v_type, wick_tables tables) {
  wick_config config;
  wick_status status;
  wick_config_default(&config);
  config.k_type = k_type;
  config.v_type = v_type;
  config.tables = tables;
  wick_engine_destroy(open_with(&status, &config));
  return status;
}

static void check_error(wick_status status, const char *message) {
  CHECK_EQ_INT(status, WICK_E_UNSUPPORTED);
  CHECK_EQ_INT(error.status, WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message, message);
}

TEST(configurations_that_need_omitted_parts_are_rejected) {
  extras_leave_out("the whole one");
  static const struct {
    wick_kv_type k, v;
    const char *message;
  } CASES[] = {
      {WICK_KV_F32, WICK_KV_F32, NULL},
      {WICK_KV_F16, WICK_KV_F32, NULL},
      {WICK_KV_F32, WICK_KV_F16, NULL},
      {WICK_KV_Q8, WICK_KV_F32, "the KV type q8" LEFT},
      {WICK_KV_F16, WICK_KV_Q8, "the KV type q8" LEFT},
      {WICK_KV_Q4, WICK_KV_F16, "the KV type q4" LEFT},
      {WICK_KV_F32, WICK_KV_Q4, "the KV type q4" LEFT},
      {WICK_KV_Q4, WICK_KV_Q8, "the KV type q4" LEFT},
      {WICK_KV_Q8, WICK_KV_Q4, "the KV type q8" LEFT},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const wick_status status = try_config(CASES[i].k, CASES[i].v, WICK_TABLES_AUTO);
    if (CASES[i].message == NULL) {
      CHECK_EQ_INT(status, WICK_OK);
      continue;
    }
    check_error(status, CASES[i].message);
    CHECK_EQ_STR(wick_subject_name(error.subject), "k_type, v_type");
    CHECK_EQ_UINT(error.numbers[0], CASES[i].k);
    CHECK_EQ_UINT(error.numbers[1], CASES[i].v);
    CHECK_EQ_UINT(error.offset_bytes, WICK_NO_OFFSET);
  }
  check_error(try_config(WICK_KV_F32, WICK_KV_F32, WICK_TABLES_OUTSIDE),
              "keeping tables outside" LEFT);
  CHECK_EQ_STR(wick_subject_name(error.subject), "tables");
  CHECK_EQ_INT(try_config(WICK_KV_F32, WICK_KV_F32, WICK_TABLES_INSIDE), WICK_OK);
  extras_leave_out(NULL);
  CHECK_EQ_INT(try_config(WICK_KV_Q4, WICK_KV_Q8, WICK_TABLES_AUTO), WICK_OK);
}

// ---- models ----

static model_builder model;

static void begin_model(built_family family, ggml_type type) {
  const built_choice choice = {BUILT_SPM, family, type, 2, 64};
  builder_init(&model, &choice);
}

// Continues loading the model.
static wick_status load_model(void) {
  const memory_file built = builder_write(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_config config;
  wick_status status;
  builder_free(&model);
  wick_config_default(&config);
  wick_engine *engine = open_with(&status, &config);
  if (status == WICK_OK) status = fixture_load(engine, &file, 0, &error);
  wick_engine_destroy(engine);
  free(built.bytes);
  return status;
}

// Checks that the complete program accepts the model and that the reduced one rejects it with a
// byte offset in the file.
static void check_needs(const char *message) {
  extras_leave_out("the whole one");
  const memory_file built = builder_write(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_config config;
  wick_status status;
  wick_config_default(&config);
  wick_engine *engine = open_with(&status, &config);
  if (CHECK_EQ_INT(status, WICK_OK)) status = fixture_load(engine, &file, 0, &error);
  if (message == NULL) {
    CHECK_EQ_INT(status, WICK_OK);
    CHECK_EQ_STR(error.message, "");
  } else {
    check_error(status, message);
    CHECK(error.offset_bytes >= 24 && error.offset_bytes < file.size_bytes);
  }
  wick_engine_destroy(engine);
  free(built.bytes);
  extras_leave_out(NULL);
  CHECK_EQ_INT(load_model(), WICK_OK);
}

TEST(common_models_need_no_omitted_parts) {
  static const built_family FAMILIES[] = {BUILT_LLAMA, BUILT_QWEN2};
  static const ggml_type TYPES[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0};
  for (int f = 0; f < 2; f++) {
    for (int t = 0; t < 3; t++) {
      begin_model(FAMILIES[f], TYPES[t]);
      check_needs(NULL);
    }
  }
}

TEST(models_with_omitted_families_or_layers_are_rejected) {
  begin_model(BUILT_LFM2, GGML_TYPE_F32);
  check_needs("the architecture 'lfm2' (general.architecture)" LEFT);
  begin_model(BUILT_QWEN3MOE, GGML_TYPE_F32);
  check_needs("the architecture 'qwen3moe' (general.architecture)" LEFT);
  begin_model(BUILT_LLAMA_EXPERTS, GGML_TYPE_F32);
  check_needs("support for 'llama.expert_count'" LEFT);
  const uint8_t no = 0, yes = 1;
  begin_model(BUILT_LLAMA, GGML_TYPE_F32);
  value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &no, 1);
  check_needs("support for 'llama.attention.causal'" LEFT);
  begin_model(BUILT_LLAMA, GGML_TYPE_F32);
  value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &yes, 1);
  check_needs(NULL);
}

TEST(models_with_omitted_tokenizers_are_rejected) {
  const built_choice choice = {BUILT_WORDS, BUILT_LLAMA, GGML_TYPE_F32, 2, 64};
  builder_init(&model, &choice);
  check_needs("the tokenizer 'bert' (tokenizer.ggml.model)" LEFT);
}

// The type of a single tensor decides, wherever it is in the file.
TEST(tensors_of_omitted_types_are_rejected) {
  begin_model(BUILT_LLAMA, GGML_TYPE_F32);
  const size_t count = model.tensor_count;
  builder_free(&model);
  uint32_t changed = 0;
  for (size_t i = 0; i < count; i++) {
    begin_model(BUILT_LLAMA, GGML_TYPE_F32);
    built_tensor *tensor = &model.tensors[i];
    if (tensor->dim_count != 2 || tensor->dims[0] % 32 != 0) {
      builder_free(&model);
      continue;
    }
    char message[160];
    tensor->type = GGML_TYPE_IQ4_NL;
    snprintf(message, sizeof message, "the type IQ4_NL (tensor '%s')" LEFT, tensor->name);
    check_needs(message);
    changed++;
  }
  CHECK(changed > 5);
}
