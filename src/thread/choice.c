// thread/choice.c — see choice.h.
#include "thread/choice.h"

// The first layers warm up caches and the host's compiler. Fewer threads must be faster by a
// sixteenth. A choice lasts a minute, or until most layers of a window take 1.5 times as long as
// when the choice was made.
enum { WARM_UP_LAYERS = 6, GAIN_PARTS = 16, CHOICE_LASTS_US = 60000000, WATCH_LAYERS = 32 };

// Sets the candidates: all threads, half of them and one, without duplicates.
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

// Returns the index of the fastest candidate.
static uint32_t fastest(const thread_trial *trial, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    const uint64_t found_us = median(trial->samples_us[i]);
    const uint64_t best_us = median(trial->samples_us[best]);
    if (found_us * GAIN_PARTS < best_us * (GAIN_PARTS - 1)) best = i;
  }
  return best;
}

static void begin_trial(thread_trial *trial, uint32_t tokens) {
  *trial = (thread_trial){.tokens = tokens, .chosen = trial->chosen};
}

static void settle(thread_trial *trial, const uint32_t *candidates, uint32_t count,
                   uint64_t now_us) {
  const uint32_t best = fastest(trial, count);
  trial->is_settled = true;
  trial->chosen = candidates[best];
  trial->chosen_at_us = now_us;
  trial->layer_us = median(trial->samples_us[best]);
}

// Watches the times of layers after a choice. layer_us is 0 if the clock is too coarse to compare
// layers.
static void watch(thread_trial *trial, uint64_t time_us) {
  trial->watched++;
  trial->slow += trial->layer_us != 0 && time_us * 2 > (uint64_t)trial->layer_us * 3;
  if (trial->watched < WATCH_LAYERS) return;
  trial->is_settled = trial->slow * 2 <= WATCH_LAYERS;
  trial->watched = trial->slow = 0;
}

uint32_t thread_choice_next(thread_choice *choice, uint32_t threads, uint32_t tokens,
                            uint64_t now_us) {
  if (choice->threads != threads) *choice = (thread_choice){.threads = threads};
  thread_trial *trial = tokens <= CHOICE_FEW_TOKENS ? &choice->few : &choice->many;
  choice->running = 0;
  if (threads == 1) return trial->chosen = 1;
  if (trial->is_settled && now_us - trial->chosen_at_us < CHOICE_LASTS_US) {
    if (trial->tokens == tokens) choice->running = tokens;
    return trial->chosen;
  }
  // passes of other sizes cannot be compared: the choice is kept for another minute
  if (!trial->is_settled && trial->chosen != 0 && trial->tokens != tokens) {
    trial->is_settled = true;
    trial->chosen_at_us = now_us;
    return trial->chosen;
  }
  if (trial->is_settled || trial->tokens != tokens) begin_trial(trial, tokens);
  choice->running = tokens;
  uint32_t candidates[CHOICE_CANDIDATES];
  const uint32_t count = candidates_of(threads, candidates);
  return candidates[trial->measured % count];
}

void thread_choice_took(thread_choice *choice, uint64_t time_us, uint64_t now_us) {
  if (choice->running == 0) return;
  thread_trial *trial = choice->running <= CHOICE_FEW_TOKENS ? &choice->few : &choice->many;
  choice->running = 0;
  if (trial->is_settled) {
    watch(trial, time_us);
    if (!trial->is_settled) begin_trial(trial, trial->tokens);
    return;
  }
  uint32_t candidates[CHOICE_CANDIDATES];
  const uint32_t count = candidates_of(choice->threads, candidates);
  const uint32_t number = trial->measured++;
  if (number < WARM_UP_LAYERS) return;
  const uint32_t sample = (number - WARM_UP_LAYERS) / count;
  trial->samples_us[number % count][sample] = time_us < UINT32_MAX ? (uint32_t)time_us : UINT32_MAX;
  if (number + 1 == WARM_UP_LAYERS + count * CHOICE_SAMPLES) {
    settle(trial, candidates, count, now_us);
  }
}

uint32_t thread_choice_now(const thread_choice *choice, uint32_t threads, uint32_t tokens) {
  const thread_trial *trial = trial_of(choice, tokens);
  return choice->threads == threads && trial->chosen != 0 ? trial->chosen : threads;
}
