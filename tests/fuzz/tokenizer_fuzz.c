// Fuzzes text with vocabularies of every family, and vocabularies. The first byte chooses a small
// built-in vocabulary whose tokens must decode to the text, or a GGUF file in the rest of the
// input, which must encode a fixed text without a fault.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../c/support/pretokenizer_names.h"
#include "base/text.h"
#include "format/gguf_writer.h"
#include "platform/platform.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOKENS = 259 + 12, TEXT_MAX = 1 << 16 };

// Vocabularies: one for each pattern, then the families without patterns.
enum {
  CHOICE_SPM = PRETOKENIZER_COUNT,
  CHOICE_GEMMA4,
  CHOICE_BERT,
  CHOICE_UNIGRAM,
  CHOICE_RWKV,
  CHOICE_WHITESPACE,
  VOCABULARY_COUNT
};

typedef struct vocabulary {
  gguf_directory *directory;
  tokenizer *tokenizer;
} vocabulary;

static memory_gate memory;
static vocabulary vocabularies[VOCABULARY_COUNT];

typedef struct growing_file {
  uint8_t *bytes;
  size_t size_bytes;
} growing_file;

static bool append(void *context, const void *bytes, size_t size_bytes) {
  growing_file *file = context;
  uint8_t *grown = realloc(file->bytes, file->size_bytes + size_bytes);
  if (grown == NULL) abort();
  file->bytes = grown;
  memcpy(file->bytes + file->size_bytes, bytes, size_bytes);
  file->size_bytes += size_bytes;
  return true;
}

// Writes the token of a byte: in BPE's alphabet or as SPM's "<0xHH>".
static size_t byte_token(unsigned byte, bool is_spm, char out[8]) {
  static const char DIGITS[] = "0123456789ABCDEF";
  if (is_spm) {
    const char text[6] = {'<', '0', 'x', DIGITS[byte >> 4], DIGITS[byte & 15], '>'};
    memcpy(out, text, sizeof text);
    return sizeof text;
  }
  const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
  const unsigned other = byte <= 0x20 ? byte : byte == 0xad ? 67 : byte - 0x7f + 33;
  return utf8_encode(prints ? byte : 0x100 + other, (uint8_t *)out);
}

static void write_tokens(gguf_writer *writer, bool is_spm) {
  static const char *const BPE_MORE[] = {"aa", "ab", "aaa", "aaaa", "ba", "11", "Ġa"};
  static const char *const SPM_MORE[] = {"a", "b", "aa", "ab", "aaa", "\xe2\x96\x81", "▁a"};
  static const char *const SPECIAL[] = {"<s>", "<s><s>", "</s>", "\n\n", "  "};
  int32_t kinds[TOKENS];
  float scores[TOKENS];
  gguf_writer_add_strings(writer, "tokenizer.ggml.tokens", TOKENS);
  gguf_writer_add_item(writer, "<unk>", 5);
  kinds[0] = TOKEN_UNKNOWN;
  for (unsigned byte = 0; byte < 256; byte++) {
    char text[8];
    gguf_writer_add_item(writer, text, byte_token(byte, is_spm, text));
    kinds[1 + byte] = is_spm ? TOKEN_BYTE : TOKEN_NORMAL;
  }
  for (size_t i = 0; i < 7; i++) {
    const char *text = is_spm ? SPM_MORE[i] : BPE_MORE[i];
    gguf_writer_add_item(writer, text, strlen(text));
    kinds[257 + i] = TOKEN_NORMAL;
  }
  for (size_t i = 0; i < 5; i++) {
    gguf_writer_add_item(writer, SPECIAL[i], strlen(SPECIAL[i]));
    kinds[264 + i] = i < 3 ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
  }
  gguf_writer_add_item(writer, "\xc3\xa9", 2);
  gguf_writer_add_item(writer, "unused", 6);
  kinds[269] = is_spm ? TOKEN_NORMAL : TOKEN_UNUSED;
  kinds[270] = TOKEN_UNUSED;
  for (size_t i = 0; i < TOKENS; i++) scores[i] = -(float)(i % 7);
  gguf_writer_add_array(writer, "tokenizer.ggml.token_type", GGUF_I32, kinds, TOKENS);
  gguf_writer_add_array(writer, "tokenizer.ggml.scores", GGUF_F32, scores, TOKENS);
}

static bool open_vocabulary(const uint8_t *bytes, size_t size, vocabulary *out) {
  wick_error error;
  size_t used;
  *out = (vocabulary){0};
  if (gguf_directory_create(&memory, &out->directory, &error) != WICK_OK) abort();
  return gguf_directory_feed(out->directory, bytes, size, &used, &error) == WICK_OK &&
         gguf_directory_finish(out->directory, &error) == WICK_OK &&
         tokenizer_create(&memory, out->directory, NULL, &out->tokenizer, &error) == WICK_OK;
}

static void write_vocabulary(size_t index) {
  static const char *const MERGES[] = {"a a", "a b", "aa a", "aa aa", "b a", "1 1", "Ġ a"};
  static const char *const MODELS[] = {"llama", "gemma4", "bert", "t5", "rwkv", "whitespace"};
  const bool is_spm = index >= PRETOKENIZER_COUNT;  // bytes are spelled as in SPM
  const char *model = is_spm ? MODELS[index - PRETOKENIZER_COUNT] : "gpt2";
  growing_file file = {0};
  gguf_writer *writer;
  wick_error error;
  if (gguf_writer_create(&memory, append, &file, 32, &writer, &error) != WICK_OK) abort();
  gguf_writer_add_string(writer, "tokenizer.ggml.model", model, strlen(model));
  if (!is_spm) {
    const char *pre = PRETOKENIZERS[index];
    gguf_writer_add_string(writer, "tokenizer.ggml.pre", pre, strlen(pre));
  }
  if (index == CHOICE_WHITESPACE) {
    gguf_writer_add_string(writer, "tokenizer.ggml.pre", "whitespace", 10);
    gguf_writer_add_bool(writer, "tokenizer.ggml.normalizer.lowercase", true);
  }
  if (!is_spm || index == CHOICE_GEMMA4 || index == CHOICE_WHITESPACE) {
    gguf_writer_add_strings(writer, "tokenizer.ggml.merges", 7);
    for (size_t i = 0; i < 7; i++) gguf_writer_add_item(writer, MERGES[i], strlen(MERGES[i]));
  }
  write_tokens(writer, is_spm);
  if (gguf_writer_write_header(writer, &error) != WICK_OK) abort();
  gguf_writer_destroy(writer);
  if (!open_vocabulary(file.bytes, file.size_bytes, &vocabularies[index])) abort();
  free(file.bytes);
}

static void require(bool condition) {
  if (!condition) __builtin_trap();
}

// Returns the ids of the text, from malloc().
static int32_t *encode(tokenizer *tokenizer, const uint8_t *text, size_t size, uint32_t flags,
                       size_t *count) {
  wick_error error;
  const size_t capacity = 3 * size + 8;
  int32_t *ids = malloc(capacity * sizeof *ids);
  if (ids == NULL) abort();
  wick_status status =
      tokenizer_encode(tokenizer, (const char *)text, size, flags, ids, capacity, count, &error);
  if (status == WICK_E_FULL) {  // a character map can lengthen a text
    free(ids);
    ids = malloc(*count * sizeof *ids);
    if (ids == NULL) abort();
    status =
        tokenizer_encode(tokenizer, (const char *)text, size, flags, ids, *count, count, &error);
  }
  require(status == WICK_OK);
  for (size_t i = 0; i < *count; i++) {
    require(ids[i] >= 0 && (uint32_t)ids[i] < tokenizer_vocab(tokenizer));
  }
  return ids;
}

// Returns the text of ids, from malloc(); checks that each piece is valid and within the stated
// size.
static uint8_t *decode(const tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *size) {
  const size_t piece_max = tokenizer_piece_bytes_max(tokenizer) + 16;
  uint8_t *text = malloc((count + 1) * piece_max);
  char *piece = malloc(piece_max);
  if (text == NULL || piece == NULL) abort();
  detokenizer state;
  detokenizer_init(&state, true, true);
  *size = 0;
  for (size_t i = 0; i <= count; i++) {
    const size_t got = i < count ? detokenizer_feed(&state, tokenizer, ids[i], piece)
                                 : detokenizer_flush(&state, piece);
    require(got <= piece_max && unicode_valid_bytes((const uint8_t *)piece, got) == got);
    memcpy(text + *size, piece, got);
    *size += got;
  }
  free(piece);
  return text;
}

static bool has_any(const uint8_t *text, size_t size, const char *wanted) {
  const size_t length = strlen(wanted);
  for (size_t at = 0; at + length <= size; at++) {
    if (memcmp(text + at, wanted, length) == 0) return true;
  }
  return false;
}

// Whether encoding and decoding restores the text.
static bool comes_back(size_t choice, const uint8_t *text, size_t size, uint32_t flags) {
  if (choice < PRETOKENIZER_COUNT) return true;
  if (choice >= CHOICE_BERT || has_any(text, size, "▁")) return false;
  if (choice == CHOICE_GEMMA4) return true;
  // SPM adds a space after each special token, and decodes invalid bytes differently.
  return flags == 0 && unicode_valid_bytes(text, size) == size && !has_any(text, size, "\n\n") &&
         !has_any(text, size, "  ");
}

static void check_text(size_t choice, const uint8_t *text, size_t size, uint32_t flags) {
  size_t count, size_back;
  const vocabulary *chosen = &vocabularies[choice];
  int32_t *ids = encode(chosen->tokenizer, text, size, flags, &count);
  uint8_t *back = decode(chosen->tokenizer, ids, count, &size_back);
  if (comes_back(choice, text, size, flags)) {
    uint8_t *repaired = malloc(3 * size + 1);
    if (repaired == NULL) abort();
    require(unicode_repair(text, size, repaired) == size_back);
    require(memcmp(repaired, back, size_back) == 0);
    free(repaired);
  }
  free(back);
  free(ids);
}

static void check_file(const uint8_t *bytes, size_t size) {
  static const uint8_t TEXT[] = "Hello <s>w\xc3\xb6rld</s> 123  \n\n\tIt's \xff aaaa <|im_end|>!?";
  vocabulary opened;
  const uint64_t before = memory.bytes_now;
  if (open_vocabulary(bytes, size, &opened)) {
    const uint64_t directory_only = memory.bytes_now;
    tokenizer *again = NULL;
    wick_error error;
    require(tokenizer_create(&memory, opened.directory, NULL, &again, &error) == WICK_OK);
    require(memory.bytes_now - directory_only <= tokenizer_plan_bytes(opened.directory));
    tokenizer_destroy(again);
    size_t count, size_back;
    int32_t *ids =
        encode(opened.tokenizer, TEXT, sizeof TEXT - 1, WICK_TOKENIZE_PARSE_SPECIAL, &count);
    free(decode(opened.tokenizer, ids, count, &size_back));
    free(ids);
    tokenizer_destroy(opened.tokenizer);
  }
  gguf_directory_destroy(opened.directory);
  require(memory.bytes_now == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (vocabularies[0].tokenizer == NULL) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    for (size_t i = 0; i < VOCABULARY_COUNT; i++) write_vocabulary(i);
  }
  if (size == 0 || size > TEXT_MAX) return 0;
  const size_t choice = data[0] & 127;
  if (choice >= VOCABULARY_COUNT) {
    check_file(data + 1, size - 1);
  } else {
    check_text(choice, data + 1, size - 1, data[0] >> 7 != 0 ? WICK_TOKENIZE_PARSE_SPECIAL : 0);
  }
  return 0;
}
