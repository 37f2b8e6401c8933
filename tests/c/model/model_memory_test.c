// Loads the reference model of every architecture while each allocation fails in turn: the load
// fails with a typed error, and nothing leaks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "check.h"
#include "shared_files.h"

enum { CALLS_MAX = 4000, NAME_BYTES = 32, KNOWN_MAX = 160 };

static char known[KNOWN_MAX][NAME_BYTES];
static size_t known_count;

// Creates an engine whose k-th allocation fails (0: none). Returns NULL if creating it fails.
static wick_engine *load(const memory_file *file, uint64_t k, wick_status *status,
                         wick_error *error) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.context_tokens = 64;
  config.batch_tokens = 8;
  const engine_hooks hooks = {.kernels = kernels_bind(), .fail_at_call = k};
  *status = engine_create(&config, &hooks, &engine, error);
  if (*status == WICK_OK) *status = wick_load_bytes(engine, file->bytes, file->size_bytes, error);
  return engine;
}

// Returns whether the load needs fewer than k allocations.
static bool load_without(const memory_file *file, const char *name, uint64_t k) {
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = load(file, k, &status, &error);
  const bool is_after = engine != NULL && engine->memory.calls < k;
  if (is_after || status != WICK_OK) {
    if (!CHECK_EQ_INT(status, is_after ? WICK_OK : WICK_E_NOMEM)) {
      printf("#   %s, allocation %llu: %s\n", name, (unsigned long long)k, error.message);
    }
  }
  wick_engine_destroy(engine);
  return is_after;
}

// Whether this is the first file with its architecture.
static bool is_new(const memory_file *file) {
  char name[NAME_BYTES] = "";
  wick_status status;
  wick_error error = {0};
  wick_model_info info;
  wick_engine *engine = load(file, 0, &status, &error);
  if (CHECK_EQ_INT(wick_model_get_info(engine, &info, NULL), WICK_OK) &&
      CHECK(info.architecture.size_bytes < sizeof name)) {
    memcpy(name, info.architecture.bytes, info.architecture.size_bytes);
  }
  wick_engine_destroy(engine);
  for (size_t i = 0; i < known_count; i++) {
    if (strcmp(known[i], name) == 0) return false;
  }
  if (!CHECK(known_count < KNOWN_MAX)) return false;
  memcpy(known[known_count++], name, sizeof name);
  return true;
}

static bool check_file(const memory_file *file, const char *name, uint32_t number) {
  (void)number;
  if (!is_new(file)) return false;
  uint64_t k = 1;
  while (k < CALLS_MAX && !load_without(file, name, k)) k++;
  return CHECK(k > 10 && k < CALLS_MAX);
}

TEST(out_of_memory_during_loading_is_a_typed_error_for_every_architecture) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  known_count = 0;
  CHECK(shared_check("vectors/reference/models", check_file) > 30);
  CHECK(shared_check("vectors/reference-more/models", check_file) > 20);
}
