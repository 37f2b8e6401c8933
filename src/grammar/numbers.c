// grammar/numbers.c — sets of numbers, written as patterns of their digits.
#include "grammar/numbers.h"

#include <string.h>

#include "grammar/regex.h"

enum { DIGITS_MAX = 60, PATTERN_BYTES = 16 << 10, REMAINDERS_MAX = 20000 };

typedef struct pattern {
  char text[PATTERN_BYTES];
  size_t size_bytes;
} pattern;

static void add_bytes(pattern *p, const char *text, size_t count) {
  if (p->size_bytes + count > PATTERN_BYTES) return;
  memcpy(p->text + p->size_bytes, text, count);
  p->size_bytes += count;
}

static void add(pattern *p, const char *text) { add_bytes(p, text, strlen(text)); }

static void add_count(pattern *p, const char *open, uint32_t count, const char *close) {
  const char digits[2] = {(char)('0' + count / 10), (char)('0' + count % 10)};
  add(p, open);
  add_bytes(p, digits, 2);
  add(p, close);
}

static const dfa *compile(grammar_work *work, const char *text) {
  return regex_compile(work, (const uint8_t *)text, strlen(text), true);
}

const dfa *numbers_all(grammar_work *work) {
  return compile(work, "-?(0|[1-9][0-9]*)(\\.[0-9]+)?");
}

const dfa *numbers_of_one_digit(grammar_work *work) { return compile(work, "-?[0-9](\\.[0-9]+)?"); }

const dfa *numbers_integers(grammar_work *work) {
  return compile(work, "-?(0|[1-9][0-9]*)(\\.0+)?");
}

const dfa *numbers_short(grammar_work *work) {
  return compile(work,
                 "-?(0|[1-9][0-9]{0,8})\\.[0-9]{0,5}[1-9]|-?0\\.[0-9]{0,14}[1-9]|"
                 "-?[1-9][0-9]{0,14}|0");
}

static const dfa *magnitudes(grammar_work *work) {
  return compile(work, "(0|[1-9][0-9]*)(\\.[0-9]+)?");
}

// ---- decimals ----

// The digits of a number: `whole` of them precede the point, and the last digit after the point is
// not zero.
typedef struct decimal {
  char digits[2 * DIGITS_MAX + 2];  // at least one digit before the point, without leading zeros
  uint32_t count, whole;
  bool is_negative, is_zero;
} decimal;

static int32_t read_exponent(document_text text, uint32_t at) {
  int32_t exponent = 0, sign = 1;
  if (at < text.size_bytes && text.bytes[at] == '-') sign = -1;
  for (; at < text.size_bytes; at++) {
    const uint8_t c = text.bytes[at];
    if (c >= '0' && c <= '9' && exponent < 100000) exponent = exponent * 10 + (c - '0');
  }
  return sign * exponent;
}

// Reads the significant digits, and the position of the point relative to the first digit; returns
// false if there are too many digits.
static bool read_digits(document_text text, decimal *d, int32_t *point) {
  bool has_point = false;
  uint32_t at = d->is_negative ? 1 : 0;
  *point = 0;
  d->count = 0;
  for (; at < text.size_bytes && (text.bytes[at] | 32) != 'e'; at++) {
    const uint8_t c = text.bytes[at];
    if (c == '.') {
      has_point = true;
      continue;
    }
    const bool counts = c != '0' || d->count != 0;
    if (counts && d->count >= DIGITS_MAX) return false;
    if (counts) d->digits[d->count++] = (char)c;
    if (counts && !has_point) (*point)++;
    if (!counts && has_point) (*point)--;
  }
  *point += read_exponent(text, at + 1);
  while (d->count > 0 && d->digits[d->count - 1] == '0') d->count--;
  return true;
}

// Reads a decimal. Returns false if there are too many digits.
static bool read_plain(document_text text, decimal *d) {
  char digits[2 * DIGITS_MAX + 2];
  int32_t point;
  d->is_negative = text.size_bytes != 0 && text.bytes[0] == '-';
  const bool fits = read_digits(text, d, &point);
  d->is_zero = d->count == 0;
  if (d->is_zero) point = 1;
  if (!fits || point > DIGITS_MAX || point < -DIGITS_MAX + (int32_t)d->count) return false;
  memcpy(digits, d->digits, d->count);
  const uint32_t before = point <= 0 ? (uint32_t)(1 - point) : 0;
  const uint32_t counted = d->count;
  memset(d->digits, '0', sizeof d->digits);
  memcpy(d->digits + before, digits, counted);
  d->whole = point <= 0 ? 1 : (uint32_t)point;
  d->count = before + counted > d->whole ? before + counted : d->whole;
  return true;
}

static bool read_decimal(grammar_work *work, document_text text, decimal *d) {
  if (read_plain(text, d)) return true;
  return work_fail(work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "the number %.*s has too many digits",
                   (int)text.size_bytes % 100, (const char *)text.bytes);
}

bool numbers_is_largest(document_text value) {
  static const char LARGEST[] = "17976931348623157";  // with 309 digits before the point
  decimal d = {.is_negative = value.size_bytes != 0 && value.bytes[0] == '-'};
  int32_t point;
  if (!read_digits(value, &d, &point)) return false;
  return point > 309 || (point == 309 && memcmp(d.digits, LARGEST, sizeof LARGEST - 1) >= 0);
}

uint32_t numbers_count(document_text value) {
  decimal d = {.is_negative = value.size_bytes != 0 && value.bytes[0] == '-'};
  int32_t point;
  uint64_t count = 0;
  if (!read_digits(value, &d, &point)) return UINT32_MAX;
  if (d.count != 0 && (d.is_negative || point < (int32_t)d.count)) return UINT32_MAX;
  for (int32_t i = 0; d.count != 0 && i < point && count < NUMBERS_COUNT_MAX; i++) {
    count = count * 10 + (i < (int32_t)d.count ? (uint64_t)(d.digits[i] - '0') : 0);
  }
  return count < NUMBERS_COUNT_MAX ? (uint32_t)count : NUMBERS_COUNT_MAX;
}

// ---- comparisons of magnitudes ----

static const char FRACTION[] = "(\\.[0-9]+)?";

static const dfa *equal_to(grammar_work *work, const decimal *d) {
  pattern *p = work_alloc(work, 1, sizeof *p);
  if (p == NULL) return NULL;
  add_bytes(p, d->digits, d->whole);
  if (d->count > d->whole) {
    add(p, "\\.");
    add_bytes(p, d->digits + d->whole, d->count - d->whole);
    add(p, "0*");
  } else {
    add(p, "(\\.0+)?");
  }
  return regex_compile(work, (const uint8_t *)p->text, p->size_bytes, true);
}

static void add_above(pattern *p, char digit) {
  const char set[6] = {'[', (char)(digit + 1), '-', '9', ']', 0};
  add(p, set);
}

static const dfa *above(grammar_work *work, const decimal *d) {
  pattern *p = work_alloc(work, 1, sizeof *p);
  if (p == NULL) return NULL;
  add_count(p, "[1-9][0-9]{", d->whole, ",}");  // one more digit before the point
  add(p, FRACTION);
  for (uint32_t i = 0; i < d->count; i++) {
    if (d->digits[i] == '9') continue;
    add(p, "|");
    add_bytes(p, d->digits, i < d->whole ? i : d->whole);
    if (i >= d->whole) {
      add(p, "\\.");
      add_bytes(p, d->digits + d->whole, i - d->whole);
    }
    add_above(p, d->digits[i]);
    if (i < d->whole) {
      add_count(p, "[0-9]{", d->whole - i - 1, "}");
      add(p, FRACTION);
    } else {
      add(p, "[0-9]*");
    }
  }
  add(p, "|");
  add_bytes(p, d->digits, d->whole);
  add(p, "\\.");
  add_bytes(p, d->digits + d->whole, d->count - d->whole);
  add(p, "[0-9]*[1-9][0-9]*");
  return regex_compile(work, (const uint8_t *)p->text, p->size_bytes, true);
}

// ---- signs ----

// Returns the numbers whose magnitude is in `plus`, or in `minus` after a minus sign.
static const dfa *with_signs(grammar_work *work, const dfa *plus, const dfa *minus) {
  if (plus == NULL || minus == NULL) return NULL;
  nfa nfa;
  nfa_begin(&nfa, work);
  const uint32_t start = nfa_state(&nfa), end = nfa_state(&nfa), after = nfa_state(&nfa);
  nfa_range(&nfa, start, '-', '-', after);
  nfa_copy(&nfa, plus, start, end);
  nfa_copy(&nfa, minus, after, end);
  return dfa_of_nfa(&nfa, start, end);
}

const dfa *numbers_equal(grammar_work *work, document_text value) {
  decimal d;
  if (!read_decimal(work, value, &d)) return NULL;
  const dfa *same = equal_to(work, &d), *none = dfa_none(work);
  const bool minus = d.is_negative || d.is_zero, plus = !d.is_negative || d.is_zero;
  return with_signs(work, plus ? same : none, minus ? same : none);
}

// Returns the numbers within a bound. An upper bound is a lower bound with reversed signs.
const dfa *numbers_bounded(grammar_work *work, document_text bound, number_bound kind) {
  decimal d;
  if (!read_decimal(work, bound, &d)) return NULL;
  const bool is_upper = kind == NUMBER_AT_MOST || kind == NUMBER_BELOW;
  const bool takes_equal = kind == NUMBER_AT_LEAST || kind == NUMBER_AT_MOST;
  const bool is_negative = !d.is_zero && d.is_negative != is_upper;
  const dfa *equal = equal_to(work, &d), *more = above(work, &d), *all = magnitudes(work);
  const dfa *at_least = dfa_combine(work, more, equal, DFA_OR), *none = dfa_none(work);
  const dfa *plus, *minus;
  if (is_negative) {
    plus = all;
    minus = dfa_combine(work, all, takes_equal ? more : at_least, DFA_WITHOUT);
  } else {
    plus = takes_equal ? at_least : more;
    minus = takes_equal && d.is_zero ? equal : none;
  }
  return is_upper ? with_signs(work, minus, plus) : with_signs(work, plus, minus);
}

// ---- multiples ----

typedef struct divider {
  nfa nfa;
  uint32_t divisor, places;  // the divisor is divisor / 10^places
  uint32_t first, end;
} divider;

// Returns the state for a remainder and the number of digits read after the point (0: none yet).
static uint32_t divider_state(const divider *d, uint32_t remainder, uint32_t digits) {
  return d->first + remainder * (d->places + 2) + digits;
}

static void add_remainder(divider *d, uint32_t remainder) {
  nfa *nfa = &d->nfa;
  uint32_t rest = remainder;
  for (uint32_t digits = d->places + 1;; digits--) {
    // digits - 1 have been read after the point; missing digits are zeros
    const uint32_t from = divider_state(d, remainder, digits);
    if (rest == 0) nfa_skip(nfa, from, NFA_SKIP, d->end);
    if (digits == d->places + 1) {
      nfa_range(nfa, from, '0', '0', from);
    } else {
      for (uint32_t digit = 0; digit < 10; digit++) {
        const uint32_t next = (uint32_t)(((uint64_t)remainder * 10 + digit) % d->divisor);
        nfa_range(nfa, from, '0' + digit, '0' + digit,
                  divider_state(d, next, digits == 0 ? 0 : digits + 1));
      }
    }
    if (digits == 0) break;
    if (digits == 1) nfa_range(nfa, divider_state(d, remainder, 0), '.', '.', from);
    if (digits > 1) rest = (uint32_t)((uint64_t)rest * 10 % d->divisor);
  }
}

const dfa *numbers_multiple(grammar_work *work, document_text divisor) {
  decimal value;
  divider d = {0};
  if (!read_decimal(work, divisor, &value)) return NULL;
  uint64_t whole = 0;
  for (uint32_t i = 0; i < value.count && whole <= REMAINDERS_MAX; i++) {
    whole = whole * 10 + (uint64_t)(value.digits[i] - '0');
  }
  d.places = value.count - value.whole;
  if (value.is_negative || value.is_zero || whole * (d.places + 2) > REMAINDERS_MAX) {
    work_fail(work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "multipleOf %.*s",
              (int)(divisor.size_bytes % 100), (const char *)divisor.bytes);
    return NULL;
  }
  d.divisor = (uint32_t)whole;
  nfa_begin(&d.nfa, work);
  const uint32_t start = nfa_state(&d.nfa);
  d.end = nfa_state(&d.nfa);
  d.first = d.nfa.first.count;
  for (uint32_t i = 0; i < d.divisor * (d.places + 2); i++) nfa_state(&d.nfa);
  for (uint32_t i = 0; i < d.divisor && work_is_ok(work); i++) add_remainder(&d, i);
  nfa_skip(&d.nfa, start, NFA_SKIP, divider_state(&d, 0, 0));
  nfa_range(&d.nfa, start, '-', '-', divider_state(&d, 0, 0));
  return dfa_combine(work, dfa_of_nfa(&d.nfa, start, d.end), numbers_all(work), DFA_AND);
}
