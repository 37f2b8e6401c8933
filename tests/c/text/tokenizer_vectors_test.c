// Compares the tokenizers with llama.cpp's ids: its own cases with real vocabularies
// (vectors/vocab), and text with small vocabularies for every pre-tokenizer
// (vectors/reference/tokenizer.json).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "vocabulary_fixture.h"

enum { PATH_MAX_BYTES = 256, IDS_MAX = 4096, TEXT_MAX = 8192 };

// ---- vectors/vocab: texts separated by a line, one line of ids per text ----

// `comes_back`: whether decoding the ids restores the text.
static void check_vocabulary(const char *name, unsigned cases_wanted, bool comes_back) {
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "vectors/vocab/ggml-vocab-%s.gguf", name);
  const char *model_path = check_shared(path);
  if (model_path == NULL) SKIP("no shared folder");
  vocabulary_fixture fixture;
  fixture_open_file(&fixture, model_path);
  if (!CHECK_EQ_INT(fixture.status, WICK_OK)) {
    printf("# %s\n", fixture.error.message);
    fixture_close(&fixture);
    return;
  }
  size_t size;
  snprintf(path, sizeof path, "vectors/vocab/ggml-vocab-%s.gguf.inp", name);
  char *texts = (char *)check_read_file(check_shared(path), &size);
  snprintf(path, sizeof path, "vectors/vocab/ggml-vocab-%s.gguf.out", name);
  char *ids = (char *)check_read_file(check_shared(path), &size);
  static const char MARK[] = "\n__ggml_vocab_test__\n";
  char *text = texts, *line = ids;
  unsigned cases = 0;
  while (text != NULL && line != NULL) {
    char *end = strstr(text, MARK);
    if (end == NULL) break;
    size_t count = 0;
    int32_t *found = fixture_encode(&fixture, text, (size_t)(end - text), 0, &count);
    CHECK(found != NULL);
    char *line_end = strchr(line, '\n');
    size_t wanted = 0;
    for (char *p = line; found != NULL; wanted++) {
      char *after;
      const long id = strtol(p, &after, 10);
      if (after == p || (line_end != NULL && p >= line_end)) break;
      if (wanted < count && !CHECK_EQ_INT(found[wanted], id)) {
        printf("# %s case %u id %zu\n", name, cases, wanted);
      }
      p = after;
      if (line_end != NULL && p >= line_end) {
        wanted++;
        break;
      }
    }
    CHECK_EQ_UINT(count, wanted);
    size_t decoded_bytes = 0;
    char *decoded =
        found != NULL && comes_back ? fixture_decode(&fixture, found, count, &decoded_bytes) : NULL;
    if (comes_back) CHECK_EQ_UINT(decoded_bytes, (size_t)(end - text));
    if (decoded != NULL && decoded_bytes == (size_t)(end - text)) {
      CHECK_EQ_MEM(decoded, text, decoded_bytes);
    }
    free(decoded);
    free(found);
    cases++;
    text = end + sizeof MARK - 1;
    line = line_end != NULL ? line_end + 1 : NULL;
  }
  CHECK_EQ_UINT(cases, cases_wanted);
  free(texts);
  free(ids);
  fixture_close(&fixture);
}

TEST(encodes_like_llama_cpp_with_the_vocabulary_of_llama_spm) {
  check_vocabulary("llama-spm", 46, true);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_phi_3) { check_vocabulary("phi-3", 46, true); }
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_gpt_2) { check_vocabulary("gpt-2", 46, true); }
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_llama_bpe) {
  check_vocabulary("llama-bpe", 46, true);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_qwen2) { check_vocabulary("qwen2", 46, true); }
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_starcoder) {
  check_vocabulary("starcoder", 46, true);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_bert_bge) {
  check_vocabulary("bert-bge", 46, false);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_gemma_4) {
  check_vocabulary("gemma-4", 45, true);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_deepseek_llm) {
  check_vocabulary("deepseek-llm", 46, true);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_nomic_bert_moe) {
  check_vocabulary("nomic-bert-moe", 66, false);
}
TEST(encodes_like_llama_cpp_with_the_vocabulary_of_falcon) { check_vocabulary("falcon", 46, true); }

// ---- vectors/reference/tokenizer.json ----

// A JSON reader for only this file: no escapes in strings, no fractions.
typedef struct json {
  const char *at;
} json;

static bool json_take(json *in, char c) {
  if (*in->at != c) return false;
  in->at++;
  return true;
}

static size_t json_string(json *in, char *out, size_t capacity) {
  size_t used = 0;
  CHECK(json_take(in, '"'));
  while (*in->at != '"' && *in->at != '\0') {
    if (used + 1 < capacity) out[used++] = *in->at;
    in->at++;
  }
  in->at++;
  out[used] = '\0';
  return used;
}

static bool json_null(json *in) {
  if (strncmp(in->at, "null", 4) != 0) return false;
  in->at += 4;
  return true;
}

static size_t json_hex(json *in, uint8_t *out) {
  static char text[2 * TEXT_MAX];
  const size_t size = json_string(in, text, sizeof text) / 2;
  for (size_t i = 0; i < size; i++) {
    const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
    out[i] = (uint8_t)strtol(pair, NULL, 16);
  }
  return size;
}

static size_t json_ids(json *in, int32_t *out) {
  size_t count = 0;
  CHECK(json_take(in, '['));
  while (!json_take(in, ']') && count < IDS_MAX) {
    char *after;
    out[count++] = (int32_t)strtol(in->at, &after, 10);
    in->at = after;
    json_take(in, ',');
  }
  return count;
}

typedef struct vector_case {
  uint8_t text[TEXT_MAX];
  size_t text_bytes;
  int32_t ids[3][IDS_MAX];  // special tokens parsed; treated as text; with bos and eos
  size_t counts[3];
  uint8_t decoded[TEXT_MAX];
  size_t decoded_bytes;
} vector_case;

static void json_case(json *in, vector_case *out) {
  char key[32];
  json_take(in, '{');
  for (size_t field = 0; field < 5; field++) {
    json_string(in, key, sizeof key);
    json_take(in, ':');
    if (strcmp(key, "text_hex") == 0) {
      out->text_bytes = json_hex(in, out->text);
    } else if (strcmp(key, "detok_hex") == 0) {
      if (json_null(in)) {
        memcpy(out->decoded, out->text, out->text_bytes);
        out->decoded_bytes = out->text_bytes;
      } else {
        out->decoded_bytes = json_hex(in, out->decoded);
      }
    } else {
      const size_t kind = strcmp(key, "ids") == 0 ? 0 : strcmp(key, "ids_bos") == 0 ? 2 : 1;
      if (json_null(in)) {
        memcpy(out->ids[kind], out->ids[0], sizeof out->ids[0]);
        out->counts[kind] = out->counts[0];
      } else {
        out->counts[kind] = json_ids(in, out->ids[kind]);
      }
    }
    json_take(in, ',');
  }
  CHECK(json_take(in, '}'));
}

static void check_ids(vocabulary_fixture *fixture, const char *name, const vector_case *wanted,
                      size_t kind, uint32_t flags) {
  size_t count = 0;
  int32_t *found = fixture_encode(fixture, wanted->text, wanted->text_bytes, flags, &count);
  bool same = CHECK(found != NULL) && CHECK_EQ_UINT(count, wanted->counts[kind]);
  for (size_t i = 0; same && i < count; i++) {
    same = CHECK_EQ_INT(found[i], wanted->ids[kind][i]);
  }
  if (!same) {
    printf("# %s (%zu): '%.*s'\n", name, kind, (int)wanted->text_bytes, (const char *)wanted->text);
  }
  free(found);
}

// Whether the reference text can be compared: it keeps invalid bytes, which Wick replaces.
static bool is_ascii_or_valid(const uint8_t *text, size_t size) {
  static const uint8_t INVALID[] = {0xff, 0xfe};
  return size < 2 || memcmp(text, INVALID, 2) != 0;
}

static void check_case(vocabulary_fixture *fixture, const char *name, const vector_case *wanted) {
  check_ids(fixture, name, wanted, 0, WICK_TOKENIZE_PARSE_SPECIAL);
  check_ids(fixture, name, wanted, 1, 0);
  check_ids(fixture, name, wanted, 2, WICK_TOKENIZE_PARSE_SPECIAL | WICK_TOKENIZE_ADD_SPECIAL);
  size_t size = 0;
  char *decoded = fixture_decode(fixture, wanted->ids[0], wanted->counts[0], &size);
  if (is_ascii_or_valid(wanted->decoded, wanted->decoded_bytes) &&
      CHECK_EQ_UINT(size, wanted->decoded_bytes)) {
    CHECK_EQ_MEM(decoded, wanted->decoded, size);
  }
  free(decoded);
}

typedef struct vector_entry {
  char name[64], file[128], model[32], pre[64], same_as[64];
  long bos, eos, adds_bos, adds_eos;
  const char *cases;  // after the '[', or NULL
} vector_entry;

// Reads one vocabulary's fields; leaves `in` after its last brace.
static void json_entry(json *in, vector_entry *out) {
  *out = (vector_entry){0};
  static vector_case skipped;
  json_string(in, out->name, sizeof out->name);
  json_take(in, ':');
  json_take(in, '{');
  while (!json_take(in, '}')) {
    char key[32], text[128] = "";
    long number = 0;
    json_string(in, key, sizeof key);
    json_take(in, ':');
    if (json_take(in, '[')) {
      out->cases = in->at;
      while (!json_take(in, ']')) {
        json_case(in, &skipped);
        json_take(in, ',');
      }
    } else if (*in->at == '"') {
      json_string(in, text, sizeof text);
    } else if (!json_null(in)) {
      char *after;
      number = strtol(in->at, &after, 10);
      in->at = after;
    }
    if (strcmp(key, "file") == 0) memcpy(out->file, text, sizeof text);
    if (strcmp(key, "model") == 0) memcpy(out->model, text, sizeof out->model);
    if (strcmp(key, "pre") == 0) memcpy(out->pre, text, sizeof out->pre);
    if (strcmp(key, "same_ids_as") == 0) memcpy(out->same_as, text, sizeof out->same_as);
    if (strcmp(key, "bos") == 0) out->bos = number;
    if (strcmp(key, "eos") == 0) out->eos = number;
    if (strcmp(key, "add_bos") == 0) out->adds_bos = number;
    if (strcmp(key, "add_eos") == 0) out->adds_eos = number;
    json_take(in, ',');
  }
  json_take(in, ',');
}

static const uint8_t *find_bytes(const uint8_t *bytes, size_t size, const char *wanted) {
  const size_t length = strlen(wanted);
  for (size_t at = 0; at + length <= size; at++) {
    if (memcmp(bytes + at, wanted, length) == 0) return bytes + at;
  }
  return NULL;
}

// Replaces the string of tokenizer.ggml.pre. The file has no tensors, so offsets do not matter.
static uint8_t *replace_pre(const uint8_t *bytes, size_t *size, const char *pre) {
  static const char KEY[] = "tokenizer.ggml.pre";
  const uint8_t *found = find_bytes(bytes, *size, KEY);
  if (!CHECK(found != NULL)) return NULL;
  const size_t value = (size_t)(found - bytes) + sizeof KEY - 1 + 4;
  uint64_t old_length;
  memcpy(&old_length, bytes + value, sizeof old_length);
  const size_t length = strlen(pre);
  const uint64_t stored_length = length;
  const size_t rest = value + 8 + (size_t)old_length;
  uint8_t *made = malloc(*size + length);
  memcpy(made, bytes, value);
  memcpy(made + value, &stored_length, sizeof stored_length);
  for (size_t i = 0; i < length; i++) made[value + 8 + i] = (uint8_t)pre[i];
  memcpy(made + value + 8 + length, bytes + rest, *size - rest);
  *size = *size - (size_t)old_length + length;
  return made;
}

// Inserts add_space_prefix = false before all other keys.
static uint8_t *without_space_prefix(const uint8_t *bytes, size_t *size) {
  static const char KEY[] = "tokenizer.ggml.add_space_prefix";
  uint64_t keys, length = sizeof KEY - 1;
  uint8_t entry[8 + sizeof KEY - 1 + 4 + 1] = {0};
  memcpy(entry, &length, sizeof length);
  memcpy(entry + 8, KEY, sizeof KEY - 1);
  entry[8 + sizeof KEY - 1] = GGUF_BOOL;
  memcpy(&keys, bytes + 16, sizeof keys);
  keys++;
  uint8_t *made = malloc(*size + sizeof entry);
  memcpy(made, bytes, 24);
  memcpy(made + 16, &keys, sizeof keys);
  memcpy(made + 24, entry, sizeof entry);
  memcpy(made + 24 + sizeof entry, bytes + 24, *size - 24);
  *size += sizeof entry;
  return made;
}

static void open_entry(vocabulary_fixture *fixture, const vector_entry *entry) {
  char path[PATH_MAX_BYTES];
  const bool is_spm = strcmp(entry->model, "llama") == 0;
  const char *file = entry->file[0] != '\0' ? entry->file
                     : is_spm               ? "tokenizer/spm-llama.gguf"
                                            : "tokenizer/bpe-gpt-2.gguf";
  snprintf(path, sizeof path, "vectors/reference/%s", file);
  size_t size;
  uint8_t *bytes = check_read_file(check_shared(path), &size);
  if (bytes != NULL && entry->file[0] == '\0') {
    uint8_t *changed =
        is_spm ? without_space_prefix(bytes, &size) : replace_pre(bytes, &size, entry->pre);
    free(bytes);
    bytes = changed;
  }
  fixture_open_bytes(fixture, bytes != NULL ? bytes : (const uint8_t *)"", size);
  free(bytes);
}

static void check_entry(const vector_entry *entry, const char *cases) {
  static vector_case wanted;
  vocabulary_fixture fixture;
  open_entry(&fixture, entry);
  if (!CHECK_EQ_INT(fixture.status, WICK_OK)) {
    printf("# %s: %s\n", entry->name, fixture.error.message);
  } else {
    CHECK_EQ_INT(tokenizer_bos(fixture.tokenizer), entry->bos);
    CHECK_EQ_INT(tokenizer_eos(fixture.tokenizer), entry->eos);
    CHECK_EQ_INT(tokenizer_adds_bos(fixture.tokenizer), entry->adds_bos);
    CHECK_EQ_INT(tokenizer_adds_eos(fixture.tokenizer), entry->adds_eos);
    for (json in = {cases}; !json_take(&in, ']'); json_take(&in, ',')) {
      json_case(&in, &wanted);
      if (strcmp(entry->same_as, "") != 0) {  // only the ids must be the same
        check_ids(&fixture, entry->name, &wanted, 0, WICK_TOKENIZE_PARSE_SPECIAL);
        check_ids(&fixture, entry->name, &wanted, 1, 0);
      } else {
        check_case(&fixture, entry->name, &wanted);
      }
    }
  }
  fixture_close(&fixture);
}

TEST(encodes_and_decodes_like_llama_cpp_with_every_pretokenizer) {
  enum { ENTRIES_MAX = 64 };
  static vector_entry entries[ENTRIES_MAX];
  const char *path = check_shared("vectors/reference/tokenizer.json");
  if (path == NULL) SKIP("no shared folder");
  size_t size, count = 0;
  char *text = (char *)check_read_file(path, &size);
  REQUIRE(text != NULL);
  json in = {text};
  json_take(&in, '{');
  while (!json_take(&in, '}') && count < ENTRIES_MAX) json_entry(&in, &entries[count++]);
  CHECK(count >= 58);
  for (size_t i = 0; i < count; i++) {
    const char *cases = entries[i].cases;
    for (size_t j = 0; j < count && cases == NULL; j++) {
      if (strcmp(entries[j].name, entries[i].same_as) == 0) cases = entries[j].cases;
    }
    CHECK(cases != NULL);
    if (cases != NULL) check_entry(&entries[i], cases);
  }
  free(text);
}
