// template/parser.h — parses a template into a tree. Internal to template/.
#ifndef WICK_TEMPLATE_PARSER_H
#define WICK_TEMPLATE_PARSER_H

#include "base/status.h"
#include "template/lexer.h"
#include "template/node.h"

typedef struct jinja_parser {
  jinja_program *program;
  jinja_lexer lexer;
  jinja_token token;    // the next token
  uint32_t depth;       // depth of nested constructs
  uint32_t loop_depth;  // number of enclosing for blocks
  wick_status status;   // status of the first failure; later calls do nothing
  wick_error *error;
} jinja_parser;

// Builds the tree of `source`, which must be valid UTF-8 and is needed only during the call; the
// program's arena must be set up. WICK_E_FORMAT with the line, WICK_E_FULL, WICK_E_NOMEM.
wick_status jinja_parse(jinja_program *program, const char *source, uint32_t size_bytes,
                        wick_error *error);

// ---- the tree (tree.c): 0 after a failure ----
uint32_t jinja_add_node(jinja_parser *parser, jinja_node node);
#define JINJA_ADD_NODE(parser, ...) jinja_add_node(parser, (jinja_node){__VA_ARGS__})
// A list that is being built, initially on the C stack.
enum { LINKS_ON_STACK = 16 };
typedef struct jinja_links {
  uint32_t few[LINKS_ON_STACK];
  uint32_t *items;
  uint32_t count, capacity;
} jinja_links;
void jinja_links_begin(jinja_links *links);
void jinja_links_add(jinja_parser *parser, jinja_links *links, uint32_t item);
uint32_t jinja_links_end(jinja_parser *parser, const jinja_links *links);
uint32_t jinja_add_constant(jinja_parser *parser, jinja_value value);
// Returns the id of a name; equal names have equal ids.
uint32_t jinja_add_name(jinja_parser *parser, const char *bytes, uint32_t size_bytes);

// ---- tokens ----
// Records the first failure: "line 3: ...".
void jinja_parse_fail(jinja_parser *parser, const char *problem);
void jinja_next_token(jinja_parser *parser);
bool jinja_is_operator(const jinja_parser *parser, uint32_t op);
bool jinja_is_name(const jinja_parser *parser, const char *name);
// Consumes the next token if it is this operator.
bool jinja_take_operator(jinja_parser *parser, uint32_t op);
bool jinja_take_name(jinja_parser *parser, const char *name);
void jinja_want_operator(jinja_parser *parser, uint32_t op, const char *problem);
// Consumes a name, which is required here, and returns its id.
uint32_t jinja_want_name(jinja_parser *parser);
// Enters a nested construct. Returns false if the nesting is too deep. Every call must be followed
// by jinja_leave.
bool jinja_enter(jinja_parser *parser);
void jinja_leave(jinja_parser *parser);

// ---- expressions (expressions.c) ----
uint32_t jinja_parse_expression(jinja_parser *parser);
// Parses an expression without a ternary at its outermost level, because the iterable of a `for`
// may be followed by `if`.
uint32_t jinja_parse_plain(jinja_parser *parser);
// Parses an expression; several expressions separated by commas form a tuple.
uint32_t jinja_parse_tuple(jinja_parser *parser, bool has_ternary);
// Parses `name(arguments) | ...` applied to `input` (0: a block's text).
uint32_t jinja_parse_filters(jinja_parser *parser, uint32_t input);
// Parses names, tuples of names, and with `has_attribute` name.attribute.
uint32_t jinja_parse_target(jinja_parser *parser, bool has_attribute);

#endif
