// thread/choice.h — chooses by measurement how many of the started threads compute. The number of
// processors is not a reliable guide: two may share a core, a container may have a quota, and one
// thread may saturate memory. All threads, half of them and one are tried alternately on the layers
// of the first passes, and the fastest number is used. Few tokens (bound by memory) and many tokens
// (bound by arithmetic) are measured separately. The trial is repeated every minute, and also if
// most layers take 1.5 times as long: a hot processor slows down, and a battery saver moves threads
// to slower cores. Results do not depend on the choice (thread_pool_for).
#ifndef WICK_THREAD_CHOICE_H
#define WICK_THREAD_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { CHOICE_CANDIDATES = 3, CHOICE_SAMPLES = 7, CHOICE_FEW_TOKENS = 4 };

typedef struct thread_trial {
  uint32_t tokens;    // tokens per pass in the compared passes
  uint32_t measured;  // number of layers since the trial began
  uint32_t samples_us[CHOICE_CANDIDATES][CHOICE_SAMPLES];
  bool is_settled;  // false: candidates are being measured
  uint32_t chosen;  // result of the last completed trial; 0: no trial has ended
  // for the current choice:
  uint64_t chosen_at_us;
  uint32_t layer_us;       // time per layer when the number was chosen
  uint32_t watched, slow;  // layers of the window so far, and how many took 1.5 times layer_us
} thread_trial;

typedef struct thread_choice {
  uint32_t threads;  // the largest number to try
  uint32_t running;  // tokens of the current layer; 0: it is not measured
  thread_trial few, many;
} thread_choice;

// Returns the number of threads for the layer that begins at `now_us`: 1 to `threads`, the number
// of threads started so far. If that number grows, the trials start over.
uint32_t thread_choice_next(thread_choice *choice, uint32_t threads, uint32_t tokens,
                            uint64_t now_us);
// Reports the time of the layer for which thread_choice_next was called, which ended at `now_us`.
// Each call must follow a call of thread_choice_next. The caller does not report a layer that
// differs from the others.
void thread_choice_took(thread_choice *choice, uint64_t time_us, uint64_t now_us);
// Returns the choice for passes of this many tokens; `threads` while the first trial runs.
uint32_t thread_choice_now(const thread_choice *choice, uint32_t threads, uint32_t tokens);

#endif
