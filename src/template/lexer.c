// template/lexer.c — the lexer. Source: the documentation of Jinja 3.1, "Whitespace Control" and
// "Raw", with trim_blocks and lstrip_blocks.
#include "template/lexer.h"

#include <string.h>

#include "template/node.h"

void jinja_lexer_init(jinja_lexer *lexer, const char *source, uint32_t size_bytes) {
  *lexer =
      (jinja_lexer){.source = source, .size_bytes = size_bytes, .line = 1, .starts_line = true};
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
         (c & 0x80) != 0;
}

static char byte_at(const jinja_lexer *lexer, uint32_t at) {
  return at < lexer->size_bytes ? lexer->source[at] : '\0';
}

static bool is_at(const jinja_lexer *lexer, uint32_t at, const char *text) {
  const size_t size_bytes = strlen(text);
  return size_bytes <= lexer->size_bytes - at && memcmp(lexer->source + at, text, size_bytes) == 0;
}

// Advances to a position, counting lines.
static void advance(jinja_lexer *lexer, uint32_t to) {
  if (to > lexer->at) lexer->starts_line = lexer->source[to - 1] == '\n';
  for (; lexer->at < to; lexer->at++) lexer->line += lexer->source[lexer->at] == '\n';
}

static void skip_space(jinja_lexer *lexer) {
  uint32_t to = lexer->at;
  while (is_space(byte_at(lexer, to))) to++;
  advance(lexer, to);
}

static jinja_token wrong(const jinja_lexer *lexer, const char *problem) {
  return (jinja_token){.kind = TOKEN_WRONG, .line = lexer->line, .problem = problem};
}

// ---- text between tags ----

// Returns the beginning of the next tag, or the end of the source.
static uint32_t find_tag(const jinja_lexer *lexer) {
  uint32_t at = lexer->at;
  for (; at + 1 < lexer->size_bytes; at++) {
    const char next = lexer->source[at + 1];
    if (lexer->source[at] == '{' && (next == '{' || next == '%' || next == '#')) return at;
  }
  return lexer->size_bytes;
}

// Returns the end of the text before a tag, without the white space that the tag removes.
static uint32_t strip_before(const jinja_lexer *lexer, uint32_t tag) {
  uint32_t end = tag;
  const char sign = byte_at(lexer, tag + 2);
  if (sign == '-') {
    while (end > lexer->at && is_space(lexer->source[end - 1])) end--;
    return end;
  }
  if (sign == '+' || lexer->source[tag + 1] == '{') return end;
  while (end > lexer->at && is_space(lexer->source[end - 1]) && lexer->source[end - 1] != '\n') {
    end--;
  }
  const bool begins_line = end > lexer->at ? lexer->source[end - 1] == '\n' : lexer->starts_line;
  return begins_line ? end : tag;
}

// Moves past the end of a block or a comment, whose sign is at `sign` and whose two closing
// characters end at `end`; trim_blocks removes the line break after it.
static void pass_end(jinja_lexer *lexer, char sign, uint32_t end) {
  if (sign != '-' && sign != '+' && byte_at(lexer, end) == '\n') end++;
  advance(lexer, end);
  if (sign == '-') skip_space(lexer);
}

static bool pass_comment(jinja_lexer *lexer) {
  uint32_t at = lexer->at + 2;
  if (byte_at(lexer, at) == '-' || byte_at(lexer, at) == '+') at++;
  const uint32_t begin = at;
  while (at + 1 < lexer->size_bytes && !is_at(lexer, at, "#}")) at++;
  if (at + 1 >= lexer->size_bytes) return false;
  const char sign = at > begin ? lexer->source[at - 1] : '\0';
  pass_end(lexer, sign, at + 2);
  return true;
}

// Returns the position after a block that contains only a word; 0 if no such block follows. *sign:
// the sign before its end.
static uint32_t after_word_block(const jinja_lexer *lexer, uint32_t at, const char *word,
                                 char *sign) {
  if (!is_at(lexer, at, "{%")) return 0;
  at += 2;
  if (byte_at(lexer, at) == '-' || byte_at(lexer, at) == '+') at++;
  while (is_space(byte_at(lexer, at))) at++;
  if (at > lexer->size_bytes || !is_at(lexer, at, word)) return 0;
  at += (uint32_t)strlen(word);
  while (is_space(byte_at(lexer, at))) at++;
  *sign = byte_at(lexer, at);
  if (*sign == '-' || *sign == '+') at++;
  return at <= lexer->size_bytes && is_at(lexer, at, "%}") ? at + 2 : 0;
}

// Reads the text of a raw block, in which tags are not recognised.
static jinja_token read_raw(jinja_lexer *lexer, uint32_t begin, char begin_sign) {
  advance(lexer, begin);
  if (begin_sign == '-') skip_space(lexer);
  const uint32_t line = lexer->line;
  for (uint32_t at = lexer->at; at + 1 < lexer->size_bytes; at++) {
    char sign;
    const uint32_t end =
        lexer->source[at] == '{' ? after_word_block(lexer, at, "endraw", &sign) : 0;
    if (end == 0) continue;
    const jinja_token text = {
        .kind = TOKEN_TEXT, .begin = lexer->at, .end = strip_before(lexer, at), .line = line};
    pass_end(lexer, sign, end);
    return text;
  }
  return wrong(lexer, "unterminated raw block");
}

// Called after text: skips a comment, or begins the tag. Returns false if this has not produced a
// token.
static bool read_tag_begin(jinja_lexer *lexer, jinja_token *token) {
  char sign;
  const char second = lexer->source[lexer->at + 1];
  if (second == '#') {
    if (pass_comment(lexer)) return false;
    *token = wrong(lexer, "unterminated comment");
    return true;
  }
  const uint32_t raw = second == '%' ? after_word_block(lexer, lexer->at, "raw", &sign) : 0;
  if (raw != 0) {
    *token = read_raw(lexer, raw, sign);
    return true;
  }
  token->kind = second == '{' ? TOKEN_OUTPUT_BEGIN : TOKEN_BLOCK_BEGIN;
  token->line = lexer->line;
  uint32_t to = lexer->at + 2;
  if (byte_at(lexer, to) == '-' || byte_at(lexer, to) == '+') to++;
  advance(lexer, to);
  lexer->closer = second == '{' ? '}' : '%';
  lexer->brackets = 0;
  return true;
}

static jinja_token next_in_text(jinja_lexer *lexer) {
  jinja_token token = {0};
  for (;;) {
    if (lexer->pending != 0) {
      lexer->pending = 0;
    } else {
      if (lexer->at >= lexer->size_bytes) return (jinja_token){.line = lexer->line};
      const uint32_t tag = find_tag(lexer);
      const uint32_t end = tag < lexer->size_bytes ? strip_before(lexer, tag) : tag;
      token =
          (jinja_token){.kind = TOKEN_TEXT, .begin = lexer->at, .end = end, .line = lexer->line};
      advance(lexer, tag);
      if (tag < lexer->size_bytes) lexer->pending = 1;
      if (token.end > token.begin) return token;
      continue;
    }
    if (read_tag_begin(lexer, &token)) return token;
  }
}

// ---- tags ----

// Reads the end of the tag, if it is next.
static bool read_tag_end(jinja_lexer *lexer, jinja_token *token) {
  const char end[3] = {lexer->closer, '}', '\0'};
  char sign = byte_at(lexer, lexer->at);
  uint32_t at = lexer->at;
  if (sign == '-' || (sign == '+' && lexer->closer == '%')) {
    at++;
  } else {
    sign = '\0';
  }
  if (at > lexer->size_bytes || !is_at(lexer, at, end)) return false;
  *token = (jinja_token){.kind = TOKEN_TAG_END, .line = lexer->line};
  if (lexer->closer == '}' && sign == '\0') sign = '+';
  lexer->closer = '\0';
  pass_end(lexer, sign, at + 2);
  return true;
}

static jinja_token read_string(jinja_lexer *lexer) {
  const char quote = lexer->source[lexer->at];
  const uint32_t begin = lexer->at, line = lexer->line;
  uint32_t at = begin + 1;
  while (at < lexer->size_bytes && lexer->source[at] != quote) {
    at += lexer->source[at] == '\\' ? 2 : 1;
  }
  if (at >= lexer->size_bytes) return wrong(lexer, "unterminated string");
  advance(lexer, at + 1);
  return (jinja_token){.kind = TOKEN_STRING, .begin = begin, .end = at + 1, .line = line};
}

static uint32_t pass_digits(const jinja_lexer *lexer, uint32_t at) {
  while (is_digit(byte_at(lexer, at)) ||
         (byte_at(lexer, at) == '_' && is_digit(byte_at(lexer, at + 1)))) {
    at++;
  }
  return at;
}

static jinja_token read_number(jinja_lexer *lexer) {
  jinja_token token = {.kind = TOKEN_INTEGER, .begin = lexer->at, .line = lexer->line};
  uint32_t at = lexer->at;
  const char base = (char)(byte_at(lexer, at + 1) | 0x20);
  const bool is_index =
      at > 0 && lexer->source[at - 1] == '.';  // the 0.1 of a.0.1 is not a fraction
  if (lexer->source[at] == '0' && (base == 'x' || base == 'o' || base == 'b')) {
    while (is_name_byte(byte_at(lexer, at))) at++;
  } else {
    at = pass_digits(lexer, at);
    if (!is_index && byte_at(lexer, at) == '.' && is_digit(byte_at(lexer, at + 1))) {
      token.kind = TOKEN_FLOAT;
      at = pass_digits(lexer, at + 1);
    }
    if (!is_index && (byte_at(lexer, at) | 0x20) == 'e') {
      const char sign = byte_at(lexer, at + 1);
      const uint32_t digits = at + (sign == '+' || sign == '-' ? 2 : 1);
      if (is_digit(byte_at(lexer, digits))) {
        token.kind = TOKEN_FLOAT;
        at = pass_digits(lexer, digits);
      }
    }
  }
  token.end = at;
  advance(lexer, at);
  return token;
}

static jinja_token read_operator(jinja_lexer *lexer) {
  static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
  jinja_token token = {.kind = TOKEN_OPERATOR, .begin = lexer->at, .line = lexer->line};
  const char c = lexer->source[lexer->at];
  token.op = (uint8_t)c;
  uint32_t size_bytes = 1;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (!is_at(lexer, lexer->at, pairs[i])) continue;
    token.op = JINJA_OP((uint8_t)pairs[i][0], (uint8_t)pairs[i][1]);
    size_bytes = 2;
    break;
  }
  if (size_bytes == 1 && !jinja_is_one_of(c, "+-/*%~[](){}<>=.:|,;")) {
    return wrong(lexer, "a character that no expression can contain");
  }
  if (c == '(' || c == '[' || c == '{') lexer->brackets++;
  if (c == ')' || c == ']' || c == '}') {
    if (lexer->brackets == 0) return wrong(lexer, "a bracket is closed that was not opened");
    lexer->brackets--;
  }
  token.end = lexer->at + size_bytes;
  advance(lexer, token.end);
  return token;
}

static jinja_token next_in_tag(jinja_lexer *lexer) {
  jinja_token token;
  skip_space(lexer);
  if (lexer->at >= lexer->size_bytes) return wrong(lexer, "unterminated tag");
  if (lexer->brackets == 0 && read_tag_end(lexer, &token)) return token;
  const char c = lexer->source[lexer->at];
  if (c == '"' || c == '\'') return read_string(lexer);
  if (is_digit(c)) return read_number(lexer);
  if (c == '\0') return wrong(lexer, "a character that no expression can contain");
  if (!is_name_byte(c)) return read_operator(lexer);
  token = (jinja_token){.kind = TOKEN_NAME, .begin = lexer->at, .line = lexer->line};
  uint32_t at = lexer->at;
  while (is_name_byte(byte_at(lexer, at))) at++;
  token.end = at;
  advance(lexer, at);
  return token;
}

jinja_token jinja_lexer_next(jinja_lexer *lexer) {
  return lexer->closer == '\0' ? next_in_text(lexer) : next_in_tag(lexer);
}
