// media/prompt.c — see prompt.h.
#include "media/prompt.h"

#include <string.h>

static wick_status fail_memory(const media_prompt *prompt, wick_error *error) {
  return memory_fail(prompt->memory, error, "a prompt with images");
}

static bool reserve_tokens(media_prompt *prompt, size_t more) {
  const size_t needed = prompt->token_count + more;
  if (needed <= prompt->token_capacity) return true;
  const size_t capacity = 2 * needed;
  int32_t *tokens =
      memory_resize_array(prompt->memory, prompt->tokens, capacity, sizeof *prompt->tokens);
  if (tokens == NULL) return false;
  prompt->tokens = tokens;
  prompt->token_capacity = capacity;
  return true;
}

static prompt_chunk *add_chunk(media_prompt *prompt) {
  if (prompt->chunks == NULL || prompt->count == prompt->capacity) {
    const uint32_t capacity = 2 * prompt->capacity + 16;
    prompt_chunk *chunks =
        memory_resize_array(prompt->memory, prompt->chunks, capacity, sizeof *chunks);
    if (chunks == NULL) return NULL;
    prompt->chunks = chunks;
    prompt->capacity = capacity;
  }
  prompt_chunk *chunk = &prompt->chunks[prompt->count++];
  *chunk = (prompt_chunk){.position = prompt->position, .first_token = prompt->token_count};
  return chunk;
}

// Adds the last `count` tokens to the current text chunk, or to a new one.
static wick_status take_tokens(media_prompt *prompt, size_t count, wick_error *error) {
  if (count == 0) return WICK_OK;
  prompt_chunk *chunk = prompt->chunks == NULL ? NULL : &prompt->chunks[prompt->count - 1];
  if (chunk == NULL || chunk->is_rows) chunk = add_chunk(prompt);
  if (chunk == NULL) return fail_memory(prompt, error);
  chunk->token_count += count;
  prompt->token_count += count;
  prompt->position += (uint32_t)count;
  return WICK_OK;
}

wick_status media_prompt_add_tokens(media_prompt *prompt, const int32_t *tokens, size_t count,
                                    wick_error *error) {
  if (!reserve_tokens(prompt, count)) return fail_memory(prompt, error);
  for (size_t i = 0; i < count; i++) prompt->tokens[prompt->token_count + i] = tokens[i];
  return take_tokens(prompt, count, error);
}

static wick_status add_token(media_prompt *prompt, int32_t token, wick_error *error) {
  return media_prompt_add_tokens(prompt, &token, 1, error);
}

wick_status media_prompt_begin(memory_gate *memory, const tokenizer *tokenizer, media_prompt *out,
                               wick_error *error) {
  *out = (media_prompt){.memory = memory, .tokenizer = tokenizer};
  const int32_t bos = tokenizer_bos(tokenizer);
  if (!tokenizer_adds_bos(tokenizer) || bos == TOKEN_NONE) return WICK_OK;
  return add_token(out, bos, error);
}

wick_status media_prompt_end(media_prompt *prompt, wick_error *error) {
  const int32_t eos = tokenizer_eos(prompt->tokenizer);
  if (!tokenizer_adds_eos(prompt->tokenizer) || eos == TOKEN_NONE) return WICK_OK;
  return add_token(prompt, eos, error);
}

wick_status media_prompt_add_text(media_prompt *prompt, const char *text, size_t size_bytes,
                                  wick_error *error) {
  size_t count = size_bytes + 8;
  wick_status status;
  do {  // there is usually enough room in the first call
    const size_t capacity = count;
    if (!reserve_tokens(prompt, capacity)) return fail_memory(prompt, error);
    status = tokenizer_encode(prompt->tokenizer, text, size_bytes, WICK_TOKENIZE_PARSE_SPECIAL,
                              prompt->tokens + prompt->token_count, capacity, &count, error);
    if (status == WICK_E_FULL && count <= capacity) break;
  } while (status == WICK_E_FULL);
  return status == WICK_OK ? take_tokens(prompt, count, error) : status;
}

// Finds the first token whose bytes are `text`.
static int32_t find_spelling(const media_prompt *prompt, const char *text, uint8_t *scratch) {
  const size_t size_bytes = strlen(text);
  const uint32_t vocab = tokenizer_vocab(prompt->tokenizer);
  for (uint32_t token = 0; token < vocab; token++) {
    const uint8_t *bytes;
    const size_t count = tokenizer_piece(prompt->tokenizer, (int32_t)token, true, scratch, &bytes);
    if (count == size_bytes && memcmp(bytes, text, count) == 0) return (int32_t)token;
  }
  return TOKEN_NONE;
}

static wick_status add_spelling(media_prompt *prompt, const char *text, wick_error *error) {
  uint8_t *scratch = memory_alloc(prompt->memory, tokenizer_piece_bytes_max(prompt->tokenizer));
  if (scratch == NULL) return fail_memory(prompt, error);
  const int32_t token = find_spelling(prompt, text, scratch);
  memory_free(prompt->memory, scratch);
  if (token != TOKEN_NONE) return add_token(prompt, token, error);
  return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "model: the vocabulary lacks the token %s that images require",
                   text[0] == '\n' ? "for line breaks" : text);
}

wick_status media_prompt_add_plan(media_prompt *prompt, const media_plan *plan, wick_error *error) {
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < plan->count && status == WICK_OK; i++) {
    const media_chunk *part = &plan->chunks[i];
    if (part->is_one_token) {
      status = add_spelling(prompt, part->text, error);
    } else if (part->is_text) {
      status = media_prompt_add_text(prompt, part->text, strlen(part->text), error);
    } else {
      prompt_chunk *chunk = add_chunk(prompt);
      if (chunk == NULL) return fail_memory(prompt, error);
      chunk->is_rows = true;
      chunk->image = prompt->images;
      chunk->chunk = i;
      prompt->position += part->positions;
    }
  }
  prompt->images++;
  return status;
}

void media_prompt_free(media_prompt *prompt) {
  if (prompt->memory == NULL) return;
  memory_free(prompt->memory, prompt->tokens);
  memory_free(prompt->memory, prompt->chunks);
  *prompt = (media_prompt){0};
}
