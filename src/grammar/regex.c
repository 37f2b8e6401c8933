// grammar/regex.c — parses a regular expression into a tree, and the tree into an automaton
// (Thompson 1968).
#include "grammar/regex.h"

#include <string.h>

#include "base/text.h"

enum {
  DEPTH_MAX = 200,
  TIMES_MAX = 100000,
  PARTS_MAX = 1 << 19,   // states and edges of the automaton
  MEMO_REGEX = 100,      // 101 with `whole`
  LOOK_TIMES_MAX = 16,   // repetitions of a group with look-ahead
  LOOK_DEPTH_MAX = 100,  // consecutive look-aheads, and alternatives with them
};

typedef enum node_kind {
  NODE_EMPTY,
  NODE_SET,     // one character in ranges [a, b)
  NODE_JOIN,    // a, then b
  NODE_CHOICE,  // a or b
  NODE_REPEAT,  // a, from `least` to `most` times
  NODE_START,
  NODE_END,
  NODE_LOOK  // the rest of the string begins with a; if `least` is 0, it does not
} node_kind;

typedef struct node {
  node_kind kind;
  uint32_t a, b, least, most;
  uint32_t parts;  // of the node's automaton
  bool has_look, has_start;
} node;

typedef struct code_range {
  uint32_t low, high;
} code_range;

typedef struct range_list {
  code_range *items;
  uint32_t count, capacity;
} range_list;

typedef struct parser {
  grammar_work *work;
  const uint8_t *text;
  size_t size_bytes, at;
  bool whole;  // the string must end where the pattern ends
  uint32_t depth, look_depth;
  struct {
    node *items;
    uint32_t count, capacity;
  } nodes;
  range_list ranges;
} parser;

static bool fail(parser *p, wick_status status, const char *what) {
  return work_fail(p->work, status, p->at, "pattern '%.*s', byte %zu: %s",
                   (int)(p->size_bytes < 120 ? p->size_bytes : 120), (const char *)p->text, p->at,
                   what);
}

static bool is_at_end(const parser *p) { return p->at >= p->size_bytes; }

static uint8_t peek(const parser *p) { return is_at_end(p) ? 0 : p->text[p->at]; }

static bool take(parser *p, const char *text) {
  const size_t count = strlen(text);
  if (p->size_bytes - p->at < count || memcmp(p->text + p->at, text, count) != 0) return false;
  p->at += count;
  return true;
}

static uint32_t take_code(parser *p) {
  uint32_t code = 0;
  const int count = utf8_decode(p->text + p->at, p->size_bytes - p->at, &code);
  if (count <= 0) {
    fail(p, WICK_E_ARG, "this is not UTF-8");
    return 0;
  }
  p->at += (size_t)count;
  return code;
}

// Counts the states and edges that a node needs, so that a pattern that is too large is rejected
// before it is built.
static bool measure(parser *p, node *made) {
  static const node NONE = {.kind = NODE_EMPTY};
  const bool is_set = made->kind == NODE_SET, has_a = made->kind != NODE_EMPTY && !is_set;
  const bool has_b = made->kind == NODE_JOIN || made->kind == NODE_CHOICE;
  const node *a = has_a ? &p->nodes.items[made->a] : &NONE;
  const node *b = has_b ? &p->nodes.items[made->b] : &NONE;
  uint64_t parts = (uint64_t)a->parts + b->parts + (is_set ? made->b - made->a : 1);
  if (made->kind == NODE_REPEAT) {
    const uint32_t times = made->most == UINT32_MAX ? made->least + 1 : made->most;
    parts = ((uint64_t)a->parts + 2) * times + 2;
  }
  if (parts > PARTS_MAX)
    return fail(p, WICK_E_FULL, "the pattern expands to more than 524288 states");
  made->parts = (uint32_t)parts;
  made->has_look = made->kind == NODE_LOOK || a->has_look || b->has_look;
  made->has_start = made->kind == NODE_START || a->has_start || b->has_start;
  return true;
}

static uint32_t add_node(parser *p, node made) {
  if (!work_step(p->work, 1) || !measure(p, &made)) return 0;
  return WORK_PUSH(p->work, &p->nodes, made) ? p->nodes.count - 1 : 0;
}

// ---- sets of characters ----

static void add_range(parser *p, range_list *list, uint32_t low, uint32_t high) {
  const code_range range = {low, high};
  (void)WORK_PUSH(p->work, list, range);
}

static const code_range DIGITS[] = {{'0', '9'}};
static const code_range WORDS[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const code_range SPACES[] = {
    {9, 13},          {32, 32},         {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
static const code_range LINE_ENDS[] = {{10, 10}, {13, 13}, {0x2028, 0x2029}};

// Adds sorted ranges, or all characters outside of them.
static void add_ranges(parser *p, range_list *list, const code_range *ranges, uint32_t count,
                       bool is_not) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_not) {
      add_range(p, list, ranges[i].low, ranges[i].high);
    } else if (ranges[i].low > next) {
      add_range(p, list, next, ranges[i].low - 1);
    }
    if (ranges[i].high + 1 > next) next = ranges[i].high + 1;
  }
  if (is_not && next <= CODE_POINT_MAX) add_range(p, list, next, CODE_POINT_MAX);
}

static void sort_ranges(range_list *list) {
  for (uint32_t i = 1; i < list->count; i++) {
    const code_range range = list->items[i];
    uint32_t at = i;
    for (; at > 0 && list->items[at - 1].low > range.low; at--) {
      list->items[at] = list->items[at - 1];
    }
    list->items[at] = range;
  }
}

static uint32_t set_node(parser *p, const range_list *list) {
  const uint32_t first = p->ranges.count;
  for (uint32_t i = 0; i < list->count; i++) {
    if (!WORK_PUSH(p->work, &p->ranges, list->items[i])) return 0;
  }
  return add_node(p, (node){.kind = NODE_SET, .a = first, .b = p->ranges.count});
}

static uint32_t code_node(parser *p, uint32_t code) {
  code_range range = {code, code};
  const range_list list = {&range, 1, 1};
  return set_node(p, &list);
}

// ---- escapes ----

static bool take_hex(parser *p, uint32_t digits, uint32_t *code) {
  *code = 0;
  for (uint32_t i = 0; i < digits; i++) {
    const uint32_t digit = text_hex_value(peek(p));
    if (digit == 16) return fail(p, WICK_E_ARG, "an escape needs more hexadecimal digits");
    *code = *code * 16 + digit;
    p->at++;
  }
  return true;
}

static bool take_unicode_escape(parser *p, uint32_t *code) {
  if (take(p, "{")) {
    *code = 0;
    do {
      uint32_t digit;
      if (!take_hex(p, 1, &digit)) return false;
      *code = *code * 16 + digit;
      if (*code > CODE_POINT_MAX) return fail(p, WICK_E_ARG, "the code point is above U+10FFFF");
    } while (!take(p, "}"));
    return true;
  }
  if (!take_hex(p, 4, code)) return false;
  uint32_t low;
  const size_t before = p->at;
  if (*code >= 0xd800 && *code < 0xdc00 && take(p, "\\u") && take_hex(p, 4, &low)) {
    if (low >= 0xdc00 && low < 0xe000) {
      *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    } else {
      p->at = before;
    }
  }
  return true;
}

static bool fail_escape(parser *p, uint8_t c) {
  if (c >= '1' && c <= '9') return fail(p, WICK_E_UNSUPPORTED, "back references are not regular");
  if (c == 'k') return fail(p, WICK_E_UNSUPPORTED, "back references are not regular");
  if (c == 'b' || c == 'B') return fail(p, WICK_E_UNSUPPORTED, "word boundaries (\\b, \\B)");
  if (c == 'p' || c == 'P') return fail(p, WICK_E_UNSUPPORTED, "Unicode properties (\\p, \\P)");
  return fail(p, WICK_E_ARG, "unknown escape");
}

// Parses the text after a backslash: a set into `list`, or a code point into *code. *is_set, false
// before the call, becomes true for a set.
static bool take_escape(parser *p, range_list *list, bool *is_set, uint32_t *code) {
  static const char NAMES[] = "tnvfr", CODES[] = "\t\n\v\f\r";
  if (is_at_end(p)) return fail(p, WICK_E_ARG, "a backslash at the end");
  const uint8_t c = peek(p), lower = c | 32;
  const bool is_letter = lower >= 'a' && lower <= 'z';
  if (!is_letter && c != '0' && (c < '1' || c > '9')) {
    *code = take_code(p);
    return work_is_ok(p->work);
  }
  p->at++;
  *is_set = is_letter && (lower == 'd' || lower == 'w' || lower == 's');
  if (*is_set) {
    const code_range *ranges = lower == 'd' ? DIGITS : lower == 'w' ? WORDS : SPACES;
    const uint32_t count = lower == 'd' ? 1 : lower == 'w' ? 4 : 10;
    add_ranges(p, list, ranges, count, c != lower);
    return true;
  }
  if (c == 'x') return take_hex(p, 2, code);
  if (c == 'u') return take_unicode_escape(p, code);
  if (c == 'c') {
    const uint8_t letter = peek(p) | 32;
    if (letter < 'a' || letter > 'z') return fail(p, WICK_E_ARG, "\\c needs a letter");
    p->at++;
    *code = letter & 31u;
    return true;
  }
  *code = 0;
  if (c == '0') return true;
  for (size_t i = 0; NAMES[i] != 0; i++) {
    if ((uint8_t)NAMES[i] == c) *code = (uint8_t)CODES[i];
  }
  return *code != 0 || fail_escape(p, c);
}

// ---- classes ----

static bool take_class_atom(parser *p, range_list *list, bool *is_set, uint32_t *code) {
  *is_set = false;
  if (is_at_end(p)) return fail(p, WICK_E_ARG, "the class has no ']'");
  if (!take(p, "\\")) {
    *code = take_code(p);
    return work_is_ok(p->work);
  }
  if (take(p, "b")) {
    *code = 8;
    return true;
  }
  return take_escape(p, list, is_set, code);
}

static uint32_t parse_class(parser *p) {
  range_list list = {0};
  const bool is_not = take(p, "^");
  while (!take(p, "]")) {
    bool is_set, ends_in_set;
    uint32_t low = 0, high = 0;
    if (!take_class_atom(p, &list, &is_set, &low)) return 0;
    const bool is_range = peek(p) == '-' && p->at + 1 < p->size_bytes && p->text[p->at + 1] != ']';
    if (is_set || !is_range) {
      if (!is_set) add_range(p, &list, low, low);
      continue;
    }
    p->at++;
    if (!take_class_atom(p, &list, &ends_in_set, &high)) return 0;
    if (ends_in_set) {  // "a-\d": the hyphen is a literal
      add_range(p, &list, low, low);
      add_range(p, &list, '-', '-');
    } else if (high < low) {
      fail(p, WICK_E_ARG, "the range is out of order");
      return 0;
    } else {
      add_range(p, &list, low, high);
    }
    if (!work_step(p->work, 1)) return 0;
  }
  if (!work_is_ok(p->work)) return 0;
  sort_ranges(&list);
  if (!is_not) return set_node(p, &list);
  range_list rest = {0};
  add_ranges(p, &rest, list.items, list.count, true);
  return set_node(p, &rest);
}

// ---- the tree ----

static uint32_t parse_choice(parser *p);

static bool is_name_byte(uint8_t c, bool is_first) {
  const uint8_t lower = c | 32;
  if ((lower >= 'a' && lower <= 'z') || c == '_' || c == '$' || c >= 0x80) return true;
  return !is_first && c >= '0' && c <= '9';
}

static void take_group_name(parser *p) {
  if (take(p, "=") || take(p, "!")) fail(p, WICK_E_UNSUPPORTED, "look-behind");
  for (bool is_first = true; work_is_ok(p->work); is_first = false) {
    if (!is_first && take(p, ">")) return;
    if (!is_name_byte(peek(p), is_first)) fail(p, WICK_E_ARG, "invalid name of a group");
    p->at++;
  }
}

static uint32_t parse_group(parser *p) {
  bool is_look = false, holds = false;
  if (take(p, "?")) {
    holds = take(p, "=");
    is_look = holds || take(p, "!");
    if (!is_look && take(p, "<")) {
      take_group_name(p);
    } else if (!is_look && !take(p, ":")) {
      fail(p, WICK_E_UNSUPPORTED, "groups of this kind");
    }
  }
  if (++p->depth > DEPTH_MAX) fail(p, WICK_E_FULL, "groups are nested too deeply");
  if (!work_is_ok(p->work)) return 0;
  const uint32_t inside = parse_choice(p);
  p->depth--;
  if (!take(p, ")")) fail(p, WICK_E_ARG, "the group has no ')'");
  return is_look ? add_node(p, (node){.kind = NODE_LOOK, .a = inside, .least = holds}) : inside;
}

static bool repeats_next(const parser *p) {
  const uint8_t c = peek(p);
  return c == '*' || c == '+' || c == '?' || c == '{';
}

static uint32_t parse_atom(parser *p) {
  const uint8_t c = peek(p);
  if (take(p, "(")) return parse_group(p);
  if (take(p, "[")) return parse_class(p);
  if (take(p, "^")) return add_node(p, (node){.kind = NODE_START});
  if (take(p, "$")) return add_node(p, (node){.kind = NODE_END});
  if (repeats_next(p)) {
    fail(p, WICK_E_ARG, "nothing to repeat");
    return 0;
  }
  if (c == ']' || c == '}') {
    fail(p, WICK_E_ARG, "a bracket that closes nothing (write it with a backslash)");
    return 0;
  }
  range_list list = {0};
  if (take(p, ".")) {
    add_ranges(p, &list, LINE_ENDS, 3, true);
    return set_node(p, &list);
  }
  bool is_set = false;
  uint32_t code = 0;
  if (take(p, "\\")) {
    if (!take_escape(p, &list, &is_set, &code)) return 0;
  } else {
    code = take_code(p);
  }
  return is_set ? set_node(p, &list) : code_node(p, code);
}

static bool take_number(parser *p, uint32_t *number) {
  const size_t before = p->at;
  *number = 0;
  while (peek(p) >= '0' && peek(p) <= '9') {
    *number = *number > TIMES_MAX ? *number : *number * 10 + (peek(p) - '0');
    p->at++;
  }
  return p->at != before;
}

// Parses "{n}", "{n,}" or "{n,m}".
static void take_braces(parser *p, uint32_t *least, uint32_t *most) {
  const size_t before = p->at;
  bool is_ok = take(p, "{") && take_number(p, least);
  *most = *least;
  if (is_ok && take(p, ",") && !take_number(p, most)) *most = UINT32_MAX;
  is_ok = is_ok && take(p, "}");
  if (!is_ok) {
    p->at = before;
    fail(p, WICK_E_ARG, "the braces are not a count (write a brace with a backslash)");
  }
  if (*least > *most) fail(p, WICK_E_ARG, "the count is out of order");
  if (*least > TIMES_MAX || (*most != UINT32_MAX && *most > TIMES_MAX)) {
    fail(p, WICK_E_FULL, "the count is above 100000");
  }
}

static uint32_t parse_term(parser *p) {
  const uint32_t atom = parse_atom(p);
  if (!work_is_ok(p->work)) return 0;
  uint32_t least = 1, most = 1;
  if (!repeats_next(p)) return atom;
  const node_kind kind = p->nodes.items[atom].kind;
  if (kind == NODE_START || kind == NODE_END || kind == NODE_LOOK) {
    fail(p, WICK_E_ARG, "nothing to repeat");
    return 0;
  }
  if (take(p, "*")) {
    least = 0;
    most = UINT32_MAX;
  } else if (take(p, "+")) {
    most = UINT32_MAX;
  } else if (take(p, "?")) {
    least = 0;
  } else {
    take_braces(p, &least, &most);
  }
  take(p, "?");  // a lazy quantifier accepts the same strings
  if (repeats_next(p)) fail(p, WICK_E_ARG, "nothing to repeat");
  return add_node(p, (node){.kind = NODE_REPEAT, .a = atom, .least = least, .most = most});
}

static uint32_t parse_choice(parser *p) {
  uint32_t choice = UINT32_MAX;
  do {
    uint32_t joined = add_node(p, (node){.kind = NODE_EMPTY});
    while (work_is_ok(p->work) && !is_at_end(p) && peek(p) != '|' && peek(p) != ')') {
      const uint32_t term = parse_term(p);
      joined = add_node(p, (node){.kind = NODE_JOIN, .a = joined, .b = term});
    }
    choice = choice == UINT32_MAX
                 ? joined
                 : add_node(p, (node){.kind = NODE_CHOICE, .a = choice, .b = joined});
  } while (work_is_ok(p->work) && take(p, "|"));
  return choice;
}

// ---- the automaton ----

static void emit(parser *p, nfa *nfa, uint32_t at, uint32_t from, uint32_t to);

// Emits a join. A chain of joins is processed from its last part, so that recursion is limited to
// the parts.
static void emit_join(parser *p, nfa *nfa, uint32_t at, uint32_t from, uint32_t to) {
  while (p->nodes.items[at].kind == NODE_JOIN && work_is_ok(p->work)) {
    const uint32_t middle = nfa_state(nfa);
    emit(p, nfa, p->nodes.items[at].b, middle, to);
    to = middle;
    at = p->nodes.items[at].a;
  }
  emit(p, nfa, at, from, to);
}

static void emit_choice(parser *p, nfa *nfa, uint32_t at, uint32_t from, uint32_t to) {
  while (p->nodes.items[at].kind == NODE_CHOICE && work_is_ok(p->work)) {
    emit(p, nfa, p->nodes.items[at].b, from, to);
    at = p->nodes.items[at].a;
  }
  emit(p, nfa, at, from, to);
}

static void emit_repeat(parser *p, nfa *nfa, const node *node, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < node->least && work_is_ok(p->work); i++) {
    const uint32_t next = nfa_state(nfa);
    emit(p, nfa, node->a, from, next);
    from = next;
  }
  if (node->most == UINT32_MAX) {
    const uint32_t loop = nfa_state(nfa), back = nfa_state(nfa);
    nfa_skip(nfa, from, NFA_SKIP, loop);
    emit(p, nfa, node->a, loop, back);
    nfa_skip(nfa, back, NFA_SKIP, loop);
    from = loop;
  }
  for (uint32_t i = node->least; node->most != UINT32_MAX && i < node->most; i++) {
    if (!work_is_ok(p->work)) return;
    nfa_skip(nfa, from, NFA_SKIP, to);
    const uint32_t next = nfa_state(nfa);
    emit(p, nfa, node->a, from, next);
    from = next;
  }
  nfa_skip(nfa, from, NFA_SKIP, to);
}

static void emit(parser *p, nfa *nfa, uint32_t at, uint32_t from, uint32_t to) {
  if (!work_step(p->work, 1)) return;
  const node node = p->nodes.items[at];
  switch (node.kind) {
    case NODE_EMPTY:
      nfa_skip(nfa, from, NFA_SKIP, to);
      break;
    case NODE_START:
    case NODE_END:
      nfa_skip(nfa, from, node.kind == NODE_START ? NFA_AT_START : NFA_AT_END, to);
      break;
    case NODE_SET:
      for (uint32_t i = node.a; i < node.b; i++) {
        nfa_range(nfa, from, p->ranges.items[i].low, p->ranges.items[i].high, to);
      }
      break;
    case NODE_JOIN:
      emit_join(p, nfa, at, from, to);
      break;
    case NODE_CHOICE:
      emit_choice(p, nfa, at, from, to);
      break;
    case NODE_REPEAT:
      emit_repeat(p, nfa, &node, from, to);
      break;
    case NODE_LOOK:
      break;  // emit_rest
  }
}

// ---- look-ahead: selects strings from the rest, or removes them ----

// A list of the nodes that follow.
typedef struct rest_list {
  uint32_t node;
  const struct rest_list *next;
} rest_list;

static const rest_list *rest_after(parser *p, uint32_t node, const rest_list *next) {
  rest_list *made = work_alloc(p->work, 1, sizeof *made);
  if (made != NULL) *made = (rest_list){node, next};
  return made;
}

static const dfa *dfa_of_rest(parser *p, const rest_list *rest, bool whole, bool is_inner);

static void emit_look(parser *p, nfa *nfa, const node *look, const rest_list *rest, uint32_t from,
                      uint32_t end) {
  const rest_list ahead = {look->a, NULL};
  const dfa *texts = dfa_of_rest(p, rest, p->whole, true);
  const dfa *named = dfa_of_rest(p, &ahead, false, true);
  texts = dfa_combine(p->work, texts, named, look->least != 0 ? DFA_AND : DFA_WITHOUT);
  if (texts != NULL) nfa_copy(nfa, texts, from, end);
}

static void emit_rest(parser *p, nfa *nfa, const rest_list *rest, uint32_t from, uint32_t to,
                      uint32_t end);

// Emits each number of repetitions, followed by the rest of the string.
static void emit_times(parser *p, nfa *nfa, const rest_list *rest, uint32_t from, uint32_t to,
                       uint32_t end) {
  const node node = p->nodes.items[rest->node];
  if (node.most > LOOK_TIMES_MAX) {
    fail(p, WICK_E_UNSUPPORTED, "look-ahead inside a repetition");
    return;
  }
  const rest_list *all = rest->next;
  for (uint32_t times = 0; times <= node.most && work_is_ok(p->work); times++) {
    if (times >= node.least) emit_rest(p, nfa, all, from, to, end);
    all = rest_after(p, node.a, all);
  }
}

// Emits the rest of the string from `from`: up to `to` if no look-ahead follows, otherwise up to
// its `end`.
static void emit_rest(parser *p, nfa *nfa, const rest_list *rest, uint32_t from, uint32_t to,
                      uint32_t end) {
  if (++p->look_depth > LOOK_DEPTH_MAX) {
    fail(p, WICK_E_UNSUPPORTED, "too many alternatives with look-ahead");
    return;
  }
  bool is_done = false;
  while (rest != NULL && !is_done && work_step(p->work, 1)) {
    const node node = p->nodes.items[rest->node];
    if (!node.has_look) {
      is_done = rest->next == NULL;
      const uint32_t next = is_done ? to : nfa_state(nfa);
      emit(p, nfa, rest->node, from, next);
      from = next;
      rest = rest->next;
    } else if (node.kind == NODE_JOIN) {
      rest = rest_after(p, node.a, rest_after(p, node.b, rest->next));
    } else if (node.kind == NODE_CHOICE) {
      emit_rest(p, nfa, rest_after(p, node.b, rest->next), from, to, end);
      rest = rest_after(p, node.a, rest->next);
    } else {
      if (node.kind == NODE_LOOK) emit_look(p, nfa, &node, rest->next, from, end);
      if (node.kind == NODE_REPEAT) emit_times(p, nfa, rest, from, to, end);
      is_done = true;
    }
  }
  if (!is_done) nfa_skip(nfa, from, NFA_SKIP, to);
  p->look_depth--;
}

// Returns the strings that may follow. Unless `is_inner`, they start at the beginning of the whole
// string. Unless `whole`, anything may precede and follow them.
static const dfa *dfa_of_rest(parser *p, const rest_list *rest, bool whole, bool is_inner) {
  for (const rest_list *at = rest; at != NULL && is_inner; at = at->next) {
    if (!p->nodes.items[at->node].has_start) continue;
    fail(p, WICK_E_UNSUPPORTED, "'^' inside a look-ahead or after it");
    return NULL;
  }
  nfa nfa;
  const bool outer = p->whole;
  p->whole = whole;
  nfa_begin(&nfa, p->work);
  const uint32_t start = nfa_state(&nfa), from = nfa_state(&nfa), to = nfa_state(&nfa);
  const uint32_t begin = nfa_state(&nfa);
  // strings that a look-ahead decides end there, not where anything may follow
  const bool decides = is_inner || p->nodes.items[rest->node].has_look;
  const uint32_t end = decides ? nfa_state(&nfa) : to;
  nfa_skip(&nfa, start, NFA_SKIP, from);
  if (!whole && !is_inner) nfa_range(&nfa, from, 0, CODE_POINT_MAX, from);
  nfa_skip(&nfa, from, NFA_SKIP, begin);
  emit_rest(p, &nfa, rest, begin, to, end);
  if (!whole) nfa_range(&nfa, to, 0, CODE_POINT_MAX, to);
  if (end != to) nfa_skip(&nfa, to, NFA_SKIP, end);
  p->whole = outer;
  return dfa_of_nfa(&nfa, start, end);
}

static const dfa *compile(parser *p) {
  const rest_list all = {parse_choice(p), NULL};
  if (work_is_ok(p->work) && !is_at_end(p)) fail(p, WICK_E_ARG, "the ')' closes no group");
  if (!work_is_ok(p->work) || p->nodes.items == NULL) return NULL;
  return dfa_of_rest(p, &all, p->whole, false);
}

const dfa *regex_compile(grammar_work *work, const uint8_t *pattern, size_t size_bytes,
                         bool whole) {
  parser p = {.work = work, .text = pattern, .size_bytes = size_bytes, .whole = whole};
  work_memo *memo = work_remember(work, MEMO_REGEX + whole, pattern, size_bytes);
  if (memo == NULL || memo->value != NULL) return memo == NULL ? NULL : memo->value;
  memo->value = compile(&p);
  return memo->value;
}
