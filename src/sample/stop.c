// sample/stop.c — stop strings over a stream. Each string has an automaton of Knuth, Morris and
// Pratt (1977): its state is the length of the longest beginning of the string that the text ends
// with. The longest state is the text held back. It is a beginning of a known string, so no bytes
// are kept.
#include <string.h>

#include "base/text.h"
#include "sample/sampler.h"

typedef struct stop_string {
  const char *bytes;
  uint16_t *borders;  // [size] longest proper border of each beginning of 1..size bytes
  uint32_t size_bytes;
  uint32_t matched;  // bytes; below size_bytes between calls
} stop_string;

struct stop_matcher {
  memory_gate *memory;
  uint32_t count;
  stop_string strings[];
};

static void find_borders(const char *bytes, uint32_t size_bytes, uint16_t *borders) {
  uint32_t border = 0;
  borders[0] = 0;
  for (uint32_t i = 1; i < size_bytes; i++) {
    while (border > 0 && bytes[i] != bytes[border]) border = borders[border - 1];
    if (bytes[i] == bytes[border]) border++;
    borders[i] = (uint16_t)border;
  }
}

static bool is_utf8(const char *bytes, size_t size_bytes) {
  size_t at = 0;
  while (at < size_bytes) {
    uint32_t code_point;
    const int length = utf8_decode((const uint8_t *)bytes + at, size_bytes - at, &code_point);
    if (length <= 0) return false;
    at += (size_t)length;
  }
  return true;
}

static wick_status check_strings(const char *const *strings, const size_t *sizes_bytes,
                                 uint32_t count, wick_error *error) {
  if (count > WICK_STOPS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u stop strings, at most %d", count,
              WICK_STOPS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, count, WICK_STOPS_MAX);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (sizes_bytes[i] == 0 || sizes_bytes[i] > WICK_STOP_BYTES_MAX) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "stop string %u has %zu bytes, not 1 to %d", i,
                sizes_bytes[i], WICK_STOP_BYTES_MAX);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, i, WICK_STOP_BYTES_MAX);
    }
    if (!is_utf8(strings[i], sizes_bytes[i])) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "stop string %u is not UTF-8", i);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_STOPS, i, 0);
    }
  }
  return WICK_OK;
}

// One block: matcher, strings [count], then per string its borders and its bytes.
wick_status stop_matcher_create(memory_gate *memory, const char *const *strings,
                                const size_t *sizes_bytes, uint32_t count, stop_matcher **out,
                                wick_error *error) {
  const wick_status status = check_strings(strings, sizes_bytes, count, error);
  if (status != WICK_OK) return status;
  size_t text_bytes = 0;
  for (uint32_t i = 0; i < count; i++) text_bytes += sizes_bytes[i];
  const size_t head_bytes = sizeof(stop_matcher) + count * sizeof(stop_string);
  const size_t total_bytes = head_bytes + text_bytes * (sizeof(uint16_t) + 1);
  uint8_t *block = memory_alloc(memory, total_bytes);
  if (block == NULL) return memory_fail(memory, error, "stop strings", total_bytes);
  stop_matcher *matcher = (stop_matcher *)(void *)block;
  matcher->memory = memory;
  matcher->count = count;
  uint16_t *borders = (uint16_t *)(void *)(block + head_bytes);
  char *bytes = (char *)(borders + text_bytes);
  for (uint32_t i = 0; i < count; i++) {
    memcpy(bytes, strings[i], sizes_bytes[i]);
    matcher->strings[i] = (stop_string){bytes, borders, (uint32_t)sizes_bytes[i], 0};
    find_borders(bytes, (uint32_t)sizes_bytes[i], borders);
    bytes += sizes_bytes[i];
    borders += sizes_bytes[i];
  }
  *out = matcher;
  return WICK_OK;
}

void stop_matcher_destroy(stop_matcher *matcher) {
  if (matcher != NULL) memory_free(matcher->memory, matcher);
}

static void string_advance(stop_string *string, char byte) {
  uint32_t matched = string->matched;
  while (matched > 0 && string->bytes[matched] != byte) matched = string->borders[matched - 1];
  if (string->bytes[matched] == byte) matched++;
  string->matched = matched;
}

// The string whose matched beginning is held back; NULL when there are no strings.
static const stop_string *longest_match(const stop_matcher *matcher) {
  const stop_string *longest = NULL;
  for (uint32_t i = 0; i < matcher->count; i++) {
    const stop_string *string = &matcher->strings[i];
    if (longest == NULL || string->matched > longest->matched) longest = string;
  }
  return longest;
}

static size_t copy_held(const stop_matcher *matcher, char *out) {
  const stop_string *longest = longest_match(matcher);
  if (longest == NULL) return 0;
  memcpy(out, longest->bytes, longest->matched);
  return longest->matched;
}

static void matcher_reset(stop_matcher *matcher) {
  for (uint32_t i = 0; i < matcher->count; i++) matcher->strings[i].matched = 0;
}

// Advances all automata by a byte. Returns the longest string that is complete, or NULL.
static const stop_string *matcher_advance(stop_matcher *matcher, char byte) {
  const stop_string *complete = NULL;
  for (uint32_t i = 0; i < matcher->count; i++) {
    stop_string *string = &matcher->strings[i];
    string_advance(string, byte);
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
    const stop_string *complete = matcher_advance(matcher, bytes[i]);
    if (complete == NULL) continue;
    *out_bytes = used - complete->size_bytes;
    *stop_index = (uint32_t)(complete - matcher->strings);
    matcher_reset(matcher);
    return true;
  }
  const stop_string *longest = longest_match(matcher);
  *out_bytes = used - (longest == NULL ? 0 : longest->matched);
  return false;
}

size_t stop_matcher_flush(stop_matcher *matcher, char *out) {
  const size_t held_bytes = copy_held(matcher, out);
  matcher_reset(matcher);
  return held_bytes;
}
