// media/prompt.h — a prompt with images: tokens of its texts and of the markers around images, and
// the places of the rows of images.
#ifndef WICK_MEDIA_PROMPT_H
#define WICK_MEDIA_PROMPT_H

#include "media/media.h"
#include "text/tokenizer.h"

// Tokens, or the rows of one chunk of a plan.
typedef struct prompt_chunk {
  bool is_rows;
  uint32_t position;  // of the first token or row
  size_t first_token, token_count;
  uint32_t image;  // number of the image in the prompt
  uint32_t chunk;  // of its plan
} prompt_chunk;

typedef struct media_prompt {
  memory_gate *memory;
  const tokenizer *tokenizer;
  int32_t *tokens;
  size_t token_count, token_capacity;
  prompt_chunk *chunks;
  uint32_t count, capacity;
  uint32_t position;  // of the text that is added next
  uint32_t images;
} media_prompt;

// Begins with the token that begins texts, if the vocabulary requires one. WICK_E_NOMEM.
wick_status media_prompt_begin(memory_gate *memory, const tokenizer *tokenizer, media_prompt *out,
                               wick_error *error);
// Adds a text between two images, in which special tokens keep their meaning. Texts are tokenized
// one by one.
wick_status media_prompt_add_text(media_prompt *prompt, const char *text, size_t size_bytes,
                                  wick_error *error);
// Adds tokens of a text that was tokenized elsewhere.
wick_status media_prompt_add_tokens(media_prompt *prompt, const int32_t *tokens, size_t count,
                                    wick_error *error);
// WICK_E_UNSUPPORTED if the vocabulary lacks a marker that the encoder requires.
wick_status media_prompt_add_plan(media_prompt *prompt, const media_plan *plan, wick_error *error);
wick_status media_prompt_end(media_prompt *prompt, wick_error *error);
void media_prompt_free(media_prompt *prompt);  // zeros are fine

#endif
