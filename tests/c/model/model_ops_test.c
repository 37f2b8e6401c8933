// Tests the op counts of each reference model: the multiply-adds and bytes of matrix products, and
// the bytes of activations, must follow from the shapes of the file's tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/text.h"
#include "check.h"
#include "model/family.h"
#include "shared_files.h"

enum { PROMPT = 5, NEW_TOKENS = 4, PASSES = NEW_TOKENS - 1, MEMORY_BYTES_MAX = 256 << 20 };

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference-more/models"};

// The work for one decoded token; activations are counted as floats, not bytes.
typedef struct token_work {
  uint64_t macs;        // of matrix products
  uint64_t silu, conv;  // floats
} token_work;

static bool ends_with(gguf_string name, const char *end) {
  const size_t size = strlen(end);
  return name.size_bytes >= size && memcmp(name.bytes + name.size_bytes - size, end, size) == 0;
}

static bool contains(gguf_string name, const char *part) {
  char text[GGUF_TENSOR_NAME_BYTES_MAX + 1];
  text_format(text, sizeof text, "%.*s", (int)name.size_bytes, name.bytes);
  return strstr(text, part) != NULL;
}

static uint32_t experts_used(const wick_engine *engine) {
  char key[128];
  uint32_t used = 1;
  text_format(key, sizeof key, "%s.expert_used_count", engine->model->family->name);
  gguf_get_u32(engine_directory(engine), key, &used, NULL);
  return used;
}

static token_work work_of_token(const wick_engine *engine) {
  const gguf_directory *directory = engine_directory(engine);
  const loaded_model *model = engine->model;
  token_work work = {0};
  for (uint32_t i = 0; i < model->binding_count; i++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, i);
    const weight_tensor *matrix = model->bindings[i].matrix;
    const uint64_t *dims = tensor->dims;
    if (ends_with(tensor->name, ".ssm_conv1d.weight") && model->bindings[i].layer >= 0) {
      work.conv += (2 + 2 * dims[0]) * dims[1];
    }
    if (ends_with(tensor->name, ".shortconv.conv.weight")) work.conv += (4 + 2 * dims[0]) * dims[1];
    const bool is_output = matrix == &model->embedding && model->is_tied;
    if (matrix == NULL || !(is_output || model->bindings[i].is_adaptable || matrix->dims[2] > 1)) {
      continue;
    }
    // one matrix per expert in use, or per head
    const uint64_t count =
        contains(tensor->name, "_exps.") ? experts_used(engine) : matrix->dims[2];
    work.macs += count * dims[0] * dims[1];
    if (contains(tensor->name, ".ffn_down")) work.silu += 3 * count * dims[0];
  }
  return work;
}

static void run(wick_engine *engine) {
  static const int32_t TOKENS[PROMPT] = {3, 10, 17, 24, 31};
  wick_request request;
  wick_error error = {0};
  uint32_t id;
  wick_request_default(&request);
  request.tokens = TOKENS;
  request.token_count = PROMPT;
  request.max_tokens = NEW_TOKENS;
  request.ignore_end = request.no_speculation = true;
  if (!CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK)) {
    printf("#   %s\n", error.message);
    return;
  }
  while (wick_step(engine, 0) != WICK_STEP_IDLE) {
    size_t size_bytes;
    wick_events_take(engine, &size_bytes);
  }
}

static bool check_model(wick_engine *engine) {
  static const op_kind PRODUCTS[] = {OP_EMBED, OP_QKV,   OP_ATTN_OUTPUT, OP_GATE_UP,
                                     OP_DOWN,  OP_ROUTE, OP_EXPERTS,     OP_LOGITS};
  run(engine);
  const op_record *decode = engine->ops->records[PASS_DECODE];
  const token_work work = work_of_token(engine);
  uint64_t macs = 0;
  for (size_t i = 0; i < sizeof PRODUCTS / sizeof *PRODUCTS; i++) macs += decode[PRODUCTS[i]].macs;
  bool is_right = CHECK_EQ_UINT(macs, PASSES * work.macs);
  is_right = CHECK_EQ_UINT(decode[OP_SILU].bytes, PASSES * work.silu * sizeof(float)) && is_right;
  is_right = CHECK_EQ_UINT(decode[OP_CONV].bytes, PASSES * work.conv * sizeof(float)) && is_right;
  return is_right;
}

TEST(op_counts_follow_from_the_tensor_shapes) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  uint32_t checked = 0;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    for (size_t j = 0; j < count; j++) {
      // skip one shape in many types, and models in which some matrices process only one of a
      // token's four rows
      if (strstr(names[j], "llama-256") != NULL || strstr(names[j], "gemma3n") != NULL) continue;
      memory_file file = shared_read(FOLDERS[i], names[j]);
      wick_config config;
      wick_engine *engine = NULL;
      wick_error error = {0};
      wick_config_default(&config);
      config.memory_bytes_max = MEMORY_BYTES_MAX;
      config.metrics = true;
      REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
      if (wick_load_bytes(engine, file.bytes, file.size_bytes, &error) == WICK_OK &&
          !engine->model->is_encoder) {
        checked++;
        if (!check_model(engine)) printf("#   %s\n", names[j]);
      }
      wick_engine_destroy(engine);
      file_free(&file);
    }
  }
  CHECK(checked > 80);
}
