// text/spm.c — SentencePiece's BPE as llama models use it: spaces become U+2581, neighbours are
// joined in order of the score of what they make, what is left becomes bytes.
#include <string.h>

#include "base/math.h"
#include "text/encode.h"

static const uint8_t SPACE_MARK[3] = {0xe2, 0x96, 0x81};  // U+2581
enum { SPACE_MARK_BYTES = sizeof SPACE_MARK, BYTE_TEXT_BYTES = 6 };

// What the merging needs to know of the text.
typedef struct spm_text {
  const tokenizer *tokenizer;
  const uint8_t *bytes;
} spm_text;

// Smaller for greater scores, in the order of floats; NaN comes last.
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

void spm_split_characters(const tokenizer *tokenizer, const uint8_t *text, uint32_t size_bytes,
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

void spm_put_symbols(encode_state *state, const uint8_t *text, uint32_t size_bytes) {
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

wick_status spm_encode(encode_state *state, const uint8_t *text, size_t size_bytes, bool leads,
                       wick_error *error) {
  size_t spaces = leads && state->tokenizer->adds_space ? 1 : 0;
  for (size_t at = 0; at < size_bytes; at++) spaces += text[at] == ' ';
  const wick_status status = encode_reserve(state, size_bytes + spaces * SPACE_MARK_BYTES, error);
  if (status != WICK_OK) return status;
  const size_t marked =
      spm_mark_spaces(text, size_bytes, leads && state->tokenizer->adds_space, state->copy);
  const spm_text context = {state->tokenizer, state->copy};
  if (!merger_reserve(&state->merger, marked)) {
    return memory_fail(state->tokenizer->memory, error, "tokenizing",
                       marked * sizeof(merge_symbol));
  }
  spm_split_characters(state->tokenizer, state->copy, (uint32_t)marked, state->merger.symbols);
  if (!merger_run(&state->merger, (uint32_t)marked, find_pair, &context)) {
    return memory_fail(state->tokenizer->memory, error, "tokenizing", marked * sizeof(uint64_t));
  }
  spm_put_symbols(state, state->copy, (uint32_t)marked);
  return WICK_OK;
}

static int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

int spm_byte_value(gguf_string text) {
  if (text.size_bytes != BYTE_TEXT_BYTES || memcmp(text.bytes, "<0x", 3) != 0) return -1;
  const int high = hex_value(text.bytes[3]), low = hex_value(text.bytes[4]);
  return high < 0 || low < 0 || text.bytes[5] != '>' ? -1 : high << 4 | low;
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
