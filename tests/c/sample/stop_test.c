// Stop strings: which text is shown and which is held back, independent of how the text is split
// into pieces.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "platform/platform.h"
#include "sample/rng.h"
#include "sample/sampler.h"

enum { TEXT_MAX = 1000 };

static memory_gate memory;

static stop_matcher *matcher_open(const char *const *strings, uint32_t count) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  size_t sizes[WICK_STOPS_MAX];
  for (uint32_t i = 0; i < count; i++) sizes[i] = strlen(strings[i]);
  stop_matcher *matcher = NULL;
  CHECK_EQ_INT(stop_matcher_create(&memory, strings, sizes, count, &matcher, NULL), WICK_OK);
  return matcher;
}

static void matcher_close(stop_matcher *matcher) {
  stop_matcher_destroy(matcher);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Feeds one piece, checks the text shown and whether the matcher stops (stop < 0: it does not).
static void feed(stop_matcher *matcher, const char *piece, const char *shown, int stop) {
  char out[TEXT_MAX + WICK_STOP_BYTES_MAX];
  size_t out_bytes = 0;
  uint32_t index = 99;
  const bool stopped = stop_matcher_feed(matcher, piece, strlen(piece), out, &out_bytes, &index);
  out[out_bytes] = 0;
  CHECK_EQ_STR(out, shown);
  CHECK_EQ_INT(stopped ? (int)index : -1, stop);
}

static void flush(stop_matcher *matcher, const char *shown) {
  char out[WICK_STOP_BYTES_MAX + 1];
  out[stop_matcher_flush(matcher, out)] = 0;
  CHECK_EQ_STR(out, shown);
}

TEST(text_ends_before_a_stop_string) {
  const char *const stops[] = {"END"};
  stop_matcher *m = matcher_open(stops, 1);
  REQUIRE(m != NULL);
  feed(m, "once upon END of", "once upon ", 0);
  feed(m, "E", "", -1);
  feed(m, "N", "", -1);
  feed(m, "D", "", 0);
  feed(m, "nothing is held", "nothing is held", -1);
  flush(m, "");
  matcher_close(m);
}

TEST(only_prefixes_of_stop_strings_are_held_back) {
  const char *const stops[] = {"abab!", "b?"};
  stop_matcher *m = matcher_open(stops, 2);
  REQUIRE(m != NULL);
  feed(m, "xaba", "x", -1);
  feed(m, "c", "abac", -1);  // released as a whole
  feed(m, "abab", "", -1);
  feed(m, "ab", "ab", -1);  // "ababab" still ends with "abab"
  feed(m, "x", "ababx", -1);
  feed(m, "ab", "", -1);
  flush(m, "ab");
  feed(m, "ab!", "ab!", -1);  // flushed text does not count
  feed(m, "zb", "z", -1);
  feed(m, "?", "", 1);
  matcher_close(m);
}

TEST(an_empty_string_stops_nothing) {
  const char *const stops[] = {"", "ab", ""};
  stop_matcher *m = matcher_open(stops, 3);
  REQUIRE(m != NULL);
  feed(m, "xa", "x", -1);
  feed(m, "b", "", 1);
  matcher_close(m);
  m = matcher_open(stops, 1);
  REQUIRE(m != NULL);
  feed(m, "xa", "xa", -1);
  flush(m, "");
  matcher_close(m);
}

TEST(the_first_completed_stop_string_wins) {
  const char *const stops[] = {"abcd", "bc", "c", "abc"};
  stop_matcher *m = matcher_open(stops, 1);
  feed(m, "xabcd", "x", 0);
  matcher_close(m);
  m = matcher_open(stops, 2);
  REQUIRE(m != NULL);
  feed(m, "xabcd", "xa", 1);
  matcher_close(m);
  m = matcher_open(stops, 4);  // three end with the same byte: the longest wins
  REQUIRE(m != NULL);
  feed(m, "xabcd", "x", 3);
  matcher_close(m);
}

TEST(stop_strings_may_contain_newlines_and_be_prefixes_of_others) {
  const char *const stops[] = {"\n\nUser:", "\n\n\n", "<|im_end|>"};
  stop_matcher *m = matcher_open(stops, 3);
  REQUIRE(m != NULL);
  feed(m, "Hi\n", "Hi", -1);
  feed(m, "\n", "", -1);
  feed(m, "User", "", -1);
  feed(m, "s", "\n\nUsers", -1);
  feed(m, "\n\n", "", -1);
  feed(m, "\n", "", 1);
  feed(m, "a<|im_", "a", -1);
  feed(m, "<|im_end", "<|im_", -1);
  feed(m, "|>b", "", 2);
  matcher_close(m);
}

TEST(characters_are_never_split) {
  const char *const stops[] = {"é!", "日本"};
  stop_matcher *m = matcher_open(stops, 2);
  REQUIRE(m != NULL);
  feed(m, "caf", "caf", -1);
  feed(m, "é", "", -1);
  feed(m, "è", "éè", -1);
  feed(m, "日", "", -1);
  feed(m, "曜", "日曜", -1);
  feed(m, "日本語", "", 1);
  matcher_close(m);
}

TEST(without_stop_strings_all_text_is_shown) {
  stop_matcher *m = matcher_open(NULL, 0);
  REQUIRE(m != NULL);
  feed(m, "all of it", "all of it", -1);
  feed(m, "", "", -1);
  flush(m, "");
  matcher_close(m);
}

static void check_refusal(const char *const *strings, const size_t *sizes, uint32_t count,
                          const char *message) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  stop_matcher *matcher = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(stop_matcher_create(&memory, strings, sizes, count, &matcher, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, message);
  CHECK_EQ_UINT(memory.calls, 0);
}

TEST(invalid_stop_strings_are_rejected) {
  static char large[WICK_STOP_BYTES_MAX + 1];
  memset(large, 'a', sizeof large);
  const char *const strings[] = {large, "\xc3", large, "\xed\xa0\x80"};
  check_refusal(strings, (const size_t[]){1, 1}, 2, "stop string 1 is not UTF-8");
  check_refusal(strings + 2, (const size_t[]){257, 3}, 2,
                "stop string 0 has 257 bytes, limit is 256");
  check_refusal(strings + 2, (const size_t[]){256, 3}, 2, "stop string 1 is not UTF-8");
  check_refusal(strings, NULL, WICK_STOPS_MAX + 1, "65 stop strings: the limit is 64");
  memory.fail_at_call = 1;
  stop_matcher *matcher = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(stop_matcher_create(&memory, strings, (const size_t[]){4}, 1, &matcher, &error),
               WICK_E_NOMEM);
  CHECK_EQ_INT(error.status, WICK_E_NOMEM);
  CHECK(strncmp(error.message, "out of memory: ", 15) == 0);
  stop_matcher_destroy(NULL);
}

TEST(the_largest_set_of_stop_strings_works) {
  static char texts[WICK_STOPS_MAX][WICK_STOP_BYTES_MAX + 1];
  const char *strings[WICK_STOPS_MAX];
  for (int i = 0; i < WICK_STOPS_MAX; i++) {
    memset(texts[i], 'a', WICK_STOP_BYTES_MAX - 1);
    texts[i][WICK_STOP_BYTES_MAX - 1] = (char)('!' + i);
    strings[i] = texts[i];
  }
  stop_matcher *m = matcher_open(strings, WICK_STOPS_MAX);
  REQUIRE(m != NULL);
  char out[TEXT_MAX + WICK_STOP_BYTES_MAX];
  size_t out_bytes;
  uint32_t index;
  char many[TEXT_MAX];
  memset(many, 'a', sizeof many);
  CHECK(!stop_matcher_feed(m, many, sizeof many, out, &out_bytes, &index));
  CHECK_EQ_UINT(out_bytes, TEXT_MAX - (WICK_STOP_BYTES_MAX - 1));
  CHECK(stop_matcher_feed(m, "%", 1, out, &out_bytes, &index));
  CHECK_EQ_UINT(out_bytes, 0);
  CHECK_EQ_UINT(index, 4);
  matcher_close(m);
}

// ---- comparison with a simple reference ----

// Returns where the first complete string of `stops` ends in `text`, or 0 if there is none. *start
// and *which describe the longest string that ends there.
static size_t reference_stop(const char *text, const char *const *stops, uint32_t count,
                             size_t *start, uint32_t *which) {
  for (size_t end = 1; end <= strlen(text); end++) {
    size_t longest = 0;
    for (uint32_t i = 0; i < count; i++) {
      const size_t size = strlen(stops[i]);
      if (size <= end && size > longest && memcmp(text + end - size, stops[i], size) == 0) {
        longest = size;
        *which = i;
      }
    }
    *start = end - longest;
    if (longest > 0) return end;
  }
  return 0;
}

// Returns the number of bytes at the end of `text` that may become a stop string.
static size_t reference_held(const char *text, const char *const *stops, uint32_t count) {
  const size_t size = strlen(text);
  for (size_t held = size; held > 0; held--) {
    for (uint32_t i = 0; i < count; i++) {
      if (held < strlen(stops[i]) && memcmp(text + size - held, stops[i], held) == 0) return held;
    }
  }
  return 0;
}

static void check_against_reference(rng *source) {
  static char storage[4][12];
  const char *stops[4];
  char text[80], shown[80 + WICK_STOP_BYTES_MAX], so_far[80];
  const uint32_t count = 1 + (uint32_t)(rng_next(source) % 4);
  for (uint32_t i = 0; i < count; i++) {
    const size_t size = 1 + rng_next(source) % 8;
    for (size_t j = 0; j < size; j++) storage[i][j] = (char)('a' + rng_next(source) % 2);
    storage[i][size] = 0;
    stops[i] = storage[i];
  }
  const size_t size = rng_next(source) % 60;
  for (size_t j = 0; j < size; j++) text[j] = (char)('a' + rng_next(source) % 20 / 9);
  text[size] = 0;
  size_t start = 0;
  uint32_t which = 0, index = 0;
  const size_t end = reference_stop(text, stops, count, &start, &which);
  stop_matcher *m = matcher_open(stops, count);
  REQUIRE(m != NULL);
  size_t fed = 0, used = 0, out_bytes = 0;
  bool stopped = false;
  while (fed < size && !stopped) {
    size_t piece = rng_next(source) % 6;
    if (piece > size - fed) piece = size - fed;
    stopped = stop_matcher_feed(m, text + fed, piece, shown + used, &out_bytes, &index);
    fed += piece;
    used += out_bytes;
    memcpy(so_far, text, fed);
    so_far[fed] = 0;
    if (!stopped) CHECK_EQ_UINT(used, fed - reference_held(so_far, stops, count));
  }
  CHECK(stopped == (end > 0));
  if (stopped) {
    CHECK_EQ_UINT(index, which);
    CHECK_EQ_UINT(used, start);
    CHECK(fed >= end);
  } else {
    used += stop_matcher_flush(m, shown + used);
    CHECK_EQ_UINT(used, size);
  }
  CHECK_EQ_MEM(shown, text, used);
  matcher_close(m);
}

TEST(recognizes_pieces_that_are_whole_stop_strings) {
  static const char *const stops[] = {"", "ab", "<|end|>"};
  static const char *const texts[] = {"ab", "<|end|>", "a", "abc", "<|end|", "b"};
  stop_matcher *m = matcher_open(stops, 3);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    uint32_t index = 9;
    CHECK(stop_matcher_has(m, (const uint8_t *)texts[i], strlen(texts[i]), &index) == (i < 2));
    CHECK_EQ_UINT(index, i < 2 ? i + 1 : 9);
  }
  matcher_close(m);
}

TEST(random_input_agrees_with_a_reference) {
  rng source;
  rng_seed(&source, 4);
  for (int round = 0; round < 20000; round++) check_against_reference(&source);
}
