// sample/create.c — creates a sampler. One block of memory contains everything:
//
//   sampler | bias | ring, slots | DRY: ring, slots, repeats, breakers, their bytes and borders
//           | mask words | block maxima | work logits [vocab] | buckets | ids, weights, keys [kept]
//
// kept is top_k if top-k is the first sampler to drop candidates, otherwise vocab; 0 if greedy.
#include <string.h>

#include "base/checked.h"
#include "sample/sampler_state.h"

// DRY's default breakers, one byte each.
static const char BREAKERS_DEFAULT[] = {'\n', ':', '"', '*'};

// The block while its parts are laid out; if it is NULL, only the sizes of the parts are computed.
typedef struct parts {
  uint8_t *block;
  uint64_t used_bytes;
} parts;

// Takes an array from the block. There are few counts and item sizes, all below 2^32, so sums do
// not wrap.
static void *take(parts *parts, uint64_t count, uint64_t item_bytes) {
  const uint64_t at = parts->used_bytes;
  const uint64_t line = CACHE_LINE_BYTES;
  parts->used_bytes += (count * item_bytes + line - 1) / line * line;
  return parts->block == NULL ? NULL : parts->block + at;
}

static void take_slots(parts *parts, uint32_t window, int32_t **ring, penalty_slot **slots) {
  *ring = take(parts, window, sizeof **ring);
  *slots = take(parts, window == 0 ? 0 : penalty_slot_count(window), sizeof **slots);
}

static void copy_breakers(dry_state *dry, const wick_sampling *config, char *bytes,
                          uint16_t *borders) {
  const bool own = config->dry_sequence_breakers != NULL;
  for (uint32_t i = 0; i < dry->breaker_count; i++) {
    const uint32_t size = own ? (uint32_t)config->dry_breaker_bytes[i] : 1;
    memcpy(bytes, own ? config->dry_sequence_breakers[i] : &BREAKERS_DEFAULT[i], size);
    dry->breakers[i] = (byte_pattern){bytes, borders, size, 0};
    pattern_begin(&dry->breakers[i]);
    bytes += size;
    borders += size;
  }
}

static void take_dry(sampler *s, const wick_sampling *config, parts *parts) {
  dry_state *dry = &s->dry;
  dry->capacity = s->plan.dry_last;
  if (dry->capacity == 0) return;
  dry->multiplier = (double)config->dry_multiplier;
  dry->base = (double)config->dry_base;
  dry->allowed_length = config->dry_allowed_length;
  take_slots(parts, dry->capacity, &dry->ring, &dry->slots);
  dry->repeats = take(parts, dry->capacity, sizeof *dry->repeats);
  const bool own = config->dry_sequence_breakers != NULL;
  dry->breaker_count = own ? config->dry_breaker_count : sizeof BREAKERS_DEFAULT;
  uint64_t size_bytes = own ? 0 : sizeof BREAKERS_DEFAULT;
  for (uint32_t i = 0; own && i < dry->breaker_count; i++) {
    size_bytes += config->dry_breaker_bytes[i];
  }
  dry->breakers = take(parts, dry->breaker_count, sizeof *dry->breakers);
  char *bytes = take(parts, size_bytes, 1);
  uint16_t *borders = take(parts, size_bytes, sizeof *borders);
  if (parts->block != NULL) copy_breakers(dry, config, bytes, borders);
}

// Lays out all parts of `s`, which is zeroed, and fills in the known values.
static void take_all(sampler *s, const wick_sampling *config, uint32_t vocab, parts *parts) {
  settings_plan(config, vocab, &s->plan);
  s->vocab = vocab;
  take(parts, 1, sizeof(sampler));
  s->bias = take(parts, config->bias_count, sizeof *s->bias);
  s->window.capacity = s->plan.penalty_last;
  take_slots(parts, s->window.capacity, &s->window.ring, &s->window.slots);
  take_dry(s, config, parts);
  s->mask_words = take(parts, ceil_div_u32(vocab, 32), sizeof *s->mask_words);
  s->block_max = take(parts, ceil_div_u32(vocab, LOGIT_BLOCK), sizeof *s->block_max);
  s->work = take(parts, vocab, sizeof *s->work);
  const uint32_t kept = s->plan.kept_max;
  s->kept.logits = s->work;
  s->kept.buckets = take(parts, TRUNCATE_BUCKETS, sizeof *s->kept.buckets);
  s->kept.ids = take(parts, kept, sizeof *s->kept.ids);
  s->kept.weights = take(parts, kept, sizeof *s->kept.weights);
  s->keys = take(parts, s->plan.has_keys ? kept : 0, sizeof *s->keys);
}

uint64_t sampler_plan_bytes(const wick_sampling *config, uint32_t vocab) {
  sampler measured = {0};
  parts parts = {0};
  take_all(&measured, config, vocab, &parts);
  return parts.used_bytes;
}

static const float SHARE_LEAST = 1e-30f;

static void begin(sampler *s, const wick_sampling *config) {
  s->config = *config;
  // 0 keeps only the most likely token, like any sufficiently small share
  if (config->top_p == 0) s->config.top_p = SHARE_LEAST;
  if (config->typical_p == 0) s->config.typical_p = SHARE_LEAST;
  if (config->bias_count > 0) {
    memcpy(s->bias, config->bias, config->bias_count * sizeof *s->bias);
  }
  const double tau = (double)config->mirostat_tau;
  s->mirostat = (mirostat_state){tau, (double)config->mirostat_eta, 2 * tau};
  adaptive_begin(&s->adaptive, (double)config->adaptive_target, (double)config->adaptive_decay);
  s->penalty = (penalty_strength){config->repeat_penalty, config->frequency_penalty,
                                  config->presence_penalty};
  rng_seed(&s->rng, config->seed);
}

wick_status sampler_create(memory_gate *memory, const wick_sampling *config, uint32_t vocab,
                           sampler **out, wick_error *error) {
  const wick_status status = settings_check(config, vocab, error);
  if (status != WICK_OK) return status;
  const uint64_t total_bytes = sampler_plan_bytes(config, vocab);
  parts parts = {.block = memory_alloc_wide(memory, total_bytes)};
  if (parts.block == NULL) return memory_fail(memory, error, "sampler");
  sampler *s = (sampler *)(void *)parts.block;
  memset(s, 0, sizeof *s);
  s->memory = memory;
  take_all(s, config, vocab, &parts);
  begin(s, config);
  *out = s;
  return WICK_OK;
}

void sampler_destroy(sampler *sampler) {
  if (sampler != NULL) memory_free(sampler->memory, sampler);
}
