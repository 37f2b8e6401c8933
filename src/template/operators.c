// template/operators.c — operators with Python's meaning. Integers have 64 bits; a result that
// needs more bits is an error.
#include <string.h>

#include "base/math.h"
#include "template/run.h"

// ---- arithmetic ----

jinja_value jinja_big(jinja_run *run, const char *digits, size_t size_bytes) {
  const jinja_string *copy = jinja_string_copy(run->arena, digits, size_bytes, JINJA_MARK_CONTENT);
  if (copy == NULL) return jinja_fail_memory(run);
  return (jinja_value){.kind = JINJA_BIG, .string = copy};
}

jinja_value jinja_negate(jinja_run *run, jinja_value big) {
  char digits[64] = "-";
  const jinja_string *text = big.string;
  if (text->bytes[0] == '-') return jinja_big(run, text->bytes + 1, text->size_bytes - 1);
  memcpy(digits + 1, text->bytes, text->size_bytes);
  return jinja_big(run, digits, text->size_bytes + 1);
}

static bool multiply(int64_t a, int64_t b, int64_t *out) {
  // uses magnitudes, because a product of two 64-bit numbers is a library call on some hosts
  const uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
  const uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  if (x != 0 && y > (uint64_t)INT64_MAX / x) return false;
  const int64_t product = (int64_t)(x * y);
  *out = (a < 0) != (b < 0) ? -product : product;
  return true;
}

static int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static bool power(int64_t base, int64_t exponent, int64_t *out) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; i++) {
    if (base == 0 || base == 1) {
      result = base;
      break;
    }
    if (base == -1) {
      result = exponent % 2 == 0 ? 1 : -1;
      break;
    }
    if (!multiply(result, base, &result)) return false;
  }
  *out = result;
  return true;
}

// Computes an integer power by squaring.
static double whole_power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

static jinja_value real_power(jinja_run *run, double base, double exponent) {
  const double magnitude = exponent < 0 ? -exponent : exponent;
  if (exponent < 0 && base == 0) return jinja_fail(run, WICK_E_FORMAT, "a division by zero");
  if (magnitude < 1e9 && (double)(uint64_t)magnitude == magnitude) {
    const double power = whole_power(base, (uint64_t)magnitude);
    return jinja_float(exponent < 0 ? 1 / power : power);
  }
  if (base < 0) return jinja_fail(run, WICK_E_FORMAT, "a power that is not a real number");
  if (base == 0) return jinja_float(0);
  return jinja_float(math_pow(base, exponent));
}

static double floor_of(double value) {
  if (!(value > -9e15 && value < 9e15) || value == 0) return value;  // 0 keeps its sign
  const double whole = (double)(int64_t)value;
  return whole > value ? whole - 1 : whole;
}

// Computes the exact remainder of a division of magnitudes: the operands of each subtraction are
// within a factor of 2.
static double rest_of(double a, double b) {
  double step = b;
  if (a - a != 0) return a - a;           // infinity has no remainder
  if (b - b != 0) return b == b ? a : b;  // the remainder by infinity is the number itself
  while (step <= a / 2) step *= 2;
  for (; step >= b; step /= 2) {
    if (a >= step) a -= step;
  }
  return a;
}

// Implements Python's % and // for floats: the remainder has the sign of b, and the quotient is
// consistent with the remainder.
static jinja_value divide_reals(uint32_t op, double a, double b) {
  double rest = rest_of(a < 0 ? -a : a, b < 0 ? -b : b);
  if (a < 0) rest = -rest;
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == '%') return jinja_float(rest != 0 ? rest : b < 0 ? -0.0 : 0.0);
  if (quotient == 0) return jinja_float(a == 0 ? a / b : 0.0);  // the sign of zeros matters
  const double whole = floor_of(quotient);
  return jinja_float(quotient - whole > 0.5 ? whole + 1 : whole);
}

static jinja_value of_integers(jinja_run *run, uint32_t op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool fits = true;
  if ((op == '%' || op == OP_FLOOR_DIVIDE) && b == -1) {  // INT64_MIN / -1 has no result
    if (op == '%') return jinja_int(0);
    fits = multiply(a, -1, &result);
  } else if (op == '+') {
    fits = !__builtin_add_overflow(a, b, &result);
  } else if (op == '-') {
    fits = !__builtin_sub_overflow(a, b, &result);
  } else if (op == '*') {
    fits = multiply(a, b, &result);
  } else if (op == OP_POWER) {
    fits = power(a, b, &result);
  } else if (op == OP_FLOOR_DIVIDE) {
    result = floor_divide(a, b);
  } else {
    result = a - b * floor_divide(a, b);
  }
  if (!fits) return jinja_fail(run, WICK_E_OVERFLOW, "a number is too large");
  return jinja_int(result);
}

static jinja_value of_reals(jinja_run *run, uint32_t op, double a, double b) {
  switch (op) {
    case '+':
      return jinja_float(a + b);
    case '-':
      return jinja_float(a - b);
    case '*':
      return jinja_float(a * b);
    case '/':
      return jinja_float(a / b);
    case OP_FLOOR_DIVIDE:
    case '%':
      return divide_reals(op, a, b);
    default:
      return real_power(run, a, b);
  }
}

static jinja_value of_numbers(jinja_run *run, uint32_t op, jinja_value a, jinja_value b) {
  const bool divides = op == '/' || op == '%' || op == OP_FLOOR_DIVIDE;
  if (divides && jinja_real_of(b) == 0) return jinja_fail(run, WICK_E_FORMAT, "a division by zero");
  const bool is_whole = jinja_is_int(a) && jinja_is_int(b) && op != '/';
  if (is_whole && !(op == OP_POWER && jinja_int_of(b) < 0)) {
    return of_integers(run, op, jinja_int_of(a), jinja_int_of(b));
  }
  return of_reals(run, op, jinja_real_of(a), jinja_real_of(b));
}

// ---- strings and lists ----

static jinja_value join_strings(jinja_run *run, const jinja_string *a, const jinja_string *b) {
  const bool is_markup = a->is_markup || b->is_markup;
  if (is_markup && !a->is_markup) a = jinja_escape(run, jinja_of_string(a)).string;
  if (is_markup && run->status == WICK_OK && !b->is_markup) {
    b = jinja_escape(run, jinja_of_string(b)).string;
  }
  if (run->status != WICK_OK) return JINJA_NOTHING;
  if (a->size_bytes == 0 && !is_markup) return jinja_of_string(b);
  if (b->size_bytes == 0 && !is_markup) return jinja_of_string(a);
  jinja_buffer *buffer = jinja_begin_append(run, a);
  if (buffer == NULL) return JINJA_NOTHING;
  jinja_write_string(run, buffer, b);
  const jinja_value joined = jinja_end_append(run, buffer);
  return is_markup ? jinja_markup(run, joined) : joined;
}

static jinja_value join_lists(jinja_run *run, jinja_value a, jinja_value b) {
  if (a.list->count > UINT32_MAX - b.list->count) return jinja_fail_memory(run);
  jinja_list *joined = jinja_new_list(run, a.list->count + b.list->count);
  for (uint32_t i = 0; i < a.list->count; i++) jinja_add_item(run, joined, a.list->items[i]);
  for (uint32_t i = 0; i < b.list->count; i++) jinja_add_item(run, joined, b.list->items[i]);
  if (joined == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = a.kind, .list = joined};
}

static jinja_value repeat(jinja_run *run, jinja_value value, int64_t times) {
  if (value.kind == JINJA_STRING) {
    jinja_buffer buffer = {0};
    for (int64_t i = 0; i < times && run->status == WICK_OK; i++) {
      if (value.string->size_bytes == 0) break;
      jinja_write_string(run, &buffer, value.string);
    }
    return jinja_buffer_value(run, &buffer);
  }
  jinja_list *list = jinja_new_list(run, 0);
  for (int64_t i = 0; i < times && value.list->count > 0 && run->status == WICK_OK; i++) {
    for (uint32_t k = 0; k < value.list->count; k++) {
      jinja_add_item(run, list, value.list->items[k]);
    }
  }
  if (list == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = value.kind, .list = list};
}

static const char *kind_name(jinja_value value) {
  static const char *const names[] = {"undefined", "none",    "a bool",     "an int",
                                      "a float",   "an int",  "a string",   "a list",
                                      "a tuple",   "a range", "a dict",     "a namespace",
                                      "a loop",    "a macro", "a function", "a method"};
  return names[value.kind];
}

static jinja_value fail_operands(jinja_run *run, uint32_t op, jinja_value a, jinja_value b) {
  const char text[3] = {(char)(op & 0xff), (char)(op >> 8), '\0'};
  const jinja_value missing = a.kind == JINJA_UNDEFINED ? a : b;
  if (missing.kind == JINJA_UNDEFINED && missing.string != NULL) {
    return jinja_fail_undefined(run, missing);
  }
  return jinja_fail(run, WICK_E_FORMAT, "%s %s %s", kind_name(a), text, kind_name(b));
}

// Whether a value can be concatenated, repeated and ordered.
static bool is_list(jinja_value value) {
  return value.kind == JINJA_LIST || value.kind == JINJA_TUPLE;
}

static bool is_series(jinja_value value) { return value.kind == JINJA_STRING || is_list(value); }

jinja_value jinja_binary(jinja_run *run, uint32_t op, jinja_value a, jinja_value b) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  if (jinja_is_number(a) && jinja_is_number(b)) return of_numbers(run, op, a, b);
  if (op == '+' && a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
    return join_strings(run, a.string, b.string);
  }
  if (op == '+' && is_list(a) && a.kind == b.kind) return join_lists(run, a, b);
  if (op == '%' && a.kind == JINJA_STRING) return jinja_format_percent(run, a.string, b);
  if (op == '*' && is_series(a) && jinja_is_int(b)) {
    return repeat(run, a, jinja_int_of(b));
  }
  if (op == '*' && is_series(b) && jinja_is_int(a)) {
    return repeat(run, b, jinja_int_of(a));
  }
  return fail_operands(run, op, a, b);
}

// ---- comparisons ----

enum { COMPARE_DEPTH_MAX = 64 };

static bool dicts_equal(jinja_run *run, const jinja_dict *a, const jinja_dict *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const jinja_entry *other = jinja_look_up(run, b, a->entries[i].key);
    if (other == NULL || !jinja_equal(run, a->entries[i].value, other->value)) return false;
  }
  return true;
}

static bool lists_equal(jinja_run *run, const jinja_list *a, const jinja_list *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    if (!jinja_equal(run, a->items[i], b->items[i])) return false;
  }
  return true;
}

static bool is_equal(jinja_run *run, jinja_value a, jinja_value b) {
  if (jinja_is_number(a) && jinja_is_number(b)) {
    if (jinja_is_int(a) && jinja_is_int(b)) return jinja_int_of(a) == jinja_int_of(b);
    if (a.kind == JINJA_BIG && b.kind == JINJA_BIG) return jinja_string_equal(a.string, b.string);
    if (a.kind != JINJA_FLOAT && b.kind != JINJA_FLOAT) return false;
    return jinja_real_of(a) == jinja_real_of(b);
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
      return true;
    case JINJA_STRING:
      return jinja_step_bytes(run, a.string->size_bytes) && jinja_string_equal(a.string, b.string);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
      return a.list == b.list || lists_equal(run, a.list, b.list);
    case JINJA_DICT:
      return a.dict == b.dict || dicts_equal(run, a.dict, b.dict);
    case JINJA_NAMESPACE:
      return a.dict == b.dict;
    case JINJA_FUNCTION:
      return a.function == b.function;
    case JINJA_LOOP:
      return a.loop == b.loop;
    case JINJA_MACRO:
      return a.macro == b.macro;
    default:
      return false;
  }
}

bool jinja_equal(jinja_run *run, jinja_value a, jinja_value b) {
  if (!jinja_step(run, 1)) return false;
  if (run->depth >= COMPARE_DEPTH_MAX * 2) {
    jinja_fail(run, WICK_E_FULL, "nested too deeply");
    return false;
  }
  run->depth++;
  const bool result = is_equal(run, a, b);
  run->depth--;
  return result;
}

static int order_strings(const jinja_string *a, const jinja_string *b) {
  const uint32_t common = a->size_bytes < b->size_bytes ? a->size_bytes : b->size_bytes;
  const int order = common == 0 ? 0 : memcmp(a->bytes, b->bytes, common);
  if (order != 0) return order;
  return a->size_bytes < b->size_bytes ? -1 : a->size_bytes > b->size_bytes;
}

int jinja_order(jinja_run *run, jinja_value a, jinja_value b) {
  if (!jinja_step(run, 1)) return 0;
  if (jinja_is_number(a) && jinja_is_number(b)) {
    if (jinja_is_int(a) && jinja_is_int(b)) {
      const int64_t x = jinja_int_of(a), y = jinja_int_of(b);
      return x < y ? -1 : x > y;
    }
    const double x = jinja_real_of(a), y = jinja_real_of(b);
    return x < y ? -1 : x > y;
  }
  if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
    jinja_step_bytes(run, a.string->size_bytes);
    return order_strings(a.string, b.string);
  }
  if (!is_list(a) || a.kind != b.kind || run->depth >= COMPARE_DEPTH_MAX * 2) {
    fail_operands(run, '<', a, b);
    return 0;
  }
  int order = 0;
  run->depth++;
  for (uint32_t i = 0; i < a.list->count && i < b.list->count && order == 0; i++) {
    const jinja_value x = a.list->items[i], y = b.list->items[i];
    if (jinja_equal(run, x, y)) continue;  // as in Python, equal items need no order
    order = jinja_order(run, x, y);
    if (order == 0) break;  // neither is smaller: the run has failed, or one is NaN
  }
  run->depth--;
  if (order != 0) return order;
  return a.list->count < b.list->count ? -1 : a.list->count > b.list->count;
}

bool jinja_check_key(jinja_run *run, jinja_value value) {
  if (!jinja_step(run, 1)) return false;
  if (value.kind == JINJA_LIST || value.kind == JINJA_DICT || run->depth >= COMPARE_DEPTH_MAX) {
    jinja_fail(run, WICK_E_FORMAT, "%s as a key", kind_name(value));
    return false;
  }
  if (value.kind != JINJA_TUPLE) return true;
  run->depth++;
  for (uint32_t i = 0; i < value.list->count && run->status == WICK_OK; i++) {
    jinja_check_key(run, value.list->items[i]);
  }
  run->depth--;
  return run->status == WICK_OK;
}

bool jinja_contains(jinja_run *run, jinja_value container, jinja_value item) {
  switch (container.kind) {
    case JINJA_STRING:
      if (item.kind != JINJA_STRING) {
        fail_operands(run, OP_IN, item, container);
        return false;
      }
      return jinja_find_part(run, container.string, item.string, 0) != UINT32_MAX;
    case JINJA_DICT:
      return jinja_check_key(run, item) && jinja_look_up(run, container.dict, item) != NULL;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
      for (uint32_t i = 0; i < container.list->count && run->status == WICK_OK; i++) {
        if (jinja_equal(run, container.list->items[i], item)) return true;
      }
      return false;
    case JINJA_UNDEFINED:
      return false;
    default:
      fail_operands(run, OP_IN, item, container);
      return false;
  }
}

bool jinja_compare_is(jinja_run *run, uint32_t op, jinja_value a, jinja_value b) {
  switch (op) {
    case OP_EQUAL:
      return jinja_equal(run, a, b);
    case OP_UNEQUAL:
      return !jinja_equal(run, a, b);
    case OP_IN:
      return jinja_contains(run, b, a);
    case OP_NOT_IN:
      return !jinja_contains(run, b, a);
    case '<':
      return jinja_order(run, a, b) < 0;
    case '>':
      return jinja_order(run, a, b) > 0;
    case OP_LESS_EQUAL:
      return jinja_order(run, a, b) <= 0;
    default:
      return jinja_order(run, a, b) >= 0;
  }
}
