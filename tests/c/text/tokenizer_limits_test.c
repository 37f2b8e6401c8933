// Tokenizers at their limits and with hostile input: small buffers, allocation failures, megabytes
// of text made to be slow, unusual and broken vocabularies.
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "platform/platform.h"
#include "random.h"
#include "vocabulary_fixture.h"

// ---- sizes and memory ----

TEST(the_number_of_tokens_is_reported_if_they_do_not_fit) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  int32_t ids[4] = {-7, -7, -7, -7};
  size_t count = 0;
  CHECK_EQ_INT(tokenizer_encode(fixture.tokenizer, "aaaa", 4, WICK_TOKENIZE_ADD_SPECIAL, ids, 3,
                                &count, &fixture.error),
               WICK_E_FULL);
  CHECK_EQ_UINT(count, 5);
  CHECK_EQ_INT(ids[2], 260);
  CHECK_EQ_INT(ids[3], -7);
  CHECK_EQ_INT(tokenizer_encode(fixture.tokenizer, "aaaa", 4, 0, NULL, 0, &count, NULL),
               WICK_E_FULL);
  CHECK_EQ_UINT(count, 4);
  fixture_close(&fixture);
}

TEST(text_beyond_the_size_limit_is_rejected) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  int32_t ids[4];
  size_t count = 9;
  const size_t size_bytes = (size_t)UINT32_MAX;
  CHECK_EQ_INT(
      tokenizer_encode(fixture.tokenizer, "a", size_bytes, 0, ids, 4, &count, &fixture.error),
      WICK_E_OVERFLOW);
  CHECK_EQ_UINT(count, 0);
  CHECK(strstr(fixture.error.message, "text of 4294967295 bytes is too long") != NULL);
  fixture_close(&fixture);
}

TEST(null_counts_as_empty_text) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  int32_t ids[4];
  size_t count = 9;
  const uint32_t flags = WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL;
  CHECK_EQ_INT(tokenizer_encode(fixture.tokenizer, NULL, 0, flags, ids, 4, &count, NULL), WICK_OK);
  CHECK_EQ_UINT(count, 1);  // only the begin token
  fixture_close(&fixture);
}

static void check_plan(const vocabulary_fixture *fixture, uint64_t metadata_bytes) {
  memory_gate memory;
  wick_error error;
  tokenizer *made;
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(tokenizer_create(&memory, fixture->directory, NULL, &made, &error) == WICK_OK);
  const uint64_t plan = tokenizer_plan_bytes(fixture->directory);
  CHECK(memory.bytes_peak <= plan);
  CHECK(memory.bytes_peak * 10 >= plan * 9);
  CHECK(metadata_bytes == 0 || memory.bytes_peak <= 2 * metadata_bytes);
  tokenizer_destroy(made);
}

TEST(allocates_the_planned_memory) {
  vocabulary_fixture fixture;
  fixture_open_spm_bytes(&fixture);
  check_plan(&fixture, 0);
  fixture_close(&fixture);
}

TEST(real_vocabularies_take_at_most_twice_the_size_of_their_metadata) {
  static const char *const FILES[] = {"qwen2", "llama-bpe", "gpt-2",         "llama-spm",
                                      "phi-3", "bert-bge",  "nomic-bert-moe"};
  for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
    char relative[64];
    snprintf(relative, sizeof relative, "vectors/vocab/ggml-vocab-%s.gguf", FILES[i]);
    const char *path = check_shared(relative);
    if (path == NULL) SKIP("no shared folder");
    vocabulary_fixture fixture;
    fixture_open_file(&fixture, path);
    if (CHECK_EQ_INT(fixture.status, WICK_OK)) {
      check_plan(&fixture, gguf_directory_bytes(fixture.directory));
    }
    fixture_close(&fixture);
  }
}

// Makes each allocation fail in turn while a vocabulary is read and text is encoded.
static void check_failing_allocations(const fixture_vocabulary *vocabulary, const char *text) {
  size_t size, count;
  uint8_t *bytes = fixture_write_vocabulary(vocabulary, &size);
  vocabulary_fixture fixture;
  fixture_open_bytes(&fixture, bytes, size);
  free(bytes);
  REQUIRE(fixture.status == WICK_OK);
  tokenizer_destroy(fixture.tokenizer);
  fixture.tokenizer = NULL;
  bool failed = true;
  for (uint64_t k = 1; failed; k++) {
    memory_gate memory;
    wick_error error = {0};
    tokenizer *made = NULL;
    int32_t ids[1024];
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    wick_status status = tokenizer_create(&memory, fixture.directory, NULL, &made, &error);
    if (status == WICK_OK) {
      const uint64_t blocks = memory.blocks_now;
      status = tokenizer_encode(made, text, strlen(text), WICK_TOKENIZE_PARSE_SPECIAL, ids, 1024,
                                &count, &error);
      CHECK_EQ_UINT(memory.blocks_now, blocks);
    }
    failed = memory.calls >= k;
    CHECK_EQ_INT(status, failed ? WICK_E_NOMEM : WICK_OK);
    CHECK_EQ_INT(error.status, status);
    tokenizer_destroy(made);
    CHECK_EQ_UINT(memory.blocks_now, 0);
    CHECK(k < 100);
  }
  fixture_close(&fixture);
}

// Long enough to make every table grow and to use the word cache.
#define AB_OF_64 "abababababababababababababababababababababababababababababababab"
static const char LONG_TEXT[] =
    "xyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxy"
    "xyxyxy"
    "\xff<s>"
    "abababababababababababababababababababababababababababababababababababababababababababababab"
    "ababababababababababababababababababababababababababababababababababababababababababababababab"
    "ababab"
    "ababababababababababababababababababababababababababababababababababababababababababababababab"
    "ababab" AB_OF_64 AB_OF_64 AB_OF_64 AB_OF_64 AB_OF_64 AB_OF_64 AB_OF_64 AB_OF_64;

TEST(allocation_failures_are_reported_and_leak_nothing) {
  static fixture_token tokens[FIXTURE_ALPHABET + 3];
  size_t count = fixture_add_alphabet(tokens);
  tokens[count++] = (fixture_token){"xy", TOKEN_USER_DEFINED, 0};
  tokens[count++] = (fixture_token){"<s>", TOKEN_CONTROL, 0};
  tokens[count++] = (fixture_token){"ab", TOKEN_NORMAL, -1};
  static const char *const MERGES[] = {"a b"};
  check_failing_allocations(&(fixture_vocabulary){.model = "gpt2",
                                                  .pre = "llama-bpe",
                                                  .tokens = tokens,
                                                  .token_count = count,
                                                  .merges = MERGES,
                                                  .merge_count = 1},
                            LONG_TEXT);
  check_failing_allocations(
      &(fixture_vocabulary){.model = "llama", .tokens = tokens, .token_count = count}, LONG_TEXT);
  check_failing_allocations(
      &(fixture_vocabulary){.model = "bert", .tokens = tokens, .token_count = count}, LONG_TEXT);
  check_failing_allocations(
      &(fixture_vocabulary){.model = "t5", .tokens = tokens, .token_count = count}, LONG_TEXT);
  check_failing_allocations(
      &(fixture_vocabulary){.model = "rwkv", .tokens = tokens, .token_count = count}, LONG_TEXT);
  check_failing_allocations(&(fixture_vocabulary){.model = "gemma4",
                                                  .tokens = tokens,
                                                  .token_count = count,
                                                  .merges = MERGES,
                                                  .merge_count = 1},
                            LONG_TEXT);
}

// ---- hostile text and files ----

// Encodes up to a megabyte; a quadratic algorithm would take many minutes.
static void check_time(vocabulary_fixture *fixture, const char *what, const uint8_t *text,
                       size_t size) {
  size_t count = 0;
  const uint64_t begin_us = platform_now_us();
  int32_t *ids = fixture_encode(fixture, text, size, WICK_TOKENIZE_PARSE_SPECIAL, &count);
  const uint64_t elapsed_ms = (platform_now_us() - begin_us) / 1000;
  CHECK(ids != NULL);
  if (!CHECK(elapsed_ms < 120000)) printf("# %s: %llu ms\n", what, (unsigned long long)elapsed_ms);
  free(ids);
}

static void check_hostile(const char *vocabulary) {
  enum { MEGABYTE = 1000000 };
  const char *path = check_shared(vocabulary);
  if (path == NULL) SKIP("no shared folder");
  vocabulary_fixture fixture;
  fixture_open_file(&fixture, path);
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  static uint8_t text[MEGABYTE];
  const size_t size = MEGABYTE / level_step(4);
  memset(text, 'a', size);
  check_time(&fixture, "one letter", text, size);
  memset(text, ' ', size);
  check_time(&fixture, "spaces", text, size);
  for (size_t i = 0; i < size; i++) text[i] = (uint8_t)hash_mix_u64(i);
  check_time(&fixture, "random bytes", text, size);
  static const char SPECIAL[] = "<|im_start|><s";
  for (size_t i = 0; i < size; i++) text[i] = (uint8_t)SPECIAL[i % (sizeof SPECIAL - 1)];
  check_time(&fixture, "special tokens", text, size);
  fixture_close(&fixture);
}

TEST(a_hostile_megabyte_is_encoded_in_linear_time_by_bpe) {
  check_hostile("vectors/vocab/ggml-vocab-qwen2.gguf");
}

TEST(a_hostile_megabyte_is_encoded_in_linear_time_by_spm) {
  check_hostile("vectors/vocab/ggml-vocab-llama-spm.gguf");
}

TEST(a_hostile_megabyte_is_encoded_in_linear_time_by_unigram) {
  check_hostile("vectors/vocab/ggml-vocab-nomic-bert-moe.gguf");
}

TEST(a_hostile_megabyte_is_encoded_in_linear_time_by_wordpiece) {
  check_hostile("vectors/vocab/ggml-vocab-bert-bge.gguf");
}

// Each merge doubles the length of the word's tokens, so every symbol takes part in every round.
TEST(deep_merges_take_linear_time) {
  static fixture_token tokens[FIXTURE_ALPHABET + 12];
  static char texts[12][4100], merges[12][8200];
  const char *merge_list[12];
  size_t count = fixture_add_alphabet(tokens), length = 1;
  for (size_t i = 0; i < 12; i++, length *= 2) {
    memset(texts[i], 'q', 2 * length);
    memset(merges[i], 'q', 2 * length + 1);
    merges[i][length] = ' ';
    merge_list[i] = merges[i];
    tokens[count++] = (fixture_token){texts[i], TOKEN_NORMAL, 0};
  }
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .pre = "gpt-2",
                                                          .tokens = tokens,
                                                          .token_count = count,
                                                          .merges = merge_list,
                                                          .merge_count = 12});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  const size_t size = 1 << 20;
  uint8_t *text = malloc(size);
  REQUIRE(text != NULL);
  memset(text, 'q', size);
  check_time(&fixture, "deep merges", text, size);
  size_t found = 0;
  int32_t *ids = fixture_encode(&fixture, text, size, 0, &found);
  CHECK_EQ_UINT(found, size / 4096);
  free(ids);
  free(text);
  fixture_close(&fixture);
}

static void check_refused(const fixture_vocabulary *vocabulary, wick_status status,
                          const char *named) {
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, vocabulary);
  CHECK_EQ_INT(fixture.status, status);
  if (!CHECK(strstr(fixture.error.message, named) != NULL)) fixture_report(&fixture);
  fixture_close(&fixture);
}

TEST(unsupported_models_and_pretokenizers_are_rejected_by_name) {
  static const fixture_token TOKENS[] = {{"a", TOKEN_NORMAL, 0}, {"b", TOKEN_NORMAL, 0}};
  static const char *const MERGES[] = {"a b"};
  fixture_vocabulary vocabulary = {.model = "gpt2",
                                   .pre = "no-such-thing",
                                   .tokens = TOKENS,
                                   .token_count = 2,
                                   .merges = MERGES,
                                   .merge_count = 1};
  check_refused(&vocabulary, WICK_E_UNSUPPORTED, "no-such-thing");
  vocabulary.model = "plamo2";
  check_refused(&vocabulary, WICK_E_UNSUPPORTED, "plamo2");
  vocabulary.model = "none";
  check_refused(&vocabulary, WICK_E_NODATA, "no tokenizer");
  vocabulary.model = NULL;
  check_refused(&vocabulary, WICK_E_FORMAT, "tokenizer.ggml.model");
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.merges = NULL;
  check_refused(&vocabulary, WICK_E_FORMAT, "tokenizer.ggml.merges");
  vocabulary.merges = MERGES;
  vocabulary.token_count = 0;
  check_refused(&vocabulary, WICK_E_FORMAT, "tokenizer.ggml.tokens");
  static char long_text[1025];
  memset(long_text, 'x', 1024);
  const fixture_token long_token = {long_text, TOKEN_CONTROL, 0};
  vocabulary.tokens = &long_token;
  vocabulary.token_count = 1;
  check_refused(&vocabulary, WICK_E_UNSUPPORTED, "1024");
}

// These families look for every token at every position of the text.
TEST(long_unigram_and_rwkv_tokens_are_rejected) {
  static char text[1100];
  const fixture_token token = {text, TOKEN_NORMAL, 0};
  fixture_vocabulary vocabulary = {.tokens = &token, .token_count = 1};
  for (int i = 0; i < 2; i++) {
    vocabulary.model = i == 0 ? "t5" : "rwkv";
    memset(text, 'x', 1025);
    text[1025] = '\0';
    check_refused(&vocabulary, WICK_E_UNSUPPORTED, "1025");
    text[1024] = '\0';
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &vocabulary);
    CHECK_EQ_INT(fixture.status, WICK_OK);
    fixture_close(&fixture);
  }
}

// Nothing is merged, so each byte or character is a separate token.
TEST(a_list_of_merges_may_be_empty) {
  static const char *const MODELS[] = {"gpt2", "gemma4"};
  static const char *const NONE[] = {"a b"};
  for (int i = 0; i < 2; i++) {
    fixture_token tokens[FIXTURE_ALPHABET + 1];
    fixture_add_alphabet(tokens);
    tokens[FIXTURE_ALPHABET] = (fixture_token){"ab", TOKEN_NORMAL, 0};
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = MODELS[i],
                                                            .tokens = tokens,
                                                            .token_count = FIXTURE_ALPHABET + 1,
                                                            .merges = NONE,
                                                            .merge_count = 0});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    check_plan(&fixture, 0);
    size_t count = 0;
    int32_t *ids = fixture_encode(&fixture, "ab", 2, 0, &count);
    REQUIRE(ids != NULL);
    CHECK_EQ_UINT(count, 2);
    CHECK_EQ_INT(ids[0], 'a');
    CHECK_EQ_INT(ids[1], 'b');
    free(ids);
    fixture_close(&fixture);
  }
}

// Merges without meaning are ignored; of several rules for a pair, the first one is used.
TEST(invalid_merges_are_ignored) {
  static const char *const MERGES[] = {"",     "x",    "ab",  "a ",   " a",    "zz b", "a b",
                                       "ab c", "ab q", "b c", "ab c", "a b c", "c c",  "a b"};
  static fixture_token tokens[FIXTURE_ALPHABET + 3];
  size_t count = fixture_add_alphabet(tokens);
  tokens[count++] = (fixture_token){"bc", TOKEN_NORMAL, 0};
  tokens[count++] = (fixture_token){"ab", TOKEN_NORMAL, 0};
  tokens[count++] =
      (fixture_token){"abc", TOKEN_NORMAL, 0};  // the last one, before others are made
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .pre = "gpt-2",
                                                          .tokens = tokens,
                                                          .token_count = count,
                                                          .merges = MERGES,
                                                          .merge_count = 14});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  static const struct {
    const char *text;
    size_t count;
    int32_t ids[4];
  } CASES[] = {{"abc", 1, {258}},     {"ab", 1, {257}},       {"bc", 1, {256}},
               {"cc", 2, {'c', 'c'}}, {"abq", 2, {257, 'q'}}, {"bcab", 2, {256, 257}}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    size_t found = 0;
    int32_t *ids = fixture_encode(&fixture, CASES[i].text, strlen(CASES[i].text), 0, &found);
    REQUIRE(ids != NULL);
    CHECK_EQ_UINT(found, CASES[i].count);
    for (size_t k = 0; k < found && k < CASES[i].count; k++) {
      CHECK_EQ_INT(ids[k], CASES[i].ids[k]);
    }
    free(ids);
  }
  fixture_close(&fixture);
}

// A word longer than every token is not looked up as a whole, because it would exceed the buffer.
TEST(long_words_of_short_tokens_are_encoded) {
  static fixture_token tokens[FIXTURE_ALPHABET];
  fixture_add_alphabet(tokens);
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .pre = "llama-bpe",
                                                          .tokens = tokens,
                                                          .token_count = FIXTURE_ALPHABET,
                                                          .merges = (const char *[]){"a b"},
                                                          .merge_count = 1});
  REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
  char word[3000];
  memset(word, 'w', sizeof word);
  size_t count = 0;
  int32_t *ids = fixture_encode(&fixture, word, sizeof word, 0, &count);
  REQUIRE(ids != NULL);
  CHECK_EQ_UINT(count, sizeof word);
  CHECK_EQ_INT(ids[2999], 'w');
  free(ids);
  fixture_close(&fixture);
}

// The first and last characters of each UTF-8 length are single tokens, both encoded and decoded.
TEST(characters_at_the_utf_8_length_limits_are_not_split) {
  static const char *const EDGES[] = {"\x7f",         "\xc2\x80",         "\xdf\xbf",
                                      "\xe0\xa0\x80", "\xed\x9f\xbf",     "\xee\x80\x80",
                                      "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  enum { EDGE_COUNT = sizeof EDGES / sizeof EDGES[0] };
  static const char *const MODELS[] = {"llama", "gemma4"};
  for (int m = 0; m < 2; m++) {
    fixture_token tokens[EDGE_COUNT + 1] = {{"<unk>", TOKEN_UNKNOWN, 0}};
    char text[64] = "";
    for (size_t i = 0; i < EDGE_COUNT; i++) {
      tokens[i + 1] = (fixture_token){EDGES[i], TOKEN_NORMAL, 0};
      strcat(text, EDGES[i]);
    }
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = MODELS[m],
                                                            .tokens = tokens,
                                                            .token_count = EDGE_COUNT + 1,
                                                            .merges = MODELS,
                                                            .merge_count = 0});
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    size_t count = 0, size_bytes = 0;
    int32_t *ids = fixture_encode(&fixture, text, strlen(text), 0, &count);
    REQUIRE(ids != NULL);
    const size_t lead = count - EDGE_COUNT;  // SPM's space is unknown here and takes three bytes
    CHECK_EQ_UINT(lead, m == 0 ? 3 : 0);
    for (size_t i = 0; i < EDGE_COUNT; i++) CHECK_EQ_INT(ids[lead + i], (int)i + 1);
    char *back = fixture_decode(&fixture, ids + lead, EDGE_COUNT, &size_bytes);
    CHECK_EQ_UINT(size_bytes, strlen(text));
    CHECK_EQ_MEM(back, text, size_bytes);
    free(back);
    free(ids);
    fixture_close(&fixture);
  }
}

// A token of a megabyte is accepted and a longer one is rejected, because every piece of text needs
// a buffer for the longest token.
TEST(a_token_has_at_most_a_megabyte) {
  enum { MOST = 1 << 20 };
  static char text[MOST + 2];
  memset(text, 'x', MOST + 1);
  for (size_t more = 0; more < 2; more++) {
    text[MOST + more] = '\0';
    const fixture_token token = {text, TOKEN_NORMAL, 0};
    const fixture_vocabulary vocabulary = {.model = "llama", .tokens = &token, .token_count = 1};
    if (more != 0) {
      check_refused(&vocabulary, WICK_E_UNSUPPORTED, "token 0 has 1048577 bytes");
      break;
    }
    vocabulary_fixture fixture;
    fixture_open_vocabulary(&fixture, &vocabulary);
    CHECK_EQ_INT(fixture.status, WICK_OK);
    fixture_close(&fixture);
    text[MOST] = 'x';
  }
}

TEST(a_missing_pretokenizer_means_the_default) {
  fixture_token tokens[FIXTURE_ALPHABET];
  fixture_add_alphabet(tokens);
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .tokens = tokens,
                                                          .token_count = FIXTURE_ALPHABET,
                                                          .merges = (const char *[]){"a b"},
                                                          .merge_count = 1});
  CHECK_EQ_INT(fixture.status, WICK_OK);
  fixture_close(&fixture);
}

TEST(unusual_vocabularies_are_read_or_rejected_with_a_reason) {
  static const struct {
    const char *file;
    wick_status status;
    const char *named;
  } CASES[] = {
      {"tok-missing-model", WICK_E_FORMAT, "tokenizer.ggml.model"},
      {"tok-unknown-model", WICK_E_UNSUPPORTED, "zzz"},
      {"tok-no-tokens", WICK_E_FORMAT, "tokenizer.ggml.tokens"},
      {"tok-type-count", WICK_E_FORMAT, "tokenizer.ggml.token_type"},
      {"tok-type-wild", WICK_OK, ""},
      {"tok-count-vs-embd", WICK_E_FORMAT, "tokenizer.ggml.token_type"},
      {"tok-bos-out-of-range", WICK_OK, ""},
      {"tok-merge-unknown", WICK_OK, ""},
      {"tok-duplicate", WICK_OK, ""},
      {"tok-invalid-utf8", WICK_OK, ""},
      {"tok-array-of-numbers", WICK_E_FORMAT, "tokenizer.ggml.tokens"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    char relative[64];
    snprintf(relative, sizeof relative, "vectors/reference/corrupt/%s.gguf", CASES[i].file);
    const char *path = check_shared(relative);
    if (path == NULL) SKIP("no shared folder");
    vocabulary_fixture fixture;
    fixture_open_file(&fixture, path);
    if (!CHECK_EQ_INT(fixture.status, CASES[i].status) ||
        !CHECK(strstr(fixture.error.message, CASES[i].named) != NULL)) {
      printf("# %s: %s\n", CASES[i].file, fixture.error.message);
    }
    if (fixture.status == WICK_OK) {
      size_t count = 0;
      free(fixture_encode(&fixture, "a b\xff\n<s>", 8, WICK_TOKENIZE_PARSE_SPECIAL, &count));
      CHECK_EQ_INT(fixture.status, WICK_OK);
    }
    fixture_close(&fixture);
  }
}

TEST(an_unknown_pretokenizer_can_be_overridden) {
  fixture_token tokens[FIXTURE_ALPHABET + 1];
  fixture_add_alphabet(tokens);
  tokens[FIXTURE_ALPHABET] = (fixture_token){"11", TOKEN_NORMAL, 0};
  static const char *const MERGES[] = {"1 1"};
  vocabulary_fixture fixture;
  fixture_open_vocabulary(&fixture, &(fixture_vocabulary){.model = "gpt2",
                                                          .pre = "no-such-thing",
                                                          .tokens = tokens,
                                                          .token_count = FIXTURE_ALPHABET + 1,
                                                          .merges = MERGES,
                                                          .merge_count = 1});
  CHECK_EQ_INT(fixture.status, WICK_E_UNSUPPORTED);
  static const struct {
    const char *pre;
    size_t count;
  } CASES[] = {{"gpt-2", 1}, {"qwen2", 2}};
  for (size_t i = 0; i < 2; i++) {
    fixture.status = tokenizer_create(&fixture.memory, fixture.directory, CASES[i].pre,
                                      &fixture.tokenizer, &fixture.error);
    REQUIRE(CHECK_EQ_INT(fixture.status, WICK_OK));
    size_t count = 0;
    int32_t *ids = fixture_encode(&fixture, "11", 2, 0, &count);
    CHECK_EQ_UINT(count, CASES[i].count);
    free(ids);
    tokenizer_destroy(fixture.tokenizer);
    fixture.tokenizer = NULL;
  }
  CHECK_EQ_INT(tokenizer_create(&fixture.memory, fixture.directory, "neither", &fixture.tokenizer,
                                &fixture.error),
               WICK_E_UNSUPPORTED);
  CHECK(strstr(fixture.error.message, "neither") != NULL);
  fixture_close(&fixture);
}
