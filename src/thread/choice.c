// thread/choice.c — see choice.h.
#include "thread/choice.h"

// The first layers warm up caches and the host's compiler. Fewer threads must gain a sixteenth.
enum { WARM_UP_LAYERS = 6, GAIN_PARTS = 16 };

// The candidates: all threads, half of them and one, without repeats.
static uint32_t candidates_of(uint32_t threads, uint32_t out[CHOICE_CANDIDATES]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < CHOICE_CANDIDATES; i++) {
    const uint32_t candidate = i == 0 ? threads : i == 1 ? threads / 2 : 1;
    if (candidate > 0 && (count == 0 || candidate < out[count - 1])) out[count++] = candidate;
  }
  return count;
}

static const thread_trial *trial_of(const thread_choice *choice, uint32_t tokens) {
  return tokens <= CHOICE_FEW_TOKENS ? &choice->few : &choice->many;
}

static uint32_t median(const uint32_t samples[CHOICE_SAMPLES]) {
  for (uint32_t i = 0; i < CHOICE_SAMPLES; i++) {
    uint32_t below = 0, equal = 0;
    for (uint32_t k = 0; k < CHOICE_SAMPLES; k++) {
      below += samples[k] < samples[i];
      equal += samples[k] == samples[i];
    }
    if (below <= CHOICE_SAMPLES / 2 && CHOICE_SAMPLES / 2 < below + equal) return samples[i];
  }
  return samples[0];
}

static uint32_t fastest(const thread_trial *trial, const uint32_t *candidates, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    const uint64_t found_us = median(trial->samples_us[i]);
    const uint64_t best_us = median(trial->samples_us[best]);
    if (found_us * GAIN_PARTS < best_us * (GAIN_PARTS - 1)) best = i;
  }
  return candidates[best];
}

uint32_t thread_choice_next(thread_choice *choice, uint32_t threads, uint32_t tokens) {
  if (choice->threads != threads) *choice = (thread_choice){.threads = threads};
  thread_trial *trial = tokens <= CHOICE_FEW_TOKENS ? &choice->few : &choice->many;
  choice->running = 0;
  if (trial->chosen != 0) return trial->chosen;
  if (threads == 1) return trial->chosen = 1;
  if (trial->tokens != tokens) *trial = (thread_trial){.tokens = tokens};
  choice->running = tokens;
  uint32_t candidates[CHOICE_CANDIDATES];
  const uint32_t count = candidates_of(threads, candidates);
  return candidates[trial->measured % count];
}

void thread_choice_took(thread_choice *choice, uint64_t time_us) {
  if (choice->running == 0) return;
  thread_trial *trial = choice->running <= CHOICE_FEW_TOKENS ? &choice->few : &choice->many;
  uint32_t candidates[CHOICE_CANDIDATES];
  const uint32_t count = candidates_of(choice->threads, candidates);
  const uint32_t number = trial->measured++;
  choice->running = 0;
  if (number < WARM_UP_LAYERS) return;
  const uint32_t sample = (number - WARM_UP_LAYERS) / count;
  trial->samples_us[number % count][sample] = time_us < UINT32_MAX ? (uint32_t)time_us : UINT32_MAX;
  if (number + 1 == WARM_UP_LAYERS + count * CHOICE_SAMPLES) {
    trial->chosen = fastest(trial, candidates, count);
  }
}

uint32_t thread_choice_now(const thread_choice *choice, uint32_t threads, uint32_t tokens) {
  const thread_trial *trial = trial_of(choice, tokens);
  return choice->threads == threads && trial->chosen != 0 ? trial->chosen : threads;
}
