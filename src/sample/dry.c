// sample/dry.c — finds the lengths of all repetitions with the Z algorithm (Gusfield 1997) over the
// last tokens, the newest first.
#include "sample/dry.h"

#include <stdbool.h>

#include "base/math.h"

static const double LOGIT_LEAST = -3.4028234663852886e38;

// Feeds a token's bytes; returns true if the breaker ends within them.
static bool feed(byte_pattern *breaker, const uint8_t *bytes, size_t size_bytes) {
  bool ends = false;
  for (size_t i = 0; i < size_bytes; i++) {
    pattern_advance(breaker, (char)bytes[i]);
    if (breaker->matched < breaker->size_bytes) continue;
    breaker->matched = breaker->borders[breaker->matched - 1];
    ends = true;
  }
  return ends;
}

// Whether a breaker ends within the token, which follows the text, or whether the token contains a
// whole breaker.
static bool breaks(dry_state *dry, int32_t token, bool by_itself) {
  const uint8_t *bytes = NULL;
  if (dry->breaker_count == 0 || dry->text == NULL) return false;
  const size_t size_bytes = dry->text(dry->text_context, token, &bytes);
  bool found = false;
  for (uint32_t i = 0; i < dry->breaker_count; i++) {
    byte_pattern fresh = dry->breakers[i];
    fresh.matched = 0;
    if (feed(by_itself ? &fresh : &dry->breakers[i], bytes, size_bytes)) found = true;
  }
  return found;
}

void dry_accept(dry_state *dry, int32_t token) {
  if (dry->capacity == 0) return;
  dry->ring[dry->next] = token;
  dry->next = dry->next + 1 < dry->capacity ? dry->next + 1 : 0;
  if (dry->held < dry->capacity) dry->held++;
  if (dry->since_break < dry->capacity) dry->since_break++;
  if (breaks(dry, token, false)) dry->since_break = 0;
}

// Returns the token that is followed by `age` newer tokens; `age` is below `held`.
static int32_t token_of_age(const dry_state *dry, uint32_t age) {
  return dry->ring[dry->next > age ? dry->next - 1 - age : dry->next + dry->capacity - 1 - age];
}

// Returns the number of tokens that agree, starting at ages `first` and `second`; the first
// `length` are known to agree.
static uint32_t agreement(const dry_state *dry, uint32_t first, uint32_t second, uint32_t length) {
  while (second + length < dry->held &&
         token_of_age(dry, first + length) == token_of_age(dry, second + length)) {
    length++;
  }
  return length;
}

// Sets repeats[age] to the number of newest tokens that also occur from this age backwards.
static void count_repeats(dry_state *dry) {
  uint32_t left = 0, right = 0;  // the matching range [left, right) that extends farthest
  for (uint32_t age = 1; age < dry->held; age++) {
    uint32_t known = 0;
    if (age < right) {
      known = dry->repeats[age - left];
      if (known >= right - age) known = right - age;
    }
    dry->repeats[age] = age + known < right ? known : agreement(dry, 0, age, known);
    if (age + dry->repeats[age] > right) {
      left = age;
      right = age + dry->repeats[age];
    }
  }
}

void dry_apply(dry_state *dry, const logit_set *set) {
  const uint32_t limit = dry->since_break < dry->held ? dry->since_break : dry->held;
  const uint32_t slot_count = penalty_slot_count(dry->capacity);
  if (dry->held <= dry->allowed_length || limit < dry->allowed_length) return;
  for (uint32_t i = 0; i < slot_count; i++) dry->slots[i] = (penalty_slot){-1, 0};
  count_repeats(dry);
  for (uint32_t age = 1; age < dry->held; age++) {
    const uint32_t length = dry->repeats[age] < limit ? dry->repeats[age] : limit;
    if (length < dry->allowed_length) continue;
    penalty_slot *slot = penalty_find_slot(dry->slots, slot_count, token_of_age(dry, age - 1));
    if (slot->count < length) slot->count = length;
  }
  for (uint32_t i = 0; i < slot_count; i++) {
    const penalty_slot *slot = &dry->slots[i];
    float *logit = slot->token < 0 ? NULL : logit_set_find(set, slot->token);
    if (logit == NULL || breaks(dry, slot->token, true)) continue;
    const double exponent = (double)(slot->count - dry->allowed_length);
    const double lowered = (double)*logit - dry->multiplier * math_pow(dry->base, exponent);
    // Forbidden tokens remain forbidden; the others may still be chosen if there is no alternative.
    if (lowered >= LOGIT_LEAST) {
      *logit = (float)lowered;
    } else if ((double)*logit >= LOGIT_LEAST) {
      *logit = (float)LOGIT_LEAST;
    }
  }
}
