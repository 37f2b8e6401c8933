// api/tokens.c — the functions of wick.h for tokens: text to tokens and back.
#include "api/insides.h"
#include "base/checked.h"

enum {
  CHARACTER_BYTES_MAX = 16
};  // the maximum number of bytes that a detokenizer writes in addition to the bytes of a token

wick_status wick_tokenizer_status(const wick_engine *engine, wick_error *error) {
  if (engine->tokenizer != NULL) return WICK_OK;
  if (engine->tokenizer_error.status != WICK_OK) {
    return engine_repeat_error(&engine->tokenizer_error, error);
  }
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                   "the model's tokenizer has not arrived yet");
}

uint32_t wick_tokenizer_vocab(const wick_engine *engine) {
  return engine->tokenizer == NULL ? 0 : tokenizer_vocab(engine->tokenizer);
}

wick_status wick_tokenize(wick_engine *engine, const char *text, size_t text_bytes, uint32_t flags,
                          int32_t *tokens, size_t capacity, size_t *count, wick_error *error) {
  *count = 0;
  if (engine->tokenizer == NULL) return wick_tokenizer_status(engine, error);
  return tokenizer_encode(engine->tokenizer, text, text_bytes, flags, tokens, capacity, count,
                          error);
}

size_t wick_detokenize_bytes_max(const wick_engine *engine, size_t count) {
  size_t room;
  if (engine->tokenizer == NULL) return 0;
  const size_t piece_bytes = tokenizer_piece_bytes_max(engine->tokenizer) + CHARACTER_BYTES_MAX;
  const bool fits = count < SIZE_MAX && checked_mul_size(count + 1, piece_bytes, &room);
  return fits ? room : SIZE_MAX;
}

wick_status wick_detokenize(wick_engine *engine, const int32_t *tokens, size_t count, bool is_whole,
                            bool has_special, char *out, size_t *size_bytes, wick_error *error) {
  const tokenizer *model = engine->tokenizer;
  *size_bytes = 0;
  if (model == NULL) return wick_tokenizer_status(engine, error);
  const uint32_t vocab = tokenizer_vocab(model);
  detokenizer state;
  detokenizer_init(&state, is_whole, has_special);
  size_t written = 0;
  for (size_t i = 0; i < count; i++) {
    if (tokens[i] < 0 || (uint32_t)tokens[i] >= vocab) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "token %d is not in the vocabulary of %u",
                tokens[i], vocab);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, i, vocab);
    }
    written += detokenizer_feed(&state, model, tokens[i], out + written);
  }
  *size_bytes = written + detokenizer_flush(&state, out + written);
  return WICK_OK;
}

wick_status wick_token_bytes(wick_engine *engine, int32_t token, char *scratch, wick_text *bytes,
                             wick_error *error) {
  *bytes = (wick_text){scratch, 0};
  if (engine->tokenizer == NULL) return wick_tokenizer_status(engine, error);
  const uint8_t *found = (const uint8_t *)scratch;
  bytes->size_bytes = tokenizer_piece(engine->tokenizer, token, true, (uint8_t *)scratch, &found);
  bytes->bytes = (const char *)found;
  return WICK_OK;
}
