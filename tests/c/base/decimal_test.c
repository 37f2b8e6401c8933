// Doubles as decimals: the digits equal Python's repr, and parsing is exact, so a written double
// parses to the same double.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "check.h"
#include "random.h"

static double read(const char *text) {
  double value = -1;
  CHECK(decimal_read_f64(text, strlen(text), &value));
  return value;
}

TEST(writes_the_same_shortest_digits_as_python) {
  static const struct {
    double value;
    const char *text;
  } cases[] = {
      {0, "0.0"},
      {-0.0, "-0.0"},
      {1, "1.0"},
      {0.1, "0.1"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {123456789.123, "123456789.123"},
      {1e-4, "0.0001"},
      {1e-5, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {1e22, "1e+22"},
      {1e23, "1e+23"},
      {5e-324, "5e-324"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {9007199254740993.0, "9007199254740992.0"},
      // a power of two: the nearest digits do not parse to it
      {0x1p-1017, "7.120236347223045e-307"},
  };
  char text[DECIMAL_BYTES];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_EQ_UINT(decimal_write_f64(text, cases[i].value), strlen(cases[i].text));
    CHECK_EQ_STR(text, cases[i].text);
  }
  const double zero = read("0");
  decimal_write_f64(text, zero / zero);
  CHECK(strstr(text, "nan") != NULL);
  decimal_write_f64(text, -1 / zero);
  CHECK_EQ_STR(text, "-inf");
}

TEST(every_written_double_parses_to_itself) {
  uint64_t random = 7;
  for (int i = 0; i < 20000; i++) {
    const uint64_t bits = random_u64(&random);
    double value, back;
    memcpy(&value, &bits, sizeof value);
    if (value - value != 0) continue;
    char text[DECIMAL_BYTES];
    const size_t size = decimal_write_f64(text, value);
    REQUIRE(decimal_read_f64(text, size, &back));
    REQUIRE(memcmp(&back, &value, sizeof back) == 0);
  }
  CHECK(true);
}

TEST(parses_to_the_nearest_double) {
  CHECK(read("2.4703282292062327e-324") == 0);  // just below half of the smallest subnormal
  CHECK(read("2.4703282292062328e-324") == 5e-324);
  CHECK(read("9007199254740993") == 9007199254740992.0);  // ties round to even
  CHECK(read("9007199254740993.00000000000000000000000000000000001") == 9007199254740994.0);
  CHECK(read("2.2250738585072011e-308") == 0x0.fffffffffffffp-1022);
  CHECK(read("1e400") > 1.7976931348623157e308);
  CHECK(read("1e-400") == 0);
  CHECK(read("+12.50e1") == 125);
}

TEST(rejects_invalid_decimals) {
  static const char *const wrong[] = {"", "-", ".", "e5", "1e", "1e+", "1x", "0x10", " 1", "1 "};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    double value;
    CHECK(!decimal_read_f64(wrong[i], strlen(wrong[i]), &value));
  }
}

TEST(writes_a_given_number_of_decimal_places) {
  char text[DECIMAL_FIXED_BYTES];
  decimal_write_fixed(text, 2.345, 2);
  CHECK_EQ_STR(text, "2.35");  // 2.345 is above the tie
  decimal_write_fixed(text, 2.5, 0);
  CHECK_EQ_STR(text, "2");  // ties round to even
  decimal_write_fixed(text, -0.0, 1);
  CHECK_EQ_STR(text, "-0.0");
  decimal_write_fixed(text, 0.1, 10);
  CHECK_EQ_STR(text, "0.1000000000");
  decimal_write_fixed(text, 1e300, 2);
  CHECK_EQ_STR(text, "1e+300");
}

// ---- compared with the C library ----

// Finds the shortest digits by trying every length, in the format of Python's repr.
static void write_by_trying(char *out, double value) {
  char digits[40];
  int count = 1;
  for (; count <= 17; count++) {
    snprintf(digits, sizeof digits, "%.*e", count - 1, value);
    if (strtod(digits, NULL) == value) break;
  }
  const int exponent = atoi(strchr(digits, 'e') + 1);
  if (exponent < -4 || exponent >= 16) {
    *strchr(digits, 'e') = '\0';
    snprintf(out, DECIMAL_BYTES, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
    return;
  }
  const int places = count - 1 - exponent;
  snprintf(out, DECIMAL_BYTES, "%.*f", places < 1 ? 1 : places, value);
}

// Returns a number as people write it: a few digits with a decimal point somewhere.
static double short_number(uint64_t *random) {
  char text[64];
  const int digits = 1 + (int)random_below(random, 17);
  uint64_t number = 0;
  for (int i = 0; i < digits; i++) number = 10 * number + random_below(random, 10);
  const int exponent = (int)random_below(random, 44) - 26;
  snprintf(text, sizeof text, "%s%llue%d", random_below(random, 2) ? "-" : "",
           (unsigned long long)number, exponent);
  return strtod(text, NULL);
}

TEST(writes_short_and_long_numbers_like_the_c_library) {
  uint64_t random = 11;
  for (int i = 0; i < 6000; i++) {
    double value = short_number(&random);
    if (i % 3 == 0) value += short_number(&random);
    if (i % 100 == 0) value = 0x1p-30 * (double)(1 << random_below(&random, 30)) * 0x1p20;
    if (value == 0) continue;
    char text[DECIMAL_BYTES] = "", wanted[DECIMAL_BYTES + 8];
    write_by_trying(wanted, value);
    CHECK_EQ_UINT(decimal_write_f64(text, value), strlen(text));
    CHECK_EQ_STR(text, wanted);
    double back = 0;
    CHECK(decimal_read_f64(text, strlen(text), &back) && back == value);
  }
}

TEST(parses_random_decimals_like_the_c_library) {
  uint64_t random = 12;
  for (int i = 0; i < 6000; i++) {
    char text[96];
    size_t size = 0;
    const uint32_t digits = 1 + (uint32_t)random_below(&random, 40);
    const uint32_t point = (uint32_t)random_below(&random, 42);
    if (random_below(&random, 3) == 0) text[size++] = random_below(&random, 2) ? '-' : '+';
    for (uint32_t k = 0; k < digits; k++) {
      if (k == point) text[size++] = '.';
      text[size++] = (char)('0' + random_below(&random, 10) * (random_below(&random, 4) != 0));
    }
    const int range = i % 2 ? 340 : 30;
    if (random_below(&random, 2)) {
      size += (size_t)snprintf(text + size, sizeof text - size, "%c%d", i % 3 ? 'e' : 'E',
                               (int)random_below(&random, 2 * (uint32_t)range) - range);
    }
    text[size] = '\0';
    const double wanted = strtod(text, NULL);
    double value = -1;
    if (!CHECK(decimal_read_f64(text, size, &value))) printf("# %s\n", text);
    if (!CHECK_EQ_MEM(&value, &wanted, sizeof value)) printf("# %s: %g\n", text, value);
  }
}

// Digits beyond the significant ones change the exponent and decide ties.
TEST(parses_many_digits_like_the_c_library) {
  enum { DIGITS_MAX = 1200 };
  uint64_t random = 14;
  for (int i = 0; i < 600; i++) {
    static char text[DIGITS_MAX + 32];
    const uint32_t digits = 700 + (uint32_t)random_below(&random, DIGITS_MAX - 700);
    const uint32_t point = (uint32_t)random_below(&random, 2 * digits);
    const uint32_t zeros_from = i % 3 == 0 ? (uint32_t)random_below(&random, 30) : digits;
    size_t size = 0;
    for (uint32_t k = 0; k < digits; k++) {
      if (k == point) text[size++] = '.';
      const bool is_zero = k >= zeros_from && k + 1 != digits;
      text[size++] = (char)('0' + (is_zero ? 0 : random_below(&random, 10)));
    }
    const int before = (int)(point < digits ? point : digits);
    size +=
        (size_t)snprintf(text + size, 16, "e%d", 300 - before - (int)random_below(&random, 600));
    const double wanted = strtod(text, NULL);
    double value = -1;
    CHECK(decimal_read_f64(text, size, &value));
    if (!CHECK_EQ_MEM(&value, &wanted, sizeof value)) printf("# %s: %g\n", text, value);
  }
}

TEST(writes_decimal_places_like_the_c_library) {
  uint64_t random = 13;
  double most = 4e18;
  for (int i = 0; i < 6000; i++) {
    const int places = (int)random_below(&random, 19);
    double value = short_number(&random);
    if (i % 4 == 0) value = ((double)random_below(&random, 2000) - 1000) / 16;  // with ties
    double scaled = value < 0 ? -value : value;
    for (int k = 0; k < places; k++) scaled *= 10;
    if (scaled >= most) continue;
    char text[DECIMAL_FIXED_BYTES], wanted[DECIMAL_FIXED_BYTES];
    snprintf(wanted, sizeof wanted, "%.*f", places, value);
    CHECK_EQ_UINT(decimal_write_fixed(text, value, places), strlen(wanted));
    CHECK_EQ_STR(text, wanted);
  }
  // decimal places beyond a double's digits are zeros
  char text[DECIMAL_FIXED_BYTES];
  CHECK_EQ_UINT(decimal_write_fixed(text, 3, DECIMAL_PLACES_MAX), 22);
  CHECK_EQ_STR(text, "3.00000000000000000000");
  CHECK_EQ_UINT(decimal_write_fixed(text, 1e18, 3), 23);
  CHECK_EQ_STR(text, "1000000000000000000.000");
}
