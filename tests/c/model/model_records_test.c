// Compares the plans, counts and outputs of the reference models of every architecture with
// tests/c/model/model_records.txt. To accept an intended change, copy the new figures that the test
// writes to $WICK_TMP/model_records.txt.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/hash.h"
#include "check.h"
#include "shared_files.h"

enum {
  PROMPT = 40,
  BATCH_TOKENS = 24,  // two micro-batches, the second not full
  NEW_TOKENS = 4,
  STEPS_MAX = 20000,
  TEXT_BYTES_MAX = 1 << 20
};

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference-more/models"};

static const char HEAD[] = "Expected results of tests/c/model/model_records_test.c.\n";

static char found[TEXT_BYTES_MAX];
static size_t found_bytes;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t left = sizeof found - found_bytes;
  const int written = vsnprintf(found + found_bytes, left, format, arguments);
  va_end(arguments);
  if (CHECK(written >= 0 && (size_t)written < left)) found_bytes += (size_t)written;
}

// Relaxed kernels use fused multiply-add if the host does.
static bool has_exact_bits(void) { return kernels_bind()->dots_are_right == NULL; }

static void record_model(const wick_engine *engine) {
  wick_model_info info;
  wick_plan plan;
  wick_error error;
  REQUIRE(wick_model_get_info(engine, &info, &error) == WICK_OK);
  REQUIRE(wick_memory_plan(engine, &plan, &error) == WICK_OK);
  tell(" shape %u %u %u %u %u %u %u %u, %" PRIu64 " parameters", info.layers, info.hidden,
       info.heads, info.kv_heads, info.head_dim, info.ffn, info.vocab, info.context_trained,
       info.parameters);
  tell(", %s %u %u %u\n", info.is_encoder ? "encoder" : "causal", info.pooling, info.embedding,
       info.scores);
  tell(" plan %" PRIu64 " weights, %" PRIu64 " keys and values, %u a page\n", plan.weights_bytes,
       plan.kv_bytes, plan.kv_page_bytes);
}

static void record_ops(const wick_engine *engine) {
  for (pass_kind pass = 0; pass < PASS_COUNT; pass++) {
    tell(" %s %" PRIu64, pass_name(pass), engine->ops->pass_counts[pass]);
    for (op_kind op = 0; op < OP_COUNT; op++) {
      const op_record *record = &engine->ops->records[pass][op];
      if (record->latency.dispatches == 0) continue;
      tell(", %s %" PRIu64 " %" PRIu64 " %" PRIu64, op_name(op), record->latency.dispatches,
           record->bytes, record->macs);
    }
    tell("\n");
  }
}

static void on_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  uint64_t *hash = context;
  (void)position;
  *hash = hash_bytes(logits, vocab * sizeof *logits, *hash);
}

static void run_request(wick_engine *engine) {
  for (uint32_t steps = 0; steps < STEPS_MAX; steps++) {
    const wick_step_result result = wick_step(engine, 0);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->kind == WICK_EVENT_DONE) tell(" done %u %u", event->finish, event->status);
    }
    if (result == WICK_STEP_IDLE) return;
  }
  CHECK(false);
}

static void make_prompt(int32_t tokens[PROMPT], uint32_t vocab) {
  for (uint32_t i = 0; i < PROMPT; i++) tokens[i] = (int32_t)((i * 7 + 3) % vocab);
}

static void record_answer(wick_engine *engine, uint32_t vocab) {
  int32_t tokens[PROMPT];
  wick_request request;
  wick_error error;
  uint64_t hash = 0;
  uint32_t id;
  make_prompt(tokens, vocab);
  wick_request_default(&request);
  request.tokens = tokens;
  request.token_count = PROMPT;
  request.max_tokens = NEW_TOKENS;
  request.ignore_end = true;
  request.on_logits = on_logits;
  request.on_logits_context = &hash;
  if (wick_request_submit(engine, &request, &id, &error) != WICK_OK) {
    tell(" %s\n", error.message);
    return;
  }
  run_request(engine);
  if (has_exact_bits()) tell(", logit bits %016" PRIx64, hash);
  tell("\n");
}

static void record_vectors(wick_engine *engine, wick_pooling pooling, uint32_t vocab) {
  int32_t tokens[PROMPT];
  make_prompt(tokens, vocab);
  const wick_embed_text text = {.tokens = tokens, .token_count = PROMPT};
  wick_embed_request request;
  wick_error error;
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_vectors vectors;
  wick_embed_default(&request);
  request.texts = &text;
  request.text_count = 1;
  request.pooling = pooling;
  wick_status status = wick_embed(engine, &request, &error);
  for (uint32_t steps = 0; steps < STEPS_MAX && status == WICK_OK; steps++) {
    if (result != WICK_STEP_PROGRESS) break;
    status = wick_embed_step(engine, 0, &result, &error);
  }
  tell(" pooling %u: ", pooling);
  if (status != WICK_OK) {
    tell("%s\n", error.message);
  } else if (CHECK(wick_embed_get(engine, 0, &vectors))) {
    tell("%u tokens, %u x %u", vectors.tokens, vectors.rows, vectors.width);
    const size_t bytes = (size_t)vectors.rows * vectors.width * sizeof(float);
    if (has_exact_bits()) tell(", vector bits %016" PRIx64, hash_bytes(vectors.values, bytes, 0));
    tell("\n");
  }
  wick_embed_end(engine);
}

static void record_file(const memory_file *file) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error;
  wick_model_info info;
  wick_config_default(&config);
  config.batch_tokens = BATCH_TOKENS;
  config.metrics = true;
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  if (wick_load_bytes(engine, file->bytes, file->size_bytes, &error) != WICK_OK) {
    tell(" %s\n", error.message);
  } else if (CHECK(wick_model_get_info(engine, &info, &error) == WICK_OK)) {
    record_model(engine);
    record_answer(engine, info.vocab);
    for (wick_pooling pooling = WICK_POOLING_MODEL; pooling <= WICK_POOLING_RANK; pooling++) {
      if (info.is_encoder || pooling == WICK_POOLING_MODEL) {
        record_vectors(engine, pooling, info.vocab);
      }
    }
    record_ops(engine);
  }
  wick_engine_destroy(engine);
}

// Ignores the result bits of kernels that round differently on different hosts.
static size_t recorded_bytes(const char *line, size_t size_bytes) {
  static const char *const MARKS[] = {", logit bits ", ", vector bits "};
  char text[4096];
  if (has_exact_bits() || size_bytes >= sizeof text) return size_bytes;
  memcpy(text, line, size_bytes);
  text[size_bytes] = '\0';
  for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
    const char *mark = strstr(text, MARKS[i]);
    if (mark != NULL) return (size_t)(mark - text);
  }
  return size_bytes;
}

static size_t line_bytes(const char *text, size_t size_bytes) {
  const char *end = memchr(text, '\n', size_bytes);
  return end == NULL ? size_bytes : (size_t)(end - text);
}

// Compares the results with the records, line by line; reports the first difference.
static void compare(const char *name, const char *kept, size_t kept_bytes) {
  const char *at = found, *end = found + found_bytes, *wanted = kept, *last = kept + kept_bytes;
  while (at < end && wanted < last) {
    const size_t size = line_bytes(at, (size_t)(end - at));
    const size_t all = line_bytes(wanted, (size_t)(last - wanted)),
                 wanted_size = recorded_bytes(wanted, all);
    if (!CHECK(size == wanted_size && memcmp(at, wanted, size) == 0)) {
      printf("#   %s\n#   found:%.*s\n#   kept: %.*s\n", name, (int)size, at, (int)all, wanted);
      return;
    }
    at += size + 1;
    wanted += all + 1;
  }
  if (!CHECK(at >= end && wanted >= last)) printf("#   %s: lines are missing\n", name);
}

// Returns the lines between a model's name and the next name, or NULL if there are none.
static const char *kept_of(const char *all, const char *folder, const char *name,
                           size_t *size_bytes) {
  char head[2 * SHARED_NAME_BYTES_MAX];
  snprintf(head, sizeof head, "\n%s/%s\n", folder, name);
  const char *from = strstr(all, head);
  if (from == NULL) return NULL;
  from += strlen(head);
  const char *to = from;
  while (*to == ' ') to += line_bytes(to, strlen(to)) + 1;
  *size_bytes = (size_t)(to - from);
  return from;
}

static void check_models(const char *all, FILE *out) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    CHECK(count > 40);
    for (size_t j = 0; j < count; j++) {
      memory_file file = shared_read(FOLDERS[i], names[j]);
      size_t kept_bytes = 0;
      found_bytes = 0;
      record_file(&file);
      file_free(&file);
      if (out != NULL) fprintf(out, "%s/%s\n%.*s", FOLDERS[i], names[j], (int)found_bytes, found);
      const char *kept = kept_of(all, FOLDERS[i], names[j], &kept_bytes);
      if (!CHECK(kept != NULL)) printf("#   %s is not kept\n", names[j]);
      if (kept != NULL) compare(names[j], kept, kept_bytes);
    }
  }
}

TEST(plans_counts_and_outputs_match_the_records) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  size_t size_bytes;
  uint8_t *bytes =
      check_read_file(check_repository("tests/c/model/model_records.txt"), &size_bytes);
  char *text = calloc(size_bytes + 1, 1);
  FILE *out = fopen(check_temporary("model_records.txt"), "w");
  if (out != NULL) fputs(HEAD, out);
  if (CHECK(bytes != NULL && text != NULL)) {
    memcpy(text, bytes, size_bytes);
    check_models(text, out);
  }
  if (out != NULL) fclose(out);
  free(text);
  free(bytes);
}
