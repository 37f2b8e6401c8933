// A single request compared with a bare loop over the forward pass: both generate the same tokens,
// and the scheduler adds little time. With WICK_BENCH=1 in the environment, bench_lone_request
// measures this on the layers of SmolLM2-135M.
#include <stdio.h>
#include <stdlib.h>

#include "api/insides.h"
#include "bench/stats.h"
#include "fixture_model.h"

enum { PROMPT_TOKENS = 16, OUT_TOKENS_MAX = 64 };

static wick_engine *open_engine(const fixture_file *file) {
  wick_config config;
  wick_config_default(&config);
  config.no_prefix_cache = true;
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) return NULL;
  CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  return engine;
}

static void fill_prompt(int32_t *tokens) {
  for (int32_t i = 0; i < PROMPT_TOKENS; i++) tokens[i] = (i * 37 + 5) % 250;
}

static int32_t likeliest(const wick_engine *engine) {
  const float *logits = forward_logits(engine->forward, 0);
  int32_t best = 0;
  for (int32_t i = 1; i < (int32_t)engine->model->config.vocab; i++) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

static int32_t bare_pass(wick_engine *engine, kv_seq_id sequence, const int32_t *tokens,
                         uint32_t first, uint32_t count) {
  model_input inputs[PROMPT_TOKENS];
  for (uint32_t i = 0; i < count; i++) {
    inputs[i] = (model_input){tokens[i], first + i, sequence, i + 1 == count, NULL, 0, 0, NULL};
  }
  forward_begin(engine->forward, inputs, count);
  for (uint32_t layer = 0; layer < engine->model->config.layers; layer++) {
    CHECK_EQ_INT(forward_layer(engine->forward, NULL), WICK_OK);
  }
  kv_seq_append(engine->kv, sequence, count, NULL);
  forward_logits_compute(engine->forward, 0);
  return likeliest(engine);
}

// Generates `out_tokens` tokens greedily. Returns the time from the first token to the last, in us.
static uint64_t run_bare(wick_engine *engine, uint32_t out_tokens, int32_t *out) {
  int32_t prompt[PROMPT_TOKENS];
  kv_seq_id sequence;
  fill_prompt(prompt);
  CHECK_EQ_INT(kv_seq_new(engine->kv, PROMPT_TOKENS + out_tokens, &sequence, NULL, NULL), WICK_OK);
  out[0] = bare_pass(engine, sequence, prompt, 0, PROMPT_TOKENS);
  const uint64_t start_us = platform_now_us();
  for (uint32_t i = 1; i < out_tokens; i++) {
    out[i] = bare_pass(engine, sequence, &out[i - 1], PROMPT_TOKENS + i - 1, 1);
  }
  const uint64_t took_us = platform_now_us() - start_us;
  kv_seq_free(engine->kv, sequence, NULL);
  return took_us;
}

// Does the same with a request, step by step as a host does.
static uint64_t run_request(wick_engine *engine, uint32_t out_tokens, int32_t *out) {
  int32_t prompt[PROMPT_TOKENS];
  fill_prompt(prompt);
  wick_request wanted = fixture_request(prompt, PROMPT_TOKENS, out_tokens);
  wanted.no_speculation = true;
  uint32_t id, count = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_OK);
  uint64_t first_us = 0, last_us = 0;
  for (bool is_idle = false; !is_idle;) {
    is_idle = wick_step(engine, 15000) == WICK_STEP_IDLE;
    size_t size_bytes;
    const uint8_t *at = wick_events_take(engine, &size_bytes), *end = at + size_bytes;
    for (wick_event event; at < end; at += event.size_bytes) {
      memcpy(&event, at, sizeof event);
      if (event.kind != WICK_EVENT_TOKEN || count == out_tokens) continue;
      last_us = platform_now_us();
      if (count == 0) first_us = last_us;
      out[count++] = event.token;
    }
  }
  CHECK_EQ_INT(count, out_tokens);
  return last_us - first_us;
}

TEST(a_single_request_generates_the_same_tokens_as_a_bare_loop) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file);
  int32_t bare[OUT_TOKENS_MAX], asked[OUT_TOKENS_MAX];
  if (engine != NULL) {
    run_bare(engine, OUT_TOKENS_MAX, bare);
    run_request(engine, OUT_TOKENS_MAX, asked);
    CHECK_EQ_MEM(asked, bare, sizeof bare);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

enum { BENCH_ROUNDS = 15 };

BENCH(lone_request) {
  // a vocabulary of 262 makes the pass cheaper, so the scheduler's share is larger
  const fixture_shape shape = {GGML_TYPE_Q8_0, 576, 1536, 9, 3, 30, 2048, false, 0};
  fixture_file file = fixture_make(&shape);
  wick_engine *engine = open_engine(&file);
  double ratios[BENCH_ROUNDS];
  int32_t out[OUT_TOKENS_MAX];
  for (int round = -1; engine != NULL && round < BENCH_ROUNDS; round++) {
    const double bare_us = (double)run_bare(engine, OUT_TOKENS_MAX, out);
    const double request_us = (double)run_request(engine, OUT_TOKENS_MAX, out);
    if (round < 0) continue;
    ratios[round] = request_us / bare_us;
    printf("#   bare %.0f us per token, request %.0f, ratio %.4f\n", bare_us / (OUT_TOKENS_MAX - 1),
           request_us / (OUT_TOKENS_MAX - 1), ratios[round]);
  }
  double scratch[BENCH_ROUNDS], median = 0;
  if (engine != NULL) stat_median(ratios, BENCH_ROUNDS, scratch, &median);
  printf("#   median %.4f\n", median);
  wick_engine_destroy(engine);
  free(file.bytes);
}
