// cli/bench_run.h — measures prefill and decode of one engine.
#ifndef WICK_CLI_BENCH_RUN_H
#define WICK_CLI_BENCH_RUN_H

#include "cli/adapter_files.h"
#include "cli/command.h"

typedef struct bench_setup {
  uint32_t prompt_tokens;  // prefilled in each repetition, at least 1
  uint32_t decode_tokens;  // decoded after the prompt, 0: none
  uint32_t repetitions;    // not counting one warm-up run
  adapter_files adapters;  // loaded
} bench_setup;

// Values by repetition. Freed by bench_result_free.
typedef struct bench_result {
  double *prefill_tok_s, *decode_tok_s, *ttft_ms;  // [repetitions]
  double *itl_ms;   // [itl_count] gaps between tokens, of all repetitions
  double *scratch;  // for statistics, as long as the longest list
  size_t itl_count;
  uint64_t decode_allocations;  // must be 0
} bench_result;

// Measures prefill and decode. The prompt consists of random tokens, the same in each run. Sampling
// is greedy and ignores end tokens.
exit_code bench_measure(wick_engine *engine, const bench_setup *setup, bench_result *result);
void bench_result_free(bench_result *result);

enum { BENCH_RESAMPLES = 1000 };

#endif
