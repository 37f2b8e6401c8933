// text/spm.c — SentencePiece's BPE as llama models use it: spaces become U+2581, neighbours are
// merged in order of the merged token's score, and the rest becomes bytes.
#include <string.h>

#include "base/math.h"
#include "base/text.h"
#include "text/encode.h"

static const uint8_t SPACE_MARK[3] = {0xe2, 0x96, 0x81};  // U+2581
enum { SPACE_MARK_BYTES = sizeof SPACE_MARK, BYTE_TEXT_BYTES = 6 };

// The context for merging.
typedef struct spm_text {
  const tokenizer *tokenizer;
  const uint8_t *bytes;
} spm_text;

// Returns a smaller key for a greater score, in the order of floats; NaN is last.
static uint32_t order_of_score(const tokenizer *tokenizer, int32_t id) {
  if (tokenizer->scores == NULL) return 0;
  float score;
  memcpy(&score, tokenizer->scores + (size_t)id * sizeof score, sizeof score);
  if (score != score) return UINT32_MAX;
  const uint32_t bits = bits_of_f32(score + 0.0f);  // -0 and 0 are equal
  return (bits & 0x80000000u) != 0 ? bits : 0x7fffffffu - bits;
}

static bool find_pair(const void *context, const merge_symbol *symbols, uint32_t left,
                      uint32_t right, uint32_t end, uint32_t *order, int32_t *id) {
  (void)symbols;
  (void)right;
  const spm_text *text = context;
  if (end - left > text->tokenizer->token_bytes_max) return false;
  const int32_t found = vocabulary_find(text->tokenizer, text->bytes + left, end - left);
  if (found == TOKEN_NONE) return false;
  *order = order_of_score(text->tokenizer, found);
  *id = found;
  return true;
}

uint32_t spm_lead_bytes(uint8_t lead) {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Converts each character to a symbol. The bytes need not be valid UTF-8.
static void split_characters(const tokenizer *tokenizer, const uint8_t *text, uint32_t size_bytes,
                             merge_symbol *symbols) {
  uint32_t previous = SYMBOL_END;
  for (uint32_t at = 0; at < size_bytes;) {
    const uint32_t left = size_bytes - at;
    const uint32_t length = spm_lead_bytes(text[at]) < left ? spm_lead_bytes(text[at]) : left;
    const uint32_t next = length < left ? at + length : SYMBOL_END;
    symbols[at] = (merge_symbol){
        .previous = previous, .next = next, .id = vocabulary_find(tokenizer, text + at, length)};
    previous = at;
    at += length;
  }
}

// Adds the ids of the symbols. A character without a token becomes byte tokens.
static void put_symbols(encode_state *state, const uint8_t *text, uint32_t size_bytes) {
  const merge_symbol *symbols = state->merger.symbols;
  for (uint32_t at = 0; at != SYMBOL_END; at = symbols[at].next) {
    if (symbols[at].id != TOKEN_NONE) {
      sink_put(&state->sink, symbols[at].id);
      continue;
    }
    const uint32_t end = symbols[at].next == SYMBOL_END ? size_bytes : symbols[at].next;
    for (uint32_t i = at; i < end; i++) {
      const int32_t id = state->tokenizer->byte_tokens[text[i]];
      if (id != TOKEN_NONE) sink_put(&state->sink, id);
    }
  }
}

wick_status spm_merge_word(encode_state *state, const uint8_t *word, size_t size_bytes,
                           merge_find_pair find, const void *context, cached_word *place,
                           wick_error *error) {
  const size_t first = state->sink.count;
  bool is_merged = merger_reserve(&state->merger, size_bytes);
  if (is_merged) {
    split_characters(state->tokenizer, word, (uint32_t)size_bytes, state->merger.symbols);
    is_merged = merger_run(&state->merger, (uint32_t)size_bytes, find, context);
  }
  if (!is_merged) return memory_fail(state->tokenizer->memory, error, "tokenizing");
  put_symbols(state, word, (uint32_t)size_bytes);
  word_cache_keep(&state->words, place, word, size_bytes, &state->sink, first);
  return WICK_OK;
}

size_t spm_mark_spaces(const uint8_t *text, size_t size_bytes, bool leads, uint8_t *out) {
  size_t used = 0;
  if (leads) {
    memcpy(out, SPACE_MARK, SPACE_MARK_BYTES);
    used = SPACE_MARK_BYTES;
  }
  for (size_t at = 0; at < size_bytes; at++) {
    if (text[at] == ' ') {
      memcpy(out + used, SPACE_MARK, SPACE_MARK_BYTES);
      used += SPACE_MARK_BYTES;
    } else {
      out[used++] = text[at];
    }
  }
  return used;
}

static bool is_mark(const uint8_t *text, size_t at, size_t end) {
  return end - at >= SPACE_MARK_BYTES && memcmp(text + at, SPACE_MARK, SPACE_MARK_BYTES) == 0;
}

void spm_find_bridges(tokenizer *tokenizer, gguf_string text) {
  const uint8_t *bytes = (const uint8_t *)text.bytes;
  for (size_t at = 1; at < text.size_bytes; at++) {
    if (bytes[at] != SPACE_MARK[0] || !is_mark(bytes, at, (size_t)text.size_bytes)) continue;
    tokenizer->bridges[bytes[at - 1] / 32] |= 1u << bytes[at - 1] % 32;
  }
}

size_t spm_find_word_end(const tokenizer *tokenizer, const uint8_t *text, size_t at, size_t end) {
  while (at < end) {
    const size_t length = spm_lead_bytes(text[at]);
    if (length >= end - at) return end;
    at += length;
    const uint8_t before = text[at - 1];
    const bool is_bridge = (tokenizer->bridges[before / 32] >> before % 32 & 1) != 0;
    if (text[at] == SPACE_MARK[0] && !is_bridge && is_mark(text, at, end)) return at;
  }
  return end;
}

static wick_status encode_word(encode_state *state, const uint8_t *word, size_t size_bytes,
                               wick_error *error) {
  const spm_text context = {state->tokenizer, word};
  cached_word *place = word_cache_place(&state->words, word, size_bytes);
  if (word_cache_put(&state->words, place, word, size_bytes, &state->sink)) return WICK_OK;
  return spm_merge_word(state, word, size_bytes, find_pair, &context, place, error);
}

wick_status spm_encode(encode_state *state, const uint8_t *text, size_t size_bytes, bool leads,
                       wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  const bool has_prefix = leads && tokenizer->adds_space;
  size_t spaces = has_prefix ? 1 : 0;
  for (size_t at = 0; at < size_bytes; at++) spaces += text[at] == ' ';
  wick_status status = encode_reserve(state, size_bytes + spaces * SPACE_MARK_BYTES, error);
  if (status != WICK_OK) return status;
  const size_t marked = spm_mark_spaces(text, size_bytes, has_prefix, state->copy);
  for (size_t at = 0, end; at < marked && status == WICK_OK; at = end) {
    end = spm_find_word_end(tokenizer, state->copy, at, marked);
    status = encode_word(state, state->copy + at, end - at, error);
  }
  return status;
}

int spm_byte_value(gguf_string text) {
  if (text.size_bytes != BYTE_TEXT_BYTES || memcmp(text.bytes, "<0x", 3) != 0) return -1;
  const uint32_t high = text_hex_value((uint8_t)text.bytes[3]);
  const uint32_t low = text_hex_value((uint8_t)text.bytes[4]);
  return high == 16 || low == 16 || text.bytes[5] != '>' ? -1 : (int)(high << 4 | low);
}

void spm_find_bytes(tokenizer *tokenizer) {
  static const char DIGITS[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; byte++) {
    const char text[BYTE_TEXT_BYTES] = {'<', '0', 'x', DIGITS[byte >> 4], DIGITS[byte & 15], '>'};
    int32_t id = vocabulary_find(tokenizer, text, sizeof text);
    if (id == TOKEN_NONE) {
      const uint8_t raw = (uint8_t)byte;
      id = vocabulary_find(tokenizer, &raw, 1);
    }
    tokenizer->byte_tokens[byte] = id != TOKEN_NONE ? id : tokenizer->unknown;
  }
}

size_t spm_decode(gguf_string text, uint8_t *out) {
  size_t used = 0;
  for (size_t at = 0; at < text.size_bytes;) {
    if (text.size_bytes - at >= SPACE_MARK_BYTES &&
        memcmp(text.bytes + at, SPACE_MARK, SPACE_MARK_BYTES) == 0) {
      out[used++] = ' ';
      at += SPACE_MARK_BYTES;
    } else {
      out[used++] = (uint8_t)text.bytes[at++];
    }
  }
  return used;
}
