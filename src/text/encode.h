// text/encode.h — one encoder for each tokenizer family, for text without special tokens. Internal
// to text/.
#ifndef WICK_TEXT_ENCODE_H
#define WICK_TEXT_ENCODE_H

#include "text/merge.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

// The state of one call of tokenizer_encode.
typedef struct encode_state {
  const tokenizer *tokenizer;
  token_sink sink;
  merger merger;
  word_cache words;
  uint8_t *copy;      // the text in the form that the family needs
  size_t copy_bytes;  // capacity of `copy`
} encode_state;

// Allocates at least size_bytes for state->copy. The contents are lost.
wick_status encode_reserve(encode_state *state, size_t size_bytes, wick_error *error);

// Encodes with SPM; with `leads`, the space of tokenizer.adds_space is inserted before the text.
wick_status spm_encode(encode_state *state, const uint8_t *text, size_t size_bytes, bool leads,
                       wick_error *error);
// Copies the text with each space replaced by U+2581, and inserts a U+2581 before the text if
// `leads`. Returns the number of bytes written, at most 3 * (size_bytes + 1).
size_t spm_mark_spaces(const uint8_t *text, size_t size_bytes, bool leads, uint8_t *out);
// Returns the end of the word that begins at a position of text with marked spaces. The word ends
// before a marker that no token has after the preceding byte, so nothing is merged across the end.
size_t spm_find_word_end(const tokenizer *tokenizer, const uint8_t *text, size_t at, size_t end);
// Merges the characters of a word, and adds its tokens to the sink and to the cache's `place`.
wick_status spm_merge_word(encode_state *state, const uint8_t *word, size_t size_bytes,
                           merge_find_pair find, const void *context, cached_word *place,
                           wick_error *error);
// Returns the size of a character by its first byte only, whether valid or not.
uint32_t spm_lead_bytes(uint8_t lead);
// Adds the bytes that precede a space marker in a token to tokenizer.bridges.
void spm_find_bridges(tokenizer *tokenizer, gguf_string text);
// Fills in byte_tokens.
void spm_find_bytes(tokenizer *tokenizer);
// Writes the bytes of a token's text to `out`, which must be at least as large as the text.
size_t spm_decode(gguf_string text, uint8_t *out);
// Returns the value of "<0xHH>", or -1.
int spm_byte_value(gguf_string text);

wick_status bpe_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error);
// Encodes with BPE on characters instead of bytes (gemma4, where spaces are written as in SPM).
wick_status bpe_encode_characters(encode_state *state, const uint8_t *text, size_t size_bytes,
                                  wick_error *error);
void bpe_find_bytes(tokenizer *tokenizer);
size_t bpe_decode(gguf_string text, uint8_t *out);

wick_status wpm_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error);

wick_status ugm_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error);
// Sets unknown_score to less than the score of any normal token.
void ugm_find_unknown_score(tokenizer *tokenizer);

// Splits text into the longest tokens from left to right; bytes that no token begins with are
// unknown.
void rwkv_encode(encode_state *state, const uint8_t *text, size_t size_bytes);
// Writes the bytes of a token whose text has escapes; returns their number, which is at most the
// size of the text.
size_t rwkv_unescape(gguf_string text, uint8_t *out);

#endif
