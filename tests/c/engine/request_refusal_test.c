// Requests and sessions at the limits of valid input: the status, the subject and the message of
// each error.
#include <stdio.h>

#include "api/insides.h"
#include "fixture_model.h"

enum { CONTEXT_TOKENS = 64 };

static const int32_t TOKENS[CONTEXT_TOKENS + 1] = {1, 2, 3};

static wick_engine *open_engine(void) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error = {0};
  wick_config_default(&config);
  config.context_tokens = CONTEXT_TOKENS;
  if (CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) {
    CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  }
  free(file.bytes);
  return engine;
}

static void take_nothing(void *context, const wick_event *event, const uint8_t *after) {
  (void)after;
  if (event->kind == WICK_EVENT_DONE) *(uint32_t *)context += 1;
}

static void take_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  (void)context;
  (void)position;
  (void)logits;
  (void)vocab;
}

typedef struct wanted_error {
  wick_status status;
  uint32_t subject;
  uint64_t numbers[2];
  const char *message;
} wanted_error;

static void check_error(wick_status status, const wick_error *error, const wanted_error *wanted) {
  CHECK_EQ_INT(status, wanted->status);
  CHECK_EQ_INT(error->status, wanted->status);
  CHECK_EQ_UINT(error->subject, wanted->subject);
  CHECK_EQ_UINT(error->numbers[0], wanted->numbers[0]);
  CHECK_EQ_UINT(error->numbers[1], wanted->numbers[1]);
  CHECK_EQ_STR(error->message, wanted->message);
}

static void check_submit(wick_engine *engine, const wick_request *request,
                         const wanted_error *wanted) {
  wick_error error = {0};
  uint32_t id, done = 0;
  const wick_status status = wick_request_submit(engine, request, &id, &error);
  check_error(status, &error, wanted);
  if (status != WICK_OK) return;
  fixture_run(engine, take_nothing, &done);
  CHECK_EQ_UINT(done, request->completions > 1 ? request->completions : 1);
}

static const wanted_error FINE = {.status = WICK_OK, .message = ""};

TEST(priorities_are_limited) {
  static const struct {
    int32_t priority;
    wanted_error wanted;
  } CASES[] = {
      {-101, {WICK_E_ARG, WICK_SUBJECT_PRIORITY, {0}, "priority -101 is not between -100 and 100"}},
      {-100, {.message = ""}},
      {100, {.message = ""}},
      {101, {WICK_E_ARG, WICK_SUBJECT_PRIORITY, {0}, "priority 101 is not between -100 and 100"}}};
  wick_engine *engine = open_engine();
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    wick_request request = fixture_request(TOKENS, 3, 1);
    request.priority = CASES[i].priority;
    check_submit(engine, &request, &CASES[i].wanted);
  }
  wick_engine_destroy(engine);
}

TEST(completions_are_limited_and_need_a_prompt_without_session) {
  static const wanted_error MANY = {
      WICK_E_ARG, WICK_SUBJECT_COMPLETIONS, {17, 16}, "17 completions: the limit is 16"};
  static const wanted_error ALONE = {
      .status = WICK_E_ARG, .message = "2 completions: a session or prefill_only allows only one"};
  wick_engine *engine = open_engine();
  wick_request request = fixture_request(TOKENS, 3, 1);
  request.completions = 16;
  check_submit(engine, &request, &FINE);
  request.completions = 17;
  check_submit(engine, &request, &MANY);
  for (int i = 0; i < 3; i++) {
    for (uint32_t completions = 1; completions <= 2; completions++) {
      request = fixture_request(TOKENS, 3, i == 1 ? 0 : 1);
      request.completions = completions;
      if (i == 0) CHECK_EQ_INT(wick_session_create(engine, &request.session, NULL), WICK_OK);
      if (i == 1) request.prefill_only = true;
      if (i == 2) request.on_logits = take_logits;
      check_submit(engine, &request, completions == 1 ? &FINE : &ALONE);
    }
  }
  wick_engine_destroy(engine);
}

TEST(prompts_must_fit_the_context) {
  static const wanted_error LONG = {WICK_E_FULL,
                                    WICK_SUBJECT_CONTEXT,
                                    {65, 64},
                                    "the prompt is too long: it has 65 tokens, which exceeds the "
                                    "available context size of 64"};
  static const wanted_error EMPTY = {
      WICK_E_ARG, WICK_SUBJECT_PROMPT, {0}, "the prompt is empty, and the model adds no tokens"};
  char text[CONTEXT_TOKENS + 1];
  memset(text, 'a', sizeof text);
  wick_engine *engine = open_engine();
  for (uint32_t count = 62; count <= 65; count++) {
    const wick_request request = fixture_request(TOKENS, count, 1);
    check_submit(engine, &request, count <= 64 ? &FINE : &LONG);
    wick_request written = request;
    written.tokens = NULL;
    written.token_count = 0;
    written.text = text;
    written.text_bytes = count;
    check_submit(engine, &written, count <= 64 ? &FINE : &LONG);
  }
  const wick_request empty = fixture_request(TOKENS, 0, 1);
  check_submit(engine, &empty, &EMPTY);
  wick_engine_destroy(engine);
}

TEST(a_session_runs_one_request_at_a_time) {
  static const wanted_error BUSY = {.status = WICK_E_BUSY,
                                    .message = "a request is running on session 1"};
  static const wanted_error IDLE = {
      WICK_E_BUSY, WICK_SUBJECT_SESSION, {1, 0}, "a request is running on session 1"};
  static const wanted_error FEWER = {.status = WICK_E_RANGE,
                                     .message = "session 1 has 4 tokens, not 5"};
  static const wanted_error UNKNOWN = {
      WICK_E_SEQ, WICK_SUBJECT_SESSION, {7, 0}, "there is no session 7"};
  static const wanted_error USED_UP = {.status = WICK_E_FULL, .message = "session ids are used up"};
  wick_engine *engine = open_engine();
  wick_error error = {0};
  uint32_t id, session = 0, done = 0;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  wick_request request = fixture_request(TOKENS, 3, 1);
  request.session = session;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  check_submit(engine, &request, &BUSY);
  check_error(wick_session_truncate(engine, session, 0, &error), &error, &IDLE);
  fixture_run(engine, take_nothing, &done);
  CHECK_EQ_UINT(done, 1);
  error = (wick_error){0};
  check_error(wick_session_truncate(engine, session, 5, &error), &error, &FEWER);
  CHECK_EQ_INT(wick_session_truncate(engine, session, 4, &error), WICK_OK);
  error = (wick_error){0};
  check_error(wick_session_truncate(engine, 7, 0, &error), &error, &UNKNOWN);
  engine->sessions.id_next = UINT32_MAX;
  error = (wick_error){0};
  check_error(wick_session_create(engine, &id, &error), &error, &USED_UP);
  engine->sessions.id_next = UINT32_MAX - 1;
  CHECK_EQ_INT(wick_session_create(engine, &id, &error), WICK_OK);
  CHECK_EQ_UINT(id, UINT32_MAX - 1);
  wick_engine_destroy(engine);
}

static void check_config(const wick_config *config, const wanted_error *wanted) {
  wick_engine *engine = NULL;
  wick_error error = {0};
  const wick_status status = wick_engine_create(config, &engine, &error);
  if (wanted == NULL) {
    CHECK_EQ_INT(status, WICK_OK);
    CHECK(engine != NULL);
  } else {
    check_error(status, &error, wanted);
    CHECK(engine == NULL);
  }
  wick_engine_destroy(engine);
}

TEST(a_zeroed_config_has_the_defaults) {
  wick_config usual, zeros;
  memset(&usual, 1, sizeof usual);
  memset(&zeros, 0, sizeof zeros);
  wick_config_default(&usual);
  wick_engine *engines[2] = {NULL, NULL};
  REQUIRE(wick_engine_create(&usual, &engines[0], NULL) == WICK_OK);
  REQUIRE(wick_engine_create(&zeros, &engines[1], NULL) == WICK_OK);
  const wick_config *of_usual = wick_engine_config(engines[0]);
  const wick_config *of_zeros = wick_engine_config(engines[1]);
  CHECK_EQ_STR(wick_kv_type_name(of_zeros->k_type), "f16");
  CHECK_EQ_STR(wick_kv_type_name(of_zeros->v_type), "f16");
  CHECK_EQ_UINT(of_zeros->threads, 1);
  CHECK_EQ_MEM(of_zeros, of_usual, sizeof *of_usual);
  wick_engine_destroy(engines[0]);
  wick_engine_destroy(engines[1]);
}

TEST(fields_of_later_versions_are_rejected) {
  wick_config config;
  wick_config_default(&config);
  config.reserved[15] = 1;
  check_config(&config, &(wanted_error){WICK_E_ARG,
                                        WICK_SUBJECT_NONE,
                                        {0, 0},
                                        "wick_config: reserved[15] is not 0. Begin with zeros or "
                                        "the defaults"});
}

TEST(configurations_are_checked_at_their_limits) {
  wick_config usual;
  wick_config_default(&usual);
  wick_config config = usual;
  config.batch_tokens = WICK_BATCH_TOKENS_MAX;
  check_config(&config, NULL);
  config.batch_tokens++;
  char message[WICK_ERROR_MESSAGE_BYTES];
  snprintf(message, sizeof message, "a batch of %u tokens: the limit is %d",
           WICK_BATCH_TOKENS_MAX + 1u, (int)WICK_BATCH_TOKENS_MAX);
  check_config(&config, &(wanted_error){WICK_E_ARG,
                                        WICK_SUBJECT_BATCH,
                                        {WICK_BATCH_TOKENS_MAX + 1u, WICK_BATCH_TOKENS_MAX},
                                        message});
  for (int of_values = 0; of_values < 2; of_values++) {
    config = usual;
    *(of_values ? &config.v_type : &config.k_type) = (wick_kv_type)(WICK_KV_TYPE_COUNT - 1);
    check_config(&config, NULL);
    *(of_values ? &config.v_type : &config.k_type) = WICK_KV_TYPE_COUNT;
    check_config(&config, &(wanted_error){WICK_E_UNSUPPORTED,
                                          WICK_SUBJECT_KV_TYPE,
                                          {config.k_type, config.v_type},
                                          "this KV type is not supported yet"});
  }
  config = usual;
  config.kernels = "none";
  check_config(&config, &(wanted_error){WICK_E_UNSUPPORTED,
                                        WICK_SUBJECT_KERNELS,
                                        {0, 0},
                                        "this processor or build has no 'none' kernels"});
}
