// grammar/gbnf.c — parses GBNF directly into states of a program.
#include "grammar/gbnf.h"

#include <string.h>

#include "base/text.h"

enum { DEPTH_MAX = 200, TIMES_MAX = 100000, CLASS_RANGES_MAX = 4096, CODE_POINT_LAST = 0x10ffff };

typedef struct rule_name {
  const uint8_t *text;
  size_t size_bytes, used_at;
  bool is_defined;
} rule_name;

// The text between two states.
typedef struct piece {
  uint32_t from, to;
  bool is_plain;  // the text is one character, which can be any plain character
} piece;

typedef struct gbnf_names gbnf_parser;
struct gbnf_names {
  grammar_work *work;
  program_builder *builder;
  const tokenizer *tokens;
  const uint8_t *text;
  size_t size_bytes, at;
  uint32_t depth;
  struct {
    rule_name *items;
    uint32_t count, capacity;
  } names;                // names of rules
  work_u32_list rules;    // [names] the rule with this name
  work_u32_list name_of;  // [rules] the index of its name + 1
  char name[64];          // for messages
};

static bool fail_at(gbnf_parser *p, size_t at, const char *what, const uint8_t *text,
                    size_t size_bytes) {
  uint32_t line = 1;
  for (size_t i = 0; i < at && i < p->size_bytes; i++) line += p->text[i] == '\n';
  return work_fail(p->work, WICK_E_ARG, at, "grammar, line %u: %s%.*s", line, what,
                   (int)(size_bytes < 60 ? size_bytes : 60), (const char *)text);
}

static bool fail(gbnf_parser *p, const char *what) { return fail_at(p, p->at, what, NULL, 0); }

static bool is_at_end(const gbnf_parser *p) { return p->at >= p->size_bytes; }
static uint8_t peek(const gbnf_parser *p) { return is_at_end(p) ? 0 : p->text[p->at]; }

static bool take(gbnf_parser *p, const char *text) {
  const size_t count = strlen(text);
  if (p->size_bytes - p->at < count || memcmp(p->text + p->at, text, count) != 0) return false;
  p->at += count;
  return true;
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool is_word(uint8_t c) {
  return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-';
}

// Skips spaces and comments, and line breaks where the rule cannot end.
static void skip_space(gbnf_parser *p, bool over_lines) {
  while (!is_at_end(p)) {
    const uint8_t c = peek(p);
    if (c == '#') {
      while (!is_at_end(p) && peek(p) != '\n' && peek(p) != '\r') p->at++;
    } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
      p->at++;
    } else {
      return;
    }
  }
}

static size_t take_name(gbnf_parser *p) {
  const size_t from = p->at;
  while (is_word(peek(p))) p->at++;
  return p->at - from;
}

// Returns the number of the name that ends here, and adds the name if it is new.
static uint32_t find_name(gbnf_parser *p, size_t size_bytes) {
  const uint8_t *text = p->text + p->at - size_bytes;
  for (uint32_t i = 0; i < p->names.count; i++) {
    const rule_name *name = &p->names.items[i];
    if (!work_step(p->work, 1)) return 0;
    if (name->size_bytes == size_bytes && memcmp(name->text, text, size_bytes) == 0) return i;
  }
  const rule_name name = {text, size_bytes, p->at - size_bytes, false};
  const uint32_t rule = program_rule(p->builder);
  if (!WORK_PUSH(p->work, &p->names, name) || !WORK_PUSH(p->work, &p->rules, rule)) return 0;
  while (p->name_of.count <= rule) {
    if (!WORK_PUSH(p->work, &p->name_of, 0)) return 0;
  }
  p->name_of.items[rule] = p->names.count;
  return p->names.count - 1;
}

// ---- characters ----

static bool take_hex(gbnf_parser *p, uint32_t digits, uint32_t *code) {
  *code = 0;
  for (uint32_t i = 0; i < digits; i++) {
    const uint32_t digit = text_hex_value(peek(p));
    if (digit == 16) return fail(p, "a hexadecimal escape is too short");
    *code = *code * 16 + digit;
    p->at++;
  }
  if (*code <= CODE_POINT_LAST && (*code < 0xd800 || *code > 0xdfff)) return true;
  return fail(p, "the escape names no character");
}

static bool take_char(gbnf_parser *p, uint32_t *code) {
  if (take(p, "\\")) {
    const uint8_t c = peek(p);
    p->at++;
    if (c == 'x') return take_hex(p, 2, code);
    if (c == 'u') return take_hex(p, 4, code);
    if (c == 'U') return take_hex(p, 8, code);
    *code = c == 't' ? '\t' : c == 'r' ? '\r' : c == 'n' ? '\n' : c;
    const bool is_known = *code != c || c == '\\' || c == '"' || c == '[' || c == ']' || c == '-';
    p->at -= !is_known;
    return is_known || fail(p, "unknown escape");
  }
  const int count = is_at_end(p) ? 0 : utf8_decode(p->text + p->at, p->size_bytes - p->at, code);
  if (count <= 0) return fail(p, is_at_end(p) ? "the text ends inside" : "this is not UTF-8");
  p->at += (size_t)count;
  return true;
}

static bool parse_literal(gbnf_parser *p, piece *piece) {
  const size_t began = p->at;
  uint32_t at = piece->from;
  p->at++;
  while (!take(p, "\"")) {
    uint32_t code;
    uint8_t bytes[4];
    if (is_at_end(p)) return fail_at(p, began, "the literal has no closing '\"'", NULL, 0);
    if (!take_char(p, &code)) return false;
    at = program_text(p->builder, at, bytes, utf8_encode(code, bytes));
  }
  program_skip(p->builder, at, piece->to);
  return true;
}

// ---- classes ----

typedef struct class_ranges {
  uint32_t low[CLASS_RANGES_MAX], high[CLASS_RANGES_MAX], count;
} class_ranges;

static void sort_class(class_ranges *ranges) {
  for (uint32_t i = 1; i < ranges->count; i++) {
    const uint32_t low = ranges->low[i], high = ranges->high[i];
    uint32_t at = i;
    for (; at > 0 && ranges->low[at - 1] > low; at--) {
      ranges->low[at] = ranges->low[at - 1];
      ranges->high[at] = ranges->high[at - 1];
    }
    ranges->low[at] = low;
    ranges->high[at] = high;
  }
}

// Emits the characters of a sorted class, or all other characters, without overlaps.
static void emit_class(gbnf_parser *p, const class_ranges *ranges, bool is_not, piece *piece) {
  static const uint32_t PLAIN[][2] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, CODE_POINT_LAST}};
  uint32_t next = 0, plain = 0;
  for (uint32_t i = 0; i <= ranges->count; i++) {
    const bool is_last = i == ranges->count;
    uint32_t low = is_last ? CODE_POINT_LAST + 1 : ranges->low[i];
    uint32_t high = is_last ? CODE_POINT_LAST : ranges->high[i];
    const uint32_t after = high + 1 > next ? high + 1 : next;
    if (is_not) {
      high = low - 1;  // if low is 0, there is no smaller character
      low = next;
      if (low > high || high == UINT32_MAX) low = 1, high = 0;
    } else if (low < next) {
      low = next;
    }
    next = after;
    if (is_last && !is_not) break;
    if (low > high) continue;
    program_range(p->builder, piece->from, low, high, piece->to);
    for (uint32_t j = 0; j < 3; j++) plain += low <= PLAIN[j][0] && high >= PLAIN[j][1];
  }
  piece->is_plain = plain == 3;
}

static bool parse_class(gbnf_parser *p, piece *piece) {
  const size_t began = p->at++;
  class_ranges *ranges = work_alloc(p->work, 1, sizeof *ranges);
  if (ranges == NULL) return false;
  const bool is_not = take(p, "^");
  while (!take(p, "]")) {
    if (is_at_end(p)) return fail_at(p, began, "the class has no ']'", NULL, 0);
    if (ranges->count == CLASS_RANGES_MAX) return fail(p, "the class has too many ranges");
    uint32_t low, high;
    if (!take_char(p, &low)) return false;
    high = low;
    if (peek(p) == '-' && p->at + 1 < p->size_bytes && p->text[p->at + 1] != ']') {
      p->at++;
      if (!take_char(p, &high)) return false;
      if (high < low) return fail(p, "the range is out of order");
    }
    ranges->low[ranges->count] = low;
    ranges->high[ranges->count++] = high;
  }
  sort_class(ranges);
  emit_class(p, ranges, is_not, piece);
  return true;
}

// ---- tokens ----

static bool parse_token(gbnf_parser *p, piece *piece) {
  const bool is_not = take(p, "!");
  const size_t began = p->at;
  int32_t token = TOKEN_NONE;
  if (!take(p, "<")) return fail(p, "'!' must precede a token '<...>'");
  while (!is_at_end(p) && peek(p) != '>' && peek(p) != '\n') p->at++;
  if (!take(p, ">")) return fail_at(p, began, "the token has no '>'", NULL, 0);
  const uint8_t *text = p->text + began;
  const size_t size_bytes = p->at - began;
  if (p->tokens == NULL) {
    return fail_at(p, began, "there is no vocabulary for the token ", text, size_bytes);
  }
  if (text[1] == '[') {
    uint64_t id = 0;
    size_t i = 2;
    for (; i < size_bytes && is_digit(text[i]) && id < UINT32_MAX; i++)
      id = id * 10 + text[i] - '0';
    if (i == 2 || i + 2 != size_bytes || text[i] != ']' || id >= tokenizer_vocab(p->tokens)) {
      return fail_at(p, began, "not a token id: ", text, size_bytes);
    }
    token = (int32_t)id;
  } else {
    token = tokenizer_find(p->tokens, (const char *)text, size_bytes);
    if (token == TOKEN_NONE) return fail_at(p, began, "no single token is ", text, size_bytes);
  }
  program_token(p->builder, piece->from, (uint32_t)token, is_not, piece->to);
  return true;
}

// ---- repetition ----

static bool take_number(gbnf_parser *p, uint32_t *number) {
  if (!is_digit(peek(p))) return false;
  for (*number = 0; is_digit(peek(p)); p->at++) {
    if (*number <= TIMES_MAX) *number = *number * 10 + (peek(p) - '0');
  }
  return true;
}

static bool parse_times(gbnf_parser *p, bool is_nested, uint32_t *least, uint32_t *most) {
  skip_space(p, is_nested);
  if (!take_number(p, least)) return fail(p, "a repetition needs a number");
  *most = *least;
  skip_space(p, is_nested);
  if (take(p, ",")) {
    skip_space(p, is_nested);
    if (!take_number(p, most)) *most = UINT32_MAX;
    skip_space(p, is_nested);
  }
  if (!take(p, "}")) return fail(p, "the repetition has no '}'");
  if (*least > *most) return fail(p, "the repetition's maximum is below its minimum");
  if (*least <= TIMES_MAX && (*most <= TIMES_MAX || *most == UINT32_MAX)) return true;
  return work_fail(p->work, WICK_E_FULL, p->at, "grammar: a repetition above %d", TIMES_MAX);
}

static piece new_piece(gbnf_parser *p) {
  return (piece){program_place(p->builder), program_place(p->builder), false};
}

static void mark_plain(gbnf_parser *p, const piece *piece, uint32_t place) {
  if (piece->is_plain && work_is_ok(p->work)) {
    p->builder->places.items[place].plain = GRAMMAR_PLAIN_ENDLESS;
  }
}

// Repeats a piece any number of times, at least `least` (0 or 1), without a separate rule.
static piece repeat_piece(gbnf_parser *p, const piece *inside, uint32_t least) {
  const piece made = new_piece(p);
  const uint32_t loop = program_place(p->builder);
  program_skip(p->builder, made.from, least == 0 ? loop : inside->from);
  program_skip(p->builder, loop, inside->from);
  program_skip(p->builder, inside->to, loop);
  program_skip(p->builder, loop, made.to);
  mark_plain(p, inside, loop);
  return made;
}

static piece count_piece(gbnf_parser *p, const piece *inside, uint32_t least, uint32_t most) {
  const piece made = new_piece(p);
  const uint32_t rule = program_rule(p->builder);
  program_skip(p->builder, program_start(p->builder, rule), inside->from);
  program_end(p->builder, inside->to);
  program_repeat(p->builder, made.from, rule, 0, least, most, inside->is_plain, made.to);
  return made;
}

static bool parse_repeats(gbnf_parser *p, bool is_nested, piece *piece) {
  while (work_is_ok(p->work)) {
    uint32_t least, most;
    skip_space(p, is_nested);
    if (take(p, "*")) {
      *piece = repeat_piece(p, piece, 0);
    } else if (take(p, "+")) {
      *piece = repeat_piece(p, piece, 1);
    } else if (take(p, "?")) {
      program_skip(p->builder, piece->from, piece->to);
      piece->is_plain = false;
    } else if (take(p, "{")) {
      if (!parse_times(p, is_nested, &least, &most)) return false;
      *piece = count_piece(p, piece, least, most);
    } else {
      return true;
    }
  }
  return false;
}

// ---- rules ----

static bool parse_choice(gbnf_parser *p, bool is_nested, uint32_t from, uint32_t to);

static bool parse_group(gbnf_parser *p, piece *piece) {
  const size_t began = p->at++;
  if (++p->depth > DEPTH_MAX) {
    return work_fail(p->work, WICK_E_FULL, p->at, "grammar: groups are nested too deeply");
  }
  skip_space(p, true);
  if (!parse_choice(p, true, piece->from, piece->to)) return false;
  p->depth--;
  return take(p, ")") || fail_at(p, began, "the group has no ')'", NULL, 0);
}

static bool parse_item(gbnf_parser *p, piece *piece) {
  const uint8_t c = peek(p);
  if (c == '"') return parse_literal(p, piece);
  if (c == '[') return parse_class(p, piece);
  if (c == '(') return parse_group(p, piece);
  if (c == '<' || c == '!') return parse_token(p, piece);
  if (take(p, ".")) {
    program_range(p->builder, piece->from, 0, CODE_POINT_LAST, piece->to);
    piece->is_plain = true;
    return true;
  }
  if (is_word(c)) {
    const uint32_t name = find_name(p, take_name(p));
    if (!work_is_ok(p->work)) return false;
    program_call(p->builder, piece->from, p->rules.items[name], piece->to);
    return true;
  }
  const bool repeats = c == '*' || c == '+' || c == '?' || c == '{';
  return fail(p, repeats ? "nothing precedes the operator" : "unexpected character");
}

static bool ends_sequence(const gbnf_parser *p) {
  const uint8_t c = peek(p);
  return is_at_end(p) || c == '|' || c == ')' || c == '\n' || c == '\r';
}

static bool parse_sequence(gbnf_parser *p, bool is_nested, uint32_t from, uint32_t to) {
  while (!ends_sequence(p)) {
    piece piece = new_piece(p);
    if (!parse_item(p, &piece) || !parse_repeats(p, is_nested, &piece)) return false;
    program_skip(p->builder, from, piece.from);
    from = piece.to;
    skip_space(p, is_nested);
  }
  program_skip(p->builder, from, to);
  return work_is_ok(p->work);
}

static bool parse_choice(gbnf_parser *p, bool is_nested, uint32_t from, uint32_t to) {
  do {
    skip_space(p, true);  // a line break may follow the bar
    const uint32_t start = program_place(p->builder);
    program_skip(p->builder, from, start);
    if (!parse_sequence(p, is_nested, start, to)) return false;
  } while (take(p, "|"));
  return true;
}

static bool parse_rule(gbnf_parser *p) {
  const size_t size_bytes = take_name(p);
  if (size_bytes == 0) return fail(p, "a rule's name is expected");
  const uint32_t name = find_name(p, size_bytes);
  skip_space(p, false);
  if (!take(p, "::=")) return fail(p, "'::=' is expected after a rule's name");
  if (!work_is_ok(p->work)) return false;
  skip_space(p, true);
  p->names.items[name].is_defined = true;
  const uint32_t start = program_start(p->builder, p->rules.items[name]);
  p->builder->places.items[start].edges =
      0;  // if a rule is written twice, the last definition counts
  const uint32_t end = program_place(p->builder);
  if (!parse_choice(p, false, start, end)) return false;
  program_end(p->builder, end);
  if (is_at_end(p) || take(p, "\r\n") || take(p, "\n") || take(p, "\r")) return true;
  return fail(p, "the rule should end here");
}

const char *gbnf_name(void *names, uint32_t rule) {
  gbnf_parser *p = names;
  if (rule >= p->name_of.count || p->name_of.items[rule] == 0) return NULL;
  const rule_name *name = &p->names.items[p->name_of.items[rule] - 1];
  text_format(p->name, sizeof p->name, "%.*s", (int)(name->size_bytes < 60 ? name->size_bytes : 60),
              (const char *)name->text);
  return p->name;
}

uint32_t gbnf_build(program_builder *builder, const tokenizer *tokens, const uint8_t *text,
                    size_t size_bytes, gbnf_names **names) {
  grammar_work *work = builder->work;
  gbnf_parser *p = *names = work_alloc(work, 1, sizeof *p);
  if (p == NULL) return 0;
  *p = (gbnf_parser){.work = work, .builder = builder, .tokens = tokens};
  p->text = text;
  p->size_bytes = size_bytes;
  skip_space(p, true);
  while (work_is_ok(work) && !is_at_end(p)) {
    if (!parse_rule(p)) return 0;
    skip_space(p, true);
  }
  uint32_t root = 0;
  for (uint32_t i = 0; i < p->names.count && work_is_ok(work); i++) {
    const rule_name *name = &p->names.items[i];
    if (!name->is_defined) {
      fail_at(p, name->used_at, "there is no rule ", name->text, name->size_bytes);
    }
    if (name->size_bytes == 4 && memcmp(name->text, "root", 4) == 0) root = p->rules.items[i];
  }
  if (work_is_ok(work) && root == 0) fail_at(p, 0, "there is no rule root", NULL, 0);
  return root;
}
