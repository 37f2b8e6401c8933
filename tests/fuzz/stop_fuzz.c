// Fuzzes stop strings with any strings, text and cuts. Property: the text before the first stop
// string is shown, however the text is cut.
#include <stdint.h>
#include <string.h>

#include "platform/platform.h"
#include "sample/sampler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 4096 };

typedef struct run_result {
  char shown[TEXT_MAX + WICK_STOP_BYTES_MAX];
  size_t shown_bytes;
  bool stopped;
  uint32_t index;
} run_result;

// Feeds the text in pieces whose sizes are the bytes of `cuts`, repeated; flushes at the end.
static void run(stop_matcher *matcher, const char *text, size_t size, const uint8_t *cuts,
                size_t cut_count, run_result *result) {
  memset(result, 0, sizeof *result);
  size_t fed = 0;
  for (size_t i = 0; fed < size && !result->stopped; i++) {
    size_t piece = cut_count == 0 ? size : 1u + cuts[i % cut_count];
    if (piece > size - fed) piece = size - fed;
    char out[TEXT_MAX + WICK_STOP_BYTES_MAX];
    size_t out_bytes = 0;
    result->stopped =
        stop_matcher_feed(matcher, text + fed, piece, out, &out_bytes, &result->index);
    if (out_bytes > piece + WICK_STOP_BYTES_MAX) __builtin_trap();
    memcpy(result->shown + result->shown_bytes, out, out_bytes);
    result->shown_bytes += out_bytes;
    fed += piece;
  }
  if (!result->stopped) {
    result->shown_bytes += stop_matcher_flush(matcher, result->shown + result->shown_bytes);
    if (result->shown_bytes != size) __builtin_trap();
  }
}

static bool ends_with(const char *text, size_t size, const char *string, size_t string_size) {
  return string_size <= size && memcmp(text + size - string_size, string, string_size) == 0;
}

// Checks that the shown text is a prefix of the text, is followed by the string that stopped it,
// and contains no stop string.
static void check(const run_result *result, const char *text, size_t size,
                  const char *const *strings, const size_t *sizes, uint32_t count) {
  if (result->shown_bytes > size || memcmp(result->shown, text, result->shown_bytes) != 0) {
    __builtin_trap();
  }
  size_t end = result->shown_bytes;
  if (result->stopped) {
    if (result->index >= count) __builtin_trap();
    end += sizes[result->index];
    if (end > size || !ends_with(text, end, strings[result->index], sizes[result->index])) {
      __builtin_trap();
    }
  }
  for (size_t at = 1; at < end + (result->stopped ? 0 : 1); at++) {
    for (uint32_t i = 0; i < count; i++) {
      // an empty string never matches
      if (sizes[i] > 0 && ends_with(text, at, strings[i], sizes[i])) __builtin_trap();
    }
  }
}

// Input: number of strings, size and bytes of each, number of cuts, cuts, text.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *strings[WICK_STOPS_MAX + 1];
  size_t sizes[WICK_STOPS_MAX + 1];
  if (size == 0) return 0;
  const uint32_t count = data[0] % (WICK_STOPS_MAX + 2);
  size_t at = 1;
  for (uint32_t i = 0; i < count; i++) {
    sizes[i] = at < size ? data[at++] : 0;
    if (sizes[i] > size - at) sizes[i] = size - at;
    strings[i] = (const char *)data + at;
    at += sizes[i];
  }
  size_t cut_count = at < size ? data[at++] % 8 : 0;
  if (cut_count > size - at) cut_count = size - at;
  const uint8_t *cuts = data + at;
  at += cut_count;
  const char *text = (const char *)data + at;
  const size_t text_size = size - at < TEXT_MAX ? size - at : TEXT_MAX;

  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  stop_matcher *matcher = NULL;
  wick_error error;
  if (stop_matcher_create(&memory, strings, sizes, count, &matcher, &error) == WICK_OK) {
    static run_result whole, cut;
    run(matcher, text, text_size, cuts, 0, &whole);
    run(matcher, text, text_size, cuts, cut_count, &cut);
    check(&whole, text, text_size, strings, sizes, count);
    if (whole.shown_bytes != cut.shown_bytes || whole.stopped != cut.stopped ||
        (whole.stopped && whole.index != cut.index)) {
      __builtin_trap();
    }
    stop_matcher_destroy(matcher);
  }
  if (memory.blocks_now != 0) __builtin_trap();
  return 0;
}
