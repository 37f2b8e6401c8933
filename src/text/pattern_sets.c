// text/pattern_sets.c — the sets of characters that the regular expressions of tokenizer.ggml.pre
// list, exactly as llama.cpp applies them (src/unicode.cpp).
#include "text/patterns.h"

bool pattern_is_newline(unicode_char c) { return c.code == '\r' || c.code == '\n'; }
bool pattern_is_digit(unicode_char c) { return c.code >= '0' && c.code <= '9'; }
bool pattern_is_number(unicode_char c) { return c.kind == UNICODE_NUMBER; }
bool pattern_is_symbol_of_falcon(unicode_char c) {
  return c.kind == UNICODE_PUNCTUATION || (c.code < 128 && c.kind == UNICODE_SYMBOL);
}
bool pattern_is_symbol_of_default(unicode_char c) {
  return pattern_is_symbol_of_falcon(c) && c.code != '`';
}

bool pattern_is_letter(unicode_char c) { return c.kind == UNICODE_LETTER; }
bool pattern_is_punctuation(unicode_char c) { return c.kind == UNICODE_PUNCTUATION; }

// [一-龥ࠀ-一가-퟿]
bool pattern_is_cjk_of_deepseek_coder(unicode_char c) {
  return c.kind != UNICODE_SPACE &&
         ((c.code >= 0x800 && c.code <= 0x9fa5) || (c.code >= 0xac00 && c.code <= 0xd7ff));
}

typedef struct code_range {
  uint32_t first;
  uint32_t last;
} code_range;

static bool is_in_ranges(uint32_t code, const code_range *ranges, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges[middle].last < code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && ranges[low].first <= code;
}

// Letters with case from an older Unicode version, as listed in deepseek-llm's pattern.
bool pattern_is_letter_of_deepseek_llm(unicode_char c) {
  static const code_range RANGES[] = {
      {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},
      {0xd8, 0xf6},       {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},
      {0x295, 0x2af},     {0x370, 0x373},     {0x376, 0x377},     {0x37b, 0x37d},
      {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},     {0x38c, 0x38c},
      {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},     {0x48a, 0x52f},
      {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
      {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},
      {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},
      {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},
      {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},   {0x1fb6, 0x1fbc},
      {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},
      {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},
      {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},
      {0x2119, 0x211d},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
      {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},   {0x213c, 0x213f},
      {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2184},   {0x2c00, 0x2c7b},
      {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf3},   {0xa640, 0xa66d},
      {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
      {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},
      {0xff41, 0xff5a},   {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
      {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

// [!-/:-~！-／：-～‘-‟　-。]
bool pattern_is_sign_of_deepseek_llm(unicode_char c) {
  static const code_range RANGES[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201f},
                                      {0x3001, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

// [一-龥぀-ゟ゠-ヿ]
bool pattern_is_cjk_of_deepseek_v3(unicode_char c) {
  return (c.code >= 0x4e00 && c.code <= 0x9fa5) || (c.code >= 0x3040 && c.code <= 0x30ff);
}

// [^(\s|.,!?…。，、।۔،)]
bool pattern_is_word_of_bloom(unicode_char c) {
  static const uint32_t BREAKS[] = {'(',    ')',    '|',    '.',    ',',   '!',   '?',
                                    0x2026, 0x3002, 0xff0c, 0x3001, 0x964, 0x6d4, 0x60c};
  for (size_t i = 0; i < sizeof BREAKS / sizeof BREAKS[0]; i++) {
    if (c.code == BREAKS[i]) return false;
  }
  return c.kind != UNICODE_SPACE;
}

// [^\n]
bool pattern_is_of_line(unicode_char c) { return c.code != '\n'; }

bool pattern_is_no_space(unicode_char c) { return c.kind != UNICODE_SPACE; }

// \p{Han}
bool pattern_is_han(unicode_char c) {
  static const code_range RANGES[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                      {0x20000, 0x2a6df}, {0x2a700, 0x2ebef}, {0x2f800, 0x2fa1f}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

// [一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]
// The third range begins at U+8C48, not at U+F900, which looks the same.
bool pattern_is_asian_of_afmoe(unicode_char c) {
  static const code_range RANGES[] = {{0xe40, 0xeff},   {0x1000, 0x109f}, {0x1100, 0x11ff},
                                      {0x1780, 0x17ff}, {0x2f00, 0x2fdf}, {0x3040, 0x30ff},
                                      {0x3400, 0x4dbf}, {0x4e00, 0xfaff}, {0xff65, 0xff9f}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

unsigned pattern_script_of_youtu(unicode_char c) {
  static const code_range HANGUL[] = {{0x3131, 0x318e}, {0xac00, 0xd7a3}};
  static const code_range SIGNS[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201c, 0x201d},
                                     {0x2026, 0x2026}, {0x3001, 0x303f}, {0xfe30, 0xfe4f},
                                     {0xff01, 0xff01}, {0xff0c, 0xff0c}, {0xff1a, 0xff1b}};
  static const code_range CHINESE[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};
  if (is_in_ranges(c.code, HANGUL, sizeof HANGUL / sizeof HANGUL[0])) return 1;
  if (is_in_ranges(c.code, SIGNS, sizeof SIGNS / sizeof SIGNS[0])) return 2;
  if (c.code >= 0x3105 && c.code <= 0x312f) return 3;  // Bopomofo
  return is_in_ranges(c.code, CHINESE, sizeof CHINESE / sizeof CHINESE[0]) ? 4 : 0;
}
