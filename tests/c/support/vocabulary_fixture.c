// See vocabulary_fixture.h.
#include "vocabulary_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "format/gguf_writer.h"
#include "platform/platform.h"

void fixture_open_bytes(vocabulary_fixture *fixture, const void *bytes, size_t size_bytes) {
  *fixture = (vocabulary_fixture){0};
  memory_init(&fixture->memory, 0, platform_alloc, platform_free);
  size_t used;
  fixture->status = gguf_directory_create(&fixture->memory, &fixture->directory, &fixture->error);
  if (fixture->status != WICK_OK) return;
  fixture->status =
      gguf_directory_feed(fixture->directory, bytes, size_bytes, &used, &fixture->error);
  if (fixture->status != WICK_OK) return;
  fixture->status = gguf_directory_finish(fixture->directory, &fixture->error);
  if (fixture->status != WICK_OK) return;
  fixture->status = tokenizer_create(&fixture->memory, fixture->directory, NULL,
                                     &fixture->tokenizer, &fixture->error);
}

void fixture_open_file(vocabulary_fixture *fixture, const char *path) {
  size_t size_bytes;
  uint8_t *bytes = check_read_file(path, &size_bytes);
  fixture_open_bytes(fixture, bytes != NULL ? bytes : (const uint8_t *)"", size_bytes);
  free(bytes);
}

void fixture_report(const vocabulary_fixture *fixture) {
  if (fixture->status != WICK_OK) printf("# %s\n", fixture->error.message);
}

bool fixture_close(vocabulary_fixture *fixture) {
  tokenizer_destroy(fixture->tokenizer);
  if (fixture->directory != NULL) gguf_directory_destroy(fixture->directory);
  fixture->tokenizer = NULL;
  fixture->directory = NULL;
  return CHECK(fixture->memory.blocks_now == 0);
}

typedef struct growing_file {
  uint8_t *bytes;
  size_t size_bytes;
} growing_file;

static bool append(void *context, const void *bytes, size_t size_bytes) {
  growing_file *file = context;
  uint8_t *grown = realloc(file->bytes, file->size_bytes + size_bytes);
  if (grown == NULL) return false;
  memcpy(grown + file->size_bytes, bytes, size_bytes);
  file->bytes = grown;
  file->size_bytes += size_bytes;
  return true;
}

static void add_text(gguf_writer *writer, const char *key, const char *text) {
  if (text != NULL) gguf_writer_add_string(writer, key, text, strlen(text));
}

static void add_vocabulary(gguf_writer *writer, const fixture_vocabulary *vocabulary) {
  const size_t count = vocabulary->token_count;
  int32_t *kinds = malloc((count + 1) * sizeof *kinds);
  float *scores = malloc((count + 1) * sizeof *scores);
  add_text(writer, "general.name", vocabulary->name);
  add_text(writer, "tokenizer.ggml.model", vocabulary->model);
  add_text(writer, "tokenizer.ggml.pre", vocabulary->pre);
  gguf_writer_add_strings(writer, "tokenizer.ggml.tokens", count);
  for (size_t i = 0; i < count; i++) {
    const char *text = vocabulary->tokens[i].text;
    gguf_writer_add_item(writer, text, strlen(text));
    kinds[i] = (int32_t)vocabulary->tokens[i].kind;
    scores[i] = vocabulary->tokens[i].score;
  }
  gguf_writer_add_array(writer, "tokenizer.ggml.token_type", GGUF_I32, kinds, count);
  gguf_writer_add_array(writer, "tokenizer.ggml.scores", GGUF_F32, scores, count);
  if (vocabulary->unknown != 0) {
    gguf_writer_add_u32(writer, "tokenizer.ggml.unknown_token_id", vocabulary->unknown);
  }
  if (vocabulary->charsmap != NULL) {
    gguf_writer_add_array(writer, "tokenizer.ggml.precompiled_charsmap", GGUF_U8,
                          vocabulary->charsmap, vocabulary->charsmap_bytes);
    gguf_writer_add_bool(writer, "tokenizer.ggml.add_space_prefix", vocabulary->adds_space);
    gguf_writer_add_bool(writer, "tokenizer.ggml.remove_extra_whitespaces",
                         vocabulary->merges_spaces);
  }
  if (vocabulary->merges != NULL) {
    gguf_writer_add_strings(writer, "tokenizer.ggml.merges", vocabulary->merge_count);
    for (size_t i = 0; i < vocabulary->merge_count; i++) {
      gguf_writer_add_item(writer, vocabulary->merges[i], strlen(vocabulary->merges[i]));
    }
  }
  free(kinds);
  free(scores);
}

uint8_t *fixture_write_vocabulary(const fixture_vocabulary *vocabulary, size_t *size_bytes) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  growing_file file = {0};
  gguf_writer *writer;
  wick_error error;
  if (!CHECK(gguf_writer_create(&memory, append, &file, 32, &writer, &error) == WICK_OK)) {
    return NULL;
  }
  add_vocabulary(writer, vocabulary);
  CHECK(gguf_writer_write_header(writer, &error) == WICK_OK);
  CHECK(gguf_writer_finish(writer, &error) == WICK_OK);
  gguf_writer_destroy(writer);
  *size_bytes = file.size_bytes;
  return file.bytes;
}

void fixture_open_vocabulary(vocabulary_fixture *fixture, const fixture_vocabulary *vocabulary) {
  size_t size_bytes;
  uint8_t *bytes = fixture_write_vocabulary(vocabulary, &size_bytes);
  fixture_open_bytes(fixture, bytes, size_bytes);
  free(bytes);
}

size_t fixture_add_alphabet(fixture_token *tokens) {
  static char texts[FIXTURE_ALPHABET][8];
  uint32_t other = 0x100;
  for (uint32_t byte = 0; byte < FIXTURE_ALPHABET; byte++) {
    const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    uint8_t text[4];
    const size_t size_bytes = utf8_encode(prints ? byte : other++, text);
    memcpy(texts[byte], text, size_bytes);
    texts[byte][size_bytes] = '\0';
    tokens[byte] = (fixture_token){texts[byte], TOKEN_NORMAL, 0};
  }
  return FIXTURE_ALPHABET;
}

void fixture_open_spm_bytes(vocabulary_fixture *fixture) {
  static fixture_token tokens[3 + 256 + 4];
  static char texts[256][8];
  tokens[0] = (fixture_token){"<unk>", TOKEN_UNKNOWN, 0};
  tokens[1] = (fixture_token){"<s>", TOKEN_CONTROL, 0};
  tokens[2] = (fixture_token){"</s>", TOKEN_CONTROL, 0};
  for (unsigned byte = 0; byte < 256; byte++) {
    snprintf(texts[byte], sizeof texts[byte], "<0x%02X>", byte);
    tokens[3 + byte] = (fixture_token){texts[byte], TOKEN_BYTE, 0};
  }
  tokens[259] = (fixture_token){"\xe2\x96\x81", TOKEN_NORMAL, -3};
  tokens[260] = (fixture_token){"a", TOKEN_NORMAL, -4};
  tokens[261] = (fixture_token){"▁a", TOKEN_NORMAL, -1};
  tokens[262] = (fixture_token){"\xc3\xa9", TOKEN_NORMAL, -2};
  fixture_open_vocabulary(
      fixture, &(fixture_vocabulary){.model = "llama", .tokens = tokens, .token_count = 263});
  if (!CHECK_EQ_INT(fixture->status, WICK_OK)) fixture_report(fixture);
}

int32_t *fixture_encode(vocabulary_fixture *fixture, const void *text, size_t size_bytes,
                        uint32_t flags, size_t *count) {
  const size_t capacity = 3 * size_bytes + 16;
  int32_t *tokens = malloc(capacity * sizeof *tokens);
  if (tokens == NULL) return NULL;
  fixture->status = tokenizer_encode(fixture->tokenizer, text, size_bytes, flags, tokens, capacity,
                                     count, &fixture->error);
  if (fixture->status == WICK_OK) return tokens;
  free(tokens);
  return NULL;
}

char *fixture_decode(const vocabulary_fixture *fixture, const int32_t *tokens, size_t count,
                     size_t *size_bytes) {
  const size_t piece_max = tokenizer_piece_bytes_max(fixture->tokenizer) + 16;
  size_t capacity = piece_max, used = 0;
  char *text = malloc(capacity);
  detokenizer state;
  detokenizer_init(&state, true, true);
  for (size_t i = 0; i <= count && text != NULL; i++) {
    if (capacity - used < piece_max) {
      capacity = 2 * capacity + piece_max;
      char *grown = realloc(text, capacity);
      if (grown == NULL) free(text);
      text = grown;
      if (text == NULL) return NULL;
    }
    used += i < count ? detokenizer_feed(&state, fixture->tokenizer, tokens[i], text + used)
                      : detokenizer_flush(&state, text + used);
  }
  *size_bytes = used;
  return text;
}
