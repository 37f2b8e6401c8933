// grammar/program.c — builds programs: states, edges, characters as UTF-8, repetitions.
#include "grammar/program.h"

#include "base/text.h"

enum { BLOCK_TIMES = 256 };

// State and edge 0 mean none. New states are copies of state 0.
static const grammar_place NO_PLACE = {0};
static const grammar_edge NO_EDGE = {0};

bool program_begin(program_builder *builder, grammar_work *work) {
  *builder = (program_builder){.work = work};
  return WORK_PUSH(work, &builder->places, NO_PLACE) && WORK_PUSH(work, &builder->edges, NO_EDGE) &&
         WORK_PUSH(work, &builder->rules, 0);
}

void program_restore(const program_builder *now, program_builder *kept) {
  for (uint32_t place = 0; place < kept->places.count; place++) {
    uint32_t *edge = &kept->places.items[place].edges;
    while (*edge >= kept->edges.count) *edge = now->edges.items[*edge].next;
  }
  work_sets *classes = &kept->classes;
  for (uint32_t slot = 0; slot < classes->slot_count; slot++) {
    if (classes->slots[slot] > classes->set_count) classes->slots[slot] = 0;
  }
}

uint32_t program_place(program_builder *builder) {
  if (builder->places.count >= GRAMMAR_PLACES_MAX) {
    work_fail(builder->work, WICK_E_FULL, WICK_NO_OFFSET, "the grammar has more than %d states",
              GRAMMAR_PLACES_MAX);
    return 0;
  }
  if (!work_step(builder->work, 1)) return 0;
  return WORK_PUSH(builder->work, &builder->places, NO_PLACE) ? builder->places.count - 1 : 0;
}

uint32_t program_rule(program_builder *builder) {
  const uint32_t start = program_place(builder);
  return WORK_PUSH(builder->work, &builder->rules, start) ? builder->rules.count - 1 : 0;
}

static void add_edge(program_builder *builder, uint32_t from, grammar_edge edge) {
  if (!work_step(builder->work, 1)) return;
  edge.next = builder->places.items[from].edges;
  if (!WORK_PUSH(builder->work, &builder->edges, edge)) return;
  builder->places.items[from].edges = builder->edges.count - 1;
}

void program_bytes(program_builder *builder, uint32_t from, uint8_t low, uint8_t high,
                   uint32_t to) {
  add_edge(builder, from, (grammar_edge){.to = to, .kind = EDGE_BYTES, .low = low, .high = high});
}

void program_skip(program_builder *builder, uint32_t from, uint32_t to) {
  add_edge(builder, from, (grammar_edge){.to = to, .kind = EDGE_SKIP});
}

void program_call(program_builder *builder, uint32_t from, uint32_t rule, uint32_t to) {
  add_edge(builder, from, (grammar_edge){.to = to, .value = rule, .kind = EDGE_CALL});
}

void program_end(program_builder *builder, uint32_t from) {
  add_edge(builder, from, (grammar_edge){.kind = EDGE_END});
}

uint32_t program_member_place(program_builder *builder, bool is_required) {
  const uint32_t place = program_place(builder);
  add_edge(builder, place, (grammar_edge){.to = place, .kind = EDGE_SEEN, .low = is_required});
  return place;
}

void program_member(program_builder *builder, uint32_t from, uint32_t rule, uint32_t member,
                    uint32_t to) {
  const uint32_t after = program_place(builder);
  add_edge(builder, from, (grammar_edge){.to = after, .value = rule, .kind = EDGE_MEMBER});
  add_edge(builder, after, (grammar_edge){.to = to, .value = member, .kind = EDGE_ADD});
}

void program_members(program_builder *builder, uint32_t from, uint32_t required, uint32_t to) {
  add_edge(builder, from, (grammar_edge){.to = to, .value = required, .kind = EDGE_MEMBERS});
}

void program_token(program_builder *builder, uint32_t from, uint32_t token, bool is_not,
                   uint32_t to) {
  builder->has_tokens = true;
  const uint8_t kind = is_not ? EDGE_NOT_TOKEN : EDGE_TOKEN;
  add_edge(builder, from, (grammar_edge){.to = to, .value = token, .kind = kind});
}

uint32_t program_text(program_builder *builder, uint32_t from, const void *bytes, size_t count) {
  for (size_t i = 0; i < count && work_is_ok(builder->work); i++) {
    const uint8_t byte = ((const uint8_t *)bytes)[i];
    const uint32_t next = program_place(builder);
    program_bytes(builder, from, byte, byte, next);
    from = next;
  }
  return from;
}

// ---- characters ----

// Adds the byte sequences from `low` to `high`, which have the same length and differ starting at
// index `at`.
static void add_sequences(program_builder *builder, uint32_t from, const uint8_t *low,
                          const uint8_t *high, size_t count, uint32_t to) {
  if (count == 1) {
    program_bytes(builder, from, low[0], high[0], to);
    return;
  }
  static const uint8_t LEAST[3] = {0x80, 0x80, 0x80}, MOST[3] = {0xbf, 0xbf, 0xbf};
  uint8_t first = low[0], last = high[0];
  bool low_is_least = true, high_is_most = true;
  for (size_t i = 1; i < count; i++) {
    low_is_least = low_is_least && low[i] == 0x80;
    high_is_most = high_is_most && high[i] == 0xbf;
  }
  if (first == last) {
    const uint32_t next = program_place(builder);
    program_bytes(builder, from, first, first, next);
    add_sequences(builder, next, low + 1, high + 1, count - 1, to);
    return;
  }
  if (!low_is_least) {
    const uint32_t next = program_place(builder);
    program_bytes(builder, from, first, first, next);
    add_sequences(builder, next, low + 1, MOST, count - 1, to);
    first++;
  }
  if (!high_is_most) {
    const uint32_t next = program_place(builder);
    program_bytes(builder, from, last, last, next);
    add_sequences(builder, next, LEAST, high + 1, count - 1, to);
    last--;
  }
  if (first > last) return;
  const uint32_t next = program_place(builder);
  program_bytes(builder, from, first, last, next);
  add_sequences(builder, next, LEAST, MOST, count - 1, to);
}

void program_range(program_builder *builder, uint32_t from, uint32_t low, uint32_t high,
                   uint32_t to) {
  static const uint32_t STARTS[] = {0, 0x80, 0x800, 0xe000, 0x10000, 0x110000};
  static const uint32_t ENDS[] = {0x7f, 0x7ff, 0xd7ff, 0xffff, 0x10ffff};
  for (size_t i = 0; i < 5; i++) {
    const uint32_t first = low > STARTS[i] ? low : STARTS[i];
    const uint32_t last = high < ENDS[i] ? high : ENDS[i];
    if (first > last) continue;
    uint8_t first_bytes[4], last_bytes[4];
    const size_t count = utf8_encode(first, first_bytes);
    utf8_encode(last, last_bytes);
    add_sequences(builder, from, first_bytes, last_bytes, count, to);
  }
}

static uint32_t make_range_rule(program_builder *builder, uint32_t low) {
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  program_range(builder, program_start(builder, rule), low, 0x10ffff, end);
  program_end(builder, end);
  return rule;
}

uint32_t program_above_ascii_rule(program_builder *builder) {
  if (builder->above_ascii_rule == 0) builder->above_ascii_rule = make_range_rule(builder, 0x80);
  return builder->above_ascii_rule;
}

// ---- repetition ----

static void set_plain(program_builder *builder, uint32_t place, bool is_plain, uint32_t times) {
  if (!is_plain) return;
  const uint8_t most = GRAMMAR_PLAIN_ENDLESS - 1;
  builder->places.items[place].plain = times == UINT32_MAX ? GRAMMAR_PLAIN_ENDLESS
                                       : times < most      ? (uint8_t)times
                                                           : most;
}

// Adds `least` to `most` repetitions of a rule without a separator, for small numbers.
static void repeat_few(program_builder *builder, uint32_t from, uint32_t rule, uint32_t least,
                       uint32_t most, bool is_plain, uint32_t to) {
  for (uint32_t i = 0; i < most && work_is_ok(builder->work); i++) {
    set_plain(builder, from, is_plain, most - i);
    if (i >= least) program_skip(builder, from, to);
    const uint32_t next = program_place(builder);
    program_call(builder, from, rule, next);
    from = next;
  }
  program_skip(builder, from, to);
}

static uint32_t make_block(program_builder *builder, uint32_t rule, uint32_t least, uint32_t most,
                           bool is_plain) {
  const uint32_t block = program_rule(builder), end = program_place(builder);
  repeat_few(builder, program_start(builder, block), rule, least, most, is_plain, end);
  program_end(builder, end);
  return block;
}

static void repeat_many(program_builder *builder, uint32_t from, uint32_t rule, uint32_t least,
                        uint32_t most, bool is_plain, uint32_t to) {
  const uint32_t block = make_block(builder, rule, BLOCK_TIMES, BLOCK_TIMES, is_plain);
  for (; least >= BLOCK_TIMES && work_is_ok(builder->work); least -= BLOCK_TIMES) {
    const uint32_t next = program_place(builder);
    program_call(builder, from, block, next);
    from = next;
    if (most != UINT32_MAX) most -= BLOCK_TIMES;
  }
  const uint32_t middle = program_place(builder);
  repeat_few(builder, from, rule, least, least, is_plain, middle);
  if (most == UINT32_MAX) {
    program_repeat(builder, middle, rule, 0, 0, most, is_plain, to);
    return;
  }
  most -= least;
  const uint32_t part = make_block(builder, rule, 0, BLOCK_TIMES - 1, is_plain);
  for (from = middle; most >= BLOCK_TIMES && work_is_ok(builder->work); most -= BLOCK_TIMES) {
    const uint32_t next = program_place(builder);
    program_call(builder, from, part, to);
    program_call(builder, from, block, next);
    from = next;
  }
  repeat_few(builder, from, rule, 0, most, is_plain, to);
}

// Returns the rule "separator, then rule".
static uint32_t make_unit(program_builder *builder, uint32_t rule, uint32_t separator) {
  const uint32_t unit = program_rule(builder), middle = program_place(builder);
  const uint32_t end = program_place(builder);
  program_call(builder, program_start(builder, unit), separator, middle);
  program_call(builder, middle, rule, end);
  program_end(builder, end);
  return unit;
}

void program_repeat(program_builder *builder, uint32_t from, uint32_t rule, uint32_t separator,
                    uint32_t least, uint32_t most, bool is_plain, uint32_t to) {
  if (least == 0 && (most == 0 || separator != 0)) program_skip(builder, from, to);
  if (most == 0) return;
  if (separator != 0) {
    const uint32_t after = program_place(builder);
    program_call(builder, from, rule, after);
    from = after;
    rule = make_unit(builder, rule, separator);
    least = least == 0 ? 0 : least - 1;
    if (most != UINT32_MAX) most--;
  }
  if (least > 2 * BLOCK_TIMES || (most != UINT32_MAX && most > 2 * BLOCK_TIMES)) {
    repeat_many(builder, from, rule, least, most, is_plain, to);
    return;
  }
  if (most != UINT32_MAX) {
    repeat_few(builder, from, rule, least, most, is_plain, to);
    return;
  }
  for (uint32_t i = 0; i < least && work_is_ok(builder->work); i++) {
    set_plain(builder, from, is_plain, most);
    const uint32_t next = program_place(builder);
    program_call(builder, from, rule, next);
    from = next;
  }
  const uint32_t loop = program_place(builder);  // other edges may lead to `from`
  program_skip(builder, from, loop);
  set_plain(builder, loop, is_plain, most);
  program_call(builder, loop, rule, loop);
  program_skip(builder, loop, to);
}
