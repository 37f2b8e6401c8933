// Encoding speed for ordinary and hostile text with each kind of vocabulary. The test checks that
// the time for hostile text grows linearly with its length; with WICK_BENCH=1 it prints all rates
// (MB/s, one thread).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "platform/platform.h"
#include "random.h"
#include "vocabulary_fixture.h"

enum { MEGABYTE = 1000000 };

static const char *const VOCABULARIES[] = {
    "qwen2",   "llama-bpe", "gpt-2", "deepseek-llm", "falcon",         "starcoder",
    "gemma-4", "llama-spm", "phi-3", "bert-bge",     "nomic-bert-moe",
};
enum { VOCABULARY_COUNT = sizeof VOCABULARIES / sizeof VOCABULARIES[0] };

// ---- a megabyte of text ----

typedef void (*fill_text)(uint8_t *text, size_t size);

static void fill_with(uint8_t *text, size_t size, const char *piece) {
  const size_t length = strlen(piece);
  for (size_t i = 0; i < size; i++) text[i] = (uint8_t)piece[i % length];
}

static void fill_letter(uint8_t *text, size_t size) { memset(text, 'a', size); }
static void fill_capital(uint8_t *text, size_t size) { memset(text, 'A', size); }
static void fill_spaces(uint8_t *text, size_t size) { memset(text, ' ', size); }
static void fill_newlines(uint8_t *text, size_t size) { memset(text, '\n', size); }
static void fill_digits(uint8_t *text, size_t size) { memset(text, '1', size); }
static void fill_marks(uint8_t *text, size_t size) { fill_with(text, size, "\u0301"); }
static void fill_accents(uint8_t *text, size_t size) { fill_with(text, size, "e\u0301"); }
static void fill_broken(uint8_t *text, size_t size) { memset(text, 0xff, size); }
static void fill_cut(uint8_t *text, size_t size) { fill_with(text, size, "\xe4\xb8"); }
static void fill_alternating(uint8_t *text, size_t size) { fill_with(text, size, "ab"); }
static void fill_spaced(uint8_t *text, size_t size) { fill_with(text, size, "a "); }
static void fill_cased(uint8_t *text, size_t size) { fill_with(text, size, "aB"); }
static void fill_signs(uint8_t *text, size_t size) { fill_with(text, size, "!\""); }
static void fill_chinese(uint8_t *text, size_t size) { fill_with(text, size, "中"); }
static void fill_emoji(uint8_t *text, size_t size) { fill_with(text, size, "😀"); }
static void fill_hangul(uint8_t *text, size_t size) { fill_with(text, size, "한"); }
static void fill_special(uint8_t *text, size_t size) { fill_with(text, size, "<|im_start|><s"); }
static void fill_random(uint8_t *text, size_t size) {
  uint64_t random = 1;
  for (size_t i = 0; i < size; i++) text[i] = (uint8_t)random_u64(&random);
}

typedef struct hostile_text {
  const char *name;
  fill_text fill;
} hostile_text;

static const hostile_text HOSTILE[] = {
    {"a", fill_letter},         {"A", fill_capital},       {"space", fill_spaces},
    {"newline", fill_newlines}, {"1", fill_digits},        {"mark", fill_marks},
    {"e+mark", fill_accents},   {"0xff", fill_broken},     {"cut utf-8", fill_cut},
    {"abab", fill_alternating}, {"a a ", fill_spaced},     {"aBaB", fill_cased},
    {"!\"", fill_signs},        {"chinese", fill_chinese}, {"emoji", fill_emoji},
    {"hangul", fill_hangul},    {"<|im_", fill_special},   {"random", fill_random},
};
enum { HOSTILE_COUNT = sizeof HOSTILE / sizeof HOSTILE[0] };

// ---- rates ----

static bool open_vocabulary(vocabulary_fixture *fixture, const char *name) {
  char relative[96];
  snprintf(relative, sizeof relative, "vectors/vocab/ggml-vocab-%s.gguf", name);
  const char *path = check_shared(relative);
  if (path == NULL) return false;
  fixture_open_file(fixture, path);
  return CHECK_EQ_INT(fixture->status, WICK_OK);
}

// Returns CPU time if the host reports it, so that other programs have no influence.
static double now_seconds(void) {
#ifdef __wasi__
  return (double)platform_now_us() / 1e6;
#else
  return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static double encode_seconds(vocabulary_fixture *fixture, const uint8_t *text, size_t size) {
  size_t count = 0;
  const double begin = now_seconds();
  int32_t *ids = fixture_encode(fixture, text, size, WICK_TOKENIZE_PARSE_SPECIAL, &count);
  const double end = now_seconds();
  CHECK(ids != NULL);
  free(ids);
  return end - begin + 1e-6;
}

// A quadratic algorithm would take ten times the limit.
TEST(hostile_text_is_encoded_in_linear_time_with_every_vocabulary) {
  enum { SIZE = MEGABYTE / 5, SECONDS_MAX = 30 };
  static uint8_t text[SIZE];
  const size_t size = SIZE / level_step(5);
  const double seconds_max = (double)SECONDS_MAX / (level_step(5) * level_step(5));
  for (size_t v = 0; v < VOCABULARY_COUNT; v++) {
    vocabulary_fixture fixture;
    if (!open_vocabulary(&fixture, VOCABULARIES[v])) SKIP("no shared folder");
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
      HOSTILE[i].fill(text, size);
      const double seconds = encode_seconds(&fixture, text, size);
      if (!CHECK(seconds < seconds_max)) printf("# %s, %s\n", VOCABULARIES[v], HOSTILE[i].name);
    }
    fixture_close(&fixture);
  }
}

// Fills in the project's documents, repeated.
static void fill_documents(uint8_t *text, size_t size) {
  static const char *const FILES[] = {
      "README.md",      "CONTRIBUTING.md",  "docs/architecture.md", "docs/build.md",
      "docs/js-api.md", "docs/refusals.md", "docs/requests.md",     "docs/benchmarks.md"};
  size_t used = 0;
  for (size_t i = 0; used < size; i = (i + 1) % (sizeof FILES / sizeof FILES[0])) {
    size_t file_bytes = 0;
    uint8_t *file = check_read_file(check_repository(FILES[i]), &file_bytes);
    if (file == NULL) return;
    const size_t taken = file_bytes < size - used ? file_bytes : size - used;
    memcpy(text + used, file, taken);
    used += taken;
    free(file);
  }
}

// Fills in llama.cpp's test cases, which have many languages.
static void fill_languages(uint8_t *text, size_t size) {
  size_t file_bytes = 0;
  uint8_t *file =
      check_read_file(check_shared("vectors/vocab/ggml-vocab-qwen2.gguf.inp"), &file_bytes);
  for (size_t i = 0; file != NULL && i < size; i++) text[i] = file[i % file_bytes];
  free(file);
}

static double rate(vocabulary_fixture *fixture, const uint8_t *text) {
  double best = 0;
  for (int round = 0; round < 3; round++) {
    const double now = 1 / encode_seconds(fixture, text, MEGABYTE);
    if (now > best) best = now;
  }
  return best;
}

BENCH(texts_of_a_megabyte) {
  static uint8_t text[MEGABYTE];
  for (size_t v = 0; v < VOCABULARY_COUNT; v++) {
    vocabulary_fixture fixture;
    if (!open_vocabulary(&fixture, VOCABULARIES[v])) SKIP("no shared folder");
    fill_documents(text, MEGABYTE);
    printf("# %-14s documents %.1f MB/s", VOCABULARIES[v], rate(&fixture, text));
    fill_languages(text, MEGABYTE);
    printf(", languages %.1f", rate(&fixture, text));
    double least = 1e9;
    const char *slowest = "";
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
      HOSTILE[i].fill(text, MEGABYTE);
      const double now = rate(&fixture, text);
      printf(", %s %.1f", HOSTILE[i].name, now);
      if (now < least) slowest = HOSTILE[i].name;
      if (now < least) least = now;
    }
    printf("\n# %-14s slowest %.2f MB/s (%s)\n", VOCABULARIES[v], least, slowest);
    fixture_close(&fixture);
  }
}
