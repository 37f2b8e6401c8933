// Roles of tokens, determined by a file's keys and by the tokens' names: end of generation, kinds,
// and the white space that they absorb.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "format/gguf_writer.h"
#include "platform/platform.h"
#include "text/vocabulary.h"
#include "vocabulary_fixture.h"

// A key of a file with a string value if `text` is set, or else a number.
typedef struct key {
  const char *name;
  const char *text;
  uint32_t number;
  bool is_flag;
} key;

typedef struct file {
  uint8_t bytes[1 << 16];
  size_t size_bytes;
} file;

static bool append(void *context, const void *bytes, size_t size_bytes) {
  file *out = context;
  if (size_bytes > sizeof out->bytes - out->size_bytes) return false;
  memcpy(out->bytes + out->size_bytes, bytes, size_bytes);
  out->size_bytes += size_bytes;
  return true;
}

// Opens a vocabulary with these tokens, all of them normal, and keys; both lists end with NULL.
static void open_file(vocabulary_fixture *fixture, const char *const *tokens, const key *keys) {
  static file out;
  static const int32_t KINDS[] = {TOKEN_UNKNOWN, 1, 1, 1, 1, 1, 1, 1};
  static const float SCORES[8];
  memory_gate memory;
  gguf_writer *writer;
  wick_error error;
  size_t count = 0;
  out.size_bytes = 0;
  while (tokens[count] != NULL) count++;
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(gguf_writer_create(&memory, append, &out, 32, &writer, &error) == WICK_OK);
  gguf_writer_add_string(writer, "tokenizer.ggml.model", "llama", 5);
  for (; keys->name != NULL; keys++) {
    if (keys->text != NULL) {
      gguf_writer_add_string(writer, keys->name, keys->text, strlen(keys->text));
    } else if (keys->is_flag) {
      gguf_writer_add_bool(writer, keys->name, keys->number != 0);
    } else {
      gguf_writer_add_u32(writer, keys->name, keys->number);
    }
  }
  gguf_writer_add_strings(writer, "tokenizer.ggml.tokens", count);
  for (size_t i = 0; i < count; i++) gguf_writer_add_item(writer, tokens[i], strlen(tokens[i]));
  gguf_writer_add_array(writer, "tokenizer.ggml.token_type", GGUF_I32, KINDS, count);
  gguf_writer_add_array(writer, "tokenizer.ggml.scores", GGUF_F32, SCORES, count);
  CHECK(gguf_writer_write_header(writer, &error) == WICK_OK);
  CHECK(gguf_writer_finish(writer, &error) == WICK_OK);
  gguf_writer_destroy(writer);
  fixture_open_bytes(fixture, out.bytes, out.size_bytes);
}

static const char *const PLAIN[] = {"<unk>", "a", "b", "c", "d", "e", NULL};
static const key NONE = {0};

TEST(keys_assign_roles_to_tokens) {
  static const struct {
    const char *name;
    bool is_end;
  } KEYS[] = {
      {"tokenizer.ggml.fim_pre_token_id", false}, {"tokenizer.ggml.prefix_token_id", false},
      {"tokenizer.ggml.fim_suf_token_id", false}, {"tokenizer.ggml.suffix_token_id", false},
      {"tokenizer.ggml.fim_mid_token_id", false}, {"tokenizer.ggml.middle_token_id", false},
      {"tokenizer.ggml.fim_pad_token_id", true},  {"tokenizer.ggml.fim_rep_token_id", true},
      {"tokenizer.ggml.fim_sep_token_id", true},  {"tokenizer.ggml.eos_token_id", true},
      {"tokenizer.ggml.eot_token_id", true},      {"tokenizer.ggml.eom_token_id", true},
      {"tokenizer.ggml.bos_token_id", false},     {"tokenizer.ggml.seperator_token_id", false}};
  for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
    // the default end of such a vocabulary, further tokens up to the last one, and one beyond it
    for (uint32_t id = 3; id <= 6; id++) {
      vocabulary_fixture fixture;
      const key keys[] = {{KEYS[i].name, NULL, id, false}, NONE};
      open_file(&fixture, PLAIN, keys);
      REQUIRE(fixture.status == WICK_OK);
      const tokenizer *made = fixture.tokenizer;
      for (int32_t token = 3; token < 6; token++) {
        const bool wanted = KEYS[i].is_end && token == (int32_t)id;
        if (!CHECK(tokenizer_is_end(made, token) == wanted)) printf("# %s\n", KEYS[i].name);
      }
      if (i == 9) CHECK((tokenizer_eos(made) == (int32_t)id) == (id < 6));
      if (i == 12) CHECK((tokenizer_bos(made) == (int32_t)id) == (id < 6));
      const bool is_there = id < 6;
      static const int PARTS[] = {0, 0, 1, 1, 2, 2, -1, 3, 4};
      for (int part = 0; i < 9 && part < INFILL_PARTS; part++) {
        const int32_t wanted = is_there && PARTS[i] == part ? (int32_t)id : TOKEN_NONE;
        CHECK_EQ_INT(tokenizer_infill(made, (infill_part)part), wanted);
      }
      if (i == 13) CHECK((made->separator == (int32_t)id) == (id < 6));
      fixture_close(&fixture);
    }
    vocabulary_fixture fixture;
    const key wrong[] = {{KEYS[i].name, "text", 0, false}, NONE};
    open_file(&fixture, PLAIN, wrong);
    CHECK(fixture.status != WICK_OK && strstr(fixture.error.message, KEYS[i].name) != NULL);
    fixture_close(&fixture);
  }
}

TEST(flags_are_read_and_their_types_checked) {
  static const char *const NAMES[] = {
      "tokenizer.ggml.add_bos_token",        "tokenizer.ggml.add_eos_token",
      "tokenizer.ggml.add_space_prefix",     "tokenizer.ggml.remove_extra_whitespaces",
      "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"};
  for (size_t i = 0; i < 6; i++) {
    for (uint32_t value = 0; value < 2; value++) {
      vocabulary_fixture fixture;
      const key keys[] = {{NAMES[i], NULL, value, true}, NONE};
      open_file(&fixture, PLAIN, keys);
      REQUIRE(fixture.status == WICK_OK);
      const tokenizer *made = fixture.tokenizer;
      const bool found[] = {made->adds_bos,      made->adds_eos,    made->adds_space,
                            made->merges_spaces, made->lowers_case, made->strips_accents};
      CHECK(found[i] == (value != 0));
      if (i == 4) CHECK(made->strips_accents == (value != 0));  // unless its own key is set
      fixture_close(&fixture);
    }
    vocabulary_fixture fixture;
    const key wrong[] = {{NAMES[i], "text", 0, false}, NONE};
    open_file(&fixture, PLAIN, wrong);
    CHECK(fixture.status != WICK_OK && strstr(fixture.error.message, NAMES[i]) != NULL);
    fixture_close(&fixture);
  }
}

TEST(string_keys_of_the_wrong_type_are_rejected) {
  static const char *const NAMES[] = {"general.name", "tokenizer.ggml.pre", "general.architecture"};
  for (size_t i = 0; i < 3; i++) {
    vocabulary_fixture fixture;
    const key wrong[] = {{NAMES[i], NULL, 7, false}, NONE};
    open_file(&fixture, PLAIN, wrong);
    if (!CHECK(fixture.status != WICK_OK)) printf("# %s\n", NAMES[i]);
    CHECK(strstr(fixture.error.message, NAMES[i]) != NULL);
    fixture_close(&fixture);
  }
}

// Roles that follow from a token's name.
TEST(names_determine_kinds_and_ends) {
  static const struct {
    const char *text;
    token_kind kind;
    bool is_end;
  } NAMES[] = {
      {"<|eot_id|>", TOKEN_CONTROL, true},
      {"<|im_end|>", TOKEN_CONTROL, true},
      {"[e~[", TOKEN_CONTROL, true},
      {"<eos>", TOKEN_CONTROL, true},
      {"<|fim_prefix|>", TOKEN_CONTROL, false},
      {"<PRE>", TOKEN_CONTROL, false},
      {"<|suffix|>", TOKEN_CONTROL, false},
      {"<fim_middle>", TOKEN_CONTROL, false},
      {"<|fim_pad|>", TOKEN_CONTROL, true},
      {"[PAD]", TOKEN_CONTROL, true},
      {"<|repo_name|>", TOKEN_CONTROL, true},
      {"<|file_sep|>", TOKEN_CONTROL, true},
      {"<|channel|>", TOKEN_USER_DEFINED, false},
      {"<|constrain|>", TOKEN_USER_DEFINED, false},
      {"<|im_ende|>", TOKEN_NORMAL, false},
      {"<|im_end|", TOKEN_NORMAL, false},
  };
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
    const char *const tokens[] = {"<unk>", "a", "b", NAMES[i].text, NULL};
    vocabulary_fixture fixture;
    open_file(&fixture, tokens, &NONE);
    REQUIRE(fixture.status == WICK_OK);
    CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 3), NAMES[i].kind);
    if (!CHECK(tokenizer_is_end(fixture.tokenizer, 3) == NAMES[i].is_end)) {
      printf("# %s\n", NAMES[i].text);
    }
    fixture_close(&fixture);
  }
}

// Each role except the ends has one token: keys take precedence over names, and earlier names over
// later ones.
TEST(each_role_has_one_token) {
  static const char *const TOKENS[] = {"<unk>",          "a",     "<EOT>", "<|fim_pad|>", "[PAD]",
                                       "<|fim_prefix|>", "<PRE>", "[EOT]", NULL};
  vocabulary_fixture fixture;
  open_file(&fixture, TOKENS, &NONE);
  REQUIRE(fixture.status == WICK_OK);
  const tokenizer *made = fixture.tokenizer;
  CHECK(tokenizer_is_end(made, 3) && !tokenizer_is_end(made, 4));
  CHECK_EQ_INT(tokenizer_kind(made, 4), TOKEN_NORMAL);
  CHECK_EQ_INT(tokenizer_kind(made, 5), TOKEN_CONTROL);
  CHECK_EQ_INT(tokenizer_kind(made, 6), TOKEN_NORMAL);
  CHECK_EQ_INT(tokenizer_infill(made, INFILL_PREFIX), 5);
  CHECK_EQ_INT(tokenizer_infill(made, INFILL_SUFFIX), TOKEN_NONE);
  CHECK(tokenizer_is_end(made, 2) && tokenizer_is_end(made, 7));
  fixture_close(&fixture);
  const key keys[] = {{"tokenizer.ggml.fim_pad_token_id", NULL, 1, false},
                      {"tokenizer.ggml.fim_pre_token_id", NULL, 1, false},
                      NONE};
  open_file(&fixture, TOKENS, keys);
  REQUIRE(fixture.status == WICK_OK);
  made = fixture.tokenizer;
  CHECK(tokenizer_is_end(made, 1) && !tokenizer_is_end(made, 3) && !tokenizer_is_end(made, 4));
  CHECK_EQ_INT(tokenizer_kind(made, 5), TOKEN_NORMAL);
  CHECK_EQ_INT(tokenizer_infill(made, INFILL_PREFIX), 1);
  fixture_close(&fixture);
}

// In vocabularies of gpt-oss, Solar and Gemma 4, a token with the name of an end has a different
// role.
TEST(some_vocabularies_have_different_ends) {
  static const char *const CALLS[] = {"<|call|>", "<|calls|>", "a"};
  static const char *const OTHERS[] = {"<|return|>", "<|flush|>", "b"};
  vocabulary_fixture fixture;
  for (size_t i = 0; i < 9; i++) {
    const char *const tokens[] = {"<unk>", "x", "y", CALLS[i % 3], OTHERS[i / 3], "<|end|>", NULL};
    open_file(&fixture, tokens, &NONE);
    REQUIRE(fixture.status == WICK_OK);
    const bool is_other = i % 3 < 2 && i / 3 < 2;
    CHECK(tokenizer_is_end(fixture.tokenizer, 5) == !is_other);
    CHECK(tokenizer_is_end(fixture.tokenizer, 3) == (i % 3 < 2));
    CHECK(tokenizer_is_end(fixture.tokenizer, 4) == (i / 3 < 2));
    CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 5),
                 is_other ? TOKEN_USER_DEFINED : TOKEN_CONTROL);
    fixture_close(&fixture);
  }
  for (int has_response = 0; has_response < 2; has_response++) {
    const char *const tokens[] = {"<unk>", "x", "</s>", has_response ? "<|tool_response>" : "z",
                                  NULL};
    open_file(&fixture, tokens, &NONE);
    REQUIRE(fixture.status == WICK_OK);
    CHECK(tokenizer_is_end(fixture.tokenizer, 2) == !has_response);
    CHECK_EQ_INT(tokenizer_kind(fixture.tokenizer, 2), has_response ? TOKEN_NORMAL : TOKEN_CONTROL);
    CHECK(tokenizer_is_end(fixture.tokenizer, 3) == (has_response != 0));
    fixture_close(&fixture);
  }
}

TEST(model_names_determine_which_tokens_absorb_white_space) {
  static const char *const TOKENS[] = {"<unk>",   "a",   "<mask>",        "[MASK]",
                                       "<|end|>", "<s>", "<|endoftext|>", NULL};
  enum { MASK = 1, BRACKETS = 2, PHI = 4 };
  static const struct {
    key key;
    int taken;
  } CASES[] = {
      {{"tokenizer.ggml.pre", "jina-v2-en", 0, false}, MASK},
      {{"tokenizer.ggml.pre", "jina-v2-", 0, false}, MASK},
      {{"tokenizer.ggml.pre", "jina-v1-en", 0, false}, 0},
      {{"general.architecture", "nomic-bert-moe", 0, false}, MASK},
      {{"general.architecture", "xnomic-bert-moe2", 0, false}, MASK},
      {{"general.architecture", "nomic-bert-mo", 0, false}, 0},
      {{"general.architecture", "omic-bert-moe", 0, false}, 0},
      {{"general.architecture", "jina-bert-v3", 0, false}, MASK},
      {{"general.architecture", "Jina-bert-v3", 0, false}, 0},
      {{"general.name", "Phi-3 mini", 0, false}, PHI},
      {{"general.name", "my PHI3", 0, false}, PHI},
      {{"general.name", "phi-2", 0, false}, 0},
      {{"general.name", "hi-3", 0, false}, 0},
      {{"general.name", "p", 0, false}, 0},
      {{"general.name", "Modern-BERT", 0, false}, BRACKETS},
      {{"general.name", "a modern-bert b", 0, false}, BRACKETS},
      {{"general.name", "modernbert", 0, false}, 0},
      {{"general.name", "", 0, false}, 0},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    vocabulary_fixture fixture;
    const key keys[] = {CASES[i].key, NONE};
    open_file(&fixture, TOKENS, keys);
    if (!CHECK(fixture.status == WICK_OK)) fixture_report(&fixture);
    const uint8_t *flags = fixture.tokenizer->flags;
    for (int id = 0; id < 7; id++) {
      const int left = id == 2 ? MASK : id == 3 ? BRACKETS : 0, right = id == 4 ? PHI : 0;
      if (!CHECK(((flags[id] & TOKEN_STRIPS_LEFT) != 0) == ((CASES[i].taken & left) != 0)) ||
          !CHECK(((flags[id] & TOKEN_STRIPS_RIGHT) != 0) == ((CASES[i].taken & right) != 0))) {
        printf("# %s %s: %d\n", CASES[i].key.name, CASES[i].key.text, id);
      }
    }
    fixture_close(&fixture);
  }
}
