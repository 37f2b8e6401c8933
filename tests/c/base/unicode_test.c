// Code point classes and repair of invalid UTF-8.
#include "text/unicode.h"

#include <string.h>

#include "base/text.h"
#include "check.h"

TEST(known_code_points_have_the_right_class) {
  static const struct {
    uint32_t code;
    uint8_t kind;
  } CASES[] = {
      {'a', UNICODE_LETTER},          {'Z', UNICODE_LETTER},
      {'7', UNICODE_NUMBER},          {' ', UNICODE_SPACE},
      {'\n', UNICODE_SPACE},          {0x1c, UNICODE_CONTROL},
      {0x7f, UNICODE_CONTROL},        {'~', UNICODE_SYMBOL},
      {'$', UNICODE_SYMBOL},          {'_', UNICODE_PUNCTUATION},
      {'[', UNICODE_PUNCTUATION},     {0x85, UNICODE_SPACE},
      {0xa0, UNICODE_SPACE},          {0xad, UNICODE_CONTROL},
      {0xbd, UNICODE_NUMBER},         {0xd7, UNICODE_SYMBOL},
      {0xdf, UNICODE_LETTER},         {0x301, UNICODE_MARK},
      {0x378, UNICODE_UNASSIGNED},    {0x663, UNICODE_NUMBER},
      {0x1680, UNICODE_SPACE},        {0x2003, UNICODE_SPACE},
      {0x200b, UNICODE_CONTROL},      {0x2028, UNICODE_SPACE},
      {0x2167, UNICODE_NUMBER},       {0x2ffc, UNICODE_SYMBOL},
      {0x3000, UNICODE_SPACE},        {0x3007, UNICODE_NUMBER},
      {0x4e2d, UNICODE_LETTER},       {0x9fff, UNICODE_LETTER},
      {0xa48d, UNICODE_UNASSIGNED},   {0xac00, UNICODE_LETTER},
      {0xd7a4, UNICODE_UNASSIGNED},   {0xe000, UNICODE_CONTROL},
      {0xfeff, UNICODE_CONTROL},      {0xfffd, UNICODE_SYMBOL},
      {0xffff, UNICODE_UNASSIGNED},   {0x10efd, UNICODE_MARK},
      {0x1f642, UNICODE_SYMBOL},      {0x1f1e9, UNICODE_SYMBOL},
      {0x20000, UNICODE_LETTER},      {0x2ebf0, UNICODE_LETTER},
      {0xe0001, UNICODE_CONTROL},     {0xe0100, UNICODE_MARK},
      {0x10ffff, UNICODE_UNASSIGNED}, {0x10fffd, UNICODE_CONTROL},
      {0x110000, UNICODE_UNASSIGNED}, {UINT32_MAX, UNICODE_UNASSIGNED},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    if (!CHECK_EQ_UINT(unicode_class(CASES[i].code), CASES[i].kind))
      CHECK_EQ_UINT(CASES[i].code, 0);
  }
}

// The number of code points of each class in Unicode 15.1: an error in the table of runs changes a
// count.
TEST(class_counts_match_unicode_15_1) {
  uint32_t counts[8] = {0};
  for (uint32_t code = 0; code < 0x110000; code++) {
    const uint8_t kind = unicode_class(code);
    REQUIRE(kind != 0 && (kind & (kind - 1)) == 0);
    counts[__builtin_ctz(kind)]++;
  }
  CHECK_EQ_UINT(counts[0], 824718);
  CHECK_EQ_UINT(counts[1], 136726);
  CHECK_EQ_UINT(counts[2], 1831);
  CHECK_EQ_UINT(counts[3], 842);
  CHECK_EQ_UINT(counts[4], 7775);
  CHECK_EQ_UINT(counts[5], 2450);
  CHECK_EQ_UINT(counts[6], 25);
  CHECK_EQ_UINT(counts[7], 139745);
}

// Sums over all of Unicode 15.1, computed with a different implementation.
TEST(lower_case_and_base_letters_match_unicode_15_1) {
  uint32_t lower_count = 0, base_count = 0, lower_sum = 0, base_sum = 0;
  for (uint32_t code = 0; code < 0x110000; code++) {
    const uint32_t lower = unicode_lower(code), base = unicode_base(code);
    lower_count += lower != code;
    base_count += base != code;
    lower_sum = lower_sum * 31 + lower;
    base_sum = base_sum * 31 + base;
  }
  CHECK_EQ_UINT(lower_count, 1433u);
  CHECK_EQ_UINT(base_count, 13233u);
  CHECK_EQ_UINT(lower_sum, 1098535568u);
  CHECK_EQ_UINT(base_sum, 3727384850u);
  CHECK_EQ_UINT(unicode_lower('Q'), 'q');
  CHECK_EQ_UINT(unicode_lower(0x130), 'i');
  CHECK_EQ_UINT(unicode_base(0xc9), 'E');
  CHECK_EQ_UINT(unicode_base(0x1e69), 's');
  CHECK_EQ_UINT(unicode_base(0xac01), 0x1100);
}

TEST(decodes_every_encoded_character) {
  for (uint32_t code = 0; code < 0x110000; code++) {
    uint8_t text[4];
    const size_t size = utf8_encode(code, text);
    if (size == 0) continue;
    const unicode_char c = unicode_at(text, 0, size);
    if (!CHECK_EQ_UINT(c.code, code) || !CHECK_EQ_UINT(c.size_bytes, size)) return;
    if (!CHECK_EQ_UINT(c.kind, unicode_class(code))) return;
  }
  CHECK_EQ_UINT(unicode_at((const uint8_t *)"a", 1, 1).size_bytes, 0);
  CHECK_EQ_UINT(unicode_at((const uint8_t *)"a", 1, 1).kind, 0);
}

static void check_repaired(const char *text, size_t size, const char *wanted) {
  uint8_t out[64];
  const size_t used = unicode_repair((const uint8_t *)text, size, out);
  CHECK_EQ_UINT(used, strlen(wanted));
  CHECK_EQ_MEM(out, wanted, strlen(wanted));
}

#define REPLACED "\xef\xbf\xbd"

TEST(replaces_each_invalid_byte_with_a_replacement_character) {
  check_repaired("", 0, "");
  check_repaired("plain", 5, "plain");
  check_repaired("\xc3\xa9", 2, "\xc3\xa9");
  check_repaired("\xff\xfe!", 3, REPLACED REPLACED "!");
  check_repaired("a\xc3(b", 4, "a" REPLACED "(b");
  check_repaired("\xe2\x82", 2, REPLACED REPLACED);               // truncated
  check_repaired("\xc0\x80", 2, REPLACED REPLACED);               // overlong
  check_repaired("\xed\xa0\x80", 3, REPLACED REPLACED REPLACED);  // surrogate
  check_repaired("\xf4\x90\x80\x80.", 5, REPLACED REPLACED REPLACED REPLACED ".");
  CHECK_EQ_UINT(unicode_valid_bytes((const uint8_t *)"ab\x80", 3), 2);
  CHECK_EQ_UINT(unicode_valid_bytes((const uint8_t *)"ab\xe2\x82", 4), 2);
}

// Tests the first and last code points of each UTF-8 length, including those determined by the
// first byte.
TEST(decodes_the_first_and_last_code_point_of_each_length) {
  static const uint32_t EDGES[] = {0,      0x7f,   0x80,   0x7ff,   0x800,   0xfff,   0x1000,
                                   0xd7ff, 0xe000, 0xffff, 0x10000, 0x3ffff, 0x40000, 0x10ffff};
  for (size_t i = 0; i < sizeof EDGES / sizeof EDGES[0]; i++) {
    uint8_t text[4];
    const size_t size = utf8_encode(EDGES[i], text);
    const unicode_char found = unicode_at(text, 0, size);
    CHECK_EQ_UINT(found.code, EDGES[i]);
    CHECK_EQ_UINT(found.size_bytes, size);
    CHECK_EQ_UINT(found.kind, unicode_class(EDGES[i]));
    CHECK_EQ_UINT(unicode_valid_bytes(text, size), size);
    CHECK_EQ_UINT(unicode_valid_bytes(text, size - 1), 0);
  }
  static const char *const INVALID[] = {"\xc0\x80",     "\xc1\xbf",         "\xe0\x9f\xbf",
                                        "\xed\xa0\x80", "\xed\xbf\xbf",     "\xf0\x8f\xbf\xbf",
                                        "\x80",         "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"};
  for (size_t i = 0; i < sizeof INVALID / sizeof INVALID[0]; i++) {
    const size_t size = strlen(INVALID[i]);
    uint8_t repaired[12];
    CHECK_EQ_UINT(unicode_valid_bytes((const uint8_t *)INVALID[i], size), 0);
    CHECK_EQ_UINT(unicode_repair((const uint8_t *)INVALID[i], size, repaired), 3 * size);
  }
}
