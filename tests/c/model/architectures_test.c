// Runs the reference models of every architecture natively under the sanitizers: each gives the
// same results with batches of two sizes; and with a changed value of a key, or a changed type,
// shape or weights of a tensor, it is rejected or runs, in a bounded number of steps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/hash.h"
#include "base/math.h"
#include "check.h"
#include "random.h"
#include "shared_files.h"

enum {
  PROMPT = 40,
  NEW_TOKENS = 4,
  STEPS_MAX = 20000,
  CHANGES = 60,  // to each model
  MEMORY_BYTES_MAX = 256 << 20
};

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference-more/models"};

typedef struct model_run {
  wick_status loaded, ended;
  wick_error error;
  uint64_t hash;   // of the prompt's logits
  bool is_finite;  // logits of the prompt's last token
} model_run;

static void on_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  model_run *run = context;
  run->hash = hash_bytes(logits, vocab * sizeof *logits, run->hash);
  if (position + 1 != PROMPT) return;
  run->is_finite = true;
  for (uint32_t i = 0; i < vocab; i++) run->is_finite &= math_is_finite_f32(logits[i]);
}

// ---- scratch ----

enum { BLOCKS_MAX = 1024 };

// A block's functions with `run` replaced.
typedef struct watched_ops {
  model_block_ops ops;
  const model_block_ops *own;
} watched_ops;

static watched_ops watched[BLOCKS_MAX];
static uint32_t watched_count;
static uint64_t begin_bytes;  // taken before the first block

// Checks that a block takes what it has reserved, after the memory of the previous block was
// released. Experts take less if the pass is not full.
static wick_status run_watched(const model_block *block, model_pass *pass, wick_error *error) {
  const model_block_ops *own = ((const watched_ops *)block->ops)->own;
  scratch_arena plan = pass->arena, *arena = &pass->arena;
  plan.base = NULL;
  plan.used_bytes = plan.peak_bytes = 0;
  if (own->reserve != NULL) own->reserve(block, &plan);
  const uint64_t before = arena->used_bytes;
  if (begin_bytes == 0) begin_bytes = before;
  CHECK_EQ_UINT(before, begin_bytes);
  bool is_all = pass->count == arena->batch_tokens || strcmp(own->name, "experts") != 0;
  arena->peak_bytes = before;
  const wick_status status = own->run(block, pass, error);
  const uint64_t taken = arena->peak_bytes - before;
  is_all = is_all && status == WICK_OK;
  if (!CHECK(is_all ? taken == plan.peak_bytes : taken <= plan.peak_bytes)) {
    printf("#   %s takes %llu bytes, reserved %llu\n", own->name, (unsigned long long)taken,
           (unsigned long long)plan.peak_bytes);
  }
  return status;
}

static void watch(model_block *block) {
  if (!CHECK(watched_count < BLOCKS_MAX)) return;
  watched_ops *at = &watched[watched_count++];
  *at = (watched_ops){*block->ops, block->ops};
  at->ops.run = run_watched;
  block->ops = &at->ops;
}

static void watch_scratch(wick_engine *engine) {
  watched_count = 0;
  begin_bytes = 0;
  for (uint32_t i = 0; i < engine->model->config.layers; i++) {
    model_block *block = engine->model->layers[i].first;
    for (; block != NULL; block = block->next) watch(block);
  }
}

static void run_to_end(wick_engine *engine, model_run *run) {
  uint32_t dones = 0, steps = 0;
  for (; steps < STEPS_MAX; steps++) {
    const wick_step_result result = wick_step(engine, 0);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->kind != WICK_EVENT_DONE) continue;
      dones++;
      run->ended = (wick_status)event->status;
    }
    if (result == WICK_STEP_IDLE) break;
  }
  CHECK(steps < STEPS_MAX);
  CHECK_EQ_UINT(dones, 1);
}

static void ask(wick_engine *engine, model_run *run) {
  int32_t tokens[PROMPT];
  wick_request request;
  wick_model_info info;
  uint32_t id;
  REQUIRE(wick_model_get_info(engine, &info, &run->error) == WICK_OK);
  for (uint32_t i = 0; i < PROMPT; i++) tokens[i] = (int32_t)((i * 7 + 3) % info.vocab);
  wick_request_default(&request);
  request.tokens = tokens;
  request.token_count = PROMPT;
  request.max_tokens = NEW_TOKENS;
  request.ignore_end = true;
  request.on_logits = on_logits;
  request.on_logits_context = run;
  run->ended = wick_request_submit(engine, &request, &id, &run->error);
  if (run->ended == WICK_OK) run_to_end(engine, run);
}

static model_run run_file(const memory_file *file, uint32_t batch_tokens, wick_kv_type kv_type) {
  model_run run = {.loaded = WICK_OK};
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.memory_bytes_max = MEMORY_BYTES_MAX;
  config.batch_tokens = batch_tokens;
  config.k_type = config.v_type = kv_type;
  if (!CHECK(wick_engine_create(&config, &engine, &run.error) == WICK_OK)) return run;
  run.loaded = wick_load_bytes(engine, file->bytes, file->size_bytes, &run.error);
  if (run.loaded == WICK_OK) {
    watch_scratch(engine);
    ask(engine, &run);
  }
  wick_engine_destroy(engine);
  return run;
}

// Runs the model with two batch sizes. Returns whether it was loaded.
static bool check_file(const memory_file *file, const char *name, uint32_t round) {
  const wick_kv_type kv_type = (wick_kv_type)(round % WICK_KV_TYPE_COUNT);
  const model_run run = run_file(file, 24, kv_type);
  if (run.loaded != WICK_OK) {
    CHECK_EQ_INT(run.error.status, run.loaded);
    CHECK(run.error.message[0] != '\0');
    return false;
  }
  if (run.ended != WICK_OK) return true;
  const model_run other = run_file(file, 7, kv_type);
  const bool is_same = other.loaded == WICK_OK && other.ended == WICK_OK && other.hash == run.hash;
  if (!CHECK(is_same) || !CHECK(run.is_finite)) printf("#   %s, round %u\n", name, round);
  return true;
}

// Checks every second reference model in make test.
static bool check_reference(const memory_file *file, const char *name, uint32_t number) {
  return number % level_step(2) != 0 || check_file(file, name, number);
}

TEST(every_model_gives_the_same_results_for_any_batch_size) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  CHECK(shared_check(FOLDERS[0], check_reference) > 40);
}

TEST(every_additional_model_gives_the_same_results_for_any_batch_size) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  CHECK(shared_check(FOLDERS[1], check_reference) > 40);
}

// These models have layers of two shapes, and some layers use the keys of an earlier layer: if one
// pass starts and fills a page, both layers read it before it is quantized.
TEST(layers_that_share_quantized_keys_give_the_same_results_for_any_batch_size) {
  static const struct {
    const char *folder, *name;
  } MODELS[] = {{"vectors/reference-more/models", "gemma3n-shared.gguf"},
                {"vectors/reference-more/models", "gemma3n.gguf"},
                {"vectors/reference/models", "gemma4-ple.gguf"},
                {"vectors/reference/models", "gemma4-dense.gguf"}};
  static const wick_kv_type TYPES[] = {WICK_KV_Q8, WICK_KV_Q4};
  if (check_shared("") == NULL) SKIP("no shared folder");
  for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
    memory_file file = shared_read(MODELS[i].folder, MODELS[i].name);
    REQUIRE(file.bytes != NULL);
    for (size_t type = 0; type < sizeof TYPES / sizeof *TYPES; type++) {
      const model_run one = run_file(&file, 1, TYPES[type]);
      REQUIRE(one.loaded == WICK_OK && one.ended == WICK_OK);
      const model_run all = run_file(&file, PROMPT, TYPES[type]);
      const bool is_same = all.ended == WICK_OK && all.hash == one.hash;
      if (!CHECK(is_same)) printf("#   %s, type %d\n", MODELS[i].name, (int)TYPES[type]);
    }
    file_free(&file);
  }
}

// ---- with changed values ----

static size_t value_bytes(gguf_value_type type) {
  static const uint8_t BYTES[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof BYTES ? BYTES[type] : 0;
}

static void write_number(uint8_t *at, gguf_value_type type, uint64_t *state) {
  static const uint32_t NUMBERS[] = {0,   1,     2,          3,           7,          16,
                                     255, 65535, 0x7fffffff, 0x80000000u, 0xffffffffu};
  static const float FLOATS[] = {0,
                                 -1,
                                 -0.0f,
                                 1e-45f,
                                 1e-20f,
                                 0.5f,
                                 1,
                                 1e10f,
                                 1e29f,
                                 1e38f,
                                 -1e20f,
                                 __builtin_inff(),
                                 __builtin_nanf("")};
  uint64_t number = NUMBERS[random_below(state, sizeof NUMBERS / sizeof *NUMBERS)];
  const float real = FLOATS[random_below(state, sizeof FLOATS / sizeof *FLOATS)];
  uint32_t before = 0;
  if (value_bytes(type) == 4) memcpy(&before, at, sizeof before);
  if (random_below(state, 3) == 0) number = before + random_below(state, 3) - 1;
  if (type == GGUF_F32) memcpy(&number, &real, sizeof real);
  memcpy(at, &number, value_bytes(type));
}

// Changes a value or its type in place. Returns false if this entry cannot be changed.
static bool change_value(uint8_t *file, const gguf_value *value, uint64_t *state) {
  const size_t key_bytes = (size_t)value->key.size_bytes;
  uint8_t *type = file + value->offset_bytes + 8 + key_bytes, *data = type + 4;
  const bool is_array = value->type == GGUF_ARRAY;
  const gguf_value_type item = is_array ? value->item_type : value->type;
  const size_t bytes = value_bytes(item);
  const char *key = value->key.bytes;
  const bool is_common = memcmp(key, "general.", 8) == 0 || memcmp(key, "tokenizer.", 10) == 0;
  if (key_bytes < 10 || is_common || bytes == 0 || value->count == 0) return false;
  const uint64_t choice = random_below(state, 16);
  if (choice == 0) {
    file[value->offset_bytes + 8 + key_bytes - 1] ^= 1;  // the key is missing
  } else if (choice == 1 && bytes == 4) {
    const uint32_t other = GGUF_U32 + (uint32_t)random_below(state, 3);
    memcpy(is_array ? data : type, &other, sizeof other);
  } else if (!is_array) {
    write_number(data, item, state);
  } else {
    const uint64_t all = random_below(state, 4) == 0 ? value->count : 1;
    const uint64_t first = all == 1 ? random_below(state, value->count) : 0;
    for (uint64_t i = 0; i < all; i++) {
      write_number(data + 12 + (first + i) * bytes, item, state);
    }
  }
  return true;
}

static void fill_tensor(uint8_t *file, const gguf_tensor *tensor, uint64_t *state) {
  static const float FILLS[] = {0, -1, 1e38f, -1e20f, 1e-40f, __builtin_nanf("")};
  const float fill = FILLS[random_below(state, sizeof FILLS / sizeof *FILLS)];
  const uint64_t step = tensor->type == GGML_TYPE_F32 ? sizeof fill : 64;
  for (uint64_t at = 0; at + sizeof fill <= tensor->size_bytes; at += step) {
    memcpy(file + tensor->offset_bytes + at, &fill, sizeof fill);
  }
}

// Changes a tensor's name, shape, type or weights, in place.
static void change_tensor(uint8_t *file, const gguf_tensor *tensor, uint64_t *state) {
  uint8_t *name = file + tensor->entry_offset_bytes + 8;
  uint8_t *dims = name + tensor->name.size_bytes + 4;
  const uint64_t choice = random_below(state, 8), which = random_below(state, tensor->dim_count);
  if (choice < 4) {
    fill_tensor(file, tensor, state);
  } else if (choice == 4) {
    name[tensor->name.size_bytes - 1] ^= 1;
  } else if (choice == 5) {
    const uint32_t type = (uint32_t)random_below(state, 42);
    memcpy(dims + 8 * (size_t)tensor->dim_count, &type, sizeof type);
  } else {
    const uint64_t before = tensor->dims[which];
    const uint64_t others[] = {0, 1, before - 1, before + 1, before * 2, 1ull << 40};
    memcpy(dims + 8 * which, &others[random_below(state, 6)], sizeof *others);
  }
}

static void change_file(memory_file *file, const gguf_directory *directory, uint64_t *state) {
  if (random_below(state, 4) == 0) {
    const uint64_t index = random_below(state, gguf_tensor_count(directory));
    change_tensor(file->bytes, gguf_tensor_at(directory, (size_t)index), state);
    return;
  }
  for (int i = 0; i < 64; i++) {
    const uint64_t index = random_below(state, gguf_value_count(directory));
    if (change_value(file->bytes, gguf_value_at(directory, (size_t)index), state)) return;
  }
}

// Returns how many of the changed files were rejected.
static uint32_t change_often(const memory_file *file, const char *name, uint64_t *state) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error;
  uint32_t refused = 0;
  wick_config_default(&config);
  config.directory_only = true;
  if (!CHECK(wick_engine_create(&config, &engine, &error) == WICK_OK)) return 0;
  memory_file changed = {.bytes = malloc(file->size_bytes), .size_bytes = file->size_bytes};
  CHECK_EQ_INT(wick_load_bytes(engine, file->bytes, file->size_bytes, &error), WICK_OK);
  const gguf_directory *directory = engine_directory(engine);
  const uint32_t rounds = directory == NULL || changed.bytes == NULL ? 0 : soak_count(CHANGES);
  for (uint32_t round = 0; round < rounds; round++) {
    memcpy(changed.bytes, file->bytes, file->size_bytes);
    change_file(&changed, directory, state);
    refused += !check_file(&changed, name, round);
  }
  wick_engine_destroy(engine);
  file_free(&changed);
  return refused;
}

TEST(models_with_changed_values_are_rejected_or_run) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  uint64_t state = 5 + soak_seed();
  uint32_t refused = 0;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    for (size_t j = 0; j < count; j++) {
      memory_file file = shared_read(FOLDERS[i], names[j]);
      if (run_file(&file, 24, WICK_KV_F16).loaded == WICK_OK) {
        refused += change_often(&file, names[j], &state);
      }
      file_free(&file);
    }
  }
  CHECK(refused > 34 * soak_count(CHANGES));
}

// ---- with changed optional tensors ----

// A file's directory, and a copy of the file with one change at a time.
typedef struct changed_model {
  wick_engine *engine;  // owns the directory
  const gguf_directory *directory;
  memory_file changed;
  uint32_t optional;  // tensors that the model runs without
} changed_model;

static bool open_changed(const memory_file *file, changed_model *model) {
  wick_config config;
  wick_error error;
  *model = (changed_model){.changed = {malloc(file->size_bytes), file->size_bytes, 0}};
  wick_config_default(&config);
  config.directory_only = true;
  if (!CHECK(model->changed.bytes != NULL)) return false;
  if (!CHECK_EQ_INT(wick_engine_create(&config, &model->engine, &error), WICK_OK)) return false;
  wick_load_bytes(model->engine, file->bytes, file->size_bytes, &error);
  model->directory = engine_directory(model->engine);
  memcpy(model->changed.bytes, file->bytes, file->size_bytes);
  return CHECK(model->directory != NULL);
}

static void close_changed(changed_model *model) {
  wick_engine_destroy(model->engine);
  file_free(&model->changed);
}

// Checks that a changed file is rejected with a message, or runs. Returns whether it was loaded.
static bool runs_or_is_refused(const memory_file *file) {
  const model_run run = run_file(file, 24, WICK_KV_F16);
  if (run.loaded == WICK_OK) return true;
  CHECK_EQ_INT(run.error.status, run.loaded);
  CHECK(run.error.message[0] != '\0');
  return false;
}

// Tries different types, including invalid ones, and larger and smaller shapes.
static void change_optional(const changed_model *model, const gguf_tensor *tensor) {
  static const uint32_t TYPES[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, 4, 26, 42};
  uint8_t *dims =
      model->changed.bytes + tensor->entry_offset_bytes + 8 + tensor->name.size_bytes + 4;
  uint8_t *type = dims + 8 * (size_t)tensor->dim_count;
  for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
    memcpy(type, &TYPES[i], sizeof *TYPES);
    if (TYPES[i] != (uint32_t)tensor->type) runs_or_is_refused(&model->changed);
  }
  const uint32_t own = (uint32_t)tensor->type;
  memcpy(type, &own, sizeof own);
  for (uint32_t which = 0; which < tensor->dim_count; which++) {
    const uint64_t before = tensor->dims[which];
    const uint64_t others[] = {0, before / 2, before + 1, before * 2};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
      memcpy(dims + 8 * which, &others[i], sizeof *others);
      if (others[i] != before) runs_or_is_refused(&model->changed);
    }
    memcpy(dims + 8 * which, &before, sizeof before);
  }
}

static bool check_each_tensor(const memory_file *file, const char *name, uint32_t number) {
  static const char QUANTISED[] = "llama-256-";  // the tensors of llama.gguf in other types
  changed_model model;
  if (number % level_step(4) != 0) return true;
  if (strncmp(name, QUANTISED, sizeof QUANTISED - 1) == 0 || !open_changed(file, &model)) {
    return false;
  }
  for (size_t i = 0; i < gguf_tensor_count(model.directory); i++) {
    const gguf_tensor *tensor = gguf_tensor_at(model.directory, i);
    uint8_t *last =
        model.changed.bytes + tensor->entry_offset_bytes + 8 + tensor->name.size_bytes - 1;
    *last ^= 1;
    const bool is_optional = runs_or_is_refused(&model.changed);
    *last ^= 1;
    if (is_optional) change_optional(&model, tensor);
    model.optional += is_optional;
  }
  const bool has_optional = model.optional != 0;
  close_changed(&model);
  return has_optional;
}

TEST(models_with_changed_optional_tensors_are_rejected_or_run) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  CHECK(shared_check(FOLDERS[0], check_each_tensor) > 10);
  CHECK(shared_check(FOLDERS[1], check_each_tensor) > 10);
}
