// grammar/exponents.c — an automaton for numbers of the form MANTISSA e EXPONENT: it reads the
// mantissa like the digits of the value, with the point at the position to which the exponent moves
// it.
#include "grammar/exponents.h"

#include "grammar/work.h"

// RIGHT_MAX: the number of digits by which the point may move to the right; LEFT_MAX: to the left.
// FAR: more than LEFT_MAX.
enum { RIGHT_MAX = 22, LEFT_MAX = 12, FAR = LEFT_MAX + 1, BEYOND = RIGHT_MAX + 1, NONE = -1 };
enum { ZEROS_BEYOND = 330 };  // a set that accepts this many more zeros is treated as unbounded
// The largest exponents with which doubles can represent a number: for a mantissa with one digit
// before the point, and for a mantissa with up to 209. NO_LIMIT: for a mantissa of 0, and for
// exponents below 0.
enum { EXPONENT_MAX = 307, EXPONENT_LONG_MAX = 99, NO_LIMIT = 0 };

// The last part of the mantissa that was read. The number stored with it is, for RIGHT, the number
// of digits after the point that the exponent moves before it; for PLAIN, the number of digits; for
// LEFT, the number of digits before the point that the exponent moves after it; for WHOLE, whether
// there are several digits.
typedef enum mantissa_part {
  START,       // a sign or nothing
  WHOLE,       // digits before the point
  ZERO,        // the only digit before the point, 0
  ZERO_RIGHT,  // zeros after the point
  RIGHT,       // digits after the point
  RIGHT_LONG,  // digits after the point, with several digits before it
  PLAIN,       // digits after the point, which are after the value's point
  LEFT,        // digits before the point, which are after the value's point
  LEFT_ALONE,  // like LEFT, without further digits
  LEFT_POINT,  // the point
  LEFT_AFTER,  // digits after the point
  PART_COUNT
} mantissa_part;

typedef struct exponents {
  program_builder *builder;
  const dfa *set;
  uint32_t end;
  int64_t sign;         // the state after "-"; NONE: there is none
  uint32_t *places;     // [PART_COUNT][BEYOND][states]; 0: not reached
  work_u32_list queue;  // indices of states
} exponents;

static int64_t step(const dfa *set, int64_t state, uint8_t byte) {
  if (state == NONE) return NONE;
  for (uint32_t i = set->first[state]; i < set->first[state + 1]; i++) {
    if (set->edges[i].low <= byte && byte <= set->edges[i].high) return set->edges[i].to;
  }
  return NONE;
}

static bool accepts(const dfa *set, int64_t state) { return state != NONE && set->accepts[state]; }

// Returns a state, or 0 if nothing can follow.
static uint32_t place_of(exponents *e, mantissa_part part, uint32_t number, int64_t state) {
  if (state == NONE || number > RIGHT_MAX) return 0;
  const uint32_t index = ((uint32_t)part * BEYOND + number) * e->set->count + (uint32_t)state;
  if (e->places[index] == 0) {
    e->places[index] = program_place(e->builder);
    (void)WORK_PUSH(e->builder->work, &e->queue, index);
  }
  return e->places[index];
}

static void add(exponents *e, uint32_t from, uint8_t byte, uint32_t to) {
  if (to != 0) program_bytes(e->builder, from, byte, byte, to);
}

// ---- exponents ----

// Adds the digits of a number of at most two digits.
static void add_number(exponents *e, uint32_t from, uint32_t number) {
  if (number >= 10) {
    const uint32_t next = program_place(e->builder);
    add(e, from, (uint8_t)('0' + number / 10), next);
    from = next;
  }
  add(e, from, (uint8_t)('0' + number % 10), e->end);
}

// Adds numbers above `least`, which has two digits, up to a limit.
static void add_above(exponents *e, uint32_t from, uint32_t least, uint32_t limit) {
  program_builder *builder = e->builder;
  const uint32_t tens = program_place(builder), second = program_place(builder);
  const uint8_t ten = (uint8_t)('0' + least / 10), one = (uint8_t)('0' + least % 10);
  program_bytes(builder, from, (uint8_t)(ten + 1), '9', second);
  add(e, from, ten, tens);
  if (one < '9') program_bytes(builder, tens, (uint8_t)(one + 1), '9', e->end);
  program_bytes(builder, second, '0', '9', e->end);
  if (limit == EXPONENT_LONG_MAX) return;
  const uint32_t third = program_place(builder), more = program_place(builder);
  program_bytes(builder, from, '1', limit == NO_LIMIT ? '9' : '2', third);
  program_bytes(builder, third, '0', '9', more);
  program_bytes(builder, more, '0', '9', e->end);
  if (limit == NO_LIMIT) {
    program_bytes(builder, more, '0', '9', more);
  } else {
    program_bytes(builder, program_text(builder, from, "30", 2), '0', '7', e->end);
  }
}

// Adds 'e', the sign and zeros.
static uint32_t put_mark(exponents *e, uint32_t from, bool is_negative, bool takes_any_sign) {
  program_builder *builder = e->builder;
  const uint32_t mark = program_place(builder), digits = program_place(builder);
  add(e, from, 'e', mark);
  add(e, from, 'E', mark);
  if (is_negative || takes_any_sign) add(e, mark, '-', digits);
  if (!is_negative) add(e, mark, '+', digits);
  if (!is_negative) program_skip(builder, mark, digits);
  program_bytes(builder, digits, '0', '0', digits);
  return digits;
}

// Adds any exponent, or only those below 0 with `is_negative`.
static void put_any(exponents *e, uint32_t from, bool is_negative) {
  const uint32_t digits = put_mark(e, from, is_negative, true);
  program_bytes(e->builder, digits, '0', '9', digits);
  program_bytes(e->builder, digits, '0', '9', e->end);
}

static void put_left(exponents *e, uint32_t from, uint32_t number) {
  const uint32_t digits = put_mark(e, from, true, false);
  if (number == FAR) {
    add_above(e, digits, LEFT_MAX, NO_LIMIT);
  } else {
    add_number(e, digits, number);
  }
}

// Adds exponents of 0 or more by bits; BEYOND is for all larger ones, up to a limit.
static void put_right(exponents *e, uint32_t from, uint32_t bits, uint32_t limit) {
  if (bits == 0) return;
  const uint32_t digits = put_mark(e, from, false, false);
  for (uint32_t i = 0; i <= RIGHT_MAX; i++) {
    if ((bits >> i & 1) != 0) add_number(e, digits, i);
  }
  if ((bits >> BEYOND & 1) != 0) add_above(e, digits, RIGHT_MAX, limit);
  if ((bits & 1) != 0) put_left(e, from, 0);
}

// Adds the exponents for which the digits so far, followed by zeros, are in the set.
static uint32_t right_bits(const exponents *e, int64_t state, uint32_t least) {
  uint32_t bits = 0;
  bool is_always = true;
  for (uint32_t i = least; i <= RIGHT_MAX; i++, state = step(e->set, state, '0')) {
    if (accepts(e->set, state)) bits |= 1u << i;
  }
  for (uint32_t i = 0; i < ZEROS_BEYOND && is_always; i++, state = step(e->set, state, '0')) {
    is_always = accepts(e->set, state);
  }
  return is_always ? bits | 1u << BEYOND : bits;
}

// ---- the mantissa ----

// Adds the first digit before the point if all of them are after the value's point.
static void add_left(exponents *e, uint32_t from, int64_t state, uint8_t digit) {
  int64_t at = step(e->set, step(e->set, state, '0'), '.');
  for (uint32_t zeros = 0; zeros < LEFT_MAX; zeros++, at = step(e->set, at, '0')) {
    add(e, from, digit,
        place_of(e, digit == '0' ? LEFT_ALONE : LEFT, zeros + 1, step(e->set, at, digit)));
  }
  if (at != NONE && step(e->set, at, '0') == at) {
    add(e, from, digit, place_of(e, LEFT_ALONE, FAR, step(e->set, at, digit)));
  }
}

static void spell_start(exponents *e, uint32_t from, int64_t state) {
  if (state == 0) add(e, from, '-', place_of(e, START, 0, e->sign));
  for (uint32_t i = 0; i < 10; i++) {
    const uint8_t digit = (uint8_t)('0' + i);
    const int64_t next = step(e->set, state, digit);
    add(e, from, digit, digit == '0' ? place_of(e, ZERO, 0, state) : place_of(e, WHOLE, 0, next));
    add_left(e, from, state, digit);
  }
}

static void spell_whole(exponents *e, uint32_t from, bool is_long, int64_t state) {
  const int64_t after = step(e->set, state, '.');
  for (uint32_t i = 0; i < 10; i++) {
    const uint8_t digit = (uint8_t)('0' + i);
    add(e, from, digit, place_of(e, WHOLE, 1, step(e->set, state, digit)));
    add(e, from, digit, place_of(e, LEFT, 1, step(e->set, after, digit)));
  }
  add(e, from, '.', place_of(e, is_long ? RIGHT_LONG : RIGHT, 0, state));
  put_right(e, from, right_bits(e, state, 0), is_long ? EXPONENT_LONG_MAX : EXPONENT_MAX);
}

static void spell_right(exponents *e, uint32_t from, mantissa_part part, uint32_t count,
                        int64_t state) {
  const bool is_zero = part == ZERO_RIGHT;
  const int64_t zero = step(e->set, state, '0');
  const int64_t after = step(e->set, is_zero ? zero : state, '.');
  for (uint32_t i = 0; i < 10; i++) {
    const uint8_t digit = (uint8_t)('0' + i);
    add(e, from, digit, place_of(e, PLAIN, count, step(e->set, after, digit)));
    if (is_zero && digit == '0') {
      add(e, from, digit, place_of(e, ZERO_RIGHT, count + 1, state));
    } else {
      const mantissa_part next = is_zero ? RIGHT : part;
      add(e, from, digit, place_of(e, next, count + 1, step(e->set, state, digit)));
    }
  }
  if (is_zero && count > 0 && accepts(e->set, zero)) put_any(e, from, false);
  if (is_zero || count == 0) return;
  put_right(e, from, right_bits(e, state, count), part == RIGHT ? EXPONENT_MAX : EXPONENT_LONG_MAX);
}

static void spell_digits(exponents *e, uint32_t from, mantissa_part to, uint32_t number,
                         int64_t state) {
  for (uint32_t i = 0; i < 10; i++) {
    const uint8_t digit = (uint8_t)('0' + i);
    add(e, from, digit, place_of(e, to, number, step(e->set, state, digit)));
  }
}

static void spell_left(exponents *e, uint32_t from, mantissa_part part, uint32_t number,
                       int64_t state) {
  if (part == LEFT && number < LEFT_MAX) spell_digits(e, from, LEFT, number + 1, state);
  if (part >= LEFT_POINT) spell_digits(e, from, LEFT_AFTER, number, state);
  if (part <= LEFT_ALONE) add(e, from, '.', place_of(e, LEFT_POINT, number, state));
  if (part != LEFT_POINT && accepts(e->set, state)) put_left(e, from, number);
}

static void spell_place(exponents *e, uint32_t index) {
  const uint32_t from = e->places[index], number = index / e->set->count % BEYOND;
  const int64_t state = index % e->set->count;
  const mantissa_part part = (mantissa_part)(index / e->set->count / BEYOND);
  switch (part) {
    case START:
      spell_start(e, from, state);
      break;
    case WHOLE:
      spell_whole(e, from, number != 0, state);
      break;
    case ZERO:
      add(e, from, '.', place_of(e, ZERO_RIGHT, 0, state));
      if (accepts(e->set, step(e->set, state, '0'))) put_any(e, from, false);
      break;
    case ZERO_RIGHT:
    case RIGHT:
    case RIGHT_LONG:
      spell_right(e, from, part, number, state);
      break;
    case PLAIN:
      spell_digits(e, from, PLAIN, number, state);
      if (accepts(e->set, state)) put_right(e, from, 1u << number, EXPONENT_MAX);
      break;
    default:
      spell_left(e, from, part, number, state);
      break;
  }
}

void exponents_add_any(program_builder *builder, uint32_t from, bool is_long, uint32_t to) {
  exponents e = {.builder = builder, .end = to};
  put_any(&e, from, true);
  const uint32_t digits = put_mark(&e, from, false, false);
  program_bytes(builder, digits, '0', '9', to);
  add_above(&e, digits, 9, is_long ? EXPONENT_LONG_MAX : EXPONENT_MAX);
}

void exponents_add(program_builder *builder, const dfa *set, uint32_t from, uint32_t to) {
  grammar_work *work = builder->work;
  if (set == NULL || set->count == 0 || set->count > EXPONENTS_STATES_MAX) return;
  exponents e = {.builder = builder, .set = set, .end = to};
  e.sign = step(set, 0, '-');
  e.places = work_alloc(work, (size_t)PART_COUNT * BEYOND * set->count, sizeof *e.places);
  if (e.places == NULL) return;
  program_skip(builder, from, place_of(&e, START, 0, 0));
  for (uint32_t i = 0; i < e.queue.count && work_step(work, 16); i++) {
    spell_place(&e, e.queue.items[i]);
  }
}
