// The number of threads is the fastest one, separately for one token and for many, whatever the
// noise.
#include "thread/choice.h"

#include "check.h"

// Time of a layer with this many threads.
typedef uint64_t layer_time(uint32_t threads, uint32_t tokens, uint32_t layer);

static uint64_t scales_well(uint32_t threads, uint32_t tokens, uint32_t layer) {
  (void)layer;
  return 800 * tokens / threads + 10;
}

// Memory is busy with two; a pass of many tokens scales.
static uint64_t memory_bound(uint32_t threads, uint32_t tokens, uint32_t layer) {
  if (tokens > CHOICE_FEW_TOKENS) return scales_well(threads, tokens, layer);
  return 400 + 40 * threads - (threads > 1 ? 200 : 0);
}

// A quota of one processor: others wait for their turn. Every fifth layer somebody else runs.
static uint64_t one_processor(uint32_t threads, uint32_t tokens, uint32_t layer) {
  const uint64_t fair_us = 100 * tokens + 60 * (threads - 1);
  return layer % 5 == 0 ? 20 * fair_us : fair_us;
}

static uint64_t clock_stands_still(uint32_t threads, uint32_t tokens, uint32_t layer) {
  return threads + tokens + layer == 0;
}

static uint32_t settle(thread_choice *choice, layer_time *time, uint32_t threads, uint32_t tokens) {
  uint32_t used = 0;
  for (uint32_t layer = 0; layer < 60; layer++) {
    used = thread_choice_next(choice, threads, tokens);
    CHECK(used >= 1 && used <= threads);
    if (layer % 30 != 29) thread_choice_took(choice, time(used, tokens, layer));
  }
  CHECK_EQ_UINT(thread_choice_now(choice, threads, tokens), used);
  return used;
}

TEST(the_fastest_number_of_threads_stays) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(thread_choice_now(&choice, 8, 1), 8);
  CHECK_EQ_UINT(settle(&choice, scales_well, 8, 1), 8);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, memory_bound, 4, 1), 2);
  CHECK_EQ_UINT(settle(&choice, memory_bound, 4, 32), 4);
  CHECK_EQ_UINT(thread_choice_now(&choice, 4, 1), 2);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 7, 1), 1);
  CHECK_EQ_UINT(settle(&choice, one_processor, 7, 128), 7);  // 60 us more are less than a sixteenth
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, clock_stands_still, 8, 1), 8);
  choice = (thread_choice){0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 1, 1), 1);
}

TEST(trials_begin_again_when_threads_come_or_passes_differ) {
  thread_choice choice = {0};
  CHECK_EQ_UINT(settle(&choice, one_processor, 2, 1), 1);
  CHECK_EQ_UINT(thread_choice_next(&choice, 3, 1), 3);
  for (uint32_t i = 0; i < 500; i++) {  // passes of 40 and 41 tokens cannot be compared
    const uint32_t used = thread_choice_next(&choice, 3, 40 + i % 2);
    thread_choice_took(&choice, scales_well(used, 40, i));
  }
  CHECK_EQ_UINT(choice.many.chosen, 0);
  CHECK_EQ_UINT(settle(&choice, scales_well, 3, 40), 3);
}
