// base/decimal.c — exact conversions with multi-limb integers: a double is the ratio of two such
// integers. This is slow compared with the methods of Ryu (Adams 2018), but short, and templates
// and grammars have few numbers.
#include "base/decimal.h"

#include <stdint.h>
#include <string.h>

enum {
  LIMBS_MAX = 48,  // 1536 bits: 10^400 and the digits of a double
  DIGITS_READ_MAX = 64,
  EXPONENT_MAX = 400,
  DIGITS_WRITTEN_MAX = 17,
  MANTISSA_BITS = 53,
  EXPONENT_LEAST = -1074  // exponent of the last bit of a double
};

typedef struct big {
  uint32_t limbs[LIMBS_MAX];  // least significant first
  int count;                  // without leading zeros
} big;

static void big_add_product(big *number, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (int i = 0; i < number->count; i++) {
    carry += (uint64_t)number->limbs[i] * factor;
    number->limbs[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0 && number->count < LIMBS_MAX) number->limbs[number->count++] = (uint32_t)carry;
}

static void big_times_power_of_ten(big *number, int exponent) {
  for (; exponent >= 9; exponent -= 9) big_add_product(number, 1000000000u, 0);
  for (; exponent > 0; exponent--) big_add_product(number, 10, 0);
}

static void big_shift(big *number, int bits) {
  for (; bits >= 31; bits -= 31) big_add_product(number, 1u << 31, 0);
  if (bits > 0) big_add_product(number, 1u << bits, 0);
}

static int big_bits(const big *number) {
  if (number->count == 0) return 0;
  return 32 * number->count - __builtin_clz(number->limbs[number->count - 1]);
}

static int big_compare(const big *a, const big *b) {
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  for (int i = a->count; i-- > 0;) {
    if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
  }
  return 0;
}

// Computes a -= b; b must not be larger than a.
static void big_subtract(big *a, const big *b) {
  int64_t borrow = 0;
  for (int i = 0; i < a->count; i++) {
    borrow += (int64_t)a->limbs[i] - (i < b->count ? b->limbs[i] : 0);
    a->limbs[i] = (uint32_t)borrow;
    borrow >>= 32;
  }
  while (a->count > 0 && a->limbs[a->count - 1] == 0) a->count--;
}

static big big_of(uint64_t value) {
  big number = {{(uint32_t)value, (uint32_t)(value >> 32)}, 0};
  number.count = value >> 32 != 0 ? 2 : value != 0;
  return number;
}

// ---- reading ----

typedef struct decimal_digits {
  uint8_t digits[DIGITS_READ_MAX + 1];  // without leading zeros
  int count;
  int exponent;  // the number is the digits as an integer times 10^exponent
  bool is_negative;
} decimal_digits;

static void take_digit(decimal_digits *number, char c, bool is_fraction) {
  if (number->count == 0 && c == '0') {
    if (is_fraction) number->exponent--;
  } else if (number->count < DIGITS_READ_MAX) {
    number->digits[number->count++] = (uint8_t)(c - '0');
    if (is_fraction) number->exponent--;
  } else {  // after the last significant digit, further digits only decide ties
    if (c != '0') number->digits[DIGITS_READ_MAX] = 1;
    if (!is_fraction) number->exponent++;
  }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool read_digits(const char *bytes, size_t size_bytes, decimal_digits *number) {
  size_t at = 0, digits = 0;
  *number = (decimal_digits){0};
  if (at < size_bytes && (bytes[at] == '-' || bytes[at] == '+')) {
    number->is_negative = bytes[at++] == '-';
  }
  for (; at < size_bytes && is_digit(bytes[at]); digits++) take_digit(number, bytes[at++], false);
  if (at < size_bytes && bytes[at] == '.') {
    for (at++; at < size_bytes && is_digit(bytes[at]); digits++) {
      take_digit(number, bytes[at++], true);
    }
  }
  if (digits == 0) return false;
  if (at < size_bytes && (bytes[at] | 0x20) == 'e') {
    bool is_negative = false;
    at++;
    if (at < size_bytes && (bytes[at] == '-' || bytes[at] == '+')) {
      is_negative = bytes[at++] == '-';
    }
    if (at == size_bytes) return false;
    int exponent = 0;
    for (; at < size_bytes && is_digit(bytes[at]); at++) {
      if (exponent < 100000) exponent = exponent * 10 + (bytes[at] - '0');
    }
    number->exponent += is_negative ? -exponent : exponent;
  }
  return at == size_bytes;
}

static double compose(uint64_t mantissa, int exponent, bool is_negative) {
  uint64_t bits;
  if (mantissa == 0) {
    bits = 0;
  } else if (exponent > 971) {
    bits = 0x7ffull << 52;
  } else if (mantissa >> 52 == 0) {  // subnormal, exponent EXPONENT_LEAST
    bits = mantissa;
  } else {
    bits = (uint64_t)(exponent + 1075) << 52 | (mantissa & ((1ull << 52) - 1));
  }
  bits |= (uint64_t)is_negative << 63;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Divides by shifting and subtracting: `bits` bits of numerator / denominator, and the remainder.
static uint64_t divide_bits(big *numerator, const big *denominator, int bits) {
  uint64_t quotient = 0;
  for (int i = 0; i < bits; i++) {
    quotient <<= 1;
    if (big_compare(numerator, denominator) >= 0) {
      big_subtract(numerator, denominator);
      quotient |= 1;
    }
    big_add_product(numerator, 2, 0);
  }
  return quotient;
}

// Returns the double nearest to numerator / denominator.
static double divide(big *numerator, big *denominator, bool is_negative) {
  // scaled so that 1 <= numerator / denominator < 2, and the value is this ratio times 2^exponent
  int exponent = big_bits(numerator) - big_bits(denominator);
  if (exponent > 0) big_shift(denominator, exponent);
  if (exponent < 0) big_shift(numerator, -exponent);
  if (big_compare(numerator, denominator) < 0) {
    big_add_product(numerator, 2, 0);
    exponent--;
  }
  int bits = MANTISSA_BITS;
  if (exponent - (bits - 1) < EXPONENT_LEAST) bits = exponent - EXPONENT_LEAST + 1;
  if (bits < 0) return compose(0, 0, is_negative);
  uint64_t mantissa = divide_bits(numerator, denominator, bits);
  const int half = big_compare(numerator, denominator);  // compares twice the remainder
  if (half > 0 || (half == 0 && (mantissa & 1) != 0)) mantissa++;
  int last = exponent - (bits - 1);
  if (mantissa >> MANTISSA_BITS != 0) {
    mantissa >>= 1;
    last++;
  }
  return compose(mantissa, last, is_negative);
}

// Converts short numbers: few digits and a small power of ten are exact doubles, so one operation
// rounds once (Clinger 1990).
static bool read_short(const decimal_digits *number, double *out) {
  enum { DIGITS_MAX = 15, POWER_MAX = 22 };
  const int exponent = number->exponent;
  if (number->count > DIGITS_MAX || exponent > POWER_MAX || exponent < -POWER_MAX) return false;
  double power = 1, integer = 0;
  for (int i = 0; i < (exponent < 0 ? -exponent : exponent); i++) power *= 10;
  for (int i = 0; i < number->count; i++) integer = integer * 10 + number->digits[i];
  *out = exponent < 0 ? integer / power : integer * power;
  if (number->is_negative) *out = -*out;
  return true;
}

bool decimal_read_f64(const char *bytes, size_t size_bytes, double *out) {
  decimal_digits number;
  *out = 0;
  if (!read_digits(bytes, size_bytes, &number)) return false;
  if (read_short(&number, out)) return true;
  if (number.count == 0 || number.exponent + number.count < -EXPONENT_MAX + 60) {
    *out = compose(0, 0, number.is_negative);
    return true;
  }
  if (number.exponent + number.count > EXPONENT_MAX - 80) {
    *out = compose(1, 2000, number.is_negative);
    return true;
  }
  big numerator = {{0}, 0}, denominator = big_of(1);
  for (int i = 0; i < number.count; i++) {
    if (numerator.count == 0) {
      numerator = big_of(number.digits[i]);
    } else {
      big_add_product(&numerator, 10, number.digits[i]);
    }
  }
  if (number.count == DIGITS_READ_MAX && number.digits[DIGITS_READ_MAX] != 0) {
    big_add_product(&numerator, 10, 1);
    number.exponent--;
  }
  if (number.exponent > 0) big_times_power_of_ten(&numerator, number.exponent);
  if (number.exponent < 0) big_times_power_of_ten(&denominator, -number.exponent);
  *out = divide(&numerator, &denominator, number.is_negative);
  return true;
}

// ---- writing ----

// Converts a positive double to a ratio.
static void split(double value, big *numerator, big *denominator) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const int biased = (int)(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((1ull << 52) - 1);
  if (biased != 0) mantissa |= 1ull << 52;
  const int exponent = (biased != 0 ? biased : 1) - 1075;
  *numerator = big_of(mantissa);
  *denominator = big_of(1);
  if (exponent > 0) big_shift(numerator, exponent);
  if (exponent < 0) big_shift(denominator, -exponent);
}

// Returns the integer part of a ratio below 10; the numerator becomes the remainder.
static int take_digit_of(big *numerator, const big *denominator) {
  int digit = 0;
  while (digit < 9 && big_compare(numerator, denominator) >= 0) {
    big_subtract(numerator, denominator);
    digit++;
  }
  return digit;
}

// Writes `count` digits of a positive double, rounded half to even: 0.DIGITS * 10^*point.
static void round_digits(double value, int count, uint8_t *digits, int *point) {
  big numerator, denominator;
  split(value, &numerator, &denominator);
  int exponent = (int)((double)(big_bits(&numerator) - big_bits(&denominator)) * 0.30102999566);
  if (exponent > 0) big_times_power_of_ten(&denominator, exponent);
  if (exponent < 0) big_times_power_of_ten(&numerator, -exponent);
  while (big_compare(&numerator, &denominator) < 0) {
    big_add_product(&numerator, 10, 0);
    exponent--;
  }
  for (;;) {  // the estimate may be too small by one
    big ten = denominator;
    big_add_product(&ten, 10, 0);
    if (big_compare(&numerator, &ten) < 0) break;
    denominator = ten;
    exponent++;
  }
  *point = exponent + 1;
  for (int i = 0; i < count; i++) {
    digits[i] = (uint8_t)take_digit_of(&numerator, &denominator);
    big_add_product(&numerator, 10, 0);
  }
  big_add_product(&denominator, 5, 0);  // the numerator is ten times the remainder
  const int half = big_compare(&numerator, &denominator);
  if (half < 0 || (half == 0 && digits[count - 1] % 2 == 0)) return;
  int at = count - 1;
  while (at >= 0 && digits[at] == 9) digits[at--] = 0;
  if (at >= 0) {
    digits[at]++;
  } else {
    digits[0] = 1;
    ++*point;
  }
}

static double read_back(const uint8_t *digits, int count, int point) {
  big numerator = big_of(digits[0]), denominator = big_of(1);
  for (int i = 1; i < count; i++) big_add_product(&numerator, 10, digits[i]);
  const int exponent = point - count;
  if (exponent > 0) big_times_power_of_ten(&numerator, exponent);
  if (exponent < 0) big_times_power_of_ten(&denominator, -exponent);
  return divide(&numerator, &denominator, false);
}

// Formats short numbers with double arithmetic: an integer below 2^53 divided by an exact power of
// ten is rounded once, so it equals the number that the digits are parsed as. Returns false if more
// digits are needed.
static bool short_digits(double value, uint8_t digits[DIGITS_WRITTEN_MAX], int *count, int *point) {
  enum { PLACES_MAX = 22, DIGITS_MAX = 15 };
  double power = 1;
  if (value >= 1e15 || value < 1e-5) return false;
  for (int places = 0; places <= PLACES_MAX; places++, power *= 10) {
    const double scaled = value * power;
    if (scaled >= 1e15) return false;
    uint64_t integer = (uint64_t)(scaled + 0.5);
    if ((double)integer / power != value) continue;
    *count = 0;
    for (uint64_t left = integer; left != 0; left /= 10) ++*count;
    *point = *count - places;
    for (int i = *count; i-- > 0; integer /= 10) digits[i] = (uint8_t)(integer % 10);
    while (*count > 1 && digits[*count - 1] == 0) --*count;
    return *count > 0 && *count <= DIGITS_MAX;
  }
  return false;
}

// Rounds to digits that parse back to the value. If the value is a power of two, the nearest digits
// may not parse back to it, but the next higher digits do: its lower neighbour is closer than the
// upper one.
static bool round_trips(double value, int count, uint8_t *digits, int *point) {
  round_digits(value, count, digits, point);
  if (read_back(digits, count, *point) == value) return true;
  if (digits[count - 1] == 9) return false;
  digits[count - 1]++;
  return read_back(digits, count, *point) == value;
}

// Finds the fewest digits by bisection: if a number of digits is enough to parse back to the value,
// so is any larger number of digits.
static void fewest_digits(double value, uint8_t digits[DIGITS_WRITTEN_MAX], int *count,
                          int *point) {
  int low = 1, high = DIGITS_WRITTEN_MAX;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (round_trips(value, middle, digits, point)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *count = low;
  round_trips(value, low, digits, point);
}

static size_t put_exponent(char *to, int exponent) {
  size_t size = 0;
  to[size++] = 'e';
  to[size++] = exponent < 0 ? '-' : '+';
  const int magnitude = exponent < 0 ? -exponent : exponent;
  if (magnitude >= 100) to[size++] = (char)('0' + magnitude / 100);
  to[size++] = (char)('0' + magnitude / 10 % 10);
  to[size++] = (char)('0' + magnitude % 10);
  return size;
}

static size_t put_digits(char *to, const uint8_t *digits, int count, int point) {
  size_t size = 0;
  if (point <= -4 || point > 16) {
    to[size++] = (char)('0' + digits[0]);
    if (count > 1) to[size++] = '.';
    for (int i = 1; i < count; i++) to[size++] = (char)('0' + digits[i]);
    return size + put_exponent(to + size, point - 1);
  }
  if (point <= 0) to[size++] = '0';
  for (int i = 0; i < point; i++) to[size++] = (char)('0' + (i < count ? digits[i] : 0));
  to[size++] = '.';
  for (int i = point; i < 0; i++) to[size++] = '0';
  for (int i = point > 0 ? point : 0; i < count; i++) to[size++] = (char)('0' + digits[i]);
  if (count <= point) to[size++] = '0';
  return size;
}

static size_t put_text(char *out, const char *text) {
  const size_t size = strlen(text);
  memcpy(out, text, size + 1);
  return size;
}

size_t decimal_write_f64(char out[DECIMAL_BYTES], double value) {
  if (value != value) return put_text(out, "nan");
  size_t size = 0;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (bits >> 63 != 0) {
    out[size++] = '-';
    value = -value;
  }
  if (value > 1.7976931348623157e308) return size + put_text(out + size, "inf");
  if (value == 0) return size + put_text(out + size, "0.0");
  uint8_t digits[DIGITS_WRITTEN_MAX];
  int point = 0, count = 0;
  if (!short_digits(value, digits, &count, &point)) fewest_digits(value, digits, &count, &point);
  size += put_digits(out + size, digits, count, point);
  out[size] = '\0';
  return size;
}

// Returns the integer nearest to a positive value times 10^places, half to even; the result is
// below 2^62.
static uint64_t scale_to_integer(double value, int places) {
  enum { BITS = 63 };
  big numerator, denominator;
  split(value, &numerator, &denominator);
  big_times_power_of_ten(&numerator, places);
  big_shift(&denominator, BITS - 1);
  uint64_t integer = divide_bits(&numerator, &denominator, BITS);
  const int half = big_compare(&numerator, &denominator);  // compares twice the remainder
  if (half > 0 || (half == 0 && integer % 2 != 0)) integer++;
  return integer;
}

size_t decimal_write_fixed(char out[DECIMAL_FIXED_BYTES], double value, int places) {
  const double magnitude = value < 0 ? -value : value;
  if (!(magnitude < 4e18)) return decimal_write_f64(out, value);
  int exact_places = 0;  // places that fit into a 64-bit integer; zeros follow
  double scaled = magnitude;
  while (exact_places < places && scaled * 10 < 4e18) {
    scaled *= 10;
    exact_places++;
  }
  uint64_t integer = magnitude > 0 ? scale_to_integer(magnitude, exact_places) : 0;
  char digits[DECIMAL_FIXED_BYTES];
  int count = 0;
  while (integer != 0 || count <= exact_places) {
    digits[count++] = (char)('0' + integer % 10);
    integer /= 10;
  }
  size_t size = 0;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (bits >> 63 != 0) out[size++] = '-';
  while (count > exact_places) out[size++] = digits[--count];
  if (places > 0) out[size++] = '.';
  while (count > 0) out[size++] = digits[--count];
  for (int i = exact_places; i < places; i++) out[size++] = '0';
  out[size] = '\0';
  return size;
}
