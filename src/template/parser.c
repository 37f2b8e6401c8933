// template/parser.c — the statement parser. Source: the documentation of Jinja 3.1, "List of
// Control Structures", with loop controls, and `generation` from transformers, which marks model
// output without changing it.
#include "template/parser.h"

#include <string.h>

static uint32_t parse_body(jinja_parser *parser, const char *const *ends);

static void want_tag_end(jinja_parser *parser) {
  if (parser->token.kind != TOKEN_TAG_END) {
    jinja_parse_fail(parser, "unexpected text in a tag");
  }
  jinja_next_token(parser);
}

// Parses the body up to `end`, and the tag that ends it.
static uint32_t parse_block(jinja_parser *parser, const char *end) {
  const char *const ends[] = {end, NULL};
  want_tag_end(parser);
  const uint32_t body = parse_body(parser, ends);
  jinja_next_token(parser);
  return body;
}

static uint32_t parse_if(jinja_parser *parser) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  jinja_links branches;
  jinja_links_begin(&branches);
  jinja_links_add(parser, &branches, jinja_parse_tuple(parser, false));
  want_tag_end(parser);
  jinja_links_add(parser, &branches, parse_body(parser, ends));
  while (jinja_take_name(parser, "elif")) {
    jinja_links_add(parser, &branches, jinja_parse_tuple(parser, false));
    want_tag_end(parser);
    jinja_links_add(parser, &branches, parse_body(parser, ends));
  }
  if (jinja_take_name(parser, "else")) {
    jinja_links_add(parser, &branches, 0);
    want_tag_end(parser);
    jinja_links_add(parser, &branches, parse_body(parser, ends + 2));
  }
  jinja_next_token(parser);  // endif
  return JINJA_ADD_NODE(parser, .kind = NODE_IF, .a = jinja_links_end(parser, &branches));
}

static uint32_t parse_for(jinja_parser *parser) {
  static const char *const ends[] = {"else", "endfor", NULL};
  jinja_links parts;
  jinja_links_begin(&parts);
  const uint32_t target = jinja_parse_target(parser, false);
  if (!jinja_take_name(parser, "in")) jinja_parse_fail(parser, "a for has no in");
  const uint32_t iterable = jinja_parse_tuple(parser, false);
  const uint32_t condition = jinja_take_name(parser, "if") ? jinja_parse_expression(parser) : 0;
  const bool is_recursive = jinja_take_name(parser, "recursive");
  want_tag_end(parser);
  parser->loop_depth++;
  const uint32_t body = parse_body(parser, ends);
  parser->loop_depth--;
  uint32_t other = 0;
  if (jinja_take_name(parser, "else")) {
    want_tag_end(parser);
    other = parse_body(parser, ends + 1);
  }
  jinja_next_token(parser);  // endfor
  jinja_links_add(parser, &parts, body);
  jinja_links_add(parser, &parts, other);
  jinja_links_add(parser, &parts, condition);
  jinja_links_add(parser, &parts, is_recursive);
  return JINJA_ADD_NODE(parser, .kind = NODE_FOR, .a = target, .b = iterable,
                        .c = jinja_links_end(parser, &parts));
}

static uint32_t parse_set(jinja_parser *parser) {
  const uint32_t target = jinja_parse_target(parser, true);
  if (jinja_take_operator(parser, '=')) {
    const uint32_t value = jinja_parse_tuple(parser, true);
    return JINJA_ADD_NODE(parser, .kind = NODE_SET, .a = target, .b = value);
  }
  const uint32_t filters = jinja_take_operator(parser, '|') ? jinja_parse_filters(parser, 0) : 0;
  const uint32_t body = parse_block(parser, "endset");
  return JINJA_ADD_NODE(parser, .kind = NODE_SET_BLOCK, .a = target, .b = body, .c = filters);
}

// Parses names with defaults; the opening bracket has been consumed.
static uint32_t parse_parameters(jinja_parser *parser) {
  jinja_links parameters;
  jinja_links_begin(&parameters);
  while (parser->status == WICK_OK && !jinja_is_operator(parser, ')')) {
    jinja_links_add(parser, &parameters, jinja_want_name(parser));
    const bool has_default = jinja_take_operator(parser, '=');
    jinja_links_add(parser, &parameters, has_default ? jinja_parse_expression(parser) : 0);
    if (!jinja_take_operator(parser, ',')) break;
  }
  jinja_want_operator(parser, ')', "missing ')' after a macro's parameters");
  return jinja_links_end(parser, &parameters);
}

// Parses a body that is a separate function, so `break` and `continue` cannot refer to enclosing
// loops.
static uint32_t parse_function_body(jinja_parser *parser, const char *end) {
  const uint32_t loop_depth = parser->loop_depth;
  parser->loop_depth = 0;
  const uint32_t body = parse_block(parser, end);
  parser->loop_depth = loop_depth;
  return body;
}

static uint32_t parse_macro(jinja_parser *parser) {
  const uint32_t name = jinja_want_name(parser);
  jinja_want_operator(parser, '(', "a macro has no brackets");
  const uint32_t parameters = parse_parameters(parser);
  const uint32_t body = parse_function_body(parser, "endmacro");
  return JINJA_ADD_NODE(parser, .kind = NODE_MACRO, .a = name, .b = parameters, .c = body);
}

static uint32_t parse_call_block(jinja_parser *parser) {
  jinja_links none;
  jinja_links_begin(&none);
  const uint32_t parameters =
      jinja_take_operator(parser, '(') ? parse_parameters(parser) : jinja_links_end(parser, &none);
  const uint32_t call = jinja_parse_expression(parser);
  if (parser->status == WICK_OK && parser->program->nodes[call].kind != NODE_CALL) {
    jinja_parse_fail(parser, "a call block calls nothing");
  }
  const uint32_t body = parse_function_body(parser, "endcall");
  return JINJA_ADD_NODE(parser, .kind = NODE_CALL_BLOCK, .a = call, .b = parameters, .c = body);
}

static uint32_t parse_filter_block(jinja_parser *parser) {
  const uint32_t filters = jinja_parse_filters(parser, 0);
  const uint32_t body = parse_block(parser, "endfilter");
  return JINJA_ADD_NODE(parser, .kind = NODE_FILTER_BLOCK, .a = filters, .b = body);
}

static uint32_t parse_with(jinja_parser *parser) {
  jinja_links sets;
  jinja_links_begin(&sets);
  while (parser->status == WICK_OK && parser->token.kind != TOKEN_TAG_END) {
    const uint32_t name = jinja_want_name(parser);
    jinja_links_add(parser, &sets, JINJA_ADD_NODE(parser, .kind = NODE_NAME, .a = name));
    jinja_want_operator(parser, '=', "a with has a name without a value");
    jinja_links_add(parser, &sets, jinja_parse_expression(parser));
    if (!jinja_take_operator(parser, ',')) break;
  }
  const uint32_t links = jinja_links_end(parser, &sets);
  const uint32_t body = parse_block(parser, "endwith");
  return JINJA_ADD_NODE(parser, .kind = NODE_WITH, .a = links, .b = body);
}

static uint32_t parse_break(jinja_parser *parser) {
  if (parser->loop_depth == 0) jinja_parse_fail(parser, "break or continue outside a loop");
  return JINJA_ADD_NODE(parser, .kind = NODE_BREAK);
}

static uint32_t parse_continue(jinja_parser *parser) {
  if (parser->loop_depth == 0) jinja_parse_fail(parser, "break or continue outside a loop");
  return JINJA_ADD_NODE(parser, .kind = NODE_CONTINUE);
}

static uint32_t parse_do(jinja_parser *parser) {
  const uint32_t value = jinja_parse_tuple(parser, true);
  return JINJA_ADD_NODE(parser, .kind = NODE_DO, .a = value);
}

// Parses a block after its opening tag.
static uint32_t parse_statement(jinja_parser *parser) {
  if (jinja_take_name(parser, "generation")) {
    const uint32_t body = parse_block(parser, "endgeneration");
    want_tag_end(parser);
    return body;
  }
  static const struct {
    const char *name;
    uint32_t (*parse)(jinja_parser *parser);
  } statements[] = {{"if", parse_if},           {"for", parse_for},
                    {"set", parse_set},         {"macro", parse_macro},
                    {"call", parse_call_block}, {"filter", parse_filter_block},
                    {"with", parse_with},       {"do", parse_do},
                    {"break", parse_break},     {"continue", parse_continue}};
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    if (!jinja_take_name(parser, statements[i].name)) continue;
    const uint32_t node = statements[i].parse(parser);
    want_tag_end(parser);
    return node;
  }
  jinja_parse_fail(parser, "an unknown tag");
  return 0;
}

static uint32_t parse_text(jinja_parser *parser) {
  const jinja_token *token = &parser->token;
  const jinja_string *text =
      jinja_string_copy(&parser->program->arena, parser->lexer.source + token->begin,
                        token->end - token->begin, JINJA_MARK_TEMPLATE);
  const uint32_t constant =
      jinja_add_constant(parser, text == NULL ? JINJA_NOTHING : jinja_of_string(text));
  const uint32_t node = JINJA_ADD_NODE(parser, .kind = NODE_TEXT, .a = constant);
  jinja_next_token(parser);
  return node;
}

static uint32_t parse_output(jinja_parser *parser) {
  const uint32_t line = parser->token.line;
  jinja_next_token(parser);
  const uint32_t value = jinja_parse_tuple(parser, true);
  if (parser->token.kind != TOKEN_TAG_END) {
    jinja_parse_fail(parser, "unexpected text after an expression");
  }
  jinja_next_token(parser);
  return JINJA_ADD_NODE(parser, .kind = NODE_OUTPUT, .line = line, .a = value);
}

static bool is_one_of(const jinja_parser *parser, const char *const *names) {
  for (; *names != NULL; names++) {
    if (jinja_is_name(parser, *names)) return true;
  }
  return false;
}

// Parses up to a block that begins with one of `ends`, so that its name is the next token, or up to
// the end of the source if `ends` is NULL.
static uint32_t parse_body(jinja_parser *parser, const char *const *ends) {
  jinja_links parts;
  jinja_links_begin(&parts);
  if (!jinja_enter(parser)) {
    jinja_leave(parser);
    return 0;
  }
  while (parser->status == WICK_OK && parser->token.kind != TOKEN_END_OF_SOURCE) {
    if (parser->token.kind == TOKEN_TEXT) {
      jinja_links_add(parser, &parts, parse_text(parser));
    } else if (parser->token.kind == TOKEN_OUTPUT_BEGIN) {
      jinja_links_add(parser, &parts, parse_output(parser));
    } else {
      jinja_next_token(parser);
      if (ends != NULL && is_one_of(parser, ends)) break;
      jinja_links_add(parser, &parts, parse_statement(parser));
    }
  }
  if (ends != NULL && parser->token.kind == TOKEN_END_OF_SOURCE) {
    jinja_parse_fail(parser, "unterminated block");
  }
  jinja_leave(parser);
  return JINJA_ADD_NODE(parser, .kind = NODE_BODY, .a = jinja_links_end(parser, &parts));
}

wick_status jinja_parse(jinja_program *program, const char *source, uint32_t size_bytes,
                        wick_error *error) {
  jinja_parser parser = {.program = program, .error = error};
  jinja_lexer_init(&parser.lexer, source, size_bytes);
  program->name_ids = jinja_dict_create(&program->arena, LINKS_ON_STACK);
  if (program->name_ids == NULL) {
    return memory_fail(program->arena.memory, error, "a template");
  }
  jinja_add_node(&parser, (jinja_node){.kind = NODE_NONE, .line = 1});
  program->name_loop = jinja_add_name(&parser, "loop", 4);
  program->name_caller = jinja_add_name(&parser, "caller", 6);
  program->name_varargs = jinja_add_name(&parser, "varargs", 7);
  program->name_kwargs = jinja_add_name(&parser, "kwargs", 6);
  jinja_next_token(&parser);
  program->body = parse_body(&parser, NULL);
  return parser.status;
}
