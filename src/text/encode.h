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
  uint8_t *copy;      // the text in the form that the family reads
  size_t copy_bytes;  // capacity
} encode_state;

// Makes room for size_bytes in state->copy. The contents are lost.
wick_status encode_reserve(encode_state *state, size_t size_bytes, wick_error *error);

// SPM; with `leads`, the space of tokenizer.adds_space is put before the text.
wick_status spm_encode(encode_state *state, const uint8_t *text, size_t size_bytes, bool leads,
                       wick_error *error);
// Copies the text with each space as U+2581, and one before the text if `leads`. Returns the bytes
// written, at most 3 * (size_bytes + 1).
size_t spm_mark_spaces(const uint8_t *text, size_t size_bytes, bool leads, uint8_t *out);
// The end of the word that begins at a place of a text with marked spaces: it is before a mark such
// that no token has that mark after the preceding byte, so nothing is merged across it.
size_t spm_find_word_end(const tokenizer *tokenizer, const uint8_t *text, size_t at, size_t end);
// Turns each character into a symbol. The bytes need not be valid UTF-8.
void spm_split_characters(const tokenizer *tokenizer, const uint8_t *text, uint32_t size_bytes,
                          merge_symbol *symbols);
// Ids of the symbols of a text. A character without a token becomes its byte tokens.
void spm_put_symbols(encode_state *state, const uint8_t *text, uint32_t size_bytes);
// Bytes of a character by its first byte alone, valid or not.
uint32_t spm_lead_bytes(uint8_t lead);
// Adds the bytes that precede a mark in a token to tokenizer.bridges.
void spm_find_bridges(tokenizer *tokenizer, gguf_string text);
// Fills in byte_tokens.
void spm_find_bytes(tokenizer *tokenizer);
// Writes the bytes of a token's text to `out`, which must have room for the text's size.
size_t spm_decode(gguf_string text, uint8_t *out);
// The value of "<0xHH>", or -1.
int spm_byte_value(gguf_string text);

wick_status bpe_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error);
// BPE on characters instead of bytes (gemma4, where spaces are written as in SPM).
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

// Text becomes the longest tokens from left to right; bytes with which no token begins are unknown.
void rwkv_encode(encode_state *state, const uint8_t *text, size_t size_bytes);
// Writes the bytes of a token whose text has escapes; returns their number, which is at most the
// text's.
size_t rwkv_unescape(gguf_string text, uint8_t *out);

#endif
