// thread/choice.h — how many of the threads that came up to use, by measurement. Processors that
// are told are not processors that one gets: two may share a core, a container may have a quota,
// memory may be busy with one thread. So all, half and one of them take turns over the layers of
// the first passes, for few tokens (memory decides) and for many (arithmetic decides) apart, and
// the fastest stays. Results do not depend on it (the law of thread_pool_for).
#ifndef WICK_THREAD_CHOICE_H
#define WICK_THREAD_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { CHOICE_CANDIDATES = 3, CHOICE_SAMPLES = 7, CHOICE_FEW_TOKENS = 4 };

typedef struct thread_trial {
  uint32_t tokens;    // of the passes that are compared
  uint32_t measured;  // layers since the trial began
  uint32_t samples_us[CHOICE_CANDIDATES][CHOICE_SAMPLES];
  uint32_t chosen;  // 0: not yet
} thread_trial;

typedef struct thread_choice {
  uint32_t threads;  // that the trials are about
  uint32_t running;  // tokens of the layer that runs; 0: it is not measured
  thread_trial few, many;
} thread_choice;

// How many threads the layer that begins is to use: 1 to `threads`, which have come up so far. More
// of them begin the trials again.
uint32_t thread_choice_next(thread_choice *choice, uint32_t threads, uint32_t tokens);
// What that layer took. Calls take turns with thread_choice_next; a layer that is not like the
// others is left out by not telling.
void thread_choice_took(thread_choice *choice, uint64_t time_us);
// What passes of so many tokens use: `threads` while that is being measured.
uint32_t thread_choice_now(const thread_choice *choice, uint32_t threads, uint32_t tokens);

#endif
