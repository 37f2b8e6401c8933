// text/encode.c — text to ids: special tokens first, then the text between them by the rules of the
// tokenizer family.
#include "text/encode.h"

#include "text/special.h"

wick_status encode_reserve(encode_state *state, size_t size_bytes, wick_error *error) {
  if (size_bytes <= state->copy_bytes && state->copy != NULL) return WICK_OK;
  memory_gate *memory = state->tokenizer->memory;
  memory_free(memory, state->copy);
  state->copy = memory_alloc(memory, size_bytes);
  state->copy_bytes = state->copy != NULL ? size_bytes : 0;
  if (state->copy != NULL) return WICK_OK;
  return memory_fail(memory, error, "tokenizing");
}

// Encodes a piece of text without special tokens; `leads`: it is the first piece, or follows a
// special token.
static wick_status encode_plain(encode_state *state, const uint8_t *text, size_t size_bytes,
                                bool leads, wick_error *error) {
  if (size_bytes == 0) return WICK_OK;
  if (!word_cache_begin(&state->words, state->tokenizer->memory, size_bytes)) {
    return memory_fail(state->tokenizer->memory, error, "tokenizing");
  }
  switch (state->tokenizer->family) {
    case FAMILY_SPM:
      return spm_encode(state, text, size_bytes, leads, error);
    case FAMILY_BPE:
      return bpe_encode(state, text, size_bytes, error);
    case FAMILY_CHARACTER_BPE:
      return bpe_encode_characters(state, text, size_bytes, error);
    case FAMILY_WPM:
      return wpm_encode(state, text, size_bytes, error);
    case FAMILY_UGM:
      return ugm_encode(state, text, size_bytes, error);
    case FAMILY_RWKV:
      rwkv_encode(state, text, size_bytes);
      return WICK_OK;
  }
  return WICK_E_CORRUPT;
}

static wick_status encode_fragments(encode_state *state, special_search *search,
                                    const special_text *text, bool leads, wick_error *error) {
  uint32_t at = 0;
  special_match match;
  while (special_next(search, &match)) {
    const wick_status status =
        encode_plain(state, text->bytes + at, match.begin - at, leads, error);
    if (status != WICK_OK) return status;
    sink_put_any(&state->sink, match.token);
    at = match.end;
    leads = true;
  }
  return encode_plain(state, text->bytes + at, text->size_bytes - at, leads, error);
}

void sink_put_bytes(token_sink *sink, int32_t token) {
  const tokenizer *tokenizer = sink->bars;
  const gguf_string text = vocabulary_text(tokenizer, token);
  for (uint64_t i = 0; i < text.size_bytes; i++) {
    const int32_t byte = tokenizer->byte_tokens[(uint8_t)text.bytes[i]];
    const bool is_barred = byte == TOKEN_NONE || vocabulary_kind(tokenizer, byte) == TOKEN_CONTROL;
    if (!is_barred) sink_put_any(sink, byte);
  }
}

wick_status tokenizer_encode(const tokenizer *tokenizer, const char *text, size_t size_bytes,
                             uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                             wick_error *error) {
  return tokenizer_encode_spans(tokenizer, text, size_bytes, NULL, 0, flags, tokens, capacity,
                                count, error);
}

wick_status tokenizer_encode_spans(const tokenizer *tokenizer, const char *text, size_t size_bytes,
                                   const wick_span *spans, size_t span_count, uint32_t flags,
                                   int32_t *tokens, size_t capacity, size_t *count,
                                   wick_error *error) {
  *count = 0;
  if (size_bytes > TEXT_BYTES_MAX) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "text of %zu bytes is too long",
                     size_bytes);
  }
  encode_state state = {
      .tokenizer = tokenizer,
      .sink = {.tokens = tokens, .capacity = capacity, .bars = spans != NULL ? tokenizer : NULL},
      .merger = {.memory = tokenizer->memory}};
  const bool adds_special = (flags & WICK_TOKENIZE_ADD_SPECIAL) != 0;
  const bool controls = (flags & WICK_TOKENIZE_PARSE_SPECIAL) != 0;
  const bool leads = (flags & TOKENIZE_CONTINUES) == 0;
  if (adds_special && tokenizer_adds_bos(tokenizer)) sink_put_any(&state.sink, tokenizer->bos);
  special_search search = {0};
  const special_text whole = {(const uint8_t *)(text != NULL ? text : ""), (uint32_t)size_bytes,
                              spans, span_count};
  wick_status status = special_find(&search, tokenizer, &whole, controls, error);
  if (status == WICK_OK) status = encode_fragments(&state, &search, &whole, leads, error);
  special_free(&search, tokenizer->memory);
  merger_free(&state.merger);
  word_cache_free(&state.words, tokenizer->memory);
  memory_free(tokenizer->memory, state.copy);
  if (status != WICK_OK) return status;
  if (adds_special && tokenizer_adds_eos(tokenizer)) sink_put_any(&state.sink, tokenizer->eos);
  if (adds_special && tokenizer->family == FAMILY_WPM && tokenizer->separator != TOKEN_NONE) {
    sink_put_any(&state.sink, tokenizer->separator);
  }
  *count = state.sink.count;
  if (*count <= capacity) return WICK_OK;
  return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "%zu tokens exceed the limit of %zu", *count,
                   capacity);
}
