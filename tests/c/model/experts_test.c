// Mixtures of experts: rejected files, errors for a router that returns NaN, op counts, and that
// decoding allocates nothing. engine_laws_test.c checks that their logits do not depend on batches.
#include "api/insides.h"
#include "fixture_model.h"

enum { PROMPT = 12, ANSWER = 20 };

static const fixture_experts EXPERTS = {"llama", 6, 2, 0, false, NULL};
static const fixture_experts SHARED = {"qwen2moe", 6, 2, 32, false, NULL};

static wick_engine *open_engine(const fixture_file *file, wick_status *status, wick_error *error) {
  wick_config config;
  wick_config_default(&config);
  config.metrics = true;
  config.batch_tokens = 16;
  wick_engine *engine = NULL;
  *status = wick_engine_create(&config, &engine, error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 0, error);
  return engine;
}

typedef struct answer {
  uint32_t tokens, finish, status;
  uint64_t calls_first, calls_last;  // number of allocator calls
  wick_engine *engine;
} answer;

static void take_event(void *context, const wick_event *event, const uint8_t *after) {
  answer *to = context;
  (void)after;
  if (event->kind == WICK_EVENT_TOKEN) {
    to->calls_last = to->engine->memory.calls;
    if (to->tokens++ == 0) to->calls_first = to->calls_last;
  }
  if (event->kind == WICK_EVENT_DONE) {
    to->finish = event->finish;
    to->status = event->status;
  }
}

static answer ask(wick_engine *engine) {
  answer answer = {.engine = engine};
  int32_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; i++) prompt[i] = i * 7 % 256;
  const wick_request request = fixture_request(prompt, PROMPT, ANSWER);
  uint32_t id;
  wick_error error;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  fixture_run(engine, take_event, &answer);
  return answer;
}

// ---- rejected files ----

// Returns where `text` begins in the file's header, which must contain it.
static uint8_t *find(const fixture_file *file, const char *text) {
  const size_t length = strlen(text);
  for (size_t i = 0; i + length < file->size_bytes; i++) {
    if (memcmp(file->bytes + i, text, length) == 0) return file->bytes + i;
  }
  CHECK_EQ_STR(text, "in the file");
  return file->bytes;
}

static void check_refused(const fixture_file *file, wick_status wanted, const char *message) {
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(file, &status, &error);
  CHECK_EQ_INT(status, wanted);
  if (strstr(error.message, message) == NULL) CHECK_EQ_STR(error.message, message);
  wick_engine_destroy(engine);
}

static void check_number(const fixture_experts *experts, const char *key, uint32_t value,
                         wick_status wanted, const char *message) {
  fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, experts);
  memcpy(find(&file, key) + strlen(key) + 4, &value, sizeof value);  // after the value's type
  check_refused(&file, wanted, message);
  free(file.bytes);
}

TEST(inconsistent_expert_counts_are_rejected) {
  const char *count = "llama.expert_count", *used = "llama.expert_used_count";
  check_number(&EXPERTS, used, 0, WICK_E_FORMAT, "'llama.expert_used_count' is 0");
  check_number(&EXPERTS, used, 7, WICK_E_FORMAT, "'llama.expert_used_count' is 7");
  check_number(&EXPERTS, used, UINT32_MAX, WICK_E_FORMAT, "is 4294967295");
  check_number(&EXPERTS, count, 1, WICK_E_FORMAT, "'llama.expert_used_count' is 2");
  check_number(&EXPERTS, count, 1025, WICK_E_FORMAT, "'llama.expert_count' is 1025");
  check_number(&EXPERTS, count, UINT32_MAX, WICK_E_FORMAT, "'llama.expert_count' is 4294967295");
  check_number(&EXPERTS, count, 5, WICK_E_SHAPE, "blk.0.ffn_gate_inp.weight");
  check_number(&EXPERTS, count, 0, WICK_E_FORMAT,
               "blk.0.ffn_gate.weight");  // a tensor of a dense model
  check_number(&EXPERTS, "llama.feed_forward_length", 95, WICK_E_SHAPE,
               "'blk.0.ffn_gate_exps.weight' is 64 x 96 x 6, expected 64 x 95 x 6");
  check_number(&SHARED, "qwen2moe.expert_count", 0, WICK_E_FORMAT, "'qwen2moe.expert_count' is 0");
  check_number(&SHARED, "qwen2moe.expert_feed_forward_length", 0, WICK_E_FORMAT, "is 0");
  check_number(&SHARED, "qwen2moe.expert_shared_feed_forward_length", 33, WICK_E_SHAPE, "shexp");
}

TEST(missing_tensors_are_reported_by_name) {
  static const char *const NAMES[] = {
      "blk.1.ffn_norm.weight",     "blk.1.ffn_gate_inp.weight",   "blk.1.ffn_gate_exps.weight",
      "blk.1.ffn_up_exps.weight",  "blk.1.ffn_down_exps.weight",  "blk.1.ffn_gate_shexp.weight",
      "blk.1.ffn_up_shexp.weight", "blk.1.ffn_down_shexp.weight", "blk.1.ffn_gate_inp_shexp.weight",
  };
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, &SHARED);
    *find(&file, NAMES[i]) = 'x';
    check_refused(&file, WICK_E_FORMAT, NAMES[i]);
    free(file.bytes);
  }
}

TEST(experts_in_separate_tensors_are_rejected_by_name) {
  fixture_experts apart = EXPERTS;
  apart.is_apart = true;
  fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, &apart);
  check_refused(&file, WICK_E_UNSUPPORTED, "'blk.0.ffn_gate.0.weight'");
  free(file.bytes);
}

// ---- running ----

TEST(models_run_with_one_expert_and_with_all_experts) {
  for (uint32_t used = 1; used <= 4; used++) {
    const fixture_experts experts = {"llama", used < 3 ? used : 4, used, 0, false, NULL};
    fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, &experts);
    wick_status status;
    wick_error error = {0};
    wick_engine *engine = open_engine(&file, &status, &error);
    if (CHECK_EQ_INT(status, WICK_OK)) CHECK_EQ_UINT(ask(engine).tokens, ANSWER);
    wick_engine_destroy(engine);
    free(file.bytes);
  }
}

TEST(decoding_allocates_nothing) {
  fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, &SHARED);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, &status, &error);
  REQUIRE(status == WICK_OK);
  const answer answer = ask(engine);
  CHECK_EQ_UINT(answer.tokens, ANSWER);
  CHECK_EQ_UINT(answer.calls_last, answer.calls_first);
  wick_engine_destroy(engine);
  free(file.bytes);
}

static void check_poisoned(const char *tensor, float poison) {
  fixture_shape shape = FIXTURE_DEFAULT;
  fixture_experts experts = SHARED;
  experts.poisoned = tensor;
  shape.poison = poison;
  fixture_file file = fixture_make_experts(&shape, &experts);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, &status, &error);
  REQUIRE(status == WICK_OK);
  for (int i = 0; i < 2; i++) {
    const answer answer = ask(engine);
    CHECK_EQ_UINT(answer.finish, WICK_FINISH_ERROR);
    CHECK_EQ_UINT(answer.status, WICK_E_NONFINITE);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_router_that_returns_nan_fails_with_a_typed_error) {
  const float nan = f32_of_bits(0x7fc00000u), infinity = f32_of_bits(0x7f800000u);
  for (int layer = 0; layer < 3; layer += 2) {  // those of the last layer only reach the logits
    char name[48];
    text_format(name, sizeof name, "blk.%d.ffn_gate_inp.weight", layer);
    check_poisoned(name, nan);
    check_poisoned(name, infinity);
    check_poisoned(name, -infinity);
  }
}

TEST(only_the_experts_in_use_are_counted) {
  fixture_file file = fixture_make_experts(&FIXTURE_DEFAULT, &EXPERTS);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, &status, &error);
  REQUIRE(status == WICK_OK);
  CHECK_EQ_UINT(ask(engine).tokens, ANSWER);
  const op_record *decode = engine->ops->records[PASS_DECODE];
  const uint64_t layers = FIXTURE_DEFAULT.layers, hidden = FIXTURE_DEFAULT.hidden,
                 passes = layers * (ANSWER - 1), weights = 3 * hidden * FIXTURE_DEFAULT.ffn;
  CHECK_EQ_UINT(decode[OP_EXPERTS].macs, passes * EXPERTS.used * weights);
  CHECK_EQ_UINT(decode[OP_EXPERTS].bytes,
                passes * 4 * (EXPERTS.used * weights + hidden * (EXPERTS.used + 1)));
  CHECK_EQ_UINT(decode[OP_ROUTE].macs, passes * EXPERTS.count * hidden);
  CHECK_EQ_UINT(decode[OP_GATE_UP].macs, 0);
  wick_engine_destroy(engine);
  free(file.bytes);
}
