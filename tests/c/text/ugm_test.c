// The unigram model: compares the best segmentation with all segmentations of small texts, and
// tests normalization with valid and broken character maps and NaN scores.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "vocabulary_fixture.h"

enum { TEXT_MOST = 12, TOKENS_MOST = 24, UNKNOWN = 2 };

// A map without sequences.
static const uint8_t EMPTY_MAP[] = {4, 0, 0, 0, 0, 0, 0, 0, 0};

static void open_unigram(vocabulary_fixture *fixture, const fixture_token *tokens, size_t count,
                         const void *map, size_t map_bytes) {
  fixture_open_vocabulary(fixture, &(fixture_vocabulary){.model = "t5",
                                                         .tokens = tokens,
                                                         .token_count = count,
                                                         .charsmap = map,
                                                         .charsmap_bytes = map_bytes,
                                                         .adds_space = true,
                                                         .merges_spaces = true});
}

// Returns the ids of a text separated by spaces, without the end token.
static const char *ids_of(vocabulary_fixture *fixture, const char *text) {
  static char out[512];
  size_t count = 0, used = 0;
  int32_t *ids = fixture_encode(fixture, text, strlen(text), 0, &count);
  out[0] = '\0';
  for (size_t i = 0; ids != NULL && i < count; i++) {
    used += (size_t)snprintf(out + used, sizeof out - used, i == 0 ? "%d" : " %d", ids[i]);
  }
  free(ids);
  return out;
}

static const fixture_token SMALL[] = {
    {"<pad>", TOKEN_CONTROL, 0}, {"</s>", TOKEN_CONTROL, 0}, {"<unk>", TOKEN_UNKNOWN, 0},
    {"▁", TOKEN_NORMAL, -2},     {"a", TOKEN_NORMAL, -2},    {"b", TOKEN_NORMAL, -3},
    {"ab", TOKEN_NORMAL, -4},    {"▁a", TOKEN_NORMAL, -5},   {"é", TOKEN_NORMAL, -1},
    {"bb", TOKEN_UNUSED, -1},
};
enum { SMALL_COUNT = sizeof SMALL / sizeof SMALL[0] };

TEST(the_segmentation_with_the_highest_sum_of_scores_wins) {
  vocabulary_fixture fixture;
  open_unigram(&fixture, SMALL, SMALL_COUNT, EMPTY_MAP, sizeof EMPTY_MAP);
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  CHECK_EQ_STR(ids_of(&fixture, "a"), "3 4");
  CHECK_EQ_STR(ids_of(&fixture, "ab"), "3 6");
  CHECK_EQ_STR(ids_of(&fixture, "abb"), "3 4 9");
  CHECK_EQ_STR(ids_of(&fixture, "xyaz"), "3 2 4 2");
  CHECK_EQ_STR(ids_of(&fixture, "  a  b  "), "3 4 3 5");
  CHECK_EQ_STR(ids_of(&fixture, "   "), "");
  CHECK_EQ_STR(ids_of(&fixture, "\xff\xfe"), "3 2");
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, "a", 1, WICK_TOKENIZE_ADD_SPECIAL, &count);
  CHECK(ids != NULL && count == 3 && ids[2] == 1);  // the end token is added
  free(ids);
  fixture_close(&fixture);
}

// Returns the highest sum over all segmentations of text[at, size).
static double best_sum(const fixture_token *tokens, size_t count, const char *text, size_t at,
                       double unknown) {
  if (text[at] == '\0') return 0;
  double best = -INFINITY;
  bool has_character = false;
  for (size_t i = 3; i < count; i++) {
    const size_t length = strlen(tokens[i].text);
    if (strncmp(text + at, tokens[i].text, length) != 0) continue;
    has_character = has_character || length == 1;
    const double sum = tokens[i].score + best_sum(tokens, count, text, at + length, unknown);
    if (sum > best) best = sum;
  }
  if (!has_character) {
    const double sum = unknown + best_sum(tokens, count, text, at + 1, unknown);
    if (sum > best) best = sum;
  }
  return best;
}

TEST(no_segmentation_is_better_than_the_result) {
  uint64_t random = soak_seed();
  for (uint32_t round = 0; round < soak_count(4000); round++) {
    fixture_token tokens[TOKENS_MOST] = {SMALL[0], SMALL[1], SMALL[2]};
    static char texts[TOKENS_MOST][5];
    size_t count = 3;
    double least = 0;
    for (size_t i = 3; i < TOKENS_MOST; i++) {
      const size_t length = (size_t)(1 + random_below(&random, 4));
      for (size_t j = 0; j < length; j++) texts[count][j] = (char)('a' + random_below(&random, 3));
      texts[count][length] = '\0';
      bool is_new = true;
      for (size_t j = 3; j < count; j++) is_new = is_new && strcmp(texts[j], texts[count]) != 0;
      if (!is_new) continue;
      const float score = -(float)random_below(&random, 16) / 4;
      if (score < least) least = score;
      tokens[count] = (fixture_token){texts[count], TOKEN_NORMAL, score};
      count++;
    }
    vocabulary_fixture fixture;
    fixture_open_vocabulary(
        &fixture, &(fixture_vocabulary){.model = "t5", .tokens = tokens, .token_count = count});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    char text[TEXT_MOST + 1] = "";
    for (size_t i = 0; i < TEXT_MOST; i++) text[i] = (char)('a' + random_below(&random, 4));
    size_t found = 0;
    int32_t *ids = fixture_encode(&fixture, text, TEXT_MOST, 0, &found);
    REQUIRE(ids != NULL);
    double sum = 0;
    size_t unknown = TEXT_MOST;  // characters without a token
    for (size_t i = 0; i < found; i++) {
      if (ids[i] == UNKNOWN) continue;
      sum += tokens[ids[i]].score;
      unknown -= strlen(tokens[ids[i]].text);
    }
    sum += (double)unknown * (least - 10);
    CHECK_EQ_F32((float)sum, (float)best_sum(tokens, count, text, 0, least - 10));
    free(ids);
    fixture_close(&fixture);
  }
}

TEST(tokens_with_nan_scores_are_ignored) {
  fixture_token tokens[SMALL_COUNT];
  memcpy(tokens, SMALL, sizeof SMALL);
  tokens[4].score = NAN;
  tokens[5].score = -INFINITY;
  tokens[6].score = INFINITY;
  tokens[7].score = -3e38f;
  vocabulary_fixture fixture;
  open_unigram(&fixture, tokens, SMALL_COUNT, EMPTY_MAP, sizeof EMPTY_MAP);
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  CHECK_EQ_STR(ids_of(&fixture, "ab"), "7 2");
  CHECK_EQ_STR(ids_of(&fixture, "é"), "3 8");
  fixture_close(&fixture);
}

// ---- maps ----

// Builds a trie by hand: "x" becomes "ab", and "xy" is removed. The root's children begin at 256,
// so the unit of a byte is at 256 ^ byte.
enum { MAP_UNITS = 1024, MAP_BYTES = 4 + 4 * MAP_UNITS + 4 };

static void put_unit(uint8_t *map, uint32_t at, uint32_t unit) {
  memcpy(map + 4 + 4 * (size_t)at, &unit, sizeof unit);
}

static void build_map(uint8_t *map) {
  const uint32_t units_bytes = 4 * MAP_UNITS, has_value = 1u << 8, value = 1u << 31;
  memset(map, 0, MAP_BYTES);
  memcpy(map, &units_bytes, sizeof units_bytes);
  put_unit(map, 0, 256u << 10);
  const uint32_t x = 256 ^ 'x';
  put_unit(map, x, 'x' | has_value | (x ^ 512) << 10);
  put_unit(map, 512, value | 0);  // "ab"
  const uint32_t xy = 512 ^ 'y';
  put_unit(map, xy, 'y' | has_value | (xy ^ 768) << 10);
  put_unit(map, 768, value | 2);  // the empty end of "ab"
  memcpy(map + 4 + units_bytes, "ab", 3);
}

TEST(the_longest_sequence_of_the_map_is_replaced) {
  uint8_t map[MAP_BYTES];
  build_map(map);
  vocabulary_fixture fixture;
  open_unigram(&fixture, SMALL, SMALL_COUNT, map, sizeof map);
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  CHECK_EQ_STR(ids_of(&fixture, "x"), "3 6");
  CHECK_EQ_STR(ids_of(&fixture, "axya"), "3 4 4");
  CHECK_EQ_STR(ids_of(&fixture, "y"), "3 2");
  fixture_close(&fixture);
}

static void check_map_refused(const uint8_t *map, size_t size_bytes, const char *reason) {
  vocabulary_fixture fixture;
  char message[128];
  snprintf(message, sizeof message, "tokenizer.ggml.precompiled_charsmap has %s", reason);
  open_unigram(&fixture, SMALL, SMALL_COUNT, map, size_bytes);
  CHECK_EQ_INT(fixture.status, WICK_E_FORMAT);
  CHECK_EQ_STR(fixture.error.message, message);
  CHECK(fixture.error.offset_bytes != WICK_NO_OFFSET);
  fixture_close(&fixture);
}

// Checks that a trie of `trie_bytes` bytes in an array of `size_bytes` bytes is rejected.
static void check_sizes_refused(const uint8_t *map, size_t size_bytes, unsigned trie_bytes) {
  char reason[64];
  snprintf(reason, sizeof reason, "%zu bytes, but its trie has %u", size_bytes, trie_bytes);
  check_map_refused(map, size_bytes, reason);
}

TEST(inconsistent_maps_are_rejected) {
  static uint8_t map[MAP_BYTES + 300];
  static const char NO_END[] = "a replacement without an end or of more than 255 bytes";
  build_map(map);
  for (size_t few = 1; few < 4; few++) check_sizes_refused(map, few, 0);
  check_sizes_refused(map, 4, 4 * MAP_UNITS);
  check_sizes_refused(map, MAP_BYTES - 5, 4 * MAP_UNITS);  // the trie extends beyond the array
  check_map_refused(map, MAP_BYTES - 2, NO_END);           // "ab" has no end
  memset(map + MAP_BYTES - 4, 'a', 256);
  check_map_refused(map, MAP_BYTES + 300, NO_END);  // a replacement of 256 bytes
  vocabulary_fixture fixture;
  map[MAP_BYTES - 4 + 255] = 0;  // 255 bytes, the maximum
  open_unigram(&fixture, SMALL, SMALL_COUNT, map, MAP_BYTES - 4 + 256);
  CHECK_EQ_INT(fixture.status, WICK_OK);
  fixture_close(&fixture);
  build_map(map);
  map[0]++;
  check_sizes_refused(map, MAP_BYTES, 4 * MAP_UNITS + 1);  // not a whole number of units
  static const uint8_t NOTHING[4] = {0};                   // no units and no replacements
  open_unigram(&fixture, SMALL, SMALL_COUNT, NOTHING, sizeof NOTHING);
  CHECK_EQ_INT(fixture.status, WICK_OK);
  CHECK_EQ_STR(ids_of(&fixture, "a"), "3 4");
  fixture_close(&fixture);
}

// Random units may refer anywhere: nothing beyond the map is read, and encoding always ends.
TEST(maps_with_random_units_are_safe) {
  uint64_t random = soak_seed();
  static uint8_t map[MAP_BYTES];
  for (uint32_t round = 0; round < soak_count(2000); round++) {
    build_map(map);
    for (size_t i = 4; i < MAP_BYTES - 4; i++) {
      if (random_below(&random, 3) == 0) map[i] = (uint8_t)random_u64(&random);
    }
    for (uint32_t i = 0; i < 40; i++) {  // some of these units are reached
      const uint32_t at = (uint32_t)random_below(&random, MAP_UNITS);
      put_unit(map, at, ('x' + (at & 1)) | 1u << 8 | (uint32_t)random_below(&random, 1024) << 10);
    }
    vocabulary_fixture fixture;
    open_unigram(&fixture, SMALL, SMALL_COUNT, map, sizeof map);
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    CHECK(strlen(ids_of(&fixture, "xyxyxyyyxxxyxyab abxyxyxyxxxxyxyxyxyxxyx")) > 0);
    fixture_close(&fixture);
  }
}
