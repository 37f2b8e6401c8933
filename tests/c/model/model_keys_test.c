// What becomes of the reference models when one of their keys or
// tensors is missing or another one: a refusal with its message and place, or another plan. Each
// model's answers together are compared with tests/c/model/model_keys.txt; one by one they are left
// in $WICK_TMP/model_keys_all.txt, and what would be kept in $WICK_TMP/model_keys.txt.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/hash.h"
#include "check.h"
#include "shared_files.h"

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference-more/models"};

typedef struct answers {
  FILE *all;  // or NULL
  uint64_t hash;
  uint32_t asked, refused;
} answers;

__attribute__((format(printf, 2, 3))) static void tell(answers *to, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (!CHECK(size >= 0 && (size_t)size < sizeof line)) return;
  to->hash = hash_bytes(line, (size_t)size, to->hash);
  if (to->all != NULL) fputs(line, to->all);
}

static wick_engine *open_directory(const memory_file *file, wick_status *status,
                                   wick_error *error) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.directory_only = true;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, error), WICK_OK);
  *status = wick_load_bytes(engine, file->bytes, file->size_bytes, error);
  return engine;
}

static void ask(const memory_file *file, const char *what, answers *to) {
  wick_error error = {0};
  wick_status status;
  wick_plan plan;
  wick_engine *engine = open_directory(file, &status, &error);
  if (status == WICK_OK) status = wick_memory_plan(engine, &plan, &error);
  to->asked++;
  to->refused += status != WICK_OK;
  if (status == WICK_OK) {
    tell(to, "  %s: %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n", what, plan.weights_bytes,
         plan.scratch_bytes, plan.kv_bytes, plan.kv_page_bytes, plan.context_tokens);
  } else {
    tell(to, "  %s: %d at %" PRIu64 ": %s\n", what, status, error.offset_bytes, error.message);
  }
  wick_engine_destroy(engine);
}

// Asks with other bytes in place of `size_bytes` ones.
static void ask_with(const memory_file *file, uint8_t *at, const void *bytes, size_t size_bytes,
                     const char *what, answers *to) {
  uint8_t before[8];
  memcpy(before, at, size_bytes);
  if (memcmp(before, bytes, size_bytes) == 0) return;
  memcpy(at, bytes, size_bytes);
  ask(file, what, to);
  memcpy(at, before, size_bytes);
}

static void ask_numbers(const memory_file *file, uint8_t *at, gguf_value_type type, answers *to) {
  static const float REALS[] = {0, -1, 0.5f, 1e30f, __builtin_nanf("")};
  char what[40];
  uint32_t before;
  memcpy(&before, at, sizeof before);
  const uint32_t numbers[] = {0, 1, before - 1, before + 1, 65536, UINT32_MAX};
  for (size_t i = 0; type == GGUF_F32 && i < sizeof REALS / sizeof *REALS; i++) {
    snprintf(what, sizeof what, "%g", (double)REALS[i]);
    ask_with(file, at, &REALS[i], sizeof *REALS, what, to);
  }
  for (size_t i = 0; type != GGUF_F32 && i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(what, sizeof what, "%u", numbers[i]);
    ask_with(file, at, &numbers[i], sizeof *numbers, what, to);
  }
}

static bool is_number(gguf_value_type type) {
  return type == GGUF_U32 || type == GGUF_I32 || type == GGUF_F32;
}

static void ask_key(const memory_file *file, const gguf_value *value, answers *to) {
  const char *key = value->key.bytes;
  const size_t key_bytes = (size_t)value->key.size_bytes;
  if (key_bytes < 10 || memcmp(key, "general.", 8) == 0) return;
  if (memcmp(key, "tokenizer.", 10) == 0 || memcmp(key, "split.", 6) == 0) return;
  uint8_t *last = file->bytes + value->offset_bytes + 8 + key_bytes - 1, *data = last + 1 + 4;
  const uint8_t other = *last ^ 1;
  tell(to, " %.*s\n", (int)key_bytes, key);
  ask_with(file, last, &other, 1, "missing", to);
  if (is_number(value->type)) ask_numbers(file, data, value->type, to);
  if (value->type == GGUF_BOOL || value->type == GGUF_STRING) {
    uint8_t *at = value->type == GGUF_BOOL ? data : data + 8;
    const uint8_t changed = *at ^ 1;
    ask_with(file, at, &changed, 1, "other", to);
  }
  if (value->type == GGUF_ARRAY && value->count != 0 && is_number(value->item_type)) {
    ask_numbers(file, data + 12 + 4 * (value->count - 1), value->item_type, to);
  }
}

// One of the changes, by its number.
static void ask_tensor(const memory_file *file, const gguf_tensor *tensor, size_t number,
                       answers *to) {
  const size_t name_bytes = (size_t)tensor->name.size_bytes;
  uint8_t *last = file->bytes + tensor->entry_offset_bytes + 8 + name_bytes - 1;
  uint8_t *dims = last + 1 + 4, *type = dims + 8 * (size_t)tensor->dim_count;
  const size_t which = number / 3 % tensor->dim_count;
  const uint32_t integers = GGML_TYPE_I32;
  const uint64_t fewer = tensor->dims[which] - 1;
  const uint8_t other = *last ^ 1;
  tell(to, " %.*s\n", (int)name_bytes, tensor->name.bytes);
  if (number % 3 == 0) ask_with(file, last, &other, 1, "missing", to);
  if (number % 3 == 1) ask_with(file, type, &integers, sizeof integers, "of integers", to);
  if (number % 3 == 2) ask_with(file, dims + 8 * which, &fewer, sizeof fewer, "smaller", to);
}

static void ask_model(const memory_file *file, answers *to) {
  wick_error error = {0};
  wick_status status;
  wick_engine *engine = open_directory(file, &status, &error);
  const gguf_directory *directory = engine_directory(engine);
  const size_t count = directory == NULL ? 0 : gguf_value_count(directory);
  const size_t tensors = directory == NULL ? 0 : gguf_tensor_count(directory);
  for (size_t i = 0; i < count; i++) ask_key(file, gguf_value_at(directory, i), to);
  for (size_t i = 0; i < tensors; i++) ask_tensor(file, gguf_tensor_at(directory, i), i, to);
  wick_engine_destroy(engine);
}

static void check_models(const char *kept, FILE *out, FILE *all) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  uint32_t refused = 0;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    for (size_t j = 0; j < count; j++) {
      char line[2 * SHARED_NAME_BYTES_MAX];
      answers found = {.all = all};
      const memory_file file = shared_read(FOLDERS[i], names[j]);
      if (all != NULL) fprintf(all, "%s/%s\n", FOLDERS[i], names[j]);
      ask_model(&file, &found);
      free(file.bytes);
      refused += found.refused;
      snprintf(line, sizeof line, "%s/%s: %u of %u refused, %016" PRIx64 "\n", FOLDERS[i], names[j],
               found.refused, found.asked, found.hash);
      if (out != NULL) fputs(line, out);
      // where sizes have 32 bits, other ones are refused
      if (sizeof(size_t) == 8 && !CHECK(strstr(kept, line) != NULL)) printf("#   found: %s", line);
    }
  }
  CHECK(refused > 1000);
}

TEST(models_with_another_key_or_tensor_are_refused_or_planned_as_is_kept) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository("tests/c/model/model_keys.txt"), &size_bytes);
  char *text = calloc(size_bytes + 1, 1);
  FILE *out = fopen(check_temporary("model_keys.txt"), "w");
  FILE *all = fopen(check_temporary("model_keys_all.txt"), "w");
  if (CHECK(bytes != NULL && text != NULL)) {
    memcpy(text, bytes, size_bytes);
    check_models(text, out, all);
  }
  if (out != NULL) fclose(out);
  if (all != NULL) fclose(all);
  free(text);
  free(bytes);
}
