// Token healing removes the end of a prompt: whole characters, as few tokens as possible, within
// limits.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "schedule/healing.h"
#include "vocabulary_fixture.h"

enum { C3 = 0xc3, A9 = 0xa9, LONG = FIXTURE_ALPHABET, LONGER, FULL, OVER, CONTROL, PAIR, KNOWN };

// Byte-level BPE, whose alphabet represents the byte C3 as U+00C3.
static char long_text[4][80];

static void put_token(fixture_token *token, char *text, size_t letters, const char *end) {
  memset(text, 'a', letters);
  memcpy(text + letters, end, strlen(end) + 1);
  *token = (fixture_token){text, TOKEN_NORMAL, 0};
}

static healing find(const vocabulary_fixture *fixture, const int32_t *tokens, uint32_t count) {
  uint8_t scratch[1024];
  return healing_find(fixture->tokenizer, tokens, count, scratch);
}

TEST(removed_text_has_whole_characters_and_is_limited) {
  static const struct {
    int32_t tokens[6];
    uint32_t count, taken;
    size_t text_bytes;
  } CASES[] = {
      {{'a', 'b'}, 2, 1, 1},
      {{'a'}, 1, 0, 0},  // would remove all tokens
      {{0}, 0, 0, 0},
      {{'a', C3, A9}, 3, 2, 2},
      {{C3, A9}, 2, 0, 0},
      {{'a', 0xe2, 0x82, 0xac}, 4, 3, 3},
      {{'a', 0xf0, 0x9f, 0xa6, 0x8a}, 5, 4, 4},
      {{'a', A9, A9, A9, A9, A9}, 6, 0, 0},  // more than 4 tokens and not valid text
      {{'a', FULL}, 2, 1, 64},
      {{'a', OVER}, 2, 0, 0},
      {{'a', LONG, A9}, 3, 2, 64},
      {{'a', LONGER, A9}, 3, 0, 0},
      {{'a', CONTROL}, 2, 0, 0},
      {{'a', C3, CONTROL, A9}, 4, 0, 0},
      {{CONTROL, 'a'}, 2, 1, 1},
  };
  static fixture_token tokens[KNOWN];
  fixture_add_alphabet(tokens);
  put_token(&tokens[LONG], long_text[0], 62, "\xc3\x83");
  put_token(&tokens[LONGER], long_text[1], 63, "\xc3\x83");
  put_token(&tokens[FULL], long_text[2], 64, "");
  put_token(&tokens[OVER], long_text[3], 65, "");
  tokens[CONTROL] = (fixture_token){"<|end|>", TOKEN_CONTROL, 0};
  tokens[PAIR] = (fixture_token){"ab", TOKEN_NORMAL, 0};
  static const char *const MERGES[] = {"a b"};
  vocabulary_fixture fixture;
  const fixture_vocabulary vocabulary = {.model = "gpt2",
                                         .pre = "gpt-2",
                                         .tokens = tokens,
                                         .token_count = KNOWN,
                                         .merges = MERGES,
                                         .merge_count = 1};
  fixture_open_vocabulary(&fixture, &vocabulary);
  fixture_report(&fixture);
  REQUIRE(fixture.status == WICK_OK);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const healing found = find(&fixture, CASES[i].tokens, CASES[i].count);
    const bool is_right = found.tokens == CASES[i].taken && found.text_bytes == CASES[i].text_bytes;
    if (!CHECK(is_right)) {
      printf("#   case %zu: %u tokens, %zu bytes\n", i, found.tokens, found.text_bytes);
    }
  }
  const healing euro = find(&fixture, CASES[5].tokens, CASES[5].count);
  CHECK_EQ_MEM(euro.text, "\xe2\x82\xac", 3);
  const healing full = find(&fixture, CASES[10].tokens, CASES[10].count);
  for (int i = 0; i < 62; i++) CHECK_EQ_INT(full.text[i], 'a');
  CHECK_EQ_MEM(full.text + 62, "\xc3\xa9", 2);
  CHECK(fixture_close(&fixture));
}
