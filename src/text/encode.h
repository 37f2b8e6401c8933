// text/encode.h — how each family encodes a piece of text that holds no special tokens. Internal
// to text/.
#ifndef WICK_TEXT_ENCODE_H
#define WICK_TEXT_ENCODE_H

#include "text/merge.h"
#include "text/vocabulary.h"

// What one call of tokenizer_encode works with.
typedef struct encode_state {
  const tokenizer *tokenizer;
  token_sink sink;
  merger merger;
  uint8_t *copy;      // text as the family needs it
  size_t copy_bytes;  // capacity
} encode_state;

// Room for size_bytes in state->copy, contents lost.
wick_status encode_reserve(encode_state *state, size_t size_bytes, wick_error *error);

// SPM; `leads` puts the space of tokenizer.adds_space before the text.
wick_status spm_encode(encode_state *state, const uint8_t *text, size_t size_bytes, bool leads,
                       wick_error *error);
// Fills in byte_tokens.
void spm_find_bytes(tokenizer *tokenizer);
// The bytes of a token's text, written to `out`, which takes its size.
size_t spm_decode(gguf_string text, uint8_t *out);
// The value of "<0xHH>", or -1.
int spm_byte_value(gguf_string text);

wick_status bpe_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error);
void bpe_find_bytes(tokenizer *tokenizer);
size_t bpe_decode(gguf_string text, uint8_t *out);

#endif
