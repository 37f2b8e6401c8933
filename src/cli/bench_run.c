// cli/bench_run.c — the measured loop. The clock is read after each unit of work of the engine, so
// that every token has its own time.
#include "cli/bench_run.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/hash.h"
#include "cli/generation.h"
#include "platform/platform.h"

typedef struct bench_clock {
  bench_result *result;
  uint64_t first_us, last_us;  // times of the first and the latest token
  uint32_t tokens;
  bool is_counted;
} bench_clock;

static bool take_time(void *context, wick_engine *engine, const wick_event *event) {
  bench_clock *clock = context;
  const uint64_t now_us = platform_now_us();
  (void)engine;
  (void)event;
  if (clock->tokens++ == 0) {
    clock->first_us = now_us;
  } else if (clock->is_counted) {
    bench_result *result = clock->result;
    result->itl_ms[result->itl_count++] = (double)(now_us - clock->last_us) / 1e3;
  }
  clock->last_us = now_us;
  return true;
}

static double per_second(uint32_t tokens, uint64_t elapsed_us) {
  return elapsed_us == 0 ? 0 : (double)tokens * 1e6 / (double)elapsed_us;
}

// Runs repetition `number`, or a warm-up that is not counted.
static exit_code repeat(wick_engine *engine, const bench_setup *setup, const int32_t *prompt,
                        bool is_counted, uint32_t number, bench_result *result) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = prompt;
  request.token_count = setup->prompt_tokens;
  request.max_tokens = setup->decode_tokens + 1;  // the prefill produces the first token
  request.no_speculation = true;  // the result would depend on how repetitive the text is
  request.ignore_end = true;
  request.adapters = setup->adapters.uses;
  request.adapter_count = setup->adapters.files.count;
  bench_clock clock = {.result = result, .is_counted = is_counted};
  generation done;
  const uint64_t start_us = platform_now_us();
  const exit_code code = generation_run_stepwise(engine, &request, take_time, &clock, &done);
  if (code != EXIT_DONE || !is_counted) return code;
  const uint64_t prefill_us = clock.first_us - start_us;
  result->ttft_ms[number] = (double)prefill_us / 1e3;
  result->prefill_tok_s[number] = per_second(setup->prompt_tokens, prefill_us);
  result->decode_tok_s[number] = per_second(clock.tokens - 1, clock.last_us - clock.first_us);
  result->decode_allocations += done.decode_allocations;
  return EXIT_DONE;
}

static bool allocate(const bench_setup *setup, bench_result *result) {
  const size_t count = setup->repetitions;
  size_t gaps, room;
  *result = (bench_result){0};
  const bool fits = checked_mul_size(count, setup->decode_tokens, &gaps);
  if (!fits || !checked_add_size(gaps, 1, &room)) return false;
  const size_t longest = gaps > BENCH_RESAMPLES ? gaps : BENCH_RESAMPLES;
  result->prefill_tok_s = calloc(count, sizeof(double));
  result->decode_tok_s = calloc(count, sizeof(double));
  result->ttft_ms = calloc(count, sizeof(double));
  result->itl_ms = calloc(room, sizeof(double));
  result->scratch = calloc(longest > count ? longest : count, sizeof(double));
  return result->prefill_tok_s && result->decode_tok_s && result->ttft_ms && result->itl_ms &&
         result->scratch;
}

void bench_result_free(bench_result *result) {
  free(result->prefill_tok_s);
  free(result->decode_tok_s);
  free(result->ttft_ms);
  free(result->itl_ms);
  free(result->scratch);
  *result = (bench_result){0};
}

static int32_t *make_prompt(uint32_t count, uint32_t vocab) {
  int32_t *prompt = calloc(count, sizeof *prompt);
  if (prompt == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++) prompt[i] = (int32_t)(hash_mix_u64(i + 1) % vocab);
  return prompt;
}

// Reports an error if fewer tokens were generated than requested.
static exit_code check_context(const wick_engine *engine, const bench_setup *setup) {
  wick_plan plan = {.context_tokens = 0};
  wick_memory_plan(engine, &plan, NULL);
  if (setup->prompt_tokens + setup->decode_tokens <= plan.context_tokens) return EXIT_DONE;
  report("-p %u and -n %u are %u tokens; the context is %u", (unsigned)setup->prompt_tokens,
         (unsigned)setup->decode_tokens, (unsigned)(setup->prompt_tokens + setup->decode_tokens),
         (unsigned)plan.context_tokens);
  return EXIT_USAGE;
}

exit_code bench_measure(wick_engine *engine, const bench_setup *setup, bench_result *result) {
  wick_model_info info;
  wick_error error;
  *result = (bench_result){0};
  exit_code code = check_context(engine, setup);
  if (code != EXIT_DONE) return code;
  if (wick_model_get_info(engine, &info, &error) != WICK_OK) return report_error("model", &error);
  int32_t *prompt = make_prompt(setup->prompt_tokens, info.vocab);
  if (prompt == NULL || !allocate(setup, result)) {
    free(prompt);
    report("out of memory for the measurements");
    return EXIT_MEMORY;
  }
  code = repeat(engine, setup, prompt, false, 0, result);
  wick_metrics_reset(engine);
  for (uint32_t i = 0; code == EXIT_DONE && i < setup->repetitions; i++)
    code = repeat(engine, setup, prompt, true, i, result);
  free(prompt);
  return code;
}
