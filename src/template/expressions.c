// template/expressions.c — the expression parser. Source: the documentation of Jinja 3.1,
// "Expressions"; operators have the same precedence.
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "template/parser.h"

static uint32_t parse_unary(jinja_parser *parser, bool has_filters);

// ---- constants ----

static uint32_t const_node(jinja_parser *parser, jinja_value value) {
  return JINJA_ADD_NODE(parser, .kind = NODE_CONST, .a = jinja_add_constant(parser, value));
}

// Reads up to `digits_max` digits in the given base. Returns the number of bytes read, or 0 if
// there are fewer than `digits_min`.
static uint32_t read_code(const char *bytes, uint32_t size_bytes, uint32_t base,
                          uint32_t digits_min, uint32_t digits_max, uint32_t *code) {
  uint32_t read = 0;
  *code = 0;
  while (read < digits_max && read < size_bytes && text_hex_value((uint8_t)bytes[read]) < base) {
    *code = *code * base + text_hex_value((uint8_t)bytes[read++]);
  }
  return read < digits_min ? 0 : read;
}

static const char ESCAPES[] = "n\nt\tr\rb\bf\fv\va\a\\\\''\"\"";

// Reads the escape sequence after a backslash and writes its character; returns the number of bytes
// read.
static uint32_t read_escape(const char *bytes, uint32_t size_bytes, char *out, uint32_t *written) {
  const char c = bytes[0];
  for (size_t i = 0; i + 1 < sizeof ESCAPES; i += 2) {
    if (ESCAPES[i] != c) continue;
    out[(*written)++] = ESCAPES[i + 1];
    return 1;
  }
  if (c == '\n') return 1;
  const uint32_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  uint32_t code, read;
  if (digits != 0) {
    read = read_code(bytes + 1, size_bytes - 1, 16, digits, digits, &code);
    if (read != 0) read++;
  } else {
    read = read_code(bytes, size_bytes, 8, 1, 3, &code);
  }
  if (read == 0) {
    out[(*written)++] = '\\';
    return 0;
  }
  uint8_t encoded[4];
  size_t size = utf8_encode(code, encoded);
  if (size == 0) size = utf8_encode(0xfffd, encoded);
  memcpy(out + *written, encoded, size);
  *written += (uint32_t)size;
  return read;
}

// Decodes a string without its quotes, by Python's rules; two bytes of an escape never become more
// than four bytes.
static const jinja_string *read_string(jinja_parser *parser) {
  const char *bytes = parser->lexer.source + parser->token.begin + 1;
  const uint32_t size_bytes = parser->token.end - parser->token.begin - 2;
  char *out = jinja_arena_take(&parser->program->arena, (size_t)size_bytes * 2 + 1);
  if (out == NULL) return NULL;
  uint32_t written = 0;
  for (uint32_t at = 0; at < size_bytes;) {
    if (bytes[at] == '\\' && at + 1 < size_bytes) {
      at += 1 + read_escape(bytes + at + 1, size_bytes - at - 1, out, &written);
    } else {
      out[written++] = bytes[at++];
    }
  }
  jinja_string *string = jinja_arena_take(&parser->program->arena, sizeof *string);
  if (string == NULL) return NULL;
  *string = (jinja_string){.bytes = out, .size_bytes = written};
  return string;
}

static uint32_t parse_string(jinja_parser *parser) {
  const jinja_string *string = read_string(parser);
  jinja_next_token(parser);
  while (string != NULL && parser->token.kind == TOKEN_STRING) {  // adjacent strings are joined
    const jinja_string *next = read_string(parser);
    if (next == NULL) {
      string = NULL;
      break;
    }
    const uint32_t size_bytes = string->size_bytes + next->size_bytes;
    char *joined = jinja_arena_take(&parser->program->arena, size_bytes);
    if (joined == NULL) {
      string = NULL;
      break;
    }
    memcpy(joined, string->bytes, string->size_bytes);
    memcpy(joined + string->size_bytes, next->bytes, next->size_bytes);
    string = jinja_string_copy(&parser->program->arena, joined, size_bytes, JINJA_MARK_TEMPLATE);
    jinja_next_token(parser);
  }
  return const_node(parser, string == NULL ? JINJA_NOTHING : jinja_of_string(string));
}

enum { NUMBER_BYTES_MAX = 64 };

static uint32_t parse_number(jinja_parser *parser) {
  const jinja_token token = parser->token;
  char digits[NUMBER_BYTES_MAX];
  uint32_t count = 0;
  for (uint32_t at = token.begin; at < token.end; at++) {
    const char c = parser->lexer.source[at];
    if (c == '_') continue;
    if (count == NUMBER_BYTES_MAX) jinja_parse_fail(parser, "a number has too many digits");
    if (count < NUMBER_BYTES_MAX) digits[count++] = c;
  }
  jinja_next_token(parser);
  double real;
  if (token.kind == TOKEN_FLOAT) {
    if (!decimal_read_f64(digits, count, &real)) jinja_parse_fail(parser, "invalid number");
    return const_node(parser, jinja_float(real));
  }
  const char letter = count > 1 ? (char)(digits[1] | 0x20) : '0';
  const int base = letter == 'x'                       ? 16
                   : letter == 'o'                     ? 8
                   : letter == 'b' && digits[0] == '0' ? 2
                                                       : 10;
  int64_t value = 0;
  for (uint32_t i = base == 10 ? 0 : 2; i < count; i++) {
    const int digit = (int)text_hex_value((uint8_t)digits[i]);
    if (digit >= base || value > (INT64_MAX - digit) / base) {
      jinja_parse_fail(parser, "a number is too large");
      return 0;
    }
    value = value * base + digit;
  }
  return const_node(parser, jinja_int(value));
}

// ---- bracketed expressions ----

static uint32_t parse_list(jinja_parser *parser) {
  jinja_links items;
  jinja_links_begin(&items);
  while (parser->status == WICK_OK && !jinja_is_operator(parser, ']')) {
    jinja_links_add(parser, &items, jinja_parse_expression(parser));
    if (!jinja_take_operator(parser, ',')) break;
  }
  jinja_want_operator(parser, ']', "unterminated list");
  return JINJA_ADD_NODE(parser, .kind = NODE_LIST, .a = jinja_links_end(parser, &items));
}

static uint32_t parse_dict(jinja_parser *parser) {
  jinja_links items;
  jinja_links_begin(&items);
  while (parser->status == WICK_OK && !jinja_is_operator(parser, '}')) {
    jinja_links_add(parser, &items, jinja_parse_expression(parser));
    jinja_want_operator(parser, ':', "a dict's key has no value");
    jinja_links_add(parser, &items, jinja_parse_expression(parser));
    if (!jinja_take_operator(parser, ',')) break;
  }
  jinja_want_operator(parser, '}', "unterminated dict");
  return JINJA_ADD_NODE(parser, .kind = NODE_DICT, .a = jinja_links_end(parser, &items));
}

static bool ends_tuple(const jinja_parser *parser) {
  return parser->token.kind == TOKEN_TAG_END || parser->token.kind == TOKEN_END_OF_SOURCE ||
         jinja_is_operator(parser, ')') || jinja_is_operator(parser, '=') ||
         jinja_is_name(parser, "recursive") || jinja_is_name(parser, "in");
}

uint32_t jinja_parse_tuple(jinja_parser *parser, bool has_ternary) {
  jinja_links items;
  jinja_links_begin(&items);
  bool has_comma = false;
  while (parser->status == WICK_OK && !ends_tuple(parser)) {
    jinja_links_add(parser, &items,
                    has_ternary ? jinja_parse_expression(parser) : jinja_parse_plain(parser));
    if (!jinja_take_operator(parser, ',')) break;
    has_comma = true;
  }
  if (items.count == 0) jinja_parse_fail(parser, "an expression is expected");
  if (!has_comma && parser->status == WICK_OK) return items.items[0];
  return JINJA_ADD_NODE(parser, .kind = NODE_TUPLE, .a = jinja_links_end(parser, &items));
}

static uint32_t parse_brackets(jinja_parser *parser) {
  if (jinja_take_operator(parser, ')')) {
    jinja_links none;
    jinja_links_begin(&none);
    return JINJA_ADD_NODE(parser, .kind = NODE_TUPLE, .a = jinja_links_end(parser, &none));
  }
  const uint32_t inside = jinja_parse_tuple(parser, true);
  jinja_want_operator(parser, ')', "missing ')'");
  return inside;
}

// ---- names, calls, attributes ----

static uint32_t parse_name(jinja_parser *parser) {
  static const struct {
    const char *text;
    jinja_value value;
  } words[] = {
      {"true", {.kind = JINJA_BOOL, .truth = true}},
      {"True", {.kind = JINJA_BOOL, .truth = true}},
      {"false", {.kind = JINJA_BOOL, .truth = false}},
      {"False", {.kind = JINJA_BOOL, .truth = false}},
      {"none", {.kind = JINJA_NONE}},
      {"None", {.kind = JINJA_NONE}},
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (jinja_take_name(parser, words[i].text)) return const_node(parser, words[i].value);
  }
  const uint32_t line = parser->token.line;
  const uint32_t name = jinja_want_name(parser);
  return JINJA_ADD_NODE(parser, .kind = NODE_NAME, .line = line, .a = name);
}

static uint32_t parse_primary(jinja_parser *parser) {
  switch (parser->token.kind) {
    case TOKEN_NAME:
      return parse_name(parser);
    case TOKEN_STRING:
      return parse_string(parser);
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
      return parse_number(parser);
    default:
      break;
  }
  if (jinja_take_operator(parser, '(')) return parse_brackets(parser);
  if (jinja_take_operator(parser, '[')) return parse_list(parser);
  if (jinja_take_operator(parser, '{')) return parse_dict(parser);
  jinja_parse_fail(parser, "an expression is expected");
  return 0;
}

// Whether the next tokens are `name =` of a named argument.
static bool is_named_argument(const jinja_parser *parser) {
  if (parser->token.kind != TOKEN_NAME) return false;
  jinja_lexer ahead = parser->lexer;
  const jinja_token next = jinja_lexer_next(&ahead);
  return next.kind == TOKEN_OPERATOR && next.op == '=';
}

// Parses arguments after the opening bracket.
static uint32_t parse_arguments(jinja_parser *parser) {
  jinja_links plain, named, all;
  uint32_t list = 0, dict = 0;
  jinja_links_begin(&plain);
  jinja_links_begin(&named);
  while (parser->status == WICK_OK && !jinja_is_operator(parser, ')')) {
    if (jinja_take_operator(parser, '*')) {
      list = jinja_parse_expression(parser);
    } else if (jinja_take_operator(parser, OP_POWER)) {
      dict = jinja_parse_expression(parser);
    } else if (is_named_argument(parser)) {
      jinja_links_add(parser, &named, jinja_want_name(parser));
      jinja_next_token(parser);
      jinja_links_add(parser, &named, jinja_parse_expression(parser));
    } else {
      jinja_links_add(parser, &plain, jinja_parse_expression(parser));
    }
    if (!jinja_take_operator(parser, ',')) break;
  }
  jinja_want_operator(parser, ')', "missing ')' after a call's arguments");
  jinja_links_begin(&all);
  jinja_links_add(parser, &all, plain.count);
  jinja_links_add(parser, &all, named.count / 2);
  jinja_links_add(parser, &all, list);
  jinja_links_add(parser, &all, dict);
  for (uint32_t i = 0; i < plain.count; i++) jinja_links_add(parser, &all, plain.items[i]);
  for (uint32_t i = 0; i < named.count; i++) jinja_links_add(parser, &all, named.items[i]);
  return jinja_links_end(parser, &all);
}

static uint32_t no_arguments(jinja_parser *parser, uint32_t only) {
  jinja_links links;
  jinja_links_begin(&links);
  jinja_links_add(parser, &links, only != 0);
  for (int i = 0; i < 3; i++) jinja_links_add(parser, &links, 0);
  if (only != 0) jinja_links_add(parser, &links, only);
  return jinja_links_end(parser, &links);
}

static uint32_t parse_slice(jinja_parser *parser) {
  uint32_t parts[3] = {0, 0, 0};
  const uint32_t line = parser->token.line;
  bool is_slice = false;
  for (int part = 0; part < 3; part++) {
    if (!jinja_is_operator(parser, ':') && !jinja_is_operator(parser, ']')) {
      parts[part] = jinja_parse_tuple(parser, true);
    }
    if (part == 2 || !jinja_take_operator(parser, ':')) break;
    is_slice = true;
  }
  jinja_want_operator(parser, ']', "missing ']' after an index");
  if (!is_slice) {
    if (parts[0] == 0) jinja_parse_fail(parser, "an index is missing");
    return parts[0];
  }
  return JINJA_ADD_NODE(parser, .kind = NODE_SLICE, .line = line, .a = parts[0], .b = parts[1],
                        .c = parts[2]);
}

static uint32_t parse_attribute(jinja_parser *parser, uint32_t object) {
  const uint32_t line = parser->token.line;
  if (parser->token.kind == TOKEN_INTEGER) {
    const uint32_t index = parse_number(parser);
    return JINJA_ADD_NODE(parser, .kind = NODE_ITEM, .line = line, .a = object, .b = index);
  }
  const uint32_t name = jinja_want_name(parser);
  return JINJA_ADD_NODE(parser, .kind = NODE_ATTRIBUTE, .line = line, .a = object, .b = name);
}

static uint32_t parse_call(jinja_parser *parser, uint32_t callee) {
  const uint32_t line = parser->token.line;
  const uint32_t arguments = parse_arguments(parser);
  return JINJA_ADD_NODE(parser, .kind = NODE_CALL, .line = line, .a = callee, .b = arguments);
}

static uint32_t parse_postfix(jinja_parser *parser, uint32_t node) {
  while (parser->status == WICK_OK) {
    const uint32_t line = parser->token.line;
    if (jinja_take_operator(parser, '.')) {
      node = parse_attribute(parser, node);
    } else if (jinja_take_operator(parser, '[')) {
      const uint32_t index = parse_slice(parser);
      node = JINJA_ADD_NODE(parser, .kind = NODE_ITEM, .line = line, .a = node, .b = index);
    } else if (jinja_take_operator(parser, '(')) {
      node = parse_call(parser, node);
    } else {
      break;
    }
  }
  return node;
}

// ---- filters and tests ----

// Parses a name that may contain dots.
static uint32_t want_dotted_name(jinja_parser *parser) {
  uint32_t name = jinja_want_name(parser);
  while (jinja_take_operator(parser, '.')) name = jinja_want_name(parser);
  return name;
}

uint32_t jinja_parse_filters(jinja_parser *parser, uint32_t input) {
  do {
    const uint32_t line = parser->token.line;
    const uint32_t name = want_dotted_name(parser);
    const uint32_t arguments =
        jinja_take_operator(parser, '(') ? parse_arguments(parser) : no_arguments(parser, 0);
    input = JINJA_ADD_NODE(parser, .kind = NODE_FILTER, .line = line, .a = input, .b = arguments,
                           .c = name);
  } while (parser->status == WICK_OK && jinja_take_operator(parser, '|'));
  return input;
}

// Whether the token may begin the argument of a test without brackets.
static bool begins_test_argument(const jinja_parser *parser) {
  switch (parser->token.kind) {
    case TOKEN_STRING:
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
      return true;
    case TOKEN_NAME:
      return !jinja_is_name(parser, "else") && !jinja_is_name(parser, "or") &&
             !jinja_is_name(parser, "and") && !jinja_is_name(parser, "if") &&
             !jinja_is_name(parser, "is") && !jinja_is_name(parser, "recursive");
    default:
      return jinja_is_operator(parser, '[') || jinja_is_operator(parser, '{');
  }
}

static uint32_t parse_test(jinja_parser *parser, uint32_t node) {
  const uint32_t line = parser->token.line;
  const bool is_negated = jinja_take_name(parser, "not");
  const uint32_t name = want_dotted_name(parser);
  uint32_t arguments;
  if (jinja_take_operator(parser, '(')) {
    arguments = parse_arguments(parser);
  } else if (begins_test_argument(parser)) {
    arguments = no_arguments(parser, parse_postfix(parser, parse_primary(parser)));
  } else {
    arguments = no_arguments(parser, 0);
  }
  node =
      JINJA_ADD_NODE(parser, .kind = NODE_TEST, .line = line, .a = node, .b = arguments, .c = name);
  if (!is_negated) return node;
  return JINJA_ADD_NODE(parser, .kind = NODE_NOT, .line = line, .a = node);
}

static uint32_t parse_filtered(jinja_parser *parser, uint32_t node) {
  while (parser->status == WICK_OK) {
    if (jinja_take_operator(parser, '|')) {
      node = jinja_parse_filters(parser, node);
    } else if (jinja_take_name(parser, "is")) {
      node = parse_test(parser, node);
    } else if (jinja_take_operator(parser, '(')) {
      node = parse_call(parser, node);
    } else {
      break;
    }
  }
  return node;
}

// ---- operators ----

static uint32_t parse_unary(jinja_parser *parser, bool has_filters) {
  uint32_t node = 0;
  if (jinja_enter(parser)) {
    const uint32_t line = parser->token.line;
    if (jinja_take_operator(parser, '-')) {
      const uint32_t inner = parse_unary(parser, false);
      node = JINJA_ADD_NODE(parser, .kind = NODE_NEGATE, .line = line, .a = inner);
    } else if (jinja_take_operator(parser, '+')) {
      const uint32_t inner = parse_unary(parser, false);
      node = JINJA_ADD_NODE(parser, .kind = NODE_PLUS, .line = line, .a = inner);
    } else {
      node = parse_primary(parser);
    }
    node = parse_postfix(parser, node);
    if (has_filters) node = parse_filtered(parser, node);
  }
  jinja_leave(parser);
  return node;
}

// Binary operators that bind more tightly than comparisons: a higher level binds more tightly.
enum { LEVEL_SUM, LEVEL_CONCAT, LEVEL_PRODUCT, LEVEL_POWER, LEVEL_UNARY };

static int level_of(const jinja_parser *parser) {
  if (parser->token.kind != TOKEN_OPERATOR) return -1;
  switch (parser->token.op) {
    case '+':
    case '-':
      return LEVEL_SUM;
    case '~':
      return LEVEL_CONCAT;
    case '*':
    case '/':
    case '%':
    case OP_FLOOR_DIVIDE:
      return LEVEL_PRODUCT;
    case OP_POWER:
      return LEVEL_POWER;
    default:
      return -1;
  }
}

static uint32_t parse_binary(jinja_parser *parser, int level);

// Parses the operands of a chain of `~` that starts with `node`.
static uint32_t parse_concat(jinja_parser *parser, uint32_t node) {
  jinja_links parts;
  jinja_links_begin(&parts);
  const uint32_t line = parser->token.line;
  jinja_links_add(parser, &parts, node);
  while (jinja_take_operator(parser, '~')) {
    jinja_links_add(parser, &parts, parse_binary(parser, LEVEL_PRODUCT));
  }
  return JINJA_ADD_NODE(parser, .kind = NODE_CONCAT, .line = line,
                        .a = jinja_links_end(parser, &parts));
}

static uint32_t parse_binary(jinja_parser *parser, int level) {
  uint32_t node = parse_unary(parser, true);
  // `found` can only decrease in this loop: a deeper call parses an operator on the right that
  // binds more tightly
  for (int found = level_of(parser); parser->status == WICK_OK && found >= level;
       found = level_of(parser)) {
    if (found == LEVEL_CONCAT) {
      node = parse_concat(parser, node);
      continue;
    }
    const uint32_t op = parser->token.op, line = parser->token.line;
    jinja_next_token(parser);
    const uint32_t right = parse_binary(parser, found + 1);
    node = JINJA_ADD_NODE(parser, .kind = NODE_BINARY, .op = (uint16_t)op, .line = line, .a = node,
                          .b = right);
  }
  return node;
}

// Reads a comparison operator; returns 0 if none follows.
static uint32_t take_comparison(jinja_parser *parser) {
  static const uint32_t ops[] = {OP_EQUAL, OP_UNEQUAL, OP_LESS_EQUAL, OP_GREATER_EQUAL, '<', '>'};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    if (jinja_take_operator(parser, ops[i])) return ops[i];
  }
  if (jinja_take_name(parser, "in")) return OP_IN;
  if (!jinja_is_name(parser, "not")) return 0;
  jinja_lexer ahead = parser->lexer;
  const jinja_token next = jinja_lexer_next(&ahead);
  if (next.kind != TOKEN_NAME || next.end - next.begin != 2 ||
      memcmp(ahead.source + next.begin, "in", 2) != 0) {
    return 0;
  }
  jinja_next_token(parser);
  jinja_next_token(parser);
  return OP_NOT_IN;
}

static uint32_t parse_comparison(jinja_parser *parser) {
  const uint32_t node = parse_binary(parser, LEVEL_SUM);
  jinja_links parts;
  jinja_links_begin(&parts);
  const uint32_t line = parser->token.line;
  for (uint32_t op; parser->status == WICK_OK && (op = take_comparison(parser)) != 0;) {
    jinja_links_add(parser, &parts, op);
    jinja_links_add(parser, &parts, parse_binary(parser, LEVEL_SUM));
  }
  if (parts.count == 0) return node;
  return JINJA_ADD_NODE(parser, .kind = NODE_COMPARE, .line = line, .a = node,
                        .b = jinja_links_end(parser, &parts));
}

static uint32_t parse_not(jinja_parser *parser) {
  const uint32_t line = parser->token.line;
  uint32_t count = 0;
  while (jinja_take_name(parser, "not")) count++;
  uint32_t node = parse_comparison(parser);
  if (count > 0) node = JINJA_ADD_NODE(parser, .kind = NODE_NOT, .line = line, .a = node);
  if (count > 0 && count % 2 == 0) {
    node = JINJA_ADD_NODE(parser, .kind = NODE_NOT, .line = line, .a = node);
  }
  return node;
}

uint32_t jinja_parse_plain(jinja_parser *parser) {
  uint32_t any = 0;  // terms of `or`, each of which has factors of `and`
  do {
    uint32_t all = parse_not(parser);
    while (jinja_take_name(parser, "and")) {
      const uint32_t right = parse_not(parser);
      all = JINJA_ADD_NODE(parser, .kind = NODE_AND, .a = all, .b = right);
    }
    any = any == 0 ? all : JINJA_ADD_NODE(parser, .kind = NODE_OR, .a = any, .b = all);
  } while (jinja_take_name(parser, "or"));
  return any;
}

uint32_t jinja_parse_expression(jinja_parser *parser) {
  uint32_t node = 0;
  if (jinja_enter(parser)) {
    node = jinja_parse_plain(parser);
    while (parser->status == WICK_OK && jinja_take_name(parser, "if")) {
      const uint32_t condition = jinja_parse_plain(parser);
      const uint32_t other = jinja_take_name(parser, "else") ? jinja_parse_expression(parser) : 0;
      node = JINJA_ADD_NODE(parser, .kind = NODE_CHOICE, .a = node, .b = condition, .c = other);
    }
  }
  jinja_leave(parser);
  return node;
}

// ---- targets ----

static uint32_t parse_one_target(jinja_parser *parser, bool has_attribute) {
  uint32_t node = 0;
  if (!jinja_enter(parser)) {
    jinja_leave(parser);
    return 0;
  }
  if (jinja_take_operator(parser, '(')) {
    node = jinja_parse_target(parser, false);
    jinja_want_operator(parser, ')', "missing ')'");
  } else {
    const uint32_t name = jinja_want_name(parser);
    node = JINJA_ADD_NODE(parser, .kind = NODE_NAME, .a = name);
    if (has_attribute && jinja_take_operator(parser, '.')) node = parse_attribute(parser, node);
  }
  jinja_leave(parser);
  return node;
}

uint32_t jinja_parse_target(jinja_parser *parser, bool has_attribute) {
  const uint32_t first = parse_one_target(parser, has_attribute);
  if (!jinja_is_operator(parser, ',')) return first;
  jinja_links items;
  jinja_links_begin(&items);
  jinja_links_add(parser, &items, first);
  while (jinja_take_operator(parser, ',') && !jinja_is_name(parser, "in") &&
         (parser->token.kind == TOKEN_NAME || jinja_is_operator(parser, '('))) {
    jinja_links_add(parser, &items, parse_one_target(parser, has_attribute));
  }
  return JINJA_ADD_NODE(parser, .kind = NODE_TUPLE, .a = jinja_links_end(parser, &items));
}
