// component/prompts.h — texts in the formats of llama.cpp's server: a string, token ids, a mix of
// both, an object with the text, or an array of these.
#ifndef WICK_COMPONENT_PROMPTS_H
#define WICK_COMPONENT_PROMPTS_H

#include "body.h"

typedef struct prompt {
  wick_text text;
  const int32_t *tokens;  // NULL: the text
  size_t token_count;
} prompt;

// Reads the texts of a field into prompts [count], which belong to the body. Mixes are tokenized.
// `name` is "prompt" or "input"; only the latter may be {"content": [{"type": "text", "text"}]}.
bool prompts_take(wick_engine *engine, body *read, uint32_t node, const char *name,
                  prompt **prompts, uint32_t *count, refusal *refused);
// A list of token ids to which texts and ids are added. Its memory belongs to the body.
typedef struct token_list {
  const char *name;  // the field of the body, for errors
  int32_t *ids;      // [count]; NULL: empty
  size_t count, capacity;
} token_list;
bool prompts_add_text(wick_engine *engine, body *read, wick_text text, uint32_t flags,
                      token_list *to, refusal *refused);
bool prompts_add_id(body *read, int32_t id, token_list *to, refusal *refused);
// Tokenizes a text. The tokens belong to the body.
bool prompts_tokenize(wick_engine *engine, body *read, wick_text text, uint32_t flags,
                      const int32_t **tokens, size_t *count, refusal *refused);
// Writes the text of a prompt.
bool prompts_put(wick_engine *engine, const prompt *one, buffer *out, refusal *refused);
// Writes the text of tokens, including control tokens.
bool prompts_put_text(wick_engine *engine, const int32_t *tokens, size_t count, buffer *out,
                      refusal *refused);

#endif
