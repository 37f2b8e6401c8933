// Doubles as decimals: the digits are Python's repr, and reading is exact, so that both together
// give back every double.
#include <string.h>

#include "base/decimal.h"
#include "check.h"
#include "random.h"

static double read(const char *text) {
  double value = -1;
  CHECK(decimal_read_f64(text, strlen(text), &value));
  return value;
}

TEST(writes_the_fewest_digits_as_python_does) {
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
      {0x1p-1017, "7.120236347223045e-307"},  // a power of two: the nearest digits do not read back
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

TEST(every_double_is_read_back) {
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

TEST(reads_the_nearest_double) {
  CHECK(read("2.4703282292062327e-324") == 0);  // just below half of the least one
  CHECK(read("2.4703282292062328e-324") == 5e-324);
  CHECK(read("9007199254740993") == 9007199254740992.0);  // a tie goes to even
  CHECK(read("9007199254740993.00000000000000000000000000000000001") == 9007199254740994.0);
  CHECK(read("2.2250738585072011e-308") == 0x0.fffffffffffffp-1022);
  CHECK(read("1e400") > 1.7976931348623157e308);
  CHECK(read("1e-400") == 0);
  CHECK(read("+12.50e1") == 125);
}

TEST(refuses_what_is_no_decimal) {
  static const char *const wrong[] = {"", "-", ".", "e5", "1e", "1e+", "1x", "0x10", " 1", "1 "};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    double value;
    CHECK(!decimal_read_f64(wrong[i], strlen(wrong[i]), &value));
  }
}

TEST(writes_a_number_of_places) {
  char text[DECIMAL_FIXED_BYTES];
  decimal_write_fixed(text, 2.345, 2);
  CHECK_EQ_STR(text, "2.35");  // 2.345 lies above the tie
  decimal_write_fixed(text, 2.5, 0);
  CHECK_EQ_STR(text, "2");  // a tie goes to even
  decimal_write_fixed(text, -0.0, 1);
  CHECK_EQ_STR(text, "-0.0");
  decimal_write_fixed(text, 0.1, 10);
  CHECK_EQ_STR(text, "0.1000000000");
  decimal_write_fixed(text, 1e300, 2);
  CHECK_EQ_STR(text, "1e+300");
}
