// Tables that stay in the model's file: the output is bit-identical for every table type and every
// reference model with a table; the plan does not count them; a row that cannot be read is reported
// with its tensor and offset, and the engine continues.
#include <stdio.h>

#include "base/hash.h"
#include "fixture_model.h"
#include "model_builder.h"
#include "shared_files.h"

enum { PROMPT = 30, ANSWER = 6, BATCH = 13, STEPS_MAX = 20000, CONTEXT = 64 };

// A model file in memory whose rows are read in pieces of at most piece_bytes.
typedef struct rows_reader {
  const uint8_t *bytes;
  size_t size_bytes, piece_bytes;
  uint64_t calls, fail_at_call, fail_from_call;  // counted from 1; 0: never fails
  size_t failure;                                // result of a failing call
  uint64_t failed_at;                            // offset
} rows_reader;

static size_t read_rows(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                        size_t size_bytes) {
  rows_reader *from = context;
  from->calls++;
  if (from->calls == from->fail_at_call ||
      (from->fail_from_call != 0 && from->calls >= from->fail_from_call)) {
    from->failed_at = offset_bytes;
    return from->failure;
  }
  if (!CHECK(file == 0 && offset_bytes + size_bytes <= from->size_bytes)) return SIZE_MAX;
  if (from->piece_bytes != 0 && size_bytes > from->piece_bytes) size_bytes = from->piece_bytes;
  memcpy(bytes, from->bytes + offset_bytes, size_bytes);
  return size_bytes;
}

typedef struct outcome {
  wick_status loaded, ended;
  wick_error error;
  uint64_t hash;  // of the prompt's logits
  int32_t tokens[ANSWER];
  uint32_t count;
  char message[256];
  uint64_t offset_bytes;
  wick_plan plan;
  uint64_t fingerprint, weights_bytes;
} outcome;

typedef struct rig {
  rows_reader rows;
  wick_reader reader;
  wick_engine *engine;
} rig;

static void on_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  outcome *result = context;
  (void)position;
  result->hash = hash_bytes(logits, vocab * sizeof *logits, result->hash);
}

static void take(void *context, const wick_event *event, const uint8_t *after) {
  outcome *result = context;
  if (event->kind == WICK_EVENT_TOKEN && result->count < ANSWER)
    result->tokens[result->count++] = event->token;
  if (event->kind != WICK_EVENT_DONE) return;
  result->ended = (wick_status)event->status;
  const size_t bytes = event->text_bytes < 255 ? event->text_bytes : 255;
  memcpy(result->message, after, bytes);
  result->message[bytes] = '\0';
}

static void ask(wick_engine *engine, outcome *result) {
  int32_t tokens[PROMPT];
  wick_model_info info;
  uint32_t id;
  result->hash = result->count = 0;
  REQUIRE(wick_model_get_info(engine, &info, &result->error) == WICK_OK);
  for (uint32_t i = 0; i < PROMPT; i++) tokens[i] = (int32_t)((i * 7 + 3) % info.vocab);
  wick_request request = fixture_request(tokens, PROMPT, ANSWER);
  request.on_logits = on_logits;
  request.on_logits_context = result;
  result->ended = wick_request_submit(engine, &request, &id, &result->error);
  if (result->ended == WICK_OK) fixture_run(engine, take, result);
}

static wick_config config_for(rig *rig, wick_tables tables, uint64_t budget_bytes) {
  wick_config config;
  wick_config_default(&config);
  config.tables = tables;
  config.memory_bytes_max = budget_bytes;
  config.batch_tokens = BATCH;
  config.context_tokens = CONTEXT;
  config.no_prefix_cache = true;
  config.k_type = config.v_type = WICK_KV_F32;  // the weights of some types are large
  rig->reader = (wick_reader){.context = &rig->rows, .read = read_rows};
  config.tables_reader = &rig->reader;
  return config;
}

static wick_status open_rig(rig *rig, const memory_file *file, wick_tables tables,
                            uint64_t budget_bytes, wick_error *error) {
  const wick_config config = config_for(rig, tables, budget_bytes);
  rig->rows.bytes = file->bytes;
  rig->rows.size_bytes = file->size_bytes;
  rig->engine = NULL;
  const wick_status status = wick_engine_create(&config, &rig->engine, error);
  if (status != WICK_OK) return status;
  return wick_load_bytes(rig->engine, file->bytes, file->size_bytes, error);
}

static outcome say(const memory_file *file, wick_tables tables, size_t piece_bytes) {
  outcome result = {0};
  rig rig = {.rows = {.piece_bytes = piece_bytes}};
  result.loaded = open_rig(&rig, file, tables, 0, &result.error);
  if (result.loaded == WICK_OK) {
    wick_load_state state;
    wick_load_get_state(rig.engine, &state);
    result.fingerprint = state.fingerprint;
    CHECK_EQ_INT(wick_memory_plan(rig.engine, &result.plan, NULL), WICK_OK);
    ask(rig.engine, &result);
    if (result.ended == WICK_OK) CHECK_EQ_INT(rig.rows.calls != 0, result.plan.outside_bytes != 0);
  }
  wick_engine_destroy(rig.engine);
  return result;
}

// Returns whether the model has tables outside and ran. Encoders and rejected models produce no
// output.
static bool check_file(const memory_file *file, const char *name) {
  const outcome inside = say(file, WICK_TABLES_INSIDE, 0),
                outside = say(file, WICK_TABLES_OUTSIDE, 0);
  const bool is_same = inside.loaded == outside.loaded && inside.ended == outside.ended &&
                       inside.hash == outside.hash && inside.fingerprint == outside.fingerprint &&
                       memcmp(inside.tokens, outside.tokens, sizeof inside.tokens) == 0;
  if (!CHECK(is_same)) printf("#   %s\n", name);
  CHECK_EQ_UINT(inside.plan.outside_bytes, 0);
  if (outside.plan.outside_bytes == 0) return false;
  CHECK(outside.plan.weights_bytes < inside.plan.weights_bytes);
  return inside.ended == WICK_OK;
}

TEST(every_reference_model_gives_the_same_output) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  static const char *const FOLDERS[] = {"vectors/reference/models",
                                        "vectors/reference-more/models"};
  if (check_shared("") == NULL) SKIP("no shared folder");
  uint32_t outside = 0, gemmas = 0;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    for (size_t j = 0; j < count; j++) {
      memory_file file = shared_read(FOLDERS[i], names[j]);
      const bool is_outside = check_file(&file, names[j]);
      outside += is_outside;
      gemmas += is_outside &&
                (memcmp(names[j], "gemma3n", 7) == 0 || memcmp(names[j], "gemma4-ple", 10) == 0);
      file_free(&file);
    }
  }
  CHECK(outside > 40);
  CHECK_EQ_UINT(gemmas, 3);
}

// ---- every type ----

// Builds a llama model whose output has a separate matrix.
static memory_file make_untied(ggml_type type) {
  static model_builder builder;
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, type, 2, CONTEXT};
  builder_init(&builder, &choice);
  built_tensor *output = &builder.tensors[builder.tensor_count++];
  *output = builder.tensors[0];
  CHECK_EQ_STR(output->name, "token_embd.weight");
  memcpy(output->name, "output.weight", sizeof "output.weight");
  const memory_file file = builder_write(&builder);
  builder_free(&builder);
  return file;
}

TEST(tables_of_every_type_give_the_same_output) {
  const kernel_table *kernels = kernels_bind();
  uint32_t types = 0;
  for (uint32_t type = 0; type < GGML_TYPE_COUNT; type++) {
    if (kernels->types[type].matmul == NULL) continue;
    memory_file file = make_untied((ggml_type)type);
    const outcome inside = say(&file, WICK_TABLES_INSIDE, 0);
    // random weights of a type may be too large; then both runs fail
    const bool is_outside = check_file(&file, type_facts(type)->name);
    CHECK_EQ_INT(is_outside, inside.ended == WICK_OK);
    types += is_outside;
    // a reader may return a row in pieces
    const outcome pieces = say(&file, WICK_TABLES_OUTSIDE, 5);
    CHECK_EQ_UINT(pieces.hash, inside.hash);
    CHECK(pieces.plan.outside_bytes != 0);
    file_free(&file);
  }
  if (!CHECK(types > 20)) printf("#   %u types\n", (unsigned)types);
}

// ---- if memory is short ----

static memory_file make_gemma(void) {
  fixture_shape shape = FIXTURE_ODD;
  shape.context = CONTEXT;
  const fixture_file made = fixture_make_hybrid(&shape, &FIXTURE_GEMMA3N);
  return (memory_file){made.bytes, made.size_bytes, made.capacity_bytes};
}

TEST(tables_stay_outside_if_the_plan_would_not_fit) {
  memory_file file = make_gemma();
  wick_error error = {0};
  rig rig = {0};
  const outcome inside = say(&file, WICK_TABLES_AUTO, 0),
                outside = say(&file, WICK_TABLES_OUTSIDE, 0);
  CHECK_EQ_UINT(inside.plan.outside_bytes, 0);  // there is no limit
  CHECK_EQ_UINT(outside.plan.outside_bytes, FIXTURE_VOCAB * 3 * 256 * sizeof(float));
  CHECK_EQ_INT(inside.ended, WICK_OK);
  CHECK(outside.plan.total_bytes + outside.plan.outside_bytes * 9 / 10 < inside.plan.total_bytes);
  const uint64_t enough = inside.plan.total_bytes, less = outside.plan.total_bytes + 128 * 1024;
  CHECK(less < enough);

  CHECK_EQ_INT(open_rig(&rig, &file, WICK_TABLES_AUTO, enough + 128 * 1024, &error), WICK_OK);
  CHECK_EQ_UINT(rig.engine->model->outside_bytes, 0);
  wick_engine_destroy(rig.engine);

  CHECK_EQ_INT(open_rig(&rig, &file, WICK_TABLES_INSIDE, less, &error), WICK_E_NOMEM);
  wick_engine_destroy(rig.engine);

  rig.rows.calls = 0;
  CHECK_EQ_INT(open_rig(&rig, &file, WICK_TABLES_AUTO, less, &error), WICK_OK);
  outcome result = {0};
  ask(rig.engine, &result);
  CHECK_EQ_INT(result.ended, WICK_OK);
  CHECK_EQ_UINT(result.hash, inside.hash);
  // one row per evaluated token; the last token of the answer is not evaluated
  CHECK_EQ_UINT(rig.rows.calls, PROMPT + ANSWER - 1);
  CHECK(rig.engine->memory.bytes_peak <= less);
  // decoding allocates nothing
  const uint64_t calls = rig.engine->memory.calls;
  ask(rig.engine, &result);
  CHECK(rig.engine->memory.calls - calls < 20);
  wick_engine_destroy(rig.engine);
  file_free(&file);
}

TEST(outside_tables_require_a_reader) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error = {0};
  wick_config_default(&config);
  config.tables = WICK_TABLES_OUTSIDE;
  memory_file file = make_gemma();
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(wick_load_bytes(engine, file.bytes, file.size_bytes, &error), WICK_E_ARG);
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_TABLES);
  CHECK(strstr(error.message, "tables_reader") != NULL);
  wick_engine_destroy(engine);
  config.directory_only = true;  // a plan needs no reader
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(wick_load_bytes(engine, file.bytes, file.size_bytes, &error), WICK_OK);
  wick_plan plan;
  CHECK_EQ_INT(wick_memory_plan(engine, &plan, &error), WICK_OK);
  CHECK_EQ_UINT(plan.outside_bytes, FIXTURE_VOCAB * 3 * 256 * sizeof(float));
  file_free(&file);
  wick_engine_destroy(engine);
}

// ---- readers that fail ----

// Lets one call fail: this fails the only request of the pass, and the next request succeeds.
static void check_failure(const memory_file *file, uint64_t call, size_t failure,
                          const outcome *wanted) {
  outcome result = {0};
  wick_error error;
  rig rig = {.rows = {.fail_at_call = call, .failure = failure}};
  REQUIRE(open_rig(&rig, file, WICK_TABLES_OUTSIDE, 0, &error) == WICK_OK);
  ask(rig.engine, &result);
  CHECK_EQ_INT(result.ended, WICK_E_IO);
  char place[64];
  text_format(place, sizeof place, "at byte %llu of file 1",
              (unsigned long long)rig.rows.failed_at);
  CHECK(strstr(result.message, place) != NULL);
  CHECK(strstr(result.message, "'per_layer_token_embd.weight'") != NULL);
  CHECK(strstr(result.message, failure == 0 ? "the file ends" : "reading failed") != NULL);
  wick_pages_state pages;
  wick_pages_get_state(rig.engine, &pages);
  CHECK_EQ_UINT(pages.pages_used, 0);
  ask(rig.engine, &result);
  CHECK_EQ_INT(result.ended, WICK_OK);
  CHECK_EQ_UINT(result.hash, wanted->hash);
  CHECK(memcmp(result.tokens, wanted->tokens, sizeof result.tokens) == 0);
  wick_engine_destroy(rig.engine);
}

TEST(a_row_that_cannot_be_read_fails_only_its_own_request) {
  memory_file file = make_gemma();
  const outcome wanted = say(&file, WICK_TABLES_INSIDE, 0);
  static const size_t FAILURES[] = {SIZE_MAX, 0, SIZE_MAX - 1};
  for (uint64_t call = 1; call < PROMPT + ANSWER; call++) {
    check_failure(&file, call, FAILURES[call % 3], &wanted);
  }
  file_free(&file);
}

typedef struct ends {
  uint32_t good, bad;
} ends;

static void count_ends(void *context, const wick_event *event, const uint8_t *after) {
  ends *result = context;
  (void)after;
  if (event->kind != WICK_EVENT_DONE) return;
  result->good += event->status == WICK_OK;
  result->bad += event->status == WICK_E_IO;
}

// If a pass of several requests fails once, each request repeats it alone; if reading keeps
// failing, all requests fail and their pages are freed.
TEST(requests_in_a_batch_survive_a_single_read_failure) {
  memory_file file = make_gemma();
  wick_error error;
  for (uint32_t is_lasting = 0; is_lasting < 2; is_lasting++) {
    rig rig = {.rows = {.failure = SIZE_MAX}};
    REQUIRE(open_rig(&rig, &file, WICK_TABLES_OUTSIDE, 0, &error) == WICK_OK);
    const int32_t tokens[] = {5, 6, 7};
    for (uint32_t i = 0; i < 3; i++) {
      wick_request request = fixture_request(tokens, 3, ANSWER);
      uint32_t id;
      CHECK_EQ_INT(wick_request_submit(rig.engine, &request, &id, &error), WICK_OK);
    }
    if (is_lasting) rig.rows.fail_from_call = 12;
    if (!is_lasting) rig.rows.fail_at_call = 12;
    ends result = {0};
    fixture_run(rig.engine, count_ends, &result);
    CHECK_EQ_UINT(result.good, is_lasting ? 0 : 3);
    CHECK_EQ_UINT(result.bad, is_lasting ? 3 : 0);
    wick_pages_state pages;
    wick_pages_get_state(rig.engine, &pages);
    CHECK_EQ_UINT(pages.pages_used, 0);
    wick_engine_destroy(rig.engine);
  }
  file_free(&file);
}

// ---- other uses of an engine ----

typedef struct saved_bytes {
  uint8_t bytes[1 << 18];
  size_t size_bytes, read_bytes;
} saved_bytes;

static bool save(void *context, const void *bytes, size_t size_bytes) {
  saved_bytes *to = context;
  if (!CHECK(size_bytes <= sizeof to->bytes - to->size_bytes)) return false;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
  return true;
}

static bool restore(void *context, void *bytes, size_t size_bytes) {
  saved_bytes *from = context;
  if (size_bytes > from->size_bytes - from->read_bytes) return false;
  memcpy(bytes, from->bytes + from->read_bytes, size_bytes);
  from->read_bytes += size_bytes;
  return true;
}

static void read_session(wick_engine *engine, uint32_t session, outcome *result) {
  int32_t tokens[] = {9, 8, 7, 6};
  wick_request request = fixture_request(tokens, 4, ANSWER);
  wick_error error;
  uint32_t id;
  request.session = session;
  result->count = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  fixture_run(engine, take, result);
}

// The fingerprint does not depend on where the tables are, so states can be exchanged.
TEST(a_state_saved_with_tables_inside_continues_with_tables_outside) {
  static saved_bytes saved;
  memory_file file = make_gemma();
  wick_error error;
  rig inside = {0}, outside = {0};
  outcome wanted = {0}, found = {0};
  uint32_t session;
  REQUIRE(open_rig(&inside, &file, WICK_TABLES_INSIDE, 0, &error) == WICK_OK);
  REQUIRE(open_rig(&outside, &file, WICK_TABLES_OUTSIDE, 0, &error) == WICK_OK);
  CHECK_EQ_INT(wick_session_create(inside.engine, &session, &error), WICK_OK);
  read_session(inside.engine, session, &wanted);
  const wick_state_sink sink = {&saved, save};
  CHECK_EQ_INT(wick_state_save(inside.engine, session, &sink, &error), WICK_OK);
  const wick_state_source source = {&saved, restore, saved.size_bytes};
  wick_state_loaded loaded = {0};
  CHECK_EQ_INT(wick_state_load(outside.engine, &source, &loaded, &error), WICK_OK);
  read_session(inside.engine, session, &wanted);
  read_session(outside.engine, loaded.session, &found);
  CHECK_EQ_UINT(found.count, ANSWER);
  CHECK(memcmp(found.tokens, wanted.tokens, sizeof wanted.tokens) == 0);
  wick_engine_destroy(inside.engine);
  wick_engine_destroy(outside.engine);
  file_free(&file);
}

static uint64_t embed(rig *rig, wick_status *status) {
  const wick_embed_text text = {.text = "a text of some length", .text_bytes = 21};
  wick_embed_request request;
  wick_error error;
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_embed_default(&request);
  request.texts = &text;
  request.text_count = 1;
  CHECK_EQ_INT(wick_embed(rig->engine, &request, &error), WICK_OK);
  *status = WICK_OK;
  while (*status == WICK_OK && result != WICK_STEP_IDLE) {
    *status = wick_embed_step(rig->engine, 0, &result, &error);
  }
  uint64_t hash = 0;
  wick_vectors vector;
  if (*status == WICK_OK && wick_embed_get(rig->engine, 0, &vector)) {
    hash = hash_bytes(vector.values, vector.width * sizeof(float), 1);
  }
  wick_embed_end(rig->engine);
  return hash;
}

TEST(embeddings_are_the_same_and_a_failure_affects_only_one) {
  memory_file file = make_gemma();
  wick_error error;
  wick_status status;
  rig inside = {0}, outside = {.rows = {.failure = SIZE_MAX}};
  REQUIRE(open_rig(&inside, &file, WICK_TABLES_INSIDE, 0, &error) == WICK_OK);
  REQUIRE(open_rig(&outside, &file, WICK_TABLES_OUTSIDE, 0, &error) == WICK_OK);
  const uint64_t wanted = embed(&inside, &status);
  CHECK(wanted != 0);
  CHECK_EQ_UINT(embed(&outside, &status), wanted);
  outside.rows.fail_at_call = outside.rows.calls + 3;
  const uint64_t before = outside.engine->memory.bytes_now;
  CHECK_EQ_UINT(embed(&outside, &status), 0);
  CHECK_EQ_INT(status, WICK_E_IO);
  CHECK_EQ_UINT(outside.engine->memory.bytes_now, before);
  CHECK_EQ_UINT(embed(&outside, &status), wanted);
  wick_engine_destroy(inside.engine);
  wick_engine_destroy(outside.engine);
  file_free(&file);
}
