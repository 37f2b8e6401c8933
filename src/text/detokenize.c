// text/detokenize.c — the bytes of tokens, assembled into complete characters.
#include <string.h>

#include "base/text.h"
#include "text/encode.h"

enum { REPLACEMENT_BYTES = 3 };  // U+FFFD in UTF-8

size_t tokenizer_piece(const tokenizer *tokenizer, int32_t token, bool special, uint8_t *scratch,
                       const uint8_t **bytes) {
  *bytes = scratch;
  if (token < 0 || (uint32_t)token >= tokenizer->token_count) return 0;
  const gguf_string text = vocabulary_text(tokenizer, token);
  switch (vocabulary_kind(tokenizer, token)) {
    case TOKEN_CONTROL:
    case TOKEN_UNKNOWN:
      if (!special) return 0;
      break;
    case TOKEN_USER_DEFINED:
      break;
    case TOKEN_NORMAL:
      if (tokenizer->family == FAMILY_RWKV) break;
      return tokenizer->family == FAMILY_BPE ? bpe_decode(text, scratch)
                                             : spm_decode(text, scratch);
    case TOKEN_BYTE: {
      const int value = spm_byte_value(text);
      if (value < 0) return 0;
      scratch[0] = (uint8_t)value;
      return 1;
    }
    case TOKEN_UNUSED:
    default:
      return 0;
  }
  *bytes = (const uint8_t *)text.bytes;
  return (size_t)text.size_bytes;
}

// Returns the maximum size of a piece, each byte of which may become U+FFFD.
size_t tokenizer_piece_bytes_max(const tokenizer *tokenizer) {
  return (size_t)tokenizer->token_bytes_max * REPLACEMENT_BYTES;
}

void detokenizer_init(detokenizer *state, bool at_start, bool special) {
  *state = (detokenizer){.at_start = at_start, .special = special};
}

// Adds one byte. Writes the characters that are now complete to `out` (at most 4 + 3 bytes).
static size_t feed_byte(detokenizer *state, uint8_t byte, uint8_t *out) {
  size_t used = 0;
  for (;;) {
    uint32_t code;
    state->pending[state->pending_bytes++] = byte;
    const int length = utf8_decode(state->pending, state->pending_bytes, &code);
    if (length < 0) return used;
    if (length > 0) {
      memcpy(out + used, state->pending, (size_t)length);
      state->pending_bytes = 0;
      return used + (size_t)length;
    }
    // The pending bytes are invalid and become one U+FFFD. The new byte may begin a character.
    const bool was_alone = state->pending_bytes == 1;
    state->pending_bytes = 0;
    used += utf8_encode(0xfffd, out + used);
    if (was_alone) return used;
  }
}

size_t detokenizer_feed(detokenizer *state, const tokenizer *tokenizer, int32_t token, char *out) {
  uint8_t *text = (uint8_t *)out;
  // The piece is stored at the end of `out` and read from there before it can be overwritten: the
  // output grows by at most 3 bytes for each byte that is still to be read.
  const size_t piece_max = tokenizer->token_bytes_max;
  uint8_t *scratch = text + 2 * piece_max + 16;
  const uint8_t *bytes;
  size_t size_bytes = tokenizer_piece(tokenizer, token, state->special, scratch, &bytes);
  if (size_bytes == 0) return 0;
  const bool has_prefix = tokenizer->family == FAMILY_SPM || tokenizer->family == FAMILY_UGM;
  if (state->at_start && has_prefix && tokenizer->adds_space && bytes[0] == ' ') {
    bytes++;
    size_bytes--;
  }
  state->at_start = false;
  size_t used = 0;
  for (size_t i = 0; i < size_bytes; i++) used += feed_byte(state, bytes[i], text + used);
  return used;
}

size_t detokenizer_flush(detokenizer *state, char *out) {
  if (state->pending_bytes == 0) return 0;
  state->pending_bytes = 0;
  return utf8_encode(0xfffd, (uint8_t *)out);
}
