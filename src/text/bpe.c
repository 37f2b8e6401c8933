// text/bpe.c — byte-level BPE (GPT-2). Vocabularies and merges are written in an alphabet with one
// printable character for each byte. Words are merged from bytes in merge order.
#include <string.h>

#include "base/text.h"
#include "text/encode.h"

// GPT-2's alphabet: printable bytes represent themselves, and the other 68 are mapped to characters
// starting at U+0100.
static uint32_t alphabet_of_byte(unsigned byte) {
  if (byte <= 0x20) return 0x100 + byte;
  if (byte < 0x7f) return byte;
  if (byte <= 0xa0) return 0x121 + (byte - 0x7f);
  return byte == 0xad ? 0x143 : byte;
}

// Returns the byte of a character; -1 if it is not in the alphabet.
static int byte_of_alphabet(uint32_t code) {
  if (code > 0x143 || code <= 0x20 || code == 0xad || (code >= 0x7f && code <= 0xa0)) return -1;
  if (code < 0x100) return (int)code;
  if (code <= 0x120) return (int)(code - 0x100);
  return code == 0x143 ? 0xad : (int)(code - 0x121 + 0x7f);
}

void bpe_find_bytes(tokenizer *tokenizer) {
  for (unsigned byte = 0; byte < 256; byte++) {
    uint8_t text[4];
    const size_t size_bytes = utf8_encode(alphabet_of_byte(byte), text);
    tokenizer->byte_tokens[byte] = vocabulary_find(tokenizer, text, size_bytes);
  }
}

static bool find_pair(const void *context, const merge_symbol *symbols, uint32_t left,
                      uint32_t right, uint32_t end, uint32_t *order, int32_t *id) {
  (void)end;
  const tokenizer *tokenizer = context;
  if (symbols[left].id == TOKEN_NONE || symbols[right].id == TOKEN_NONE) return false;
  const uint32_t rank = vocabulary_find_rule(tokenizer, symbols[left].id, symbols[right].id);
  if (rank == UINT32_MAX) return false;
  *order = rank;
  *id = tokenizer->rules[rank].joined;
  return true;
}

// Returns the token of a whole word, or TOKEN_NONE.
static int32_t find_word(const tokenizer *tokenizer, const uint8_t *word, size_t size_bytes,
                         uint8_t *scratch) {
  size_t used = 0;
  for (size_t at = 0; at < size_bytes; at++) {
    if (used + 2 > tokenizer->token_bytes_max + 1u) return TOKEN_NONE;
    used += utf8_encode(alphabet_of_byte(word[at]), scratch + used);
  }
  return vocabulary_find(tokenizer, scratch, used);
}

static wick_status encode_word(encode_state *state, const uint8_t *word, size_t size_bytes,
                               wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  if (!merger_reserve(&state->merger, size_bytes)) {
    return memory_fail(tokenizer->memory, error, "tokenizing");
  }
  merge_symbol *symbols = state->merger.symbols;
  for (uint32_t at = 0; at < size_bytes; at++) {
    symbols[at] = (merge_symbol){.previous = at > 0 ? at - 1 : SYMBOL_END,
                                 .next = at + 1 < size_bytes ? at + 1 : SYMBOL_END,
                                 .id = tokenizer->byte_tokens[word[at]]};
  }
  if (!merger_run(&state->merger, (uint32_t)size_bytes, find_pair, tokenizer)) {
    return memory_fail(tokenizer->memory, error, "tokenizing");
  }
  for (uint32_t at = 0; at != SYMBOL_END; at = symbols[at].next) {
    if (symbols[at].id != TOKEN_NONE) sink_put(&state->sink, symbols[at].id);
  }
  return WICK_OK;
}

// Encodes the words of text that is valid UTF-8; `scratch` must have room for the longest token and
// 2 more bytes.
static wick_status encode_words(encode_state *state, const uint8_t *text, size_t size_bytes,
                                uint8_t *scratch, wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  word_cursor cursor;
  text_span word;
  word_cursor_init(&cursor, tokenizer->pretokenizer, text, size_bytes);
  while (word_cursor_next(&cursor, &word)) {
    const uint8_t *begin = text + word.begin;
    const size_t length = word.end - word.begin, first = state->sink.count;
    cached_word *place = word_cache_place(&state->words, begin, length);
    if (word_cache_put(&state->words, place, begin, length, &state->sink)) continue;
    const int32_t whole = tokenizer->pretokenizer->ignores_merges
                              ? find_word(tokenizer, begin, length, scratch)
                              : TOKEN_NONE;
    if (whole != TOKEN_NONE) {
      sink_put(&state->sink, whole);
    } else {
      const wick_status status = encode_word(state, begin, length, error);
      if (status != WICK_OK) return status;
    }
    word_cache_keep(&state->words, place, begin, length, &state->sink, first);
  }
  return WICK_OK;
}

wick_status bpe_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error) {
  const size_t scratch_bytes = state->tokenizer->token_bytes_max + 2u;
  const bool is_valid = unicode_valid_bytes(text, size_bytes) == size_bytes;
  const size_t repaired_max = is_valid ? 0 : 3 * size_bytes;
  const wick_status status = encode_reserve(state, scratch_bytes + repaired_max, error);
  if (status != WICK_OK) return status;
  if (is_valid) return encode_words(state, text, size_bytes, state->copy, error);
  uint8_t *repaired = state->copy + scratch_bytes;
  const size_t repaired_bytes = unicode_repair(text, size_bytes, repaired);
  return encode_words(state, repaired, repaired_bytes, state->copy, error);
}

// Encodes a word with a vocabulary of characters.
static wick_status encode_raw_word(encode_state *state, const uint8_t *word, size_t size_bytes,
                                   wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  cached_word *place = word_cache_place(&state->words, word, size_bytes);
  if (word_cache_put(&state->words, place, word, size_bytes, &state->sink)) return WICK_OK;
  if (tokenizer->pretokenizer->keeps_newlines && word[0] == '\n') {
    const int32_t id = vocabulary_find(tokenizer, word, size_bytes);
    if (id != TOKEN_NONE) {
      sink_put(&state->sink, id);
      return WICK_OK;
    }
  }
  return spm_merge_word(state, word, size_bytes, find_pair, tokenizer, place, error);
}

// Converts to lower case, into at most 2 * size_bytes + 4 bytes: a character of 2 bytes may have a
// lower-case form of 3 bytes.
static size_t lower_text(const uint8_t *text, size_t size_bytes, uint8_t *out) {
  size_t used = 0;
  for (size_t at = 0; at < size_bytes;) {
    const unicode_char c = unicode_at(text, at, size_bytes);
    used += utf8_encode(unicode_lower(c.code), out + used);
    at += c.size_bytes;
  }
  return used;
}

wick_status bpe_encode_characters(encode_state *state, const uint8_t *text, size_t size_bytes,
                                  wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  // The copy first contains the text with invalid bytes replaced (a byte becomes at most 3), then
  // this text with marked spaces.
  const wick_status reserved = encode_reserve(state, 12 * size_bytes + 4, error);
  if (reserved != WICK_OK) return reserved;
  const size_t repaired = unicode_repair(text, size_bytes, state->copy);
  const uint8_t *form = state->copy;
  size_t form_bytes = repaired;
  if (tokenizer->pretokenizer->marks_spaces) {
    form = state->copy + repaired;
    form_bytes = spm_mark_spaces(state->copy, repaired, false, state->copy + repaired);
  } else if (tokenizer->lowers_case) {
    form = state->copy + repaired;
    form_bytes = lower_text(state->copy, repaired, state->copy + repaired);
  }
  word_cursor cursor;
  text_span word;
  word_cursor_init(&cursor, tokenizer->pretokenizer, form, form_bytes);
  while (word_cursor_next(&cursor, &word)) {
    const bool is_dropped =
        tokenizer->drops_spaces && unicode_at(form, word.begin, word.end).kind == UNICODE_SPACE;
    if (is_dropped) continue;
    for (size_t at = word.begin, end; at < word.end; at = end) {
      end = spm_find_word_end(tokenizer, form, at, word.end);
      const wick_status status = encode_raw_word(state, form + at, end - at, error);
      if (status != WICK_OK) return status;
    }
  }
  return WICK_OK;
}

size_t bpe_decode(gguf_string text, uint8_t *out) {
  const uint8_t *bytes = (const uint8_t *)text.bytes;
  size_t used = 0;
  for (size_t at = 0; at < text.size_bytes;) {
    uint32_t code;
    const int length = utf8_decode(bytes + at, (size_t)text.size_bytes - at, &code);
    const int byte = length > 0 ? byte_of_alphabet(code) : -1;
    const size_t step = length > 0 ? (size_t)length : 1;
    if (byte >= 0) {
      out[used++] = (uint8_t)byte;
    } else {  // not in the alphabet: unchanged
      memcpy(out + used, bytes + at, step);
      used += step;
    }
    at += step;
  }
  return used;
}
