// The formatter, UTF-8, status names and messages, and byte hashing.
#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "check.h"

// ---- the formatter ----

#define CHECK_FORMAT(wanted, ...)                                    \
  do {                                                               \
    char text[200];                                                  \
    const size_t used = text_format(text, sizeof text, __VA_ARGS__); \
    CHECK_EQ_STR(text, wanted);                                      \
    CHECK_EQ_UINT(used, strlen(wanted));                             \
  } while (0)

TEST(formats_integers_of_every_length) {
  CHECK_FORMAT("0 -1 2147483647", "%d %i %d", 0, -1, INT32_MAX);
  CHECK_FORMAT("-2147483648", "%d", INT32_MIN);
  CHECK_FORMAT("4294967295 ffffffff 0", "%u %x %x", UINT32_MAX, UINT32_MAX, 0u);
  CHECK_FORMAT("-9223372036854775808", "%lld", (long long)INT64_MIN);
  CHECK_FORMAT("18446744073709551615", "%llu", (unsigned long long)UINT64_MAX);
  CHECK_FORMAT("deadbeefcafe", "%llx", 0xdeadbeefcafeull);
  CHECK_FORMAT("-7 7 7", "%ld %lu %lx", -7L, 7UL, 7UL);
  CHECK_FORMAT("12 -3", "%zu %zd", (size_t)12, (ptrdiff_t)-3);
  char text[40], wanted[40];
  snprintf(wanted, sizeof wanted, "%zu", (size_t)SIZE_MAX);
  text_format(text, sizeof text, "%zu", (size_t)SIZE_MAX);
  CHECK_EQ_STR(text, wanted);
}

TEST(formats_strings_characters_and_percent_signs) {
  const char unterminated[3] = {'a', 'b', 'c'};
  CHECK_FORMAT("tensor 'blk.0' has 3%", "tensor '%s' has %d%%", "blk.0", 3);
  CHECK_FORMAT("ab|", "%.*s|", 2, unterminated);
  CHECK_FORMAT("|", "%.*s|", 0, unterminated);
  CHECK_FORMAT("|", "%.*s|", -1, unterminated);
  CHECK_FORMAT("abc|ab", "%.9s|%.2s", "abc", "abc");
  CHECK_FORMAT("abcdefghijkl|", "%.12s|", "abcdefghijklmnop");
  CHECK_FORMAT("xy", "%c%c", 'x', 'y');
  const char *missing = NULL;
  CHECK_FORMAT("(null)", "%s", missing);
  CHECK_FORMAT("", "%s", "");
}

TEST(doubles_have_six_significant_digits) {
  CHECK_FORMAT("0 0 1 -1 0.5", "%g %g %g %g %g", 0.0, -0.0, 1.0, -1.0, 0.5);
  CHECK_FORMAT("3.14159 100000 123456", "%g %g %g", 3.14159265, 1e5, 123456.4);
  CHECK_FORMAT("0.1 0.001 0.0001 0.00012345", "%g %g %g %g", 0.1, 0.001, 1e-4, 1.2345e-4);
  CHECK_FORMAT("1e6 1.5e9 1e-10 -2.5e-7", "%g %g %g %g", 1e6, 1.5e9, 1e-10, -2.5e-7);
  CHECK_FORMAT("1e6 1 10", "%g %g %g", 999999.7, 0.9999999, 9.9999999);
  CHECK_FORMAT("inf -inf nan", "%g %g %g", (double)INFINITY, -(double)INFINITY, (double)NAN);
  CHECK_FORMAT("1.79769e308", "%g", DBL_MAX);
  CHECK_FORMAT("2.22507e-308", "%g", DBL_MIN);
}

TEST(formatted_doubles_parse_to_nearby_values) {
  uint64_t state = 1;
  for (int i = 0; i < 20000; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value;
    const uint64_t bits = hash_mix_u64(state);
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value) || fabs(value) < DBL_MIN) continue;
    char text[40];
    text_format(text, sizeof text, "%g", value);
    const double read = strtod(text, NULL);
    if (!CHECK(fabs(read / value - 1) <= 5.001e-6)) printf("#   %s for %.17g\n", text, value);
  }
}

static bool is_whole_utf8(const char *text) {
  size_t at = 0;
  const size_t size = strlen(text);
  while (at < size) {
    uint32_t code_point;
    const int length = utf8_decode((const uint8_t *)text + at, size - at, &code_point);
    if (length <= 0) return false;
    at += (size_t)length;
  }
  return true;
}

TEST(output_is_truncated_between_characters) {
  const char *const full = "aé日𝄞 -12 aé日𝄞";
  for (size_t size = 1; size < 40; size++) {
    char text[48];
    memset(text, 'X', sizeof text);
    const size_t used = text_format(text, size, "%s %d %s", "aé日𝄞", -12, "aé日𝄞");
    CHECK(used < size);
    CHECK_EQ_UINT(strlen(text), used);
    CHECK(text[size] == 'X');
    CHECK(memcmp(text, full, used) == 0);
    CHECK(is_whole_utf8(text));
    CHECK(used + 4 >= size || used == strlen(full));
  }
  char nothing[1] = {'X'};
  CHECK_EQ_UINT(text_format(nothing, 0, "%s", "abc"), 0);
  CHECK(nothing[0] == 'X');
}

TEST(nothing_is_written_after_the_first_part_that_does_not_fit) {
  char text[6];
  CHECK_EQ_UINT(text_format(text, sizeof text, "ab%s%s", "日本", "x"), 5);
  CHECK_EQ_STR(text, "ab日");
  CHECK_EQ_UINT(text_format(text, sizeof text, "abc%s%s", "日", "x"), 3);
  CHECK_EQ_STR(text, "abc");
}

// ---- UTF-8 ----

static bool is_scalar(uint32_t code_point) {
  return code_point < 0xd800 || (code_point > 0xdfff && code_point <= 0x10ffff);
}

TEST(every_code_point_is_encoded_and_decoded) {
  for (uint32_t code_point = 0; code_point < 0x110100; code_point++) {
    uint8_t bytes[4] = {0xff, 0xff, 0xff, 0xff};
    const size_t length = utf8_encode(code_point, bytes);
    if (!is_scalar(code_point)) {
      CHECK_EQ_UINT(length, 0);
      continue;
    }
    const size_t wanted = code_point < 0x80      ? 1
                          : code_point < 0x800   ? 2
                          : code_point < 0x10000 ? 3
                                                 : 4;
    uint32_t decoded = 0;
    if (!CHECK(length == wanted && utf8_decode(bytes, length, &decoded) == (int)length &&
               decoded == code_point)) {
      printf("#   U+%04x\n", (unsigned)code_point);
    }
    for (size_t cut = 0; cut < length; cut++) CHECK(utf8_decode(bytes, cut, &decoded) == -1);
  }
  uint8_t bytes[4];
  CHECK_EQ_UINT(utf8_encode(UINT32_MAX, bytes), 0);
}

// Bit sets of the strings of 1, 2 and 3 bytes that begin a longer code point, and of those that are
// a whole code point.
static uint8_t begins[3][1 << 21], whole[3][1 << 21];

static void set_bit(uint8_t *bits, uint32_t i) { bits[i / 8] |= (uint8_t)(1u << i % 8); }
static bool has_bit(const uint8_t *bits, uint32_t i) { return (bits[i / 8] >> i % 8 & 1) != 0; }

static void note_all_code_points(void) {
  for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point++) {
    uint8_t bytes[4];
    const size_t length = is_scalar(code_point) ? utf8_encode(code_point, bytes) : 0;
    uint32_t prefix = 0;
    for (size_t i = 0; i < length && i < 3; i++) {
      prefix = prefix << 8 | bytes[i];
      set_bit(i + 1 == length ? whole[i] : begins[i], prefix);
    }
  }
}

// Returns the result required by RFC 3629 for a string of up to 3 bytes, from the tables above.
static int expected_decode(const uint8_t *bytes, size_t size) {
  uint32_t prefix = 0;
  for (size_t i = 0; i < size; i++) {
    prefix = prefix << 8 | bytes[i];
    if (has_bit(whole[i], prefix)) return (int)i + 1;
    if (!has_bit(begins[i], prefix)) return 0;
  }
  return -1;
}

TEST(decoding_follows_the_rfc_for_every_string_of_three_bytes) {
  note_all_code_points();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 1u << 24; i++) {
    const uint8_t bytes[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
    uint32_t code_point;
    wrong += utf8_decode(bytes, 3, &code_point) != expected_decode(bytes, 3) ? 1 : 0;
    if (bytes[2] != 0) continue;
    wrong += utf8_decode(bytes, 2, &code_point) != expected_decode(bytes, 2) ? 1 : 0;
    if (bytes[1] != 0) continue;
    wrong += utf8_decode(bytes, 1, &code_point) != expected_decode(bytes, 1) ? 1 : 0;
  }
  CHECK_EQ_UINT(wrong, 0);
}

TEST(the_fourth_byte_must_continue) {
  for (uint32_t lead = 0xf0; lead <= 0xf4; lead++) {
    const uint8_t second = lead == 0xf4 ? 0x80 : 0x90;
    for (uint32_t last = 0; last < 256; last++) {
      const uint8_t bytes[4] = {(uint8_t)lead, second, 0xbf, (uint8_t)last};
      uint32_t code_point;
      CHECK_EQ_INT(utf8_decode(bytes, 4, &code_point), last >= 0x80 && last <= 0xbf ? 4 : 0);
    }
  }
}

// ---- statuses ----

TEST(statuses_have_names) {
  CHECK_EQ_STR(wick_status_name(WICK_OK), "WICK_OK");
  CHECK_EQ_STR(wick_status_name(WICK_E_OVERFLOW), "WICK_E_OVERFLOW");
  CHECK_EQ_STR(wick_status_name(WICK_E_FORMAT), "WICK_E_FORMAT");
  CHECK_EQ_STR(wick_status_name(WICK_E_ABORTED), "WICK_E_ABORTED");
  CHECK_EQ_STR(wick_status_name(WICK_STATUS_COUNT), "WICK_E_?");
  CHECK_EQ_STR(wick_status_name((wick_status)-1), "WICK_E_?");
  for (int status = 0; status < WICK_STATUS_COUNT; status++) {
    CHECK(strncmp(wick_status_name((wick_status)status), "WICK_", 5) == 0);
    CHECK(strcmp(wick_status_name((wick_status)status), "WICK_E_?") != 0);
  }
}

TEST(a_failure_fills_the_error) {
  wick_error error;
  CHECK_EQ_INT(fail_with(&error, WICK_E_FORMAT, 1234, "key '%s'", "a.b"), WICK_E_FORMAT);
  CHECK_EQ_INT(error.status, WICK_E_FORMAT);
  CHECK_EQ_UINT(error.offset_bytes, 1234);
  CHECK_EQ_STR(error.message, "key 'a.b'");
  CHECK_EQ_INT(fail_with(NULL, WICK_E_IO, 0, "%d", 1), WICK_E_IO);
  char name[2 * WICK_ERROR_MESSAGE_BYTES];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  fail_with(&error, WICK_E_ARG, WICK_NO_OFFSET, "%s", name);
  CHECK_EQ_UINT(strlen(error.message), WICK_ERROR_MESSAGE_BYTES - 1);
}

TEST(a_failure_has_no_subject_until_one_is_set) {
  wick_error error;
  memset(&error, 0xff, sizeof error);
  CHECK_EQ_INT(status_about(fail_with(&error, WICK_E_FULL, WICK_NO_OFFSET, "full"), &error,
                            WICK_SUBJECT_CONTEXT, 7, 8),
               WICK_E_FULL);
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_CONTEXT);
  CHECK_EQ_UINT(error.numbers[0], 7);
  CHECK_EQ_UINT(error.numbers[1], 8);
  fail_with(&error, WICK_E_IO, 3, "no longer");
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_NONE);
  for (int i = 0; i < WICK_ERROR_NUMBERS; i++) CHECK_EQ_UINT(error.numbers[i], 0);
  CHECK_EQ_INT(status_about(WICK_E_FULL, NULL, WICK_SUBJECT_CONTEXT, 7, 8), WICK_E_FULL);
}

// ---- hashing ----

TEST(bytes_are_hashed_with_fnv_1a_and_mixed) {
  CHECK_EQ_UINT(hash_bytes("", 0, 0), hash_mix_u64(0xcbf29ce484222325u));
  CHECK_EQ_UINT(hash_bytes("a", 1, 0), hash_mix_u64(0xaf63dc4c8601ec8cu));
  CHECK_EQ_UINT(hash_bytes("foobar", 6, 0), hash_mix_u64(0x85944171f73967e8u));
  CHECK(hash_bytes("a", 1, 1) != hash_bytes("a", 1, 0));
}
