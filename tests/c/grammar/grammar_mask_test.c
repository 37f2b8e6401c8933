// Token masks: exact for every token of several vocabularies, and how long they take with a real
// vocabulary (WICK_BENCH=1: for all real schemas of the shared folder).
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "grammar/document.h"
#include "grammar/mask.h"
#include "grammar_rig.h"
#include "platform/platform.h"
#include "random.h"
#include "vocabulary_fixture.h"

static const char QWEN[] = "vectors/vocab/ggml-vocab-qwen2.gguf";

typedef struct mask_rig {
  vocabulary_fixture vocabulary;
  memory_gate memory;
  vocabulary_trie *trie;
  uint8_t *scratch;
  bool has_controls;  // whether the tested grammars may contain control tokens
} mask_rig;

static bool begin_rig(mask_rig *rig) {
  memory_init(&rig->memory, 0, platform_alloc, platform_free);
  fixture_report(&rig->vocabulary);
  if (!CHECK_EQ_INT(rig->vocabulary.status, WICK_OK)) return false;
  rig->scratch = malloc(tokenizer_piece_bytes_max(rig->vocabulary.tokenizer));
  return CHECK_EQ_INT(trie_create(&rig->memory, rig->vocabulary.tokenizer, &rig->trie, NULL),
                      WICK_OK);
}

static bool open_rig(mask_rig *rig, const char *name) {
  memset(rig, 0, sizeof *rig);
  const char *path = check_shared(name);
  if (path == NULL) return false;
  fixture_open_file(&rig->vocabulary, path);
  return begin_rig(rig);
}

static void close_rig(mask_rig *rig) {
  trie_destroy(rig->trie);
  CHECK_EQ_UINT(rig->memory.blocks_now, 0);
  free(rig->scratch);
  fixture_close(&rig->vocabulary);
}

static bool has_token(const uint32_t *mask, int32_t token) {
  return (mask[token / 32] >> token % 32 & 1u) != 0;
}

// Returns a random token of the mask, with equal probabilities; -1 if the mask is empty.
static int32_t pick_token(const uint32_t *mask, uint32_t vocab, uint64_t *random) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < vocab; i++) count += has_token(mask, (int32_t)i);
  if (count == 0) return -1;
  uint64_t skip = random_below(random, count);
  for (uint32_t i = 0; i < vocab; i++) {
    if (has_token(mask, (int32_t)i) && skip-- == 0) return (int32_t)i;
  }
  return -1;
}

// ---- masks are exact ----

static const struct {
  wick_grammar_kind kind;
  const char *text;
} GRAMMARS[] = {
    {WICK_GRAMMAR_JSON_SCHEMA, "{}"},
    {WICK_GRAMMAR_JSON_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":20},"
     "\"age\":{\"type\":\"integer\",\"minimum\":0},\"when\":{\"format\":\"date\",\"type\":"
     "\"string\"},"
     "\"tags\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"\\u00e9t\\u00e9\",\"ab\"]}}},"
     "\"required\":[\"name\",\"when\"]}"},
    {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^[^a-m]{3,}$\"}"},
    {WICK_GRAMMAR_GBNF, "root ::= (\"a\" | \"ab\" | [\\u4e00-\\u9fff])+ \"\\n\" root | \".\""},
    {WICK_GRAMMAR_GBNF, "root ::= \"<\" [^<>]* \">\" (root | [a-z]{2,300})? | \"\\U0001f600\""},
    {WICK_GRAMMAR_REGEX, "([^,]*,){3}[^,]{4,9}"},
    {WICK_GRAMMAR_REGEX, "(a|aa|\\u00e9)*b?"},
    {WICK_GRAMMAR_CHOICE, "[\"yes\", \"yesterday\", \"\\u65e5\\u672c\", \"\"]"},
};

static const char TOKENS_TEXT[] = "root ::= <|im_start|> [a-z]* !<|im_start|> \".\"*";
static const char CONTROLS_TEXT[] =
    "root ::= (\"<|im_start|>\" [a-z]* | \"<|im\" [_a-z|]+ \"x\" | \"ab<|endoftext|>\")*";
static const wick_grammar CONTROLS = {
    .kind = WICK_GRAMMAR_GBNF, .text = CONTROLS_TEXT, .text_bytes = sizeof CONTROLS_TEXT - 1};
static const wick_grammar TOKENS = {
    .kind = WICK_GRAMMAR_GBNF, .text = TOKENS_TEXT, .text_bytes = sizeof TOKENS_TEXT - 1};

// Whether a token is allowed, by the reference definition: its bytes must continue the string, or,
// for an end token, the string may end. Other control tokens have no bytes, except in grammars for
// tool calls, where they have the bytes of their text. A grammar may also contain a token
// explicitly.
static bool is_allowed(mask_rig *rig, const grammar_matcher *matcher, int32_t token) {
  const tokenizer *tokens = rig->vocabulary.tokenizer;
  const bool has_tokens = matcher->grammar->program.has_tokens;
  const bool special = matcher->grammar->program.has_controls;
  if (tokenizer_is_end(tokens, token)) return matcher_accepts(matcher);
  const uint8_t *bytes = rig->scratch;
  const size_t count = tokenizer_piece(tokens, token, special, rig->scratch, &bytes);
  if (count == 0 && !has_tokens) return false;
  grammar_matcher next;
  matcher_copy(matcher, &next);
  const bool fits = has_tokens ? matcher_take_token(&next, tokens, token, rig->scratch)
                               : matcher_take_bytes(&next, bytes, count);
  matcher_end(&next);
  return fits;
}

static bool check_mask(mask_rig *rig, const grammar_matcher *matcher, const uint32_t *mask) {
  for (uint32_t id = 0; id < rig->trie->vocab; id++) {
    const bool fits = is_allowed(rig, matcher, (int32_t)id);
    if (fits == has_token(mask, (int32_t)id)) continue;
    printf("# token %u: %s\n", id, fits ? "should be allowed" : "should not be allowed");
    return CHECK(fits == has_token(mask, (int32_t)id));
  }
  return CHECK(true);
}

// Checks masks along a string of random tokens. Half of the steps find the mask in the cache; some
// follow a collection, which renumbers the configurations.
static void check_walk(mask_rig *rig, const wick_grammar *wanted, uint32_t steps) {
  grammar *grammar;
  mask_cache *cache;
  grammar_matcher matcher;
  wick_error error = {0};
  uint64_t random = steps;
  const tokenizer *tokens = rig->vocabulary.tokenizer;
  const wick_status status = grammar_create(&rig->memory, tokens, wanted, &grammar, &error);
  if (!CHECK_EQ_INT(status, WICK_OK)) printf("# %s\n", error.message);
  if (status != WICK_OK) return;
  grammar->program.has_controls = rig->has_controls;
  CHECK_EQ_INT(mask_cache_create(&rig->memory, rig->trie, &cache, NULL), WICK_OK);
  matcher_begin(grammar, &matcher);
  for (uint32_t step = 0; step < steps; step++) {
    if (step % 4 == 3) CHECK(machine_make_room(grammar->machine));
    if (!check_mask(rig, &matcher, mask_find(cache, &matcher))) break;
    if (step % 2 == 0 && !check_mask(rig, &matcher, mask_find(cache, &matcher))) break;
    const int32_t token = pick_token(mask_find(cache, &matcher), rig->trie->vocab, &random);
    if (token < 0 || tokenizer_is_end(tokens, token)) break;
    CHECK(matcher_take_token(&matcher, tokens, token, rig->scratch));
  }
  matcher_end(&matcher);
  mask_cache_destroy(cache);
  grammar_destroy(grammar);
}

static void check_grammars(mask_rig *rig, uint32_t steps) {
  for (size_t i = 0; i < sizeof GRAMMARS / sizeof GRAMMARS[0]; i++) {
    const wick_grammar wanted = {
        .kind = GRAMMARS[i].kind, .text = GRAMMARS[i].text, .text_bytes = strlen(GRAMMARS[i].text)};
    check_walk(rig, &wanted, steps);
  }
}

TEST(masks_of_byte_tokens_are_exact) {
  mask_rig rig = {0};
  fixture_open_spm_bytes(&rig.vocabulary);
  if (begin_rig(&rig)) check_grammars(&rig, 60);
  close_rig(&rig);
}

// The tokens cross rule and character boundaries; some have the same bytes, some are end tokens.
TEST(masks_of_tokens_across_boundaries_are_exact) {
  fixture_token list[FIXTURE_ALPHABET + 24];
  size_t count = fixture_add_alphabet(list);
  static const char *const TEXTS[] = {
      "\",",     "\":",      "{\"", "}]",          "\"}",     "ab",
      "aab",     "ab\u010a", "yes", "yesterday",   "\u010a.", "\u00c3\u00a9t",
      "\u00a9t", "ab",       "},",  "\":\u0120\"", "12,",     "00"};
  for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
    list[count++] = (fixture_token){TEXTS[i], TOKEN_NORMAL, 0};
  }
  list[count++] = (fixture_token){"<|endoftext|>", TOKEN_CONTROL, 0};
  list[count++] = (fixture_token){"<|im_end|>", TOKEN_CONTROL, 0};
  list[count++] = (fixture_token){"<|im_start|>", TOKEN_CONTROL, 0};
  list[count++] = (fixture_token){"\",\"", TOKEN_USER_DEFINED, 0};
  list[count++] = (fixture_token){"aa", TOKEN_UNUSED, 0};
  static const char *const MERGES[] = {"a b"};
  mask_rig rig = {0};
  fixture_open_vocabulary(&rig.vocabulary, &(fixture_vocabulary){.model = "gpt2",
                                                                 .pre = "gpt-2",
                                                                 .tokens = list,
                                                                 .token_count = count,
                                                                 .merges = MERGES,
                                                                 .merge_count = 1});
  if (begin_rig(&rig)) {
    CHECK(rig.trie->end_count >= 2);
    check_grammars(&rig, 60);
    check_walk(&rig, &TOKENS, 20);
    rig.has_controls = true;
    check_grammars(&rig, 60);
    check_walk(&rig, &CONTROLS, 20);
  }
  close_rig(&rig);
}

static void check_file(const char *name, bool has_tokens) {
  mask_rig rig;
  if (!open_rig(&rig, name)) return;
  check_grammars(&rig, 8);
  if (has_tokens) check_walk(&rig, &TOKENS, 8);
  close_rig(&rig);
}

TEST(masks_of_real_vocabularies_are_exact) {
  if (check_shared(QWEN) == NULL) SKIP("no shared folder");
  check_file(QWEN, true);
  check_file("vectors/vocab/ggml-vocab-llama-spm.gguf", false);
  check_file("vectors/vocab/ggml-vocab-gpt-2.gguf", false);
}

static size_t letters_of(const uint8_t *piece, size_t count) {
  size_t letters = 0;
  while (letters < count && piece[letters] >= 'a' && piece[letters] <= 'z') letters++;
  return letters;
}

// Uses a list of words that are tokens: after one word, far more positions are possible than the
// machine can store.
TEST(masks_of_tens_of_thousands_of_words_are_exact) {
  enum { SOURCE_BYTES = 1 << 20, WORDS = 40000, LETTERS_MIN = 3 };
  if (check_shared(QWEN) == NULL) SKIP("no shared folder");
  mask_rig rig;
  char *source = malloc(SOURCE_BYTES);
  size_t size =
      (size_t)snprintf(source, SOURCE_BYTES, "root ::= word (\" \" word)+\nword ::= \"-\"");
  REQUIRE(open_rig(&rig, QWEN));
  for (uint32_t id = 0, words = 0; id < rig.trie->vocab && words < WORDS; id++) {
    const uint8_t *piece;
    size_t count =
        tokenizer_piece(rig.vocabulary.tokenizer, (int32_t)id, false, rig.scratch, &piece);
    const size_t space = count != 0 && piece[0] == ' ';
    piece += space;
    count -= space;
    if (count < LETTERS_MIN || letters_of(piece, count) != count) continue;
    words++;
    size += (size_t)snprintf(source + size, SOURCE_BYTES - size, " | \"%.*s\" | \"%.*sing\"",
                             (int)count, (const char *)piece, (int)count, (const char *)piece);
    REQUIRE(size < SOURCE_BYTES);
  }
  check_walk(&rig, &(wick_grammar){.kind = WICK_GRAMMAR_GBNF, .text = source, .text_bytes = size},
             3);
  free(source);
  close_rig(&rig);
}

// Opens a vocabulary of all letters and all pairs of letters, so that walks over it are long.
static bool open_pairs(mask_rig *rig) {
  enum { LETTERS = 26 };
  static fixture_token list[FIXTURE_ALPHABET + LETTERS * LETTERS];
  static char pairs[LETTERS * LETTERS][3];
  size_t count = fixture_add_alphabet(list);
  for (uint32_t i = 0; i < LETTERS * LETTERS; i++) {
    snprintf(pairs[i], sizeof pairs[i], "%c%c", (int)('a' + i / LETTERS), (int)('a' + i % LETTERS));
    list[count++] = (fixture_token){pairs[i], TOKEN_NORMAL, 0};
  }
  static const char *const MERGES[] = {"a b"};
  memset(rig, 0, sizeof *rig);
  fixture_open_vocabulary(&rig->vocabulary, &(fixture_vocabulary){.model = "gpt2",
                                                                  .pre = "gpt-2",
                                                                  .tokens = list,
                                                                  .token_count = count,
                                                                  .merges = MERGES,
                                                                  .merge_count = 1});
  return begin_rig(rig);
}

// The cache keeps as many masks as fit; then the least recently used one is evicted, and after a
// collection all older masks may be.
TEST(masks_of_long_walks_are_cached_up_to_a_limit) {
  enum { KEPT = 256, PLACES = KEPT + 4 };
  static grammar_matcher at[PLACES];
  static const uint32_t *kept[KEPT];
  mask_rig rig;
  REQUIRE(open_pairs(&rig));
  grammar *grammar = NULL;
  mask_cache *cache = NULL;
  const wick_grammar wanted = {
      .kind = WICK_GRAMMAR_REGEX, .text = "^[a-z]{300}$", .text_bytes = 12};
  REQUIRE(grammar_create(&rig.memory, rig.vocabulary.tokenizer, &wanted, &grammar, NULL) ==
          WICK_OK);
  CHECK_EQ_INT(mask_cache_create(&rig.memory, rig.trie, &cache, NULL), WICK_OK);
  matcher_begin(grammar, &at[0]);
  for (uint32_t i = 1; i < PLACES; i++) {
    matcher_copy(&at[i - 1], &at[i]);
    CHECK(matcher_take_bytes(&at[i], (const uint8_t *)"a", 1));
  }
  for (uint32_t i = 0; i < KEPT; i++) {
    kept[i] = mask_find(cache, &at[i]);
    for (uint32_t other = 0; other < i; other++) CHECK(kept[other] != kept[i]);
  }
  for (uint32_t i = 0; i < KEPT; i++) CHECK(mask_find(cache, &at[i]) == kept[i]);
  CHECK(mask_find(cache, &at[0]) == kept[0]);  // now the most recently used mask
  CHECK(mask_find(cache, &at[KEPT]) == kept[1]);
  CHECK(mask_find(cache, &at[0]) == kept[0]);
  CHECK(mask_find(cache, &at[1]) == kept[2]);
  CHECK(machine_make_room(grammar->machine));
  CHECK(mask_find(cache, &at[7]) == kept[0]);
  CHECK(mask_find(cache, &at[8]) == kept[1]);
  CHECK(mask_find(cache, &at[7]) == kept[0]);
  for (uint32_t i = 0; i < PLACES; i++) matcher_end(&at[i]);
  mask_cache_destroy(cache);
  grammar_destroy(grammar);
  close_rig(&rig);
}

// A model may have logits for more or fewer tokens than its vocabulary: tokens beyond the
// vocabulary are not allowed.
TEST(masks_have_the_requested_length) {
  enum { MOST = 640 };
  mask_rig rig = {0};
  fixture_open_spm_bytes(&rig.vocabulary);
  REQUIRE(begin_rig(&rig));
  const wick_grammar wanted = {
      .kind = WICK_GRAMMAR_REGEX, .text = "[^x]*", .text_bytes = strlen("[^x]*")};
  grammar *grammar = NULL;
  grammar_matcher matcher;
  mask_cache *cache = NULL;
  CHECK_EQ_INT(grammar_create(&rig.memory, rig.vocabulary.tokenizer, &wanted, &grammar, NULL),
               WICK_OK);
  CHECK_EQ_INT(mask_cache_create(&rig.memory, rig.trie, &cache, NULL), WICK_OK);
  matcher_begin(grammar, &matcher);
  const uint32_t *mask = mask_find(cache, &matcher), held = rig.trie->word_count;
  for (uint32_t vocab = 1; vocab <= MOST; vocab += 31) {
    uint32_t bits[MOST / 32 + 2];
    const uint32_t words = (vocab + 31) / 32;
    memset(bits, 0xff, sizeof bits);
    mask_write(cache, &matcher, bits, vocab);
    for (uint32_t i = 0; i < words; i++) CHECK_EQ_UINT(bits[i], i < held ? mask[i] : 0);
    CHECK_EQ_UINT(bits[words], UINT32_MAX);
  }
  CHECK(MOST / 32 > held);
  matcher_end(&matcher);
  mask_cache_destroy(cache);
  grammar_destroy(grammar);
  close_rig(&rig);
}

// For any size of vocabulary, cached masks take no more memory than their limit, or that of four
// masks.
TEST(cached_masks_stay_within_their_memory_limit) {
  static const uint32_t WORDS[] = {1, 100, 1000, 4096, 8192, 100000};
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
    const vocabulary_trie trie = {.word_count = WORDS[i]};
    const uint64_t mask_bytes = WORDS[i] * sizeof(uint32_t);
    memory_gate memory;
    mask_cache *cache = NULL;
    memory_init(&memory, 0, platform_alloc, platform_free);
    CHECK_EQ_INT(mask_cache_create(&memory, &trie, &cache, NULL), WICK_OK);
    const uint64_t least = 4 * mask_bytes, own = 1 << 14;
    CHECK(memory.bytes_now <=
          (MASK_CACHE_BYTES > least ? MASK_CACHE_BYTES : least) + mask_bytes + own);
    CHECK(memory.bytes_now >= 5 * mask_bytes);
    mask_cache_destroy(cache);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

TEST(masks_without_memory_return_a_status_and_leak_nothing) {
  mask_rig rig = {0};
  fixture_open_spm_bytes(&rig.vocabulary);
  if (begin_rig(&rig)) {
    const uint64_t held = rig.memory.blocks_now;
    uint64_t failed = 0;
    for (wick_status status = WICK_E_NOMEM; status != WICK_OK; failed++) {
      vocabulary_trie *trie = NULL;
      mask_cache *cache = NULL;
      rig.memory.fail_at_call = rig.memory.calls + 1 + failed;
      wick_error error = {0};
      status = trie_create(&rig.memory, rig.vocabulary.tokenizer, &trie, &error);
      if (status == WICK_OK) status = mask_cache_create(&rig.memory, trie, &cache, &error);
      const bool is_refused = rig.memory.calls >= rig.memory.fail_at_call;
      CHECK_EQ_INT(status, is_refused ? WICK_E_NOMEM : WICK_OK);
      CHECK((status == WICK_OK) == (cache != NULL));
      CHECK_EQ_INT(error.status, status);
      CHECK((status == WICK_OK) == (error.message[0] == 0));
      mask_cache_destroy(cache);
      trie_destroy(trie);
      CHECK_EQ_UINT(rig.memory.blocks_now, held);
    }
    CHECK(failed > 10);
    rig.memory.fail_at_call = 0;
  }
  close_rig(&rig);
}

// ---- timings ----

// Returns the CPU time if the host reports it, so that other processes do not count.
static double now_us(void) {
#ifdef __wasi__
  return (double)platform_now_us();
#else
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * (double)now.tv_sec + (double)now.tv_nsec / 1e3;
#endif
}

static int compare_doubles(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

static void print_figures(const char *what, double *us, size_t count) {
  qsort(us, count, sizeof *us, compare_doubles);
  if (count == 0) return;
  printf("# %s: %zu, median %.1f us, 90 %% %.1f, 99 %% %.1f, max %.1f\n", what, count,
         us[count / 2], us[count * 9 / 10], us[count * 99 / 100], us[count - 1]);
}

enum { STEPS_MAX = 200, FIGURES_MAX = 1 << 20 };

typedef struct figures {
  double *masks, *compiles;
  size_t mask_count, compile_count;
  FILE *out;  // instances, one per line; NULL: none
} figures;

// Generates a string of random tokens. After 60 tokens, closing tokens are preferred where allowed.
static void write_instance(mask_rig *rig, mask_cache *cache, grammar *grammar, uint64_t *random,
                           figures *figures, size_t number) {
  const tokenizer *tokens = rig->vocabulary.tokenizer;
  grammar_matcher matcher;
  matcher_begin(grammar, &matcher);
  if (figures->out != NULL) fprintf(figures->out, "%zu ", number);
  for (int step = 0; step < STEPS_MAX; step++) {
    const double began = now_us();
    const uint32_t *mask = mask_find(cache, &matcher);
    if (figures->mask_count < FIGURES_MAX) figures->masks[figures->mask_count++] = now_us() - began;
    if (step > 60 && matcher_accepts(&matcher)) break;
    int32_t token = pick_token(mask, rig->trie->vocab, random);
    static const char *const CLOSING[] = {"\"", "}", "]", "\"}", "]}", "0", "1"};
    for (size_t i = 0; step > 60 && i < 7; i++) {
      const int32_t one = tokenizer_find(tokens, CLOSING[i], strlen(CLOSING[i]));
      if (one >= 0 && has_token(mask, one)) token = one;
    }
    if (token < 0 || tokenizer_is_end(tokens, token)) break;
    const uint8_t *bytes;
    const size_t size = tokenizer_piece(tokens, token, false, rig->scratch, &bytes);
    if (figures->out != NULL) fwrite(bytes, 1, size, figures->out);
    if (!matcher_take_token(&matcher, tokens, token, rig->scratch)) break;
  }
  if (figures->out != NULL) fprintf(figures->out, "%s\n", matcher_accepts(&matcher) ? "" : " #");
  matcher_end(&matcher);
}

static void measure_schema(mask_rig *rig, const uint8_t *text, size_t size_bytes, figures *figures,
                           size_t number) {
  const wick_grammar wanted = {
      .kind = WICK_GRAMMAR_JSON_SCHEMA, .text = (const char *)text, .text_bytes = size_bytes};
  grammar *grammar;
  mask_cache *cache;
  const double began = now_us();
  if (grammar_create(&rig->memory, NULL, &wanted, &grammar, NULL) != WICK_OK) return;
  figures->compiles[figures->compile_count++] = now_us() - began;
  CHECK_EQ_INT(mask_cache_create(&rig->memory, rig->trie, &cache, NULL), WICK_OK);
  uint64_t random = number;
  for (int i = 0; i < 3; i++) write_instance(rig, cache, grammar, &random, figures, number);
  mask_cache_destroy(cache);
  grammar_destroy(grammar);
}

// With WICK_INSTANCES=FILE, writes the strings, each after the number of its schema.
BENCH(of_masks) {
  mask_rig rig;
  const double began = now_us();
  if (!open_rig(&rig, QWEN)) SKIP("no shared folder");
  const double opened = now_us();
  vocabulary_trie *again;
  CHECK_EQ_INT(trie_create(&rig.memory, rig.vocabulary.tokenizer, &again, NULL), WICK_OK);
  printf("# the trie of %u tokens: %.1f ms, %u and %u nodes (tokenizer and trie %.1f ms)\n",
         rig.trie->vocab, (now_us() - opened) / 1e3, rig.trie->plain.node_count,
         rig.trie->others.node_count, (opened - began) / 1e3);
  trie_destroy(again);
  size_t size_bytes;
  uint8_t *source =
      check_read_file(check_shared("vectors/structure/schema/real.json"), &size_bytes);
  grammar_work work;
  json_document document;
  work_begin(&work, &rig.memory);
  figures figures = {0};
  figures.masks = malloc(FIGURES_MAX * sizeof(double));
  figures.compiles = malloc(FIGURES_MAX * sizeof(double));
  const char *instances = getenv("WICK_INSTANCES");
  if (instances != NULL) figures.out = fopen(instances, "wb");
  if (CHECK(document_read(&work, source, size_bytes, &document))) {
    const json_node *nodes = document.nodes.items;
    for (uint32_t one = nodes[1].first; one != 0; one = nodes[one].next) {
      const json_node *schema = &nodes[document_find(&document, one, "schema")];
      measure_schema(&rig, source + schema->at, schema->end - schema->at, &figures,
                     nodes[one].index);
    }
  }
  print_figures("compiling a schema", figures.compiles, figures.compile_count);
  print_figures("finding a mask", figures.masks, figures.mask_count);
  if (figures.out != NULL) fclose(figures.out);
  free(figures.masks);
  free(figures.compiles);
  work_end(&work);
  free(source);
  close_rig(&rig);
}
