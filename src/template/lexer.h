// template/lexer.h — splits the source of a template into text and tokens.
#ifndef WICK_TEMPLATE_LEXER_H
#define WICK_TEMPLATE_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum jinja_token_kind {
  TOKEN_END_OF_SOURCE,
  TOKEN_TEXT,          // between tags: bytes [begin, end)
  TOKEN_OUTPUT_BEGIN,  // {{
  TOKEN_BLOCK_BEGIN,   // {%
  TOKEN_TAG_END,       // }} or %}
  TOKEN_NAME,
  TOKEN_STRING,  // with its quotes
  TOKEN_INTEGER,
  TOKEN_FLOAT,
  TOKEN_OPERATOR,  // `op`
  TOKEN_WRONG      // `problem` gives the reason
} jinja_token_kind;

typedef struct jinja_token {
  jinja_token_kind kind;
  uint32_t op;  // JINJA_OP
  uint32_t begin, end;
  uint32_t line;
  const char *problem;
} jinja_token;

typedef struct jinja_lexer {
  const char *source;
  uint32_t size_bytes;
  uint32_t at, line;
  char closer;        // '}' or '%' in a tag, 0 in text
  uint32_t brackets;  // open brackets in a tag
  bool starts_line;   // the last token ended with a line break
  uint32_t pending;   // the next token after text; 0: unknown
} jinja_lexer;

// Lines of `source` must end with \n, and its last byte must not be \n.
void jinja_lexer_init(jinja_lexer *lexer, const char *source, uint32_t size_bytes);
// Returns the next token. White space around tags is removed as in transformers: trim_blocks and
// lstrip_blocks.
jinja_token jinja_lexer_next(jinja_lexer *lexer);

#endif
