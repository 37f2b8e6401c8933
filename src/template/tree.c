// template/tree.c — arrays that grow while a template is parsed, and the parser's tokens.
#include <string.h>

#include "template/parser.h"

enum { DEPTH_MAX = 64, NODES_MAX = 1 << 22, ARRAY_FIRST = 64 };

static void fail_memory(jinja_parser *parser) {
  if (parser->status != WICK_OK) return;
  const jinja_arena *arena = &parser->program->arena;
  parser->status = arena->is_over
                       ? fail_with(parser->error, WICK_E_FULL, WICK_NO_OFFSET,
                                   "the template needs more than %zu bytes", arena->limit_bytes)
                       : memory_fail(arena->memory, parser->error, "a template");
}

// Grows an array to make room for one more item than `count`; returns NULL after a failure.
static void *grow(jinja_parser *parser, void *items, uint32_t count, uint32_t *capacity,
                  size_t item_bytes) {
  if (parser->status != WICK_OK) return NULL;
  if (count < *capacity) return items;
  const uint32_t wanted = *capacity == 0 ? ARRAY_FIRST : *capacity * 2;
  void *moved = wanted > NODES_MAX ? NULL
                                   : jinja_arena_extend(&parser->program->arena, items,
                                                        count * item_bytes, wanted * item_bytes);
  if (moved == NULL) {
    if (wanted > NODES_MAX) parser->program->arena.is_over = true;
    fail_memory(parser);
    return NULL;
  }
  *capacity = wanted;
  return moved;
}

uint32_t jinja_add_node(jinja_parser *parser, jinja_node node) {
  jinja_program *program = parser->program;
  void *nodes = grow(parser, program->nodes, program->node_count, &program->node_capacity,
                     sizeof *program->nodes);
  if (nodes == NULL) return 0;
  program->nodes = nodes;
  if (node.line == 0) node.line = parser->token.line;
  program->nodes[program->node_count] = node;
  return program->node_count++;
}

static uint32_t add_link(jinja_parser *parser, uint32_t item) {
  jinja_program *program = parser->program;
  void *links = grow(parser, program->links, program->link_count, &program->link_capacity,
                     sizeof *program->links);
  if (links == NULL) return 0;
  program->links = links;
  program->links[program->link_count] = item;
  return program->link_count++;
}

void jinja_links_begin(jinja_links *links) {
  links->items = links->few;
  links->count = 0;
  links->capacity = LINKS_ON_STACK;
}

void jinja_links_add(jinja_parser *parser, jinja_links *links, uint32_t item) {
  uint32_t *items = grow(parser, links->items, links->count, &links->capacity, sizeof *items);
  if (items == NULL) return;
  links->items = items;
  links->items[links->count++] = item;
}

uint32_t jinja_links_end(jinja_parser *parser, const jinja_links *links) {
  const uint32_t at = add_link(parser, links->count);
  for (uint32_t i = 0; i < links->count; i++) add_link(parser, links->items[i]);
  return at;
}

uint32_t jinja_add_constant(jinja_parser *parser, jinja_value value) {
  jinja_program *program = parser->program;
  void *constants = grow(parser, program->constants, program->constant_count,
                         &program->constant_capacity, sizeof *program->constants);
  if (constants == NULL) return 0;
  if (value.kind == JINJA_UNDEFINED) {
    fail_memory(parser);
    return 0;
  }
  program->constants = constants;
  program->constants[program->constant_count] = value;
  return program->constant_count++;
}

uint32_t jinja_add_name(jinja_parser *parser, const char *bytes, uint32_t size_bytes) {
  jinja_program *program = parser->program;
  if (parser->status != WICK_OK) return 0;
  const jinja_string name = {.bytes = bytes, .size_bytes = size_bytes};
  const jinja_entry *known = jinja_dict_find(program->name_ids, jinja_of_string(&name));
  if (known != NULL) return (uint32_t)known->value.integer;
  void *names = grow(parser, program->names, program->name_count, &program->name_capacity,
                     sizeof *program->names);
  const jinja_string *copy =
      names == NULL ? NULL
                    : jinja_string_copy(&program->arena, bytes, size_bytes, JINJA_MARK_TEMPLATE);
  if (copy == NULL || !jinja_dict_set(&program->arena, program->name_ids, jinja_of_string(copy),
                                      jinja_int(program->name_count))) {
    fail_memory(parser);
    return 0;
  }
  program->names = names;
  program->names[program->name_count] = copy;
  return program->name_count++;
}

// ---- tokens ----

void jinja_parse_fail(jinja_parser *parser, const char *problem) {
  if (parser->status != WICK_OK) return;
  parser->status = fail_with(parser->error, WICK_E_FORMAT, WICK_NO_OFFSET, "line %u: %s",
                             parser->token.line, problem);
}

void jinja_next_token(jinja_parser *parser) {
  parser->token = jinja_lexer_next(&parser->lexer);
  if (parser->token.kind == TOKEN_WRONG) jinja_parse_fail(parser, parser->token.problem);
  if (parser->status != WICK_OK) parser->token.kind = TOKEN_END_OF_SOURCE;
}

bool jinja_is_operator(const jinja_parser *parser, uint32_t op) {
  return parser->token.kind == TOKEN_OPERATOR && parser->token.op == op;
}

bool jinja_is_name(const jinja_parser *parser, const char *name) {
  const jinja_token *token = &parser->token;
  const size_t size_bytes = strlen(name);
  return token->kind == TOKEN_NAME && token->end - token->begin == size_bytes &&
         memcmp(parser->lexer.source + token->begin, name, size_bytes) == 0;
}

bool jinja_take_operator(jinja_parser *parser, uint32_t op) {
  if (!jinja_is_operator(parser, op)) return false;
  jinja_next_token(parser);
  return true;
}

bool jinja_take_name(jinja_parser *parser, const char *name) {
  if (!jinja_is_name(parser, name)) return false;
  jinja_next_token(parser);
  return true;
}

void jinja_want_operator(jinja_parser *parser, uint32_t op, const char *problem) {
  if (!jinja_take_operator(parser, op)) jinja_parse_fail(parser, problem);
}

uint32_t jinja_want_name(jinja_parser *parser) {
  const jinja_token *token = &parser->token;
  if (token->kind != TOKEN_NAME) {
    jinja_parse_fail(parser, "a name is missing");
    return 0;
  }
  const uint32_t id =
      jinja_add_name(parser, parser->lexer.source + token->begin, token->end - token->begin);
  jinja_next_token(parser);
  return id;
}

bool jinja_enter(jinja_parser *parser) {
  if (++parser->depth > DEPTH_MAX) jinja_parse_fail(parser, "nested too deeply");
  return parser->status == WICK_OK;
}

void jinja_leave(jinja_parser *parser) { parser->depth--; }
