// Merges chosen to collide in the hash table of rules: those that fit are found, and the error
// reports the first one that would be too far from its slot.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "text/vocabulary.h"
#include "vocabulary_fixture.h"

enum { RULES = 6000, TOKENS = FIXTURE_ALPHABET + RULES, PAIR_BYTES = 8 };

static fixture_token tokens[TOKENS];
static char joined[RULES][PAIR_BYTES], merge_texts[RULES][PAIR_BYTES];
static const char *merges[RULES];
static uint32_t homes[RULES];

static uint32_t mix(uint32_t hash) {
  hash ^= hash >> 16;
  hash *= 0x85ebca6bu;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

// Returns the slot where the table starts to search for a pair (vocabulary.c hash_pair).
static uint32_t home_of(uint32_t left, uint32_t right, uint32_t mask) {
  return mix(left * 0x9e3779b1u + mix(right)) & mask;
}

// Chooses the first `count` pairs of bytes with slots below `end`, in byte order. Returns the
// number found.
static uint32_t choose_pairs(uint32_t count, uint32_t mask, uint32_t end) {
  uint32_t found = 0;
  for (uint32_t pair = 0; pair < 65536 && found < count; pair++) {
    const uint32_t left = pair / 256, right = pair % 256;
    if (home_of(left, right, mask) >= end) continue;
    const char *a = tokens[left].text, *b = tokens[right].text;
    snprintf(joined[found], PAIR_BYTES, "%s%s", a, b);
    snprintf(merge_texts[found], PAIR_BYTES, "%s %s", a, b);
    merges[found] = merge_texts[found];
    tokens[FIXTURE_ALPHABET + found] = (fixture_token){joined[found], TOKEN_NORMAL, 0};
    homes[found++] = home_of(left, right, mask);
  }
  return found;
}

static void open_with(vocabulary_fixture *fixture, uint32_t rules) {
  const fixture_vocabulary vocabulary = {.model = "gpt2",
                                         .pre = "gpt-2",
                                         .tokens = tokens,
                                         .token_count = FIXTURE_ALPHABET + rules,
                                         .merges = merges,
                                         .merge_count = rules};
  fixture_open_vocabulary(fixture, &vocabulary);
}

// Fills a table and returns the first rule that finds no empty slot within the probe limit, or
// `count` if all rules fit.
static uint32_t first_too_far(uint32_t count, uint32_t mask) {
  bool *is_full = calloc(mask + 1, sizeof *is_full);
  uint32_t rule = 0;
  for (bool fits = true; fits && rule < count; rule += fits) {
    uint32_t steps = 0;
    while (steps < INDEX_PROBES_MAX && is_full[(homes[rule] + steps) & mask]) steps++;
    fits = steps < INDEX_PROBES_MAX;
    if (fits) is_full[(homes[rule] + steps) & mask] = true;
  }
  free(is_full);
  return rule;
}

TEST(too_many_colliding_rules_are_rejected_with_their_number) {
  fixture_add_alphabet(tokens);
  vocabulary_fixture fixture;
  choose_pairs(RULES, 0, 1);
  open_with(&fixture, RULES);
  if (!CHECK_EQ_INT(fixture.status, WICK_OK)) fixture_report(&fixture);
  const uint32_t mask = fixture.status == WICK_OK ? fixture.tokenizer->by_pair.mask : 0;
  CHECK(fixture_close(&fixture));
  REQUIRE(mask >= RULES);

  REQUIRE(choose_pairs(RULES, mask, (mask + 1) / 9) == RULES);
  const uint32_t first = first_too_far(RULES, mask);
  REQUIRE(first > INDEX_PROBES_MAX && first < RULES);
  open_with(&fixture, RULES);
  char wanted[96];
  snprintf(wanted, sizeof wanted, "tokenizer.ggml.merges: rule %u collides with too many others",
           (unsigned)first);
  CHECK_EQ_INT(fixture.status, WICK_E_FORMAT);
  CHECK_EQ_STR(fixture.error.message, wanted);
  CHECK(fixture_close(&fixture));
}

TEST(every_colliding_rule_is_found) {
  fixture_add_alphabet(tokens);
  vocabulary_fixture fixture;
  enum { FEW = 4000 };  // none is too far from its slot
  choose_pairs(FEW, 0, 1);
  open_with(&fixture, FEW);
  REQUIRE(fixture.status == WICK_OK);
  const uint32_t mask = fixture.tokenizer->by_pair.mask;
  CHECK(fixture_close(&fixture));
  REQUIRE(choose_pairs(FEW, mask, (mask + 1) / 12) == FEW);
  open_with(&fixture, FEW);
  REQUIRE(fixture.status == WICK_OK);
  for (uint32_t rule = 0; rule < FEW; rule += 7) {
    const tokenizer *made = fixture.tokenizer;
    const int32_t a = vocabulary_find(made, merge_texts[rule], strcspn(merge_texts[rule], " "));
    const char *after = strchr(merge_texts[rule], ' ') + 1;
    const int32_t b = vocabulary_find(made, after, strlen(after));
    CHECK_EQ_UINT(vocabulary_find_rule(made, a, b), rule);
    CHECK_EQ_INT(made->rules[rule].joined, FIXTURE_ALPHABET + (int32_t)rule);
  }
  CHECK_EQ_UINT(vocabulary_find_rule(fixture.tokenizer, 255, 256), UINT32_MAX);
  CHECK(fixture_close(&fixture));
}
