// The fastest number of threads is chosen, separately for one token and for many, despite noise.
#include "thread/choice.h"

#include "check.h"

// Returns the time of a layer with this many threads.
typedef uint64_t layer_time(uint32_t threads, uint32_t tokens, uint32_t layer);

static uint64_t scales_well(uint32_t threads, uint32_t tokens, uint32_t layer) {
  (void)layer;
  return 800 * tokens / threads + 10;
}

// Two threads saturate the memory bandwidth; a pass of many tokens scales with threads.
static uint64_t memory_bound(uint32_t threads, uint32_t tokens, uint32_t layer) {
  if (tokens > CHOICE_FEW_TOKENS) return scales_well(threads, tokens, layer);
  return 400 + 40 * threads - (threads > 1 ? 200 : 0);
}

// A quota of one CPU: more threads only wait for each other. In every fifth layer, a different
// process runs.
static uint64_t one_processor(uint32_t threads, uint32_t tokens, uint32_t layer) {
  const uint64_t fair_us = 100 * tokens + 60 * (threads - 1);
  return layer % 5 == 0 ? 20 * fair_us : fair_us;
}

static uint64_t clock_stands_still(uint32_t threads, uint32_t tokens, uint32_t layer) {
  return threads + tokens + layer == 0;
}

static uint64_t now_us;

// Runs one layer and returns its time.
static uint64_t run_layer(thread_choice *choice, layer_time *time, uint32_t threads,
                          uint32_t tokens, uint32_t layer) {
  const uint32_t used = thread_choice_next(choice, threads, tokens, now_us);
  CHECK(used >= 1 && used <= threads);
  const uint64_t time_us = time(used, tokens, layer);
  now_us += time_us;
  if (layer % 30 != 29) thread_choice_took(choice, time_us, now_us);
  return time_us;
}

static uint32_t settle(thread_choice *choice, layer_time *time, uint32_t threads, uint32_t tokens) {
  for (uint32_t layer = 0; layer < 60; layer++) run_layer(choice, time, threads, tokens, layer);
  const uint32_t used = thread_choice_next(choice, threads, tokens, now_us);
  CHECK_EQ_UINT(thread_choice_now(choice, threads, tokens), used);
  return used;
}

TEST(the_fastest_number_of_threads_is_chosen) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(thread_choice_now(&choice, 8, 1), 8);
  CHECK_EQ_UINT(settle(&choice, scales_well, 8, 1), 8);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, memory_bound, 4, 1), 2);
  CHECK_EQ_UINT(settle(&choice, memory_bound, 4, 32), 4);
  CHECK_EQ_UINT(thread_choice_now(&choice, 4, 1), 2);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 7, 1), 1);
  // 60 us more per thread is less than a sixteenth
  CHECK_EQ_UINT(settle(&choice, one_processor, 7, 128), 7);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, clock_stands_still, 8, 1), 8);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 1, 1), 1);
}

TEST(trials_restart_when_threads_are_added_or_passes_differ) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 2, 1), 1);
  CHECK_EQ_UINT(thread_choice_next(&choice, 3, 1, now_us), 3);
  for (uint32_t i = 0; i < 500; i++) {  // passes of 40 and 41 tokens cannot be compared
    run_layer(&choice, scales_well, 3, 40 + i % 2, i);
  }
  CHECK_EQ_UINT(choice.many.chosen, 0);
  CHECK_EQ_UINT(settle(&choice, scales_well, 3, 40), 3);
}

// The helpers run on cores a fifth as fast, as under a battery saver; the caller does not.
static uint64_t helpers_crawl(uint32_t threads, uint32_t tokens, uint32_t layer) {
  (void)layer;
  return threads == 1 ? 810 * tokens : 1300 * tokens;
}

static uint64_t half_the_clock(uint32_t threads, uint32_t tokens, uint32_t layer) {
  return 2 * scales_well(threads, tokens, layer);
}

// A third of the layers take three times as long, because other processes run now and then.
static uint64_t disturbed(uint32_t threads, uint32_t tokens, uint32_t layer) {
  return scales_well(threads, tokens, layer) * (layer % 3 == 0 ? 3 : 1);
}

// Counts layers that run with fewer threads than chosen: these are trials.
static uint32_t count_trials(thread_choice *choice, layer_time *time, uint32_t tokens,
                             uint32_t layers) {
  uint32_t others = 0;
  const uint32_t chosen = thread_choice_now(choice, 2, tokens);
  for (uint32_t layer = 0; layer < layers; layer++) {
    others += thread_choice_next(choice, 2, tokens, now_us) != chosen;
    run_layer(choice, time, 2, tokens, layer);
  }
  return others;
}

TEST(a_choice_is_reviewed_after_a_minute) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(settle(&choice, helpers_crawl, 2, 1), 1);  // a helper may start on a little core
  CHECK_EQ_UINT(count_trials(&choice, scales_well, 1, 1000), 0);
  now_us += 60000000;
  CHECK_EQ_UINT(settle(&choice, scales_well, 2, 1), 2);
  now_us += 60000000;
  CHECK_EQ_UINT(settle(&choice, helpers_crawl, 2, 1), 1);
}

TEST(a_choice_is_reviewed_when_layers_become_slower) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(settle(&choice, scales_well, 2, 1), 2);
  CHECK_EQ_UINT(count_trials(&choice, disturbed, 1, 1000), 0);
  for (uint32_t layer = 0; layer < 100; layer++) run_layer(&choice, helpers_crawl, 2, 1, layer);
  CHECK_EQ_UINT(thread_choice_now(&choice, 2, 1), 1);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, scales_well, 2, 1), 2);
  // if everything becomes slower, there is one trial, and later times are compared with the new
  // speed
  CHECK(count_trials(&choice, half_the_clock, 1, 200) > 0);
  CHECK_EQ_UINT(thread_choice_now(&choice, 2, 1), 2);
  CHECK_EQ_UINT(count_trials(&choice, half_the_clock, 1, 1000), 0);
}

TEST(a_choice_is_kept_during_trials_and_for_incomparable_passes) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(settle(&choice, helpers_crawl, 2, 40), 1);
  now_us += 60000000;
  run_layer(&choice, helpers_crawl, 2, 40, 0);
  CHECK_EQ_UINT(thread_choice_now(&choice, 2, 40), 1);
  for (uint32_t i = 0; i < 100; i++) {
    CHECK_EQ_UINT(thread_choice_next(&choice, 2, 41 + i % 2, now_us), 1);
    run_layer(&choice, scales_well, 2, 41 + i % 2, i);
  }
}
