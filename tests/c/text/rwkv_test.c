// RWKV's vocabulary: tokens of any bytes, written with escapes; text is encoded greedily from left
// to right with the longest token.
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "vocabulary_fixture.h"

static const fixture_token TOKENS[] = {
    {"<s>", TOKEN_CONTROL, 0},       {"a", TOKEN_NORMAL, 0},     {"ab", TOKEN_NORMAL, 0},
    {"abcd", TOKEN_NORMAL, 0},       {"\\n", TOKEN_NORMAL, 0},   {"\\t\\r", TOKEN_NORMAL, 0},
    {"\\xe4\\xb8", TOKEN_NORMAL, 0}, {"\\xad", TOKEN_NORMAL, 0}, {"\\\\", TOKEN_NORMAL, 0},
    {"\\'", TOKEN_NORMAL, 0},        {"中文", TOKEN_NORMAL, 0},  {"b\\x00c", TOKEN_NORMAL, 0},
    {"\\x", TOKEN_NORMAL, 0},        {"c\\", TOKEN_NORMAL, 0},
};
enum { TOKEN_COUNT = sizeof TOKENS / sizeof TOKENS[0] };

static void check_ids(vocabulary_fixture *fixture, const char *text, size_t size_bytes,
                      const int32_t *wanted, size_t wanted_count) {
  size_t count = 0, back_bytes = 0;
  int32_t *ids = fixture_encode(fixture, text, size_bytes, WICK_TOKENIZE_ADD_SPECIAL, &count);
  REQUIRE(ids != NULL);
  REQUIRE(CHECK_EQ_UINT(count, wanted_count));
  for (size_t i = 0; i < count; i++) CHECK_EQ_INT(ids[i], wanted[i]);
  char *back = fixture_decode(fixture, ids, count, &back_bytes);
  CHECK_EQ_UINT(back_bytes, size_bytes);
  if (back_bytes == size_bytes) CHECK_EQ_MEM(back, text, size_bytes);
  free(back);
  free(ids);
}

#define CHECK_IDS(text, ...)                                           \
  check_ids(&fixture, text, sizeof text - 1, (int32_t[]){__VA_ARGS__}, \
            sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

TEST(the_longest_token_is_used_and_decodes_to_its_bytes) {
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture,
      &(fixture_vocabulary){.model = "rwkv", .tokens = TOKENS, .token_count = TOKEN_COUNT});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  CHECK_IDS("aababcd", 1, 2, 3);
  CHECK_IDS("\n\t\r\\'", 4, 5, 8, 9);
  CHECK_IDS("\xe4\xb8\xad", 6, 7);
  CHECK_IDS("中文", 10);
  CHECK_IDS("b\0c", 11);
  CHECK_IDS("xc\\", 12, 13);
  CHECK_EQ_INT(tokenizer_find(fixture.tokenizer, "\n", 1), 4);
  CHECK(!tokenizer_adds_bos(fixture.tokenizer) && !tokenizer_adds_eos(fixture.tokenizer));
  fixture_close(&fixture);
}

TEST(bytes_without_a_token_become_the_unknown_token) {
  enum { UNKNOWN = 12 };
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture,
      &(fixture_vocabulary){
          .model = "rwkv", .tokens = TOKENS, .token_count = TOKEN_COUNT, .unknown = UNKNOWN});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, "zab", 3, 0, &count);
  REQUIRE(ids != NULL && CHECK_EQ_UINT(count, 2));
  CHECK(ids[0] == UNKNOWN && ids[1] == 2);
  free(ids);
  fixture_close(&fixture);
}

TEST(bytes_without_a_token_are_omitted_if_there_is_no_unknown_token) {
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture,
      &(fixture_vocabulary){.model = "rwkv", .tokens = TOKENS, .token_count = TOKEN_COUNT});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, "zazz", 4, 0, &count);
  CHECK(ids != NULL && count == 1 && ids[0] == 1);
  free(ids);
  fixture_close(&fixture);
}
