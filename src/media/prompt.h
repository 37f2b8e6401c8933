// media/prompt.h — a prompt with images: the tokens of its text and of the markers around images,
// and the positions of the image rows.
#ifndef WICK_MEDIA_PROMPT_H
#define WICK_MEDIA_PROMPT_H

#include "media/media.h"
#include "text/tokenizer.h"

// A run of tokens, or the rows of one chunk of a plan.
typedef struct prompt_chunk {
  bool is_rows;
  uint32_t position;  // of the first token or row
  size_t first_token, token_count;
  uint32_t image;  // index of the image in the prompt
  uint32_t chunk;  // of its plan
} prompt_chunk;

typedef struct media_prompt {
  memory_gate *memory;
  const tokenizer *tokenizer;
  int32_t *tokens;
  size_t token_count, token_capacity;
  prompt_chunk *chunks;
  uint32_t count, capacity;
  uint32_t position;  // of the next part
  uint32_t images;
} media_prompt;

// Begins a prompt, with the BOS token if the vocabulary requires it. WICK_E_NOMEM.
wick_status media_prompt_begin(memory_gate *memory, const tokenizer *tokenizer, media_prompt *out,
                               wick_error *error);
// Adds text between two images. Special tokens in it are parsed. Each piece of text is tokenized
// separately.
wick_status media_prompt_add_text(media_prompt *prompt, const char *text, size_t size_bytes,
                                  wick_error *error);
// Adds tokens that were tokenized elsewhere.
wick_status media_prompt_add_tokens(media_prompt *prompt, const int32_t *tokens, size_t count,
                                    wick_error *error);
// Adds the chunks of a plan. WICK_E_UNSUPPORTED if the vocabulary lacks a marker that the encoder
// requires.
wick_status media_prompt_add_plan(media_prompt *prompt, const media_plan *plan, wick_error *error);
wick_status media_prompt_end(media_prompt *prompt, wick_error *error);
void media_prompt_free(media_prompt *prompt);  // zeros are allowed

#endif
