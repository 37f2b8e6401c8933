// text/rwkv.c — RWKV's "world" vocabulary: tokens are arbitrary bytes, written with escapes in
// files, and the text is split from left to right into the longest possible tokens. Source: RWKV's
// rwkv_vocab_v20230424, as implemented in llama.cpp.
#include "base/text.h"
#include "text/encode.h"

size_t rwkv_unescape(gguf_string text, uint8_t *out) {
  size_t used = 0;
  for (size_t at = 0; at < text.size_bytes; at++) {
    char c = text.bytes[at];
    if (c == '\\' && at + 1 < text.size_bytes) {
      c = text.bytes[++at];
      if (c == 'x' && at + 2 < text.size_bytes) {
        c = (char)(uint8_t)(text_hex_value((uint8_t)text.bytes[at + 1]) << 4 |
                            text_hex_value((uint8_t)text.bytes[at + 2]));
        at += 2;
      } else {
        c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
      }
    }
    out[used++] = (uint8_t)c;
  }
  return used;
}

void rwkv_encode(encode_state *state, const uint8_t *text, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes;) {
    size_t length = 1;
    int32_t id = vocabulary_find_longest(state->tokenizer, text + at, size_bytes - at, &length);
    if (id == TOKEN_NONE) id = state->tokenizer->unknown;
    if (id != TOKEN_NONE) sink_put(&state->sink, id);
    at += length;
  }
}
