// grammar/spell.c — adds the bytes of sets of strings to a program.
#include "grammar/spell.h"

#include <string.h>

#include "base/text.h"

static const char ESCAPED[] = "\"\\/\b\f\n\r\t", ESCAPES[] = "\"\\/bfnrt";
enum { ESCAPE_COUNT = 8, ASCII_LAST = 0x7f, CONTROL_LAST = 0x1f, ASCII_RANGES_MAX = 4 };
enum { SPELL_CELLS_MAX = 1 << 21 };

// ---- \uXXXX ----

static void add_digits(program_builder *builder, uint32_t from, uint32_t low, uint32_t high,
                       uint32_t to) {
  const uint32_t last = high < 9 ? high : 9;
  if (low <= 9) program_bytes(builder, from, (uint8_t)('0' + low), (uint8_t)('0' + last), to);
  if (high < 10) return;
  const uint32_t first = low > 10 ? low : 10;
  for (uint32_t letter = 'A'; letter <= 'a'; letter += 'a' - 'A') {
    program_bytes(builder, from, (uint8_t)(letter + first - 10), (uint8_t)(letter + high - 10), to);
  }
}

// Adds the numbers in [low, high] with this many hexadecimal digits.
static void add_hex(program_builder *builder, uint32_t from, uint32_t low, uint32_t high,
                    uint32_t digits, uint32_t to) {
  if (digits == 1) {
    add_digits(builder, from, low, high, to);
    return;
  }
  const uint32_t bits = 4 * (digits - 1), rest = (1u << bits) - 1;
  uint32_t first = low >> bits, last = high >> bits;
  const bool has_first = (low & rest) != 0, has_last = (high & rest) != rest;
  if (first == last || has_first) {
    const uint32_t next = program_place(builder);
    add_digits(builder, from, first, first, next);
    add_hex(builder, next, low & rest, first == last ? high & rest : rest, digits - 1, to);
    if (first == last) return;
    first++;
  }
  if (has_last) {
    const uint32_t next = program_place(builder);
    add_digits(builder, from, last, last, next);
    add_hex(builder, next, 0, high & rest, digits - 1, to);
    last--;
  }
  if (first > last) return;
  const uint32_t next = program_place(builder);
  add_digits(builder, from, first, last, next);
  add_hex(builder, next, 0, rest, digits - 1, to);
}

static void add_pairs(program_builder *builder, uint32_t from, uint32_t high_first,
                      uint32_t high_last, uint32_t low_first, uint32_t low_last, uint32_t to) {
  if (high_first > high_last) return;
  const uint32_t high = program_place(builder);
  add_hex(builder, from, high_first, high_last, 4, high);
  add_hex(builder, program_text(builder, high, "\\u", 2), low_first, low_last, 4, to);
}

// Adds, after "\u", the characters in [low, high]; those beyond U+FFFF as two surrogates.
static void add_unicode(program_builder *builder, uint32_t from, uint32_t low, uint32_t high,
                        uint32_t to) {
  if (low < 0xd800) add_hex(builder, from, low, high < 0xd800 ? high : 0xd7ff, 4, to);
  if (high >= 0xe000 && low < 0x10000) {
    add_hex(builder, from, low > 0xe000 ? low : 0xe000, high < 0x10000 ? high : 0xffff, 4, to);
  }
  if (high < 0x10000) return;
  const uint32_t first = (low < 0x10000 ? 0x10000 : low) - 0x10000, last = high - 0x10000;
  uint32_t top = 0xd800 + (first >> 10), top_last = 0xd800 + (last >> 10);
  if (top == top_last) {
    add_pairs(builder, from, top, top, 0xdc00 + (first & 1023), 0xdc00 + (last & 1023), to);
    return;
  }
  if ((first & 1023) != 0) {
    add_pairs(builder, from, top, top, 0xdc00 + (first & 1023), 0xdfff, to);
    top++;
  }
  if ((last & 1023) != 1023) {
    add_pairs(builder, from, top_last, top_last, 0xdc00, 0xdc00 + (last & 1023), to);
    top_last--;
  }
  add_pairs(builder, from, top, top_last, 0xdc00, 0xdfff, to);
}

// ---- characters of a state ----

typedef struct state_speller {
  program_builder *builder;
  spelling spelling;
  uint32_t from;
  uint32_t escape, unicode;  // states after "\" and "\u"; 0: not built yet
} state_speller;

static uint32_t escape_place(state_speller *s) {
  if (s->escape == 0) {
    s->escape = program_place(s->builder);
    program_bytes(s->builder, s->from, '\\', '\\', s->escape);
  }
  return s->escape;
}

static uint32_t unicode_place(state_speller *s) {
  if (s->unicode == 0) {
    s->unicode = program_place(s->builder);
    program_bytes(s->builder, escape_place(s), 'u', 'u', s->unicode);
  }
  return s->unicode;
}

// Whether a range has every character beyond ASCII, for which there is a rule.
static bool is_above_ascii(uint32_t low, uint32_t high) {
  return low <= ASCII_LAST + 1 && high == CODE_POINT_MAX;
}

static void spell_escapes(state_speller *s, uint32_t low, uint32_t high, uint32_t to) {
  const bool any = s->spelling == SPELL_JSON_ANY;
  for (uint32_t i = 0; i < ESCAPE_COUNT; i++) {
    const uint32_t code = (uint8_t)ESCAPED[i];
    if (code < low || code > high || (code == '/' && !any)) continue;
    program_bytes(s->builder, escape_place(s), (uint8_t)ESCAPES[i], (uint8_t)ESCAPES[i], to);
  }
  if (any) {
    if (is_above_ascii(low, high)) high = ASCII_LAST;
    if (low <= high) add_unicode(s->builder, unicode_place(s), low, high, to);
    return;
  }
  // control characters without a short escape
  static const uint8_t FIRST[] = {0, 11, 14}, LAST[] = {7, 11, CONTROL_LAST};
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t first = low > FIRST[i] ? low : FIRST[i], last = high < LAST[i] ? high : LAST[i];
    if (first <= last) add_unicode(s->builder, unicode_place(s), first, last, to);
  }
  if (s->spelling == SPELL_JSON_SAFE && low <= '<' && high >= '<') {
    add_unicode(s->builder, unicode_place(s), '<', '<', to);
  }
}

static void spell_ascii(state_speller *s, uint32_t low, uint32_t high, uint32_t to) {
  if (s->spelling == SPELL_RAW) {
    program_bytes(s->builder, s->from, (uint8_t)low, (uint8_t)high, to);
    return;
  }
  static const uint8_t FIRST[] = {CONTROL_LAST + 1, '"' + 1, '\\' + 1};
  static const uint8_t LAST[] = {'"' - 1, '\\' - 1, ASCII_LAST};
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t first = low > FIRST[i] ? low : FIRST[i];
    const uint32_t last = high < LAST[i] ? high : LAST[i];
    if (s->spelling == SPELL_JSON_SAFE && first <= '<' && last >= '<') {
      if (first < '<') program_bytes(s->builder, s->from, (uint8_t)first, '<' - 1, to);
      first = '<' + 1;
    }
    if (first > last) continue;
    program_bytes(s->builder, s->from, (uint8_t)first, (uint8_t)last, to);
  }
}

// Returns the rule for a character beyond ASCII, unchanged or escaped.
static uint32_t escaped_above_ascii_rule(program_builder *builder) {
  if (builder->escaped_above_ascii_rule != 0) return builder->escaped_above_ascii_rule;
  const uint32_t rule = program_rule(builder), start = program_start(builder, rule);
  const uint32_t end = program_place(builder);
  builder->escaped_above_ascii_rule = rule;
  program_range(builder, start, ASCII_LAST + 1, CODE_POINT_MAX, end);
  add_unicode(builder, program_text(builder, start, "\\u", 2), ASCII_LAST + 1, CODE_POINT_MAX, end);
  program_end(builder, end);
  return rule;
}

static void spell_range(state_speller *s, uint32_t low, uint32_t high, uint32_t to) {
  program_builder *builder = s->builder;
  if (s->spelling != SPELL_RAW) spell_escapes(s, low, high, to);
  if (low <= ASCII_LAST) spell_ascii(s, low, high < ASCII_LAST ? high : ASCII_LAST, to);
  if (high <= ASCII_LAST) return;
  if (is_above_ascii(low, high)) {
    const uint32_t rule = s->spelling == SPELL_JSON_ANY ? escaped_above_ascii_rule(builder)
                                                        : program_above_ascii_rule(builder);
    program_call(builder, s->from, rule, to);
  } else {
    program_range(builder, s->from, low > ASCII_LAST ? low : ASCII_LAST + 1, high, to);
  }
}

uint32_t spell_json_char(program_builder *builder, spelling spelling) {
  uint32_t *rule = &builder->json_char_rule[spelling - SPELL_JSON];
  if (*rule != 0) return *rule;
  *rule = program_rule(builder);
  const uint32_t end = program_place(builder);
  state_speller s = {.builder = builder, .spelling = spelling};
  s.from = program_start(builder, *rule);
  spell_range(&s, 0, CODE_POINT_MAX, end);
  program_end(builder, end);
  return *rule;
}

// ---- states that plain characters never leave ----

static bool is_plain_range(uint32_t *next, const dfa_edge *edge) {
  if (edge->low > *next) return false;
  *next = edge->high + 1 > *next ? edge->high + 1 : *next;
  if (*next == '"' || *next == '\\') (*next)++;
  if (*next >= 0xd800 && *next < 0xe000) *next = 0xe000;
  return true;
}

// Whether every plain character leads from the state to a state that `endless` marks.
static bool is_endless(const dfa *set, uint32_t state, const bool *endless) {
  uint32_t next = CONTROL_LAST + 1;
  for (uint32_t i = set->first[state]; i < set->first[state + 1]; i++) {
    if (set->edges[i].high < next) continue;
    if (!endless[set->edges[i].to] || !is_plain_range(&next, &set->edges[i])) return false;
  }
  return next > CODE_POINT_MAX;
}

// ---- classes of characters ----

// Returns the rule for one character in the ranges: `values` contains the spelling (spell.h), then
// the first and the last character of each range. Equal classes share the rule, so states that read
// such a class need no separate states for its bytes.
static uint32_t class_rule(program_builder *builder, const uint32_t *values, uint32_t count) {
  const uint32_t found = work_intern(builder->work, &builder->classes, values, count);
  while (work_is_ok(builder->work) && builder->class_rules.count <= found) {
    if (!WORK_PUSH(builder->work, &builder->class_rules, 0)) break;
  }
  if (!work_is_ok(builder->work)) return 0;
  if (builder->class_rules.items[found] != 0) return builder->class_rules.items[found];
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  builder->class_rules.items[found] = rule;
  state_speller s = {.builder = builder, .spelling = (spelling)values[0]};
  s.from = program_start(builder, rule);
  for (uint32_t i = 1; i + 1 < count && work_is_ok(builder->work); i += 2) {
    spell_range(&s, values[i], values[i + 1], end);
  }
  program_end(builder, end);
  return rule;
}

// Whether a class needs enough states to be worth a rule.
static bool is_shared(spelling spelling, const work_u32_list *values) {
  const uint32_t low = values->items[1], high = values->items[values->count - 1];
  if (spelling == SPELL_JSON_ANY) return true;
  if (high <= ASCII_LAST || spelling == SPELL_RAW) return values->count > 2 + 2 * ASCII_RANGES_MAX;
  return values->count > 3 || (low != high && !is_above_ascii(low, high));
}

// Adds all edges of a state that lead to the same state as edge `first`.
static void spell_class(state_speller *s, const dfa *set, uint32_t first, uint32_t last,
                        work_u32_list *values, uint32_t to) {
  grammar_work *work = s->builder->work;
  values->count = 0;
  if (!WORK_PUSH(work, values, (uint32_t)s->spelling)) return;
  for (uint32_t i = first; i < last && work_step(work, 1); i++) {
    if (set->edges[i].to != set->edges[first].to) continue;
    (void)WORK_PUSH(work, values, set->edges[i].low);
    (void)WORK_PUSH(work, values, set->edges[i].high);
  }
  if (!work_is_ok(work)) return;
  if (is_shared(s->spelling, values)) {
    program_call(s->builder, s->from, class_rule(s->builder, values->items, values->count), to);
    return;
  }
  for (uint32_t i = 1; i + 1 < values->count; i += 2) {
    spell_range(s, values->items[i], values->items[i + 1], to);
  }
}

// ---- sets ----

// The arguments of a call of spell_lengths.
typedef struct set_spelling {
  const dfa *set;
  spelling spelling;
  uint32_t least, most, from, to;
} set_spelling;

// The current set: the grammar has a state for each state of the set and each number of characters
// so far, up to `last`.
typedef struct set_speller {
  program_builder *builder;
  set_spelling asked;
  bool *endless;               // [states]; NULL: no state is marked
  uint32_t *places, *spelled;  // [last + 1][states]; [states] the last walk that reached the state
  uint32_t last, walk;
  uint32_t rounds_left, count, state;  // in the current part
  bool has_changed;                    // in the current round
  work_u32_list values;
} set_speller;

// Finds the states that plain characters never leave: the largest closed set. Returns false after a
// failure, or at a pause, after which it continues.
static bool find_endless(set_speller *s) {
  const dfa *set = s->asked.set;
  // a few rounds are enough for hand-written patterns; states that are still undecided are not
  // marked
  while (s->rounds_left != 0) {
    for (; s->state < set->count; s->state++) {
      const uint32_t state = set->count - 1 - s->state;
      if (!work_advance(s->builder->work)) return false;
      if (!s->endless[state] || is_endless(set, state, s->endless)) continue;
      s->endless[state] = false;
      s->has_changed = true;
    }
    s->state = 0;
    s->rounds_left = s->has_changed ? s->rounds_left - 1 : 0;
    if (s->has_changed && s->rounds_left == 0) s->endless = NULL;
    s->has_changed = false;
  }
  return true;
}

static uint32_t place_of(set_speller *s, uint32_t count, uint32_t state) {
  uint32_t *place = &s->places[(size_t)count * s->asked.set->count + state];
  if (*place != 0) return *place;
  *place = program_place(s->builder);
  const bool is_plain = s->endless != NULL && s->endless[state] && work_is_ok(s->builder->work);
  if (is_plain) s->builder->places.items[*place].plain = GRAMMAR_PLAIN_ENDLESS;
  return *place;
}

// Adds the edges from a state after `count` characters to the states after `next` characters.
static void spell_state(set_speller *s, uint32_t state, uint32_t count, uint32_t next) {
  const dfa *set = s->asked.set;
  state_speller of = {.builder = s->builder, .spelling = s->asked.spelling};
  const uint32_t first = set->first[state], last = set->first[state + 1];
  of.from = place_of(s, count, state);
  if (of.spelling != SPELL_RAW && last == first + 1 && set->edges[first].low == 0 &&
      set->edges[first].high == CODE_POINT_MAX) {
    const uint32_t rule = spell_json_char(s->builder, of.spelling);
    program_call(s->builder, of.from, rule, place_of(s, next, set->edges[first].to));
    return;
  }
  s->walk++;
  for (uint32_t i = first; i < last && work_is_ok(s->builder->work); i++) {
    const uint32_t to = set->edges[i].to;
    if (s->spelled[to] == s->walk) continue;
    s->spelled[to] = s->walk;
    spell_class(&of, set, i, last, &s->values, place_of(s, next, to));
  }
}

static set_speller *begin_speller(program_builder *builder, const set_spelling *asked) {
  grammar_work *work = builder->work;
  const uint32_t states = asked->set->count;
  const bool is_limited = asked->most != UINT32_MAX;
  set_speller *s = work_alloc(work, 1, sizeof *s);
  if (s == NULL) return NULL;
  *s = (set_speller){.builder = builder, .asked = *asked};
  s->last = is_limited ? asked->most : asked->least;
  s->places = work_alloc(work, ((size_t)s->last + 1) * states, sizeof *s->places);
  s->spelled = work_alloc(work, states, sizeof *s->spelled);
  if (!is_limited && asked->spelling != SPELL_JSON_SAFE) {
    s->rounds_left = 16;
    s->endless = work_alloc(work, states, sizeof *s->endless);
    if (s->endless != NULL) memset(s->endless, true, states);
  }
  return work_is_ok(work) ? s : NULL;
}

// Adds one row after another. Returns false after a failure, or at a pause, after which it
// continues.
static bool run_speller(set_speller *s) {
  program_builder *builder = s->builder;
  const set_spelling *asked = &s->asked;
  const uint32_t states = asked->set->count;
  const bool is_limited = asked->most != UINT32_MAX;
  if (!find_endless(s)) return false;
  if (s->places[0] == 0) program_skip(builder, asked->from, place_of(s, 0, 0));
  for (; s->count <= s->last; s->count++, s->state = 0) {
    const uint32_t *row = s->places + (size_t)s->count * states;
    const uint32_t next = s->count < s->last ? s->count + 1 : s->count;
    for (; s->state < states; s->state++) {
      const uint32_t state = s->state;
      if (!work_advance(builder->work)) return false;
      // the states of an endless row lead to each other
      if (row[state] == 0 && (is_limited || s->count < s->last)) continue;
      const uint32_t from = place_of(s, s->count, state);
      if (s->count >= asked->least && asked->set->accepts[state]) {
        program_skip(builder, from, asked->to);
      }
      if (s->count < s->last || !is_limited) spell_state(s, state, s->count, next);
    }
  }
  return work_is_ok(builder->work);
}

bool spell_pending(program_builder *builder) {
  grammar_work *work = builder->work;
  for (; builder->spelled < builder->spellings.count; builder->spelled++) {
    if (builder->speller == NULL) {
      builder->speller = begin_speller(builder, &builder->spellings.items[builder->spelled]);
    }
    if (builder->speller == NULL || !run_speller(builder->speller)) return false;
    builder->speller = NULL;
  }
  return work_is_ok(work);
}

void spell_lengths(program_builder *builder, const dfa *set, spelling spelling, uint32_t least,
                   uint32_t most, uint32_t from, uint32_t to) {
  if (set == NULL || set->count == 0 || least > most) return;
  const uint32_t last = most != UINT32_MAX ? most : least;
  if (((uint64_t)last + 1) * set->count > SPELL_CELLS_MAX) {
    work_fail(builder->work, WICK_E_FULL, WICK_NO_OFFSET,
              "a pattern with %u states and up to %u characters takes more than %d places",
              set->count, last, SPELL_CELLS_MAX);
    return;
  }
  const set_spelling asked = {set, spelling, least, most, from, to};
  (void)WORK_PUSH(builder->work, &builder->spellings, asked);
}

void spell_set(program_builder *builder, const dfa *set, spelling spelling, uint32_t from,
               uint32_t to) {
  spell_lengths(builder, set, spelling, 0, UINT32_MAX, from, to);
}

uint32_t spell_text(program_builder *builder, spelling spelling, uint32_t from, const uint8_t *text,
                    size_t size_bytes) {
  if (spelling == SPELL_RAW) return program_text(builder, from, text, size_bytes);
  from = program_text(builder, from, "\"", 1);
  for (size_t at = 0; at < size_bytes && work_is_ok(builder->work);) {
    uint32_t code = 0;
    const int count = utf8_decode(text + at, size_bytes - at, &code);
    if (count <= 0) return from;
    const uint32_t next = program_place(builder);
    if (spelling == SPELL_JSON_ANY) {
      const uint32_t values[] = {(uint32_t)spelling, code, code};
      program_call(builder, from, class_rule(builder, values, 3), next);
    } else {
      state_speller s = {.builder = builder, .spelling = spelling, .from = from};
      spell_range(&s, code, code, next);
    }
    from = next;
    at += (size_t)count;
  }
  return program_text(builder, from, "\"", 1);
}
