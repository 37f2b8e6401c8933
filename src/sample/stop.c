// sample/stop.c — stop strings in a stream. The held-back text is the longest matched prefix of a
// stop string, so no bytes need to be stored.
#include <string.h>

#include "base/text.h"
#include "sample/pattern.h"
#include "sample/sampler.h"

struct stop_matcher {
  memory_gate *memory;
  uint32_t count;
  byte_pattern strings[];
};

static wick_status check_strings(const char *const *strings, const size_t *sizes_bytes,
                                 uint32_t count, wick_error *error) {
  if (count > WICK_STOPS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u stop strings: the limit is %d", count,
              WICK_STOPS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, count, WICK_STOPS_MAX);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (sizes_bytes[i] > WICK_STOP_BYTES_MAX) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "stop string %u has %zu bytes, limit is %d", i,
                sizes_bytes[i], WICK_STOP_BYTES_MAX);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, i, WICK_STOP_BYTES_MAX);
    }
    if (!utf8_is_valid(strings[i], sizes_bytes[i])) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "stop string %u is not UTF-8", i);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, i, 0);
    }
  }
  return WICK_OK;
}

// An empty string never matches. One block of memory contains the matcher, strings [count], and for
// each string its borders and its bytes.
wick_status stop_matcher_create(memory_gate *memory, const char *const *strings,
                                const size_t *sizes_bytes, uint32_t count, stop_matcher **out,
                                wick_error *error) {
  const wick_status status = check_strings(strings, sizes_bytes, count, error);
  if (status != WICK_OK) return status;
  size_t text_bytes = 0;
  for (uint32_t i = 0; i < count; i++) text_bytes += sizes_bytes[i];
  const size_t head_bytes = sizeof(stop_matcher) + count * sizeof(byte_pattern);
  const size_t total_bytes = head_bytes + text_bytes * (sizeof(uint16_t) + 1);
  uint8_t *block = memory_alloc(memory, total_bytes);
  if (block == NULL) return memory_fail(memory, error, "stop strings");
  stop_matcher *matcher = (stop_matcher *)(void *)block;
  matcher->memory = memory;
  matcher->count = count;
  uint16_t *borders = (uint16_t *)(void *)(block + head_bytes);
  char *bytes = (char *)(borders + text_bytes);
  for (uint32_t i = 0; i < count; i++) {
    matcher->strings[i] = (byte_pattern){bytes, borders, (uint32_t)sizes_bytes[i], 0};
    if (sizes_bytes[i] == 0) continue;
    memcpy(bytes, strings[i], sizes_bytes[i]);
    pattern_begin(&matcher->strings[i]);
    bytes += sizes_bytes[i];
    borders += sizes_bytes[i];
  }
  *out = matcher;
  return WICK_OK;
}

void stop_matcher_destroy(stop_matcher *matcher) {
  if (matcher != NULL) memory_free(matcher->memory, matcher);
}

// Returns the string whose matched prefix is held back; NULL if there are no strings.
static const byte_pattern *longest_match(const stop_matcher *matcher) {
  const byte_pattern *longest = NULL;
  for (uint32_t i = 0; i < matcher->count; i++) {
    const byte_pattern *string = &matcher->strings[i];
    if (longest == NULL || string->matched > longest->matched) longest = string;
  }
  return longest;
}

static size_t copy_held(const stop_matcher *matcher, char *out) {
  const byte_pattern *longest = longest_match(matcher);
  if (longest == NULL) return 0;
  memcpy(out, longest->bytes, longest->matched);
  return longest->matched;
}

static void matcher_reset(stop_matcher *matcher) {
  for (uint32_t i = 0; i < matcher->count; i++) matcher->strings[i].matched = 0;
}

// Advances all automata by a byte. Returns the longest string that is complete, or NULL.
static const byte_pattern *matcher_advance(stop_matcher *matcher, char byte) {
  const byte_pattern *complete = NULL;
  for (uint32_t i = 0; i < matcher->count; i++) {
    byte_pattern *string = &matcher->strings[i];
    if (string->size_bytes == 0) continue;
    pattern_advance(string, byte);
    if (string->matched < string->size_bytes) continue;
    if (complete == NULL || string->size_bytes > complete->size_bytes) complete = string;
  }
  return complete;
}

bool stop_matcher_feed(stop_matcher *matcher, const char *bytes, size_t size_bytes, char *out,
                       size_t *out_bytes, uint32_t *stop_index) {
  size_t used = copy_held(matcher, out);
  for (size_t i = 0; i < size_bytes; i++) {
    out[used++] = bytes[i];
    const byte_pattern *complete = matcher_advance(matcher, bytes[i]);
    if (complete == NULL) continue;
    *out_bytes = used - complete->size_bytes;
    *stop_index = (uint32_t)(complete - matcher->strings);
    matcher_reset(matcher);
    return true;
  }
  const byte_pattern *longest = longest_match(matcher);
  *out_bytes = used - (longest == NULL ? 0 : longest->matched);
  return false;
}

bool stop_matcher_has(const stop_matcher *matcher, const uint8_t *text, size_t size_bytes,
                      uint32_t *stop_index) {
  for (uint32_t i = 0; i < matcher->count; i++) {
    const byte_pattern *string = &matcher->strings[i];
    if (string->size_bytes == size_bytes && memcmp(string->bytes, text, size_bytes) == 0) {
      *stop_index = i;
      return true;
    }
  }
  return false;
}

size_t stop_matcher_flush(stop_matcher *matcher, char *out) {
  const size_t held_bytes = copy_held(matcher, out);
  matcher_reset(matcher);
  return held_bytes;
}
