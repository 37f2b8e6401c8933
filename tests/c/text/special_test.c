// Finding special tokens in text: the results equal those of a simple search, and the number of
// steps does not grow with the vocabulary.
#include "text/special.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "vocabulary_fixture.h"

enum { TOKENS_MOST = 40, TEXT_MOST = 96 };

// ---- a simple search like llama.cpp's: token by token over the rest of the text ----

typedef struct plain_search {
  const tokenizer *tokenizer;
  const char *text;
  size_t size_bytes;
  const bool *is_content;    // [size_bytes], or NULL
  int32_t taken[TEXT_MOST];  // id of the token that covers each byte, or TOKEN_NONE
  special_match matches[TEXT_MOST];
  size_t count;
} plain_search;

static bool is_wanted(const tokenizer *tokenizer, int32_t id, bool controls) {
  return vocabulary_text(tokenizer, id).size_bytes > 0 &&
         special_is(vocabulary_kind(tokenizer, id), controls);
}

// Whether this is the last of the tokens with the same text, which is the one that is found.
static bool is_last(const tokenizer *tokenizer, int32_t id, bool controls) {
  const gguf_string text = vocabulary_text(tokenizer, id);
  for (int32_t other = id + 1; (uint32_t)other < tokenizer_vocab(tokenizer); other++) {
    const gguf_string same = vocabulary_text(tokenizer, other);
    if (is_wanted(tokenizer, other, controls) && same.size_bytes == text.size_bytes &&
        memcmp(same.bytes, text.bytes, (size_t)text.size_bytes) == 0) {
      return false;
    }
  }
  return true;
}

static bool stands_free(const plain_search *search, size_t at, gguf_string text) {
  if (at + text.size_bytes > search->size_bytes) return false;
  if (memcmp(search->text + at, text.bytes, (size_t)text.size_bytes) != 0) return false;
  for (size_t i = at; i < at + text.size_bytes; i++) {
    if (search->taken[i] != TOKEN_NONE) return false;
  }
  return true;
}

// In text written by the template, any token is allowed; elsewhere only unguarded user-defined
// ones. If several tokens have the same text, the last one of its kind is used.
static bool may_stand(const plain_search *search, size_t at, size_t length, int32_t id,
                      bool controls) {
  const tokenizer *tokenizer = search->tokenizer;
  bool has_content = false;
  for (size_t i = at; search->is_content != NULL && i < at + length; i++) {
    has_content = has_content || search->is_content[i];
  }
  if (!has_content) return is_last(tokenizer, id, controls);
  return vocabulary_kind(tokenizer, id) == TOKEN_USER_DEFINED && is_last(tokenizer, id, false) &&
         (tokenizer->flags[id] & TOKEN_GUARDED) == 0;
}

static bool is_free_space(const plain_search *search, size_t at) {
  const char c = search->text[at];
  return search->taken[at] == TOKEN_NONE && (c == ' ' || (c >= '\t' && c <= '\r'));
}

static void plain_take(plain_search *search, size_t begin, size_t end, int32_t id) {
  for (size_t i = begin; i < end; i++) search->taken[i] = id;
  const bool strips = (search->tokenizer->flags[id] & TOKEN_STRIPS_RIGHT) != 0;
  for (; strips && end < search->size_bytes && is_free_space(search, end); end++) {
    search->taken[end] = id;
  }
  search->matches[search->count++] = (special_match){(uint32_t)begin, (uint32_t)end, id};
}

static int by_place(const void *a, const void *b) {
  const special_match *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void plain_find(plain_search *search, bool controls) {
  const tokenizer *tokenizer = search->tokenizer;
  for (size_t i = 0; i < search->size_bytes; i++) search->taken[i] = TOKEN_NONE;
  for (size_t length = search->size_bytes; length > 0; length--) {
    for (int32_t id = 0; (uint32_t)id < tokenizer_vocab(tokenizer); id++) {
      const gguf_string text = vocabulary_text(tokenizer, id);
      if (text.size_bytes != length || !is_wanted(tokenizer, id, controls)) continue;
      for (size_t at = 0; at < search->size_bytes; at++) {
        if (!stands_free(search, at, text) || !may_stand(search, at, length, id, controls))
          continue;
        plain_take(search, at, at + length, id);
      }
    }
  }
  qsort(search->matches, search->count, sizeof *search->matches, by_place);
}

// ---- comparison ----

// Compares both searches; `is_content` has size_bytes items or is NULL.
static void compare(vocabulary_fixture *fixture, const char *text, size_t size_bytes, bool controls,
                    const bool *is_content) {
  plain_search plain = {.tokenizer = fixture->tokenizer,
                        .text = text,
                        .size_bytes = size_bytes,
                        .is_content = is_content};
  wick_span spans[TEXT_MOST];
  size_t span_count = 0;
  for (size_t i = 0; is_content != NULL && i < size_bytes; i++) {
    if (i == 0 || is_content[i] != is_content[i - 1])
      spans[span_count++].is_content = is_content[i];
    spans[span_count - 1].end = (uint32_t)i + 1;
  }
  plain_find(&plain, controls);
  special_search search = {0};
  const special_text searched = {(const uint8_t *)text, (uint32_t)size_bytes,
                                 is_content != NULL ? spans : NULL, span_count};
  CHECK_EQ_INT(special_find(&search, fixture->tokenizer, &searched, controls, &fixture->error),
               WICK_OK);
  special_match match;
  size_t count = 0;
  bool is_same = true;
  for (; special_next(&search, &match); count++) {
    if (count >= plain.count) continue;
    const special_match *wanted = &plain.matches[count];
    is_same = is_same && match.begin == wanted->begin && match.end == wanted->end &&
              match.token == wanted->token;
  }
  if (!CHECK(is_same && count == plain.count)) printf("#   '%.*s'\n", (int)size_bytes, text);
  special_free(&search, &fixture->memory);
}

// Makes tokens from few letters, so that they nest, overlap and repeat.
static size_t make_tokens(uint64_t *state, fixture_token *tokens, char texts[][16]) {
  static const token_kind KINDS[] = {TOKEN_USER_DEFINED, TOKEN_CONTROL, TOKEN_UNKNOWN,
                                     TOKEN_NORMAL};
  const size_t count = (size_t)(1 + random_below(state, TOKENS_MOST - 1));
  const uint64_t letters = 1 + random_below(state, 3), length_most = 1 + random_below(state, 14);
  for (size_t i = 0; i < count; i++) {
    const size_t length = (size_t)random_below(state, length_most + 1);
    for (size_t k = 0; k < length; k++) texts[i][k] = "ab "[random_below(state, letters)];
    texts[i][length] = '\0';
    tokens[i] = (fixture_token){texts[i], KINDS[random_below(state, 4)], 0};
  }
  return count;
}

TEST(finds_the_same_tokens_as_a_simple_search) {
  uint64_t state = 13;
  for (int round = 0; round < 400; round++) {
    fixture_token tokens[TOKENS_MOST];
    char texts[TOKENS_MOST][16], text[TEXT_MOST];
    const size_t count = make_tokens(&state, tokens, texts);
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "llama",
                                                            .name = round % 3 == 0 ? "phi-3" : NULL,
                                                            .tokens = tokens,
                                                            .token_count = count});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    for (int i = 0; i < 12; i++) {
      const size_t size = (size_t)random_below(&state, TEXT_MOST + 1);
      for (size_t k = 0; k < size; k++) text[k] = "aaabb c"[random_below(&state, 7)];
      compare(&fixture, text, size, i % 2 == 0, NULL);
    }
    fixture_close(&fixture);
  }
}

TEST(content_may_only_contain_unguarded_user_defined_tokens) {
  uint64_t state = 31;
  for (int round = 0; round < 400; round++) {
    fixture_token tokens[TOKENS_MOST];
    char texts[TOKENS_MOST][16], text[TEXT_MOST];
    bool is_content[TEXT_MOST];
    const size_t count = make_tokens(&state, tokens, texts);
    vocabulary_fixture fixture;
    fixture_open_vocabulary(
        &fixture, &(fixture_vocabulary){.model = "llama", .tokens = tokens, .token_count = count});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    for (size_t id = 0; id < count; id++) {
      const bool is_guarded = special_is(tokens[id].kind, false) && random_below(&state, 3) == 0;
      if (is_guarded) fixture.tokenizer->flags[id] |= TOKEN_GUARDED;
    }
    // tokens with the same text are guarded together, as in tokenizer_guard
    for (size_t a = 0; a < count; a++) {
      for (size_t b = 0; b < count; b++) {
        if (strcmp(texts[a], texts[b]) != 0 || !special_is(tokens[b].kind, false)) continue;
        if (!special_is(tokens[a].kind, false)) continue;
        fixture.tokenizer->flags[b] |= fixture.tokenizer->flags[a] & TOKEN_GUARDED;
      }
    }
    for (int i = 0; i < 12; i++) {
      const size_t size = 1 + (size_t)random_below(&state, TEXT_MOST);
      for (size_t k = 0; k < size; k++) {
        text[k] = "aaabb c"[random_below(&state, 7)];
        is_content[k] = k > 0 && random_below(&state, 6) != 0 ? is_content[k - 1]
                                                              : random_below(&state, 2) == 0;
      }
      compare(&fixture, text, size, true, is_content);
    }
    fixture_close(&fixture);
  }
}

TEST(guards_tokens_in_the_template_and_tokens_that_look_like_control_tokens) {
  static const fixture_token tokens[] = {
      {"<think>", TOKEN_USER_DEFINED, 0},     {"<table>", TOKEN_USER_DEFINED, 0},
      {"<|channel|>", TOKEN_USER_DEFINED, 0}, {"user", TOKEN_USER_DEFINED, 0},
      {"<|im_end|>", TOKEN_CONTROL, 0},       {"\n\n", TOKEN_USER_DEFINED, 0},
      {"<｜User｜>", TOKEN_USER_DEFINED, 0},  {"<|open", TOKEN_USER_DEFINED, 0},
      {"<｜open", TOKEN_USER_DEFINED, 0}};
  static const bool guarded[] = {true, false, true, false, true, false, true, false, false};
  enum { COUNT = sizeof tokens / sizeof *tokens };
  static const char template[] = "{{ 'user<think>\n\n' }}<|im_end|>";
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture, &(fixture_vocabulary){.model = "llama", .tokens = tokens, .token_count = COUNT});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  tokenizer_guard(fixture.tokenizer, template, strlen(template));
  for (size_t id = 0; id < COUNT; id++) {
    CHECK_EQ_INT((fixture.tokenizer->flags[id] & TOKEN_GUARDED) != 0, guarded[id]);
  }
  fixture_close(&fixture);
}

// ---- steps ----

// Returns the number of steps per byte for text that repeats `piece`.
static double steps_of(vocabulary_fixture *fixture, const char *piece, size_t piece_bytes) {
  enum { SIZE = 1 << 18 };
  static uint8_t text[SIZE];
  const uint32_t size = SIZE / level_step(4);
  for (size_t i = 0; i < size; i++) text[i] = (uint8_t)piece[i % piece_bytes];
  special_search search = {0};
  const special_text searched = {text, size, NULL, 0};
  CHECK_EQ_INT(special_find(&search, fixture->tokenizer, &searched, true, &fixture->error),
               WICK_OK);
  const double steps = (double)search.steps / (double)size;
  CHECK(search.steps >= size);
  special_free(&search, &fixture->memory);
  return steps;
}

typedef struct long_tokens {
  fixture_token tokens[2 * SPECIAL_TOKEN_BYTES_MAX];
  char texts[2 * SPECIAL_TOKEN_BYTES_MAX][SPECIAL_TOKEN_BYTES_MAX + 1];
  size_t count;
} long_tokens;

static void add_token(long_tokens *list, size_t letters, char letter, char last) {
  char *text = list->texts[list->count];
  memset(text, letter, letters);
  text[letters] = last;
  text[letters + 1] = '\0';
  list->tokens[list->count++] = (fixture_token){text, TOKEN_USER_DEFINED, 0};
}

static void check_steps(const char *what, const long_tokens *list) {
  static const char *const PIECES[] = {"a", "b", "ab", "ba", "aab", "aaaaaaab", "aaaac"};
  static char runs[8][1200];
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture,
      &(fixture_vocabulary){.model = "llama", .tokens = list->tokens, .token_count = list->count});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  double worst = 0;
  for (size_t i = 0; i < sizeof PIECES / sizeof PIECES[0]; i++) {
    const double steps = steps_of(&fixture, PIECES[i], strlen(PIECES[i]));
    worst = steps > worst ? steps : worst;
  }
  for (size_t i = 0; i < 8; i++) {  // runs of letters whose last one belongs to a different token
    const size_t length = 40 + 130 * i;
    memset(runs[i], 'a', length);
    runs[i][length] = i % 2 == 0 ? 'b' : 'c';
    const double steps = steps_of(&fixture, runs[i], length + 1);
    worst = steps > worst ? steps : worst;
  }
  printf("#   %s: %zu tokens, at most %g steps per byte\n", what, list->count, worst);
  CHECK(worst <= 5);
  fixture_close(&fixture);
}

TEST(steps_do_not_grow_with_the_vocabulary) {
  static long_tokens list;
  const size_t sizes[] = {16, 429, SPECIAL_TOKEN_BYTES_MAX - 1};
  for (size_t i = 0; i < 3; i++) {
    list.count = 0;
    for (size_t n = 0; n < sizes[i]; n++) add_token(&list, n, 'a', 'a');
    check_steps("each is a prefix of the next", &list);
    for (size_t n = 0; n < sizes[i]; n++) add_token(&list, n, 'a', 'b');
    check_steps("the same and with a different last letter", &list);
    list.count = 0;
    for (size_t n = 1; n <= sizes[i]; n *= 2) add_token(&list, n - 1, 'a', 'a');
    add_token(&list, sizes[i] / 2, 'a', 'b');
    add_token(&list, sizes[i] - 1, 'a', 'c');
    check_steps("lengths that are powers of two", &list);
    list.count = 0;
    for (size_t n = 1; n <= sizes[i]; n++) {
      add_token(&list, n - 1, 'a', 'a');
      list.texts[n - 1][0] = 'b';
    }
    check_steps("each is a suffix of the next", &list);
  }
}

TEST(the_table_stays_within_its_planned_size) {
  static long_tokens list;
  list.count = 0;
  for (size_t n = 0; n < 300; n++) {
    add_token(&list, 1 + n, (char)('a' + n % 26), (char)('A' + n % 23));
  }
  vocabulary_fixture fixture;
  fixture_open_vocabulary(
      &fixture,
      &(fixture_vocabulary){.model = "llama", .tokens = list.tokens, .token_count = list.count});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  size_t bytes;
  (void)vocabulary_count_named(&bytes);
  for (size_t i = 0; i < list.count; i++) bytes += strlen(list.texts[i]);
  CHECK(fixture.tokenizer->specials.node_count <= bytes + 1);
  CHECK(fixture.tokenizer->specials.node_count > bytes / 2);
  CHECK_EQ_UINT(fixture.tokenizer->specials.text_count, 300);
  fixture_close(&fixture);
}
