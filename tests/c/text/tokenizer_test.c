// Tokenizers with vocabularies made by the tests: compares merging and special tokens with slow
// reference implementations, and tests round trips and streams. tokenizer_limits_test.c covers
// sizes, memory, broken files and hostile text; tokenizer_vectors_test.c compares with llama.cpp.
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "platform/platform.h"
#include "pretokenizer_names.h"
#include "text/vocabulary.h"
#include "vocabulary_fixture.h"

enum { TOKENS_TEST_MAX = 700, TEXT_TEST_MAX = 64 };

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % limit;
}

// ---- merging, compared with a reference implementation ----

// A vocabulary with few letters: the alphabet and tokens that join two others.
typedef struct random_vocabulary {
  fixture_token tokens[TOKENS_TEST_MAX];
  char texts[TOKENS_TEST_MAX][TEXT_TEST_MAX];
  size_t count;
  char merge_texts[TOKENS_TEST_MAX][2 * TEXT_TEST_MAX];
  const char *merges[TOKENS_TEST_MAX];
  size_t merge_left[TOKENS_TEST_MAX], merge_right[TOKENS_TEST_MAX];
  size_t merge_count;
} random_vocabulary;

static int find_text(const random_vocabulary *vocabulary, const char *text, size_t size) {
  for (size_t i = 0; i < vocabulary->count; i++) {
    const char *other = vocabulary->tokens[i].text;
    if (strlen(other) == size && memcmp(other, text, size) == 0) return (int)i;
  }
  return -1;
}

static void add_joined(random_vocabulary *vocabulary, size_t left, size_t right, float score) {
  char text[2 * TEXT_TEST_MAX];
  const int size = snprintf(text, sizeof text, "%s%s", vocabulary->tokens[left].text,
                            vocabulary->tokens[right].text);
  if (size >= TEXT_TEST_MAX) return;
  const int known = find_text(vocabulary, text, (size_t)size);
  if (known < 0) {
    char *own = vocabulary->texts[vocabulary->count];
    memcpy(own, text, (size_t)size + 1);
    vocabulary->tokens[vocabulary->count++] = (fixture_token){own, TOKEN_NORMAL, score};
  }
  const size_t rank = vocabulary->merge_count;
  for (size_t i = 0; i < rank; i++) {
    if (vocabulary->merge_left[i] == left && vocabulary->merge_right[i] == right) return;
  }
  snprintf(vocabulary->merge_texts[rank], sizeof vocabulary->merge_texts[rank], "%s %s",
           vocabulary->tokens[left].text, vocabulary->tokens[right].text);
  vocabulary->merges[rank] = vocabulary->merge_texts[rank];
  vocabulary->merge_left[rank] = left;
  vocabulary->merge_right[rank] = right;
  vocabulary->merge_count++;
}

// Chooses one of `letters` letters or one of the joined tokens, which begin at `first`.
static size_t random_part(const random_vocabulary *vocabulary, size_t first, uint32_t letters) {
  const size_t joined = vocabulary->count - first;
  if (joined > 0 && random_below(2) == 0) return first + random_below((uint32_t)joined);
  const char letter = (char)('a' + random_below(letters));
  return (size_t)find_text(vocabulary, &letter, 1);
}

static void add_random_joined(random_vocabulary *vocabulary, uint32_t letters, size_t wanted) {
  const size_t first = vocabulary->count;
  while (vocabulary->merge_count < wanted) {
    const size_t left = random_part(vocabulary, first, letters);
    const size_t right = random_part(vocabulary, first, letters);
    add_joined(vocabulary, left, right, 8.0f - (float)random_below(20));
  }
}

// A word as symbols; the best pair is joined in each round.
typedef struct plain_word {
  int ids[TEXT_TEST_MAX * 2];
  size_t count;
} plain_word;

static void join_at(plain_word *word, size_t at, int id) {
  word->ids[at] = id;
  memmove(&word->ids[at + 1], &word->ids[at + 2], (word->count - at - 2) * sizeof word->ids[0]);
  word->count--;
}

static void merge_by_rank(const random_vocabulary *vocabulary, plain_word *word) {
  for (size_t rank = 0; rank < vocabulary->merge_count;) {
    bool was_found = false;
    for (size_t at = 0; at + 1 < word->count && !was_found; at++) {
      if ((size_t)word->ids[at] != vocabulary->merge_left[rank] ||
          (size_t)word->ids[at + 1] != vocabulary->merge_right[rank]) {
        continue;
      }
      const char *pair = vocabulary->merges[rank];
      char joined[2 * TEXT_TEST_MAX];
      const size_t gap = strcspn(pair, " ");
      snprintf(joined, sizeof joined, "%.*s%s", (int)gap, pair, pair + gap + 1);
      join_at(word, at, find_text(vocabulary, joined, strlen(joined)));
      was_found = true;
    }
    rank = was_found ? 0 : rank + 1;
  }
}

static void merge_by_score(const random_vocabulary *vocabulary, plain_word *word) {
  for (;;) {
    int best = -1;
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < word->count; at++) {
      char joined[TEXT_TEST_MAX * 2];
      const int size =
          snprintf(joined, sizeof joined, "%s%s", vocabulary->tokens[word->ids[at]].text,
                   vocabulary->tokens[word->ids[at + 1]].text);
      const int id = find_text(vocabulary, joined, (size_t)size);
      if (id >= 0 && (best < 0 || vocabulary->tokens[id].score > vocabulary->tokens[best].score)) {
        best = id;
        best_at = at;
      }
    }
    if (best < 0) return;
    join_at(word, best_at, best);
  }
}

static void check_merging(const char *model, uint32_t letters) {
  static random_vocabulary vocabulary;
  vocabulary.count = 0;
  vocabulary.merge_count = 0;
  const bool is_bpe = strcmp(model, "gpt2") == 0;
  if (is_bpe) {
    fixture_add_alphabet(vocabulary.tokens);
    vocabulary.count = FIXTURE_ALPHABET;
  } else {
    static const char *const FIRST[] = {"<unk>", "<s>", "</s>", "a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 8; i++) {
      vocabulary.tokens[i] = (fixture_token){FIRST[i],
                                             i == 0  ? TOKEN_UNKNOWN
                                             : i < 3 ? TOKEN_CONTROL
                                                     : TOKEN_NORMAL,
                                             0};
    }
    vocabulary.count = 8;
  }
  add_random_joined(&vocabulary, letters, 30 + random_below(60));
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = model,
                                                          .pre = "gpt-2",
                                                          .tokens = vocabulary.tokens,
                                                          .token_count = vocabulary.count,
                                                          .merges = vocabulary.merges,
                                                          .merge_count = vocabulary.merge_count});
  if (!CHECK_EQ_INT(fixture.status, WICK_OK)) fixture_report(&fixture);
  for (int round = 0; round < 60 && fixture.status == WICK_OK; round++) {
    char text[TEXT_TEST_MAX];
    plain_word word = {.count = 1 + random_below(TEXT_TEST_MAX - 2)};
    for (size_t i = 0; i < word.count; i++) {
      text[i] = (char)('a' + random_below(letters));
      word.ids[i] = find_text(&vocabulary, &text[i], 1);
    }
    const size_t size = word.count;
    if (is_bpe) {
      merge_by_rank(&vocabulary, &word);
    } else {
      merge_by_score(&vocabulary, &word);
    }
    size_t count = 0;
    int32_t *found = fixture_encode(&fixture, text, size, 0, &count);
    // SPM's added space has no token here and becomes three unknown bytes
    const size_t extra = is_bpe ? 0 : 3;
    if (CHECK(found != NULL) && CHECK_EQ_UINT(count, word.count + extra)) {
      for (size_t i = 0; i < word.count; i++) CHECK_EQ_INT(found[i + extra], word.ids[i]);
    }
    free(found);
  }
  fixture_close(&fixture);
}

TEST(bpe_merges_match_a_simple_version) {
  for (uint32_t round = 0; round < 24; round++) check_merging("gpt2", 1 + round % 4);
}

TEST(spm_merges_match_a_simple_version) {
  for (uint32_t round = 0; round < 24; round++) check_merging("llama", 1 + round % 4);
}

// ---- special tokens ----

static void open_bpe(vocabulary_fixture *fixture, const fixture_token *tokens, size_t count,
                     const char *name) {
  static const char *const MERGES[] = {"a b"};
  fixture_open_vocabulary(fixture, &(fixture_vocabulary){.model = "gpt2",
                                                         .pre = "gpt-2",
                                                         .name = name,
                                                         .tokens = tokens,
                                                         .token_count = count,
                                                         .merges = MERGES,
                                                         .merge_count = 1});
  if (!CHECK_EQ_INT(fixture->status, WICK_OK)) fixture_report(fixture);
}

// The reference searches all text that is still raw for each special token, longest first.
static size_t partition_plainly(const fixture_token *tokens, const int *order, size_t order_count,
                                const char *text, size_t size, bool controls, int32_t *out) {
  int owner[256];  // -1: raw, -2: within a token, else the token that begins here
  for (size_t i = 0; i < size; i++) owner[i] = -1;
  for (size_t k = 0; k < order_count; k++) {
    const fixture_token *token = &tokens[order[k]];
    if (token->kind != TOKEN_USER_DEFINED && !controls) continue;
    const size_t length = strlen(token->text);
    for (size_t at = 0; at + length <= size; at++) {
      bool fits = memcmp(text + at, token->text, length) == 0;
      for (size_t i = at; i < at + length && fits; i++) fits = owner[i] == -1;
      if (!fits) continue;
      for (size_t i = at; i < at + length; i++) owner[i] = -2;
      owner[at] = order[k];
    }
  }
  size_t count = 0;
  for (size_t i = 0; i < size; i++) {
    if (owner[i] == -1) out[count++] = (uint8_t)text[i];
    if (owner[i] >= 0) out[count++] = owner[i];
  }
  return count;
}

static void check_specials(uint32_t special_count) {
  static fixture_token tokens[TOKENS_TEST_MAX];
  static char texts[64][16];
  size_t count = fixture_add_alphabet(tokens);
  int order[64];
  for (uint32_t i = 0; i < special_count; i++) {
    bool is_new = false;
    while (!is_new) {
      const size_t length = 2 + random_below(7);
      for (size_t j = 0; j < length; j++) texts[i][j] = (char)('x' + random_below(2));
      texts[i][length] = '\0';
      is_new = true;
      for (uint32_t j = 0; j < i; j++) is_new = is_new && strcmp(texts[i], texts[j]) != 0;
    }
    static const token_kind KINDS[] = {TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNKNOWN};
    order[i] = (int)count;
    tokens[count++] = (fixture_token){texts[i], KINDS[random_below(3)], 0};
  }
  for (uint32_t i = 1; i < special_count; i++) {  // stable, longest first
    for (uint32_t j = i; j > 0; j--) {
      if (strlen(tokens[order[j]].text) <= strlen(tokens[order[j - 1]].text)) break;
      const int moved = order[j];
      order[j] = order[j - 1];
      order[j - 1] = moved;
    }
  }
  vocabulary_fixture fixture;
  open_bpe(&fixture, tokens, count, NULL);
  for (int round = 0; round < 40 && fixture.status == WICK_OK; round++) {
    char text[200];
    int32_t wanted[200];
    const size_t size = random_below(sizeof text);
    for (size_t i = 0; i < size; i++) text[i] = (char)('x' + random_below(8) / 3);
    for (uint32_t flags = 0; flags <= WICK_TOKENIZE_PARSE_SPECIAL;
         flags += WICK_TOKENIZE_PARSE_SPECIAL) {
      const size_t wanted_count =
          partition_plainly(tokens, order, special_count, text, size, flags != 0, wanted);
      size_t found_count = 0;
      int32_t *found = fixture_encode(&fixture, text, size, flags, &found_count);
      if (CHECK(found != NULL) && CHECK_EQ_UINT(found_count, wanted_count)) {
        CHECK_EQ_MEM(found, wanted, wanted_count * sizeof *wanted);
      }
      free(found);
    }
  }
  fixture_close(&fixture);
}

TEST(special_tokens_match_a_simple_version) {
  for (uint32_t round = 0; round < 40; round++) check_specials(1 + round);
}

static void check_ids(vocabulary_fixture *fixture, const char *text, uint32_t flags,
                      const int32_t *wanted, size_t wanted_count) {
  size_t count = 0;
  int32_t *found = fixture_encode(fixture, text, strlen(text), flags, &count);
  if (CHECK(found != NULL) && CHECK_EQ_UINT(count, wanted_count)) {
    CHECK_EQ_MEM(found, wanted, count * sizeof *found);
  } else {
    printf("# '%s'\n", text);
  }
  free(found);
}

#define CHECK_IDS(fixture, text, flags, ...)                            \
  check_ids((fixture), (text), (flags), (const int32_t[]){__VA_ARGS__}, \
            sizeof(const int32_t[]){__VA_ARGS__} / sizeof(int32_t))

TEST(phi_3_special_tokens_absorb_the_white_space_after_them) {
  fixture_token tokens[FIXTURE_ALPHABET + 3];
  size_t count = fixture_add_alphabet(tokens);
  tokens[count++] = (fixture_token){"<|user|>", TOKEN_CONTROL, 0};       // 256
  tokens[count++] = (fixture_token){"<|endoftext|>", TOKEN_CONTROL, 0};  // 257
  tokens[count++] = (fixture_token){"\n\n", TOKEN_USER_DEFINED, 0};      // 258
  vocabulary_fixture fixture;
  open_bpe(&fixture, tokens, count, "My Phi-3 mini");
  CHECK_IDS(&fixture, "<|user|> \n\t<|user|>  a b", WICK_TOKENIZE_PARSE_SPECIAL, 256, 256, 'a', ' ',
            'b');
  CHECK_IDS(&fixture, "<|endoftext|> a", WICK_TOKENIZE_PARSE_SPECIAL, 257, ' ', 'a');
  CHECK_IDS(&fixture, "<|user|>\n\n\na", WICK_TOKENIZE_PARSE_SPECIAL, 256, 'a');
  CHECK_IDS(&fixture, "<|user|>\n\n\na", 0, '<', '|', 'u', 's', 'e', 'r', '|', '>', 258, 'a');
  fixture_close(&fixture);
  open_bpe(&fixture, tokens, count, "another");
  CHECK_IDS(&fixture, "<|user|> a", WICK_TOKENIZE_PARSE_SPECIAL, 256, ' ', 'a');
  fixture_close(&fixture);
}

TEST(end_tokens_are_recognized_by_their_text) {
  fixture_token tokens[FIXTURE_ALPHABET + 8];
  size_t count = fixture_add_alphabet(tokens);
  tokens[count++] = (fixture_token){"<|im_end|>", TOKEN_NORMAL, 0};         // 256
  tokens[count++] = (fixture_token){"<|im_start|>", TOKEN_CONTROL, 0};      // 257
  tokens[count++] = (fixture_token){"<|fim_pad|>", TOKEN_USER_DEFINED, 0};  // 258
  tokens[count++] = (fixture_token){"<|end|>", TOKEN_CONTROL, 0};           // 259
  tokens[count++] = (fixture_token){"<|return|>", TOKEN_CONTROL, 0};        // 260
  tokens[count++] = (fixture_token){"<|call|>", TOKEN_CONTROL, 0};          // 261
  tokens[count++] = (fixture_token){"<|channel|>", TOKEN_CONTROL, 0};       // 262
  vocabulary_fixture fixture;
  open_bpe(&fixture, tokens, count, NULL);
  CHECK(tokenizer_is_end(fixture.tokenizer, 256));
  CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 256), TOKEN_CONTROL);
  CHECK(!tokenizer_is_end(fixture.tokenizer, 257));
  CHECK(tokenizer_is_end(fixture.tokenizer, 258));
  CHECK(!tokenizer_is_end(fixture.tokenizer, 259));  // gpt-oss ends turns with the next two tokens
  CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 259), TOKEN_USER_DEFINED);
  CHECK(tokenizer_is_end(fixture.tokenizer, 260));
  CHECK(tokenizer_is_end(fixture.tokenizer, 261));
  CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 262), TOKEN_USER_DEFINED);
  CHECK(!tokenizer_is_end(fixture.tokenizer, TOKEN_NONE));
  CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 9999), TOKEN_UNUSED);
  CHECK_EQ_INT(tokenizer_find(fixture.tokenizer, "<|call|>", 8), 261);
  CHECK_EQ_INT(tokenizer_find(fixture.tokenizer, "<|call", 6), TOKEN_NONE);
  CHECK_EQ_INT(tokenizer_find(fixture.tokenizer, "", 0), TOKEN_NONE);
  CHECK_EQ_INT(tokenizer_bos(fixture.tokenizer), TOKEN_NONE);
  fixture_close(&fixture);
}

// ---- round trips ----

// Writes random characters, except U+2581, which SPM treats as a space; returns the number of
// bytes.
static size_t random_text(uint8_t *text, size_t size) {
  static const uint32_t LIMITS[] = {0x80, 0x80, 0x800, 0x3100, 0xd800, 0x20000};
  size_t used = 0;
  while (used + 4 <= size) {
    const uint32_t code = random_below(LIMITS[random_below(6)]);
    if (code != 0x2581) used += utf8_encode(code, text + used);
  }
  return used;
}

TEST(byte_level_bpe_round_trips_any_text_with_every_pretokenizer) {
  fixture_token tokens[FIXTURE_ALPHABET];
  fixture_add_alphabet(tokens);
  for (size_t i = 0; i < PRETOKENIZER_COUNT; i++) {
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                            .pre = PRETOKENIZERS[i],
                                                            .tokens = tokens,
                                                            .token_count = FIXTURE_ALPHABET,
                                                            .merges = (const char *[]){"a b"},
                                                            .merge_count = 1});
    if (!CHECK_EQ_INT(fixture.status, WICK_OK)) fixture_report(&fixture);
    for (int round = 0; round < 20 && fixture.status == WICK_OK; round++) {
      uint8_t text[500];
      size_t count = 0, size_back = 0;
      const size_t size = random_text(text, random_below(sizeof text));
      int32_t *ids = fixture_encode(&fixture, text, size, 0, &count);
      CHECK_EQ_UINT(count, size);  // all tokens are bytes
      char *back = fixture_decode(&fixture, ids, count, &size_back);
      if (CHECK_EQ_UINT(size_back, size)) CHECK_EQ_MEM(back, text, size);
      free(back);
      free(ids);
    }
    fixture_close(&fixture);
  }
}

TEST(spm_round_trips_any_text) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  for (int round = 0; round < 200 && fixture.status == WICK_OK; round++) {
    uint8_t text[300];
    size_t count = 0, size_back = 0;
    const size_t size = random_text(text, random_below(sizeof text));
    int32_t *ids = fixture_encode(&fixture, text, size, 0, &count);
    char *back = fixture_decode(&fixture, ids, count, &size_back);
    if (CHECK_EQ_UINT(size_back, size)) CHECK_EQ_MEM(back, text, size);
    free(back);
    free(ids);
  }
  CHECK_IDS(&fixture, "a \xc3\xa9\x7f", 0, 261, 259, 262, 3 + 0x7f);
  CHECK_IDS(&fixture, "a<s>a", WICK_TOKENIZE_PARSE_SPECIAL | WICK_TOKENIZE_ADD_SPECIAL, 1, 261, 1,
            261);
  CHECK_IDS(&fixture, "", WICK_TOKENIZE_ADD_SPECIAL, 1);
  fixture_close(&fixture);
}

// ---- streams ----

static void feed_all(detokenizer *state, const vocabulary_fixture *fixture, const int32_t *ids,
                     size_t count, const char *const *wanted) {
  char out[256];
  for (size_t i = 0; i < count; i++) {
    const size_t size = detokenizer_feed(state, fixture->tokenizer, ids[i], out);
    out[size] = '\0';
    if (!CHECK_EQ_STR(out, wanted[i])) printf("# piece %zu\n", i);
  }
}

#define REPLACED "\xef\xbf\xbd"
#define REPLACED_TWICE REPLACED REPLACED

TEST(streams_only_whole_characters) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  detokenizer state;
  char out[64];
  detokenizer_init(&state, true, false);
  // U+1F642 byte by byte, then a truncated character before a letter, then invalid first bytes
  feed_all(&state, &fixture, (const int32_t[]){261, 1, 3 + 0xf0, 3 + 0x9f, 3 + 0x99, 3 + 0x82, 261},
           7, (const char *const[]){"a", "", "", "", "", "\xf0\x9f\x99\x82", " a"});
  feed_all(&state, &fixture, (const int32_t[]){3 + 0xe2, 3 + 0x82, 260, 3 + 0xff, 3 + 0x80}, 5,
           (const char *const[]){"", "", REPLACED "a", REPLACED, REPLACED});
  feed_all(&state, &fixture, (const int32_t[]){3 + 0xf0, 3 + 0xf0, 3 + 0x41, 3 + 0xed, 3 + 0xa0}, 5,
           (const char *const[]){"", REPLACED, REPLACED "A", "", REPLACED_TWICE});
  CHECK_EQ_UINT(detokenizer_flush(&state, out), 0);
  feed_all(&state, &fixture, (const int32_t[]){3 + 0xe2, 3 + 0x82}, 2,
           (const char *const[]){"", ""});
  CHECK_EQ_UINT(detokenizer_flush(&state, out), 3);
  CHECK_EQ_MEM(out, REPLACED, 3);
  CHECK_EQ_UINT(detokenizer_flush(&state, out), 0);
  fixture_close(&fixture);
}

TEST(the_added_space_is_removed_only_at_the_start_of_a_text) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  detokenizer state;
  detokenizer_init(&state, true, false);
  feed_all(&state, &fixture, (const int32_t[]){1, 261, 261}, 3,
           (const char *const[]){"", "a", " a"});
  detokenizer_init(&state, false, false);
  feed_all(&state, &fixture, (const int32_t[]){261}, 1, (const char *const[]){" a"});
  detokenizer_init(&state, true, true);
  feed_all(&state, &fixture, (const int32_t[]){1, 261, -1, 9999}, 4,
           (const char *const[]){"<s>", " a", "", ""});
  fixture_close(&fixture);
}

// Words are merged separately, unless a token contains the space between them.
TEST(a_token_may_span_words) {
  static const fixture_token TOKENS[] = {
      {"<unk>", TOKEN_UNKNOWN, 0}, {"▁", TOKEN_NORMAL, -9},  {"a", TOKEN_NORMAL, -8},
      {"b", TOKEN_NORMAL, -8},     {"▁b", TOKEN_NORMAL, -2}, {"a▁", TOKEN_NORMAL, -3},
      {"a▁b", TOKEN_NORMAL, -4},   {"▁a", TOKEN_NORMAL, -5},
  };
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture, &(fixture_vocabulary){.model = "llama", .tokens = TOKENS, .token_count = 8});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, "b a b b", 7, 0, &count);
  static const int32_t WANTED[] = {4, 1, 6, 4};  // ▁b ▁ a▁b ▁b
  CHECK_EQ_UINT(count, 4);
  for (size_t i = 0; ids != NULL && i < count; i++) CHECK_EQ_INT(ids[i], WANTED[i]);
  free(ids);
  fixture_close(&fixture);
}

// Repeated words come from the cache, with the same ids as in a short text.
TEST(repeated_words_have_the_same_ids) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  enum { PERIOD = 8 };
  char text[250 * PERIOD];
  for (size_t i = 0; i < sizeof text; i++) text[i] = "a \xc3\xa9x az"[i % PERIOD];
  size_t count = 0, once = 0, twice = 0;
  int32_t *wanted = fixture_encode(&fixture, text, PERIOD, 0, &once);
  free(wanted);
  wanted = fixture_encode(&fixture, text, 2 * PERIOD, 0, &twice);
  int32_t *ids = fixture_encode(&fixture, text, sizeof text, 0, &count);
  REQUIRE(ids != NULL && wanted != NULL && twice > once);
  REQUIRE(CHECK_EQ_UINT(count, once + (twice - once) * (sizeof text / PERIOD - 1)));
  for (size_t i = 0; i < count; i++) {
    CHECK_EQ_INT(ids[i], wanted[i < once ? i : once + (i - once) % (twice - once)]);
  }
  free(ids);
  free(wanted);
  fixture_close(&fixture);
}

// BERT uses lower-case letters without accents. Hangul is decomposed into its letters; vowel signs
// stay.
TEST(wordpiece_uses_canonical_decompositions) {
  static const fixture_token TOKENS[] = {
      {"[UNK]", TOKEN_UNKNOWN, 0},
      {"[CLS]", TOKEN_CONTROL, 0},
      {"[SEP]", TOKEN_CONTROL, 0},
      {"▁e", TOKEN_NORMAL, 0},
      {"▁\u1112\u1161\u11ab", TOKEN_NORMAL, 0},
      {"▁\u1100\u1161", TOKEN_NORMAL, 0},
      {"▁\u0995\u09c7\u09be", TOKEN_NORMAL, 0},
      {"▁ab", TOKEN_NORMAL, 0},
      {"▁;", TOKEN_NORMAL, 0},
      {"▁i", TOKEN_NORMAL, 0},
  };
  static const struct {
    const char *text;
    int32_t id;
  } CASES[] = {{"\u00c9", 3},       {"e\u0301\u0302", 3}, {"\xed\x95\x9c", 4}, {"\uac00", 5},
               {"\u0995\u09cb", 6}, {"a\vb", 7},          {"a\u00adb", 7},     {"\u037e", 8},
               {"\u0130", 9},       {"\u4e2d", 0}};
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture, &(fixture_vocabulary){.model = "bert", .tokens = TOKENS, .token_count = 10});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  fixture.tokenizer->unknown = 0;  // the default is 100
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    size_t count = 0;
    int32_t *ids = fixture_encode(&fixture, CASES[i].text, strlen(CASES[i].text), 0, &count);
    if (CHECK_EQ_UINT(count, 1)) CHECK_EQ_INT(ids[0], CASES[i].id);
    free(ids);
  }
  fixture_close(&fixture);
}

// BERT's max_input_chars_per_word counts code points after normalization.
TEST(wordpiece_words_of_more_than_100_characters_are_unknown) {
  static const fixture_token TOKENS[] = {
      {"[UNK]", TOKEN_UNKNOWN, 0},  {"▁a", TOKEN_NORMAL, 0},     {"a", TOKEN_NORMAL, 0},
      {"▁\u0436", TOKEN_NORMAL, 0}, {"\u0436", TOKEN_NORMAL, 0}, {"▁!", TOKEN_NORMAL, 0},
  };
  static const struct {
    const char *character;
    size_t count, tokens;
  } CASES[] = {{"a", 100, 100},      {"a", 101, 1},         {"a", 5000, 1},
               {"\u0436", 100, 100}, {"\u0436", 101, 1},    {"a\u0301", 100, 100},
               {"\u00e1", 100, 100}, {"a\u0301", 101, 1},   {"!", 150, 150},
               {"\u0416", 100, 100}, {"a\u00ad", 100, 100}, {"a ", 150, 150}};
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture, &(fixture_vocabulary){.model = "bert", .tokens = TOKENS, .token_count = 6});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  fixture.tokenizer->unknown = 0;
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    char text[3 * 5000 + 8] = "";
    size_t size = 0, count = 0;
    for (size_t k = 0; k < CASES[i].count; k++) {
      memcpy(text + size, CASES[i].character, strlen(CASES[i].character));
      size += strlen(CASES[i].character);
    }
    memcpy(text + size, " a", 2);  // the next word is not affected
    int32_t *ids = fixture_encode(&fixture, text, size + 2, 0, &count);
    if (!CHECK_EQ_UINT(count, CASES[i].tokens + 1)) printf("# case %zu\n", i);
    if (ids != NULL && CASES[i].tokens == 1) CHECK_EQ_INT(ids[0], 0);
    if (ids != NULL) CHECK_EQ_INT(ids[count - 1], 1);
    free(ids);
  }
  fixture_close(&fixture);
}

// BERT's default ids: [UNK] is 100, [CLS] 101 and [SEP] 102, if the file has no keys for them.
TEST(wordpiece_has_default_ids_for_special_tokens) {
  fixture_token tokens[103];
  for (size_t i = 0; i < 103; i++) tokens[i] = (fixture_token){"▁x", TOKEN_NORMAL, 0};
  for (size_t count = 101; count <= 103; count++) {
    vocabulary_fixture fixture;
    fixture_open_vocabulary(
        &fixture, &(fixture_vocabulary){.model = "bert", .tokens = tokens, .token_count = count});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    CHECK_EQ_INT(tokenizer_bos(fixture.tokenizer), count > 101 ? 101 : TOKEN_NONE);
    CHECK_EQ_INT(fixture.tokenizer->unknown, 100);
    CHECK_EQ_INT(fixture.tokenizer->separator, count > 102 ? 102 : TOKEN_NONE);
    fixture_close(&fixture);
  }
}

// ---- optional lists in a file ----

// Opens the vocabulary with `key` renamed to an unknown key.
static void open_without(vocabulary_fixture *fixture, const fixture_vocabulary *vocabulary,
                         const char *key) {
  size_t size_bytes;
  uint8_t *bytes = fixture_write_vocabulary(vocabulary, &size_bytes);
  const size_t key_bytes = strlen(key);
  int found = 0;
  for (size_t at = 0; at + key_bytes <= size_bytes; at++) {
    if (memcmp(bytes + at, key, key_bytes) != 0) continue;
    bytes[at] = 'T';
    found++;
  }
  CHECK_EQ_INT(found, 1);
  fixture_open_bytes(fixture, bytes, size_bytes);
  free(bytes);
}

TEST(missing_required_lists_are_rejected_and_optional_lists_may_be_missing) {
  static const fixture_token tokens[] = {
      {"<unk>", TOKEN_UNKNOWN, 0}, {"<s>", TOKEN_CONTROL, 0}, {"</s>", TOKEN_CONTROL, 0},
      {"a", TOKEN_NORMAL, -1},     {"b", TOKEN_NORMAL, -2},   {"ab", TOKEN_NORMAL, -3},
  };
  static const char *const merges[] = {"a b"};
  static const struct {
    const char *model, *key;
    bool is_needed;
  } lists[] = {
      {"llama", "tokenizer.ggml.tokens", true},     {"llama", "tokenizer.ggml.token_type", false},
      {"llama", "tokenizer.ggml.scores", false},    {"gpt2", "tokenizer.ggml.tokens", true},
      {"gpt2", "tokenizer.ggml.token_type", false}, {"gpt2", "tokenizer.ggml.scores", false},
      {"gpt2", "tokenizer.ggml.merges", true},      {"llama", "tokenizer.ggml.merges", false},
  };
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    const fixture_vocabulary vocabulary = {.model = lists[i].model,
                                           .tokens = tokens,
                                           .token_count = sizeof tokens / sizeof *tokens,
                                           .merges = merges,
                                           .merge_count = 1};
    vocabulary_fixture fixture;
    open_without(&fixture, &vocabulary, lists[i].key);
    if (lists[i].is_needed) {
      char wanted[80];
      snprintf(wanted, sizeof wanted, "%s is missing", lists[i].key);
      CHECK_EQ_INT(fixture.status, WICK_E_FORMAT);
      CHECK_EQ_STR(fixture.error.message, wanted);
    } else if (CHECK_EQ_INT(fixture.status, WICK_OK)) {
      CHECK_EQ_UINT(tokenizer_vocab(fixture.tokenizer), 6);
      size_t count;
      int32_t *ids = fixture_encode(&fixture, "ab", 2, 0, &count);
      CHECK(ids != NULL && count > 0 && ids[count - 1] == 5);
      free(ids);
    }
    CHECK(fixture_close(&fixture));
  }
}

TEST(pretokenizers_are_recognized_by_their_whole_name) {
  char part[64];
  for (int i = 0; i < PRETOKENIZER_COUNT; i++) {
    const char *name = PRETOKENIZERS[i];
    CHECK(tokenizer_knows_pre(name));
    snprintf(part, sizeof part, "%s!", name);
    CHECK(!tokenizer_knows_pre(part));
    snprintf(part, sizeof part, "!%s", name + 1);
    CHECK(!tokenizer_knows_pre(part));
  }
  CHECK(!tokenizer_knows_pre(""));
}

// Character merges on lower-cased text, where a lower-case letter may have more bytes than its
// capital.
TEST(character_merges_use_lower_cased_text) {
  static const fixture_token TOKENS[] = {
      {"a", TOKEN_NORMAL, 0},      {"b", TOKEN_NORMAL, 0},      {"ab", TOKEN_NORMAL, 0},
      {"\u00e9", TOKEN_NORMAL, 0}, {"\u2c65", TOKEN_NORMAL, 0}, {"B", TOKEN_NORMAL, 0},
  };
  static const char *const MERGES[] = {"a b"};
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .pre = "whitespace",
                                                          .tokens = TOKENS,
                                                          .token_count = 6,
                                                          .merges = MERGES,
                                                          .merge_count = 1});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  fixture.tokenizer->lowers_case = true;  // as "tokenizer.ggml.normalizer.lowercase" does
  static const int32_t WANTED[] = {2, 3, 4, 1};
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, "AB\u00c9\u023aB", 7, 0, &count);
  if (CHECK_EQ_UINT(count, 4)) CHECK_EQ_MEM(ids, WANTED, sizeof WANTED);
  free(ids);
  fixture_close(&fixture);
}
