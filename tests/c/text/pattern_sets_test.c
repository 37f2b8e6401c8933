// Compares the character sets of pre-tokenizers, for each code point, with the character classes in
// the patterns of the tokenizers' files.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "grammar/regex.h"
#include "platform/platform.h"
#include "text/patterns.h"

typedef bool (*set_of)(unicode_char c);

static bool is_hangul_of_youtu(unicode_char c) { return pattern_script_of_youtu(c) == 1; }
static bool is_sign_of_youtu(unicode_char c) { return pattern_script_of_youtu(c) == 2; }
static bool is_bopomofo_of_youtu(unicode_char c) { return pattern_script_of_youtu(c) == 3; }
static bool is_chinese_of_youtu(unicode_char c) { return pattern_script_of_youtu(c) == 4; }

// Characters that look like others (U+2126, U+F900) are written as escapes.
static const struct {
  set_of contains;
  const char *class;
} SETS[] = {
    {pattern_is_newline, "[\\r\\n]"},
    {pattern_is_of_line, "[^\\n]"},
    {pattern_is_digit, "[0-9]"},
    {pattern_is_letter_of_deepseek_llm,
     "[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶ-ͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅ"
     "Ὀ-Ὅὐ-ὗὙὛὝὟ-\\u1f7dᾀ-ᾴᾶ-ᾼ\\u1fbeῂ-ῄῆ-ῌῐ-\\u1fd3ῖ-\\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\\u2126ℨ"
     "\\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃ-ↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲ-ⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]"},
    {pattern_is_sign_of_deepseek_llm, "[!-/:-~！-／：-～‘-‟\\u3001-。]"},
    {pattern_is_cjk_of_deepseek_v3, "[一-龥぀-ゟ゠-ヿ]"},
    {pattern_is_cjk_of_deepseek_coder, "[一-龥ࠀ-一가-\\ud7ff]"},
    {pattern_is_word_of_bloom, "[^(\\s|.,!?…。，、।۔،)]"},
    {pattern_is_no_space, "[^\\s]"},
    {pattern_is_han,
     "[㐀-䶿一-鿿\\uf900-\\ufaff\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2ebef}\\u{2f800}-\\u{2fa1f}]"},
    {pattern_is_asian_of_afmoe,
     "[一-鿿㐀-䶿\\u8c48-\\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-\\u2fdfเ-\\u0e7f\\u0e80-\\u0effក-"
     "\\u17ffက-"
     "႟ꩠ-"
     "ꩿꧠ-"
     "\\ua9ff가-\\ud7afᄀ-ᇿ\\u0e40]"},
    {is_hangul_of_youtu, "[가-힣ㄱ-ㆎ]"},
    {is_sign_of_youtu, "[！…“”‘’—：；，\\u3001-\\u303f\\ufe30-\\ufe4f]"},
    {is_bopomofo_of_youtu, "[ㄅ-ㄯ]"},
    {is_chinese_of_youtu, "[一-龥぀-ゟ゠-ヿ]"},
};

static uint8_t kinds[0x110000];

// ECMA-262's \s contains U+FEFF but not U+0085. The patterns mean Unicode's White_Space, where it
// is the other way round.
static bool is_of_class(const dfa_edge **edge, const dfa_edge *last, uint32_t code,
                        bool has_escape) {
  while (*edge < last && (*edge)->high < code) ++*edge;
  if (has_escape && (code == 0xfeff || code == 0x85)) return kinds[code] != UNICODE_SPACE;
  return *edge < last && (*edge)->low <= code;
}

static void check_set(size_t i, const dfa *set) {
  // in llama.cpp, a class with ranges beyond ASCII never matches white space
  const bool lacks_spaces = SETS[i].contains == pattern_is_cjk_of_deepseek_coder;
  const bool has_escape = strstr(SETS[i].class, "\\s") != NULL;
  const dfa_edge *edge = &set->edges[0], *last = &set->edges[set->first[1]];
  uint32_t wrong = 0;
  for (uint32_t code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const bool wanted = !(lacks_spaces && kinds[code] == UNICODE_SPACE) &&
                        is_of_class(&edge, last, code, has_escape);
    const unicode_char c = {.code = code, .kind = kinds[code], .size_bytes = 1};
    if (SETS[i].contains(c) == wanted) continue;
    if (wrong++ < 8) printf("# %s: U+%04X\n", SETS[i].class, code);
  }
  CHECK_EQ_UINT(wrong, 0);
}

TEST(character_sets_match_the_classes_in_the_patterns) {
  for (uint32_t code = 0; code <= 0x10ffff; code++) kinds[code] = unicode_class(code);
  for (size_t i = 0; i < sizeof SETS / sizeof SETS[0]; i++) {
    memory_gate memory;
    grammar_work work;
    memory_init(&memory, 0, platform_alloc, platform_free);
    work_begin(&work, &memory);
    const char *class = SETS[i].class;
    const dfa *set = regex_compile(&work, (const uint8_t *)class, strlen(class), true);
    if (CHECK(set != NULL)) {
      check_set(i, set);
    } else {
      printf("# %s: %s\n", class, work.error.message);
    }
    work_end(&work);
  }
}
