// tests/c/model_memory_test.c — the reference model of every architecture is loaded with each of
// its allocations failing in turn: the load ends with a typed error, and nothing is left.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "check.h"
#include "shared_files.h"

enum { CALLS_MAX = 4000, NAME_BYTES = 32, KNOWN_MAX = 160 };

static char known[KNOWN_MAX][NAME_BYTES];
static size_t known_count;

// Whether no file before it had its architecture.
static bool is_new(const memory_file *file) {
  static const char KEY[] = "general.architecture";
  char name[NAME_BYTES] = "";
  for (size_t at = 0; at + sizeof KEY + 64 < file->size_bytes && at < 65536; at++) {
    if (memcmp(file->bytes + at, KEY, sizeof KEY - 1) != 0) continue;
    const uint8_t *value = file->bytes + at + sizeof KEY - 1 + 4;  // behind its type
    const size_t size = value[0] < NAME_BYTES ? value[0] : NAME_BYTES - 1;
    memcpy(name, value + 8, size);
    break;
  }
  for (size_t i = 0; i < known_count; i++) {
    if (strcmp(known[i], name) == 0) return false;
  }
  if (!CHECK(known_count < KNOWN_MAX)) return false;
  memcpy(known[known_count++], name, sizeof name);
  return true;
}

// Loads with the k-th allocation failing. True when the load needs fewer.
static bool load_without(const memory_file *file, const char *name, uint64_t k) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error = {0};
  wick_config_default(&config);
  config.context_tokens = 64;
  config.batch_tokens = 8;
  const engine_hooks hooks = {.kernels = kernels_bind(), .fail_at_call = k};
  wick_status status = engine_create(&config, &hooks, &engine, &error);
  if (status == WICK_OK) status = wick_load_bytes(engine, file->bytes, file->size_bytes, &error);
  const bool is_behind = engine != NULL && engine->memory.calls < k;
  if (is_behind || status != WICK_OK) {
    if (!CHECK_EQ_INT(status, is_behind ? WICK_OK : WICK_E_NOMEM)) {
      printf("#   %s, allocation %llu: %s\n", name, (unsigned long long)k, error.message);
    }
  }
  wick_engine_destroy(engine);
  return is_behind;
}

static uint32_t check_folder(const char *folder) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  const size_t count = shared_list(folder, names);
  uint32_t models = 0;
  for (size_t i = 0; i < count; i++) {
    memory_file file = shared_read(folder, names[i]);
    if (is_new(&file)) {
      uint64_t k = 1;
      while (k < CALLS_MAX && !load_without(&file, names[i], k)) k++;
      CHECK(k > 10 && k < CALLS_MAX);
      models++;
    }
    file_free(&file);
  }
  return models;
}

TEST(a_load_without_memory_ends_in_a_typed_error_for_every_architecture) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  known_count = 0;
  CHECK(check_folder("vectors/reference/models") > 30);
  CHECK(check_folder("vectors/reference-more/models") > 20);
}
