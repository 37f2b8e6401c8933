// A complete chat with only include/wick.h: no header from src/ is included here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wick.h"

static const char MODEL[] = "examples/models/wick-2.6m-q8_0.gguf";
static const char QUESTION[] =
    "<|im_start|>user\nTell me a story about a fox.<|im_end|>\n<|im_start|>assistant\n";

typedef struct answer {
  char text[4096];
  size_t text_bytes;
  uint32_t tokens, tops, finish, stop;
} answer;

static void take(answer *to, const wick_event *event) {
  if (to->text_bytes + event->text_bytes < sizeof to->text) {
    memcpy(to->text + to->text_bytes, wick_event_text(event), event->text_bytes);
    to->text_bytes += event->text_bytes;
  }
  if (event->kind == WICK_EVENT_TOKEN) to->tokens++;
  if (event->kind == WICK_EVENT_DONE) to->finish = event->finish, to->stop = event->stop;
  if (event->top_count == 0) return;
  const wick_logprob top = wick_event_top(event, 0);
  CHECK(top.logprob <= 0 && top.logprob >= event->logprob);
  to->tops++;
}

static void take_all(wick_engine *engine, answer *to) {
  size_t size_bytes;
  const uint8_t *events = wick_events_take(engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) take(to, event);
}

static wick_request question(uint32_t max_tokens) {
  wick_request request;
  wick_request_default(&request);
  request.text = QUESTION;
  request.text_bytes = sizeof QUESTION - 1;
  request.max_tokens = max_tokens;
  return request;
}

// `units`: work units per step; 0: use a time budget instead.
static void ask(wick_engine *engine, const wick_request *request, uint32_t units, answer *to) {
  uint32_t id;
  wick_error error;
  *to = (answer){.finish = WICK_FINISH_NONE};
  REQUIRE(CHECK_EQ_INT(wick_request_submit(engine, request, &id, &error), WICK_OK));
  for (;;) {
    const wick_step_result result =
        units == 0 ? wick_step(engine, 1000) : wick_step_units(engine, units);
    take_all(engine, to);
    if (result == WICK_STEP_IDLE) return;
  }
}

static wick_engine *open_engine(const wick_config *config) {
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  wick_engine *engine = NULL;
  wick_error error;
  if (!CHECK_EQ_INT(wick_engine_create(config, &engine, &error), WICK_OK)) return NULL;
  if (!CHECK_EQ_INT(wick_load_bytes(engine, bytes, size_bytes, &error), WICK_OK)) {
    CHECK_EQ_STR(error.message, "");
  }
  free(bytes);
  return engine;
}

TEST(a_chat_works_with_only_the_public_header) {
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  answer first, again, more;
  wick_request request = question(24);
  wick_error error;
  REQUIRE(wick_session_create(engine, &request.session, &error) == WICK_OK);
  ask(engine, &request, 0, &first);
  CHECK_EQ_UINT(first.tokens, 24);
  CHECK_EQ_UINT(first.finish, WICK_FINISH_LENGTH);
  CHECK(strstr(first.text, "fox") != NULL);

  const int32_t *tokens;
  uint32_t count;
  REQUIRE(wick_session_tokens(engine, request.session, &tokens, &count, &error) == WICK_OK);
  CHECK(count > 24);
  request.text = "<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n";
  request.text_bytes = strlen(request.text);
  ask(engine, &request, 0, &more);
  CHECK(more.text_bytes > 0);

  // without a clock and with alternative tokens, the text is the same
  wick_request other = question(24);
  other.sampling.logprobs = 3;
  ask(engine, &other, 7, &again);
  CHECK_EQ_STR(again.text, first.text);
  CHECK_EQ_UINT(again.tops, 24);
  wick_engine_destroy(engine);
}

TEST(the_stop_string_that_ended_the_output_is_reported) {
  static const char *const stops[] = {"", "zzzz", "fox", "x"};
  static const size_t sizes[] = {0, 4, 3, 1};
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  answer ended;
  wick_request request = question(24);
  ask(engine, &request, 0, &ended);
  CHECK_EQ_UINT(ended.finish, WICK_FINISH_LENGTH);
  CHECK_EQ_UINT(ended.stop, 0);
  request.stops = stops;
  request.stop_bytes = sizes;
  request.stop_count = 4;
  ask(engine, &request, 0, &ended);
  CHECK_EQ_UINT(ended.finish, WICK_FINISH_STOP);
  CHECK_EQ_UINT(ended.stop,
                3);  // several stop strings end with this byte; the longest one is reported
  request.stop_count = 2;
  ask(engine, &request, 0, &ended);
  CHECK_EQ_UINT(ended.stop, 0);
  wick_engine_destroy(engine);
}

typedef struct paper {
  char text[1 << 16];
  size_t used_bytes;
} paper;

static void write_paper(void *context, const char *bytes, size_t size_bytes) {
  paper *to = context;
  if (to->used_bytes + size_bytes >= sizeof to->text) return;
  memcpy(to->text + to->used_bytes, bytes, size_bytes);
  to->used_bytes += size_bytes;
  to->text[to->used_bytes] = '\0';
}

TEST(tokenizing_and_detokenizing_restores_the_text) {
  static const char TEXT[] = "Once upon a time, a fox met a \xf0\x9f\xa6\x8a.";
  wick_config config;
  wick_config_default(&config);
  config.directory_only = true;
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  int32_t tokens[64];
  size_t count, size_bytes;
  wick_error error;
  REQUIRE(wick_tokenize(engine, TEXT, sizeof TEXT - 1, 0, tokens, 64, &count, &error) == WICK_OK);
  CHECK(wick_detokenize_bytes_max(engine, SIZE_MAX) == SIZE_MAX);
  CHECK(wick_detokenize_bytes_max(engine, SIZE_MAX - 1) == SIZE_MAX);
  char *out = malloc(wick_detokenize_bytes_max(engine, count));
  REQUIRE(wick_detokenize(engine, tokens, count, true, true, out, &size_bytes, &error) == WICK_OK);
  CHECK_EQ_UINT(size_bytes, sizeof TEXT - 1);
  CHECK_EQ_MEM(out, TEXT, size_bytes);
  wick_text piece;
  REQUIRE(wick_token_bytes(engine, tokens[0], out, &piece, &error) == WICK_OK);
  CHECK_EQ_MEM(piece.bytes, TEXT, piece.size_bytes);
  free(out);
  wick_engine_destroy(engine);
}

TEST(a_file_can_be_inspected) {
  wick_config config;
  wick_config_default(&config);
  config.directory_only = true;
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  wick_file_info file;
  wick_metadata entry;
  wick_tensor_info tensor;
  REQUIRE(wick_file_get_info(engine, &file, NULL) == WICK_OK);
  CHECK_EQ_UINT(file.version, 3);
  CHECK(!wick_metadata_get(engine, file.metadata_count, &entry));
  REQUIRE(wick_metadata_get(engine, 0, &entry));
  CHECK_EQ_MEM(entry.key.bytes, "general.architecture", entry.key.size_bytes);
  CHECK_EQ_STR(entry.type, "string");
  static paper value;
  wick_metadata_json(engine, 0, 8, write_paper, &value);
  CHECK_EQ_STR(value.text, "\"llama\"");
  CHECK(!wick_tensor_get(engine, file.tensor_count, &tensor));
  REQUIRE(wick_tensor_get(engine, 0, &tensor));
  CHECK(tensor.dim_count > 0 && tensor.dims[3] == 1 && tensor.size_bytes > 0);
  wick_error error;
  uint32_t id;
  const wick_request request = question(1);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_NODATA);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_DIRECTORY_ONLY);
  wick_engine_destroy(engine);
}

// Reads the model in short pieces and fails once, at the tenth call.
typedef struct slow_file {
  FILE *stream;
  uint32_t calls;
} slow_file;

static size_t read_slowly(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                          size_t size_bytes) {
  slow_file *from = context;
  if (file != 0 || ++from->calls == 10) return SIZE_MAX;
  if (fseek(from->stream, (long)offset_bytes, SEEK_SET) != 0) return SIZE_MAX;
  return fread(bytes, 1, size_bytes < 50000 ? size_bytes : 50000, from->stream);
}

TEST(loading_can_be_retried_after_the_reader_fails) {
  static uint8_t piece[1 << 16];
  slow_file file = {.stream = fopen(check_repository(MODEL), "rb")};
  REQUIRE(file.stream != NULL);
  wick_config config;
  wick_engine *engine;
  wick_error error;
  wick_load_state state;
  wick_config_default(&config);
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  const wick_reader reader = {&file, read_slowly, piece, sizeof piece};
  const wick_reader empty = {&file, read_slowly, piece, 0};
  CHECK_EQ_INT(wick_load_from(engine, &empty, &error), WICK_E_ARG);
  CHECK_EQ_INT(wick_load_from(engine, &reader, &error), WICK_E_IO);
  CHECK_EQ_INT(wick_load_from(engine, &reader, &error), WICK_OK);
  wick_load_get_state(engine, &state);
  CHECK(state.is_complete && state.fingerprint != 0);
  wick_engine_destroy(engine);
  fclose(file.stream);
}

// The engine keeps its model, and the second source is not read.
TEST(an_engine_with_a_model_rejects_a_second_one) {
  static uint8_t piece[1 << 16];
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  REQUIRE(bytes != NULL);
  for (int directory_only = 0; directory_only < 2; directory_only++) {
    wick_config config;
    wick_engine *engine;
    wick_error error;
    wick_load_state state, after;
    slow_file file = {.calls = 100};
    wick_config_default(&config);
    config.directory_only = directory_only != 0;
    REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
    CHECK_EQ_INT(wick_load_bytes(engine, bytes, size_bytes, &error), WICK_OK);
    wick_load_get_state(engine, &state);
    const wick_reader reader = {&file, read_slowly, piece, sizeof piece};
    const size_t sizes[] = {size_bytes, 10, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      CHECK_EQ_INT(wick_load_bytes(engine, bytes, sizes[i], &error), WICK_E_BUSY);
      CHECK(strstr(error.message, "already has a model") != NULL);
      CHECK_EQ_INT(wick_load_from(engine, &reader, NULL), WICK_E_BUSY);
    }
    CHECK_EQ_UINT(file.calls, 100);
    wick_load_get_state(engine, &after);
    CHECK(after.is_complete && after.fingerprint == state.fingerprint);
    wick_engine_destroy(engine);
  }
  free(bytes);
}

TEST(truncated_files_are_reported) {
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  REQUIRE(bytes != NULL);
  const size_t cuts[] = {0, 100, 300000, size_bytes - 1};
  for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
    wick_config config;
    wick_engine *engine;
    wick_error error;
    wick_config_default(&config);
    REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
    CHECK_EQ_INT(wick_load_bytes(engine, bytes, cuts[i], &error), WICK_E_TRUNCATED);
    wick_engine_destroy(engine);
  }
  free(bytes);
}

TEST(errors_contain_the_setting_and_its_values) {
  wick_config config;
  wick_engine *engine;
  wick_error error;
  wick_config_default(&config);
  config.threads = 65;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_E_ARG);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_THREADS);
  CHECK_EQ_STR(wick_subject_name(error.subject), "threads");
  CHECK_EQ_UINT(error.numbers[0], 65);
  CHECK_EQ_UINT(error.numbers[1], WICK_THREADS_MAX);

  wick_config_default(&config);
  config.context_tokens = 32;
  engine = open_engine(&config);
  REQUIRE(engine != NULL);
  uint32_t id;
  wick_request request = question(1);
  int32_t tokens[40] = {0};
  request.tokens = tokens, request.token_count = 40;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_FULL);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_CONTEXT);
  CHECK_EQ_UINT(error.numbers[0], 40);
  CHECK_EQ_UINT(error.numbers[1], 32);
  request.token_count = 4;
  request.sampling.top_p = 1.5f;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_ARG);
  CHECK_EQ_STR(wick_subject_name(error.subject), "top_p");
  // an error that concerns no setting has no subject
  CHECK_EQ_INT(wick_session_truncate(engine, 7, 0, &error), WICK_E_SEQ);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_SESSION);
  wick_engine_destroy(engine);
}

TEST(every_status_and_subject_has_a_name) {
  for (int i = 0; i < WICK_STATUS_COUNT; i++) {
    CHECK(strncmp(wick_status_name((wick_status)i), "WICK_", 5) == 0);
  }
  CHECK_EQ_STR(wick_subject_name(WICK_SUBJECT_NONE), "");
  for (int i = 1; i < WICK_SUBJECT_COUNT; i++) {
    const char *name = wick_subject_name((wick_subject)i);
    if (CHECK(name != NULL)) CHECK(name[0] != '\0');
  }
  CHECK_EQ_STR(wick_status_name(WICK_STATUS_COUNT), "WICK_E_?");
  CHECK_EQ_STR(wick_subject_name(WICK_SUBJECT_COUNT), "");
  wick_config config;
  wick_engine *engine;
  wick_error error;
  wick_config_default(&config);
  config.pre_tokenizer = "nobody's";
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_E_ARG);
  CHECK_EQ_STR(wick_subject_name(error.subject), "pre_tokenizer");
}

// Submits a request with these sampling settings and returns the error.
static wick_error refuse(wick_engine *engine, const wick_sampling *sampling) {
  wick_request request = question(1);
  wick_error error = {.status = WICK_OK};
  uint32_t id;
  request.sampling = *sampling;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_ARG);
  return error;
}

TEST(sampling_errors_have_the_numbers_documented_in_the_header) {
  static const wick_bias biases[WICK_BIAS_MAX + 1];
  const wick_bias unknown = {5000, 1}, infinite = {7, 1e30f * 1e30f};
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  wick_sampling sampling = question(1).sampling;
  sampling.logprobs = 21;
  wick_error error = refuse(engine, &sampling);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_LOGPROBS);
  CHECK(error.numbers[0] == 21 && error.numbers[1] == WICK_LOGPROBS_MAX);

  sampling.logprobs = 0;
  sampling.bias = biases;
  sampling.bias_count = WICK_BIAS_MAX + 1;
  error = refuse(engine, &sampling);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_BIAS);
  CHECK(error.numbers[0] == WICK_BIAS_MAX + 1 && error.numbers[1] == WICK_BIAS_MAX);
  sampling.bias = &unknown;
  sampling.bias_count = 1;
  error = refuse(engine, &sampling);
  CHECK(error.numbers[0] == 5000 && error.numbers[1] == 1024);
  sampling.bias = &infinite;
  error = refuse(engine, &sampling);
  CHECK(error.numbers[0] == 7 && error.numbers[1] == 1024);
  wick_request nothing = question(1);
  uint32_t id;
  nothing.text_bytes = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &nothing, &id, &error), WICK_E_ARG);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_PROMPT);
  wick_engine_destroy(engine);
}

// The loop of the header's example, word for word (compared by tests/engine/header.test.mjs),
// except for the output stream.
static void run_example(wick_engine *engine, FILE *written) {
  wick_step_result result;
  do {
    result = wick_step(engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL)
      fwrite(wick_event_text(event), 1, event->text_bytes, written);
  } while (result != WICK_STEP_IDLE);
}

TEST(the_header_example_writes_the_complete_text) {
  const char *path = check_temporary("example.txt");
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  const wick_request request = question(24);
  answer whole;
  ask(engine, &request, 1, &whole);
  uint32_t id;
  wick_error error;
  FILE *written = fopen(path, "wb");
  REQUIRE(written != NULL);
  REQUIRE(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
  run_example(engine, written);
  fclose(written);
  size_t size_bytes;
  uint8_t *text = check_read_file(path, &size_bytes);
  REQUIRE(text != NULL);
  if (CHECK_EQ_UINT(size_bytes, whole.text_bytes)) CHECK_EQ_MEM(text, whole.text, size_bytes);
  free(text);
  wick_engine_destroy(engine);
}

TEST(an_unlimited_budget_runs_until_all_requests_are_done) {
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  const wick_request request = question(4);
  uint32_t id;
  wick_error error;
  REQUIRE(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
  CHECK_EQ_INT(wick_step(engine, UINT64_MAX), WICK_STEP_IDLE);
  wick_engine_destroy(engine);
}

TEST(model_info_contains_the_architecture) {
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  wick_model_info info;
  wick_error error;
  REQUIRE(wick_model_get_info(engine, &info, &error) == WICK_OK);
  REQUIRE(CHECK_EQ_UINT(info.architecture.size_bytes, 5));
  CHECK_EQ_MEM(info.architecture.bytes, "llama", 5);
  CHECK(info.parameters > 2000000 && info.parameters < 3000000);
  wick_engine_destroy(engine);
}

TEST(an_engine_without_a_model_has_zero_stats_and_cannot_be_a_draft) {
  static const wick_stats none;
  wick_config config;
  wick_config_default(&config);
  wick_engine *empty, *engine = open_engine(&config);
  wick_error error;
  wick_stats stats;
  REQUIRE(engine != NULL);
  REQUIRE(wick_engine_create(&config, &empty, &error) == WICK_OK);
  memset(&stats, 7, sizeof stats);
  wick_stats_get(empty, &stats);
  CHECK_EQ_MEM(&stats, &none, sizeof stats);
  CHECK_EQ_INT(wick_engine_set_draft(engine, empty, &error), WICK_E_NODATA);
  CHECK(strstr(error.message, "model is not loaded") != NULL);
  CHECK_EQ_INT(wick_engine_set_draft(empty, engine, &error), WICK_E_NODATA);
  wick_engine_destroy(engine);
  wick_engine_destroy(empty);
}

TEST(embedding_defaults_overwrite_all_fields) {
  wick_embed_request request;
  memset(&request, 0xa5, sizeof request);
  wick_embed_default(&request);
  CHECK(request.texts == NULL && request.text_count == 0);
  CHECK(request.adapters == NULL && request.adapter_count == 0);
  CHECK(!request.normalizes && !request.truncates);
  CHECK_EQ_INT(request.pooling, WICK_POOLING_MODEL);
  CHECK_EQ_UINT(request.dimensions, 0);
}

TEST(a_plan_over_the_budget_is_rejected_with_both_numbers) {
  wick_config config;
  wick_config_default(&config);
  config.memory_bytes_max = 3000000;
  config.context_tokens = 512;
  wick_engine *engine;
  wick_error error;
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  REQUIRE(bytes != NULL);
  CHECK_EQ_INT(wick_load_bytes(engine, bytes, size_bytes, &error), WICK_E_NOMEM);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_PLAN);
  CHECK(error.numbers[0] > 3000000);
  CHECK_EQ_UINT(error.numbers[1], 3000000);
  CHECK_EQ_UINT(error.numbers[2], 512);
  free(bytes);
  wick_engine_destroy(engine);
}

TEST(stats_pages_memory_and_metrics_are_reported) {
  wick_config config;
  wick_config_default(&config);
  config.metrics = true;
  wick_engine *engine = open_engine(&config);
  REQUIRE(engine != NULL);
  answer printed;
  const wick_request request = question(4);
  ask(engine, &request, 0, &printed);
  wick_stats stats;
  wick_pages_state pages;
  wick_memory_state memory;
  wick_op_metrics row;
  uint32_t rows = 0;
  wick_stats_get(engine, &stats);
  wick_pages_get_state(engine, &pages);
  wick_memory_get_state(engine, &memory);
  CHECK_EQ_UINT(stats.tokens_out, 4);
  CHECK(pages.page_tokens == 16 && pages.pages_available > 0);
  CHECK(memory.bytes_peak >= memory.bytes_now && memory.bytes_now > 0);
  for (uint32_t i = 0; wick_metrics_get(engine, i, &row); i++) rows += row.count > 0;
  CHECK(rows > 10);
  static paper json;
  wick_metrics_json(engine, write_paper, &json);
  CHECK(json.used_bytes > 0 && json.text[0] == '{');
  CHECK_EQ_UINT(wick_version(), WICK_VERSION);
  wick_engine_destroy(engine);
}
