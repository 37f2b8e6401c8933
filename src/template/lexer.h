// template/lexer.h — splits the source of a template into texts and tokens.
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
  TOKEN_WRONG      // `problem` says why
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
  char closer;        // '}' or '%' in a tag, 0 in a text
  uint32_t brackets;  // open ones in a tag
  bool starts_line;   // the last token ended with a line break
  uint32_t pending;   // the next token after a text; 0: not known
} jinja_lexer;

// Lines of `source` end with \n, and its last byte is not \n.
void jinja_lexer_init(jinja_lexer *lexer, const char *source, uint32_t size_bytes);
// White space around tags is removed as in transformers: trim_blocks and lstrip_blocks.
jinja_token jinja_lexer_next(jinja_lexer *lexer);

#endif
