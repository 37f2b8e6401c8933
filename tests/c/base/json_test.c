// The JSON writer: its output is valid for any input.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "check.h"

typedef struct text {
  char bytes[512];
  size_t used_bytes;
} text;

static void append(void *context, const char *bytes, size_t size_bytes) {
  text *to = context;
  if (!CHECK(to->used_bytes + size_bytes < sizeof to->bytes)) return;
  memcpy(to->bytes + to->used_bytes, bytes, size_bytes);
  to->used_bytes += size_bytes;
}

TEST(json_nests_and_separates) {
  text out = {0};
  json_writer json;
  json_begin(&json, append, &out);
  json_open(&json, NULL, '{');
  json_u64(&json, "most", UINT64_MAX);
  json_i64(&json, "least", INT64_MIN);
  json_open(&json, "list", '[');
  json_open(&json, NULL, '{');
  json_close(&json, '{');
  json_bool(&json, NULL, true);
  json_text(&json, NULL, NULL);
  json_close(&json, '[');
  json_open(&json, "none", '[');
  json_close(&json, '[');
  json_text(&json, "end", "");
  json_close(&json, '{');
  CHECK_EQ_STR(out.bytes,
               "{\"most\":18446744073709551615,\"least\":-9223372036854775808,"
               "\"list\":[{},true,null],\"none\":[],\"end\":\"\"}");
}

TEST(json_escapes_strings) {
  const struct {
    const char *bytes;
    size_t size_bytes;
    const char *wanted;
  } cases[] = {
      {"plain ä 你 🙂", sizeof "plain ä 你 🙂" - 1, "\"plain ä 你 🙂\""},
      {"a\"b\\c\n\t\0d", 9, "\"a\\\"b\\\\c\\n\\u0009\\u0000d\""},
      {"\x80 \xc3", 3, "\"\xef\xbf\xbd \xef\xbf\xbd\""},  // stray byte, truncated character
      {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},  // a surrogate
      {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                  // overlong
      {"", 0, "\"\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    text out = {0};
    json_writer json;
    json_begin(&json, append, &out);
    json_string(&json, NULL, cases[i].bytes, cases[i].size_bytes);
    CHECK_EQ_STR(out.bytes, cases[i].wanted);
  }
}

TEST(json_writes_short_decimals) {
  const struct {
    float value;
    const char *wanted;
  } cases[] = {{0, "0"},
               {-0.0f, "0"},
               {1, "1"},
               {10000, "10000"},
               {1e-5f, "0.00001"},
               {0.1f, "0.1"},
               {-2.5f, "-2.5"},
               {1.0f / 3, "0.33333334"},
               {16777216, "16777216"},
               {1e20f, "1e20"},
               {1.5e-30f, "1.5e-30"},
               {1e-45f, "1e-45"},
               {3.4028235e38f, "3.4028235e38"}};
  char out[JSON_NUMBER_BYTES];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    json_format_f32(out, cases[i].value);
    CHECK_EQ_STR(out, cases[i].wanted);
  }
  json_format_f64(out, 0.1);
  CHECK_EQ_STR(out, "0.1");
  json_format_f64(out, 123456789.125);
  CHECK_EQ_STR(out, "123456789.125");
  json_format_f64(out, (double)INFINITY);
  CHECK_EQ_STR(out, "null");
  json_format_f32(out, NAN);
  CHECK_EQ_STR(out, "null");
}

TEST(json_floats_parse_to_the_same_value) {
  uint32_t state = 1;
  for (int i = 0; i < 20000; i++) {
    state = state * 1664525u + 1013904223u;
    float value;
    memcpy(&value, &state, sizeof value);
    if (value - value != 0) continue;
    char out[JSON_NUMBER_BYTES];
    CHECK(json_format_f32(out, value) == strlen(out));
    const float back = strtof(out, NULL);
    if (!CHECK(back == value)) return;
  }
}
